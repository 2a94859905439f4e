"""The rule that turns noisy counts by powers of two into bounds.

A bucket is *seen* if its noisy count is above what noise alone would show in any bucket. The bounds are the ends of the
smallest and the largest bucket seen. An end that is near zero is replaced by zero.
The first threshold lets noise alone show an empty bucket with probability 10⁻⁹. If no bucket is seen, the same noisy
counts are read again with a lower threshold, down to the one for probability 1/100.

Privacy: none is spent here. Why: the noisy counts have been released, the law of the noise and the number of buckets
are public, and nothing else is read.
Reference: Wilson et al. 2020, "Differentially Private SQL with Bounded User Contribution", ApproxBounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from discreet.parameters import Number
from discreet.plan.magnitude import IntOrFloat, ends

# The probabilities that noise alone shows an empty bucket, in the order in which they are tried.
DOUBTS = tuple(Fraction(1, 10**power) for power in range(9, 1, -1))
# An end is near zero if it is at most an eighth of the other one. With zero in its place small numbers are not clamped.
# That costs a sum nothing, because its noise follows from the larger end, and it costs a mean at most a seventh.
NEAR = 8


class CountNoise(Protocol):
    """The noise that was added to the counts. Members: ``Laplace``, ``RoundedGaussian`` and ``PartNoise``."""

    def noise_bound(self, beta: Number = ..., of: int = ...) -> float:
        """The size that none of ``of`` noises exceeds, with probability 1 − ``beta``."""
        ...


@dataclass(frozen=True, slots=True)
class PartNoise:
    """Noise that was added to counts in parts of ``parts`` to the whole, in whole ones."""

    noise: CountNoise
    parts: int

    def noise_bound(self, beta: Number = 0.05, of: int = 1) -> float:
        """The size that none of ``of`` noises exceeds, with probability 1 − ``beta``."""
        return self.noise.noise_bound(beta, of) / self.parts


@dataclass(frozen=True, slots=True)
class NoisyRange:
    """Bounds that were read off noisy counts.

    ``above`` is the threshold that a bucket's noisy count had to exceed. ``doubt`` is the probability that noise alone
    exceeds it in some empty bucket.
    """

    low: IntOrFloat
    high: IntOrFloat
    above: int
    doubt: Fraction


def threshold(noise: CountNoise, buckets: int, doubt: Fraction) -> int:
    """The noisy count above which a bucket is seen.

    With probability 1 − doubt, none of the noises of so many buckets is above it. Why: let t be the probability that
    the size of one noise exceeds the threshold. Noise is symmetric, so a noise is above it with probability t/2, and
    (1 − t/2)^n ≥ (1 − t)^(n/2). So it is enough that half as many noises stay within it in size.
    """
    return math.ceil(noise.noise_bound(beta=doubt, of=max(1, (buckets + 1) // 2)))


def read_bounds(counts: Mapping[IntOrFloat, int], noise: CountNoise) -> NoisyRange | None:
    """The range of the buckets that are seen among noisy counts; None if no bucket is seen.

    >>> from discreet.mechanisms.laplace import Laplace
    >>> read_bounds({0: 3, 1: -2, 2: 950, 4: 1200, 8: 41, 16: 1}, Laplace(sensitivity=1, epsilon=1))
    NoisyRange(low=0, high=16, above=22, doubt=Fraction(1, 1000000000))
    """
    for doubt in DOUBTS:
        above = threshold(noise, len(counts), doubt)
        seen = [bucket for bucket, count in counts.items() if count > above]
        if seen:
            return NoisyRange(*_suggest_range(ends(min(seen))[0], ends(max(seen))[1]), above, doubt)
    return None


def _suggest_range(low: IntOrFloat, high: IntOrFloat) -> tuple[IntOrFloat, IntOrFloat]:
    """The range to suggest: it reaches to zero if zero is near, and it is never empty."""
    if 0 < low <= high / NEAR:
        low = type(low)(0)
    if low / NEAR <= high < 0:
        high = type(high)(0)
    return low, high if low < high else low + 1  # only zeros were seen
