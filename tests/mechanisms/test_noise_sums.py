"""Sums of noises: their bounds hold, nearly exactly, and their deviations are those of what is drawn."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.entropy import SeededForTestsOnly
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.noise_sums import NoiseTerms, bound_sum, deviation_of_sum
from discreet.mechanisms.rounded_gaussian import RoundedGaussian

BETA = Fraction(1, 20)


def pure(scale: int | Fraction) -> Laplace:
    return Laplace(sensitivity=1, scale=scale)


CASES: dict[str, NoiseTerms] = {
    "two small": [(1, pure(1)), (1, pure(1))],
    "three small": [(1, pure(2)), (1, pure(2)), (1, pure(2))],
    "small with factors": [(3, pure(2)), (-5, pure(2))],
    "large": [(1, pure(10**9)), (1, pure(10**9))],
    "large and lopsided": [(-55, pure(10**12)), (110, pure(10**12)), (0, pure(1))],
    "two scales": [(7, pure(10**6)), (1, pure(10**7)), (-2, pure(10**6))],
    "normal": [(4, RoundedGaussian(sensitivity=1, sigma=50)), (-9, RoundedGaussian(sensitivity=1, sigma=20))],
}


@pytest.mark.parametrize("name", CASES)
def test_bounds_hold_and_are_not_idle(name: str) -> None:
    """Of 200,000 sums 5 % or a little less lie beyond the bound, and the spread is the stated one."""
    source, count = SeededForTestsOnly(7), 200_000
    total = np.zeros(count)
    for factor, noise in CASES[name]:
        total += factor * np.asarray(noise.release(np.zeros(count, dtype=np.int64), source=source), dtype=np.float64)
    bound = bound_sum(CASES[name], BETA)
    beyond, sooner = np.mean(np.abs(total) > bound), np.mean(np.abs(total) > 0.98 * bound - 1)
    assert beyond < 0.0535  # six deviations above 5 %
    assert sooner > 0.0465
    assert abs(np.std(total) / deviation_of_sum(CASES[name]) - 1) < 0.02


def test_two_laplace_noises_are_bounded_as_in_the_textbook() -> None:
    """P(|X + Y| > t) = exp(−t/s)·(1 + t/(2s)) for the continuous law."""
    s = 10**8
    t = bound_sum([(1, pure(s)), (1, pure(s))], BETA) / s
    assert abs(math.exp(-t) * (1 + t / 2) - 0.05) < 0.0005
    assert math.exp(-t) * (1 + t / 2) <= 0.05


def test_common_factors_and_single_noises_are_exact() -> None:
    """A factor multiplies the bound; one noise has its own; none has none."""
    two = [(1, pure(3)), (1, pure(3))]
    assert bound_sum([(6, noise) for _, noise in two], BETA) == 6 * bound_sum(two, BETA)
    assert bound_sum([(-4, pure(3))], BETA) == 4 * pure(3).noise_bound(BETA)
    assert bound_sum([], BETA) == 0 == bound_sum([(0, pure(3))], BETA)


def test_rare_bounds_add_up_the_bounds_of_each() -> None:
    """Beyond what doubles can tell every noise is bounded by itself, and so are noises of two kinds."""
    rare = Fraction(1, 10**12)
    assert bound_sum([(1, pure(3)), (2, pure(3))], rare) == 3 * pure(3).noise_bound(rare / 2)
    normal = RoundedGaussian(sensitivity=1, sigma=5)
    both = bound_sum([(1, pure(3)), (1, normal)], BETA)
    assert both == pure(3).noise_bound(BETA / 2) + normal.noise_bound(BETA / 2)
