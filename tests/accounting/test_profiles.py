"""Profiles of single events: exact where laws are tables, published values elsewhere."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import events as ev
from discreet.accounting import profiles
from discreet.accounting.pairs import Atoms, Curve
from discreet.accounting.pld import LossDistribution
from discreet.accounting.profiles import group_event, has_profile, pair_of, profile
from discreet.errors import UnknownLoss
from discreet.exact import ln
from tests.accounting import pairs_by_hand as by_hand

EPSILONS = [-2.0, -0.7, -0.01, 0.0, 0.01, 0.3, 0.9, 2.5]


def within(event: ev.Event, epsilon: float, exact: Any, direction: Any = None, width: float = 1e-12) -> None:
    """The exact value lies between both bounds, and they are close to each other."""
    low, high = profile(event, [epsilon], direction)
    assert low[0] <= exact <= high[0], (event, epsilon, low[0], exact, high[0])
    assert high[0] - low[0] <= width


@pytest.mark.parametrize(
    ("event", "epsilon", "delta"),
    [
        (ev.Gaussian(sensitivity=1, sigma=10), 0.1, 0.008751768145810),
        (ev.Gaussian(sensitivity=5, sigma=10), math.log(3), 0.004159742234000802),
        (ev.Gaussian(sensitivity=1, sigma=0.5), 0.0, 0.6826894921370859),
        (ev.Gaussian(sensitivity=10, sigma=500), 0.5, 3.129776773173962e-141),
        (ev.DiscreteGaussian(squared_sensitivity=1, variance=1), 1.0, 0.141351339406),
        (ev.Exponential(epsilon=1), 0.0, math.tanh(0.25)),
    ],
)
def test_published_values(event: ev.Event, epsilon: float, delta: float) -> None:
    """Values from other libraries' tests come out to 8 digits."""
    low, high = profile(event, [epsilon])
    assert high[0] == pytest.approx(delta, rel=1e-8)
    assert low[0] == pytest.approx(delta, rel=1e-8)


TABLES = [
    (ev.RandomizedResponse(epsilon=1), by_hand.randomized_response(Fraction(1), 2)),
    (ev.RandomizedResponse(epsilon=Fraction(1, 2), categories=7), by_hand.randomized_response(Fraction(1, 2), 7)),
    (ev.Pure(epsilon=2), by_hand.randomized_response(Fraction(2), 2)),
    (ev.Approximate(epsilon=1, delta=0.01), by_hand.approximate(Fraction(1), Fraction(1, 100))),
    (ev.DiscreteLaplace(sensitivity=1, scale=2), by_hand.discrete_laplace(1, Fraction(2))),
    (ev.DiscreteLaplace(sensitivity=4, scale=0.7), by_hand.discrete_laplace(4, Fraction(7, 10))),
    (ev.DiscreteGaussian(squared_sensitivity=1, variance=0.25), by_hand.discrete_gaussian(1, Fraction(1, 4))),
    (ev.DiscreteGaussian(squared_sensitivity=10, variance=5), by_hand.discrete_gaussian(3, Fraction(5))),
]


@pytest.mark.parametrize(("event", "pair"), TABLES, ids=lambda x: type(x).__name__)
def test_discrete_laws_against_their_tables(event: ev.Event, pair: by_hand.Pair) -> None:
    """At every ε, in both directions, the bounds enclose the sum over outcomes."""
    for epsilon in EPSILONS:
        within(event, epsilon, by_hand.hockey_stick(pair, epsilon), "remove")
        within(event, epsilon, by_hand.hockey_stick(by_hand.swap(pair), epsilon), "add")


