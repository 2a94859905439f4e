"""The upper tail of the normal law, Q(x) = P(Z > x), as certified intervals at any precision.

Near zero it is 1/2 − φ(x)·(x + x³/3 + x⁵/(3·5) + ...), all terms positive (Abramowitz & Stegun 26.2.11). Further out it
is φ(x)/t₀ with the continued fraction tₖ = x + (k + 1)/tₖ₊₁ (26.2.14). Every tₖ is between x and x + (k + 1)/x, so
starting from that range at some depth and working back in intervals encloses t₀, however deep it starts.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from discreet.exact import BITS, Interval, ceil_div, sqrt_lower, sqrt_upper

# Up to this x² the series is used.
_NEAR = 36
# Beyond this x²/2 the tail is only known to be below e^-4096.
_FAR = 4096
_BEYOND = Interval(Fraction(0), Fraction(1, 1 << 5900))  # 4096/ln 2 > 5900


@lru_cache(maxsize=4096)
def normal_tail(squared: Fraction, bits: int = BITS) -> Interval:
    """Q(√squared), to about ``bits`` significant bits.

    >>> round(float(normal_tail(Fraction(1))), 12)
    0.158655253931
    """
    if squared > 2 * _FAR:
        return _BEYOND
    if squared > _NEAR:
        return (_density(squared, bits) / _fraction(squared, bits)).trim(bits + math.ceil(squared))
    more = bits + math.ceil(squared) + 8  # Q is above 2^-(x² + 5) here, and the series is near one half
    return (Interval.of(Fraction(1, 2)) - _density(squared, more) * _series(squared, more)).trim(more)


def _density(squared: Fraction, bits: int) -> Interval:
    """φ(x) = exp(−x²/2)/√(2π)."""
    pi = pi_interval(bits + 8)
    root = Interval(sqrt_lower(2 * pi.low, bits + 8), sqrt_upper(2 * pi.high, bits + 8))
    return Interval.exp_minus(squared / 2, bits + 8) / root


@lru_cache(maxsize=64)
def pi_interval(bits: int = BITS) -> Interval:
    """π to within 2^-bits, by Machin's formula π = 16·arctan(1/5) − 4·arctan(1/239)."""
    work = bits + 16
    fifth, small = _arctan_of_one_over(5, work), _arctan_of_one_over(239, work)
    return Interval(
        Fraction(16 * fifth[0] - 4 * small[1], 1 << work), Fraction(16 * fifth[1] - 4 * small[0], 1 << work)
    )


def _arctan_of_one_over(n: int, bits: int) -> tuple[int, int]:
    """Bounds on 2^bits·arctan(1/n), from an alternating series: what is left out is below the last term."""
    total, k, power = 0, 0, (1 << bits + 8) // n
    while power:
        total += (-1) ** k * (power // (2 * k + 1))
        power //= n * n
        k += 1
    # Each of the k terms was rounded down by less than two units, and the first one left out is below one.
    doubt = 2 * k + 2
    return (total - doubt) >> 8, ceil_div(total + doubt, 1 << 8)


def _root(squared: Fraction, bits: int) -> tuple[int, int]:
    """Bounds on 2^bits·√squared."""
    low, high = sqrt_lower(squared, bits), sqrt_upper(squared, bits)
    return (low.numerator << bits) // low.denominator, ceil_div(high.numerator << bits, high.denominator)


def _series(squared: Fraction, bits: int) -> Interval:
    """The sum x + x³/3 + x⁵/(3·5) + ..."""
    work = bits + 32
    low, high = _root(squared, work)
    sum_low, sum_high, n = low, high, 1
    while high > 1 or n <= 2 * squared:
        n += 2
        low = low * squared.numerator // (squared.denominator * n)
        high = ceil_div(high * squared.numerator, squared.denominator * n)
        sum_low, sum_high = sum_low + low, sum_high + high
    # Each later term is less than half of the one before, so together they are at most the last one.
    return Interval(Fraction(sum_low, 1 << work), Fraction(sum_high + high, 1 << work))


def _fraction(squared: Fraction, bits: int) -> Interval:
    """t₀. The range shrinks by about exp(−2x·√(2·depth)), so this depth is enough for x ≥ 6."""
    work, depth = bits + 32, bits * bits // 250 + 32
    x_low, x_high = _root(squared, work)
    square = 1 << 2 * work
    low, high = x_low, x_high + ceil_div(square * (depth + 1), x_low)
    for k in range(depth, 0, -1):
        low, high = x_low + square * k // high, x_high + ceil_div(square * k, low)
    return Interval(Fraction(low, 1 << work), Fraction(high, 1 << work))
