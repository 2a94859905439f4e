"""The rows of a table in a SQLite file, as texts with the types that its columns declare. For import by the owner.

SQLite lets any value stand in any column, so values are taken as texts, and read by the types afterwards.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from discreet.errors import UsageError
from discreet.plan.types import Type

_BATCH_ROWS = 50_000
# What a declared type means, by a word in it; the first that fits.
_AFFINITIES = (
    ("BOOL", Type.BOOLEAN),
    ("INT", Type.INTEGER),
    ("DATETIME|TIMESTAMP", Type.TIMESTAMP),
    ("DATE", Type.DATE),
    ("REAL|FLOA|DOUB|DEC|NUM", Type.REAL),
)


def read_sqlite(file: Path, table: str | None, lost: Counter[str]) -> tuple[Mapping[str, Type], Iterator[Any]]:
    """The types of a table's columns as declared, and its rows as Arrow tables of text.

    While rows are read, ``lost`` counts by column the values that are no text.
    """
    names = _list_tables(file)
    if table is None and len(names) == 1:
        table = names[0]
    if table not in names:
        raise UsageError(
            f"{file} has the tables {', '.join(names) or '(none)'}. Give --table with one of them. Nothing was charged."
        )
    with closing(_connect(file)) as connection:
        columns = connection.execute(f"PRAGMA table_info({_quote(table)})").fetchall()
    types = {name: _find_type(declared) for _, name, declared, *_ in columns}
    return types, _read_rows(file, table, list(types), lost)


def _read_rows(file: Path, table: str, names: list[str], lost: Counter[str]) -> Iterator[Any]:
    import pyarrow as pa

    schema = pa.schema([(name, pa.string()) for name in names])
    listed = ", ".join(map(_quote, names))
    with closing(_connect(file)) as connection:
        connection.text_factory = bytes
        rows = connection.execute(f"SELECT {listed} FROM {_quote(table)}")  # noqa: S608  # quoted names of the file
        yield pa.table({name: pa.array([], pa.string()) for name in names}, schema=schema)
        while part := rows.fetchmany(_BATCH_ROWS):
            columns = []
            for i, name in enumerate(names):
                texts = [_to_text(row[i]) for row in part]
                lost[name] += sum(text is None and row[i] is not None for row, text in zip(part, texts))
                columns.append(pa.array(texts, pa.string()))
            yield pa.Table.from_arrays(columns, schema=schema)


def _list_tables(file: Path) -> list[str]:
    try:
        with closing(_connect(file)) as connection:
            found = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY 1")
            return [name for (name,) in found if not name.startswith("sqlite_")]
    except sqlite3.Error as error:
        raise UsageError(f"{file} cannot be read as SQLite: {error}. Nothing was charged.") from None


def _connect(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)


def _to_text(value: object) -> str | None:
    """A value as text; bytes that are not UTF-8 are NULL."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return None
    return None if value is None else str(value)


def _find_type(declared: str) -> Type:
    return next((kind for words, kind in _AFFINITIES if re.search(words, declared.upper())), Type.TEXT)


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
