"""The tables in data files, by their schemas alone. No value is read.

Of a Parquet file only the schema in the footer is read, of a CSV file only the header line, and of a DuckDB file only
its list of tables and columns. What an owner lets be read of the values of a CSV file comes in by ``propose``.
"""

from __future__ import annotations

import glob
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path, PurePath

from discreet.codebook.codebook import TableSource
from discreet.codebook.frame_types import type_of_arrow
from discreet.errors import UsageError
from discreet.late_dataclass import dataclass
from discreet.plan.conversions import SQLITE_MARK, advise_conversion, advise_sqlite
from discreet.plan.csv_form import WIDE_MARKS, CsvForm, guess_form, name_columns, read_first_line, split_header
from discreet.plan.source_kinds import STORED_KINDS, DatabaseTable, SourceKind, require_kind
from discreet.plan.types import Type

_NO_NAMES = {"", "true", "false", "null", "none", "nan", "na", "n/a", "inf", "yes", "no"}
_NUMBER_OR_TIME = re.compile(r"[-+(]?[$€£]?[.,]?\d[\d.,:/%()e+ tz-]*")
# Words in the names of columns that often say whose row it is, those of people first.
_OWNERS = (
    "patient", "person", "user", "customer", "client", "member", "subject", "participant", "respondent", "student",
    "pupil", "employee", "citizen", "household", "account", "device",
)  # fmt: skip
_IDENTITIES = re.compile(r"(^|_|\b)(id|ids|key|nr|no|number|uuid|guid)$|Id$|ID$")

Schema = Mapping[str, Type | None]


@dataclass(frozen=True, slots=True)
class DataFiles:
    """The tables in data files: the types of their columns, and where each table is.

    ``unnamed`` has the columns of each table that have no name in the header. ``proposed`` names the tables whose types
    were proposed from values.
    """

    tables: Mapping[str, Schema]
    sources: Mapping[str, TableSource]
    unnamed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    proposed: frozenset[str] = frozenset()

    @property
    def untyped(self) -> list[str]:
        """The tables whose files do not say what their columns hold: those in CSV, until types are proposed."""
        return [t for t, source in self.sources.items() if source.kind is SourceKind.CSV and t not in self.proposed]

    @property
    def columns(self) -> list[str]:
        """The columns that every table has. One of them could say whose row it is."""
        first, *others = [self._list_named(table) for table in self.tables]
        return [name for name in first if all(name in other for other in others)]

    @property
    def likely(self) -> list[str]:
        """Columns to propose as the unit, by their names: those about people first, then other identities."""
        full = len(self.tables) > 1
        found = self.columns or [
            f"{table}.{name}" if full else name for table in self.tables for name in self._list_named(table)
        ]
        ranks = {name: _rank_unit(name.rpartition(".")[2]) for name in found}
        return sorted((name for name in found if ranks[name] < len(_OWNERS) + 1), key=lambda name: ranks[name])

    @property
    def units(self) -> list[str]:
        """All columns that could be the unit: those that every table has, and those of single tables."""
        if len(self.tables) == 1:
            return self.columns
        return [*self.columns, *(f"{table}.{name}" for table in self.tables for name in self._list_named(table))]

    def propose(self, table: str, form: CsvForm, types: Mapping[str, Type]) -> DataFiles:
        """The same files, with the form and the types of a CSV table as its values show them."""
        return replace(
            self,
            tables={**self.tables, table: types},
            sources={**self.sources, table: replace(self.sources[table], form=form)},
            proposed=self.proposed | {table},
        )

    def add_stored(self, tables: Mapping[str, DatabaseTable]) -> DataFiles:
        """The same with tables of a database, by their names there; the codebook's are in small letters and plain."""
        named = {re.sub(r"\W+", "_", name).strip("_").lower() or "data": table for name, table in tables.items()}
        places = {source.kind for source in self.sources.values()} | {table.kind for table in tables.values()}
        if len(named) < len(tables) or len(places) > 1 or self.tables.keys() & named.keys():
            several = f"Tables of several places ({', '.join(sorted(places))})"
            what = f"{several if len(places) > 1 else 'Two tables of one name'} cannot be"
            raise UsageError(f"{what} in one codebook. Write one for each. Nothing was read or charged.")
        return replace(
            self,
            tables={**self.tables, **{name: table.types for name, table in named.items()}},
            sources={**self.sources, **{n: TableSource(kind=t.kind, path=t.path) for n, t in named.items()}},
        )

    def _list_named(self, table: str) -> list[str]:
        unnamed = self.unnamed.get(table, frozenset())
        return [name for name, kind in self.tables[table].items() if kind is not None and name not in unnamed]


