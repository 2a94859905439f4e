"""Files that were cut, changed, swapped or taken away: found out, and never a larger remaining budget."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import pytest

from discreet.errors import DiscreetError, LedgerDamaged, LedgerError
from discreet.ledger import administration, headfile
from discreet.ledger.policy import Policy
from discreet.ledger.sqlite import SQLiteLedger, restore
from tests.ledger.charges import Clock, charge, open_sqlite

NAME = "hospital.ledger"


@pytest.fixture
def original(tmp_path: Path) -> Path:
    """A closed ledger with some charges, an unanswered one and an amendment."""
    folder = tmp_path / "original"
    folder.mkdir()
    with open_sqlite(folder) as book:
        for i in range(6):
            held = book.reserve(charge(f"r{i}"))
            if i != 3:
                book.commit(held, {"value": f"answer {i}"})
        book.amend(by="cora", reason="to have one", policy=book.policy)
    return folder


def facts(folder: Path) -> tuple[object, ...]:
    with open_sqlite(folder) as book:
        replays = [book.replay(f"identity of r{i}") for i in range(6)]
        return book.read_lines(), book.spent, book.remaining, replays, len(book.history())


def damaged(original: Path, folder: Path, data: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    for file in folder.iterdir():
        file.unlink()
    (folder / NAME).write_bytes(data)
    return folder


def check_flips(original: Path, folder: Path, places: Iterable[int]) -> tuple[int, int]:
    """Flip bits at each place: refused, or, where SQLite keeps nothing there, exactly as before."""
    data, known = (original / NAME).read_bytes(), facts(original)
    refused = same = 0
    for place in places:
        changed = bytearray(data)
        changed[place] ^= 1 << (place % 8)
        try:
            found = facts(damaged(original, folder, bytes(changed)))
        except (LedgerDamaged, LedgerError):
            refused += 1
        else:
            assert found == known, place
            same += 1
    return refused, same


def test_flipped_bits(original: Path, tmp_path: Path) -> None:
    """Every byte of the header, and many others."""
    size = (original / NAME).stat().st_size
    refused, same = check_flips(original, tmp_path / "copy", [*range(100), *range(100, size, 61)])
    assert refused > 100 and same > 0


@pytest.mark.long
def test_every_byte_flipped(original: Path, tmp_path: Path) -> None:
    """Every byte of the file."""
    check_flips(original, tmp_path / "copy", range((original / NAME).stat().st_size))


def test_flips_in_what_is_written_are_found(original: Path, tmp_path: Path) -> None:
    """Each byte of each line and each answer counts: none of them can change unnoticed."""
    data = (original / NAME).read_bytes()
    texts = [line.encode() for line in SQLiteLedger.open_existing(original / NAME).read_lines()]
    places: list[int] = []
    for text in [*texts, b'{"value":"answer 4"}']:
        at = data.find(text[:60])
        assert at >= 0
        places += range(at, at + len(text), 17)
    refused, same = check_flips(original, tmp_path / "copy", places)
    assert (refused, same) == (len(places), 0)


def test_truncated_files(original: Path, tmp_path: Path) -> None:
    """A file that was cut anywhere, to nothing too, is refused."""
    data = (original / NAME).read_bytes()
    for size in [0, 1, 15, 16, 99, 100, *range(512, len(data), 512), len(data) - 1]:
        with pytest.raises(LedgerDamaged, match="Nothing was charged"):
            facts(damaged(original, tmp_path / "copy", data[:size]))


def test_zeroed_and_swapped_pages(original: Path, tmp_path: Path) -> None:
    """Pages that are lost, doubled or in the wrong place are found."""
    data = (original / NAME).read_bytes()
    pages = [data[i : i + 4096] for i in range(0, len(data), 4096)]
    known = facts(original)
    for i in range(len(pages)):
        for other in (b"\0" * 4096, pages[i - 1]):
            changed = [*pages[:i], other, *pages[i + 1 :]]
            try:
                assert facts(damaged(original, tmp_path / "copy", b"".join(changed))) == known
            except (LedgerDamaged, LedgerError):
                continue


def test_a_wal_that_is_cut_back_is_found(tmp_path: Path) -> None:
    """Committed lines that vanish with the WAL, as on a disk that lied, are missed by the head file."""
    book = open_sqlite(tmp_path)
    book.commit(book.reserve(charge("r1")), {})
    copies = tmp_path / "copies"
    copies.mkdir()
    wal = (tmp_path / f"{NAME}-wal").read_bytes()
    for size in range(0, len(wal), 2_000):
        for file in (NAME, f"{NAME}.head"):
            shutil.copy(tmp_path / file, copies / file)
        (copies / f"{NAME}-wal").write_bytes(wal[:size])
        with pytest.raises(LedgerDamaged, match="older than the head"):
            open_sqlite(copies)
        (copies / f"{NAME}-wal").unlink(missing_ok=True)
        (copies / f"{NAME}-shm").unlink(missing_ok=True)
    book.close()


def test_a_deleted_ledger_is_not_a_fresh_one(original: Path) -> None:
    """Where a head file says that there was a ledger, no new one with a full budget is made."""
    (original / NAME).unlink()
    with pytest.raises(LedgerDamaged, match="is gone"):
        open_sqlite(original)


def test_an_old_copy_is_refused_and_restored_only_on_record(original: Path) -> None:
    """Yesterday's file is noticed; going on with it is a declaration, and gives no budget back."""
    shutil.copy(original / NAME, original / "yesterday")
    with open_sqlite(original) as book:
        book.commit(book.reserve(charge("today", "1/5")), {})
        spent = book.spent
    shutil.copy(original / "yesterday", original / NAME)
    with pytest.raises(LedgerDamaged, match="older than the head"):
        open_sqlite(original)
    restore(original / NAME, by="cora", reason="the disk broke; this is last night's backup")
    with open_sqlite(original) as book:
        assert book.spent == spent == Fraction(8, 10)
        assert book.replay("identity of today") is None and book.replay("identity of r1") is not None
        book.scan()
    headfile.head_path_of(original / NAME).unlink()
    with pytest.raises(LedgerError, match="nothing to restore"):
        restore(original / NAME, by="cora", reason="again")


