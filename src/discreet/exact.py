"""Exact numbers: rationals, logarithms of rationals, and rounding that errs on the private side.

Between a person's row and a published number there is no float. Parameters are ``Fraction`` or ``Ln`` (the natural
logarithm of a rational, so that the ε = ln 3 of a fair coin is exact). An irrational function of them is a certified
integer interval at any precision, computed with directed integer arithmetic alone.

Where a float must be shown, ``float_up`` and ``float_down`` round it in a known direction. A float that a person types
or reads means the decimal that it prints as: 0.1 is one tenth, so ten charges of 0.1 fit a budget of 1. In the samplers
a float means the dyadic rational that it is. Both readings are exact, and each claim uses the number that is used.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from discreet.errors import ParameterError
from discreet.late_dataclass import dataclass

Integers: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]

# Precision, in bits, at which an irrational value becomes a rational bound.
BITS = 160


def ceil_div(numerator: int, denominator: int) -> int:
    """The smallest integer at or above numerator/denominator (denominator > 0)."""
    return -(-numerator // denominator)


def _taylor_exp(low: int, high: int, bits: int) -> tuple[int, int]:
    """Bounds on 2^bits·e^y for y between low/2^bits and high/2^bits, 0 ≤ y < 1/2."""
    one = 1 << bits
    sum_low = sum_high = term_low = term_high = one
    n = 0
    while term_high > 1:
        n += 1
        term_low = (term_low * low >> bits) // n
        term_high = ceil_div(ceil_div(term_high * high, one), n)
        sum_low += term_low
        sum_high += term_high
    # Each later term is less than half of the one before, so together they are below the last one.
    return sum_low, sum_high + term_high


def exp_minus_bounds(x: Fraction | Ln, bits: int) -> tuple[int, int]:
    """Integers (low, high) with low ≤ 2^bits·e^(−x) ≤ high and high − low ≤ 2, for x ≥ 0.

    >>> exp_minus_bounds(Fraction(0), 8)
    (256, 256)
    >>> exp_minus_bounds(ln(2), 8)
    (128, 128)
    """
    if isinstance(x, Ln):
        scaled = Fraction(1 << bits) / x.of
        return math.floor(scaled), math.ceil(scaled)
    if x == 0:
        return 1 << bits, 1 << bits
    if x > bits:  # e^-x < 2^-bits·(e/2)^-bits, certainly below one unit
        return 0, 1
    halvings = max(0, math.ceil(x).bit_length() + 8)
    work = bits + 2 * halvings + 24
    shift = work - halvings
    low = (x.numerator << shift) // x.denominator if shift >= 0 else 0
    high = ceil_div(x.numerator << shift, x.denominator)
    e_low, e_high = _taylor_exp(low, high, work)
    # Invert first: every later value is then below one, and squaring keeps absolute errors small.
    square = 1 << (2 * work)
    inv_low, inv_high = square // e_high, ceil_div(square, e_low)
    for _ in range(halvings):
        inv_low = inv_low * inv_low >> work
        inv_high = ceil_div(inv_high * inv_high, 1 << work)
    drop = work - bits
    return inv_low >> drop, ceil_div(inv_high, 1 << drop)


def _atanh_series(z: Fraction, bits: int) -> tuple[int, int]:
    """Bounds on 2^bits·atanh(z) for 0 ≤ z ≤ 1/3."""
    low = (z.numerator << bits) // z.denominator
    high = ceil_div(z.numerator << bits, z.denominator)
    sum_low, sum_high, n = 0, 0, 1
    power_low, power_high = low, high
    while power_high > 1:
        sum_low += power_low // n
        sum_high += ceil_div(power_high, n)
        power_low = (power_low * low >> bits) * low >> bits
        power_high = ceil_div(ceil_div(power_high * high, 1 << bits) * high, 1 << bits)
        n += 2
    return sum_low, sum_high + power_high


@lru_cache(maxsize=512)
def ln_bounds(of: Fraction, bits: int) -> tuple[int, int]:
    """Integers (low, high) with low ≤ 2^bits·ln(of) ≤ high, for rational of ≥ 1."""
    exponent = max(0, (of.numerator // of.denominator).bit_length() - 1)
    mantissa = of / (1 << exponent)  # in [1, 2)
    work = bits + exponent.bit_length() + 16
    m_low, m_high = _atanh_series((mantissa - 1) / (mantissa + 1), work)
    two_low, two_high = _atanh_series(Fraction(1, 3), work)  # atanh(1/3) = ln(2)/2
    low, high = 2 * (m_low + exponent * two_low), 2 * (m_high + exponent * two_high)
    drop = work - bits
    return low >> drop, ceil_div(high, 1 << drop)


@dataclass(frozen=True)
class Ln:
    """The natural logarithm of a rational number above one: an exact privacy parameter.

    Sums of logarithms and whole multiples of them stay exact. Any other result is rounded up to a rational.

    >>> ln(3) + ln(3) == ln(9) == 2 * ln(3)
    True
    >>> ln(3)
    ln(3)
    >>> round(float(ln(3)), 4)
    1.0986
    """

    of: Fraction

    def __post_init__(self) -> None:
        if self.of <= 1:
            raise ParameterError("ln", "takes a number above 1 here", "A privacy loss is positive: write ln(3), say.")

    def bounds(self, bits: int) -> tuple[int, int]:
        """Integers (low, high) with low ≤ 2^bits·self ≤ high."""
        return ln_bounds(self.of, bits)

    @cached_property
    def upper(self) -> Fraction:
        """A rational at or above this logarithm, by less than 2^-150."""
        return Fraction(self.bounds(BITS)[1], 1 << BITS)

    @cached_property
    def lower(self) -> Fraction:
        """A rational at or below this logarithm, by less than 2^-150."""
        return Fraction(self.bounds(BITS)[0], 1 << BITS)

    def __add__(self, other: object) -> Ln:
        return Ln(self.of * other.of) if isinstance(other, Ln) else NotImplemented

    def __mul__(self, times: object) -> Ln:
        return Ln(self.of**times) if isinstance(times, int) and times >= 1 else NotImplemented

    __rmul__ = __mul__

    def _compare(self, other: object) -> int:
        """The sign of self − other, decided exactly: a logarithm of a rational above 1 is never rational."""
        if isinstance(other, Ln):
            return (self.of > other.of) - (self.of < other.of)
        if not isinstance(other, int | float | Fraction):
            raise TypeError(f"a logarithm cannot be compared with {type(other).__name__}")
        target, bits = Fraction(other), 64
        while True:
            low, high = self.bounds(bits)
            if Fraction(low, 1 << bits) > target:
                return 1
            if Fraction(high, 1 << bits) < target:
                return -1
            bits *= 2

    def __lt__(self, other: object) -> bool:
        return self._compare(other) < 0

    def __le__(self, other: object) -> bool:
        return self._compare(other) <= 0

    def __gt__(self, other: object) -> bool:
        return self._compare(other) > 0

    def __ge__(self, other: object) -> bool:
        return self._compare(other) >= 0

    def __float__(self) -> float:
        return float(self.upper)

    def __repr__(self) -> str:
        return f"ln({self.of})"


Exact: TypeAlias = Fraction | Ln


def ln(of: int | Fraction) -> Ln:
    """The exact logarithm of a whole number or fraction above one, as a privacy parameter: ``epsilon=ln(3)``."""
    if isinstance(of, bool) or not isinstance(of, int | Fraction):
        raise ParameterError("ln", "takes an int or a Fraction", "For a decimal write ln(Fraction('1.5')).")
    return Ln(Fraction(of))


def upper(x: Exact) -> Fraction:
    """A rational at or above x: x itself where it is rational."""
    return x.upper if isinstance(x, Ln) else x


def lower(x: Exact) -> Fraction:
    """A rational at or below x: x itself where it is rational."""
    return x.lower if isinstance(x, Ln) else x


def add(x: Exact, y: Exact) -> Exact:
    """The sum of both: exact where both are rational or both logarithms, otherwise rounded up."""
    if isinstance(x, Ln) and isinstance(y, Ln):
        return x + y
    return upper(x) + upper(y)


def multiply(x: Exact, count: int) -> Exact:
    """A whole multiple of x: exact, except that a logarithm times more than 65,536 is rounded up."""
    if isinstance(x, Ln):
        return x * count if 0 < count <= 1 << 16 else x.upper * count
    return x * count


def sqrt_upper(x: Fraction, bits: int = BITS) -> Fraction:
    """A rational at or above √x, by at most 2^-bits relative; exact for squares of rationals."""
    return _sqrt(x, bits, up=True)


def sqrt_lower(x: Fraction, bits: int = BITS) -> Fraction:
    """A rational at or below √x, by at most 2^-bits relative; exact for squares of rationals."""
    return _sqrt(x, bits, up=False)


def _sqrt(x: Fraction, bits: int, *, up: bool) -> Fraction:
    top, bottom = math.isqrt(x.numerator), math.isqrt(x.denominator)
    if top * top == x.numerator and bottom * bottom == x.denominator:
        return Fraction(top, bottom)
    # √(p/q) = √(pq)/q, with enough extra bits under the root for a relative error of 2^-bits.
    shift = max(0, bits + 2 - x.numerator.bit_length() // 2)
    root = math.isqrt(x.numerator * x.denominator << 2 * shift)
    return Fraction(root + up, x.denominator << shift)


def decimal(value: float) -> Fraction:
    """The decimal that a float prints as, which is the number that a person typed.

    >>> decimal(0.1)
    Fraction(1, 10)
    """
    return Fraction(repr(float(value)))


def float_up(x: Exact) -> float:
    """The smallest float that reads as x or more; infinity when x is beyond all floats.

    >>> float_up(Fraction(3, 10)), float_up(Fraction(1, 3))
    (0.3, 0.33333333333333337)
    """
    return _to_float(upper(x), up=True)


def float_down(x: Exact) -> float:
    """The largest float that reads as x or less.

    >>> float_down(Fraction(3, 10)), float_down(Fraction(1, 3))
    (0.3, 0.3333333333333333)
    """
    return _to_float(lower(x), up=False)


def _to_float(x: Fraction, *, up: bool) -> float:
    try:
        nearest = float(x)
    except OverflowError:
        beyond = (x > 0) == up
        return math.copysign(math.inf if beyond else math.nextafter(math.inf, 0), x.numerator > 0 or -1)
    if up and decimal(nearest) < x:
        return math.nextafter(nearest, math.inf)
    if not up and decimal(nearest) > x:
        return math.nextafter(nearest, -math.inf)
    return nearest


# The largest magnitude of a fixed-point value. It leaves 2 bits of an int64 for arithmetic.
FIXED_LIMIT = (1 << 61) - 1


@dataclass(frozen=True)
class FixedPoint:
    """Real numbers as whole multiples of ``resolution``, so that sums of them are exact.

    Privacy: rounding one record to the grid and clamping it depends on that record alone. So a release computed from
    the integers has the same guarantee that it has on integers; sensitivities are stated in grid steps.
    """

    resolution: Fraction

    def __post_init__(self) -> None:
        if not isinstance(self.resolution, Fraction) or self.resolution <= 0:
            raise ParameterError("resolution", "must be a positive Fraction", "Use Fraction(1, 100) for hundredths.")

    def encode(self, values: npt.ArrayLike, *, low: Fraction, high: Fraction) -> Integers:
        """Clamp to [low, high] and round to the nearest grid step; NaN counts as the low end.

        The clamp happens last and in integers, so no value, infinite or not a number, leaves the range.

        >>> FixedPoint(Fraction(1, 4)).encode([0.3, 9.0, float("nan")], low=Fraction(0), high=Fraction(2)).tolist()
        [1, 8, 0]
        """
        first, last = self.steps(low, high)
        raw = np.asarray(values)
        if raw.dtype.kind not in "iufb":
            raise ParameterError("values", "must be numbers", "Convert them to int or float first.")
        with np.errstate(over="ignore", invalid="ignore"):
            steps = np.rint(raw.astype(np.float64) * (float(self.resolution.denominator) / self.resolution.numerator))
        # Floats compare exactly with the bounds' floats; the integer clamp afterwards decides what remains.
        steps = np.nan_to_num(steps, nan=float(first), posinf=float(last), neginf=float(first))
        steps = np.clip(steps, -float(1 << 62), float(1 << 62))
        return np.clip(steps.astype(np.int64), first, last)

    def steps(self, low: Fraction, high: Fraction) -> tuple[int, int]:
        """The outermost grid steps that the range touches: bounds round outwards, so no declared value is lost."""
        if low > high:
            raise ParameterError("bounds", "are empty: low is above high", "Give them as (low, high).")
        first, last = math.floor(low / self.resolution), math.ceil(high / self.resolution)
        if max(-first, last) > FIXED_LIMIT:
            raise ParameterError("resolution", "is too fine for the bounds", "Use coarser steps or tighter bounds.")
        return first, last

    def decode(self, steps: npt.ArrayLike) -> Floats:
        """The real values of grid steps, as floats for display."""
        return np.asarray(steps).astype(np.float64) * (self.resolution.numerator / float(self.resolution.denominator))


@dataclass(frozen=True, slots=True)
class Interval:
    """A real number that is known to lie between two rationals. The result of each operation is such an interval too.

    >>> Interval.of(Fraction(3, 4)) / Interval.of(Fraction(1, 4))
    Interval(low=Fraction(3, 1), high=Fraction(3, 1))
    """

    low: Fraction
    high: Fraction

    @classmethod
    def of(cls, value: Fraction | int) -> Interval:
        """The interval of one rational, which is known exactly."""
        return cls(Fraction(value), Fraction(value))

    @classmethod
    def exp_minus(cls, x: Exact, bits: int = BITS) -> Interval:
        """e^(−x) for x ≥ 0, to ``bits`` *significant* bits."""
        extra = math.ceil(lower(x) * 3 / 2)  # log2(e) < 3/2: leading zeros of the result
        low, high = exp_minus_bounds(x, bits + extra)
        return cls(Fraction(low, 1 << (bits + extra)), Fraction(high, 1 << (bits + extra)))

    def __add__(self, other: Interval) -> Interval:
        return Interval(self.low + other.low, self.high + other.high)

    def __sub__(self, other: Interval) -> Interval:
        return Interval(self.low - other.high, self.high - other.low)

    def __mul__(self, other: Interval) -> Interval:
        ends = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return Interval(min(ends), max(ends))

    def __truediv__(self, other: Interval) -> Interval:
        if other.low <= 0 <= other.high:
            raise ParameterError("divisor", "may be zero", "Divide by an interval that excludes zero.")
        return self * Interval(1 / other.high, 1 / other.low)

    def trim(self, bits: int = 2 * BITS) -> Interval:
        """A wider interval with short denominators: both ends move outwards to multiples of 2^-bits."""
        grid = 1 << bits
        return Interval(Fraction(math.floor(self.low * grid), grid), Fraction(math.ceil(self.high * grid), grid))

    def __contains__(self, value: Fraction) -> bool:
        return self.low <= value <= self.high

    def __float__(self) -> float:
        return float((self.low + self.high) / 2)
