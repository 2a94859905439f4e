"""Stability, rule by rule: whose rows a relation holds, what is known of its columns, and what is refused and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from discreet.bounding.bound import bound
from discreet.bounding.contributions import Counts, Measure, sensitivity
from discreet.bounding.limits import find_reference, have_key
from discreet.bounding.relation_facts import Owner, RelationFacts
from discreet.bounding.stability import find_relation_facts
from discreet.errors import InternalError, UnitLost
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, Link, TableFacts
from discreet.plan.expressions import Column, Expression
from discreet.plan.functions import make_call, make_literal
from discreet.plan.nodes import Aggregate, Question
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
from discreet.plan.statistics.definitions import Statistic
from discreet.plan.types import Type
from discreet.privacy import Neighbours, Unit
from tests.worlds.tables import HOSPITAL

I, R, X, B = Type.INTEGER, Type.REAL, Type.TEXT, Type.BOOLEAN
AGE = ColumnFacts(nullable=False, low=Fraction(0), high=Fraction(110), resolution=Fraction(1), constant=True)
COST = ColumnFacts(low=Fraction(-2), high=Fraction(10), resolution=Fraction(1, 2))
WARD = ColumnFacts(nullable=False, keys=("A", "B"), frequency=4)


def test_a_foreign_key_is_followed_by_all_of_its_columns() -> None:
    """Otherwise a join that follows a part of it would leave out rows, as if there were one at most."""
    child, parent = Scan("doses", "d"), Scan("treatments", "t")
    clinic = (Column("d", "clinic", X), Column("t", "clinic", X))
    number = (Column("d", "treatment", I), Column("t", "number", I))
    other = (Column("d", "treatment", I), Column("t", "hours", I))
    assert find_reference([number, other, clinic], child, parent, HOSPITAL) == (clinic, number)
    assert not any(find_reference(some, child, parent, HOSPITAL) for some in ([clinic], [number], [clinic, other], []))
    assert not find_reference([pair[::-1] for pair in (clinic, number)], parent, child, HOSPITAL)
    assert have_key([clinic[0], number[0]], child, HOSPITAL)
    assert not have_key([clinic[0]], child, HOSPITAL) and not have_key([clinic[1], number[1]], parent, HOSPITAL)


def table(
    name: str, columns: dict[str, tuple[Type, ColumnFacts]], limits: ContributionLimits, **more: Any
) -> TableFacts:
    return TableFacts(name=name, columns=columns, unit=Unit("pid"), limits=limits, **more)


NOTHING = ColumnFacts()
TABLES = {
    "people": table("people", {"pid": (I, NOTHING), "age": (I, AGE)}, ContributionLimits(max_rows=1)),
    "stays": table(
        "stays",
        {"patient": (I, NOTHING), "id": (I, ColumnFacts(unique=True)), "ward": (X, WARD), "cost": (R, COST)},
        ContributionLimits(max_groups=3, max_rows_per_group=2),
        owner="patient",
    ),
    "labs": table(
        "labs",
        {"stay": (I, NOTHING), "value": (R, COST)},
        ContributionLimits(max_rows=7),
        link=Link(("stay",), "stays", ("ID",)),
    ),
    "wards": table(
        "wards", {"ward": (X, replace(WARD, unique=True)), "floor": (I, NOTHING)}, ContributionLimits(), public=True
    ),
}
CATALOG = Catalog(tables=TABLES, neighbours=Neighbours.ADD_REMOVE, count_public=lambda *_: 3)
ROWS = Catalog(
    tables={n: replace(t, unit=Unit(), link=None, owner=None) for n, t in TABLES.items()},
    neighbours=Neighbours.ADD_REMOVE,
)

PEOPLE, STAYS, WARDS = Scan("people"), Scan("stays"), Scan("wards")
PID, PATIENT = Column("people", "pid", I), Column("stays", "patient", I)
STAY_WARD, STAY_COST = Column("stays", "ward", X), Column("stays", "cost", R)
WARD_WARD = Column("wards", "ward", X)
ON_UNIT = ((PID, PATIENT),)
ON_WARD = ((STAY_WARD, WARD_WARD),)
N = FeatureCall(Feature.COUNT, None, I)


def of(relation: Relation, catalog: Catalog = CATALOG) -> RelationFacts:
    return find_relation_facts(relation, catalog)


def facts(relation: Relation, table: str, name: str) -> ColumnFacts:
    found = of(relation)
    (only,) = [column for column in found.columns if (column.table, column.name) == (table, name)]
    return found.find_facts(only)


def names(relation: Relation) -> list[str]:
    return [f"{column.table}.{column.name}" for column in of(relation).columns]


# Tables and public rows


def test_a_table_names_its_unit() -> None:
    """By the unit's name, or by the column that the codebook says; under an alias, the alias is in all names."""
    assert of(PEOPLE).units == (PID,) and of(PEOPLE).owner is Owner.UNIT
    other = of(Scan("stays", "s"))
    assert other.unit == Column("s", "patient", I) and other.limits == TABLES["stays"].limits
    assert all(column.table == "s" for column in other.columns)


