"""Calibration: plans meet their budgets, just; errors cost what the exact laws say."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import calibrate, compose, cost_of_error, events
from discreet.accounting.calibrate import round_up, scale_event
from discreet.accounting.pure import PureNotion
from discreet.errors import ParameterError, UnknownLoss
from discreet.exact import ln
from discreet.privacy import Budget


def number(event: events.Event, name: str) -> float:
    return float(getattr(event, name))


def test_seven_queries_at_a_pure_total_are_exact() -> None:
    plan = [events.Laplace(sensitivity=1, scale=1)] * 7
    found = calibrate(plan, Budget(epsilon=1))
    assert found == (events.Laplace(sensitivity=1, scale=7),) * 7
    assert compose(found).epsilon() == 1.0


def test_seven_queries_at_one_and_a_millionth() -> None:
    found = calibrate([events.Laplace(sensitivity=1, scale=1)] * 7, Budget(epsilon=1, delta=1e-6))
    assert 0.99999 <= compose(found).epsilon(1e-6) <= 1
    assert 6.9 < number(found[0], "scale") < 7


@pytest.mark.parametrize(
    ("epsilon", "delta", "sigma"),
    [(1, 1e-5, 3.7306316), (1, 1e-6, 4.2246789), (0.1, 1e-6, 36.3046904), (8, 1e-6, 0.6529354)],
)
def test_gaussian_noise_published(epsilon: float, delta: float, sigma: float) -> None:
    [found] = calibrate([events.Gaussian(sensitivity=1, sigma=1)], Budget(epsilon=epsilon, delta=delta))
    assert sigma * (1 - 1e-7) <= number(found, "sigma") <= sigma * (1 + 2e-6)


def test_laplace_noise_published() -> None:
    """(1, 1e-4): 13.6 for 20 queries; (3, 0) with sensitivity 21 and 10 queries: 70."""
    [twenty] = calibrate([events.Laplace(sensitivity=1, scale=1, count=20)], Budget(epsilon=1, delta=1e-4))
    assert number(twenty, "scale") == pytest.approx(13.6, abs=0.1)
    [ten] = calibrate([events.Laplace(sensitivity=21, scale=1, count=10)], Budget(epsilon=3))
    assert number(ten, "scale") == 70
    [discrete] = calibrate([events.DiscreteLaplace(sensitivity=1, scale=1, count=20)], Budget(epsilon=1, delta=1e-4))
    assert 1 / number(discrete, "scale") == pytest.approx(0.073, abs=1e-3)


def test_sampled_gaussian_noise_published() -> None:
    """(1, 1e-5) with q = 0.01: 0.67379 for one query."""
    template = events.PoissonSampled(event=events.Gaussian(sensitivity=1, sigma=1), rate=0.01)
    [found] = calibrate([template], Budget(epsilon=1, delta=1e-5))
    assert isinstance(found, events.PoissonSampled)
    assert number(found.event, "sigma") == pytest.approx(0.67379294682, rel=1e-3)
    assert compose([found]).epsilon(1e-5) <= 1


def test_weights_divide_the_noise() -> None:
    found = calibrate([events.Gaussian(sensitivity=1, sigma=1)] * 3, Budget(rho=0.1), weights=[1, 2, 4])
    one, two, four = (number(event, "sigma") for event in found)
    assert one == pytest.approx(2 * two) == pytest.approx(4 * four)
    assert 0.0999999 < sum(0.5 / s**2 for s in (one, two, four)) <= 0.1
    laplace = calibrate([events.Laplace(sensitivity=1, scale=1)] * 2, Budget(epsilon=3), weights=[1, 2])
    assert [number(event, "scale") for event in laplace] == [1, 0.5]


def test_mixed_plans_meet_every_kind_of_budget() -> None:
    plan = [
        events.Gaussian(sensitivity=1, sigma=1),
        events.DiscreteGaussian(squared_sensitivity=4, variance=1),
        events.RoundedGaussian(squared_sensitivity=4, variance=1),
        events.Exponential(epsilon=ln(3)),
        events.RandomizedResponse(epsilon=1),
        events.DiscreteLaplace(sensitivity=2, scale=1),
    ]
    for budget in (Budget(epsilon=1, delta=1e-6), Budget(rho=0.01)):
        account = compose(calibrate(plan, budget))
        if budget.notion == "approx":
            assert 0.999 < account.epsilon(1e-6) <= 1
        else:
            assert account.loss.notion("zcdp").epsilon(1e-6) < 1
    [mu] = calibrate([events.Gaussian(sensitivity=3, sigma=1)], Budget(mu=0.5))
    assert number(mu, "sigma") == 6
    [rho] = calibrate([events.ZeroConcentrated(rho=4)], Budget(rho=1))
    assert rho == events.ZeroConcentrated(rho=1)
    [coin] = calibrate([events.RandomizedResponse(epsilon=ln(3))], Budget(epsilon=ln(3)))
    assert coin == events.RandomizedResponse(epsilon=ln(3))
    [sampled] = calibrate([events.PoissonSampled(event=events.Pure(epsilon=1), rate=0.1)], Budget(epsilon=0.5))
    assert 0.49999 < compose([sampled]).epsilon() <= 0.5


@given(
    st.lists(st.fractions(Fraction(1, 20), 5, max_denominator=20), min_size=1, max_size=4),
    st.fractions(Fraction(1, 20), 5, max_denominator=20),
)
@settings(deadline=None, max_examples=40)
def test_pure_calibration_is_exact(sizes: list[Fraction], epsilon: Fraction) -> None:
    found = calibrate([events.Pure(epsilon=size) for size in sizes], Budget(epsilon=epsilon))
    assert compose(found).loss.notion("pure") == PureNotion(epsilon)


@given(st.fractions(Fraction(1, 10), 4, max_denominator=50), st.sampled_from([1e-9, 1e-6, 1e-3]), st.integers(1, 30))
@settings(deadline=None, max_examples=15)
def test_answers_are_on_the_safe_side_and_near_the_limit(epsilon: Fraction, delta: float, count: int) -> None:
    [found] = calibrate([events.Gaussian(sensitivity=1, sigma=3, count=count)], Budget(epsilon=epsilon, delta=delta))
    reached = compose([found]).epsilon(delta)
    assert float(epsilon) * 0.9999 < reached <= epsilon


def test_impossible_and_bad_plans_are_refused() -> None:
    with pytest.raises(UnknownLoss, match="No amount of noise"):
        calibrate([events.Approximate(epsilon=1, delta=1e-3)], Budget(epsilon=1, delta=1e-6))
    with pytest.raises(UnknownLoss):
        calibrate([events.Gaussian(sensitivity=1, sigma=1)], Budget(epsilon=1))
    with pytest.raises(ParameterError, match="events"):
        calibrate([], Budget(epsilon=1))
    with pytest.raises(ParameterError, match="budget"):
        calibrate([events.Pure(epsilon=1)], 1)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(ParameterError, match="weights"):
        calibrate([events.Pure(epsilon=1)], Budget(epsilon=1), weights=[1, 2])
    with pytest.raises(ParameterError, match="weights"):
        calibrate([events.Pure(epsilon=1)], Budget(epsilon=1), weights=[0])


def test_scaling_by_one_changes_nothing() -> None:
    coin = events.RandomizedResponse(epsilon=ln(3))
    assert scale_event(coin, Fraction(1)) is coin
    with pytest.raises(UnknownLoss):
        scale_event(events.Event(), Fraction(2))


def test_rounding_goes_up() -> None:
    assert round_up(Fraction(1, 3)) >= Fraction(1, 3)
    assert round_up(Fraction(2, 3) * 10**30, 3) == 667 * 10**27


def test_ten_thousand_first_names() -> None:
    """10,000 counts, none off by more than 12.2 with 95 %: that costs ε = 1, by the exact law a hair less."""
    found = cost_of_error(events.Laplace, math.log(10_000 / 0.05), of=10_000)
    assert 1 / number(found, "scale") == pytest.approx(1, abs=0.003)
    assert 1 / number(found, "scale") < 1


@pytest.mark.parametrize("of", [1, 100])
@pytest.mark.parametrize("beta", [0.05, 1e-6])
def test_errors_hold_just(of: int, beta: float) -> None:
    """The exact tail at the found noise is within what is allowed, and a little more noise is not."""
    each = -math.expm1(math.log1p(-beta) / of)
    laplace = number(cost_of_error(events.Laplace, 10, beta=beta, of=of), "scale")
    assert math.exp(-10 / laplace) <= each < math.exp(-10 / (laplace * 1.0001))
    sigma = number(cost_of_error(events.Gaussian, 10, beta=beta, of=of), "sigma")
    assert math.erfc(10 / sigma / math.sqrt(2)) <= each < math.erfc(10 / (sigma * 1.0001) / math.sqrt(2))
    x = np.arange(-3000, 3001)

    def tail(weights: np.ndarray[tuple[int], np.dtype[np.float64]], most: int) -> float:
        return float(weights[np.abs(x) > most].sum() / weights.sum())

    scale = number(cost_of_error(events.DiscreteLaplace, 10.7, beta=beta, of=of), "scale")
    assert tail(np.exp(-np.abs(x) / scale), 10) <= each * (1 + 1e-9)
    assert tail(np.exp(-np.abs(x) / (scale * 1.001)), 10) > each
    variance = number(cost_of_error(events.DiscreteGaussian, 10, beta=beta, of=of), "variance")
    assert tail(np.exp(-(x**2) / (2 * variance)), 10) <= each * (1 + 1e-9)
    assert tail(np.exp(-(x**2) / (2 * variance * 1.001)), 10) > each
    deviation = math.sqrt(number(cost_of_error(events.RoundedGaussian, 10.9, beta=beta, of=of), "variance"))
    assert math.erfc(10.5 / deviation / math.sqrt(2)) <= each < math.erfc(10.5 / (deviation * 1.0001) / math.sqrt(2))


def test_errors_on_large_scales_use_the_bound() -> None:
    found = cost_of_error(events.DiscreteGaussian, 10**6, sensitivity=2)
    assert math.sqrt(number(found, "variance")) == pytest.approx(10**6 / 1.959964, rel=1e-4)
    assert isinstance(found, events.DiscreteGaussian)
    assert found.squared_sensitivity == 4
    unit = cost_of_error(events.Laplace, 5, unit="patient", neighbours="replace")
    assert "one patient" in repr(unit)


def test_bad_errors_are_refused() -> None:
    with pytest.raises(ParameterError, match="kind"):
        cost_of_error(events.Pure, 5)
    for error in (0, -1, float("nan")):
        with pytest.raises(ParameterError, match="error"):
            cost_of_error(events.Laplace, error)
    for beta in (0, 1, 2):
        with pytest.raises(ParameterError, match="beta"):
            cost_of_error(events.Laplace, 5, beta=beta)
    with pytest.raises(ParameterError, match="of"):
        cost_of_error(events.Laplace, 5, of=0)
    with pytest.raises(ParameterError, match="sensitivity"):
        cost_of_error(events.DiscreteGaussian, 5, sensitivity=Fraction(1, 2))
    with pytest.raises(ParameterError, match="sensitivity"):
        cost_of_error(events.DiscreteLaplace, 5, sensitivity=1.5)
