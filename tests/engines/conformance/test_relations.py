"""Relations hold the rows that the oracle says on every engine, whatever the data and its order."""

# ruff: noqa: S311  # worlds need seeds, not secrets
from __future__ import annotations

import itertools
import math
import random
import sys
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.errors import InternalError, UsageError
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.expressions import Column, Expression, Literal
from discreet.plan.functions import make_call, make_literal
from discreet.plan.reach import reach
from discreet.plan.real_steps import MARGIN
from discreet.plan.relations import (
    Capped,
    Caps,
    Distinct,
    Feature,
    FeatureCall,
    Join,
    JoinKind,
    PerUnit,
    Projection,
    Relation,
    RowFrame,
    Scan,
    Union,
    Values,
    Where,
    Window,
    inputs_of,
)
from discreet.plan.types import Type, Value
from discreet.privacy import Neighbours, Unit
from tests.engines import nasty, relational
from tests.engines.answers import Key, Sums, as_dict
from tests.engines.clinics import CATALOG, Maker, columns_of, everything, frames, some_tables
from tests.engines.conformance.engines import MEMORY, EngineUnderTest
from tests.engines.worlds import ARROW, SALT

N, R, X = Type.INTEGER, Type.REAL, Type.TEXT


def in_memory(tables: Any, bounded: BoundedPlan, catalog: Catalog = CATALOG) -> Sums:
    return as_dict(MEMORY.run(tables, catalog, bounded))


def agree(engine: EngineUnderTest, tables: Any, bounded: BoundedPlan, catalog: Catalog = CATALOG) -> Sums:
    """The answer of an engine, which is that of the oracle in the engine's own secret order."""
    found = as_dict(engine.run(tables, catalog, bounded))
    assert found == as_dict(engine.run_oracle(tables, catalog, bounded))
    return found


# Random relations


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("seed", range(8))
def test_random_relations_hold_the_same_rows(seed: int, depth: int, stored: EngineUnderTest) -> None:
    """Row by row, for every node over every other, with NULLs, duplicates, ties, odd names and empty tables."""
    rng = random.Random(1000 * depth + seed)
    tables = some_tables(rng)
    bounded = everything(Maker(rng).relation(depth))
    agree(stored, frames(tables), bounded)


