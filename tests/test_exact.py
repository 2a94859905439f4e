"""Exact numbers: certified bounds against an independent oracle, directions of rounding, fixed point."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import exact
from discreet.errors import ParameterError
from discreet.exact import FixedPoint, Interval, Ln, ln

rationals = st.fractions(min_value=0, max_value=2000, max_denominator=10**12)
above_one = st.fractions(min_value=Fraction(10**6 + 1, 10**6), max_value=10**9, max_denominator=10**6)


def mp(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


@settings(deadline=None, max_examples=300)
@given(rationals, st.integers(1, 400))
def test_exp_bounds_hold_the_truth(x: Fraction, bits: int) -> None:
    """The certified integers enclose 2^bits·e^-x, and tightly."""
    low, high = exact.exp_minus_bounds(x, bits)
    with mpmath.workprec(bits + 4000):
        truth = mpmath.exp(-mp(x)) * mpmath.mpf(2) ** bits
        assert low <= truth <= high
    assert 0 <= high - low <= 2


def test_exp_bounds_of_tiny_and_huge_exponents() -> None:
    """The ends of the range: e^-0 is exact, tiny exponents are just below one, huge ones just above zero."""
    assert exact.exp_minus_bounds(Fraction(0), 70) == (1 << 70, 1 << 70)
    low, high = exact.exp_minus_bounds(Fraction(1, 10**60), 100)
    assert low in {(1 << 100) - 1, (1 << 100) - 2} and high == 1 << 100
    assert exact.exp_minus_bounds(Fraction(10**9), 100) == (0, 1)


def test_exp_of_a_logarithm_is_rational() -> None:
    """e^-ln(3) is one third, to the last bit on both sides."""
    low, high = exact.exp_minus_bounds(ln(3), 64)
    assert low == (1 << 64) // 3 and high == low + 1


@settings(deadline=None, max_examples=200)
@given(above_one, st.integers(8, 300))
def test_ln_bounds_hold_the_truth(of: Fraction, bits: int) -> None:
    """The certified integers enclose 2^bits·ln(of)."""
    low, high = exact.ln_bounds(of, bits)
    with mpmath.workprec(bits + 200):
        truth = mpmath.log(mp(of)) * mpmath.mpf(2) ** bits
        assert low <= truth <= high
    assert high - low <= 3


@given(st.integers(2, 10**6), st.integers(2, 10**6), st.integers(1, 20))
def test_logarithms_add_up_exactly(a: int, b: int, k: int) -> None:
    """ln a + ln b = ln ab and k·ln a = ln a^k, as values."""
    assert ln(a) + ln(b) == ln(a * b)
    assert k * ln(a) == exact.multiply(ln(a), k) == ln(a**k)


@given(st.integers(2, 10**6), st.fractions(min_value=-3, max_value=20))
def test_logarithms_compare_with_rationals(a: int, x: Fraction) -> None:
    """A comparison is decided exactly and agrees with the certified bounds."""
    assert (ln(a) < x) == (ln(a).upper < x or (ln(a).lower < x and not ln(a) > x))
    assert (ln(a) < x) != (ln(a) > x)
    assert (ln(a) <= x) == (not ln(a) > x)


def test_close_comparison_refines() -> None:
    """Values that agree in 60 digits are still told apart."""
    near = ln(2).lower
    assert ln(2) > near and ln(2) < near + Fraction(1, 10**40)


@pytest.mark.parametrize("bad", [1, 0, -2, Fraction(1, 2)])
def test_ln_takes_numbers_above_one(bad: int | Fraction) -> None:
    with pytest.raises(ParameterError, match="above 1"):
        ln(bad)


@pytest.mark.parametrize("bad", [1.5, True, "3", None])
def test_ln_takes_exact_numbers_only(bad: object) -> None:
    with pytest.raises(ParameterError, match="int or a Fraction"):
        ln(bad)  # type: ignore[arg-type]  # the point of the test


@given(st.fractions(min_value=-(10**30), max_value=10**30))
def test_floats_round_in_their_direction(x: Fraction) -> None:
    """Read back as decimals, the upper float is at or above and the lower at or below, both as close as can be."""
    up, down = exact.float_up(x), exact.float_down(x)
    assert exact.decimal(down) <= x <= exact.decimal(up)
    assert up - down <= 2 * math.ulp(up)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_typed_float_comes_back_unchanged(value: float) -> None:
    """Reading a float and showing it again changes nothing, in either direction."""
    assert exact.float_up(exact.decimal(value)) == value == exact.float_down(exact.decimal(value))


def test_floats_beyond_the_range() -> None:
    """Beyond all floats, up is infinite and down is the largest float."""
    assert exact.float_up(Fraction(10**400)) == math.inf
    assert exact.float_down(Fraction(10**400)) == math.nextafter(math.inf, 0)
    assert exact.float_up(Fraction(-(10**400))) == -math.nextafter(math.inf, 0)


@given(st.fractions(min_value=0, max_value=10**20, max_denominator=10**20))
def test_square_roots_enclose(x: Fraction) -> None:
    """Lower and upper roots enclose the root, and squares come out exactly."""
    assert exact.sqrt_lower(x) ** 2 <= x <= exact.sqrt_upper(x) ** 2
    assert exact.sqrt_lower(x * x) == x == exact.sqrt_upper(x * x)
    if x:
        assert exact.sqrt_upper(x) - exact.sqrt_lower(x) <= exact.sqrt_upper(x) * Fraction(1, 2**155)


def test_sums_of_mixed_kinds_round_up() -> None:
    """A logarithm plus a rational is rounded up, never down."""
    total = exact.add(ln(3), Fraction(1))
    assert isinstance(total, Fraction) and ln(3) < total - 1 < ln(3).upper + Fraction(1, 10**40)


@settings(deadline=None)
@given(st.lists(st.fractions(min_value=-5, max_value=5, max_denominator=50), min_size=4, max_size=4))
def test_interval_arithmetic_keeps_its_promise(ends: list[Fraction]) -> None:
    """For every operation, results of members lie in the interval of the result."""
    a, b = Interval(*sorted(ends[:2])), Interval(*sorted(ends[2:]))
    for x in (a.low, a.high, (a.low + a.high) / 2):
        for y in (b.low, b.high, (b.low + b.high) / 2):
            assert x + y in a + b and x - y in a - b and x * y in a * b
            if not (b.low <= 0 <= b.high):
                assert x / y in a / b
    assert a.low in a.trim(3) and a.high in a.trim(3)


def test_interval_exp_has_significant_bits() -> None:
    """Even e^-500 comes with 100 significant bits."""
    tiny = Interval.exp_minus(Fraction(500), 100)
    assert tiny.low > 0 and (tiny.high - tiny.low) / tiny.low < Fraction(1, 2**95)


def test_interval_refuses_division_by_what_may_be_zero() -> None:
    with pytest.raises(ParameterError, match="zero"):
        Interval.of(1) / Interval(Fraction(-1), Fraction(1))


grid = FixedPoint(Fraction(1, 100))


@given(st.lists(st.floats(width=64), min_size=1, max_size=20))
def test_fixed_point_never_leaves_its_range(values: list[float]) -> None:
    """Whatever the value (NaN, infinities, huge), the steps stay within the declared bounds."""
    steps = grid.encode(values, low=Fraction(-5), high=Fraction(70))
    assert steps.dtype == np.int64 and steps.min() >= -500 and steps.max() <= 7000


@given(st.integers(-500, 7000))
def test_fixed_point_round_trip(step: int) -> None:
    """A value on the grid is kept exactly."""
    shown = grid.decode([step])
    assert grid.encode(shown, low=Fraction(-5), high=Fraction(70))[0] == step


def test_fixed_point_bounds_round_outwards() -> None:
    """Bounds between two steps include both neighbours, so that sensitivities are never understated."""
    assert FixedPoint(Fraction(1, 3)).steps(Fraction(-1, 2), Fraction(1, 2)) == (-2, 2)


def test_fixed_point_of_integers_and_big_bounds() -> None:
    """Large integers clamp to the last step instead of wrapping."""
    whole = FixedPoint(Fraction(1))
    big = Fraction(2**60)
    assert whole.encode(np.array([2**63 - 1, -(2**63)]), low=-big, high=big).tolist() == [2**60, -(2**60)]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: FixedPoint(Fraction(0)), "resolution"),
        (lambda: FixedPoint(0.5), "resolution"),  # type: ignore[arg-type]  # the point of the test
        (lambda: grid.encode(["a"], low=Fraction(0), high=Fraction(1)), "values"),
        (lambda: grid.encode([1.0], low=Fraction(2), high=Fraction(1)), "bounds"),
        (lambda: grid.steps(Fraction(0), Fraction(2**61)), "resolution"),
    ],
)
def test_fixed_point_refuses(call: object, name: str) -> None:
    """Bad grids, values and bounds are named."""
    with pytest.raises(ParameterError) as caught:
        call()  # type: ignore[operator]  # a lambda from the table
    assert caught.value.name == name


def test_logarithm_display_and_float() -> None:
    """A logarithm shows what it is, and its float is on the upper side."""
    assert repr(ln(Fraction(3, 2))) == "ln(3/2)" and isinstance(ln(3), Ln)
    assert math.isclose(float(ln(3)), math.log(3), rel_tol=1e-15)
