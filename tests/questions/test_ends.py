"""Intervals of quantiles, MIN and MAX that are bought with ``ends=True``: from a question to the record and back."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from discreet import Budget
from discreet.accounting import events
from discreet.curator import Curator
from discreet.errors import BudgetExceeded, ParameterError
from discreet.remaining_budget import RemainingBudget

DRAWN = np.random.default_rng(5)
VISITS = pa.table(
    {
        "patient": [i % 700 for i in range(2_000)],
        "ward": ["AB"[i % 2] for i in range(2_000)],
        "age": [i % 90 for i in range(2_000)],
        "cost": DRAWN.lognormal(4, 1, 2_000).tolist(),
    }
)
MIDDLE = "SELECT ward, MEDIAN(age) AS m FROM visits GROUP BY ward"
ALL = (
    "SELECT ward, COUNT(*) AS n, MIN(cost) AS a, MEDIAN(cost) AS m, MAX(cost) AS z, MODE(ward) AS w "
    "FROM visits GROUP BY ward"
)
BUDGETS: dict[str, tuple[Budget, dict[str, Any]]] = {
    "pure": (Budget(epsilon=100), {"epsilon": 4}),
    "approx": (Budget(epsilon=100, delta=1e-6), {"share": 0.04}),
    "zcdp": (Budget(rho=100), {"rho": 4}),
    "gdp": (Budget(mu=20), {"share": 0.04}),
}


def make_curator(budget: Budget | None = None, table: pa.Table = VISITS, **declared: Any) -> Curator:
    given: dict[str, Any] = {
        "unit": "patient",
        "max_rows": 5,
        "keys": {"ward": ["A", "B"]},
        "bounds": {"age": (0, 100), "cost": (0, 5_000)},
        "budget": budget or Budget(epsilon=100),
    }
    return discreet.curate({"visits": table}, **{**given, **declared})


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_every_budget_buys_ends(budget: str, neighbours: str) -> None:
    """Ends lie around their quantiles, within the bounds, at the price of the same question without them."""
    whole, offer = BUDGETS[budget]
    curator = make_curator(whole, neighbours=neighbours)
    plain, preview = curator.preview(ALL, **offer), curator.preview(ALL, ends=True, **offer)
    answer = curator.ask(ALL, ends=True, **offer)
    other = make_curator(whole, neighbours=neighbours)
    other.ask(ALL, **offer)
    left = [float(RemainingBudget(each.ledger).share) for each in (curator, other)]
    assert left[0] == pytest.approx(left[1], rel=1e-6)
    assert answer.receipt["mechanisms"] == [events.dump(event) for event in preview.plan.events]
    assert len(preview.plan.events) == len(plain.plan.events) + 1
    for row in answer.table.to_pylist():
        for name in ("a", "m", "z"):
            assert 0 <= row[f"{name}_low"] <= row[name] <= row[f"{name}_high"] <= 5_000
        assert row["n_low"] < row["n"] < row["n_high"]
    assert "w_low" not in answer.table.column_names  # a mode has no interval, and says so
    assert "w has at most" in str(answer) and "it has no interval" in str(preview)
    assert "the ends of m are chosen, too: they hold the quantile with 95% or more" in str(answer)


def test_without_the_word_nothing_changes() -> None:
    """No ends, no second price: the rank error is that of the whole share, and with ends it is twice as large."""
    curator = make_curator()
    plain, ended = (curator.preview(MIDDLE, epsilon=1, ends=ends) for ends in (False, True))
    (one,), (other,) = plain.columns, ended.columns
    assert one.rows is not None and other.rows is not None and one.ends is None and other.ends is not None
    assert other.rows == pytest.approx(2 * one.rows, abs=2)
    assert "m_low" not in curator.ask(MIDDLE, epsilon=1).table.column_names
    assert ended.to_dict()["columns"][0]["ends_in_rank"] == other.ends
    assert "ends_in_rank" not in plain.to_dict()["columns"][0]
    assert "interval of about ±" in str(ended) and "chosen with its ends" in str(ended)
    assert "ends of its quantiles" in curator.explain(MIDDLE, epsilon=1, ends=True)


@pytest.mark.parametrize("question", ["SELECT COUNT(*) AS n FROM visits", "SELECT MODE(ward) AS w FROM visits"])
def test_ends_of_nothing_are_refused(question: str) -> None:
    curator = make_curator()
    for ask in (curator.ask, curator.preview):
        with pytest.raises(ParameterError, match=r"ends.*none is asked for.*Nothing was charged"):
            ask(question, epsilon=1, ends=True)
    with pytest.raises(ParameterError, match=r"ends.*Nothing was charged"):
        curator.ask(MIDDLE, epsilon=1, ends="yes")  # type: ignore[arg-type]
    assert not curator.history()


def test_ends_on_record_are_free_and_the_same(tmp_path: Path) -> None:
    """Another alias, or no ends, is free; another level has other ends and is charged. Also after a restart."""
    pq.write_table(VISITS, tmp_path / "visits.parquet")
    (tmp_path / "b.toml").write_text(
        'name = "b"\nunit = "patient"\nledger = "ledger.sqlite"\n[budget]\nepsilon = 100\n'
        '[tables.visits]\nsource = "visits.parquet"\nmax_rows = 5\n'
        '[tables.visits.columns]\nage = { type = "integer", bounds = [0, 100] }\n'
        'ward = { type = "text", keys = ["A", "B"] }\npatient = { type = "integer" }\n'
    )
    with discreet.open(tmp_path / "b.toml") as curator:
        first = curator.ask(MIDDLE, epsilon=2, ends=True)
    with discreet.open(tmp_path / "b.toml") as curator:
        same = curator.ask(MIDDLE.replace("AS m", "AS x"), epsilon=2, ends=True)
        assert same.replayed
        for end in ("", "_low", "_high"):
            assert same.table[f"x{end}"].to_pylist() == first.table[f"m{end}"].to_pylist()
        fewer = curator.ask(MIDDLE, epsilon=0.5)
        assert fewer.replayed and fewer.table["m"].to_pylist() == first.table["m"].to_pylist()
        assert "m_low" not in fewer.table.column_names
        assert len(curator.history()) == 1
        assert not curator.preview(MIDDLE, epsilon=2, ends=True, level=0.99).answered
        assert not curator.preview(MIDDLE, epsilon=4, ends=True).answered


def test_ends_are_not_found_where_none_were_drawn() -> None:
    curator = make_curator()
    curator.ask(MIDDLE, epsilon=8)
    assert not curator.ask(MIDDLE, epsilon=0.5, ends=True).replayed
    assert len(curator.history()) == 2


def test_batches_and_curves_take_the_word() -> None:
    """A batch needs one quantile; fixed ones are priced with their ends; what does not fit is refused."""
    count = "SELECT COUNT(*) AS n FROM visits"
    curator = make_curator(Budget(epsilon=10, delta=1e-6))
    assert curator.preview(MIDDLE, ends=True, curve=True).curve
    for fixed in (False, True):
        before = curator.preview_batch([count, MIDDLE], epsilon=1, ends=True, fixed=fixed)
        _, middle = curator.ask_batch([count, MIDDLE], epsilon=1, ends=True, fixed=fixed)
        assert before.fits and "m_low" in middle.table.column_names
    with pytest.raises(ParameterError, match=r"ends"):
        curator.ask_batch([count], epsilon=1, ends=True)
    with pytest.raises(BudgetExceeded):
        curator.ask(MIDDLE, epsilon=9.9, ends=True)


def test_missing_bounds_are_bought_before_ends() -> None:
    curator = make_curator(bounds={})
    question = "SELECT MEDIAN(age) AS m FROM visits"
    assert curator.preview(question, epsilon=40, bounds="auto", ends=True).fits
    row = curator.ask(question, epsilon=40, bounds="auto", ends=True).table.to_pylist()[0]
    assert row["m_low"] <= row["m"] <= row["m_high"]


@pytest.mark.parametrize("kind", ["age", "cost"])
def test_ends_hold_the_quantile_of_the_table(kind: str) -> None:
    """400 groups of a few up to 300 rows, integers and reals. At 95 of 100 fewer than 89 have p < 1e-9."""
    groups = [f"g{i}" for i in range(400)]
    draw = np.random.default_rng(11)
    rows = [(name, value) for i, name in enumerate(groups) for value in draw.lognormal(3, 1, 5 + i * 7 % 300)]
    table = pa.table(
        {
            "patient": list(range(len(rows))),
            "ward": [name for name, _ in rows],
            "age": [min(100, math.floor(value)) for _, value in rows],
            "cost": [min(5_000.0, value) for _, value in rows],
        }
    )
    curator = make_curator(table=table, keys={"ward": groups}, max_rows=1)
    question = f"SELECT ward, MEDIAN({kind}) AS m, QUANTILE({kind}, 0.9) AS h FROM visits GROUP BY ward"
    answer = curator.ask(question, epsilon=2, ends=True)
    held, pairs = [], list(zip(table["ward"].to_pylist(), table[kind].to_pylist(), strict=True))
    for row in answer.table.to_pylist():
        own = sorted(value for name, value in pairs if name == row["ward"])
        for name, q in (("m", 0.5), ("h", 0.9)):
            true = own[math.ceil(q * len(own)) - 1]
            held.append(row[f"{name}_low"] <= true <= row[f"{name}_high"])
    assert sum(held) >= 0.89 * len(held)


def test_json_has_the_ends() -> None:
    record = make_curator().ask(MIDDLE, epsilon=1, ends=True).record()
    column = next(column for column in json.loads(json.dumps(record))["columns"] if column["name"] == "m")
    assert column["measured"] is True
    assert record["receipt"]["chosen"]
