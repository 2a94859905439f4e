"""The attack checklist, as far as it concerns engines. Each test carries the number that the checklist gives it."""

# ruff: noqa: S311  # times have no zone here, and worlds need seeds, not secrets
from __future__ import annotations

import datetime as dt
import logging
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.duckdb.session import Session, Settings
from discreet.engines.duckdb.sources import Frame
from discreet.engines.sql.layers import TEMPLATES, Layers
from discreet.engines.steps import check
from discreet.errors import EngineFailure, InternalError
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.expressions import Call, Column, Expression
from discreet.plan.functions import FUNCTIONS, make_call, make_literal
from discreet.plan.relations import Scan, add_conditions
from discreet.plan.types import INTEGER_MAX, INTEGER_MIN, Type
from discreet.privacy import Neighbours, Unit
from tests.engines.nasty import VALUES, calls
from tests.engines.test_agreement import as_dict, engine_for, in_memory
from tests.engines.worlds import AGE, CODE, COST, SALT, UNIT, WARD, Rows, a_row, catalog, frame

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


def run(rows: Rows, bounded: BoundedPlan) -> Any:
    engine = engine_for(rows, bounded.unit)
    found = as_dict(engine.run(bounded, salt=SALT))
    engine.close()
    assert found == in_memory(rows, bounded)
    return found


def test_3_sums_do_not_depend_on_the_order_of_rows() -> None:
    """Sums are of integers: shuffled doubles give the very same answer."""
    rng = random.Random(3)
    rows = rows_with(cost=[rng.uniform(-10, 10) * 10 ** rng.randrange(-9, 1) for _ in range(3000)])
    first = run(rows, ask(COSTS))
    rng.shuffle(rows)
    assert run(rows, ask(COSTS)) == first


@pytest.mark.parametrize("unit", [None, UNIT])
def test_4_sums_beyond_64_bits_neither_wrap_nor_fail(unit: Column | None) -> None:
    """Many of the largest steps add up exactly, beyond what 64 bits hold; a wider measure is refused unread."""
    top = 2**61 - 1
    wide = Measure(counts=Counts.STEPS, argument=AGE, first=-top, last=top)
    rows = rows_with(age=[INTEGER_MAX] * 40 + [INTEGER_MIN] * 3)
    limits = {} if unit is None else {"unit": unit, "max_rows_per_group": 5}
    assert run(rows, ask(wide, **limits)) == {(): (37 * top,)}
    squares = Measure(counts=Counts.SQUARES, argument=AGE, first=-(2**39), last=2**39)
    assert run(rows, ask(squares, **limits)) == {(): (43 * 2**78,)}
    with pytest.raises(InternalError):
        check(ask(replace(squares, last=2**40)))


def test_4_scaling_a_long_history_down_does_not_overflow() -> None:
    """Thousands of the largest rows of one unit, of which seven are allowed."""
    top = 2**61 - 1
    wide = Measure(counts=Counts.STEPS, argument=AGE, first=-top, last=top)
    rows = [{**row, "unit": 1, "Ward": "A"} for row in rows_with(age=[INTEGER_MIN] * 3000)]
    assert run(rows, ask(wide, unit=UNIT, keys=(WARD,), max_groups=1, max_rows_per_group=7)) == {("A",): (-7 * top,)}


def test_5_narrow_floats_are_widened_first() -> None:
    """A 32-bit column is read as doubles, so that arithmetic near its end does not become infinite."""
    table = pa.table({"x": pa.array([3e38, 3e38, float("nan")], pa.float32())})
    column = Column("n", "x", Type.REAL)
    facts = TableFacts(name="n", columns={"x": (Type.REAL, ColumnFacts())}, unit=Unit(), limits=ContributionLimits())
    engine = DuckDBEngine({"n": table}, Catalog(tables={"n": facts}, neighbours=Neighbours.ADD_REMOVE))
    ten = make_call("multiply", column, make_literal(10.0))
    measures = (
        Measure(counts=Counts.VALUES, argument=ten),
        Measure(counts=Counts.STEPS, argument=make_call("divide", ten, make_literal(1e38)), first=0, last=100),
    )
    assert engine.run(ask(*measures, source=Scan("n")), salt=SALT).values == ((2,), (60,))


def test_6_what_is_not_a_number_counts_for_nothing() -> None:
    """NaN and infinities are NULL from the scan on: not counted, not summed, not clamped into the range."""
    nan, inf = float("nan"), float("inf")
    rows = rows_with(cost=[nan, inf, -inf, 1.0, None])
    back = make_call("coalesce", COST, make_call("divide", make_literal(1.0), make_literal(0.0)))
    values = (Measure(counts=Counts.VALUES, argument=COST), Measure(counts=Counts.VALUES, argument=back))
    assert run(rows, ask(ROWS, *values, COSTS)) == {(): (5, 1, 1, 100)}


