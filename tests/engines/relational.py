"""Random small worlds of several tables, relations over them that keep units apart, and bounded questions about these.

Patients name the unit, and so do visits, whose ids are not always unique. Labs reach it through visits, and notes
through labs. Wards are public, some of them listed twice. In worlds of row units every row is its own unit.
"""

# ruff: noqa: S311  # worlds need seeds, not secrets
from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pyarrow as pa

from discreet.bounding.contributions import BoundedPlan, Counts, Measure, Spread
from discreet.bounding.relation_facts import Owner, RelationFacts
from discreet.bounding.stability import find_relation_facts
from discreet.errors import DiscreetError
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, Link, TableFacts
from discreet.plan.expressions import Column, Expression
from discreet.plan.functions import make_call, make_literal
from discreet.plan.reach import reach
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
from tests.engines.worlds import ARROW

Rows = list[dict[str, Value]]
Tables = dict[str, Rows]

I, R, X, B = Type.INTEGER, Type.REAL, Type.TEXT, Type.BOOLEAN
SCHEMA: Mapping[str, Mapping[str, Type]] = {
    "patients": {"pid": I, "sex": X, "born": I, "score": R},
    "visits": {"pid": I, "visit_id": I, "ward": X, "cost": R, "urgent": B},
    "labs": {"lab_id": I, "visit_id": I, "value": R, "kind": X},
    "notes": {"lab_id": I, "text": X},
    "wards": {"ward": X, "floor": I},
}
PRIVATE = ("patients", "visits", "labs", "notes")
DIRECT = ("patients", "visits")
LINKS = {"labs": Link(("visit_id",), "visits", ("visit_id",)), "notes": Link(("lab_id",), "labs", ("lab_id",))}
WARDS = ("A", "B", "", None)


@dataclass(frozen=True)
class World:
    """Tables, what is declared about them, and one bounded question; ``known`` is known of its source."""

    tables: Tables
    catalog: Catalog
    bounded: BoundedPlan
    known: RelationFacts


# Data


def a_cost(rng: random.Random) -> Value:
    return rng.choice((None, 0.0, -0.0, 0.1, 0.2, 0.3, 2.5, -3.75, 1e300, float("nan"), rng.uniform(-5, 5)))


def some_tables(rng: random.Random, units: Sequence[int], ids: int = 0, most: int = 3) -> Tables:
    """What some units have: a few rows in each table, with visit ids from ``ids`` on."""
    tables: Tables = {name: [] for name in SCHEMA if name != "wards"}
    for unit in units:
        for _ in range(rng.choice((0, 1, 1, 1, 2))):
            born = rng.choice((None, 1950, 1980, rng.randrange(1930, 2020)))
            row = {"pid": unit, "sex": rng.choice(("f", "m", None)), "born": born, "score": a_cost(rng)}
            tables["patients"].append(row)
        for _ in range(rng.randrange(most + 2)):
            tables["visits"].append(a_visit(rng, unit, ids + rng.randrange(12)))
    seen = [row["visit_id"] for row in tables["visits"]]
    for visit in seen:
        for _ in range(rng.choice((0, 0, 1, 2))):
            kind = rng.choice(("x", "y", None))
            row = {"lab_id": ids + rng.randrange(9), "visit_id": visit, "value": a_cost(rng), "kind": kind}
            tables["labs"].append(row)
    for lab in [row["lab_id"] for row in tables["labs"]]:
        if rng.random() < 0.5:
            tables["notes"].append({"lab_id": lab, "text": rng.choice(("seen", "", None))})
    return tables


def a_visit(rng: random.Random, unit: int | None, visit: int) -> dict[str, Value]:
    return {
        "pid": unit,
        "visit_id": None if rng.random() < 0.1 else visit,
        "ward": rng.choice(WARDS),
        "cost": a_cost(rng),
        "urgent": rng.choice((None, True, False)),
    }


def all_tables(rng: random.Random, units: int, most: int) -> Tables:
    """Units with their rows, rows without a unit, rows that refer to nothing, and the public table."""
    tables = some_tables(rng, [10 + i for i in range(units)], most=most)
    tables["visits"] += [a_visit(rng, None, rng.randrange(12)) for _ in range(rng.randrange(3))]
    tables["labs"] += [{"lab_id": 1, "visit_id": rng.choice((None, 99)), "value": 1.0, "kind": "x"}]
    wards = [("A", 1), ("B", 2), ("B", 3), ("", 4), (None, 5), ("C", 6)]
    tables["wards"] = [{"ward": ward, "floor": floor} for ward, floor in rng.sample(wards, rng.randrange(2, 7))]
    for rows in tables.values():
        rng.shuffle(rows)
    return tables