def test_public_tables_and_row_units() -> None:
    assert of(WARDS).owner is Owner.NOBODY and not of(WARDS).private
    assert of(STAYS, ROWS).owner is Owner.ROW and of(STAYS, ROWS).unit is None


def test_a_table_without_its_unit_is_lost_until_it_is_reached() -> None:
    """The rows of a linked table belong to nobody one could name, except by the declared foreign key."""
    assert of(Scan("labs")).owner is Owner.LOST
    reached = reach("labs", CATALOG)
    found = of(reached.relation)
    assert found.owner is Owner.UNIT and found.units == (reached.unit,)
    assert found.limits == TABLES["labs"].limits


def test_a_link_is_found_whatever_its_case() -> None:
    """The codebook may write the key in other letters than the table it refers to."""
    assert isinstance(reach("labs", CATALOG).relation, Join)
    assert "labs to stays.key" in names(reach("labs", CATALOG).relation)


def test_a_table_reached_twice_has_two_names() -> None:
    one, two = reach("labs", CATALOG, "a"), reach("labs", CATALOG, "b")
    assert one.unit is not None and two.unit is not None
    joined = Join(one.relation, two.relation, JoinKind.INNER, ((one.unit, two.unit),))
    assert of(joined).units == (one.unit, two.unit)


@pytest.mark.parametrize("change", ["kind", "on", "filtered", "other"])
def test_a_unit_is_reached_in_no_other_way(change: str) -> None:
    """Any other join of a linked table would let the analyst choose whose rows they are."""
    right = reach("labs", CATALOG).relation
    assert isinstance(right, Join)
    key = Column("labs to stays", "key", I)
    wrong = {
        "kind": replace(right, kind=JoinKind.LEFT),
        "on": replace(right, on=((make_literal(1), key),)),
        "filtered": replace(right, left=Where(Scan("labs"), make_literal(True))),
        "other": Join(Scan("labs"), PEOPLE, JoinKind.INNER, ((Column("labs", "stay", I), PID),)),
    }[change]
    with pytest.raises(UnitLost, match="whose they are"):
        of(wrong)


def test_values_tell_everything_about_themselves() -> None:
    rows = ((1, "a", None), (3, "a", 0.5))
    relation = Values("v", (("n", I), ("x", X), ("r", R)), rows)
    assert of(relation).owner is Owner.NOBODY
    assert facts(relation, "v", "n") == ColumnFacts(
        nullable=False, low=Fraction(1), high=Fraction(3), keys=(1, 3), resolution=Fraction(1), unique=True
    )
    assert facts(relation, "v", "x").unique is False and facts(relation, "v", "x").keys == ("a",)
    assert facts(relation, "v", "r").nullable and facts(relation, "v", "r").keys == (0.5, None)


# Conditions and new columns


def test_conditions_change_nothing_that_is_known() -> None:
    assert of(Where(STAYS, make_call("equal", STAY_WARD, make_literal("A")))) == of(STAYS)


def test_new_columns_have_their_own_facts_and_keep_the_unit() -> None:
    """Facts follow the expression, never the name; the unit may be kept under any name, and twice."""
    double = make_call("multiply", STAY_COST, make_literal(2))
    made = Projection(STAYS, "d", (("patient", double), ("who", PATIENT), ("again", PATIENT)))
    assert of(made).units == (Column("d", "who", I), Column("d", "again", I))
    assert (facts(made, "d", "patient").low, facts(made, "d", "patient").high) == (Fraction(-4), Fraction(20))
    assert names(made) == ["d.patient", "d.who", "d.again"]


