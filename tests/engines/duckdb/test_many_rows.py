"""One person with very many rows, little memory and one thread: questions are answered as without that person."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet.bounding.bound import bound
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.engine import Groups
from discreet.frontends import read_sql
from discreet.privacy import Budget

MANY, PEOPLE = 9_000_000, 1_000
# In each, what everybody but the hostile person has is known.
QUESTIONS = {
    "MEDIAN": "SELECT COUNT(*) AS n FROM (SELECT pid, MEDIAN(cost) AS m FROM visits GROUP BY pid) t WHERE m > 5",
    "SUM": "SELECT COUNT(*) AS n FROM (SELECT pid, SUM(cost) AS m FROM visits GROUP BY pid) t WHERE m > 5",
    "AVG": "SELECT COUNT(*) AS n FROM (SELECT pid, AVG(cost) AS m FROM visits GROUP BY pid) t WHERE m > 5",
}


def make_visits(hostile: int) -> pa.Table:
    """Everybody has one visit; the hostile person has many, each with a cost of its own."""
    pid = np.concatenate([np.arange(PEOPLE), np.full(hostile, PEOPLE)])
    cost = np.concatenate([np.full(PEOPLE, 6.0), np.linspace(0, 10, hostile)])
    return pa.table({"pid": pid, "cost": cost})


def run(question: str, visits: pa.Table) -> Groups:
    holder = discreet.curate(
        {"visits": visits.slice(0, 1)}, unit="pid", max_rows=2, budget=Budget(epsilon=1), bounds={"cost": (0, 10)}
    )
    bounded = bound(read_sql.read(question, holder.catalog), holder.catalog).bounded
    engine = DuckDBEngine({"visits": visits}, holder.catalog, threads=1, memory_limit="160MB")
    try:
        return engine.run(bounded, salt=b"sixteen bytes ok")
    finally:
        engine.close()


@pytest.mark.parametrize("name", QUESTIONS)
def test_features_of_many_rows(name: str) -> None:
    """An aggregate that holds a unit's values, or sorts them in memory, runs out of it here."""
    assert run(QUESTIONS[name], make_visits(0)).values == ((PEOPLE,),)
    assert run(QUESTIONS[name], make_visits(MANY)).values == ((PEOPLE + (name == "SUM"),),)
