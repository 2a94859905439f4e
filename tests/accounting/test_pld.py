"""Composed losses: bounds that enclose the exact sum, laws of composition, and published values."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import convolve, pld
from discreet.accounting import events as ev
from discreet.accounting.convolve import LossSum, compute_tilted_sum
from discreet.accounting.discretise import connect, span
from discreet.accounting.pld import LossDistribution
from discreet.accounting.profiles import pair_of
from discreet.exact import Floats
from tests.accounting import pairs_by_hand as by_hand
from tests.work_counts import MOST_CALLS, count_calls


def plan(*events: ev.Event) -> LossDistribution:
    return LossDistribution(events)


def exact_epsilon(pair: by_hand.Pair, delta: float) -> float:
    """The smallest ε of a table at a δ, by bisection in long arithmetic."""
    if by_hand.hockey_stick(pair, 0) <= delta:
        return 0.0
    low, high = mpmath.mpf(0), mpmath.mpf(60)
    for _ in range(90):
        middle = (low + high) / 2
        low, high = (middle, high) if by_hand.hockey_stick(pair, middle) > delta else (low, middle)
    return float(high)


# -- against exact sums -----------------------------------------------------------------------------------------------

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
COMPOSITIONS: list[tuple[LossDistribution, list[tuple[by_hand.Pair, int]]]] = [
    (plan(ev.RandomizedResponse(epsilon=1, count=10)), [(by_hand.randomized_response(Fraction(1), 2), 10)]),
    (
        plan(ev.RandomizedResponse(epsilon=HALF, count=4), ev.Pure(epsilon=THIRD, count=5)),
        [(by_hand.randomized_response(HALF, 2), 4), (by_hand.randomized_response(THIRD, 2), 5)],
    ),
    (
        plan(ev.RandomizedResponse(epsilon=HALF, categories=5, count=3), ev.DiscreteLaplace(sensitivity=3, scale=2)),
        [(by_hand.randomized_response(HALF, 5), 3), (by_hand.discrete_laplace(3, Fraction(2)), 1)],
    ),
    (
        plan(ev.DiscreteLaplace(sensitivity=1, scale=3, count=6), ev.Approximate(epsilon=THIRD, delta=0.001, count=2)),
        [(by_hand.discrete_laplace(1, Fraction(3)), 6), (by_hand.approximate(THIRD, Fraction(1, 1000)), 2)],
    ),
    (
        plan(ev.DiscreteGaussian(squared_sensitivity=1, variance=2, count=3)),
        [(by_hand.discrete_gaussian(1, Fraction(2)), 3)],
    ),
]


_KNOWN: dict[LossDistribution, by_hand.Pair] = {}


def all_together(composition: LossDistribution, tables: list[tuple[by_hand.Pair, int]]) -> by_hand.Pair:
    """The table of a whole composition, made once."""
    if composition not in _KNOWN:
        whole: by_hand.Pair = {0: (mpmath.mpf(1), mpmath.mpf(1))}
        for table, count in tables:
            whole = by_hand.merged(by_hand.product(whole, by_hand.power(table, count)))
        _KNOWN[composition] = whole
    return _KNOWN[composition]


@pytest.mark.parametrize(("composition", "tables"), COMPOSITIONS, ids=range(len(COMPOSITIONS)))
@pytest.mark.parametrize("delta", [0.05, 1e-2, 1e-5])
def test_bounds_enclose_the_exact_sum(
    composition: LossDistribution, tables: list[tuple[by_hand.Pair, int]], delta: float
) -> None:
    """Lower ≤ exact ≤ upper, both within 0.5 %, where outcomes can be listed."""
    whole = all_together(composition, tables)
    low, high = composition.bounds(delta)
    exact = exact_epsilon(whole, delta)
    assert low <= exact <= high
    if math.isfinite(high):
        assert high - low <= 0.005 * exact + 1e-9
    for epsilon in (0.0, 0.4, 1.3):
        assert by_hand.hockey_stick(whole, epsilon) <= composition.delta(epsilon)


def test_sampled_tables_enclose_in_both_directions() -> None:
    """For sampled randomized response, δ is the worse of both directions of the exact sum."""
    table = by_hand.power(by_hand.sample(by_hand.randomized_response(Fraction(1), 2), Fraction(1, 10)), 8)
    composition = plan(ev.PoissonSampled(event=ev.RandomizedResponse(epsilon=1), rate=0.1, count=8))
    for delta in (0.01, 1e-4, 1e-7):
        exact = max(exact_epsilon(table, delta), exact_epsilon(by_hand.swap(table), delta))
        low, high = composition.bounds(delta)
        assert low <= exact <= high
        assert high - low <= 0.005 * exact


@pytest.mark.parametrize("delta", [1e-6, 1e-13, 1e-30, 1e-100, 1e-200])
def test_very_small_deltas_keep_their_digits(delta: float) -> None:
    """Where a plain transform drowns in its noise, the tilted one agrees with exact binomials to 8 digits."""
    count, epsilon = 2000, mpmath.mpf(1) / 10
    p = mpmath.exp(epsilon) / (1 + mpmath.exp(epsilon))
    masses = [mpmath.binomial(count, k) * p**k * (1 - p) ** (count - k) for k in range(count + 1)]

    def exact(at: float) -> Any:
        first = math.floor((at / epsilon + count) / 2)
        return mpmath.fsum(
            masses[k] * (1 - mpmath.exp(at - (2 * k - count) * epsilon)) for k in range(first + 1, count + 1)
        )

    composition = plan(ev.RandomizedResponse(epsilon=0.1, count=count))
    low, high = composition.bounds(delta)
    assert exact(low) >= delta >= exact(high)
    assert high - low <= 1e-6 * high
    assert composition.delta(high) == pytest.approx(float(exact(high)), rel=1e-6)


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_transforms_enclose_direct_sums(data: st.DataObject) -> None:
    """For random masses and counts, under any tilt, the bounds enclose a convolution summed term by term."""
    size = data.draw(st.integers(1, 3))
    parts = []
    for _ in range(size):
        first = data.draw(st.integers(-6, 1))
        weights = data.draw(st.lists(st.floats(1e-6, 1), min_size=2, max_size=9))
        parts.append((first, np.array(weights) / sum(weights), data.draw(st.integers(1, 12))))
    total = LossSum(step=0.125, parts=tuple(parts), tilts=(0.05, 40.0))
    k = data.draw(st.integers(0, total.most))
    law: Floats = np.ones(1, dtype=np.longdouble)  # longer floats as the oracle
    start = 0
    for first, masses, count in parts:
        for _ in range(count):
            law, start = np.convolve(law, masses.astype(np.longdouble)), start + first
    losses = (start + np.arange(len(law))) * 0.125
    found = compute_tilted_sum(total, k)
    assert found is not None
    for epsilon in (found.start, (found.start + found.end) / 2, found.end - 0.3, 0.0):
        exact = float(np.sum(law * np.maximum(-np.expm1(epsilon - losses), 0)))
        assert found.lower(epsilon) <= exact * (1 + 1e-15)
        assert exact <= found.upper(epsilon) * (1 + 1e-15)
    best = compute_tilted_sum(total, total.tilt_for_epsilon(losses.mean()))
    assert best is not None
    exact = float(np.sum(law * np.maximum(-np.expm1(losses.mean() - losses), 0)))
    assert best.upper(losses.mean()) == pytest.approx(exact, rel=1e-5, abs=1e-12)


def test_wrapping_around_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: in a window that is too short, what wraps is bounded; without the bound the answer is wrong."""
    masses = np.array([0.5, 0.0, 0.0, 0.0, 0.5])
    total = LossSum(step=0.25, parts=((-2, masses, 30),), tilts=(0.05, 40.0))
    monkeypatch.setattr(convolve, "_BEYOND", 0.5)
    law, losses = np.ones(1), (-60 + np.arange(121)) * 0.25
    for _ in range(30):
        law = np.convolve(law, masses)
    seen_wrong = False
    for k in range(0, 80, 5):
        found = compute_tilted_sum(LossSum(step=0.25, parts=total.parts, tilts=total.tilts), k)
        assert found is not None
        for epsilon in np.linspace(found.start, found.end, 9).tolist():
            exact = float(np.sum(law * np.maximum(-np.expm1(epsilon - losses), 0)))
            assert found.lower(epsilon) <= exact * (1 + 1e-12) <= found.upper(epsilon) * (1 + 1e-11)
            value, _ = found._excess(epsilon)
            bare = math.exp(found.scale - found.tilt * found.middle) * value
            seen_wrong |= bare < exact * (1 - 1e-6) or bare > exact * (1 + 1e-6)
    assert seen_wrong


