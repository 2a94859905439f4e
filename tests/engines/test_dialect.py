"""DuckDB's form of every function means what evaluate.py says, for values that break things, and nothing raises."""

# ruff: noqa: S311  # expressions need seeds, not secrets; statements are our own
from __future__ import annotations

import itertools
import math
import random
import time
import unicodedata
from collections.abc import Sequence
from dataclasses import replace

import duckdb
import pytest

from discreet.engines.sql.layers import SQL_TYPES, TEMPLATES, Layers, pick_parameters
from discreet.plan.evaluate import evaluate
from discreet.plan.expressions import Call, Column, Expression, Literal, ReleasedValue, walk
from discreet.plan.functions import FUNCTIONS, make_call, make_literal
from discreet.plan.types import Type, Value
from tests.engines.nasty import CONSTANTS, VALUES, calls, columns, signatures

# The mathematical library of the platform may round these differently in the last place.
INEXACT = {"ln", "exp", "power"}


def in_duckdb(
    expressions: Sequence[Expression], inputs: Sequence[Column], rows: Sequence[tuple[Value, ...]]
) -> list[tuple[Value, ...]]:
    """The values of expressions for rows, by DuckDB, in order."""
    import pyarrow as pa

    kinds = {"boolean": pa.bool_(), "integer": pa.int64(), "real": pa.float64(), "text": pa.string(),
             "date": pa.date32(), "timestamp": pa.timestamp("us")}  # fmt: skip
    data = {c.name: pa.array([row[i] for row in rows], kinds[c.type]) for i, c in enumerate(inputs)}
    table = pa.table({"i": pa.array(range(len(rows)), pa.int64()), **data})
    layers = Layers({column: column.name for column in inputs})
    names = [layers.write_value(expression) for expression in expressions]
    clauses, top = layers.write_ctes("data", "l")
    connection = duckdb.connect()
    try:
        connection.register("data", table)
        head = f"WITH {', '.join(clauses)} " if clauses else ""
        sql = f"{head}SELECT {', '.join(names)} FROM {top} ORDER BY i"
        return connection.execute(sql, pick_parameters(sql, layers.parameters)).fetchall()
    finally:
        connection.close()


def same(got: Value, wanted: Value, *, exact: bool) -> bool:
    if isinstance(got, float) and isinstance(wanted, float):
        signed = math.copysign(1, got) == math.copysign(1, wanted)
        return signed and (got == wanted or (not exact and math.isclose(got, wanted, rel_tol=1e-15)))
    return type(got) is type(wanted) and got == wanted


def test_every_function_has_a_form() -> None:
    assert set(TEMPLATES) == set(FUNCTIONS)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_function_means_the_same_in_duckdb(name: str) -> None:
    """Every signature, every nasty value, every nasty constant: equal values, −0.0 told from 0.0, and no error."""
    found: dict[tuple[Type, ...], list[Expression]] = {}
    for expression, kinds in calls(name):
        found.setdefault(kinds, []).append(expression)
    for kinds, every in found.items():
        expressions = random.Random(0).sample(every, min(len(every), 60))
        inputs = columns(kinds)
        used = [i for i in range(len(kinds)) if i not in FUNCTIONS[name].constants]
        pools = [VALUES[kinds[i]] if i in used else (None,) for i in range(len(kinds))]
        rows = list(itertools.product(*pools))
        if len(used) > 2:  # all pairs are covered by signatures of two; of the triples a sample is enough
            rows = random.Random(0).sample(rows, min(len(rows), 800))
        results = in_duckdb(expressions, inputs, rows)
        for row, values in zip(rows, results):
            known: dict[Column | ReleasedValue, Value] = dict(zip(inputs, row))
            for asked, got in zip(expressions, values):
                wanted = evaluate(asked, known)
                assert same(got, wanted, exact=name not in INEXACT), (str(asked), row, got, wanted)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_constants_fold_to_the_same(name: str) -> None:
    """Calls of constants alone, which DuckDB computes while it plans: equal values of the declared type, no error."""
    rng = random.Random(name)
    found = []
    for expression, kinds in [*calls(name)] * 4:
        known = {column: Literal(rng.choice(VALUES[column.type]), column.type) for column in columns(kinds)}
        arguments = tuple(known.get(a, a) if isinstance(a, Column) else a for a in expression.arguments)
        found.append(replace(expression, arguments=arguments))
    chosen = rng.sample(found, min(len(found), 150))
    one = Column("t", "c0", Type.INTEGER)
    ((*values,),) = in_duckdb(chosen, (one,), [(1,)])
    for asked, got in zip(chosen, values):
        wanted = evaluate(asked, {})
        assert same(got, wanted, exact=name not in INEXACT), (str(asked), got, wanted)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_results_have_the_declared_type(name: str) -> None:
    """DuckDB gives a call the very type that the plan gives it, so that no wider value can slip through."""
    for expression, kinds in list(calls(name))[:40]:
        inputs = columns(kinds)
        layers = Layers({column: column.name for column in inputs})
        value = layers.write_value(expression)
        clauses, top = layers.write_ctes("data", "l")
        sql = f"WITH {', '.join(clauses)} SELECT typeof({value}) FROM {top}"
        with duckdb.connect() as connection:
            listed = ", ".join(f"c{i} {SQL_TYPES[kind]}" for i, kind in enumerate(kinds))
            connection.execute(f"CREATE TABLE data ({listed})")
            connection.execute("INSERT INTO data (c0) VALUES (NULL)")
            assert connection.execute(sql, pick_parameters(sql, layers.parameters)).fetchall() == [
                (SQL_TYPES[expression.type],)
            ]


