"""Spreads of units about many rows: DuckDB reads rows as a unit and a number, and NumPy weighs them piece by piece.

In one statement the weights of all units and groups are a table that is joined to the rows again. Here a row's number
is that of its group and its cell in one, so that a piece of rows (``unit_pieces``) is weighed and counted by itself
(``weighed_cells``). Whether it is done follows from the question, the number of rows and that of the groups, of those
that were found where they are not public; what is answered is the same either way.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from discreet.bounding.contributions import group_count, limits_groups
from discreet.engines.duckdb.prepared import PreparedTable
from discreet.engines.duckdb.session import Session
from discreet.engines.duckdb.unit_pieces import UnitPieces
from discreet.engines.duckdb.weighed_cells import weigh_cells
from discreet.engines.duckdb.weighed_pairs import HALF, WeightRule
from discreet.engines.engine import GroupHistogram, ProgressCallback
from discreet.engines.sql.spreads import join_observed, make_histograms_from_dense
from discreet.engines.sql.statement import BoundedStatement
from discreet.engines.sql.unit_sums import write_public_rows
from discreet.engines.steps import steps_of
from discreet.late_dataclass import dataclass
from discreet.plan.relations import Scan, split


@dataclass(frozen=True, slots=True)
class CellTally:
    """How the rows of a question with spreads alone are read and weighed."""

    statement: BoundedStatement
    rule: WeightRule
    spans: tuple[str, ...]
    folder: Path

    def count(
        self, session: Session, position: int, groups: int, watch: ProgressCallback | None
    ) -> tuple[GroupHistogram, ...] | None:
        """One histogram for each of the observed groups; None where there are too many of them."""
        spread = self.statement.bounded.spreads[position]
        size = spread.last - spread.first + 2
        if size * (group_count(self.statement.bounded) or groups) > session.most_cells:
            return None
        pieces = UnitPieces(partial(self._write_rows, position), self.statement.parameters, size * groups, self.spans)
        totals = np.zeros(size * groups, np.int64)
        work = partial(weigh_cells, size=size, groups=groups, rule=self.rule)
        for found in pieces.run(session, self.folder, work, watch):
            for sums in found:
                totals[sums.groups] += sums.low[0] + (sums.high[0] << HALF)
        totals.reshape(groups, size)[:, 0] = 0  # rows without a cell
        return make_histograms_from_dense(totals, spread.first - 1, size, groups)

    def _write_rows(self, position: int, span: str) -> str:
        """The unit of each row, and its number: its cell, counted from 1, or 0 without one, in that of its group."""
        statement, spread = self.statement, self.statement.bounded.spreads[position]
        value, size = f"v{statement.steps.index(steps_of(spread))}", spread.last - spread.first + 2
        start = f"observed.code * {size}" if statement.keys else "0"
        number = f"CAST({start} + coalesce({value} - ({spread.first - 1}), 0) AS UINTEGER)"
        query = f"SELECT {statement.owner}, {number} AS number FROM public{join_observed(statement, 'public')}"
        return statement.write_query([write_public_rows(statement, once=True)], query, span)


def plan_cells(statement: BoundedStatement, ready: PreparedTable | None, folder: Path) -> CellTally | None:
    """How the spreads of a question about units are tallied; None where they cannot be.

    That follows from the question and from how its table is stored, never from its rows.
    """
    bounded = statement.bounded
    stored = ready is not None or isinstance(split(bounded.source)[0], Scan)
    if bounded.unit is None or not bounded.spreads or not stored or statement.owner != "ordinal":
        return None
    caps = (bounded.max_rows, bounded.max_rows_per_group, bounded.max_groups)
    if any(cap is not None and cap << bounded.weight_bits >= 2**62 for cap in caps):
        return None
    rule = WeightRule(
        bits=bounded.weight_bits,
        rows=bounded.max_rows,
        rows_in_group=bounded.max_rows_per_group,
        groups=bounded.max_groups if limits_groups(bounded) else None,
        groups_of_unit=None,
        shares=(),
    )
    spans = () if ready is None or ready.ranges is None else tuple(ready.ranges.write_spans(statement.relation.ordinal))
    return CellTally(statement, rule, spans, folder)
