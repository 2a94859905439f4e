"""Logarithms and angles, each by one fixed sequence of operations on doubles, so that every engine gives the same bits.

The mathematical libraries of platforms differ in the last place of a logarithm or a sine. Sums, products, quotients,
roots and whole parts of doubles do not: IEEE 754 says what they are, to the last bit. So a function here is written in
these operations and no others, once, over any kind of number: floats (``evaluate``), or SQL that an engine will compute
(``engines.sql.elementary``). A binary logarithm serves as a guess that is corrected by exact comparisons.

The claim: within its domain every function is within 3 units in the last place of its true value (tests measure less
than 2), no operation in it can overflow, underflow to a wrong result or divide by zero, and all engines agree exactly.
Outside its domain a function is NULL. Sines stop at 2^19 radians: up to there the quarter turns that are taken off are
exact.

How: ln x = k·ln 2 + ln m with x = 2^k·m and m near 1, where ln m = f − s·(f − R), f = m − 1, s = f/(2 + f) and R the
series of 2·artanh(s)/s − 2. Sine and cosine are Taylor's series after whole quarter turns were taken off in three parts
of π/2. The arc tangent is Taylor's series after the nearest of the angles of 0, 1/4, 1/2, 3/4 and 1 was taken off.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Protocol, Self, TypeVar

from discreet.late_dataclass import dataclass
from discreet.plan.types import LARGEST_REAL

SMALLEST_REAL = math.ulp(0.0)
# From here on, too little is left of an angle after whole turns.
LARGEST_ANGLE = 2.0**19
# Below this, x is the nearest double of sin x and arctan x, and its square could get lost.
TINY = 2.0**-27
# An angle whose tangent is less counts as 0 (or as π) in atan2.
FLAT = 2.0**-64


class DoubleLike(Protocol):
    """What is added, subtracted, multiplied and divided: a float, or SQL."""

    def __add__(self, other: Any, /) -> Self: ...
    def __radd__(self, other: Any, /) -> Self: ...
    def __sub__(self, other: Any, /) -> Self: ...
    def __rsub__(self, other: Any, /) -> Self: ...
    def __mul__(self, other: Any, /) -> Self: ...
    def __rmul__(self, other: Any, /) -> Self: ...
    def __truediv__(self, other: Any, /) -> Self: ...


N = TypeVar("N", bound=DoubleLike)


class Operations(Protocol[N]):
    """The operations that have no sign. Members: ``FloatOperations`` and ``engines.sql.elementary.SqlOperations``."""

    def keep(self, x: N) -> N:
        """The same number, under a name: what is used more than once is computed once."""
        ...

    def choose(self, a: N, below: N | float, yes: N | float, no: N | float) -> N:
        """``yes`` where a < below, else ``no``."""
        ...

    def floor(self, x: N) -> N: ...
    def sqrt(self, x: N) -> N: ...
    def guess_log2(self, x: N) -> N:
        """About the binary logarithm of a positive number; the last place does not matter."""
        ...

    def power_of_two(self, k: N) -> N:
        """2^k, exactly, for whole k between −1074 and 1023."""
        ...


class FloatOperations:
    """The operations on Python's floats."""

    def keep(self, x: float) -> float:
        return x

    def choose(self, a: float, below: float, yes: float, no: float) -> float:
        return yes if a < below else no

    def floor(self, x: float) -> float:
        return float(math.floor(x))

    def sqrt(self, x: float) -> float:
        return math.sqrt(x)

    def guess_log2(self, x: float) -> float:
        return math.log2(x)

    def power_of_two(self, k: float) -> float:
        return math.ldexp(1.0, int(k))


def _sum_series(z: N, coefficients: Sequence[Fraction]) -> N:
    """c0 + z·(c1 + z·(c2 + ...)). The coefficients are the doubles nearest to the fractions."""
    *others, last = (float(c) for c in coefficients)
    total = z * last
    for c in reversed(others[1:]):
        total = z * (total + c)
    return total + others[0]


# Logarithms