def test_rows_that_drop_their_unit_are_lost() -> None:
    """A function of the unit is not the unit, not even one that looks harmless."""
    for column in (
        STAY_WARD,
        make_call("add", PATIENT, make_literal(0)),
        make_call("coalesce", PATIENT, make_literal(1)),
    ):
        bare = Projection(STAYS, "d", (("x", column),))
        assert of(bare).owner is Owner.LOST
        with pytest.raises(UnitLost, match="whose they are"):
            of(Distinct(bare))
        with pytest.raises(UnitLost, match="whose they are"):
            bound(Question(source=bare, aggregates=(Aggregate(Statistic.COUNT),)), CATALOG)


# Joins


@pytest.mark.parametrize(
    ("kind", "units"),
    [
        (JoinKind.INNER, (PID, PATIENT)),
        (JoinKind.LEFT, (PID,)),
        (JoinKind.RIGHT, (PATIENT,)),
        (JoinKind.FULL, (make_call("coalesce", PID, PATIENT),)),
        (JoinKind.SEMI, (PID,)),
        (JoinKind.ANTI, (PID,)),
    ],
)
def test_joins_on_the_unit_keep_it(kind: JoinKind, units: tuple[Expression, ...]) -> None:
    """The unit is where a row always has one; the side that may be missing is nullable."""
    joined = Join(PEOPLE, STAYS, kind, ON_UNIT)
    assert of(joined).owner is Owner.UNIT and of(joined).units == units
    if kind in (JoinKind.SEMI, JoinKind.ANTI):
        assert of(joined).columns == of(PEOPLE).columns and of(joined).limits == of(PEOPLE).limits
        return
    assert facts(joined, "people", "age").nullable is (kind in (JoinKind.RIGHT, JoinKind.FULL))
    assert facts(joined, "stays", "ward").nullable is (kind in (JoinKind.LEFT, JoinKind.FULL))
    missing = ("A", "B", None) if kind in (JoinKind.LEFT, JoinKind.FULL) else ("A", "B")
    assert facts(joined, "stays", "ward").keys == missing
    assert facts(joined, "stays", "id").unique is False


@pytest.mark.parametrize(
    ("left", "right", "wanted"),
    [
        (ContributionLimits(max_rows=2), ContributionLimits(max_rows=5), ContributionLimits(max_rows=10)),
        (
            ContributionLimits(max_groups=2, max_rows_per_group=3),
            ContributionLimits(max_groups=4, max_rows_per_group=5),
            ContributionLimits(max_groups=4, max_rows_per_group=15),
        ),
        (
            ContributionLimits(max_rows=2),
            ContributionLimits(max_groups=4, max_rows_per_group=5),
            ContributionLimits(max_groups=4, max_rows_per_group=10),
        ),
    ],
)
def test_limits_of_joins_multiply(
    left: ContributionLimits, right: ContributionLimits, wanted: ContributionLimits
) -> None:
    tables = {**TABLES}
    tables["people"] = replace(TABLES["people"], limits=left)
    tables["stays"] = replace(TABLES["stays"], limits=right)
    for one, two in ((PEOPLE, STAYS), (STAYS, PEOPLE)):
        on = ON_UNIT if one is PEOPLE else ((PATIENT, PID),)
        assert (
            of(Join(one, two, JoinKind.INNER, on), Catalog(tables=tables, neighbours=CATALOG.neighbours)).limits
            == wanted
        )


@pytest.mark.parametrize("kind", list(JoinKind))
def test_joins_of_other_units_are_refused_with_the_condition(kind: JoinKind) -> None:
    """The missing condition is spelled out; nothing but the units themselves will do."""
    near = ((PID, Column("stays", "id", I)), (make_call("add", PID, make_literal(0)), PATIENT))
    for on in ((), near, ((PATIENT, PID),)[:0]):
        with pytest.raises(UnitLost, match=r"Add ON people\.pid = stays\.patient"):
            of(Join(PEOPLE, STAYS, kind, on))


ALLOWED_BESIDE_PUBLIC = {
    (True, JoinKind.INNER), (True, JoinKind.LEFT), (True, JoinKind.SEMI), (True, JoinKind.ANTI),
    (False, JoinKind.INNER), (False, JoinKind.RIGHT),
}  # fmt: skip


@pytest.mark.parametrize("private_first", [True, False])
@pytest.mark.parametrize("kind", list(JoinKind))
def test_public_rows_beside_private_ones(kind: JoinKind, private_first: bool) -> None:
    """Public rows without a partner would show that nobody is there."""
    joined = Join(STAYS, WARDS, kind, ON_WARD) if private_first else Join(WARDS, STAYS, kind, ((WARD_WARD, STAY_WARD),))
    if (private_first, kind) in ALLOWED_BESIDE_PUBLIC:
        assert of(joined).units == (PATIENT,) and of(joined).limits == TABLES["stays"].limits
    else:
        with pytest.raises(UnitLost, match="belong to nobody"):
            of(joined)


