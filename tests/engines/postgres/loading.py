"""Arrow tables in a database of the tests' own, which a role that may do nothing but read asks about.

The database is made to be difficult: its locale, its time zone, its way to write dates and its settings are such that
a statement which trusted any of them would mean something else.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any

import pyarrow as pa

from discreet.engines.engine import Engine
from discreet.engines.postgres.dialect import quote_name
from discreet.engines.postgres.engine import PostgresEngine
from discreet.plan.arrow import mend_texts
from discreet.plan.catalog import Catalog
from discreet.plan.source_kinds import SourceKind
from tests.ledger.server import Server, server

DATABASE = "difficult"
SETTINGS = (
    "datestyle = 'German'",
    "timezone = 'Asia/Kolkata'",
    "extra_float_digits = -15",
    "standard_conforming_strings = off",
    "transform_null_equals = on",
    "search_path = traps, pg_catalog",
    "statement_timeout = '2s'",
    "default_transaction_isolation = 'read committed'",
    "bytea_output = 'escape'",
    "intervalstyle = 'sql_standard'",
)
# Functions that stand before PostgreSQL's own in the search path: a statement that follows it is trapped.
TRAPS = (
    "CREATE FUNCTION traps.abs(float8) RETURNS float8 LANGUAGE sql AS 'SELECT 1::float8'",
    "CREATE FUNCTION traps.char_length(text) RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION traps.floor(float8) RETURNS float8 LANGUAGE sql AS 'SELECT 1::float8'",
)
_KINDS = {
    "bool": "boolean",
    "int64": "bigint",
    "double": "float8",
    "string": "text",
    "large_string": "text",
    "date32[day]": "date",
    "timestamp[us]": "timestamp",
}
_NUMBERS = count()
FIRST_DAY, LAST_DAY = -2_440_000, 100_000_000
FIRST_MOMENT, LAST_MOMENT = -210_000_000_000_000_000, 9_000_000_000_000_000_000


@dataclass(frozen=True)
class Place:
    """A source as a codebook would give it."""

    path: str
    kind: SourceKind = SourceKind.POSTGRES


@dataclass(frozen=True)
class Database:
    """The difficult database: how its owner and its reader reach it."""

    started: Server
    owner: str
    reader: str

    def execute(self, *statements: str) -> None:
        import psycopg

        with psycopg.connect(self.owner, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)


@lru_cache(maxsize=1)
def database() -> Database:
    """The database of this test run, made when it is first needed."""
    import psycopg

    started, name = server(), f"{DATABASE}_{os.getpid()}"
    with psycopg.connect(started.address, autocommit=True) as connection:
        connection.execute(
            f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C' LOCALE_PROVIDER icu "
            "ICU_LOCALE 'en-US-u-kn-true'"
        )
        connection.execute(f"CREATE ROLE reader_{os.getpid()} LOGIN")
        connection.execute(f"REVOKE ALL ON DATABASE {name} FROM PUBLIC")
        connection.execute(f"GRANT CONNECT ON DATABASE {name} TO reader_{os.getpid()}")
    base, _, _ = started.address.rpartition("/")
    owner = f"{base}/{name}"
    made = Database(started, owner, owner.replace("tests@", f"reader_{os.getpid()}@"))
    made.execute(
        "CREATE SCHEMA clinic",
        "CREATE SCHEMA traps",
        *TRAPS,
        f"GRANT USAGE ON SCHEMA clinic, traps TO reader_{os.getpid()}",
        f"ALTER DEFAULT PRIVILEGES IN SCHEMA clinic GRANT SELECT ON TABLES TO reader_{os.getpid()}",
    )
    made.execute(*(f"ALTER ROLE reader_{os.getpid()} SET {setting}" for setting in SETTINGS))
    return made


def load(table: Any, *, kinds: Mapping[str, str] | None = None) -> Place:
    """An Arrow table in the database, under a name of its own. ``kinds`` gives columns other types."""
    import psycopg

    name, table = f"table{next(_NUMBERS)}", drop_nul(mend_texts(table))
    own = {column: _KINDS[str(kind)] for column, kind in zip(table.column_names, table.schema.types)}
    listed = ", ".join(f"{quote_name(column)} {kind}" for column, kind in {**own, **(kinds or {})}.items())
    with psycopg.connect(database().owner) as connection:
        connection.execute(f"CREATE UNLOGGED TABLE clinic.{name} ({listed})")
        with connection.cursor().copy(f"COPY clinic.{name} FROM STDIN") as copy:
            for row in _list_rows(table):
                copy.write_row(row)
    return Place(f"clinic.{name}")


def drop_nul(table: Any) -> Any:
    """A table without texts that hold the character NUL, which PostgreSQL cannot store."""
    columns = [
        pa.array([None if value is not None and "\0" in value else value for value in column.to_pylist()], column.type)
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        else column
        for column in table.columns
    ]
    return pa.table(columns, names=table.column_names)


def _list_rows(table: Any) -> Iterator[tuple[Any, ...]]:
    """Rows as PostgreSQL can hold them: what is beyond its days is infinite."""
    columns = []
    for column in table.columns:
        if pa.types.is_date(column.type):
            columns.append([_to_day(value) for value in column.cast(pa.int32()).to_pylist()])
        elif pa.types.is_timestamp(column.type):
            columns.append([_to_moment(value) for value in column.cast(pa.int64()).to_pylist()])
        else:
            columns.append(column.to_pylist())
    yield from zip(*columns)


def _to_day(days: int | None) -> str | None:
    if days is None or not FIRST_DAY < days < LAST_DAY:
        return None if days is None else "infinity" if days > 0 else "-infinity"
    year, shift = divmod(days, 146_097)
    day = dt.date(1970, 1, 1) + dt.timedelta(days=shift)
    return _with_era(day.year + 400 * year, day.strftime("-%m-%d"))


def _to_moment(microseconds: int | None) -> str | None:
    if microseconds is None or not FIRST_MOMENT < microseconds < LAST_MOMENT:
        return None if microseconds is None else "infinity" if microseconds > 0 else "-infinity"
    cycle, rest = divmod(microseconds, 146_097 * 86_400 * 10**6)
    moment = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=rest)  # noqa: DTZ001  # plan timestamps have no zone
    return _with_era(moment.year + 400 * cycle, moment.strftime("-%m-%d %H:%M:%S.%f"))


def _with_era(year: int, rest: str) -> str:
    return f"{year:04d}{rest}" if year > 0 else f"{1 - year:04d}{rest} BC"


class LoadedEngine(PostgresEngine):
    """An engine over tables that were loaded for it, and that go with it."""

    def __init__(self, tables: Mapping[str, Any], catalog: Catalog, **options: Any) -> None:
        self.places = {name: table if isinstance(table, Place) else load(table) for name, table in tables.items()}
        super().__init__(self.places, catalog, address=database().reader, **options)

    def close(self) -> None:
        super().close()
        database().execute(*(f"DROP TABLE IF EXISTS {place.path}" for place in self.places.values()))


def open_loaded(tables: Mapping[str, Any], catalog: Catalog) -> Engine:
    """An engine over Arrow tables, as the reader."""
    return LoadedEngine({name: tables[name] for name in tables if name in catalog.tables}, catalog)