LN_2 = (float.fromhex("0x1.62e42fefa2000p-1"), float.fromhex("0x1.9ef35793c7673p-41"))
LOG10_2 = (float.fromhex("0x1.34413509f4000p-2"), float.fromhex("0x1.cff7988f8959bp-41"))
ONE_OVER_LN_10 = (float.fromhex("0x1.bcb7b10000000p-2"), float.fromhex("0x1.49b9438ca9aaep-28"))
ONE_OVER_LN_2 = (float.fromhex("0x1.7154764000000p+0"), float.fromhex("0x1.2b82fe1777d10p-28"))
ROOT_2 = 1.4142135623730951
# 2·artanh(s)/s − 2, over s²; |s| ≤ 0.172, so that what is left out is below 2^-60.
ARTANH = [Fraction(2, 2 * n + 1) for n in range(1, 13)]


def _split(x: N, ops: Operations[N]) -> tuple[N, N]:
    """K and m with x = 2^k·m and √2/2 ≤ m < √2, for a positive x. All of it is exact."""
    guess = ops.keep(ops.floor(ops.guess_log2(x)))
    guess = ops.choose(guess, -1074.0, -1074.0, ops.choose(guess, 1023.0, guess, 1023.0))
    guess = ops.keep(guess)
    about = ops.keep(x / ops.power_of_two(guess))  # 1 to 2, or just beside
    k = ops.choose(about, 1.0, guess - 1.0, ops.choose(about, 2.0, guess, guess + 1.0))
    m = ops.keep(ops.choose(about, 1.0, about * 2.0, ops.choose(about, 2.0, about, about * 0.5)))
    return ops.keep(ops.choose(m, ROOT_2, k, k + 1.0)), ops.keep(ops.choose(m, ROOT_2, m, m * 0.5))


def _log_parts(m: N, ops: Operations[N]) -> tuple[N, N]:
    """F and q with ln m = f − q, where f = m − 1 is exact and q is small beside it."""
    f = ops.keep(m - 1.0)
    s = ops.keep(f / (f + 2.0))
    z = ops.keep(s * s)
    return f, ops.keep(s * (f - z * _sum_series(z, ARTANH)))


def _ln(x: N, ops: Operations[N]) -> N:
    k, m = _split(x, ops)
    f, q = _log_parts(m, ops)
    return k * LN_2[0] + (f - (q - k * LN_2[1]))


def _log_to_base(x: N, ops: Operations[N], factor: tuple[float, float], of_two: tuple[float, float]) -> N:
    """K·log 2 + ln m·factor, in two parts, so that powers of the base have whole logarithms."""
    k, m = _split(x, ops)
    f, q = _log_parts(m, ops)
    log = ops.keep(f - q)
    scaled = ops.keep(log * 134217729.0)
    high = ops.keep(scaled - (scaled - log))  # 26 bits of it
    low = ops.keep((f - high) - q)
    whole, main = ops.keep(k * of_two[0]), ops.keep(high * factor[0])
    rest = k * of_two[1] + ((low + high) * factor[1] + low * factor[0])
    total = ops.keep(whole + main)
    return total + (rest + ((whole - total) + main))


def _log10(x: N, ops: Operations[N]) -> N:
    return _log_to_base(x, ops, ONE_OVER_LN_10, LOG10_2)


def _log2(x: N, ops: Operations[N]) -> N:
    return _log_to_base(x, ops, ONE_OVER_LN_2, (1.0, 0.0))


# Angles

HALF_PI = (
    float.fromhex("0x1.921fb54400000p+0"),
    float.fromhex("0x1.0b4611a600000p-34"),
    float.fromhex("0x1.3198a2e037073p-69"),
)
# (sin r − r)/r³ and (cos r − 1 + r²/2)/r⁴ as series of r², for r up to π/4.
SINE = [Fraction((-1) ** n, math.factorial(2 * n + 1)) for n in range(1, 10)]
COSINE = [Fraction((-1) ** n, math.factorial(2 * n)) for n in range(2, 11)]


