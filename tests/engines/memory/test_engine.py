"""The oracle itself, by hand: what each relation, feature, measure and spread means, on rows that fit on a screen."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from discreet.bounding.contributions import BoundedPlan, Counts, Measure, Spread
from discreet.engines.memory.engine import MemoryEngine
from discreet.engines.memory.per_unit import compute_feature
from discreet.engines.memory.relations import RelationReader
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.expressions import Column, Expression
from discreet.plan.real_steps import MARGIN
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
    Window,
)
from discreet.plan.types import LARGEST_REAL, Type, Value
from discreet.privacy import Neighbours, Unit
from tests.engines.worlds import SALT

I, R, X, B = Type.INTEGER, Type.REAL, Type.TEXT, Type.BOOLEAN
KINDS = {"u": I, "k": X, "n": I, "r": R}
CATALOG = Catalog(
    tables={
        "t": TableFacts(
            name="t",
            columns={c: (k, ColumnFacts()) for c, k in KINDS.items()},
            unit=Unit("u"),
            limits=ContributionLimits(),
        )
    },
    neighbours=Neighbours.ADD_REMOVE,
)
T = Scan("t")
U, K, N, REAL = (Column("t", name, kind) for name, kind in KINDS.items())
ROWS: list[dict[str, Any]] = [
    {"u": 1, "k": "a", "n": 3, "r": 0.1},
    {"u": 1, "k": "a", "n": None, "r": 0.2},
    {"u": 1, "k": None, "n": 3, "r": 0.3},
    {"u": 2, "k": "b", "n": 5, "r": None},
]


def rows(relation: Relation, data: list[dict[str, Any]] | None = None) -> list[tuple[Value, ...]]:
    read = RelationReader({"t": ROWS if data is None else data}, CATALOG, SALT).read(relation)
    return sorted((tuple(row[column] for column in read.columns) for row in read.rows), key=repr)


def table(name: str, *values: Value, kind: Type = X) -> Values:
    return Values(name, (("x", kind),), tuple((value,) for value in values))


LEFT, RIGHT = table("l", "a", "a", "b", None), table("r", "a", "c", "c", None)
ON: tuple[tuple[Expression, Expression], ...] = ((Column("l", "x", X), Column("r", "x", X)),)


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        (JoinKind.INNER, [("a", "a"), ("a", "a")]),
        (JoinKind.LEFT, [("a", "a"), ("a", "a"), ("b", None), (None, None)]),
        (JoinKind.RIGHT, [("a", "a"), ("a", "a"), (None, "c"), (None, "c"), (None, None)]),
        (
            JoinKind.FULL,
            [("a", "a"), ("a", "a"), ("b", None), (None, "c"), (None, "c"), (None, None), (None, None)],
        ),
        (JoinKind.SEMI, [("a",), ("a",)]),
        (JoinKind.ANTI, [("b",), (None,)]),
    ],
)
def test_joins_never_match_null(kind: JoinKind, wanted: list[tuple[Value, ...]]) -> None:
    assert rows(Join(LEFT, RIGHT, kind, ON)) == wanted


def test_a_look_up_matches_keys_that_occur_once() -> None:
    twice = table("r", "a", "a", "b")
    assert rows(Join(LEFT, twice, JoinKind.INNER, ON, single=True)) == [("b", "b")]
    assert rows(Join(LEFT, twice, JoinKind.ANTI, ON, single=True)) == [("a",), ("a",), (None,)]


def test_a_join_without_pairs_is_all_with_all() -> None:
    assert len(rows(Join(LEFT, RIGHT, JoinKind.INNER, ()))) == 16
    assert rows(Join(table("l"), RIGHT, JoinKind.LEFT, ())) == []


def test_truncation_is_by_unit_and_then_by_value() -> None:
    """Three rows a unit and four a value remain on the left; rows without a unit or a value are left out."""
    data: list[dict[str, Any]] = [{"u": u, "k": "a", "n": i, "r": 0.0} for u in (1, 2, 3) for i in range(5)]
    data += [{"u": None, "k": "a", "n": 0, "r": 0.0}, {"u": 4, "k": None, "n": 0, "r": 0.0}]
    other = Scan("t", "s")
    caps = (Caps(U, 3, 4), Caps(Column("s", "u", I), 100, 2))
    joined = Join(T, other, JoinKind.INNER, ((K, Column("s", "k", X)),), caps=caps)
    assert len(rows(joined, data)) == 4 * 2
    wide = replace(joined, caps=(Caps(U, 3, 100), Caps(Column("s", "u", I), 1, 100)))
    assert len(rows(wide, data)) == 9 * 3
    assert rows(joined, data) == rows(joined, data[::-1]), "the order of rows shows"


def test_distinct_treats_nulls_as_equal() -> None:
    assert rows(Distinct(LEFT)) == [("a",), ("b",), (None,)]
    zero = Values("z", (("x", R),), ((0.0,), (-0.0,)))
    assert rows(Distinct(zero)) == [(0.0,)]


def test_unions_go_by_position() -> None:
    one, two = Projection(T, "a", (("x", K),)), Projection(LEFT, "b", (("other", Column("l", "x", X)),))
    assert len(rows(Union("u", (one, two)))) == 8


def feature(kind: Feature, argument: Expression | None, yields: Type) -> Value:
    """The feature for unit 1."""
    grouped = PerUnit(T, "g", (("u", U),), (("f", FeatureCall(kind, argument, yields)),))
    return next(value for unit, value in rows(grouped) if unit == 1)


@pytest.mark.parametrize(
    ("kind", "argument", "yields", "wanted"),
    [
        (Feature.COUNT, None, I, 3),
        (Feature.COUNT, N, I, 2),
        (Feature.COUNT_DISTINCT, N, I, 1),
        (Feature.COUNT_DISTINCT, K, I, 1),
        (Feature.SUM, N, I, 6),
        (Feature.SUM, REAL, R, math.fsum((0.1, 0.2, 0.3))),
        (Feature.MEAN, REAL, R, 0.2),
        (Feature.MEAN, N, R, 3.0),
        (Feature.MEDIAN, REAL, R, 0.2),
        (Feature.MIN, K, X, "a"),
        (Feature.MAX, REAL, R, 0.3),
    ],
)
def test_features(kind: Feature, argument: Expression | None, yields: Type, wanted: Value) -> None:
    assert feature(kind, argument, yields) == wanted


def over(kind: Feature, values: list[Value], type_: Type, yields: Type) -> Value:
    source = table("v", *values, kind=type_)
    ((found,),) = rows(PerUnit(source, "g", (), (("f", FeatureCall(kind, Column("v", "x", type_), yields)),)))
    return found


def test_features_at_their_edges() -> None:
    """NULL without values; integers beyond 64 bits are NULL, reals beyond doubles the largest; order never shows."""
    assert over(Feature.SUM, [None], I, I) is None and over(Feature.COUNT, [None], I, I) == 0
    assert over(Feature.SUM, [2**62, 2**62], I, I) is None
    assert over(Feature.MEAN, [2**62, 2**62], I, R) == float(2**62)
    assert over(Feature.SUM, [1e308, 1e308], R, R) == LARGEST_REAL
    assert over(Feature.MEDIAN, [1.0, 4.0, None], R, R) == 2.5
    assert over(Feature.MEDIAN, [1e308, 1.5e308], R, R) == LARGEST_REAL
    assert over(Feature.SUM, [1e16, 1.0, -1e16], R, R) == over(Feature.SUM, [-1e16, 1e16, 1.0], R, R)
    assert over(Feature.ANY, [None, False], B, B) is False and over(Feature.ALL, [None, True], B, B) is True
    assert over(Feature.ANY, [None], B, B) is None and over(Feature.ALL, [None], B, B) is None


def test_reals_are_added_in_steps() -> None:
    """Far below the last bit of a double, so that almost nothing is lost, and means stay between their values."""
    assert over(Feature.SUM, [1e20, 1.0, -1e20], R, R) == 1.0
    assert over(Feature.SUM, [0.1] * 10, R, R) == 1.0 == math.fsum([0.1] * 10)
    assert over(Feature.MEAN, [LARGEST_REAL] * 3, R, R) == LARGEST_REAL
    assert over(Feature.MEAN, [-LARGEST_REAL, LARGEST_REAL, 3.0], R, R) == 0.0  # 3 is less than a step
    assert over(Feature.SUM, [5e-324] * 3, R, R) == 0.0  # steps are not finer than 2^-1000
    for number in (0.1, 1 / 3, 1e-200, 1.7e308, 1 / 49):
        for count in (3, 7, 49):
            assert over(Feature.MEAN, [number] * count, R, R) == number


@given(some.lists(some.floats(-1e9, 1e9), min_size=1, max_size=20), some.sampled_from([None, 1e9, 1e9 * MARGIN]))
def test_reals_are_added_like_reals(values: list[float], size: float | None) -> None:
    """A sum is about as near to the true one as doubles are, a mean lies between its values, one value is itself."""

    def compute(kind: Feature, some_values: list[float]) -> float:
        found = compute_feature(FeatureCall(kind, REAL, R, size=size), [{REAL: value} for value in some_values])
        assert isinstance(found, float)
        return found

    lost = 2.0**-72  # a part of a step of the largest size
    off = compute(Feature.SUM, values) - math.fsum(values)
    assert abs(off) <= 2 * math.ulp(len(values) * max(map(abs, values))) + len(values) * lost
    assert min(values) - lost <= compute(Feature.MEAN, values) <= max(values) + lost
    for value in (each for each in values if abs(each) > 2.0**-20):
        assert compute(Feature.SUM, [value]) == compute(Feature.MEAN, [value] * 3) == value


def window(order: tuple[tuple[Expression, bool], ...], *computes: FeatureCall) -> list[tuple[Value, ...]]:
    """The new columns for the values 3, 1, NULL, 3, in the order of values."""
    source = Values("v", (("x", I), ("id", I)), ((3, 1), (1, 2), (None, 3), (3, 4)))
    features = tuple((f"f{i}", compute) for i, compute in enumerate(computes))
    read = RelationReader({}, CATALOG, SALT).read(Window(source, "w", (), order, features))
    found = {row[Column("v", "id", I)]: tuple(row[column] for column in read.columns[2:]) for row in read.rows}
    return [found[i] for i in (1, 2, 3, 4)]


XX = Column("v", "x", I)


@pytest.mark.parametrize(
    ("kind", "ascending", "descending"),
    [
        (Feature.ROW_NUMBER, (2, 1, 4, 3), (1, 3, 4, 2)),
        (Feature.RANK, (2, 1, 4, 2), (1, 3, 4, 1)),
        (Feature.DENSE_RANK, (2, 1, 3, 2), (1, 2, 3, 1)),
    ],
)
def test_places(kind: Feature, ascending: tuple[int, ...], descending: tuple[int, ...]) -> None:
    """NULLs come last either way; equal rows are told apart by their other values, in ascending order."""
    for order, wanted in ((((XX, False),), ascending), (((XX, True),), descending)):
        assert [place for (place,) in window(order, FeatureCall(kind, None, I))] == list(wanted)


def test_running_sums_include_peers() -> None:
    total, count = FeatureCall(Feature.SUM, XX, I), FeatureCall(Feature.COUNT, None, I)
    assert window(((XX, False),), total, count) == [(7, 3), (1, 1), (7, 4), (7, 3)]
    assert window((), total, count) == [(7, 4)] * 4


def test_lag_and_lead_look_along_the_whole_order() -> None:
    identity = Column("v", "id", I)
    before, after = FeatureCall(Feature.LAG, identity, I), FeatureCall(Feature.LEAD, identity, I, 2)
    assert window(((XX, False),), before, after) == [(2, 3), (None, 4), (4, None), (1, None)]


def bounded(**more: Any) -> BoundedPlan:
    given: dict[str, Any] = {"source": T, "keys": (K,), "domain": None, "unit": U, "measures": ()}
    return BoundedPlan(**{**given, **more})


def answer(question: BoundedPlan, data: list[dict[str, Any]]) -> dict[Any, Any]:
    groups = MemoryEngine({"t": data}, CATALOG).run(question, salt=SALT)
    spreads = [[dict(zip(c.tolist(), n.tolist())) for c, n in spread] for spread in groups.spreads]
    return {key: [column[i] for column in (*groups.values, *spreads)] for i, key in enumerate(groups.keys)}


def person(unit: int, key: str, *numbers: int | None) -> list[dict[str, Any]]:
    return [{"u": unit, "k": key, "n": number, "r": None} for number in numbers]


def test_distinct_values_are_those_that_some_unit_brings() -> None:
    """As many of a unit's values as it may bring; a value that two have counts once."""
    measure = Measure(counts=Counts.DISTINCT, argument=N, max_values=9)
    data = [*person(1, "a", 1, 1, 2, None), *person(2, "a", 2, 2), *person(3, "b", None)]
    assert answer(bounded(measures=(measure,), max_rows_per_group=9), data) == {("a",): [2], ("b",): [0]}
    narrow = bounded(measures=(replace(measure, max_values=2),), max_rows_per_group=9)
    assert answer(narrow, person(1, "a", 1, 2, 3)) == {("a",): [2]}
    several = answer(narrow, [*person(1, "a", 1, 2), *person(1, "b", 1, 2)])
    assert sum(count for (count,) in several.values()) == 2  # in all groups together


