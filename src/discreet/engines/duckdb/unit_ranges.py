"""Questions about a prepared table, one range of its units after the other: pairs of units and groups stay few.

A unit is in one range only, and what a statement measures is a sum over units. So the sums of all ranges add up to
those of one statement. DuckDB adds them up: the groups of each range are kept in a table of the session's own, and none
of them passes through Python before they are one.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from discreet.bounding.contributions import BoundedPlan
from discreet.engines.duckdb.dialect import TYPES, pick_parameters
from discreet.engines.duckdb.prepared import PreparedTable, UnitRanges
from discreet.engines.duckdb.session import Session
from discreet.engines.engine import ProgressCallback
from discreet.engines.sql.statement import BoundedStatement
from discreet.engines.sql.unit_sums import joins_counts, write_by_units

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# The table of the groups of all ranges.
RANGES = "totals_by_range"
# Pairs of units and groups that are found at once: as many as the rows of a range could be of.
MOST_PAIRS = 1 << 20


def run_by_ranges(
    session: Session, statement: BoundedStatement, ready: PreparedTable, watch: ProgressCallback | None
) -> str | None:
    """The query that adds up what was found of each range; None where one statement does as well.

    Sums stay in 128 bits for the reason that those of one statement do: they are sums of the same numbers.
    """
    bounded = statement.bounded
    if bounded.unit is None or ready.ranges is None or joins_counts(statement):
        return None
    spans = join_ranges(bounded, ready.ranges).write_spans(statement.relation.ordinal)
    measures = [f"m{i}" for i in range(len(bounded.measures))]
    if len(spans) == 1 or not (measures or statement.keys):
        return None
    kinds = [f"{name} {TYPES[key.type]}" for name, key in zip(statement.keys, bounded.keys)]
    session.make_table(RANGES, [*kinds, *(f"{name} HUGEINT" for name in measures)])
    inserts = [f"INSERT INTO {RANGES} {write_by_units(statement, span)}" for span in spans]

    def run(insert: str, cursor: DuckDBPyConnection) -> None:
        cursor.execute(insert, pick_parameters(insert, statement.parameters))

    for done, _ in enumerate(session.run_with_cursors([partial(run, insert) for insert in inserts]), 1):
        if watch is not None:
            watch(done / len(inserts))
    sums = [f"sum({name}) AS {name}" for name in measures]
    return f"SELECT {', '.join([*statement.keys, *sums])} FROM {RANGES}{statement.write_group_by()}"


def join_ranges(bounded: BoundedPlan, ranges: UnitRanges) -> UnitRanges:
    """As few ranges as keep pairs few, because each takes its time: where groups are public, their number is known."""
    if bounded.keys and bounded.domain is None:
        return ranges
    groups = len(bounded.domain or ()) if bounded.keys else 1
    return ranges.join(MOST_PAIRS // max(groups, 1))
