"""Questions at random over every node of a plan, every function, every type and every limit, by their seeds.

Four tables of all types hold the values that break things (``nasty``): people and events name the unit, details reach
it by a foreign key that several rows share, and kinds are public, with keys that stand twice. Relations are made as in
``relational``, with expressions of functions of functions everywhere. Two functions are left out, because the
mathematical library of a platform decides about their last bit; and so is the character NUL (``plan.gaps``).
"""

# ruff: noqa: S311  # questions need seeds, not secrets
from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import pyarrow as pa

from discreet.bounding.contributions import BoundedPlan, Counts, Measure, Spread
from discreet.bounding.relation_facts import Owner, RelationFacts
from discreet.bounding.stability import find_relation_facts
from discreet.plan.catalog import Catalog, ColumnFacts, Link, TableFacts
from discreet.plan.expressions import Column, Expression, Literal
from discreet.plan.functions import FUNCTIONS, make_call
from discreet.plan.reach import reach
from discreet.plan.relations import (
    Capped,
    Feature,
    Projection,
    Relation,
    RowFrame,
    Scan,
    Values,
    Where,
    Window,
)
from discreet.plan.types import Type, Value
from discreet.privacy import Neighbours, Unit
from tests.engines.nasty import CONSTANTS, VALUES, signatures
from tests.engines.relational import Maker, some_limits, some_measures
from tests.engines.worlds import ARROW

# The mathematical library of the platform may round these differently in the last place.
INEXACT = {"exp", "power"}
NAMES = tuple(sorted(FUNCTIONS.keys() - INEXACT))
EVERY: Mapping[str, Type] = {str(kind): kind for kind in Type}
SCHEMA: Mapping[str, Mapping[str, Type]] = {
    "people": {"pid": Type.INTEGER, **EVERY},
    "events": {"pid": Type.INTEGER, "event": Type.INTEGER, **EVERY},
    "details": {"event": Type.INTEGER, "real": Type.REAL, "text": Type.TEXT, "date": Type.DATE},
    "kinds": {"text": Type.TEXT, "integer": Type.INTEGER, "timestamp": Type.TIMESTAMP},
}
PRIVATE = ("people", "events", "details")
Rows = list[dict[str, Value]]


def has_nul(value: Value) -> bool:
    return isinstance(value, str) and "\0" in value


def cut_text(value: Value) -> Value:
    """A value as an analyst may write it: texts in a question have a limit."""
    return value[:1000] if isinstance(value, str) else value


def some_value(rng: random.Random, kind: Type) -> Value:
    """A value that breaks things, or one of a few that meet each other."""
    tame: dict[Type, tuple[Value, ...]] = {
        Type.INTEGER: (1, 2, 3),
        Type.REAL: (0.5, 1.0, 2.5),
        Type.TEXT: ("a", "b", "A"),
    }
    pool = tame[kind] if kind in tame and rng.random() < 0.5 else VALUES[kind]
    return rng.choice([value for value in pool if not has_nul(value)])


@dataclass(frozen=True, eq=False)
class Data:
    """Tables, and what is declared about them."""

    tables: Mapping[str, Any]
    catalog: Catalog


@cache
def some_data(seed: int, *, row_units: bool) -> Data:
    """Rows of a few units, of nobody, and of units whose events have the same numbers."""
    rng = random.Random(seed)
    rows: dict[str, Rows] = {name: [] for name in SCHEMA}
    for unit in (None, 10, 11, -(2**62), 12):
        for table, most in (("people", 3), ("events", 6)):
            for _ in range(rng.randrange(most)):
                own: dict[str, Value] = {"pid": unit, "event": rng.choice((None, 1, 2, 3, 4, 5))}
                rows[table].append({c: own.get(c, some_value(rng, kind)) for c, kind in SCHEMA[table].items()})
    for table, event in (("details", (None, 1, 2, 3, 4, 5, 99)), ("kinds", (None,))):
        for _ in range(8):
            own = {"event": rng.choice(event)}
            rows[table].append({c: own.get(c, some_value(rng, kind)) for c, kind in SCHEMA[table].items()})
    tables = {
        name: pa.table({c: pa.array([row[c] for row in rows[name]], ARROW[kind]) for c, kind in SCHEMA[name].items()})
        for name in SCHEMA
    }
    facts = {
        name: TableFacts(
            name=name,
            columns={column: (kind, ColumnFacts()) for column, kind in columns.items()},
            unit=Unit() if row_units else Unit("pid"),
            limits=some_limits(rng) if not row_units else replace(some_limits(rng), max_rows=1, max_groups=None,
                                                                  max_rows_per_group=None),
            public=name == "kinds",
            link=Link(("event",), "events", ("event",)) if name == "details" and not row_units else None,
        )
        for name, columns in SCHEMA.items()
    }  # fmt: skip
    catalog = Catalog(
        tables=facts, neighbours=Neighbours.ADD_REMOVE, max_joined_rows=10**12, count_public=lambda *_: 20
    )
    return Data(tables, catalog)


