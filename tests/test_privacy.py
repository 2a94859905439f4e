"""Units, neighbours, losses and budgets: the words that every guarantee is made of."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import get_args

import pytest

from discreet.accounting import events, loss_of
from discreet.accounting.cost_words import describe_cost
from discreet.accounting.currencies import choose_currency, dearest_event
from discreet.accounting.gdp import GaussianNotion
from discreet.accounting.pure import PureNotion
from discreet.accounting.zcdp import ZeroConcentratedNotion
from discreet.errors import MixedGuarantees, ParameterError, UnknownLoss
from discreet.exact import ln
from discreet.privacy import BUDGET_KINDS, Budget, BudgetNotion, Loss, Neighbours, Unit

ROW, ADD = Unit(), Neighbours.ADD_REMOVE


def pure(epsilon: int | Fraction) -> Loss:
    return Loss((PureNotion(Fraction(epsilon)),), ROW, ADD)


def test_neighbours_are_read_from_their_names() -> None:
    assert Neighbours.read("add-remove") is Neighbours.ADD_REMOVE
    assert Neighbours.read(Neighbours.REPLACE) is Neighbours.REPLACE
    for bad in ("swap", "", None, 3):
        with pytest.raises(ParameterError, match="'add-remove'"):
            Neighbours.read(bad)


def test_units_are_a_row_or_a_column() -> None:
    assert (Unit().level, str(Unit())) == ("event", "one row")
    assert (Unit("patient").level, str(Unit("patient"))) == ("user", "one patient")
    assert Unit.read(None) == Unit()
    assert Unit.read("patient") == Unit.read(Unit("patient")) == Unit("patient")
    for bad in ("", 3, b"x"):
        with pytest.raises(ParameterError, match="unit"):
            Unit.read(bad)


def test_losses_take_the_tightest_notion() -> None:
    both = Loss((PureNotion(Fraction(3)), ZeroConcentratedNotion(Fraction(1, 100))), ROW, ADD)
    assert both.epsilon() == 3.0
    assert both.epsilon(1e-6) == both.epsilon(1e-6, notion="zcdp") < both.epsilon(1e-6, notion="pure")
    assert both.delta(3) == 0.0
    assert both.delta(1) == both.delta(1, notion="zcdp")
    assert both.delta(ln(3)) <= both.delta(1)
    assert both.has("pure")
    assert not both.has("gdp")


def test_a_notion_that_is_not_valid_is_refused() -> None:
    with pytest.raises(UnknownLoss, match="'pure'"):
        pure(1).notion("gdp")
    with pytest.raises(UnknownLoss):
        pure(1).epsilon(0.1, notion="zcdp")


def test_losses_hold_one_of_each_notion() -> None:
    with pytest.raises(ParameterError, match="notions"):
        Loss((), ROW, ADD)
    with pytest.raises(ParameterError, match="notions"):
        Loss((PureNotion(Fraction(1)), PureNotion(Fraction(2))), ROW, ADD)


def test_adding_keeps_what_both_know() -> None:
    first = loss_of(events.Gaussian(sensitivity=1, sigma=1))
    second = loss_of(events.Laplace(sensitivity=1, scale=1))
    assert {n.kind for n in (first + second).notions} == {"zcdp", "rdp", "gdp", "pld"}
    assert (pure(1) + pure(2)).epsilon() == 3.0
    with pytest.raises(UnknownLoss, match="share no notion"):
        pure(1).compose(Loss((GaussianNotion(Fraction(1)),), ROW, ADD))


def test_adding_refuses_different_guarantees() -> None:
    with pytest.raises(MixedGuarantees, match="one patient"):
        pure(1).compose(Loss((PureNotion(Fraction(1)),), Unit("patient"), ADD))
    with pytest.raises(MixedGuarantees, match="replace"):
        pure(1).compose(Loss((PureNotion(Fraction(1)),), ROW, Neighbours.REPLACE))


def test_repeating_and_grouping() -> None:
    assert pure(1).repeat(3) == pure(3) == pure(1).for_group(3)
    for bad in (0, -1, 1.5, True):
        with pytest.raises(ParameterError, match="count"):
            pure(1).repeat(bad)  # type: ignore[arg-type]  # on purpose
        with pytest.raises(ParameterError, match="size"):
            pure(1).for_group(bad)  # type: ignore[arg-type]  # on purpose


def test_a_group_without_any_rule_is_refused() -> None:
    with pytest.raises(UnknownLoss, match="group"):
        Loss((ZeroConcentratedNotion(Fraction(1), Fraction(1, 100)),), ROW, ADD).for_group(2)


@pytest.mark.parametrize("delta", [-0.1, 1, 2, float("nan"), float("inf"), None, "x", True])
def test_deltas_outside_their_range_are_refused(delta: float) -> None:
    with pytest.raises(ParameterError, match="delta"):
        pure(1).epsilon(delta)
    with pytest.raises(ParameterError, match="delta"):
        pure(1).odds(delta)


@pytest.mark.parametrize("epsilon", [-0.1, float("nan"), float("inf"), "x", True])
def test_epsilons_outside_their_range_are_refused(epsilon: float) -> None:
    with pytest.raises(ParameterError, match="epsilon"):
        pure(1).delta(epsilon)


def test_losses_say_what_they_are() -> None:
    assert str(pure(1)) == "Loss to one row (add-remove)\n  pure    ε = 1"


def test_odds_of_a_pure_loss() -> None:
    odds = Loss((PureNotion(ln(3)),), Unit("patient"), ADD).odds()
    assert odds.delta == 0
    assert odds.worst_guess == pytest.approx(0.75)
    assert odds.sentence() == "A guess about one patient that was 50:50 becomes at most 75:25."


def test_odds_without_a_pure_loss_bound_the_tail_of_the_loss() -> None:
    """The loss of N(1,1) against N(0,1) is normal; the stated ε must be above its upper tail at δ, and is not ε(δ)."""
    loss = Loss((GaussianNotion(Fraction(1)),), ROW, ADD)
    odds = loss.odds()
    assert odds.delta == 1e-9
    exceeded = math.erfc((odds.epsilon - 0.5) / math.sqrt(2)) / 2
    assert exceeded <= 1e-9
    plain = loss.epsilon(1e-9)
    assert math.erfc((plain - 0.5) / math.sqrt(2)) / 2 > 1e-9
    assert plain < odds.epsilon < plain + 0.5
    assert loss.odds(1e-5).delta == 1e-5


@pytest.mark.parametrize(
    ("budget", "notion", "amount", "text"),
    [
        (Budget(epsilon=3, delta=1e-6), "approx", 3, "Budget(ε = 3 at δ = 1e-06)"),
        (Budget(epsilon=0.1), "pure", Fraction(1, 10), "Budget(ε = 0.1)"),
        (Budget(epsilon=1, delta=0), "pure", 1, "Budget(ε = 1)"),
        (Budget(epsilon=ln(3)), "pure", ln(3), "Budget(ε = 1.09861)"),
        (Budget(rho=0.5), "zcdp", Fraction(1, 2), "Budget(ρ = 0.5)"),
        (Budget(mu=2), "gdp", 2, "Budget(μ = 2)"),
    ],
)
def test_budgets_know_their_notion(budget: Budget, notion: str, amount: Fraction, text: str) -> None:
    assert (budget.notion, budget.amount(), repr(budget)) == (notion, amount, text)


def test_budget_slack_is_exact() -> None:
    assert Budget(epsilon=1, delta=1e-6).slack() == Fraction(1, 10**6)
    assert Budget(rho=1).slack() == 0


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"epsilon": 1, "rho": 1},
        {"rho": 1, "mu": 1},
        {"delta": 1e-6},
        {"rho": 1, "delta": 1e-6},
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": float("nan")},
        {"epsilon": 1, "delta": 1},
        {"epsilon": 1, "delta": -1e-9},
        {"rho": 0},
        {"mu": float("inf")},
        {"epsilon": True},
    ],
)
def test_bad_budgets_are_refused(fields: dict[str, float]) -> None:
    with pytest.raises(ParameterError):
        Budget(**fields)


def test_the_table_of_budgets_is_whole() -> None:
    """Every notion of a budget has a row that says how it is written, offered, charged and shown."""
    assert set(BUDGET_KINDS) == set(get_args(BudgetNotion))
    budgets = (Budget(epsilon=1), Budget(epsilon=1, delta=1e-6), Budget(rho=1), Budget(mu=1))
    assert [budget.notion for budget in budgets] == list(BUDGET_KINDS)
    for budget in budgets:
        half = budget.with_amount(Fraction(1, 2))
        assert (half.notion, half.amount(), half.slack()) == (budget.notion, Fraction(1, 2), budget.slack())
        assert getattr(budget, budget.kind.word) == 1
        assert budget.describe(Fraction(1, 2)) == f"{budget.symbol} 0.5"
        assert budget.describe_left(Fraction(1, 2)).startswith(f"{budget.symbol} 0.5 of 1")
        assert choose_currency(budget, None, None, 0.5).nothing
        dearest = dearest_event(budget, unit=Unit(), neighbours=Neighbours.ADD_REMOVE)
        assert describe_cost(budget, loss_of(dearest))
