"""A table made ready once, for every later question: plan types, integer units, ordered by unit.

Where a table reaches its unit by a foreign key (``plan.reach``), each of its rows carries the unit, once for each that
it reaches, and rows that reach none are left out: the copy is what the name of the table stands for.

It lives in a DuckDB file in the engine's private folder and belongs to one version of the data. Its
units are split into ranges, which questions read one after the other.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.engines.duckdb.dialect import DIALECT, TYPES, quote_text
from discreet.engines.duckdb.session import Session, Settings
from discreet.engines.duckdb.sources import Source, attach_file
from discreet.engines.sql.dialect import quote_name
from discreet.engines.sql.statement import RowSource
from discreet.late_dataclass import dataclass
from discreet.plan.expressions import Column

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Rows of a range of units: enough to keep vectors long, so few that their pairs of units and groups stay in memory. A
# range has fewer rows than that beside those of one unit, who may have any number of them: together with its pairs they
# must be few enough to be weighed at once (``weighed_pairs``), or that unit would decide whether a question fails.
RANGE_ROWS = 1 << 20
ORDINAL, IDENTITY, CARRIED = "unit ordinal", "unit identity", "unit carried"


@dataclass(frozen=True, slots=True)
class UnitRanges:
    """Ranges of a unit's integer, by their first ones, that split a table so that every unit is in one of them.

    ``units`` is about how many each has.
    """

    edges: tuple[int, ...]
    units: tuple[int, ...]

    def join(self, most_units: int) -> UnitRanges:
        """Fewer ranges: neighbours are one as long as they have at most so many units together."""
        joined: list[tuple[int, int]] = []
        for edge, units in zip(self.edges, self.units):
            if joined and joined[-1][1] + units <= most_units:
                first, before = joined.pop()
                joined.append((first, before + units))
            else:
                joined.append((edge, units))
        return UnitRanges(tuple(edge for edge, _ in joined), tuple(units for _, units in joined))

    def write_spans(self, ordinal: str) -> list[str]:
        """The conditions that select each range."""
        inner = self.edges[1:]
        lows = ["", *(f"{ordinal} >= {edge}" for edge in inner)]
        highs = [*(f"{ordinal} < {edge}" for edge in inner), ""]
        return [" AND ".join(filter(None, pair)) or "true" for pair in zip(lows, highs)]


def _find_ranges(session: Session, table: str, ordinal: str) -> UnitRanges:
    """The stretches of a table that is ordered by unit, by the smallest of each. A long history may be several."""
    stretches = (
        f"SELECT min({ordinal}) AS edge, approx_count_distinct({ordinal}) AS units "
        f"FROM {table} GROUP BY rowid // {RANGE_ROWS}"
    )
    found = session.run(f"SELECT edge, CAST(sum(units) AS BIGINT) FROM ({stretches}) GROUP BY edge ORDER BY edge")
    return UnitRanges(tuple(edge for edge, _ in found), tuple(units for _, units in found))


@dataclass(frozen=True, slots=True)
class CopyPlace:
    """Where a prepared table is made, what may be used for it, and the version of what it is made of."""

    folder: Path
    settings: Settings
    version: str


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
        attach_file(connection, self.path, self.stem)

    def write_from(self) -> str:
        return f"{quote_name(self.stem)}.prepared"

    def carries_unit(self) -> bool:
        """Whether the unit was reached by a foreign key when the copy was made."""
        return self.unit is not None and self.unit.name == CARRIED

    def to_row_source(self, columns: Mapping[Column, str]) -> RowSource:
        """How questions about these rows alone read them. ``columns`` gives the names of columns here."""
        has_codes = self.unit is not None and DIALECT.code("", self.unit.type) is None
        return RowSource(
            source=self.write_from(),
            columns={column: quote_name(name) for column, name in columns.items()},
            raw={},  # every real is finite here already
            ordinal=quote_name(ORDINAL) if self.unit is not None else "",
            identity=quote_name(IDENTITY) if has_codes else "",
        )


def prepare(
    selection: str,
    columns: Sequence[Column],
    unit: Column | None,
    sources: Sequence[Source],
    place: CopyPlace,
) -> PreparedTable:
    """Make the table from a query of its columns, and of the unit if there is one; each has its own name there."""
    path = place.folder / f"prepared-{len(list(place.folder.glob('prepared-*.duckdb')))}.duckdb"
    with Session(place.settings, [*sources, _Target(str(path))]) as session:
        if unit is not None:
            selection = _sort_by_unit(session, selection, unit)
        session.run(f"CREATE TABLE target.prepared AS {selection}")
        ranges = None if unit is None else _find_ranges(session, "target.prepared", quote_name(ORDINAL))
        session.run("DETACH target")
    return PreparedTable(str(path), path.stem, tuple((c, c.name) for c in columns), place.version, unit, ranges)


def write_selection(columns: Iterable[Column], values: Mapping[str, str], source: str) -> str:
    """The query of a table's columns, from the SQL of each."""
    items = (f"CAST({values[c.name]} AS {TYPES[c.type]}) AS {quote_name(c.name)}" for c in columns)
    return f"SELECT {', '.join(items)} FROM {source}"


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
