"""What is known of a count from its noisy value, given that this value named its key.

A noisy count is seen only where it reaches the threshold, so near the threshold it tends to be too large: an interval
of plain noise around it would miss small counts always. Here the law *given that the key was named* is inverted: a
count n belongs to the interval of the noisy value y if neither P(n + Z ≥ y | n + Z ≥ τ) nor P(n + Z ≤ y | n + Z ≥ τ) is
below half of what the level leaves out. For every true count the interval holds it at the level, among the cases in
which the key is named. Both probabilities are monotone in n, because the laws of the noise are log-concave, so the
counts that belong are a range.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import assert_never

import numpy as np

from discreet.entropy import SYSTEM, EntropySource
from discreet.exact import Floats, Integers
from discreet.late_dataclass import dataclass
from discreet.mechanisms.laws import DiscreteLaplaceLaw, RoundedGaussianLaw
from discreet.samplers import uniform_below

# Floats are right to far less than this; what they decide is decided in favour of the wider interval.
_SLACK = 1e-9
# Counts for which the law is tabulated when counts are drawn; in between it is taken to be flat.
_TABLE = 1024
_UNIFORM_BITS = 53
# From here on erfc is computed by its expansion, whose error is below 2/x⁶.
_FAR = 25.0


@dataclass(frozen=True)
class NamedCount:
    """The counts behind a noisy value that reached ``bar``; none is below ``least``.

    >>> named = NamedCount(DiscreteLaplaceLaw(Fraction(1)), bar=15)
    >>> [named.find_ends(noisy, Fraction(95, 100)) for noisy in (15, 20, 40)]
    [(1, 17), (17, 23), (37, 43)]
    """

    law: DiscreteLaplaceLaw | RoundedGaussianLaw
    bar: int
    least: int = 1

    @cached_property
    def _log_tail(self) -> Callable[[int], float]:
        """The logarithm of P(Z ≥ z) in floats: of tails so far out that they are below all floats, too."""
        return _make_log_tail(self.law)

    def chance_above(self, count: int, noisy: int) -> float:
        """P(count + Z ≥ noisy | named)."""
        return math.exp(self._log_tail(noisy - count) - self._log_tail(self.bar - count))

    def chance_below(self, count: int, noisy: int) -> float:
        """P(count + Z ≤ noisy | named), without taking a small number from a large one."""
        if count <= self.bar:
            return -math.expm1(self._log_tail(noisy + 1 - count) - self._log_tail(self.bar - count))
        most, least = self._log_tail(count - noisy), self._log_tail(count - self.bar + 1)
        return math.exp(most) * -math.expm1(least - most) / math.exp(self._log_tail(self.bar - count))

    def find_ends(self, noisy: int, level: Fraction) -> tuple[int, int]:
        """The interval of a count at the level, given that its noisy value named the key."""
        return _find_ends(self, noisy, level)

    def draw_counts(self, noisy: int, size: int, *, source: EntropySource = SYSTEM) -> Integers:
        """Counts that the noisy value could have come from: their quantiles are the ends of the intervals.

        They are public, because they follow from a released number.
        """
        level = 1 - Fraction(1, 1 << 20)
        low, high = self.find_ends(noisy, level)
        counts = np.unique(np.linspace(low, high, _TABLE).astype(np.int64))
        # The ends of an interval are where "at least y" and "more than y" are rare; between them is the middle.
        middle = [(self.chance_above(n, noisy) + self.chance_above(n, noisy + 1)) / 2 for n in counts.tolist()]
        shares: Floats = np.asarray(uniform_below(1 << _UNIFORM_BITS, size, source=source)) / 2.0**_UNIFORM_BITS
        places = np.searchsorted(np.maximum.accumulate(middle), shares, side="left")
        return np.asarray(counts[np.minimum(places, len(counts) - 1)], dtype=np.int64)


@lru_cache(maxsize=1 << 16)
def _find_ends(named: NamedCount, noisy: int, level: Fraction) -> tuple[int, int]:
    rare = float(1 - level) / 2 * (1 - _SLACK)
    low = _find_first(lambda n: named.chance_above(n, noisy) > rare, named.least, max(named.least, noisy))
    beyond, width = max(low, noisy) + 1, 1
    while named.chance_below(beyond, noisy) > rare:
        beyond, width = beyond + width, 2 * width
    high = _find_first(lambda n: named.chance_below(n, noisy) <= rare, low, beyond) - 1
    return low, max(low, high)


def _find_first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The first of low, ..., high from which on it holds; high if it holds nowhere before."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _make_log_tail(law: DiscreteLaplaceLaw | RoundedGaussianLaw) -> Callable[[int], float]:
    match law:
        case DiscreteLaplaceLaw():
            scale = float(law.scale)
            log_half = -math.log1p(math.exp(-1 / scale))
            return lambda z: log_half - z / scale if z > 0 else math.log1p(-math.exp(log_half + (z - 1) / scale))
        case RoundedGaussianLaw():
            width = math.sqrt(2 * float(law.variance))
            return lambda z: _log_normal_tail((z - 0.5) / width)
        case _:
            assert_never(law)


def _log_normal_tail(x: float) -> float:
    """ln(erfc(x)/2); far out by its expansion, e^(−x²)/(2x√π)·(1 − 1/(2x²) + 3/(4x⁴))."""
    if x < _FAR:
        return math.log(math.erfc(x) / 2)
    square = x * x
    return -square - math.log(2 * x * math.sqrt(math.pi)) + math.log1p((0.75 / square - 0.5) / square)
