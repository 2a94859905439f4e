"""The PostgreSQL engine: bounded questions about tables that stay in the database, one generated statement each.

Every question gets a connection and a read-only transaction of its own (``session``). What a statement measures is what
it measures on every SQL engine (``sql``); distinct values of units and spreads are further statements of the same
transaction. Where the database is, is said by the environment alone: an address may hold a password.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from discreet.bounding.contributions import BoundedPlan
from discreet.engines.engine import Capabilities, Groups, ProgressCallback, key_order
from discreet.engines.failure import LOG, hide_error
from discreet.engines.lookups import make_lookups
from discreet.engines.order import EngineHash
from discreet.engines.postgres.address import ADDRESS, find_address
from discreet.engines.postgres.dialect import DIALECT
from discreet.engines.postgres.scanning import fits, plan_type, write_stored_column, write_unguarded_real
from discreet.engines.postgres.session import OLDEST, PostgresSession
from discreet.engines.postgres.tables import DatabaseColumns, TableName, read_columns, read_name
from discreet.engines.sql.coded_rows import mark_empty, tabulate_rows
from discreet.engines.sql.distinct_values import add_distinct_values
from discreet.engines.sql.group_rows import make_groups, sort_groups
from discreet.engines.sql.relations import StoredTable, name_of_values, rows_of, to_values_table
from discreet.engines.sql.spreads import add_spreads
from discreet.engines.sql.statement import BoundedStatement, RowSource
from discreet.engines.sql.unit_sums import write_by_units
from discreet.engines.tabulation import Tabulation
from discreet.errors import EngineFailure, UsageError
from discreet.exact import Integers
from discreet.plan.catalog import Catalog, TableFacts, suggest_nearest
from discreet.plan.evaluate import settle
from discreet.plan.expressions import Column
from discreet.plan.gaps import Gap
from discreet.plan.relations import Scan, Values, find_tables, split
from discreet.plan.types import Type, Value

T = TypeVar("T")

GAPS = frozenset(Gap) - {Gap.WIDE_SUMS}  # PostgreSQL takes what leaves a frame from a sum or a count


class PostgresEngine:
    """Runs bounded questions inside a PostgreSQL database.

    ``sources`` gives for each table its schema and name. ``address`` is for tests; everybody else sets the environment
    variable ``DISCREET_POSTGRES``. ``work_memory`` bounds what each sort or hash of the server holds in memory.
    """

    def __init__(
        self,
        sources: Mapping[str, Any],
        catalog: Catalog,
        *,
        address: str | None = None,
        work_memory: str = "64MB",
        order: EngineHash | None = None,
    ) -> None:
        self.capabilities = Capabilities(spills=True, gaps=GAPS)
        self._order = order or EngineHash()
        self._catalog = catalog
        self._address = find_address() if address is None else address
        self._work_memory = work_memory
        self._names = {table: read_name(str(source.path), table) for table, source in sources.items()}
        self._releases = {table: getattr(source, "release", None) for table, source in sources.items()}
        self._counted: dict[tuple[str, tuple[str, ...]], tuple[str, int]] = {}
        if self._names:
            self._do("The database cannot be reached", self._check)

    def schema(self, table: str) -> Mapping[str, Type | None]:
        stored = self._do(f"The table {table!r} cannot be opened", self._read_stored, table)
        return {name: plan_type(kind) for name, kind in stored.columns.values()}

    def version(self, table: str) -> str:
        """The declared name of a release; else the state of the database, which moves with every write to any table.

        The state is that of transactions. Nothing else that the database tells is sound: only here equal means that
        nothing was written in between. It tells nothing about rows but that something was written.
        """
        self._find_name(table)
        # Asked in any case: where nobody answers, a question is refused before it is charged.
        ((state,),) = self._do("The database cannot be reached", _read_snapshot)
        if self._releases[table] is not None:
            return f"release {self._releases[table]}"
        low, high, running = str(state).split(":")
        return f"snapshot {high}" if low == high else f"snapshot {high} from {low} without {running}"

    def count_public(self, table: str, columns: tuple[str, ...]) -> int:
        if not self._catalog.find_table(table).public:
            raise UsageError(f"The rows of the private table {table!r} are not counted. Nothing was charged.")
        version = self.version(table)
        if self._counted.get((table, columns), ("",))[0] != version:
            found = self._do(f"The public table {table!r} cannot be read", self._count_rows, table, columns)
            self._counted[table, columns] = (version, found)
        return self._counted[table, columns][1]

    def _count_rows(self, session: PostgresSession, table: str, columns: tuple[str, ...]) -> int:
        stored = self._make_table(session, table)
        listed = ", ".join(f"{stored.columns[name]} AS c{i}" for i, name in enumerate(columns)) or "1 AS c0"
        names = [f"c{i}" for i in range(max(1, len(columns)))]
        known = " AND ".join(f"{name} IS NOT NULL" for name in names)
        rows = f"SELECT count(*) AS n FROM (SELECT {listed} FROM {stored.source}) AS own WHERE {known}"
        ((most,),) = session.run(f"SELECT max(n) FROM ({rows} GROUP BY {', '.join(names)}) AS counted")
        return int(most or 0)

    def read_public(self, table: str) -> Values:
        facts = self._catalog.find_table(table)
        if not facts.public:
            raise UsageError(f"The rows of the private table {table!r} are not shown. Nothing was charged.")
        rows = self._do(f"The public table {table!r} cannot be read", self._read_rows, facts)
        return Values(facts.name, tuple((name, kind) for name, (kind, _) in facts.columns.items()), rows)

    def _read_rows(self, session: PostgresSession, facts: TableFacts) -> tuple[tuple[Value, ...], ...]:
        stored, kinds = self._make_table(session, facts.name), [kind for kind, _ in facts.columns.values()]
        listed = ", ".join(f"{stored.columns[name]} AS c{i}" for i, name in enumerate(facts.columns))
        found = session.read(f"SELECT {listed} FROM {stored.source}", {})
        rows = [tuple(settle(value, kind) for value, kind in zip(row, kinds)) for row in found]
        return tuple(sorted(rows, key=key_order))

    def prepare(self, table: str) -> None:
        """Nothing: the database keeps its tables as it likes."""
        self._find_name(table)

    def close(self) -> None:
        """Nothing is held between questions."""
        self._counted.clear()

    def run(
        self, bounded: BoundedPlan, *, salt: bytes, watch: ProgressCallback | None = None, generous: bool = False
    ) -> Groups:
        try:
            with self._connect(generous=generous) as session:
                groups = self._run(session, bounded, salt)
        except Exception as error:
            raise hide_error(error) from None
        if watch is not None:
            watch(1.0)
        return groups

    def tabulate(
        self, tabulation: Tabulation, *, salt: bytes, watch: ProgressCallback | None = None, generous: bool = False
    ) -> tuple[Integers, ...]:
        try:
            with self._connect(generous=generous) as session:
                statement = self._write_statement(session, mark_empty(tabulation.bounded), salt)
                return tabulate_rows(session, statement, tabulation, watch)
        except Exception as error:
            raise hide_error(error) from None

    def _write_statement(self, session: PostgresSession, bounded: BoundedPlan, salt: bytes) -> BoundedStatement:
        """The statement of a question, with the public tables that it reads made known."""
        relation, values = self._choose_rows(session, bounded, salt)
        for name, table in {**values, **make_lookups(bounded)}.items():
            session.fill(name, table)
        return BoundedStatement(bounded, relation, DIALECT, self._order, salt)

    def _run(self, session: PostgresSession, bounded: BoundedPlan, salt: bytes) -> Groups:
        statement = self._write_statement(session, bounded, salt)
        query = statement.write_by_rows() if bounded.unit is None else write_by_units(statement)
        found = session.read(sort_groups(query, statement.keys), statement.parameters)
        groups = add_distinct_values(session, statement, make_groups(found, bounded))
        return add_spreads(session, statement, groups)

    def _choose_rows(
        self, session: PostgresSession, bounded: BoundedPlan, salt: bytes
    ) -> tuple[RowSource, dict[str, Any]]:
        """How the question reads its rows, and the public rows to fill in."""
        base, _ = split(bounded.source)
        if isinstance(base, Scan):
            return self._scan_table(session, bounded, base), {}
        tables = {table: self._make_table(session, table) for table in find_tables(base)}
        rows, values = rows_of(bounded, self._catalog, tables.__getitem__, DIALECT, salt)
        return rows, {name_of_values(i): to_values_table(given) for i, given in enumerate(values)}

    def _make_table(self, session: PostgresSession, table: str) -> StoredTable:
        """A declared table as it is stored now, in the state that this transaction sees."""
        stored, facts = self._read_declared(session, table), self._catalog.tables[table]
        columns = {
            name: write_stored_column(*stored.columns[name.lower()], kind, known.max_length)
            for name, (kind, known) in facts.columns.items()
        }
        return StoredTable(self._find_name(table).sql, columns)

    def _scan_table(self, session: PostgresSession, bounded: BoundedPlan, scan: Scan) -> RowSource:
        """A single table as it is stored."""
        stored, facts = self._read_declared(session, scan.table), self._catalog.tables[scan.table]
        columns, raw = {}, {}
        for name, (kind, known) in facts.columns.items():
            column, own = Column(scan.name, name, kind), stored.columns[name.lower()]
            columns[column] = write_stored_column(*own, kind, known.max_length)
            unguarded = write_unguarded_real(*own, kind)
            if unguarded is not None:
                raw[column] = unguarded
        ordinal = None
        if isinstance(bounded.unit, Column):
            ordinal = DIALECT.code(f"({columns[bounded.unit]})", bounded.unit.type)
        return RowSource(self._find_name(scan.table).sql, columns, raw, ordinal=ordinal or "")

    def _read_declared(self, session: PostgresSession, table: str) -> DatabaseColumns:
        """The columns of a table, which must still be as declared: a cast of another type could fail on a value."""
        try:
            stored = self._read_stored(session, table)
            self._check_columns(table, stored)
        except UsageError as error:
            LOG.error("The table %r has changed since it was opened.", table, exc_info=error)
            raise EngineFailure from None
        return stored

    def _read_stored(self, session: PostgresSession, table: str) -> DatabaseColumns:
        return read_columns(session, self._find_name(table), table)

    def _check_columns(self, table: str, stored: DatabaseColumns) -> None:
        """Every declared column is there, in a type that can be read as declared; else refused before any question."""
        for name, (declared, _) in self._catalog.tables[table].columns.items():
            own = stored.columns.get(name.lower())
            if own is None:
                hint = suggest_nearest(name, [real for real, _ in stored.columns.values()])
                raise UsageError(
                    f"The data of {table!r} has no column {name!r} that this role may read. {hint} Nothing was charged."
                )
            kind = plan_type(own[1])
            if not fits(kind, declared):
                there = f"is {kind}" if kind else "has a type that questions cannot use"
                raise UsageError(
                    f"The column {name!r} of {table!r} is declared {declared}, but {there} in the data. "
                    "Nothing was charged."
                )

    def _find_name(self, table: str) -> TableName:
        if table not in self._names:
            raise UsageError(
                f"The table {table!r} has no source. {suggest_nearest(table, self._names)} Nothing was charged."
            )
        return self._names[table]

    def _connect(self, *, generous: bool = False) -> PostgresSession:
        size = self._work_memory
        return PostgresSession(self._address, work_memory=_multiply_memory(size) if generous else size)

    def _do(self, problem: str, work: Callable[..., T], *arguments: Any) -> T:
        """Work in a transaction, before anything is charged. The database's own words go to the log."""
        try:
            with self._connect() as session:
                return work(session, *arguments)
        except Exception as error:
            if isinstance(error, UsageError):
                raise
            LOG.error("%s.", problem, exc_info=error)
            raise UsageError(
                f"{problem}. Check the address in {ADDRESS} and the rights of its role; the curator's log has details. "
                "Nothing was charged."
            ) from None

    def _check(self, session: PostgresSession) -> None:
        """A server that can be asked, and tables as declared; else refused before any question."""
        ((encoding,),) = session.run("SELECT current_setting('server_encoding')")
        if session.server_version < OLDEST:
            raise UsageError(f"PostgreSQL {OLDEST // 10_000} or later is needed. Nothing was charged.")
        if encoding != "UTF8":
            raise UsageError(
                f"The database has the encoding {encoding}, but texts compare by code points in UTF8 alone. "
                "Nothing was charged."
            )
        for table in self._catalog.tables:
            self._check_columns(table, self._read_stored(session, table))


def _read_snapshot(session: PostgresSession) -> list[tuple[Any, ...]]:
    return session.run("SELECT CAST(pg_current_snapshot() AS text)")


def _multiply_memory(size: str) -> str:
    """For a second try: four times the memory."""
    number = size.rstrip("kMGTB")
    return f"{4 * int(number)}{size[len(number) :]}"
