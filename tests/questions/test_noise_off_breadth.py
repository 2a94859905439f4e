"""Noise-off equality for joins, subqueries, people's features, quantiles and groupings: the words mean what SQL says.

As in ``test_noise_off``, the harness puts exact integers where noisy ones would be, and lets choices be certain. No
switch in the package does that.
"""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from discreet import Budget
from discreet.bounding.bound import bound_all
from discreet.codebook import Codebook
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.engine import EMPTY, Engine, Groups
from discreet.engines.memory.engine import MemoryEngine
from discreet.finish import finish
from discreet.frontends import read_sql
from discreet.offer import Offer
from discreet.price import PriceTerms, price
from discreet.release import NoisyGroups, Release
from tests.questions.test_noise_off import comparable

PEOPLE, VISITS, LABS = 60, 240, 300
TABLES = {
    "patients": pa.table(
        {
            "patient_id": list(range(PEOPLE)),
            "sex": [("female", "male", None)[i % 3] for i in range(PEOPLE)],
            "smoker": [None if i % 11 == 0 else i % 3 == 0 for i in range(PEOPLE)],
            "born": [1930 + (7 * i) % 80 for i in range(PEOPLE)],
        }
    ),
    "visits": pa.table(
        {
            "visit_id": [1000 + i for i in range(VISITS)],
            "patient_id": [(i * i) % 50 for i in range(VISITS)],
            "ward": [None if i % 17 == 0 else "ABC"[i % 3] for i in range(VISITS)],
            "days": [None if i % 13 == 0 else (5 * i) % 21 for i in range(VISITS)],
            "cost": [None if i % 19 == 0 else ((29 * i) % 4000) / 4 for i in range(VISITS)],
            "day": [
                None if i % 19 == 0 else dt.date(2024, 1, 1) + dt.timedelta(days=(31 * i) % 366) for i in range(VISITS)
            ],
            "seen": [
                None if i % 7 == 0 else dt.datetime(2024, 5, 1) + dt.timedelta(seconds=(997 * i) % 65_000)  # noqa: DTZ001
                for i in range(VISITS)
            ],
        }
    ),
    "labs": pa.table(
        {
            "visit_id": [1000 + (3 * i) % VISITS for i in range(LABS)],
            "test": [("iron", "sugar", "salt")[i % 3] for i in range(LABS)],
            "value": [None if i % 23 == 0 else ((7 * i) % 800) / 8 for i in range(LABS)],
        }
    ),
    "wards": pa.table({"ward": ["A", "B", "D"], "floor": [1, 2, 2], "kind": ["acute", "acute", "care"]}),
}
BOOK = Codebook.from_frames(
    TABLES,
    unit="patients.patient_id",
    public=["wards"],
    foreign_keys={"visits.patient_id": "patients.patient_id", "labs.visit_id": "visits.visit_id"},
    unique=["wards.ward"],
    max_groups=60,
    max_rows_per_group=400,
    max_joined_rows=10**9,
    bounds={
        "days": (0, 20),
        "cost": (0, 1000),
        "value": (0, 100),
        "born": (1900, 2024),
        "day": (dt.date(2024, 1, 1), dt.date(2024, 12, 31)),
        "seen": (dt.datetime(2024, 5, 1), dt.datetime(2024, 5, 1, 18, 10)),  # noqa: DTZ001  # times have no zone here
    },
    resolution={"cost": 0.25, "value": 0.125},
    keys={
        "sex": ["female", "male", None],
        "visits.ward": ["A", "B", "C", None],
        "test": ["iron", "sugar", "salt"],
        "floor": [1, 2],
        "kind": ["acute", "care"],
    },
    budget=Budget(epsilon=3, delta=1e-6),
)
CATALOG = BOOK.catalog()