def test_public_rows_are_constant_for_nobody() -> None:
    tables = {**TABLES, "wards": replace(TABLES["wards"], columns={"ward": (X, WARD), "floor": (I, AGE)})}
    found = of(Join(STAYS, WARDS, JoinKind.INNER, ON_WARD), replace(CATALOG, tables=tables))
    assert found.find_facts(Column("wards", "floor", I)).constant is False


def test_a_row_unit_matches_one_public_row() -> None:
    """Look-ups are fine, as is asking whether there is a match; anything else would copy a unit."""
    for kind in (JoinKind.INNER, JoinKind.LEFT):
        assert of(Join(STAYS, WARDS, kind, ON_WARD, single=True), ROWS).owner is Owner.ROW
        with pytest.raises(UnitLost, match="one public row at most"):
            of(Join(STAYS, WARDS, kind, ON_WARD), ROWS)
    assert of(Join(STAYS, WARDS, JoinKind.ANTI, ON_WARD), ROWS).owner is Owner.ROW
    with pytest.raises(UnitLost, match="one public row at most"):
        of(Join(WARDS, STAYS, JoinKind.INNER, ((WARD_WARD, STAY_WARD),), single=False), ROWS)
    with pytest.raises(UnitLost, match="two private tables"):
        of(Join(PEOPLE, STAYS, JoinKind.SEMI, ON_UNIT), ROWS)


def test_only_public_rows_are_looked_up() -> None:
    with pytest.raises(InternalError, match="look-up"):
        of(Join(PEOPLE, STAYS, JoinKind.INNER, ON_UNIT, single=True))


def test_public_joins_stay_public() -> None:
    other = Values("v", (("w", X),), (("A",),))
    joined = Join(WARDS, other, JoinKind.FULL, ((WARD_WARD, Column("v", "w", X)),))
    assert of(joined).owner is Owner.NOBODY and facts(joined, "v", "w").nullable


# Joins of different units

SECOND = Scan("stays", "s")
BY_WARD = ((STAY_WARD, Column("s", "ward", X)),)
CAPS = (Caps(PATIENT, 2, 3), Caps(Column("s", "patient", I), 5, 7))
MIXED = Join(STAYS, SECOND, JoinKind.INNER, BY_WARD, caps=CAPS)


def test_a_truncated_join_says_how_far_a_unit_spreads() -> None:
    """Two rows of a unit come or go, each moves another, and each pairs with up to seven; likewise the other way."""
    assert of(MIXED).owner is Owner.MIXED and of(MIXED).unit is None
    assert of(MIXED).spread_rows == 2 * 2 * 7 + 2 * 5 * 3


@pytest.mark.parametrize("kind", [kind for kind in JoinKind if kind is not JoinKind.INNER])
def test_only_plain_joins_can_be_truncated(kind: JoinKind) -> None:
    with pytest.raises(UnitLost, match="different units"):
        of(replace(MIXED, kind=kind))


def test_truncation_is_by_unit_and_by_value() -> None:
    for caps in (
        (replace(CAPS[0], unit=make_literal(1)), CAPS[1]),
        (CAPS[0], replace(CAPS[1], unit=Column("s", "id", I))),
    ):
        with pytest.raises(InternalError, match="not by unit"):
            of(replace(MIXED, caps=caps))
    with pytest.raises(InternalError, match="not by unit"):
        of(replace(MIXED, on=()))


def test_truncation_is_refused_where_units_are_kept_apart() -> None:
    """There it would make one unit's rows depend on another's."""
    caps = (Caps(PATIENT, 2, 3), Caps(Column("wards", "floor", I), 2, 3))
    with pytest.raises(UnitLost, match="depend on other units"):
        of(Join(STAYS, WARDS, JoinKind.INNER, ON_WARD, caps=caps))
    with pytest.raises(UnitLost, match="depend on other units"):
        of(Join(PEOPLE, STAYS, JoinKind.INNER, ON_UNIT, caps=(Caps(PID, 1, 1), CAPS[0])))


