"""A file imported as typed Parquet, for the owner of the data: whatever DuckDB, SQLite or Arrow can read.

Only an owner imports, and sees what was lost. So readers may be used here in which one line can change others, and a
quoted text may run over several lines. What is written has one typed value in each cell, and questions read that.
"""

# ruff: noqa: S608  # all SQL is written here; names are quoted
from __future__ import annotations

import io
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.engines.duckdb import sqlite_rows
from discreet.engines.duckdb.csv_lines import BLOCK_BYTES
from discreet.engines.duckdb.dialect import TYPES, quote_text
from discreet.engines.duckdb.folder_parts import FolderPart, list_parts, propose_folder_types, write_pattern
from discreet.engines.duckdb.owner_checks import ANY_LENGTH, connect, count_unfit, describe, pair_columns
from discreet.engines.duckdb.scanning import StoredColumn, write_stored_column
from discreet.engines.duckdb.sources import Parquet
from discreet.engines.duckdb.table_copies import open_private, write_texts
from discreet.engines.duckdb.type_proposals import propose_types
from discreet.engines.private_folder import PrivateFolder
from discreet.engines.sql.dialect import quote_name
from discreet.engines.unread import Unread, ValueReport
from discreet.errors import UsageError
from discreet.late_dataclass import dataclass
from discreet.plan.conversions import ARROW_ENDINGS, JSON_ENDINGS, SQLITE_ENDINGS, SQLITE_MARK, advise_conversion
from discreet.plan.csv_form import (
    BYTE_ORDER_MARK,
    PACKED_ENDINGS,
    PLAIN_FORM,
    WIDE_MARKS,
    CsvEncoding,
    CsvForm,
    find_text_ending,
    guess_form,
    name_columns,
    open_bytes,
    read_first_line,
    split_header,
    to_utf8,
)
from discreet.plan.source_kinds import SourceKind
from discreet.plan.types import Type

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows in a connection: what to write after FROM, what of the file is in no row, and what is known of columns.

    ``likely`` has types that the file declares, or that its values show; what is declared goes before them.
    """

    relation: str
    lost: list[Unread] = field(default_factory=list)
    form: CsvForm = PLAIN_FORM
    likely: Mapping[str, Type] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _TextFile:
    """A CSV file, as a codebook would name a source."""

    path: str
    form: CsvForm
    kind: SourceKind = SourceKind.CSV


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """What an owner says about a file: the table of a SQLite file, the encoding of CSV, and whether to propose types.

    Without an encoding that of the header is taken, not that of rows: one row must not change how others are read.
    """

    table: str | None = None
    encoding: CsvEncoding | None = None
    propose: bool = False


def import_file(file: Path, out: Path, types: Mapping[str, Type], options: ImportOptions) -> ValueReport:
    """Write the rows of a file as Parquet: declared columns in their type, all others as they are."""
    import duckdb
    import pyarrow as pa

    if out.exists():
        raise UsageError(f"{out} exists. Remove it or give another --out. Nothing was written or charged.")
    folder = PrivateFolder()
    try:
        with connect(folder) as connection:
            rows = _read_anything(connection, file, options, folder)
            said = {name.lower() for name in types}
            types = {**{name: kind for name, kind in rows.likely.items() if name.lower() not in said}, **types}
            columns = pair_columns(connection, rows.relation, types, rows.form)
            report = count_unfit(connection, rows.relation, columns, rows.lost, lengths={})
            declared = {stored.name: kind for stored, kind in columns.values()}
            stored = describe(connection, rows.relation)
            items = [_write_item(StoredColumn(n, kind, rows.form), declared.get(n)) for n, kind in stored.items()]
            made = folder.path / "import.parquet"
            selection = f"SELECT {', '.join(items)} FROM {rows.relation}"
            connection.execute(f"COPY ({selection}) TO {quote_text(str(made))} (FORMAT parquet)")
        with open_private(out) as target, made.open("rb") as ready:
            shutil.copyfileobj(ready, target)
    except (duckdb.Error, OSError, EOFError, pa.ArrowException) as error:
        # To the owner of the file DuckDB may say what it found.
        raise UsageError(f"{file} cannot be imported to {out}: {error}. Nothing was charged.") from None
    finally:
        folder.close()
    return report


def _write_item(stored: StoredColumn, declared: Type | None) -> str:
    if declared is None:
        return quote_name(stored.name)
    value = write_stored_column(stored, declared, ANY_LENGTH)
    return f"CAST({value} AS {TYPES[declared]}) AS {quote_name(stored.name)}"


def _read_anything(connection: DuckDBPyConnection, file: Path, options: ImportOptions, folder: PrivateFolder) -> _Rows:
    """A file as rows in a table of the connection."""
    if file.is_dir():
        return _read_folder(connection, file, folder, options)
    if not file.is_file():
        raise UsageError(f"There is no file {file}. Check the path. Nothing was charged.")
    ending = next((part for part in reversed(file.suffixes) if part.lower() not in PACKED_ENDINGS), "").lower()
    if find_text_ending(str(file)) is not None:
        return _read_text(connection, file, folder, options)
    if ending in (".parquet", ".pq"):
        path = folder.path / "copy.parquet"
        lost = write_texts(Parquet((str(file),)), path)
        return _Rows(f"read_parquet({quote_text(str(path))})", _list_no_texts(lost))
    if ending in JSON_ENDINGS:
        connection.execute(f"CREATE TABLE imported AS SELECT * FROM read_json({quote_text(str(file))})")
        return _Rows("imported")
    if ending in SQLITE_ENDINGS or _is_sqlite(file):
        return _read_sqlite(connection, file, options.table)
    if ending in ARROW_ENDINGS:
        return _read_arrow(connection, file)
    known = ", ".join([".csv", ".tsv", ".txt", *JSON_ENDINGS, *SQLITE_ENDINGS, *ARROW_ENDINGS, ".parquet"])
    advice = advise_conversion(str(file)) or f"It must be a folder of Parquet or CSV files, or end in one of {known}."
    raise UsageError(f"{file} cannot be imported as it is. {advice} Nothing was charged.")


def _is_sqlite(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(len(SQLITE_MARK)) == SQLITE_MARK


def _read_folder(connection: DuckDBPyConnection, file: Path, folder: PrivateFolder, options: ImportOptions) -> _Rows:
    """A folder of Parquet files or of text files, in which folders such as ``year=2024`` are a column."""
    if any(file.rglob("*.parquet")):
        pattern = quote_text(str(file / "**" / "*.parquet"))
        return _Rows(f"read_parquet({pattern}, hive_partitioning = true, union_by_name = true)")
    parts = list_parts(file)
    if not parts:
        raise UsageError(f"{file} has no files that end in .parquet or .csv. Nothing was charged.")
    return _read_parts(connection, file, parts, folder, options)


def _read_parts(
    connection: DuckDBPyConnection,
    file: Path,
    parts: Sequence[FolderPart],
    folder: PrivateFolder,
    options: ImportOptions,
) -> _Rows:
    """Text files with the same columns, one below the other. Each is read by itself; types are those of all."""
    form, likely = guess_form(read_first_line(str(parts[0].file)), str(parts[0].file)), dict[str, Type]()
    if options.propose:
        proposal = propose_types(_TextFile(write_pattern(file, parts), form), "imported")
        form, likely = proposal.form, {**propose_folder_types(parts), **proposal.types}
    each = replace(options, propose=False, encoding=options.encoding or form.encoding)
    lost, columns = Counter[tuple[str | None, str]](), list[str]()
    for i, part in enumerate(parts):
        rows = _read_text(connection, part.file, folder, each)
        found = list(describe(connection, "imported"))
        if i and found != columns:
            raise UsageError(
                f"{part.file} has other columns than {parts[0].file}, so they are no parts of one table. "
                "Import each by itself. Nothing was charged."
            )
        columns = found
        into = "INSERT INTO parts" if i else "CREATE TABLE parts AS"
        connection.execute(f"{into} SELECT *{_write_values(part, columns)} FROM imported")
        connection.execute("DROP TABLE imported; DROP TABLE reject_errors; DROP TABLE reject_scans")
        (folder.path / "import.csv").unlink()
        for unread in rows.lost:
            lost[unread.column, unread.reason] += unread.count
    form = replace(form, encoding=CsvEncoding.UTF8)
    return _Rows("parts", [Unread(*what, count) for what, count in lost.items()], form, likely)


def _write_values(part: FolderPart, columns: Sequence[str]) -> str:
    """The values that the names of folders say, as further columns. What the file says itself goes before them."""
    own = {column.lower() for column in columns}
    values = {
        name: "NULL" if v is None else quote_text(v) for name, v in part.values.items() if name.lower() not in own
    }
    return "".join(f", CAST({value} AS VARCHAR) AS {quote_name(name)}" for name, value in values.items())


def _read_sqlite(connection: DuckDBPyConnection, file: Path, table: str | None) -> _Rows:
    lost = Counter[str]()
    types, parts = sqlite_rows.read_sqlite(file, table, lost)
    for place, part in enumerate(parts):
        connection.register("part", part)
        command = "INSERT INTO imported" if place else "CREATE TABLE imported AS"
        connection.execute(f"{command} SELECT * FROM part")
        connection.unregister("part")
    return _Rows("imported", _list_no_texts(lost), likely=types)


def _list_no_texts(lost: Mapping[str, int]) -> list[Unread]:
    return [Unread(name, "not UTF-8", count) for name, count in lost.items() if count]


def _read_arrow(connection: DuckDBPyConnection, file: Path) -> _Rows:
    from pyarrow import feather

    from discreet.plan.arrow import mend_texts

    stored = feather.read_table(file)
    mended = mend_texts(stored)
    connection.register("part", mended)
    connection.execute("CREATE TABLE imported AS SELECT * FROM part")
    lost = {name: mended[name].null_count - stored[name].null_count for name in stored.column_names}
    return _Rows("imported", _list_no_texts(lost))


def _read_text(connection: DuckDBPyConnection, file: Path, folder: PrivateFolder, options: ImportOptions) -> _Rows:
    """A CSV file by DuckDB's reader, from a copy in UTF-8."""
    line, copy = read_first_line(str(file)), folder.path / "import.csv"
    if line.startswith(WIDE_MARKS):
        _write_narrow(file, copy)
        form, likely = _read_form(copy, options)
    else:
        form, likely = _read_form(file, options)
        _write_utf8(file, copy, form.encoding)
    form = replace(form, encoding=CsvEncoding.UTF8)
    fields = split_header(read_first_line(str(copy)), form)
    if fields is None or not any(fields):
        raise UsageError(f"The header of {file} must name the columns, in its first line. Nothing was charged.")
    return _Rows("imported", _read_csv(connection, copy, name_columns(fields), form.delimiter), form, likely)


