"""What engines share that ask tables where they are stored: in a database, or on a cluster.

A question has a session of its own, in which one generated statement is run; distinct values of units and spreads are
further statements of the same session. A subclass says how a session begins, what a stored table is there, and how its
columns are read. Before anything is charged, what goes wrong is refused with one sentence; afterwards it is hidden
(``failure``). The engine's own words go to the curator's log in both cases.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar

from discreet.bounding.contributions import BoundedPlan
from discreet.engines.engine import Groups, ProgressCallback, key_order
from discreet.engines.failure import LOG, hide_errors
from discreet.engines.lookups import make_lookups
from discreet.engines.order import EngineHash
from discreet.engines.sql.coded_rows import mark_empty, tabulate_rows
from discreet.engines.sql.dialect import Dialect
from discreet.engines.sql.distinct_values import add_distinct_values
from discreet.engines.sql.group_rows import make_groups, sort_groups
from discreet.engines.sql.relations import StoredTable, name_of_values, rows_of, to_values_table
from discreet.engines.sql.runner import Runner
from discreet.engines.sql.spreads import add_spreads
from discreet.engines.sql.statement import BoundedStatement, RowSource, UncheckedText
from discreet.engines.sql.unit_sums import write_by_units
from discreet.engines.tabulation import Tabulation
from discreet.errors import EngineFailure, UsageError
from discreet.exact import Integers
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import Catalog, TableFacts, suggest_nearest
from discreet.plan.evaluate import settle
from discreet.plan.expressions import Column
from discreet.plan.relations import Scan, Values, find_tables, split
from discreet.plan.types import Type, Value


class QuestionSession(Runner, Protocol):
    """What one question runs its statements in, from its beginning to its end."""

    def read(self, sql: str, parameters: Mapping[str, str]) -> Iterator[tuple[Any, ...]]:
        """Run one statement and give its rows one by one."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class ColumnForms(Protocol):
    """How stored columns are read as columns of a plan. Members: ``postgres.scanning`` and ``spark.scanning``."""

    def plan_type(self, stored: str, /) -> Type | None:
        """The plan type of a stored type; None where there is none."""
        ...

    def fits(self, stored: Type | None, declared: Type, /) -> bool:
        """Whether a stored kind of value can be read as a declared one."""
        ...

    def write_stored_column(self, name: str, stored: str, declared: Type, max_length: int | None, /) -> str:
        """A stored column as a column of the plan, for one of the pairs that ``fits``."""
        ...

    def write_unguarded_real(self, name: str, stored: str, declared: Type, /) -> str | None:
        """A stored real as a double that may be NaN or infinite; None for everything else."""
        ...

    def write_unchecked_text(
        self, name: str, stored: str, declared: Type, max_length: int | None, /
    ) -> UncheckedText | None:
        """A stored text to group by before it is checked; None for everything else, and where that saves nothing."""
        ...


@dataclass(frozen=True, slots=True)
class TableColumns:
    """A stored table: what to write after FROM, and by name in small letters the name and the type of each column."""

    source: str
    columns: Mapping[str, tuple[str, str]]


S = TypeVar("S", bound=QuestionSession)
P = ParamSpec("P")
T = TypeVar("T")


