"""kill -9, at any moment: nothing is released uncharged, and every charged answer is delivered in the end."""

from __future__ import annotations

import os
import random
import resource
import signal
import threading
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import BudgetExceeded, DiscreetError
from discreet.ledger.policy import Policy
from discreet.ledger.sqlite_store import SQLiteStore
from discreet.privacy import Budget
from tests.ledger.charges import charge, open_sqlite
from tests.ledger.processes import LARGE, Outbox, ask, check_after_crash, fork, kill, wait

STEPS = (
    "begin", "commit", "rollback", "read_head", "append", "add_reservation",
    "find_by_request", "find_by_identity", "find_by_number",
    "add_answer", "set_lease", "note_head",
)  # fmt: skip


def ask_for_ever(folder: Path, outbox: Outbox, name: str) -> None:
    book = open_sqlite(folder, LARGE)
    for i in range(10_000):
        ask(book, outbox, f"{name}-{i}")


def random_kills(folder: Path, kills: int, seed: int) -> None:
    outbox, chance = Outbox(folder), random.Random(seed)  # noqa: S311  # moments of kills, not noise
    for i in range(kills):
        before = len(outbox.released())
        pid = fork(lambda name=f"round {i}": ask_for_ever(folder, outbox, name))  # type: ignore[misc]  # one argument
        if i % 3:  # otherwise also while the file is being opened
            while len(outbox.released()) == before:
                time.sleep(0.001)
        time.sleep(chance.random() * 0.02)
        assert kill(pid) == -signal.SIGKILL
        if i % 10 == 9 or i == kills - 1:
            check_after_crash(folder, outbox).close()


def test_random_kills(tmp_path: Path) -> None:
    """Sixty kills at random moments."""
    random_kills(tmp_path, 60, seed=5)


@pytest.mark.long
def test_a_thousand_random_kills(tmp_path: Path) -> None:
    """A thousand kills at random moments, over ten ledgers."""
    for i in range(10):
        folder = tmp_path / str(i)
        folder.mkdir()
        random_kills(folder, 100, seed=i)


def test_kills_at_every_step(tmp_path: Path) -> None:
    """A kill before and after each call to the store, until a question comes through alive."""
    outbox = Outbox(tmp_path)
    open_sqlite(tmp_path, LARGE).close()
    ends = []
    for k in range(1, 200):
        ends.append(wait(fork(lambda k=k: ask_and_die(tmp_path, outbox, k))))  # type: ignore[misc]  # one argument
        check_after_crash(tmp_path, outbox).close()
        if ends[-1] == 0:
            break
    assert ends == [-signal.SIGKILL] * (len(ends) - 1) + [0]
    assert len(ends) > 30


def ask_and_die(folder: Path, outbox: Outbox, k: int) -> None:
    count = 0

    def tick() -> None:
        nonlocal count
        count += 1
        if count == k:
            os.kill(os.getpid(), signal.SIGKILL)

    def deadly(name: str) -> Any:
        plain = getattr(SQLiteStore, name)

        def step(self: SQLiteStore, *given: Any, **named: Any) -> Any:
            tick()
            result = plain(self, *given, **named)
            tick()
            return result

        return step

    book = open_sqlite(folder, LARGE)
    for name in STEPS:
        setattr(SQLiteStore, name, deadly(name))  # in the child alone
    ask(book, outbox, f"step {k}")


def test_kills_in_the_middle_of_writes(tmp_path: Path) -> None:
    """The system kills the process in the write that would pass a size, for sizes all along the log file."""
    outbox = Outbox(tmp_path)
    open_sqlite(tmp_path, LARGE).close()
    ends = set()
    for k, size in enumerate([*range(0, 40_000, 1_500), 10**7]):
        ends.add(wait(fork(lambda k=k, size=size: ask_within(tmp_path, outbox, f"size {k}", size))))  # type: ignore[misc]  # two arguments
        check_after_crash(tmp_path, outbox).close()
    assert ends == {-signal.SIGXFSZ, 0}


