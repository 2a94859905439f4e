"""Strategies: joint forms are taken where they help, shares add up, and shown errors fall."""

from __future__ import annotations

from fractions import Fraction
from math import prod
from typing import Any

import pytest

from discreet.bounding.bound import BoundedQuestion, bound
from discreet.bounding.strategies import PricedBy, Strategy, choose_strategy, list_shown
from discreet.plan.nodes import Question
from discreet.plan.statistics.definitions import Statistic
from discreet.privacy import Budget, Neighbours
from discreet.release import Release
from tests.worlds.hospital import COUNT, UNITS, ask, catalog, of
from tests.worlds.prices import PURE, ZCDP, priced

EPSILON, RHO = PricedBy(pure=True, power=2), PricedBy(pure=False, power=1)
SUM, MEAN, VARIANCE = (of(s, "age") for s in (Statistic.SUM, Statistic.MEAN, Statistic.VARIANCE))


def chosen(question: Question, by: PricedBy = EPSILON, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> Strategy:
    return choose_strategy(bounded(question), neighbours, by, 1 << 60)


def bounded(question: Question) -> BoundedQuestion:
    return bound(question, catalog())


@pytest.mark.parametrize("by", [EPSILON, RHO], ids=["pure", "gaussian"])
@pytest.mark.parametrize("aggregates", [(COUNT, SUM), (MEAN,), (COUNT, VARIANCE), (COUNT, UNITS, SUM, MEAN)])
def test_shares_sum_to_one_and_parts_are_as_many_as_measures(aggregates: tuple[object, ...], by: PricedBy) -> None:
    """All of the price is used, and everything that is needed comes back."""
    question = ask(*aggregates, keys=("ward",))  # type: ignore[arg-type]  # aggregates of the hospital
    strategy = chosen(question, by)
    assert sum(strategy.shares) == 1 and min(strategy.shares) > 0
    assert sum(len(joint.parts) for joint in strategy.joints) == len(bounded(question).measured)


def test_a_count_with_a_sum_is_one_joint_measure_with_pure_noise() -> None:
    """And so are means and variances; counts of unlike things keep equal shares."""
    for aggregates in ((COUNT, SUM), (MEAN,), (VARIANCE,)):
        assert len(chosen(ask(*aggregates)).joints) == 1
    assert chosen(ask(COUNT, UNITS)).shares == (Fraction(1, 2), Fraction(1, 2))
    assert [len(joint.parts) for joint in chosen(ask(SUM)).joints] == [1]


def measure_all_alone(
    form: BoundedQuestion, neighbours: Neighbours, by: PricedBy, _: int, *, alone: int | None
) -> Strategy:
    return choose_strategy(form, neighbours, by, 0, alone=alone)


def deviations(release: Release) -> list[float]:
    return [release.deviation(dict(shown)) for shown in list_shown(release.bounded)]


def test_errors_are_those_of_the_formulas() -> None:
    """With K rows: a count 2K/ε, a sum √2·K/ε·√(lo² + hi²), for bounds 0 to 110."""
    release = priced(ask(COUNT, SUM), PURE, epsilon=1)
    limit = release.bounded.bounded.max_rows_per_group or release.bounded.bounded.max_rows or 1
    count, total = deviations(release)
    assert count == pytest.approx(2 * limit, rel=1e-3)
    assert total == pytest.approx(2**0.5 * limit * 110, rel=1e-3)


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("budget", [PURE, ZCDP], ids=["pure", "gaussian"])
def test_joint_strategies_are_never_worse_than_measuring_alone(
    budget: Budget, neighbours: Neighbours, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the geometric mean of what is shown, for both kinds of noise and both kinds of neighbours."""
    offer: dict[str, Any] = {"epsilon": 1} if budget is PURE else {"rho": Fraction(1, 10)}
    questions = [ask(*several) for several in ((COUNT, SUM), (MEAN,), (COUNT, MEAN), (COUNT, VARIANCE), (COUNT, UNITS))]
    together = [prod(deviations(priced(q, budget, neighbours=neighbours, **offer))) for q in questions]
    monkeypatch.setattr("discreet.price.choose_strategy", measure_all_alone)
    alone = [prod(deviations(priced(q, budget, neighbours=neighbours, **offer))) for q in questions]
    assert all(one <= two * 1.0001 for one, two in zip(together, alone))
    assert together[0] < 0.9 * alone[0] or neighbours is Neighbours.REPLACE


def test_forms_that_are_too_wide_are_left_alone() -> None:
    """Nothing is measured jointly that one unit could move further than noise can hide."""
    strategy = choose_strategy(bounded(ask(COUNT, SUM)), Neighbours.ADD_REMOVE, EPSILON, 1)
    assert all(len(joint.parts) == 1 for joint in strategy.joints)


def test_a_count_that_names_keys_is_combined_with_nothing() -> None:
    """What is left is combined as if the count were not there."""
    form = bounded(ask(COUNT, SUM, MEAN))
    count = form.estimates[0].count
    assert count is not None
    for position in form.measured:
        strategy = choose_strategy(form, Neighbours.ADD_REMOVE, EPSILON, 1 << 60, alone=position)
        used = [joint for joint in strategy.joints if any(position in dict(part) for part in joint.parts)]
        assert [joint.parts for joint in used] == [(((position, 1),),)]
