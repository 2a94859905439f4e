"""What no front end would write: plans and questions that are not well formed are refused; facts hold on the rest."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from discreet.bounding.bound import bound, bound_all
from discreet.bounding.stability import find_relation_facts
from discreet.engines.memory.relations import RelationReader
from discreet.errors import DiscreetError, InternalError, UnitLost, UsageError
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits
from discreet.plan.expressions import Call, Column, Literal, ReleasedValue
from discreet.plan.functions import make_call, make_literal
from discreet.plan.nodes import Aggregate, Question
from discreet.plan.relations import (
    Caps,
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
from discreet.plan.statistics.definitions import Statistic
from discreet.plan.types import Type, Value
from discreet.privacy import Unit
from tests.bounding.test_stability import (
    AGE,
    CAPS,
    CATALOG,
    NOTHING,
    PATIENT,
    PEOPLE,
    PID,
    STAY_COST,
    STAY_WARD,
    STAYS,
    TABLES,
    WARD,
    WARD_WARD,
    WARDS,
    B,
    I,
    N,
    R,
    X,
    of,
    part,
)
from tests.engines.relational import Maker, a_catalog, all_tables

DAY = make_literal(dt.date(2024, 1, 1))
MALFORMED: dict[str, Relation] = {
    "no such table": Scan("secrets"),
    "a column of another table": Where(STAYS, make_call("equal", PID, make_literal(1))),
    "a column with another type": Where(STAYS, make_call("equal", Column("stays", "patient", X), make_literal("1"))),
    "a condition that is a number": Where(STAYS, PATIENT),
    "a condition about a released number": Where(STAYS, make_call("equal", ReleasedValue(0, "n", I), make_literal(1))),
    "an unknown function": Where(STAYS, Call("is_rich", (PATIENT,), B)),
    "a function of other types": Where(STAYS, Call("contains", (PATIENT, make_literal("x")), B)),
    "a function that lies about its type": Where(STAYS, Call("abs", (PATIENT,), B)),
    "a pattern from the data": Where(STAYS, Call("like", (STAY_WARD, STAY_WARD), B)),
    "a part of a date that is none": Projection(STAYS, "d", (("x", Call("part", (make_literal("eon"), DAY), I)),)),
    "a constant that lies": Where(STAYS, make_call("equal", PATIENT, Literal("1", I))),
    "a constant beyond 64 bits": Where(STAYS, make_call("equal", PATIENT, Literal(2**70, I))),
    "a constant that is not finite": Where(STAYS, make_call("equal", STAY_COST, Literal(float("nan"), R))),
    "a column twice": Projection(STAYS, "d", (("p", PATIENT), ("p", make_literal(1)))),
    "no columns": Projection(STAYS, "d", ()),
    "a key and a feature with one name": PerUnit(STAYS, "g", (("p", PATIENT),), (("p", N),)),
    "a median over a window": Window(STAYS, "w", (PATIENT,), (), (("m", FeatureCall(Feature.MEDIAN, STAY_COST, R)),)),
    "a window that covers the unit": Window(STAYS, "stays", (PATIENT,), (), (("patient", N),)),
    "two sides with one name": Join(STAYS, STAYS, JoinKind.INNER, ((PATIENT, PATIENT),)),
    "public rows that cover the unit": Join(
        STAYS, Values("stays", (("patient", I),), ((1,),)), JoinKind.INNER, ((make_literal(1), PATIENT),)
    ),
    "sides the wrong way round": Join(PEOPLE, STAYS, JoinKind.INNER, ((PATIENT, PID),)),
    "sides of two types": Join(STAYS, WARDS, JoinKind.INNER, ((PATIENT, WARD_WARD),)),
    "a real beside an integer": Join(STAYS, WARDS, JoinKind.INNER, ((STAY_COST, Column("wards", "floor", I)),)),
    "a rank without a window": PerUnit(STAYS, "g", (("p", PATIENT),), (("r", FeatureCall(Feature.RANK, None, I)),)),
    "a sum of texts": PerUnit(STAYS, "g", (("p", PATIENT),), (("r", FeatureCall(Feature.SUM, STAY_WARD, I)),)),
    "a sum of nothing": PerUnit(STAYS, "g", (("p", PATIENT),), (("r", FeatureCall(Feature.SUM, None, I)),)),
    "a maximum that lies": PerUnit(STAYS, "g", (("p", PATIENT),), (("r", FeatureCall(Feature.MAX, STAY_WARD, I)),)),
    "a lag backwards": Window(STAYS, "w", (PATIENT,), (), (("l", FeatureCall(Feature.LAG, STAY_WARD, X, -1)),)),
    "a union of nothing": Union("u", ()),
    "a union of other widths": Union("u", (part(STAYS, "a", PATIENT), part(STAYS, "b", PATIENT, STAY_WARD))),
    "a union of other types": Union("u", (part(STAYS, "a", PATIENT, STAY_COST), part(STAYS, "b", PATIENT, STAY_WARD))),
    "values of other types": Values("v", (("x", I),), (("a",),)),
    "values of another width": Values("v", (("x", I),), ((1, 2),)),
    "values that are not finite": Values("v", (("x", R),), ((float("inf"),),)),
}  # fmt: skip


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_plans_are_refused(name: str) -> None:
    """A question is a plain value that anybody can write; what does not fit is refused before anything is read."""
    with pytest.raises(UsageError, match=r"Nothing was charged\.$"):
        of(MALFORMED[name])


def test_tables_of_two_units_are_refused() -> None:
    tables = {**TABLES, "people": replace(TABLES["people"], unit=Unit("age"))}
    with pytest.raises(InternalError, match="different units"):
        of(STAYS, Catalog(tables=tables, neighbours=CATALOG.neighbours))


def test_units_of_two_types_are_refused() -> None:
    """Even where the join is by something else: nobody could say which rows go together."""
    tables = {**TABLES, "people": replace(TABLES["people"], columns={"pid": (X, NOTHING), "age": (I, AGE)})}
    caps = (Caps(Column("people", "pid", X), 1, 1), CAPS[0])
    joined = Join(PEOPLE, STAYS, JoinKind.INNER, ((Column("people", "age", I), Column("stays", "id", I)),), caps=caps)
    with pytest.raises(UnitLost, match="same type"):
        of(joined, Catalog(tables=tables, neighbours=CATALOG.neighbours))


COUNTED = Question(source=STAYS, keys=(STAY_WARD,), aggregates=(Aggregate(Statistic.COUNT),))


@pytest.mark.parametrize(
    "change",
    [
        {"limits": ContributionLimits(max_rows=-1)},
        {"limits": ContributionLimits(max_rows=0)},
        {"limits": ContributionLimits(max_groups=-2, max_rows_per_group=1)},
        {"limits": ContributionLimits(max_rows_per_group=True)},
        {"limits": ContributionLimits(max_rows=2.5)},  # type: ignore[arg-type]  # what an analyst might write
        {"min_units": -3, "keys": (Column("stays", "id", I),)},
        {"sets": ((0, 0),)},
        {"sets": ((1,),)},
        {"sets": ((-1,),)},
        {"keys": (PID,)},
        {"keys": (ReleasedValue(0, "ward", X),)},
        {"aggregates": (Aggregate(Statistic.SUM, Call("abs", (STAY_WARD,), I)),)},
        {"aggregates": (Aggregate(Statistic.COUNT_DISTINCT, PID),)},
        {"aggregates": (Aggregate(Statistic.COUNT, bounds=(float("nan"), float("inf"))),)},  # type: ignore[arg-type]  # no
    ],
)
def test_malformed_questions_are_refused(change: dict[str, Any]) -> None:
    """A negative limit would claim a negative sensitivity."""
    with pytest.raises(UsageError, match=r"Nothing was charged\.$"):
        bound_all(replace(COUNTED, **change), CATALOG)


def test_the_question_itself_is_fine() -> None:
    """The control of the refusals above."""
    found = bound(replace(COUNTED, limits=ContributionLimits(max_rows=5)), CATALOG).bounded
    assert found.max_rows == 5


def test_a_group_is_answered_once() -> None:
    """Keys that are listed twice would be two noisy answers about the same rows for the price of one."""
    ward = (X, replace(WARD, keys=("A", "B", "A")))
    tables = {**TABLES, "stays": replace(TABLES["stays"], columns={**TABLES["stays"].columns, "ward": ward})}
    found = bound(COUNTED, Catalog(tables=tables, neighbours=CATALOG.neighbours)).bounded
    assert found.domain == (("A",), ("B",))


# Facts hold


def clean(value: Value, kind: Type, facts: ColumnFacts, rng: random.Random) -> Value:
    """A value that keeps the declarations of its column."""
    if facts.keys is not None:
        return value if value in facts.keys else facts.keys[0]
    if facts.low is None or facts.high is None:
        return None if isinstance(value, float) and not abs(value) < 1e9 else value
    return float(rng.randrange(int(4 * facts.low), int(4 * facts.high) + 1)) / 4 if kind is R else int(facts.low)


def test_facts_hold_where_the_data_keeps_its_declarations() -> None:
    """Random accepted relations over tables that keep the codebook's word, with limits that nobody reaches.

    Then bounds, keys and nullability hold row by row. (Where data or limits do not keep it, engines clamp and drop.)
    """
    checked = 0
    for seed in range(150):
        rng = random.Random(seed)  # noqa: S311  # worlds need seeds, not secrets
        declared = a_catalog(rng, row_units=seed % 7 == 0)
        limits = ContributionLimits(max_rows=10**4)
        listed = {"ward": ColumnFacts(keys=("A", "B", "", None)), "sex": ColumnFacts(keys=("f", "m", None))}
        tables = {
            name: replace(t, limits=limits, columns={c: (k, listed.get(c, f)) for c, (k, f) in t.columns.items()})
            for name, t in declared.tables.items()
        }
        catalog = Catalog(tables=tables, neighbours=declared.neighbours)
        data = {
            name: [{c: clean(v, *tables[name].columns[c], rng) for c, v in row.items()} for row in rows]
            for name, rows in all_tables(rng, 3, 3).items()
        }
        relation = Maker(rng, catalog).relation(rng.randrange(1, 4))
        found = find_relation_facts(relation, catalog)
        read = RelationReader(data, catalog, bytes(16)).read(relation)
        assert set(read.columns) == set(found.columns)
        for row in read.rows:
            for column in read.columns:
                checked += 1
                assert keeps(row[column], found.find_facts(column)), (
                    seed,
                    column,
                    row[column],
                    found.find_facts(column),
                )
    assert checked > 2000


def keeps(value: Value, facts: ColumnFacts) -> bool:
    """Whether a value is as the facts say; doubles may be off by their own rounding."""
    if facts.keys is not None and value not in facts.keys:
        return False
    if value is None:
        return facts.nullable
    if isinstance(value, bool) or not isinstance(value, int | float):
        return True
    slack = Fraction(1, 10**6)
    low, high = facts.low, facts.high
    return (low is None or value >= low - slack) and (high is None or value <= high + slack)


def test_refusals_are_errors_of_ours() -> None:
    """Whatever is written into a plan, nothing but a refusal comes out."""
    for relation in (*MALFORMED.values(), Join(Scan("labs"), Scan("labs"), JoinKind.INNER, ())):
        with pytest.raises(DiscreetError):
            of(relation)