def _turn(x: N, ops: Operations[N]) -> tuple[N, N, N]:
    """X = n·π/2 + r + a tail, with |r| about π/4 at most: n modulo 4, the sine and the cosine of r and its tail."""
    n = ops.keep(ops.floor(x * (2 / math.pi) + 0.5))
    first = ops.keep(x - n * HALF_PI[0])
    second = ops.keep(n * HALF_PI[1])
    less = ops.keep(first - second)
    third = ops.keep(n * HALF_PI[2] - ((first - less) - second))
    r = ops.keep(less - third)
    tail = ops.keep((less - r) - third)
    size = ops.choose(r, 0.0, 0.0 - r, r)
    z = ops.keep(ops.choose(size, TINY, 0.0, r * r))
    half = ops.keep(z * 0.5)
    near_one = ops.keep(1.0 - half)
    sine = ops.keep(r + (tail * near_one + r * (z * _sum_series(z, SINE))))
    product = ops.choose(size, TINY, 0.0, r * tail)
    cosine = ops.keep(near_one + (((1.0 - near_one) - half) + (z * (z * _sum_series(z, COSINE)) - product)))
    return ops.keep(n - 4.0 * ops.floor(n * 0.25)), sine, cosine


def _sin(x: N, ops: Operations[N]) -> N:
    quarter, sine, cosine = _turn(x, ops)
    second_half = ops.choose(quarter, 3.0, 0.0 - sine, 0.0 - cosine)
    return ops.choose(quarter, 1.0, sine, ops.choose(quarter, 2.0, cosine, second_half))


def _cos(x: N, ops: Operations[N]) -> N:
    quarter, sine, cosine = _turn(x, ops)
    second_half = ops.choose(quarter, 3.0, 0.0 - cosine, sine)
    return ops.choose(quarter, 1.0, cosine, ops.choose(quarter, 2.0, 0.0 - sine, second_half))


def _tan(x: N, ops: Operations[N]) -> N:
    """The sine over the cosine. Neither is 0 where it is divided by: no double is an odd number of quarter turns."""
    quarter, sine, cosine = _turn(x, ops)
    odd = ops.keep(quarter - 2.0 * ops.floor(quarter * 0.5))
    above = ops.choose(odd, 1.0, sine, 0.0 - cosine)
    return above / ops.choose(odd, 1.0, cosine, sine)


# Angles whose tangents are 0, 1/4, 1/2, 3/4 and 1, in two parts each.
ANGLES = tuple(
    (float.fromhex(high), float.fromhex(low))
    for high, low in (
        ("0x0p+0", "0x0p+0"),
        ("0x1.f5b75f92c80ddp-3", "0x1.8ab6e3cf7afbdp-57"),
        ("0x1.dac670561bb4fp-2", "0x1.a2b7f222f65e2p-56"),
        ("0x1.4978fa3269ee1p-1", "0x1.2419a87f2a458p-56"),
        ("0x1.921fb54442d18p-1", "0x1.1a62633145c07p-55"),
    )
)
QUARTER_TURN = (2 * ANGLES[4][0], 2 * ANGLES[4][1])
# (arctan t − t)/t³ as a series of t², for t up to 1/8.
ARCTAN = [Fraction((-1) ** n, 2 * n + 1) for n in range(1, 11)]


def _angle_of(t: N, ops: Operations[N]) -> tuple[N, N]:
    """The angle whose tangent is t, for 0 ≤ t ≤ 1, in two parts."""

    def pick(of: Callable[[int], float]) -> N:
        steps = [of(i) for i in range(5)]
        found: N | float = steps[4]
        for i in (3, 2, 1, 0):
            found = ops.choose(t, (2 * i + 1) / 8, steps[i], found)
        return ops.keep(found)  # type: ignore[arg-type]  # the loop has made an N of it

    nearest = pick(lambda i: i / 4)
    rest = ops.keep((t - nearest) / (t * nearest + 1.0))
    size = ops.choose(rest, 0.0, 0.0 - rest, rest)
    z = ops.keep(ops.choose(size, TINY, 0.0, rest * rest))
    high, low = pick(lambda i: ANGLES[i][0]), pick(lambda i: ANGLES[i][1])
    return high, ops.keep(rest + (low + rest * (z * _sum_series(z, ARCTAN))))