@pytest.mark.parametrize(("event", "pair"), TABLES, ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("rate", [Fraction(1, 100), Fraction(1, 2)])
def test_sampled_discrete_laws_against_their_tables(event: ev.Event, pair: by_hand.Pair, rate: Fraction) -> None:
    """Poisson sampling mixes the tables, and both directions of the mixture are enclosed."""
    sampled, mixed = ev.PoissonSampled(event=event, rate=rate), by_hand.sample(pair, rate)
    for epsilon in EPSILONS:
        within(sampled, epsilon, by_hand.hockey_stick(mixed, epsilon), "remove")
        within(sampled, epsilon, by_hand.hockey_stick(by_hand.swap(mixed), epsilon), "add")


@pytest.mark.parametrize(
    ("shift", "variance"), [(30, 1), (33, 1), (40, 1), (76, 1), (80, 1), (1000, 1), (5, Fraction(1, 60))]
)
@pytest.mark.parametrize("rate", [Fraction(1, 50), Fraction(9, 10)])
def test_sampled_discrete_gaussian_far_apart(shift: int, variance: Fraction, rate: Fraction) -> None:
    """A shift of many standard deviations: where only one of the laws has mass, that mass is counted, not lost."""
    event = ev.DiscreteGaussian(squared_sensitivity=shift**2, variance=variance)
    sampled, mixed = (
        ev.PoissonSampled(event=event, rate=rate),
        by_hand.sample(by_hand.discrete_gaussian(shift, Fraction(variance)), rate),
    )
    for epsilon in (0.0, 0.001, 0.01, 1.5):
        within(sampled, epsilon, by_hand.hockey_stick(mixed, epsilon), "remove", 1e-8)
        within(sampled, epsilon, by_hand.hockey_stick(by_hand.swap(mixed), epsilon), "add", 1e-8)
        whole = by_hand.hockey_stick(by_hand.discrete_gaussian(shift, Fraction(variance)), epsilon)
        within(event, epsilon, min(whole, 1), width=1e-8)


def test_composed_samples_far_apart_lose_no_mass() -> None:
    """Two sampled releases at a distance of 40 deviations cost what their tables say, in the worse direction."""
    event = ev.PoissonSampled(event=ev.DiscreteGaussian(squared_sensitivity=1600, variance=1), rate=0.02, count=2)
    two = by_hand.power(by_hand.sample(by_hand.randomized_response(Fraction(800), 2), Fraction(1, 50)), 2)
    for epsilon in (0.001, 0.03):
        exact = max(by_hand.hockey_stick(pair, epsilon) for pair in (two, by_hand.swap(two)))
        # Two laws with so little overlap are as far apart as randomized response of a loss of 800.
        assert exact <= LossDistribution((event,)).delta(epsilon) <= exact * (1 + 1e-3)


def normal_mixture(mu: float, rate: float, epsilon: float, direction: str) -> Any:
    """δ(ε) of a sampled Gaussian by integrating densities, with 30 digits."""
    m, r = mpmath.mpf(mu), mpmath.mpf(rate)
    p = lambda x: (1 - r) * mpmath.npdf(x) + r * mpmath.npdf(x, m)  # noqa: E731  # densities
    q = mpmath.npdf
    top, bottom = (p, q) if direction == "remove" else (q, p)
    ratio = (mpmath.exp(epsilon if direction == "remove" else -epsilon) - 1 + r) / r
    cut = mpmath.log(ratio) / m + m / 2 if ratio > 0 else -40
    ends = sorted([cut, cut + 40]) if direction == "remove" else sorted([cut - 40, cut])
    if direction == "add" and ratio <= 0:
        return mpmath.mpf(0)
    with mpmath.workdps(25):
        pieces = mpmath.linspace(ends[0], ends[1], 16)
        return mpmath.quad(lambda x: top(x) - mpmath.exp(epsilon) * bottom(x), pieces)


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_sampled_gaussian_against_integrals(direction: str) -> None:
    """Both directions of a sampled Gaussian equal the integral of the densities."""
    for mu, rate, epsilon in [(1.0, 0.01, 0.005), (1.0, 0.25, 0.1), (2.0, 0.5, 0.3), (0.5, 0.1, -0.03)]:
        event = ev.PoissonSampled(event=ev.Gaussian(sensitivity=mu, sigma=1), rate=rate)
        exact = normal_mixture(mu, rate, epsilon, direction)
        low, high = profile(event, [epsilon], direction)  # type: ignore[arg-type]  # the two names
        assert float(exact) == pytest.approx(float(high[0]), rel=1e-10)
        assert high[0] - low[0] <= 1e-12


def test_the_two_directions_of_sampling_differ() -> None:
    """Negative control: the removal curve used for addition would be wrong by far."""
    event = ev.PoissonSampled(event=ev.Gaussian(sensitivity=1, sigma=1), rate=0.01)
    assert profile(event, [0.02], "remove")[0][0] > 100 * profile(event, [0.02], "add")[1][0]


@pytest.mark.parametrize("mu", [1e-4, 0.01, 0.5, 3.0, 40.0])
def test_gaussian_against_long_arithmetic(mu: float) -> None:
    """Balle and Wang's formula with 60 digits lies between the bounds, in the body and far out in the tail."""
    m = mpmath.mpf(Fraction(str(mu)).numerator) / Fraction(str(mu)).denominator
    for z in (-3.0, -0.5, 0.0, 1.0, 4.0, 12.0, 25.0):
        epsilon = mu * (z + mu / 2)
        e = mpmath.mpf(epsilon)
        exact = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
        low, high = profile(ev.Gaussian(sensitivity=mu, sigma=1), [epsilon])
        assert low[0] <= exact <= high[0]
        if epsilon >= 0:
            assert high[0] - low[0] <= 3e-9 * max(1.0, 0.1 / mu) * exact + 1e-290


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 4000), st.integers(-300, 300))
def test_laplace_and_bounded_range_formulas(thousandths: int, at: int) -> None:
    """The closed forms of Laplace noise and of bounded range lie between the bounds, for ε of either sign."""
    top, x = mpmath.mpf(thousandths) / 1000, mpmath.mpf(at) / 100
    if abs(x) > top:
        laplace = ranged = max(mpmath.mpf(0), 1 - mpmath.exp(x))
    else:
        laplace = 1 - mpmath.exp((x - top) / 2)
        ranged = (1 - mpmath.exp((x - top) / 2)) ** 2 / (1 - mpmath.exp(-top))
    parameter = Fraction(thousandths, 1000)
    for event, exact in [
        (ev.Laplace(sensitivity=parameter, scale=1), laplace),
        (ev.Exponential(epsilon=parameter), ranged),
    ]:
        low, high = profile(event, [float(x)])
        # The ε asked for is a float: its rounding moves δ by at most as much.
        assert low[0] - 1e-15 <= exact <= high[0] + 1e-15
        assert high[0] - low[0] <= 1e-13


