"""Poisson sampling: amplified pure losses, and the sampled Gaussian curve against many-digit integrals."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import events as ev
from discreet.accounting.account import loss_of
from discreet.accounting.amplification import amplify, sampled_gaussian_curve
from discreet.accounting.approximate import ApproximateNotion
from discreet.accounting.gdp import GaussianNotion
from discreet.accounting.pure import PureNotion
from discreet.accounting.rdp import Renyi
from discreet.accounting.zcdp import ZeroConcentratedNotion
from discreet.exact import ln, upper


def integral(mu: mp.mpf, q: mp.mpf, order: mp.mpf, *, swapped: bool = False) -> mp.mpf:
    """D_α of the mixture against N(0,1), or the other way round, with many digits on a grid finer than ours."""
    power = 1 - order if swapped else order

    def density(z: mp.mpf) -> mp.mpf:
        return mp.exp(-z * z / 2) * (1 - q + q * mp.exp(mu * z - mu**2 / 2)) ** power

    h = min(mp.mpf(1) / 4, 1 / (2 * mu))
    total = mp.fsum(density(i * h) for i in range(int(-16 / h), int((abs(power) * mu + 16) / h) + 1))
    return mp.log(total * h / mp.sqrt(2 * mp.pi)) / (order - 1)


@given(
    st.fractions(Fraction(1, 100), 20, max_denominator=100), st.fractions(Fraction(1, 1000), 1, max_denominator=1000)
)
@settings(deadline=None, max_examples=80)
def test_amplified_pure_loss_is_just_above_the_formula(epsilon: Fraction, rate: Fraction) -> None:
    mp.mp.dps = 60
    e, q = (mp.mpf(x.numerator) / x.denominator for x in (epsilon, rate))
    exact = mp.log1p(q * mp.expm1(e))
    ours = upper(amplify(epsilon, rate))
    value = mp.mpf(ours.numerator) / ours.denominator
    assert exact - mp.mpf(10) ** -55 <= value <= exact + mp.mpf(2) ** -120
    assert ours <= epsilon


def test_amplified_logarithms_stay_exact() -> None:
    assert amplify(ln(3), Fraction(1, 2)) == ln(2)
    assert amplify(ln(3), Fraction(1)) == ln(3)
    assert amplify(Fraction(0), Fraction(1, 2)) == 0


def test_three_sampled_laplace_published() -> None:
    """q = 0.2, scale 0.5, three times: pure ε 2.46964."""
    event = ev.PoissonSampled(event=ev.Laplace(sensitivity=1, scale=0.5), rate=0.2, count=3)
    assert loss_of(event).epsilon() == pytest.approx(2.46964, abs=1e-5)


def test_sampled_gaussian_published() -> None:
    """Whole orders as published; fractional ones at or below the published bounds."""
    event = ev.PoissonSampled(event=ev.Gaussian(sensitivity=1, sigma=2.5), rate=0.01, count=50)
    curve = loss_of(event).notion("rdp")
    assert isinstance(curve, Renyi)
    assert curve.value_at(5.0) == pytest.approx(2.18075656e-3, rel=1e-8)
    assert curve.value_at(50.0) == pytest.approx(2.38460375e-2, rel=1e-8)
    assert curve.value_at(1.5) <= 6.70579741e-4
    assert curve.value_at(2.5) <= 1.08548710e-3
    thousand = loss_of(ev.PoissonSampled(event=ev.Gaussian(sensitivity=1, sigma=1), rate=0.01, count=1000))
    assert thousand.epsilon(1e-6, notion="rdp") == pytest.approx(2.436694, abs=2e-4)


@pytest.mark.parametrize(
    ("mu", "rate", "order"),
    [
        ("2/5", "1/100", 1.5),
        ("2/5", "1/100", 2.5),
        ("1", "1/5", 1.1),
        ("1", "1/5", 10.5),
        ("3", "1/2", 3.3),
        ("1/10", "1/10000", 8.0),
        ("5", "1/1000", 2.0),
        ("1/100", "9/10", 32.0),
        ("12", "1/10", 1.5),
        ("20", "1/1000", 1.1),
    ],
)
def test_sampled_gaussian_is_just_above_the_integral(mu: str, rate: str, order: float) -> None:
    """Both directions of the divergence are below the curve, and the worse one touches it."""
    mp.mp.dps = 25
    m, q = (mp.mpf(Fraction(x).numerator) / Fraction(x).denominator for x in (mu, rate))
    ours = sampled_gaussian_curve(Fraction(mu) ** 2, Fraction(rate)).value_at(order)
    exact = integral(m, q, mp.mpf(order))
    assert exact <= ours <= exact * (1 + 1e-6)
    assert integral(m, q, mp.mpf(order), swapped=True) <= ours


def test_sampling_everything_or_too_finely_falls_back_to_no_amplification() -> None:
    plain = Renyi.linear(Fraction(1, 2))
    assert sampled_gaussian_curve(Fraction(1), Fraction(1)) == plain
    sampled = sampled_gaussian_curve(Fraction(1), Fraction(1, 100))
    assert all(map(lambda a, b: a <= b, sampled.values, plain.values))
    assert sampled.values[-1] == plain.values[-1]
    harsh = sampled_gaussian_curve(Fraction(10**10), Fraction(1, 100))
    assert harsh == Renyi.linear(Fraction(10**10) / 2)


def test_sampled_pairs_shrink_both_numbers() -> None:
    event = ev.PoissonSampled(event=ev.Approximate(epsilon=ln(3), delta=0.01), rate=0.5)
    loss = loss_of(event)
    assert loss.notion("approx") == ApproximateNotion.of(ln(2), Fraction(1, 200))
    zcdp = loss.notion("zcdp")
    assert isinstance(zcdp, ZeroConcentratedNotion)
    assert zcdp.slack == Fraction(1, 200)
    assert float(zcdp.rho) == pytest.approx(math.log(2) ** 2 / 2)


def test_unamplified_notions_stay_valid() -> None:
    """Gaussian and concentrated losses have no amplification rule here, so the plain bound stands."""
    loss = loss_of(ev.PoissonSampled(event=ev.Gaussian(sensitivity=1, sigma=2, count=3), rate=0.1, count=2))
    assert loss.notion("gdp") == GaussianNotion(Fraction(3, 2))
    assert loss.notion("zcdp") == ZeroConcentratedNotion(Fraction(3, 4))
    one = loss_of(ev.PoissonSampled(event=ev.ZeroConcentrated(rho=1), rate=0.1))
    assert one.notion("zcdp") == ZeroConcentratedNotion(Fraction(1))


def test_inner_count_is_one_sample_and_outer_count_many() -> None:
    inner = loss_of(ev.PoissonSampled(event=ev.Pure(epsilon=ln(3), count=2), rate=0.5))
    outer = loss_of(ev.PoissonSampled(event=ev.Pure(epsilon=ln(3)), rate=0.5, count=2))
    assert inner.notion("pure") == PureNotion(ln(5))
    assert outer.notion("pure") == PureNotion(ln(4))


def test_better_of_amplified_and_plain_is_kept() -> None:
    """The exponential mechanism's ε²/8 beats the amplified ε²/2 when nearly all are sampled."""
    loss = loss_of(ev.PoissonSampled(event=ev.Exponential(epsilon=1), rate=0.99))
    assert loss.notion("zcdp") == ZeroConcentratedNotion(Fraction(1, 8))
