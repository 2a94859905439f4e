"""The nine points of the contract in ``engines/engine.py``, and the attack checklist as far as it concerns engines.

Tests that carry a number have it from the checklist.
"""

# ruff: noqa: S311  # worlds need seeds, not secrets
from __future__ import annotations

import logging
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from discreet.bounding.contributions import BoundedPlan, Counts, Measure, Spread
from discreet.engines.steps import check
from discreet.errors import EngineFailure, InternalError
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.expressions import Call, Column, Expression
from discreet.plan.functions import FUNCTIONS, make_call, make_literal
from discreet.plan.relations import Scan
from discreet.plan.types import INTEGER_MAX, INTEGER_MIN, Type
from discreet.privacy import Neighbours, Unit
from tests.engines.answers import Sums, as_dict
from tests.engines.conformance.engines import EngineUnderTest
from tests.engines.nasty import VALUES, calls
from tests.engines.worlds import (
    AGE,
    CODE,
    COST,
    DAY,
    FLAG,
    SALT,
    UNIT,
    WARD,
    WHEN,
    Rows,
    a_row,
    add_conditions,
    catalog,
    frame,
    some_rows,
)

ROWS = Measure(counts=Counts.ROWS)
COSTS = Measure(counts=Counts.STEPS, argument=COST, resolution=Fraction(1, 100), first=-1000, last=1000)


def ask(*measures: Measure, **more: Any) -> BoundedPlan:
    """A question about rows, unless a unit is given."""
    plain: dict[str, Any] = {"source": Scan("t"), "keys": (), "domain": None, "unit": None}
    return BoundedPlan(**{**plain, "measures": measures, **more})


def rows_with(**columns: list[Any]) -> Rows:
    blank = dict.fromkeys(a_row(random.Random(0), 1))
    count = len(next(iter(columns.values())))
    return [{**blank, "unit": i, **{name: values[i] for name, values in columns.items()}} for i in range(count)]


def run(engine: EngineUnderTest, rows: Rows, bounded: BoundedPlan) -> Sums:
    return as_dict(engine.run({"t": frame(rows)}, catalog(bounded.unit), bounded))


def test_3_sums_do_not_depend_on_the_order_of_rows(engine: EngineUnderTest) -> None:
    """Sums are of integers: shuffled doubles give the very same answer."""
    rng = random.Random(3)
    rows = rows_with(cost=[rng.uniform(-10, 10) * 10 ** rng.randrange(-9, 1) for _ in range(3000)])
    first = run(engine, rows, ask(COSTS))
    rng.shuffle(rows)
    assert run(engine, rows, ask(COSTS)) == first


@pytest.mark.parametrize("unit", [None, UNIT])
def test_sums_beyond_64_bits_neither_wrap_nor_fail(unit: Column | None, engine: EngineUnderTest) -> None:
    """Checklist 4. The largest steps add up exactly, beyond what 64 bits hold; a wider measure is refused unread."""
    top = 2**61 - 1
    wide = Measure(counts=Counts.STEPS, argument=AGE, first=-top, last=top)
    rows = rows_with(age=[INTEGER_MAX] * 40 + [INTEGER_MIN] * 3)
    limits = {} if unit is None else {"unit": unit, "max_rows_per_group": 5}
    assert run(engine, rows, ask(wide, **limits)) == {(): (37 * top,)}
    squares = Measure(counts=Counts.SQUARES, argument=AGE, first=-(2**39), last=2**39)
    assert run(engine, rows, ask(squares, **limits)) == {(): (43 * 2**78,)}
    with pytest.raises(InternalError):
        check(ask(replace(squares, last=2**40)))


def test_4_weighing_a_long_history_does_not_overflow(engine: EngineUnderTest) -> None:
    """Thousands of the largest rows of one unit, of which seven are allowed: they weigh ⌊7·2^16/3000⌋ = 152 each."""
    top = 2**61 - 1
    wide = Measure(counts=Counts.STEPS, argument=AGE, first=-top, last=top)
    rows = [{**row, "unit": 1, "Ward": "A"} for row in rows_with(age=[INTEGER_MIN] * 3000)]
    for limits in ({"max_groups": 1, "max_rows_per_group": 7}, {"max_rows": 7}):
        question = ask(wide, unit=UNIT, keys=(WARD,), weight_bits=16, **limits)
        assert run(engine, rows, question) == {("A",): (-3000 * 152 * top,)}