def test_narrow_discrete_gaussian_is_less_private_than_the_continuous_formula_says() -> None:
    """Negative control: at σ = 1/2 the continuous formula claims 0.51 where the truth is 0.60."""
    narrow = ev.DiscreteGaussian(squared_sensitivity=1, variance=0.25)
    assert profile(narrow, [1.0])[0][0] == pytest.approx(0.60320, abs=1e-5)
    assert profile(ev.Gaussian(sensitivity=1, sigma=0.5), [1.0])[1][0] == pytest.approx(0.50986, abs=1e-5)


@pytest.mark.parametrize("shift", [1, 700, 20_000])
def test_wide_discrete_gaussian_equals_its_sum(shift: int) -> None:
    """Beyond σ = 4096 integrals and two correction terms replace the sum; both agree to 12 digits."""
    sigma = 5000
    x = np.arange(-20 * sigma, 20 * sigma + 1, dtype=np.float64)
    mass = np.exp(-x * x / (2 * sigma**2))
    mass /= math.fsum(mass.tolist())
    for epsilon in (0.0, shift / sigma * 0.7, shift / sigma * 3):
        loss = (shift**2 - 2 * shift * x) / (2 * sigma**2)
        summed = math.fsum(np.where(loss > epsilon, mass * -np.expm1(np.minimum(epsilon - loss, 0)), 0.0).tolist())
        low, high = profile(ev.DiscreteGaussian(squared_sensitivity=shift**2, variance=sigma**2), [epsilon])
        assert low[0] * (1 - 1e-12) <= summed <= high[0] * (1 + 1e-12)
        assert high[0] == pytest.approx(summed, rel=1e-10, abs=1e-14)
    wide = pair_of(ev.DiscreteGaussian(squared_sensitivity=shift**2, variance=sigma**2))
    assert isinstance(wide, Curve)


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(5), Fraction(400)])
@pytest.mark.parametrize("sensitivity", [1, 2, 9, 300])
def test_wide_discrete_laplace_formula_equals_the_atoms(sensitivity: int, scale: Fraction) -> None:
    """The closed form that prices large sensitivities agrees with the masses at small ones."""
    atoms, curve = (
        profiles.discrete_laplace_pair(sensitivity, scale),
        profiles._wide_discrete_laplace_profile(sensitivity, scale),
    )
    assert isinstance(atoms, Atoms)
    at = np.linspace(0, float(sensitivity / scale) * 1.1, 57)
    (a, a_error), (b, b_error) = atoms.delta(at, "remove"), curve(at)
    assert np.all(np.abs(a - b) <= a_error + b_error)
    assert np.all(b_error <= 1e-12 * (1 + sensitivity / float(scale)))


