"""The filter over classes: no adaptive strategy beats it, mixtures fit in any order, what is left can be charged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import Filter, compose, events, loss_of
from discreet.accounting.spending_classes import SUMS, ClassCurrency, price_from_old_sums, price_in_all
from discreet.accounting.sums import NEVER
from discreet.errors import BudgetExceeded
from discreet.exact import upper
from discreet.privacy import Budget
from tests.accounting.adaptive_runs import Choice, failure, find_worst, response, threshold

BUDGET = Budget(epsilon=1, delta=1e-6)


def counts_fit(currency: ClassCurrency, charged: Sequence[events.Event]) -> Callable[[tuple[int, ...]], bool]:
    """Whether so many of each of these events fit together."""
    prices = [currency.price(loss_of(event)) for event in charged]

    @cache
    def fits(made: tuple[int, ...]) -> bool:
        total = currency.nothing
        for price, times in zip(prices, made):
            for _ in range(times):
                total = currency.add(total, price)
        return currency.fits(total)

    return fits


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.05), (0.5, 0.02)])
@pytest.mark.parametrize(
    "sizes", [(0.4, 0.3, 1.5, 20), (0.15, 0.5, 2.0, 10), (0.15, 0.5, 0.25, 10), (0.4, 0.6, 0.3, 5)]
)
def test_no_adaptive_strategy_beats_the_filter(
    epsilon: float, delta: float, sizes: tuple[float, float, float, int]
) -> None:
    """Pure releases, Gaussian ones and failures, mixed as the strategy likes after seeing every outcome."""
    pure, mu, at, part = sizes
    slip = delta / part
    charged = [
        events.Pure(epsilon=pure),
        events.Gaussian(sensitivity=mu, sigma=1),
        events.Approximate(epsilon=0, delta=slip),
    ]
    accepts = counts_fit(ClassCurrency.of(Budget(epsilon=epsilon, delta=delta)), charged)
    worst = find_worst([response(pure), threshold(mu, at), failure(slip)], accepts, epsilon)
    assert 0 < worst <= delta


def toy_filter(costs: Sequence[Sequence[int]], limits: Sequence[int]) -> Callable[[tuple[int, ...]], bool]:
    """A filter over classes with whole costs."""

    def accepts(made: tuple[int, ...]) -> bool:
        totals = [sum(cost * times for cost, times in zip(row, made)) for row in costs]
        return any(total <= limit for total, limit in zip(totals, limits))

    return accepts


def largest_limits(
    choices: Sequence[Choice], costs: Sequence[Sequence[int]], epsilon: float, delta: float
) -> list[int]:
    """The largest limit of each class by itself that is (ε, δ)-private against every adaptive strategy."""
    found = []
    for row in costs:
        limit = 0
        while find_worst(choices, toy_filter([row], [limit + 1]), epsilon) <= delta:
            limit += 1
        found.append(limit)
    return found


def test_classes_that_do_not_divide_delta_are_beaten() -> None:
    """Each class by itself holds at all of δ; together a strategy gains more. With half of δ each they hold."""
    choices, costs, epsilon, delta = [response(0.3), threshold(0.2, 2.0)], [(1, 6), (6, 1)], 1.0, 0.02
    whole = largest_limits(choices, costs, epsilon, delta)
    assert find_worst(choices, toy_filter(costs, whole), epsilon) > 1.05 * delta
    halved = largest_limits(choices, costs, epsilon, delta / 2)
    assert find_worst(choices, toy_filter(costs, halved), epsilon) <= delta


def test_a_filter_that_forgets_failures_is_beaten() -> None:
    """A class that holds at all of δ leaves nothing for failures."""
    choices, epsilon, delta = [response(0.3), failure(0.01)], 1.0, 0.05
    (limit,) = largest_limits(choices[:1], [(1,)], epsilon, delta)
    forgets = find_worst(choices, lambda made: made[0] <= limit and made[1] <= 4, epsilon)
    assert forgets > 1.2 * delta
    (limit,) = largest_limits(choices[:1], [(1,)], epsilon, delta - 0.04)
    assert find_worst(choices, lambda made: made[0] <= limit and made[1] <= 4, epsilon) <= delta


def random_events() -> st.SearchStrategy[events.Event]:
    size = st.fractions(Fraction(1, 200), Fraction(1, 4), max_denominator=1000)
    return st.one_of(
        st.builds(lambda e: events.Pure(epsilon=e), size),
        st.builds(lambda e: events.Exponential(epsilon=e), size),
        st.builds(lambda e: events.Laplace(sensitivity=e, scale=1), size),
        st.builds(lambda e: events.Gaussian(sensitivity=e / 4, sigma=1), size),
        st.builds(lambda n: events.DiscreteGaussian(squared_sensitivity=1, variance=n), st.integers(100, 10_000)),
        st.builds(lambda e: events.Approximate(epsilon=e, delta=Fraction(1, 10**8)), size),
        st.builds(lambda e: events.ZeroConcentrated(rho=e / 50, delta=Fraction(1, 10**8)), size),
    )


@given(st.lists(random_events(), min_size=1, max_size=12), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=60)
def test_what_fits_does_not_depend_on_the_order(charged: list[events.Event], random: object) -> None:
    """The order changes no sum by more than rounding: what fits in one order fits in every one."""
    shuffled = list(charged)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # a random.Random, typed loosely by hypothesis
    one, other = Filter(BUDGET), Filter(BUDGET)
    currency = ClassCurrency.of(BUDGET)
    totals = []
    for order in (charged, shuffled):
        total = currency.nothing
        for event in order:
            total = currency.add(total, currency.price(loss_of(event)))
        totals.append(total)
    assert all(abs(a - b) < Fraction(1, 10**20) for a, b in zip(*totals))
    if currency.fits(totals[0]) and len(charged) > 1:
        for order, budget in ((charged, one), (shuffled, other)):
            for event in order:
                budget.charge(event)


@given(st.lists(random_events(), max_size=8))
@settings(deadline=None, max_examples=60)
def test_what_is_left_can_be_charged_and_a_little_more_cannot(charged: list[events.Event]) -> None:
    """The two numbers of what is left are accepted as they are; with a thousandth more they are refused."""
    currency, total = ClassCurrency.of(BUDGET), ClassCurrency.of(BUDGET).nothing
    for event in charged:
        after = currency.add(total, currency.price(loss_of(event)))
        total = after if currency.fits(after) else total

    def fits(event: events.Event) -> bool:
        return currency.fits(currency.add(total, currency.price(loss_of(event))))

    epsilon = currency.largest_epsilon(total)
    rho, rounded = currency.largest_rho(total), currency.largest_rho(total, rounded=True)
    more = Fraction(1001, 1000)
    assert not epsilon or fits(events.Pure(epsilon=epsilon))
    assert not fits(events.Pure(epsilon=max(epsilon * more, Fraction(1, 10**9))))
    assert not rho or fits(events.ZeroConcentrated(rho=rho))
    assert not fits(events.ZeroConcentrated(rho=max(rho * more, Fraction(1, 10**9))))
    assert rounded >= rho
    for scale, expected in ((1, rounded > 0), (more * more, False)):
        square = 2 * rounded * scale or Fraction(1, 10**9)
        gaussian = events.Gaussian(sensitivity=_root(square), sigma=1)
        assert fits(gaussian) is expected


def _root(square: Fraction) -> Fraction:
    """A square root rounded down to a short number."""
    return Fraction(int(float(square) ** 0.5 * 2**40), 2**40)


def test_prices_cover_every_form() -> None:
    """Each sum is at or above the form that it counts; a form that an event does not have is never within a budget."""
    laplace = dict(zip(SUMS, price_in_all(loss_of(events.Laplace(sensitivity=1, scale=2)))))
    assert laplace["epsilon"] == Fraction(1, 2)
    assert laplace["rho"] == Fraction(1, 8)
    assert laplace["tau_4096"] <= Fraction(1, 2)
    assert Fraction(1, 4) < laplace["mu_squared"] < Fraction(2, 5)
    gaussian = dict(zip(SUMS, price_in_all(loss_of(events.Gaussian(sensitivity=1, sigma=2)))))
    assert gaussian["epsilon"] == NEVER
    assert gaussian["mu_squared"] == Fraction(1, 4)
    assert gaussian["tau_4"] == Fraction(1, 2)
    discrete = dict(zip(SUMS, price_in_all(loss_of(events.DiscreteGaussian(squared_sensitivity=1, variance=4)))))
    assert discrete["mu_squared"] == NEVER
    together = compose([events.Gaussian(sensitivity=1, sigma=2), events.Approximate(epsilon=0.1, delta=1e-9)]).loss
    mixed = dict(zip(SUMS, price_in_all(together)))
    assert mixed["delta"] == Fraction(1, 10**9)
    assert Fraction(1, 4) < mixed["mu_squared"] < Fraction(27, 100)


def test_the_whole_budget_fits_at_once_and_then_nothing_more() -> None:
    whole = Filter(BUDGET)
    whole.charge(events.Approximate(epsilon=1, delta=1e-6))
    assert whole.remaining == 0
    assert not whole.can(events.Pure(epsilon=1e-9))
    assert not whole.can(events.Approximate(epsilon=0, delta=1e-20))
    later = Filter(BUDGET)
    later.charge(events.Pure(epsilon=0.1))
    with pytest.raises(BudgetExceeded):
        later.charge(events.Approximate(epsilon=0.9, delta=1e-6))
    assert not Filter(BUDGET).can(events.Approximate(epsilon=1, delta=1.0001e-6))


def test_a_batch_of_two_leaves_the_rest_of_eight() -> None:
    """After (2, 1e-7) out of (8, 1e-6) small questions of both families fit, and the other way round."""
    batch, small = (
        events.Approximate(epsilon=2, delta=1e-7),
        events.DiscreteGaussian(squared_sensitivity=1, variance=10**4),
    )
    for order in ((batch, small), (small, batch)):
        budget = Filter(Budget(epsilon=8, delta=1e-6))
        for event in order:
            budget.charge(event)
        assert budget.remaining > 1
    pure = Filter(Budget(epsilon=8, delta=1e-6))
    pure.charge(batch)
    pure.charge(events.Pure(epsilon=6))
    assert pure.remaining == 0


@pytest.mark.parametrize(
    ("epsilon", "delta", "most"), [(1, 1e-6, 1.026), (1, 1e-9, 1.016), (8, 1e-6, 1.018), (0.1, 1e-6, 1.033)]
)
def test_gaussian_questions_are_near_the_best_plan(epsilon: float, delta: float, most: float) -> None:
    """The noise of many questions against that of a plan which is known in advance and has all of δ."""
    currency = ClassCurrency.of(Budget(epsilon=epsilon, delta=delta))
    bought = 2 * currency.largest_rho(currency.nothing, rounded=True)
    low, high = 0.0, 5.0
    for _ in range(60):
        middle = (low + high) / 2
        good = loss_of(events.Gaussian(sensitivity=middle, sigma=1)).delta(epsilon, notion="gdp") <= delta
        low, high = (middle, high) if good else (low, middle)
    assert 1 <= low / float(bought) ** 0.5 <= most


def test_sums_of_old_ledgers_are_never_below() -> None:
    """What version 0.1.0 summed is at or above what the events cost; a μ that it did not know is never."""
    charged = [events.Laplace(sensitivity=1, scale=4), events.Approximate(epsilon=0.5, delta=1e-8, count=3)]
    old = price_from_old_sums(price_in_all(compose(charged).loss)[:3])
    fresh = price_in_all(compose(charged).loss)
    assert all(a >= b for name, a, b in zip(SUMS, old, fresh) if name != "charges")
    assert old[SUMS.index("mu_squared")] == NEVER
    assert upper(old[0]) == Fraction(7, 4)
