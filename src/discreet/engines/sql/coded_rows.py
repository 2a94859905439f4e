"""Rows as codes, in SQL: what ``engines.tabulation`` counts, with the weight of each row.

Where streams of rows are fast, codes are counted as they come. Elsewhere the engine counts: each row has a cell in each
table, the number of the table and the cell are grouped by, and no more comes back than the tables have cells.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from discreet.bounding.contributions import BoundedPlan
from discreet.engines.engine import ProgressCallback
from discreet.engines.sql.runner import Runner
from discreet.engines.sql.statement import BoundedStatement
from discreet.engines.sql.unit_sums import weigh_rows, write_public_rows
from discreet.engines.steps import steps_of
from discreet.engines.tabulation import FIRST_CODE, NULL_CODE, OTHER_CODE, CellView, TableCounter, Tabulation
from discreet.exact import Integers
from discreet.plan.expressions import Call
from discreet.plan.types import Type

# Rows that are counted at once: with weights of 2^24 they stay far below 2^53.
BATCH_ROWS = 1 << 17


def tabulate_rows(
    runner: Runner, statement: BoundedStatement, tabulation: Tabulation, watch: ProgressCallback | None
) -> tuple[Integers, ...]:
    """All tables, from one pass over the rows. The statement is one of the plan that ``mark_empty`` gives."""
    if not runner.most_cells:
        return _count_in_engine(runner, statement, tabulation, watch)
    counter = TableCounter(tabulation)
    codes = len(tabulation.bounded.spreads)
    for batch in runner.stream(_write_codes(statement), statement.parameters, BATCH_ROWS, watch):
        columns = [column.to_numpy(zero_copy_only=False).astype(np.int64, copy=False) for column in batch.columns]
        counter.add(columns[:codes], columns[codes] if len(columns) > codes else None)
    return counter.finish()


def _count_in_engine(
    runner: Runner, statement: BoundedStatement, tabulation: Tabulation, watch: ProgressCallback | None
) -> tuple[Integers, ...]:
    """The engine counts. Views that are not the codes themselves are looked up."""
    for number, view in enumerate(tabulation.views):
        if not _is_plain(view):
            runner.fill(f"view{number}", _make_view_table(view))
    totals = [np.zeros(prod(tabulation.shape(i)), dtype=np.int64) for i in range(len(tabulation.tables))]
    for batch in runner.stream(_write_counted_cells(statement, tabulation), statement.parameters, BATCH_ROWS, watch):
        places, cells, counts = (column.to_numpy(zero_copy_only=False).astype(np.int64) for column in batch.columns)
        for place in np.unique(places):
            own = places == place
            totals[place][cells[own]] = counts[own]
    return tuple(total.reshape(tabulation.shape(i)) for i, total in enumerate(totals))


def _is_plain(view: CellView) -> bool:
    return bool(np.array_equal(view.cells, np.arange(len(view.cells))))


def _make_view_table(view: CellView) -> Any:
    import pyarrow as pa

    return pa.table({"code": np.arange(len(view.cells), dtype=np.int64), "seen": view.cells.astype(np.int64)})


def _write_counted_cells(statement: BoundedStatement, tabulation: Tabulation) -> str:
    """Rows of a table's number, a cell's position and what its rows weigh."""
    dialect = statement.dialect
    clauses, items, source = _list_codes(statement)
    clauses.append(statement.define("coded", f"SELECT {', '.join(items)} FROM {source}"))
    joins = "".join(
        f" JOIN view{number} ON coded.d{view.spread} = view{number}.code"
        for number, view in enumerate(tabulation.views)
        if not _is_plain(view)
    )
    weighed = statement.bounded.unit is not None
    positions = [dialect.as_integer(_write_position(tabulation, table)) for table in tabulation.tables]
    listed = ", ".join([*(f"{sql} AS p{i}" for i, sql in enumerate(positions)), *(["w"] if weighed else [])])
    clauses.append(statement.define("positioned", f"SELECT {listed} FROM coded{joins}"))
    total = dialect.bounded_sum("w", 1 << statement.bounded.weight_bits) if weighed else "count(*)"
    each = dialect.number_each("positioned", [f"p{i}" for i in range(len(positions))])
    return statement.write_query(
        clauses, f"SELECT place, cell, {dialect.as_integer(total)} AS total FROM {each} GROUP BY place, cell"
    )


def _write_position(tabulation: Tabulation, table: Sequence[int]) -> str:
    """Where a row counts in a table: the cells of its views, the last running fastest."""
    position = "0"
    for number in table:
        view = tabulation.views[number]
        cell = f"d{view.spread}" if _is_plain(view) else f"view{number}.seen"
        position = cell if position == "0" else f"({position}) * {view.size} + {cell}"
    return position


def mark_empty(bounded: BoundedPlan) -> BoundedPlan:
    """The same rows, with whether the argument of each spread is NULL as keys: so NULL differs from other values."""
    empty = tuple(Call("is_null", (spread.argument,), Type.BOOLEAN) for spread in bounded.spreads)
    return replace(bounded, keys=empty, domain=None)


def _write_codes(statement: BoundedStatement) -> str:
    """One row for each row: its codes, and where units own rows what it weighs."""
    clauses, items, source = _list_codes(statement)
    return statement.write_query(clauses, f"SELECT {', '.join(items)} FROM {source}")


def _list_codes(statement: BoundedStatement) -> tuple[list[str], list[str], str]:
    """Clauses, what to select, and from where."""
    bounded, dialect = statement.bounded, statement.dialect
    null, other = (dialect.literal(code, Type.INTEGER) for code in (NULL_CODE, OTHER_CODE))
    items = []
    for i, spread in enumerate(bounded.spreads):
        steps = steps_of(spread)
        first = 0 if steps.values is not None else steps.first
        cell = f"v{statement.steps.index(steps)} - ({first}) + {FIRST_CODE}"
        items.append(f"{dialect.as_integer(f'CASE WHEN k{i} THEN {null} ELSE coalesce({cell}, {other}) END')} AS d{i}")
    if bounded.unit is None:
        return [], items, "rows"
    weights, source = weigh_rows(statement)
    return [write_public_rows(statement, once=False), *weights], [*items, "w"], source