def frames(tables: Tables) -> dict[str, Any]:
    """The tables as Arrow frames, for engines that need types."""
    return {
        name: pa.table({c: pa.array([row[c] for row in rows], ARROW[kind]) for c, kind in SCHEMA[name].items()})
        for name, rows in tables.items()
    }


# What is declared


def a_catalog(rng: random.Random, *, row_units: bool = False) -> Catalog:
    """The declared tables with random limits. Facts are few: claims must not depend on them."""
    facts = {
        "sex": ColumnFacts(keys=("f", "m")),
        "ward": ColumnFacts(keys=("A", "B", "C"), frequency=2),
        "floor": ColumnFacts(low=Fraction(0), high=Fraction(9)),
        "cost": ColumnFacts(low=Fraction(-5), high=Fraction(5), resolution=Fraction(1, 4)),
    }
    tables = {}
    for name, columns in SCHEMA.items():
        tables[name] = TableFacts(
            name=name,
            columns={column: (kind, facts.get(column, ColumnFacts())) for column, kind in columns.items()},
            unit=Unit() if row_units else Unit("pid"),
            limits=ContributionLimits(max_rows=1) if row_units else some_limits(rng),
            public=name == "wards",
            link=None if row_units else LINKS.get(name),
        )
    return Catalog(tables=tables, neighbours=Neighbours.ADD_REMOVE, max_joined_rows=10**12, count_public=lambda *_: 20)


def some_limits(rng: random.Random) -> ContributionLimits:
    if rng.random() < 0.4:
        return ContributionLimits(max_rows=rng.randrange(1, 6))
    return ContributionLimits(max_groups=rng.randrange(1, 4), max_rows_per_group=rng.randrange(1, 4))


# Relations


