"""The base classes of sums, means and variances: whole numbers of a bounded column, summed exactly, get noise."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from discreet import parameters
from discreet.entropy import EntropySource
from discreet.errors import ParameterError
from discreet.exact import Integers, Interval
from discreet.late_dataclass import dataclass
from discreet.mechanisms.bounded_column import BoundedColumn
from discreet.mechanisms.estimate import Estimate
from discreet.mechanisms.mechanism import settle
from discreet.mechanisms.noise_mechanism import NoiseMechanism
from discreet.parameters import Number
from discreet.privacy import Neighbours

_FIX_SIZE = "Give size=, the number of rows: public under 'replace', a guess for planning under 'add-remove'."


@dataclass(frozen=True, kw_only=True, repr=False)
class BoundedStatistic(NoiseMechanism):
    """A statistic of values that are clamped to ``bounds`` and rounded to multiples of ``resolution``.

    Clamping and rounding depend on one value at a time; NaN counts as the low end. So sensitivities are whole numbers
    of steps, and every sum is exact. This class is not a mechanism by itself.
    """

    bounds: Sequence[Number]
    resolution: Number = 1
    max_rows: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        column = self.column
        settle(self, bounds=(column.low, column.high), resolution=column.step)
        settle(self, max_rows=parameters.read_whole(self.max_rows, "max_rows"))
        _ = self.ends  # refuses a resolution that is too fine for the bounds

    @cached_property
    def column(self) -> BoundedColumn:
        """The bounds and the step of the values."""
        return BoundedColumn.read(self.bounds, self.resolution)

    @property
    def step(self) -> Fraction:
        """The size of one step."""
        return self.column.step

    @property
    def ends(self) -> tuple[int, int]:
        """The bounds in steps, rounded outwards."""
        return self.column.ends

    def encode(self, values: npt.ArrayLike) -> Integers:
        """The values in steps, clamped; a flat array."""
        return self.column.encode(values)

    @abstractmethod
    def answers(self, values: npt.ArrayLike, /) -> tuple[int, ...]:
        """The exact whole numbers that get noise, one for each of ``parts``. They are private: never publish them."""

    def draw(self, values: npt.ArrayLike, source: EntropySource) -> tuple[int, ...]:
        """The same whole numbers with noise. Every number computed from them is post-processing."""
        drawn = (part.release(one, source=source) for part, one in zip(self.parts, self.answers(values)))
        return tuple(int(one) for one in drawn)

    def probability(self, output: Sequence[int], given: npt.ArrayLike) -> Interval:
        """P(noisy whole numbers = output), exactly, for a release on ``given``."""
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
        """The estimate in units of the column; ``unit`` is the size of one step of the arguments."""
        low, high = interval
        return Estimate(
            value=_tidy(value * unit),
            standard_error=spread * float(unit),
            low=_tidy(low * unit),
            high=_tidy(high * unit),
            confidence=float(level),
        )


@dataclass(frozen=True, kw_only=True, repr=False)
class SizedStatistic(BoundedStatistic):
    """A bounded statistic that depends on the number of rows: a mean or a variance.

    Under replace the number of rows is public and must be given as ``size``. Under add-remove it is private, and
    ``size`` is only a guess from which ``error`` is computed. This class is not a mechanism by itself.
    """

    size: int | None = None
    statistic: ClassVar[str]
    least_size: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size is not None:
            settle(self, size=parameters.read_whole(self.size, "size", least=self.least_size, most=1 << 40))
        elif self.neighbours == Neighbours.REPLACE:
            raise ParameterError("size", "must be given under 'replace', where it is public", _FIX_SIZE)
        if self.neighbours == Neighbours.REPLACE and self.max_rows != 1:
            raise ParameterError("max_rows", "must be 1 under 'replace'", "Use 'add-remove' for several rows a unit.")
        _ = self.parts  # refuse now what the noise would refuse

    @property
    def _size(self) -> int:
        if self.size is None:
            raise ParameterError("size", f"is needed for the error of a {self.statistic}", _FIX_SIZE)
        return self.size

    def _check_rows(self, steps: Integers) -> None:
        """Refuse a column that has not ``size`` rows, under replace, where the number of rows is public."""
        if self.neighbours == Neighbours.REPLACE and steps.size != self._size:
            raise ParameterError("values", "must be as many as size says", _FIX_SIZE)


def clamp(x: Fraction, low: Fraction | int, high: Fraction | int) -> Fraction:
    """x, or the nearer end of the range where x lies outside it."""
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