# -- grids ------------------------------------------------------------------------------------------------------------


def on_grid(event: ev.Event, count: int, step: float, epsilon: float, masses: Any = None) -> float:
    """δ(ε) of ``count`` such events with losses on this grid."""
    law = pair_of(event)
    low, high = span(law, "remove", 1e-22)
    part = connect(law, "remove", step=step, low=low, high=high)
    used = part.upper if masses is None else masses(law, step, part)
    total = LossSum(step=step, parts=((part.first, used, count),), tilts=(0.05, 400.0))
    found = compute_tilted_sum(total, total.tilt_for_epsilon(epsilon))
    assert found is not None
    return found.upper(epsilon)


@pytest.mark.parametrize(
    "event",
    [
        ev.Laplace(sensitivity=1, scale=3),
        ev.Gaussian(sensitivity=1, sigma=3),
        ev.Exponential(epsilon=0.5),
        ev.RandomizedResponse(epsilon=0.3, categories=4),
        ev.DiscreteLaplace(sensitivity=3, scale=7),
        ev.PoissonSampled(event=ev.Gaussian(sensitivity=1, sigma=1), rate=0.2),
    ],
    ids=lambda event: type(event).__name__,
)
def test_a_coarser_grid_is_never_more_optimistic(event: ev.Event) -> None:
    """Every halving of the step lowers δ or leaves it, down to the exact value of the plan."""
    for epsilon in (0.2, 1.0, 2.0):
        deltas = [on_grid(event, 12, 2.0**-k, epsilon) for k in range(2, 10)]
        assert all(fine <= coarse * (1 + 1e-9) + 1e-15 for coarse, fine in itertools.pairwise(deltas))
        assert plan(event.times(12)).delta(epsilon) == pytest.approx(deltas[-1], rel=0.02, abs=1e-12)


