"""What a text means to us is what it means to DuckDB: expressions read here and evaluated against the engine itself."""

from __future__ import annotations

import datetime as dt
import math

import duckdb
import pytest

from discreet.frontends import read_sql
from discreet.plan.evaluate import evaluate
from discreet.plan.expressions import Column
from discreet.plan.types import Type, Value
from tests.worlds.tables import CATALOG, VISITS

DAY = dt.date(2024, 2, 29)
SEEN = dt.datetime.fromisoformat
ROWS: list[tuple[Value, ...]] = [
    # patient_id, ward, age, cost, day, seen, smoker, note
    (1, "A", 30, 12.5, DAY, SEEN("2024-02-29 13:45:59"), True, "Flu 7%"),
    (2, "B", 0, 0.0, dt.date(1999, 12, 31), SEEN("2000-01-01"), False, ""),
    (3, None, None, None, None, None, None, None),
    (4, "C", 109, 9999.25, dt.date(2023, 1, 1), SEEN("2023-12-31 23:59:59"), None, " 42 "),
    (5, "A", 65, 99.5, DAY, SEEN("2024-02-29"), True, "a_b"),
]

CONDITIONS = """
age > 30
30 <= age
NOT age = 30
NOT (age < 30)
age BETWEEN 30 AND 65
age NOT BETWEEN 1 AND 50
ward IN ('A', 'B')
ward NOT IN ('A')
ward IN ('A', NULL)
ward IS NULL
ward IS NOT NULL
smoker IS TRUE
smoker IS NOT TRUE
smoker IS FALSE
smoker IS NOT FALSE
NOT smoker
NOT NOT smoker
smoker AND age > 40
smoker OR age > 40
NOT (smoker AND age > 40)
age > 1 AND (smoker OR cost < 20) OR age = 0
ward IS DISTINCT FROM 'A'
ward IS NOT DISTINCT FROM note
note IS NOT DISTINCT FROM NULL
note LIKE '%7%'
note NOT LIKE 'F%'
note LIKE 'a_b'
note ILIKE 'flu%'
note LIKE '%%'
note LIKE ''
starts_with(note, 'F')
ends_with(note, '%')
contains(note, 'u')
prefix(note, 'a')
suffix(note, 'b')
day >= '2024-01-01'
day = DATE '2024-02-29'
seen > TIMESTAMP '2024-02-29 00:00:00'
day < seen
seen = '2000-01-01'
day IN ('2024-02-29', '1999-12-31')
day BETWEEN '2023-01-01' AND '2023-12-31'
year(day) = 2024
EXTRACT(month FROM day) = 2
date_part('dow', day) = 4
quarter(seen) = 4
week(day) = 9
hour(seen) > 12
minute(seen) = 45
second(seen) = 59
dayofweek(day) = 5
day(day) = 31
date_diff('day', day, seen) = 0
date_diff('month', day, seen) = 11
date_diff('year', '2000-01-01', day) = -1
date_trunc('month', day) = '2024-02-01'
date_trunc('week', seen) = '2023-12-25'
date_trunc('quarter', seen) < '2024-01-01'
CASE ward WHEN 'A' THEN age > 30 WHEN 'B' THEN TRUE ELSE FALSE END
CASE WHEN age > 30 THEN smoker END
IF(smoker, age, 0) > 10
COALESCE(smoker, age > 100)
NULLIF(ward, 'A') = 'B'
IFNULL(ward, 'none') = 'none'
lower(ward) = 'a'
upper(note) = 'FLU 7%'
trim(note) = '42'
length(note) = 6
substr(note, 2, 3) = 'lu '
substring(note, 5) = '7%'
left(note, 1) = 'F'
note || ward = 'Flu 7%A'
concat(note, ward) = ''
CAST(note AS VARCHAR) = 'a_b'
TRY_CAST(note AS BIGINT) = 42
TRY_CAST(note AS DOUBLE) = 42
age::VARCHAR = '30'
age::DOUBLE = 30
CAST(seen AS DATE) = day
CAST(smoker AS BIGINT) = 1
CAST(cost AS BIGINT) = 12
CAST(day AS TIMESTAMP) = seen
smoker::VARCHAR = 'true'
least(age, 50) = 50
greatest(age, 50, cost) = 50
abs(age - 65) = 35
sign(age) = 0
floor(cost) = 12
ceil(cost) = 13
round(cost) = 13
round(cost, 1) = 12.5
sqrt(age) = 0
power(age, 2) = 900
age ** 2 = 900
age % 7 = 2
mod(age, 4) = 1
-age < -50
age + 1 - 2 * 3 = 25
age / 2 = 15
age / 4 = 7.5
exp(age) = 1
ln(cost + 1) > 3
1e2 < cost
floor(age / 10) * 10 = 60
cost > 24 * 60
(age > 3) = smoker
smoker = TRUE
age <> 30
age != 30
age == 30
seen >= day
'A' = ward
@(age - 65) = 35
""".strip().splitlines()


