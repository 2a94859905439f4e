"""Discrete Gaussian noise (Canonne, Kamath and Steinke 2020): the shape of the normal law on the whole numbers."""

from __future__ import annotations

from functools import lru_cache
from typing import overload

from discreet.entropy import SYSTEM, EntropySource
from discreet.exact import Integers
from discreet.parameters import Number
from discreet.samplers.arguments import PLAIN, Size, read_positive, read_rational
from discreet.samplers.block_table import BlockTable, make_block_table, sample
from discreet.samplers.law import Law


@overload
def discrete_gaussian(variance: Number, size: None = None, *, source: EntropySource = SYSTEM) -> int: ...


@overload
def discrete_gaussian(variance: Number, size: Size, *, source: EntropySource = SYSTEM) -> Integers: ...


def discrete_gaussian(variance: Number, size: Size | None = None, *, source: EntropySource = SYSTEM) -> int | Integers:
    """Whole numbers with P(x) ∝ exp(−x²/(2·variance)), exactly, for any rational ``variance`` above zero.

    The parameter is the σ² of the formula; the variance of the draws is a little below it (by less than one part in
    a million from σ² = 1 on). ``size=None`` gives one int; a size gives an int64 array of that shape (of Python
    integers where variance ≥ 2^112). ``block_table`` explains the construction and why it is exact.

    >>> x = discrete_gaussian(100)
    >>> isinstance(x, int)
    True
    >>> discrete_gaussian(0.25, size=(2, 3)).shape
    (2, 3)
    """
    return sample(
        _make_table(variance if type(variance) in PLAIN else read_rational(variance, "variance")), size, source
    )


@lru_cache(maxsize=64)
def _make_table(variance: Number) -> BlockTable:
    return make_block_table(Law(square=1 / (2 * read_positive(variance, "variance"))))
