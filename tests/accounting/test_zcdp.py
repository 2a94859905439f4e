"""Zero-concentrated privacy: conversions against published values, and against the exact Gaussian."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting.gdp import GaussianNotion
from discreet.accounting.zcdp import ZeroConcentratedNotion, delta_of, epsilon_of, rho_for


def test_published_values_of_the_conversion() -> None:
    """The reference code of Canonne, Kamath and Steinke, and the regression values of a peer."""
    assert ZeroConcentratedNotion(Fraction(1, 40)).delta(1.0) == pytest.approx(1.3361319e-6, rel=1e-7)
    assert ZeroConcentratedNotion(Fraction(1, 40)).epsilon(1e-6) == pytest.approx(1.0140743, rel=1e-7)
    assert float(rho_for(1.0, 1e-6)) == pytest.approx(0.0243559704, rel=1e-8)
    assert ZeroConcentratedNotion(Fraction(1, 20)).delta(0.25) == pytest.approx(0.0817727531036956, rel=1e-10)
    assert delta_of(5e-30, 1e-13) == pytest.approx(2.619676329730346e-234, rel=1e-9)
    assert ZeroConcentratedNotion(Fraction(1, 2)).delta(0.0) == pytest.approx(0.5588356393474351, rel=1e-10)
    quarter = ZeroConcentratedNotion(Fraction(1, 32))  # Gaussian noise of scale 4
    assert quarter.epsilon(1e-3) == pytest.approx(0.6880024554878085, rel=1e-10)
    assert quarter.delta(0.0) == pytest.approx(0.1508457845622862, rel=1e-10)


def test_noise_for_one_at_a_millionth_through_the_divergence() -> None:
    assert math.sqrt(1 / (2 * float(rho_for(1.0, 1e-6)))) == pytest.approx(4.530877117, rel=1e-6)


@pytest.mark.parametrize(
    ("rho", "epsilon"), [("0.025", "1"), ("0.5", "0"), ("3", "7.5"), ("1e-9", "0.001"), ("40", "90")]
)
def test_result_is_just_above_the_formula_at_its_best_order(rho: str, epsilon: str) -> None:
    """High-precision minimisation of the same formula: ours is at or above it, by less than 1e-12 relative."""
    mp.mp.dps = 60
    r, e = mp.mpf(rho), mp.mpf(epsilon)

    def derivative(a: mp.mpf) -> mp.mpf:
        return (2 * a - 1) * r - e + mp.log1p(-1 / a)

    low, high = mp.mpf(1) + mp.mpf(10) ** -30, (e + 1) / (2 * r) + 2
    for _ in range(220):
        middle = (low + high) / 2
        low, high = (middle, high) if derivative(middle) < 0 else (low, middle)
    exact = mp.exp((low - 1) * (low * r - e) + low * mp.log1p(-1 / low)) / (low - 1)
    ours = delta_of(float(rho), float(epsilon))
    assert exact <= ours <= exact * (1 + mp.mpf(10) ** -11)


@given(st.floats(1e-6, 20), st.floats(1e-12, 0.5))
@settings(deadline=None, max_examples=60)
def test_never_below_the_exact_gaussian(rho: float, delta: float) -> None:
    """Gaussian noise with μ² = 2ρ is ρ-zCDP, and its exact ε is known."""
    exact = GaussianNotion(Fraction(rho) * 2).epsilon(delta)
    assert epsilon_of(rho, delta) >= exact * (1 - 1e-9)
    assert delta_of(rho, exact) >= delta * (1 - 1e-9) or exact == 0


@given(st.floats(1e-6, 20), st.floats(1e-12, 0.5))
@settings(deadline=None, max_examples=60)
def test_both_conversions_agree(rho: float, delta: float) -> None:
    epsilon = epsilon_of(rho, delta)
    if epsilon > 0:
        assert delta_of(rho, epsilon) == pytest.approx(delta, rel=1e-6)


def test_slack_is_taken_from_the_target() -> None:
    whole = ZeroConcentratedNotion(Fraction(1, 40), Fraction(1, 10**6))
    assert math.isinf(whole.epsilon(1e-6))
    assert whole.epsilon(2e-6) == pytest.approx(ZeroConcentratedNotion(Fraction(1, 40)).epsilon(1e-6), rel=1e-6)
    assert whole.epsilon(2e-6) >= ZeroConcentratedNotion(Fraction(1, 40)).epsilon(1e-6 + 2e-12)
    plain = ZeroConcentratedNotion(Fraction(1, 40)).delta(1.0)
    assert whole.delta(1.0) == pytest.approx(1e-6 + plain * (1 - 1e-6), rel=1e-9)


def test_group_rule_is_quadratic_and_unknown_with_slack() -> None:
    assert ZeroConcentratedNotion(Fraction(1, 3)).for_group(3) == ZeroConcentratedNotion(Fraction(3))
    assert ZeroConcentratedNotion(Fraction(1, 3), Fraction(1, 9)).for_group(2) is None
    assert ZeroConcentratedNotion(Fraction(1, 3), Fraction(1, 9)).for_group(1) == ZeroConcentratedNotion(
        Fraction(1, 3), Fraction(1, 9)
    )


def test_extremes_stay_sane() -> None:
    assert ZeroConcentratedNotion(Fraction(10) ** 400).epsilon(1e-6) == math.inf
    assert ZeroConcentratedNotion(Fraction(10) ** 400).delta(1.0) == 1.0
    assert ZeroConcentratedNotion(Fraction(1)).epsilon(0.0) == math.inf
    assert ZeroConcentratedNotion(Fraction(1)).delta(math.inf) == 0.0
    assert ZeroConcentratedNotion(Fraction(1), Fraction(2)).delta(1.0) == 1.0
    assert rho_for(1.0, 0.0) == 0
    assert ZeroConcentratedNotion(Fraction(1, 2), Fraction(1, 10)).words() == "ρ = 0.5, except with probability 0.1"
