"""Relations in DuckDB hold the rows that the memory engine says, whatever the data, its order, and where it is kept."""

# ruff: noqa: S311  # worlds need seeds, not secrets
from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.memory.engine import MemoryEngine
from discreet.errors import InternalError
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.expressions import Column, Expression, Literal
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
    inputs_of,
)
from discreet.plan.types import Type, Value
from discreet.privacy import Neighbours, Unit
from tests.engines import nasty, relational
from tests.engines.clinics import CATALOG, Maker, columns_of, everything, frames, same_secret_order, some_tables
from tests.engines.test_agreement import as_dict, duckdb_order
from tests.engines.worlds import ARROW, SALT

__all__ = ["duckdb_order"]  # a fixture

Key = tuple[Value, ...]
N, R, X = Type.INTEGER, Type.REAL, Type.TEXT


def in_memory(tables: Any, bounded: BoundedPlan, catalog: Catalog = CATALOG) -> dict[Key, tuple[int, ...]]:
    return as_dict(MemoryEngine(tables, catalog).run(bounded, salt=SALT))


def in_duckdb(sources: Any, bounded: BoundedPlan, catalog: Catalog = CATALOG, **how: Any) -> dict[Key, tuple[int, ...]]:
    """The answer in every way that there is, which must be one."""
    engine = DuckDBEngine(sources, catalog, threads=how.pop("threads", 2))
    try:
        found = as_dict(engine.run(bounded, salt=SALT))
        assert as_dict(engine._run(bounded, SALT, None, blocks=False)) == found
        if how.get("prepared"):
            for table in catalog.tables:
                engine.prepare(table)
            assert as_dict(engine.run(bounded, salt=SALT)) == found
        return found
    finally:
        engine.close()


# Random relations


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("seed", range(8))
def test_random_relations_hold_the_same_rows(seed: int, depth: int) -> None:
    """Row by row, for every node over every other, with NULLs, duplicates, ties, odd names and empty tables."""
    rng = random.Random(1000 * depth + seed)
    tables = some_tables(rng)
    bounded = everything(Maker(rng).relation(depth))
    assert in_duckdb(frames(tables), bounded) == in_memory(tables, bounded)


