"""The rows of a question in pieces, each with all rows of its units, and what is worked out of each piece.

Rows leave DuckDB as a unit, a number and integers. They are parted by unit (``unit_parts``), or read by ranges of units
where a table is prepared.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from discreet.engines.duckdb.dialect import pick_parameters
from discreet.engines.duckdb.session import Session
from discreet.engines.duckdb.unit_parts import BLOCK_ROWS, UnitParts, are_many
from discreet.engines.duckdb.weighed_pairs import UnitRows, gather, join, read_array
from discreet.engines.engine import ProgressCallback
from discreet.late_dataclass import dataclass

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

T = TypeVar("T")

# Rows that are weighed at once, so that what is looked up stays in a processor's cache.
SLICE_ROWS = 1 << 16
# How often units may fall, for each block. Where they fall more often, there is no order to make use of.
MOST_FALLS = 4
_KEPT_BYTES = (1 << 25) - (1 << 16)


@dataclass(frozen=True, slots=True)
class UnitPieces:
    """How rows are read: ``write`` gives the statement of those within a condition, or of all.

    Their numbers are below ``numbers``. ``spans`` are conditions that part rows by unit; without any, rows come in any
    order.
    """

    write: Callable[[str], str]
    parameters: Mapping[str, str]
    numbers: int
    spans: tuple[str, ...]

    def run(
        self, session: Session, folder: Path, work: Callable[[UnitRows], T], watch: ProgressCallback | None
    ) -> Iterator[T]:
        """What ``work`` makes of each piece. Files that are needed for it are made in ``folder``, for a while."""
        _keep_memory()
        return self._run_ranges(session, work, watch) if self.spans else self._run_all(session, folder, work, watch)

    def _run_ranges(
        self, session: Session, work: Callable[[UnitRows], T], watch: ProgressCallback | None
    ) -> Iterator[T]:
        jobs = [partial(self._run_range, self.write(span), work) for span in self.spans]
        for done, found in enumerate(session.run_with_cursors(jobs), 1):
            yield from found
            if watch is not None:
                watch(done / len(jobs))

    def _run_range(self, query: str, work: Callable[[UnitRows], T], cursor: DuckDBPyConnection) -> list[T]:
        """A range of units. One of them may have more rows than are held at once."""
        reader = cursor.sql(query, params=pick_parameters(query, self.parameters)).to_arrow_reader(SLICE_ROWS)
        held: list[UnitRows] = []
        for batch in reader:
            held.append(_to_rows(batch))
            if are_many(held):
                held = [gather(held, self.numbers)]
        return [work(rows) for rows in cut_between_units(held)]

    def _run_all(
        self, session: Session, folder: Path, work: Callable[[UnitRows], T], watch: ProgressCallback | None
    ) -> Iterator[T]:
        def report(share: float) -> None:
            if watch is not None:
                watch(share / 2)  # the other half is weighing

        with tempfile.TemporaryDirectory(dir=folder) as own:
            parts = UnitParts(Path(own), session.settings.count_bytes() // 2, self.numbers)
            for batch in session.stream(self.write(""), self.parameters, BLOCK_ROWS, report):
                parts.add(_to_rows(batch))
            yield from session.pipe(partial(work, rows) for rows in parts.read())


def _keep_memory() -> None:
    """Have the C library keep what is freed for the next array, instead of giving it back to the system each time.

    GNU's library does so for blocks up to the size of the largest that it has seen freed, but for very large ones. This
    is such a block, to which nothing is written. A third of all time went into pages that were taken again and again.
    """
    np.empty(_KEPT_BYTES, np.uint8)


def _to_rows(batch: Any) -> UnitRows:
    units, numbers, *sums = map(read_array, batch.columns)
    return UnitRows(units.astype(np.int64, copy=False), numbers, tuple(sums))


def cut_between_units(blocks: Sequence[UnitRows]) -> Iterator[UnitRows]:
    """The same rows in pieces, each with all rows of its units; of about the size of a block, where units are in order.

    DuckDB reads in order, but a thread may go on elsewhere in the middle of a block. Blocks may come in any order, and
    a unit may go on in another block.
    """
    falls = [np.flatnonzero(block.units[1:] < block.units[:-1]) + 1 for block in blocks]
    if sum(map(len, falls)) > MOST_FALLS * len(blocks):
        yield join(blocks)
        return
    runs = [run for block, at in zip(blocks, falls) for run in _cut_at(block, at.tolist())]
    edges = np.unique([run.units[0] for run in runs])
    places = [[*np.searchsorted(run.units, edges).tolist(), len(run)] for run in runs]
    for piece in range(len(edges)):
        parts = [run.pick(slice(at[piece], at[piece + 1])) for run, at in zip(runs, places)]
        yield join([part for part in parts if len(part)])


def _cut_at(block: UnitRows, places: list[int]) -> Iterator[UnitRows]:
    return (block.pick(slice(start, end)) for start, end in pairwise([0, *places, len(block)]) if start < end)