def test_8_null_made_by_casts_and_modulo_is_null() -> None:
    """A cast that fails and a remainder by zero make a value NULL, and counts of values see that."""
    rows = rows_with(Ward=["12", "x", "1e3", None], age=[0, 5, 2, 1])
    made = (make_call("to_integer", WARD), make_call("modulo", make_literal(7), AGE), make_call("to_date", WARD))
    measures = tuple(Measure(counts=Counts.VALUES, argument=expression) for expression in made)
    assert run(rows, ask(ROWS, *measures)) == {(): (4, 1, 3, 0)}


def test_14_public_keys_never_repeat_rows() -> None:
    """A key listed twice counts once, NULL is a key like others, and case, blanks and −0.0 are what they are."""
    rows = rows_with(Ward=["A", "A", "a", "A ", None, "Z"], cost=[0.0, -0.0, 1.0, 2.0, None, -0.0])
    listed = (("A",), ("A",), (None,), ("a",), ("missing",))
    for unit in (None, UNIT):
        limits = {} if unit is None else {"unit": unit, "max_rows_per_group": 1, "max_groups": 1}
        found = run(rows, ask(ROWS, keys=(WARD,), domain=listed, **limits))
        assert found == {("A",): (2,), ("a",): (1,), (None,): (1,)}
    zero = run(rows, ask(ROWS, keys=(make_call("bin", COST, make_literal(1.0)),), domain=((-0.0,), (None,))))
    assert zero == {(0.0,): (3,), (None,): (1,)}


@pytest.mark.parametrize("unit", [None, UNIT])
def test_15_the_order_of_groups_says_nothing(unit: Column | None) -> None:
    """Groups come sorted by key, whatever the order of the rows."""
    rows = rows_with(Ward=["b", "a", None, "c", "a"])
    limits = {} if unit is None else {"unit": unit, "max_rows_per_group": 1, "max_groups": 1}
    keys = [
        engine_for(order, unit).run(ask(ROWS, keys=(WARD,), **limits), salt=SALT).keys for order in (rows, rows[::-1])
    ]
    assert keys[0] == keys[1] == (("a",), ("b",), ("c",), (None,))


@pytest.mark.parametrize("unit", [None, UNIT])
def test_16_nothing_is_zero_and_not_null(unit: Column | None) -> None:
    """An empty selection has one group of zeros without keys, and no groups with keys."""
    rows = rows_with(cost=[1.0, 2.0])
    limits = {} if unit is None else {"unit": unit, "max_rows_per_group": 1, "max_groups": 1}
    none = make_call("greater", COST, make_literal(100.0))
    squares = replace(COSTS, counts=Counts.SQUARES)
    for table in (rows, []):
        engine = engine_for(table, unit)
        empty = engine.run(ask(ROWS, COSTS, squares, source=add_conditions(Scan("t"), none), **limits), salt=SALT)
        assert (empty.keys, empty.values) == (((),), ((0,), (0,), (0,)))
        assert (
            engine.run(ask(ROWS, COSTS, keys=(WARD,), source=add_conditions(Scan("t"), none), **limits), salt=SALT).keys
            == ()
        )


def test_18_no_function_is_volatile() -> None:
    """Nothing that is written for DuckDB draws, tells the time or counts; equal questions give equal answers."""
    for name in FUNCTIONS:
        expression, kinds = next(calls(name))
        layers = Layers({Column("t", f"c{i}", kind): f"c{i}" for i, kind in enumerate(kinds)})
        layers.write_value(expression)
        text = " ".join(layers.write_ctes("t", "e")[0])
        assert not re.search(r"\b(random|now|current_\w+|today|uuid|gen_random\w*|nextval|get_\w+)\b", text), name
    rows = [a_row(random.Random(i), i % 7) for i in range(200)]
    bounded = ask(ROWS, COSTS, keys=(WARD, CODE), unit=UNIT, max_groups=2, max_rows_per_group=1)
    engine = engine_for(rows, UNIT)
    assert engine.run(bounded, salt=SALT) == engine.run(bounded, salt=SALT)


def test_19_rows_without_a_unit_do_not_count_and_copies_do_not_help() -> None:
    """NULL is nobody: such rows are left out. A unit's rows given a hundred times count as its limit."""
    rows = [{**row, "unit": None if i % 2 else 1, "Ward": "A"} for i, row in enumerate(rows_with(cost=[1.0] * 200))]
    units = Measure(counts=Counts.UNITS)
    found = run(rows, ask(ROWS, units, COSTS, unit=UNIT, keys=(WARD,), max_groups=1, max_rows_per_group=3))
    assert found == {("A",): (3, 1, 300)}


def every_call() -> Iterator[tuple[Call, tuple[Type, ...]]]:
    for name in sorted(FUNCTIONS):
        yield next(calls(name))


