"""Random small worlds: tables with values that break things, and bounded questions about them."""

# ruff: noqa: DTZ001, S311  # times have no zone here, and worlds need seeds, not secrets
from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pyarrow as pa

from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.expressions import Column, Expression, Literal
from discreet.plan.functions import make_call, make_literal
from discreet.plan.relations import Relation, Scan, Where
from discreet.plan.types import Type, Value
from discreet.privacy import Neighbours, Unit

SALT = bytes(range(16))
ARROW = {
    Type.BOOLEAN: pa.bool_(),
    Type.INTEGER: pa.int64(),
    Type.REAL: pa.float64(),
    Type.TEXT: pa.string(),
    Type.DATE: pa.date32(),
    Type.TIMESTAMP: pa.timestamp("us"),
}

UNIT = Column("t", "unit", Type.INTEGER)
NAME = Column("t", "name", Type.TEXT)
WARD = Column("t", "Ward", Type.TEXT)
CODE = Column("t", "code", Type.INTEGER)
FLAG = Column("t", "flag", Type.BOOLEAN)
COST = Column("t", "cost", Type.REAL)
AGE = Column("t", "age", Type.INTEGER)
DAY = Column("t", "day", Type.DATE)
WHEN = Column("t", "when", Type.TIMESTAMP)
COLUMNS = (UNIT, NAME, WARD, CODE, FLAG, COST, AGE, DAY, WHEN)

Rows = list[dict[str, Value]]

WARDS = ("A", "B", "", "a", "B ", None)
COSTS = (None, 0.0, -0.0, 0.5, 1.0, 2.5, -3.75, 99.99, 1e300, -1e300, float("nan"), float("inf"), -float("inf"))
AGES = (None, 0, 1, -1, 40, 41, 110, 2**62, -(2**63), 2**63 - 1)


def add_conditions(relation: Relation, *conditions: Expression) -> Relation:
    """The rows of a relation for which all conditions are true."""
    for condition in conditions:
        relation = Where(relation, condition)
    return relation


def catalog(unit: Expression | None) -> Catalog:
    """Everything declared, nothing known."""
    facts = TableFacts(
        name="t",
        columns={column.name: (column.type, ColumnFacts()) for column in COLUMNS},
        unit=Unit(unit.name if isinstance(unit, Column) else None),
        limits=ContributionLimits(),
    )
    return Catalog(tables={"t": facts}, neighbours=Neighbours.ADD_REMOVE)


def a_row(rng: random.Random, unit: int | None) -> dict[str, Value]:
    return {
        "unit": unit,
        "name": None if unit is None else f"person {unit}",
        "Ward": rng.choice(WARDS),
        "code": rng.choice((None, 1, 2, 3)),
        "flag": rng.choice((None, True, False)),
        "cost": rng.choice(COSTS) if rng.random() < 0.5 else rng.uniform(-5, 5),
        "age": rng.choice(AGES) if rng.random() < 0.5 else rng.randrange(0, 110),
        "day": rng.choice((None, dt.date(2020, 1, rng.randrange(1, 4)), dt.date(1, 1, 1))),
        "when": rng.choice((None, dt.datetime(2020, 1, 1, rng.randrange(24)), dt.datetime(9999, 12, 31))),
    }


def some_rows(rng: random.Random, units: int, most: int) -> Rows:
    """Rows of a few units in any order, some of them without a unit."""
    ids = [rng.choice((i, -i, 2**62 + i)) for i in range(units)]
    rows = [a_row(rng, unit) for unit in ids for _ in range(rng.randrange(most + 1))]
    rows += [a_row(rng, None) for _ in range(rng.randrange(3))]
    rng.shuffle(rows)
    return rows


def frame(rows: Rows) -> Any:
    return pa.table({c.name: pa.array([row[c.name] for row in rows], ARROW[c.type]) for c in COLUMNS})


