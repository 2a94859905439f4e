"""The SQLite file: what is opened, what is refused, backups and older versions."""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from discreet.accounting import events as ev
from discreet.accounting.account import compose
from discreet.errors import LedgerDamaged, LedgerError, LedgerFailure, ParameterError, RequestInFlight
from discreet.exact import ln
from discreet.ledger import administration
from discreet.ledger.chain import Head
from discreet.ledger.ledger_terms import LedgerTerms
from discreet.ledger.policy import Policy
from discreet.ledger.sqlite import SQLiteLedger, create, read_ledger
from discreet.ledger.sqlite_store import VERSION
from discreet.ledger.state import State
from discreet.privacy import Budget, Neighbours, Unit
from tests.ledger.charges import ONE, charge, open_sqlite, replayed

NAME = "hospital.ledger"
# The number of a user who owns nothing.
NOBODY = 65534


def test_the_file_is_durable(tmp_path: Path) -> None:
    """WAL with synchronous=FULL, and nothing weaker, on every connection."""
    with open_sqlite(tmp_path) as book:
        look = book._store.connection.execute
        assert look("PRAGMA journal_mode").fetchone()[0] == "wal"
        assert look("PRAGMA synchronous").fetchone()[0] == 2


def test_everything_is_there_after_opening_again(tmp_path: Path) -> None:
    """Sums, answers and history survive; the folder holds the ledger and its head."""
    with open_sqlite(tmp_path) as book:
        book.commit(book.reserve(charge("r", "1/3")), {"value": 1})
        before = (book.head, book.spent, book.read_lines())
    with open_sqlite(tmp_path) as book:
        assert (book.head, book.spent, book.read_lines()) == before
        assert replayed(book) == {"value": 1}
        assert book.remaining == Fraction(2, 3)
    assert sorted(file.name for file in tmp_path.iterdir()) == [NAME, f"{NAME}.head"]


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"dataset": "school"}, "another dataset"),
        ({"unit": "visit_id"}, "protects one patient_id"),
        ({"unit": None}, "protects one patient_id"),
        ({"neighbours": "replace"}, "protects one patient_id"),
        ({"budget": Budget(epsilon=2)}, "ledger amend"),
        ({"budget": Budget(epsilon=1, delta=1e-9)}, "ledger amend"),
        ({"budget": Budget(rho=1)}, "ledger amend"),
        ({"policy": Policy.of(per_query=1)}, "ledger amend"),
        ({"policy": Policy.of(analysts=["ana"])}, "ledger amend"),
    ],
)
def test_another_codebook_is_refused(tmp_path: Path, other: dict[str, Any], words: str) -> None:
    """A ledger made for other terms says what differs and what to do; nothing is charged."""
    open_sqlite(tmp_path).close()
    with pytest.raises(LedgerError, match=words) as refusal:
        open_sqlite(tmp_path, **other)
    assert str(refusal.value).endswith("Nothing was charged.")


def test_equal_terms_may_be_typed_in_any_way(tmp_path: Path) -> None:
    """1e-6 and a millionth, 1 and 1.0 are the same budget; without a policy any is meant."""
    open_sqlite(tmp_path, Budget(epsilon=1, delta=1e-6), Policy.of(per_query=0.5)).close()
    with open_sqlite(
        tmp_path, Budget(epsilon=1.0, delta=Fraction(1, 10**6)), Policy.of(per_query=Fraction(1, 2))
    ) as again:
        assert again.head.number == 0
    with open_sqlite(tmp_path, Budget(epsilon=Fraction(1), delta=1e-6)) as without:
        assert without.policy == Policy.of(per_query=0.5) and without.head.number == 0


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    """Text, nothing, another database, a folder: none of them becomes a ledger, and none is changed."""
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE lines (number)")
    other.close()
    for content in (b"", b"hello", b"SQLite format 3\0", (tmp_path / "other.db").read_bytes()):
        (tmp_path / NAME).write_bytes(content)
        with pytest.raises(LedgerDamaged, match="not a ledger"):
            open_sqlite(tmp_path)
        assert (tmp_path / NAME).read_bytes() == content
    (tmp_path / NAME).unlink()
    (tmp_path / NAME).mkdir()
    with pytest.raises(LedgerError, match="cannot be read"):
        open_sqlite(tmp_path)
    with pytest.raises(ParameterError, match="folder"):
        open_sqlite(tmp_path / "nowhere")
    with pytest.raises(LedgerError, match="no ledger"):
        SQLiteLedger.open_existing(tmp_path / "nothing.ledger")


