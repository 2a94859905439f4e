"""The ledger in a PostgreSQL database, for several servers. It needs the extra ``postgres`` (psycopg).

Each dataset has a schema of its own. A writer locks a table (``turns``) as the first step of a serialisable
transaction, so that its later reads include everything that was committed before. The server must wait for its disk:
with ``fsync``, ``full_page_writes`` or ``synchronous_commit`` switched off it is refused. PostgreSQL itself stops when
an ``fsync`` fails; here every failure of a statement halts the ledger until it is opened again.

Each server keeps a head file beside its codebook, as for a ledger in a file. So an older dump that was put back, or a
schema that was dropped, is noticed there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Self, Unpack

from discreet.errors import LedgerDamaged, LedgerError, LedgerFailure, ParameterError, RequestInFlight
from discreet.ledger import headfile
from discreet.ledger.base_ledger import LEASE, BaseLedger
from discreet.ledger.buffered_store import RESERVATION_COLUMNS, BufferedStore
from discreet.ledger.chain import START, Head
from discreet.ledger.ledger_terms import DeclaredTerms, LedgerTerms
from discreet.ledger.log_scan import scan
from discreet.ledger.store import Lease, ReservationRow

VERSION = 2
# Seconds that a writer waits for its turn.
PATIENCE = 60.0
_LOOK = "Nothing is released until a person has looked: see `discreet help ledger`. Nothing was charged."
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_TABLES = (
    "CREATE TABLE turns (version integer NOT NULL)",
    "CREATE TABLE lines (number bigint PRIMARY KEY, line text NOT NULL)",
    "CREATE TABLE head (one integer PRIMARY KEY CHECK (one = 1), number bigint NOT NULL, hash text NOT NULL)",
    "CREATE TABLE reservations (number bigint PRIMARY KEY REFERENCES lines, analyst text NOT NULL, "
    "request text NOT NULL, identity text NOT NULL, answered bigint REFERENCES lines, answer text, "
    "claimed bigint REFERENCES lines, drawn bigint REFERENCES lines, draw text, "
    "UNIQUE (analyst, request))",
    "CREATE INDEX reservations_by_identity ON reservations (identity)",
    "CREATE TABLE leases (number bigint PRIMARY KEY REFERENCES reservations, owner text NOT NULL, "
    "until double precision NOT NULL)",
    "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$",
    "CREATE TRIGGER lines_grow BEFORE UPDATE OR DELETE OR TRUNCATE ON lines FOR EACH STATEMENT "
    "EXECUTE FUNCTION refuse()",
    "CREATE TRIGGER reservations_grow BEFORE UPDATE OF number, analyst, request, identity OR DELETE OR TRUNCATE "
    "ON reservations FOR EACH STATEMENT EXECUTE FUNCTION refuse()",
)
# What each version added to the tables of the one before: how far a charge came.
_STEPS: dict[int, tuple[str, ...]] = {
    2: (
        "ALTER TABLE reservations ADD COLUMN claimed bigint REFERENCES lines",
        "ALTER TABLE reservations ADD COLUMN drawn bigint REFERENCES lines",
        "ALTER TABLE reservations ADD COLUMN draw text",
    )
}


class PostgresStore(BufferedStore):
    """Lines in a schema of a PostgreSQL database; one connection for each process, used by one thread at a time."""

    def __init__(self, address: str, schema: str, *, patience: float = PATIENCE, place: Path | None = None) -> None:
        self._address, self._schema, self._patience, self._place = address, schema, patience, place
        self._left_to_parents: list[Any] = []
        self._connect()

    def _connect(self) -> None:
        self._pid = os.getpid()
        self._connection = _import_psycopg().connect(self._address, autocommit=True, prepare_threshold=2)
        settings = [self._connection.execute(f"SHOW {name}").fetchone() for name in _DURABLE]
        if any(found is None or found[0] == "off" for found in settings):
            self._connection.close()
            raise LedgerError(
                f"The server does not wait for its disk. Switch on {', '.join(_DURABLE)}. Nothing was charged."
            )
        self._connection.execute(f'SET search_path TO "{self._schema}"')
        self._connection.execute(f"SET lock_timeout = {int(1000 * self._patience)}")

    @property
    def connection(self) -> Any:
        """This process's own connection: one that was opened before a fork belongs to the parent."""
        if self._pid != os.getpid():
            self._left_to_parents.append(self._connection)
            self._connect()
        return self._connection

    def _begin(self, *, write: bool) -> None:
        """Begin a transaction. Those that write come one after the other; those that read see a state between two.

        Why one view for the whole transaction is enough: whoever writes holds a lock from before the first query, which
        fixes the view, to the end. The server's own search for conflicts would only end some of them for nothing.
        """
        psycopg = _import_psycopg()
        try:
            self._start(f"BEGIN ISOLATION LEVEL REPEATABLE READ {'' if write else 'READ ONLY'}")
            if write:
                # Before the first query, so that the transaction's view begins when the lock is held.
                self.connection.execute("LOCK TABLE turns IN EXCLUSIVE MODE")
        except (psycopg.errors.LockNotAvailable, psycopg.errors.SerializationFailure):
            self._rollback()
            raise RequestInFlight(
                "Other processes keep the ledger busy. Ask again with the same request id. Nothing was charged."
            ) from None

    def _start(self, statement: str) -> None:
        """Begin a transaction, over a new connection if the old one was lost while nothing was going on."""
        try:
            self.connection.execute(statement)
        except _import_psycopg().OperationalError:
            if not self._connection.broken:
                raise
            self._connection.close()
            self._connect()
            self._connection.execute(statement)

    def _commit(self) -> None:
        self.connection.execute("COMMIT")

    def _rollback(self) -> None:
        self.connection.execute("ROLLBACK")

    def _read_head(self) -> tuple[int, str]:
        found = self.connection.execute("SELECT number, hash FROM head").fetchall()
        if len(found) != 1:
            rule = "The ledger does not know its own end."
            raise LedgerDamaged(f"{rule} See `discreet help ledger`. Nothing was charged.")
        return found[0][0], found[0][1]

    def _read_lines(self, first: int) -> Iterator[tuple[int, str]]:
        query = "SELECT number, line FROM lines WHERE number >= %s ORDER BY number LIMIT %s"
        size = 1  # callers mostly want one line; those who want all get them in growing portions
        while True:
            found = self.connection.execute(query, (first, size)).fetchall()
            yield from found
            if len(found) < size:
                return
            first, size = found[-1][0] + 1, min(size * 8, 4096)

    def _find_rows(self, where: str, *values: object) -> list[ReservationRow]:
        query = f"SELECT {RESERVATION_COLUMNS} FROM reservations WHERE {where} ORDER BY number"  # noqa: S608  # constants of the callers
        return list(map(ReservationRow._make, self.connection.execute(_to_psycopg(query), values).fetchall()))

    def _find_lease(self, number: int) -> Lease | None:
        found = self.connection.execute("SELECT owner, until FROM leases WHERE number = %s", (number,)).fetchone()
        return None if found is None else Lease(*found)

    def _execute_many(self, query: str, values: Sequence[Sequence[object]]) -> None:
        with self.connection.cursor() as cursor:
            cursor.executemany(_to_psycopg(query), values)

    def read_reservations(self) -> Iterator[ReservationRow]:
        columns = RESERVATION_COLUMNS
        query = f"SELECT {columns} FROM reservations WHERE number >= %s ORDER BY number LIMIT 4096"  # noqa: S608  # a constant
        first = 0
        while found := self.connection.execute(query, (first,)).fetchall():
            yield from map(ReservationRow._make, found)
            first = found[-1][0] + 1

    def note_head(self, head: Head) -> None:
        """Write the head file beside the codebook, where there is one."""
        if self._place is not None:
            headfile.write(self._place, head)

    def check(self) -> None:
        """Nothing to do: the server looks after its files."""

    def close(self) -> None:
        if self._pid == os.getpid():
            self._connection.close()

    def make(self) -> bool:
        """Make the tables where there are none; True if they were made now."""
        self.connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (f"discreet {self._schema}",))
        if self.has_tables():
            return False
        self.connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{self._schema}"')
        for statement in _TABLES:
            self.connection.execute(statement)
        self.connection.execute("INSERT INTO turns VALUES (%s)", (VERSION,))
        self.connection.execute("INSERT INTO head VALUES (1, -1, %s)", (START,))
        return True

    def has_tables(self) -> bool:
        """Whether the tables are there."""
        found = self.connection.execute(
            "SELECT count(*) FROM information_schema.tables WHERE table_schema = %s AND table_name = 'turns'",
            (self._schema,),
        ).fetchone()
        return found is not None and found[0] > 0

    def _read_version(self) -> int:
        found = [row[0] for row in self.connection.execute("SELECT version FROM turns").fetchall()]
        if len(found) != 1 or not 1 <= found[0] <= VERSION:
            raise LedgerError("This ledger was written by a newer version. Upgrade discreet. Nothing was charged.")
        return int(found[0])

    def migrate(self) -> None:
        """Bring tables of an earlier version to this one, in one transaction; refuse those of a later one."""
        if self._read_version() == VERSION:
            return
        with self.connection.transaction():
            self.connection.execute("LOCK TABLE turns IN EXCLUSIVE MODE")
            for version in range(self._read_version() + 1, VERSION + 1):
                for statement in _STEPS[version]:
                    self.connection.execute(statement)
                self.connection.execute("UPDATE turns SET version = %s", (version,))


