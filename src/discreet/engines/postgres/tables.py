"""Tables of a database as its catalog describes them: which columns there are, of which types, and what is refused.

A question is promised to be total, and to read nothing but rows. A view may compute anything, a foreign table is
somewhere else, and a row policy runs code of its own for each row: an error there would tell that a value is there. So
these are refused, before anything is charged. A materialised view is a table.
"""

# ruff: noqa: S608  # the one statement is written here, and names are bound
from __future__ import annotations

import re
from collections.abc import Mapping

from discreet.engines.postgres.dialect import MARK, quote_name
from discreet.engines.postgres.session import PostgresSession
from discreet.errors import UsageError
from discreet.late_dataclass import dataclass

_NAME = re.compile(r'([^".\0]+|"(?:[^"\0]|"")+")\.([^".\0]+|"(?:[^"\0]|"")+")')


@dataclass(frozen=True, slots=True)
class TableName:
    """The name of a table with its schema. Names are taken as they stand, with their capitals."""

    schema: str
    table: str

    @property
    def sql(self) -> str:
        """What to write after FROM. Tables that inherit from it are its parts, as for PostgreSQL itself."""
        return f"{quote_name(self.schema)}.{quote_name(self.table)}"

    def __str__(self) -> str:
        """The name as a codebook writes it, and as ``read_name`` reads it: quoted only where it must be.

        >>> str(TableName("clinic", "odd.name"))
        'clinic."odd.name"'
        """
        return ".".join(quote_name(part) if set(part) & {'"', "."} else part for part in (self.schema, self.table))


def read_name(text: str, table: str) -> TableName:
    """A name from a text such as ``clinic.visits`` or ``clinic."odd.name"``.

    >>> read_name('clinic."odd.name"', "visits")
    TableName(schema='clinic', table='odd.name')
    """
    found = _NAME.fullmatch(text)
    if found is None:
        raise UsageError(
            f"The source of the table {table!r} must be a schema and a table, such as 'clinic.visits', not {text!r}. "
            "Nothing was charged."
        )
    schema, name = (part[1:-1].replace('""', '"') if part.startswith('"') else part for part in found.groups())
    return TableName(schema, name)


# A numeric that is declared without places, and so holds whole numbers.
WHOLE_NUMERIC = "whole numeric"
# Domains are followed to the types that they are made of. Only types of PostgreSQL itself and enums are named: what a
# type that somebody made is cast by is not known. The places of a numeric are the low eleven bits of its size, with a
# sign.
_COLUMNS = f"""
WITH RECURSIVE relation AS (
    SELECT c.oid, c.relkind FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = CAST({MARK}schema{MARK} AS text) AND c.relname = CAST({MARK}table{MARK} AS text)
), parts AS (
    SELECT oid FROM relation UNION SELECT i.inhrelid FROM pg_inherits i JOIN parts p ON i.inhparent = p.oid
), base AS (
    SELECT a.attnum, CAST(a.attname AS text) AS name, a.atttypid AS type, a.atttypmod AS size FROM relation r
    JOIN pg_attribute a ON a.attrelid = r.oid
    WHERE a.attnum > 0 AND NOT a.attisdropped AND has_column_privilege(r.oid, a.attnum, 'SELECT')
    UNION ALL
    SELECT b.attnum, b.name, t.typbasetype, t.typtypmod FROM base b JOIN pg_type t ON t.oid = b.type
    WHERE t.typtype = 'd'
)
SELECT CAST(r.relkind AS text), row_security_active(r.oid),
    (SELECT bool_or(c.relkind = 'f') FROM parts p JOIN pg_class c ON c.oid = p.oid),
    b.name, CASE WHEN t.typtype = 'e' THEN 'enum'
        WHEN t.typnamespace <> CAST('pg_catalog' AS regnamespace) OR t.typtype <> 'b' THEN ''
        WHEN t.typname = 'numeric' AND b.size >= 4 AND (((b.size - 4) & 2047) # 1024) <= 1024
        THEN '{WHOLE_NUMERIC}' ELSE CAST(t.typname AS text) END
FROM relation r LEFT JOIN (base b JOIN pg_type t ON t.oid = b.type AND t.typtype <> 'd') ON true
ORDER BY b.attnum
"""
_REFUSED = {
    "v": "is a view, and what it computes could fail on somebody's values. Make it a materialised view or a table",
    "f": "is a foreign table, which lies elsewhere. Name a table of this database",
}


def read_columns(session: PostgresSession, name: TableName, table: str) -> Mapping[str, tuple[str, str]]:
    """By name in small letters the name and the type of each column that this role may read. No values."""
    found = session.run(_COLUMNS, {"schema": name.schema, "table": name.table})
    where = f"{name.schema}.{name.table}, the source of the table {table!r},"
    if not found:
        raise UsageError(f"{where} is not in the database. Check both names. Nothing was charged.")
    kind, policies, foreign = found[0][:3]
    if kind not in ("r", "p", "m"):
        raise UsageError(f"{where} {_REFUSED.get(kind, 'is no table')}. Nothing was charged.")
    if foreign:
        raise UsageError(f"{where} has a part that is a foreign table. Name tables alone. Nothing was charged.")
    if policies:
        raise UsageError(
            f"{where} has row policies for this role, and these run for each row. Use a role that they do not hold "
            "for, or a table of its own. Nothing was charged."
        )
    columns: dict[str, tuple[str, str]] = {}
    for *_, own, type_name in found:
        if own is not None and own.lower() in columns:
            raise UsageError(
                f"{where} has columns that differ from {own!r} in capitals alone. Rename one. Nothing was charged."
            )
        if own is not None:
            columns[own.lower()] = (own, type_name)
    return columns
