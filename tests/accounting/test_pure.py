"""Pure privacy: exact sums, and the profile of randomized response at δ > 0."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting.pure import PureNotion
from discreet.exact import Ln, ln


def test_sums_are_exact() -> None:
    """Ten tenths are one, three thirds are one, and ln 3 twice is ln 9."""
    assert PureNotion(Fraction(1, 10)).repeat(10) == PureNotion(Fraction(1))
    assert PureNotion(Fraction(1, 3)).repeat(3).epsilon(0.0) == 1.0
    assert PureNotion(ln(3)).compose(PureNotion(ln(3))) == PureNotion(ln(9)) == PureNotion(ln(3)).for_group(2)


def test_sum_of_a_logarithm_and_a_number_is_rounded_up() -> None:
    both = PureNotion(ln(3)).compose(PureNotion(Fraction(1)))
    mp.mp.dps = 80
    assert mp.mpf(both.amount.numerator) / both.amount.denominator >= mp.log(3) + 1  # type: ignore[union-attr]  # rational


def test_no_delta_below_the_loss_is_needed_at_it() -> None:
    assert PureNotion(Fraction(1)).delta(1.0) == 0.0
    assert PureNotion(ln(3)).delta(math.nextafter(math.log(3), 2)) == 0.0
    assert PureNotion(ln(3)).delta(1.0986122886681096) > 0
    assert PureNotion(Fraction(1)).delta(math.inf) == 0.0


@given(st.floats(1e-6, 50), st.floats(0, 60))
@settings(deadline=None, max_examples=150)
def test_profile_is_that_of_randomized_response(size: float, epsilon: float) -> None:
    mp.mp.dps = 50
    from discreet.exact import decimal

    s, e = (mp.mpf(decimal(x).numerator) / decimal(x).denominator for x in (size, epsilon))
    exact = max(mp.mpf(0), (1 - mp.exp(e - s)) / (1 + mp.exp(-s)))
    ours = PureNotion(decimal(size)).delta(epsilon)
    assert exact <= ours <= exact * (1 + mp.mpf(10) ** -13)


@given(st.floats(1e-6, 50), st.floats(1e-12, 0.9))
@settings(deadline=None, max_examples=100)
def test_epsilon_and_delta_are_inverse(size: float, delta: float) -> None:
    pure = PureNotion(Fraction(size))
    epsilon = pure.epsilon(delta)
    assert pure.delta(epsilon) <= delta
    assert epsilon <= pure.epsilon(0.0)


def test_long_sums_stay_short_and_safe() -> None:
    """Many unlike denominators: the sum is rounded up when it gets long, never down."""
    total, exact = PureNotion(Fraction(1, 2)), Fraction(1, 2)
    for prime in range(10**6 + 1, 10**6 + 121, 2):
        total, exact = total.compose(PureNotion(Fraction(1, prime))), exact + Fraction(1, prime)
    assert isinstance(total.amount, Fraction)
    assert exact <= total.amount <= exact + Fraction(1, 1 << 300)
    assert total.amount.denominator.bit_length() <= 600
    long = PureNotion(Ln(Fraction(3))).repeat(1 << 17)
    assert long.amount >= Fraction(int(math.log(3) * (1 << 17)))
    assert long.epsilon(0.0) == pytest.approx(math.log(3) * (1 << 17))
