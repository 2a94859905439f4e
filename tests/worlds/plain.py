"""Questions without noise and without limits, over small random tables: what our plan says, and what plain DuckDB says.

Every row of a private table has its unit and every foreign key its row, so that nothing is dropped and the same SQL
means the same to both.
"""

# ruff: noqa: S311  # tables need seeds, not secrets
from __future__ import annotations

import datetime as dt
import random
from collections.abc import Mapping, Sequence

import duckdb

from discreet.engines.memory.relations import MemoryRow, RelationReader
from discreet.plan.evaluate import evaluate
from discreet.plan.expressions import Column, Expression, ReleasedValue
from discreet.plan.nodes import Aggregate, Question
from discreet.plan.statistics.definitions import Statistic
from discreet.plan.types import Type, Value
from tests.worlds.tables import HOSPITAL, PUBLIC

Tables = dict[str, list[dict[str, Value]]]
SQL_TYPES = {
    Type.INTEGER: "BIGINT", Type.REAL: "DOUBLE", Type.TEXT: "VARCHAR", Type.BOOLEAN: "BOOLEAN", Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP",
}  # fmt: skip  # one table
TOWNS = ("Aa", "Bb", "Cc", None)
WARDS = ("A", "B", "C", None)


def some_tables(seed: int, patients: int = 7) -> Tables:
    """Patients with visits, labs and jobs; visits of one patient are on different days, so no order has ties."""
    rng = random.Random(seed)
    units = list(range(1, patients + 1))
    people: list[dict[str, Value]] = [
        {"patient_id": unit, "born": rng.choice((1940, 1985, None)), "sex": rng.choice(("f", "m")),
         "ward": rng.choice(WARDS), "referred_by": rng.choice((*units, None)), "town": rng.choice(TOWNS)}
        for unit in units if rng.random() < 0.8
    ]  # fmt: skip  # one row
    visits: list[dict[str, Value]] = []
    for unit in units:
        for day in rng.sample(range(28), rng.randrange(5)):
            date = dt.date(2024, rng.choice((1, 7)), 1) + dt.timedelta(days=day)
            visits.append({
                "visit_id": len(visits) + 100, "patient_id": unit, "ward": rng.choice(WARDS),
                "age": rng.choice((10, 35, 60, None)), "cost": rng.choice((0.5, 120.0, 250.0, None)), "day": date,
                "seen": dt.datetime.combine(date, dt.time()), "smoker": rng.choice((True, False, None)), "note": "x",
            })  # fmt: skip  # one row
    labs = [
        {"visit_id": visit["visit_id"], "test": rng.choice(("blood", "urine")), "result": rng.choice((5.0, 75.0, None))}
        for visit in visits for _ in range(rng.randrange(3))
    ]  # fmt: skip  # one row
    workers: list[dict[str, Value]] = [
        {"person": unit, "firm": rng.choice(("x", "y")), "town": rng.choice(TOWNS), "wage": rng.choice((50.0, 150.0))}
        for unit in units for _ in range(rng.randrange(3))
    ]  # fmt: skip  # one row
    wards: list[dict[str, Value]] = [
        {"ward": "A", "floor": 1, "beds": 10, "city": "A"},
        {"ward": "B", "floor": 2, "beds": 60, "city": None},
        {"ward": "C", "floor": 2, "beds": None, "city": "Bb"},
    ]
    regions: list[dict[str, Value]] = [
        {"town": rng.choice(TOWNS), "region": rng.choice(("north", "south"))} for _ in range(4)
    ]
    treatments: list[dict[str, Value]] = [
        {"patient_id": unit, "clinic": clinic, "number": number, "hours": rng.choice((1, 5, None))}
        for clinic in ("x", "y") for number in range(6) if (unit := rng.choice((*units, 0)))
    ]  # fmt: skip  # one row
    doses: list[dict[str, Value]] = [
        {"clinic": row["clinic"], "treatment": row["number"], "drug": rng.choice("ab"),
         "amount": rng.choice((0.5, 20.0, None))}
        for row in treatments for _ in range(rng.randrange(3))
    ]  # fmt: skip  # one row
    return {
        "patients": people, "visits": visits, "labs": labs, "workers": workers, "wards": wards, "regions": regions,
        "treatments": treatments, "doses": doses,
    }  # fmt: skip  # one list