@pytest.mark.parametrize(
    "further",
    [
        lambda mixed: Join(mixed, PEOPLE, JoinKind.INNER, ((PATIENT, PID),)),
        lambda mixed: Join(PEOPLE, mixed, JoinKind.SEMI, ON_UNIT),
        lambda mixed: PerUnit(mixed, "g", (("k", PATIENT),), ()),
        lambda mixed: Window(mixed, "w", (PATIENT,), (), (("n", N),)),
        lambda mixed: Distinct(Projection(mixed, "d", (("k", PATIENT),))),
        lambda mixed: Union("u", (Projection(mixed, "d", (("k", PATIENT),)),)),
    ],
)
def test_mixed_rows_can_only_be_aggregated(further: Callable[[Relation], Relation]) -> None:
    with pytest.raises(UnitLost, match="aggregated, and nothing else"):
        of(further(MIXED))
    kept = Where(
        Projection(MIXED, "d", (("w", STAY_WARD),)), make_call("equal", Column("d", "w", X), make_literal("A"))
    )
    assert of(kept).spread_rows == of(MIXED).spread_rows and of(kept).owner is Owner.MIXED


def test_mixed_rows_have_no_units_to_count() -> None:
    units = Question(source=MIXED, aggregates=(Aggregate(Statistic.COUNT_UNITS),))
    with pytest.raises(UnitLost, match="cannot be counted"):
        bound(units, CATALOG)
    private = Question(source=MIXED, keys=(Column("s", "id", I),), aggregates=(Aggregate(Statistic.COUNT),))
    with pytest.raises(UnitLost, match="cannot be chosen by units"):
        bound(private, CATALOG)
    found = bound(Question(source=MIXED, keys=(STAY_WARD,), aggregates=(Aggregate(Statistic.COUNT),)), CATALOG).bounded
    assert found.unit is None and found.spread_rows == 58
    assert sensitivity(found, found.measures[0], Neighbours.ADD_REMOVE).l1 == 58
    assert sensitivity(found, found.measures[0], Neighbours.REPLACE).l1 == 116
    weight = Measure(counts=Counts.WEIGHT, last=9)
    with pytest.raises(InternalError, match="no weights"):
        sensitivity(found, weight, Neighbours.ADD_REMOVE)


# Inside a unit


def test_groups_inside_a_unit() -> None:
    """One row a unit, or one in each of as many groups as before."""
    alone = PerUnit(STAYS, "g", (("who", PATIENT),), (("n", N), ("cost", FeatureCall(Feature.SUM, STAY_COST, R))))
    assert of(alone).units == (Column("g", "who", I),) and of(alone).limits == ContributionLimits(max_rows=1)
    assert facts(alone, "g", "n").high == 6 and facts(alone, "g", "n").nullable is False
    assert (facts(alone, "g", "cost").low, facts(alone, "g", "cost").high) == (Fraction(-12), Fraction(60))
    wards = replace(alone, keys=(("who", PATIENT), ("ward", STAY_WARD)))
    assert of(wards).limits == ContributionLimits(max_groups=3, max_rows_per_group=1)
    assert facts(wards, "g", "ward").keys == ("A", "B")
    labs = reach("labs", CATALOG)
    assert labs.unit is not None
    kept = PerUnit(labs.relation, "g", (("who", labs.unit), ("stay", Column("labs", "stay", I))), ())
    assert of(kept).limits == ContributionLimits(max_rows=7)


@pytest.mark.parametrize(
    ("feature", "argument", "kind", "wanted"),
    [
        (Feature.MEAN, STAY_COST, R, ColumnFacts(low=Fraction(-2), high=Fraction(10))),
        (Feature.MEDIAN, STAY_COST, R, ColumnFacts(low=Fraction(-2), high=Fraction(10))),
        (Feature.MAX, STAY_WARD, X, replace(WARD, nullable=True, keys=("A", "B", None), max_length=1_000)),
        (Feature.ANY, make_call("is_null", STAY_COST), B, ColumnFacts(keys=(False, True, None))),
        (Feature.SUM, Column("stays", "id", I), I, ColumnFacts()),
    ],
)
def test_features_have_facts(feature: Feature, argument: Expression, kind: Type, wanted: ColumnFacts) -> None:
    relation = PerUnit(STAYS, "g", (("who", PATIENT),), (("f", FeatureCall(feature, argument, kind)),))
    assert facts(relation, "g", "f") == wanted


