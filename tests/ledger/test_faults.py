"""The disk fails: the question is refused, nothing is released, the ledger halts, and a restart is clean."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import DiscreetError, LedgerDamaged, LedgerError, LedgerFailure, RequestInFlight
from discreet.ledger.sqlite import SQLiteLedger
from tests.ledger.charges import charge, open_sqlite
from tests.ledger.processes import LARGE, PRICE, Outbox, ask, check_after_crash, fork, wait

WRITES = ("begin", "commit", "append", "add_reservation", "add_answer", "set_lease")
ERRORS: list[Callable[[], Exception]] = [
    lambda: sqlite3.OperationalError("disk I/O error"),
    lambda: sqlite3.OperationalError("database or disk is full"),
    lambda: OSError(errno.ENOSPC, "no room"),
    lambda: sqlite3.DatabaseError("database disk image is malformed"),
]


class Fault:
    """Fails the k-th call to the store's writing methods, before or after doing it."""

    def __init__(self, book: SQLiteLedger, k: int, error: Callable[[], Exception], *, after: bool) -> None:
        self.left, self.error, self.after = k, error, after
        for name in WRITES:
            setattr(book._store, name, self.wrap(getattr(book._store, name)))

    def wrap(self, plain: Any) -> Any:
        def step(*given: Any, **named: Any) -> Any:
            self.left -= 1
            if self.left == 0 and not self.after:
                raise self.error()
            result = plain(*given, **named)
            if self.left == 0:
                raise self.error()
            return result

        return step


def refusal(work: Callable[[], None]) -> str:
    """What a failing ledger said; nothing where all went well."""
    try:
        work()
    except LedgerFailure as failure:
        return str(failure)
    return ""


@pytest.mark.parametrize("after", [False, True], ids=["not done", "done but reported failed"])
@pytest.mark.parametrize("error", ERRORS, ids=["EIO", "full", "ENOSPC", "malformed"])
def test_the_kth_write_fails(tmp_path: Path, error: Callable[[], Exception], after: bool) -> None:
    """For k = 1, 2, ... until all goes well: refused, halted, and after opening again the same request gets through."""
    for k in range(1, 40):
        outbox = Outbox(tmp_path)
        book = open_sqlite(tmp_path, LARGE)
        before = book.spent
        fault = Fault(book, k, error, after=after)
        words = refusal(partial(ask, book, outbox, f"k {k}"))
        failed = "nothing was released" in words
        assert failed == bool(words) == (fault.left <= 0)
        assert failed != (f"k {k}" in dict(outbox.released()))
        if failed:
            with pytest.raises(LedgerFailure, match="halted"):
                book.reserve(charge("x", PRICE))
            with pytest.raises(LedgerFailure, match="halted"):
                book.replay("x")
        book.close()
        with check_after_crash(tmp_path, outbox) as again:
            assert again.spent in (before, before + PRICE)
            ask(again, outbox, f"k {k}")
            assert again.spent == before + PRICE
        if not failed:
            break
    assert k > 8


def test_a_failed_batch_fails_everyone_in_it(tmp_path: Path) -> None:
    """When a commit fails, no one whose work was in it believes it was done."""
    book = open_sqlite(tmp_path, LARGE)
    Fault(book, 1, ERRORS[0], after=False)
    jobs = []
    for i in range(5):
        with pytest.raises(LedgerFailure):
            jobs.append(book.reserve(charge(f"r{i}", PRICE)))
    book.close()
    with open_sqlite(tmp_path, LARGE) as again:
        assert not jobs and again.spent == 0


def test_no_room_for_files_of_any_size(tmp_path: Path) -> None:
    """A limit on file size makes real writes fail in the middle: refused, nothing released, clean restart."""
    outbox = Outbox(tmp_path)
    open_sqlite(tmp_path, LARGE).close()
    ends = []
    for k, size in enumerate([*range(0, 60_000, 2_500), 10**7]):
        ends.append(wait(fork(lambda k=k, size=size: ask_within(tmp_path, f"size {k}", size))))  # type: ignore[misc]  # two arguments
        check_after_crash(tmp_path, outbox).close()
    assert set(ends) == {0, 5} and ends.count(5) > 9 and ends[-1] == 0


def ask_within(folder: Path, name: str, size: int) -> None:
    """Ends with 0 where each question was answered, and with 5 where one was refused in our own words."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    os.close(2)
    try:
        book = open_sqlite(folder, LARGE)
        for i in range(3):
            book.commit(book.reserve(charge(f"{name}-{i}", PRICE)), {"value": i})
    except (LedgerFailure, LedgerError):
        os._exit(5)


def test_a_full_disk_at_creation(tmp_path: Path) -> None:
    """A ledger that cannot be made is not half made."""
    assert wait(fork(lambda: create_within(tmp_path))) == 0
    assert list(tmp_path.iterdir()) == []


def create_within(folder: Path) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (6_000, resource.RLIM_INFINITY))
    os.close(2)
    try:
        open_sqlite(folder, LARGE)
    except DiscreetError:
        return
    raise AssertionError("made without room")


WORKER = """
import sys
from pathlib import Path
from tests.ledger.charges import open_sqlite
from tests.ledger.processes import LARGE, Outbox, ask
folder = Path(sys.argv[1])
book = open_sqlite(folder, LARGE)
Path(folder / "opened").touch()
for i in range(3):
    ask(book, Outbox(folder), f"{sys.argv[2]}-{i}")
