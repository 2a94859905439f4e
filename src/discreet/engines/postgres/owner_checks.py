"""What the owner of a database asks before there is a codebook, or beside one: schemas, and values that are not read.

Nothing here is part of an engine or a curator, so no analyst can reach it. Schemas are read without any value.
"""

# ruff: noqa: S608  # all SQL is written here; names are quoted or bound
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from discreet.engines.failure import LOG
from discreet.engines.postgres import scanning
from discreet.engines.postgres.address import ADDRESS, find_address
from discreet.engines.postgres.dialect import DIALECT, MARK, quote_name
from discreet.engines.postgres.session import PostgresSession
from discreet.engines.postgres.tables import TableName, read_columns, read_name
from discreet.engines.sql.unread_values import count_unread_values, pair_columns
from discreet.engines.unread import ValueReport
from discreet.errors import UsageError
from discreet.plan.source_kinds import DatabaseTable, SourceKind
from discreet.plan.types import Type

T = TypeVar("T")

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
        columns = pair_columns(scanning, stored, types, lengths, place=str(name), write_text=_write_text)
        return count_unread_values(session.run, name.sql, columns, DIALECT, unit)

    return _do(f"The table {table!r} cannot be read", count)


def _write_text(name: str) -> str:
    return f"CAST({quote_name(name)} AS text)"


def find_stored_tables(text: str) -> Mapping[str, DatabaseTable]:
    """One table (``clinic.visits``), or all tables of a schema (``clinic``) that this role may read, by their names.

    A column of a type that questions cannot use has None. No value is read.
    """
    return _do("The schema of the database cannot be read", _find_stored_tables, text)


def _find_stored_tables(session: PostgresSession, text: str) -> Mapping[str, DatabaseTable]:
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
    found = {}
    for name in names:
        columns = read_columns(session, name, str(name)).values()
        types = {own: scanning.plan_type(kind) for own, kind in columns}
        found[name.table] = DatabaseTable(str(name), types, SourceKind.POSTGRES)
    return found


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