def a_tree(rng: random.Random, kind: Type, depth: int) -> Expression:
    """A random expression of a type, over one column of each type and literals."""
    if depth == 0 or rng.random() < 0.15:
        if rng.random() < 0.7:
            return Column("t", f"c_{kind}", kind)
        return Literal(rng.choice(CONSTANTS[kind]), kind)
    while True:
        name = rng.choice(sorted(FUNCTIONS))
        function = FUNCTIONS[name]
        fitting = [kinds for kinds in signatures(name) if function.yields(kinds) is kind]
        if not fitting:
            continue
        arguments: list[Expression] = []
        for position, wanted in enumerate(rng.choice(fitting)):
            if position not in function.constants:
                arguments.append(a_tree(rng, wanted, depth - 1))
            elif function.words:
                arguments.append(Literal(rng.choice(function.words), Type.TEXT))
            else:
                arguments.append(Literal(rng.choice(CONSTANTS[wanted]), wanted))
        return make_call(name, *arguments)


@pytest.mark.parametrize("seed", range(6))
def test_random_expressions_mean_the_same(seed: int) -> None:
    """Functions of functions, a few deep, over rows of nasty values: equal values or NULL on both sides, no error."""
    rng = random.Random(seed)
    inputs = tuple(Column("t", f"c_{kind}", kind) for kind in Type)
    rows = [tuple(rng.choice(VALUES[kind]) for kind in Type) for _ in range(120)]
    trees = [tree for _ in range(40) if _exact(tree := a_tree(rng, rng.choice(list(Type)), 4))]
    assert len(trees) > 15
    for row, values in zip(rows, in_duckdb(trees, inputs, rows)):
        known: dict[Column | ReleasedValue, Value] = dict(zip(inputs, row))
        for tree, got in zip(trees, values):
            wanted = evaluate(tree, known)
            assert same(got, wanted, exact=True), (str(tree), row, got, wanted)


def _exact(tree: Expression) -> bool:
    return not any(isinstance(part, Call) and part.function in INEXACT for part in walk(tree))


def test_deep_expressions_stay_small() -> None:
    """The text of a question grows with its size, not with two to its depth, and DuckDB plans it at once."""
    column = Column("t", "c0", Type.REAL)
    tree: Expression = column
    for _ in range(60):
        tree = make_call("divide", make_call("add", tree, make_literal(1.0)), make_literal(2.0))
    started = time.monotonic()
    ((got,),) = in_duckdb([tree], (column,), [(3.0,)])
    assert got == evaluate(tree, {column: 3.0})
    assert time.monotonic() - started < 10


def test_letters_change_case_alike() -> None:
    """Every letter of Unicode, one by one: DuckDB's simple mapping and ours agree, and lengths never change."""
    letters = [chr(i) for i in range(1, 0x1E944) if unicodedata.category(chr(i)) not in ("Cs", "Cn", "Co")]
    column = Column("t", "c0", Type.TEXT)
    both = [make_call("lower", column), make_call("upper", column)]
    wrong = [
        letter
        for letter, values in zip(letters, in_duckdb(both, (column,), [(letter,) for letter in letters]))
        if values != tuple(evaluate(change, {column: letter}) for change in both)
    ]
    assert wrong == []
