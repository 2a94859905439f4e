"""RoundedGaussian: exact δ(ε) and divergences of the rounded law against the claim of the continuous one."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import events
from discreet.accounting.gdp import GaussianNotion
from discreet.entropy import SeededForTestsOnly
from discreet.errors import ParameterError
from discreet.exact import Interval, ln
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laws import RoundedGaussianLaw
from discreet.mechanisms.normal_tail import normal_tail, pi_interval
from discreet.mechanisms.rounded_gaussian import RoundedGaussian
from tests.mechanisms.exactly import Untouchable, hockey_stick


def exact_delta(noise: RoundedGaussian, epsilon: Fraction, shift: int) -> Interval:
    """δ(ε) of the rounded law by summing over outputs far into the tails."""
    reach = math.ceil(16 * noise.standard_error) + 2 * shift
    return hockey_stick(noise.probability, epsilon, shift, 0, range(-reach, reach + 1))


@pytest.mark.parametrize("sigma", [Fraction(1, 5), Fraction(1, 2), Fraction(1), Fraction(3), Fraction(15, 2)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)])
@pytest.mark.parametrize("shift", [1, 2])
def test_the_exact_delta_is_within_the_claim(sigma: Fraction, epsilon: Fraction, shift: int) -> None:
    """The rounded law tells no more than the continuous one, and nearly as much where the noise is wide."""
    noise = RoundedGaussian(sensitivity=shift, sigma=sigma)
    truth, claim = exact_delta(noise, epsilon, shift), Fraction(noise.privacy.delta(epsilon))
    assert truth.low <= claim
    if sigma > 1:
        assert claim <= truth.high * Fraction(11, 10) + Fraction(1, 10**9)


def test_vectors_need_no_dimension_and_keep_the_claim() -> None:
    """In two coordinates, every shift of the stated squared length is within the claim, by summing all outputs."""
    noise = RoundedGaussian(squared_sensitivity=5, sigma=2)
    outputs = list(product(range(-16, 17), repeat=2))
    claim = Fraction(noise.privacy.delta(1))
    for shift in ([1, 2], [2, -1], [2, 0], [1, 1]):
        assert hockey_stick(noise.probability, Fraction(1), shift, [0, 0], outputs).low <= claim
    # Negative control: half the noise is above the claim.
    half = RoundedGaussian(squared_sensitivity=5, sigma=1)
    assert hockey_stick(half.probability, Fraction(1), [1, 2], [0, 0], outputs).low > claim
    assert np.asarray(noise.release([1, 2, 3])).shape == (3,)


def test_half_the_noise_at_the_same_claim_is_caught() -> None:
    """Negative control: the exact δ of half the σ is above the claim for the whole σ."""
    claimed, drawn = RoundedGaussian(sensitivity=1, sigma=4), RoundedGaussian(sensitivity=1, sigma=2)
    claim = Fraction(claimed.privacy.delta(1))
    assert exact_delta(drawn, Fraction(1), 1).low > claim >= exact_delta(claimed, Fraction(1), 1).low


@pytest.mark.parametrize("order", [2, 3, 8])
@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(1), Fraction(5)])
def test_renyi_divergence_is_within_rho(order: int, variance: Fraction) -> None:
    noise = RoundedGaussian(sensitivity=1, variance=variance)
    reach, total = math.ceil(14 * noise.standard_error) + order, 0.0
    for z in range(-reach, reach + 1):
        p, q = noise.probability(z, 1), noise.probability(z, 0)
        total += float((p / q).low) ** (order - 1) * float(p)
    assert noise.rho is not None
    assert math.log(total) / (order - 1) <= order * float(noise.rho) * (1 + 1e-9)


def test_all_forms_say_the_same() -> None:
    """μ = Δ/σ and ρ = μ²/2, as exact rationals, whichever way the noise is given."""
    by_mu = RoundedGaussian(sensitivity=3, mu=0.5)
    assert by_mu.variance == 36
    assert (
        by_mu == RoundedGaussian(squared_sensitivity=9, rho=Fraction(1, 8)) == RoundedGaussian(sensitivity=3, sigma=6)
    )
    assert by_mu.event == events.RoundedGaussian(squared_sensitivity=9, variance=36)
    assert by_mu.privacy.notion("gdp") == GaussianNotion(Fraction(1, 4))
    root = RoundedGaussian(squared_sensitivity=2, variance=1)
    assert Fraction(root.mu or 0) ** 2 >= 2
    assert RoundedGaussian(squared_sensitivity=3, variance=1, dimension=1).event.squared_sensitivity == 1


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1, 1e-5), (0.1, 1e-6), (8, 1e-6), (1, 1e-9), (ln(3), 1e-4), (1, 1e-300)]
)
def test_calibration_is_the_analytic_optimum(epsilon: Any, delta: float) -> None:
    noise = RoundedGaussian(squared_sensitivity=2, epsilon=epsilon, delta=delta)
    assert noise.privacy.delta(epsilon) <= delta
    best = Gaussian.analytic_sigma(epsilon=epsilon, delta=delta) * math.sqrt(2)
    assert math.sqrt(float(noise.variance or 0)) == pytest.approx(best, rel=1e-9)
    less = RoundedGaussian(squared_sensitivity=2, variance=Fraction(noise.variance or 0) * Fraction(99, 100))
    assert less.privacy.notion("gdp").delta(float(epsilon)) > delta


def test_the_probabilities_are_differences_of_the_normal_law() -> None:
    """Against an independent library, to 40 digits, from narrow to wide noise and far into the tails."""
    with mpmath.workdps(120):
        for variance in (Fraction(1, 50), Fraction(1, 4), Fraction(1), Fraction(200, 7), Fraction(10**40)):
            law = RoundedGaussianLaw(variance)
            sigma = mpmath.sqrt(mpmath.mpf(variance.numerator) / variance.denominator)
            for z in {0, 1, -1, 2, int(sigma), 7 * int(sigma) + 1}:
                ends = [mpmath.mpf(-2 * abs(z) + half) / (2 * sigma) for half in (1, -1)]
                truth = mpmath.ncdf(ends[0]) - mpmath.ncdf(ends[1])
                found = law.probability(z)
                low, high = (mpmath.mpf(end.numerator) / end.denominator for end in (found.low, found.high))
                assert low <= truth <= high, (variance, z)
                assert high - low <= truth * mpmath.mpf(10) ** -40, (variance, z)


@given(st.fractions(0, 2000))
@settings(deadline=None, max_examples=60)
def test_the_normal_tail_is_enclosed(squared: Fraction) -> None:
    with mpmath.workdps(120):
        truth = mpmath.erfc(mpmath.sqrt(mpmath.mpf(squared.numerator) / squared.denominator / 2)) / 2
        found = normal_tail(squared)
        low, high = (mpmath.mpf(end.numerator) / end.denominator for end in (found.low, found.high))
        assert low <= truth <= high
        assert high - low <= truth * mpmath.mpf(2) ** -150
    assert normal_tail(squared, 300).low >= found.low
    assert normal_tail(squared, 300).high <= found.high


def test_pi_and_what_lies_beyond_all_tails() -> None:
    with mpmath.workdps(200):
        for bits in (20, 160, 600):
            pi = pi_interval(bits)
            low, high = (mpmath.mpf(end.numerator) / end.denominator for end in (pi.low, pi.high))
            assert low < mpmath.pi < high
            assert high - low <= mpmath.mpf(2) ** -bits
        far = normal_tail(Fraction(10**9))
        assert far.low == 0
        assert mpmath.mpf(2) ** -5900 > mpmath.exp(-4096)
        assert far.high == Fraction(1, 1 << 5900)


@given(st.fractions(Fraction(1, 20), 60), st.integers(0, 30))
@settings(deadline=None, max_examples=40)
def test_tail_is_the_sum_of_probabilities(variance: Fraction, t: int) -> None:
    noise = RoundedGaussian(sensitivity=1, variance=variance)
    within = Interval.of(0)
    for z in range(-t, t + 1):
        within = within + noise.probability(z, 0)
    rest, tail = Interval.of(1) - within, noise.tail(t)
    assert rest.low <= tail.high
    assert tail.low <= rest.high
    assert rest.high - rest.low < Fraction(1, 1 << 100)


@pytest.mark.parametrize("variance", [Fraction(1, 100), Fraction(6, 25), Fraction(1, 4), Fraction(1), Fraction(30)])
def test_the_standard_error_covers_the_variance_of_the_rounded_law(variance: Fraction) -> None:
    """At or above the true one, and tight: σ² + 1/12 but for what wide noise does not show."""
    noise = RoundedGaussian(sensitivity=1, variance=variance)
    truth = math.sqrt(sum(2 * z * z * float(noise.probability(z, 0)) for z in range(1, 100)))
    assert truth * (1 - 1e-12) <= noise.standard_error <= truth * 1.02


@given(st.fractions(Fraction(1, 10), 200), st.sampled_from([0.3, 0.05, 1e-6]), st.sampled_from([1, 7, 10_000]))
@settings(deadline=None, max_examples=30)
def test_error_holds_for_the_rounded_law(variance: Fraction, beta: float, of: int) -> None:
    """P(some noise beyond the error) ≤ β, and one step below the noise bound it is not."""
    noise = RoundedGaussian(sensitivity=1, variance=variance)
    for bound in (noise.error(beta, of), noise.noise_bound(beta, of)):
        assert of * math.log1p(-float(noise.tail(Fraction(bound)).high)) >= math.log1p(-beta) * (1 + 1e-9)
    exact = int(noise.noise_bound(beta, of))
    assert exact <= noise.error(beta, of)
    if exact:
        assert of * math.log1p(-float(noise.tail(exact - 1).low)) < math.log1p(-beta) * (1 - 1e-9)


def test_releases_keep_kind_and_shape() -> None:
    """An int gives an int, an array an int64 array, reals floats on the grid; vectors of reals need their dimension."""
    source = SeededForTestsOnly(1)
    whole = RoundedGaussian(sensitivity=1, rho=0.5)
    assert isinstance(whole.release(5, source=source), int)
    assert np.asarray(whole.release([[1, 2], [3, 4]], source=source)).shape == (2, 2)
    real = RoundedGaussian(sensitivity=0.5, mu=1, resolution=0.25, dimension=2)
    assert real.event.squared_sensitivity == 3 + 2 * 2 + 2  # as for Gaussian: T² = 4: N = 3, Σn ≤ √6
    released = np.asarray(real.release([0.3, 0.6], source=source))
    assert np.all(released * 4 == np.rint(released * 4))
    with pytest.raises(ParameterError, match="dimension"):
        RoundedGaussian(sensitivity=0.5, mu=1, resolution=0.25).release([0.3, 0.6], source=Untouchable())


BAD: list[tuple[str, dict[str, Any]]] = [
    ("mu", {}),
    ("mu", {"mu": 0}),
    ("mu", {"mu": float("nan")}),
    ("mu", {"mu": Fraction(1, 10**400)}),
    ("mu and rho", {"rho": 1, "mu": 1}),
    ("epsilon and delta", {"epsilon": 1}),
    ("delta", {"epsilon": 1, "delta": 0}),
    ("delta", {"epsilon": 1, "delta": Fraction(1, 10**400)}),
    ("sigma", {"sigma": 1e-6}),
    ("sensitivity", {"mu": 1, "sensitivity": 1.4142135623730951}),
]


@pytest.mark.parametrize(("name", "given"), BAD)
def test_bad_parameters_are_named(name: str, given: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=name) as caught:
        RoundedGaussian(**{"sensitivity": 1, **given})
    assert caught.value.fix


def test_bad_values_draw_nothing() -> None:
    for values in (0.5, [0.5], float("nan"), "x", None, True, [None]):
        with pytest.raises(ParameterError):
            RoundedGaussian(sensitivity=1, mu=1).release(values, source=Untouchable())