def test_windows_add_columns() -> None:
    place = FeatureCall(Feature.ROW_NUMBER, None, I)
    before = FeatureCall(Feature.LAG, STAY_WARD, X)
    window = Window(STAYS, "w", (PATIENT,), ((STAY_COST, True),), (("place", place), ("before", before)))
    assert of(window).units == (PATIENT,) and set(of(STAYS).columns) < set(of(window).columns)
    assert facts(window, "w", "before").keys == ("A", "B", None)


@pytest.mark.parametrize(
    "relation",
    [
        PerUnit(STAYS, "g", (("ward", STAY_WARD),), (("n", N),)),
        PerUnit(STAYS, "g", (), (("n", N),)),
        PerUnit(STAYS, "g", (("p", make_call("add", PATIENT, make_literal(0))),), (("n", N),)),
        Window(STAYS, "w", (), (), (("n", N),)),
        Window(STAYS, "w", (STAY_WARD,), ((PATIENT, False),), (("n", N),)),
        Window(Join(PEOPLE, STAYS, JoinKind.LEFT, ON_UNIT), "w", (PATIENT,), (), (("n", N),)),
    ],
)
def test_groups_and_windows_need_the_unit(relation: Relation) -> None:
    """Also where the other side's unit may be missing: all rows without it would stand together."""
    with pytest.raises(UnitLost, match=r"several units\. Add"):
        of(relation)
    renamed = PerUnit(STAYS, "g", (("k", STAY_WARD),), (("n", N),))
    with pytest.raises(UnitLost, match="own unit"):
        of(renamed, ROWS)


def test_public_rows_may_be_grouped_in_any_way() -> None:
    grouped = PerUnit(WARDS, "g", (("ward", WARD_WARD),), (("n", N),))
    assert of(grouped).owner is Owner.NOBODY and facts(grouped, "g", "n").high is None
    assert of(Distinct(WARDS)).owner is Owner.NOBODY


def test_distinct_rows_name_their_unit() -> None:
    assert of(Distinct(STAYS)) == of(STAYS)
    full = Join(PEOPLE, STAYS, JoinKind.FULL, ON_UNIT)
    with pytest.raises(UnitLost, match="DISTINCT"):
        of(Distinct(full))  # two columns, of which one may be missing: neither names the unit
    named = Projection(full, "d", (("who", of(full).units[0]),))
    assert of(Distinct(named)).units == (Column("d", "who", I),)


# Unions


def part(source: Relation, name: str, *columns: Expression) -> Projection:
    return Projection(source, name, tuple((f"c{i}", column) for i, column in enumerate(columns)))


def test_unions_know_what_all_parts_know() -> None:
    age = Column("people", "age", I)
    one, two = part(PEOPLE, "a", PID, age, make_literal("A")), part(STAYS, "b", PATIENT, make_literal(200), STAY_WARD)
    union = Union("u", (one, two))
    assert of(union).units == (Column("u", "c0", I),)
    assert (facts(union, "u", "c1").low, facts(union, "u", "c1").high) == (Fraction(0), Fraction(200))
    assert facts(union, "u", "c1").constant is False and facts(union, "u", "c1").keys is None
    assert facts(union, "u", "c2").keys == ("A", "B")
    assert of(union).limits == ContributionLimits(max_rows=7)
    same = Union("u", (part(STAYS, "a", PATIENT), part(STAYS, "b", PATIENT)))
    assert of(same).limits == ContributionLimits(max_groups=6, max_rows_per_group=2)


def test_unions_name_the_unit_in_one_place() -> None:
    age = Column("people", "age", I)
    with pytest.raises(UnitLost, match="same column"):
        of(Union("u", (part(PEOPLE, "a", PID, age), part(PEOPLE, "b", age, PID))))
    with pytest.raises(UnitLost, match="private rows and public ones"):
        of(Union("u", (part(STAYS, "a", PATIENT), part(WARDS, "b", Column("wards", "floor", I)))))
    with pytest.raises(UnitLost, match="whose they are"):
        of(Union("u", (part(STAYS, "a", PATIENT, STAY_WARD), part(STAYS, "b", make_literal(1), STAY_WARD))))
    with pytest.raises(UnitLost, match="count one twice"):
        of(Union("u", (part(STAYS, "a", PATIENT), part(STAYS, "b", PATIENT))), ROWS)
    public = Union("u", (part(WARDS, "a", WARD_WARD), part(WARDS, "b", make_literal("Z"))))
    assert of(public).owner is Owner.NOBODY and facts(public, "u", "c0").keys == ("A", "B", "Z")
