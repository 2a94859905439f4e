"""What of the data cannot be read, and a file imported as typed Parquet: for the owner of the data alone.

The counts are exact and cost nothing, because they are for somebody who has the data anyway. Nothing here is part of
an engine or a curator, so no analyst can reach it.
"""

# ruff: noqa: S608  # all SQL is written here; names are quoted
from __future__ import annotations

import csv
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.engines.duckdb.csv_lines import BLOCK_BYTES, LINE_LIMIT
from discreet.engines.duckdb.dialect import TYPES, quote_name, quote_text
from discreet.engines.duckdb.scanning import fits, plan_type, write_stored_column
from discreet.engines.duckdb.sources import Csv, Parquet, open_source
from discreet.engines.duckdb.table_copies import TableCopy, open_private, write_lines, write_texts
from discreet.engines.private_folder import PrivateFolder
from discreet.engines.unread import Unread, ValueReport
from discreet.errors import UsageError
from discreet.plan.types import Type

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# How a file is read by its ending. Every column of CSV is text, and types are declared, not guessed: a guess
# would change with one person's value.
_SEPARATORS = {".csv": ",", ".txt": ",", ".tsv": "\t"}
_JSON = {".json", ".jsonl", ".ndjson"}


# No text in DuckDB is longer, so this is no limit.
ANY_LENGTH = 2**31 - 1


def count_unread(
    value: Any, table: str, types: Mapping[str, Type], lengths: Mapping[str, int], unit: str | None = None
) -> ValueReport:
    """Count what questions about a table will miss: lines that are no rows, values that do not fit, texts too long.

    With ``unit``, the distinct values of this column are counted as well.
    """
    source = open_source(value, table=table)
    folder = PrivateFolder()
    try:
        lost: list[Unread] = []
        path = folder.path / "copy.parquet"
        if isinstance(source, Csv):
            for counts in write_lines(source, path):
                lost += [Unread(None, f"lines {fault.words}", count) for fault, count in counts.faults.items()]
            source = TableCopy(str(path), "")
        elif isinstance(source, Parquet):
            lost += [Unread(name, "not UTF-8", count) for name, count in write_texts(source, path).items()]
            source = TableCopy(str(path), "")
        with _connect(folder) as connection:
            source.attach(connection)
            return _count_unfit(connection, source.write_from(), types, lost, lengths, unit=unit)
    finally:
        folder.close()


def import_file(file: Path, out: Path, types: Mapping[str, Type]) -> ValueReport:
    """Write what DuckDB reads in a file as Parquet: declared columns in their type, all others as they are."""
    import duckdb

    if out.exists():
        raise UsageError(f"{out} exists. Remove it or give another --out. Nothing was written or charged.")
    folder = PrivateFolder()
    try:
        with _connect(folder) as connection:
            relation, lost = _read_anything(connection, file, folder)
            report = _count_unfit(connection, relation, types, lost, {})
            stored = _describe(connection, relation)
            declared = {name.lower(): kind for name, kind in types.items()}
            items = [_write_item(name, kind, declared.get(name.lower())) for name, kind in stored.items()]
            made = folder.path / "import.parquet"
            rows = f"SELECT {', '.join(items)} FROM {relation}"
            connection.execute(f"COPY ({rows}) TO {quote_text(str(made))} (FORMAT parquet)")
        with open_private(out) as target, made.open("rb") as ready:
            shutil.copyfileobj(ready, target)
    except (duckdb.Error, OSError) as error:
        # To the owner of the file DuckDB may say what it found.
        raise UsageError(f"{file} cannot be imported to {out}: {error}. Nothing was charged.") from None
    finally:
        folder.close()
    return report


def _read_anything(connection: DuckDBPyConnection, file: Path, folder: PrivateFolder) -> tuple[str, list[Unread]]:
    """A file as rows in a table of the connection, and the lines or texts that could not be read."""
    kind = file.suffix.lower()
    if kind in _SEPARATORS:
        return _read_csv(connection, file, _SEPARATORS[kind])
    if kind == ".parquet":
        path = folder.path / "copy.parquet"
        lost = write_texts(Parquet((str(file),)), path)
        return f"read_parquet({quote_text(str(path))})", [Unread(name, "not UTF-8", n) for name, n in lost.items()]
    if kind in _JSON:
        connection.execute(f"CREATE TABLE imported AS SELECT * FROM read_json({quote_text(str(file))})")
        return "imported", []
    known = ", ".join([*_SEPARATORS, *sorted(_JSON), ".parquet"])
    raise UsageError(f"The kind of {file} is not known. It must end in one of {known}. Nothing was charged.")


