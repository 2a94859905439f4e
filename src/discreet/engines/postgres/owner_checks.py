"""What the owner of a database asks before there is a codebook, or beside one: schemas, and values that are not read.

Nothing here is part of an engine or a curator, so no analyst can reach it. Schemas are read without any value.
"""

# ruff: noqa: S608  # all SQL is written here; names are quoted or bound
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from discreet.engines.failure import LOG
from discreet.engines.postgres.address import ADDRESS, find_address
from discreet.engines.postgres.dialect import DIALECT, MARK, quote_name
from discreet.engines.postgres.scanning import fits, plan_type, write_stored_column
from discreet.engines.postgres.session import PostgresSession
from discreet.engines.postgres.tables import TableName, read_columns, read_name
from discreet.engines.sql.unread_values import CheckedColumn, count_unread_values
from discreet.engines.unread import ValueReport
from discreet.errors import UsageError
from discreet.plan.types import Type

T = TypeVar("T")

# No text in PostgreSQL is longer, so this is no limit.
ANY_LENGTH = 2**30
# Tables of a schema that this role may read something of. Partitions are parts of their table.
_TABLES = f"""
SELECT CAST(c.relname AS text) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = CAST({MARK}schema{MARK} AS text) AND c.relkind IN ('r', 'p', 'm') AND NOT c.relispartition
    AND has_any_column_privilege(c.oid, 'SELECT')
ORDER BY c.relname COLLATE "C"
"""


def count_unread(
    source: Any, table: str, types: Mapping[str, Type], lengths: Mapping[str, int], unit: str | None = None
) -> ValueReport:
    """Count what questions about a table will miss: values that do not fit, texts too long, rows that name nobody."""
    name = read_name(str(source.path), table)

    def count(session: PostgresSession) -> ValueReport:
        stored = read_columns(session, name, table)
        columns = [
            _pair_column(name, stored.get(column.lower()), column, declared, lengths.get(column))
            for column, declared in types.items()
        ]
        return count_unread_values(session.run, name.sql, columns, DIALECT, unit)

    return _do(f"The table {table!r} cannot be read", count)


def _pair_column(
    name: TableName, own: tuple[str, str] | None, column: str, declared: Type, length: int | None
) -> CheckedColumn:
    """A declared column with the stored one, its name and its type."""
    if own is None:
        raise UsageError(f"{name} has no column {column!r} that this role may read. Nothing was charged.")
    if not fits(plan_type(own[1]), declared):
        raise UsageError(f"The column {column!r} of {name} cannot be read as {declared}. Nothing was charged.")
    read = write_stored_column(*own, declared, ANY_LENGTH if length is None else length)
    return CheckedColumn(column, f"CAST({quote_name(own[0])} AS text)", read, declared, length)


def read_schemas(text: str) -> Mapping[str, Mapping[str, Type | None]]:
    """The columns of one table (``clinic.visits``), or of all tables of a schema (``clinic``) that this role may read.

    Tables are named as a codebook names them. A column of a type that questions cannot use has None. No value is read.
    """
    return _do("The schema of the database cannot be read", _read_schemas, text)


def _read_schemas(session: PostgresSession, text: str) -> Mapping[str, Mapping[str, Type | None]]:
    try:
        names = [read_name(text, text)]
    except UsageError:
        schema = text[1:-1].replace('""', '"') if text.startswith('"') else text
        names = [TableName(schema, table) for (table,) in session.run(_TABLES, {"schema": schema})]
    if not names:
        raise UsageError(
            f"There is no table in the schema {text!r} that this role may read. Give a schema, such as clinic, or a "
            "table, such as clinic.visits. Nothing was charged."
        )
    return {
        str(name): {own: plan_type(kind) for own, kind in read_columns(session, name, str(name)).values()}
        for name in names
    }


def _do(problem: str, work: Callable[..., T], *arguments: Any) -> T:
    """Work in a transaction. The database's own words go to the log."""
    try:
        with PostgresSession(find_address(), work_memory="64MB") as session:
            return work(session, *arguments)
    except UsageError:
        raise
    except Exception as error:
        LOG.error("%s.", problem, exc_info=error)
        raise UsageError(
            f"{problem}. Check the address in {ADDRESS} and the rights of its role; the log has details. "
            "Nothing was charged."
        ) from None