QUESTIONS = [
    # joins
    "SELECT p.sex, COUNT(*) AS n FROM visits v JOIN patients p ON v.patient_id = p.patient_id GROUP BY p.sex",
    "SELECT p.sex, SUM(v.cost) AS s, AVG(v.days) AS d FROM visits v JOIN patients p USING (patient_id) GROUP BY p.sex",
    "SELECT COUNT(*) AS n, COUNT(v.visit_id) AS m FROM patients p LEFT JOIN visits v ON v.patient_id = p.patient_id",
    "SELECT COUNT(*) AS n FROM visits v RIGHT JOIN patients p ON v.patient_id = p.patient_id",
    "SELECT COUNT(*) AS n, COUNT(p.born) AS m FROM patients p FULL JOIN visits v USING (patient_id)",
    "SELECT COUNT(*) AS n FROM patients NATURAL JOIN visits WHERE smoker",
    "SELECT w.floor, COUNT(*) AS n FROM visits v JOIN wards w ON v.ward = w.ward GROUP BY w.floor",
    "SELECT w.kind, COUNT(*) AS n FROM visits v LEFT JOIN wards w ON v.ward = w.ward GROUP BY w.kind",
    "SELECT COUNT(*) AS n FROM visits a JOIN visits b ON a.patient_id = b.patient_id AND a.visit_id = b.visit_id",
    "SELECT COUNT(*) AS n FROM visits a JOIN visits b ON a.patient_id = b.patient_id AND a.days < b.days",
    "SELECT l.test, COUNT(*) AS n, SUM(l.value) AS s FROM labs l GROUP BY l.test",
    "SELECT v.ward, AVG(l.value) AS a FROM labs l JOIN visits v ON l.visit_id = v.visit_id GROUP BY v.ward",
    "SELECT COUNT(DISTINCT v.patient_id) AS n FROM labs l JOIN visits v ON l.visit_id = v.visit_id WHERE l.value > 50",
    # subqueries, features, windows, sets
    "SELECT AVG(n) AS a, COUNT(*) AS p FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS t",
    "SELECT COUNT(*) AS n FROM (SELECT patient_id, SUM(cost) AS s, MAX(days) AS d FROM visits GROUP BY patient_id) "
    "AS t WHERE s > 1000 AND d >= 10",
    "WITH one AS (SELECT patient_id, ward, AVG(cost) AS c FROM visits GROUP BY patient_id, ward) "
    "SELECT ward, SUM(c) AS s FROM one GROUP BY ward",
    "SELECT COUNT(*) AS n FROM (SELECT DISTINCT patient_id, ward FROM visits) AS d",
    "SELECT COUNT(*) AS n FROM (SELECT patient_id, days FROM visits UNION ALL SELECT patient_id, born FROM patients) u",
    "SELECT COUNT(*) AS n, SUM(days) AS s FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY patient_id "
    "ORDER BY visit_id) AS r FROM visits) AS t WHERE r = 1",
    "SELECT SUM(gap) AS s FROM (SELECT days - LAG(days) OVER (PARTITION BY patient_id ORDER BY visit_id) AS gap "
    "FROM visits) AS t WHERE gap BETWEEN -5 AND 5",
    "SELECT COUNT(*) AS n FROM visits WHERE patient_id IN (SELECT patient_id FROM patients WHERE smoker)",
    "SELECT COUNT(*) AS n FROM visits WHERE ward IN (SELECT ward FROM wards WHERE floor = 2)",
    "SELECT COUNT(*) AS n FROM patients p WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id)",
    "SELECT p.sex, AVG(t.n) AS a FROM patients p JOIN (SELECT patient_id, COUNT(*) AS n FROM visits "
    "GROUP BY patient_id) AS t ON t.patient_id = p.patient_id GROUP BY p.sex",
    # aggregates
    "SELECT COUNT(DISTINCT ward) AS n, COUNT(DISTINCT days) AS d FROM visits",
    "SELECT ward, COUNT(DISTINCT days) AS d FROM visits GROUP BY ward",
    "SELECT COUNT(DISTINCT patient_id) FILTER (WHERE days > 15) AS n FROM visits",
    "SELECT SUM(cost) FILTER (WHERE ward = 'A') AS s, COUNT(*) FILTER (WHERE days > 3) AS n FROM visits",
    "SELECT COVAR_POP(days, cost) AS c, CORR(days, cost) AS r FROM visits",
    "SELECT QUANTILE_DISC(days, 0.5) AS q FROM visits WHERE days IS NOT NULL AND days % 2 = 1",
    "SELECT QUANTILE_DISC(day, 0.25) AS q, QUANTILE_DISC(day, 0.9) AS r FROM visits WHERE day IS NOT NULL",
    "SELECT ward, PERCENTILE_DISC(0.4) WITHIN GROUP (ORDER BY day) AS q FROM visits WHERE days < 15 GROUP BY ward",
    "SELECT ward, QUANTILE_DISC(seen, 0.3) FILTER (WHERE days > 3) AS q FROM visits GROUP BY ward",
    "SELECT QUANTILE_DISC(day, 0.5) AS q FROM visits WHERE day >= DATE '2024-03-01' AND day < DATE '2024-05-01'",
    # groupings
    "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward)",
    "SELECT p.sex, v.ward, GROUPING(p.sex, v.ward) AS g, GROUPING_ID(v.ward) + 1 AS h, COUNT(*) AS n "
    "FROM visits v JOIN patients p USING (patient_id) GROUP BY CUBE (p.sex, v.ward) HAVING GROUPING(p.sex) = 1",
    "SELECT ward, GROUPING(ward) AS g, COUNT(*) AS n FROM visits GROUP BY ward",
    "SELECT p.sex, v.ward, COUNT(*) AS n FROM visits v JOIN patients p USING (patient_id) "
    "GROUP BY GROUPING SETS ((p.sex, v.ward), (p.sex), ())",
]


