"""Goodness of fit for the tests: the chi-square test with small cells pooled, and exact laws to compare with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction

import mpmath
import numpy as np
import numpy.typing as npt
import scipy.stats

# A test that fails when p falls below this fails by chance once in a thousand million runs; seeds are fixed besides.
REJECT = 1e-9


def p_value(observed: Iterable[float], probabilities: Iterable[float], *, least: float = 10.0) -> float:
    """The chi-square p value of counts; neighbouring cells are pooled until each expects ``least``."""
    counts, chances = np.asarray(list(observed), dtype=float), np.asarray(list(probabilities), dtype=float)
    expected = chances / chances.sum() * counts.sum()
    pooled: list[tuple[float, float]] = []
    seen = hoped = 0.0
    for count, hope in zip(counts, expected):
        seen, hoped = seen + count, hoped + hope
        if hoped >= least:
            pooled.append((seen, hoped))
            seen = hoped = 0.0
    if pooled:
        last_seen, last_hoped = pooled.pop()
        pooled.append((last_seen + seen, last_hoped + hoped))
    statistic = sum((seen - hoped) ** 2 / hoped for seen, hoped in pooled)
    return float(scipy.stats.chi2.sf(statistic, len(pooled) - 1))


def masses(exponent: Callable[[int], Fraction], low: int, high: int) -> list[float]:
    """The probabilities ∝ exp(−exponent(x)) for low ≤ x ≤ high, by an independent library."""
    with mpmath.workdps(30):
        weights = [mpmath.exp(-mpmath.mpf(e.numerator) / e.denominator) for e in map(exponent, range(low, high + 1))]
        total = mpmath.fsum(weights)
        return [float(weight / total) for weight in weights]


def counts(values: npt.ArrayLike, low: int, high: int) -> list[int]:
    """How often each of low, ..., high occurs; values beyond count at the ends."""
    tally = Counter(np.clip(np.asarray(values, dtype=np.int64), low, high).tolist())
    return [tally[x] for x in range(low, high + 1)]


def block_counts(values: npt.NDArray[np.int64], edges: npt.NDArray[np.int64]) -> list[int]:
    """How many values fall below the first edge, between neighbouring ones, and from the last one on."""
    found = np.bincount(np.searchsorted(edges, values, side="right"), minlength=len(edges) + 1)
    return [int(count) for count in found]