class StoredEngine(ABC, Generic[S]):
    """Runs bounded questions over the stored tables of ``catalog``; each of ``tables`` has a source."""

    def __init__(
        self,
        tables: Mapping[str, Any],
        catalog: Catalog,
        dialect: Dialect,
        forms: ColumnForms,
        order: EngineHash | None,
    ) -> None:
        self._tables = tuple(tables)
        self._catalog = catalog
        self._dialect = dialect
        self._forms = forms
        self._order = order or EngineHash()
        self._counted: dict[tuple[str, tuple[str, ...]], tuple[str, int]] = {}

    @abstractmethod
    def _connect(self, *, generous: bool = False, watch: ProgressCallback | None = None) -> S:
        """A session for one question; ``watch`` hears shares of its work, where there are some to tell."""

    @abstractmethod
    def _read_stored(self, session: S, table: str) -> TableColumns:
        """What a declared table is in this session. Values are not looked at."""

    @abstractmethod
    def _refuse(self, problem: str) -> UsageError:
        """What to say of a problem with a source, with a hint where to look."""

    @abstractmethod
    def version(self, table: str) -> str:
        """A text that changes whenever the data may have changed."""

    def schema(self, table: str) -> Mapping[str, Type | None]:
        stored = self._do(f"The table {table!r} cannot be opened", self._read_stored, table)
        return {name: self._forms.plan_type(kind) for name, kind in stored.columns.values()}

    def count_public(self, table: str, columns: tuple[str, ...]) -> int:
        if not self._catalog.find_table(table).public:
            raise UsageError(f"The rows of the private table {table!r} are not counted. Nothing was charged.")
        version = self.version(table)
        if self._counted.get((table, columns), ("",))[0] != version:
            found = self._do(f"The public table {table!r} cannot be read", self._count_rows, table, columns)
            self._counted[table, columns] = (version, found)
        return self._counted[table, columns][1]

    def _count_rows(self, session: S, table: str, columns: tuple[str, ...]) -> int:
        stored = self._make_table(session, table)
        listed = ", ".join(f"{stored.columns[name]} AS c{i}" for i, name in enumerate(columns)) or "1 AS c0"
        names = [f"c{i}" for i in range(max(1, len(columns)))]
        known = " AND ".join(f"{name} IS NOT NULL" for name in names)
        rows = f"SELECT count(*) AS n FROM (SELECT {listed} FROM {stored.source}) AS own WHERE {known}"
        ((most,),) = session.read(f"SELECT max(n) FROM ({rows} GROUP BY {', '.join(names)}) AS counted", {})
        return int(most or 0)

    def read_public(self, table: str) -> Values:
        facts = self._catalog.find_table(table)
        if not facts.public:
            raise UsageError(f"The rows of the private table {table!r} are not shown. Nothing was charged.")
        rows = self._do(f"The public table {table!r} cannot be read", self._read_rows, facts)
        return Values(facts.name, tuple((name, kind) for name, (kind, _) in facts.columns.items()), rows)

    def _read_rows(self, session: S, facts: TableFacts) -> tuple[tuple[Value, ...], ...]:
        stored, kinds = self._make_table(session, facts.name), [kind for kind, _ in facts.columns.values()]
        listed = ", ".join(f"{stored.columns[name]} AS c{i}" for i, name in enumerate(facts.columns))
        found = session.read(f"SELECT {listed} FROM {stored.source}", {})
        rows = [tuple(settle(value, kind) for value, kind in zip(row, kinds)) for row in found]
        return tuple(sorted(rows, key=key_order))

    def prepare(self, table: str) -> None:
        """Nothing: tables stay as they are."""
        self._check_name(table)

    def close(self) -> None:
        """Nothing is held between questions but what was counted of public tables."""
        self._counted.clear()

    def run(
        self, bounded: BoundedPlan, *, salt: bytes, watch: ProgressCallback | None = None, generous: bool = False
    ) -> Groups:
        def ask() -> Groups:
            with self._connect(generous=generous, watch=watch) as session:
                return self._run(session, bounded, salt)

        groups = hide_errors(ask)
        if watch is not None:
            watch(1.0)
        return groups

    def tabulate(
        self, tabulation: Tabulation, *, salt: bytes, watch: ProgressCallback | None = None, generous: bool = False
    ) -> tuple[Integers, ...]:
        def ask() -> tuple[Integers, ...]:
            with self._connect(generous=generous, watch=watch) as session:
                statement = self._write_statement(session, mark_empty(tabulation.bounded), salt)
                return tabulate_rows(session, statement, tabulation, watch)

        return hide_errors(ask)

    def _run(self, session: S, bounded: BoundedPlan, salt: bytes) -> Groups:
        statement = self._write_statement(session, bounded, salt)
        query = statement.write_by_rows() if bounded.unit is None else write_by_units(statement)
        found = self._read_sorted(session, query, statement)
        groups = add_distinct_values(session, statement, make_groups(found, bounded))
        return add_spreads(session, statement, groups)

    def _read_sorted(self, session: S, query: str, statement: BoundedStatement) -> Iterable[tuple[Any, ...]]:
        """The rows of an answer in the order of their keys."""
        return session.read(sort_groups(query, statement.keys), statement.parameters)

    def _write_statement(self, session: S, bounded: BoundedPlan, salt: bytes) -> BoundedStatement:
        """The statement of a question, with the public tables that it reads made known."""
        relation, values = self._choose_rows(session, bounded, salt)
        for name, table in {**values, **make_lookups(bounded)}.items():
            session.fill(name, table)
        return BoundedStatement(bounded, relation, self._dialect, self._order, salt)

    def _choose_rows(self, session: S, bounded: BoundedPlan, salt: bytes) -> tuple[RowSource, dict[str, Any]]:
        """How the question reads its rows, and the public rows to fill in."""
        base, _ = split(bounded.source)
        if isinstance(base, Scan):
            return self._scan_table(session, bounded, base), {}
        tables = {table: self._make_table(session, table) for table in find_tables(base)}
        rows, values = rows_of(bounded, self._catalog, tables.__getitem__, self._dialect, salt)
        return rows, {name_of_values(i): to_values_table(given) for i, given in enumerate(values)}

    def _make_table(self, session: S, table: str) -> StoredTable:
        """A declared table as it is stored now."""
        stored, facts = self._read_declared(session, table), self._catalog.tables[table]
        columns = {
            name: self._forms.write_stored_column(*stored.columns[name.lower()], kind, known.max_length)
            for name, (kind, known) in facts.columns.items()
        }
        return StoredTable(stored.source, columns)

    def _scan_table(self, session: S, bounded: BoundedPlan, scan: Scan) -> RowSource:
        """A single table as it is stored."""
        stored, facts = self._read_declared(session, scan.table), self._catalog.tables[scan.table]
        columns, raw, unchecked = {}, {}, {}
        for name, (kind, known) in facts.columns.items():
            column, own = Column(scan.name, name, kind), stored.columns[name.lower()]
            columns[column] = self._forms.write_stored_column(*own, kind, known.max_length)
            unguarded = self._forms.write_unguarded_real(*own, kind)
            if unguarded is not None:
                raw[column] = unguarded
            text = self._forms.write_unchecked_text(*own, kind, known.max_length)
            if text is not None:
                unchecked[column] = text
        ordinal = None
        if isinstance(bounded.unit, Column):
            ordinal = self._dialect.code(f"({columns[bounded.unit]})", bounded.unit.type)
        return RowSource(stored.source, columns, raw, ordinal=ordinal or "", unchecked=unchecked)

    def _read_declared(self, session: S, table: str) -> TableColumns:
        """A table that must still be as declared: a cast of another type could fail on a value."""
        try:
            stored = self._read_stored(session, table)
            self._check_columns(table, stored)
        except UsageError as error:
            LOG.error(f"The table {table!r} has changed since it was opened.", exc_info=error)
            raise EngineFailure from None
        return stored

    def _check_table(self, session: S, table: str) -> None:
        """A table as declared; else refused before any question."""
        self._check_columns(table, self._read_stored(session, table))

    def _check_columns(self, table: str, stored: TableColumns) -> None:
        """Every declared column is there, in a type that can be read as declared."""
        for name, (declared, _) in self._catalog.tables[table].columns.items():
            own = stored.columns.get(name.lower())
            if own is None:
                hint = suggest_nearest(name, [real for real, _ in stored.columns.values()])
                raise UsageError(
                    f"The data of {table!r} has no column {name!r} that may be read. {hint} Nothing was charged."
                )
            kind = self._forms.plan_type(own[1])
            if not self._forms.fits(kind, declared):
                there = f"is {kind}" if kind else "has a type that questions cannot use"
                raise UsageError(
                    f"The column {name!r} of {table!r} is declared {declared}, but {there} in the data. "
                    "Nothing was charged."
                )

    def _check_name(self, table: str) -> None:
        if table not in self._tables:
            raise UsageError(
                f"The table {table!r} has no source. {suggest_nearest(table, self._tables)} Nothing was charged."
            )

    def _do(self, problem: str, work: Callable[Concatenate[S, P], T], *arguments: P.args, **options: P.kwargs) -> T:
        """Work in a session, before anything is charged: our own words as they are, everything else to the log."""
        try:
            with self._connect() as session:
                return work(session, *arguments, **options)
        except UsageError:
            raise
        except Exception as error:
            LOG.error(f"{problem}.", exc_info=error)
        raise self._refuse(problem)  # outside of the handler, so that it does not carry the engine's words as context
