"""How statistics follow from released counts and sums. Only noisy numbers are visible here, so all of it is free.

A formula gets one entry for each group and gives one number for each. It must be finite for whatever noise brings: the
counts that it divides by are at least 1, and bounds hold what could otherwise go anywhere.
"""

from __future__ import annotations

import numpy as np

from discreet.exact import Floats
from discreet.late_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstMoments:
    """What was released of one argument: the count of its values, and the sum of their steps.

    A step is ``size`` long and the steps are counted from ``origin``; the argument lies within [low, high]. Where a
    noisy count is below 1 there is no statistic, and ``count`` is 1 in its place.
    """

    count: Floats
    steps: Floats
    origin: float
    size: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondMoments:
    """The same, and the sum of the squares of the steps."""

    first: FirstMoments
    squares: Floats


def find_mean(of: FirstMoments) -> Floats:
    """The average, moved into the bounds."""
    return np.clip(of.origin + of.size * (of.steps / of.count), of.low, of.high)


def find_variance(of: SecondMoments) -> Floats:
    """The variance of the population: not below 0, and not above that of half the values at each bound."""
    first = of.first
    mean = first.steps / first.count
    return np.clip(first.size**2 * (of.squares / first.count - mean**2), 0.0, ((first.high - first.low) / 2) ** 2)


def find_deviation(of: SecondMoments) -> Floats:
    """The standard deviation of the population."""
    deviation: Floats = np.sqrt(find_variance(of))
    return deviation


def find_standard_error(of: SecondMoments) -> Floats:
    """How far the mean of a sample of this size typically is off: the standard deviation over the root of the count."""
    return find_deviation(of) / np.sqrt(of.first.count)


def limit_mean(low: float, high: float) -> tuple[float, float]:
    """Where an average of values within bounds lies."""
    return low, high


def limit_variance(low: float, high: float) -> tuple[float, float]:
    """Where a variance lies."""
    return 0.0, ((high - low) / 2) ** 2


def limit_deviation(low: float, high: float) -> tuple[float, float]:
    """Where a standard deviation lies, and also one that is divided by the root of a count of 1 or more."""
    return 0.0, (high - low) / 2
