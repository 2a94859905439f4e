"""Normal noise, rounded to whole numbers: round(σZ), exactly."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import overload

from discreet.entropy import SYSTEM, EntropySource
from discreet.exact import Integers
from discreet.parameters import Number
from discreet.samplers.arguments import PLAIN, Size, read_positive, read_rational
from discreet.samplers.block_table import sample
from discreet.samplers.law import Law
from discreet.samplers.real_table import RealTable, make_real_table

# Normal numbers are drawn in units so fine that σ is at least this many of them.
_UNITS = 256


@overload
def rounded_gaussian(variance: Number, size: None = None, *, source: EntropySource = SYSTEM) -> int: ...


@overload
def rounded_gaussian(variance: Number, size: Size, *, source: EntropySource = SYSTEM) -> Integers: ...


def rounded_gaussian(variance: Number, size: Size | None = None, *, source: EntropySource = SYSTEM) -> int | Integers:
    """Whole numbers round(σZ), Z standard normal, exactly, for any rational σ² = ``variance`` above zero.

    Y = 2^g·σZ is drawn down to its floor (``real_table`` explains how and why that is exact), with g ≥ 1 so large that
    the law hardly falls within one unit. Then round(σZ) = ⌊Y/2^g + 1/2⌋ = (⌊Y⌋ + 2^(g−1)) >> g, because adding a whole
    number and dividing by one commute with the floor. Halves have probability zero, so any rule for them gives the
    same law. ``size=None`` gives one int; a size gives an int64 array of that shape (of Python integers where variance
    ≥ 2^110).

    >>> x = rounded_gaussian(100)
    >>> isinstance(x, int)
    True
    >>> rounded_gaussian(0.25, size=(2, 3)).shape
    (2, 3)
    """
    table, grain = _make_table(variance if type(variance) in PLAIN else read_rational(variance, "variance"))
    floors = sample(table, size, source)
    floors += 1 << grain - 1
    floors >>= grain
    return floors


@lru_cache(maxsize=64)
def _make_table(variance: Number) -> tuple[RealTable, int]:
    """The table, and how many bits finer than one its units are."""
    exact = read_positive(variance, "variance")
    grain = find_grain(exact)
    return make_real_table(Law(square=1 / (2 * exact * 4**grain))), grain


def find_grain(variance: Fraction) -> int:
    """The smallest g ≥ 1 with 2^g·σ ≥ ``_UNITS``."""
    grain = 1
    while variance * 4**grain < _UNITS**2:
        grain += 1
    return grain
