"""The curator from end to end: the straight line, replay, charges that stand, refusals that are free."""

from __future__ import annotations

import json
import logging
from fractions import Fraction
from pathlib import Path

import pytest

import discreet
from discreet.bounding.contributions import BoundedPlan
from discreet.engines.engine import Groups
from discreet.errors import (
    BudgetExceeded,
    DiscreetError,
    EngineFailure,
    LedgerStopped,
    ParameterError,
    Unbounded,
    UsageError,
)
from tests.worlds.visits import BY_WARD, VISITS, curator


def test_an_answer_has_values_intervals_cost_and_receipt() -> None:
    """The first question of the design page, on real DuckDB."""
    answer = curator().ask(BY_WARD, epsilon=8)
    assert answer.table.column_names == ["ward", "n", "n_low", "n_high", "age", "age_low", "age_high"]
    assert answer.table["ward"].to_pylist() == ["A", "B", "C"]
    for n, low, high in zip(*(answer.table[c].to_pylist() for c in ("n", "n_low", "n_high"))):
        assert low <= n <= high and abs(n - 600) < 300
    assert answer.spent.epsilon(1e-6) <= 20
    assert json.loads(json.dumps(answer.receipt))["protects"] == "one patient (add-remove)"
    assert "n [noise 95%]" in str(answer) and "left ε" in str(answer)
    assert answer._repr_html_().count("<tr>") == 4 and "<svg" in answer._repr_html_()
    assert list(answer.to_pandas()["ward"]) == ["A", "B", "C"] == answer.to_polars()["ward"].to_list()


def test_the_same_question_is_replayed_for_free() -> None:
    """Same question, same data, same cost: the same numbers and no new charge, however it is asked."""
    holder = curator()
    first = holder.ask(BY_WARD, epsilon=1)
    left = holder.remaining
    chain = holder.table("visits").group_by("ward").agg(n=discreet.count(), age=discreet.mean("age"))
    for again in (holder.ask(BY_WARD.lower(), epsilon=1), chain.ask(epsilon=1)):
        assert again.replayed and again.table.equals(first.table)
    assert holder.remaining == left and len(holder.history()) == 1


def test_another_cost_is_another_answer() -> None:
    """More budget buys a new draw, which is charged."""
    holder = curator()
    holder.ask(BY_WARD, epsilon=1)
    assert not holder.ask(BY_WARD, epsilon=2).replayed
    assert len(holder.history()) == 2


def test_error_first_meets_its_error() -> None:
    """error={'n': 12}: the interval is at most ± 12."""
    holder = curator(discreet.Budget(epsilon=100))
    table = holder.ask("SELECT COUNT(*) AS n FROM visits", error={"n": 12}).table
    assert table["n_high"][0].as_py() - table["n_low"][0].as_py() <= 24


def test_the_budget_ends() -> None:
    """What does not fit is refused before any data is read, and nothing is charged."""
    holder = curator(discreet.Budget(epsilon=1))
    holder.ask("SELECT COUNT(*) AS n FROM visits", epsilon=0.75)
    holder._engine.run = None  # type: ignore[method-assign,assignment]  # any use would raise
    for _ in range(2):
        with pytest.raises(BudgetExceeded, match="nothing was charged"):
            holder.ask("SELECT COUNT(*) AS m FROM visits WHERE age > 3", epsilon=0.5)
    assert len(holder.history()) == 1 and not holder.preview("SELECT COUNT(*) FROM visits", epsilon=0.5).fits


def test_a_failure_after_the_charge_is_one_constant_sentence(caplog: pytest.LogCaptureFixture) -> None:
    """The caller learns nothing from an engine's error; the charge stands; the log has the details."""

    def fail(bounded: BoundedPlan, **options: object) -> Groups:
        raise RuntimeError("could not convert 'Ms Smith, HIV' to a number")

    holder = curator(discreet.Budget(epsilon=1))
    holder._engine.run = fail  # type: ignore[method-assign]  # an engine that breaks
    with caplog.at_level(logging.ERROR, "discreet.curator"), pytest.raises(EngineFailure) as caught:
        holder.ask("SELECT COUNT(*) AS n FROM visits", epsilon=0.75)
    assert "Smith" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert "Smith" in caplog.text
    assert len(holder.history()) == 1 and not holder.history()[0].answered
    with pytest.raises(LedgerStopped, match="Nothing was charged"):
        holder.ask("SELECT COUNT(*) AS m FROM visits WHERE age > 3", epsilon=0.1)


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("SELECT SUM(patient) FROM visits", Unbounded),
        ("SELECT patient, COUNT(*) FROM visits GROUP BY patient", UsageError),
        ("SELECT COUNT(*) FROM patients", UsageError),
        ("DROP TABLE visits", UsageError),
    ],
)
def test_refused_questions_are_free(sql: str, error: type[DiscreetError]) -> None:
    """Refusals say that nothing was charged, and nothing was."""
    holder = curator()
    with pytest.raises(error, match="Nothing was charged"):
        holder.ask(sql, epsilon=1)
    assert not holder.history()