def test_a_value_that_is_taken_leaves_room_for_another() -> None:
    """Two people with values in common bring two of them; with one value in common and no other, they bring that."""
    measure = Measure(counts=Counts.DISTINCT, argument=N, max_values=1)
    question = bounded(measures=(measure,), max_rows_per_group=9)
    assert answer(question, [*person(1, "a", 1, 2, 3), *person(2, "a", 1, 2, 3)]) == {("a",): [2]}
    assert answer(question, [*person(1, "a", 1), *person(2, "a", 1)]) == {("a",): [1]}


def test_weights_shrink_with_the_number_of_groups() -> None:
    """⌊√(100²/g)⌋ in each of g groups."""
    measure = Measure(counts=Counts.WEIGHT, last=100)
    data = [*person(1, "a", 1), *person(1, "b", 1), *person(1, "c", 1), *person(2, "a", 1)]
    assert answer(bounded(measures=(measure,), max_rows_per_group=1), data) == {
        ("a",): [157],
        ("b",): [57],
        ("c",): [57],
    }


def test_units_with_a_value() -> None:
    measure = Measure(counts=Counts.UNITS, argument=N)
    data = [*person(1, "a", None, 1), *person(2, "a", None)]
    assert answer(bounded(measures=(measure,), max_rows_per_group=1), data) == {("a",): [1]}


