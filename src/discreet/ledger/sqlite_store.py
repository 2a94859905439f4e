"""The store in a SQLite file: its tables, its connection, and the migration of older files."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from discreet.errors import LedgerDamaged, LedgerError, RequestInFlight
from discreet.ledger import headfile
from discreet.ledger.buffered_store import RESERVATION_COLUMNS, BufferedStore
from discreet.ledger.chain import START, Head
from discreet.ledger.store import Lease, ReservationRow

# The bytes "disc": this number marks SQLite files of this package.
APPLICATION = 0x64697363
# Seconds that a writer waits for the lock.
PATIENCE = 60.0
# The statements that each version of the file added. A new file runs all steps, an older one those that it lacks.
STEPS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE lines (number INTEGER PRIMARY KEY, line TEXT NOT NULL)",
        "CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL, hash TEXT NOT NULL)",
        "CREATE TABLE reservations (number INTEGER PRIMARY KEY REFERENCES lines, analyst TEXT NOT NULL, "
        "request TEXT NOT NULL, identity TEXT NOT NULL, answered INTEGER REFERENCES lines, answer TEXT, "
        "UNIQUE (analyst, request))",
        "CREATE INDEX reservations_by_identity ON reservations (identity)",
    ),
    (
        "CREATE TABLE leases (number INTEGER PRIMARY KEY REFERENCES reservations, owner TEXT NOT NULL, "
        "until REAL NOT NULL)",
        *(
            f"CREATE TRIGGER {table}_no_{verb} BEFORE {verb.upper()} {columns} ON {table} "
            "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
            for table, verb, columns in (
                ("lines", "update", ""),
                ("lines", "delete", ""),
                ("reservations", "update", "OF number, analyst, request, identity"),
                ("reservations", "delete", ""),
            )
        ),
    ),
    # How far a charge came: its one draw was taken, what was drawn.
    (
        "ALTER TABLE reservations ADD COLUMN claimed INTEGER REFERENCES lines",
        "ALTER TABLE reservations ADD COLUMN drawn INTEGER REFERENCES lines",
        "ALTER TABLE reservations ADD COLUMN draw TEXT",
    ),
)
VERSION = len(STEPS)

_INDEXES = ("reservations_by_identity", "sqlite_autoindex_reservations_1")
# The number of reservations that can be found in both indexes.
_FOUND = """
    SELECT count(*) FROM reservations AS r NOT INDEXED
    WHERE EXISTS (SELECT 1 FROM reservations AS i INDEXED BY reservations_by_identity
                  WHERE i.identity = r.identity AND i.number = r.number)
      AND EXISTS (SELECT 1 FROM reservations AS i INDEXED BY sqlite_autoindex_reservations_1
                  WHERE i.analyst = r.analyst AND i.request = r.request AND i.number = r.number)
