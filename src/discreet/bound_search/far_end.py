"""How far bounds should reach: the end where the expected loss of a sum beyond it, and its noise, are least together.

What is known are noisy counts of values by size: bucket e holds those from 2^e to 2^(e+1). Two steps lead to an end.

1. Which buckets are *seen*. Beyond the largest seen bucket, a bucket that is d powers of two larger is seen if noise
   alone would show so much with probability 1/40 · 8^−d at most. Why the power: a false bucket makes noise 2^d times
   larger, so its expected damage to the squared error falls as 2^−d, and all of it together stays small.
2. How much lies in the next buckets, which nobody can see. Counts usually fall from one power of two to the next, at
   least by half and at least as they fell before. This guess and the noisy count are averaged by their precisions, and
   the result is where the guess for the bucket after it starts.

For each possible end (a power of two, or one and a half) the loss is the estimated sum of what lies beyond it, where
values are spread evenly over the logarithms in a bucket; the noise is that of a question with three times the search's
budget. The square root of both squares is least at the end that is chosen.

Privacy: none is spent here. Only released counts and the public law of their noise are read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Protocol

from discreet.late_dataclass import dataclass
from discreet.parameters import Number

# How seldom noise alone shows a bucket within the largest that is seen, and by how much seldomer each one beyond it.
SEEN_DOUBT, SEEN_RATIO = Fraction(1, 20), Fraction(1, 8)
# Never seldomer than this: so many units are seen wherever they are.
LEAST_DOUBT = Fraction(1, 10**11)
# How many powers of two beyond the last seen one an end may lie, and the most that counts fall less than.
STEPS, MOST_RATIO = 2, 0.5
# A later question is taken to have three times the budget of the search (see ``missing_bounds.SEARCH_SHARE``).
LATER = 3


class CountNoise(Protocol):
    """The noise that was added to the counts. Members: ``Laplace``, ``RoundedGaussian`` and ``PartNoise``."""

    @property
    def standard_error(self) -> float:
        """The standard deviation of one noise."""
        ...

    def noise_bound(self, beta: Number = ..., of: int = ...) -> float:
        """The size that none of ``of`` noises exceeds, with probability 1 − ``beta``."""
        ...


@dataclass(frozen=True, slots=True)
class Tail:
    """The noisy counts of one sign by the exponents of their sizes, and the largest exponent that is seen, if any."""

    counts: Mapping[int, int]
    edge: int | None

    def estimate_beyond(self, noise: CountNoise, missed: float = math.inf) -> dict[int, float]:
        """How many values each bucket has: as counted up to the edge, and the guess of step 2 after it.

        Where a count is ``missed`` standard deviations of noise or more below its guess, the values end.
        """
        if self.edge is None:
            return {}
        found = {e: max(0.0, float(count)) for e, count in self.counts.items() if e <= self.edge}
        guess = float(max(1, self.counts[self.edge]))
        ratio = min(MOST_RATIO, guess / max(1, self.counts.get(self.edge - 1, 0)))
        for e in range(self.edge + 1, self.edge + STEPS + 1):
            guess *= ratio
            if guess - self.counts.get(e, 0) > missed * noise.standard_error:
                break
            if e in self.counts:
                # A part of the typical noise is taken off, because only what is above zero counts.
                counted = self.counts[e] - noise.standard_error / 3
                weight = guess**2 / (guess**2 + noise.standard_error**2)
                found[e] = guess = max(0.0, weight * counted + (1 - weight) * guess)
        return found


def see_tails(
    positive: Mapping[int, int], negative: Mapping[int, int], sure: tuple[int | None, int | None], noise: CountNoise
) -> tuple[Tail, Tail]:
    """Both tails with their edges, from the largest exponents that are sure: step 1.

    A bucket that is not larger than a seen one is in the range of sizes; but another sign widens a range, so it is
    shown only if noise would not show any of all buckets so.
    """
    edges = list(sure)
    last = max(e for e in sure if e is not None)
    every = len(positive) + len(negative)
    for e in sorted(positive.keys() | negative.keys()):
        beyond = max(0, e - last)
        doubt = SEEN_DOUBT / every if beyond == 0 else max(LEAST_DOUBT, SEEN_DOUBT * SEEN_RATIO**beyond)
        bar = math.ceil(noise.noise_bound(beta=doubt))  # counts are shown as whole numbers
        for side, counts in enumerate((positive, negative)):
            edge = edges[side]
            if counts.get(e, 0) > bar and (edge is None or e > edge):
                edges[side], last = e, max(last, e)
    return Tail(positive, edges[0]), Tail(negative, edges[1])


def choose_far_end(tails: tuple[Tail, Tail], least: int, noise: CountNoise) -> Fraction:
    """The end with the least expected error, among those from 2^least on."""
    values = [tail.estimate_beyond(noise) for tail in tails]
    last = max(e for tail in tails for e in (tail.edge, least - 1) if e is not None)

    def expect_error(end: Fraction) -> float:
        lost = sum(count * _excess(e, float(end)) for found in values for e, count in found.items())
        return math.hypot(lost, float(end) * noise.standard_error / LATER)

    return min(_list_ends(least, last + 1 + STEPS), key=expect_error)


def walk_inwards(counts: Mapping[int, int], start: int, noise: CountNoise) -> int:
    """The smallest exponent that is reached from ``start`` over buckets that noise alone seldom shows."""
    bar = math.ceil(noise.noise_bound(beta=SEEN_DOUBT))
    while counts.get(start - 1, 0) > bar:
        start -= 1
    return start


def _list_ends(first: int, last: int) -> Iterator[Fraction]:
    """Every power of two from 2^first to 2^last, and the middles between them."""
    for e in range(first, last + 1):
        yield Fraction(2) ** e
        if e < last:
            yield Fraction(3, 2) * Fraction(2) ** e


def _excess(exponent: int, end: float) -> float:
    """How far a value in a bucket is beyond an end, on average, where logarithms are spread evenly."""
    low, high = math.ldexp(1.0, exponent), math.ldexp(1.0, exponent + 1)
    if end >= high:
        return 0.0
    start = max(low, end)
    return ((high - start) - end * math.log(high / start)) / math.log(2)
