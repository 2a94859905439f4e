"""The DuckDB engine: bounded questions over files and frames, embedded, out of core, close to the speed of plain SQL.

Every question has a locked-down connection for itself (``session_pool``). Where rows are their own units, sums by group
are all there is.
Where units own many rows, what a unit has is counted first and its rows are weighed by that. On a prepared table this
is done for one range of units after the other, and the sums are added up (``unit_ranges``). Where there are very many
rows, each part of them is weighed by itself (``unit_tally``), and so are the cells of spreads (``unit_cells``).
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from discreet.bounding.contributions import BoundedPlan
from discreet.engines.duckdb.dialect import DIALECT
from discreet.engines.duckdb.joined_tables import JoinedTables
from discreet.engines.duckdb.prepared import CARRIED, CopyPlace, PreparedTable, prepare, write_selection
from discreet.engines.duckdb.repeat_copies import RepeatCopies
from discreet.engines.duckdb.session import Session, Settings
from discreet.engines.duckdb.session_pool import SessionPool
from discreet.engines.duckdb.sources import Source
from discreet.engines.duckdb.stored_tables import StoredTables
from discreet.engines.duckdb.unit_cells import plan_cells
from discreet.engines.duckdb.unit_ranges import run_by_ranges
from discreet.engines.duckdb.unit_tally import LEAST_ROWS, UnitTally, plan_tally
from discreet.engines.engine import Capabilities, Groups, ProgressCallback, key_order
from discreet.engines.failure import LOG, hide_error
from discreet.engines.lookups import make_lookups
from discreet.engines.order import EngineHash
from discreet.engines.private_folder import PrivateFolder
from discreet.engines.sql.clauses import Clauses
from discreet.engines.sql.coded_rows import mark_empty, tabulate_rows
from discreet.engines.sql.distinct_values import add_distinct_values
from discreet.engines.sql.group_rows import make_groups, name_groups, sort_groups
from discreet.engines.sql.relations import StoredTable, Writer, name_of_values, rows_of, to_values_table
from discreet.engines.sql.repeated_keys import Repeats
from discreet.engines.sql.spreads import CellCounter, add_spreads
from discreet.engines.sql.statement import BoundedStatement, RowSource
from discreet.engines.sql.unit_sums import has_few_groups, write_by_units
from discreet.engines.tabulation import Tabulation
from discreet.errors import InternalError, UsageError
from discreet.exact import Integers
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import Catalog, TableFacts
from discreet.plan.evaluate import settle
from discreet.plan.expressions import Column
from discreet.plan.reach import reach
from discreet.plan.relations import Join, Scan, Values, find_tables, split
from discreet.plan.types import Type, Value

T = TypeVar("T")

# DuckDB's words for a text in a Parquet file that is not UTF-8. Its kind of error has many other causes.
_MISENCODED = "Invalid string encoding"


@dataclass(frozen=True, slots=True)
class ReadyRows:
    """A prepared table that is all a question reads, and the names that columns have there."""

    table: PreparedTable
    columns: Mapping[Column, str]


class DuckDBEngine:
    """Runs bounded questions with DuckDB over Parquet, CSV, DuckDB files and frames.

    ``sources`` gives for each table a path or pattern, a codebook's source, or a frame. ``memory_limit`` bounds what
    DuckDB holds in memory; larger work goes through ``temp_directory``, by default a private folder that is deleted.
    ``order`` is the rule of the secret order. Tables of ``least_tallied`` rows and more are read part by part
    (``unit_tally``), with the same answers.
    """

    def __init__(
        self,
        sources: Mapping[str, Any],
        catalog: Catalog,
        *,
        memory_limit: str = "1GB",
        threads: int | None = None,
        temp_directory: str | Path | None = None,
        order: EngineHash | None = None,
        least_tallied: int = LEAST_ROWS,
    ) -> None:
        self.capabilities = Capabilities(prepares=True, reports_progress=True, spills=True)
        self._order = order or EngineHash()
        self._least_tallied = least_tallied
        self._private = PrivateFolder(temp_directory)
        self._folder = self._private.path
        self._settings = Settings(
            threads=threads or os.cpu_count() or 1, memory_limit=memory_limit, temp_directory=self._folder / "spill"
        )
        self._catalog = catalog
        self._prepared: dict[str, PreparedTable] = {}
        self._sessions = SessionPool()
        self._tables = StoredTables(
            sources, catalog, folder=self._folder, settings=self._settings, sessions=self._sessions
        )
        self._repeats = RepeatCopies(self._folder, self._settings)
        self._counted: dict[tuple[str, tuple[str, ...]], tuple[str, int]] = {}

    def schema(self, table: str) -> Mapping[str, Type | None]:
        return self._tables.list_types(table)

    def version(self, table: str) -> str:
        return self._tables.find_source(table).version()

    def count_public(self, table: str, columns: tuple[str, ...]) -> int:
        facts = self._catalog.find_table(table)
        if not facts.public:
            raise UsageError(f"The rows of the private table {table!r} are not counted. Nothing was charged.")
        version = self.version(table)
        if self._counted.get((table, columns), ("",))[0] != version:
            try:
                found = self._run_mended([table], lambda: self._count_rows(facts.name, columns))
            except Exception as error:
                LOG.error("The public table %r cannot be counted.", table, exc_info=error)
                raise UsageError(f"The public table {table!r} cannot be read. Nothing was charged.") from None
            self._counted[table, columns] = (version, found)
        return self._counted[table, columns][1]

    def _count_rows(self, table: str, columns: tuple[str, ...]) -> int:
        source = self._tables.find_rows(table)
        stored = self._tables.make_table(table, source)
        listed = ", ".join(f"{stored.columns[name]} AS c{i}" for i, name in enumerate(columns)) or "1 AS c0"
        names = [f"c{i}" for i in range(max(1, len(columns)))]
        known = " AND ".join(f"{name} IS NOT NULL" for name in names)
        rows = f"SELECT count(*) AS n FROM (SELECT {listed} FROM {stored.source}) WHERE {known}"
        with self._sessions.lease(self._settings, [source]) as session:
            found = session.run(f"SELECT max(n) FROM ({rows} GROUP BY {', '.join(names)})")
        return int(found[0][0] or 0)

    def read_public(self, table: str) -> Values:
        facts = self._catalog.find_table(table)
        if not facts.public:
            raise UsageError(f"The rows of the private table {table!r} are not shown. Nothing was charged.")
        try:
            rows = self._run_mended([table], lambda: self._read_rows(facts))
        except Exception as error:
            LOG.error("The public table %r cannot be read.", table, exc_info=error)
            raise UsageError(f"The public table {table!r} cannot be read. Nothing was charged.") from None
        return Values(facts.name, tuple((name, kind) for name, (kind, _) in facts.columns.items()), rows)

    def _read_rows(self, facts: TableFacts) -> tuple[tuple[Value, ...], ...]:
        source = self._tables.find_rows(facts.name)
        stored = self._tables.make_table(facts.name, source)
        listed = ", ".join(f"{stored.columns[name]} AS c{i}" for i, name in enumerate(facts.columns))
        kinds = [kind for kind, _ in facts.columns.values()]
        with self._sessions.lease(self._settings, [source]) as session:
            found = session.read(f"SELECT {listed} FROM {stored.source}")
            rows = [tuple(settle(value, kind) for value, kind in zip(row, kinds)) for row in found]
        return tuple(sorted(rows, key=key_order))

    def close(self) -> None:
        self._sessions.close()
        self._prepared.clear()
        self._tables.clear()
        self._repeats.clear()
        self._private.close()

    def prepare(self, table: str) -> None:
        """Make a table ready once, so that later questions about units run several times faster.

        The copy is kept in the private folder until the engine is closed or the data changes.
        """
        if self._find_prepared(table) is not None:
            return
        facts = self._catalog.find_table(table)
        try:
            self._prepared[table] = self._run_mended([table], lambda: self._prepare(facts))
        except Exception as error:
            raise hide_error(error) from None

    def _prepare(self, facts: TableFacts) -> PreparedTable:
        columns = [Column(facts.name, name, kind) for name, (kind, _) in facts.columns.items()]
        chain = self._follow_links(facts.name)
        sources = {table: self._tables.find_rows(table) for table in chain}
        place = CopyPlace(self._folder, self._settings, self._find_version(facts.name))
        if facts.link is None:
            stored = self._tables.make_table(facts.name, sources[facts.name])
            selection = write_selection(columns, stored.columns, stored.source)
            return prepare(selection, columns, facts.unit_column, list(sources.values()), place)
        reached = reach(facts.name, self._catalog)
        if reached.unit is None:
            raise InternalError("A table reaches a unit that is none.")
        writer = Writer(
            self._catalog, lambda table: self._tables.make_table(table, sources[table]), b"", Clauses(DIALECT)
        )
        top = writer.write(reached.relation, {*columns, reached.unit})
        unit = Column(facts.name, CARRIED, reached.unit.type)
        values = {column.name: top.columns[column] for column in columns} | {CARRIED: top.columns[reached.unit]}
        selection = f"WITH {', '.join(writer.clauses.written)} {write_selection([*columns, unit], values, top.name)}"
        return prepare(selection, columns, unit, list(sources.values()), place)

    def _follow_links(self, table: str) -> list[str]:
        """A table, and those by which its rows reach their unit."""
        chain = [table]
        while (link := self._catalog.tables[chain[-1]].link) is not None:
            chain.append(link.parent)
        return chain

    def _find_version(self, table: str) -> str:
        """The version of everything that a prepared copy is made of."""
        return " ".join(self.version(name) for name in self._follow_links(table))

    def find_prepared_path(self, table: str) -> str | None:
        """Where the prepared copy of a table is, for the curator's own eyes; None where there is none."""
        ready = self._find_prepared(table)
        return None if ready is None else ready.path

    def run(
        self, bounded: BoundedPlan, *, salt: bytes, watch: ProgressCallback | None = None, generous: bool = False
    ) -> Groups:
        settings = self._settings.make_generous() if generous else self._settings
        tables = find_tables(split(bounded.source)[0])
        try:
            return self._run_mended(tables, lambda: self._run(bounded, salt, watch, settings))
        except Exception as error:
            raise hide_error(error) from None

    def tabulate(
        self, tabulation: Tabulation, *, salt: bytes, watch: ProgressCallback | None = None, generous: bool = False
    ) -> tuple[Integers, ...]:
        settings = self._settings.make_generous() if generous else self._settings
        tables = find_tables(split(tabulation.bounded.source)[0])
        try:
            return self._run_mended(tables, lambda: self._tabulate(tabulation, salt, watch, settings))
        except Exception as error:
            raise hide_error(error) from None

    def _tabulate(
        self, tabulation: Tabulation, salt: bytes, watch: ProgressCallback | None, settings: Settings
    ) -> tuple[Integers, ...]:
        bounded = mark_empty(tabulation.bounded)
        base, _ = split(bounded.source)
        sources = {table: self._find_prepared(table) or self._tables.find_rows(table) for table in find_tables(base)}
        ready = self._find_ready(bounded, sources)
        relation, values, read = self._choose_rows(bounded, sources, salt, ready)
        statement = BoundedStatement(bounded, relation, DIALECT, self._order, salt)
        with self._sessions.lease(settings, read) as session:
            for name, table in (*values.items(), *make_lookups(bounded).items()):
                session.keep(name, table)
            return tabulate_rows(session, statement, tabulation, watch)

    def _run(self, bounded: BoundedPlan, salt: bytes, watch: ProgressCallback | None, settings: Settings) -> Groups:
        base, _ = split(bounded.source)
        sources = {table: self._find_prepared(table) or self._tables.find_rows(table) for table in find_tables(base)}
        ready = self._find_ready(bounded, sources)
        relation, values, read = self._choose_rows(bounded, sources, salt, ready)
        with self._sessions.lease(settings, read) as session:
            for name, table in (*values.items(), *make_lookups(bounded).items()):
                session.keep(name, table)
            if bounded.unit is None and isinstance(base, Scan):
                relation = replace(relation, most_rows=session.count_rows(sources[base.table].write_from()))
            statement = BoundedStatement(bounded, relation, DIALECT, self._order, salt)
            prepared = None if ready is None else ready.table
            tally = plan_tally(statement, prepared, lambda name: self._tables.make_table(name, sources[name]))
            if tally is not None and tally.codes is not None:
                coded, _, _ = self._choose_rows(bounded, sources, salt, None, tally.codes)
                tally.read_codes(BoundedStatement(bounded, coded, DIALECT, self._order, salt))
            found = self._read_totals(session, statement, tally, prepared, watch)
            groups = add_distinct_values(session, statement, make_groups(found, bounded), watch)
            cells = self._plan_cells(session, statement, salt, prepared, watch)
            groups = add_spreads(session, statement, groups, watch, cells)
        if watch is not None:
            watch(1.0)
        return groups

    def _read_totals(
        self,
        session: Session,
        statement: BoundedStatement,
        tally: UnitTally | None,
        ready: PreparedTable | None,
        watch: ProgressCallback | None,
    ) -> Iterator[tuple[Any, ...]]:
        """The keys and totals of each group, in order: weighed in parts where there are many rows, else by DuckDB."""
        if tally is not None and tally.count_rows(session) >= self._least_tallied * tally.factor:
            tallied = tally.run(session, self._folder, watch)
            if tallied is not None:
                return iter(sorted(tallied, key=lambda row: key_order(row[: len(statement.keys)])))
        ranged = None if ready is None else run_by_ranges(session, statement, ready, watch)
        if ranged is None and has_few_groups(statement):
            numbered = write_by_units(statement, numbered=True)
            return iter(name_groups(session.read(numbered, statement.parameters, watch), statement.bounded))
        whole = statement.write_by_rows() if statement.bounded.unit is None else write_by_units(statement)
        query = sort_groups(ranged or whole, statement.keys)
        return session.read(query, statement.parameters, None if ranged else watch)

    def _plan_cells(
        self,
        session: Session,
        statement: BoundedStatement,
        salt: bytes,
        ready: PreparedTable | None,
        watch: ProgressCallback | None,
    ) -> CellCounter | None:
        """How the cells of spreads are counted in parts, where units own many rows; without what else is measured."""
        if not statement.bounded.spreads:
            return None
        alone = replace(statement.bounded, measures=())
        tally = plan_cells(BoundedStatement(alone, statement.relation, DIALECT, self._order, salt), ready, self._folder)
        if tally is None or session.count_rows(statement.relation.source) < self._least_tallied:
            return None
        return lambda position, groups: tally.count(session, position, groups, watch)

    def _run_mended(self, tables: Iterable[str], work: Callable[[], T]) -> T:
        """Do work that reads tables. Where DuckDB meets bytes that are no text in a file, do it again on copies."""
        import duckdb

        try:
            return work()
        except duckdb.InvalidInputException as error:
            unread = self._tables.list_uncopied(tables)
            if not unread or _MISENCODED not in str(error):
                raise
        for source in unread:
            self._tables.copy_texts(source)
        return work()

    def _find_prepared(self, table: str) -> PreparedTable | None:
        """The prepared table, if it is of the data's present version."""
        ready = self._prepared.get(table)
        if ready is not None and ready.version() != self._find_version(table):
            del self._prepared[table]
            return None
        return ready

    def _choose_rows(
        self,
        bounded: BoundedPlan,
        sources: Mapping[str, Source],
        salt: bytes,
        ready: ReadyRows | None,
        codes: JoinedTables | None = None,
    ) -> tuple[RowSource, dict[str, Any], list[Source]]:
        """How the question reads its rows, the public rows to fill in, and everything that is read."""
        base, _ = split(bounded.source)
        read = list(sources.values())
        if ready is not None:
            return ready.table.to_row_source(ready.columns), {}, read
        if isinstance(base, Scan) and not isinstance(sources[base.table], PreparedTable):
            return self._tables.scan_table(bounded, base, sources[base.table]), {}, read

        @cache
        def make_table(table: str) -> StoredTable:
            stored = self._tables.make_table(table, sources[table])
            return stored if codes is None else codes.code_keys(table, stored)

        def find_repeats(table: str, columns: tuple[str, ...]) -> Repeats:
            types = {name: kind for name, (kind, _) in self._catalog.tables[table].columns.items()}
            found = self._repeats.find(sources[table], make_table(table), types, columns)
            read.extend(copy for copy in (found.keys, found.rows) if copy not in read)
            return Repeats(found.keys.write_from(), found.rows.write_from(), columns)

        rows, values = rows_of(
            bounded,
            self._catalog,
            make_table,
            DIALECT,
            salt,
            repeats=find_repeats,
            count_public=self.count_public,
        )
        return rows, {name_of_values(i): to_values_table(given) for i, given in enumerate(values)}, read

    def _find_ready(self, bounded: BoundedPlan, sources: Mapping[str, Source]) -> ReadyRows | None:
        """The prepared table that is all a question reads, ordered by its unit; None where there is none."""
        base, _ = split(bounded.source)
        scan = base.left if isinstance(base, Join) else base
        source = sources.get(scan.table) if isinstance(scan, Scan) else None
        if not isinstance(scan, Scan) or not isinstance(source, PreparedTable):
            return None
        reached = reach(scan.table, self._catalog, scan.alias)
        if reached.relation != base or reached.unit not in (None, bounded.unit):
            return None
        columns = {Column(scan.name, column.name, column.type): name for column, name in source.names}
        if isinstance(base, Join) and reached.unit is not None:
            columns[reached.unit] = CARRIED
            pairs = ((ours, theirs) for ours, theirs in base.on if isinstance(ours, Column))
            columns |= {theirs: columns[ours] for ours, theirs in pairs if isinstance(theirs, Column)}
        return ReadyRows(source, columns)
