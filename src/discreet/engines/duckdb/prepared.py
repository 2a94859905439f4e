"""A table made ready once, for every later question: plan types, integer units, ordered by unit.

It lives in a DuckDB file in the engine's private folder and belongs to one version of the data. Its
units are split into ranges, which questions read one after the other.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.engines.duckdb.dialect import DIALECT, TYPES, quote_text
from discreet.engines.duckdb.scanning import StoredColumn, write_stored_column
from discreet.engines.duckdb.session import Session, Settings
from discreet.engines.duckdb.sources import Source
from discreet.engines.sql.dialect import quote_name
from discreet.engines.sql.statement import RowSource
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import TableFacts
from discreet.plan.expressions import Column, Expression

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Rows of a range of units: enough to keep vectors long, so few that their pairs of units and groups stay in memory.
RANGE_ROWS = 1 << 20
ORDINAL, IDENTITY = "unit ordinal", "unit identity"


@dataclass(frozen=True, slots=True)
class UnitRanges:
    """Ranges of a unit's integer, by their first ones, that split a table so that every unit is in one of them."""

    edges: tuple[int, ...]

    def write_spans(self, ordinal: str) -> list[str]:
        """The conditions that select each range."""
        inner = self.edges[1:]
        lows = ["", *(f"{ordinal} >= {edge}" for edge in inner)]
        highs = [*(f"{ordinal} < {edge}" for edge in inner), ""]
        return [" AND ".join(filter(None, pair)) or "true" for pair in zip(lows, highs)]


def _write_edges_query(table: str, ordinal: str) -> str:
    """The smallest unit in each stretch of a table that is ordered by unit. A long history may be several stretches."""
    return f"SELECT DISTINCT min({ordinal}) FROM {table} GROUP BY rowid // {RANGE_ROWS} ORDER BY 1"


@dataclass(frozen=True, slots=True)
class PreparedTable:
    """A prepared table as a source."""

    path: str
    stem: str
    names: tuple[tuple[Column, str], ...]
    of_version: str
    unit: Column | None
    ranges: UnitRanges | None

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.path,)

    def version(self) -> str:
        return self.of_version

    def attach(self, connection: DuckDBPyConnection) -> None:
        connection.execute(f"ATTACH IF NOT EXISTS {quote_text(self.path)} AS {quote_name(self.stem)} (READ_ONLY)")

    def write_from(self) -> str:
        return f"{quote_name(self.stem)}.prepared"

    def serves(self, unit: Expression | None, name: str) -> bool:
        """Whether a question about these rows alone, under a name, is about the unit that they are ordered by."""
        own = None if self.unit is None else Column(name, self.unit.name, self.unit.type)
        return unit is None or unit == own

    def to_row_source(self, table: str | None = None) -> RowSource:
        """How questions about these rows alone read them, whose columns may carry another name than the table's."""
        has_codes = self.unit is not None and DIALECT.code("", self.unit.type) is None
        return RowSource(
            source=self.write_from(),
            columns={Column(table or c.table, c.name, c.type): quote_name(name) for c, name in self.names},
            raw={},  # every real is finite here already
            ordinal=quote_name(ORDINAL) if self.unit is not None else "",
            identity=quote_name(IDENTITY) if has_codes else "",
        )


def prepare(
    source: Source, facts: TableFacts, stored: Mapping[str, StoredColumn], folder: Path, settings: Settings
) -> PreparedTable:
    """Make the table. ``stored`` gives for each declared column the one in the source."""
    version = source.version()
    path = folder / f"prepared-{len(list(folder.glob('prepared-*.duckdb')))}.duckdb"
    unit = facts.unit_column
    names = tuple((Column(facts.name, name, kind), name) for name, (kind, _) in facts.columns.items())
    values = {
        name: write_stored_column(stored[name], column.type, facts.columns[name][1].max_length)
        for column, name in names
    }
    items = [f"CAST({values[name]} AS {TYPES[column.type]}) AS {quote_name(name)}" for column, name in names]
    target = _Target(str(path))
    with Session(settings, [source, target]) as session:
        selection = f"SELECT {', '.join(items)} FROM {source.write_from()}"
        if unit is not None:
            selection = _sort_by_unit(session, selection, unit)
        session.run(f"CREATE TABLE target.prepared AS {selection}")
        ranges = None
        if unit is not None:
            found = session.run(_write_edges_query("target.prepared", quote_name(ORDINAL)))
            ranges = UnitRanges(tuple(edge for (edge,) in found))
        session.run("DETACH target")
    return PreparedTable(str(path), path.stem, names, version, unit, ranges)


def _sort_by_unit(session: Session, selection: str, unit: Column) -> str:
    """The rows in the order of their unit's integer; rows without a unit are left out."""
    name = quote_name(unit.name)
    known = f"SELECT * FROM ({selection}) WHERE {name} IS NOT NULL"
    simple = DIALECT.code(name, unit.type)
    if simple is not None:
        return f"SELECT *, {simple} AS {quote_name(ORDINAL)} FROM ({known}) ORDER BY {quote_name(ORDINAL)}"
    session.run(
        f"CREATE TABLE units AS SELECT {name} AS u, row_number() OVER () AS code "
        f"FROM (SELECT DISTINCT {name} FROM ({known}))"
    )
    return (
        f"SELECT r.*, units.code AS {quote_name(ORDINAL)}, "
        f"{DIALECT.identity(f'r.{name}', unit.type)} AS {quote_name(IDENTITY)} "
        f"FROM ({known}) r JOIN units ON r.{name} = units.u ORDER BY {quote_name(ORDINAL)}"
    )


@dataclass(frozen=True, slots=True)
class _Target:
    """The file that a prepared table is written to."""

    path: str

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.path, self.path + ".wal")

    def version(self) -> str:
        return ""

    def attach(self, connection: DuckDBPyConnection) -> None:
        connection.execute(f"ATTACH {quote_text(self.path)} AS target")
        # Before it holds a row. DuckDB makes files that all may read, and takes none that was made for it.
        Path(self.path).chmod(0o600)

    def write_from(self) -> str:
        return "target.prepared"
