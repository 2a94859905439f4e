"""What of the data cannot be read, by column and reason, with an example: for the owner of the data alone.

The counts are exact and cost nothing, because they are for somebody who has the data anyway. Nothing here is part of
an engine or a curator, so no analyst can reach it.
"""

# ruff: noqa: S608  # all SQL is written here; names are quoted
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from discreet.engines.duckdb.dialect import quote_text
from discreet.engines.duckdb.scanning import StoredColumn, fits, plan_type, write_stored_column
from discreet.engines.duckdb.sources import Csv, Parquet, open_source
from discreet.engines.duckdb.table_copies import TableCopy, write_lines, write_texts
from discreet.engines.private_folder import PrivateFolder
from discreet.engines.sql.dialect import quote_name
from discreet.engines.unread import MISSING_WORDS, Unread, ValueReport
from discreet.errors import UsageError
from discreet.plan.csv_form import PLAIN_FORM, CsvForm
from discreet.plan.types import Type

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Columns that are looked at in one statement, and how much of a value is shown as an example.
_COLUMNS = 100
_EXAMPLE_LENGTH = 40
# No text in DuckDB is longer, so this is no limit.
ANY_LENGTH = 2**31 - 1


def count_unread(
    value: Any, table: str, types: Mapping[str, Type], lengths: Mapping[str, int], unit: str | None = None
) -> ValueReport:
    """Count what questions about a table will miss: lines that are no rows, values that do not fit, texts too long.

    With ``unit``, the column that names the unit, also the rows that name nobody, and the units.
    """
    source = open_source(value, table=table)
    folder = PrivateFolder()
    try:
        lost: list[Unread] = []
        path = folder.path / "copy.parquet"
        form = PLAIN_FORM
        if isinstance(source, Csv):
            form = source.form
            for counts in write_lines(source, path):
                lost += [Unread(None, f"lines {fault.words}", count) for fault, count in counts.faults.items()]
            source = TableCopy(str(path), "")
        elif isinstance(source, Parquet):
            lost += [Unread(name, "not UTF-8", count) for name, count in write_texts(source, path).items()]
            source = TableCopy(str(path), "")
        with connect(folder) as connection:
            source.attach(connection)
            relation = load_copy(connection, source) if isinstance(source, TableCopy) else source.write_from()
            columns = pair_columns(connection, relation, types, form)
            return count_unfit(connection, relation, columns, lost, lengths=lengths, unit=unit)
    finally:
        folder.close()


def load_copy(connection: DuckDBPyConnection, copy: TableCopy) -> str:
    """A copy as a table of the connection: each column is looked at by itself, and wide files have thousands."""
    connection.execute(f"CREATE TABLE loaded AS SELECT * FROM {copy.write_from()}")
    return "loaded"


def pair_columns(
    connection: DuckDBPyConnection, relation: str, types: Mapping[str, Type], form: CsvForm
) -> dict[str, tuple[StoredColumn, Type]]:
    """The stored column and the declared type of each declared name."""
    stored = {name.lower(): StoredColumn(name, kind, form) for name, kind in describe(connection, relation).items()}
    for column, declared in types.items():
        if column.lower() not in stored:
            raise UsageError(f"The data has no column {column!r}. Check the header. Nothing was charged.")
        kind = stored[column.lower()].type
        if not fits(plan_type(kind), declared):
            raise UsageError(
                f"The column {column!r}, {kind} in the data, cannot be read as {declared}. Nothing was charged."
            )
    return {column: (stored[column.lower()], declared) for column, declared in types.items()}


