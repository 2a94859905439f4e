"""Bounded columns: values clamped to public bounds, in whole steps of a public resolution, summed exactly."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from discreet import parameters
from discreet.entropy import EntropySource
from discreet.errors import ParameterError
from discreet.exact import FixedPoint, Integers, Interval
from discreet.mechanisms.estimate import Estimate
from discreet.mechanisms.mechanism import settle
from discreet.mechanisms.noise_mechanism import NoiseMechanism
from discreet.parameters import Number

_FIX = "Give the public range as bounds=(low, high); it must not be read off the data."


@dataclass(frozen=True, kw_only=True, repr=False)
class BoundedStatistic(NoiseMechanism):
    """A statistic of values that are clamped to ``bounds`` and rounded to multiples of ``resolution``.

    Clamping and rounding look at one value at a time; NaN counts as the low end. So sensitivities are whole numbers
    of steps, and every sum is exact. Not a mechanism by itself.
    """

    bounds: Sequence[Number]
    resolution: Number = 1
    max_rows: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.bounds, str | bytes) or not isinstance(self.bounds, Sequence) or len(self.bounds) != 2:
            raise ParameterError("bounds", "must be a pair", _FIX)
        low, high = (parameters.read_number(end, "bounds", fix=_FIX) for end in self.bounds)
        if low >= high:
            raise ParameterError("bounds", "must have low below high", _FIX)
        settle(self, bounds=(low, high), resolution=parameters.read_positive(self.resolution, "resolution"))
        settle(self, max_rows=parameters.read_whole(self.max_rows, "max_rows"))
        _ = self.ends  # refuses a resolution that is too fine for the bounds

    @property
    def step(self) -> Fraction:
        """The size of one step."""
        return parameters.read_positive(self.resolution, "resolution")

    @property
    def ends(self) -> tuple[int, int]:
        """The bounds in steps, rounded outwards."""
        low, high = self.bounds
        return FixedPoint(self.step).steps(
            parameters.read_number(low, "bounds"), parameters.read_number(high, "bounds")
        )

    def encode(self, values: npt.ArrayLike) -> Integers:
        """The values in steps, clamped; a flat array."""
        low, high = self.bounds
        fixed = FixedPoint(self.step)
        steps = fixed.encode(
            values, low=parameters.read_number(low, "bounds"), high=parameters.read_number(high, "bounds")
        )
        if steps.ndim != 1:
            raise ParameterError("values", "must be one column", "Give a flat list or array, one value for each row.")
        return steps

    @abstractmethod
    def answers(self, values: npt.ArrayLike, /) -> tuple[int, ...]:
        """The exact whole numbers that get noise, one for each of ``parts``. They are private: not for publication."""

    def draw(self, values: npt.ArrayLike, source: EntropySource) -> tuple[int, ...]:
        """The same whole numbers with noise; whatever is computed from them is post-processing."""
        drawn = (part.release(one, source=source) for part, one in zip(self.parts, self.answers(values)))
        return tuple(int(one) for one in drawn)

    def probability(self, output: Sequence[int], given: npt.ArrayLike) -> Interval:
        """P(the noisy whole numbers behind a release on ``given`` = output), exactly."""
        chance = Interval.of(1)
        answers = self.answers(given)
        if len(output) != len(answers):
            raise ParameterError("output", f"must be {len(answers)} whole numbers", "Give one for each of parts.")
        for part, one, truth in zip(self.parts, output, answers):
            chance = chance * part.probability(one, truth)
        return chance

    def _estimate(
        self, value: Fraction, interval: tuple[Fraction, Fraction], spread: float, level: Fraction, unit: Fraction
    ) -> Estimate:
        """What is published, in units of the column: ``unit`` is the size of one step of the arguments."""
        low, high = interval
        return Estimate(
            value=_tidy(value * unit),
            standard_error=spread * float(unit),
            low=_tidy(low * unit),
            high=_tidy(high * unit),
            confidence=float(level),
        )


def clamp(x: Fraction, low: Fraction | int, high: Fraction | int) -> Fraction:
    """x, or the nearer end of the range: post-processing of a noisy number."""
    return max(Fraction(low), min(Fraction(high), x))


def ratio(low: Fraction, high: Fraction, fewest: int, most: int) -> tuple[Fraction, Fraction]:
    """All values of s/n for s between low and high and n between fewest and most, both at least one."""
    return min(low / fewest, low / most), max(high / fewest, high / most)


def _tidy(x: Fraction) -> int | float:
    return int(x) if x.denominator == 1 else float(x)


def exact_sum(steps: Integers) -> int:
    """The sum as a Python int, in two halves of 32 bits so that int64 cannot overflow."""
    high = int(np.sum(steps >> 32, dtype=np.int64))
    low = int(np.sum(steps & 0xFFFFFFFF, dtype=np.int64))
    return (high << 32) + low


def exact_sum_of_squares(steps: Integers) -> int:
    """Σ x² as a Python int; fast where no single square can overflow."""
    if steps.size == 0 or max(-int(steps.min()), int(steps.max())) < 1 << 31:
        return exact_sum(steps * steps)
    return sum(x * x for x in steps.tolist())
