"""Conditions on stored values are true where those on guarded ones are; and they sink only where nothing changes."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace
from decimal import Decimal
from itertools import product

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.engines.duckdb.dialect import DIALECT, pick_parameters
from discreet.engines.duckdb.scanning import StoredColumn, compare_decimal, find_stored_value, write_stored_column
from discreet.engines.sql.layers import Layers
from discreet.engines.sql.sunk_conditions import StoredValue, find_bare_keys, sink_conditions, write_stored
from discreet.plan.expressions import Call, Column, Expression, Literal
from discreet.plan.relations import Capped, Join, JoinKind, Scan, Where
from discreet.plan.types import Type, Value

COMPARISONS = ("equal", "unequal", "less", "at_most", "greater", "at_least")
LONGEST = 4
STORED = {
    "DATE": (Type.DATE, ["NULL", "'infinity'", "'-infinity'", "'0001-01-01'", "'9999-12-31'", "'10000-01-01'"]),
    "TIMESTAMP": (Type.TIMESTAMP, ["NULL", "'infinity'", "'-infinity'", "'2024-05-01'", "'10000-01-01'"]),
    "VARCHAR": (Type.TEXT, ["NULL", "''", "'abcd'", "'abcde'", "'abcd '", "'ab'", "'éééé'", "'ééééé'"]),
    "INTEGER": (Type.INTEGER, ["NULL", "-1", "0", "2147483647"]),
    "UTINYINT": (Type.INTEGER, ["NULL", "0", "255"]),
    "DECIMAL(4,2)": (Type.REAL, ["NULL", "0", "0.05", "0.06", "0.07", "-0.07", "99.98", "99.99", "-99.99"]),
    "DECIMAL(15,2)": (Type.REAL, ["NULL", "0", "0.05", "0.07", "1", "9999999999999.99", "-9999999999999.99"]),
    "DECIMAL(15,15)": (Type.REAL, ["NULL", "0", "0.05", "0.070000000000001", "0.999999999999999"]),
    "DECIMAL(30,2)": (Type.REAL, ["NULL", "0", "0.07", "9999999999999999999999999999.99"]),
    "DECIMAL(38,0)": (Type.INTEGER, ["NULL", "0", "255", "9223372036854775807", "9223372036854775808"]),
    "DECIMAL(9,0)": (Type.INTEGER, ["NULL", "0", "1", "-1", "999999999"]),
    "DECIMAL(18,2)": (Type.REAL, ["NULL", "0", "0.05", "0.07", "9999999999999999.99", "9999999999999999.98"]),
}
CONSTANTS: dict[Type, tuple[Value, ...]] = {
    Type.DATE: (dt.date(1, 1, 1), dt.date(2024, 5, 1), dt.date(9999, 12, 31)),
    Type.TIMESTAMP: tuple(map(dt.datetime.fromisoformat, ("2024-05-01", "9999-12-31 23:59:59.999999"))),
    Type.TEXT: ("", "abcd", "abcde", "ab"),
    Type.INTEGER: (-1, 0, 255, 2**40),
    Type.REAL: (
        0.0,
        -0.0,
        0.05,
        0.07,
        -0.07,
        0.06 + 0.01,
        math.nextafter(0.07, 0),
        99.99,
        99.995,
        1.0,
        -1.5,
        1e13,
        -1e300,
        9999999999999.99,
        1e16,
        5e-324,
    ),
}


def make_condition(function: str, *arguments: Expression) -> Call:
    return Call(function, arguments, Type.BOOLEAN)


def list_conditions(kind: Type) -> list[Call]:
    one, two = (Column("t", name, kind) for name in ("a", "b"))
    constants = [Literal(value, kind) for value in CONSTANTS[kind]]
    found = [make_condition(f, one, c) for f, c in product(COMPARISONS, constants)]
    found += [make_condition(f, c, one) for f, c in product(COMPARISONS, constants)]
    found += [make_condition(f, one, two) for f in COMPARISONS] + [make_condition("in", one, *constants)]
    if kind is Type.TEXT:
        found += [make_condition("like", one, Literal(pattern, kind)) for pattern in ("%", "a%", "%\u00e9_", "")]
    denied = [make_condition("not", condition) for condition in found]
    return [*found, *denied, make_condition("or", found[0], found[5]), make_condition("and", found[2], denied[-1])]


@pytest.mark.parametrize("stored", STORED)
def test_they_are_true_together(stored: str) -> None:
    kind, values = STORED[stored]
    longest = LONGEST if kind is Type.TEXT else None
    there = {name: find_stored_value(StoredColumn(name, stored), kind, longest) for name in ("a", "b")}
    compared = {Column("t", name, kind): value for name, value in there.items() if value is not None}
    assert len(compared) == 2
    rows = ", ".join(f"(CAST({a} AS {stored}), CAST({b} AS {stored}))" for a, b in product(values, values))
    guarded = ", ".join(f"{write_stored_column(StoredColumn(n, stored), kind, longest)} AS g{n}" for n in "ab")
    table = f"(SELECT *, {guarded} FROM (VALUES {rows}) AS t(a, b))"
    for condition in list_conditions(kind):
        texts: dict[str, str] = {}
        plain = write_stored(condition, compared, Layers({}, DIALECT, texts))
        layers = Layers({Column("t", name, kind): f"g{name}" for name in "ab"}, DIALECT, texts)
        name = layers.write_value(condition)
        clauses, top = layers.write_ctes(table, "e")
        query = f"WITH {', '.join(clauses)} SELECT {name} IS TRUE, ({plain}) IS TRUE FROM {top}"
        found = duckdb.execute(query, pick_parameters(query, layers.parameters)).fetchall()
        assert len(found) == len(values) ** 2 and all(one == two for one, two in found), condition


def test_a_guard_that_is_forgotten_is_noticed() -> None:
    """The control: dates beyond the calendar are NULL, and so not later than anything."""
    value = find_stored_value(StoredColumn("a", "DATE"), Type.DATE, None)
    assert value is not None and value.guard
    later = make_condition("greater", Column("t", "a", Type.DATE), Literal(dt.date(2024, 1, 1), Type.DATE))
    forms = [
        write_stored(later, {Column("t", "a", Type.DATE): given}, Layers({}, DIALECT))
        for given in (value, replace(value, guard=""))
    ]
    sql = ", ".join(f"({form}) IS TRUE" for form in forms)
    assert duckdb.execute(f"SELECT {sql} FROM (SELECT DATE 'infinity' AS a)").fetchall() == [(False, True)]


@given(number=st.floats(-1000, 1000) | st.integers(-1000, 1000) | st.decimals(-1000, 1000, places=2).map(float))
@pytest.mark.parametrize("ordering", ["less", "at_most", "greater", "at_least"])
def test_decimals_are_ordered_like_their_doubles(ordering: str, number: float) -> None:
    """Of the decimals around a number, and of the ends: those that pass are those whose doubles do."""
    written = compare_decimal("d", 5, 2, ordering, number)
    if written is None:  # it is so large, or so near to an end, that all decimals or none pass
        assert abs(number) >= 999.99
        return
    near = [min(max(round(number * 100) + more, -99999), 99999) for more in range(-3, 4)]
    sign = {"less": "<", "at_most": "<=", "greater": ">", "at_least": ">="}[ordering]
    query = f"SELECT {written}, CAST(d AS DOUBLE) {sign} $n FROM (SELECT unnest($all)::DECIMAL(5,2) AS d)"
    found = duckdb.execute(query, {"n": float(number), "all": [Decimal(each) / 100 for each in near]}).fetchall()
    assert len(found) == len(near) and all(one == two for one, two in found)


def test_a_comparison_of_decimals_with_a_rounded_number_is_noticed() -> None:
    """The control: 0.06 + 0.01 is a double below 0.07, so 0.07 is above it; as decimals they would be the same."""
    number = 0.06 + 0.01
    forms = f"{compare_decimal('d', 4, 2, 'greater', number)}, d > CAST($n AS DECIMAL(4,2))"
    query = f"SELECT {forms} FROM (SELECT 0.07::DECIMAL(4,2) AS d)"
    assert duckdb.execute(query, {"n": number}).fetchall() == [(True, False)]


def test_other_conditions_have_no_such_form() -> None:
    column = Column("t", "a", Type.INTEGER)
    stored, layers = {column: StoredValue("a")}, Layers({}, DIALECT)
    null = Literal(None, Type.INTEGER)
    for condition in (
        make_condition("is_null", column),
        make_condition("not", make_condition("is_null", column)),
        make_condition("not", make_condition("equal", column, null)),
        make_condition("equal", column, null),
        make_condition("in", column, Literal(1, Type.INTEGER), null),
        make_condition("equal", column, Column("t", "b", Type.INTEGER)),
    ):
        assert write_stored(condition, stored, layers) is None


def test_conditions_sink_to_the_scan_they_are_about() -> None:
    left, right = Scan("s"), Scan("t")
    ours, theirs = (Column(table, "k", Type.INTEGER) for table in ("s", "t"))
    one, two = (make_condition("equal", column, Literal(1, Type.INTEGER)) for column in (ours, theirs))
    both = make_condition("less", ours, theirs)
    joined = Join(left, right, JoinKind.INNER, ((ours, theirs),))
    assert sink_conditions(joined, (one, two, both)) == (
        replace(joined, left=Where(left, one), right=Where(right, two)),
        (both,),
    )
    for kind in (JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI):
        outer = replace(joined, kind=kind)
        assert sink_conditions(outer, (one, two)) == (replace(outer, left=Where(left, one)), (two,))
    for kind in (JoinKind.RIGHT, JoinKind.FULL):
        assert sink_conditions(replace(joined, kind=kind), (one, two))[1] == (one, two)
    looked_up = replace(joined, single=True)
    assert sink_conditions(looked_up, (two,)) == (looked_up, (two,))
    below = replace(looked_up, right=Where(right, two))
    assert sink_conditions(looked_up, (two,), lambda join: join is looked_up) == (below, ())
    assert sink_conditions(Capped(left, (ours,), 1), (one,))[1] == (one,)


WHO, WARD, DAY = Column("t", "who", Type.INTEGER), Column("t", "ward", Type.TEXT), Column("t", "day", Type.DATE)
GUARDED = {WHO: StoredValue("who"), WARD: StoredValue("ward", "short", LONGEST), DAY: StoredValue("day", "known")}
BY_WARD = BoundedPlan(
    source=Scan("t"),
    keys=(WARD,),
    domain=(("abcd",), ("",)),
    unit=WHO,
    measures=(Measure(counts=Counts.ROWS),),
    max_rows=3,
)


def test_public_keys_need_no_guard_where_nothing_else_reads_them() -> None:
    """Texts that are short enough, and times; not where a value that does not pass the guard could be seen."""
    assert find_bare_keys(BY_WARD, GUARDED, ()) == {WARD: "ward"}
    by_day = replace(BY_WARD, keys=(WARD, DAY, WHO), domain=(("ab", dt.date(2024, 5, 1), 1),), unit=WHO)
    assert find_bare_keys(by_day, GUARDED, ()) == {WARD: "ward", DAY: "day"}
    lower = Call("lower", (WARD,), Type.TEXT)
    condition = make_condition("equal", WARD, Literal("ab", Type.TEXT))
    for guarded in (
        replace(BY_WARD, domain=None),
        replace(BY_WARD, domain=(("abcd",), ("abcde",))),
        replace(BY_WARD, domain=(("abcd",), (None,))),
        replace(BY_WARD, unit=None, max_rows=None),
        replace(BY_WARD, unit=WARD),
        replace(BY_WARD, source=Where(Scan("t"), condition)),
        replace(BY_WARD, keys=(WARD, lower), domain=(("abcd", "abcd"),)),
        replace(BY_WARD, measures=(Measure(counts=Counts.VALUES, argument=lower),)),
    ):
        assert find_bare_keys(guarded, GUARDED, ()) == {}, guarded
    assert find_bare_keys(replace(BY_WARD, source=Where(Scan("t"), condition)), GUARDED, {condition}) == {WARD: "ward"}