def test_private_keys_hide_the_rare() -> None:
    """A town with one visit is not named."""
    answer = curator().ask("SELECT town, COUNT(*) AS n FROM visits GROUP BY town", epsilon=10)
    assert answer.table["town"].to_pylist() == ["north", "south"]


def test_one_question_may_cost_at_most_the_declared_share() -> None:
    """per_query holds for offers and for wanted errors."""
    holder = curator(discreet.Budget(epsilon=3), per_query=0.5)
    holder.preview("SELECT COUNT(*) AS n FROM visits", epsilon=0.5)
    for offer in ({"epsilon": 0.6}, {"error": {"n": 1}}):
        with pytest.raises(BudgetExceeded, match="per_query"):
            holder.preview("SELECT COUNT(*) AS n FROM visits", **offer)


def test_rho_budgets_and_row_units() -> None:
    """The other notion and the other unit."""
    holder = discreet.curate(
        {"visits": VISITS}, bounds={"age": (0, 110)}, keys={"ward": ["A", "B", "C"]}, budget=discreet.Budget(rho=2)
    )
    answer = holder.ask("SELECT SUM(age) AS total, COUNT(ward) AS n FROM visits", rho=1)
    total, n = answer.table["total"][0].as_py(), answer.table["n"][0].as_py()
    true = sum(VISITS["age"].to_pylist())
    assert abs(total - true) < 2000 and abs(n - 1800) < 20
    assert "ρ" in holder.remaining


def test_a_budget_in_mu_is_used_up_by_its_shares(tmp_path: Path) -> None:
    """From a codebook to the last answer: noise and choices, each within its share, until nothing is left."""
    (tmp_path / "data.csv").write_text("value\n" + "3\n" * 500)
    (tmp_path / "book.toml").write_text(
        'name = "book"\nunit = "row"\n[budget]\nmu = 1\nper_query = 0.8\n[tables.data]\nsource = "data.csv"\n'
        '[tables.data.columns]\nvalue = { type = "integer", bounds = [0, 9] }\n'
    )
    with discreet.open(tmp_path / "book.toml") as holder:
        assert holder.remaining == "μ 1 of 1"
        count = holder.ask("SELECT COUNT(*) AS n FROM data", share=0.5)
        assert abs(count.table["n"][0].as_py() - 500) < 20 and count.receipt["cost"] == "μ = 0.707107"
        assert holder.remaining == "μ 0.7071 of 1"
        with pytest.raises(BudgetExceeded, match=r"left of Budget\(μ = 1\): μ 0.7071 of 1.*nothing was charged"):
            holder.ask("SELECT SUM(value) AS s FROM data", share=0.6)
        assert holder.ask("SELECT MEDIAN(value) AS m FROM data", share=0.25).table["m"][0].as_py() == 3
        holder.ask("SELECT SUM(value) AS s FROM data", share=0.25)
        assert not holder.preview("SELECT SUM(value) AS s FROM data", rho=0.01).fits
        with pytest.raises(BudgetExceeded, match="per_query"):
            holder.preview("SELECT COUNT(value) AS n FROM data", share=0.7)


def test_so_small_an_offer_that_no_group_is_named() -> None:
    """It is refused in words for analysts: no mechanism is named."""
    holder = curator(discreet.Budget(epsilon=1, delta=1e-6))
    question = "SELECT age, COUNT(*) AS n FROM visits GROUP BY age"
    with pytest.raises(BudgetExceeded, match=r"cannot name groups from the data.*Nothing was charged") as refused:
        holder.preview(question, rho=1e-20)
    assert "Threshold" not in str(refused.value)
    assert holder.preview(question, error={"n": 1e12}).fits


def test_a_prepared_table_answers_alike() -> None:
    """Preparing changes how fast answers come, not what they are about; unknown tables are refused."""
    holder = curator(discreet.Budget(epsilon=100))
    holder.prepare()
    table = holder.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=50).table
    assert table["ward"].to_pylist() == ["A", "B", "C"] and all(abs(n - 600) < 30 for n in table["n"].to_pylist())
    with pytest.raises(UsageError, match="visits"):
        holder.prepare("visit")


