"""The same rows as a frame, as Parquet, as CSV and as a DuckDB file, broken texts included.

Rows have plain values, with two additions for what Python's own values cannot say. A text may hold bytes that are not
UTF-8, written as Python escapes them (a lone half of a surrogate pair). A date or a moment may be a whole number: days
or microseconds from the first day of 1970, also far outside the years 1 to 9999.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, assert_never

from discreet.audit.dataset_neighbours import Dataset
from discreet.audit.neighbours import AuditRow
from discreet.errors import UsageError
from discreet.plan.arrow import load_arrow_types, mend_texts
from discreet.plan.catalog import Catalog, TableFacts
from discreet.plan.source_kinds import SourceKind
from discreet.plan.types import Type, Value

WRITTEN_FORMS = (SourceKind.FRAME, SourceKind.PARQUET, SourceKind.CSV, SourceKind.DUCKDB)
"""The forms that need no server: the audit writes them by itself."""

_FIRST = dt.date(1970, 1, 1)
_START = dt.datetime(1970, 1, 1)  # noqa: DTZ001  # plan timestamps have no zone


def write_sources(kind: SourceKind, dataset: Dataset, catalog: Catalog, folder: Path) -> Mapping[str, Any]:
    """The tables of a dataset in one form, as sources for an engine; files are made in a folder."""
    tables = {name: to_frame(rows, catalog.tables[name]) for name, rows in dataset.items() if name in catalog.tables}
    match kind:
        case SourceKind.FRAME:
            return tables
        case SourceKind.PARQUET:
            return {name: _write_parquet(table, folder / f"{name}.parquet") for name, table in tables.items()}
        case SourceKind.CSV:
            return {name: _write_csv(dataset[name], catalog.tables[name], folder / f"{name}.csv") for name in tables}
        case SourceKind.DUCKDB:
            return _write_database(tables, folder / "tables.duckdb")
        case SourceKind.POSTGRES | SourceKind.SPARK:
            raise UsageError("Rows are written to files, not to a database or a catalog. Load them there yourself.")
        case _:
            assert_never(kind)


def to_frame(rows: Sequence[AuditRow], table: TableFacts) -> Any:
    """Rows as an Arrow table of the declared types, whose texts Arrow was not asked to check."""
    import pyarrow as pa

    return pa.table(
        {name: _make_column([row.get(name) for row in rows], kind) for name, (kind, _) in table.columns.items()}
    )


def _make_column(values: Sequence[Value], kind: Type) -> Any:
    import pyarrow as pa

    to = load_arrow_types()[kind]
    match kind:
        case Type.TEXT:
            return pa.array([_to_bytes(value) for value in values], pa.binary()).cast(to, safe=False)
        case Type.DATE:
            return pa.array([_count_days(value) for value in values], pa.int32()).cast(to)
        case Type.TIMESTAMP:
            return pa.array([_count_microseconds(value) for value in values], pa.int64()).cast(to)
        case Type.BOOLEAN | Type.INTEGER | Type.REAL:
            return pa.array(values, to)
        case _:
            assert_never(kind)


def _to_bytes(value: Value) -> bytes | None:
    return None if value is None else str(value).encode("utf-8", "surrogateescape")


def _count_days(value: Value) -> int | None:
    return (value - _FIRST).days if isinstance(value, dt.date) else None if value is None else int(value)


def _count_microseconds(value: Value) -> int | None:
    if isinstance(value, dt.datetime):
        return (value - _START) // dt.timedelta(microseconds=1)
    return None if value is None else int(value)  # type: ignore[arg-type]  # a number of microseconds


def _write_parquet(table: Any, path: Path) -> Path:
    import pyarrow.parquet as pq

    pq.write_table(table, path)
    return path


def _write_csv(rows: Sequence[AuditRow], table: TableFacts, path: Path) -> Path:
    lines = [",".join(table.columns).encode()]
    lines += [b",".join(_write_field(row.get(name)) for name in table.columns) for row in rows]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def _write_field(value: Value) -> bytes:
    """A field of a line. A text that begins with a quote is written as it stands: nothing forces a file to be right."""
    if value is None:
        return b""
    text = _to_bytes(str(value).lower() if isinstance(value, bool) else value) or b'""'
    if text.startswith(b'"') or not any(sign in text for sign in b',"\r\n'):
        return text
    return b'"' + text.replace(b'"', b'""') + b'"'


def _write_database(tables: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """A DuckDB file. It takes no text that is not UTF-8, so such texts are NULL in it."""
    import duckdb

    with duckdb.connect(str(path)) as connection:
        for name, table in tables.items():
            connection.register("rows of a table", mend_texts(table))
            connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM "rows of a table"')  # noqa: S608  # own names
            connection.unregister("rows of a table")
    return dict.fromkeys(tables, path)
