"""Draws one of several indices, by weight or by the exponential of a score (as the exponential mechanism needs)."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from discreet.entropy import SYSTEM, EntropySource, Words
from discreet.errors import ParameterError
from discreet.exact import Integers, ceil_div, exp_minus_bounds
from discreet.parameters import Number
from discreet.samplers import lazy
from discreet.samplers.arguments import Size, read_nonnegative, read_shape
from discreet.samplers.block_table import GUARD
from discreet.samplers.exponents import Exponents, read_array
from discreet.samplers.uniform import draw_below, draw_words_below

_WORD_BITS = 64


@overload
def categorical(
    weights: Sequence[Number] | npt.NDArray[Any], size: None = None, *, source: EntropySource = SYSTEM
) -> int: ...


@overload
def categorical(
    weights: Sequence[Number] | npt.NDArray[Any], size: Size, *, source: EntropySource = SYSTEM
) -> Integers: ...


def categorical(
    weights: Sequence[Number] | npt.NDArray[Any], size: Size | None = None, *, source: EntropySource = SYSTEM
) -> int | Integers:
    """Index i with probability weights_i/Σweights exactly; weights are non-negative rationals, not all zero.

    The weights are brought to a common denominator, so an index owns a whole number of equally likely cases. One
    index, or an int64 array of that shape.

    >>> categorical([0, 1, 0])
    1
    """
    ends = _cumulate(weights)
    total = ends[-1]
    lengths = () if size is None else read_shape(size)
    count = math.prod(lengths)
    if size is None or total > 1 << 63:
        found = [bisect.bisect_right(ends, draw_below(total, source)) for _ in range(count)]
        return found[0] if size is None else np.array(found, dtype=np.int64).reshape(lengths)
    words = draw_words_below(total, count, source)
    return np.searchsorted(np.array(ends, dtype=np.uint64), words, side="right").reshape(lengths)


def _cumulate(weights: Sequence[Number] | npt.NDArray[Any]) -> list[int]:
    """Running sums of the weights, as whole multiples of their common denominator."""
    array = np.asarray(weights)
    if array.ndim != 1 or array.size == 0:
        raise ParameterError("weights", "must be one row of at least one number", "Give for example weights=[1, 2].")
    if array.dtype.kind in "iu" and array.min() >= 0:
        ends = list(itertools.accumulate(array.tolist()))
    else:
        exact = [read_nonnegative(weight, "weights") for weight in array.tolist()]
        common = math.lcm(*{weight.denominator for weight in exact})
        ends = list(itertools.accumulate(weight.numerator * (common // weight.denominator) for weight in exact))
    if ends[-1] == 0:
        raise ParameterError("weights", "must not all be zero", "Give at least one weight above zero.")
    return ends


@overload
def categorical_exp(
    scores: npt.ArrayLike, factor: Number = 1, size: None = None, *, source: EntropySource = SYSTEM
) -> int: ...


@overload
def categorical_exp(
    scores: npt.ArrayLike, factor: Number, size: Size, *, source: EntropySource = SYSTEM
) -> Integers: ...


@overload
def categorical_exp(
    scores: npt.ArrayLike, *, factor: Number = 1, size: Size, source: EntropySource = SYSTEM
) -> Integers: ...


def categorical_exp(
    scores: npt.ArrayLike, factor: Number = 1, size: Size | None = None, *, source: EntropySource = SYSTEM
) -> int | Integers:
    """Index i with probability exp(factor·scores_i)/Σ exp(factor·scores) exactly.

    Scores are whole numbers or floats (each the dyadic rational it is), factor any rational. One index, or an int64
    array of that shape.

    *How.* With w_i = exp(−factor·(best − scores_i)) ≤ 1 and a power of two s, index i gets g_i sure words and h spare
    ones, where g_i ≤ s·w_i ≤ g_i + h. A uniform number below the sum of all picks one of these words: a sure one is
    taken, a spare one with probability (s·w_i − g_i)/h, decided lazily and exactly, and otherwise all starts again. So
    i is returned with probability proportional to g_i + h·(s·w_i − g_i)/h = s·w_i. The floats only place the border
    between sure and spare.

    >>> categorical_exp([0, 1000, 0])
    1
    """
    draw = _ExpTable(scores, factor)
    if size is None:
        return int(draw(1, source)[0])
    lengths = read_shape(size)
    return draw(math.prod(lengths), source).reshape(lengths)


class _ExpTable:
    """Sure and spare words of every index."""

    def __init__(self, scores: npt.ArrayLike, factor: Number) -> None:
        array = read_array(scores)
        if array.ndim != 1 or array.size == 0:
            raise ParameterError("scores", "must be one row of at least one number", "Give for example scores=[1, 2].")
        self._exponents = Exponents.below_best(array, factor)
        # At most s + h words each, and s < 2^63/k: the sum of all is below 2^64.
        self._bits = _WORD_BITS - 1 - array.size.bit_length()
        self._spare = math.ceil(2 * GUARD * 2**self._bits) + 1
        weights = np.exp(-self._exponents.approximate)
        weights -= GUARD
        np.maximum(weights, 0.0, out=weights)
        weights *= 2.0**self._bits
        self._sure: Words = weights.astype(np.uint64)
        self._ends: Words = np.cumsum(self._sure + np.uint64(self._spare))

    def __call__(self, count: int, source: EntropySource) -> Integers:
        picks = draw_words_below(int(self._ends[-1]), count, source)
        found = np.searchsorted(self._ends, picks, side="right")
        sure_ends = self._ends[found] - np.uint64(self._spare)  # the words of i: first the sure ones, then the spare
        lost = [
            lane for lane in np.flatnonzero(picks >= sure_ends).tolist() if not self._takes_spare(found[lane], source)
        ]
        if lost:
            found[lost] = self(len(lost), source)
        return found

    def _takes_spare(self, index: int, source: EntropySource) -> bool:
        """True with probability (s·w − g)/h."""
        exponent, sure, spare = self._exponents.exact_exponent(index), int(self._sure[index]), self._spare

        def bounds(bits: int) -> tuple[int, int]:
            low, high = exp_minus_bounds(exponent, bits + self._bits)
            return (low - (sure << bits)) // spare, ceil_div(high - (sure << bits), spare)

        return lazy.is_below(0, 0, bounds, source)
