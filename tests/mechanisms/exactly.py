"""Exact checks of privacy claims from exact probabilities, shared by the tests of mechanisms."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, NoReturn

from discreet.exact import Exact, Interval, Ln

Probability = Callable[[Any, Any], Interval]
# Intervals are certain to far more bits than this.
SLACK = Fraction(1, 1 << 80)


class Untouchable:
    """A source of randomness that must not be used."""

    def words(self, count: int) -> NoReturn:  # noqa: ARG002 - the protocol's name
        raise AssertionError("something was drawn")

    def word(self) -> NoReturn:
        raise AssertionError("something was drawn")

    def bits(self, count: int) -> NoReturn:  # noqa: ARG002 - the protocol's name
        raise AssertionError("something was drawn")


def growth(epsilon: Exact) -> Interval:
    """e^ε; rational where ε is a logarithm."""
    if isinstance(epsilon, Ln):
        return Interval.of(epsilon.of)
    return Interval.of(1) / Interval.exp_minus(epsilon)


def violated(probability: Probability, epsilon: Exact, x: Any, y: Any, outputs: Iterable[Any]) -> bool:
    """Whether some output is certainly more than e^ε times likelier on one of two neighbours than on the other."""
    bound = growth(epsilon)
    pairs = ((probability(o, x), probability(o, y)) for o in outputs)
    return any(p.low > (bound * q).high or q.low > (bound * p).high for p, q in pairs)


def reached(probability: Probability, epsilon: Exact, x: Any, y: Any, outputs: Iterable[Any]) -> bool:
    """Whether some output has the ratio e^ε, up to 2^-80."""
    bound = growth(epsilon)
    pairs = ((probability(o, x), probability(o, y)) for o in outputs)
    return any(p.high >= (bound * q).low * (1 - SLACK) or q.high >= (bound * p).low * (1 - SLACK) for p, q in pairs)


def hockey_stick(probability: Probability, epsilon: Exact, x: Any, y: Any, outputs: Iterable[Any]) -> Interval:
    """Σ max(0, P(o|x) − e^ε·P(o|y)) over these outputs."""
    bound, low, high = growth(epsilon), Fraction(0), Fraction(0)
    for o in outputs:
        gap = probability(o, x) - bound * probability(o, y)
        low, high = low + max(Fraction(0), gap.low), high + max(Fraction(0), gap.high)
    return Interval(low, high)
