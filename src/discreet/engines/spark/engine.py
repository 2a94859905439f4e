"""The Spark engine: bounded questions about tables that Spark reads, one generated statement each.

Every question gets a session of its own (``session``). What a statement measures is what it measures on every SQL
engine (``sql``); distinct values of units and spreads are further statements. The owner's session, its settings and its
views stay as they are.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from discreet.bounding.contributions import BoundedPlan
from discreet.engines.engine import Capabilities, Groups, ProgressCallback, key_order
from discreet.engines.failure import LOG, hide_error
from discreet.engines.lookups import make_lookups
from discreet.engines.order import EngineHash
from discreet.engines.spark.dialect import DIALECT
from discreet.engines.spark.scanning import fits, write_stored_column, write_unguarded_real
from discreet.engines.spark.session import SparkQuestion, start_spark
from discreet.engines.spark.tables import SparkFrame, open_source, read_columns
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
from discreet.plan.spark_types import type_of_spark
from discreet.plan.types import Type, Value

T = TypeVar("T")

ADDRESS = "DISCREET_SPARK"
"""The environment variable that says where Spark runs, such as ``spark://host:7077``; without it, on this machine."""
GAPS = frozenset({Gap.DISTINCT_IN_FRAME, Gap.WIDE_EXTREMES, Gap.WIDE_SUMS})