"""


def run_with(folder: Path, inject: str, name: str) -> int:
    """A worker under strace, which makes the system calls fail that it is told to."""
    command = ["strace", "-f", "-qq", "-o", os.devnull, "-e", "trace=fdatasync,pwrite64", "-e", f"inject={inject}"]
    done = subprocess.run(  # noqa: S603  # our own worker
        [*command, sys.executable, "-c", WORKER, str(folder), name],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        check=False,
        timeout=120,
    )
    return done.returncode


def syscall_faults(folder: Path, ks: list[int]) -> None:
    outbox = Outbox(folder)
    open_sqlite(folder, LARGE).close()
    failed = 0
    for k in ks:
        for what in (
            f"fdatasync:error=EIO:when={k}",
            f"pwrite64:error=ENOSPC:when={k}",
            f"pwrite64:signal=KILL:when={k}",
        ):
            failed += run_with(folder, what, f"{what}") != 0
            check_after_crash(folder, outbox).close()
    assert failed >= len(ks)


def strace_works() -> bool:
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True, check=False).returncode == 0  # noqa: S603, S607  # found above


@pytest.mark.skipif(not strace_works(), reason="strace is not there, or not allowed, so system calls cannot be failed")
def test_system_calls_fail(tmp_path: Path) -> None:
    """Real fdatasync and pwrite64 calls fail or kill, some of them."""
    syscall_faults(tmp_path, [2, 5])


@pytest.mark.long
@pytest.mark.skipif(not strace_works(), reason="strace is not there, or not allowed, so system calls cannot be failed")
def test_every_system_call_fails(tmp_path: Path) -> None:
    """Every fdatasync and pwrite64 of three questions fails or kills, one after the other."""
    syscall_faults(tmp_path, list(range(1, 60)))


class Interrupted(BaseException):
    """Like an interrupt from the keyboard, which is no Exception."""


@pytest.mark.parametrize("method", ["begin", "commit"])
def test_an_interrupt_stays_an_interrupt_and_halts(tmp_path: Path, method: str) -> None:
    """In the middle of a write nobody knows what was done: the ledger halts, and a restart is clean."""
    book = open_sqlite(tmp_path, LARGE)

    def interrupted(**_: Any) -> None:
        raise Interrupted

    setattr(book._store, method, interrupted)
    with pytest.raises(Interrupted):
        book.reserve(charge("r", PRICE))
    with pytest.raises(LedgerFailure, match="halted"):
        book.reserve(charge("s", PRICE))
    book.close()
    with open_sqlite(tmp_path, LARGE) as again:
        assert again.spent == 0


def test_a_read_that_fails_halts(tmp_path: Path) -> None:
    """What cannot be read may be anything, so nothing more is released."""
    book = open_sqlite(tmp_path, LARGE)

    def broken(*_: Any, **__: Any) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    book._store.begin = broken  # type: ignore[method-assign]  # for the test
    with pytest.raises(LedgerFailure, match="nothing was released"):
        book.replay("identity of r")
    with pytest.raises(LedgerFailure, match="halted"):
        book.replay("identity of r")


def test_a_rollback_that_fails_as_well_hides_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The first error decides; the second is in the log."""
    book = open_sqlite(tmp_path, LARGE)

    def broken(*_: Any) -> None:
        raise OSError(errno.EIO, "no disk")

    book._store.commit = book._store.rollback = broken  # type: ignore[method-assign]  # for the test
    with pytest.raises(LedgerFailure, match="nothing was released"):
        book.reserve(charge("r", PRICE))
    assert "could not be rolled back" in caplog.text


def test_a_head_file_that_cannot_be_written_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An older head is still true: the charge is made, and the log says what is wrong with the file."""

    def broken(*_: Any) -> bool:
        raise OSError(errno.EROFS, "read-only")

    with open_sqlite(tmp_path, LARGE) as book:
        monkeypatch.setattr("discreet.ledger.headfile._overwrite", broken)
        book.commit(book.reserve(charge("r", PRICE)), {"value": 1})
        assert book.spent == PRICE and "head file beside the ledger could not be written" in caplog.text


def error_with(code: int) -> sqlite3.Error:
    error = sqlite3.OperationalError("words of SQLite")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (error_with(sqlite3.SQLITE_BUSY), RequestInFlight, "busy"),
        (error_with(sqlite3.SQLITE_READONLY), LedgerError, "permissions"),
        (error_with(sqlite3.SQLITE_IOERR_READ), LedgerFailure, "disk"),
        (OSError(errno.EIO, "no disk"), LedgerFailure, "disk"),
        (error_with(sqlite3.SQLITE_CORRUPT), LedgerDamaged, "damaged"),
    ],
    ids=["busy", "read-only", "I/O", "no disk", "corrupt"],
)
def test_a_ledger_that_cannot_be_opened_says_who_has_to_act(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, kind: type[DiscreetError], words: str
) -> None:
    """Each error of the disk becomes one of ours, in our words."""
    open_sqlite(tmp_path, LARGE).close()

    def broken(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("discreet.ledger.sqlite_store.connect", broken)
    with pytest.raises(kind, match=words) as refused:
        open_sqlite(tmp_path, LARGE)
    assert "words of SQLite" not in str(refused.value)


def test_a_disk_that_will_not_take_a_new_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing half-made is left behind."""

    def broken(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr("discreet.ledger.headfile.publish", broken)
    with pytest.raises(LedgerFailure, match="Nothing was charged"):
        open_sqlite(tmp_path, LARGE)
    assert list(tmp_path.iterdir()) == []