def test_two_forks_of_a_ledger_are_told_apart(original: Path, tmp_path: Path) -> None:
    """A copy that went its own way does not hold the other's head, even where both are as long."""
    fork = tmp_path / "fork"
    shutil.copytree(original, fork)
    with open_sqlite(original) as one, open_sqlite(fork) as other:
        one.commit(one.reserve(charge("one")), {})
        other.commit(other.reserve(charge("other")), {})
        one.check_head(one.head)
        with pytest.raises(LedgerDamaged, match="forked"):
            one.check_head(other.head)


def test_a_file_that_changes_under_a_running_process_halts_it(original: Path) -> None:
    """Lines that vanish or change while a process runs stop it before it releases anything more."""
    book = open_sqlite(original)
    with sqlite3.connect(original / NAME, isolation_level=None) as other:
        other.execute("DROP TRIGGER lines_no_delete")
        other.execute("PRAGMA foreign_keys = OFF")
        number = other.execute("SELECT MAX(number) FROM lines").fetchone()[0]
        digest = other.execute("SELECT line FROM lines WHERE number = ?", (number,)).fetchone()[0].split('"')[5]
        other.execute("DELETE FROM lines WHERE number = ?", (number,))
        other.execute("UPDATE head SET number = ?, hash = ?", (number - 1, digest))
    other.close()
    with pytest.raises(LedgerDamaged, match="a moment ago"):
        book.reserve(charge("x"))
    with pytest.raises(DiscreetError):
        book.remaining  # noqa: B018  # the property is the test
    book.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE lines SET line = replace(line, '1/10', '1/20')",
        "DELETE FROM lines WHERE number = 1",
        "UPDATE reservations SET request = 'r' WHERE number = 1",
        "DELETE FROM reservations",
    ],
)
def test_the_tables_only_grow(original: Path, statement: str) -> None:
    """Changes by hand are refused by the file itself."""
    with sqlite3.connect(original / NAME) as other, pytest.raises(sqlite3.IntegrityError, match="append-only"):
        other.execute(statement)
    other.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE lines SET line = replace(line, '\"1/10\"', '\"0\"') WHERE number = 1",
        "UPDATE reservations SET answer = '{}' WHERE number = 1",
        "UPDATE reservations SET answer = NULL WHERE number = 1",
        "UPDATE reservations SET answered = NULL, answer = NULL WHERE number = 1",
        "UPDATE reservations SET analyst = 'eve' WHERE number = 1",
        "UPDATE reservations SET identity = 'identity of r1' WHERE number = 1",
        "DELETE FROM reservations WHERE number = 1",
        "UPDATE head SET hash = 'x'",
        "UPDATE head SET number = 2",
        "DELETE FROM head",
        "DELETE FROM lines WHERE number = 2",
        "UPDATE lines SET number = 99 WHERE number = 0",
    ],
)
def test_a_liar_with_a_database_tool_is_found(original: Path, statement: str) -> None:
    """Each change by hand, with the guards taken away first, is found when the ledger is opened."""
    with sqlite3.connect(original / NAME) as other:
        for (name,) in other.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            other.execute(f"DROP TRIGGER {name}")
        assert other.execute(statement).rowcount > 0
    other.close()
    headfile.head_path_of(original / NAME).unlink()
    with pytest.raises(LedgerDamaged):
        open_sqlite(original)