def ask_within(folder: Path, outbox: Outbox, name: str, size: int) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    book = open_sqlite(folder, LARGE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    ask(book, outbox, name)
    ask(book, outbox, f"{name}, again")


def race(folder: Path, *, processes: int, each: int) -> None:
    """Many processes spend from one tight budget; the sums must come out exactly."""
    policy = Policy.of(per_analyst={"greedy": Fraction(3, 10)}, per_query=Fraction(1, 50))
    terms: dict[str, Any] = {"budget": Budget(epsilon=1), "policy": policy}
    open_sqlite(folder, **terms).close()

    def spend(who: int) -> None:
        book = open_sqlite(folder, **terms)
        analyst = "greedy" if who % 2 else f"analyst {who}"
        for i in range(each):
            try:
                held = book.reserve(charge(f"{who}-{i}", Fraction(1, 100), analyst=analyst))
                book.commit(held, {"value": i})
            except BudgetExceeded:
                pass

    pids = [fork(lambda who=who: spend(who)) for who in range(processes)]  # type: ignore[misc]  # one argument
    assert [wait(pid) for pid in pids] == [0] * processes
    with open_sqlite(folder, **terms) as book:
        book.scan()
        entries = book.history()
        assert book.spent == Fraction(len(entries), 100) == 1
        assert sum(entry.charge.analyst == "greedy" for entry in entries) <= 30


def test_thirty_two_processes_never_overspend(tmp_path: Path) -> None:
    """32 processes race for a budget of 100 charges, half of them under a cap of 30: exactly 100 get through."""
    race(tmp_path, processes=32, each=8)


@pytest.mark.long
def test_thirty_two_processes_race_for_long(tmp_path: Path) -> None:
    """The same with a thousand tries each."""
    race(tmp_path, processes=32, each=1000)


def test_check_then_insert_would_overspend(tmp_path: Path) -> None:
    """Negative control: without the lock of a writer the same race goes over the budget, or breaks the log."""
    open_sqlite(tmp_path, Budget(epsilon=1)).close()

    def spend(who: int) -> None:
        book = open_sqlite(tmp_path, Budget(epsilon=1))
        begin, commit = SQLiteStore.begin, SQLiteStore.commit

        def careless(self: SQLiteStore, *, write: bool) -> None:  # that is the fault
            begin(self, write=False)

        def together(self: SQLiteStore) -> None:
            """All have read what was spent before the first of them writes."""
            (tmp_path / f"read by {who}").touch()
            while len(list(tmp_path.glob("read by *"))) < 4:
                time.sleep(0.001)
            commit(self)

        setattr(SQLiteStore, "begin", careless)  # noqa: B010  # in the child alone
        setattr(SQLiteStore, "commit", together)  # noqa: B010
        for i in range(40):
            book.reserve(charge(f"{who}-{i}", Fraction(1, 100)))

    pids = [fork(lambda who=who: silently(lambda: spend(who))) for who in range(4)]  # type: ignore[misc]  # one argument
    assert any(wait(pid) for pid in pids)


def silently(work: Any) -> None:
    try:
        work()
    except BudgetExceeded:
        return
    except DiscreetError:
        os._exit(3)


def test_threads_and_forks_share_a_ledger(tmp_path: Path) -> None:
    """One object, used by threads and by forked children at once, counts every charge once."""
    book = open_sqlite(tmp_path, LARGE)
    outbox = Outbox(tmp_path)
    ask(book, outbox, "before")

    def some(name: str) -> None:
        for i in range(5):
            ask(book, outbox, f"{name}-{i}")

    pids = [fork(lambda n=n: some(f"child {n}")) for n in range(3)]  # type: ignore[misc]  # one argument
    threads = [threading.Thread(target=some, args=(f"thread {n}",)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [wait(pid) for pid in pids] == [0, 0, 0]
    assert len(book.history()) == 31
    book.close()
    check_after_crash(tmp_path, outbox).close()