def _read_csv(connection: DuckDBPyConnection, file: Path, separator: str) -> tuple[str, list[Unread]]:
    """By DuckDB's reader, in which a quoted text may run over several lines. So a quote left open can swallow lines."""
    with file.open("rb") as lines:
        first = lines.readline(LINE_LIMIT).decode("utf-8-sig", "replace")
    names = next(csv.reader([first], delimiter=separator), [])
    if not names or not all(names) or len({name.lower() for name in names}) < len(names):
        raise UsageError(f"The header of {file} must name each column once, in its first line. Nothing was charged.")
    columns = ", ".join(f"{quote_text(name)}: 'VARCHAR'" for name in names)
    settings = (
        f"auto_detect = false, header = true, delim = {quote_text(separator)}, quote = '\"', escape = '\"', "
        f"columns = {{{columns}}}, parallel = false, max_line_size = 16777216, store_rejects = true"
    )
    connection.execute(f"CREATE TABLE imported AS SELECT * FROM read_csv({quote_text(str(file))}, {settings})")
    found = connection.execute(
        "SELECT column_name, lower(CAST(error_type AS VARCHAR)), count(*) FROM reject_errors GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    lost = [Unread(name or None, f"lines with {reason}", count) for name, reason, count in found]
    swallowed = _count_lines(file) - sum(unread.count for unread in lost) - _count_lines_of_rows(connection, names)
    if swallowed > 0:
        lost.append(Unread(None, "lines in no row: blank, or behind a quote that was left open", swallowed))
    return "imported", lost


def _count_lines(file: Path) -> int:
    """The lines behind the header."""
    with file.open("rb") as lines:
        lines.readline()
        count, last = 0, b"\n"
        while block := lines.read(BLOCK_BYTES):
            count, last = count + block.count(b"\n"), block[-1:]
    return count + (last != b"\n")


def _count_lines_of_rows(connection: DuckDBPyConnection, names: Sequence[str]) -> int:
    """The lines that the imported rows take up, with those of quoted line breaks."""
    breaks = [f"coalesce(length({c}) - length(replace({c}, chr(10), '')), 0)" for c in map(quote_name, names)]
    found = connection.execute(f"SELECT coalesce(sum(1 + {' + '.join(breaks)}), 0) FROM imported").fetchall()
    return int(found[0][0])


def _count_unfit(
    connection: DuckDBPyConnection,
    relation: str,
    types: Mapping[str, Type],
    lost: list[Unread],
    lengths: Mapping[str, int],
    *,
    unit: str | None = None,
) -> ValueReport:
    stored = {name.lower(): (name, kind) for name, kind in _describe(connection, relation).items()}
    items, units = ["count(*)"], "NULL"
    for column, declared in types.items():
        if column.lower() not in stored:
            raise UsageError(f"The data has no column {column!r}. Check the header. Nothing was charged.")
        name, kind = stored[column.lower()]
        if not fits(plan_type(kind), declared):
            raise UsageError(
                f"The column {column!r}, {kind} in the data, cannot be read as {declared}. Nothing was charged."
            )
        read = write_stored_column(name, kind, declared, lengths.get(column, ANY_LENGTH))
        items.append(f"count(*) FILTER (WHERE {quote_name(name)} IS NOT NULL AND ({read}) IS NULL)")
        units = f"count(DISTINCT ({read}))" if column == unit else units
    rows, *unfit, owners = connection.execute(f"SELECT {', '.join([*items, units])} FROM {relation}").fetchall()[0]
    reasons = {
        column: f"longer than {lengths[column]} characters" if column in lengths else f"no {kind}"
        for column, kind in types.items()
    }
    lost += [Unread(column, reason, count) for (column, reason), count in zip(reasons.items(), unfit) if count]
    return ValueReport(rows, tuple(lost), owners)


def _describe(connection: DuckDBPyConnection, relation: str) -> dict[str, str]:
    return {row[0]: row[1] for row in connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()}


def _write_item(name: str, stored: str, declared: Type | None) -> str:
    if declared is None:
        return quote_name(name)
    return f"CAST({write_stored_column(name, stored, declared, ANY_LENGTH)} AS {TYPES[declared]}) AS {quote_name(name)}"


@contextmanager
def _connect(folder: PrivateFolder) -> Iterator[DuckDBPyConnection]:
    """A connection that keeps what does not fit into memory in the private folder, and loads nothing from elsewhere."""
    import duckdb

    config: dict[str, str | bool | int | float | list[str]] = {
        "temp_directory": str(folder.path / "spill"),
        "autoinstall_known_extensions": "false",
        "python_enable_replacements": "false",
    }
    with duckdb.connect(str(folder.path / "import.duckdb"), config=config) as connection:
        yield connection
