"""Exponents factor·(score − origin) of many scores: all of them as floats, and any single one exactly."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import ParameterError
from discreet.exact import Floats
from discreet.late_dataclass import dataclass
from discreet.samplers.arguments import read_rational

# Within these bounds a factor turns into a float without underflow or overflow, so that it is off by 2^-53 of itself.
_LEAST, _MOST = Fraction(1, 1 << 1000), Fraction(1 << 1000)


@dataclass(frozen=True, slots=True)
class Exponents:
    """``approximate[i]`` is within a 2^-50 part of ``exact_exponent(i)``, or infinite where that is beyond a million.

    This is enough for a caller who computes e^(−x): x·e^(−x) < 0.37, so e^(−approximate) is off by less than 2^-50,
    however large the exponent is.
    """

    scores: npt.NDArray[Any]  # flat
    shape: tuple[int, ...]
    factor: Fraction
    origin: Fraction
    approximate: Floats

    @classmethod
    def read(cls, scores: object, factor: object, *, origin: object = 0) -> Exponents:
        """Check the arguments and compute the floats."""
        array = read_array(scores)
        times, zero = read_rational(factor, "factor"), read_rational(origin, "origin")
        flat = check_scores(array).reshape(-1)
        return cls(flat, array.shape, times, zero, _approximate(flat, times, zero))

    @classmethod
    def below_best(cls, scores: object, factor: object) -> Exponents:
        """The exponents factor·(best − score) ≥ 0, where best is the score for which factor·score is largest."""
        flat = check_scores(read_array(scores)).reshape(-1)
        times = read_rational(factor, "factor")
        best = flat.argmax() if times > 0 else flat.argmin()
        return cls.read(flat, -times, origin=read_rational(flat[best], "scores"))

    @property
    def size(self) -> int:
        """How many exponents there are."""
        return self.scores.size

    def exact_exponent(self, lane: int) -> Fraction:
        """One exponent, exactly."""
        return self.factor * (read_rational(self.scores[lane], "scores") - self.origin)

    def has_negative(self) -> bool:
        """Whether an exponent is below zero, exactly. Exponents are monotone in the score, so two of them decide."""
        return (
            self.size > 0
            and min(self.exact_exponent(int(self.scores.argmin())), self.exact_exponent(int(self.scores.argmax()))) < 0
        )


def read_array(scores: object) -> npt.NDArray[Any]:
    """Scores as an array that holds the very numbers: NumPy makes floats of lists that mix small and very large ints.

    >>> read_array([0, 2**63 + 1]).tolist()
    [0, 9223372036854775809]
    """
    array = np.asarray(scores)
    if isinstance(scores, np.ndarray) or array.dtype.kind != "f":
        return array
    given = np.asarray(scores, dtype=object)
    rounded = any(isinstance(score, int) and abs(score) > 1 << 53 for score in given.reshape(-1))
    return given if rounded else array


def check_scores(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Finite whole numbers, floats of at most 64 bits, or an array of exact Python numbers."""
    fix = "Give finite ints or floats."
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype.kind == "O":
        exact = np.empty(array.shape, dtype=object)
        exact.reshape(-1)[:] = [read_rational(score, "scores") for score in array.reshape(-1)]
        return exact
    if array.dtype.kind not in "iuf" or array.dtype.itemsize > 8:
        raise ParameterError("scores", f"must be numbers; got an array of {array.dtype}", fix)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ParameterError("scores", "must be finite; got NaN or an infinity", fix)
    return array


def _approximate(scores: npt.NDArray[Any], factor: Fraction, origin: Fraction) -> Floats:
    if factor == 0:
        return np.zeros(scores.size)
    distances = _distances(scores, origin)
    if distances is None or not _LEAST < abs(factor) < _MOST:
        return np.array([_nearest_float(factor * (read_rational(score, "scores") - origin)) for score in scores])
    with np.errstate(over="ignore"):  # a distance beyond all floats, times at least 2^-1000, is beyond a million
        return distances * float(factor)


def _distances(scores: npt.NDArray[Any], origin: Fraction) -> Floats | None:
    """The distances score − origin rounded once, or None where that takes more than numpy's 64 bits."""
    if scores.size == 0:
        return np.zeros(0)
    if scores.dtype.kind == "f" and abs(origin) < _MOST and Fraction(float(origin)) == origin:
        with np.errstate(over="ignore"):
            return scores.astype(np.float64) - float(origin)
    if scores.dtype.kind in "iu" and origin.denominator == 1:
        low, high, zero = int(scores.min()), int(scores.max()), int(origin)
        if max(abs(end) for end in (low, high, low - zero, high - zero, zero)) < 1 << 63:
            return (scores.astype(np.int64) - np.int64(zero)).astype(np.float64)
    return None


def _nearest_float(x: Fraction) -> float:
    try:
        return float(x)
    except OverflowError:
        return float("inf") if x > 0 else float("-inf")
