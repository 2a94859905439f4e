"""The ledger in one SQLite file beside the codebook, for any number of processes on one machine.

The file is in WAL mode with ``synchronous=FULL``: a commit returns when the disk has it. ``BEGIN IMMEDIATE`` lets one
writer write at a time. A small file beside it, which ends in ``.head``, records how long the log was at least. A ledger
that is missing, or shorter than that, is refused instead of starting with a full budget.
"""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Self, Unpack

from discreet.errors import LedgerDamaged, LedgerError, LedgerFailure, ParameterError, RequestInFlight
from discreet.ledger import headfile
from discreet.ledger.base_ledger import LEASE, BaseLedger
from discreet.ledger.chain import Head
from discreet.ledger.ledger_terms import DeclaredTerms, LedgerTerms
from discreet.ledger.log_scan import scan
from discreet.ledger.sqlite_store import APPLICATION, PATIENCE, VERSION, SQLiteStore, copy_to, make, migrate, read_start

LOG = logging.getLogger("discreet.ledger")

_LOOK = "Nothing is released until a person has looked: see `discreet help ledger`. Nothing was charged."
_UNWRITABLE = "The ledger cannot be written. Check permissions and room on the disk. Nothing was charged."


class SQLiteLedger(BaseLedger):
    """The ledger of one dataset in a SQLite file.

    Privacy: as stated in ``ledger.Ledger``, over crashes, retries and any number of processes. Why: every charge is
    decided and made durable in one transaction, before the data is read, and every answer before it is handed out.
    """

    _store: SQLiteStore

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        clock: Callable[[], datetime] | None = None,
        lease: float = LEASE,
        patience: float = PATIENCE,
        **terms: Unpack[DeclaredTerms],
    ) -> Self:
        """The ledger at a path, which is made where there is none; checked from its first line to its last.

        An existing ledger must have been made for the same ``dataset``, ``unit``, ``neighbours``, ``budget`` and
        ``policy``; see ``LedgerTerms``.
        """
        return cls.on(Path(path), LedgerTerms.read(**terms), clock=clock, lease=lease, patience=patience)

    @classmethod
    def on(
        cls,
        path: Path,
        terms: LedgerTerms,
        *,
        clock: Callable[[], datetime] | None = None,
        lease: float = LEASE,
        patience: float = PATIENCE,
    ) -> Self:
        """The ledger at a path on these terms; see ``open``."""
        path = path.resolve()
        if not path.exists():
            create(path, terms, clock=clock)
        ledger = cls.open_existing(path, clock=clock, lease=lease, patience=patience)
        try:
            terms.check(ledger.state)
        except LedgerError:
            ledger.close()
            raise
        return ledger

    @classmethod
    def open_existing(
        cls,
        path: str | Path,
        *,
        clock: Callable[[], datetime] | None = None,
        lease: float = LEASE,
        patience: float = PATIENCE,
        trust_head: bool = True,
    ) -> Self:
        """The ledger at a path as it is, for administration; checked from its first line to its last."""
        file = Path(path).resolve()
        head = headfile.read(file) if trust_head else None
        _check_kind(file)
        if not _is_writable(file):  # SQLite would open it to be read, and the first charge would fail
            raise LedgerError(_UNWRITABLE)
        store = None
        try:
            store = SQLiteStore(file, patience=patience)
            migrate(store, file)
            store.begin(write=False)
            state = scan(store)
            store.check()
            store.rollback()
            ledger = cls(store, state, clock=clock, lease=lease)
            if head is not None:
                ledger.check_head(head)
        except BaseException as error:
            if store is not None:
                store.close()
            if isinstance(error, sqlite3.Error | OSError | UnicodeDecodeError):
                raise _to_ledger_error(error) from None
            raise
        return ledger

    def backup(self, path: str | Path) -> Head:
        """Write a copy of the whole ledger while others go on writing; returns the head of the copy."""
        target = Path(path)
        if target.exists():
            raise LedgerError("There is a file of this name already. Give the backup a new name.")
        try:
            self._commits.run_alone(lambda: copy_to(self._store, target))
        except (sqlite3.Error, OSError) as error:
            raise LedgerFailure("The backup could not be written; the ledger is as it was.") from error
        with SQLiteLedger.open_existing(target) as made:
            return made.head


