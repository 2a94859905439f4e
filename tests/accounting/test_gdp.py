"""Gaussian privacy: the exact profile against published values and 50-digit arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from discreet.accounting.gdp import GaussianNotion, _erfcx, delta_of, mu_squared_of


def oracle(mu: float, epsilon: float) -> mp.mpf:
    """Balle and Wang's formula with many digits."""
    mp.mp.dps = 60
    m, e = mp.mpf(mu), mp.mpf(epsilon)
    return (mp.erfc((e / m - m / 2) / mp.sqrt(2)) - mp.exp(e) * mp.erfc((e / m + m / 2) / mp.sqrt(2))) / 2


@pytest.mark.parametrize(
    ("sigma", "sensitivity", "epsilon", "delta"),
    [
        ("10", "1", 0.1, 0.008751768145810),
        ("10", "5", math.log(3), 0.004159742234000802),
        ("1/2", "1", 0.0, 0.6826894921370859),
        ("500", "10", 0.5, 3.129776773173962e-141),
    ],
)
def test_published_values(sigma: str, sensitivity: str, epsilon: float, delta: float) -> None:
    mu = Fraction(sensitivity) / Fraction(sigma)
    assert GaussianNotion(mu**2).delta(epsilon) == pytest.approx(delta, rel=1e-10)


@pytest.mark.parametrize(
    ("epsilon", "delta", "sigma"),
    [(1, 1e-5, 3.7306316), (1, 1e-6, 4.2246789), (0.1, 1e-6, 36.3046904), (8, 1e-6, 0.6529354)],
)
def test_analytic_calibration(epsilon: float, delta: float, sigma: float) -> None:
    assert GaussianNotion(Fraction(1 / sigma) ** 2).epsilon(delta) == pytest.approx(epsilon, rel=1e-6)


def test_three_gaussians_compose_exactly() -> None:
    three = GaussianNotion(Fraction(1, 3)).repeat(3)
    assert (
        three == GaussianNotion(Fraction(1, 3)).compose(GaussianNotion(Fraction(2, 3))) == GaussianNotion(Fraction(1))
    )
    assert three.delta(1.0) == pytest.approx(0.126936, abs=1e-6)
    assert GaussianNotion(Fraction(1, 10**4)).repeat(1000).epsilon(1e-6) == pytest.approx(1.367571, abs=1e-6)
    assert three.epsilon(1e-6) == pytest.approx(4.886554, abs=1e-6)


@example(4.072851164085982, 162.91259023343466)  # a δ of 10^-316, where floats have few digits
@given(st.floats(1e-4, 60), st.floats(0, 200))
@settings(deadline=None, max_examples=300)
def test_profile_is_at_or_just_above_the_truth(mu: float, epsilon: float) -> None:
    """The result is never below the 60-digit value, and above it by at most 1e-9 relative."""
    exact, ours = oracle(mu, epsilon), delta_of(mu, epsilon)
    assert ours >= exact
    assert ours <= exact * (1 + mp.mpf(10) ** -9) + mp.mpf(10) ** -300


@given(st.floats(1e-3, 20), st.floats(1e-15, 0.4))
@settings(deadline=None, max_examples=80)
def test_epsilon_is_the_safe_inverse(mu: float, delta: float) -> None:
    epsilon = GaussianNotion(Fraction(mu) ** 2).epsilon(delta)
    exact_mu = math.sqrt(float(Fraction(mu) ** 2))
    assert oracle(exact_mu, epsilon) <= delta * (1 + 1e-12)
    if epsilon > 1e-9:
        assert oracle(exact_mu, epsilon * (1 - 1e-8)) > delta * (1 - 1e-9)


@pytest.mark.parametrize("x", [0.0, 0.1, 1.0, 7.3, 24.99, 25.01, 100.0, 1e8])
def test_scaled_tail_is_accurate(x: float) -> None:
    mp.mp.dps = 50
    exact = mp.exp(mp.mpf(x) ** 2) * mp.erfc(mp.mpf(x)) if x < 1e3 else 1 / (mp.mpf(x) * mp.sqrt(mp.pi))
    assert abs(_erfcx(x) / exact - 1) < 3e-15


def test_group_rule_and_extremes() -> None:
    assert GaussianNotion(Fraction(1, 4)).for_group(3) == GaussianNotion(Fraction(9, 4))
    assert GaussianNotion(Fraction(1)).epsilon(0.0) == math.inf
    assert delta_of(math.inf, 1.0) == 1.0
    assert delta_of(0.0, 0.0) == 0.0
    assert delta_of(1e-9, 1.0) <= 1e-300
    assert GaussianNotion(Fraction(1)).delta(math.inf) == 0.0
    assert GaussianNotion(Fraction(10) ** 700).delta(1.0) == 1.0
    assert GaussianNotion(Fraction(2)).words() == "μ = 1.41421"


@pytest.mark.parametrize("span", [1e-9, 1e-6, 1e-3, 0.1, 1.0, 1.99, 2.01, 7.0, 60.0, 1399.0, 1401.0])
def test_the_mu_of_bounded_ratios_covers_every_pair_on_two_points(span: float) -> None:
    """At or above Φ⁻¹(u) − Φ⁻¹(q) for all pairs whose logits are ``span`` apart, and hardly above the middle one."""
    mp.mp.dps = 400 if span > 50 else 40

    def quantile(logit: mp.mpf) -> mp.mpf:
        return mp.sqrt(2) * mp.erfinv(mp.tanh(logit / 2))

    found = mp.sqrt(mp.mpf(mu_squared_of(Fraction(span)).numerator) / mu_squared_of(Fraction(span)).denominator)
    exact = mp.mpf(span)
    if span <= 60:
        middle = 2 * quantile(exact / 2)
        assert middle <= found <= middle * (1 + mp.mpf(10) ** -9)
        for shift in (-0.9, -0.3, 0.2, 0.7):
            off = exact * shift
            assert quantile(exact / 2 + off) - quantile(off - exact / 2) <= found
    else:
        assert mp.erfc(found / (2 * mp.sqrt(2))) <= 2 / (1 + mp.exp(exact / 2))
        # Negative control: nine tenths of it do not cover the pair.
        assert mp.erfc(found * 0.9 / (2 * mp.sqrt(2))) > 2 / (1 + mp.exp(exact / 2))