class WideMaker(Maker):
    """Makes relations over all types, with any function, frames, and rows that are capped by lot."""

    def table(self) -> Relation:
        if self.rng.random() < 0.15:
            return self.public()
        return reach(self.rng.choice(PRIVATE), self.catalog, self.fresh()).relation

    def public(self) -> Relation:
        if self.rng.random() < 0.6:
            return Scan("kinds", self.fresh())
        kinds = [self.rng.choice(list(Type)) for _ in range(2)]
        rows = tuple(
            tuple(cut_text(some_value(self.rng, kind)) for kind in kinds) for _ in range(self.rng.randrange(1, 4))
        )
        return Values(self.fresh(), (("v0", kinds[0]), ("v1", kinds[1])), rows)

    def tree(self, columns: Sequence[Column], kind: Type, depth: int) -> Expression:
        """An expression of a type over columns and constants."""
        own = [column for column in columns if column.type is kind]
        if depth == 0 or self.rng.random() < 0.2:
            if own and self.rng.random() < 0.8:
                return self.rng.choice(own)
            return Literal(cut_text(some_value(self.rng, kind)), kind)
        name, kinds = self.rng.choice(find_calls(kind))
        function, arguments = FUNCTIONS[name], list[Expression]()
        for position, wanted in enumerate(kinds):
            if position not in function.constants:
                arguments.append(self.tree(columns, wanted, depth - 1))
            elif function.words:
                arguments.append(Literal(self.rng.choice(function.words), Type.TEXT))
            else:
                pool = [value for value in CONSTANTS[wanted] if not has_nul(value)]
                arguments.append(Literal(self.rng.choice(pool), wanted))
        return make_call(name, *arguments)

    def some_tree(self, columns: Mapping[Column, Any]) -> Expression:
        return self.tree(sorted(columns, key=repr), self.rng.choice(list(Type)), self.rng.choice((1, 1, 2)))

    def condition(self, columns: Mapping[Column, Any]) -> Expression:
        truth = self.tree(sorted(columns, key=repr), Type.BOOLEAN, 2)
        return self.rng.choice((truth, make_call("not", make_call("is_null", truth)), make_call("is_null", truth)))

    def filter(self, depth: int) -> Relation:
        source = self.relation(depth - 1)
        if self.rng.random() < 0.3:
            return self.capped(source)
        return Where(source, self.condition(self.known(source).columns))

    def capped(self, source: Relation) -> Relation:
        """A few rows of each unit, or of each unit and value, by lot."""
        seen = self.known(source)
        if seen.unit is None:
            return source
        more = [self.pick(seen.columns)] if self.rng.random() < 0.5 else []
        return Capped(source, (seen.unit, *more), self.rng.randrange(1, 4))

    def derive(self, depth: int) -> Relation:
        source = self.relation(depth - 1)
        seen = self.known(source)
        parts: list[Expression] = [self.pick(seen.columns), *(self.some_tree(seen.columns) for _ in range(3))]
        if seen.unit is not None:
            parts.insert(self.rng.randrange(3), self.rng.choice(seen.units))
        return Projection(source, self.fresh(), tuple((f"d{i}", part) for i, part in enumerate(parts)))

    def window(self, depth: int) -> Relation:
        """Some of the features read a frame of rows; distinct values cannot everywhere (``plan.gaps``)."""
        made = super().window(depth)
        if not isinstance(made, Window) or not made.order:
            return made
        first = self.rng.choice((None, -2, 0, 1))
        frame = RowFrame(first, self.rng.choice((None, *(end for end in (0, 1, 2) if first is None or end >= first))))
        framed = (Feature.COUNT, Feature.SUM, Feature.MEAN, Feature.MIN, Feature.MAX, Feature.ANY, Feature.ALL)
        features = tuple(
            (n, replace(call, frame=frame) if call.feature in framed else call) for n, call in made.features
        )
        return replace(made, features=features)


