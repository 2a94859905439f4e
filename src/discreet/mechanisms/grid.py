"""Grids of whole steps: rounds real answers to a grid, adds noise without overflow, and turns steps into answers.

Noise is whole numbers, so answers are too. Reals are first rounded to multiples of a public ``resolution``, halves
always upwards (⌊x + 1/2⌋), by an exact decision. That rule is a shift of the floor function. So two reals that are t
steps apart are at most ⌈t⌉ steps apart after rounding (rounding halves to even would allow t + 1). ``l1_steps`` and
``squared_l2_steps`` prove the sensitivities in steps from this.
"""

from __future__ import annotations

import math
import numbers
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from discreet import parameters
from discreet.errors import ParameterError
from discreet.exact import FIXED_LIMIT, Floats, Integers
from discreet.late_dataclass import dataclass

GridSteps: TypeAlias = int | Integers
GridValues: TypeAlias = int | float | Integers | Floats

INT64 = np.iinfo(np.int64)
# Below this many steps a float product decides the rounding unless it lies next to a half.
_SURE = float(1 << 45)
_MARGIN = 2.0**-50


@dataclass(frozen=True, slots=True)
class Grid:
    """Whole numbers (``resolution`` None), or multiples of ``resolution``.

    >>> Grid(Fraction(1, 10)).read([0.25, -0.25, 7]).tolist()
    [3, -2, 70]
    """

    resolution: Fraction | None = None

    @property
    def step(self) -> Fraction:
        """The size of one step."""
        return self.resolution or Fraction(1)

    def read(self, values: object, name: str = "values") -> GridSteps:
        """Answers as whole steps. Whole numbers pass; reals need a resolution; anything not finite is refused."""
        scalar = isinstance(values, np.ndarray) and values.ndim == 0
        value: Any = values.item() if isinstance(values, np.ndarray) and scalar else values
        if isinstance(value, numbers.Number | Decimal | np.generic):
            return self._read_one(value, name)
        if self.resolution is None:
            return value if _is_wide(value) else parameters.read_integers(value, name)
        return self._read_many(value, name)

    def _read_one(self, value: Any, name: str) -> int:
        if not isinstance(value, bool | np.bool_):
            if isinstance(value, numbers.Integral):
                return int(value) if self.resolution is None else _round_half_up(Fraction(int(value)) / self.resolution)
            if self.resolution is not None and _is_finite(value):
                # A float is data here, not something typed: the dyadic rational that it is.
                return _round_half_up(Fraction(value) / self.resolution)
        must = "a whole number" if self.resolution is None else "a finite number"
        raise parameters.refuse(name, must, value, "Reals need resolution=, the step they are rounded to.")

    def _read_many(self, values: Any, name: str) -> Integers:
        raw: npt.NDArray[np.generic] = np.asarray(values)
        if raw.size and raw.dtype.kind not in "iuf":
            raise ParameterError(name, f"must be numbers; got an array of {raw.dtype}", "Give ints or floats.")
        if not bool(np.isfinite(raw.astype(np.float64)).all()):
            raise ParameterError(name, "must be finite", "Bound the query first: clamp, and decide what NaN means.")
        step = self.step
        scaled = raw.astype(np.float64) * (step.denominator / step.numerator)
        fraction = np.abs(np.abs(scaled - np.rint(scaled)) - 0.5)
        unsure = (np.abs(scaled) >= _SURE) | (fraction <= np.abs(scaled) * _MARGIN)
        steps = np.rint(np.where(unsure, 0.0, scaled)).astype(np.int64)
        if bool(unsure.any()):
            # Clamping to the limit moves no two answers further apart.
            exact = [_round_half_up(Fraction(value) / step) for value in raw[unsure].tolist()]
            steps[unsure] = [max(-FIXED_LIMIT, min(FIXED_LIMIT, one)) for one in exact]
        return steps

    def add(self, steps: GridSteps, noise: Any) -> GridSteps:
        """Noisy steps. Arrays stop at the ends of int64, which is a function of the noisy value alone.

        An array of Python's integers has no ends. An array of noise is taken over, and may become the answer.
        """
        if isinstance(steps, int):
            return steps + int(noise)
        if steps.dtype == object:
            wide: Integers = steps + noise.astype(object)
            return wide
        if noise.dtype == object:
            return np.asarray(np.clip(steps.astype(object) + noise, INT64.min, INT64.max), dtype=np.int64)
        if _stays_near(steps) and _stays_near(noise):
            near: Integers = np.add(steps, noise, out=noise)  # nobody else has the noise
            return near
        total: Integers = steps + noise
        wrapped = ((steps ^ total) & (noise ^ total)) < 0
        return np.where(wrapped, np.where(noise > 0, INT64.max, INT64.min), total)

    def write(self, steps: GridSteps) -> GridValues:
        """Steps as answers: whole numbers, or floats on the grid."""
        if self.resolution is None:
            return steps
        if isinstance(steps, int):
            return _divide(steps * self.resolution.numerator, self.resolution.denominator)
        return steps.astype(np.float64) * (self.resolution.numerator / self.resolution.denominator)