def _read_form(file: Path, options: ImportOptions) -> tuple[CsvForm, Mapping[str, Type]]:
    """The form of a CSV file, by its header and by what its owner says; and types, if they are to be proposed."""
    form = guess_form(read_first_line(str(file)), str(file))
    form = form if options.encoding is None else replace(form, encoding=options.encoding)
    if not options.propose:
        return form, {}
    proposal = propose_types(_TextFile(str(file), form), "imported")
    return proposal.form, proposal.types


def _write_narrow(file: Path, copy: Path) -> None:
    """A text file in UTF-16 as UTF-8; its byte order mark says which of the two kinds it is."""
    with open_bytes(str(file)) as source, open_private(copy) as target:
        wide = io.TextIOWrapper(source, "utf-16", "replace", newline="")
        while text := wide.read(BLOCK_BYTES):
            target.write(text.encode("utf-8", "replace"))


def _write_utf8(file: Path, copy: Path, encoding: CsvEncoding) -> None:
    """A text file as UTF-8, without compression and byte order mark."""
    with open_bytes(str(file)) as source, open_private(copy) as target:
        start = source.read(len(BYTE_ORDER_MARK))
        source.seek(len(BYTE_ORDER_MARK) if start == BYTE_ORDER_MARK else 0)
        while block := source.read(BLOCK_BYTES):
            target.write(to_utf8(block, encoding))


def _read_csv(connection: DuckDBPyConnection, file: Path, names: Sequence[str], delimiter: str) -> list[Unread]:
    """By DuckDB's reader, in which a quoted text may run over several lines. So a quote left open can swallow lines."""
    columns = ", ".join(f"{quote_text(name)}: 'VARCHAR'" for name in names)
    settings = (
        f"auto_detect = false, header = true, delim = {quote_text(delimiter)}, quote = '\"', escape = '\"', "
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
    return lost


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