@pytest.mark.parametrize(
    "event", [e for e, _ in TABLES] + [ev.Laplace(sensitivity=1, scale=2), ev.Exponential(epsilon=1)]
)
@pytest.mark.parametrize("rate", [None, Fraction(1, 5)])
def test_the_directions_are_dual(event: ev.Event, rate: Fraction | None) -> None:
    """One direction determines the other: δ'(ε) = 1 − e^ε + e^ε·δ(−ε)."""
    event = event if rate is None else ev.PoissonSampled(event=event, rate=rate)
    law, at = pair_of(event), np.linspace(-1.5, 1.5, 31)
    (there, a), (back, b) = law.delta(at, "add"), law.delta(-at, "remove")
    assert np.all(np.abs(there + np.expm1(at) - np.exp(at) * back) <= a + np.exp(at) * b + 1e-14)


@pytest.mark.parametrize(
    "event", [ev.DiscreteLaplace(sensitivity=5, scale=2), ev.DiscreteGaussian(squared_sensitivity=25, variance=6)]
)
def test_a_smaller_shift_is_never_worse(event: ev.Event) -> None:
    """Neighbours that differ by less than the sensitivity are covered by the pair at the full sensitivity."""
    for shift in range(1, 5):
        pair = (
            by_hand.discrete_laplace(shift, Fraction(2))
            if isinstance(event, ev.DiscreteLaplace)
            else by_hand.discrete_gaussian(shift, Fraction(6))
        )
        for epsilon in EPSILONS:
            assert by_hand.hockey_stick(pair, epsilon) <= profile(event, [epsilon])[1][0]


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(3)])
def test_a_shift_in_one_coordinate_is_the_worst(scale: Fraction) -> None:
    """For independent integer Laplace noise, splitting the distance over two coordinates is dominated."""
    for a, b in [(1, 1), (1, 3), (2, 2)]:
        split = by_hand.product(
            by_hand.power(by_hand.discrete_laplace(a, scale), 1), by_hand.power(by_hand.discrete_laplace(b, scale), 1)
        )
        for epsilon in EPSILONS:
            whole = profile(ev.DiscreteLaplace(sensitivity=a + b, scale=scale), [epsilon])[1][0]
            assert by_hand.hockey_stick(split, epsilon) <= whole


def bounded_range_pair(rng: random.Random, epsilon: float) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """A random pair whose log-ratios span at most ε, often at its ends."""
    size = rng.randint(2, 5)
    p = np.array([rng.random() ** 3 + 1e-9 for _ in range(size)])
    p /= p.sum()
    spread = np.array([rng.choice([0.0, 1.0, rng.random()]) for _ in range(size)]) * epsilon
    q = p * np.exp(spread)
    return p, q / q.sum()


