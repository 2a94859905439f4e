"""Pricing: what is offered is what is charged, shares add up, and errors hold."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from discreet.accounting.account import compose
from discreet.accounting.events import Approximate
from discreet.bounding.bound import bound, bound_all
from discreet.bounding.contributions import reach, sensitivity
from discreet.bounding.joint_measures import joint_sensitivity
from discreet.bounding.strategies import PricedBy, choose_strategy
from discreet.errors import BudgetExceeded, ParameterError, Unbounded
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.rounded_gaussian import RoundedGaussian
from discreet.mechanisms.threshold import GaussianThreshold
from discreet.mechanisms.weighted_selection import WeightedSelection
from discreet.offer import Offer
from discreet.plan.catalog import ContributionLimits
from discreet.plan.nodes import Aggregate
from discreet.plan.statistics.definitions import Statistic
from discreet.price import MOST_MOVED, PriceTerms, mean_log_noise, price
from discreet.privacy import Budget, Neighbours
from discreet.release import Plan, Release
from tests.worlds.hospital import COUNT, GROUPS, ROWS, UNITS, ask, catalog, column, of
from tests.worlds.prices import ADD, APPROX, FOUR, PATIENT, PURE, ZCDP, priced


def test_a_pure_offer_is_spent_to_the_last_bit() -> None:
    """Shares of Laplace noise, together exactly what was offered; some measures are measured jointly."""
    release = priced(FOUR, PURE, epsilon=0.5)
    assert all(isinstance(noise, Laplace) for noise in release.noises.values())
    assert len(release.noises) < 4 == len(release.parts) == len(release.recoveries)
    assert release.loss.epsilon() == 0.5


def test_a_rho_offer_is_spent_to_the_last_bit() -> None:
    """The same with Gaussian noise and ρ."""
    release = priced(FOUR, ZCDP, rho=Fraction(1, 10))
    assert all(isinstance(noise, RoundedGaussian) for noise in release.noises.values())
    assert sum(
        noise.rho for noise in release.noises.values() if isinstance(noise, RoundedGaussian) and noise.rho
    ) == Fraction(1, 10)


def test_what_epsilon_means_under_epsilon_and_delta() -> None:
    """ε out of E is the share ε/E: as many such questions as there are parts fit together, with little to spare."""
    release = priced(FOUR, APPROX, epsilon=0.5)
    six = compose([*release.events] * 6).loss
    assert 2.8 < six.epsilon(1e-6) <= 3


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("budget", [PURE, ZCDP])
def test_noise_matches_sensitivity(budget: Budget, neighbours: Neighbours) -> None:
    """Every noise is calibrated for the distance that one unit can move its measure."""
    offer: dict[str, Any] = {"epsilon": 1} if budget is PURE else {"rho": 1}
    release = priced(FOUR, budget, neighbours=neighbours, **offer)
    priced_by = PricedBy(pure=budget is PURE, power=2 if budget is PURE else 1)
    strategy = choose_strategy(release.bounded, neighbours, priced_by, MOST_MOVED)
    for joint, noise in zip(strategy.joints, release.noises.values(), strict=True):
        moves = joint_sensitivity(release.bounded.bounded, joint, neighbours)
        if isinstance(noise, Laplace):
            assert noise.sensitivity == moves.l1
            assert noise.event.neighbours == neighbours
        else:
            assert noise.event.squared_sensitivity == moves.l2_squared


def test_events_price_what_is_drawn() -> None:
    """The loss is the composition of the events, keys included."""
    release = priced(ask(COUNT, keys=("town",)), APPROX, epsilon=1)
    assert len(release.events) == 3 and release.selection is not None
    assert release.loss.epsilon(1e-6) == compose(release.events).loss.epsilon(1e-6)
    assert release.selection.max_groups == 2


def test_private_keys_need_a_delta() -> None:
    """Without a δ groups from the data cannot be named; the error says how to declare them."""
    offers: list[tuple[Budget, dict[str, Any]]] = [(PURE, {"epsilon": 1}), (ZCDP, {"rho": 1})]
    for budget, offer in offers:
        with pytest.raises(BudgetExceeded, match=r"Declare the keys.*Nothing was charged"):
            priced(ask(COUNT, keys=("town",)), budget, **offer)


@pytest.mark.parametrize("budget", [PURE, APPROX, ZCDP])
def test_the_error_asked_for_is_met_at_the_least_cost(budget: Budget) -> None:
    """error={'a0': 12} finds a price whose error is at most 12, and a little less money would not do."""
    release = priced(ask(COUNT, keys=("ward",)), budget, error={"a0": 12})
    (estimate,) = release.bounded.estimates
    error = release.error(estimate)
    assert error is not None and error <= 12
    noise = release.noises[0]
    less = (
        {"epsilon": noise.epsilon * Fraction(9, 10)}  # type: ignore[operator]  # a Laplace noise has an exact ε
        if isinstance(noise, Laplace)
        else {"rho": noise.rho * Fraction(8, 10)}  # type: ignore[operator]  # a Gaussian noise has an exact ρ
    )
    worse = priced(ask(COUNT, keys=("ward",)), PURE if isinstance(noise, Laplace) else ZCDP, **less).error(estimate)
    assert worse is not None and worse > 12


def test_errors_that_public_facts_do_not_tell_are_refused() -> None:
    """The error of a mean depends on how many there are, which is private; unknown columns are unknown."""
    for name in ("a1", "k0", "nothing"):
        with pytest.raises(ParameterError, match="Nothing was charged"):
            priced(FOUR, PURE, error={name: 3})


def test_a_sum_that_rides_on_a_mean_has_an_error_too() -> None:
    """Its bound holds for the sum and the count together, and a price can be found for it."""
    question = ask(of(Statistic.SUM, "age"), of(Statistic.MEAN, "age"))
    release = priced(question, PURE, epsilon=1)
    total, mean = release.bounded.estimates
    error = release.error(total)
    assert error is not None and release.error(mean) is None
    each = 55 * release.bound({0: Fraction(1)}, Fraction(1, 40)) + release.bound({1: Fraction(1)}, Fraction(1, 40))
    assert release.bound({1: Fraction(1)}) < error < each
    cheaper = priced(question, PURE, error={"a0": 2 * error})
    assert cheaper.loss.epsilon() < 1


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("limits", [GROUPS, ROWS])
@pytest.mark.parametrize("keys", [(), ("ward",), ("town",)])
def test_choices_are_calibrated_for_the_reach_of_a_unit(
    keys: tuple[str, ...], limits: ContributionLimits, neighbours: Neighbours
) -> None:
    """Quantiles and modes state as many groups and rows as one unit reaches."""
    question = ask(Aggregate(Statistic.QUANTILE, column("age"), Fraction(1, 2)), of(Statistic.MODE, "ward"), keys=keys)
    form = bound(question, catalog(limits=limits, neighbours=neighbours))
    (release,) = price(
        (form,), Offer(epsilon=1), PriceTerms(budget=APPROX, unit=PATIENT, neighbours=neighbours)
    ).releases
    far = reach(form.bounded, neighbours)
    assert len(release.choices) == 2
    for choice in release.choices.values():
        assert (choice.groups, choice.max_rows, choice.neighbours) == (far.groups, far.rows, neighbours)
    assert far.groups == (1 if limits is ROWS or not keys else 2)


def test_groupings_with_private_keys_share_a_delta() -> None:
    """What was said for the question is for all of its groupings together."""
    question = replace(ask(COUNT, keys=("town", "ward")), sets=((0, 1), (0,), ()))
    forms = bound_all(question, catalog())
    plan = price(forms, Offer(epsilon=1, delta=3e-8), PriceTerms(budget=APPROX, unit=PATIENT, neighbours=ADD))
    deltas = [Fraction(event.delta) for event in plan.events if isinstance(event, Approximate)]
    assert len(deltas) == 2 and sum(deltas) <= Fraction(3, 10**8)


def test_errors_that_no_privacy_can_give_are_refused() -> None:
    """Half a row of error on a sum of thousands would cost more than any loss worth the name."""
    with pytest.raises(BudgetExceeded, match=r"No loss worth the name.*Nothing was charged"):
        priced(ask(of(Statistic.SUM, "cost")), PURE, error={"a0": Fraction(1, 10**6)})


def test_contributions_that_no_noise_can_hide_are_refused() -> None:
    """Limits that multiply beyond 2^60 steps: refused with what to lower, before anything is read."""
    wide = catalog(limits=ContributionLimits(max_groups=1, max_rows_per_group=1 << 58))
    form = bound(ask(of(Statistic.SUM, "cost")), wide)
    with pytest.raises(Unbounded, match=r"Lower the limits.*Nothing was charged"):
        price((form,), Offer(epsilon=1), PriceTerms(budget=APPROX, unit=PATIENT, neighbours=ADD))


ONE_ROW = ContributionLimits(max_groups=2, max_rows_per_group=1)


def price_keys(*aggregates: Aggregate, limits: ContributionLimits, neighbours: Neighbours = ADD) -> Release:
    """A question with private keys under (ε, δ)."""
    form = bound(ask(*aggregates, keys=("town",)), catalog(limits=limits, neighbours=neighbours))
    terms = PriceTerms(budget=APPROX, unit=PATIENT, neighbours=neighbours)
    (release,) = price((form,), Offer(epsilon=1, delta=1e-8), terms).releases
    return release


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_one_noise_names_keys_and_is_released(neighbours: Neighbours) -> None:
    """A count of units gets the whole share; its events are the noise for what a unit moves, and the δ of naming."""
    release = price_keys(COUNT, limits=ONE_ROW, neighbours=neighbours)
    assert release.counted is not None and isinstance(release.selection, GaussianThreshold)
    (noise,) = release.noises.values()
    bounded = release.bounded.bounded
    moves = sensitivity(bounded, bounded.measures[release.counted], neighbours)
    assert isinstance(noise, RoundedGaussian) and noise.event.squared_sensitivity == moves.l2_squared
    assert release.events == (noise.event, *release.selection.events[1:])
    assert release.selection.slip <= Fraction(1, 10**8)
    assert release.selection.max_groups == 2
    assert {notion.kind for notion in release.loss.notions} >= {"gdp", "pld"}


def test_the_form_with_the_smaller_errors_is_taken() -> None:
    """One noise is better than two where units are counted; where rows are, keys are named by units beside them."""
    joint, apart = (price_keys(what, limits=replace(ONE_ROW, max_rows_per_group=3)) for what in (UNITS, COUNT))
    assert joint.counted is not None and apart.counted is None
    assert isinstance(apart.selection, WeightedSelection)
    assert len(apart.events) == 3
    units = price_keys(UNITS, limits=ONE_ROW)
    plain = price_keys(UNITS, of(Statistic.SUM, "cost"), limits=ONE_ROW)
    assert mean_log_noise([Plan((units,))]) < mean_log_noise([Plan((replace(units, selection=apart.selection),))])
    assert units.selection is not None and apart.selection is not None
    half = Fraction(1, 2)
    assert units.selection.kept_from(half) < apart.selection.kept_from(half)
    assert plain.counted is not None and len(plain.noises) == 2


def test_a_floor_of_units_goes_with_the_count() -> None:
    """With a least number of units the bar starts there."""
    question = replace(ask(UNITS, keys=("town",)), min_units=10)
    (release,) = price(
        (bound(question, catalog(limits=ONE_ROW)),),
        Offer(epsilon=1, delta=1e-8),
        PriceTerms(budget=APPROX, unit=PATIENT, neighbours=ADD),
    ).releases
    assert isinstance(release.selection, GaussianThreshold) and release.selection.min_units == 10
    assert release.named_count is not None and release.named_count.least == 10
