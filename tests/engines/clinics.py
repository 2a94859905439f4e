"""A small world of three tables with values that break things, and random relations over them.

A relation is compared row by row: a question that groups by all of its columns and counts gives them with their number.
Many of these relations would not be allowed to an analyst. An engine must know what they mean all the same.
"""

# ruff: noqa: DTZ001  # times have no zone here
from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.engines.sql.relations import columns_of
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.evaluate import settle
from discreet.plan.expressions import Expression
from discreet.plan.functions import find_common_type, make_call, make_literal
from discreet.plan.relations import (
    Caps,
    Distinct,
    Feature,
    FeatureCall,
    Join,
    JoinKind,
    PerUnit,
    Projection,
    Relation,
    Scan,
    Union,
    Values,
    Where,
    Window,
)
from discreet.plan.types import Type, Value
from discreet.privacy import Neighbours, Unit
from tests.engines.worlds import ARROW, SALT

Rows = list[dict[str, Value]]

B, N, R, X, D, T = Type.BOOLEAN, Type.INTEGER, Type.REAL, Type.TEXT, Type.DATE, Type.TIMESTAMP
TABLES: dict[str, dict[str, Type]] = {
    "visits": {"unit": N, "ward": X, "cost": R, "age": N, "day": D, "when": T, "flag": B},
    "people": {"who": N, "Home": X, "height": R, "born": D},
    "codes": {"code": N, "label": X, "weight": R},
}
POOLS: dict[Type, tuple[Value, ...]] = {
    B: (None, True, False),
    N: (None, 0, 1, 1, 2, 2, 3, -1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)),
    R: (None, 0.0, -0.0, 1.0, 1.0, 2.0, 0.1, 0.2, 0.3, -2.5, 2.0**53, 1e300, 1.7e308, -1.7e308, 5e-324,
        float("nan"), float("inf")),
    X: (None, "", "a", "A", "a ", "it's", '"; DROP', "straße", "\U0010ffff", "b\0c"),
    D: (None, dt.date(2020, 1, 1), dt.date(2020, 1, 2), dt.date(1, 1, 1), dt.date(9999, 12, 31)),
    T: (None, dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 2, 3, 4, 5, 6), dt.datetime(9999, 12, 31, 23, 59, 59)),
}  # fmt: skip


def table_facts(name: str, kinds: dict[str, Type], **more: Any) -> TableFacts:
    columns = {column: (kind, ColumnFacts()) for column, kind in kinds.items()}
    return TableFacts(name=name, columns=columns, unit=Unit("unit"), limits=ContributionLimits(max_rows=3), **more)


CATALOG = Catalog(
    tables={
        "visits": table_facts("visits", TABLES["visits"]),
        "people": table_facts("people", TABLES["people"], owner="who"),
        "codes": table_facts("codes", TABLES["codes"], public=True),
    },
    neighbours=Neighbours.ADD_REMOVE,
    count_public=lambda *_: 3,
)


def some_tables(rng: random.Random, most: int = 12) -> dict[str, Rows]:
    """Few rows from small pools, so that much is equal, tied or NULL; sometimes none."""
    found = {}
    for name, kinds in TABLES.items():
        size = 0 if rng.random() < 0.08 else rng.randrange(1, most + 1)
        found[name] = [{c: rng.choice(POOLS[kind]) for c, kind in kinds.items()} for _ in range(size)]
    return found


def frames(tables: dict[str, Rows]) -> dict[str, Any]:
    return {
        name: pa.table({c: pa.array([row[c] for row in rows], ARROW[kind]) for c, kind in TABLES[name].items()})
        for name, rows in tables.items()
    }


def everything(relation: Relation, **more: Any) -> BoundedPlan:
    """A question whose groups are the different rows of a relation, each with how often it occurs."""
    columns = columns_of(relation, CATALOG)
    plain: dict[str, Any] = {"source": relation, "keys": columns, "domain": None, "unit": None}
    return BoundedPlan(measures=(Measure(counts=Counts.ROWS),), **{**plain, **more})