def test_6_what_is_not_a_number_counts_for_nothing(engine: EngineUnderTest) -> None:
    """NaN is NULL from the scan on, and so is a division by zero: not counted, not summed."""
    rows = rows_with(cost=[float("nan"), 1.0, None])
    back = make_call("coalesce", COST, make_call("divide", make_literal(1.0), make_literal(0.0)))
    values = (Measure(counts=Counts.VALUES, argument=COST), Measure(counts=Counts.VALUES, argument=back))
    assert run(engine, rows, ask(ROWS, *values, COSTS)) == {(): (3, 1, 1, 100)}


def test_6_infinities_clamp_to_the_bounds(engine: EngineUnderTest) -> None:
    """An infinity is a value beyond the bounds like any other, stored or computed, alone or in an expression."""
    inf, valued = float("inf"), Measure(counts=Counts.VALUES, argument=COST)
    squared = replace(COSTS, argument=make_call("multiply", COST, COST))
    fallen = replace(COSTS, argument=make_call("subtract", make_literal(3.0), COST))
    for values, expected in [
        ([inf, inf], (2, 2000, 2000, -2000)),
        ([-inf], (1, -1000, 1000, 1000)),
        ([inf, -inf, 1.0], (3, 100, 2100, 200)),
        ([1e308, -1e308], (2, 0, 2000, 0)),
    ]:
        assert run(engine, rows_with(cost=values), ask(valued, COSTS, squared, fallen)) == {(): expected}


@pytest.mark.parametrize("unit", [None, UNIT], ids=["row", "unit"])
def test_bounds_add_nothing_for_a_unit_without_values(unit: Column | None, engine: EngineUnderTest) -> None:
    """A unit adds something between its bounds if it has a value; rows without a value add nothing."""
    valued = Measure(counts=Counts.VALUES, argument=COST, partial=(3, 9))
    bounded = (valued, replace(COSTS, first=-(2**50), last=2**50, partial=(300, 900)))
    limits = {} if unit is None else {"unit": unit, "max_rows_per_group": 1}
    rows = [{**row, "unit": i} for i, row in enumerate(rows_with(cost=[None, float("nan"), 1.0, 100.0]))]
    assert run(engine, rows, ask(ROWS, *bounded, **limits)) == {(): (4, 6, 1200)}


def test_8_null_made_by_casts_and_modulo_is_null(engine: EngineUnderTest) -> None:
    """A cast that fails and a remainder by zero make a value NULL, and counts of values see that."""
    rows = rows_with(Ward=["12", "x", "1e3", None], age=[0, 5, 2, 1])
    made = (make_call("to_integer", WARD), make_call("modulo", make_literal(7), AGE), make_call("to_date", WARD))
    measures = tuple(Measure(counts=Counts.VALUES, argument=expression) for expression in made)
    assert run(engine, rows, ask(ROWS, *measures)) == {(): (4, 1, 3, 0)}


def test_14_public_keys_never_repeat_rows(engine: EngineUnderTest) -> None:
    """A key listed twice counts once, NULL is a key like others, and case, blanks and −0.0 are what they are."""
    rows = rows_with(Ward=["A", "A", "a", "A ", None, "Z"], cost=[0.0, -0.0, 1.0, 2.0, None, -0.0])
    listed = (("A",), ("A",), (None,), ("a",), ("missing",))
    for unit in (None, UNIT):
        limits = {} if unit is None else {"unit": unit, "max_rows_per_group": 1, "max_groups": 1}
        found = run(engine, rows, ask(ROWS, keys=(WARD,), domain=listed, **limits))
        assert found == {("A",): (2,), ("a",): (1,), (None,): (1,)}
    zero = run(engine, rows, ask(ROWS, keys=(make_call("bin", COST, make_literal(1.0)),), domain=((-0.0,), (None,))))
    assert zero == {(0.0,): (3,), (None,): (1,)}


@pytest.mark.parametrize("unit", [None, UNIT], ids=["row", "integer"])
def test_14_public_keys_of_all_types_come_back_as_given(unit: Column | None, engine: EngineUnderTest) -> None:
    """Of every type at once; moments have no zone. Rows with a NULL are in no group, unless one has it as a key."""
    keys, rows = (WARD, CODE, FLAG, DAY, WHEN, AGE), some_rows(random.Random(14), 12, 9)
    every = [tuple(row[key.name] for key in keys) for row in rows]
    known = sorted({key for key in every if None not in key})[:3]
    unknown = next(key for key in every if None in key)
    limits = {} if unit is None else {"unit": unit, "max_rows_per_group": 99, "max_groups": 99}
    for held in (known, [*known, unknown]):
        domain = (*held, ("missing", *known[0][1:]))
        found = run(engine, rows, ask(ROWS, keys=keys, domain=domain, **limits))
        assert found == {key: (every.count(key),) for key in held}