def test_21_no_expression_fails_whatever_the_data() -> None:
    """All functions at once, over a table of values that break things, as conditions, keys and measures."""
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
    engine = DuckDBEngine({"n": pa.table(table)}, catalogue)
    measures = []
    for expression, types in every_call():
        there: dict[Expression, Expression] = {
            Column("t", f"c{i}", kind): columns[kind] for i, kind in enumerate(types)
        }
        arguments = tuple(there.get(argument, argument) for argument in expression.arguments)
        measures.append(Measure(counts=Counts.VALUES, argument=replace(expression, arguments=arguments)))
    whole = engine.run(ask(*measures, source=Scan("n")), salt=SALT)
    by_unit = engine.run(
        ask(*measures, source=Scan("n"), unit=columns[Type.INTEGER], keys=(columns[Type.TEXT],), max_rows=2), salt=SALT
    )
    assert len(whole.values) == len(by_unit.values) == len(FUNCTIONS)


def test_21_a_failing_engine_says_one_constant_sentence(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """A file that turns out damaged ends in a message without file names, values or engine words; the log has them."""
    rows = rows_with(Ward=[f"secret {i}" for i in range(50_000)], cost=[float(i) for i in range(50_000)])
    path = tmp_path / "t.parquet"
    pq.write_table(frame(rows), path, compression="none")
    engine = DuckDBEngine({"t": path}, catalog(None))
    content = bytearray(path.read_bytes())
    content[1000 : len(content) // 2] = bytes(len(content) // 2 - 1000)
    path.write_bytes(content)
    with caplog.at_level(logging.ERROR, "discreet.curator"), pytest.raises(EngineFailure) as failure:
        engine.run(ask(ROWS, COSTS, keys=(WARD,)), salt=SALT)
    assert (
        str(failure.value) == "The question could not be completed. The charge stands; the curator's log has details."
    )
    assert failure.value.__cause__ is None and failure.value.__suppress_context__
    assert caplog.records and caplog.records[0].exc_info
    assert capfd.readouterr() == ("", "")


def session(tmp_path: Path, **columns: list[Any]) -> Session:
    settings = Settings(threads=1, memory_limit="200MB", temp_directory=tmp_path / "spill")
    return Session(settings, [Frame(pa.table(columns), number=0)])


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_csv('{file}')",
        "SELECT * FROM read_text('{file}')",
        "SELECT * FROM '{file}'",
        "COPY (SELECT 1) TO '{file}.out'",
        "ATTACH '{file}.db' AS other",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 8",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "SELECT * FROM local_frame",
        "CREATE PERSISTENT SECRET s (TYPE http)",
        "SELECT getenv('HOME')",
    ],
)
def test_26_the_connection_has_no_side_doors(statement: str, tmp_path: Path) -> None:
    """Files, settings, extensions and variables of the program stay closed, even for SQL that we would never write."""
    import duckdb

    file = tmp_path / "other.csv"
    file.write_text("a\n1\n")
    local_frame = pa.table({"a": [1]})
    with session(tmp_path, a=[1]) as locked:
        assert locked.run('SELECT a FROM "frame 0"') == [(1,)]
        with pytest.raises(duckdb.Error):
            locked.run(statement.format(file=file))
    assert local_frame.num_rows == 1 and sorted(p.name for p in tmp_path.iterdir() if p.is_file()) == ["other.csv"]


def test_26_texts_and_names_are_never_code() -> None:
    """Quotes, semicolons and comments in values and in names of columns stay what they are."""
    name, text = 'x" FROM t; DROP TABLE "t', "'; SELECT 1 --"
    column = Column("t'\"", name, Type.TEXT)
    facts = TableFacts(
        name=column.table, columns={name: (Type.TEXT, ColumnFacts())}, unit=Unit(), limits=ContributionLimits()
    )
    engine = DuckDBEngine(
        {column.table: pa.table({name: [text, "other", None]})},
        Catalog(tables={column.table: facts}, neighbours=Neighbours.ADD_REMOVE),
    )
    question = ask(
        ROWS, source=add_conditions(Scan(column.table), make_call("equal", column, make_literal(text))), keys=(column,)
    )
    assert engine.run(question, salt=SALT).keys == ((text,),)


def test_every_function_has_a_template_of_its_own() -> None:
    assert set(TEMPLATES) == set(FUNCTIONS)


def test_the_ends_of_time_are_null_beyond_python() -> None:
    """Dates before year 1 and beyond 9999, and infinite ones, cannot be said in Python and are NULL."""
    import duckdb

    source = duckdb.connect()
    days = "(DATE '0001-01-01'), (DATE '9999-12-31'), (DATE '0001-01-01' - 1), (DATE '9999-12-31' + 1)"
    table = source.sql(f"SELECT * FROM (VALUES {days}) v(d)").to_arrow_table()
    facts = TableFacts(name="n", columns={"d": (Type.DATE, ColumnFacts())}, unit=Unit(), limits=ContributionLimits())
    engine = DuckDBEngine({"n": table}, Catalog(tables={"n": facts}, neighbours=Neighbours.ADD_REMOVE))
    day = Column("n", "d", Type.DATE)
    found = engine.run(ask(ROWS, source=Scan("n"), keys=(day,)), salt=SALT)
    assert dict(zip(found.keys, found.values[0])) == {
        (dt.date(1, 1, 1),): 1, (dt.date(9999, 12, 31),): 1, (None,): 2,
    }  # fmt: skip
