"""DuckDB's form of every function means what evaluate.py says, for values that break things, and nothing raises."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import duckdb
import pytest

from discreet.engines.dialect import TEMPLATES, Layers
from discreet.plan.evaluate import evaluate
from discreet.plan.expressions import Column, Expression, Released
from discreet.plan.functions import FUNCTIONS
from discreet.plan.types import Type, Value
from tests.engines.nasty import VALUES, calls, columns

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
    names = [layers.value(expression) for expression in expressions]
    clauses, top = layers.ctes("data", "l")
    connection = duckdb.connect()
    try:
        connection.register("data", table)
        head = f"WITH {', '.join(clauses)} " if clauses else ""
        sql = f"{head}SELECT {', '.join(names)} FROM {top} ORDER BY i"
        return connection.execute(sql, layers.parameters).fetchall()
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
    for kinds, expressions in found.items():
        inputs = columns(kinds)
        used = [i for i in range(len(kinds)) if i not in FUNCTIONS[name].constants]
        pools = [VALUES[kinds[i]] if i in used else (None,) for i in range(len(kinds))]
        rows = list(itertools.product(*pools))
        results = in_duckdb(expressions, inputs, rows)
        for row, values in zip(rows, results):
            known: dict[Column | Released, Value] = dict(zip(inputs, row))
            for asked, got in zip(expressions, values):
                wanted = evaluate(asked, known)
                assert same(got, wanted, exact=name not in INEXACT), (str(asked), row, got, wanted)