@pytest.mark.parametrize("step", [0.01, 0.07, 0.25, 0.6])
def test_bounds_enclose_on_any_grid(step: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """However coarse the grid and wherever the losses lie on it, lower ≤ exact ≤ upper."""
    monkeypatch.setattr(pld, "_choose_step", lambda *_, **__: step)
    for composition, tables in COMPOSITIONS:
        whole = all_together(composition, tables)
        for delta in (0.05, 1e-3):
            forget()
            low, high = composition.bounds(delta)
            assert low <= exact_epsilon(whole, delta) <= high
    forget()


def forget() -> None:
    """Drop remembered answers, which do not know that a test changed the rules."""
    for cache in (pld._prepare_sum, pld._epsilon, pld._delta, pld._least_epsilon, convolve.compute_tilted_sum):
        cache.cache_clear()


@pytest.mark.parametrize(
    "event", [ev.Gaussian(sensitivity=1, sigma=1), ev.Laplace(sensitivity=1, scale=1), ev.Exponential(epsilon=1)]
)
@pytest.mark.parametrize("high", [0.8, 3.0])
def test_connected_dots_lie_on_the_profile(event: ev.Event, high: float) -> None:
    """At grid points the pair on the grid has the profile's own values, in between larger ones, also when cut short."""
    law, step = pair_of(event), 0.125
    part = connect(law, "remove", step=step, low=-high, high=high)
    for at in np.arange(part.first, part.last + 1, 0.5) * step:
        seen = float(part.upper @ np.maximum(-np.expm1(np.minimum(at - part.losses, 0)), 0)) + part.infinite
        value, error = law.delta(np.array([at]), "remove")
        assert seen >= value[0] - error[0]
        if at / step == round(at / step) and at > part.first * step:
            assert seen == pytest.approx(value[0], abs=1e-10)
    assert float(part.upper.sum()) + part.infinite == pytest.approx(1, abs=1e-10)
    assert float(part.lower.sum()) <= 1


def test_masses_enclose_the_exact_ones_to_the_last_digit() -> None:
    """On a fine grid differences lose digits; every mass still lies between its two bounds."""
    step = mpmath.mpf(2) ** -16
    part = connect(pair_of(ev.Laplace(sensitivity=1, scale=1)), "remove", step=2.0**-16, low=-1, high=1)

    def delta(k: int) -> Any:
        return (
            1 - mpmath.exp((k * step - 1) / 2) if abs(k * step) <= 1 else max(mpmath.mpf(0), 1 - mpmath.exp(k * step))
        )

    for index in range(1, len(part.upper) - 1, 509):
        k = part.first + index
        next_rise, last_rise = delta(k + 1) - delta(k), delta(k) - delta(k - 1)
        exact = next_rise / mpmath.expm1(step) + last_rise / mpmath.expm1(-step)
        assert part.lower[index] <= exact <= part.upper[index]


def test_the_error_of_products_is_bounded_at_every_frequency() -> None:
    """Transforms and powers differ from sums in long arithmetic by at most the stated error, and not by zero."""
    rng = np.random.default_rng(8)
    masses = rng.random(30)
    masses /= masses.sum()
    total = LossSum(step=0.1, parts=((-9, masses, 40), (3, masses[:7] / masses[:7].sum(), 1)), tilts=(0.05, 40.0))
    seen, error = convolve._multiply_transforms(total, np.concatenate([part for _, part, _ in total.parts]), 64)
    turns = [mpmath.expjpi(-2 * mpmath.mpf(j) / 64) for j in range(64)]
    worst = 0.0
    for frequency in range(33):
        exact = mpmath.mpc(1)
        for first, part, count in total.parts:
            terms = [mpmath.mpf(float(m)) * turns[(first + i) * frequency % 64] for i, m in enumerate(part)]
            exact *= mpmath.fsum(terms) ** count
        gap = abs(mpmath.mpc(complex(seen[frequency])) - exact)
        assert gap <= error[frequency]
        worst = max(worst, float(gap))
    assert 0 < worst < 1e-12


def test_rounding_to_the_nearest_grid_point_is_caught() -> None:
    """Negative control: losses moved to the nearest point give a δ below the exact one; connected dots never do."""

    def nearest(law: Any, step: float, part: Any) -> Floats:
        masses = np.zeros(len(part.upper))
        np.add.at(masses, np.rint(law.losses / step).astype(int) - part.first, law.p)
        return masses

    event, table = (
        ev.RandomizedResponse(epsilon=0.3),
        by_hand.power(by_hand.randomized_response(Fraction(3, 10), 2), 12),
    )
    caught = 0
    for epsilon in (0.5, 1.0, 2.0):
        exact = float(by_hand.hockey_stick(table, epsilon))
        assert on_grid(event, 12, 0.25, epsilon) >= exact
        caught += on_grid(event, 12, 0.25, epsilon, nearest) < exact
    assert caught == 3


# -- laws -------------------------------------------------------------------------------------------------------------

small = st.fractions(Fraction(1, 5), Fraction(4), max_denominator=20)
counts = st.integers(1, 30)
simple = st.one_of(
    st.builds(ev.Laplace, sensitivity=st.just(1), scale=small, count=counts),
    st.builds(ev.Gaussian, sensitivity=st.just(1), sigma=small, count=counts),
    st.builds(ev.DiscreteLaplace, sensitivity=st.integers(1, 4), scale=small, count=counts),
    st.builds(ev.DiscreteGaussian, squared_sensitivity=st.integers(1, 9), variance=small, count=counts),
    st.builds(ev.RandomizedResponse, epsilon=small, categories=st.integers(2, 9), count=counts),
    st.builds(ev.Exponential, epsilon=small, count=counts),
    st.builds(ev.Pure, epsilon=small, count=counts),
    st.builds(ev.Approximate, epsilon=small, delta=st.just(Fraction(1, 10**9)), count=counts),
)
rates = st.sampled_from([Fraction(1, 100), Fraction(1, 7), Fraction(1)])
once = simple.map(lambda event: event.__class__(**{**_fields(event), "count": 1}))
sampled = st.builds(ev.PoissonSampled, event=once, rate=rates, count=counts)
any_event = st.one_of(simple, sampled)


def _fields(event: ev.Event) -> dict[str, Any]:
    return {name: getattr(event, name) for name in event.__dataclass_fields__}


@settings(deadline=None, max_examples=15)
@given(st.lists(any_event, min_size=1, max_size=3), st.integers(2, 3))
def test_composition_laws(events: list[ev.Event], times: int) -> None:
    """Order, grouping and repetition do not matter: equal plans are equal values with equal answers."""
    whole = plan(*events)
    reverse = plan(*events[:1])
    for event in events[1:]:
        reverse = plan(event).compose(reverse)
    assert whole == reverse
    assert hash(whole) == hash(reverse)
    repeated = whole
    for _ in range(times - 1):
        repeated = repeated.compose(reverse)
    assert whole.repeat(times) == repeated
    one_by_one = LossDistribution(tuple(e for event in events for e in [_once(event)] * event.count))
    assert one_by_one == whole
    assert one_by_one.epsilon(1e-5) == whole.epsilon(1e-5)
    assert whole.for_group(1) == whole


def _once(event: ev.Event) -> ev.Event:
    return event.__class__(**{**_fields(event), "count": 1})


@settings(deadline=None, max_examples=15)
@given(st.lists(any_event, min_size=1, max_size=3), any_event)
def test_adding_an_event_never_lowers_the_loss(events: list[ev.Event], more: ev.Event) -> None:
    """More releases cost at least as much, up to the resolution of the grid."""
    before, after = plan(*events), plan(*events, more)
    for delta in (1e-3, 1e-6):
        assert after.epsilon(delta) >= before.bounds(delta)[0]
        assert after.epsilon(delta) >= before.epsilon(delta) * (1 - 1e-4) - 1e-9


@settings(deadline=None, max_examples=15)
@given(st.lists(any_event, min_size=1, max_size=3))
def test_answers_are_consistent(events: list[ev.Event]) -> None:
    """ε falls with δ, δ falls with ε, lower bounds lie below upper ones, and δ(ε(δ)) is δ again."""
    composition = plan(*events)
    deltas = [0.3, 1e-2, 1e-5, 1e-7]
    epsilons = [composition.epsilon(delta) for delta in deltas]
    assert all(x <= y * (1 + 1e-6) + 1e-9 for x, y in itertools.pairwise(epsilons))
    for delta, epsilon in zip(deltas, epsilons):
        low, high = composition.bounds(delta)
        assert low <= high == epsilon
        if 0 < epsilon < 0.999 * composition.epsilon(0):
            assert composition.delta(epsilon) <= delta * (1 + 1e-3)
    curve = [composition.delta(x) for x in np.linspace(0, 8, 9).tolist()]
    # Where δ is too small to be computed the bound may give up: 1 is true, and says nothing.
    assert all(x >= y * (1 - 1e-3) - 1e-15 or y == 1.0 for x, y in itertools.pairwise(curve))


@settings(deadline=None, max_examples=15)
@given(any_event)
def test_one_event_is_answered_by_its_profile(event: ev.Event) -> None:
    """A single release needs no transform: its bounds are equal to nine digits."""
    low, high = plan(_once(event)).bounds(1e-4)
    assert low <= high
    assert math.isinf(high) or high - low <= 1e-7 * high + 1e-9


def test_a_group_is_a_larger_sensitivity() -> None:
    """Against three people, Laplace noise of scale 6 is what scale 2 is against one; sampled releases have no rule."""
    grouped = plan(ev.Laplace(sensitivity=1, scale=6, count=4)).for_group(3)
    assert grouped is not None
    assert grouped.epsilon(1e-6) == pytest.approx(plan(ev.Laplace(sensitivity=1, scale=2, count=4)).epsilon(1e-6))
    assert plan(ev.PoissonSampled(event=ev.Pure(epsilon=1), rate=0.5)).for_group(2) is None


def test_gaussians_add_up_exactly() -> None:
    """Any mix of Gaussians is one Gaussian: μ² adds up, and no grid is involved."""
    mixed = plan(ev.Gaussian(sensitivity=3, sigma=10, count=16), ev.Gaussian(sensitivity=1, sigma=2, count=4))
    low, high = mixed.bounds(1e-6)
    assert high - low <= 1e-8 * high
    # 16·0.09 + 4·0.25 = 2.44 = 61/25
    rounded = plan(
        ev.RoundedGaussian(squared_sensitivity=9, variance=100, count=16),
        ev.Gaussian(sensitivity=1, sigma=2, count=4),
    )
    assert rounded.bounds(1e-6) == mixed.bounds(1e-6)
    assert high == pytest.approx(plan(ev.Gaussian(sensitivity=1, sigma=math.sqrt(25 / 61))).epsilon(1e-6), rel=1e-9)


# -- published values -------------------------------------------------------------------------------------------------


def gaussian(sigma: float, count: int = 1, sensitivity: int = 1) -> ev.Gaussian:
    return ev.Gaussian(sensitivity=sensitivity, sigma=sigma, count=count)


def laplace(scale: float, count: int = 1) -> ev.Laplace:
    return ev.Laplace(sensitivity=1, scale=scale, count=count)


def poisson(event: ev.Event, rate: float, count: int) -> ev.PoissonSampled:
    return ev.PoissonSampled(event=event, rate=rate, count=count)


@pytest.mark.parametrize(
    ("composition", "delta", "epsilon", "within"),
    [
        (plan(gaussian(100, 1000)), 1e-6, 1.367571, 1e-6),
        (plan(gaussian(math.sqrt(1000), 1000)), 1e-6, 4.886554, 1e-6),
        (plan(laplace(100, 1000)), 1e-6, 1.362925, 1e-5),
        (plan(ev.DiscreteLaplace(sensitivity=1, scale=100, count=1000)), 1e-6, 1.365447, 1e-6),
        (plan(gaussian(100, 500), laplace(100, 500)), 1e-6, 1.365254, 1e-5),
        (plan(poisson(gaussian(1), 0.01, 1000)), 1e-6, 2.124523, 1e-5),
        (plan(poisson(gaussian(0.8), 0.005, 1000)), 1e-6, 2.004112, 1e-5),
        (plan(ev.RandomizedResponse(epsilon=1)), 1e-6, 0.999999 + 5e-6, 1e-5),
        (plan(ev.RandomizedResponse(epsilon=1, count=10)), 1e-6, 9.99998, 1e-5),
        (plan(ev.Pure(epsilon=0.1, count=100)), 1e-6, 4.775, 1e-3),
        (plan(ev.Pure(epsilon=0.1, count=1000)), 1e-6, 19.34, 1e-2),
        (plan(poisson(gaussian(0.67379294682), 0.01, 1)), 1e-5, 1.0, 1e-4),
        (plan(poisson(gaussian(3.20956502598, sensitivity=6), 0.001, 25)), 1e-5, 1.0, 1e-4),
        (plan(laplace(13.6, 20)), 1e-4, 1.0, 0.01),
        (plan(laplace(71, 500)), 1e-4, 1.0, 0.01),
        (plan(ev.Laplace(sensitivity=21, scale=70, count=10)), 0, 3.0, 1e-12),
        (plan(ev.DiscreteLaplace(sensitivity=1, scale=1 / 0.073, count=20)), 1e-4, 1.0, 0.02),
        (plan(ev.Approximate(epsilon=1, delta=0.001, count=30)), 0.06, 22, 0.5),
        (plan(ev.Approximate(epsilon=1, delta=0.001, count=30)), 0.1, 20, 0.5),
        (plan(poisson(laplace(0.5), 0.2, 3)), 0, 2.46964, 1e-5),
    ],
)
def test_published_epsilons(composition: LossDistribution, delta: float, epsilon: float, within: float) -> None:
    """Values of other accountants (field notes, section 2 and 5) come out, and the lower bound is below."""
    low, high = composition.bounds(delta)
    assert high == pytest.approx(epsilon, abs=within)
    assert low <= high
    assert low >= 0.995 * high or delta == 0


@pytest.mark.parametrize(
    ("composition", "epsilon", "delta", "within"),
    [
        (plan(gaussian(math.sqrt(3), 3)), 1, 0.126936, 1e-5),
        (plan(poisson(gaussian(0.5), 0.2, 3)), 1, 0.15594, 1e-3),
        (plan(ev.Approximate(epsilon=1, delta=0.1), ev.Approximate(epsilon=2, delta=0.2)), 3, 0.28, 1e-9),
    ],
)
def test_published_deltas(composition: LossDistribution, epsilon: float, delta: float, within: float) -> None:
    """The same, asked the other way round."""
    assert composition.delta(epsilon) == pytest.approx(delta, abs=within)


def test_bounded_range_sum_against_its_density() -> None:
    """Losses drawn from the density e^((x − ε)/2)/(2(1 − e^−ε)) and rounded either way enclose the answer."""
    epsilon, count, step = 0.5, 10, 1e-4
    size = round(epsilon / step)
    edges = np.arange(-size, size + 1) * step
    masses = np.diff((np.exp((edges - epsilon) / 2) - math.exp(-epsilon)) / -math.expm1(-epsilon))
    length = 1 << 17
    law = np.fft.irfft(np.fft.rfft(masses, length) ** count, length)
    high = plan(ev.Exponential(epsilon=0.5, count=count)).epsilon(1e-6)
    for shift, worse in ((0, False), (1, True)):
        losses = (count * (shift - size) + np.arange(length)) * step
        delta = float(np.sum(law * np.maximum(-np.expm1(np.minimum(high - losses, 0)), 0)))
        assert (delta > 1e-6) == worse


# -- edges ------------------------------------------------------------------------------------------------------------


def test_counts_are_never_dropped() -> None:
    """Regression (a peer's defect): ten randomized responses are not one."""
    one, ten = plan(ev.RandomizedResponse(epsilon=1)), plan(ev.RandomizedResponse(epsilon=1, count=10))
    assert ten.epsilon(1e-6) > 9.9 * one.epsilon(1e-6)
    hundred = plan(*[ev.Exponential(epsilon=0.1)] * 100)
    assert hundred.epsilon(1e-6) == plan(ev.Exponential(epsilon=0.1, count=100)).epsilon(1e-6)


def test_without_events_nothing_is_lost() -> None:
    """The empty plan costs nothing."""
    assert plan().bounds(1e-6) == (0.0, 0.0)
    assert plan().delta(0) == 0


def test_pure_sums_at_delta_zero_and_unbounded_ones() -> None:
    """At δ = 0 the largest losses add up; where there is no largest one, or an infinite one, there is no bound."""
    assert plan(ev.Pure(epsilon=1, count=3), laplace(2)).epsilon(0) == pytest.approx(3.5)
    assert plan(gaussian(1)).epsilon(0) == math.inf
    assert plan(ev.Approximate(epsilon=1, delta=1e-9)).epsilon(0) == math.inf
    assert plan(ev.Approximate(epsilon=1, delta=1e-3, count=2)).epsilon(1e-3) == math.inf
    assert plan(ev.Pure(epsilon=1, count=3)).delta(3.1) == 0


@pytest.mark.parametrize(
    "event",
    [
        ev.Pure(epsilon=1, count=1 << 62),
        ev.Pure(epsilon=10_000, count=3),
        ev.Laplace(sensitivity=1, scale=10**6, count=10**10),
        ev.Exponential(epsilon=5000, count=4),
        ev.PoissonSampled(event=ev.Gaussian(sensitivity=1, sigma=0.3), rate=1e-6, count=10**6),
        ev.PoissonSampled(event=ev.Laplace(sensitivity=1, scale=1e-3), rate=1e-4, count=100),
    ],
    ids=lambda event: f"{type(event).__name__}-{event.count}",
)
def test_extreme_plans_are_answered_with_bounded_work(event: ev.Event) -> None:
    """Huge counts, losses and ranges give an answer on the safe side, never an overflow, warning or endless wait.

    What a transform costs is bounded by ``MAX_LENGTH``; so is the whole, as few functions are called.
    """

    def bound_all() -> None:
        for delta in (1e-6, 1e-15, 0.3):
            low, high = plan(event).bounds(delta)
            assert 0 <= low <= high

    assert count_calls(bound_all) < MOST_CALLS


def test_a_window_that_would_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With too little room for any transform, the sum of the largest losses is the answer, not a crash."""
    monkeypatch.setattr(convolve, "MAX_LENGTH", 8)
    composition = plan(ev.Laplace(sensitivity=1, scale=Fraction(17, 5), count=23))
    assert composition.epsilon(1e-6) == pytest.approx(23 * 5 / 17)
    assert composition.bounds(1e-6)[0] == 0
    assert composition.delta(1.0) == 1.0
    forget()
