"""The laws of accounting, over every kind of event and every notion."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction

import mpmath as mp
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from discreet.accounting import Account, Filter, Odometer, compose, loss_of
from discreet.accounting import events as ev
from discreet.accounting.notions import KINDS
from discreet.accounting.rdp import Renyi
from discreet.errors import BudgetExceeded, UnknownLoss
from discreet.exact import upper
from discreet.privacy import Budget, Loss, Notion
from tests.laws import plans

DELTA = 1e-6
# The distribution has its own, slower laws; here it takes part where few examples suffice.
QUICK = tuple(kind for kind in KINDS if kind != "pld")


def quick(loss: Loss) -> list[Notion]:
    return [notion for notion in loss.notions if notion.kind in QUICK]


def same(one: Notion, other: Notion) -> bool:
    """Equal up to rounding that no float shows."""
    pairs = [(one.epsilon(d), other.epsilon(d)) for d in (0.0, 1e-9, 1e-3)]
    pairs += [(one.delta(e), other.delta(e)) for e in (0.0, 0.5, 3.0)]
    return all(a == pytest.approx(b, rel=1e-9, abs=1e-15) for a, b in pairs)


@given(plans.events(), st.integers(1, 7))
@settings(deadline=None, max_examples=80)
def test_many_at_once_equals_one_by_one(event: ev.Event, count: int) -> None:
    """An event counted n times, a loss repeated n times, and n losses added one by one are the same loss."""
    counted, single = loss_of(event.times(count)), loss_of(event)
    added = single
    for _ in range(count - 1):
        added = added + single
    repeated = single.repeat(count)
    assert [n.kind for n in counted.notions] == [n.kind for n in added.notions] == [n.kind for n in repeated.notions]
    for notion in quick(counted):
        assert same(notion, added.notion(notion.kind)), notion
        assert same(notion, repeated.notion(notion.kind)), notion
    assert compose([event.times(count)]) == compose([event] * count)


@given(st.lists(plans.events(), min_size=2, max_size=5), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=60)
def test_order_does_not_matter(events: list[ev.Event], random: object) -> None:
    shuffled = list(events)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # a random.Random, typed loosely by hypothesis
    assert compose(events) == compose(shuffled)
    losses = [loss_of(event) for event in events]
    try:
        forward = losses[0]
        for loss in losses[1:]:
            forward = forward + loss
    except UnknownLoss:
        assume(False)  # hypothesis's way of skipping
    backward = losses[-1]
    for loss in reversed(losses[:-1]):
        backward = backward + loss
    for notion in quick(forward):
        assert same(notion, backward.notion(notion.kind))


@given(st.lists(plans.events(), min_size=1, max_size=4), plans.events())
@settings(deadline=None, max_examples=60)
def test_adding_an_event_never_lowers_the_loss(events: list[ev.Event], more: ev.Event) -> None:
    before, after = compose(events), compose([*events, more])
    try:
        notions = quick(after.loss)
    except UnknownLoss:
        return
    for notion in notions:
        for delta in (0.0, 1e-9, 1e-3):
            assert before.loss.notion(notion.kind).epsilon(delta) <= notion.epsilon(delta) * (1 + 1e-9)
        for epsilon in (0.0, 0.7, 4.0):
            assert before.loss.notion(notion.kind).delta(epsilon) <= notion.delta(epsilon) * (1 + 1e-9)


@given(plans.events())
@settings(deadline=None, max_examples=80)
def test_each_notion_is_monotone_and_self_consistent(event: ev.Event) -> None:
    """More δ never needs more ε, and δ(ε(δ)) never exceeds δ."""
    for notion in quick(loss_of(event)):
        deltas = (1e-12, 1e-9, 1e-6, 1e-3, 0.1)
        values = [notion.epsilon(delta) for delta in deltas]
        assert all(a >= b * (1 - 1e-12) for a, b in itertools.pairwise(values)), notion
        for delta, epsilon in zip(deltas, values):
            if math.isfinite(epsilon) and notion.delta(epsilon) < 1:
                assert notion.delta(epsilon) <= delta * (1 + 1e-6), notion


@given(plans.events())
@settings(deadline=None, max_examples=60)
def test_group_of_one_is_the_identity(event: ev.Event) -> None:
    loss = loss_of(event)
    assert quick(loss.for_group(1)) == quick(loss)
    account = compose([event])
    assert account.for_group(1) == account


@given(plans.events(), st.integers(2, 5))
@settings(deadline=None, max_examples=60)
def test_larger_groups_never_lose_less(event: ev.Event, size: int) -> None:
    loss = loss_of(event)
    try:
        group = compose([event]).for_group(size).loss
    except UnknownLoss:
        return
    for notion in quick(group):
        assert notion.epsilon(DELTA) >= loss.notion(notion.kind).epsilon(DELTA) * (1 - 1e-9)


@given(plans.pure_events(), st.integers(1, 5))
@settings(deadline=None, max_examples=60)
def test_pure_groups_lose_exactly_as_often(event: ev.Event, size: int) -> None:
    one, group = compose([event]), compose([event]).for_group(size)
    assert group.epsilon() == pytest.approx(size * one.epsilon(), rel=1e-12)
    assert upper(group.loss.notion("pure").amount) >= 0  # type: ignore[attr-defined]  # it is a Pure


@given(plans.events())
@settings(deadline=None, max_examples=200)
def test_events_survive_json(event: ev.Event) -> None:
    """Through text and back, nested samples and logarithms included."""
    assert ev.load(json.loads(json.dumps(ev.dump(event)))) == event


@given(st.lists(plans.events(), min_size=1, max_size=4), st.integers(1, 3))
@settings(deadline=None, max_examples=60)
def test_accounts_survive_json(events: list[ev.Event], group: int) -> None:
    account = compose(events).for_group(group)
    back = Account.from_json(json.dumps(json.loads(account.to_json())))
    assert back == account


@given(st.lists(plans.events(), min_size=1, max_size=12), st.data())
@settings(deadline=None, max_examples=120)
def test_filter_never_lets_through_what_the_odometer_says_is_over(events: list[ev.Event], data: st.DataObject) -> None:
    budget = data.draw(
        st.sampled_from(
            [
                Budget(epsilon=Fraction(7, 2)),
                Budget(epsilon=2, delta=1e-6),
                Budget(epsilon=6, delta=1e-3),
                Budget(rho=Fraction(3, 2)),
                Budget(mu=2),
            ]
        )
    )
    limited, total = Filter(budget), Odometer()
    for event in events:
        fits = False
        try:
            fits = limited.can(event)
            limited.charge(event)
        except BudgetExceeded:
            assert not fits
            continue
        except UnknownLoss:
            continue
        assert fits
        total.charge(event)
        loss = total.loss
        match budget.notion:
            case "pure":
                assert loss.epsilon() <= 3.5
            case "approx":
                assert loss.epsilon(budget.slack()) <= float(upper(budget.amount()))
            case "zcdp":
                assert loss.notion("zcdp").rho <= Fraction(3, 2)  # type: ignore[attr-defined]  # it is zCDP
            case "gdp":
                assert loss.notion("gdp").mu_squared <= 4  # type: ignore[attr-defined]  # it is Gaussian
    assert limited.charges == total.charges


def exact_profile(p: list[mp.mpf], q: list[mp.mpf], epsilon: float) -> mp.mpf:
    return mp.fsum(max(mp.mpf(0), a - mp.exp(mp.mpf(epsilon)) * b) for a, b in zip(p, q))


@given(
    st.integers(1, 3),
    st.fractions(Fraction(1, 2), 4, max_denominator=8),
    st.integers(2, 5),
    st.floats(0, 1.2),
)
@settings(deadline=None, max_examples=60)
def test_notions_are_never_below_exact_sums(sensitivity: int, scale: Fraction, categories: int, share: float) -> None:
    """Discrete Laplace and randomized response together, against the sum over all pairs of outputs."""
    mp.mp.dps = 30
    t = mp.mpf(scale.numerator) / scale.denominator
    reach = int(40 * t) + 10
    total = (1 + mp.exp(-1 / t)) / (1 - mp.exp(-1 / t))
    noise = [(mp.exp(-abs(x) / t) / total, mp.exp(-abs(x - sensitivity) / t) / total) for x in range(-reach, reach + 1)]
    e = mp.e
    kept = [(e, mp.mpf(1)), (mp.mpf(1), e), *[(mp.mpf(1), mp.mpf(1))] * (categories - 2)]
    answers = [(a / (e + categories - 1), b / (e + categories - 1)) for a, b in kept]
    p = [a * c for a, _ in noise for c, _ in answers]
    q = [b * d for _, b in noise for _, d in answers]
    account = compose(
        [
            ev.DiscreteLaplace(sensitivity=sensitivity, scale=scale),
            ev.RandomizedResponse(epsilon=1, categories=categories),
        ]
    )
    epsilon = share * account.epsilon()
    exact = exact_profile(p, q, epsilon) - mp.mpf(10) ** -15
    for notion in quick(account.loss):
        assert notion.delta(epsilon) >= exact, notion
    assert account.loss.notion("pld").delta(epsilon) >= exact


@given(st.integers(1, 9), st.fractions(Fraction(1, 2), 9, max_denominator=4), st.floats(0, 3))
@settings(deadline=None, max_examples=60)
def test_discrete_gaussian_bounds_are_never_below_exact_sums(root: int, variance: Fraction, epsilon: float) -> None:
    mp.mp.dps = 30
    v = mp.mpf(variance.numerator) / variance.denominator
    xs = range(-60 - root, 61 + root)
    total = mp.fsum(mp.exp(-(mp.mpf(x) ** 2) / (2 * v)) for x in xs)
    p = [mp.exp(-(mp.mpf(x) ** 2) / (2 * v)) / total for x in xs]
    q = [mp.exp(-(mp.mpf(x - root) ** 2) / (2 * v)) / total for x in xs]
    loss = loss_of(ev.DiscreteGaussian(squared_sensitivity=root * root, variance=variance))
    exact = exact_profile(p, q, epsilon) - mp.mpf(10) ** -15
    for notion in quick(loss):
        assert notion.delta(epsilon) >= exact
    curve = loss.notion("rdp")
    assert isinstance(curve, Renyi)
    for order in (1.5, 2.0, 8.0):
        divergence = mp.log(mp.fsum(a**order * b ** (1 - order) for a, b in zip(p, q))) / (mp.mpf(order) - 1)
        assert curve.value_at(order) >= divergence * (1 - mp.mpf(10) ** -12)


@given(st.lists(plans.pure_events(), min_size=1, max_size=3))
@settings(deadline=None, max_examples=12)
def test_distribution_is_never_above_basic_and_never_below_its_own_lower_bound(events: list[ev.Event]) -> None:
    account = compose(events)
    lower, upper_bound = account.bounds(DELTA)
    assert 0 <= lower <= upper_bound <= account.epsilon()
    assert account.epsilon(DELTA, "pld") <= account.epsilon() * (1 + 1e-9)
