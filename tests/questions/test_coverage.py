"""The README's questions about the demo, asked many times: intervals hold the plain counts at the stated level.

Only the noise is drawn again and again, from seeds. The rows are read once, and what DuckDB counts is the truth: so a
limit that leaves rows beyond it, or a bound that cuts values, would show here.
"""

from __future__ import annotations

import math
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from discreet import demo
from discreet.bounding.bound import bound
from discreet.codebook import Codebook
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.entropy import SeededForTestsOnly
from discreet.finish import finish
from discreet.frontends import read_sql
from discreet.offer import Offer
from discreet.price import PriceTerms, price
from discreet.release import draw

BOOK = Codebook.read(demo.CODEBOOK)
CATALOG = BOOK.catalog()
BY_WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
QUESTIONS = [
    (BY_WARD, 300),
    ("SELECT w.floor, COUNT(*) AS n FROM visits v JOIN wards w ON v.ward = w.ward GROUP BY w.floor", 300),
    ("SELECT COUNT(*) AS n FROM labs", 1500),
    (
        "SELECT AVG(n) AS visits FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS each_one",
        800,
    ),
]


@pytest.fixture(scope="module")
def tables() -> dict[str, Any]:
    return demo.make_tables()


def count_held(question: str, times: int, tables: dict[str, Any]) -> tuple[int, int]:
    """How many intervals hold what DuckDB gives, and of how many."""
    bounded = bound(read_sql.read(question, CATALOG), CATALOG)
    terms = PriceTerms(budget=BOOK.budget, unit=BOOK.unit, neighbours=BOOK.neighbours)
    plan = price((bounded,), Offer(epsilon=0.5), terms)
    groups = DuckDBEngine(tables, CATALOG).run(bounded.bounded, salt=bytes(16))
    truth = {row[:-1]: row[-1] for row in _ask_plainly(question, tables)}
    source, held, asked = SeededForTestsOnly(14), 0, 0
    for _ in range(times):
        for row in finish(plan, [draw(plan.releases[0], groups, source=source)], source=source).rows:
            low, high = row[-1].low, row[-1].high
            assert isinstance(low, int | float) and isinstance(high, int | float)
            held += low <= truth[tuple(cell.value for cell in row[:-1])] <= high
            asked += 1
    return held, asked


def _ask_plainly(question: str, tables: dict[str, Any]) -> list[tuple[Any, ...]]:
    """DuckDB's own answer. Of results only those count that belong to a patient."""
    connection = duckdb.connect()
    for name, table in tables.items():
        connection.register(name, table)
    if "labs" in question:
        question += " WHERE visit_id IN (SELECT visit_id FROM visits)"
    return connection.execute(question).fetchall()


def tail_of(held: int, asked: int, level: float = 0.95) -> float:
    """How likely so few, or so many, would be if each interval held the truth at this level."""

    def log_chance(k: int) -> float:
        ways = math.lgamma(asked + 1) - math.lgamma(k + 1) - math.lgamma(asked - k + 1)
        return ways + k * math.log(level) + (asked - k) * math.log(1 - level)

    chances = [math.exp(log_chance(k)) for k in range(asked + 1)]
    return min(sum(chances[: held + 1]), sum(chances[held:]))


@pytest.mark.parametrize(("question", "times"), QUESTIONS)
def test_intervals_hold_the_plain_numbers(question: str, times: int, tables: dict[str, Any]) -> None:
    held, asked = count_held(question, times, tables)
    assert tail_of(held, asked) > 1e-9, f"{held} of {asked}"


def test_rows_beyond_a_limit_are_noticed(tables: dict[str, Any]) -> None:
    """Negative control: where one patient in eight comes three times as often, the same intervals miss the counts."""
    visits = tables["visits"]
    often = visits.filter(
        pc.equal(pc.subtract(visits["patient_id"], pc.multiply(pc.divide(visits["patient_id"], 8), 8)), 0)
    )
    crowded = {**tables, "visits": pa.concat_tables([visits, *[often] * 2])}
    held, asked = count_held(BY_WARD, 100, crowded)
    assert tail_of(held, asked) < 1e-9, f"{held} of {asked}"