def test_partial_bounds_replace_the_scaling() -> None:
    """Nine rows count as nine where a unit may add up to nine, though one row is allowed; and no more than that."""
    steps = Measure(counts=Counts.STEPS, argument=N, first=-(2**50), last=2**50, partial=(-5, 9))
    count = Measure(counts=Counts.ROWS, partial=(2, 4))
    wide = bounded(measures=(steps, count), max_rows_per_group=1)
    assert answer(wide, person(1, "a", 1, 2, 3)) == {("a",): [6, 3]}
    assert answer(wide, person(1, "a", 100, 100, 100, 100, 100)) == {("a",): [9, 4]}
    assert answer(wide, person(1, "a", -100)) == {("a",): [-5, 2]}


COUNT, SUM = Measure(counts=Counts.ROWS), Measure(counts=Counts.STEPS, argument=N, first=-9, last=9)


def test_rows_beyond_a_limit_weigh_less() -> None:
    """Ten rows where four are allowed weigh ⌊4·2^10/10⌋ = 409 each; three rows weigh 1024; NULL adds nothing."""
    data = [*person(1, "a", *range(6)), *person(1, "b", 1, 1, 1, None), *person(2, "b", 1, 5, None)]
    few = bounded(measures=(COUNT, SUM), max_rows=4, weight_bits=10)
    assert answer(few, data) == {("a",): [6 * 409, 15 * 409], ("b",): [4 * 409 + 3 * 1024, 3 * 409 + 6 * 1024]}


