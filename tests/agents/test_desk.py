"""The desk: what agents are told, what they may spend, and what is refused before anything is charged."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import pandas as pd
import pytest

import discreet
from discreet.agents.at_most import find_share, read_at_most
from discreet.agents.confirmations import Confirmations
from discreet.agents.desk import Desk
from discreet.errors import BudgetExceeded, DiscreetError, ParameterError, UsageError
from discreet.privacy import Budget
from tests.remote.remote_hospital import count_charges, reach
from tests.service.served import WARDS, Hospital


@pytest.fixture(params=["home", "server"])
def desk(request: Any, served: Hospital) -> Desk:
    """A desk before the curator of this process, and before it as a server."""
    if request.param == "home":
        return Desk(curator=served.dataset.curator, names={"analyst": "ana", "project": ""})
    return Desk(curator=reach(served))


def test_describe_preview_ask(desk: Desk, served: Hospital) -> None:
    """The loop that the prompts teach; intervals are in words, and the charge is what was allowed."""
    with count_charges(served, 0):
        assert "visits: private: ask aggregates" in desk.describe()
        shown = desk.preview(WARDS, "share 0.02")
        assert "Nothing was charged" in shown and "1/50 of the budget" in shown and "n_low" in shown
    with count_charges(served, 1):
        told = desk.ask(WARDS, "share 0.02")
    assert re.search(r"ward = Surgery; n = [\d,]+, between [\d,]+ and [\d,]+", told) and "left ε" in told
    (entry,) = served.dataset.curator.history()
    assert find_share(served.dataset.curator.budget, entry.charge.loss) <= Fraction("0.02") * (1 + Fraction(1, 10**6))
    with count_charges(served, 0):
        assert "free now" in desk.ask(WARDS, "share 0.001")
        assert "1 charge;" in desk.history() and "cost 2 % of the whole budget so far" in desk.budget()


def test_a_wanted_error_is_paid_within_at_most(desk: Desk, served: Hospital) -> None:
    """The price follows from the error; where it is above at_most, it is refused with the price."""
    sql = "SELECT COUNT(*) AS n FROM visits"
    with count_charges(served, 0), pytest.raises(BudgetExceeded, match="more than at_most allows"):
        desk.ask(sql, "share 0.0001", {"n": 20})
    with count_charges(served, 1):
        desk.ask(sql, "share 0.1", {"n": 400})
    (entry,) = served.dataset.curator.history()
    assert find_share(served.dataset.curator.budget, entry.charge.loss) < Fraction("0.1")


def test_a_price_in_the_text_counts_too(desk: Desk, served: Hospital) -> None:
    """The GoogleSQL form states its own epsilon; at_most still holds."""
    sql = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.3, delta=1e-9) COUNT(*) AS n FROM visits"
    with count_charges(served, 0):
        with pytest.raises(BudgetExceeded):
            desk.ask(sql, "share 0.001")
        with pytest.raises(ParameterError):
            desk.ask(sql, "share 0.001", {"n": 3})
    with count_charges(served, 1):
        desk.ask(sql, "share 0.1")


def test_dear_questions_are_confirmed(desk: Desk, served: Hospital) -> None:
    """The value is told with the price. It is of use for that question at that price alone."""
    with count_charges(served, 0):
        with pytest.raises(UsageError, match="has to be confirmed") as refused:
            desk.ask(WARDS, "share 0.2")
        value = str(refused.value).partition("confirm='")[2][:10]
        for sql, most, confirm in (
            (WARDS, "share 0.21", value),
            (WARDS + " ", "share 0.2", value),
            (WARDS, "share 0.2", ""),
        ):
            with pytest.raises(UsageError, match="has to be confirmed"):
                desk.ask(sql, most, confirm=confirm)
    with count_charges(served, 1):
        desk.ask(WARDS, "share 0.2", confirm=value)


def test_a_request_id_is_charged_once(desk: Desk, served: Hospital) -> None:
    """A tool call that is sent again after its answer got lost."""
    with count_charges(served, 1):
        assert (
            desk.ask(WARDS, "share 0.01", request="r-1").partition("\nlimit")[0]
            == desk.ask(WARDS, "share 0.01", request="r-1").partition("\nlimit")[0]
        )


@pytest.mark.parametrize(
    "at_most", ["", "0.1", "share 0", "share 2", "share -1", "share nan", "epsilon 9", "rho 0.1", "a share"]
)
def test_what_is_no_amount_is_refused(at_most: str) -> None:
    with pytest.raises(ParameterError, match="at_most"):
        read_at_most(at_most, Budget(epsilon=3, delta=1e-6))


@pytest.mark.parametrize(
    "sql", ["", "SELECT * FROM visits", "SELECT ward FROM visits", "DROP TABLE visits", "x" * 20_000]
)
def test_rows_and_nonsense_are_refused_for_nothing(desk: Desk, served: Hospital, sql: str) -> None:
    with count_charges(served, 0), pytest.raises(DiscreetError):
        desk.ask(sql, "share 0.01")


@pytest.mark.parametrize(
    ("budget", "offer"),
    [
        (Budget(epsilon=2), {"share": 0.1}),
        (Budget(epsilon=2, delta=1e-6), {"share": 0.1}),
        (Budget(rho=0.5), {"share": 0.1}),
        (Budget(mu=0.5), {"share": 0.1}),
    ],
)
def test_shares_are_counted_in_every_notion(budget: Budget, offer: Any) -> None:
    """A tenth that is offered is a tenth that is priced, whatever the budget counts."""
    curator = discreet.curate({"v": pd.DataFrame({"x": [1, 2]})}, budget=budget, unit=None)
    loss = curator.preview("SELECT COUNT(*) AS n FROM v", **offer).loss
    assert abs(find_share(budget, loss) / Fraction("0.1") - 1) < Fraction(1, 1000)


def test_results_stay_small(served: Hospital) -> None:
    """A table of many groups is cut, and says so."""
    told = Desk(curator=reach(served)).ask("SELECT arrival, COUNT(*) AS n FROM visits GROUP BY arrival", "share 0.01")
    assert "more rows: use ORDER BY and LIMIT" in told and len(told) < 8000


def test_confirmations_are_of_one_server() -> None:
    """Negative control: the value of another key, and of another question, is none."""
    one, other = Confirmations(), Confirmations()
    assert one.check(one.make("a", 1), "a", 1) and not one.check(one.make("a", 1), "a", 2)
    assert not other.check(one.make("a", 1), "a", 1) and not one.check("", "a", 1)
