"""Rows as codes, in SQL: what ``engines.tabulation`` counts, with the weight of each row."""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

from dataclasses import replace

import numpy as np

from discreet.bounding.contributions import BoundedPlan
from discreet.engines.engine import ProgressCallback
from discreet.engines.sql.runner import Runner
from discreet.engines.sql.statement import BoundedStatement
from discreet.engines.sql.unit_sums import write_public_rows, write_unit_counts
from discreet.engines.steps import steps_of
from discreet.engines.tabulation import FIRST_CODE, NULL_CODE, OTHER_CODE, TableCounter, Tabulation
from discreet.exact import Integers
from discreet.plan.expressions import Call
from discreet.plan.types import Type

# Rows that are counted at once: with weights of 2^24 they stay far below 2^53.
BATCH_ROWS = 1 << 17


def tabulate_rows(
    runner: Runner, statement: BoundedStatement, tabulation: Tabulation, watch: ProgressCallback | None
) -> tuple[Integers, ...]:
    """All tables, from one pass over the rows. The statement is one of the plan that ``mark_empty`` gives."""
    counter = TableCounter(tabulation)
    codes = len(tabulation.bounded.spreads)
    for batch in runner.stream(_write_codes(statement), statement.parameters, BATCH_ROWS, watch):
        columns = [column.to_numpy(zero_copy_only=False).astype(np.int64, copy=False) for column in batch.columns]
        counter.add(columns[:codes], columns[codes] if len(columns) > codes else None)
    return counter.finish()


def mark_empty(bounded: BoundedPlan) -> BoundedPlan:
    """The same rows, with whether the argument of each spread is NULL as keys: so NULL differs from other values."""
    empty = tuple(Call("is_null", (spread.argument,), Type.BOOLEAN) for spread in bounded.spreads)
    return replace(bounded, keys=empty, domain=None)


def _write_codes(statement: BoundedStatement) -> str:
    """One row for each row: its codes, and where units own rows what it weighs."""
    bounded, dialect = statement.bounded, statement.dialect
    null, other = (dialect.literal(code, Type.INTEGER) for code in (NULL_CODE, OTHER_CODE))
    items = []
    for i, spread in enumerate(bounded.spreads):
        steps = steps_of(spread)
        first = 0 if steps.values is not None else steps.first
        cell = f"v{statement.steps.index(steps)} - ({first}) + {FIRST_CODE}"
        items.append(f"{dialect.as_integer(f'CASE WHEN k{i} THEN {null} ELSE coalesce({cell}, {other}) END')} AS d{i}")
    if bounded.unit is None:
        return statement.write_query([], f"SELECT {', '.join(items)} FROM rows")
    clauses = [write_public_rows(statement, once=False), write_unit_counts(statement)]
    last = f"SELECT {', '.join([*items, 'w'])} FROM public JOIN counts USING ({statement.owner})"
    return statement.write_query(clauses, last)