def test_no_pair_of_bounded_range_exceeds_the_profile() -> None:
    """A random search over 20,000 pairs finds none above the curve, but some close to it."""
    rng, closest, too_small = random.Random(5), 1.0, 0  # noqa: S311  # the same pairs every time
    for _ in range(20_000):
        epsilon = rng.choice([0.2, 1.0, 3.0])
        p, q = bounded_range_pair(rng, epsilon)
        at = rng.uniform(-epsilon, epsilon)
        seen = float(np.maximum(p - math.exp(at) * q, 0).sum())
        top = (1 - math.exp((at - epsilon) / 2)) ** 2 / (1 - math.exp(-epsilon))
        assert seen <= top + 1e-12
        closest = min(closest, top - seen)
        smaller = 0.95 * epsilon
        claim = (1 - math.exp(min(at - smaller, 0) / 2)) ** 2 / (1 - math.exp(-smaller)) if at < smaller else 0.0
        too_small += seen > claim + 1e-9
    assert closest < 1e-3
    assert too_small > 0  # negative control: with 5 % less ε the curve is exceeded


def test_exponential_mechanisms_lie_below_the_profile() -> None:
    """Real exponential mechanisms on random scores of sensitivity one are dominated, in both directions."""
    rng = np.random.default_rng(11)
    for _ in range(500):
        epsilon = float(rng.choice([0.3, 1.0, 2.0]))
        scores = rng.integers(0, 6, size=6)
        moved = scores + rng.integers(-1, 2, size=6)
        p, q = np.exp(epsilon / 2 * scores), np.exp(epsilon / 2 * moved)
        p, q = p / p.sum(), q / q.sum()
        for at in rng.uniform(-epsilon, epsilon, 5):
            seen = float(np.maximum(p - math.exp(at) * q, 0).sum())
            assert seen <= profile(ev.Exponential(epsilon=Fraction(str(epsilon))), [at])[1][0] + 1e-15


def test_what_has_no_profile_is_refused() -> None:
    """Concentrated losses, vectors of integer Gaussians and repeated releases from one sample have no known pair."""
    unknown = [
        ev.ZeroConcentrated(rho=0.1),
        ev.DiscreteGaussian(squared_sensitivity=4, variance=9, dimension=2),
        ev.PoissonSampled(event=ev.ZeroConcentrated(rho=0.1), rate=0.1),
        ev.PoissonSampled(event=ev.Laplace(sensitivity=1, scale=1, count=2), rate=0.1),
    ]
    for event in unknown:
        assert not has_profile(event)
        with pytest.raises(UnknownLoss):
            pair_of(event)


def test_repeated_gaussians_from_one_sample_add_up() -> None:
    """Four releases of a Gaussian from one sample are one of half the noise."""
    four = ev.PoissonSampled(event=ev.Gaussian(sensitivity=1, sigma=2, count=4), rate=0.1)
    one = ev.PoissonSampled(event=ev.Gaussian(sensitivity=1, sigma=1), rate=0.1)
    rounded = ev.PoissonSampled(event=ev.RoundedGaussian(squared_sensitivity=1, variance=4, count=4), rate=0.1)
    assert np.allclose(profile(rounded, [0.5, 1.0])[1], profile(one, [0.5, 1.0])[1], rtol=1e-12)
    assert profile(four, [0.3])[1] == profile(one, [0.3])[1]


def test_groups() -> None:
    """A group sees a larger sensitivity or a multiple of ε; sampled releases have no rule; one is the identity."""
    laplace = ev.Laplace(sensitivity=1, scale=5, count=3)
    assert group_event(laplace, 1) is laplace
    assert group_event(laplace, 4) == ev.Laplace(sensitivity=4, scale=5, count=3)
    assert group_event(ev.Pure(epsilon=ln(3)), 2) == ev.Pure(epsilon=ln(9))
    assert group_event(ev.RandomizedResponse(epsilon=1, categories=5), 2) == ev.Pure(epsilon=2)
    assert group_event(ev.Exponential(epsilon=1), 3) == ev.Exponential(epsilon=3)
    assert group_event(ev.DiscreteGaussian(squared_sensitivity=4, variance=1), 3) == ev.DiscreteGaussian(
        squared_sensitivity=36, variance=1
    )
    rounded = ev.RoundedGaussian(squared_sensitivity=2, variance=1)
    assert group_event(rounded, 3) == ev.RoundedGaussian(squared_sensitivity=18, variance=1)
    assert group_event(rounded, 1 << 62) is None
    assert group_event(ev.PoissonSampled(event=laplace.__class__(sensitivity=1, scale=1), rate=0.1), 2) is None
    assert group_event(ev.Pure(epsilon=9000), 2) is None