def a_condition(rng: random.Random) -> Expression:
    return rng.choice(
        (
            make_call("greater", COST, make_literal(0.0)),
            make_call("is_null", WARD),
            make_call("not", make_call("equal", WARD, make_literal("A"))),
            FLAG,
            make_call("less", make_call("add", AGE, make_literal(1)), make_literal(50)),
            make_call("in", CODE, make_literal(1), make_literal(2)),
            make_call("like", WARD, make_literal("%B%")),
            make_call("equal", AGE, COST),
            Literal(True, Type.BOOLEAN),
        )
    )


def a_key(rng: random.Random) -> Expression:
    return rng.choice(
        (
            WARD,
            CODE,
            FLAG,
            DAY,
            make_call("lower", WARD),
            make_call("bin", COST, make_literal(1.0)),
            make_call("date_trunc", make_literal("day"), WHEN),
            make_call("modulo", AGE, make_literal(3)),
            make_call("coalesce", WARD, make_literal("none")),
        )
    )


def a_measure(rng: random.Random) -> Measure:
    argument = rng.choice(
        (COST, AGE, make_call("multiply", COST, AGE), make_call("add", AGE, AGE), make_call("divide", COST, AGE))
    )
    origin, first = rng.choice((0, 0, 3, -7)), rng.randrange(-40, 5)
    whole = rng.random() < 0.5
    resolution = Fraction(rng.choice((1, 1, 2, 3)) if whole else rng.choice((Fraction(1, 4), Fraction(1, 100), 1)))
    steps = Measure(
        counts=Counts.STEPS,
        argument=argument,
        origin=Fraction(origin),
        resolution=resolution,
        first=first,
        last=first + rng.randrange(60),
    )
    kind = rng.randrange(6)
    if kind == 0:
        return Measure(counts=Counts.ROWS)
    if kind == 1:
        return Measure(counts=Counts.UNITS)
    if kind == 5:
        return Measure(counts=Counts.NAMED)
    if kind == 2:
        return Measure(counts=Counts.VALUES, argument=rng.choice((argument, WARD, DAY)))
    return steps if kind == 3 else replace(steps, counts=Counts.SQUARES)


def a_domain(rng: random.Random, keys: tuple[Expression, ...]) -> tuple[tuple[Value, ...], ...]:
    """Public groups, some of which do not occur, and one of which is given twice."""
    pools: dict[Type, tuple[Value, ...]] = {
        Type.TEXT: ("A", "a", "", None, "Z"),
        Type.INTEGER: (0, 1, 2, -1, None, 77),
        Type.BOOLEAN: (True, None),
        Type.REAL: (0.0, -1.0, 2.0, None),
        Type.DATE: (dt.date(2020, 1, 1), dt.date(2020, 1, 2), None),
        Type.TIMESTAMP: (dt.datetime(2020, 1, 1), None),
    }
    chosen = [tuple(rng.choice(pools[key.type]) for key in keys) for _ in range(rng.randrange(1, 8))]
    return (*chosen, chosen[0])


@dataclass(frozen=True)
class World:
    rows: Rows
    bounded: BoundedPlan


def a_world(seed: int, *, unit: Column | None, units: int = 5, most: int = 9) -> World:
    """A table and a bounded question, both random, the same for the same seed."""
    rng = random.Random(seed)
    keys = tuple(a_key(rng) for _ in range(rng.choice((0, 1, 1, 2))))
    measures = tuple(dict.fromkeys(a_measure(rng) for _ in range(rng.randrange(1, 5))))
    limits: dict[str, Any] = {}
    if unit is not None:
        if rng.random() < 0.4:
            limits = {"max_rows": rng.randrange(1, 8)}
        else:
            limits = {"max_rows_per_group": rng.randrange(1, 4), "max_groups": rng.randrange(1, 4) if keys else None}
    bounded = BoundedPlan(
        source=add_conditions(Scan("t"), *(a_condition(rng) for _ in range(rng.choice((0, 0, 1, 2))))),
        keys=keys,
        domain=a_domain(rng, keys) if keys and rng.random() < 0.5 else None,
        unit=unit,
        measures=measures,
        weight_bits=0 if unit is None else rng.choice((0, 3, 12, 24)),
        **limits,
    )
    return World(some_rows(rng, units, most), bounded)
