"""Noise-off equality: without noise, and on data within the declarations, answers equal plain SQL, on both engines.

The harness stands here and nowhere else: it puts the exact integers where the noisy ones would be. No switch in the
package does that.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from discreet import Budget
from discreet.bounding.bound import bound
from discreet.codebook import Codebook
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.engine import Engine
from discreet.engines.memory.engine import MemoryEngine
from discreet.finish import finish
from discreet.frontends import read_sql
from discreet.offer import Offer
from discreet.plan.statistics.table import STATISTICS
from discreet.price import PriceTerms, price
from discreet.release import NoisyGroups

N = 600
VISITS = pa.table(
    {
        "person": [i % 150 for i in range(N)],
        "ward": [None if i % 41 == 0 else "ABC"[i % 3] for i in range(N)],
        "town": [f"town {(i * i) % 7}" for i in range(N)],
        "age": [None if i % 37 == 0 else (13 * i) % 111 for i in range(N)],
        "cost": [None if i % 29 == 0 else ((17 * i) % 4000) / 4 for i in range(N)],
        "well": [None if i % 31 == 0 else i % 4 == 1 for i in range(N)],
        "day": [dt.date(2024, 1, 1) + dt.timedelta(days=(5 * i) % 366) for i in range(N)],
    }
)
BOOK = Codebook.from_frames(
    {"visits": VISITS},
    unit="person",
    max_groups=60,
    max_rows_per_group=100,
    bounds={"age": (0, 110), "cost": (0, 1000)},
    resolution={"cost": 0.25},
    keys={"ward": ["A", "B", "C", None], "well": [False, True, None]},
    budget=Budget(epsilon=3, delta=1e-6),
)
CATALOG = BOOK.catalog()

QUESTIONS = [
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT COUNT(age) AS n, SUM(age) AS s, AVG(age) AS m FROM visits",
    "SELECT ward, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY ward",
    "SELECT town, COUNT(*) AS n, COUNT(DISTINCT person) AS p FROM visits GROUP BY town",
    "SELECT ward, AVG(age) AS a, VAR_POP(age) AS v, STDDEV_POP(age) AS d FROM visits GROUP BY ward",
    "SELECT VARIANCE(age) AS v, STDDEV(age) AS d FROM visits WHERE ward = 'A'",
    "SELECT town, SUM(age * 2 + 1) AS s FROM visits WHERE well GROUP BY town",
    "SELECT well, COUNT(*) AS n FROM visits WHERE age BETWEEN 20 AND 60 OR cost > 500 GROUP BY well",
    "SELECT CASE WHEN age < 18 THEN 'young' WHEN age < 65 THEN 'middle' ELSE 'old' END AS g, COUNT(*) AS n "
    "FROM visits GROUP BY g",
    "SELECT EXTRACT(month FROM day) AS m, COUNT(*) AS n FROM visits GROUP BY m",
    "SELECT town, COUNT(*) AS n FROM visits WHERE town LIKE '%_ 3' OR town IN ('town 1', 'town 2') GROUP BY town",
    "SELECT SUM(CASE WHEN well THEN 1 ELSE 0 END) AS w, SUM(COALESCE(age, 50)) AS s FROM visits",
    "SELECT ward, SUM(cost) / COUNT(cost) AS r, COUNT(*) - COUNT(age) AS missing FROM visits GROUP BY ward",
    "SELECT town, COUNT(*) AS n FROM visits GROUP BY town HAVING COUNT(*) > 80 ORDER BY n DESC, town LIMIT 3",
    "SELECT SUM(LEAST(cost, 100.0)) AS s, AVG(ABS(age - 55)) AS d FROM visits",
    "SELECT date_trunc('quarter', day) AS q, COUNT(*) AS n FROM visits GROUP BY q",
    "SELECT UPPER(town) AS t, ward, COUNT(*) AS n FROM visits WHERE ward IS NOT NULL GROUP BY t, ward",
]

# Every aggregate that follows from counts and sums, in every way to ask for it; DuckDB knows all of these words, but
# what it calls APPROX is only near the truth.
KINDS = {"number": "cost", "condition": "well", "unit": "person", "key": "town"}
for known in STATISTICS.values():
    examples = [example.format(**KINDS) for wording in known.wordings for example in wording.examples]
    ways = [f"{way} AS x{i}" for i, way in enumerate(examples) if not way.startswith("APPROX")]
    if not known.is_chosen:
        QUESTIONS.append(" ".join(("SELECT ward,", ", ".join(ways), "FROM visits GROUP BY ward")))


def without_noise(question: str, engine: Engine) -> list[tuple[Any, ...]]:
    """The answer's values, with the exact integers in the place of noisy ones."""
    bounded = bound(read_sql.read(question, CATALOG), CATALOG)
    plan = price(
        (bounded,), Offer(epsilon=3), PriceTerms(budget=BOOK.budget, unit=BOOK.unit, neighbours=BOOK.neighbours)
    )
    (release,) = plan.releases
    groups = engine.run(release.bounded.bounded, salt=bytes(16))
    where = {key: i for i, key in enumerate(groups.keys)}
    occurring = tuple(key for key, *counts in zip(groups.keys, *groups.values) if any(counts))
    keys = occurring if bounded.bounded.keys else ((),)
    exact = {p: np.array([groups.values[p][where[key]] for key in keys], dtype=object) for p in release.recoveries}
    return [
        tuple(cell.value for cell in row)
        for row in finish(plan, [NoisyGroups(keys, release.recover(release.combine(exact)))]).rows
    ]


def plain(question: str) -> list[tuple[Any, ...]]:
    """What DuckDB says to the same words."""
    connection = duckdb.connect()
    connection.register("visits", VISITS)
    return connection.execute(question).fetchall()


def comparable(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows in one order, with numbers as floats; moments at midnight are days."""

    def value(v: Any) -> Any:
        if isinstance(v, dt.datetime):
            return v.date().isoformat()
        if isinstance(v, dt.date):
            return v.isoformat()
        return v if v is None or isinstance(v, str | bool) else round(float(v), 6)

    return sorted((tuple(map(value, row)) for row in rows), key=repr)


@pytest.fixture(scope="module", params=["memory", "duckdb", "prepared"])
def engine(request: pytest.FixtureRequest) -> Any:
    if request.param == "memory":
        return MemoryEngine({"visits": VISITS}, CATALOG)
    made = DuckDBEngine({"visits": VISITS}, CATALOG)
    if request.param == "prepared":
        made.prepare("visits")
    return made


@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_without_noise_equal_plain_sql(question: str, engine: Engine) -> None:
    """The same words mean the same thing."""
    assert comparable(without_noise(question, engine)) == comparable(plain(question))


def test_limits_that_bind_are_seen() -> None:
    """Negative control: with one row a person, the answer is no longer the plain one."""
    narrow = Codebook.from_frames({"visits": VISITS}, unit="person", max_rows=1, budget=BOOK.budget).catalog()
    bounded = bound(read_sql.read("SELECT COUNT(*) AS n FROM visits", narrow), narrow).bounded
    assert DuckDBEngine({"visits": VISITS}, narrow).run(bounded, salt=bytes(16)).values == ((150,),)
