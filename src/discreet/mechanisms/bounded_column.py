"""Bounded columns: values clamped to public bounds, in whole steps of a public resolution."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy.typing as npt

from discreet import parameters
from discreet.errors import ParameterError
from discreet.exact import FixedPoint, Integers
from discreet.late_dataclass import dataclass

_FIX = "Give the public range as bounds=(low, high); it must not be read off the data."


@dataclass(frozen=True, slots=True)
class BoundedColumn:
    """The values from ``low`` to ``high`` in steps of ``step``.

    Privacy: clamping and rounding depend on one value at a time (see ``exact.FixedPoint``); NaN counts as the low end.

    >>> BoundedColumn.read((0, 2), 0.25).encode([0.3, 9.0, float("nan")]).tolist()
    [1, 8, 0]
    """

    low: Fraction
    high: Fraction
    step: Fraction

    @classmethod
    def read(cls, bounds: object, resolution: object) -> BoundedColumn:
        """A column from what a caller typed; refused unless bounds are a pair with low below high."""
        if isinstance(bounds, str | bytes) or not isinstance(bounds, Sequence) or len(bounds) != 2:
            raise ParameterError("bounds", "must be a pair", _FIX)
        low, high = (parameters.read_number(end, "bounds", fix=_FIX) for end in bounds)
        if low >= high:
            raise ParameterError("bounds", "must have low below high", _FIX)
        return cls(low, high, parameters.read_positive(resolution, "resolution"))

    @property
    def ends(self) -> tuple[int, int]:
        """The bounds in steps, rounded outwards; refused where the steps are too fine for the bounds."""
        return FixedPoint(self.step).steps(self.low, self.high)

    def encode(self, values: npt.ArrayLike) -> Integers:
        """The values in steps, clamped; a flat array."""
        steps = FixedPoint(self.step).encode(values, low=self.low, high=self.high)
        if steps.ndim != 1:
            raise ParameterError("values", "must be one column", "Give a flat list or array, one value for each row.")
        return steps