def test_only_listed_analysts_are_answered_also_from_the_record(tmp_path: Path) -> None:
    """Who is not on the codebook's list gets neither a new answer nor one that was given to somebody else."""
    (tmp_path / "data.csv").write_text("value\n1\n2\n")
    (tmp_path / "book.toml").write_text(
        'name = "book"\nunit = "row"\nanalysts = ["ann"]\n[budget]\nepsilon = 9\n[tables.data]\nsource = "data.csv"\n'
        '[tables.data.columns]\nvalue = { type = "integer", bounds = [0, 9] }\n'
    )
    with discreet.open(tmp_path / "book.toml") as holder:
        holder.ask("SELECT COUNT(*) AS n FROM data", epsilon=1, analyst="ann")
        assert holder.ask("SELECT COUNT(*) AS n FROM data", epsilon=1, analyst="ann").replayed
        for name in ("bob", "analyst", "ANN", ""):
            with pytest.raises(DiscreetError, match="Nothing was charged"):
                holder.ask("SELECT COUNT(*) AS n FROM data", epsilon=1, analyst=name)
        assert len(holder.history()) == 1


def test_a_price_is_said_in_one_place() -> None:
    """The GoogleSQL form brings its own ε; saying another beside it is refused, and nothing is charged."""
    holder = curator()
    text = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-9) COUNT(*) AS n FROM visits"
    with pytest.raises(ParameterError, match="said twice"):
        holder.ask(text, epsilon=2)
    assert not holder.history()
    assert holder.ask(text).spent.epsilon(1e-9) <= 1
    assert holder.ask(text).replayed


@pytest.mark.parametrize(
    "asked",
    [
        "COUNT(*) AS n FROM visits",
        "ward, COUNT(*) AS n, AVG(age) AS a FROM visits GROUP BY ward",
        "age, COUNT(*) AS n FROM visits GROUP BY age",
        "MEDIAN(age) AS m FROM visits",
    ],
)
@pytest.mark.parametrize(("options", "delta"), [("epsilon=1, delta=1e-9", 1e-9), ("epsilon=1", 1e-6)])
def test_a_text_that_states_a_guarantee_gets_it(asked: str, options: str, delta: float) -> None:
    """In the GoogleSQL form the question by itself is (ε, δ)-private as written, with both kinds of noise.

    The same ε beside the question is a share of the budget, which comes to more.
    """
    shown = curator().preview(f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) {asked}")
    assert shown.loss.epsilon(delta) > 0.9
    assert all(plan.loss.epsilon(delta) <= 1 for plan in (shown.plan, *shown.alternatives))
    assert curator().preview(f"SELECT {asked}", epsilon=1, delta=1e-7).loss.epsilon(delta) > 1


def test_bounds_are_automatic_or_not() -> None:
    """The only word there is."""
    with pytest.raises(ParameterError, match="not a known word"):
        curator().ask("SELECT COUNT(*) AS n FROM visits", epsilon=1, bounds="guess")


def test_bounds_are_not_bought_within_a_stated_guarantee() -> None:
    """Two releases would have to share the ε and δ of one text. Where no bounds are missing nothing is bought."""
    holder = discreet.curate({"visits": VISITS}, budget=discreet.Budget(epsilon=20, delta=1e-6))
    text = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1) SUM(age) AS s FROM visits"
    for act in (holder.preview, holder.ask):
        with pytest.raises(ParameterError, match=r"states of itself.*Nothing was charged"):
            act(text, bounds="auto")
    assert holder.preview(text.replace("SUM(age)", "COUNT(*)"), bounds="auto").loss.epsilon(1e-6) <= 1
    assert holder.preview("SELECT SUM(age) AS s FROM visits", share=0.1, bounds="auto").fits


def test_a_request_is_found_again_by_its_analyst_alone() -> None:
    """With its answers, for nothing; a request that was never made is None."""
    holder = curator()
    answer = holder.ask(BY_WARD, epsilon=1, analyst="ana", request="one")
    left = holder.remaining
    found = holder.find_answers("one", analyst="ana")
    assert found is not None and found[0].table.equals(answer.table) and found[0].replayed
    assert holder.find_answers("one", analyst="ben") is None and holder.find_answers("two", analyst="ana") is None
    assert holder.remaining == left


def test_a_limited_curator_refuses_dearer_questions_and_shares_the_rest() -> None:
    """The smaller of two caps holds; charges are on one record; the curator itself is as before."""
    holder = curator()
    limited = holder.limit(Fraction(1)).limit(Fraction(2))
    with pytest.raises(BudgetExceeded):
        limited.ask(BY_WARD, epsilon=1.5)
    limited.ask(BY_WARD, epsilon=1)
    assert len(holder.history()) == 1
    assert not holder.ask(BY_WARD, epsilon=1.5).replayed
