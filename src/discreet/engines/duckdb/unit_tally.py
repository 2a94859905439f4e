"""User-level questions about many rows: DuckDB reads and codes the rows, and NumPy weighs them, part by part.

A statement that groups by unit and group keeps every pair of them in one hash table, several times the size of a cache
and soon of the memory. Here rows leave DuckDB as a unit, the number of a group and integers, in pieces that have all
rows of their units (``unit_pieces``), and each piece is weighed by itself (``weighed_pairs``). A unit is in one piece,
so the sums of all pieces add up to those of one statement.

Groups have numbers: those of the public ones, or those of a first pass over the keys. Where tables are joined, and the
keys are columns of one of them, this pass reads that table alone: keys that meet nothing are in no row. Whether it is
done follows from the question and from the number of rows; what is answered is the same either way.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from discreet.bounding.contributions import Counts, Measure, group_cap, limits_groups
from discreet.engines.duckdb.joined_tables import NAMED, JoinedTables, find_joined
from discreet.engines.duckdb.prepared import PreparedTable
from discreet.engines.duckdb.session import Session
from discreet.engines.duckdb.unit_pieces import UnitPieces
from discreet.engines.duckdb.weighed_pairs import MOST_GROUPS, GroupTotals, PairShare, WeightRule, weigh
from discreet.engines.engine import ProgressCallback
from discreet.engines.sql.relations import StoredTable
from discreet.engines.sql.statement import BoundedStatement, write_items
from discreet.engines.sql.unit_sums import joins_counts, write_public_rows
from discreet.plan.relations import JoinKind, Scan, split

# Fewer rows than these are answered by one statement as quickly; and so many times more, where it only counts the rows
# of units: as long as these counts fit into memory.
LEAST_ROWS, COUNTS_FACTOR = 1 << 20, 32
# A prepared table lies by unit. With so few public groups its pairs stay few, and DuckDB groups them in less time.
FEW_GROUPS = 16


class UnitTally:
    """How the rows of one question are read and weighed.

    ``integers`` are columns of a row to sum. ``spans`` are conditions that part rows by unit; without any, rows come in
    any order. ``joined`` are the tables that are joined, where there are several.
    """

    def __init__(
        self,
        statement: BoundedStatement,
        rule: WeightRule,
        integers: tuple[str, ...],
        spans: tuple[str, ...],
        joined: JoinedTables | None,
    ) -> None:
        self.factor = COUNTS_FACTOR if joins_counts(statement) else 1
        self._statement = statement
        self._rule = rule
        self._integers = integers
        self._spans = spans
        self._joined = joined
        self._coded: BoundedStatement | None = None

    @property
    def codes(self) -> JoinedTables | None:
        """The tables of a join of which one is read with its keys as numbers (``read_codes``)."""
        return self._joined if self._joined is not None and self._joined.coded[0] else None

    def read_codes(self, statement: BoundedStatement) -> None:
        """Take the rows from a statement of the same question, in which the first key is the number of the group."""
        self._coded = statement

    def count_rows(self, session: Session) -> int:
        """The rows of the table, or of the largest one."""
        sources = [self._statement.relation.source] if self._joined is None else self._joined.sources
        return max(map(session.count_rows, sources))

    def run(self, session: Session, folder: Path, watch: ProgressCallback | None) -> list[tuple[Any, ...]] | None:
        """The keys and totals of each group; None where there are too many groups."""
        groups = self._number_groups(session)
        if groups > MOST_GROUPS:
            return None
        totals = GroupTotals(groups, len(self._rule.shares))
        pieces = UnitPieces(self._write_rows, self._statement.parameters, groups, self._spans)
        for sums in pieces.run(session, folder, partial(weigh, groups=groups, rule=self._rule), watch):
            totals.add(sums)
        return self._name_totals(session, totals)

    def _number_groups(self, session: Session) -> int:
        """How many groups there may be, each with a number below that."""
        statement = self._statement
        if not statement.keys:
            return 1
        if statement.bounded.domain is not None:
            return len(set(statement.bounded.domain))
        keys = ", ".join(statement.keys)
        source = "public" if self._joined is None else f"({self._joined.keys})"
        query = f"SELECT *, row_number() OVER () - 1 AS code FROM (SELECT DISTINCT {keys} FROM {source})"
        if self._joined is None:
            query = statement.write_query([write_public_rows(statement, once=True)], query)
        session.store(NAMED, query, statement.parameters)
        return int(session.run(f"SELECT count(*) FROM {NAMED}")[0][0])

    def _write_rows(self, span: str = "") -> str:
        """The unit, the number of the group and the integers of each row."""
        statement, source, code = self._coded or self._statement, "public", "code" if self._statement.keys else "0"
        if self._coded is not None:
            code = statement.keys[0]
        elif statement.keys and statement.bounded.domain is None:
            same = statement.write_same_group("public", NAMED)
            source, code = statement.dialect.join("public", JoinKind.INNER, NAMED, same), f"{NAMED}.code"
        items = [statement.owner, f"CAST({code} AS UINTEGER) AS number", *self._integers]
        clauses = [write_public_rows(statement, once=True)]
        return statement.write_query(clauses, f"SELECT {write_items(items)} FROM {source}", span)

    def _name_totals(self, session: Session, totals: GroupTotals) -> list[tuple[Any, ...]]:
        statement, found = self._statement, totals.read()
        chosen = [i for i, measure in enumerate(statement.bounded.measures) if measure.weighed]
        nothing = (0,) * len(chosen)
        if not statement.keys:
            named: Iterable[tuple[Any, ...]] = [(0,)]
            found = {0: found.get(0, nothing)}
        else:
            table = NAMED if statement.bounded.domain is None else "domain"
            named = session.run(f"SELECT code, {', '.join(statement.keys)} FROM {table}")
        rows = []
        for code, *key in named:
            if code in found:
                values = [0] * len(statement.bounded.measures)  # distinct values are counted elsewhere
                for place, value in zip(chosen, found[code]):
                    values[place] = value
                rows.append((*key, *values))
        return rows


def plan_tally(
    statement: BoundedStatement, ready: PreparedTable | None, find_table: Callable[[str], StoredTable]
) -> UnitTally | None:
    """How a question is tallied; None where it cannot be, or one statement does as well.

    That follows from the question and from how its table is stored, never from its rows.
    """
    bounded, spans = statement.bounded, tuple[str, ...]()
    if bounded.unit is None or statement.owner != "ordinal":
        return None
    joined = None
    if ready is None and not isinstance(split(bounded.source)[0], Scan):
        joined = find_joined(bounded, find_table)
        if joined is None:
            return None
    if ready is not None:
        few = bounded.domain is not None and len(bounded.domain) <= FEW_GROUPS
        if ready.ranges is None or joins_counts(statement) or few:
            return None
        spans = tuple(ready.ranges.write_spans(statement.relation.ordinal))
    limited = limits_groups(bounded)
    caps = (bounded.max_rows, bounded.max_rows_per_group, bounded.max_groups)
    if any(cap is not None and cap << bounded.weight_bits >= 2**62 for cap in caps):
        return None
    weighed = [measure for measure in bounded.measures if measure.weighed]
    if not weighed or any(m.by_lot or m.partial is not None for m in bounded.measures):
        return None
    integers, shares = dict[str, int](), list[PairShare]()
    for measure in weighed:
        sql = _write_integer(statement, measure)
        rows = 1 if measure.counts is Counts.UNITS else bounded.max_rows or bounded.max_rows_per_group or 1
        most = rows * max(-measure.row_low, measure.row_high) << bounded.weight_bits
        if most >= 2**62:
            return None
        place = None if sql is None else integers.setdefault(sql, len(integers))
        shares.append(PairShare(most, place, by_unit=measure.counts is Counts.UNITS))
    rule = WeightRule(
        bits=bounded.weight_bits,
        rows=bounded.max_rows,
        rows_in_group=bounded.max_rows_per_group,
        groups=bounded.max_groups if limited else None,
        groups_of_unit=group_cap(bounded) if limited else None,
        shares=tuple(shares),
    )
    return UnitTally(statement, rule, tuple(f"{sql} AS i{place}" for sql, place in integers.items()), spans, joined)


def _write_integer(statement: BoundedStatement, measure: Measure) -> str | None:
    """What a row adds to a measure, before it is weighed; None where that is 1."""
    source = statement.source_of(measure)
    value = f"v{source}"
    if source is None:
        return None
    if measure.counts in (Counts.VALUES, Counts.UNITS):
        return f"CAST({value} IS NOT NULL AS TINYINT)"
    if measure.counts is Counts.SQUARES:
        value = statement.write_square(source)
    narrow = max(-measure.row_low, measure.row_high) < 2**31
    return f"CAST(coalesce({value}, 0) AS {'INTEGER' if narrow else 'BIGINT'})"
