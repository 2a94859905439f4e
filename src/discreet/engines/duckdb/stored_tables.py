"""The tables of an engine as they are stored: where their rows are, and how each declared column is read from there.

What is declared and cannot be read is refused before anything is charged. Of values nothing is known here.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from discreet.bounding.contributions import BoundedPlan
from discreet.engines.duckdb.dialect import DIALECT
from discreet.engines.duckdb.prepared import CARRIED, PreparedTable
from discreet.engines.duckdb.scanning import (
    StoredColumn,
    find_stored_value,
    fits,
    plan_type,
    write_stored_column,
    write_unchecked_text,
    write_unguarded_real,
)
from discreet.engines.duckdb.session import Settings
from discreet.engines.duckdb.session_pool import SessionPool
from discreet.engines.duckdb.sources import Csv, Database, Frame, Parquet, Source, open_sources
from discreet.engines.duckdb.stored_texts import has_plain_numbers
from discreet.engines.duckdb.table_copies import TableCopies
from discreet.engines.failure import LOG, tell_owner
from discreet.engines.sql.dialect import quote_name
from discreet.engines.sql.layers import Layers
from discreet.engines.sql.relations import StoredTable
from discreet.engines.sql.statement import RowSource
from discreet.engines.sql.sunk_conditions import StoredValue, find_bare_keys, write_stored
from discreet.errors import UsageError
from discreet.plan.catalog import Catalog, suggest_nearest
from discreet.plan.expressions import Column
from discreet.plan.relations import Scan, split
from discreet.plan.types import Type

# What numbers of CSV files are in a copy.
_COPIED = {Type.INTEGER: "BIGINT", Type.REAL: "DOUBLE"}

StoredColumns: TypeAlias = dict[str, StoredColumn]
"""The columns of a source by their small names."""


class StoredTables:
    """The sources of the declared tables. Copies that have to be made of them are in ``folder``."""

    def __init__(
        self,
        sources: Mapping[str, Any],
        catalog: Catalog,
        *,
        folder: Path,
        settings: Settings,
        sessions: SessionPool,
    ) -> None:
        self._sources = open_sources(sources, catalog)
        self._catalog = catalog
        self._settings = settings
        self._sessions = sessions
        self._stored: dict[str, tuple[str, StoredColumns]] = {}
        self._copies = TableCopies(folder)

    def clear(self) -> None:
        """Remove the copies."""
        self._copies.clear()

    def list_types(self, table: str) -> Mapping[str, Type | None]:
        """The columns of a source with their types; None for those that questions cannot use."""
        columns = self.read_columns(table).values()
        if isinstance(self.find_source(table), Csv):
            return dict.fromkeys((column.name for column in columns), Type.TEXT)
        return {column.name: plan_type(column.type) for column in columns}

    def list_uncopied(self, tables: Iterable[str]) -> list[Parquet]:
        """The Parquet files among the sources of some tables of which there is no copy."""
        files = [source for table in tables if isinstance(source := self.find_source(table), Parquet)]
        return [source for source in files if self._copies.find(source) is None]

    def copy_texts(self, source: Parquet) -> None:
        """Make a copy in which bytes that are no text are NULL. It is read from then on."""
        self._copies.copy_texts(source)

    def find_source(self, table: str) -> Source | Csv:
        """What was given for a table."""
        if table not in self._sources:
            raise UsageError(
                f"The table {table!r} has no source. {suggest_nearest(table, self._sources)} Nothing was charged."
            )
        return self._sources[table]

    def find_rows(self, table: str) -> Source:
        """Where a question reads the rows of a table that is not prepared."""
        source = self.find_source(table)
        if isinstance(source, Csv):
            return self._copies.copy_lines(source, self._find_numbers(table, source))
        return (self._copies.find(source) if isinstance(source, Parquet) else None) or source

    def make_table(self, table: str, source: Source) -> StoredTable:
        """A declared table as it is stored, for relations of several."""
        if isinstance(source, PreparedTable):
            columns = {column.name: quote_name(name) for column, name in source.names}
            return StoredTable(source.write_from(), columns, unit=quote_name(CARRIED) if source.carries_unit() else "")
        facts, stored = self._catalog.tables[table], self.read_columns(table)
        columns = {
            name: write_stored_column(stored[name.lower()], kind, known.max_length)
            for name, (kind, known) in facts.columns.items()
        }
        return StoredTable(source.write_from(), columns, self._find_values(table))

    def scan_table(self, bounded: BoundedPlan, scan: Scan, source: Source) -> RowSource:
        """A single table as it is stored."""
        facts, stored = self._catalog.tables[scan.table], self.read_columns(scan.table)
        columns = {
            Column(scan.name, name, kind): write_stored_column(stored[name.lower()], kind, known.max_length)
            for name, (kind, known) in facts.columns.items()
        }
        unit = bounded.unit
        ordinal = DIALECT.code(f"({columns[unit]})", unit.type) if isinstance(unit, Column) else None
        raw = {c: sql for c in columns if (sql := write_unguarded_real(stored[c.name.lower()], c.type)) is not None}
        lengths = {name: known.max_length for name, (_, known) in facts.columns.items()}
        texts = ((c, write_unchecked_text(stored[c.name.lower()], c.type, lengths[c.name])) for c in columns)
        unchecked = {column: text for column, text in texts if text is not None}
        values, layers = self._find_values(scan.table), Layers({}, DIALECT, bound := dict[str, str]())
        compared = {column: values[column.name] for column in columns if column.name in values}
        forms = {c: form for c in split(bounded.source)[1] if (form := write_stored(c, compared, layers)) is not None}
        return RowSource(
            source.write_from(),
            columns | find_bare_keys(bounded, compared, forms),
            raw,
            ordinal=ordinal or "",
            texts=bound,
            tested=frozenset(forms),
            condition=" AND ".join(forms.values()),
            in_memory=isinstance(source, Frame),
            unchecked=unchecked,
        )

    def _find_values(self, table: str) -> dict[str, StoredValue]:
        """The columns of a table that can be compared as they are stored."""
        facts, stored = self._catalog.tables[table], self.read_columns(table)
        found = {
            name: find_stored_value(stored[name.lower()], kind, known.max_length)
            for name, (kind, known) in facts.columns.items()
        }
        return {name: value for name, value in found.items() if value is not None}

    def _find_numbers(self, table: str, source: Csv) -> dict[str, Type]:
        """The columns of a CSV table that its copy has as numbers."""
        facts = self._catalog.tables.get(table)
        if facts is None or not has_plain_numbers(source.form):
            return {}
        declared = {name.lower(): kind for name, (kind, _) in facts.columns.items()}
        found = {name: declared.get(name.lower()) for name in source.names}
        return {name: kind for name, kind in found.items() if kind in _COPIED}

    def read_columns(self, table: str) -> StoredColumns:
        """Names and types in the source, read and checked once for each version. Values are not looked at."""
        source = self.find_source(table)
        if isinstance(source, Csv):
            kinds = {name: _COPIED[kind] for name, kind in self._find_numbers(table, source).items()}
            columns = (
                StoredColumn(name, kinds.get(name, "VARCHAR"), source.form, collated=False) for name in source.names
            )
            stored = {column.name.lower(): column for column in columns}
            self._check(table, stored)
            return stored
        import duckdb

        source = self.find_rows(table)
        version = f"{source.version()} {source.write_from()}"  # a copy may have other types of the same meaning
        if self._stored.get(table, ("",))[0] != version:
            try:
                with self._sessions.lease(self._settings, [source]) as session:
                    described = session.run(f"DESCRIBE SELECT * FROM {source.write_from()}")
            except duckdb.Error as error:
                LOG.error("The source of %r cannot be read.", table, exc_info=error)
                message = f"The source of the table {table!r} cannot be read. Check the file and its kind."
                refused = UsageError(f"{message} Nothing was charged.")
                tell_owner(refused, error)
                raise refused from None
            collated = isinstance(source, Database)
            stored = {row[0].lower(): StoredColumn(row[0], row[1], collated=collated) for row in described}
            self._check(table, stored)
            self._stored[table] = (version, stored)
        return self._stored[table][1]

    def _check(self, table: str, stored: StoredColumns) -> None:
        """Every declared column is there, in a type that can be read as declared; else refused before it is read."""
        declared_columns = self._catalog.tables[table].columns if table in self._catalog.tables else {}
        for name, (declared, _) in declared_columns.items():
            if name.lower() not in stored:
                hint = suggest_nearest(name, [column.name for column in stored.values()])
                raise UsageError(f"The data of {table!r} has no column {name!r}. {hint} Nothing was charged.")
            kind = plan_type(stored[name.lower()].type)
            if not fits(kind, declared):
                there = f"is {kind}" if kind else "has a type that questions cannot use"
                raise UsageError(
                    f"The column {name!r} of {table!r} is declared {declared}, but {there} in the data. "
                    "Nothing was charged."
                )