@pytest.mark.parametrize("capped", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_columns_that_nobody_reads_still_matter(seed: int, capped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left out above was there below: for DISTINCT, for ties, and for the secret order of a truncation."""
    same_secret_order(monkeypatch)
    rng = random.Random(500 + seed)
    tables = some_tables(rng, most=20)
    for some in tables.values():
        some.extend(some[: len(some) // 2])
    maker = Maker(rng, capped=capped)
    relation = maker.join(0) if capped else Distinct(maker.leaf()) if seed % 2 else maker.window(0)
    columns = columns_of(relation, CATALOG)
    kept = tuple(rng.sample(columns, rng.randrange(min(3, len(columns)))))
    bounded = everything(relation, keys=kept)
    assert in_duckdb(frames(tables), bounded) == in_memory(tables, bounded)


@pytest.mark.parametrize("seed", range(10))
def test_random_truncated_joins_hold_the_same_rows(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one secret order, the same rows of both sides take part."""
    same_secret_order(monkeypatch)
    rng = random.Random(seed)
    tables = some_tables(rng, most=20)
    maker = Maker(rng, capped=True)
    relation = maker.join(rng.choice((0, 1)))
    bounded = everything(relation)
    assert in_duckdb(frames(tables), bounded) == in_memory(tables, bounded)


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
def test_questions_about_units_agree(
    seed: int, row_units: bool, monkeypatch: pytest.MonkeyPatch, duckdb_order: None
) -> None:
    """Whole questions that the rules allow: limits, linked tables, mixed joins, all measures that are sums."""
    same_secret_order(monkeypatch)
    world = relational.a_world(seed, row_units=row_units, units=6)
    sums = [m for m in world.bounded.measures if m.counts is not Counts.DISTINCT]
    bounded = replace(world.bounded, measures=tuple(sums) or (Measure(counts=Counts.ROWS),), spreads=())
    found = in_duckdb(relational.frames(world.tables), bounded, world.catalog, prepared=True)
    assert found == in_memory(world.tables, bounded, world.catalog)


@pytest.mark.parametrize("seed", range(4))
def test_no_order_of_rows_or_threads_shows(seed: int) -> None:
    """The same rows in another order, in other pieces, with other threads: the same integers to the last digit."""
    rng = random.Random(seed)
    tables = some_tables(rng, most=40)
    for some in tables.values():
        some.extend(some[: len(some) // 2])
    maker = Maker(rng, capped=seed % 2 == 0)
    bounded = everything(maker.window(1) if seed % 4 < 2 else maker.join(1))
    wanted = in_duckdb(frames(tables), bounded, threads=1)
    for threads in (1, 4):
        for some in tables.values():
            rng.shuffle(some)
        pieces = {name: pa.concat_tables([table[:7], table[7:]]) for name, table in frames(tables).items()}
        assert in_duckdb(pieces, bounded, threads=threads) == wanted


def test_sums_of_reals_do_not_depend_on_other_units() -> None:
    """A sum of doubles in another order is another sum: a unit's feature is the same whoever else is there."""
    rng = np.random.default_rng(3)
    rows = 60_000
    who, when, cost = rng.integers(0, 40, rows), rng.integers(0, 500, rows), rng.normal(0, 1e6, rows)
    own = {"unit": N, "when": N, "cost": R}
    catalog = catalog_of({"t": (own, {})})
    unit, order, value = (Column("t", name, kind) for name, kind in own.items())
    features = (("sum", FeatureCall(Feature.SUM, value, R)), ("mean", FeatureCall(Feature.MEAN, value, R)))
    grouped = PerUnit(Scan("t"), "g", (("unit", unit),), features)
    running = Window(Scan("t"), "g", (unit,), ((order, False),), features)

    def found(relation: Relation, chosen: Any, threads: int) -> dict[Key, tuple[int, ...]]:
        frame = pa.table({"unit": who[chosen], "when": when[chosen], "cost": cost[chosen]})
        key = Column("g", "unit", N) if relation is grouped else unit
        keys = (key, Column("g", "sum", R), Column("g", "mean", R))
        source = Where(relation, make_call("less", key, make_literal(3)))
        bounded = BoundedPlan(source=source, keys=keys, domain=None, unit=None, measures=(Measure(counts=Counts.ROWS),))
        return as_dict(DuckDBEngine({"t": frame}, catalog, threads=threads).run(bounded, salt=SALT))

    for relation in (grouped, running):
        alone = found(relation, np.flatnonzero(who < 3), 1)
        assert alone == found(relation, rng.permutation(rows), 4) and len(alone) >= 3


def test_long_parts_are_no_trap() -> None:
    """A running sum over one unit with very many rows takes no longer than sorting them, and stays close to exact."""
    rows = 100_000
    own = {"unit": N, "when": N, "cost": R}
    unit, order, value = (Column("t", name, kind) for name, kind in own.items())
    frame = pa.table({"unit": [1] * rows, "when": list(range(rows)), "cost": [0.1] * rows})
    relation = Window(Scan("t"), "w", (unit,), ((order, False),), (("sum", FeatureCall(Feature.SUM, value, R)),))
    last = Where(relation, make_call("equal", order, make_literal(rows - 1)))
    keys = (Column("w", "sum", R),)
    bounded = BoundedPlan(source=last, keys=keys, domain=None, unit=None, measures=(Measure(counts=Counts.ROWS),))
    (key,) = DuckDBEngine({"t": frame}, catalog_of({"t": (own, {})})).run(bounded, salt=SALT).keys
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


def rows(relation: Relation, left: Any = LEFT, right: Any = RIGHT) -> Counter[Key]:
    """The rows of a relation over the small tables, with how often each occurs, by both engines."""
    sources = {"l": left, "r": right}
    found = as_dict(DuckDBEngine(sources, SMALL).run(counted(relation), salt=SALT))
    assert found == in_memory(sources, counted(relation), SMALL)
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
def test_joins_by_hand(kind: JoinKind, wanted: Counter[Key]) -> None:
    """NULL matches nothing, not even NULL; what is unmatched stays where the kind says so."""
    assert rows(join(kind)) == wanted


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
def test_look_ups_find_keys_that_are_held_once(kind: JoinKind, wanted: Counter[Key]) -> None:
    assert rows(join(kind, single=True)) == wanted


@pytest.mark.parametrize(("left", "right"), [(5, 5), (0, 5), (5, 0), (5, 1), (0, 0)])
def test_joins_without_a_condition_and_with_nothing(left: int, right: int) -> None:
    """All with all; and either side may be empty."""
    sources = {"l": LEFT[:left], "r": RIGHT[:right]}
    ours, theirs = DuckDBEngine(sources, SMALL), MemoryEngine(sources, SMALL)
    for kind in JoinKind:
        for single in (False, True):
            cross = Join(Scan("l"), Scan("r"), kind, (), single=single)
            question = counted(cross)
            found = as_dict(ours.run(question, salt=SALT))
            assert found == as_dict(theirs.run(question, salt=SALT))
            if kind is JoinKind.INNER:
                pairs = left * right if not single or right == 1 else 0
                assert sum(count for (count,) in found.values()) == pairs


def test_keys_of_two_types_meet_in_the_wider_one() -> None:
    """Integers meet reals as doubles: beyond 2^53 several are equal, for a cap on frequency as for the join itself."""
    left = pa.table({"a": [2**53, 2**53 + 1, 5], "b": ["x", "y", "z"]})
    right = pa.table({"c": [1, 2, 3], "d": [2.0**53, 5.0, 5.5]})
    on = ((A, D),)
    wide = Join(Scan("l"), Scan("r"), JoinKind.INNER, on)
    assert rows(wide, left, right) == Counter(
        [(2**53, "x", 1, 2.0**53), (2**53 + 1, "y", 1, 2.0**53), (5, "z", 2, 5.0)]
    )
    capped = replace(wide, caps=(Caps(B, 9, 1), Caps(C, 9, 1)))
    sources = {"l": left, "r": right}
    for engine in (DuckDBEngine(sources, SMALL), MemoryEngine(sources, SMALL)):
        assert len(engine.run(counted(capped), salt=SALT).keys) == 2


def test_caps_hold_and_choose_fairly() -> None:
    """At most so many rows a unit and a key; another salt chooses others; rows without unit or key are left out."""
    left = pa.table(
        {"a": [i % 4 for i in range(40)] + [None, 1], "b": [f"u{i // 10}" for i in range(40)] + ["u0", None]}
    )
    right = pa.table({"c": [0, 1, 2, 3], "d": [0.0, 1.0, 2.0, 3.0]})
    capped = Join(Scan("l"), Scan("r"), JoinKind.INNER, ((A, C),), caps=(Caps(B, 3, 2), Caps(D, 1, 1)))
    engine = DuckDBEngine({"l": left, "r": right}, SMALL)
    question = BoundedPlan(source=capped, keys=(A, B), domain=None, unit=None, measures=(Measure(counts=Counts.ROWS),))
    seen = set()
    for salt in range(12):
        found = as_dict(engine.run(question, salt=bytes([salt] * 16)))
        by_unit, by_key = Counter[Value](), Counter[Value]()
        for (key, unit), (count,) in found.items():
            by_unit[unit] += count
            by_key[key] += count
        assert None not in by_unit and None not in by_key
        assert max(by_unit.values()) <= 3 and max(by_key.values()) <= 2
        seen.add(tuple(sorted(found.items(), key=str)))
    assert len(seen) > 6


def test_distinct_union_and_values_by_hand() -> None:
    """NULLs are equal for DISTINCT; a union keeps what is twice; listed rows are rows."""
    listed = Values("v", (("n", N), ("t", X)), ((1, "it's"), (None, None), (None, None), (2, '"')))
    n, t = Column("v", "n", N), Column("v", "t", X)
    assert rows(listed) == Counter({(1, "it's"): 1, (None, None): 2, (2, '"'): 1})
    assert rows(Distinct(listed)) == Counter([(1, "it's"), (None, None), (2, '"')])
    one = Projection(listed, "one", (("n", n), ("t", t)))
    two = Projection(Scan("l"), "two", (("other", A), ("t", Literal(None, X))))
    union = Union("u", (one, two, one))
    assert rows(union) == Counter(
        {(1, "it's"): 2, (None, None): 5, (2, '"'): 2, (1, None): 2, (2, None): 1, (3, None): 1}
    )
    assert rows(Where(union, make_call("equal", Column("u", "t", X), make_literal('"')))) == Counter({(2, '"'): 2})
    empty = Values("nothing", (("n", N),), ())
    assert rows(empty) == Counter()


def test_features_by_hand() -> None:
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
    assert rows(PerUnit(Scan("l"), "g", (("key", B),), tuple(features)), left) == Counter(
        [
            (4, 16, 4.0, 3.0, 1, 9, True, False, "x"),
            (2, None, 2.0**62, 2.0**62, 1, 2**63 - 1, True, False, "big"),
            (0, None, None, None, None, None, None, None, "none"),
        ]
    )


def test_nothing_has_no_groups() -> None:
    """Without keys all rows are one group; without rows there is none."""
    one = PerUnit(Scan("l"), "g", (), (("rows", FeatureCall(Feature.COUNT, None, N)),))
    assert rows(one) == Counter([(5,)])
    assert rows(one, LEFT[:0]) == Counter()


def test_windows_by_hand() -> None:
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
        found = rows(Window(Scan("l"), "w", (), ((A, descending),), features), left)
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


@pytest.mark.parametrize("kind", list(Type))
def test_no_feature_raises(kind: Type) -> None:
    """Every feature over values that break things, grouped and in windows, is what the oracle says."""
    values = nasty.VALUES[kind]
    keys = [i % 3 for i in range(2 * len(values))]
    catalog = catalog_of({"t": ({"key": N, "value": kind}, {"public": True})})
    key, value = Column("t", "key", N), Column("t", "value", kind)
    stored = [{"key": k, "value": v} for k, v in zip(keys, values * 2)]
    frame = pa.table({"key": keys, "value": pa.array(values * 2, ARROW[kind])})
    both = [FeatureCall(Feature.COUNT, value, N), FeatureCall(Feature.COUNT_DISTINCT, value, N)]
    both += [FeatureCall(feature, value, kind) for feature in (Feature.MIN, Feature.MAX)]
    if kind.is_number:
        both += [
            FeatureCall(Feature.SUM, value, kind),
            FeatureCall(Feature.MEAN, value, R),
            FeatureCall(Feature.MEDIAN, value, R),
        ]
    if kind is Type.BOOLEAN:
        both += [FeatureCall(Feature.ANY, value, kind), FeatureCall(Feature.ALL, value, kind)]
    places = [FeatureCall(feature, value, kind, 2**70) for feature in (Feature.LAG, Feature.LEAD)]
    places += [FeatureCall(Feature.LAG, value, kind, -1), FeatureCall(Feature.ROW_NUMBER, None, N)]
    named = [(str(i), compute) for i, compute in enumerate([*both, *places])]
    relations: list[Relation] = [
        PerUnit(Scan("t"), "g", (("key", key),), tuple(named[: len(both)])),
        Window(Scan("t"), "g", (key,), ((value, True),), tuple(named)),
        Window(Scan("t"), "g", (key,), (), tuple(named)),
    ]
    engine, oracle = DuckDBEngine({"t": frame}, catalog), MemoryEngine({"t": stored}, catalog)
    for relation in relations:
        question = counted(relation, catalog)
        assert as_dict(engine.run(question, salt=SALT)) == as_dict(oracle.run(question, salt=SALT))


def test_names_are_never_code() -> None:
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
    sources = dict.fromkeys(odd[:2], frame)
    assert in_duckdb(sources, question, catalog) == in_memory(
        dict.fromkeys(odd[:2], frame.to_pylist()), question, catalog
    )


def test_texts_inside_relations_are_bound() -> None:
    """Texts in conditions below and above a join, some equal, some not: each means itself."""
    inside = Where(Scan("l"), make_call("in", B, make_literal("y"), make_literal("'; --"), make_literal("x")))
    derived = Projection(inside, "d", (("a", A), ("t", make_call("concat", B, make_literal("$t0"), make_literal("y")))))
    joined = Join(derived, Scan("r"), JoinKind.INNER, ((Column("d", "a", N), C),))
    above = Where(joined, make_call("equal", Column("d", "t", X), make_literal("x$t0y")))
    assert rows(above) == Counter([(1, "x$t0y", 1, 1.0)])


def test_deep_and_wide_questions() -> None:
    """Thirty derived tables inside each other, and eight joins beside each other."""
    deep: Relation = Scan("l")
    column: Expression = A
    for i in range(30):
        deep = Projection(
            deep, f"d{i}", (("a", make_call("add", column, make_literal(1))), ("text", make_literal(f"it's {i}")))
        )
        column = Column(f"d{i}", "a", N)
    assert rows(deep) == Counter({(31, "it's 29"): 2, (32, "it's 29"): 1, (None, "it's 29"): 1, (33, "it's 29"): 1})
    wide: Relation = Scan("l")
    for i in range(8):
        right = Scan("r", f"r{i}")
        wide = Join(wide, right, JoinKind.LEFT if i % 2 else JoinKind.INNER, ((A, Column(f"r{i}", "c", N)),))
    question = BoundedPlan(
        source=wide, keys=(A, B, Column("r7", "d", R)), domain=None, unit=None, measures=(Measure(counts=Counts.ROWS),)
    )
    found = in_duckdb({"l": LEFT, "r": RIGHT}, question, SMALL)
    assert found == in_memory({"l": LEFT.to_pylist(), "r": RIGHT.to_pylist()}, question, SMALL)
    assert found[2, "y", 2.5] == (2**7,)


@pytest.mark.parametrize(
    "relation",
    [
        Join(Scan("l"), Scan("l"), JoinKind.INNER, ((A, A),)),
        Window(Scan("l"), "l", (), (), (("a", FeatureCall(Feature.ROW_NUMBER, None, N)),)),
        Union("u", (Projection(Scan("l"), "d", (("x", A),)), Projection(Scan("l"), "e", (("x", B),)))),
        Join(Scan("l"), Scan("r"), JoinKind.INNER, ((B, C),)),
        PerUnit(Scan("l"), "g", (("x", A),), (("x", FeatureCall(Feature.COUNT, None, N)),)),
        Projection(Scan("l"), "d", (("x", A), ("x", make_call("add", A, make_literal(1))))),
        Distinct(Join(Scan("l"), Scan("l"), JoinKind.LEFT, ())),
        PerUnit(Scan("l"), "g", (), (("x", FeatureCall(Feature.LAG, A, N)),)),
        PerUnit(Scan("l"), "g", (), (("x", FeatureCall(Feature.SUM, None, N)),)),
        Window(Scan("l"), "g", (), (), (("x", FeatureCall(Feature.LEAD, None, N)),)),
    ],
)
def test_plans_that_no_front_end_makes_are_refused(relation: Relation) -> None:
    keys = tuple(dict.fromkeys(columns_of(relation, SMALL)))
    question = BoundedPlan(source=relation, keys=keys, domain=None, unit=None, measures=(Measure(counts=Counts.ROWS),))
    with pytest.raises(InternalError):
        DuckDBEngine({"l": LEFT, "r": RIGHT}, SMALL).run(question, salt=SALT)


# Sources


HOSPITAL = catalog_of(
    {
        "patients": ({"pid": N, "sex": X}, {"owner": "pid"}),
        "visits": ({"unit": N, "visit": N, "ward": X}, {}),
        "wards": ({"ward": X, "floor": N}, {"public": True}),
        "floors": ({"floor": N, "head": X}, {"public": True}),
        "doors": ({"floor": N, "width": R}, {"public": True}),
    }
)
HOSPITAL_TABLES = {
    "patients": pa.table({"pid": [1, 2, 3, 4], "sex": ["f", "m", "f", None]}),
    "visits": pa.table({"unit": [1, 1, 2, 9, None], "visit": [1, 2, 3, 4, 5], "ward": ["A", "B", "A", "A", "B"]}),
    "wards": pa.table({"ward": ["A", "B"], "floor": [1, 2]}),
    "floors": pa.table({"floor": [1, 2], "head": ["it's", 'me"']}),
    "doors": pa.table({"floor": [1, 2, 2], "width": [0.5, 1.5, 2.5]}),
}


def whole_hospital() -> BoundedPlan:
    """A question that reads all five tables."""
    source: Relation = Scan("visits")
    pairs: Sequence[tuple[str, Column, Column]] = (
        ("patients", Column("visits", "unit", N), Column("patients", "pid", N)),
        ("wards", Column("visits", "ward", X), Column("wards", "ward", X)),
        ("floors", Column("wards", "floor", N), Column("floors", "floor", N)),
        ("doors", Column("wards", "floor", N), Column("doors", "floor", N)),
    )
    for table, ours, theirs in pairs:
        source = Join(source, Scan(table), JoinKind.INNER, ((ours, theirs),))
    keys = (Column("patients", "sex", X), Column("floors", "head", X), Column("doors", "width", R))
    measures = (Measure(counts=Counts.UNITS), Measure(counts=Counts.ROWS))
    return BoundedPlan(
        source=source, keys=keys, domain=None, unit=Column("visits", "unit", N), measures=measures,
        max_groups=9, max_rows_per_group=9,
    )  # fmt: skip


def test_several_sources_at_once(tmp_path: Path) -> None:
    """Parquet, CSV, a frame, and two tables of one DuckDB file in one question; raw, and prepared."""
    pq.write_table(HOSPITAL_TABLES["patients"], tmp_path / "patients.parquet")
    pyarrow.csv.write_csv(HOSPITAL_TABLES["visits"], tmp_path / "visits.csv")
    with duckdb.connect(str(tmp_path / "place's.duckdb")) as connection:
        for name in ("wards", "floors"):
            connection.register("incoming", HOSPITAL_TABLES[name])
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM incoming")
    sources = {
        "patients": tmp_path / "patients.parquet",
        "visits": tmp_path / "visits.csv",
        "wards": tmp_path / "place's.duckdb",
        "floors": tmp_path / "place's.duckdb",
        "doors": HOSPITAL_TABLES["doors"],
    }
    wanted = {
        ("f", "it's", 0.5): (1, 1), ("f", 'me"', 1.5): (1, 1), ("f", 'me"', 2.5): (1, 1), ("m", "it's", 0.5): (1, 1),
    }  # fmt: skip
    assert in_duckdb(sources, whole_hospital(), HOSPITAL, prepared=True) == wanted
    lists = {name: table.to_pylist() for name, table in HOSPITAL_TABLES.items()}
    assert in_memory(lists, whole_hospital(), HOSPITAL) == wanted


@pytest.mark.parametrize("prepared", [(), ("visits",), ("patients", "wards"), tuple(HOSPITAL_TABLES)])
def test_some_tables_may_be_prepared(prepared: tuple[str, ...]) -> None:
    """Prepared and raw tables mix; a single table under another name reads its prepared copy, too."""
    engine = DuckDBEngine(HOSPITAL_TABLES, HOSPITAL)
    wanted = as_dict(engine.run(whole_hospital(), salt=SALT))
    alias = BoundedPlan(
        source=Scan("visits", 'v"'), keys=(Column('v"', "ward", X),), domain=None, unit=Column('v"', "unit", N),
        measures=(Measure(counts=Counts.ROWS),), max_rows=9,
    )  # fmt: skip
    other = replace(alias, unit=Column('v"', "visit", N))
    for table in prepared:
        engine.prepare(table)
    assert as_dict(engine.run(whole_hospital(), salt=SALT)) == wanted
    assert as_dict(engine.run(alias, salt=SALT)) == {("A",): (3,), ("B",): (1,)}
    # A unit that the copy is not ordered by. The copy leaves out rows without the declared unit.
    known = (make_call("is_null", Column('v"', "unit", N)),)
    assert as_dict(engine.run(replace(other, keys=known, max_rows=1), salt=SALT))[False,] == (4,)
    lost = 1 if "visits" in prepared else 2
    assert as_dict(engine.run(other, salt=SALT)) == {("A",): (3,), ("B",): (lost,)}


def test_linked_tables_reach_their_unit() -> None:
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
    found = in_duckdb(relational.frames(tables), bounded, catalog, prepared=True)
    assert found and found == in_memory(tables, bounded, catalog)


@pytest.mark.parametrize("table", ["t", "s"])
def test_text_and_other_units_of_joins(table: str) -> None:
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
    found = in_duckdb(sources, bounded, catalog, prepared=True)
    assert found == in_memory({"t": one, "s": two}, bounded, catalog) and found[None, 1] == (1, 1)


def test_joins_fit_into_little_memory(tmp_path: Path) -> None:
    """Two million rows join two hundred thousand where DuckDB may hold 200 MB."""
    many, few = 2_000_000, 200_000
    rng = np.random.default_rng(1)
    visits = pa.table({"unit": rng.integers(0, few, many), "ward": rng.integers(0, 20, many), "cost": rng.random(many)})
    people = pa.table({"unit": np.arange(few), "region": rng.integers(0, 10, few)})
    pq.write_table(visits, tmp_path / "visits.parquet")
    pq.write_table(people, tmp_path / "people.parquet")
    catalog = catalog_of({"visits": ({"unit": N, "ward": N, "cost": R}, {}), "people": ({"unit": N, "region": N}, {})})
    unit = Column("visits", "unit", N)
    joined = Join(Scan("visits"), Scan("people"), JoinKind.INNER, ((unit, Column("people", "unit", N)),))
    sources = {name: tmp_path / f"{name}.parquet" for name in ("visits", "people")}
    engine = DuckDBEngine(sources, catalog, memory_limit="200MB", threads=2)
    bounded = BoundedPlan(
        source=joined, keys=(Column("people", "region", N),), domain=None, unit=unit,
        measures=(Measure(counts=Counts.UNITS), Measure(counts=Counts.ROWS)), max_groups=2, max_rows_per_group=100,
    )  # fmt: skip
    found = as_dict(engine.run(bounded, salt=SALT))
    assert sum(rows for _, rows in found.values()) == many
    assert sum(units for units, _ in found.values()) == len(np.unique(visits["unit"]))
    engine.close()
