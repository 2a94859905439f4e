"""The log of access: refusals, sign-ins and what owners did, in a chain that cannot be altered unseen.

Each line holds the hash of the line before, as the ledger's do (``ledger.chain``). Who keeps a head elsewhere notices
later if lines were changed, removed or added before it. A line has the id and name of a token, the route, the status
and the code. It has no token, question, answer or address.

A line takes room on the disk. So each source writes at most ``MOST_A_MINUTE`` of them, and the next line says how many
were left out.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from discreet.errors import LedgerDamaged, UsageError
from discreet.late_dataclass import dataclass
from discreet.ledger.chain import START, Head, digest, make_line, make_line_start, time_to_text
from discreet.ledger.headfile import make_private

LOG = logging.getLogger("discreet.service")
MOST_A_MINUTE = 60
_MINUTE = 60.0
_MOST_SOURCES = 10_000
_BUSY_SECONDS = 10
_TABLE = "CREATE TABLE IF NOT EXISTS lines (number INTEGER PRIMARY KEY, line TEXT NOT NULL) STRICT"


class AccessKind(StrEnum):
    """What a line is about."""

    REFUSED = "refused"
    SIGNED_IN = "signed-in"
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessEvent:
    """One line before it is written. ``token`` is an id; "" where no token was known."""

    kind: AccessKind
    route: str
    status: int
    code: str = ""
    token: str = ""
    name: str = ""


def access_path_of(codebook: str | Path) -> Path:
    """The file of the log of access of a codebook."""
    return Path(codebook).with_suffix(".access")


class AccessLog:
    """The log of one dataset, in a file that its owner alone can read. Several servers may write to it."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path, self._clock = path, clock
        self._lock = threading.Lock()
        self._recent: dict[str, tuple[float, int, int]] = {}

    def record(self, event: AccessEvent) -> None:
        """Write a line. A file that cannot be written is told to the server's own log; a refusal stays one."""
        left_out = self._count(event.token)
        if left_out is None:
            return
        fields = {"token": event.token, "name": event.name, "route": event.route, "status": event.status}
        fields |= {"code": event.code} if event.code else {}
        fields |= {"left_out": left_out} if left_out else {}
        try:
            self._append(event.kind, fields)
        except (UsageError, OSError):
            LOG.error("The log of access cannot be written.")

    def _count(self, source: str) -> int | None:
        """How many lines of a source were left out before this one; None where this one is left out, too."""
        now = self._clock()
        with self._lock:
            start, written, left_out = self._recent.get(source, (now, 0, 0))
            if now - start >= _MINUTE:
                start, written = now, 0
            if written >= MOST_A_MINUTE:
                self._recent[source] = (start, written, left_out + 1)
                return None
            if len(self._recent) >= _MOST_SOURCES:
                self._recent.clear()
            self._recent[source] = (start, written + 1, 0)
        return left_out

    def _append(self, kind: AccessKind, fields: Mapping[str, Any]) -> None:
        self._make_file()
        with self._open() as connection:
            connection.execute(_TABLE)
            connection.execute("BEGIN IMMEDIATE")
            last = connection.execute("SELECT number, line FROM lines ORDER BY number DESC LIMIT 1").fetchone()
            number, previous = (0, START) if last is None else (last[0] + 1, digest(last[1]))
            line = make_line(number, previous, kind, time_to_text(datetime.now(UTC)), fields)
            connection.execute("INSERT INTO lines VALUES (?, ?)", (number, line))
            connection.execute("COMMIT")

    def read(self, after: int = -1, limit: int = 1000) -> Sequence[dict[str, Any]]:
        """Lines behind a number, oldest first, without their hashes."""
        found = [json.loads(line) for _, line in self._read_lines(after, limit)]
        return [{name: value for name, value in each.items() if name != "previous"} for each in found]

    def find_head(self) -> Head | None:
        """The end of the log, to be kept elsewhere; None where nothing was written yet."""
        if not self._path.exists():
            return None
        with self._open() as connection:
            last = connection.execute("SELECT number, line FROM lines ORDER BY number DESC LIMIT 1").fetchone()
        return None if last is None else self._make_head(*last)

    def verify(self, heads: Iterable[Head] = ()) -> int:
        """Check the whole chain, and that it holds the heads that were kept; how many lines there are."""
        wanted = {head.number: head.hash for head in heads}
        previous, count, found = START, 0, {}
        for number, line in self._read_lines(-1, -1):
            if number != count or not line.startswith(make_line_start(number, previous)):
                raise _make_damaged(count)
            previous, count = digest(line), count + 1
            if number in wanted:
                found[number] = previous
        for number, kept in wanted.items():
            if found.get(number) != kept:
                raise _make_damaged(number)
        return count

    def _make_head(self, number: int, line: str) -> Head:
        return Head(ledger=self._path.name, number=number, hash=digest(line))

    def _read_lines(self, after: int, limit: int) -> Sequence[tuple[int, str]]:
        if not self._path.exists():
            return ()
        with self._open() as connection:
            query = "SELECT number, line FROM lines WHERE number > ? ORDER BY number LIMIT ?"
            return connection.execute(query, (after, limit)).fetchall()

    def _make_file(self) -> None:
        try:
            make_private(self._path)
        except FileExistsError:
            return

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)) as connection:
                yield connection
        except sqlite3.Error:
            raise UsageError(f"{self._path.name} cannot be used as a log of access. Put it away for a look.") from None


def _make_damaged(number: int) -> LedgerDamaged:
    return LedgerDamaged(f"The log of access does not hold line {number} as it was written. A person has to look.")
