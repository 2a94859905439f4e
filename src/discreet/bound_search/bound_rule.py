"""From noisy counts by powers of two to bounds: the rule, and nothing else.

A bucket counts as seen if its noisy count is above what noise alone would show in any bucket. The bounds are the ends
of the smallest and the largest bucket seen, and zero instead of an end that is near it. The first try allows noise to
fool us once in a thousand million times; if nothing is seen, the same noisy counts are read again with more doubt, up
to one time in a hundred.

Privacy: none is spent here. Why: the noisy counts have been released, the law of the noise and the number of buckets
are public, and nothing else is looked at.
Reference: Wilson et al. 2020, "Differentially Private SQL with Bounded User Contribution", ApproxBounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from discreet.parameters import Number as Parameter
from discreet.plan.magnitude import IntOrFloat, ends

# The chance that noise alone shows a bucket which is empty: the strictest first.
DOUBTS = tuple(Fraction(1, 10**power) for power in range(9, 1, -1))
# An end is near zero if it is an eighth of the other, or less. Then small numbers stay as they are, seen or not, which
# costs a sum nothing (its noise follows from the larger end) and a mean a seventh at most.
NEAR = 8


class CountNoise(Protocol):
    """The noise of the counts. Members: the Laplace and Gaussian mechanisms."""

    def noise_bound(self, beta: Parameter = ..., of: int = ...) -> float:
        """What none of ``of`` noises exceeds in size, with probability 1 − ``beta``."""
        ...


@dataclass(frozen=True, slots=True)
class NoisyRange:
    """Bounds that were read off noisy counts. ``above`` is what a bucket's count had to be above, at this ``doubt``."""

    low: IntOrFloat
    high: IntOrFloat
    above: int
    doubt: Fraction


def threshold(noise: CountNoise, buckets: int, doubt: Fraction) -> int:
    """The noisy count above which a bucket is seen.

    With probability 1 − doubt, no noise of so many buckets is above it. Why: let t be the chance that a noise is larger
    in size. Noise is symmetric, so one is above with chance t/2, and (1 − t/2)^n ≥ (1 − t)^(n/2): it is enough that
    half as many noises stay within it in size.
    """
    return math.ceil(noise.noise_bound(beta=doubt, of=max(1, (buckets + 1) // 2)))


def read_bounds(counts: Mapping[IntOrFloat, int], noise: CountNoise) -> NoisyRange | None:
    """The range of the buckets that are seen among noisy counts; None if none is.

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
    """The range that is suggested: up to zero if zero is near, and never empty."""
    if 0 < low <= high / NEAR:
        low = type(low)(0)
    if low / NEAR <= high < 0:
        high = type(high)(0)
    return low, high if low < high else low + 1  # only zeros were seen