def count_unfit(
    connection: DuckDBPyConnection,
    relation: str,
    columns: Mapping[str, tuple[StoredColumn, Type]],
    lost: list[Unread],
    *,
    lengths: Mapping[str, int],
    unit: str | None = None,
) -> ValueReport:
    """Count the values that are read as NULL, and add them to what is ``lost`` already."""
    rows = connection.execute(f"SELECT count(*) FROM {relation}").fetchall()[0][0]
    alike: dict[tuple[StoredColumn, Type, int], dict[str, str]] = {}
    for name, (stored, declared) in columns.items():
        kind = (replace(stored, name="x"), declared, lengths.get(name, ANY_LENGTH))
        alike.setdefault(kind, {})[name] = stored.name
    found: dict[str, Sequence[Any]] = {}
    for (stored, declared, length), names in alike.items():
        items = list(_write_unfit(stored, declared, length))
        found |= look_at_columns(connection, relation, names, items)
    for name, (_, declared) in columns.items():
        unfit, example, missing, word = found.get(name, (0, None, 0, None))
        too_long = f"longer than {lengths[name]} characters" if name in lengths else ""
        lost += [Unread(name, too_long or f"no {declared}", unfit, example)] if unfit else []
        lost += [Unread(name, "written as missing", missing, word, meant=True)] if missing else []
    units = None
    if unit is not None:
        read = write_stored_column(*columns[unit], ANY_LENGTH)
        query = f"SELECT count(*) FILTER (WHERE ({read}) IS NULL), count(DISTINCT ({read})) FROM {relation}"
        nobody, units = connection.execute(query).fetchall()[0]
        lost += [Unread(None, f"rows without a {unit}", nobody)] if nobody else []
    return ValueReport(rows, tuple(lost), units)


def _write_unfit(stored: StoredColumn, declared: Type, length: int) -> Iterator[str]:
    """How many values are read as NULL and what one of them is; and the same for words that mean a missing value."""
    column = quote_name(stored.name)
    text = f"CAST({column} AS VARCHAR)"
    lost = f"({write_stored_column(stored, declared, length)}) IS NULL"
    missing = "false" if declared is Type.TEXT else write_is_missing(text)
    for condition in (f"{lost} AND NOT {missing}", f"{lost} AND {missing}"):
        yield write_total(condition)
        yield f"min(left({text}, {_EXAMPLE_LENGTH})) FILTER (WHERE {condition})"


def look_at_columns(
    connection: DuckDBPyConnection, relation: str, names: Mapping[str, str], items: Sequence[str]
) -> dict[str, Sequence[Any]]:
    """Aggregates over the distinct values ``x`` of each column, with their numbers ``n``; none for columns without any.

    Most values are there often, and are looked at once. Columns of one type go together, because a file may have
    thousands: ``names`` gives for each its name in the relation.
    """
    found: dict[str, Sequence[Any]] = {}
    for start in range(0, len(names), _COLUMNS):
        part = list(names.items())[start : start + _COLUMNS]
        values = " UNION ALL ".join(
            f"SELECT {i} AS c, {quote_name(stored)} AS x, count(*) AS n FROM {relation} "
            f"WHERE {quote_name(stored)} IS NOT NULL GROUP BY 2"
            for i, (_, stored) in enumerate(part)
        )
        for c, *row in connection.execute(f"SELECT c, {', '.join(items)} FROM ({values}) GROUP BY c").fetchall():
            found[part[c][0]] = row
    return found


def write_total(condition: str) -> str:
    """How many rows have a value that meets a condition, over distinct values."""
    return f"CAST(coalesce(sum(n) FILTER (WHERE {condition}), 0) AS BIGINT)"


def write_is_missing(text: str) -> str:
    """Whether a text is a word for a missing value, or blank."""
    words = ", ".join(quote_text(word) for word in ("", *MISSING_WORDS))
    return f"(lower(trim({text})) IN ({words}))"


def describe(connection: DuckDBPyConnection, relation: str) -> dict[str, str]:
    """The names and DuckDB types of the columns of a relation."""
    return {row[0]: row[1] for row in connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()}


@contextmanager
def connect(folder: PrivateFolder) -> Iterator[DuckDBPyConnection]:
    """A connection that keeps what does not fit into memory in the private folder, and loads nothing from elsewhere."""
    import duckdb

    config: dict[str, str | bool | int | float | list[str]] = {
        "temp_directory": str(folder.path / "spill"),
        "autoinstall_known_extensions": "false",
        "python_enable_replacements": "false",
    }
    with duckdb.connect(str(folder.path / "import.duckdb"), config=config) as connection:
        yield connection