def certain(release: Release, groups: Groups, keys: tuple[Any, ...]) -> dict[int, tuple[tuple[int, ...], ...]]:
    """The cells that hold the exact quantiles, or the most rows."""
    where = {key: i for i, key in enumerate(groups.keys)}
    found = {}
    for position in release.choices:
        shares = release.bounded.shares_of(position)
        histograms = [groups.spreads[position][where[key]] if key in where else EMPTY for key in keys]
        found[position] = tuple(_cells(cells, counts, shares) for cells, counts in histograms)
    return found


def _cells(cells: Any, counts: Any, shares: tuple[Fraction, ...]) -> tuple[int, ...]:
    if not shares:
        return (int(cells[np.argmax(counts)]),)
    ranks = np.cumsum(counts)
    return tuple(int(cells[np.searchsorted(ranks, float(share) * int(ranks[-1]))]) for share in shares)


def without_noise(question: str, engine: Engine) -> list[tuple[Any, ...]]:
    """The answer's values, with the exact integers in the place of noisy ones."""
    forms = bound_all(read_sql.read(question, CATALOG), CATALOG)
    plan = price(forms, Offer(epsilon=3), PriceTerms(budget=BOOK.budget, unit=BOOK.unit, neighbours=BOOK.neighbours))
    drawn = []
    for form, release in zip(forms, plan.releases):
        groups = engine.run(release.bounded.bounded, salt=bytes(16))
        where = {key: i for i, key in enumerate(groups.keys)}
        occurring = tuple(
            key
            for i, key in enumerate(groups.keys)
            if any(column[i] for column in groups.values) or any(len(spread[i][0]) for spread in groups.spreads)
        )
        keys = occurring if form.bounded.keys else ((),)
        exact = {p: np.array([groups.values[p][where[key]] for key in keys], dtype=object) for p in release.recoveries}
        drawn.append(NoisyGroups(keys, release.recover(release.combine(exact)), certain(release, groups, keys)))
    return [tuple(cell.value for cell in row) for row in finish(plan, drawn).rows]


def plain(question: str) -> list[tuple[Any, ...]]:
    """What DuckDB says to the same words."""
    connection = duckdb.connect()
    for name, table in TABLES.items():
        connection.register(name, table)
    return connection.execute(question).fetchall()


@pytest.fixture(scope="module", params=["memory", "duckdb", "prepared"])
def engine(request: pytest.FixtureRequest) -> Any:
    if request.param == "memory":
        return MemoryEngine(TABLES, CATALOG)
    made = DuckDBEngine(TABLES, CATALOG)
    if request.param == "prepared":
        for name in ("visits", "patients"):
            made.prepare(name)
    return made


@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_without_noise_equal_plain_sql(question: str, engine: Engine) -> None:
    """The same words mean the same thing, over several tables, too."""
    ours, theirs = comparable(without_noise(question, engine)), comparable(plain(question))
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs):
        for a, b in zip(mine, other):
            assert a == (pytest.approx(b, abs=1e-5, rel=1e-6) if isinstance(b, float) else b)


def test_rows_that_reach_nobody_are_left_out(engine: Engine) -> None:
    """A lab value of no visit, or of a visit without a patient, belongs to no unit and counts nowhere."""
    lost = pa.table({"visit_id": [1000, 1001, None, 999_999], "test": ["iron"] * 4, "value": [1.0] * 4})
    changed = {**TABLES, "labs": lost}
    fresh: Engine = type(engine)(changed, CATALOG)  # type: ignore[call-arg]  # both kinds take tables and a catalog
    (form,) = bound_all(read_sql.read("SELECT COUNT(*) AS n FROM labs", CATALOG), CATALOG)
    assert fresh.run(form.bounded, salt=bytes(16)).values == ((2,),)
