"""One connection to PostgreSQL for one question: a read-only transaction that sees one state of the data.

Only SQL that ``sql`` wrote is run. Public tables come as arrays that are bound to the statement, so a role needs
nothing but the right to read the tables. Settings of the database, the role and the server that would change what a
statement means are set for the transaction. Whatever goes wrong is raised as psycopg raises it; the engine hides it.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from itertools import count, islice
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np

from discreet.engines.engine import ProgressCallback
from discreet.engines.postgres.dialect import MARK
from discreet.errors import UsageError

T = TypeVar("T")

# The oldest version whose numerics can be infinite, and that extracts parts of times as numerics.
OLDEST = 140_000
# Rows that are fetched at a time.
FETCHED_ROWS = 4096
# The system asks a silent server whether it is there, and a server answers that however long its work takes. So one
# that is gone is noticed within a minute or so, and one that works is waited for.
_SIGNS_OF_LIFE: Mapping[str, int] = {
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}

_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_SETTINGS: Mapping[str, str] = {
    # No clock may end a question: how long it takes depends on the data.
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    # What statements mean.
    "search_path": "pg_catalog, pg_temp",
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
    "row_security": "on",
    # Statements are long, and compiling them takes longer than running them.
    "jit": "off",
    "client_min_messages": "error",
}
_ARRAYS: Mapping[str, str] = {
    "bool": "boolean",
    "int64": "bigint",
    "double": "float8",
    "string": "text",
    "large_string": "text",
    "date32[day]": "date",
    "timestamp[us]": "timestamp",
}


class PostgresSession:
    """A transaction that reads one state of the data and changes nothing. ``work_memory`` is for each sort or hash."""

    def __init__(self, address: str, *, work_memory: str) -> None:
        psycopg = import_psycopg()
        self._connection = psycopg.connect(
            address, autocommit=True, prepare_threshold=None, client_encoding="utf8", **_SIGNS_OF_LIFE
        )
        self._chunk = FETCHED_ROWS if psycopg.capabilities.has_stream_chunked() else 1
        self._raw_cursor = psycopg.RawCursor
        self._lookups: dict[str, str] = {}
        self._arrays: dict[str, list[Any]] = {}
        self._numbers = count()
        try:
            settings = {**_SETTINGS, "work_mem": work_memory}
            listed = "; ".join(f"SET LOCAL {name} = {_write_setting(name, value)}" for name, value in settings.items())
            self._connection.execute(f"{_BEGIN}; {listed}")
        except BaseException:
            self.close()
            raise

    @property
    def server_version(self) -> int:
        """The server's version, such as 150004."""
        return int(self._connection.info.server_version)

    @property
    def most_cells(self) -> int:
        return 0  # rows come one by one over the wire, so PostgreSQL counts

    def fill(self, table: str, values: Any) -> None:
        """Make a public Arrow table known as a common table expression over bound arrays.

        Rows with the character NUL are left out: no text of the database equals them (``plan.gaps``).
        """
        names, arrays, lists = [], [], [column.to_pylist() for column in values.columns]
        rows = [row for row in zip(*lists) if not any(isinstance(cell, str) and "\0" in cell for cell in row)]
        for place, (name, column) in enumerate(zip(values.column_names, values.columns)):
            parameter = f"a{next(self._numbers)}"
            self._arrays[parameter] = [row[place] for row in rows]
            kind = _ARRAYS[str(column.type)]
            names.append(f'{name} COLLATE "C" AS {name}' if kind == "text" else name)
            arrays.append(f"CAST({MARK}{parameter}{MARK} AS {kind}[])")
        given = f"unnest({', '.join(arrays)}) AS given({', '.join(values.column_names)})"
        self._lookups[table] = f"{table} AS MATERIALIZED (SELECT {', '.join(names)} FROM {given})"

    def run(self, sql: str, parameters: Mapping[str, str] | None = None) -> list[tuple[Any, ...]]:
        """Run one statement to its end and fetch what it yields."""
        return list(self.read(sql, parameters or {}))

    def read(self, sql: str, parameters: Mapping[str, str]) -> Iterator[tuple[Any, ...]]:
        """Run one statement and give its rows one by one, of which a few thousand are fetched at a time."""
        text, given = number_parameters(self._add_lookups(sql), {**parameters, **self._arrays})
        with self._raw_cursor(self._connection) as cursor:
            yield from cursor.stream(text, given, binary=True, size=self._chunk)

    def stream(
        self,
        sql: str,
        parameters: Mapping[str, str],
        batch_rows: int,
        watch: ProgressCallback | None = None,  # noqa: ARG002  # PostgreSQL tells no progress
    ) -> Iterator[Any]:
        """Run one statement that yields integers and give its rows as Arrow batches, as they come."""
        import pyarrow as pa

        found = self.read(sql, parameters)
        while rows := list(islice(found, batch_rows)):
            columns = np.array(rows, dtype=np.int64).T
            yield pa.record_batch([pa.array(column) for column in columns], [f"c{i}" for i in range(len(columns))])

    def pipe(self, jobs: Iterable[Callable[[], T]]) -> Iterator[T]:
        """Run jobs one after the other."""
        for job in jobs:
            yield job()

    def _add_lookups(self, sql: str) -> str:
        """A statement with those public tables that it names."""
        named = [query for table, query in self._lookups.items() if re.search(rf"\b{table}\b", sql)]
        if not named:
            return sql
        return f"WITH {', '.join(named)}{', ' + sql[5:] if sql.startswith('WITH ') else ' ' + sql}"

    def close(self) -> None:
        """End whatever runs, and forget everything. Nothing was written, so there is nothing to undo."""
        psycopg = import_psycopg()
        if self._connection.info.transaction_status is psycopg.pq.TransactionStatus.ACTIVE:
            self._connection.cancel_safe(timeout=5)
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def number_parameters(sql: str, parameters: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """A statement whose parameters have numbers, and their values in this order; others are left out."""
    numbers: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        return f"${numbers.setdefault(found[1], len(numbers) + 1)}"

    text = re.sub(f"{MARK}([a-z0-9]+){MARK}", number, sql)
    return text, [parameters[name] for name in numbers]


def import_psycopg() -> Any:
    """The driver; refused with a hint where it is not installed."""
    try:
        return import_module("psycopg")
    except ImportError:
        raise UsageError(
            "Tables in PostgreSQL need psycopg. Install it: pip install 'discreet[postgres]'. Nothing was charged."
        ) from None


def _write_setting(name: str, value: str) -> str:
    """A list of names is a list; everything else is one text."""
    return value if name == "search_path" else f"'{value}'"
