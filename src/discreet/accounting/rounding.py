"""Rounding to the safe side: every float that the notions show is at or above the true number.

The formulas of accounting are transcendental, so they are evaluated in floats. Each evaluation here adds a margin that
covers the errors of the library functions (taken as 4 units in the last place each) and of the additions. For a sum
of terms the margin is 2^-50 times the sum of their sizes: about 10^-15 relative where terms do not cancel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from discreet.exact import Exact, ceil_div, upper

UNIT = 2.0**-50
# Rationals longer than this many bits are rounded up to the grid, so that sums of many stay fast.
LONG = 512
GRID = 1 << 320

# The most steps of a search by halving.
_STEPS = 200


def sum_up(*terms: float) -> float:
    """At or above the sum of terms that are each known to 4 units in the last place."""
    if any(math.isinf(term) for term in terms):
        return math.inf if math.inf in terms else -math.inf
    return math.fsum(terms) + UNIT * math.fsum(map(abs, terms))


def exp_up(*terms: float) -> float:
    """At or above e to the sum of the terms; infinite when that is beyond all floats."""
    exponent = sum_up(*terms)
    if exponent > 709:
        return math.inf
    # Where the result is subnormal its last place is coarse: one smallest float more covers it.
    return math.exp(exponent) * (1 + UNIT) + 5e-324


def move_up(x: float, margin: float = 8 * UNIT) -> float:
    """A float moved up by a relative margin."""
    return x + abs(x) * margin


def probability_up(x: float) -> float:
    """A probability at or above x, which is known to a few units in the last place."""
    return min(1.0, max(0.0, move_up(x)))


def shorten(x: Fraction) -> Fraction:
    """A rational itself, or a shorter one at most 2^-320 above it when it is very long.

    >>> shorten(Fraction(1, 3))
    Fraction(1, 3)
    """
    if x.denominator.bit_length() <= LONG:
        return x
    return Fraction(ceil_div(x.numerator * GRID, x.denominator), GRID)


def to_float(x: Exact) -> float:
    """The float nearest to x ≥ 0; infinite where x is above all floats, and zero only where x is zero."""
    exact = upper(x)
    try:
        return max(float(exact), 5e-324) if exact else 0.0
    except OverflowError:
        return math.inf


def find_smallest(profile: Callable[[float], float], limit: float, high: float) -> float:
    """The smallest ε found with profile(ε) ≤ limit, for a decreasing profile of upper bounds; infinite if none.

    ``high`` is a first guess of an ε that is large enough. The answer is always a point at which the profile itself
    was evaluated and found small enough, so the bound of the profile holds for it.
    """
    if profile(0.0) <= limit:
        return 0.0
    low = 0.0
    while profile(high) > limit:
        low, high = high, 2 * high + 1
        if high > 1e300:
            return math.inf
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if not low < middle < high or high - low <= 1e-14 * high:
            break
        if profile(middle) <= limit:
            high = middle
        else:
            low = middle
    return high
