"""What DuckDB makes of our words: types are those of the plan, and nothing is volatile."""

from __future__ import annotations

import re

import duckdb
import pyarrow as pa
import pytest

from discreet.engines.duckdb.dialect import DIALECT, TYPES, pick_parameters
from discreet.engines.sql.layers import Layers
from discreet.plan.expressions import Column
from discreet.plan.functions import FUNCTIONS
from tests.engines.nasty import calls, columns


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_results_have_the_declared_type(name: str) -> None:
    """DuckDB gives a call the very type that the plan gives it, so that no wider value can slip through."""
    for expression, kinds in list(calls(name))[:40]:
        inputs = columns(kinds)
        layers = Layers({column: column.name for column in inputs}, DIALECT)
        value = layers.write_value(expression)
        clauses, top = layers.write_ctes("data", "l")
        sql = f"WITH {', '.join(clauses)} SELECT typeof({value}) FROM {top}"
        with duckdb.connect() as connection:
            listed = ", ".join(f"c{i} {TYPES[kind]}" for i, kind in enumerate(kinds))
            connection.execute(f"CREATE TABLE data ({listed})")
            connection.execute("INSERT INTO data (c0) VALUES (NULL)")
            assert connection.execute(sql, pick_parameters(sql, layers.parameters)).fetchall() == [
                (TYPES[expression.type],)
            ]


def test_18_no_function_is_volatile() -> None:
    """Nothing that is written draws, tells the time or counts."""
    for name in FUNCTIONS:
        expression, kinds = next(calls(name))
        layers = Layers({Column("t", f"c{i}", kind): f"c{i}" for i, kind in enumerate(kinds)}, DIALECT)
        layers.write_value(expression)
        text = " ".join(layers.write_ctes("t", "e")[0])
        assert not re.search(r"\b(random|now|current_\w+|today|uuid|gen_random\w*|nextval|get_\w+)\b", text), name


@pytest.mark.parametrize(("weight", "values"), [
    (3, [2**62, 2**62, 2**62, -(2**62), -(2**62), -(2**62), 5]),
    (0, [2**62, 2**62, 2**62]),
    (0, [-(2**63), -(2**63), -1]),
    (2**24, [2**37, -(2**63), 2**63 - 1, None]),
    (1, [2**61 - 1, -(2**63), 2**63 - 1, 1]),
    (7, [None]),
])  # fmt: skip  # sums on the way are beyond 64 bits, and products are not beyond 62
@pytest.mark.parametrize("grouped", [False, True])
def test_low_sums_wrap_and_their_products_are_exact(weight: int, values: list[int | None], grouped: bool) -> None:
    """They neither raise nor become NULL, in groups and without."""
    product = DIALECT.low_product(f"CAST({weight} AS BIGINT)", f"coalesce({DIALECT.low_sum('x')}, 0)")
    frame = pa.table({"x": pa.array(values, pa.int64()), "k": [1] * len(values)})
    with duckdb.connect() as connection:
        connection.register("given", frame)
        query = f"SELECT {product} FROM given{' GROUP BY k' * grouped}"
        ((found,),) = connection.execute(query).fetchall()
    assert found == weight * sum(value or 0 for value in values) and abs(found) < 2**62
