"""Where rows come from: Parquet and CSV files, a table in a DuckDB file, a frame in memory.

A source knows three public things: how DuckDB reads it, what its version is, and which files it may touch. It never
looks at values: CSV columns are text until the catalog says otherwise, and how they are written is declared, not
guessed. How lines of CSV become rows is in ``csv_lines``.
"""

from __future__ import annotations

import glob
import hashlib
import itertools
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, assert_never

from discreet.engines.duckdb.csv_lines import read_names
from discreet.engines.duckdb.dialect import quote_text
from discreet.engines.sql.dialect import quote_name
from discreet.errors import InternalError, UsageError
from discreet.late_dataclass import dataclass
from discreet.plan.arrow import number_texts, to_arrow_table
from discreet.plan.catalog import Catalog
from discreet.plan.csv_form import PLAIN_FORM, CsvForm, delimiter_of_path
from discreet.plan.source_kinds import SourceKind, kind_of_source

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_frames = itertools.count(1)


class Source(Protocol):
    """Rows that a DuckDB connection can read."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that reading touches."""
        ...

    @abstractmethod
    def version(self) -> str:
        """A text that changes whenever the data may have changed."""

    @abstractmethod
    def attach(self, connection: DuckDBPyConnection) -> None:
        """Make the rows known to a connection, before it is locked, by a name that no other source has."""

    @abstractmethod
    def write_from(self) -> str:
        """The rows, as something to write after FROM."""


@dataclass(frozen=True, slots=True)
class Parquet:
    """One or more Parquet files of one schema."""

    paths: tuple[str, ...]

    def version(self) -> str:
        return _version_of_files(self.paths)

    def attach(self, connection: DuckDBPyConnection) -> None:
        pass

    def write_from(self) -> str:
        return f"read_parquet({_write_list(self.paths)}, hive_partitioning = false)"


@dataclass(frozen=True, slots=True)
class Csv:
    """CSV files with a header, in a declared form. Every column is text; lines that break are left out.

    Nothing is sniffed: types or delimiters guessed from values would depend on somebody's data. DuckDB never reads such
    files, because in its reader one line can change others. Questions read a copy (``table_copies``).
    """

    paths: tuple[str, ...]
    names: tuple[str, ...]
    form: CsvForm = PLAIN_FORM

    def version(self) -> str:
        return _version_of_files(self.paths)


@dataclass(frozen=True, slots=True)
class Database:
    """A table in a DuckDB file, which is attached read-only."""

    path: str
    table: str

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.path,)

    def version(self) -> str:
        return _version_of_files(self.paths)

    @property
    def _alias(self) -> str:
        """One for all tables of a file, which can be attached once only."""
        return "file " + hashlib.sha256(self.path.encode("utf-8", "surrogateescape")).hexdigest()[:32]

    def attach(self, connection: DuckDBPyConnection) -> None:
        attach_file(connection, self.path, self._alias)

    def write_from(self) -> str:
        name = ".".join(quote_name(part) for part in self.table.split("."))
        return f"{quote_name(self._alias)}.{name}"


@dataclass(frozen=True, slots=True)
class Frame:
    """An Arrow table in memory. Its version is given once, so the frame must not be changed afterwards."""

    table: Any = field(repr=False)
    number: int = field(default_factory=lambda: next(_frames))
    paths: tuple[str, ...] = ()

    def version(self) -> str:
        return f"frame {self.number}"

    def attach(self, connection: DuckDBPyConnection) -> None:
        connection.register(self.version(), self.table)

    def write_from(self) -> str:
        return quote_name(self.version())


def attach_file(connection: DuckDBPyConnection, path: str, name: str) -> None:
    """Attach a DuckDB file to be read, unless the connection has it by this name.

    DuckDB's own IF NOT EXISTS can wait forever. It keeps the addresses of the instances that have a file, also of one
    that was closed meanwhile; a new one at the same address is taken for it, and waits until it has the file itself.
    """
    query = "SELECT count(*) FROM duckdb_databases() WHERE database_name = ?"
    ((known,),) = connection.execute(query, [name]).fetchall()
    if not known:
        connection.execute(f"ATTACH {quote_text(path)} AS {quote_name(name)} (READ_ONLY)")


def open_sources(sources: Mapping[str, Any], catalog: Catalog) -> dict[str, Source | Csv]:
    """The sources of declared tables, by their names."""
    return {name: open_source(value, table=name, listed=_find_listed(name, catalog)) for name, value in sources.items()}


def _find_listed(table: str, catalog: Catalog) -> set[str]:
    """The columns of a table whose values the codebook lists, in small letters."""
    columns = catalog.tables[table].columns if table in catalog.tables else {}
    return {name.lower() for name, (_, known) in columns.items() if known.keys is not None}


def open_source(value: Any, *, table: str, listed: Collection[str] = ()) -> Source | Csv:
    """A source from what a person gives: a path or pattern, a codebook's source, or a frame.

    ``listed`` are the columns whose values the codebook lists, in small letters: a frame holds their texts once each.
    """
    kind = kind_of_source(value, table)
    if kind is SourceKind.FRAME:
        return Frame(number_texts(to_arrow_table(value), listed))
    if isinstance(value, str | Path):
        return _open_files(kind, str(value), table, None)
    return _open_files(kind, value.path, getattr(value, "table", None) or table, getattr(value, "form", None))


def _open_files(kind: SourceKind, path: str, table: str, form: CsvForm | None) -> Source | Csv:
    paths = _expand(path)
    match kind:
        case SourceKind.PARQUET:
            return Parquet(paths)
        case SourceKind.CSV:
            form = form or CsvForm(delimiter=delimiter_of_path(path))
            return Csv(paths, _read_header(paths, form), form)
        case SourceKind.DUCKDB:
            return Database(paths[0], table)
        case SourceKind.FRAME | SourceKind.POSTGRES | SourceKind.SPARK:
            raise InternalError(f"A source of the kind {kind} is in no file.")
        case _:
            assert_never(kind)


def _expand(path: str) -> tuple[str, ...]:
    """The files a path or pattern names, absolute and in order."""
    file = Path(path).expanduser()
    found = [file] if file.is_file() else [Path(name) for name in sorted(glob.glob(str(file), recursive=True))]
    if not found:
        raise UsageError(f"There is no file {path!r}. Check the source. Nothing was charged.")
    return tuple(str(name.resolve()) for name in found)


def _read_header(paths: Sequence[str], form: CsvForm) -> tuple[str, ...]:
    """The names in the first line, which must be the same in all files."""
    headers = [read_names(path, form) for path in paths]
    for path, header in zip(paths, headers):
        if header is None:
            raise UsageError(
                f"The first line of {path!r} is no header: it must be text in {form.encoding}, with names and matching "
                "quotes. Nothing was charged."
            )
    names = headers[0] or ()
    if any(header != names for header in headers):
        raise UsageError("The CSV files of one table must have the same header. Nothing was charged.")
    return names


def _version_of_files(paths: Sequence[str]) -> str:
    """Names and times of change, as one digest. Not sizes: they depend on the rows, and the digest goes on record."""
    digest = hashlib.sha256()
    for path in paths:
        try:
            stat = Path(path).stat()
        except OSError:
            raise UsageError(f"The file {path!r} is gone. Check the source. Nothing was charged.") from None
        digest.update(f"{path}\0{stat.st_mtime_ns}\0".encode())
    return "files " + digest.hexdigest()[:32]


def _write_list(paths: Sequence[str]) -> str:
    return "[" + ", ".join(quote_text(path) for path in paths) + "]"