_DURABLE = ("fsync", "full_page_writes", "synchronous_commit")


class PostgresLedger(BaseLedger):
    """The ledger of one dataset in a PostgreSQL database.

    Privacy: as stated in ``ledger.Ledger``, over crashes, retries and any number of servers. Why: every charge is
    decided and made durable in one transaction, before the data is read, and every answer before it is handed out.
    """

    @classmethod
    def open(
        cls,
        address: str,
        *,
        schema: str = "discreet",
        clock: Callable[[], datetime] | None = None,
        lease: float = LEASE,
        patience: float = PATIENCE,
        **terms: Unpack[DeclaredTerms],
    ) -> Self:
        """The ledger in a schema of the database at an address (``postgresql://...``), made where there is none.

        An existing ledger must have been made for the same ``dataset``, ``unit``, ``neighbours``, ``budget`` and
        ``policy``; see ``LedgerTerms``.
        """
        return cls.on(address, LedgerTerms.read(**terms), schema=schema, clock=clock, lease=lease, patience=patience)

    @classmethod
    def on(
        cls,
        address: str,
        terms: LedgerTerms,
        *,
        schema: str = "discreet",
        clock: Callable[[], datetime] | None = None,
        lease: float = LEASE,
        patience: float = PATIENCE,
        place: Path | None = None,
    ) -> Self:
        """The ledger in a schema on these terms; see ``open``.

        The head file of ``place`` records on this machine how long the log was at least. With one, a ledger that is
        missing, older or another one is refused.
        """
        return cls._open(address, terms, schema=schema, clock=clock, lease=lease, patience=patience, place=place)

    @classmethod
    def open_existing(
        cls, address: str, *, schema: str = "discreet", place: Path | None = None, trust_head: bool = True
    ) -> Self:
        """The ledger in a schema as it is, for administration; checked from its first line to its last."""
        return cls._open(address, None, schema=schema, place=place, trust_head=trust_head)

    @classmethod
    def _open(
        cls,
        address: str,
        terms: LedgerTerms | None,
        *,
        schema: str,
        clock: Callable[[], datetime] | None = None,
        lease: float = LEASE,
        patience: float = PATIENCE,
        place: Path | None = None,
        trust_head: bool = True,
    ) -> Self:
        if not isinstance(schema, str) or not _NAME.fullmatch(schema):
            raise ParameterError("schema", "is not a plain name", "Use small letters, digits and underscores.")
        psycopg = _import_psycopg()
        head = headfile.read(place) if place is not None and trust_head else None
        store = None
        try:
            store = PostgresStore(address, schema, patience=patience, place=place)
            if head is not None and place is not None and not store.has_tables():
                raise LedgerDamaged(
                    f"The ledger is gone from the database, but {headfile.head_path_of(place).name} says that there "
                    f"was one. Put it back from a backup. {_LOOK}"
                )
            if terms is not None:
                with store.connection.transaction():
                    if store.make():  # with the first line in the same transaction: no one ever sees it empty
                        BaseLedger(_NestedStore(store), clock=clock).write_opening(terms)
            elif not store.has_tables():
                raise LedgerError("There is no ledger in this schema of the database. Nothing was charged.")
            store.migrate()
            store.begin(write=False)
            state = scan(store)
            store.rollback()
            if terms is not None:
                terms.check(state)
            ledger = cls(store, state, clock=clock, lease=lease)
            if head is not None:
                ledger.check_head(head)
            if trust_head:
                store.note_head(ledger.head)
        except BaseException as error:
            if store is not None:
                store.close()
            if isinstance(error, psycopg.Error):
                raise LedgerFailure("The ledger's database cannot be used. Nothing was charged.") from error
            raise
        return ledger


def restore(address: str, *, schema: str, place: Path, by: str, reason: str) -> Head:
    """Go on with a ledger that is older than the head file of ``place``; see ``sqlite.restore``."""
    lost = headfile.read(place)
    with PostgresLedger.open_existing(address, schema=schema, place=place, trust_head=False) as ledger:
        return ledger.declare_restored(lost, by=by, reason=reason)


def _to_psycopg(query: str) -> str:
    """A query with the placeholders of psycopg."""
    return query.replace("?", "%s")


class _NestedStore(PostgresStore):
    """The same store, inside a transaction that its caller began and will end."""

    def __init__(self, store: PostgresStore) -> None:
        self.__dict__.update(store.__dict__)

    def _begin(self, *, write: bool) -> None:
        """Nothing to do: the caller began the transaction."""

    def _commit(self) -> None:
        """Nothing to do: the caller commits."""

    def _rollback(self) -> None:
        """Nothing to do: the caller rolls back."""


def _import_psycopg() -> Any:
    try:
        return import_module("psycopg")
    except ImportError:
        raise LedgerError("PostgreSQL needs one more package: pip install 'discreet[postgres]'.") from None
