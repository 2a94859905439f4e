"""A first codebook from the schema of the data alone: names and types, never a value.

Of a Parquet file only the footer's schema is read, of a CSV file only the header line, of a DuckDB file only its list
of tables and columns. What a schema cannot tell, who is protected and what may be spent, is asked or left blank; a
blank is refused until somebody fills it in.
"""

from __future__ import annotations

import csv
import glob
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from discreet.codebook.codebook import Source
from discreet.codebook.entries import BLANK, ENDINGS
from discreet.codebook.frames import arrow_type
from discreet.codebook.rules import ROW
from discreet.errors import UsageError
from discreet.plan.types import Type

_HEADER_LIMIT = 1 << 20

Schema = Mapping[str, Type | None]


@dataclass(frozen=True, slots=True)
class Found:
    """The tables of a data file and the types of their columns; ``typed`` is false where the file has none."""

    source: Source
    tables: Mapping[str, Schema]
    typed: bool = True

    @property
    def columns(self) -> list[str]:
        """Columns that every table has: those that could say whose row it is."""
        first, *others = self.tables.values()
        return [name for name, kind in first.items() if kind is not None and all(name in other for other in others)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What only a person can know; None is left blank. ``unit`` may be ``"row"``; numbers are as they were typed."""

    unit: str | None = None
    max_rows: str | None = None
    epsilon: str | None = None
    delta: str | None = None
    rho: str | None = None


def inspect(file: str) -> Found:
    """What the schema of a data file says."""
    kind = next((kind for ending, kind in ENDINGS.items() if file.lower().endswith(ending)), None)
    paths = [file] if Path(file).is_file() else sorted(glob.glob(file))
    if kind is None or not paths:
        problem = "There is no such file" if kind is not None else "The kind of this file is not known"
        raise UsageError(f"{problem}: {file}. Give a .parquet, .csv or .duckdb file. Nothing was read or charged.")
    try:
        match kind:
            case "parquet":
                return Found(Source(kind="parquet", path=file), {_name(paths[0]): _parquet(paths[0])})
            case "csv":
                return Found(Source(kind="csv", path=file), {_name(paths[0]): _header(paths[0])}, typed=False)
            case _:
                return Found(Source(kind="duckdb", path=file), _duckdb(paths[0]))
    except (OSError, ValueError, RuntimeError):
        # The reader's own words may quote the file, so they are not passed on.
        raise UsageError(f"The schema of {file} cannot be read as {kind}. Nothing was charged.") from None


def _name(path: str) -> str:
    """A table's name from a file's."""
    stem = re.sub(r"\W+", "_", Path(path).name.partition(".")[0]).strip("_").lower()
    return stem or "data"


def _parquet(path: str) -> Schema:
    from pyarrow import parquet

    return {field.name: arrow_type(field.type) for field in parquet.read_schema(path)}


def _header(path: str) -> Schema:
    """The names in the first line; a CSV file has no types, so all are text until somebody says more."""
    with Path(path).open("rb") as lines:  # bytes, because a text reader would look at the rows that follow
        header = lines.readline(_HEADER_LIMIT).decode("utf-8-sig")
    return dict.fromkeys(next(csv.reader([header]), []), Type.TEXT)


def _duckdb(path: str) -> dict[str, Schema]:
    import duckdb

    try:
        with duckdb.connect(path, read_only=True, config={"enable_external_access": False}) as connection:
            names = connection.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main' ORDER BY 1")
            tables = [name for (name,) in names.fetchall()]
            # No row is asked for, so none is read: the empty answer has the schema.
            empty = {name: connection.table(_quoted(name)).limit(0).to_arrow_table() for name in tables}
    except duckdb.Error as error:
        raise ValueError("not a DuckDB file") from error
    if not empty:
        raise ValueError("no tables")
    return {name: {field.name: arrow_type(field.type) for field in table.schema} for name, table in empty.items()}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def draft(found: Found, choices: Choices, folder: Path) -> str:
    """The codebook as a commented text, for a file in ``folder``."""
    place = os.path.relpath(found.source.path, folder).replace(os.sep, "/")
    named = len(found.tables) == 1 and found.source.kind != "duckdb"
    lines = [
        "# A codebook: what is public about this dataset, who is protected, and what may be spent.",
        "# Written from the schema alone: no value of the data was read. All words: docs/codebook.md",
        f"# Fill in every {_text(BLANK)}, then: discreet check THIS_FILE",
        f"name = {_text(_name(found.source.path))}",
        "",
        '# Who is protected: the column that says whose row it is, or "row" where nobody has two rows.',
        f"unit = {_text(choices.unit or BLANK)}",
        "",
        *([] if named else [f"source = {{ duckdb = {_text(place)} }}", ""]),
        "# What may be spent by all questions together, for ever. A 50:50 guess about one unit becomes at most",
        "# 74:26 with epsilon = 1, and 96:4 with epsilon = 3.",
        "[budget]",
        *_spending(choices),
    ]
    for table, schema in found.tables.items():
        lines += ["", f"[tables.{_word(table)}]"]
        if named:
            lines.append(f"source = {{ {found.source.kind} = {_text(place)} }}")
        if choices.unit != ROW:
            lines.append("# Of one unit, at most this many rows count in a question; more rows need more noise.")
            lines.append(f"max_rows = {choices.max_rows or _text(BLANK)}")
        lines += [
            "# rows = 60_000     # roughly, if public; so, too: units = 12_000",
            "",
            f"[tables.{_word(table)}.columns]",
        ]
        if not found.typed:
            lines.append(f"# Only the header of the CSV file was read. Mend the types: {', '.join(Type)}.")
        lines += [_column(name, kind, owner=name == choices.unit) for name, kind in schema.items()]
    return "\n".join(lines) + "\n"


def _spending(choices: Choices) -> list[str]:
    if choices.rho is not None:
        return [f"rho = {choices.rho}"]
    lines = [f"epsilon = {choices.epsilon or _text(BLANK)}"]
    if choices.delta is not None:
        return [*lines, f"delta = {choices.delta}"]
    return [*lines, "# delta = 1e-9      # far below one over the number of people; lets groups be named from the data"]


def _column(name: str, kind: Type | None, *, owner: bool) -> str:
    """A line for a column, with what could be said about it as a comment."""
    if kind is None:
        return f"# {_word(name)}: of a kind that questions cannot use"
    line = f"{_word(name)} = {{ type = {_text(kind)} }}"
    if owner:
        return line
    hint = {
        Type.INTEGER: "for sums: bounds = [0, 100]",
        Type.REAL: "for sums: bounds = [0, 100], resolution = 0.01",
        Type.TEXT: 'if publicly known: keys = ["A", "B"]',
        Type.DATE: 'for public groups: bounds = [2024-01-01, 2024-12-31], bins = { width = "day" }',
    }.get(kind)
    return line if hint is None else f"{line:<44} # {hint}"


def _text(value: str) -> str:
    """A TOML string; its escapes are those of JSON."""
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _word(name: str) -> str:
    """A TOML key, quoted where it must be."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)