def test_newer_versions_are_refused(tmp_path: Path) -> None:
    """A file of a later version, or one with kinds of entries of a later version, asks for an upgrade."""
    open_sqlite(tmp_path).close()
    with sqlite3.connect(tmp_path / NAME) as other:
        other.execute(f"PRAGMA user_version = {VERSION + 1}")
    other.close()
    with pytest.raises(LedgerError, match="Upgrade discreet"):
        open_sqlite(tmp_path)


def test_an_unknown_kind_of_entry_is_refused(tmp_path: Path) -> None:
    """What a later version may write is never skipped."""
    with open_sqlite(tmp_path) as book:
        with pytest.raises(LedgerError, match="Upgrade discreet"):
            book._write(lambda: book._append("forgiven", {"of": 1, "answer": "x"}))
        assert len(book.read_lines()) == 1


def test_an_older_file_is_migrated_and_kept(tmp_path: Path) -> None:
    """A file of version 1 is copied aside, brought to the present version in one step, and goes on."""
    terms = LedgerTerms(dataset="hospital", budget=ONE, unit=Unit("patient_id"), neighbours=Neighbours.ADD_REMOVE)
    create(tmp_path / NAME, terms, version=1)
    with sqlite3.connect(tmp_path / NAME) as old:
        assert old.execute("PRAGMA user_version").fetchone() == (1,)
        assert not old.execute("SELECT 1 FROM sqlite_master WHERE name = 'leases'").fetchall()
    old.close()
    with open_sqlite(tmp_path) as book:
        book.commit(book.reserve(charge("r")), {"value": 1})
        assert book.spent == Fraction(1, 10)
        book.scan()
    with sqlite3.connect(tmp_path / f"{NAME}.v1") as kept:
        assert kept.execute("PRAGMA user_version").fetchone() == (1,)
    kept.close()
    with sqlite3.connect(tmp_path / NAME) as new:
        assert new.execute("PRAGMA user_version").fetchone() == (VERSION,)
    new.close()


def test_charges_of_both_kinds_of_gaussian_noise_add_up(tmp_path: Path) -> None:
    """What 0.1.0 recorded as discrete Gaussian noise is read again, and rounded noise is charged beside it."""
    budget = Budget(rho=1)
    discrete = (ev.DiscreteGaussian(squared_sensitivity=2, variance=16, dimension=2, unit="patient_id"),)
    rounded = (ev.RoundedGaussian(squared_sensitivity=2, variance=4, unit="patient_id"),)
    with open_sqlite(tmp_path, budget) as book:
        book.commit(book.reserve(charge("old", events=discrete, loss=compose(discrete).loss)), {"value": 1})
    with open_sqlite(tmp_path, budget) as book:
        assert book.spent == Fraction(1, 16)
        book.commit(book.reserve(charge("new", events=rounded, loss=compose(rounded).loss)), {"value": 2})
        assert book.spent == Fraction(1, 16) + Fraction(1, 4)
    with open_sqlite(tmp_path, budget) as book:
        stored = [ev.load(event) for line in book.read_lines() for event in json.loads(line).get("events", ())]
        assert stored == [*discrete, *rounded]
        book.scan()