def _rank_unit(name: str) -> int:
    """How likely a column says whose row it is: the place of the word in its name, or of an identity behind them."""
    small = name.lower()
    found = [place for place, word in enumerate(_OWNERS) if word in small]
    if found:
        return found[0]
    return len(_OWNERS) if _IDENTITIES.search(name) else len(_OWNERS) + 1


def inspect(*files: str, header: bool = False) -> DataFiles:
    """The tables and sources that the schemas of data files describe.

    ``header`` True: somebody has looked, and the first line of a CSV file has names even if they look like values.
    """
    tables: dict[str, Schema] = {}
    sources: dict[str, TableSource] = {}
    unnamed: dict[str, frozenset[str]] = {}
    for file in files:
        source, found, fields = _inspect(file)
        if fields is not None:
            _check_header(file, fields, header=header)
        for name, schema in found.items():
            if name.lower() in {known.lower() for known in tables}:
                raise UsageError(
                    f"Two files would be the table {name!r}. Rename one of them, or give a pattern in quotes "
                    "where they are parts of one table. Nothing was read or charged."
                )
            tables[name], sources[name] = schema, source
            unnamed[name] = frozenset(name for name, said in zip(schema, fields or ()) if not said.strip())
    return DataFiles(tables, sources, unnamed)


def find_parts(files: Sequence[str], found: DataFiles) -> str | None:
    """A pattern that would make one table of files that all have the same columns; None where they do not look so."""
    if any(source.kind in STORED_KINDS for source in found.sources.values()):
        return None
    paths = [Path(file) for file in files]
    same = len({tuple(schema.items()) for schema in found.tables.values()}) == 1 and len(found.tables) == len(files) > 1
    if not same or len({path.parent for path in paths}) > 1 or len({"".join(path.suffixes) for path in paths}) > 1:
        return None
    names = [path.name for path in paths]
    start = next((i for i, signs in enumerate(zip(*names)) if len(set(signs)) > 1), min(map(len, names)))
    return str(paths[0].parent / f"{names[0][:start].rstrip('0123456789')}*{''.join(paths[0].suffixes)}")


def find_folder_columns(found: DataFiles) -> dict[str, tuple[str, str]]:
    """The tables whose files lie in folders such as ``year=2024``: such a column, and the folder that holds them."""
    columns = {}
    for table, source in found.sources.items():
        parts = PurePath(source.path).parts if source.kind in (SourceKind.PARQUET, SourceKind.CSV) else ()
        places = [i for i, part in enumerate(parts[:-1]) if "=" in part]
        name = parts[places[0]].partition("=")[0] if places else ""
        if places and name.lower() not in {column.lower() for column in found.tables[table]}:
            columns[table] = (name, str(PurePath(*parts[: places[0]])))
    return columns


def _inspect(file: str) -> tuple[TableSource, Mapping[str, Schema], tuple[str, ...] | None]:
    """Where a file is, its tables, and the header of a CSV file as it stands."""
    if Path(file).is_dir():
        raise UsageError(f"{file} is a folder. {advise_conversion(file)}. Nothing was read or charged.")
    kind = require_kind(file)
    paths = [file] if Path(file).is_file() else sorted(glob.glob(file, recursive=True))
    if not paths:
        raise UsageError(f"There is no such file: {file}. Check the path. Nothing was read or charged.")
    if kind is SourceKind.CSV:
        return _inspect_csv(file, paths[0])
    try:
        return TableSource(kind=kind, path=file), _SCHEMA_READERS[kind](paths[0], name_table(file)), None
    except (OSError, ValueError, RuntimeError):
        # The reader's own words may quote the file, so they are not passed on.
        raise UsageError(f"The schema of {file} cannot be read as {kind}. Nothing was charged.") from None


