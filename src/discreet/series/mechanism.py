"""The mechanism of series: counts of many periods, one after the other, under one loss that is fixed before the first.

What is measured in a period is a weighed sum of all counts so far, plus fresh noise. So running totals and windows need
not add up the noise of many periods. The weights are chosen, from public facts, for what is wanted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import assert_never

import numpy as np

from discreet import parameters
from discreet.accounting import events
from discreet.entropy import SYSTEM, EntropySource
from discreet.errors import ParameterError
from discreet.exact import Floats
from discreet.mechanisms.l2_noise import shorten
from discreet.mechanisms.mechanism import OneEventMechanism, settle
from discreet.mechanisms.rounded_gaussian import RoundedGaussian
from discreet.parameters import Number
from discreet.privacy import Neighbours

MOST_PERIODS = 4096
_SCALE = 1024
# Up to this the square of what a unit moves, over all periods, fits 64 bits: (2^12 · 2^13)² · 2^12 = 2^62.
_SMALL = 1 << 13
_DECAYS = (0.0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0)


class Wanted(StrEnum):
    """What the errors of a series are judged by."""

    PERIODS = "periods"
    TOTALS = "totals"
    WINDOWS = "windows"


def make_coefficients(periods: int, decay: float, band: int) -> tuple[int, ...]:
    """c_j = round(1024·f_j·λ^j), zero from the band on: from plain noise (λ = 0) to the root of running totals.

    >>> make_coefficients(4, 1.0, 4)
    (1024, 512, 384, 320)
    """
    found, factor = [], 1.0
    for j in range(periods):
        found.append(round(_SCALE * factor * decay**j) if j < band else 0)
        factor *= (2 * j + 1) / (2 * j + 2)
    return tuple(found)


def find_squared_distance(coefficients: Sequence[int], max_periods: int, apart: int) -> int:
    """Δ² of one unit that adds 1 to each of ``max_periods`` periods, ``apart`` from each other.

    Privacy: no pattern of participation moves the series further, if the coefficients do not increase and are not
    negative (docs/proofs/series.md); others are refused.
    """
    if any(later > before for before, later in pairwise(coefficients)) or coefficients[-1] < 0:
        raise ParameterError("coefficients", "must not increase and not be negative", "The bound holds for no others.")
    length = len(coefficients)
    small = coefficients[0] <= _SMALL
    column = np.array(coefficients, dtype=np.int64 if small else object)
    moved = np.zeros(length, dtype=column.dtype)
    for day in range(0, length, apart)[:max_periods]:
        moved[day:] += column[: length - day]
    return int((moved * moved).sum())


@dataclass(frozen=True, kw_only=True, repr=False)
class SeriesMechanism(OneEventMechanism):
    """Noisy weighed sums of the counts of ``periods`` periods, for one μ in all.

    A unit adds at most ``max_count`` to each of at most ``max_periods`` periods, any two of which are at least
    ``apart`` from each other. Whoever counts must enforce that, causally: by what a unit did before, never by what it
    does later. ``wanted`` is what is judged by its errors: periods, running totals, or sums of ``window`` periods (7).

    Privacy: all periods together are μ-Gaussian private, whatever is seen in between.
    Why: docs/proofs/series.md.
    Reference: Denisov et al. 2022; Choquette-Choo et al. 2023.

    >>> daily = SeriesMechanism(periods=30, max_periods=2, apart=7, mu=0.5, wanted="totals")
    >>> daily.event.squared_sensitivity / daily.event.variance <= Fraction(1, 4)
    True
    """

    periods: int
    max_periods: int
    mu: Number
    apart: int = 1
    max_count: int = 1
    wanted: Wanted | str = Wanted.PERIODS
    window: int | None = None
    coefficients: tuple[int, ...] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, most in (("periods", MOST_PERIODS), ("max_periods", None), ("apart", None), ("max_count", None)):
            parameters.read_whole(getattr(self, name), name, most=most)
        if self.window is None:
            settle(self, window=min(7, self.periods))
        parameters.read_whole(self.window, "window", most=self.periods)
        if self.wanted not in tuple(Wanted):
            raise ParameterError("wanted", "is not a known word", "Say 'periods', 'totals' or 'windows'.")
        settle(self, mu=parameters.read_positive(self.mu, "mu"), wanted=Wanted(self.wanted))
        if self.coefficients is None:
            settle(self, coefficients=self._choose_coefficients())
        if len(self.weights) != self.periods or self.weights[0] < 1:
            raise ParameterError("coefficients", "must be one for each period, and begin above zero", "Leave them out.")

    @property
    def weights(self) -> tuple[int, ...]:
        """The coefficients, which are always there once the mechanism is made."""
        return self.coefficients or ()

    def _choose_coefficients(self) -> tuple[int, ...]:
        """The member of the family with the least error at one μ."""
        bands = sorted({1, self.window or 1, *(min(self.periods, 4**i) for i in range(1, 7))})
        tried = {make_coefficients(self.periods, decay, band) for decay in _DECAYS for band in bands}
        return min(sorted(tried), key=self._judge)

    def _judge(self, coefficients: tuple[int, ...]) -> float:
        moved = find_squared_distance(coefficients, self.max_periods, self.apart)
        return math.sqrt(moved) * float(np.sqrt(np.cumsum(self._decode_row(coefficients) ** 2).mean()))

    def _decode_row(self, coefficients: tuple[int, ...]) -> Floats:
        """The first column of A·C⁻¹, a Toeplitz matrix: how the noise of a period enters what is wanted later on."""
        inverse = np.zeros(self.periods)
        inverse[0] = 1 / coefficients[0]
        values = np.array(coefficients, dtype=np.float64)
        for t in range(1, self.periods):
            inverse[t] = -(values[1 : t + 1] @ inverse[t - 1 :: -1][:t]) / values[0]
        return np.asarray(np.convolve(inverse, self._row())[: self.periods])

    def _row(self) -> Floats:
        """The first column of A."""
        wanted = Wanted(self.wanted)
        match wanted:
            case Wanted.PERIODS:
                return np.array([1.0])
            case Wanted.TOTALS:
                return np.ones(self.periods)
            case Wanted.WINDOWS:
                return np.ones(self.window or 1)
            case _:
                assert_never(wanted)

    @cached_property
    def squared_sensitivity(self) -> int:
        """Δ² for these neighbours."""
        one = self.max_count**2 * find_squared_distance(self.weights, self.max_periods, self.apart)
        return one if self.neighbours is Neighbours.ADD_REMOVE else 2 * one

    @cached_property
    def variance(self) -> Fraction:
        """V: the variance of the noise of each y."""
        return shorten(self.squared_sensitivity / Fraction(parameters.read_positive(self.mu, "mu")) ** 2)

    @property
    def event(self) -> events.RoundedGaussian:
        """The event that describes all periods together. It is charged before the first."""
        return events.RoundedGaussian(
            squared_sensitivity=self.squared_sensitivity,
            variance=self.variance,
            neighbours=self.neighbours,
            unit=self.unit,
        )

    def measure(self, counts: Sequence[int], *, source: EntropySource = SYSTEM) -> int:
        """Y of the latest period, from the exact counts of all periods so far. Once for each period."""
        if not 1 <= len(counts) <= self.periods:
            raise ParameterError("counts", f"must be of 1 to {self.periods} periods", "The series has no more.")
        exact = sum(c * int(x) for c, x in zip(self.weights, reversed(counts)))
        noise = RoundedGaussian(squared_sensitivity=self.squared_sensitivity, variance=self.variance)
        return int(np.asarray(noise.release(np.array([exact], dtype=object), source=source))[0])

    def decode(self, measured: Sequence[int]) -> Floats:
        """What is wanted, for each period so far, from the y of these periods. Costs nothing."""
        size = len(measured)
        row = self._decode_row(self.weights)
        return np.asarray(np.convolve(row, np.array(measured, dtype=np.float64))[:size])

    @cached_property
    def deviations(self) -> Floats:
        """The standard deviation of what is wanted, in each period."""
        return math.sqrt(float(self.variance) + 1 / 12) * self.unit_deviations

    @cached_property
    def unit_deviations(self) -> Floats:
        """The same, where the noise of each y has a standard deviation of one."""
        return np.asarray(np.sqrt(np.cumsum(self._decode_row(self.weights) ** 2)))
