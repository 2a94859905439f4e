"""Gaussian: the exact δ(ε) of the discrete law against the claim, calibration, errors, bad input."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import events
from discreet.entropy import SeededForTestsOnly
from discreet.errors import ParameterError
from discreet.exact import Interval, ln
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laws import DiscreteGaussianLaw
from tests.mechanisms.exactly import Untouchable, hockey_stick


def exact_delta(gaussian: Gaussian, epsilon: Fraction, shift: int) -> Interval:
    """δ(ε) of the discrete law by summing over outputs far into the tails."""
    reach = math.ceil(16 * gaussian.standard_error) + 2 * shift
    return hockey_stick(gaussian.probability, epsilon, shift, 0, range(-reach, reach + 1))


@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(1), Fraction(3), Fraction(15, 2)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)])
@pytest.mark.parametrize("shift", [1, 2])
def test_the_claimed_delta_is_the_exact_one(sigma: Fraction, epsilon: Fraction, shift: int) -> None:
    """For one coordinate the claim is at least the exact δ(ε) of the discrete law, and tight to 10^-6."""
    gaussian = Gaussian(sensitivity=shift, sigma=sigma)
    truth, claim = exact_delta(gaussian, epsilon, shift), Fraction(gaussian.privacy.delta(epsilon))
    assert truth.low <= claim
    assert claim <= truth.high * Fraction(1_000_001, 1_000_000) + Fraction(1, 10**18)


def test_half_the_noise_at_the_same_claim_is_caught() -> None:
    """Negative control: the exact δ of half the σ is above the claim for the whole σ."""
    claimed, drawn = Gaussian(sensitivity=1, sigma=4), Gaussian(sensitivity=1, sigma=2)
    claim = Fraction(claimed.privacy.delta(1))
    assert exact_delta(drawn, Fraction(1), 1).low > claim >= exact_delta(claimed, Fraction(1), 1).low


def test_the_continuous_formula_would_be_wrong() -> None:
    """At σ = 1 the discrete law needs δ = 0.14135 where the continuous formula says 0.12694 (CKS20)."""
    assert Gaussian(sensitivity=1, sigma=1).privacy.delta(1) == pytest.approx(0.141351339406, rel=1e-6)
    assert Gaussian(sensitivity=1, sigma=0.5).privacy.delta(1) == pytest.approx(0.60320, rel=1e-4)


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-5), (0.1, 1e-6), (8, 1e-6), (1, 1e-9), (ln(3), 1e-4)])
def test_calibration_keeps_its_delta_and_is_tight(epsilon: Any, delta: float) -> None:
    """The calibrated variance keeps δ, 1 % less would not, and σ is near the continuous optimum where σ is large."""
    gaussian = Gaussian(sensitivity=1, epsilon=epsilon, delta=delta)
    assert gaussian.privacy.delta(epsilon) <= delta
    assert gaussian.variance is not None
    less = Gaussian(sensitivity=1, variance=Fraction(gaussian.variance) * Fraction(99, 100))
    assert less.privacy.delta(epsilon) > delta
    continuous = Gaussian.analytic_sigma(epsilon=epsilon, delta=delta)
    if continuous > 2:
        assert gaussian.standard_error == pytest.approx(continuous, rel=0.02)


def test_vectors_are_calibrated_through_concentrated_privacy() -> None:
    """With several coordinates δ comes from ρ: sound, and dearer than the scalar value."""
    vector = Gaussian(squared_sensitivity=2, dimension=2, epsilon=1, delta=1e-6)
    assert vector.event.dimension == 2
    assert vector.privacy.delta(1) <= 1e-6
    outputs = list(product(range(-8, 9), repeat=2))
    small = Gaussian(squared_sensitivity=2, dimension=2, sigma=1)
    truth = hockey_stick(small.probability, Fraction(1), [1, 1], [0, 0], outputs)
    assert truth.low <= Fraction(small.privacy.delta(1))


def test_rho_is_exact() -> None:
    """ρ = Δ²/(2σ²), as exact rationals, whichever way it is said."""
    by_rho = Gaussian(sensitivity=3, rho=0.1)
    assert by_rho.variance == 45
    assert by_rho == Gaussian(squared_sensitivity=9, variance=45)
    assert by_rho.event == events.DiscreteGaussian(squared_sensitivity=9, variance=45)
    assert by_rho.privacy.notion("zcdp").words() == "ρ = 0.1"


@pytest.mark.parametrize("order", [2, 3, 8])
@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(1), Fraction(5)])
def test_renyi_divergence_is_within_rho(order: int, variance: Fraction) -> None:
    """The exact Rényi divergence of the discrete law is at most α·ρ, at whole orders."""
    gaussian = Gaussian(sensitivity=1, variance=variance)
    reach = math.ceil(20 * gaussian.standard_error) + order
    total = 0.0
    for z in range(-reach, reach + 1):
        p, q = gaussian.probability(z, 1), gaussian.probability(z, 0)
        total += float((p / q).low) ** (order - 1) * float(p)
    assert gaussian.rho is not None
    assert math.log(total) / (order - 1) <= order * float(gaussian.rho) * (1 + 1e-9)


@given(st.fractions(Fraction(1, 20), 60), st.integers(0, 30))
@settings(deadline=None, max_examples=40)
def test_tail_is_the_sum_of_probabilities(variance: Fraction, t: int) -> None:
    """The tail by recurrence is one minus the probabilities within, to 2^-100."""
    gaussian = Gaussian(sensitivity=1, variance=variance)
    within = Interval.of(0)
    for z in range(-t, t + 1):
        within = within + gaussian.probability(z, 0)
    rest, tail = Interval.of(1) - within, gaussian.tail(t)
    assert rest.low <= tail.high
    assert tail.low <= rest.high
    assert tail.high - tail.low < Fraction(1, 1 << 100)


def test_normaliser_against_a_plain_sum() -> None:
    """Both ways to the normaliser agree with a direct float sum, and with the published value at σ² = 1."""
    for variance in (Fraction(1, 30), Fraction(1, 4), Fraction(1), Fraction(7, 3), Fraction(400)):
        plain = sum(math.exp(-z * z / (2 * float(variance))) for z in range(-900, 901))
        normaliser = DiscreteGaussianLaw(variance).normaliser
        assert float(normaliser) == pytest.approx(plain, rel=1e-13)
        assert normaliser.high - normaliser.low < Fraction(1, 1 << 100)
    assert float(DiscreteGaussianLaw(Fraction(1)).normaliser) == pytest.approx(2.506628288043, abs=1e-12)


def test_far_and_wide_tails_are_bracketed() -> None:
    """Above the summed range the tail lies between two normal tails; both sides agree where both can be had."""
    law = DiscreteGaussianLaw(Fraction(600**2))
    tail = law.tail(1500)
    probabilities = 1 - float(law.probability(0)) - 2 * sum(float(law.probability(z)) for z in range(1, 1500))
    assert float(tail.low) <= probabilities <= float(tail.high)
    assert float(tail.high - tail.low) < 0.01 * float(tail.low)


@given(st.fractions(Fraction(1, 10), 200), st.sampled_from([0.3, 0.05, 1e-6]), st.sampled_from([1, 7, 10_000]))
@settings(deadline=None, max_examples=40)
def test_error_holds_for_the_discrete_law(variance: Fraction, beta: float, of: int) -> None:
    """P(some noise beyond the error) ≤ β, and one step below the noise bound it is not."""
    gaussian = Gaussian(sensitivity=1, variance=variance)
    for bound in (gaussian.error(beta, of), gaussian.noise_bound(beta, of)):
        assert of * math.log1p(-float(gaussian.tail(Fraction(bound)).high)) >= math.log1p(-beta) * (1 + 1e-9)
    exact = int(gaussian.noise_bound(beta, of))
    assert exact <= gaussian.error(beta, of)
    if exact:
        assert of * math.log1p(-float(gaussian.tail(exact - 1).low)) < math.log1p(-beta) * (1 - 1e-9)


def test_sampled_noise_follows_the_probabilities() -> None:
    """A fixed-seed chi-square against the exact law passes, and against a law 5 % wider does not."""
    from scipy.stats import chisquare

    gaussian, wider = Gaussian(sensitivity=1, sigma=2), Gaussian(sensitivity=1, sigma=2.1)
    noise = np.asarray(gaussian.release(np.zeros(200_000, dtype=np.int64), source=SeededForTestsOnly(11)))
    counts = [int(np.count_nonzero(noise == z)) for z in range(-8, 9)]
    counts.append(noise.size - sum(counts))

    def p_value(law: Gaussian) -> float:
        chances = [float(law.probability(z, 0)) for z in range(-8, 9)]
        return float(chisquare(counts, np.array([*chances, 1 - sum(chances)]) * noise.size).pvalue)

    assert p_value(gaussian) > 1e-6
    assert p_value(wider) < 1e-9


def test_releases_keep_kind_and_shape() -> None:
    """An int gives an int, an array an int64 array, reals floats on the grid."""
    source = SeededForTestsOnly(1)
    whole = Gaussian(sensitivity=1, rho=0.5)
    assert isinstance(whole.release(5, source=source), int)
    assert np.asarray(whole.release([[1, 2], [3, 4]], source=source)).shape == (2, 2)
    real = Gaussian(sensitivity=0.5, rho=0.5, resolution=0.25, dimension=2)
    assert real.event.squared_sensitivity == 3 + 2 * 2 + 2  # T² = 4: N = 3, Σn ≤ √6
    released = np.asarray(real.release([0.3, 0.6], source=source))
    assert np.all(released * 4 == np.rint(released * 4))


def test_vectors_need_their_dimension_unless_one_step_moves_one_coordinate() -> None:
    """A vector whose units may change several coordinates is refused until that is said."""
    with pytest.raises(ParameterError, match="dimension"):
        Gaussian(sensitivity=2, rho=0.5).release([1, 2], source=Untouchable())
    with pytest.raises(ParameterError, match="dimension"):
        Gaussian(squared_sensitivity=2, rho=0.5).release([1, 2], source=Untouchable())
    assert np.asarray(Gaussian(sensitivity=1, rho=0.5).release([1, 2])).shape == (2,)
    assert Gaussian(sensitivity=1, rho=0.5, dimension=5).event.dimension == 1


def test_the_classical_formula_is_for_comparison_and_refuses_large_epsilon() -> None:
    """√(2·ln(1.25/δ))/ε is 4.845 at (1, 1e-5), where 3.731 suffices; above ε = 1 it is refused."""
    classical = Gaussian.classical(epsilon=1, delta=1e-5)
    assert classical.standard_error == pytest.approx(math.sqrt(2 * math.log(1.25e5)), rel=1e-12)
    assert classical.privacy.delta(1) < 1e-5
    with pytest.raises(ParameterError, match="epsilon"):
        Gaussian.classical(epsilon=1.01, delta=1e-5)
    with pytest.raises(ParameterError, match="epsilon"):
        Gaussian.classical(epsilon=ln(3), delta=1e-5)
    # Erratum 6: at ε = 10, δ = 0.01 the formula's noise really costs δ = 0.041.
    sigma = math.sqrt(2 * math.log(1.25 / 0.01)) / 10
    from discreet.accounting.gdp import delta_of

    assert delta_of(1 / sigma, 10) == pytest.approx(0.041, abs=0.001)


BAD: list[tuple[str, dict[str, Any]]] = [
    ("rho", {}),
    ("rho", {"rho": 0}),
    ("rho", {"rho": float("nan")}),
    ("epsilon and delta", {"epsilon": 1}),
    ("epsilon and delta", {"delta": 1e-6}),
    ("epsilon", {"epsilon": 0, "delta": 1e-6}),
    ("delta", {"epsilon": 1, "delta": 0}),
    ("delta", {"epsilon": 1, "delta": 1}),
    ("delta", {"epsilon": 1, "delta": Fraction(1, 10**400)}),
    ("sigma", {"sigma": 1e-6}),
    ("rho", {"rho": Fraction(1, 10**400)}),
    ("delta", {"epsilon": 1, "delta": float("nan")}),
    ("rho and sigma", {"rho": 1, "sigma": 1}),
    ("sigma", {"sigma": -1}),
    ("variance", {"variance": float("inf")}),
    ("sensitivity", {"rho": 1, "sensitivity": 0}),
    ("sensitivity", {"rho": 1, "sensitivity": 1.4142135623730951}),
    ("sensitivity", {"rho": 1, "sensitivity": None}),
    ("sensitivity and squared_sensitivity", {"rho": 1, "squared_sensitivity": 1}),
    ("resolution", {"rho": 1, "resolution": -1}),
    ("dimension", {"rho": 1, "dimension": 0}),
]


@pytest.mark.parametrize(("name", "given"), BAD)
def test_bad_parameters_are_named(name: str, given: dict[str, Any]) -> None:
    """Each bad parameter is refused by name, with a fix."""
    with pytest.raises(ParameterError, match=name) as caught:
        Gaussian(**{"sensitivity": 1, **given})
    assert caught.value.fix


def test_bad_values_draw_nothing() -> None:
    """Values of the wrong kind are refused before anything is drawn."""
    for values in (0.5, [0.5], float("nan"), "x", None, True, [None]):
        with pytest.raises(ParameterError):
            Gaussian(sensitivity=1, rho=1).release(values, source=Untouchable())