def test_groups_beyond_a_limit_weigh_less() -> None:
    """Three groups where two are allowed: each weighs ⌊2^10·2/3⌋ = 682; four rows where one is: 256 each, of those."""
    units = Measure(counts=Counts.UNITS)
    data = [*person(1, "a", 1, 1, 1, 1), *person(1, "b", 2), *person(1, "c", 3), *person(2, "a", 1)]
    plan = bounded(measures=(COUNT, SUM, units), max_groups=2, max_rows_per_group=1, weight_bits=10)
    each = 256 * 682 >> 10
    assert answer(plan, data) == {
        ("a",): [4 * each + 1024, 4 * each + 1024, 682 + 1024],
        ("b",): [682, 2 * 682, 682],
        ("c",): [682, 3 * 682, 682],
    }


def test_totals_of_one_group_are_rounded_to_whole_steps() -> None:
    """Three rows at ⌊2^10/3⌋ = 341: 1023 parts are one row; the sum 7 · 341 is 2387 parts, which is 2.33, so 2."""
    plan = bounded(keys=(), measures=(COUNT, SUM), max_rows=1, weight_bits=10)
    assert answer(plan, person(1, "a", 1, 2, 4)) == {(): [1, 2]}


def test_spreads_weigh_rows() -> None:
    """In one limit for all rows, and in groups: three groups in bundles of two weigh a half each."""
    spread = Spread(argument=N, first=0, last=99)
    data = [*person(1, "a", 5, 5, 7, None), *person(1, "b", 5), *person(1, "c", 5)]
    total = answer(bounded(spreads=(spread,), max_rows=3, weight_bits=10), data)
    assert total == {("a",): [{5: 1024, 7: 512}], ("b",): [{5: 512}], ("c",): [{5: 512}]}
    grouped = answer(bounded(spreads=(spread,), max_groups=2, max_rows_per_group=2, weight_bits=10), data)
    assert grouped == {("a",): [{5: 512, 7: 256}], ("b",): [{5: 512}], ("c",): [{5: 512}]}