"""
# Files below this size are checked to the last page whenever they are opened.
_SMALL = 1 << 24
_LOOK = "Nothing is released until a person has looked: see `discreet help ledger`. Nothing was charged."


# A file as the system knows it: device and inode, whatever its name is.
FileIdentity = tuple[int, int]
# The files that stores of this process have open.
_OPEN: Counter[FileIdentity] = Counter()


def read_start(path: Path, size: int) -> bytes | None:
    """The first bytes of a file; None where a store of this process has it open.

    Closing *any* handle of a file drops all locks that the process has on it. Another process could then remove the
    write-ahead log under an open store, and charges would be lost.
    """
    found = path.stat()
    if _OPEN[found.st_dev, found.st_ino]:
        return None
    with path.open("rb") as file:
        return file.read(size)


class SQLiteStore(BufferedStore):
    """Lines in a SQLite file; one connection for each process, used by one thread at a time.

    The file at the path is compared with the one that was opened, by device and inode, when a transaction begins and
    before it commits. The inode of an open file is not given to another one, so equal means the same file.
    """

    def __init__(self, path: Path, *, patience: float = PATIENCE) -> None:
        self._path = path.resolve()  # a link would get a write-ahead log and a head of its own
        self._patience = patience
        self._closed = False
        self._identity: FileIdentity | None = None
        self._left_to_parents: list[sqlite3.Connection] = []
        self._connect()

    def _connect(self) -> None:
        self._pid = os.getpid()
        self._connection = connect(self._path, self._patience)
        try:
            self._identity = self._identity or self._identify()
            self._check_place()
        except LedgerDamaged:
            self._connection.close()
            raise
        _OPEN[self._identity] += 1

    def _identify(self) -> FileIdentity:
        """The file at the path. One with a second name is refused: each name would have a log of its own."""
        try:
            found = self._path.stat()
            if found.st_nlink > 1:
                headfile.remove_drafts(self._path, found)
                found = self._path.stat()
        except OSError:
            raise LedgerDamaged(f"The ledger {self._path.name} is gone from its place. {_LOOK}") from None
        if found.st_nlink > 1:
            raise LedgerDamaged(f"The ledger {self._path.name} has a second name (a hard link). Remove one. {_LOOK}")
        return found.st_dev, found.st_ino

    def _check_place(self) -> None:
        if self._identify() != self._identity:
            raise LedgerDamaged(
                f"Another file was put in the place of {self._path.name} while it was open. Put the right one back "
                f"and open it again. {_LOOK}"
            )

    @property
    def connection(self) -> sqlite3.Connection:
        """This process's own connection: one that was opened before a fork belongs to the parent."""
        if self._pid != os.getpid():
            self._left_to_parents.append(self._connection)  # closing it here would drop the parent's locks
            self._connect()
        return self._connection

    def _begin(self, *, write: bool) -> None:
        try:
            self.connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise RequestInFlight(
                    "Other processes keep the ledger busy. Ask again with the same request id. Nothing was charged."
                ) from None
            raise
        try:
            self._check_place()
        except LedgerDamaged:
            self._rollback()
            raise

    def _commit(self) -> None:
        self._check_place()
        self.connection.execute("COMMIT")

    def _rollback(self) -> None:
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def _read_head(self) -> tuple[int, str]:
        found = self.connection.execute("SELECT number, hash FROM head").fetchall()
        if len(found) != 1:
            raise LedgerDamaged(f"The ledger does not know its own end. {_LOOK}")
        return found[0][0], found[0][1]

    def _read_lines(self, first: int) -> Iterator[tuple[int, str]]:
        return self.connection.execute("SELECT number, line FROM lines WHERE number >= ? ORDER BY number", (first,))

    def _find_rows(self, where: str, *values: object) -> list[ReservationRow]:
        query = f"SELECT {RESERVATION_COLUMNS} FROM reservations WHERE {where} ORDER BY number"  # noqa: S608  # constants of the callers
        return list(map(ReservationRow._make, self.connection.execute(query, values)))

    def _find_lease(self, number: int) -> Lease | None:
        found = self.connection.execute("SELECT owner, until FROM leases WHERE number = ?", (number,)).fetchone()
        return None if found is None else Lease(*found)

    def _execute_many(self, query: str, values: Sequence[Sequence[object]]) -> None:
        self.connection.executemany(query, values)

    def read_reservations(self) -> Iterator[ReservationRow]:
        query = f"SELECT {RESERVATION_COLUMNS} FROM reservations ORDER BY number"  # noqa: S608  # a constant
        return map(ReservationRow._make, self.connection.execute(query))

    def note_head(self, head: Head) -> None:
        headfile.write(self._path, head)

    def check(self) -> None:
        """Check every page of a small file. Of a large file, which is read in full anyway, check the indexes only."""
        look = self.connection.execute
        if self._path.stat().st_size < _SMALL:
            whole = [row[0] for row in look("PRAGMA integrity_check(1)")] == ["ok"]
        else:
            ways = ("NOT INDEXED", *(f"INDEXED BY {name}" for name in _INDEXES))
            counts = {look(f"SELECT count(*) FROM reservations {way}").fetchone()[0] for way in ways}  # noqa: S608  # constants
            whole = len(counts) == 1 and look(_FOUND).fetchone()[0] == counts.pop()
        if not whole:
            raise LedgerDamaged(f"The ledger's file is damaged. {_LOOK}")

    def close(self) -> None:
        if self._pid == os.getpid() and not self._closed:
            self._closed = True
            _OPEN[self._identity or (0, 0)] -= 1
            self._connection.close()


def connect(path: Path, patience: float) -> sqlite3.Connection:
    """Open a connection that waits for the disk at every commit."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=patience, isolation_level=None, check_same_thread=False
    )
    try:
        mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA cell_size_check = ON")
        full = connection.execute("PRAGMA synchronous").fetchone()[0]
    except BaseException:
        connection.close()
        raise
    if mode != "wal" or full < 2:
        connection.close()
        raise LedgerError(
            "The ledger's place does not allow durable writes (WAL). Use a local disk. Nothing was charged."
        )
    return connection


def migrate(store: SQLiteStore, path: Path) -> None:
    """Bring an older file to this version in one transaction, after a copy of it was written beside it."""
    version = store.connection.execute("PRAGMA user_version").fetchone()[0]
    if version == VERSION:
        return
    if version > VERSION or version < 1:
        raise LedgerError("This ledger was written by a newer version. Upgrade discreet. Nothing was charged.")
    kept = path.with_name(f"{path.name}.v{version}")
    if not kept.exists():
        copy_to(store, kept)
    store.begin(write=True)
    found = store.connection.execute("PRAGMA user_version").fetchone()[0]  # another process may have been quicker
    for step in STEPS[found:]:
        for statement in step:
            store.connection.execute(statement)
    store.connection.execute(f"PRAGMA user_version = {VERSION}")
    store.commit()


def make(path: Path, *, steps: int = VERSION) -> SQLiteStore:
    """Make an empty store in a new file; ``steps`` is the version of the file."""
    headfile.make_private(path)
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {steps}")
        for step in STEPS[:steps]:
            for statement in step:
                connection.execute(statement)
        connection.execute(f"INSERT INTO head VALUES (1, -1, '{START}')")  # noqa: S608  # a constant
        connection.execute("COMMIT")
    finally:
        connection.close()
    return SQLiteStore(path)


def copy_to(store: SQLiteStore, target: Path) -> None:
    """Write a copy of everything that is committed to a file that does not exist yet."""
    spare = headfile.make_spare_path(target)
    headfile.make_private(spare)
    copy = sqlite3.connect(spare, isolation_level=None)
    try:
        store.connection.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
    finally:
        copy.close()
    headfile.publish(spare, target)