def test_groups_of_approximate_events_round_up() -> None:
    """δ grows by (e^(kε) − 1)/(e^ε − 1), never less and hardly more; where it reaches one there is no statement."""
    grown = group_event(ev.Approximate(epsilon=1, delta=1e-6), 3)
    assert isinstance(grown, ev.Approximate)
    exact = mpmath.mpf("1e-6") * (1 + mpmath.e + mpmath.e**2)
    assert 0 <= float(grown.delta) / exact - 1 < 1e-14
    assert grown.epsilon == 3
    assert group_event(ev.Approximate(epsilon=1, delta=0.1), 9) is None
    assert group_event(ev.Approximate(epsilon=0, delta=0.01), 3) == ev.Approximate(epsilon=0, delta=Fraction(3, 100))


@pytest.mark.parametrize("epsilon", [Fraction(41251, 5000), Fraction(672897, 10000), Fraction(25857, 1000), ln(7)])
def test_the_growth_of_delta_in_groups_is_never_below_the_power(epsilon: Any) -> None:
    """For ε that no float is, e^ε is rounded up from ε itself, not from the float nearest to it."""
    delta = Fraction(1, 10**60)
    for size in (2, 3):
        grown = group_event(ev.Approximate(epsilon=epsilon, delta=delta), size)
        assert isinstance(grown, ev.Approximate)
        power = mpmath.mpf(7) if epsilon == ln(7) else by_hand.exp(epsilon)
        exact = mpmath.fsum(power**step for step in range(size))
        factor = ev.to_exact(grown.delta) / delta
        assert 0 <= mpmath.mpf(factor.numerator) / factor.denominator / exact - 1 < 1e-13


@pytest.mark.parametrize(
    ("squared", "variance", "size"), [(1, Fraction(1), 3), (10, Fraction(5), 2), (4, Fraction(1, 4), 2)]
)
def test_groups_of_integer_gaussian_noise_are_covered(squared: int, variance: Fraction, size: int) -> None:
    """docs/proofs/groups-discrete-gaussian.md: every shift that a group can make lies below the event of the group."""
    event = ev.DiscreteGaussian(squared_sensitivity=squared, variance=variance)
    group = group_event(event, size)
    assert group is not None
    most = size * math.isqrt(squared)
    for epsilon in EPSILONS:
        allowed = profile(group, [epsilon])[1][0]
        for shift in range(1, most + 1):
            pair = by_hand.discrete_gaussian(shift, variance)
            assert by_hand.hockey_stick(pair, epsilon) <= allowed
            assert by_hand.hockey_stick(by_hand.swap(pair), epsilon) <= allowed
    # Negative controls: the event of one unit does not cover the group, nor does one step less.
    farthest = by_hand.hockey_stick(by_hand.discrete_gaussian(most, variance), 0.3)
    assert farthest > profile(event, [0.3])[1][0]
    nearer = ev.DiscreteGaussian(squared_sensitivity=(most - 1) ** 2, variance=variance)
    assert farthest > profile(nearer, [0.3])[1][0]


def test_groups_in_two_releases_are_covered() -> None:
    """Two releases of which the second query depends on the first answer: any shifts of a group of two are covered."""
    event = ev.DiscreteGaussian(squared_sensitivity=1, variance=2, count=2)
    group = group_event(event, 2)
    assert group is not None
    law = {shift: by_hand.discrete_gaussian(shift, Fraction(2)) for shift in (1, 2)}
    for low, high in ((1, 2), (2, 1), (1, 1), (2, 2)):
        # The shift of the second query is chosen by the sign of the first answer.
        pair = {
            (x, y): (p * pp, q * qq)
            for x, (p, q) in law[2].items()
            for y, (pp, qq) in law[low if x < 1 else high].items()
        }
        for epsilon in (0.0, 0.9, 2.5):
            assert by_hand.hockey_stick(pair, epsilon) <= LossDistribution((group,)).delta(epsilon)