@pytest.mark.parametrize("unit", [None, UNIT], ids=["row", "integer"])
@pytest.mark.parametrize("key", [WARD, CODE, FLAG, DAY, WHEN, make_call("bin", COST, make_literal(1.0))], ids=str)
def test_groups_come_in_key_order(key: Expression, unit: Column | None, engine: EngineUnderTest) -> None:
    """Checklist 15. Ascending, NULL last, for every type and several keys, whatever the order of the rows."""
    rows = some_rows(random.Random(15), 12, 9)
    limits = {} if unit is None else {"unit": unit, "max_rows_per_group": 1, "max_groups": 20}
    question = ask(ROWS, keys=(key, CODE), spreads=(Spread(argument=AGE, last=9),), **limits)
    first, second = (
        engine.run({"t": frame(order)}, catalog(unit), question).keys for order in (rows, sorted(rows, key=repr))
    )
    values = [found[0] for found in first]
    known = [value for value in values if value is not None]
    assert first == second and len(first) > 3
    assert known == sorted(known) and values[: len(known)] == known


def test_15_texts_are_ordered_by_code_points(engine: EngineUnderTest) -> None:
    """Capital letters before small ones, and what lies beyond 16 bits behind what lies below."""
    rows = rows_with(Ward=["b", "a", None, "B", "", "é", "\uffee", "\U0001f600", "a "])
    keys = engine.run({"t": frame(rows)}, catalog(None), ask(ROWS, keys=(WARD,))).keys
    assert keys == (("",), ("B",), ("a",), ("a ",), ("b",), ("é",), ("\uffee",), ("\U0001f600",), (None,))


@pytest.mark.parametrize("unit", [None, UNIT])
def test_16_nothing_is_zero_and_not_null(unit: Column | None, engine: EngineUnderTest) -> None:
    """An empty selection has one group of zeros without keys, and no groups with keys."""
    rows = rows_with(cost=[1.0, 2.0])
    limits = {} if unit is None else {"unit": unit, "max_rows_per_group": 1, "max_groups": 1}
    none = make_call("greater", COST, make_literal(100.0))
    squares = replace(COSTS, counts=Counts.SQUARES)
    for table in (rows, []):
        tables, source = {"t": frame(table)}, add_conditions(Scan("t"), none)
        empty = engine.run(tables, catalog(unit), ask(ROWS, COSTS, squares, source=source, **limits))
        assert (empty.keys, empty.values) == (((),), ((0,), (0,), (0,)))
        grouped = engine.run(tables, catalog(unit), ask(ROWS, COSTS, keys=(WARD,), source=source, **limits))
        assert grouped.keys == ()


def test_19_rows_without_a_unit_do_not_count_and_copies_do_not_help(engine: EngineUnderTest) -> None:
    """NULL is nobody: such rows are left out. A unit's hundred rows weigh as much as its limit, three: 30/1024 each."""
    rows = [{**row, "unit": None if i % 2 else 1, "Ward": "A"} for i, row in enumerate(rows_with(cost=[1.0] * 200))]
    units = Measure(counts=Counts.UNITS)
    limits = {"max_groups": 1, "max_rows_per_group": 3, "weight_bits": 10}
    found = run(engine, rows, ask(ROWS, units, COSTS, unit=UNIT, keys=(WARD,), **limits))
    assert found == {("A",): (3000, 1024, 300_000)}


def every_call() -> Iterator[tuple[Call, tuple[Type, ...]]]:
    for name in sorted(FUNCTIONS):
        yield next(calls(name))


def test_no_expression_fails_whatever_the_data(engine: EngineUnderTest) -> None:
    """Checklist 21. All functions at once, over a table of values that break things, as keys and measures."""
    kinds = {kind: [v for v in VALUES[kind] if v is not None] for kind in Type}
    size = max(map(len, kinds.values()))
    names = {kind: f"c_{kind}" for kind in Type}
    rng = random.Random(21)
    table = {names[kind]: [rng.choice([None, *kinds[kind]]) for _ in range(5 * size)] for kind in Type}
    table[names[Type.REAL]][:3] = [float("nan"), float("inf"), -float("inf")]
    columns = {kind: Column("n", names[kind], kind) for kind in Type}
    facts = {columns[kind].name: (kind, ColumnFacts()) for kind in Type}
    catalogue = Catalog(
        tables={"n": TableFacts(name="n", columns=facts, unit=Unit(names[Type.INTEGER]), limits=ContributionLimits())},
        neighbours=Neighbours.ADD_REMOVE,
    )
    measures = []
    for expression, types in every_call():
        there: dict[Expression, Expression] = {
            Column("t", f"c{i}", kind): columns[kind] for i, kind in enumerate(types)
        }
        arguments = tuple(there.get(argument, argument) for argument in expression.arguments)
        measures.append(Measure(counts=Counts.VALUES, argument=replace(expression, arguments=arguments)))
    plain = ask(*measures, source=Scan("n"))
    by_unit = replace(plain, unit=columns[Type.INTEGER], keys=(columns[Type.TEXT],), max_rows=2)
    with engine.open({"n": pa.table(table)}, catalogue) as opened:
        for question in (plain, by_unit):
            assert len(opened.run(question, salt=SALT).values) == len(FUNCTIONS)


