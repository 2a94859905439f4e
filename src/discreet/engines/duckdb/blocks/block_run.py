"""Bounded questions about units, block by block: DuckDB brings the rows in the order of their units, the kernel bounds.

A prepared table is read by ranges of its units, several at a time. Any other source is sorted by DuckDB, on disk where
memory ends, and streamed. Either way a block holds whole units, and memory holds a few blocks.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.bounding.contributions import BoundedPlan, Counts, group_cap
from discreet.engines.duckdb.blocks import coded_rows, kernel
from discreet.engines.duckdb.blocks.tallies import Tally
from discreet.engines.duckdb.dialect import pick_parameters
from discreet.engines.duckdb.prepared import BLOCK_ROWS, PreparedTable
from discreet.engines.duckdb.session import Session
from discreet.engines.engine import Groups, ProgressCallback
from discreet.engines.lookups import weights
from discreet.engines.sql.statement import BoundedStatement
from discreet.engines.steps import steps_of
from discreet.exact import Integers
from discreet.plan.types import Type

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Beyond so many groups, or rows in a block, the SQL form takes over from the kernel.
MOST_GROUPS = 1 << 19
MOST_BLOCK_ROWS = 1 << 23


class _DoesNotFit(Exception):  # no error: the SQL form answers instead
    """A unit has too many rows for a block, or sums could leave 64 bits."""


def suits_blocks(bounded: BoundedPlan) -> bool:
    """Whether there is something to choose or to sort within units, which the kernel does faster than SQL."""
    distinct = any(measure.counts is Counts.DISTINCT for measure in bounded.measures)
    return bounded.unit is not None and bool(bounded.keys or bounded.spreads or distinct)


def run_in_blocks(
    session: Session, statement: BoundedStatement, ready: PreparedTable | None, watch: ProgressCallback | None
) -> Groups | None:
    """The answer by the kernel; None where the question does not fit it."""
    session.run(f"CREATE TABLE groups AS {coded_rows.write_distinct_keys(statement)}", statement.parameters)
    ((groups,),) = session.run("SELECT count(*) FROM groups")
    measures, spreads = statement.bounded.measures, statement.bounded.spreads
    if not groups:
        return Groups((), ((),) * len(measures), ((),) * len(spreads))
    shape = _make_block_plan(statement, groups)
    if groups > MOST_GROUPS or any((last - first + 1) * groups >= 2**62 for first, last in shape.layout.ranges):
        return None
    tally = Tally(session, shape, [statement.distinct_of(measure) for measure in measures])
    rows = _BlockReader(statement, shape, *_code_values(session, statement))
    try:
        for done, part in rows.read_ranges(session, ready) if ready else rows.read_stream(session, watch):
            tally.add(part)
            if watch is not None and done is not None:
                watch(done)
    except _DoesNotFit:
        return None
    if watch is not None:
        watch(1.0)
    return tally.make_groups(session.read(f"SELECT {', '.join(['code', *statement.keys])} FROM groups ORDER BY code"))


def _make_block_plan(statement: BoundedStatement, groups: int) -> kernel.BlockPlan:
    bounded = statement.bounded
    tables: list[Integers | None] = []
    for measure in bounded.measures:
        most = min(group_cap(bounded) or groups, groups)
        weighed = measure.counts is Counts.WEIGHT
        tables.append(np.array([0, *weights(measure, most)], dtype=np.int64) if weighed else None)
    return kernel.BlockPlan(
        bounded=bounded,
        sources=tuple(statement.source_of(measure) for measure in bounded.measures),
        groups=groups,
        layout=coded_rows.make_layout(statement, max(1, (groups - 1).bit_length())),
        spreads=tuple(statement.steps.index(steps_of(spread)) for spread in bounded.spreads),
        weights=tuple(tables),
    )


def _code_values(session: Session, statement: BoundedStatement) -> tuple[list[str], str]:
    """The values to tell apart, with their secret order: what to select, and joins.

    Texts become codes that follow their order, so that ties are broken in the same way.
    """
    items, joins = [], ""
    for i, argument in enumerate(statement.distinct):
        code = f"rows.x{i}" if argument.type is Type.REAL else statement.dialect.code(f"rows.x{i}", argument.type)
        if code is None:
            coded = f"SELECT x{i}, row_number() OVER (ORDER BY x{i}) AS code FROM (SELECT DISTINCT x{i} FROM rows)"
            session.run(f"CREATE TABLE told{i} AS {statement.write_query([], coded)}", statement.parameters)
            code = f"told{i}.code"
            joins += f" LEFT JOIN told{i} ON rows.x{i} = told{i}.x{i}"
        order = f"CAST({statement.write_place('rows.', (f'rows.x{i}', argument.type))} AS BIGINT)"
        items.append(f"coalesce({code}, 0) AS x{i}")
        items.append(f"CASE WHEN rows.x{i} IS NULL THEN CAST(-1 AS BIGINT) ELSE {order} END AS h{i}")
    return items, joins


@dataclass(frozen=True, slots=True)
class _BlockReader:
    """The rows of a question for the kernel, with ``items`` and ``joins`` for the values to tell apart."""

    statement: BoundedStatement
    shape: kernel.BlockPlan
    items: list[str]
    joins: str

    def _write_query(self, span: str = "") -> str:
        return coded_rows.write_coded_rows(self.statement, self.shape.layout, span, self.items, self.joins)

    def _fits(self, rows: int) -> bool:
        return kernel.fits(self.shape.bounded.measures, rows)

    def read_ranges(self, session: Session, ready: PreparedTable) -> Iterator[tuple[float | None, kernel.BlockResult]]:
        """Blocks of a prepared table by ranges of units, each with a query of its own. With the share that is done."""
        blocks, relation = ready.blocks, ready.to_row_source()
        if blocks is None or blocks.largest > MOST_BLOCK_ROWS or not self._fits(blocks.rows):
            raise _DoesNotFit
        queries = [self._write_query(span) for span in blocks.write_spans(relation.ordinal)]

        def run(query: str, cursor: DuckDBPyConnection) -> kernel.BlockResult:
            table = cursor.sql(query, params=pick_parameters(query, self.statement.parameters)).to_arrow_table()
            return kernel.bound_block(self.shape, self._make_block([column.to_numpy() for column in table.columns]))

        results = session.run_with_cursors([partial(run, query) for query in queries])
        yield from ((done / len(queries), part) for done, part in enumerate(results, 1))

    def read_stream(
        self, session: Session, watch: ProgressCallback | None
    ) -> Iterator[tuple[float | None, kernel.BlockResult]]:
        """One ordered stream, cut between units. DuckDB tells the share done, while it sorts."""
        if coded_rows.needs_units(self.statement):
            units = coded_rows.write_distinct_units(self.statement)
            session.run(f"CREATE TABLE units AS {units}", self.statement.parameters)
        stream = session.stream(f"{self._write_query()} ORDER BY u", self.statement.parameters, BLOCK_ROWS, watch)
        jobs = (partial(kernel.bound_block, self.shape, block) for block in self._cut_by_unit(stream))
        yield from ((None, part) for part in session.pipe(jobs))

    def _cut_by_unit(self, stream: Iterator[Any]) -> Iterator[kernel.UnitBlock]:
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
            if units.size - cut > MOST_BLOCK_ROWS or not self._fits(rows):
                raise _DoesNotFit
            kept = [column[cut:] for column in columns]
            if cut:
                yield self._make_block([column[:cut] for column in columns])
        if kept:
            yield self._make_block(kept)

    def _make_block(self, columns: list[Integers]) -> kernel.UnitBlock:
        units, places, *more = columns
        count = 0 if self.shape.layout.packed else len(self.shape.layout.ranges)
        values, distinct = more[:count], more[count:]
        told_apart = [_to_integers(column) for column in distinct[::2]]
        return kernel.UnitBlock(units, places, tuple(values), tuple(zip(told_apart, distinct[1::2])))


def _to_integers(column: Integers | npt.NDArray[np.float64]) -> Integers:
    """Reals as integers in the same order: their bits, the lower ones turned over below zero. None is NaN or −0.0."""
    if column.dtype != np.float64:
        return column.astype(np.int64, copy=False)
    bits = column.view(np.int64)
    return bits ^ ((bits >> 63) & np.int64(2**63 - 1))