@contextmanager
def read_ledger(path: str | Path) -> Iterator[SQLiteLedger]:
    """The ledger at a path, to be looked at only. Where the place cannot be written, a private copy is looked at."""
    file = Path(path).resolve()
    if not file.exists() or _is_writable(file):
        with SQLiteLedger.open_existing(file) as ledger:
            yield ledger
        return
    _check_kind(file)
    with tempfile.TemporaryDirectory(prefix="discreet-ledger-") as folder:
        copy = Path(folder) / file.name
        try:
            _copy_unwritable(file, copy)
        except (sqlite3.Error, OSError) as error:
            raise _to_ledger_error(error) from None
        with SQLiteLedger.open_existing(copy) as ledger:
            yield ledger


def _is_writable(file: Path) -> bool:
    """Whether this process may write the file, and others beside it: the log and the head."""
    return os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)


def _copy_unwritable(file: Path, copy: Path) -> None:
    """Copy a ledger and its head from a place that cannot be written."""
    head = headfile.head_path_of(file)
    if head.exists():  # before the ledger, which others may be writing: an older head is still true
        shutil.copyfile(head, headfile.head_path_of(copy))
    if file.with_name(f"{file.name}-shm").exists():  # someone may be writing now, so SQLite must make the copy
        with suppress(sqlite3.Error), closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
            with closing(sqlite3.connect(copy)) as target:
                connection.backup(target)
            return
    for end in ("", "-wal"):
        part = file.with_name(file.name + end)
        if part.exists():
            shutil.copyfile(part, copy.with_name(copy.name + end))


def restore(path: str | Path, *, by: str, reason: str) -> Head:
    """Go on with a ledger that is older than its head file, after a backup was restored.

    What was spent according to the head file stays spent. Answers that were lost with the newer file cannot be
    replayed.
    """
    file = Path(path).resolve()
    lost = headfile.read(file)
    with SQLiteLedger.open_existing(file, trust_head=False) as ledger:
        return ledger.declare_restored(lost, by=by, reason=reason)


def create(
    path: Path, terms: LedgerTerms, *, clock: Callable[[], datetime] | None = None, version: int = VERSION
) -> None:
    """Make a new ledger. It is made whole under a temporary name, so that nobody ever sees half of it."""
    if headfile.head_path_of(path).exists():
        raise LedgerDamaged(
            f"The ledger {path.name} is gone, but {headfile.head_path_of(path).name} says that there was one. "
            f"Put it back from a backup. {_LOOK}"
        )
    if not path.parent.is_dir():
        raise ParameterError("path", "is in a folder that does not exist", "Make the folder first.")
    draft = headfile.make_spare_path(path)
    try:
        with BaseLedger(make(draft, steps=version), clock=clock) as ledger:
            ledger.write_opening(terms)
        with suppress(FileExistsError):  # someone else was quicker: theirs is the ledger
            headfile.publish(draft, path)
    except (sqlite3.Error, OSError) as error:
        raise LedgerFailure("The ledger could not be made: the disk would not take it. Nothing was charged.") from error
    finally:
        for end in ("", "-wal", "-shm", "-journal", ".head"):
            with suppress(OSError):
                draft.with_name(draft.name + end).unlink()


def _check_kind(path: Path) -> None:
    """Refuse a file that is not a ledger, before SQLite opens it."""
    try:
        start = read_start(path, 100)
        size = path.stat().st_size
    except FileNotFoundError:
        raise LedgerError("There is no ledger of this name. Check the path.") from None
    except OSError:
        raise LedgerError("The ledger cannot be read. Check the path and the permissions.") from None
    if start is None:
        return  # a store of this process has it open, and looked before
    if not start.startswith(b"SQLite format 3\0") or int.from_bytes(start[68:72], "big") != APPLICATION:
        raise LedgerDamaged(f"{path.name} is not a ledger, or its beginning was damaged. {_LOOK}")
    pages, page = int.from_bytes(start[28:32], "big"), int.from_bytes(start[16:18], "big")
    if size < pages * (65_536 if page == 1 else page) and not path.with_name(path.name + "-wal").exists():
        raise LedgerDamaged(f"{path.name} is shorter than it was. {_LOOK}")


def _to_ledger_error(error: Exception) -> Exception:
    LOG.error("The ledger could not be opened.", exc_info=error)
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return RequestInFlight("Other processes keep the ledger busy. Try again. Nothing was charged.")
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_FULL):
        return LedgerError(_UNWRITABLE)
    if code == sqlite3.SQLITE_IOERR or isinstance(error, OSError):
        return LedgerFailure("The disk would not read or write the ledger. Nothing was charged.")
    return LedgerDamaged(f"The ledger's file is damaged. {_LOOK}")
