"""Writes a first codebook from the schema of the data alone. No value is read.

Of a Parquet file only the schema in the footer is read, of a CSV file only the header line, and of a DuckDB file only
its list of tables and columns. A schema does not say who is protected and what may be spent. So this is asked, or left
blank, and a codebook with a blank is refused.
"""

from __future__ import annotations

import csv
import glob
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from discreet.codebook.codebook import TableSource
from discreet.codebook.entries import BLANK, ROW
from discreet.codebook.frame_types import type_of_arrow
from discreet.codebook.owners import UnitName
from discreet.errors import UsageError
from discreet.late_dataclass import dataclass
from discreet.plan.source_kinds import SourceKind, kind_of_path
from discreet.plan.types import Type

_HEADER_LIMIT = 1 << 20
_NO_NAMES = {"", "true", "false", "null", "none", "nan", "na", "n/a", "inf", "yes", "no"}
_NUMBER_OR_TIME = re.compile(r"[-+(]?[$€£]?[.,]?\d[\d.,:/%()e+ tz-]*")

Schema = Mapping[str, Type | None]


@dataclass(frozen=True, slots=True)
class DataFiles:
    """The tables in data files: the types of their columns, and where each table is."""

    tables: Mapping[str, Schema]
    sources: Mapping[str, TableSource]

    @property
    def typed(self) -> bool:
        """Whether all files say what their columns hold; CSV files do not."""
        return all(source.kind is not SourceKind.CSV for source in self.sources.values())

    @property
    def columns(self) -> list[str]:
        """The columns that every table has. One of them could say whose row it is."""
        first, *others = self.tables.values()
        return [name for name, kind in first.items() if kind is not None and all(name in other for other in others)]

    @property
    def likely(self) -> list[str]:
        """The columns to propose as the unit: those that every table has, else the first column of each table."""
        firsts = [f"{table}.{next(iter(schema))}" for table, schema in self.tables.items() if schema]
        return self.columns or firsts

    @property
    def units(self) -> list[str]:
        """All columns that could be the unit: those that every table has, and those of single tables."""
        if len(self.tables) == 1:
            return self.columns
        return [*self.columns, *(f"{table}.{name}" for table, schema in self.tables.items() for name in schema)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What only a person can know. None is left blank, ``unit`` may be ``"row"``, and numbers are texts as typed.

    ``ledger_id`` is not chosen by anyone; None leaves it out.
    """

    unit: str | None = None
    max_rows: str | None = None
    epsilon: str | None = None
    delta: str | None = None
    rho: str | None = None
    ledger_id: str | None = None


def inspect(*files: str, header: bool = False) -> DataFiles:
    """The tables and sources that the schemas of data files describe.

    ``header`` True: somebody has looked, and the first line of a CSV file has names even if they look like values.
    """
    tables: dict[str, Schema] = {}
    sources: dict[str, TableSource] = {}
    for file in files:
        source, found = _inspect(file)
        if source.kind is SourceKind.CSV:
            _check_header(file, found, header=header)
        for name, schema in found.items():
            if name.lower() in {known.lower() for known in tables}:
                raise UsageError(
                    f"Two files would be the table {name!r}. Rename one of them, or give a pattern in quotes "
                    "where they are parts of one table. Nothing was read or charged."
                )
            tables[name], sources[name] = schema, source
    return DataFiles(tables, sources)


def _inspect(file: str) -> tuple[TableSource, Mapping[str, Schema]]:
    kind = kind_of_path(file)
    paths = [file] if Path(file).is_file() else sorted(glob.glob(file))
    if kind is None or not paths:
        problem = "There is no such file" if kind is not None else "The kind of this file is not known"
        raise UsageError(f"{problem}: {file}. Give a .parquet, .csv or .duckdb file. Nothing was read or charged.")
    try:
        return TableSource(kind=kind, path=file), _SCHEMA_READERS[kind](paths[0])
    except (OSError, ValueError, RuntimeError, csv.Error):
        # The reader's own words may quote the file, so they are not passed on.
        raise UsageError(f"The schema of {file} cannot be read as {kind}. Nothing was charged.") from None


def _table_name_of(path: str) -> str:
    """The name of a table, made from the name of its file."""
    stem = re.sub(r"\W+", "_", Path(path).name.partition(".")[0]).strip("_").lower()
    return stem or "data"


def _read_parquet(path: str) -> Schema:
    from pyarrow import parquet

    return {field.name: type_of_arrow(field.type) for field in parquet.read_schema(path)}


def _read_header(path: str) -> Schema:
    """The names in the first line. A CSV file has no types, so all columns are text until somebody changes it."""
    with Path(path).open("rb") as lines:  # bytes, because a text reader would look at the rows that follow
        header = lines.readline(_HEADER_LIMIT).decode("utf-8-sig")
    names = next(csv.reader([header], strict=True), [])
    schema: dict[str, Type | None] = dict.fromkeys(names, Type.TEXT)
    if len(schema) < len(names):
        schema[""] = Type.TEXT  # a name that is there twice names nothing
    return schema


def _check_header(file: str, tables: Mapping[str, Schema], *, header: bool) -> None:
    """Refuse a first line that looks like a row: a codebook is public, and so are the names in it.

    One name that looks like a value is enough. A row of words alone cannot be told from names. The message quotes
    nothing, because it might be somebody's.
    """
    names = [name for schema in tables.values() for name in schema]
    if names and all(names) and (header or not any(map(looks_like_value, names))):
        return
    raise UsageError(
        f"The first line of {file} looks like a row, not like the names of columns: a name is missing, is there twice, "
        "or is a number, a date or an e-mail address. A codebook is public, so nothing of it was written. If the file "
        "has no header, add a first line with names. If these are the names, and each is there once, give --header. "
        "Nothing was charged."
    )


def looks_like_value(name: str) -> bool:
    """Whether a name in a header is more likely a value: nothing, a number, a date, a time, a truth, an address.

    >>> [looks_like_value(name) for name in ("age", "visit 2", "17", "2020-01-31", "", "a@b.org", "-1,5e3")]
    [False, False, True, True, True, True, True]
    """
    text = name.strip().lower()
    return text in _NO_NAMES or "@" in text or _NUMBER_OR_TIME.fullmatch(text) is not None


def _read_duckdb(path: str) -> dict[str, Schema]:
    import duckdb

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


# How the schemas in a file of each kind are read: tables by name.
_SCHEMA_READERS: Mapping[SourceKind, Callable[[str], Mapping[str, Schema]]] = {
    SourceKind.PARQUET: lambda path: {_table_name_of(path): _read_parquet(path)},
    SourceKind.CSV: lambda path: {_table_name_of(path): _read_header(path)},
    SourceKind.DUCKDB: _read_duckdb,
}


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def draft(found: DataFiles, choices: Choices, folder: Path) -> str:
    """The codebook as a commented text, for a file in ``folder``."""
    places = {
        name: f"{{ {source.kind} = {_to_text(os.path.relpath(source.path, folder).replace(os.sep, '/'))} }}"
        for name, source in found.sources.items()
    }
    first = next(iter(found.sources.values()))
    shared = len(set(places.values())) == 1 and first.kind is SourceKind.DUCKDB
    lines = [
        "# A codebook: what is public about this dataset, who is protected, and what may be spent.",
        "# Written from the schema alone: no value of the data was read. All words: docs/codebook.md",
        f"# Fill in every {_to_text(BLANK)}, then: discreet check THIS_FILE",
        f"name = {_to_text(_table_name_of(first.path))}",
        "",
        '# Who is protected: the column that says whose row it is, or "row" where nobody has two rows.',
        f"unit = {_to_text(choices.unit or BLANK)}",
        "",
        *([f"source = {next(iter(places.values()))}", ""] if shared else []),
        *_write_ledger_id(choices),
        "# What may be spent by all questions together, for ever. A 50:50 guess about one unit becomes at most",
        "# 74:26 with epsilon = 1, and 96:4 with epsilon = 3.",
        "[budget]",
        *_write_budget(choices),
    ]
    for table in found.tables:
        lines += ["", *_write_table(table, found, choices, "" if shared else places[table])]
    return "\n".join(lines) + "\n"


def _write_ledger_id(choices: Choices) -> list[str]:
    if choices.ledger_id is None:
        return []
    return [
        "# The name of the ledger that counts what is spent. Leave it as it is: another ledger is refused.",
        f"ledger_id = {_to_text(choices.ledger_id)}",
        "",
    ]


def _write_table(table: str, found: DataFiles, choices: Choices, place: str) -> list[str]:
    """The lines of one table."""
    schema = found.tables[table]
    unit = _find_unit_column(table, found, choices)
    lines = [f"[tables.{_to_key(table)}]"]
    if place:
        lines.append(f"source = {place}")
    if len(found.tables) > 1:
        lines += _write_references(table, found, unit, choices)
    if choices.unit != ROW:
        lines.append("# Of one unit, at most this many rows count in a question; more rows need more noise.")
        lines.append(f"max_rows = {choices.max_rows or _to_text(BLANK)}")
    lines += [
        "# rows = 60_000     # roughly, if public; so, too: units = 12_000",
        "",
        f"[tables.{_to_key(table)}.columns]",
    ]
    if found.sources[table].kind is SourceKind.CSV:
        lines.append(f"# Only the header of the CSV file was read. Mend the types: {', '.join(Type)}.")
    return [*lines, *(_write_column(name, kind, owner=name == unit) for name, kind in schema.items())]


def _find_unit_column(table: str, found: DataFiles, choices: Choices) -> str | None:
    """The column of a table that names the unit; None where the table has none, or no unit was chosen."""
    of, _, column = (choices.unit or "").partition(".")
    unit = UnitName(column, of) if column in found.tables.get(of, {}) else UnitName(choices.unit or "")
    return unit.column if unit.is_named_in(table, found.tables[table]) else None


def _write_references(table: str, found: DataFiles, unit: str | None, choices: Choices) -> list[str]:
    """Comments that propose foreign keys, by the names of columns alone. A person decides."""
    schema = found.tables[table]
    pairs = {
        column: target
        for column, kind in schema.items()
        if kind is not None and column != unit and (target := _find_target(table, column, found)) is not None
    }
    lines = []
    if unit is None and choices.unit not in (None, ROW):
        lines.append("# Its rows do not name the unit: keep the line that says how they reach it, or whose they are.")
        lines.append("# public = true     # without max_rows, if its rows belong to nobody and everyone may know them")
        pairs = pairs or {"COLUMN": "TABLE.COLUMN"}
    if pairs:
        words = ", ".join(f"{_to_key(column)} = {_to_text(target)}" for column, target in pairs.items())
        lines.append(f"# foreign_keys = {{ {words} }}     # if each value is a key of that table")
    return lines


def _find_target(table: str, column: str, found: DataFiles) -> str | None:
    """The column of another table that a column may refer to: the first one or the ``id``, by name and type."""
    kind = found.tables[table][column]
    for other, schema in found.tables.items():
        called = {f"{other}_id", f"{other.removesuffix('s')}_id", f"{other}id", f"{other.removesuffix('s')}id"}
        named = column.lower() in {name.lower() for name in called}
        own = next(iter(found.tables[table])) == column
        for key in schema if other != table else ():
            same = key == column and (named or (key == next(iter(schema)) and not own))
            if schema[key] == kind and (same or (named and key.lower() == "id")):
                return f"{other}.{key}"
    return None


def _write_budget(choices: Choices) -> list[str]:
    if choices.rho is not None:
        return [f"rho = {choices.rho}"]
    lines = [f"epsilon = {choices.epsilon or _to_text(BLANK)}"]
    if choices.delta is not None:
        return [*lines, f"delta = {choices.delta}"]
    return [*lines, "# delta = 1e-9      # far below one over the number of people; lets groups be named from the data"]


def _write_column(name: str, kind: Type | None, *, owner: bool) -> str:
    """The line of a column, with a comment that shows what could be declared about it."""
    if kind is None:
        return f"# {_to_key(name)}: of a kind that questions cannot use"
    line = f"{_to_key(name)} = {{ type = {_to_text(kind)} }}"
    if owner:
        return line
    hint = {
        Type.INTEGER: "for sums: bounds = [0, 100]",
        Type.REAL: "for sums: bounds = [0, 100], resolution = 0.01",
        Type.TEXT: 'if publicly known: keys = ["A", "B"]',
        Type.DATE: 'for public groups: bounds = [2024-01-01, 2024-12-31], bins = { width = "day" }',
    }.get(kind)
    return line if hint is None else f"{line:<44} # {hint}"


def _to_text(value: str) -> str:
    """A TOML string; its escapes are those of JSON."""
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _to_key(name: str) -> str:
    """A TOML key, quoted where it must be."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _to_text(name)
