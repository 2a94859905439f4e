"""Quantiles of dates and timestamps: the numbers that stand for times, the claims about them, and what is shown."""

# ruff: noqa: DTZ001, DTZ901, S311  # times have no zone here, and worlds need seeds, not secrets
from __future__ import annotations

import datetime as dt
import json
import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import discreet
from discreet import Budget
from discreet.bounding.bound import bound
from discreet.bounding.contributions import reach
from discreet.bounding.time_grids import TimeGrid, make_time_grid
from discreet.codebook import Codebook
from discreet.curator import Curator
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.engine import Engine
from discreet.engines.memory.engine import MemoryEngine
from discreet.errors import Unbounded
from discreet.frontends import read_sql
from discreet.plan.evaluate import evaluate
from discreet.plan.expressions import Literal
from discreet.plan.times import to_days
from discreet.plan.types import Type
from discreet.privacy import Neighbours

FIRST, LAST = dt.datetime(2024, 1, 1, 8, 0, 0, 250_000), dt.datetime(2024, 1, 2, 9, 30, 0, 500_000)
QUESTION = "SELECT QUANTILE_DISC(day, 0.3) AS d, MEDIAN(seen) AS s, MAX(seen) AS z FROM visits"


def test_every_number_leads_back_to_its_time() -> None:
    """Dates come back as they are, and a timestamp lies between the first and the last time of its second."""
    rng = random.Random(3)
    days = make_time_grid(to_days(dt.date(2020, 2, 28)), to_days(dt.date(2024, 3, 1)), Type.DATE)
    seconds = make_time_grid(to_days(FIRST), to_days(LAST), Type.TIMESTAMP)
    assert seconds.start == dt.datetime(2024, 1, 1, 8)
    for _ in range(500):
        day = dt.date(2020, 2, 28) + dt.timedelta(days=rng.randrange(1463))
        assert days.at(count(days, day)) == day == days.end_of(count(days, day))
        moment = FIRST + dt.timedelta(microseconds=rng.randrange((LAST - FIRST) // dt.timedelta(microseconds=1)))
        number = count(seconds, moment)
        assert seconds.at(number) <= moment <= seconds.end_of(number) <= LAST
        assert seconds.end_of(number) - seconds.at(number) < dt.timedelta(seconds=1)


@pytest.mark.parametrize("kind", [Type.DATE, Type.TIMESTAMP])
def test_all_times_there_are_fit(kind: Type) -> None:
    """Bounds from the first time to the last neither overflow in the middle nor at the ends."""
    ends: tuple[dt.date, dt.date] = (dt.date.min, dt.date.max)
    if kind is Type.TIMESTAMP:
        ends = dt.datetime.min, dt.datetime.max
    grid = make_time_grid(to_days(ends[0]), to_days(ends[1]), kind)
    assert (grid.at(0), grid.end_of(count(grid, ends[1]))) == ends


def count(grid: TimeGrid, when: dt.date) -> int:
    found = evaluate(grid.count(Literal(when, grid.kind)), {})
    assert isinstance(found, int)
    return found


# The claims about one unit


def make_book(table: pa.Table) -> Codebook:
    bounds: Any = {"day": (dt.date(2024, 1, 2), dt.date(2024, 1, 9)), "seen": (FIRST, LAST)}
    return Codebook.from_frames({"visits": table}, unit="patient", max_rows=2, bounds=bounds, budget=Budget(epsilon=10))


def make_rows(seed: int) -> list[dict[str, Any]]:
    """Up to five rows of five people, some of them missing, beyond the bounds, or as far away as times are."""
    rng = random.Random(seed)
    days = [None, dt.date.min, dt.date.max, *(dt.date(2024, 1, day) for day in range(1, 12))]
    moments = [None, dt.datetime(1, 1, 1), dt.datetime.max, FIRST, LAST, FIRST + dt.timedelta(seconds=0.75)]
    return [
        {"patient": unit, "day": rng.choice(days), "seen": rng.choice(moments)}
        for unit in range(5)
        for _ in range(rng.randrange(1, 6))
    ]


def to_table(rows: list[dict[str, Any]]) -> pa.Table:
    schema = pa.schema([("patient", pa.int64()), ("day", pa.date32()), ("seen", pa.timestamp("us"))])
    return pa.Table.from_pylist(rows, schema=schema)


def list_spreads(rows: list[dict[str, Any]], kind: type[Any]) -> list[Counter[int]]:
    table = to_table(rows)
    catalog = make_book(table).catalog()
    engine: Engine = kind({"visits": table}, catalog)
    form = bound(read_sql.read(QUESTION, catalog), catalog)
    groups = engine.run(form.bounded, salt=bytes(16))
    if not groups.keys:
        return [Counter() for _ in form.bounded.spreads]
    return [Counter(dict(zip(*(part.tolist() for part in spread[0])))) for spread in groups.spreads]


def find_most_moved(kind: type[Any], neighbours: Neighbours, worlds: int) -> int:
    """The most that one unit moves a spread, over all units of many worlds, in parts of rows."""
    most = 0
    for seed in range(worlds):
        rows = make_rows(seed)
        whole = list_spreads(rows, kind)
        for unit in range(5):
            others = [row for row in rows if row["patient"] != unit]
            if neighbours is Neighbours.REPLACE:
                others += [{**row, "patient": unit} for row in make_rows(seed + 100) if row["patient"] == unit]
            for one, other in zip(whole, list_spreads(others, kind)):
                gone, came = (one - other).total(), (other - one).total()
                most = max(most, gone, came)
    return most


@pytest.mark.parametrize("neighbours", [Neighbours.ADD_REMOVE, Neighbours.REPLACE])
@pytest.mark.parametrize(("kind", "worlds"), [(MemoryEngine, 12), (DuckDBEngine, 2)])
def test_one_unit_moves_as_many_rows_as_it_has(kind: type[Any], worlds: int, neighbours: Neighbours) -> None:
    """No neighbour moves more than the claim, and one reaches it, so half of the claim would be wrong."""
    catalog = make_book(to_table(make_rows(0))).catalog()
    bounded = bound(read_sql.read(QUESTION, catalog), catalog).bounded
    claim = reach(bounded, neighbours).rows
    most = find_most_moved(kind, neighbours, worlds)
    assert claim // 2 < most <= claim


@pytest.mark.parametrize("seed", range(6))
def test_engines_see_the_same_numbers(seed: int) -> None:
    assert list_spreads(make_rows(seed), MemoryEngine) == list_spreads(make_rows(seed), DuckDBEngine)


# What is shown


def make_curator(**changes: Any) -> Curator:
    rows = 1_200
    table = pa.table(
        {
            "patient": list(range(rows)),
            "ward": ["AB"[i % 2] for i in range(rows)],
            "day": [dt.date(2024, 1, 1) + dt.timedelta(days=i % 100) for i in range(rows)],
            "seen": [dt.datetime(2024, 1, 1) + dt.timedelta(seconds=3_600.5 * i) for i in range(rows)],
        }
    )
    given: dict[str, Any] = {
        "unit": "patient",
        "max_rows": 1,
        "keys": {"ward": ["A", "B"]},
        "bounds": {name: (dt.date(2024, 1, 1), dt.date(2024, 6, 30)) for name in ("day", "seen")},
        "budget": Budget(epsilon=10_000),
    }
    return discreet.curate({"visits": table}, **{**given, **changes})


def test_quantiles_of_times_are_times_with_ends() -> None:
    """Dates stay dates and timestamps timestamps, on record, too; the ends hold what is there."""
    curator = make_curator()
    question = "SELECT ward, MEDIAN(day) AS m, MEDIAN(seen) AS s FROM visits GROUP BY ward ORDER BY ward"
    answer = curator.ask(question, epsilon=200, ends=True, level=1 - 1e-10)
    assert curator.preview(question, epsilon=200).schema.field("m").type == pa.date32()
    for row in answer.table.to_pylist():
        number = 598 + (row["ward"] == "B")  # the row in the middle of its ward, by time; by day there are 12 of each
        day, moment = dt.date(2024, 2, 18 + (row["ward"] == "B")), dt.datetime(2024, 1, 1)
        moment += dt.timedelta(seconds=3_600.5 * number)
        assert row["m_low"] <= day <= row["m_high"] and row["m_high"] - row["m_low"] < dt.timedelta(days=30)
        assert row["s_low"] <= moment <= row["s_high"] and row["s_high"] - row["s_low"] < dt.timedelta(days=10)
        assert abs(row["m"] - day) <= dt.timedelta(days=10)
        assert row["s"].microsecond == 0
    assert "day to [2024-01-01, 2024-06-30]" in answer.receipt["clamped"]
    json.dumps(answer.record())
    again = curator.ask(question.replace(" AS m", " AS n"), epsilon=200, ends=True, level=1 - 1e-10)
    assert again.replayed and again.table["n_low"].to_pylist() == answer.table["m_low"].to_pylist()


def test_a_number_of_days_and_the_day_are_one_draw() -> None:
    """A quantile of a date is that of its number of days, so one follows from the other for nothing."""
    curator = make_curator()
    curator.ask("SELECT MEDIAN(day) AS m FROM visits", epsilon=1)
    days = "SELECT MEDIAN(date_diff('day', DATE '2024-01-01', day)) AS m FROM visits"
    assert curator.ask(days, epsilon=1).replayed


def test_times_without_bounds_are_refused() -> None:
    """Under the name that was typed, without advice that does not help; a condition on both sides is enough."""
    curator = make_curator(bounds={})
    with pytest.raises(Unbounded, match=r"^QUANTILE_DISC\(day\) has no bounds.*in WHERE. Nothing was charged"):
        curator.ask("SELECT quantile_disc(day, 0.5) AS m FROM visits", epsilon=1)
    narrow = "SELECT MAX(day) AS m FROM visits WHERE day BETWEEN DATE '2024-01-01' AND DATE '2024-01-31'"
    (last,) = curator.ask(narrow, epsilon=1_000)["m"]
    assert last == dt.date(2024, 1, 31)
    assert len(curator.history()) == 1


def test_a_computation_keeps_the_ends_of_times() -> None:
    """What is shown of a released quantile outside of it has the interval that was paid for."""
    inner = "SELECT WITH DIFFERENTIAL_PRIVACY ward, MEDIAN(day) AS m FROM visits GROUP BY ward"
    answer = make_curator().ask(f"SELECT ward, m FROM ({inner}) AS t ORDER BY ward", epsilon=200, ends=True)
    assert answer.table.column_names == ["ward", "m", "m_low", "m_high"]
    for row in answer.table.to_pylist():
        assert row["m_low"] <= row["m"] <= row["m_high"]