def _inspect_csv(file: str, path: str) -> tuple[TableSource, Mapping[str, Schema], tuple[str, ...]]:
    """A CSV file has no types, so all columns are text until somebody says more."""
    line = read_first_line(path)
    form = guess_form(line, path)
    if line.startswith(WIDE_MARKS):
        raise UsageError(
            f"{file} is in UTF-16. Convert it first: discreet import {shlex.quote(file)} --types "
            f"--out {shlex.quote(Path(file).name.partition('.')[0] + '.parquet')} Nothing was charged."
        )
    fields = split_header(line, form)
    if fields is None:
        raise UsageError(
            f"The header of {file} cannot be read: its first line must be text with names and matching quotes. "
            "Nothing was charged."
        )
    schema = dict.fromkeys(name_columns(fields), Type.TEXT)
    return TableSource(kind=SourceKind.CSV, path=file, form=form), {name_table(file): schema}, fields


def name_table(path: str) -> str:
    """The name of a table, made from the name of its file, or from a pattern without its signs.

    >>> [name_table(path) for path in ("Visits 2024.csv.gz", "trips-*.parquet", "flights/**/*.csv", "a/year=*/b?.csv")]
    ['visits_2024', 'trips', 'flights', 'b']
    """
    parts = PurePath(path).parts
    for place, part in enumerate(reversed(parts)):
        stem = part.partition(".")[0] if place == 0 else "" if "=" in part else part
        name = re.sub(r"\W+", "_", re.sub(r"\[[^]]*\]|[*?]", "_", stem)).strip("_").lower()
        if name:
            return re.sub("__+", "_", name)
        if not re.search(r"[*?\[]", "".join(parts[: len(parts) - place])):
            break
    return "data"


def _check_header(file: str, names: tuple[str, ...], *, header: bool) -> None:
    """Refuse a first line that looks like a row: a codebook is public, and so are the names in it.

    One name that looks like a value is enough; only the first may be missing, as above row numbers. A row of words
    alone cannot be told from names. The message quotes nothing, because it might be somebody's.
    """
    told = names[1:] if len(names) > 1 and not names[0].strip() else names
    once = len({name.lower() for name in told}) == len(told)
    if any(map(str.strip, names)) and (header or (once and not any(map(looks_like_value, told)))):
        return
    raise UsageError(
        f"The first line of {file} looks like a row, not like the names of columns: a name is missing, is there twice, "
        "or is a number, a date or an e-mail address. A codebook is public, so nothing of it was written. If the file "
        "has no header, add a first line with names. If these are the names, give --header: columns without a name are "
        "then called after their place. Nothing was charged."
    )


def looks_like_value(name: str) -> bool:
    """Whether a name in a header is more likely a value: nothing, a number, a date, a time, a truth, an address.

    >>> [looks_like_value(name) for name in ("age", "visit 2", "17", "2020-01-31", "", "a@b.org", "-1,5e3")]
    [False, False, True, True, True, True, True]
    """
    text = name.strip().lower()
    return text in _NO_NAMES or "@" in text or _NUMBER_OR_TIME.fullmatch(text) is not None


def _read_parquet(path: str, name: str) -> Mapping[str, Schema]:
    from pyarrow import parquet

    return {name: {field.name: type_of_arrow(field.type) for field in parquet.read_schema(path)}}


def _read_duckdb(path: str, name: str) -> Mapping[str, Schema]:  # noqa: ARG001  # its tables have names of their own
    import duckdb

    with Path(path).open("rb") as file:
        if file.read(len(SQLITE_MARK)) == SQLITE_MARK:
            raise UsageError(f"{path} is a SQLite file. {advise_sqlite(path)}. Nothing was read or charged.")
    try:
        with duckdb.connect(path, read_only=True, config={"enable_external_access": False}) as connection:
            names = connection.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main' ORDER BY 1")
            tables = [name for (name,) in names.fetchall()]
            # The limit is 0, so no row is read: the empty result has the schema.
            empty = {name: connection.table(_quote(name)).limit(0).to_arrow_table() for name in tables}
    except duckdb.Error as error:
        raise ValueError("not a DuckDB file") from error
    if not empty:
        raise ValueError("no tables")
    return {name: {field.name: type_of_arrow(field.type) for field in table.schema} for name, table in empty.items()}


# How the schemas in a file of each kind are read: tables by name. A CSV file has none.
_SCHEMA_READERS: Mapping[SourceKind, Callable[[str, str], Mapping[str, Schema]]] = {
    SourceKind.PARQUET: _read_parquet,
    SourceKind.DUCKDB: _read_duckdb,
}


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