@dataclass
class Maker:
    """Makes random relations; what ``stability`` refuses is made again."""

    rng: random.Random
    catalog: Catalog
    count: int = 0

    def fresh(self) -> str:
        self.count += 1
        return f"n{self.count}"

    def known(self, relation: Relation) -> RelationFacts:
        return find_relation_facts(relation, self.catalog)

    def relation(self, depth: int) -> Relation:
        """A random relation that is accepted."""
        makers: tuple[Callable[[int], Relation], ...] = (
            self.join,
            self.join,
            self.mixed,
            self.filter,
            self.derive,
            self.per_unit,
            self.window,
            self.distinct,
            self.union,
        )
        for _ in range(40):
            relation = self.table() if depth == 0 else self.rng.choice(makers)(depth)
            try:
                self.known(relation)
            except DiscreetError:
                continue
            return relation
        return self.table()

    def table(self) -> Relation:
        if self.rng.random() < 0.15:
            return self.public()
        name = self.rng.choice(PRIVATE)
        return reach(name, self.catalog, self.fresh()).relation

    def public(self) -> Relation:
        if self.rng.random() < 0.6:
            return Scan("wards", self.fresh())
        rows: tuple[tuple[Value, ...], ...] = (("A", 1), ("B", 2), (None, 3), ("B", 1))
        return Values(self.fresh(), (("ward", X), ("weight", I)), rows[: self.rng.randrange(1, 5)])

    def pick(self, columns: Sequence[Column] | Mapping[Column, Any], *kinds: Type) -> Column:
        found = [column for column in columns if not kinds or column.type in kinds]
        return self.rng.choice(sorted(found or columns, key=repr))

    def condition(self, columns: Mapping[Column, Any]) -> Expression:
        column = self.pick(columns)
        choices = {
            B: column,
            X: make_call("in", column, make_literal("A"), make_literal("f"), make_literal("x"))
            if column.type is X
            else column,
            I: make_call("less", column, make_literal(self.rng.choice((3, 12, 1980)))) if column.type is I else column,
            R: make_call("greater", column, make_literal(0.15)) if column.type is R else column,
        }
        chosen = choices[column.type]
        return self.rng.choice(
            (chosen, make_call("not", make_call("is_null", column)), make_call("or", chosen, make_call("not", chosen)))
        )

    def filter(self, depth: int) -> Relation:
        source = self.relation(depth - 1)
        return Where(source, self.condition(self.known(source).columns))

    def derive(self, depth: int) -> Relation:
        source = self.relation(depth - 1)
        seen = self.known(source)
        parts: list[Expression] = [self.pick(seen.columns) for _ in range(2)]
        number = self.pick(seen.columns, I, R)
        if number.type.is_number:
            parts.append(make_call("add", number, make_literal(1)))
        if seen.unit is not None and self.rng.random() < 0.95:
            parts.insert(self.rng.randrange(2), self.rng.choice(seen.units))
        return Projection(source, self.fresh(), tuple((f"d{i}", part) for i, part in enumerate(parts)))

    def distinct(self, depth: int) -> Relation:
        return Distinct(self.derive(depth))

    def per_unit(self, depth: int) -> Relation:
        source = self.relation(depth - 1)
        seen = self.known(source)
        keys = [] if seen.unit is None else [seen.unit]
        keys += [self.pick(seen.columns, X, I, B) for _ in range(self.rng.randrange(3))]
        features = tuple((f"f{i}", self.feature(seen)) for i in range(self.rng.randrange(4)))
        return PerUnit(source, self.fresh(), tuple((f"k{i}", key) for i, key in enumerate(keys)), features)

    def feature(self, seen: RelationFacts, *, windows: bool = False) -> FeatureCall:
        number, any_column = self.pick(seen.columns, I, R), self.pick(seen.columns)
        truth = make_call("is_null", any_column)
        choices = [
            FeatureCall(Feature.COUNT, None, I),
            FeatureCall(Feature.COUNT, any_column, I),
            FeatureCall(Feature.COUNT_DISTINCT, any_column, I),
            FeatureCall(self.rng.choice((Feature.MIN, Feature.MAX)), any_column, any_column.type),
            FeatureCall(self.rng.choice((Feature.ANY, Feature.ALL)), truth, B),
        ]
        if number.type.is_number:
            choices.append(FeatureCall(Feature.SUM, number, number.type))
            middle = Feature.MEAN if windows else Feature.MEDIAN
            choices.append(FeatureCall(self.rng.choice((Feature.MEAN, middle)), number, R))
        return self.rng.choice(choices)

    def window(self, depth: int) -> Relation:
        source = self.relation(depth - 1)
        seen = self.known(source)
        parts = [] if seen.unit is None else [seen.unit]
        parts += [self.pick(seen.columns, X, I) for _ in range(self.rng.randrange(2))]
        order = tuple((self.pick(seen.columns), self.rng.random() < 0.5) for _ in range(self.rng.randrange(3)))
        column = self.pick(seen.columns)
        places = self.rng.choice((Feature.ROW_NUMBER, Feature.RANK, Feature.DENSE_RANK))
        beside = FeatureCall(self.rng.choice((Feature.LAG, Feature.LEAD)), column, column.type, self.rng.randrange(3))
        features = (
            ("place", FeatureCall(places, None, I)),
            ("beside", beside),
            ("of", self.feature(seen, windows=True)),
        )
        return Window(source, self.fresh(), tuple(parts), order, features)

    def union(self, depth: int) -> Relation:
        branches = []
        for _ in range(self.rng.randrange(1, 4)):
            source = self.relation(depth - 1)
            seen = self.known(source)
            text, number = self.pick(seen.columns, X), self.pick(seen.columns, R)
            parts: list[tuple[str, Expression]] = [] if seen.unit is None else [("unit", seen.unit)]
            parts.append(("text", text if text.type is X else make_literal("none")))
            parts.append(("number", number if number.type is R else make_literal(0.5)))
            branches.append(Projection(source, self.fresh(), tuple(parts)))
        return Union(self.fresh(), tuple(branches))

    def join(self, depth: int) -> Relation:
        """On the unit and perhaps more, or with public rows."""
        left, right = self.relation(depth - 1), self.relation(self.rng.randrange(depth))
        if self.rng.random() < 0.4:
            right = self.public()
        ours, theirs = self.known(left), self.known(right)
        on: list[tuple[Expression, Expression]] = []
        if ours.unit is not None and theirs.unit is not None:
            on.append((self.rng.choice(ours.units), self.rng.choice(theirs.units)))
        if not on or self.rng.random() < 0.3:
            on += self.pairs(ours, theirs)[:1]
        single = not theirs.private and self.rng.random() < 0.5
        if single and self.rng.random() < 0.2:
            on = on[:-1]
        return Join(left, right, self.rng.choice(list(JoinKind)), tuple(on), single)

    def pairs(self, left: RelationFacts, right: RelationFacts) -> list[tuple[Expression, Expression]]:
        found = [(a, b) for a in sorted(left.columns, key=repr) for b in sorted(right.columns, key=repr)]
        alike: list[tuple[Expression, Expression]] = [(a, b) for a, b in found if a.type is b.type]
        self.rng.shuffle(alike)
        return alike

    def mixed(self, depth: int) -> Relation:
        """Rows of different units, after truncation."""
        left, right = self.relation(depth - 1), self.relation(depth - 1)
        ours, theirs = self.known(left), self.known(right)
        if ours.unit is None or theirs.unit is None:
            return self.join(depth)
        small = [self.rng.randrange(1, 3) for _ in range(4)]
        caps = (Caps(ours.unit, small[0], small[1]), Caps(theirs.unit, small[2], small[3]))
        pairs = [(a, b) for a, b in self.pairs(ours, theirs) if a.type in (X, B, I)]
        return Join(left, right, JoinKind.INNER, tuple(pairs[: self.rng.choice((1, 1, 2))]), caps=caps)