@pytest.mark.parametrize("capped", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_columns_that_nobody_reads_still_matter(seed: int, capped: bool, stored: EngineUnderTest) -> None:
    """What is left out above was there below: for DISTINCT, for ties, and for the secret order of a truncation."""
    rng = random.Random(500 + seed)
    tables = some_tables(rng, most=20)
    for some in tables.values():
        some.extend(some[: len(some) // 2])
    maker = Maker(rng, capped=capped)
    relation = maker.join(0) if capped else Distinct(maker.leaf()) if seed % 2 else maker.window(0)
    columns = columns_of(relation, CATALOG)
    kept = tuple(rng.sample(columns, rng.randrange(min(3, len(columns)))))
    bounded = everything(relation, keys=kept)
    agree(stored, frames(tables), bounded)


FRAMES = (RowFrame(-2, 0), RowFrame(None, -1), RowFrame(1, None), RowFrame(-1, 1), RowFrame(None, None), RowFrame(0, 0))


@pytest.mark.parametrize("seed", range(6))
def test_random_frames_hold_the_same_rows(seed: int, stored: EngineUnderTest) -> None:
    """Rows around a row, where many rows are equal in what they are ordered by: the same rows on every engine."""
    rng = random.Random(9000 + seed)
    tables = some_tables(rng, most=20)
    relation = Maker(rng).window(1)
    assert isinstance(relation, Window)
    columns = columns_of(relation.source, CATALOG)
    numbers = [column for column in columns if column.type.is_number] or list(columns)
    calls = [FeatureCall(Feature.COUNT, None, N, frame=FRAMES[0])]
    for i, frame in enumerate(FRAMES):
        column = rng.choice(numbers)
        feature = (Feature.SUM, Feature.MEAN, Feature.MIN, Feature.MAX)[i % 4 if column.type.is_number else 2]
        kind = R if feature is Feature.MEAN else column.type
        calls.append(FeatureCall(feature, column, kind, frame=frame))
    framed = replace(relation, features=tuple((f"f{i}", call) for i, call in enumerate(calls)))
    agree(stored, frames(tables), everything(framed))


@pytest.mark.parametrize("seed", range(10))
def test_random_truncated_joins_hold_the_same_rows(seed: int, stored: EngineUnderTest) -> None:
    """With one secret order, the same rows of both sides take part."""
    rng = random.Random(seed)
    tables = some_tables(rng, most=20)
    maker = Maker(rng, capped=True)
    relation = maker.join(rng.choice((0, 1)))
    bounded = everything(relation)
    agree(stored, frames(tables), bounded)


@pytest.mark.parametrize("seed", range(12))
def test_random_caps_hold_the_same_rows(seed: int, stored: EngineUnderTest) -> None:
    """At most so many rows by some values, of which NULL is one; none without the first. Columns above may be few."""
    rng = random.Random(7000 + seed)
    tables = some_tables(rng, most=20)
    for some in tables.values():
        some.extend(some[: len(some) // 2])
    source = Maker(rng).relation(seed % 3)
    columns = columns_of(source, CATALOG)
    by = tuple(rng.sample(columns, min(len(columns), 1 + seed % 2)))
    relation = Capped(source, by, rng.choice((1, 2, 3)))
    agree(stored, frames(tables), everything(relation))
    agree(stored, frames(tables), everything(relation, keys=columns[:1]))


def test_a_cap_is_exact_and_leaves_out_rows_without_a_unit(stored: EngineUnderTest) -> None:
    """Worked out by hand: 3 rows of one unit become 2, those of the others stay, and NULL is nobody."""
    listed = Values(
        "v", (("u", Type.INTEGER), ("x", Type.INTEGER)), ((1, 1), (1, 2), (1, 3), (2, 1), (2, 1), (None, 1))
    )
    found = rows(stored, Capped(listed, (Column("v", "u", Type.INTEGER),), 2))
    assert found[2, 1] == 2 and sum(found[1, x] for x in (1, 2, 3)) == 2 and sum(found.values()) == 4


def test_random_relations_are_worth_testing() -> None:
    """All nodes and kinds occur, and most relations hold rows."""
    nodes: Counter[str] = Counter()
    filled = 0
    for depth in (1, 2, 3):
        for seed in range(8):
            rng = random.Random(1000 * depth + seed)
            tables = some_tables(rng)
            relation = Maker(rng).relation(depth)
            filled += bool(in_memory(tables, everything(relation)))
            stack: list[Relation] = [relation]
            while stack:
                node = stack.pop()
                nodes[f"{node.kind} join" if isinstance(node, Join) else type(node).__name__] += 1
                stack += inputs_of(node)
    assert filled > 16
    wanted = {"Scan", "Values", "Where", "Projection", "PerUnit", "Window", "Distinct", "Union"}
    assert wanted | {f"{kind} join" for kind in JoinKind} <= set(nodes)


@pytest.mark.parametrize("row_units", [False, True], ids=["units", "rows"])
@pytest.mark.parametrize("seed", range(7))
def test_questions_about_units_agree(seed: int, row_units: bool, other: EngineUnderTest) -> None:
    """Whole questions that the rules allow: limits, linked tables, mixed joins, all measures."""
    world = relational.a_world(seed, row_units=row_units, units=6)
    bounded = replace(world.bounded, measures=world.bounded.measures or (Measure(counts=Counts.ROWS),), spreads=())
    agree(other, relational.frames(world.tables), bounded, world.catalog)


@pytest.mark.parametrize("seed", range(4))
def test_no_order_of_rows_shows(seed: int, stored: EngineUnderTest) -> None:
    """The same rows in another order, in other pieces: the same integers to the last digit."""
    rng = random.Random(seed)
    tables = some_tables(rng, most=40)
    for some in tables.values():
        some.extend(some[: len(some) // 2])
    maker = Maker(rng, capped=seed % 2 == 0)
    bounded = everything(maker.window(1) if seed % 4 < 2 else maker.join(1))
    wanted = agree(stored, frames(tables), bounded)
    for some in tables.values():
        rng.shuffle(some)
    pieces = {name: pa.concat_tables([table[:7], table[7:]]) for name, table in frames(tables).items()}
    assert as_dict(stored.run(pieces, CATALOG, bounded)) == wanted


def test_sums_of_reals_do_not_depend_on_other_units(dialect_engine: EngineUnderTest) -> None:
    """A sum of doubles in another order is another sum: a unit's feature is the same whoever else is there."""
    rng = np.random.default_rng(3)
    rows = 60_000 if dialect_engine.slow else 3_000
    who, when, cost = rng.integers(0, 40, rows), rng.integers(0, 500, rows), rng.normal(0, 1e6, rows)
    own = {"unit": N, "when": N, "cost": R}
    catalog = catalog_of({"t": (own, {})})
    unit, order, value = (Column("t", name, kind) for name, kind in own.items())
    features = (("sum", FeatureCall(Feature.SUM, value, R)), ("mean", FeatureCall(Feature.MEAN, value, R)))
    grouped = PerUnit(Scan("t"), "g", (("unit", unit),), features)
    running = Window(Scan("t"), "g", (unit,), ((order, False),), features)

    def found(relation: Relation, chosen: Any) -> Sums:
        frame = pa.table({"unit": who[chosen], "when": when[chosen], "cost": cost[chosen]})
        key = Column("g", "unit", N) if relation is grouped else unit
        keys = (key, Column("g", "sum", R), Column("g", "mean", R))
        source = Where(relation, make_call("less", key, make_literal(3)))
        bounded = BoundedPlan(source=source, keys=keys, domain=None, unit=None, measures=(Measure(counts=Counts.ROWS),))
        return as_dict(dialect_engine.run({"t": frame}, catalog, bounded))

    for relation in (grouped, running):
        alone = found(relation, np.flatnonzero(who < 3))
        assert alone == found(relation, rng.permutation(rows)) and len(alone) >= 3


def test_a_long_history_is_no_trap(stored: EngineUnderTest) -> None:
    """A running sum over one unit with very many rows goes row by row, where pair by pair it would take hours.

    It stays close to exact.
    """
    rows = 100_000
    own = {"unit": N, "when": N, "cost": R}
    unit, order, value = (Column("t", name, kind) for name, kind in own.items())
    frame = pa.table({"unit": [1] * rows, "when": list(range(rows)), "cost": [0.1] * rows})
    relation = Window(Scan("t"), "w", (unit,), ((order, False),), (("sum", FeatureCall(Feature.SUM, value, R)),))
    last = Where(relation, make_call("equal", order, make_literal(rows - 1)))
    keys = (Column("w", "sum", R),)
    bounded = BoundedPlan(source=last, keys=keys, domain=None, unit=None, measures=(Measure(counts=Counts.ROWS),))
    (key,) = stored.run({"t": frame}, catalog_of({"t": (own, {})}), bounded).keys
    assert key == (10_000.0,)


# Every node by hand: what is written here was computed by a person


def catalog_of(tables: dict[str, tuple[dict[str, Type], dict[str, Any]]]) -> Catalog:
    facts = {
        name: TableFacts(
            name=name,
            columns={column: (kind, ColumnFacts()) for column, kind in kinds.items()},
            unit=Unit("unit"),
            limits=ContributionLimits(max_rows=10),
            **more,
        )
        for name, (kinds, more) in tables.items()
    }
    return Catalog(tables=facts, neighbours=Neighbours.ADD_REMOVE)


SMALL = catalog_of({"l": ({"a": N, "b": X}, {"public": True}), "r": ({"c": N, "d": R}, {"public": True})})
A, B = Column("l", "a", N), Column("l", "b", X)
C, D = Column("r", "c", N), Column("r", "d", R)
LEFT = pa.table({"a": pa.array([1, 1, 2, None, 3], pa.int64()), "b": pa.array(["x", "y", "y", "z", None])})
RIGHT = pa.table({"c": pa.array([1, 2, 2, None, 7], pa.int64()), "d": pa.array([1.0, 2.0, 2.5, None, 7.0])})


def counted(relation: Relation, catalog: Catalog = SMALL) -> BoundedPlan:
    """A question whose groups are the different rows of a relation."""
    keys = columns_of(relation, catalog)
    return BoundedPlan(source=relation, keys=keys, domain=None, unit=None, measures=(Measure(counts=Counts.ROWS),))


def rows(engine: EngineUnderTest, relation: Relation, left: Any = LEFT, right: Any = RIGHT) -> Counter[Key]:
    """The rows of a relation over the small tables, with how often each occurs."""
    found = as_dict(engine.run({"l": left, "r": right}, SMALL, counted(relation)))
    return Counter({key: count for key, (count,) in found.items()})


def join(kind: JoinKind, **more: Any) -> Join:
    return Join(Scan("l"), Scan("r"), kind, ((A, C),), **more)


INNER = Counter([(1, "x", 1, 1.0), (1, "y", 1, 1.0), (2, "y", 2, 2.0), (2, "y", 2, 2.5)])
ONLY_LEFT = Counter([(None, "z", None, None), (3, None, None, None)])
ONLY_RIGHT = Counter([(None, None, None, None), (None, None, 7, 7.0)])


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        (JoinKind.INNER, INNER),
        (JoinKind.LEFT, INNER + ONLY_LEFT),
        (JoinKind.RIGHT, INNER + ONLY_RIGHT),
        (JoinKind.FULL, INNER + ONLY_LEFT + ONLY_RIGHT),
        (JoinKind.SEMI, Counter([(1, "x"), (1, "y"), (2, "y")])),
        (JoinKind.ANTI, Counter([(None, "z"), (3, None)])),
    ],
)
def test_joins_by_hand(kind: JoinKind, wanted: Counter[Key], engine: EngineUnderTest) -> None:
    """NULL matches nothing, not even NULL; what is unmatched stays where the kind says so."""
    assert rows(engine, join(kind)) == wanted


LOOKED_UP = Counter([(1, "x", 1, 1.0), (1, "y", 1, 1.0)])
NOT_FOUND = Counter([(2, "y", None, None), *ONLY_LEFT])


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        (JoinKind.INNER, LOOKED_UP),
        (JoinKind.LEFT, LOOKED_UP + NOT_FOUND),
        (JoinKind.FULL, LOOKED_UP + NOT_FOUND + ONLY_RIGHT + Counter([(None, None, 2, 2.0), (None, None, 2, 2.5)])),
        (JoinKind.SEMI, Counter([(1, "x"), (1, "y")])),
        (JoinKind.ANTI, Counter([(2, "y"), (None, "z"), (3, None)])),
    ],
)
def test_look_ups_find_keys_that_are_held_once(kind: JoinKind, wanted: Counter[Key], engine: EngineUnderTest) -> None:
    assert rows(engine, join(kind, single=True)) == wanted


@pytest.mark.parametrize(("left", "right"), [(5, 5), (0, 5), (5, 0), (5, 1), (0, 0)])
def test_joins_without_a_condition_and_with_nothing(left: int, right: int, stored: EngineUnderTest) -> None:
    """All with all; and either side may be empty."""
    sources = {"l": LEFT[:left], "r": RIGHT[:right]}
    with stored.open(sources, SMALL) as opened:
        for kind, single in itertools.product(JoinKind, (False, True)):
            question = counted(Join(Scan("l"), Scan("r"), kind, (), single=single))
            found = as_dict(opened.run(question, salt=SALT))
            assert found == as_dict(stored.run_oracle(sources, SMALL, question))
            if kind is JoinKind.INNER:
                pairs = left * right if not single or right == 1 else 0
                assert sum(count for (count,) in found.values()) == pairs


def test_keys_of_two_types_meet_in_the_wider_one(engine: EngineUnderTest) -> None:
    """Integers meet reals as doubles: beyond 2^53 several are equal, for a cap on frequency as for the join itself."""
    left = pa.table({"a": [2**53, 2**53 + 1, 5], "b": ["x", "y", "z"]})
    right = pa.table({"c": [1, 2, 3], "d": [2.0**53, 5.0, 5.5]})
    on = ((A, D),)
    wide = Join(Scan("l"), Scan("r"), JoinKind.INNER, on)
    assert rows(engine, wide, left, right) == Counter(
        [(2**53, "x", 1, 2.0**53), (2**53 + 1, "y", 1, 2.0**53), (5, "z", 2, 5.0)]
    )
    capped = replace(wide, caps=(Caps(B, 9, 1), Caps(C, 9, 1)))
    assert len(engine.run({"l": left, "r": right}, SMALL, counted(capped)).keys) == 2


def test_caps_hold_and_choose_fairly(engine: EngineUnderTest) -> None:
    """At most so many rows a unit and a key; another salt chooses others; rows without unit or key are left out."""
    left = pa.table(
        {"a": [i % 4 for i in range(40)] + [None, 1], "b": [f"u{i // 10}" for i in range(40)] + ["u0", None]}
    )
    right = pa.table({"c": [0, 1, 2, 3], "d": [0.0, 1.0, 2.0, 3.0]})
    capped = Join(Scan("l"), Scan("r"), JoinKind.INNER, ((A, C),), caps=(Caps(B, 3, 2), Caps(D, 1, 1)))
    question = BoundedPlan(source=capped, keys=(A, B), domain=None, unit=None, measures=(Measure(counts=Counts.ROWS),))
    with engine.open({"l": left, "r": right}, SMALL) as opened:
        answers = [as_dict(opened.run(question, salt=bytes([salt] * 16))) for salt in range(12)]
    seen = set()
    for found in answers:
        by_unit, by_key = Counter[Value](), Counter[Value]()
        for (key, unit), (count,) in found.items():
            by_unit[unit] += count
            by_key[key] += count
        assert None not in by_unit and None not in by_key
        assert max(by_unit.values()) <= 3 and max(by_key.values()) <= 2
        seen.add(tuple(sorted(found.items(), key=str)))
    assert len(seen) > 6


def test_distinct_union_and_values_by_hand(engine: EngineUnderTest) -> None:
    """NULLs are equal for DISTINCT; a union keeps what is twice; listed rows are rows."""
    listed = Values("v", (("n", N), ("t", X)), ((1, "it's"), (None, None), (None, None), (2, '"')))
    n, t = Column("v", "n", N), Column("v", "t", X)
    assert rows(engine, listed) == Counter({(1, "it's"): 1, (None, None): 2, (2, '"'): 1})
    assert rows(engine, Distinct(listed)) == Counter([(1, "it's"), (None, None), (2, '"')])
    one = Projection(listed, "one", (("n", n), ("t", t)))
    two = Projection(Scan("l"), "two", (("other", A), ("t", Literal(None, X))))
    union = Union("u", (one, two, one))
    assert rows(engine, union) == Counter(
        {(1, "it's"): 2, (None, None): 5, (2, '"'): 2, (1, None): 2, (2, None): 1, (3, None): 1}
    )
    assert rows(engine, Where(union, make_call("equal", Column("u", "t", X), make_literal('"')))) == Counter(
        {(2, '"'): 2}
    )
    empty = Values("nothing", (("n", N),), ())
    assert rows(engine, empty) == Counter()


def test_features_by_hand(engine: EngineUnderTest) -> None:
    """Exact sums, NULL beyond 64 bits, medians between middles, NULL without values."""
    left = pa.table(
        {"a": [1, 2, 4, 9, 2**63 - 1, 1, None], "b": ["x", "x", "x", "x", "big", "big", "none"]},
        schema=pa.schema([("a", pa.int64()), ("b", pa.string())]),
    )
    wanted = (Feature.COUNT, Feature.SUM, Feature.MEAN, Feature.MEDIAN, Feature.MIN, Feature.MAX)
    features = [
        (str(i), FeatureCall(f, A, R if f in (Feature.MEAN, Feature.MEDIAN) else N)) for i, f in enumerate(wanted)
    ]
    flags = make_call("greater", A, make_literal(1))
    features += [
        ("6", FeatureCall(Feature.ANY, flags, Type.BOOLEAN)),
        ("7", FeatureCall(Feature.ALL, flags, Type.BOOLEAN)),
    ]
    assert rows(engine, PerUnit(Scan("l"), "g", (("key", B),), tuple(features)), left) == Counter(
        [
            (4, 16, 4.0, 3.0, 1, 9, True, False, "x"),
            (2, None, 2.0**62, 2.0**62, 1, 2**63 - 1, True, False, "big"),
            (0, None, None, None, None, None, None, None, "none"),
        ]
    )


def test_nothing_has_no_groups(engine: EngineUnderTest) -> None:
    """Without keys all rows are one group; without rows there is none."""
    one = PerUnit(Scan("l"), "g", (), (("rows", FeatureCall(Feature.COUNT, None, N)),))
    assert rows(engine, one) == Counter([(5,)])
    assert rows(engine, one, LEFT[:0]) == Counter()


def test_windows_by_hand(engine: EngineUnderTest) -> None:
    """Peers share running sums and ranks; ties are told apart by all values; NULLs come last either way."""
    left = pa.table({"a": pa.array([3, 1, 1, None], pa.int64()), "b": ["x", "y", "z", "w"]})
    features = (
        ("row", FeatureCall(Feature.ROW_NUMBER, None, N)),
        ("rank", FeatureCall(Feature.RANK, None, N)),
        ("dense", FeatureCall(Feature.DENSE_RANK, None, N)),
        ("lag", FeatureCall(Feature.LAG, B, X)),
        ("sum", FeatureCall(Feature.SUM, A, N)),
    )

    def window(descending: bool) -> list[Key]:
        found = rows(engine, Window(Scan("l"), "w", (), ((A, descending),), features), left)
        order = ("a", "b", "dense", "lag", "rank", "row", "sum")  # as sorted by table and name
        return sorted((tuple(dict(zip(order, key)).values()) for key in found), key=lambda key: key[5])  # type: ignore[arg-type, return-value]  # row numbers are integers

    assert window(False) == [
        (1, "y", 1, None, 1, 1, 2),
        (1, "z", 1, "y", 1, 2, 2),
        (3, "x", 2, "z", 3, 3, 5),
        (None, "w", 3, "x", 4, 4, 5),
    ]
    assert [key[1] for key in window(True)] == ["x", "y", "z", "w"]


# Nasty values and names


def test_frames_by_hand(engine: EngineUnderTest) -> None:
    """Rows before, around and after; beyond the ends there is nothing, and a count of nothing is 0."""
    left = pa.table({"a": pa.array([1, 2, 3, None], pa.int64()), "b": ["w", "x", "y", "z"]})
    calls = (
        ("after", FeatureCall(Feature.MAX, A, N, frame=RowFrame(1, None))),
        ("all", FeatureCall(Feature.SUM, A, N, frame=RowFrame(None, None))),
        ("before", FeatureCall(Feature.COUNT, A, N, frame=RowFrame(None, -1))),
        ("two", FeatureCall(Feature.SUM, A, N, frame=RowFrame(-1, 0))),
    )
    relation = Window(Scan("l"), "w", (), ((B, False),), calls)
    assert rows(engine, relation, left) == Counter(
        {(1, "w", 3, 6, 0, 1): 1, (2, "x", 3, 6, 1, 3): 1, (3, "y", None, 6, 2, 5): 1, (None, "z", None, 6, 3, 3): 1}
    )


@pytest.mark.parametrize("kind", list(Type))
def test_no_feature_raises(kind: Type, stored: EngineUnderTest) -> None:
    """Every feature over values that break things, grouped and in windows, is what the oracle says."""
    values = nasty.VALUES[kind]
    keys = [i % 3 for i in range(2 * len(values))]
    catalog = catalog_of({"t": ({"key": N, "value": kind}, {"public": True})})
    key, value = Column("t", "key", N), Column("t", "value", kind)
    frame = pa.table({"key": keys, "value": pa.array(values * 2, ARROW[kind])})
    both = [FeatureCall(Feature.COUNT, value, N), FeatureCall(Feature.COUNT_DISTINCT, value, N)]
    both += [FeatureCall(feature, value, kind) for feature in (Feature.MIN, Feature.MAX)]
    if kind.is_number:
        both += [
            FeatureCall(Feature.SUM, value, kind),
            FeatureCall(Feature.MEAN, value, R),
        ]
    if kind is Type.BOOLEAN:
        both += [FeatureCall(Feature.ANY, value, kind), FeatureCall(Feature.ALL, value, kind)]
    places = [FeatureCall(feature, value, kind, 2**70) for feature in (Feature.LAG, Feature.LEAD)]
    places += [FeatureCall(Feature.LAG, value, kind, -1), FeatureCall(Feature.ROW_NUMBER, None, N)]
    named = [(str(i), compute) for i, compute in enumerate([*both, *places])]
    middle = [("middle", FeatureCall(Feature.MEDIAN, value, R))] if kind.is_number else []
    relations: list[Relation] = [
        PerUnit(Scan("t"), "g", (("key", key),), (*named[: len(both)], *middle)),
        PerUnit(Scan("t"), "g", (), (*named[: len(both)], *middle)),
        Window(Scan("t"), "g", (key,), ((value, True),), tuple(named)),
        Window(Scan("t"), "g", (key,), (), tuple(named)),
    ]
    for relation in relations:
        agree(stored, {"t": frame}, counted(relation, catalog), catalog)


def make_reals(rng: random.Random) -> list[float | None]:
    """Reals of one group: of all sizes or of one, at powers of two and beside them, cancelling, equal, or missing."""
    top = rng.choice((-1074, -1000, -923, -60, 0, 3, 52, 1000, 1023))
    found: list[float | None] = []
    for _ in range(rng.randrange(1, 9)):
        size = math.ldexp(rng.choice((0.5, 0.75, 1 - 2**-53, rng.uniform(0.5, 1))), rng.randint(top - 90, top) + 1)
        found += rng.choice(
            ([size], [-size], [size, -size], [size] * 3, [None], [math.nextafter(size, 0)], [-0.0, 0.0])
        )
    rng.shuffle(found)
    return found


def test_sums_and_medians_of_reals(stored: EngineUnderTest) -> None:
    """Of every size, from the smallest to the largest: each engine finds the very double that the oracle finds."""
    groups = [make_reals(random.Random(seed)) for seed in range(400)]
    groups += [[1.7976931348623157e308], [1.7976931348623157e308] * 3, [-1.7976931348623157e308] * 2, [5e-324] * 3]
    groups += [[math.inf, 1.0], [math.nan, 2.0], [None], [-0.0], [-0.0, 0.0], [1e308, -1e308, 1.0]]
    catalog = catalog_of({"t": ({"key": N, "value": R}, {"public": True})})
    key, value = Column("t", "key", N), Column("t", "value", R)
    keys = [i for i, group in enumerate(groups) for _ in group]
    frame = pa.table({"key": keys, "value": pa.array([real for group in groups for real in group], pa.float64())})
    features = tuple((f, FeatureCall(f, value, R)) for f in (Feature.SUM, Feature.MEAN, Feature.MEDIAN))
    for relation in (
        PerUnit(Scan("t"), "g", (("key", key),), features),
        PerUnit(Distinct(Scan("t")), "g", (("key", key),), features),  # not a plain table
        Window(Scan("t"), "g", (key,), (), features[:2]),
        Window(Scan("t"), "g", (key,), ((value, False),), features[:2]),
    ):
        agree(stored, {"t": frame}, counted(relation, catalog), catalog)


# How large values may count: every size, some of which bounding would not choose.
SIZES = (
    0.0, 5e-324, 1e-310, 1e-300, 2.0**-923, 0.1, 50.0, 1e5 * MARGIN, 2.0**61, 2.0**62, 2.0**420, sys.float_info.max,
)  # fmt: skip


def test_sums_of_reals_of_a_public_size(stored: EngineUnderTest) -> None:
    """The steps follow from the size: each engine finds the very double that the oracle finds."""
    rng = random.Random(3)
    groups = [make_reals(rng) for _ in range(40)] + [[math.inf, 1.0], [None], [-0.0], [-math.inf, None]]
    for size in SIZES:
        groups += [[rng.uniform(-1, 1) * size for _ in range(rng.randint(1, 9))] for _ in range(9)]
        groups += [[-size, size], [size / 3, size * 3, -size], [math.nextafter(size, 0)] * 5, [size * 1e-20] * 3]
    catalog = catalog_of({"t": ({"key": N, "value": R}, {"public": True})})
    key, value = Column("t", "key", N), Column("t", "value", R)
    keys = [i for i, group in enumerate(groups) for _ in group]
    frame = pa.table({"key": keys, "value": pa.array([real for group in groups for real in group], pa.float64())})
    features = [
        (f"{feature} {i}", FeatureCall(feature, value, R, size=size))
        for i, size in enumerate(SIZES)
        for feature in (Feature.SUM, Feature.MEAN)
    ]
    unknown = ("unknown", FeatureCall(Feature.SUM, value, R))  # its steps follow from the rows
    for relation in (
        PerUnit(Scan("t"), "g", (("key", key),), (*features, unknown)),
        PerUnit(Distinct(Scan("t")), "g", (("key", key),), tuple(features[::5])),
        Window(Scan("t"), "g", (key,), ((value, False),), (*features[::3], unknown)),
    ):
        agree(stored, {"t": frame}, counted(relation, catalog), catalog)


def test_names_are_never_code(stored: EngineUnderTest) -> None:
    """Names of tables, columns, aliases and relations may hold quotes, and may be words of SQL."""
    odd = ('a"b', "it's; --", "select", "c1", "r1", "e1", "rows", "ordinal", "\N{SNOWMAN}", "values0")
    catalog = catalog_of({name: (dict.fromkeys(odd, N), {"public": True}) for name in odd[:2]})
    frame = pa.table({name: [i, i + 1, None] for i, name in enumerate(odd)})
    one, two = Scan(odd[0], 'x"'), Scan(odd[1])
    pairs = tuple((Column('x"', name, N), Column(odd[1], name, N)) for name in odd[:3])
    joined = Join(one, two, JoinKind.LEFT, pairs)
    derived = Projection(joined, 'd"; DROP', tuple((name, Column('x"', name, N)) for name in odd))
    ordered = Window(derived, "w'", (), (), ((odd[0], FeatureCall(Feature.ROW_NUMBER, None, N)),))
    question = BoundedPlan(
        source=ordered,
        keys=columns_of(ordered, catalog),
        domain=None,
        unit=None,
        measures=(Measure(counts=Counts.ROWS),),
    )
    agree(stored, dict.fromkeys(odd[:2], frame), question, catalog)


def test_texts_inside_relations_are_bound(engine: EngineUnderTest) -> None:
    """Texts in conditions below and above a join, some equal, some not: each means itself."""
    inside = Where(Scan("l"), make_call("in", B, make_literal("y"), make_literal("'; --"), make_literal("x")))
    derived = Projection(inside, "d", (("a", A), ("t", make_call("concat", B, make_literal("$t0"), make_literal("y")))))
    joined = Join(derived, Scan("r"), JoinKind.INNER, ((Column("d", "a", N), C),))
    above = Where(joined, make_call("equal", Column("d", "t", X), make_literal("x$t0y")))
    assert rows(engine, above) == Counter([(1, "x$t0y", 1, 1.0)])


def test_deep_and_wide_questions(stored: EngineUnderTest) -> None:
    """Thirty derived tables inside each other, and eight joins beside each other."""
    deep: Relation = Scan("l")
    column: Expression = A
    for i in range(30):
        deep = Projection(
            deep, f"d{i}", (("a", make_call("add", column, make_literal(1))), ("text", make_literal(f"it's {i}")))
        )
        column = Column(f"d{i}", "a", N)
    assert rows(stored, deep) == Counter(
        {(31, "it's 29"): 2, (32, "it's 29"): 1, (None, "it's 29"): 1, (33, "it's 29"): 1}
    )
    wide: Relation = Scan("l")
    for i in range(8):
        right = Scan("r", f"r{i}")
        wide = Join(wide, right, JoinKind.LEFT if i % 2 else JoinKind.INNER, ((A, Column(f"r{i}", "c", N)),))
    question = BoundedPlan(
        source=wide, keys=(A, B, Column("r7", "d", R)), domain=None, unit=None, measures=(Measure(counts=Counts.ROWS),)
    )
    found = agree(stored, {"l": LEFT, "r": RIGHT}, question, SMALL)
    assert found[2, "y", 2.5] == (2**7,)


AMBIGUOUS: dict[str, Relation] = {
    "a table with itself": Join(Scan("l"), Scan("l"), JoinKind.INNER, ((A, A),)),
    "a window that covers a column": Window(Scan("l"), "l", (), (), (("a", FeatureCall(Feature.ROW_NUMBER, None, N)),)),
    "a union of types": Union("u", (Projection(Scan("l"), "d", (("x", A),)), Projection(Scan("l"), "e", (("x", B),)))),
    "a join of types": Join(Scan("l"), Scan("r"), JoinKind.INNER, ((B, C),)),
    "a key that is a feature": PerUnit(Scan("l"), "g", (("x", A),), (("x", FeatureCall(Feature.COUNT, None, N)),)),
    "one name twice": Projection(Scan("l"), "d", (("x", A), ("x", make_call("add", A, make_literal(1))))),
    "one name twice below": Distinct(Join(Scan("l"), Scan("l"), JoinKind.LEFT, ())),
}
OF_NOTHING: dict[str, Relation] = {
    "a window's feature": PerUnit(Scan("l"), "g", (), (("x", FeatureCall(Feature.LAG, A, N)),)),
    "a sum": PerUnit(Scan("l"), "g", (), (("x", FeatureCall(Feature.SUM, None, N)),)),
    "a next value": Window(Scan("l"), "g", (), (), (("x", FeatureCall(Feature.LEAD, None, N)),)),
}


def is_refused(engine: EngineUnderTest, relation: Relation) -> None:
    keys = tuple(dict.fromkeys(columns_of(relation, SMALL)))
    question = BoundedPlan(source=relation, keys=keys, domain=None, unit=None, measures=(Measure(counts=Counts.ROWS),))
    with pytest.raises(InternalError):
        engine.run({"l": LEFT, "r": RIGHT}, SMALL, question)


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_ambiguous_plans_are_refused(name: str, dialect_engine: EngineUnderTest) -> None:
    """No front end makes them. Two columns of one name, or of types that do not fit, would be read for each other."""
    is_refused(dialect_engine, AMBIGUOUS[name])


@pytest.mark.parametrize("name", OF_NOTHING)
def test_features_of_nothing_are_refused(name: str, dialect_engine: EngineUnderTest) -> None:
    """No front end makes them, either."""
    is_refused(dialect_engine, OF_NOTHING[name])


# Units


def test_linked_tables_reach_their_unit(other: EngineUnderTest) -> None:
    """A table that refers to another can be prepared, though it names no unit; rows reach theirs by the key."""
    kinds = relational.SCHEMA
    catalog = relational.a_catalog(random.Random(1))
    tables = relational.all_tables(random.Random(2), 5, 4)
    reached = reach("notes", catalog)
    keys = tuple(Column("notes", name, kind) for name, kind in kinds["notes"].items())
    bounded = BoundedPlan(
        source=reached.relation, keys=keys, domain=None, unit=reached.unit,
        measures=(Measure(counts=Counts.UNITS), Measure(counts=Counts.ROWS)), max_rows_per_group=99, max_groups=99,
    )  # fmt: skip
    assert agree(other, relational.frames(tables), bounded, catalog)


@pytest.mark.parametrize("table", ["t", "s"])
def test_text_and_other_units_of_joins(table: str, other: EngineUnderTest) -> None:
    """Units that are texts, and units of a full join, which neither side alone can name."""
    catalog = catalog_of({"t": ({"unit": X, "x": N}, {}), "s": ({"unit": X, "y": N}, {})})
    one = [{"unit": u, "x": i % 3} for i, u in enumerate(["a", "b", "b", "it's", None, "d"])]
    two = [{"unit": u, "y": i % 2} for i, u in enumerate(["b", "c", "it's", "it's", None])]
    units = Column("t", "unit", X), Column("s", "unit", X)
    both = Join(Scan("t"), Scan("s"), JoinKind.FULL, ((units[0], units[1]),))
    unit = make_call("coalesce", *units) if table == "t" else make_call("coalesce", *reversed(units))
    bounded = BoundedPlan(
        source=both, keys=(Column("t", "x", N), Column("s", "y", N)), domain=None, unit=unit,
        measures=(Measure(counts=Counts.UNITS), Measure(counts=Counts.ROWS)), max_rows_per_group=9, max_groups=9,
    )  # fmt: skip
    sources = {"t": pa.Table.from_pylist(one), "s": pa.Table.from_pylist(two)}
    assert agree(other, sources, bounded, catalog)[None, 1] == (1, 1)


def test_rows_of_public_tables_are_counted(stored: EngineUnderTest) -> None:
    """The most rows with equal values, NULLs aside; all rows without columns. Private rows are not counted."""
    tables = some_tables(random.Random(3), most=20)
    codes = [(1, "a"), (1, "a"), (1, "b"), (2, "b"), (3, "b"), *[(None, "a")] * 9, (4, None)]
    tables["codes"] = [{"code": code, "label": label, "weight": 1.0} for code, label in codes]
    wanted = {(): 15, ("code",): 3, ("label",): 11, ("code", "label"): 2}
    with stored.open(frames(tables), CATALOG) as engine:
        assert {columns: engine.count_public("codes", columns) for columns in wanted} == wanted
        with pytest.raises(UsageError, match="private"):
            engine.count_public("visits", ())


def test_rows_of_public_tables_are_read(stored: EngineUnderTest) -> None:
    """All rows, the declared columns only, each time in the same order. Private rows are not read."""
    tables = some_tables(random.Random(3), most=20)
    codes = [(2, "b"), (1, "a"), (None, "a"), (1, None), (1, "a")]
    tables["codes"] = [{"code": code, "label": label, "weight": 0.5} for code, label in codes]
    with stored.open(frames(tables), CATALOG) as engine:
        found = engine.read_public("codes")
        names = [name for name, _ in found.columns]
        assert names == list(CATALOG.tables["codes"].columns)
        rows = [(row[names.index("code")], row[names.index("label")]) for row in found.rows]
        assert rows == [(1, "a"), (1, "a"), (1, None), (2, "b"), (None, "a")]
        assert engine.read_public("codes") == found
        with pytest.raises(UsageError, match="private"):
            engine.read_public("visits")
