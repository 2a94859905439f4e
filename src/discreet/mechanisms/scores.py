"""Reads the scores of candidates exactly: whole numbers or floats, times one common rational unit.

A float score is the dyadic rational that it is; fractions and decimals are brought to a common denominator. Nothing is
rounded, so a sensitivity that holds for the caller's scores holds for the numbers that are used.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from discreet.errors import ParameterError
from discreet.exact import Floats, Integers, Interval
from discreet.late_dataclass import dataclass
from discreet.parameters import MAX_SIZE, kind_of, refuse

Score: TypeAlias = int | float | Fraction | Decimal
ScoresLike: TypeAlias = Sequence[Score] | Integers | Floats

# Whole scores stay below this, so that differences fit int64.
LIMIT = 1 << 62
_FAR = 4096
_FIX = "Give one finite int, float or Fraction for each candidate."


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Candidate i has the score ``steps[i] · unit``, exactly."""

    steps: Integers | Floats | npt.NDArray[np.object_]
    unit: Fraction

    def __len__(self) -> int:
        return len(self.steps)

    def exact_scores(self) -> list[Fraction]:
        """Every score as a rational."""
        return [Fraction(step) * self.unit for step in self.steps.tolist()]

    def best_step(self) -> Fraction:
        """The largest of ``steps``."""
        best = int(self.steps.argmax())
        return Fraction(self.steps[best : best + 1].tolist()[0])


def read_scores(scores: object, name: str = "scores") -> Scores:
    """Scores as exact numbers; empty, non-finite or non-numeric ones are refused.

    >>> read_scores([Fraction(1, 2), Fraction(1, 3)])
    Scores(steps=array([3, 2]), unit=Fraction(1, 6))
    """
    if isinstance(scores, np.ndarray):
        found = _from_array(scores, name)
    elif isinstance(scores, Sequence) and not isinstance(scores, str | bytes):
        found = _from_list(list(scores), name)
    else:
        raise refuse(name, "a list or an array of numbers", scores, _FIX)
    if not 1 <= len(found) <= MAX_SIZE:
        raise ParameterError(name, "must have at least one candidate, and not too many", _FIX)
    return found


def _from_array(array: npt.NDArray[np.generic], name: str) -> Scores:
    if array.ndim != 1:
        raise ParameterError(name, "must be one-dimensional", _FIX)
    if array.dtype.kind in "iu":
        return Scores(_check_whole(array, name), Fraction(1))
    if array.dtype.kind == "f" and array.dtype.itemsize <= 8:
        return Scores(_check_finite(array.astype(np.float64), name), Fraction(1))
    if array.dtype.kind == "O":
        return _from_list(array.tolist(), name)
    raise ParameterError(name, f"must be numbers; got an array of {array.dtype}", _FIX)


def _from_list(values: list[object], name: str) -> Scores:
    kinds = set(map(type, values))
    if kinds == {float}:
        return Scores(_check_finite(np.array(values, dtype=np.float64), name), Fraction(1))
    if kinds == {int}:
        array: npt.NDArray[np.generic] = np.array(values)  # int64, or Python ints where that is too short
        if array.dtype == np.int64:
            return _from_array(array, name)
    return _find_common_unit([_read_rational(value, name) for value in values])


def _find_common_unit(values: list[Fraction]) -> Scores:
    """Rationals as whole multiples of one over their common denominator."""
    denominator = math.lcm(*(value.denominator for value in values))
    steps = [value.numerator * (denominator // value.denominator) for value in values]
    if any(abs(step) >= LIMIT for step in steps):
        return Scores(np.array(values, dtype=object), Fraction(1))  # exact, only slower
    return Scores(np.array(steps, dtype=np.int64), Fraction(1, denominator))


def _read_rational(value: object, name: str) -> Fraction:
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real | Decimal):
        raise ParameterError(name, f"must be numbers; got {kind_of(value)}", _FIX)
    if isinstance(value, numbers.Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    plain = value if isinstance(value, Decimal) else float(value)
    if not math.isfinite(plain):
        raise ParameterError(name, f"must be finite; got {kind_of(value)}", _FIX)
    return Fraction(plain)


def _check_finite(array: Floats, name: str) -> Floats:
    if not np.isfinite(array).all():
        raise ParameterError(name, "must be finite; got NaN or an infinity", _FIX)
    return array


def _check_whole(array: npt.NDArray[Any], name: str) -> Integers:
    if array.size and (int(array.max()) >= LIMIT or int(array.min()) <= -LIMIT):
        raise ParameterError(name, "must be whole numbers within 62 bits", "Divide scores and sensitivity alike.")
    return array.astype(np.int64)


def weights(scores: Scores, factor: Fraction) -> list[Interval]:
    """e^(factor·(score − best)) for each candidate: at most one, and exactly one for the best."""
    exact = scores.exact_scores()
    best = max(exact)
    return [exp_minus(factor * (best - score)) for score in exact]


def exp_minus(x: Fraction) -> Interval:
    """e^(−x) to 160 significant bits; for x above 4096 only the interval from zero to 2^−4096."""
    return Interval.exp_minus(x) if x <= _FAR else Interval(Fraction(0), Fraction(1, 1 << _FAR))


def read_position(output: object, count: int) -> int:
    """The index of a candidate; refused where there is no such candidate."""
    if isinstance(output, bool) or not isinstance(output, numbers.Integral) or not 0 <= int(output) < count:
        raise refuse("output", "the index of a candidate", output, "Give an index between 0 and the number of scores.")
    return int(output)


def sum_intervals(terms: Sequence[Interval]) -> Interval:
    """The sum of certified numbers."""
    return Interval(sum((t.low for t in terms), Fraction(0)), sum((t.high for t in terms), Fraction(0)))
