"""The rule that turns noisy counts by powers of two into bounds.

A bucket is *sure* if its noisy count is above what noise alone would show in any bucket. The first threshold lets noise
alone show an empty bucket with probability 10⁻⁹. If no bucket is sure, the same noisy counts are read again with a
lower threshold, down to the one for probability 1/100. The bounds enclose every sure bucket. An end that is near zero
is replaced by zero.

How much farther they reach is chosen by the loss that is expected. ``far_end`` estimates for each possible end how
much a sum would lose beyond it, and takes the end where this loss and the noise of a later question are least together.

Privacy: none is spent here. Why: the noisy counts have been released, the law of the noise and the number of buckets
are public, and nothing else is read.
Reference: Wilson et al. 2020, "Differentially Private SQL with Bounded User Contribution", ApproxBounds, for sure
buckets; Amin, Kulesza, Munoz and Vassilvitskii 2019, "Bounding User Contributions", for the balance of loss and noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from discreet.bound_search.far_end import CountNoise, Tail, choose_far_end, see_tails, walk_inwards
from discreet.late_dataclass import dataclass
from discreet.parameters import Number
from discreet.plan.magnitude import IntOrFloat
from discreet.plan.types import INTEGER_MAX, INTEGER_MIN

# The probabilities that noise alone shows an empty bucket, in the order in which they are tried.
DOUBTS = tuple(Fraction(1, 10**power) for power in range(9, 1, -1))
# An end is near zero if it is at most an eighth of the other one. With zero in its place small numbers are not clamped.
# That costs a sum nothing, because its noise follows from the larger end, and it costs a mean at most a seventh.
NEAR = 8


@dataclass(frozen=True, slots=True)
class PartNoise:
    """Noise that was added to counts in parts of ``parts`` to the whole, in whole ones."""

    noise: CountNoise
    parts: int

    @property
    def standard_error(self) -> float:
        """The standard deviation of one noise."""
        return self.noise.standard_error / self.parts

    def noise_bound(self, beta: Number = 0.05, of: int = 1) -> float:
        """The size that none of ``of`` noises exceeds, with probability 1 − ``beta``."""
        return self.noise.noise_bound(beta, of) / self.parts


@dataclass(frozen=True, slots=True)
class NoisyRange:
    """Bounds that were read off noisy counts.

    ``above`` is the threshold that a sure bucket's noisy count exceeds. ``doubt`` is the probability that noise alone
    exceeds it in some empty bucket.
    """

    low: IntOrFloat
    high: IntOrFloat
    above: int
    doubt: Fraction


def threshold(noise: CountNoise, buckets: int, doubt: Fraction) -> int:
    """The noisy count above which a bucket is sure.

    With probability 1 − doubt, none of the noises of so many buckets is above it. Why: let t be the probability that
    the size of one noise exceeds the threshold. Noise is symmetric, so a noise is above it with probability t/2, and
    (1 − t/2)^n ≥ (1 − t)^(n/2). So it is enough that half as many noises stay within it in size.
    """
    return math.ceil(noise.noise_bound(beta=doubt, of=max(1, (buckets + 1) // 2)))


def read_bounds(counts: Mapping[IntOrFloat, int], noise: CountNoise) -> NoisyRange | None:
    """The range of noisy counts, with the smallest expected loss; None if no bucket is sure.

    >>> from discreet.mechanisms.laplace import Laplace
    >>> read_bounds({0: 3, 1: -2, 2: 950, 4: 1200, 8: 41, 16: 1}, Laplace(sensitivity=1, epsilon=1))
    NoisyRange(low=0, high=16, above=22, doubt=Fraction(1, 1000000000))
    """
    for doubt in DOUBTS:
        above = threshold(noise, len(counts), doubt)
        sure = [bucket for bucket, count in counts.items() if count > above]
        if sure:
            return NoisyRange(*_suggest_range(*_reach_out(sure, counts, noise), sure[0]), above, doubt)
    return None


def _reach_out(
    sure: list[IntOrFloat], counts: Mapping[IntOrFloat, int], noise: CountNoise
) -> tuple[Fraction, Fraction]:
    """The sure range, moved outwards or inwards at each end as far as the counts say."""
    sides = tuple({_exponent(b): n for b, n in counts.items() if sign * b > 0} for sign in (1, -1))
    known = tuple([_exponent(b) for b in sure if sign * b > 0] for sign in (1, -1))
    tops = tuple(max(exponents, default=None) for exponents in known)
    if not any(known):  # only zeros are sure
        return Fraction(0), Fraction(0)
    tails = see_tails(sides[0], sides[1], (tops[0], tops[1]), noise)
    far = choose_far_end(tails, 1 + max(max(exponents) for exponents in known if exponents), noise)
    outer = [_find_outer_end(tail, tails, far) for tail in tails]
    # Where a sign is not seen, the range ends at zero, or where the other sign begins.
    inner = [
        Fraction(0) if 0 in sure or not exponents else Fraction(2) ** walk_inwards(side, min(exponents), noise)
        for side, exponents in zip(sides, known)
    ]
    high, low = (other if end is None else end for end, other in zip(outer, (-inner[1], -inner[0])))
    return -low, high


def _find_outer_end(tail: Tail, tails: tuple[Tail, Tail], far: Fraction) -> Fraction | None:
    """The end of one sign: the far one where its values are the largest, otherwise that of its own edge."""
    if tail.edge is None:
        return None
    largest = max(other.edge for other in tails if other.edge is not None)
    return far if tail.edge == largest else Fraction(2) ** (tail.edge + 1)


def _exponent(bucket: IntOrFloat) -> int:
    """The exponent of a bucket's power of two."""
    return abs(bucket).bit_length() - 1 if isinstance(bucket, int) else math.frexp(bucket)[1] - 1


def _suggest_range(low: Fraction, high: Fraction, like: IntOrFloat) -> tuple[IntOrFloat, IntOrFloat]:
    """The range to suggest, in the type of the buckets: it reaches to zero if zero is near, and it is never empty.

    Whole numbers have 64 bits and enclose the range; reals hold it exactly.
    """
    if 0 < low <= high / NEAR:
        low = Fraction(0)
    if low / NEAR <= high < 0:
        high = Fraction(0)
    if isinstance(like, float):
        return float(low), float(high if low < high else low + 1)  # only zeros were seen
    first, last = max(INTEGER_MIN, math.floor(low)), min(INTEGER_MAX, math.ceil(high))
    return first, last if first < last else first + 1
