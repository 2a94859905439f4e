"""Tables of cells: many marginals of the same rows, counted while the rows are read once. Exact, private integers.

A row has a code in each spread of a bounded question: 0 where its argument is NULL, 1 where it has no cell, and from 2
on the cells in order. A ``CellView`` says in which cell of a table each code counts, so that one spread can be seen
finely and coarsely. A table counts W of each row (step 3 of ``contributions.py``, with ``max_rows``) in the cell
where its views meet. So one unit adds at most ``max_rows``·2^b to every table, and to all of them the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from discreet.bounding.contributions import BoundedPlan, Spread
from discreet.errors import InternalError
from discreet.exact import Integers
from discreet.late_dataclass import dataclass

NULL_CODE, OTHER_CODE, FIRST_CODE = 0, 1, 2


@dataclass(frozen=True, eq=False)
class CellView:
    """How one spread of a question is seen in tables: for each code the cell that it counts in, of ``size`` cells."""

    spread: int
    cells: Integers
    size: int


@dataclass(frozen=True)
class Tabulation:
    """The tables to count of a bounded question without keys or measures: each a sequence of views, by position."""

    bounded: BoundedPlan
    views: tuple[CellView, ...]
    tables: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        bounded = self.bounded
        if bounded.keys or bounded.measures or (bounded.unit is not None and bounded.max_rows is None):
            raise InternalError("Tables are counted of rows without groups, and of units with a limit on all rows.")
        for view in self.views:
            codes = count_codes(bounded.spreads[view.spread])
            if len(view.cells) != codes or view.cells.min() < 0 or view.cells.max() >= view.size:
                raise InternalError("A view of a spread does not say where each of its codes counts.")

    def shape(self, table: int) -> tuple[int, ...]:
        """The sizes of a table's views."""
        return tuple(self.views[view].size for view in self.tables[table])


def count_codes(spread: Spread) -> int:
    """How many codes the rows of a spread can have."""
    return FIRST_CODE + (spread.last - spread.first + 1 if spread.values is None else len(spread.values))


class TableCounter:
    """Counts tables, block of rows after block of rows."""

    def __init__(self, tabulation: Tabulation) -> None:
        self._tabulation = tabulation
        tables = range(len(tabulation.tables))
        self._totals = [np.zeros(prod(tabulation.shape(table)), dtype=np.int64) for table in tables]

    def add(self, codes: Sequence[Integers], weights: Integers | None) -> None:
        """Count some rows: their codes, one array for each spread, and their weights, if they are not all one.

        The sum of a block's weights is below 2^53, so that the doubles in which NumPy adds weights are exact.
        """
        cells = [view.cells[codes[view.spread]] for view in self._tabulation.views]
        parts = None if weights is None else weights.astype(np.float64)
        for number, table in enumerate(self._tabulation.tables):
            where: Integers = np.zeros(len(codes[0]), dtype=np.int64) if not table else cells[table[0]]
            for view in table[1:]:
                where = where * self._tabulation.views[view].size + cells[view]
            total = self._totals[number]
            found = np.bincount(where, parts, minlength=total.size)
            total += found if parts is None else found.astype(np.int64)

    def finish(self) -> tuple[Integers, ...]:
        """The tables."""
        return tuple(total.reshape(self._tabulation.shape(i)) for i, total in enumerate(self._totals))