def test_26_texts_and_names_are_never_code(engine: EngineUnderTest) -> None:
    """Quotes, semicolons and comments in values and in names of columns stay what they are."""
    name, text = 'x" FROM t; DROP TABLE "t', "'; SELECT 1 --"
    column = Column("t'\"", name, Type.TEXT)
    facts = TableFacts(
        name=column.table, columns={name: (Type.TEXT, ColumnFacts())}, unit=Unit(), limits=ContributionLimits()
    )
    tables = {column.table: pa.table({name: [text, "other", None]})}
    declared = Catalog(tables={column.table: facts}, neighbours=Neighbours.ADD_REMOVE)
    question = ask(
        ROWS, source=add_conditions(Scan(column.table), make_call("equal", column, make_literal(text))), keys=(column,)
    )
    assert engine.run(tables, declared, question).keys == ((text,),)


def test_equal_questions_give_equal_answers(engine: EngineUnderTest) -> None:
    """Checklist 18. Nothing draws, tells the time or counts."""
    rows = [a_row(random.Random(i), i % 7) for i in range(200)]
    bounded = ask(ROWS, COSTS, keys=(WARD, CODE), unit=UNIT, max_groups=2, max_rows_per_group=1)
    with engine.open({"t": frame(rows)}, catalog(UNIT)) as opened:
        assert opened.run(bounded, salt=SALT) == opened.run(bounded, salt=SALT)


def test_a_version_says_nothing_about_rows(engine: EngineUnderTest) -> None:
    """One row or many, of whatever values: versions differ in a number that counts openings, and in nothing else.

    Of files it is a digest of their names and times instead.
    """
    tables = [rows_with(cost=[1.0] * count, Ward=["secret"] * count) for count in (0, 1, 2500)]
    versions = []
    for rows in tables:
        with engine.open({"t": frame(rows)}, catalog(UNIT)) as opened:
            versions.append(opened.version("t"))
            assert opened.version("t") == versions[-1]
    if all(re.fullmatch("files [0-9a-f]{32}", version) for version in versions):
        return
    assert len({re.sub("[0-9]+", "", version) for version in versions}) == 1
    numbers = [int("".join(re.findall("[0-9]+", version))) for version in versions]
    assert numbers == sorted(numbers) and numbers[-1] - numbers[0] < 100


def test_a_failing_engine_says_one_constant_sentence(
    engine: EngineUnderTest, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Checklist 21. A fault while rows are read: no value leaves, the log has the words, nothing is printed."""
    many = 50_000 if engine.slow else 3
    rows = rows_with(Ward=[f"secret {i}" for i in range(many)], cost=[float(i) for i in range(many)])
    fault = engine.make_fault(tmp_path, frame(rows))
    with engine.open({"t": fault.source}, catalog(None)) as opened:
        fault.damage()
        with caplog.at_level(logging.ERROR, "discreet.curator"), pytest.raises(EngineFailure) as failure:
            opened.run(ask(ROWS, COSTS, keys=(WARD,)), salt=SALT)
    sentence = "The question could not be completed. The charge stands; the curator's log has details."
    assert str(failure.value) == sentence
    assert failure.value.__cause__ is None
    assert failure.value.__suppress_context__ or failure.value.__context__ is None
    assert caplog.records and caplog.records[0].exc_info
    assert capfd.readouterr() == ("", "")


def test_a_question_changes_no_source(engine: EngineUnderTest) -> None:
    """The table that was handed in is the same afterwards, and an engine that was closed and opened answers alike."""
    rows = some_rows(random.Random(8), 6, 6)
    table = frame(rows)
    before = table.slice(0).to_pylist()
    bounded = ask(ROWS, COSTS, keys=(WARD,), unit=UNIT, max_groups=2, max_rows_per_group=1)
    first = as_dict(engine.run({"t": table}, catalog(UNIT), bounded))
    assert repr(table.to_pylist()) == repr(before)
    assert as_dict(engine.run({"t": table}, catalog(UNIT), bounded)) == first
