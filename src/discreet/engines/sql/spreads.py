"""Spreads: what the rows of each group weigh in each cell (``contributions.Spread``), in SQL.

Where rows are their own units, the cells of all groups are counted in one array while the engine streams them, or by
the engine where there are too many. Where units own many rows, what each of them weighs is joined to the rows.

Overflow is impossible: a row weighs at most 2^24, and a table that was read to its end has fewer than 2^39 rows.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from threading import Lock
from typing import TypeAlias

import numpy as np

from discreet.engines.engine import EMPTY, GroupHistogram, Groups, ProgressCallback
from discreet.engines.lookups import make_groups_table
from discreet.engines.sql.runner import Runner
from discreet.engines.sql.statement import BoundedStatement
from discreet.engines.sql.unit_sums import weigh_rows, write_cell_weights, write_public_rows, write_same_pair
from discreet.engines.steps import steps_of
from discreet.exact import Integers

CellCounter: TypeAlias = Callable[[int, int], tuple[GroupHistogram, ...] | None]
"""Counts the cells of the spread at a position in so many observed groups; None where it does not."""

# Rows that are counted at once.
BATCH_ROWS = 1 << 20


def add_spreads(
    runner: Runner,
    statement: BoundedStatement,
    groups: Groups,
    watch: ProgressCallback | None = None,
    tally: CellCounter | None = None,
) -> Groups:
    """An answer with the spreads that the question asks for, by SQL over the observed groups.

    Where units own many rows, ``tally`` may count the cells of a spread in another way.
    """
    if not statement.bounded.spreads:
        return groups
    if statement.keys:
        runner.fill("observed", make_groups_table(statement.bounded, groups.keys, coded=True))
    count = len(groups.keys)
    if statement.bounded.unit is None:
        sizes = [spread.last - spread.first + 1 for spread in statement.bounded.spreads]
        if sum(sizes) * count <= runner.most_cells:
            return replace(groups, spreads=_count_stream(runner, statement, sizes, count, watch))
        queries = [_write_cells_of_rows(statement, i) for i in range(len(sizes))]
    else:
        spreads = []
        for i in range(len(statement.bounded.spreads)):
            tallied = None if tally is None else tally(i, count)
            query = _write_cells_of_units(statement, i)
            spreads.append(_count_query(runner, statement, query, count, watch) if tallied is None else tallied)
        return replace(groups, spreads=tuple(spreads))
    return replace(groups, spreads=tuple(_count_query(runner, statement, query, count, watch) for query in queries))


def make_histograms(codes: Integers, cells: Integers, counts: Integers, groups: int) -> tuple[GroupHistogram, ...]:
    """One histogram for each group, from codes in ascending order and the ascending cells of each."""
    edges = np.searchsorted(codes, np.arange(groups + 1)).tolist()
    return tuple((cells[start:end], counts[start:end]) if end > start else EMPTY for start, end in pairwise(edges))


def make_histograms_from_dense(counts: Integers, first: int, size: int, groups: int) -> tuple[GroupHistogram, ...]:
    """One histogram for each group, from the counts of all cells, group after group."""
    filled = np.flatnonzero(counts)
    codes, cells = np.divmod(filled, size)
    return make_histograms(codes, cells + first, counts[filled], groups)


def _count_stream(
    runner: Runner, statement: BoundedStatement, sizes: Sequence[int], groups: int, watch: ProgressCallback | None
) -> tuple[tuple[GroupHistogram, ...], ...]:
    """Count cells as they come. A row without a cell has the position −1, which is a place of its own at the end."""
    totals = [np.zeros(size * groups + 1, dtype=np.int64) for size in sizes]
    locks = [Lock() for _ in sizes]
    positions = []
    for spread, size in zip(statement.bounded.spreads, sizes):
        start = f"observed.code * {size}" if statement.keys else "0"
        cell = f"v{statement.steps.index(steps_of(spread))} - ({spread.first})"
        positions.append(statement.dialect.as_integer(f"coalesce({start} + {cell}, -1)"))
    query = statement.write_query([], f"SELECT {', '.join(positions)} FROM rows{join_observed(statement)}")

    def count(number: int, where: Integers) -> None:
        with locks[number]:
            np.add.at(totals[number], where, 1)

    batches = runner.stream(query, statement.parameters, BATCH_ROWS, watch)
    jobs = (partial(count, i, c.to_numpy()) for batch in batches for i, c in enumerate(batch.columns))
    for _ in runner.pipe(jobs):
        pass
    firsts = [spread.first for spread in statement.bounded.spreads]
    return tuple(
        make_histograms_from_dense(total[:-1], first, size, groups)
        for total, first, size in zip(totals, firsts, sizes, strict=True)
    )


def _count_query(
    runner: Runner, statement: BoundedStatement, query: str, groups: int, watch: ProgressCallback | None
) -> tuple[GroupHistogram, ...]:
    """Histograms from rows of code, cell and count, in that order."""
    batches = list(runner.stream(query, statement.parameters, BATCH_ROWS, watch))
    if not batches:
        return (EMPTY,) * groups
    codes, cells, counts = (
        np.concatenate([batch.columns[i].to_numpy() for batch in batches]).astype(np.int64) for i in range(3)
    )
    return make_histograms(codes, cells, counts, groups)


def join_observed(statement: BoundedStatement, left: str = "rows") -> str:
    """What to write after a relation, so that its rows have the code of their group."""
    return f" JOIN observed ON {statement.write_same_group(left, 'observed')}" if statement.keys else ""


def _write_cells_of_rows(statement: BoundedStatement, position: int) -> str:
    """Cells counted by the engine, each row its own unit."""
    value = f"v{statement.steps.index(steps_of(statement.bounded.spreads[position]))}"
    code = "observed.code" if statement.keys else "0"
    return statement.write_query(
        [],
        f"SELECT {code} AS code, {value} AS cell, count(*) FROM rows{join_observed(statement)} "
        f"WHERE {value} IS NOT NULL GROUP BY code, cell ORDER BY code, cell",
    )


def _write_cells_of_units(statement: BoundedStatement, position: int) -> str:
    """Cells with the weights of rows, which follow from what each unit has."""
    value = f"v{statement.steps.index(steps_of(statement.bounded.spreads[position]))}"
    dialect = statement.dialect
    if statement.bounded.max_rows is not None:
        weights, source = weigh_rows(statement)
    else:
        weights = write_cell_weights(statement)
        source = f"public JOIN weighed ON {write_same_pair(statement, 'public', 'weighed')}"
    code = "observed.code" if statement.keys else "0"
    total = dialect.bounded_sum("w", 1 << statement.bounded.weight_bits)
    return statement.write_query(
        [write_public_rows(statement, once=False), *weights],
        f"SELECT {code} AS place, {value} AS cell, {dialect.as_integer(total)} "
        f"FROM {source}{join_observed(statement, 'public')} WHERE {value} IS NOT NULL AND w > 0 "
        "GROUP BY place, cell ORDER BY place, cell",
    )