@pytest.fixture(scope="module")
def engine() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    types = ["BIGINT", "VARCHAR", "BIGINT", "DOUBLE", "DATE", "TIMESTAMP", "BOOLEAN", "VARCHAR"]
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(VISITS.columns, types))
    connection.execute(f"CREATE TABLE visits ({columns})")
    connection.executemany("INSERT INTO visits VALUES (?, ?, ?, ?, ?, ?, ?, ?)", ROWS)
    return connection


def ours(text: str) -> list[Value]:
    """The values of an expression by our own plan, row by row."""
    question = read_sql.read(f"SELECT COUNT({text}) AS n FROM visits", CATALOG)  # a question, not a query
    (aggregate,) = question.aggregates
    assert aggregate.argument is not None
    names = {name: Column("visits", name, kind) for name, (kind, _) in VISITS.columns.items()}
    return [evaluate(aggregate.argument, {names[n]: v for n, v in zip(names, row)}) for row in ROWS]


@pytest.mark.parametrize("text", CONDITIONS)
def test_conditions_mean_the_same(engine: duckdb.DuckDBPyConnection, text: str) -> None:
    """A condition is true, false or NULL for us exactly where it is for DuckDB."""
    theirs = [row[0] for row in engine.execute(f"SELECT {text} FROM visits ORDER BY patient_id").fetchall()]
    assert ours(text) == theirs


@pytest.mark.parametrize("sample", ["VARIANCE", "VAR_SAMP", "STDDEV", "STDDEV_SAMP", "VAR_POP", "STDDEV_POP"])
def test_sample_forms_follow_from_population_forms(engine: duckdb.DuckDBPyConnection, sample: str) -> None:
    """VARIANCE and STDDEV are DuckDB's: the sample forms, made of the population form and the count."""
    text = f"SELECT {sample}(age) AS v FROM visits"  # a fixed word
    question = read_sql.read(text, CATALOG)
    inside = {"count": "COUNT(age)", "variance": "VAR_POP(age)", "stddev": "STDDEV_POP(age)"}
    (theirs,) = engine.execute(text).fetchone() or (None,)
    released: dict[object, Value] = {}
    for index, aggregate in enumerate(question.aggregates):
        (value,) = engine.execute(f"SELECT {inside[aggregate.statistic]} FROM visits").fetchone() or (None,)
        released[question.refer_to_aggregate(index)] = value
    mine = evaluate(question.outputs[0].expression, released)  # type: ignore[arg-type]  # Released keys only
    assert isinstance(mine, float) and math.isclose(mine, theirs, rel_tol=1e-12)
    assert question.outputs[0].expression.type is Type.REAL


def test_sample_forms_of_few_are_null() -> None:
    """A noisy count of one or less has no sample variance."""
    question = read_sql.read("SELECT VARIANCE(age) AS v FROM visits", CATALOG)
    for n in (-3, 0, 1):
        released = {question.refer_to_aggregate(0): 2.5, question.refer_to_aggregate(1): n}
        assert evaluate(question.outputs[0].expression, released) is None  # type: ignore[arg-type]  # Released keys only
