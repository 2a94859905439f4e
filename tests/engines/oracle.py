"""The brute-force oracle: neighbours of small worlds, what moves between them, and which claims that breaks.

Three claims are checked. *Local*: what other units have in a relation stays as it is, row by row. *Moves*: measures and
spreads change by no more than ``contributions`` says. *Mixed*: where rows of units were joined after truncation, no
more rows change than ``stability`` says.
"""

# worlds need seeds, not secrets
from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.bounding.contributions import BoundedPlan, Reach, Sensitivity, sensitivity
from discreet.bounding.contributions import reach as reach_of
from discreet.bounding.relation_facts import Owner
from discreet.engines.engine import Groups
from discreet.engines.memory.relations import RelationReader
from discreet.plan.catalog import Catalog
from discreet.plan.evaluate import evaluate
from discreet.plan.expressions import Expression
from discreet.plan.relations import (
    Relation,
)
from discreet.plan.types import Value
from discreet.privacy import Neighbours
from tests.engines.conformance.engines import MEMORY, EngineUnderTest
from tests.engines.relational import (
    DIRECT,
    LINKS,
    Rows,
    Tables,
    World,
    a_visit,
    frames,
    some_tables,
)
from tests.engines.worlds import SALT

Key = tuple[Value, ...]
ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE

# Neighbours


def units_of(tables: Tables, table: str, row: dict[str, Value]) -> set[Value]:
    """The units that a row belongs to, by the definition: what it names, or what the rows it refers to belong to."""
    if table in DIRECT:
        return {row["pid"]} - {None}
    link = LINKS[table]
    values = [(row[column], key) for column, key in link.pairs]
    whole = all(value is not None for value, _ in values)
    parents = [parent for parent in tables[link.parent] if whole and all(parent[key] == v for v, key in values)]
    return {unit for parent in parents for unit in units_of(tables, link.parent, parent)}


def without(tables: Tables, unit: Value) -> Tables:
    """The tables without one unit: its rows, and rows that reached it and now reach nobody."""
    rest = {name: [row for row in rows if row.get("pid") != unit] for name, rows in tables.items()}
    for name in LINKS:  # parents come first
        rest[name] = [
            row for row in tables[name] if units_of(rest, name, row) or not units_of(tables, name, row)
        ]  # fmt: skip
    return rest


def with_another(tables: Tables, unit: int, rng: random.Random) -> Tables:
    """The tables with the rows of one more unit, some of whose visits share an id with somebody else's."""
    more = some_tables(rng, [unit], ids=50, most=6)
    more["visits"] += [a_visit(rng, unit, rng.randrange(12)) for _ in range(rng.randrange(2))]
    joined = {name: [*rows, *more.get(name, [])] for name, rows in tables.items()}
    for rows in joined.values():
        rng.shuffle(rows)
    return joined


@dataclass(frozen=True)
class Pair:
    """Two neighbouring datasets, and the units that differ (None: a row)."""

    relation: Neighbours
    before: Tables
    after: Tables
    differ: frozenset[Value]


def neighbours(world: World, rng: random.Random) -> Iterator[Pair]:
    tables = world.tables
    if world.known.owner is Owner.ROW:
        yield from row_neighbours(tables, rng)
        return
    for unit in sorted({row["pid"] for name in DIRECT for row in tables[name] if isinstance(row["pid"], int)}):
        assert isinstance(unit, int)
        rest = without(tables, unit)
        yield Pair(ADD, tables, rest, frozenset({unit}))
        other = rng.choice((unit, 77))
        yield Pair(REPLACE, tables, with_another(rest, other, rng), frozenset({unit, other}))


def row_neighbours(tables: Tables, rng: random.Random) -> Iterator[Pair]:
    other = some_tables(rng, [1, 2, 3])
    for name in ("patients", "visits", "labs"):
        for i in range(0, len(tables[name]), 3):
            rest: Rows = tables[name][:i] + tables[name][i + 1 :]
            yield Pair(ADD, tables, {**tables, name: rest}, frozenset())
            for new in other[name][:1]:
                yield Pair(REPLACE, tables, {**tables, name: [*rest, new]}, frozenset())


# What moved


def rows_of(tables: Tables, catalog: Catalog, source: Relation) -> list[dict[Any, Value]]:
    return RelationReader(tables, catalog, SALT).read(source).rows


def counted(rows: list[dict[Any, Value]]) -> Counter[Hashable]:
    return Counter(frozenset(row.items()) for row in rows)


def changed(before: Counter[Any], after: Counter[Any]) -> tuple[int, int]:
    """How many came and how many went."""
    return (after - before).total(), (before - after).total()


