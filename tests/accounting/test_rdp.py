"""Rényi curves: each against a direct sum or integral with many digits."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import rdp
from discreet.accounting.rdp import ORDERS, Renyi
from discreet.exact import ln

SOME = (1.1, 1.5, 2.0, 2.9, 5.0, 10.5, 32.0, 64.0)


def close_above(ours: float, exact: mp.mpf, slack: float = 1e-9) -> bool:
    return bool(exact * (1 - mp.mpf(10) ** -15) <= ours <= exact * (1 + slack) + 1e-12)


def discrete(p: list[mp.mpf], q: list[mp.mpf], order: float) -> mp.mpf:
    return mp.log(mp.fsum(a**order * b ** (1 - order) for a, b in zip(p, q))) / (mp.mpf(order) - 1)


@pytest.mark.parametrize("order", SOME)
@pytest.mark.parametrize(("size", "categories"), [(1, 2), (Fraction(1, 10), 2), (2, 10), (Fraction(1, 20), 300)])
def test_randomized_response(size: Fraction, categories: int, order: float) -> None:
    mp.mp.dps = 40
    e = mp.exp(mp.mpf(Fraction(size).numerator) / Fraction(size).denominator)
    p = [e, mp.mpf(1), *[mp.mpf(1)] * (categories - 2)]
    q = [mp.mpf(1), e, *[mp.mpf(1)] * (categories - 2)]
    total = e + categories - 1
    exact = discrete([x / total for x in p], [x / total for x in q], order)
    assert close_above(rdp.response_curve(Fraction(size), categories).value_at(order), exact, 1e-8)


@pytest.mark.parametrize("order", SOME)
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(20)])
def test_laplace(scale: Fraction, order: float) -> None:
    mp.mp.dps = 30
    b, a = mp.mpf(scale.numerator) / scale.denominator, mp.mpf(order)
    moment = (a * mp.exp((a - 1) / b) + (a - 1) * mp.exp(-a / b)) / (2 * a - 1)
    assert close_above(rdp.laplace_curve(1 / scale).value_at(order), mp.log(moment) / (a - 1), 1e-8)


@pytest.mark.parametrize("order", SOME)
@pytest.mark.parametrize(
    ("sensitivity", "scale"), [(1, Fraction(1, 2)), (1, Fraction(4)), (3, Fraction(2)), (7, Fraction(30))]
)
def test_discrete_laplace_is_the_exact_sum(sensitivity: int, scale: Fraction, order: float) -> None:
    mp.mp.dps = 40
    t = mp.mpf(scale.numerator) / scale.denominator
    reach = int(60 * t) + 40
    weights = {x: mp.exp(-abs(x) / t) for x in range(-reach - sensitivity, reach + sensitivity + 1)}
    total = (1 + mp.exp(-1 / t)) / (1 - mp.exp(-1 / t))
    xs = range(-reach, reach + 1)
    p, q = [weights[x] / total for x in xs], [weights[x - sensitivity] / total for x in xs]
    assert close_above(rdp.discrete_laplace_curve(sensitivity, scale).value_at(order), discrete(p, q, order), 1e-8)


def test_exponential_mechanism_published() -> None:
    """The curve tends to 0.123301561 at order 1 for ε = 1, and is at most αε²/8."""
    curve = rdp.exponential_curve(Fraction(1))
    slope = (curve.value_at(1.2) - curve.value_at(1.1)) / 0.1
    assert curve.value_at(1.1) - 0.1 * slope == pytest.approx(0.123301561, abs=1e-8)
    assert all(curve.value_at(order) <= order / 8 for order in ORDERS)
    hundred = rdp.exponential_curve(Fraction(1, 10)).repeat(100)
    assert hundred.epsilon(1e-6) == pytest.approx(2.4190851, rel=1e-4)


@given(st.floats(0.05, 4), st.floats(0.01, 0.99))
@settings(deadline=None, max_examples=60)
def test_exponential_curve_bounds_every_two_point_range(size: float, share: float) -> None:
    """Pairs with log-ratios t and t − ε are the extreme ones; none exceeds the curve, in either direction."""
    mp.mp.dps = 30
    e, t = mp.mpf(size), mp.mpf(share) * mp.mpf(size)
    q1 = (1 - mp.exp(t - e)) / (mp.exp(t) - mp.exp(t - e))
    q = [q1, 1 - q1]
    p = [q1 * mp.exp(t), (1 - q1) * mp.exp(t - e)]
    curve = rdp.exponential_curve(Fraction(size))
    for order in (1.1, 2.0, 8.0, 32.0):
        assert discrete(p, q, order) <= curve.value_at(order)
        assert discrete(q, p, order) <= curve.value_at(order)


@given(st.floats(0.001, 20))
@settings(deadline=None, max_examples=60)
def test_pure_curve_is_never_above_its_caps(size: float) -> None:
    curve = rdp.pure_curve(Fraction(size))
    for order in ORDERS:
        assert curve.value_at(order) <= min(size, order * size * size / 2) * (1 + 1e-12)


def test_gaussian_line_converts_as_published() -> None:
    """Gaussian σ = 100 a thousand times: 1.4716 at δ = 1e-6; the exact value is 1.3676."""
    curve = Renyi.linear(Fraction(1, 20000)).repeat(1000)
    assert curve.epsilon(1e-6) == pytest.approx(1.471656, abs=2e-5)
    assert Renyi.linear(Fraction(1, 2)).epsilon(1e-6) == pytest.approx(5.221540, abs=2e-5)
    assert curve.delta(curve.epsilon(1e-6)) == pytest.approx(1e-6, rel=1e-9)


def test_conversion_is_the_formula() -> None:
    one = Renyi((5.0,), (2 * rdp.SCALE,))
    expected = 2 + math.log(1 - 1 / 5) - math.log(1e-6 * 5) / 4
    assert one.epsilon(1e-6) == pytest.approx(expected, rel=1e-14)
    assert one.epsilon(1e-6) >= expected
    assert one.delta(expected) == pytest.approx(1e-6, rel=1e-12)
    assert one.epsilon(0.0) == math.inf
    assert one.delta(math.inf) == 0.0
    assert one.delta(0.0) == 1.0


def test_group_rule_takes_powers_of_two() -> None:
    """A group of 2 has 3·τ(2α) at order α ≥ 2; 3 counts as 4; a line stays above the tight quadratic rule."""
    line = Renyi.linear(Fraction(1, 10))
    pair = line.for_group(2)
    assert pair is not None
    assert pair.value_at(2.0) == pytest.approx(3 * line.value_at(4.0))
    assert line.for_group(1) is line
    assert line.for_group(3) == line.for_group(4)
    four = line.for_group(4)
    assert four is not None
    assert all(four.value_at(order) >= 16 * 0.1 * order for order in four.orders)
    assert min(four.orders) >= 2
    assert Renyi((3.0,), (1,)).for_group(2) is None
    assert Renyi((16.0,), (1,)).for_group(2) is None


def test_composition_keeps_shared_orders_only() -> None:
    one, two = Renyi((2.0, 4.0), (1, 2)), Renyi((4.0, 8.0), (10, 20))
    assert one.compose(two) == Renyi((4.0,), (12,))
    assert one.take_most(two) == Renyi((4.0,), (10,))


def test_orders_are_increasing_and_values_round_up() -> None:
    assert list(ORDERS) == sorted(set(ORDERS))
    assert min(ORDERS) > 1
    third = Renyi.linear(Fraction(1, 3))
    assert all(Fraction(v, rdp.SCALE) >= Fraction(o) / 3 for o, v in zip(third.orders, third.values))
    infinite = Renyi.of(lambda orders: np.full_like(orders, math.inf))
    assert infinite.epsilon(1e-6) > 1e18
    assert "τ(2)" in third.words()
    assert rdp.pure_curve(ln(3)).value_at(2.0) == pytest.approx(math.log(7 / 3), rel=1e-9)