@cache
def find_calls(kind: Type) -> tuple[tuple[str, tuple[Type, ...]], ...]:
    """The functions that yield a type, each with the types of its arguments."""
    return tuple((name, kinds) for name in NAMES for kinds in signatures(name) if FUNCTIONS[name].yields(kinds) is kind)


def some_questions(rng: random.Random, maker: WideMaker, source: Relation, seen: RelationFacts) -> BoundedPlan:
    """A bounded question about a relation, by columns and by what is computed of them."""
    columns = sorted(seen.columns, key=repr)
    keys = tuple(
        rng.choice(columns) if rng.random() < 0.6 else maker.some_tree(seen.columns)
        for _ in range(rng.choice((0, 1, 1, 2)))
    )
    measures = some_measures(rng, seen)
    argument = maker.tree(columns, rng.choice((Type.INTEGER, Type.REAL)), 2)
    whole = argument.type is Type.INTEGER and rng.random() < 0.5
    resolution = Fraction(rng.choice((1, 3))) if whole else Fraction(1, rng.choice((1, 4, 100)))
    steps = Measure(
        counts=rng.choice((Counts.STEPS, Counts.SQUARES)), argument=argument, resolution=resolution,
        origin=Fraction(rng.choice((0, -7, 3))), first=-20, last=rng.randrange(-20, 40),
    )  # fmt: skip
    more = [steps, Measure(counts=Counts.VALUES, argument=maker.some_tree(seen.columns))]
    if seen.owner is Owner.UNIT:
        more.append(Measure(counts=Counts.NAMED))
    spreads = [Spread(argument=argument, resolution=resolution, first=-6, last=9)]
    text = maker.tree(columns, Type.TEXT, 1)
    spreads.append(Spread(argument=text, first=0, last=2, values=("a", "", "B")))
    public = keys and (rng.random() < 0.4 or seen.owner is Owner.MIXED)
    limits: dict[str, Any] = {}
    if seen.unit is not None:
        chosen = some_limits(rng)
        limits = {"max_rows": chosen.max_rows, "max_rows_per_group": chosen.max_rows_per_group}
        limits["max_groups"] = chosen.max_groups if keys else None
        limits["weight_bits"] = rng.choice((0, 3, 12, 24))
    domain = tuple(tuple(some_value(rng, key.type) for key in keys) for _ in range(rng.randrange(1, 9)))
    return BoundedPlan(
        source=source,
        keys=keys,
        domain=tuple(dict.fromkeys(domain)) if public else None,
        unit=seen.unit,
        measures=tuple(dict.fromkeys((*measures, *rng.sample(more, rng.randrange(1, len(more) + 1))))),
        spreads=tuple(rng.sample(spreads, rng.randrange(3))),
        spread_rows=seen.spread_rows or 1,
        **limits,
    )


@dataclass(frozen=True, eq=False)
class GeneratedQuestion:
    """Data and a bounded question about it."""

    data: Data
    bounded: BoundedPlan


def a_question(seed: int) -> GeneratedQuestion:
    """The question of a seed. Every eighth one protects rows; eighty questions share their tables."""
    rng = random.Random(seed)
    data = some_data(seed // 80 if seed % 8 != 3 else 1000 + seed // 80, row_units=seed % 8 == 3)
    maker = WideMaker(rng, data.catalog)
    while True:
        source = maker.relation(rng.randrange(4))
        seen = find_relation_facts(source, data.catalog)
        if seen.private and seen.owner is not Owner.LOST:
            return GeneratedQuestion(data, some_questions(rng, maker, source, seen))
