"""Exact sums that stay short: how prices and running totals are rounded up."""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

from discreet.exact import ceil_div

Price: TypeAlias = tuple[Fraction, ...]

# Sums with denominators beyond this length are rounded up to multiples of 10^-24, so that a charge stays cheap.
LONG = 128
_GRID = 10**24
# What a charge costs in a form that it does not have: above every budget, and so is every sum with it.
NEVER = Fraction(10**30)
# Prices in sums that no caller states are rounded up to this many binary digits, and to multiples of 2^-80.
_DIGITS = 40
_FINEST = 80


def round_sum(x: Fraction) -> Fraction:
    """A short number itself; a long one rounded up to a multiple of 10^-24."""
    if x.denominator.bit_length() <= LONG:
        return x
    return Fraction(ceil_div(x.numerator * _GRID, x.denominator), _GRID)


def round_price(x: Fraction) -> Fraction:
    """A number rounded up to 40 binary digits, of which none is finer than 2^-80.

    >>> round_price(Fraction(1, 4)), round_price(Fraction(1, 3)) - Fraction(1, 3) < Fraction(1, 2**40)
    (Fraction(1, 4), True)
    """
    if not x or x >= NEVER:
        return min(x, NEVER)
    shift = min(_FINEST, _DIGITS - (x.numerator.bit_length() - x.denominator.bit_length()))
    if shift <= 0:
        return Fraction(ceil_div(x.numerator, x.denominator))
    return Fraction(ceil_div(x.numerator << shift, x.denominator), 1 << shift)


def is_at_most(x: Fraction, limit: Fraction) -> bool:
    """Whether x ≤ limit, in plain integers, which is several times as fast as comparing Fractions."""
    return x.numerator * limit.denominator <= limit.numerator * x.denominator