@dataclass
class Maker:
    """Makes random relations. Names are never given twice."""

    rng: random.Random
    capped: bool = False
    names: int = field(default=0)

    def relation(self, depth: int) -> Relation:
        if depth <= 0:
            return self.leaf()
        makers = (self.filter, self.derive, self.join, self.join, self.per_unit, self.window, self.distinct, self.union)
        return self.rng.choice(makers)(depth - 1)

    def name(self) -> str:
        self.names += 1
        return self.rng.choice((f"n{self.names}", f'odd "{self.names}" \'; --', f"select {self.names}"))

    def leaf(self) -> Relation:
        if self.rng.random() < 0.2:
            kinds = [self.rng.choice(list(Type)) for _ in range(self.rng.randrange(1, 4))]
            rows = tuple(
                tuple(self.rng.choice(POOLS[kind]) for kind in kinds) for _ in range(self.rng.choice((0, 1, 3, 6)))
            )
            return Values(self.name(), tuple((f"v {i}", kind) for i, kind in enumerate(kinds)), rows)
        return Scan(self.rng.choice(list(TABLES)), self.name())

    # Expressions

    def column(self, relation: Relation, kinds: Sequence[Type] = tuple(Type)) -> Expression:
        """A column of one of some types, or a constant where there is none."""
        fitting = [c for c in columns_of(relation, CATALOG) if c.type in kinds]
        if fitting:
            return self.rng.choice(fitting)
        kind = self.rng.choice(kinds)
        return make_literal(settle(self.rng.choice(POOLS[kind]), kind), null_of=kind)

    def value(self, relation: Relation, kinds: Sequence[Type] = tuple(Type)) -> Expression:
        """A column, or something simple made of it, of the same type."""
        column = self.column(relation, kinds)
        if self.rng.random() < 0.6:
            return column
        match column.type:
            case Type.INTEGER:
                return make_call("add", column, make_literal(1))
            case Type.REAL:
                return make_call("multiply", column, make_literal(2.0))
            case Type.TEXT:
                return make_call("concat", column, make_literal("it's"))
            case Type.BOOLEAN:
                return make_call("not", column)
            case _:
                return make_call("coalesce", column, column)

    def condition(self, relation: Relation) -> Expression:
        column = self.column(relation)
        other = self.column(relation, [k for k in Type if find_common_type((k, column.type))])
        return self.rng.choice(
            (
                make_call("is_null", column),
                make_call("equal", column, other),
                make_call("not", make_call("equal", column, other)),
                make_call("or", make_call("is_null", column), make_call("less", column, other)),
            )
        )

    # Nodes

    def filter(self, depth: int) -> Relation:
        source = self.relation(depth)
        return Where(source, self.condition(source))

    def derive(self, depth: int) -> Projection:
        source = self.relation(depth)
        columns = [(f"d {i}", self.value(source)) for i in range(self.rng.randrange(1, 5))]
        return Projection(source, self.name(), tuple(columns))

    def distinct(self, depth: int) -> Relation:
        return Distinct(self.relation(depth))

    def union(self, depth: int) -> Relation:
        first = self.derive(depth)
        kinds = [expression.type for _, expression in first.columns]
        others = []
        for _ in range(self.rng.randrange(2)):
            source = self.relation(depth)
            columns = tuple((f"u {i}", self.value(source, [kind])) for i, kind in enumerate(kinds))
            others.append(Projection(source, self.name(), columns))
        again = replace(first, name=self.name())
        return Union(self.name(), (first, *others, again))

    def join(self, depth: int) -> Relation:
        left, right = self.relation(self.rng.randrange(depth + 1)), self.relation(depth)
        on = []
        for _ in range(self.rng.choice((0, 1, 1, 1, 2))):
            ours = self.value(left)
            theirs = self.value(right, [k for k in Type if find_common_type((k, ours.type))])
            on.append((ours, theirs))
        caps = None
        if self.capped:
            caps = (self.caps(left), self.caps(right))
        kind = self.rng.choice(list(JoinKind))
        return Join(left, right, kind, tuple(on), single=self.rng.random() < 0.3, caps=caps)

    def caps(self, side: Relation) -> Caps:
        return Caps(self.column(side), self.rng.randrange(1, 4), self.rng.randrange(1, 4))

    def compute(self, source: Relation, feature: Feature) -> FeatureCall:
        match feature:
            case Feature.ROW_NUMBER | Feature.RANK | Feature.DENSE_RANK:
                return FeatureCall(feature, None, Type.INTEGER)
            case Feature.COUNT if self.rng.random() < 0.5:
                return FeatureCall(feature, None, Type.INTEGER)
            case Feature.COUNT | Feature.COUNT_DISTINCT:
                return FeatureCall(feature, self.value(source), Type.INTEGER)
            case Feature.ANY | Feature.ALL:
                return FeatureCall(feature, self.value(source, [Type.BOOLEAN]), Type.BOOLEAN)
            case Feature.SUM:
                argument = self.value(source, [Type.REAL, Type.INTEGER])
                return FeatureCall(feature, argument, argument.type)
            case Feature.MEAN | Feature.MEDIAN:
                return FeatureCall(feature, self.value(source, [Type.REAL, Type.INTEGER]), Type.REAL)
            case _:
                argument = self.value(source)
                return FeatureCall(feature, argument, argument.type, self.rng.choice((1, 1, 2, 0, 10**18)))

    def per_unit(self, depth: int) -> Relation:
        source = self.relation(depth)
        keys = tuple((f"k {i}", self.value(source)) for i in range(self.rng.choice((0, 1, 1, 2))))
        plain = [feature for feature in Feature if feature not in POSITIONS]
        wanted = [self.rng.choice(plain) for _ in range(self.rng.randrange(5) if keys else 2)]
        return PerUnit(
            source, self.name(), keys, tuple((f"f {i}", self.compute(source, f)) for i, f in enumerate(wanted))
        )

    def window(self, depth: int) -> Relation:
        source = self.relation(depth)
        parts = tuple(self.value(source) for _ in range(self.rng.choice((0, 1, 1, 2))))
        order = tuple((self.value(source), self.rng.random() < 0.5) for _ in range(self.rng.choice((0, 1, 1, 2))))
        there = [feature for feature in Feature if feature is not Feature.MEDIAN]
        wanted = [self.rng.choice(there) for _ in range(self.rng.randrange(1, 5))]
        computed = tuple((f"w {i}", self.compute(source, feature)) for i, feature in enumerate(wanted))
        return Window(source, self.name(), parts, order, computed)


POSITIONS = (Feature.ROW_NUMBER, Feature.RANK, Feature.DENSE_RANK, Feature.LAG, Feature.LEAD)


__all__ = [
    "CATALOG",
    "SALT",
    "TABLES",
    "Maker",
    "columns_of",
    "everything",
    "frames",
    "some_tables",
]
