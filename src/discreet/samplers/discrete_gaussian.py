"""Discrete Gaussian noise (Canonne, Kamath and Steinke 2020), the normal law's shape on the whole numbers."""

from __future__ import annotations

from functools import lru_cache
from typing import overload

from discreet.entropy import SYSTEM, Source
from discreet.exact import Integers
from discreet.parameters import Number
from discreet.samplers.blocks import BlockTable, block_table, sample
from discreet.samplers.law import Law
from discreet.samplers.reading import PLAIN, Size, positive, rational


@overload
def discrete_gaussian(variance: Number, size: None = None, *, source: Source = SYSTEM) -> int: ...


@overload
def discrete_gaussian(variance: Number, size: Size, *, source: Source = SYSTEM) -> Integers: ...


def discrete_gaussian(variance: Number, size: Size | None = None, *, source: Source = SYSTEM) -> int | Integers:
    """Whole numbers with P(x) ∝ exp(−x²/(2·variance)), exactly, for any rational ``variance`` above zero.

    The parameter is the σ² of the formula; the variance of the draws is a little below it (by less than one part in
    a million from σ² = 1 on). ``size=None`` gives one int; a size gives an int64 array of that shape (of Python
    integers where variance ≥ 2^112). The construction and the reason why it is exact are told in ``blocks``.

    >>> x = discrete_gaussian(100)
    >>> isinstance(x, int)
    True
    >>> discrete_gaussian(0.25, size=(2, 3)).shape
    (2, 3)
    """
    return sample(_table(variance if type(variance) in PLAIN else rational(variance, "variance")), size, source)


@lru_cache(maxsize=64)
def _table(variance: Number) -> BlockTable:
    return block_table(Law(square=1 / (2 * positive(variance, "variance"))))
