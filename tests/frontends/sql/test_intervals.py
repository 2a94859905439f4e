"""Intervals beside constant dates give the dates that DuckDB gives."""

from __future__ import annotations

import datetime as dt

import duckdb
import pytest

from discreet.frontends import read_sql
from discreet.plan.expressions import Call, Literal
from tests.worlds.tables import CATALOG

SUMS = [
    "DATE '2024-01-31' + INTERVAL 1 MONTH",
    "DATE '2023-01-31' + INTERVAL 1 MONTH",
    "DATE '2024-02-29' + INTERVAL 1 YEAR",
    "DATE '2024-02-29' - INTERVAL 4 YEARS",
    "DATE '2024-01-01' - INTERVAL '1 month 1 day'",
    "INTERVAL 3 WEEK + DATE '2024-01-01'",
    "DATE '2024-12-31' + INTERVAL 2 QUARTER",
    "TIMESTAMP '2024-01-31 10:30:00.5' + INTERVAL 13 MONTH",
    "TIMESTAMP '2024-01-31 10:30:00' - INTERVAL 90 MINUTE",
    "DATE '2024-01-31' + INTERVAL 36 HOUR",
    "DATE '2024-03-01' - 1",
    "3 + DATE '2024-03-01'",
    "DATE '2024-01-01' + INTERVAL '-5' DAY",
    "DATE '2024-01-01' + INTERVAL (-5) DAY",
]


@pytest.mark.parametrize("written", SUMS)
def test_sums_are_those_of_duckdb(written: str) -> None:
    question = read_sql.read(f"SELECT COUNT(*) AS n FROM visits WHERE seen < {written}", CATALOG)
    (condition,) = question.conditions
    assert isinstance(condition, Call) and isinstance(condition.arguments[1], Literal)
    got = condition.arguments[1].value
    assert isinstance(got, dt.date)
    row = duckdb.connect().execute(f"SELECT CAST({written} AS TIMESTAMP)").fetchone()
    moment = got if isinstance(got, dt.datetime) else dt.datetime.combine(got, dt.time())
    assert row == (moment,)


def test_whole_days_keep_a_date() -> None:
    """So a key or a list of days stays one of days."""
    question = read_sql.read(
        "SELECT COUNT(*) AS n FROM visits WHERE day IN (DATE '2024-01-01' + INTERVAL 1 MONTH)", CATALOG
    )
    (condition,) = question.conditions
    assert isinstance(condition, Call) and condition.arguments[1] == Literal(
        dt.date(2024, 2, 1), condition.arguments[0].type
    )