def _arctan_of_ratio(above: N, below: N, ops: Operations[N]) -> N:
    """The angle between 0 and a quarter turn whose tangent is the ratio of two numbers that are not negative.

    The smaller is divided by the larger. A ratio that is tiny is not computed, so that nothing can underflow.
    """
    small, large = ops.keep(ops.choose(above, below, above, below)), ops.keep(ops.choose(above, below, below, above))
    wide = ops.choose(large, 1.0, ops.choose(small * (1 / FLAT), large, 0.0, 1.0), 1.0)
    far = ops.choose(large, 1.0, 1.0, ops.choose(small, large * FLAT, 0.0, 1.0))
    near = ops.keep(ops.choose(large, 1.0, wide, far))
    some = ops.keep(ops.choose(near, 1.0, 0.0, small))
    t = ops.keep(some / ops.choose(near, 1.0, 1.0, large))
    high, low = _angle_of(t, ops)
    return ops.choose(above, below, high + low, (QUARTER_TURN[0] - high) + (QUARTER_TURN[1] - low))


def _with_sign_of(x: N, value: N, ops: Operations[N]) -> N:
    return ops.choose(x, 0.0, 0.0 - value, value)


def _size(x: N, ops: Operations[N]) -> N:
    return ops.keep(ops.choose(x, 0.0, 0.0 - x, x))


def _atan(x: N, ops: Operations[N]) -> N:
    size = _size(x, ops)
    angle = ops.keep(_arctan_of_ratio(size, size * 0.0 + 1.0, ops))
    return ops.choose(size, TINY, x, _with_sign_of(x, angle, ops))


def _asin(x: N, ops: Operations[N]) -> N:
    size = _size(x, ops)
    other = ops.keep(ops.sqrt((1.0 - size) * (1.0 + size)))
    angle = ops.keep(_arctan_of_ratio(size, other, ops))
    return ops.choose(size, TINY, x, _with_sign_of(x, angle, ops))


def _acos(x: N, ops: Operations[N]) -> N:
    """Twice the angle whose tangent is √(1 − x)/√(1 + x)."""
    return 2.0 * _arctan_of_ratio(ops.keep(ops.sqrt(1.0 - x)), ops.keep(ops.sqrt(1.0 + x)), ops)


def _atan2(y: N, x: N, ops: Operations[N]) -> N:
    """The angle of the point (x, y), between −π and π; 0 for the point (0, 0)."""
    rise, run = _size(y, ops), _size(x, ops)
    none = ops.choose(0.0 - rise, 0.0, 0.0, ops.choose(0.0 - run, 0.0, 0.0, 1.0))
    angle = ops.keep(_arctan_of_ratio(rise, ops.keep(run + none), ops))
    turned = (2 * QUARTER_TURN[0] - angle) + 2 * QUARTER_TURN[1]
    return _with_sign_of(y, ops.keep(ops.choose(x, 0.0, turned, angle)), ops)


@dataclass(frozen=True, slots=True)
class Elementary:
    """A function of one or two reals, and the least and the largest argument for which it has a value."""

    compute: Callable[..., Any]
    low: float = -LARGEST_REAL
    high: float = LARGEST_REAL


ELEMENTARY: Mapping[str, Elementary] = {
    "ln": Elementary(_ln, low=SMALLEST_REAL),
    "log2": Elementary(_log2, low=SMALLEST_REAL),
    "log10": Elementary(_log10, low=SMALLEST_REAL),
    "sin": Elementary(_sin, -LARGEST_ANGLE, LARGEST_ANGLE),
    "cos": Elementary(_cos, -LARGEST_ANGLE, LARGEST_ANGLE),
    "tan": Elementary(_tan, -LARGEST_ANGLE, LARGEST_ANGLE),
    "asin": Elementary(_asin, -1.0, 1.0),
    "acos": Elementary(_acos, -1.0, 1.0),
    "atan": Elementary(_atan),
    "atan2": Elementary(_atan2),
}


def compute(name: str, *arguments: float) -> float | None:
    """The value of a function for floats; None outside its domain.

    >>> compute("log10", 1000.0), compute("log2", 0.125), compute("ln", 0.0), compute("atan2", 0.0, -1.0)
    (3.0, -3.0, None, 3.141592653589793)
    """
    function = ELEMENTARY[name]
    if not all(function.low <= x <= function.high for x in arguments):
        return None
    return float(function.compute(*arguments, FloatOperations()))
