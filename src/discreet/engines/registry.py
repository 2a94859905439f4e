"""Which engine opens which kind of source: one table, asked by everything that opens an engine.

An engine is imported when it is needed and not before, so that a preview, a help page or a survey starts without one.
A new engine adds its kinds of source to ``plan.source_kinds`` and a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from discreet.engines.engine import Engine
from discreet.engines.proposal import TypeProposal
from discreet.engines.unread import ValueReport
from discreet.errors import InternalError, UsageError
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import Catalog
from discreet.plan.relations import Relation, Values
from discreet.plan.source_kinds import DatabaseTable, SourceKind, kind_of_source
from discreet.plan.types import NamedColumn, Type

ValueCounter: TypeAlias = Callable[[Any, str, Mapping[str, Type], Mapping[str, int], str | None], ValueReport]
"""Counts what of a source cannot be read: its table, the declared types and lengths, and the column of the unit."""

TableReader: TypeAlias = Callable[[str], Mapping[str, DatabaseTable]]
"""Finds the tables that the name of one, or of a schema, stands for: by their own names."""

EngineOpener: TypeAlias = Callable[[Mapping[str, Any], Catalog, int | None], Engine]
"""Makes an engine from sources, what is declared about them, and the number of threads that it may use."""


@dataclass(frozen=True, slots=True)
class RegisteredEngine:
    """An engine by its name, and how it is opened; how the owner of the data has values counted, and tables found.

    None where it has no tables that are found by name.
    """

    name: str
    open: EngineOpener
    count_unread: ValueCounter
    read_tables: TableReader | None = None


def _open_duckdb(sources: Mapping[str, Any], catalog: Catalog, threads: int | None) -> Engine:
    from discreet.engines.duckdb.engine import DuckDBEngine

    return DuckDBEngine(sources, catalog, threads=threads)


def _open_postgres(sources: Mapping[str, Any], catalog: Catalog, threads: int | None) -> Engine:  # noqa: ARG001  # the server's own
    from discreet.engines.postgres.engine import PostgresEngine

    return PostgresEngine(sources, catalog)


def _open_spark(sources: Mapping[str, Any], catalog: Catalog, threads: int | None) -> Engine:  # noqa: ARG001  # the cluster's own
    from discreet.engines.spark.engine import SparkEngine

    return SparkEngine(sources, catalog)


def _count_in_duckdb(*given: Any) -> ValueReport:
    from discreet.engines.duckdb import owner_checks

    return owner_checks.count_unread(*given)


def _count_in_postgres(*given: Any) -> ValueReport:
    from discreet.engines.postgres import owner_checks

    return owner_checks.count_unread(*given)


def _count_in_spark(*given: Any) -> ValueReport:
    from discreet.engines.spark import owner_checks

    return owner_checks.count_unread(*given)


def _find_in_postgres(name: str) -> Mapping[str, DatabaseTable]:
    from discreet.engines.postgres import owner_checks

    return owner_checks.find_stored_tables(name)


def _find_in_spark(name: str) -> Mapping[str, DatabaseTable]:
    from discreet.engines.spark import owner_checks

    return owner_checks.find_stored_tables(name)


DUCKDB = RegisteredEngine("duckdb", _open_duckdb, _count_in_duckdb)
POSTGRES = RegisteredEngine("postgres", _open_postgres, _count_in_postgres, _find_in_postgres)
SPARK = RegisteredEngine("spark", _open_spark, _count_in_spark, _find_in_spark)
ENGINES: Mapping[SourceKind, RegisteredEngine] = {
    SourceKind.PARQUET: DUCKDB,
    SourceKind.CSV: DUCKDB,
    SourceKind.DUCKDB: DUCKDB,
    SourceKind.FRAME: DUCKDB,
    SourceKind.POSTGRES: POSTGRES,
    SourceKind.SPARK: SPARK,
}


def open_engine(sources: Mapping[str, Any], catalog: Catalog, *, threads: int | None = None) -> Engine:
    """The engine for some sources. Each is a path or pattern, a codebook's source, or a frame."""
    return find_engine(sources).open(sources, catalog, threads)


def find_engine(
    sources: Mapping[str, Any], engines: Mapping[SourceKind, RegisteredEngine] = ENGINES
) -> RegisteredEngine:
    """The one engine that reads all of these sources; refused where there is none."""
    found: dict[RegisteredEngine, str] = {}
    for table, source in sources.items():
        kind = kind_of_source(source, table)
        if kind not in engines:
            raise UsageError(
                f"No engine reads the table {table!r}, whose source is of the kind {kind!r}. "
                f"There are engines for {', '.join(engines)}. Nothing was charged."
            )
        reader = engines[kind]
        # Where Spark runs is said of files that Spark is to read.
        if kind is SourceKind.PARQUET and getattr(source, "address", None):
            reader = engines[SourceKind.SPARK]
        found.setdefault(reader, table)
    if len(found) > 1:
        (one, first), (two, second), *_ = found.items()
        raise UsageError(
            f"The tables {first!r} and {second!r} need different engines ({one.name}, {two.name}), but one engine "
            "answers for a dataset. Put its tables in one place. Nothing was charged."
        )
    return next(iter(found), engines[SourceKind.FRAME])


def count_unread(
    source: Any, table: str, types: Mapping[str, Type], lengths: Mapping[str, int], unit: str | None = None
) -> ValueReport:
    """Count what of a table cannot be read as declared, and its units by a column. For the owner of the data alone."""
    return find_engine({table: source}).count_unread(source, table, types, lengths, unit)


def find_stored_tables(kind: SourceKind, name: str) -> Mapping[str, DatabaseTable]:
    """The tables that the name of one, or of a schema, stands for, with the types of their columns.

    They go by their own names, without their schema. Of the database only the catalog is read.
    """
    read_tables = ENGINES[kind].read_tables
    if read_tables is None:
        raise InternalError(f"Tables of the kind {kind} have no names.")
    return read_tables(name)


def propose_types(source: Any, table: str) -> TypeProposal:
    """What the values of a CSV source show about its form and its types, for its owner, who gave leave to read them."""
    from discreet.engines.duckdb import type_proposals

    return type_proposals.propose_types(source, table)


def import_file(file: Path, out: Path, types: Mapping[str, Type], **options: Any) -> ValueReport:
    """Write a file as Parquet with declared types, and count what could not be read, for the owner alone.

    The options are ``table`` of a SQLite file, ``encoding`` of a CSV file, and ``propose`` for types from its values.
    """
    from discreet.engines.duckdb import file_import

    return file_import.import_file(file, out, types, file_import.ImportOptions(**options))


def compute_rows(tables: Mapping[str, Sequence[NamedColumn]], sql: str) -> list[NamedColumn]:
    """The columns that a SELECT over released and public rows gives, in a database that holds nothing else."""
    from discreet.engines.duckdb import released_rows

    return released_rows.compute_rows(tables, sql)


def read_public_relation(relation: Relation, catalog: Catalog, read_table: Callable[[str], Values]) -> Values:
    """All rows of a relation over declared public tables, sorted."""
    from discreet.engines.memory import public_rows

    return public_rows.read_public_relation(relation, catalog, read_table)


def open_empty_engine(catalog: Catalog) -> Engine:
    """An engine over tables without rows: enough to price questions from public facts."""
    from discreet.engines.memory.engine import MemoryEngine

    return MemoryEngine({name: [] for name in catalog.tables}, catalog)
