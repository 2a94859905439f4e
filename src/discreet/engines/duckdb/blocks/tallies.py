"""What blocks of units add up to: sums by group, counts by cell, and the distinct values, which DuckDB keeps.

Cells of all groups are counted in one array where it is small enough; otherwise the taken rows' positions are sorted
and counted now and then. Distinct values go to a table of the session, on disk where memory ends.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.bounding.contributions import Counts
from discreet.engines.duckdb.blocks.kernel import BlockPlan, BlockResult
from discreet.engines.duckdb.session import Session
from discreet.engines.engine import GroupHistogram, Groups
from discreet.engines.sql.spreads import MOST_CELLS, make_histograms, make_histograms_from_dense
from discreet.exact import Integers

# Positions and values that are gathered before they are counted or handed to DuckDB.
GATHERED = 1 << 22


class Tally:
    """Adds up parts. ``distinct`` says which distinct argument each measure counts, if any."""

    def __init__(self, session: Session, shape: BlockPlan, distinct: Sequence[int | None]) -> None:
        self._session = session
        self._shape = shape
        self._distinct = distinct
        self._sums = np.zeros((len(shape.sources), shape.groups), dtype=np.int64)
        ranges = [shape.layout.ranges[source] for source in shape.spreads]
        self._cells = [_CellTally(first, last - first + 1, shape.groups) for first, last in ranges]
        self._values: dict[int, list[tuple[Integers, Integers]]] = {}
        self._stored: set[int] = set()

    def add(self, part: BlockResult) -> None:
        """Add what one block brings."""
        self._sums += part.sums
        for cells, positions in zip(self._cells, part.cells):
            cells.add(positions)
        for i, values in enumerate(part.values):
            gathered = self._values.setdefault(i, [])
            gathered += values
            if sum(codes.size for codes, _ in gathered) > GATHERED:
                self._store(i)

    def make_groups(self, coded: Iterable[tuple[Any, ...]]) -> Groups:
        """The answer, from the code and the key of each group, in order.

        Observed groups that nobody kept are left out as they are read: one person may bring any number of them.
        """
        for i in list(self._values):
            self._store(i)
        counted = {i: self._count(i) for i in sorted({i for i in self._distinct if i is not None})}
        rows = [sums if i is None else counted[i] for sums, i in zip(self._sums, self._distinct)]
        kept = self._find_kept(rows)
        return Groups(
            tuple(row[1:] for row in coded if kept[row[0]]),
            tuple(tuple(row[kept].tolist()) for row in rows),
            tuple(tuple(compress(cells.make_histograms(), kept)) for cells in self._cells),
        )

    def _find_kept(self, rows: Sequence[Integers]) -> npt.NDArray[np.bool_]:
        """The groups that some unit kept: all, if they are public or if no measure counts everybody who is there."""
        bounded = self._shape.bounded
        everybody = any(m.argument is None and m.counts in (Counts.ROWS, Counts.UNITS) for m in bounded.measures)
        if bounded.domain is not None or not bounded.keys or not everybody:
            return np.ones(self._shape.groups, dtype=np.bool_)
        return np.any([row != 0 for row in rows], axis=0)

    def _store(self, number: int) -> None:
        """Hand gathered values to DuckDB."""
        import pyarrow as pa

        gathered = self._values.pop(number)
        if not gathered:
            return
        codes, values = (np.concatenate([pair[i] for pair in gathered]) for i in range(2))
        self._session.append(f"brought{number}", pa.table({"code": codes.astype(np.int32), "x": values}))
        self._stored.add(number)

    def _count(self, number: int) -> Integers:
        found = np.zeros(self._shape.groups, dtype=np.int64)
        if number in self._stored:
            for code, count in self._session.run(f"SELECT code, count(DISTINCT x) FROM brought{number} GROUP BY code"):
                found[code] = count
        return found


class _CellTally:
    """Counts by cell of all groups."""

    def __init__(self, first: int, size: int, groups: int) -> None:
        self._first, self._size, self._groups = first, size, groups
        dense = size * groups <= MOST_CELLS
        self._dense = np.zeros(size * groups, dtype=np.int64) if dense else None
        self._known: tuple[Integers, Integers] = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
        self._gathered: list[Integers] = []

    def add(self, positions: list[Integers]) -> None:
        if self._dense is not None:
            for where in positions:
                np.add.at(self._dense, where, 1)
            return
        self._gathered += positions
        if sum(where.size for where in self._gathered) > GATHERED:
            self._merge()

    def make_histograms(self) -> tuple[GroupHistogram, ...]:
        if self._dense is not None:
            return make_histograms_from_dense(self._dense, self._first, self._size, self._groups)
        self._merge()
        where, counts = self._known
        codes, cells = np.divmod(where, self._size)
        return make_histograms(codes, cells + self._first, counts, self._groups)

    def _merge(self) -> None:
        """Count what was gathered into what is known."""
        known, before = self._known
        where, place = np.unique(np.concatenate([known, *self._gathered]), return_inverse=True)
        counts = np.zeros(where.size, dtype=np.int64)
        counts[place[: known.size]] = before
        np.add.at(counts, place[known.size :], 1)
        self._known, self._gathered = (where, counts), []
