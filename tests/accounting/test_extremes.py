"""Extreme parameters: nothing overflows, warns, hangs or flatters."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from discreet.accounting import compose, events, loss_of
from discreet.accounting.rounding import exp_up, find_smallest, shorten, sum_up, to_float
from discreet.exact import ln

HUGE, TINY = Fraction(10) ** 400, Fraction(1, 10**400)

EXTREMES: list[events.Event] = [
    events.Laplace(sensitivity=HUGE, scale=1),
    events.Laplace(sensitivity=TINY, scale=1),
    events.Laplace(sensitivity=1, scale=1, count=1 << 62),
    events.DiscreteLaplace(sensitivity=1 << 62, scale=Fraction(1, 10**9)),
    events.DiscreteLaplace(sensitivity=1, scale=HUGE),
    events.Gaussian(sensitivity=HUGE, sigma=1),
    events.Gaussian(sensitivity=TINY, sigma=1),
    events.Gaussian(sensitivity=1, sigma=1, count=1 << 62),
    events.DiscreteGaussian(squared_sensitivity=1 << 124, variance=TINY, dimension=2),
    events.RandomizedResponse(epsilon=10_000, categories=2),
    events.RandomizedResponse(epsilon=TINY, categories=1 << 31),
    events.RandomizedResponse(epsilon=ln(3), count=1 << 62),
    events.Exponential(epsilon=10_000, count=1 << 40),
    events.Exponential(epsilon=TINY),
    events.Approximate(epsilon=TINY, delta=TINY, count=1 << 62),
    events.Approximate(epsilon=10_000, delta=Fraction(999, 1000)),
    events.ZeroConcentrated(rho=TINY),
    events.ZeroConcentrated(rho=HUGE, delta=TINY),
    events.PoissonSampled(event=events.Gaussian(sensitivity=HUGE, sigma=1), rate=0.5),
    events.PoissonSampled(event=events.Gaussian(sensitivity=1, sigma=1), rate=TINY),
    events.PoissonSampled(event=events.Gaussian(sensitivity=TINY, sigma=1), rate=0.5),
    events.PoissonSampled(event=events.Laplace(sensitivity=HUGE, scale=1), rate=0.5),
    events.PoissonSampled(event=events.Pure(epsilon=10_000), rate=TINY),
]


@pytest.mark.parametrize("event", EXTREMES, ids=lambda event: repr(event)[:60])
def test_every_quick_notion_answers(event: events.Event) -> None:
    for notion in loss_of(event).notions:
        if notion.kind == "pld":
            continue
        for delta in (0.0, 1e-300, 1e-6, 0.5):
            assert notion.epsilon(delta) >= 0
        for epsilon in (0.0, 1e-300, 1.0, 1e300):
            assert 0 <= notion.delta(epsilon) <= 1
        assert notion.words()


@pytest.mark.parametrize("event", EXTREMES, ids=lambda event: repr(event)[:60])
def test_the_tightest_answer_is_an_answer(event: events.Event) -> None:
    """Beyond the reach of floats there is no distribution, and the other notions answer."""
    account = compose([event])
    lower, upper = account.bounds(1e-6)
    assert 0 <= lower <= upper
    assert 0 <= account.delta(1) <= 1


def test_a_positive_loss_is_never_shown_as_none() -> None:
    """Parameters below the smallest float still count as something."""
    tiny = loss_of(events.ZeroConcentrated(rho=TINY))
    assert tiny.notion("zcdp").epsilon(1e-300) > 0
    assert loss_of(events.Laplace(sensitivity=TINY, scale=1)).epsilon() > 0
    assert compose([events.Laplace(sensitivity=HUGE, scale=1)]).epsilon(notion="pure") == math.inf


def test_directed_helpers() -> None:
    assert to_float(TINY) == 5e-324
    assert to_float(HUGE) == math.inf
    assert to_float(Fraction(0)) == 0.0
    assert sum_up(1.0, math.inf) == math.inf
    assert sum_up(1.0, -math.inf) == -math.inf
    assert sum_up(0.1, 0.2) > Fraction(3, 10)
    assert exp_up(1e9) == math.inf
    assert exp_up(-1e9) == 5e-324
    assert exp_up(1.0) > math.e
    long = Fraction(1, 3**400)
    assert 0 <= shorten(long) - long <= Fraction(1, 1 << 320)


def test_inverse_search_returns_tested_points_only() -> None:
    seen: list[float] = []

    def profile(epsilon: float) -> float:
        seen.append(epsilon)
        return math.exp(-epsilon)

    found = find_smallest(profile, 1e-5, 1.0)
    assert found in seen
    assert math.exp(-found) <= 1e-5
    assert found == pytest.approx(-math.log(1e-5), rel=1e-12)
    assert find_smallest(lambda _: 0.5, 0.1, 1.0) == math.inf
    assert find_smallest(lambda _: 0.0, 0.1, 1.0) == 0.0
