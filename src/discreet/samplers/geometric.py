"""Geometric noise: how often a coin with P(heads) = exp(−1/scale) shows heads in a row."""

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
def geometric(scale: Number, size: None = None, *, source: EntropySource = SYSTEM) -> int: ...


@overload
def geometric(scale: Number, size: Size, *, source: EntropySource = SYSTEM) -> Integers: ...


def geometric(scale: Number, size: Size | None = None, *, source: EntropySource = SYSTEM) -> int | Integers:
    """Whole numbers from 0 with P(k) = (1 − q)·q^k, q = exp(−1/scale), exactly, for any rational scale above zero.

    ``size=None`` gives one int; a size gives an int64 array of that shape (of Python integers where scale ≥ 2^56).
    ``block_table`` explains the construction and why it is exact.

    >>> geometric(10) >= 0
    True
    >>> geometric(0.25, size=(2, 3)).shape
    (2, 3)
    """
    return sample(_make_table(scale if type(scale) in PLAIN else read_rational(scale, "scale")), size, source)


@lru_cache(maxsize=64)
def _make_table(scale: Number) -> BlockTable:
    return make_block_table(Law(linear=1 / read_positive(scale, "scale"), signed=False))