def read_resolution(value: object) -> Fraction | None:
    """The resolution of a grid from what was typed; None means whole numbers."""
    fix = "Say resolution=0.01 for hundredths."
    return None if value is None else parameters.read_positive(value, "resolution", fix=fix)


def _stays_near(values: Integers) -> bool:
    """Whether the sum of two such arrays cannot leave 64 bits."""
    return not values.size or bool(values.min() >= -(2**62) and values.max() < 2**62)


def _is_wide(values: object) -> bool:
    """Whether this is an array of Python's integers, which may be of any size."""
    return isinstance(values, np.ndarray) and values.dtype == object and all(type(v) is int for v in values.flat)


def _is_finite(value: object) -> bool:
    if isinstance(value, Decimal):
        return value.is_finite()
    return isinstance(value, Fraction) or (isinstance(value, float | np.floating) and math.isfinite(value))


def _round_half_up(x: Fraction) -> int:
    """The nearest whole number, halves upwards."""
    return math.floor(x + Fraction(1, 2))


def _divide(numerator: int, denominator: int) -> float:
    try:
        return numerator / denominator
    except OverflowError:
        return math.copysign(math.inf, numerator)


def distances(output: GridSteps, given: GridSteps) -> list[int]:
    """|output − given| in each coordinate, as exact Python ints."""
    if isinstance(output, int) and isinstance(given, int):
        return [abs(output - given)]
    here, there = np.atleast_1d(np.asarray(output)), np.atleast_1d(np.asarray(given))
    if here.shape != there.shape:
        raise ParameterError("output", "must have the shape of given", "Ask about outputs that can be released.")
    return [abs(a - b) for a, b in zip(here.ravel().tolist(), there.ravel().tolist())]


def l1_steps(distance: Fraction, coordinates: int) -> int:
    """The largest L1 distance in steps after rounding, when the reals differ by ``distance`` steps in L1.

    Coordinate i moves by t_i and lands at most ⌈t_i⌉ < t_i + 1 away. So the whole sum is below T + d, and being
    whole it is at most ⌈T⌉ + d − 1. (Reached by d − 1 tiny moves across a half and one of nearly T.)

    >>> l1_steps(Fraction(5), 1), l1_steps(Fraction(5), 3)
    (5, 7)
    """
    return math.ceil(distance) + coordinates - 1


def squared_l2_steps(squared: Fraction, coordinates: int) -> int:
    """The largest squared L2 distance in steps after rounding, when the reals' squared distance is ``squared``.

    One coordinate lands at most ⌈T⌉ away. With d of them, write the landings as n_i + 1 (or 0): they need
    t_i > n_i, so N = Σ n_i² is a whole number below T². Then Σ (n_i + 1)² ≤ N + 2·Σ n_i + d, and Σ n_i is at most N
    (whole numbers) and at most √(d·N) (Cauchy–Schwarz).

    >>> squared_l2_steps(Fraction(4), 1), squared_l2_steps(Fraction(1), 3)
    (4, 3)
    """
    if coordinates == 1:
        root = math.isqrt(math.ceil(squared))
        return (root if root * root >= squared else root + 1) ** 2
    inner = math.ceil(squared) - 1
    return inner + 2 * min(inner, math.isqrt(coordinates * inner)) + coordinates