def plain(tables: Tables) -> duckdb.DuckDBPyConnection:
    """The same tables in DuckDB, where labs and doses name the patient as they do in a question."""
    connection = duckdb.connect(config={"threads": 1})
    for name, facts in HOSPITAL.tables.items():
        columns = {column: kind for column, (kind, _) in facts.columns.items()}
        _fill(connection, name, columns, [tuple(row[column] for column in columns) for row in tables[name]])
    owners = {row["visit_id"]: row["patient_id"] for row in tables["visits"]}
    connection.execute("ALTER TABLE labs ADD COLUMN patient_id BIGINT")
    for visit, owner in owners.items():
        connection.execute("UPDATE labs SET patient_id = ? WHERE visit_id = ?", [owner, visit])
    connection.execute("ALTER TABLE doses ADD COLUMN patient_id BIGINT")
    connection.execute(
        "UPDATE doses SET patient_id = t.patient_id FROM treatments t WHERE t.clinic = doses.clinic "
        "AND t.number = doses.treatment"
    )
    for name, values in PUBLIC.items():
        _fill(connection, name, dict(values.columns), values.rows)
    connection.execute(
        "CREATE MACRO clamp(x, low, high) AS CASE WHEN x IS NULL THEN NULL ELSE least(greatest(x, low), high) END"
    )
    return connection


def _fill(
    connection: duckdb.DuckDBPyConnection, name: str, columns: Mapping[str, Type], rows: Sequence[tuple[Value, ...]]
) -> None:
    described = ", ".join(f'"{column}" {SQL_TYPES[kind]}' for column, kind in columns.items())
    connection.execute(f"CREATE TABLE {name} ({described})")
    if rows:
        marks = ", ".join("?" for _ in columns)
        connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)


def answer(question: Question, tables: Tables) -> list[tuple[Value, ...]]:
    """What the plan of a question says, sorted: every row counts in full, and nothing is noisy."""
    rows = RelationReader(tables, HOSPITAL, b"salt").read(question.source).rows
    groups: dict[tuple[Value, ...], list[MemoryRow]] = {} if question.keys else {(): []}
    for row in rows:
        groups.setdefault(tuple(evaluate(key, row) for key in question.keys), []).append(row)
    found = []
    for key, members in groups.items():
        known: dict[ReleasedValue, Value] = {question.refer_to_key(i): value for i, value in enumerate(key)}
        known |= {question.refer_to_aggregate(i): _measured(a, members) for i, a in enumerate(question.aggregates)}
        found.append(tuple(_shown(output.expression, known) for output in question.outputs))
    return sorted(found, key=repr)


def _shown(expression: Expression, known: Mapping[ReleasedValue, Value]) -> Value:
    return _whole(evaluate(expression, dict[Column | ReleasedValue, Value](known.items())))


def _measured(aggregate: Aggregate, rows: Sequence[MemoryRow]) -> Value:
    if aggregate.argument is None and aggregate.statistic is Statistic.COUNT:
        return len(rows)
    if aggregate.argument is None:
        raise AssertionError("count units by naming them")
    values = [value for row in rows if (value := evaluate(aggregate.argument, row)) is not None]
    match aggregate.statistic:
        case Statistic.COUNT:
            return len(values)
        case Statistic.SUM:
            return sum(values) if values else None  # type: ignore[arg-type]  # numbers, by their type
        case Statistic.MEAN:
            return sum(values) / len(values) if values else None  # type: ignore[arg-type]  # numbers, by their type
    raise AssertionError(aggregate.statistic)


def theirs(text: str, connection: duckdb.DuckDBPyConnection) -> list[tuple[Value, ...]]:
    """What DuckDB says, sorted."""
    return sorted((tuple(map(_whole, row)) for row in connection.execute(text).fetchall()), key=repr)


def _whole(value: object) -> Value:
    """1.0 and 1 are the same answer; sums that differ in the last bit, too."""
    if isinstance(value, float):
        rounded = round(value, 6)
        return int(rounded) if rounded.is_integer() else rounded
    return value  # type: ignore[return-value]  # whatever the engine gives is a value