def test_named_units_are_chosen_by_lot() -> None:
    """A unit in three groups is named in two of them, and counts in whole numbers."""
    data = [*person(1, "a", 1), *person(1, "b", 1), *person(1, "c", 1)]
    named = bounded(measures=(Measure(counts=Counts.NAMED),), max_groups=2, max_rows_per_group=1, weight_bits=10)
    assert sorted(value for (value,) in answer(named, data).values()) == [0, 1, 1]


def test_spreads_by_cell_and_by_value() -> None:
    """Values are clamped to cells; among listed values others count nowhere; a group without values is empty."""
    cells = Spread(argument=N, resolution=Fraction(2), first=0, last=3)
    listed = Spread(argument=N, first=0, last=1, values=(7, 1))
    data = [*person(1, "a", 1, 7, 100), *person(2, "a", 7), *person(3, "b", None)]
    found = answer(bounded(spreads=(cells, listed), max_rows_per_group=9), data)
    assert found == {("a",): [{1: 1, 3: 3}, {0: 2, 1: 1}], ("b",): [{}, {}]}


def test_rows_as_units_are_each_their_own() -> None:
    """Without a unit every row is kept as it is, and partial bounds hold for each row."""
    measure = Measure(counts=Counts.STEPS, argument=N, first=-9, last=9, partial=(0, 2))
    question = bounded(unit=None, measures=(measure,), spread_rows=5)
    assert answer(question, person(1, "a", 1, 5, 5)) == {("a",): [5]}
