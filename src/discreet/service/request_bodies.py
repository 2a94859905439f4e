"""What each request id was sent with: one Idempotency-Key means one body.

The ledger itself refuses another question under a request id that was charged. This also refuses the rest of the body
(another level, other public rows), and a body that the record would answer for free. Of a body a hash is kept, and the
SQL as it was typed, so that the history can give it back: the ledger has each question in its own words alone.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet.errors import UsageError
from discreet.ledger.headfile import make_private

_BUSY_SECONDS = 10
_TABLE = """CREATE TABLE IF NOT EXISTS bodies (
    analyst TEXT NOT NULL, request TEXT NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (analyst, request)
) STRICT"""
_TEXTS = """CREATE TABLE IF NOT EXISTS texts (
    analyst TEXT NOT NULL, request TEXT NOT NULL, sql TEXT NOT NULL, PRIMARY KEY (analyst, request)
) STRICT"""


def bodies_path_of(codebook: str | Path) -> Path:
    """The file of the bodies of a codebook."""
    return Path(codebook).with_suffix(".requests")


def hash_body(route: str, project: str, document: Any) -> str:
    """The hash of what is asked: the order of words and the way to write a JSON number do not matter.

    >>> hash_body("ask", "", {"a": Decimal("0.10"), "b": 1}) == hash_body("ask", "", {"b": 1, "a": Decimal("0.1")})
    True
    """
    text = json.dumps([route, project, document], sort_keys=True, default=_write_number)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _write_number(value: object) -> str:
    if not isinstance(value, Decimal):
        raise TypeError(type(value))
    # A number of a size that nobody needs stays as it was written: as a ratio it would fill the memory.
    usual = abs(value.adjusted()) < 1000
    return str(Fraction(value)) if usual else str(value)


class RequestBodies:
    """What was sent to one dataset, in a file that its owner alone can read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def keep(self, analyst: str, request: str, hashed: str, sql: str = "") -> None:
        """Keep the hash of a request that has no charge yet; another body may follow until one is charged."""
        with self._use() as connection:
            connection.execute("INSERT OR REPLACE INTO bodies VALUES (?, ?, ?)", (analyst, request, hashed))
            if sql:
                typed = sql.encode("utf-8", "replace").decode()  # half a sign has no bytes
                connection.execute("INSERT OR REPLACE INTO texts VALUES (?, ?, ?)", (analyst, request, typed))

    def find_text(self, analyst: str, request: str) -> str | None:
        """The SQL of a request as it was typed; None where it came in some other way, or was several questions."""
        with self._use() as connection:
            query = "SELECT sql FROM texts WHERE analyst = ? AND request = ?"
            row = connection.execute(query, (analyst, request)).fetchone()
        return None if row is None else str(row[0])

    def find(self, analyst: str, request: str) -> str | None:
        """The hash of a request; None where it came in some other way."""
        with self._use() as connection:
            query = "SELECT hash FROM bodies WHERE analyst = ? AND request = ?"
            row = connection.execute(query, (analyst, request)).fetchone()
        return None if row is None else str(row[0])

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    @contextmanager
    def _use(self) -> Iterator[sqlite3.Connection]:
        """The one connection of this server. It stays open, so that a request does not wait for the disk."""
        try:
            with self._lock:
                self._connection = self._connection or self._open()
                with self._connection:
                    yield self._connection
        except (sqlite3.Error, OSError):
            raise UsageError(
                f"{self._path.name} cannot be used as the record of requests. Put it away. Nothing was charged."
            ) from None

    def _open(self) -> sqlite3.Connection:
        with suppress(FileExistsError):
            make_private(self._path)
        made = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, check_same_thread=False)
        # What a loss of power takes away here, the ledger's own check of the question still refuses.
        for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL", _TABLE, _TEXTS):
            made.execute(statement)
        return made
