"""What the tests of the choosers share: exact divergences, neighbouring scores, and a source that nobody may touch."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NoReturn

from discreet.exact import Interval


class Untouched:
    """A source that fails when used: nothing may be drawn before the input is known to be good."""

    def words(self, count: int) -> NoReturn:  # noqa: ARG002  # the protocol's signature
        raise AssertionError("words were drawn")

    def word(self) -> NoReturn:
        raise AssertionError("a word was drawn")

    def bits(self, count: int) -> NoReturn:  # noqa: ARG002  # the protocol's signature
        raise AssertionError("bits were drawn")


def log_ratio(p: Interval, q: Interval) -> tuple[float, float]:
    """Bounds on ln(p/q), up to the rounding of the last logarithm."""
    low = math.log(p.low.numerator * q.high.denominator) - math.log(p.low.denominator * q.high.numerator)
    high = math.log(p.high.numerator * q.low.denominator) - math.log(p.high.denominator * q.low.numerator)
    return low, high


def max_divergence(pairs: Iterable[tuple[Interval, Interval]]) -> float:
    """The largest certain |ln(p/q)| over outputs, from the upper ends; exact to about 1e-12."""
    return max(max(abs(end) for end in log_ratio(p, q)) for p, q in pairs)


def neighbours_of(scores: Sequence[int], delta: int, *, monotone: bool = False) -> Iterator[tuple[int, ...]]:
    """Every integer score vector within ``delta`` in each coordinate; one-directional for monotone scores."""
    moves = range(delta + 1) if monotone else range(-delta, delta + 1)
    for change in itertools.product(moves, repeat=len(scores)):
        yield tuple(s + c for s, c in zip(scores, change))
        if monotone:
            yield tuple(s - c for s, c in zip(scores, change))
