"""Questions about a prepared table, one range of its units after the other: pairs of units and groups stay few.

A unit is in one range only, and what a statement measures is a sum over units. So the sums of all ranges add up to
those of one statement.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from discreet.engines.duckdb.dialect import pick_parameters
from discreet.engines.duckdb.prepared import PreparedTable
from discreet.engines.duckdb.session import Session
from discreet.engines.engine import ProgressCallback
from discreet.engines.sql.statement import BoundedStatement
from discreet.engines.sql.unit_sums import joins_counts, write_by_units
from discreet.plan.types import Value

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def run_by_ranges(
    session: Session, statement: BoundedStatement, ready: PreparedTable, watch: ProgressCallback | None
) -> list[tuple[Any, ...]] | None:
    """The keys and totals of each group; None where one statement does as well."""
    bounded = statement.bounded
    if bounded.unit is None or ready.ranges is None or joins_counts(statement):
        return None
    spans = ready.ranges.write_spans(statement.relation.ordinal)
    queries = [write_by_units(statement, span) for span in spans]

    def run(query: str, cursor: DuckDBPyConnection) -> list[tuple[Any, ...]]:
        parameters = pick_parameters(query, statement.parameters)
        found: list[tuple[Any, ...]] = cursor.execute(query, parameters).fetchall()
        return found

    keys, totals = len(bounded.keys), dict[tuple[Value, ...], list[int]]()
    for done, rows in enumerate(session.run_with_cursors([partial(run, query) for query in queries]), 1):
        for row in rows:
            sums = totals.setdefault(row[:keys], [0] * len(bounded.measures))
            for i in range(len(sums)):
                sums[i] += int(row[keys + i])
        if watch is not None:
            watch(done / len(queries))
    return [(*key, *sums) for key, sums in totals.items()]