def test_backup_while_writing(tmp_path: Path) -> None:
    """A backup taken while threads charge is whole, is a prefix of the log, and never has more budget left."""
    book = open_sqlite(tmp_path, Budget(epsilon=100))
    stop = threading.Event()

    def write(name: str) -> None:
        i = 0
        while not stop.is_set():
            book.commit(book.reserve(charge(f"{name}-{i}", "1/100")), {"value": i})
            i += 1

    threads = [threading.Thread(target=write, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    heads: list[Head] = []
    for i in range(4):
        before = book.spent
        heads.append(book.backup(tmp_path / f"backup {i}"))
        with SQLiteLedger.open_existing(tmp_path / f"backup {i}") as copy:
            copy.scan()
            assert before <= copy.spent <= book.spent
    stop.set()
    for thread in threads:
        thread.join()
    for head in heads:
        book.check_head(head)
    with pytest.raises(LedgerError, match="already"):
        book.backup(tmp_path / "backup 0")
    with pytest.raises(LedgerFailure, match="as it was"):
        book.backup(tmp_path / "nowhere" / "backup")
    book.commit(book.reserve(charge("after", "1/100")), {})
    book.close()


def test_a_busy_ledger_says_so(tmp_path: Path) -> None:
    """Who waits for longer than patience allows is told to ask again; nothing halts."""
    with open_sqlite(tmp_path, patience=0.05) as book:
        other = sqlite3.connect(tmp_path / NAME, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(RequestInFlight, match="busy"):
            book.reserve(charge("r"))
        other.execute("ROLLBACK")
        other.close()
        assert book.reserve(charge("r")).record is None


def test_two_processes_making_one_ledger_make_one(tmp_path: Path) -> None:
    """Of several openings of a ledger that is not there yet, all get the same one."""
    found: list[str] = []

    def work() -> None:
        with open_sqlite(tmp_path) as book:
            found.append(book.head.ledger)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(found)) == 1
    assert sorted(file.name for file in tmp_path.iterdir()) == [NAME]


def test_a_closed_ledger_says_so(tmp_path: Path) -> None:
    """After closing nothing works, and nothing breaks."""
    book = open_sqlite(tmp_path)
    book.close()
    book.close()
    with pytest.raises(LedgerFailure, match="closed"):
        book.reserve(charge("r"))


@contextmanager
def be_nobody() -> Iterator[None]:
    """Work without the rights of root, who may write everything, where the tests are root's."""
    is_root = os.geteuid() == 0
    if is_root:
        os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        if is_root:
            os.setresuid(0, 0, 0)


def test_a_read_only_file_is_refused() -> None:
    """A ledger that cannot be written, or whose folder cannot, is refused when it is opened; otherwise it opens."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        open_sqlite(folder).close()
        folder.chmod(0o777)
        for file in folder.iterdir():
            file.chmod(0o666)
        with be_nobody():
            open_sqlite(folder).close()
        for place, mode in ((folder / NAME, 0o444), (folder, 0o555)):
            usual = place.stat().st_mode
            place.chmod(mode)
            with be_nobody(), pytest.raises(LedgerError, match="permissions"):
                open_sqlite(folder)
            place.chmod(usual)


def test_an_unreadable_head_file_is_refused(tmp_path: Path) -> None:
    """A head file that is not one stops the ledger until someone looks."""
    with open_sqlite(tmp_path) as book:
        book.reserve(charge("r"))
    for content in (b"", b"\xff\xfe", b"[]", json.dumps({"ledger": "x"}).encode()):
        (tmp_path / f"{NAME}.head").write_bytes(content)
        with pytest.raises(LedgerDamaged, match="cannot be read"):
            open_sqlite(tmp_path)


@pytest.mark.parametrize("budget", [Budget(epsilon=ln(50)), Budget(epsilon=5), Budget(epsilon=5, delta=1e-6)], ids=repr)
def test_opening_gives_the_sums_of_the_running_process(tmp_path: Path, budget: Budget) -> None:
    """Reading a log anew gives the very sums of the process that wrote it, also where they were rounded."""
    primes = [10**9 + 7, 10**9 + 9, 10**9 + 21, 10**9 + 33, 10**9 + 87, 10**9 + 93]
    with open_sqlite(tmp_path, budget, Policy.of(per_analyst=budget.amount())) as book:
        for i in range(30):
            events = (ev.Pure(epsilon=Fraction(1, primes[i % 6] if i > 12 else 7 + i % 3), unit="patient_id"),)
            if budget.notion == "pure" and i % 5 == 0:
                events = (ev.Pure(epsilon=ln(Fraction(101, 100)), unit="patient_id"),)
            book.reserve(charge(f"r{i}", events=events, loss=compose(events).loss))
        before, totals = book.head, dict(book.state.totals)
    with open_sqlite(tmp_path, budget) as book:
        assert book.head == before and book.state.totals == totals
        book.scan()
        fold = State()
        for number, line in enumerate(book.read_lines()):
            fold.absorb(number, line)
        assert fold.totals == totals and fold.charges == book.state.charges == 30


def test_only_the_owner_can_read_the_files(tmp_path: Path) -> None:
    """From the first moment on, whatever the umask is: ledger, log, head, backup."""
    before = os.umask(0)
    try:
        with open_sqlite(tmp_path) as book:
            book.commit(book.reserve(charge("r")), {"value": 1})
            book.backup(tmp_path / "backup")
            modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert set(modes) >= {NAME, f"{NAME}-wal", f"{NAME}-shm", f"{NAME}.head", "backup"}
    assert set(modes.values()) == {0o600}, modes


def look(folder: Path) -> dict[str, bytes]:
    """What the files hold, but for the locks, which change when a ledger is read."""
    return {file.name: b"" if file.suffix == ".ledger-shm" else file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize("live", [False, True])
def test_a_place_that_cannot_be_written_can_be_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, live: bool
) -> None:
    """Nothing appears or changes there, lines in the write-ahead log are seen, and an older file is noticed."""
    book = open_sqlite(tmp_path)
    old = (tmp_path / NAME).read_bytes()
    book.reserve(charge("r"))
    if not live:
        book.close()
    before = look(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, _: not Path(path).is_relative_to(tmp_path))
    with read_ledger(tmp_path / NAME) as found:
        assert administration.verify(found).charges == 1
    assert look(tmp_path) == before
    book.close()
    (tmp_path / NAME).write_bytes(old)
    with pytest.raises(LedgerDamaged), read_ledger(tmp_path / NAME):
        pass