# Bounded questions


def some_measures(rng: random.Random, seen: RelationFacts) -> tuple[Measure, ...]:
    columns = sorted(seen.columns, key=repr)
    found = []
    for _ in range(rng.randrange(2, 6)):
        column = rng.choice(columns)
        numbers = [c for c in columns if c.type.is_number]
        first = rng.randrange(-8, 4)
        steps = Measure(
            counts=Counts.STEPS,
            argument=rng.choice(numbers) if numbers else make_literal(2),
            resolution=rng.choice((Fraction(1), Fraction(1, 4))),
            first=first,
            last=first + rng.randrange(12),
        )
        low = rng.randrange(-6, 3)
        partial = (low, low + rng.randrange(9))
        choices = [
            Measure(counts=Counts.ROWS),
            Measure(counts=Counts.VALUES, argument=column),
            Measure(counts=Counts.DISTINCT, argument=column, max_values=rng.choice((1, 1, 2, 5))),
            steps,
            replace(steps, counts=Counts.SQUARES),
            replace(steps, counts=Counts.DISTINCT_STEPS, max_values=rng.choice((1, 2, 5))),
            replace(steps, counts=Counts.DISTINCT_SQUARES, max_values=rng.choice((1, 2, 5))),
            replace(steps, first=-(2**50), last=2**50, partial=partial),
            Measure(counts=Counts.ROWS, partial=partial),
        ]
        if seen.owner is Owner.UNIT:
            choices += [
                Measure(counts=Counts.UNITS),
                Measure(counts=Counts.UNITS, argument=column),
                Measure(counts=Counts.WEIGHT, last=rng.choice((1, 100))),
            ]
        found.append(rng.choice(choices))
    return tuple(dict.fromkeys(found))


def some_spreads(rng: random.Random, seen: RelationFacts) -> tuple[Spread, ...]:
    columns = sorted(seen.columns, key=repr)
    found = []
    for column in rng.sample(columns, min(2, len(columns))):
        if column.type.is_number:
            found.append(Spread(argument=column, resolution=Fraction(1, 2), first=-6, last=9))
        elif column.type is X:
            found.append(Spread(argument=column, first=0, last=3, values=("A", "f", "", "x")))
    return tuple(found)


def some_keys(rng: random.Random, seen: RelationFacts) -> tuple[Expression, ...]:
    columns = [column for column in sorted(seen.columns, key=repr) if column.type is not R]
    return tuple(rng.choice(columns) for _ in range(rng.choice((0, 1, 1, 2))) if columns)


def a_domain(rng: random.Random, keys: Sequence[Expression]) -> tuple[tuple[Value, ...], ...]:
    pools: dict[Type, tuple[Value, ...]] = {X: ("A", "", "f", None), I: (1, 2, 10, 11, None), B: (True, False, None)}
    return tuple(dict.fromkeys(tuple(rng.choice(pools[key.type]) for key in keys) for _ in range(rng.randrange(1, 7))))


def a_bounded(rng: random.Random, source: Relation, seen: RelationFacts) -> BoundedPlan:
    """A random question about a relation, within limits as ``bound`` would set them."""
    keys = some_keys(rng, seen)
    public = keys and (rng.random() < 0.4 or seen.owner is Owner.MIXED)
    limits: dict[str, Any] = {}
    if seen.unit is not None:
        chosen = some_limits(rng)
        limits = {"max_rows": chosen.max_rows, "max_rows_per_group": chosen.max_rows_per_group}
        limits["max_groups"] = chosen.max_groups if keys else None
        limits["weight_bits"] = rng.choice((0, 3, 12, 24))
    return BoundedPlan(
        source=source,
        keys=keys,
        domain=a_domain(rng, keys) if public else None,
        unit=seen.unit,
        measures=some_measures(rng, seen),
        spreads=some_spreads(rng, seen),
        spread_rows=seen.spread_rows or 1,
        **limits,
    )


def a_world(seed: int, *, row_units: bool = False, units: int = 4, most: int = 3) -> World:
    """Tables, a relation over them and a question about it, the same for the same seed."""
    rng = random.Random(seed)
    catalog = a_catalog(rng, row_units=row_units)
    maker = Maker(rng, catalog)
    while True:
        source = maker.relation(rng.randrange(1, 4))
        seen = find_relation_facts(source, catalog)
        if seen.private and seen.owner is not Owner.LOST:
            return World(all_tables(rng, units, most), catalog, a_bounded(rng, source, seen), seen)
