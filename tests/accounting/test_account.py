"""Accounts: the worked example, the dropped counts of a peer, groups, parallel parts, JSON, and refusals."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from fractions import Fraction

import pytest

from discreet.accounting import Account, compose, events, loss_of, parallel
from discreet.accounting.approximate import ApproximateNotion
from discreet.accounting.gdp import GaussianNotion
from discreet.accounting.pure import PureNotion
from discreet.accounting.zcdp import ZeroConcentratedNotion
from discreet.errors import MixedGuarantees, ParameterError, UnknownLoss
from discreet.exact import ln
from discreet.privacy import Neighbours, Unit

MIXED = [
    events.Laplace(sensitivity=1, scale=100),
    events.Gaussian(sensitivity=1, sigma=100, count=500),
    events.RandomizedResponse(epsilon=1, categories=2),
    events.Exponential(epsilon=0.1),
]


def test_the_worked_example() -> None:
    """The call that the documentation shows: every number is there, and the tightest notion is the smallest."""
    account = compose(MIXED)
    best = account.epsilon(delta=1e-6)
    each = {notion: account.epsilon(delta=1e-6, notion=notion) for notion in ("pld", "zcdp", "rdp")}
    assert best == min(each.values())
    assert 1.9 < best < 2.0
    lower, upper = account.bounds(delta=1e-6)
    assert 1.8 < lower <= upper == best
    assert 0 < account.delta(epsilon=1) < 0.1
    assert account.for_group(3).epsilon(delta=1e-6) > best
    assert "50:50" in str(account.odds())
    for notion in ("pure", "approx"):
        with pytest.raises(UnknownLoss, match=notion):
            account.epsilon(delta=1e-6, notion=notion)


def test_repr_shows_events_and_every_notion() -> None:
    text = repr(compose(MIXED))
    assert text.startswith("Account of 503 releases, protecting one row (add-remove)")
    assert "500 × Gaussian(sensitivity=1, sigma=100)" in text
    assert all(kind in text for kind in ("zcdp", "rdp", "pld"))
    many = repr(compose([events.Pure(epsilon=Fraction(1, i)) for i in range(1, 20)]))
    assert "other kinds" in many
    group = repr(compose([events.Pure(epsilon=1, unit="patient")]).for_group(2))
    assert "a group of 2 (unit: one patient)" in group
    never = compose([events.Approximate(epsilon=1, delta=0.1)])
    assert "none" in repr(never)


@pytest.mark.parametrize("notion", ["pure", "approx", "zcdp", "rdp", "pld"])
def test_count_of_randomized_response_is_never_dropped(notion: str) -> None:
    """A peer reports ε = 1 for ten randomized responses of ε = 1 counted together."""
    counted = compose([events.RandomizedResponse(epsilon=1, categories=2, count=10)])
    looped = compose([events.RandomizedResponse(epsilon=1, categories=2)] * 10)
    assert counted == looped
    assert counted.epsilon(1e-6, notion) == looped.epsilon(1e-6, notion)
    assert counted.epsilon(1e-6, "pld") == pytest.approx(9.99998, abs=1e-4)
    assert counted.epsilon(1e-6, notion) > 9.9


@pytest.mark.parametrize("notion", ["pure", "approx", "zcdp", "rdp", "pld"])
def test_count_of_the_exponential_mechanism_is_never_dropped(notion: str) -> None:
    """A peer reports 0.1058 for a hundred exponential mechanisms of ε = 0.1; it is 2.4191 by ε²/8."""
    counted = compose([events.Exponential(epsilon=0.1, count=100)])
    one = compose([events.Exponential(epsilon=0.1)])
    assert counted.epsilon(1e-6, "zcdp") == pytest.approx(2.4190931, abs=1e-6)
    assert counted.epsilon(1e-6, "rdp") == pytest.approx(2.4190851, abs=2e-4)
    assert counted.epsilon(1e-6, notion) > 10 * one.epsilon(1e-6, notion) or notion in {"zcdp", "rdp"}
    assert counted.epsilon(1e-6, notion) > 2


def test_equal_events_are_counted_together() -> None:
    one = compose([events.Pure(epsilon=1, count=2), events.Pure(epsilon=2), events.Pure(epsilon=1)])
    assert [(event.count, event.epsilon) for event in one.events if isinstance(event, events.Pure)] == [(3, 1), (1, 2)]
    assert compose(one.events[0]) == Account((one.events[0],))


def test_composition_of_accounts() -> None:
    whole = compose(MIXED[:2]) + compose(MIXED[2:])
    assert whole == compose(MIXED)
    with pytest.raises(MixedGuarantees, match="group"):
        compose(MIXED).for_group(2).compose(compose(MIXED))
    with pytest.raises(ParameterError, match="account"):
        compose(MIXED).compose("x")  # type: ignore[arg-type]  # on purpose


def test_units_and_relations_are_not_mixed() -> None:
    with pytest.raises(MixedGuarantees, match="one patient"):
        compose([events.Pure(epsilon=1), events.Pure(epsilon=1, unit="patient")])
    with pytest.raises(MixedGuarantees, match="replace"):
        compose([events.Pure(epsilon=1), events.Pure(epsilon=1, neighbours="replace")])
    account = compose([events.Pure(epsilon=1, unit="patient", neighbours="replace")])
    assert (account.unit, account.neighbours) == (Unit("patient"), Neighbours.REPLACE)


def test_bad_input_is_refused() -> None:
    with pytest.raises(ParameterError, match="at least one event"):
        compose([])
    with pytest.raises(ParameterError, match="must all be events"):
        compose([1])  # type: ignore[list-item]  # on purpose
    account = compose(MIXED)
    for delta in (-0.1, 1, 1.5, float("nan"), float("inf"), "x", None, True):
        with pytest.raises(ParameterError, match="delta"):
            account.epsilon(delta)  # type: ignore[arg-type]  # on purpose
        with pytest.raises(ParameterError, match="delta"):
            account.bounds(delta)  # type: ignore[arg-type]  # on purpose
    for epsilon in (-1, float("nan"), float("inf"), "x", True):
        with pytest.raises(ParameterError, match="epsilon"):
            account.delta(epsilon)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(ParameterError, match="notion"):
        account.epsilon(1e-6, "fdp")
    for size in (0, -1, 1.5, True):
        with pytest.raises(ParameterError, match="size"):
            account.for_group(size)  # type: ignore[arg-type]  # on purpose


def test_unknown_events_are_refused_not_ignored() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True, repr=False)
    class Novel(events.Laplace):
        """Looks like a Laplace event, but nobody said what it costs."""

    with pytest.raises(UnknownLoss, match="Novel"):
        loss_of(Novel(sensitivity=1, scale=1))
    with pytest.raises(UnknownLoss):
        _ = compose([events.Laplace(sensitivity=1, scale=1), Novel(sensitivity=1, scale=1)]).loss


def test_events_without_a_shared_notion_are_refused() -> None:
    account = compose([events.ZeroConcentrated(rho=1, delta=0.001)]).for_group(2)
    with pytest.raises(UnknownLoss, match="share no notion"):
        _ = account.loss


def test_each_event_has_every_valid_notion() -> None:
    """The table of what is known, spelled out."""
    pure = {"pure", "approx", "zcdp", "rdp", "gdp", "pld"}
    gaussian = {"zcdp", "rdp", "gdp", "pld"}
    table: list[tuple[events.Event, set[str]]] = [
        (events.Laplace(sensitivity=1, scale=2), pure),
        (events.DiscreteLaplace(sensitivity=1, scale=2), pure),
        (events.RandomizedResponse(epsilon=1), pure),
        (events.Exponential(epsilon=1), pure),
        (events.Pure(epsilon=1), pure),
        (events.Gaussian(sensitivity=1, sigma=2), gaussian),
        (events.DiscreteGaussian(squared_sensitivity=1, variance=4), {"zcdp", "rdp", "pld"}),
        (events.DiscreteGaussian(squared_sensitivity=2, variance=4, dimension=2), {"zcdp", "rdp"}),
        (events.RoundedGaussian(squared_sensitivity=2, variance=4), gaussian),
        (events.Approximate(epsilon=1, delta=1e-6), {"approx", "zcdp", "rdp", "gdp", "pld"}),
        (events.Approximate(epsilon=1, delta=0), pure),
        (
            events.FixedPlan(epsilon=1, delta=1e-6, events=(events.Gaussian(sensitivity=1, sigma=4),)),
            {"approx", "zcdp", "rdp", "gdp"},
        ),
        (events.ZeroConcentrated(rho=1), {"zcdp", "rdp"}),
        (events.ZeroConcentrated(rho=1, delta=1e-6), {"zcdp", "rdp"}),
        (events.PoissonSampled(event=events.Laplace(sensitivity=1, scale=2), rate=0.1), pure),
        (events.PoissonSampled(event=events.Gaussian(sensitivity=1, sigma=2), rate=0.1), gaussian),
        (events.PoissonSampled(event=events.ZeroConcentrated(rho=1), rate=0.1), {"zcdp", "rdp"}),
    ]
    for event, kinds in table:
        assert {notion.kind for notion in loss_of(event).notions} == kinds, event
    assert {type(event) for event, _ in table} == set(events.KINDS.values())


def test_exact_parameters_of_simple_events() -> None:
    assert loss_of(events.Laplace(sensitivity=2, scale=8, count=3)).notion("pure") == PureNotion(Fraction(3, 4))
    assert loss_of(events.DiscreteLaplace(sensitivity=2, scale=8)).notion("zcdp") == ZeroConcentratedNotion(
        Fraction(1, 32)
    )
    assert loss_of(events.Gaussian(sensitivity=3, sigma=6)).notion("gdp") == GaussianNotion(Fraction(1, 4))
    assert loss_of(events.Gaussian(sensitivity=3, sigma=6)).notion("zcdp") == ZeroConcentratedNotion(Fraction(1, 8))
    rounded = loss_of(events.RoundedGaussian(squared_sensitivity=2, variance=4, count=5))
    assert rounded.notion("gdp") == GaussianNotion(Fraction(5, 2))
    assert rounded.notion("zcdp") == ZeroConcentratedNotion(Fraction(5, 4))
    discrete = events.DiscreteGaussian(squared_sensitivity=2, variance=4, count=5)
    assert loss_of(discrete).notion("zcdp") == ZeroConcentratedNotion(Fraction(5, 4))
    assert loss_of(events.Exponential(epsilon=1)).notion("zcdp") == ZeroConcentratedNotion(Fraction(1, 8))
    pair = events.Approximate(epsilon=ln(2), delta=0.25, count=2)
    assert loss_of(pair).notion("approx") == ApproximateNotion.of(ln(2), Fraction(1, 4), 2)
    slack = loss_of(events.ZeroConcentrated(rho=1, delta=0.25, count=2)).notion("zcdp")
    assert slack == ZeroConcentratedNotion(Fraction(2), Fraction(1, 2))


def test_group_formulas() -> None:
    """kε, k²ρ, kμ, and (kε, δ(e^(kε)−1)/(e^ε−1)), also through the distribution."""
    laplace = compose([events.Laplace(sensitivity=1, scale=2, count=2)]).for_group(3)
    assert laplace.epsilon() == 3.0
    assert laplace.epsilon(1e-6, "pld") == pytest.approx(3.0, abs=1e-5)
    gaussian = compose([events.Gaussian(sensitivity=1, sigma=2)]).for_group(2)
    assert gaussian.loss.notion("gdp") == GaussianNotion(Fraction(1))
    assert gaussian.loss.notion("zcdp") == ZeroConcentratedNotion(Fraction(1, 2))
    rounded = compose([events.RoundedGaussian(squared_sensitivity=2, variance=8)]).for_group(2)
    assert rounded.loss.notion("gdp") == GaussianNotion(Fraction(1))
    assert rounded.epsilon(1e-6, "pld") == pytest.approx(gaussian.epsilon(1e-6, "pld"), rel=1e-9)
    pair = compose([events.Approximate(epsilon=ln(2), delta=0.001)]).for_group(3)
    assert pair.epsilon(0.0071) <= math.log(8) * (1 + 1e-12)
    assert pair.delta(ln(8)) == pytest.approx(0.007, rel=1e-6)
    sampled = compose([events.PoissonSampled(event=events.Gaussian(sensitivity=1, sigma=5), rate=0.1)])
    assert sampled.for_group(2).epsilon(1e-6, "rdp") > sampled.epsilon(1e-6, "rdp")
    assert sampled.for_group(1) == sampled
    assert sampled.for_group(2).for_group(3) == sampled.for_group(6)


def test_bounds_without_a_distribution_know_nothing_from_below() -> None:
    assert compose([events.ZeroConcentrated(rho=1)]).bounds(1e-6)[0] == 0.0


def test_bounds_enclose_the_exact_gaussian() -> None:
    account = compose([events.Gaussian(sensitivity=1, sigma=1)])
    lower, upper = account.bounds(1e-6)
    assert lower <= 4.886554 + 1e-6
    assert upper >= 4.886553
    assert upper - lower < 0.01


def test_json_round_trip() -> None:
    nested = events.PoissonSampled(
        event=events.RandomizedResponse(epsilon=ln(3), count=2, unit="patient"), rate=0.01, count=7, unit="patient"
    )
    account = compose([nested, events.Laplace(sensitivity=1, scale=0.1, unit="patient")]).for_group(2)
    assert Account.from_json(account.to_json()) == account
    assert json.loads(account.to_json()) == account.dump()


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("not json", ParameterError),
        ("[]", ParameterError),
        ('{"version": 1, "group": 1}', ParameterError),
        ('{"version": 2, "group": 1, "events": []}', UnknownLoss),
        ('{"version": 1, "group": 1, "events": 3}', UnknownLoss),
        ('{"version": 1, "group": 1, "events": []}', ParameterError),
        ('{"version": 1, "group": 1, "events": [{"kind": "Novel", "version": 1}]}', UnknownLoss),
        ('{"version": 1, "group": 0, "events": [{}]}', UnknownLoss),
    ],
)
def test_json_that_is_not_ours_is_refused(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        Account.from_json(text)


def test_parallel_parts_cost_the_largest() -> None:
    one = compose([events.Laplace(sensitivity=1, scale=2)])
    two = compose([events.Laplace(sensitivity=1, scale=1), events.Exponential(epsilon=0.5)])
    both = parallel([one, two], disjoint=True)
    assert both.epsilon() == two.epsilon() == 1.5
    assert both.epsilon(1e-6) >= two.epsilon(1e-6)
    assert {notion.kind for notion in both.notions} == {"pure", "approx", "zcdp", "rdp", "gdp"}
    assert both.notion("zcdp") == two.loss.notion("zcdp")
    assert both.epsilon(1e-6, notion="rdp") >= two.epsilon(1e-6, "rdp") > one.epsilon(1e-6, "rdp")
    same = parallel([one, one, one], disjoint=True)
    assert same == one.loss
    noise = parallel([compose([events.Gaussian(sensitivity=1, sigma=s)]) for s in (3, 2, 5)], disjoint=True)
    assert noise.notion("gdp") == GaussianNotion(Fraction(1, 4))
    pairs = [compose([events.Approximate(epsilon=e, delta=d)]) for e, d in ((1, 1e-6), (2, 1e-7))]
    assert parallel(pairs, disjoint=True).notion("approx") == ApproximateNotion.of(Fraction(2), Fraction(1, 10**6))


def test_parallel_needs_its_reasons() -> None:
    one = compose([events.Laplace(sensitivity=1, scale=2)])
    with pytest.raises(ParameterError, match="disjoint"):
        parallel([one, one], disjoint=False)
    with pytest.raises(ParameterError, match="at least one"):
        parallel([], disjoint=True)
    with pytest.raises(ParameterError, match="accounts"):
        parallel([events.Pure(epsilon=1)], disjoint=True)  # type: ignore[list-item]  # on purpose
    with pytest.raises(MixedGuarantees, match="move"):
        parallel([compose([events.Pure(epsilon=1, neighbours="replace")])], disjoint=True)
    with pytest.raises(MixedGuarantees, match="spread"):
        parallel([one.for_group(2)], disjoint=True)
    with pytest.raises(MixedGuarantees, match="one x"):
        parallel([one, compose([events.Pure(epsilon=1, unit="x")])], disjoint=True)


def test_odds_of_a_group_say_so() -> None:
    odds = compose([events.Pure(epsilon=ln(3))]).for_group(2).odds()
    assert odds.worst_guess == pytest.approx(0.9)
    assert "a group of 2" in str(odds)
    assert compose([events.Pure(epsilon=ln(3))]).odds().worst_guess == pytest.approx(0.75)


def test_trade_off_values_published() -> None:
    """Right alarms at 10 % false ones: μ = 1 (three Gaussians) 0.38914; pure 1 and 2 together 0.8286."""
    gaussians = compose([events.Gaussian(sensitivity=1, sigma=1)])
    assert gaussians.odds().detection(0.1) == pytest.approx(0.38914, abs=2e-4)
    pures = compose([events.Pure(epsilon=1), events.Pure(epsilon=2)])
    assert pures.odds().detection(0.1) == pytest.approx(0.8286, abs=2e-3)
    pairs = compose([events.Approximate(epsilon=1, delta=0.1), events.Approximate(epsilon=2, delta=0.2)])
    assert pairs.delta(3) == pytest.approx(0.28, abs=1e-6)
