"""Sums of independent noises with whole factors: how far they are off, at most and typically."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import TypeAlias

import numpy as np

from discreet.exact import Floats
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.rounded_gaussian import RoundedGaussian

IntegerNoise: TypeAlias = Laplace | RoundedGaussian
NoiseTerms: TypeAlias = Sequence[tuple[int, IntegerNoise]]

# Probabilities below this are beyond what sums in doubles can tell; each noise is then bounded by itself.
_LEAST_TAIL = Fraction(1, 10**9)
# What doubles may be wrong by, in all.
_SLACK = 1e-11
# Cells of the line on which laws are added, over so many standard deviations.
_CELLS, _DEVIATIONS = 1 << 15, 80


def bound_sum(terms: NoiseTerms, beta: Fraction) -> int:
    """A whole number that |Σ factor·noise| exceeds with a probability of at most β, and nearly the least one.

    Why it holds: a rounded normal is within ½ of the normal, whose sums are normal. Laws of Laplace noise are added on
    a line of cells; where a cell is longer than one step, each term is moved by at most half a cell, which is added.
    Where β is too small for that, or kinds are mixed, each of k noises stays within its bound for β/k.
    """
    used = [(abs(factor), noise) for factor, noise in terms if factor]
    if not used:
        return 0
    shared = math.gcd(*(factor for factor, _ in used))
    used = [(factor // shared, noise) for factor, noise in used]
    normal = [(factor, noise) for factor, noise in used if isinstance(noise, RoundedGaussian)]
    pure = [(factor, Fraction(noise.scale or 0)) for factor, noise in used if isinstance(noise, Laplace)]
    if len(used) == 1 or beta < _LEAST_TAIL or (pure and normal):
        return shared * sum(factor * math.ceil(noise.noise_bound(beta / len(used))) for factor, noise in used)
    return shared * (_bound_laplace(tuple(sorted(pure)), beta) if pure else _bound_normal(normal, beta))


def deviation_of_sum(terms: NoiseTerms) -> float:
    """The standard deviation of Σ factor·noise."""
    return math.hypot(*(float(factor) * noise.standard_error for factor, noise in terms))


def _bound_normal(terms: Sequence[tuple[int, RoundedGaussian]], beta: Fraction) -> int:
    deviation = math.hypot(*(factor * math.sqrt(Fraction(noise.variance or 0)) for factor, noise in terms))
    far = NormalDist().inv_cdf(1 - float(beta) / 2) * deviation * (1 + _SLACK)
    return math.ceil(far + sum(factor for factor, _ in terms) / 2)


@lru_cache(maxsize=1024)
def _bound_laplace(terms: tuple[tuple[int, Fraction], ...], beta: Fraction) -> int:
    """The bound for discrete Laplace noises, by their factors and scales."""
    deviation = math.sqrt(2) * math.hypot(*(factor * (float(scale) + 1) for factor, scale in terms))
    cell = max(1, math.ceil(_DEVIATIONS * deviation / _CELLS))
    together = np.ones(_CELLS // 2 + 1, dtype=np.complex128)
    for factor, scale in terms:
        chances = _place_exactly(factor, scale) if cell == 1 else _place_in_cells(factor, scale, cell)
        together = together * np.fft.rfft(np.fft.ifftshift(chances))
    law = np.fft.fftshift(np.fft.irfft(together, _CELLS))
    half = _CELLS // 2
    # P(|sum| ≤ m cells) for m = 0, 1, ...
    within = law[half] + np.concatenate([[0.0], np.cumsum(law[half + 1 :] + law[half - 1 : 0 : -1])])
    far = int(np.searchsorted(within, 1 - float(beta) + _SLACK))
    moved = 0 if cell == 1 else math.ceil(len(terms) * cell / 2)
    return far * cell + moved


def _place_exactly(factor: int, scale: Fraction) -> Floats:
    """P(factor·noise = x) for x around 0."""
    chances, half, q = np.zeros(_CELLS), _CELLS // 2, math.exp(-1 / float(scale))
    steps = np.arange(-((half - 1) // factor), (half - 1) // factor + 1)
    chances[half + factor * steps] = (1 - q) / (1 + q) * np.exp(-np.abs(steps) / float(scale))
    return chances


def _place_in_cells(factor: int, scale: Fraction, cell: int) -> Floats:
    """P(factor·noise is in a cell), for cells around 0. The law is symmetric, so half of it is computed."""
    chances, half = np.zeros(_CELLS), _CELLS // 2
    # The first step of noise beyond the end of each cell, and P(noise ≥ it) = q^step/(1 + q).
    first = np.floor((np.arange(half) + 0.5) * (cell / factor)) + 1
    beyond = np.exp(-first / float(scale)) / (1 + math.exp(-1 / float(scale)))
    chances[half] = 1 - 2 * beyond[0]
    chances[half + 1 :] = beyond[:-1] - beyond[1:]
    chances[half - 1 : 0 : -1] = chances[half + 1 :]
    return chances
