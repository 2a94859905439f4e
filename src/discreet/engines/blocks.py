"""Bounded questions about units, block by block: DuckDB brings the rows in the order of their units, the kernel bounds.

A prepared table is read by ranges of its units, several at a time. Any other source is sorted by DuckDB, on disk where
memory ends, and streamed. Either way a block holds whole units, and memory holds a few blocks.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.engines import kernel
from discreet.engines.dialect import bound
from discreet.engines.engine import Groups, Watch
from discreet.engines.prepared import BLOCK_ROWS, Prepared
from discreet.engines.session import Session
from discreet.engines.statement import Statement
from discreet.exact import Integers

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Beyond so many groups, or rows in a block, the SQL form takes over from the kernel.
MOST_GROUPS = 1 << 19
MOST_BLOCK_ROWS = 1 << 23


class _DoesNotFit(Exception):  # no error: the SQL form answers instead
    """A unit has too many rows for a block, or sums could leave 64 bits."""


def run_in_blocks(session: Session, statement: Statement, ready: Prepared | None, watch: Watch | None) -> Groups | None:
    """The answer by the kernel; None where the question does not fit it."""
    session.run(f"CREATE TABLE groups AS {statement.distinct_keys()}", statement.parameters)
    keys = session.run(f"SELECT {', '.join(statement.keys)} FROM groups ORDER BY code LIMIT {MOST_GROUPS + 1}")
    measures = statement.bounded.measures
    if not keys:
        return Groups((), ((),) * len(measures))
    if len(keys) > MOST_GROUPS:
        return None
    shape = kernel.Shape(
        bounded=statement.bounded,
        sources=tuple(statement.source_of(measure) for measure in measures),
        groups=len(keys),
        layout=statement.layout(max(1, (len(keys) - 1).bit_length())),
    )
    totals = np.zeros((len(measures), len(keys)), dtype=np.int64)
    try:
        jobs = _ranges(session, statement, shape, ready) if ready else _streamed(session, statement, shape, watch)
        for done, sums in jobs:
            np.add(totals, sums, out=totals)
            if watch is not None and done is not None:
                watch(done)
    except _DoesNotFit:
        return None
    if watch is not None:
        watch(1.0)
    return Groups(tuple(keys), tuple(tuple(row.tolist()) for row in totals))


def _ranges(
    session: Session, statement: Statement, shape: kernel.Shape, ready: Prepared
) -> Iterator[tuple[float | None, Integers]]:
    """Blocks of a prepared table by ranges of units, each with a query of its own. Gives the share done, and sums."""
    blocks, relation = ready.blocks, ready.columns()
    if blocks is None or blocks.largest > MOST_BLOCK_ROWS or not kernel.fits(shape.bounded.measures, blocks.rows):
        raise _DoesNotFit
    queries = [statement.coded(shape.layout, span) for span in blocks.spans(relation.ordinal)]

    def run(query: str, cursor: DuckDBPyConnection) -> Integers:
        table = cursor.sql(query, params=bound(query, statement.parameters)).to_arrow_table()
        return kernel.bounded_sums(shape, _block([column.to_numpy() for column in table.columns]))

    results = session.spread([partial(run, query) for query in queries])
    yield from ((done / len(queries), sums) for done, sums in enumerate(results, 1))


def _streamed(
    session: Session, statement: Statement, shape: kernel.Shape, watch: Watch | None
) -> Iterator[tuple[float | None, Integers]]:
    """One ordered stream, cut between units. DuckDB tells the share done, while it sorts."""
    if statement.needs_units:
        session.run(f"CREATE TABLE units AS {statement.distinct_units()}", statement.parameters)
    query = f"{statement.coded(shape.layout)} ORDER BY u"
    stream = session.stream(query, statement.parameters, BLOCK_ROWS, watch)
    jobs = (partial(kernel.bounded_sums, shape, block) for block in _whole_units(shape, stream))
    yield from ((None, sums) for sums in session.pipe(jobs))


def _whole_units(shape: kernel.Shape, stream: Iterator[Any]) -> Iterator[kernel.Block]:
    """Cut a stream of batches so that no unit is in two blocks."""
    kept: list[Integers] = []
    rows = 0
    for batch in stream:
        columns = [column.to_numpy(zero_copy_only=True) for column in batch.columns]
        rows += batch.num_rows
        if kept:
            columns = [np.concatenate(pair) for pair in zip(kept, columns)]
        units = columns[0]
        cut = int(np.searchsorted(units, units[-1])) if units.size else 0
        if units.size - cut > MOST_BLOCK_ROWS or not kernel.fits(shape.bounded.measures, rows):
            raise _DoesNotFit
        kept = [column[cut:] for column in columns]
        if cut:
            yield _block([column[:cut] for column in columns])
    if kept:
        yield _block(kept)


def _block(columns: list[Integers]) -> kernel.Block:
    units, places, *values = columns
    return kernel.Block(units, places, tuple(values))