class SparkEngine:
    """Runs bounded questions on Spark.

    ``sources`` gives for each table Parquet files, a table of a catalog, or a data frame. ``spark`` is a session to
    use; otherwise it is that of the first data frame, or one that is started at ``address``.
    """

    def __init__(
        self,
        sources: Mapping[str, Any],
        catalog: Catalog,
        *,
        spark: Any = None,
        address: str | None = None,
        order: EngineHash | None = None,
    ) -> None:
        self.capabilities = Capabilities(spills=True, gaps=GAPS)
        self._order = order or EngineHash()
        self._catalog = catalog
        self._sources = {table: open_source(source, table) for table, source in sources.items()}
        self._counted: dict[tuple[str, tuple[str, ...]], tuple[str, int]] = {}
        frames = [source.frame for source in self._sources.values() if isinstance(source, SparkFrame)]
        if spark is None and frames:
            spark = frames[0].sparkSession
        try:
            self._spark = spark or start_spark(address or os.environ.get(ADDRESS) or "local[*]")
        except Exception as error:
            raise _refuse("Spark cannot be reached", error) from None
        for table in catalog.tables:
            self._do(f"The table {table!r} cannot be opened", self._check_table, table)

    def schema(self, table: str) -> Mapping[str, Type | None]:
        stored = self._do(f"The table {table!r} cannot be opened", self._read_stored, table)
        return {name: type_of_spark(kind) for name, kind in stored.values()}

    def version(self, table: str) -> str:
        """Of files names and times, of a table the declared name of its release, and of a frame a number."""
        self._check_name(table)
        return self._sources[table].version()

    def count_public(self, table: str, columns: tuple[str, ...]) -> int:
        if not self._catalog.find_table(table).public:
            raise UsageError(f"The rows of the private table {table!r} are not counted. Nothing was charged.")
        version = self.version(table)
        if self._counted.get((table, columns), ("",))[0] != version:
            found = self._do(f"The public table {table!r} cannot be read", self._count_rows, table, columns)
            self._counted[table, columns] = (version, found)
        return self._counted[table, columns][1]

    def _count_rows(self, question: SparkQuestion, table: str, columns: tuple[str, ...]) -> int:
        stored = self._make_table(question, table)
        listed = ", ".join(f"{stored.columns[name]} AS c{i}" for i, name in enumerate(columns)) or "1 AS c0"
        names = [f"c{i}" for i in range(max(1, len(columns)))]
        known = " AND ".join(f"{name} IS NOT NULL" for name in names)
        rows = f"SELECT count(*) AS n FROM (SELECT {listed} FROM {stored.source}) AS own WHERE {known}"
        ((most,),) = question.read(f"SELECT max(n) FROM ({rows} GROUP BY {', '.join(names)}) AS counted", {})
        return int(most or 0)

    def read_public(self, table: str) -> Values:
        facts = self._catalog.find_table(table)
        if not facts.public:
            raise UsageError(f"The rows of the private table {table!r} are not shown. Nothing was charged.")
        rows = self._do(f"The public table {table!r} cannot be read", self._read_rows, facts)
        return Values(facts.name, tuple((name, kind) for name, (kind, _) in facts.columns.items()), rows)

    def _read_rows(self, question: SparkQuestion, facts: TableFacts) -> tuple[tuple[Value, ...], ...]:
        stored, kinds = self._make_table(question, facts.name), [kind for kind, _ in facts.columns.values()]
        listed = ", ".join(f"{stored.columns[name]} AS c{i}" for i, name in enumerate(facts.columns))
        found = question.read(f"SELECT {listed} FROM {stored.source}", {})
        rows = [tuple(settle(value, kind) for value, kind in zip(row, kinds)) for row in found]
        return tuple(sorted(rows, key=key_order))

    def prepare(self, table: str) -> None:
        """Nothing: tables stay as they are."""
        self._check_name(table)

    def close(self) -> None:
        """Forget the frames. Spark itself runs on: others may use it."""
        self._counted.clear()
        for source in self._sources.values():
            if isinstance(source, SparkFrame):
                source.frame.sparkSession.catalog.dropGlobalTempView(source.view)

    def run(
        self,
        bounded: BoundedPlan,
        *,
        salt: bytes,
        watch: ProgressCallback | None = None,
        generous: bool = False,  # noqa: ARG002  # the memory is the cluster's
    ) -> Groups:
        try:
            with SparkQuestion(self._spark) as question:
                groups = self._run(question, bounded, salt)
        except Exception as error:
            raise hide_error(error) from None
        if watch is not None:
            watch(1.0)
        return groups

    def tabulate(
        self,
        tabulation: Tabulation,
        *,
        salt: bytes,
        watch: ProgressCallback | None = None,
        generous: bool = False,  # noqa: ARG002  # the memory is the cluster's
    ) -> tuple[Integers, ...]:
        try:
            with SparkQuestion(self._spark) as question:
                statement = self._write_statement(question, mark_empty(tabulation.bounded), salt)
                return tabulate_rows(question, statement, tabulation, watch)
        except Exception as error:
            raise hide_error(error) from None

    def _write_statement(self, question: SparkQuestion, bounded: BoundedPlan, salt: bytes) -> BoundedStatement:
        """The statement of a question, with the public tables that it reads made known."""
        relation, values = self._choose_rows(question, bounded, salt)
        for name, table in {**values, **make_lookups(bounded)}.items():
            question.fill(name, table)
        return BoundedStatement(bounded, relation, DIALECT, self._order, salt)

    def _run(self, question: SparkQuestion, bounded: BoundedPlan, salt: bytes) -> Groups:
        statement = self._write_statement(question, bounded, salt)
        query = statement.write_by_rows() if bounded.unit is None else write_by_units(statement)
        found = question.read(sort_groups(query, statement.keys), statement.parameters)
        groups = add_distinct_values(question, statement, make_groups(found, bounded))
        return add_spreads(question, statement, groups)

    def _choose_rows(
        self, question: SparkQuestion, bounded: BoundedPlan, salt: bytes
    ) -> tuple[RowSource, dict[str, Any]]:
        """How the question reads its rows, and the public rows to fill in."""
        base, _ = split(bounded.source)
        if isinstance(base, Scan):
            return self._scan_table(question, bounded, base), {}
        tables = {table: self._make_table(question, table) for table in find_tables(base)}
        rows, values = rows_of(bounded, self._catalog, tables.__getitem__, DIALECT, salt)
        return rows, {name_of_values(i): to_values_table(given) for i, given in enumerate(values)}

    def _make_table(self, question: SparkQuestion, table: str) -> StoredTable:
        """A declared table as it is stored now."""
        source, stored = self._load(question, table)
        columns = {
            name: write_stored_column(*stored[name.lower()], kind, known.max_length)
            for name, (kind, known) in self._catalog.tables[table].columns.items()
        }
        return StoredTable(source, columns)

    def _scan_table(self, question: SparkQuestion, bounded: BoundedPlan, scan: Scan) -> RowSource:
        """A single table as it is stored."""
        source, stored = self._load(question, scan.table)
        columns, raw = {}, {}
        for name, (kind, known) in self._catalog.tables[scan.table].columns.items():
            column, own = Column(scan.name, name, kind), stored[name.lower()]
            columns[column] = write_stored_column(*own, kind, known.max_length)
            unguarded = write_unguarded_real(*own, kind)
            if unguarded is not None:
                raw[column] = unguarded
        ordinal = None
        if isinstance(bounded.unit, Column):
            ordinal = DIALECT.code(f"({columns[bounded.unit]})", bounded.unit.type)
        return RowSource(source, columns, raw, ordinal=ordinal or "")

    def _load(self, question: SparkQuestion, table: str) -> tuple[str, Mapping[str, tuple[str, str]]]:
        """A table as a view, and its columns, which must still be as declared: what is read is as declared."""
        view = f"stored{list(self._sources).index(table)}"
        try:
            frame = self._open_frame(question, table)
            stored = read_columns(frame, table)
            self._check_columns(table, stored)
        except UsageError as error:
            LOG.error("The table %r has changed since it was opened.", table, exc_info=error)
            raise EngineFailure from None
        question.show(view, frame)
        return view, stored

    def _open_frame(self, question: SparkQuestion, table: str) -> Any:
        self._check_name(table)
        return self._sources[table].load(question, table)

    def _read_stored(self, question: SparkQuestion, table: str) -> Mapping[str, tuple[str, str]]:
        return read_columns(self._open_frame(question, table), table)

    def _check_table(self, question: SparkQuestion, table: str) -> None:
        self._check_columns(table, self._read_stored(question, table))

    def _check_columns(self, table: str, stored: Mapping[str, tuple[str, str]]) -> None:
        """Every declared column is there, in a type that can be read as declared; else refused before any question."""
        for name, (declared, _) in self._catalog.tables[table].columns.items():
            own = stored.get(name.lower())
            if own is None:
                hint = suggest_nearest(name, [real for real, _ in stored.values()])
                raise UsageError(f"The data of {table!r} has no column {name!r}. {hint} Nothing was charged.")
            kind = type_of_spark(own[1])
            if not fits(kind, declared):
                there = f"is {kind}" if kind else "has a type that questions cannot use"
                raise UsageError(
                    f"The column {name!r} of {table!r} is declared {declared}, but {there} in the data. "
                    "Nothing was charged."
                )

    def _check_name(self, table: str) -> None:
        if table not in self._sources:
            raise UsageError(
                f"The table {table!r} has no source. {suggest_nearest(table, self._sources)} Nothing was charged."
            )

    def _do(self, problem: str, work: Callable[..., T], *arguments: Any) -> T:
        """Work in a session, before anything is charged. Spark's own words go to the log."""
        try:
            with SparkQuestion(self._spark) as question:
                return work(question, *arguments)
        except Exception as error:
            raise _refuse(problem, error) from None


def _refuse(problem: str, error: Exception) -> UsageError:
    """Our own words as they are; of everything else one sentence, and the rest in the curator's log."""
    if isinstance(error, UsageError):
        return error
    LOG.error("%s.", problem, exc_info=error)
    return UsageError(
        f"{problem}. Check the source and the address in {ADDRESS}; the curator's log has details. Nothing was charged."
    )