def test_an_answer_that_changes_under_a_running_process_is_not_handed_out(original: Path) -> None:
    """A replay checks the answer's hash each time, not only when the ledger is opened."""
    book = open_sqlite(original)
    with sqlite3.connect(original / NAME) as other:
        other.execute('UPDATE reservations SET answer = \'{"value":"answer 7"}\' WHERE number = 1')
    other.close()
    with pytest.raises(LedgerDamaged, match="answer was changed"):
        book.replay("identity of r0")
    book.close()


def test_caps_count_what_was_lost(tmp_path: Path) -> None:
    """Nobody knows whose the lost charges were, so each analyst, project and period counts all of them."""
    clock = Clock()
    policy = Policy.of(per_analyst=0.5, per_day=0.6)
    with open_sqlite(tmp_path, policy=policy, clock=clock) as book:
        book.reserve(charge("a"))
    kept = (tmp_path / NAME).read_bytes()
    with open_sqlite(tmp_path, policy=policy, clock=clock) as book:
        book.reserve(charge("b", "2/5"))
    (tmp_path / NAME).write_bytes(kept)
    restore(tmp_path / NAME, by="cora", reason="the disk broke")

    def check(book: SQLiteLedger) -> None:
        assert not book.fits(charge("c", "1/100"))  # 1/10 and the lost 2/5 are the whole cap
        assert book.fits(charge("c", "1/10", analyst="ben")) and not book.fits(charge("c", "1/9", analyst="ben"))
        administration.verify(book)

    with open_sqlite(tmp_path, policy=policy, clock=clock) as book:
        assert book.spent == Fraction(1, 2)
        check(book)
        book.reserve(charge("d", "1/10", analyst="ben"))
        assert not book.fits(charge("e", "1/10", analyst="cyd"))  # the lost 2/5 and this 1/10 of today
        clock.move(days=1)
        assert book.fits(charge("e", "1/10", analyst="cyd")) and not book.fits(charge("e", "1/10", analyst="ben"))
        book.amend(by="cora", reason="a project", policy=Policy.of(per_analyst=0.5, per_project=0.5))
        assert book.fits(charge("e", "1/10", analyst="cyd", project="p"))
        assert not book.fits(charge("e", "1/9", analyst="cyd", project="p"))
        assert not book.fits(charge("e", "1/100", analyst="ben")) and not book.fits(charge("e", "1/100"))
        administration.verify(book)
