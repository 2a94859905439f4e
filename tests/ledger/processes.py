"""Children that are killed: forked, so that a thousand of them take seconds."""

from __future__ import annotations

import json
import os
import signal
import traceback
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

from discreet.ledger.base_ledger import BaseLedger
from discreet.ledger.sqlite import SQLiteLedger
from discreet.privacy import Budget
from tests.ledger.charges import charge, open_sqlite

LARGE = Budget(epsilon=1000)
PRICE = Fraction(1, 1000)


def fork(work: Callable[[], None]) -> int:
    """Run work in a child; its exit status is 0 where it came to its end."""
    pid = os.fork()
    if pid == 0:
        _end(work)
    return pid


def _end(work: Callable[[], None]) -> NoReturn:
    status = 1
    try:
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def wait(pid: int) -> int:
    """How a child ended: its exit status, or minus the signal."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def kill(pid: int) -> int:
    os.kill(pid, signal.SIGKILL)
    return wait(pid)


class Outbox:
    """Where answers go that are handed out: what is in here was released, whatever happened to its process."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "released"

    def release(self, request: str, record: Any) -> None:
        text = json.dumps([request, record]) + "\n"
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(handle, text.encode())
        os.close(handle)

    def released(self) -> list[tuple[str, Any]]:
        if not self.path.exists():
            return []
        return [(request, record) for request, record in map(json.loads, self.path.read_text().splitlines())]


def ask(book: BaseLedger, outbox: Outbox, request: str) -> None:
    """A question by the protocol: reserve, run, commit, deliver."""
    held = book.reserve(charge(request, PRICE))
    record = held.record
    if record is None:
        record = book.commit(held, {"value": os.urandom(8).hex()})
    outbox.release(request, record)


def check_after_crash(folder: Path, outbox: Outbox) -> SQLiteLedger:
    """What must hold whenever a process died: nothing released uncharged, and every charge can be finished, once."""
    book = open_sqlite(folder, LARGE)
    entries = {entry.charge.request: entry for entry in book.history()}
    assert book.spent == PRICE * len(entries)
    for request, record in outbox.released():
        assert entries[request].answered
        assert book.reserve(charge(request, PRICE)).record == record
    delivered = {request for request, _ in outbox.released()}
    for request in entries:
        if request not in delivered:
            ask(book, outbox, request)
    assert all(entry.answered for entry in book.history())
    assert book.spent == PRICE * len(entries)
    book.scan()
    return book