def is_local(pair: Pair, catalog: Catalog, source: Relation, unit: Expression) -> bool:
    """Whether every other unit has the same rows in a relation before and after."""
    sides = []
    for tables in (pair.before, pair.after):
        found: dict[Value, list[dict[Any, Value]]] = {}
        for row in rows_of(tables, catalog, source):
            owner = evaluate(unit, row)
            if owner is not None and owner not in pair.differ:
                found.setdefault(owner, []).append(row)
        sides.append({owner: counted(rows) for owner, rows in found.items()})
    return sides[0] == sides[1]


def moved(before: Groups, after: Groups, position: int) -> Sensitivity:
    """How far one measure's vector moved, in every norm."""
    old, new = (dict(zip(groups.keys, groups.values[position])) for groups in (before, after))
    sizes = [abs(new.get(key, 0) - old.get(key, 0)) for key in old.keys() | new.keys()]
    sizes = [size for size in sizes if size]
    return Sensitivity(len(sizes), sum(sizes), sum(size * size for size in sizes), max(sizes, default=0))


def exceeds(found: Sensitivity, claim: Sensitivity) -> bool:
    return any(getattr(found, name) > getattr(claim, name) for name in ("l0", "l1", "l2_squared", "linf"))


def histograms(groups: Groups, position: int) -> dict[Key, Counter[int]]:
    found = {}
    for key, (cells, counts) in zip(groups.keys, groups.spreads[position]):
        assert list(cells) == sorted(set(cells.tolist())) and all(counts > 0)
        found[key] = Counter(dict(zip(cells.tolist(), counts.tolist())))
    return found


def overreaches(before: Groups, after: Groups, position: int, claim: Reach, relation: Neighbours) -> bool:
    """Whether more changed in a spread than the claim covers.

    A replaced unit takes rows away and another brings some, so twice as many come or go; in one place, no more come
    than are claimed, and no more go.
    """
    old, new = histograms(before, position), histograms(after, position)
    empty: Counter[int] = Counter()
    both = [changed(old.get(key, empty), new.get(key, empty)) for key in old.keys() | new.keys()]
    if claim.in_place and any(max(pair) > claim.rows for pair in both):
        return True
    shares = [Fraction(sum(pair), claim.rows * (1 if relation is ADD else 2)) for pair in both]
    return max(shares, default=Fraction(0)) > 1 or sum(shares) > claim.groups


def run(engine: EngineUnderTest, tables: Tables, catalog: Catalog, bounded: BoundedPlan) -> Groups:
    return engine.run(frames(tables) if engine.slow else tables, catalog, bounded)


@dataclass(frozen=True)
class Claims:
    """What is claimed; tests that must fail claim less."""

    sensitivity: Callable[[Sensitivity], Sensitivity] = lambda claim: claim
    reach: Callable[[Reach], Reach] = lambda claim: claim
    mixed: Callable[[int], int] = lambda rows: rows


def claimable(bounded: BoundedPlan) -> bool:
    return bounded.unit is None or not bounded.keys or bool(bounded.max_groups or bounded.max_rows or bounded.domain)


def check(
    world: World, rng: random.Random, engine: EngineUnderTest = MEMORY, claims: Claims | None = None
) -> list[str]:
    """The claims that were broken, in words."""
    claims = claims or Claims()
    before = run(engine, world.tables, world.catalog, world.bounded)
    broken = []
    for pair in neighbours(world, rng):
        after = run(engine, pair.after, world.catalog, world.bounded)
        broken += _moves(world.bounded, pair.relation, before, after, claims)
        broken += _rows(world, pair, claims)
    return broken


def _moves(bounded: BoundedPlan, relation: Neighbours, before: Groups, after: Groups, claims: Claims) -> list[str]:
    broken = []
    for i, measure in enumerate(bounded.measures):
        claim = claims.sensitivity(sensitivity(bounded, measure, relation))
        if exceeds(moved(before, after, i), claim):
            broken.append(f"{relation}: {measure} moved {moved(before, after, i)} beyond {claim}")
    for i, spread in enumerate(bounded.spreads):
        reached = claims.reach(reach_of(bounded, relation))
        if overreaches(before, after, i, reached, relation):
            broken.append(f"{relation}: {spread} beyond {reached}")
    return broken


def _rows(world: World, pair: Pair, claims: Claims) -> list[str]:
    """Claims about the rows of the source itself."""
    source = world.bounded.source
    if world.known.unit is not None:
        local = is_local(pair, world.catalog, source, world.known.unit)
        return [] if local else [f"{pair.relation}: other units have other rows"]
    old, new = (counted(rows_of(tables, world.catalog, source)) for tables in (pair.before, pair.after))
    allowed = claims.mixed(world.known.spread_rows or 1) * (1 if pair.relation is ADD else 2)
    held = max(changed(old, new)) <= (allowed + 1) // 2  # so many come, and so many go
    return [] if held else [f"{pair.relation}: {changed(old, new)} of {allowed} rows"]
