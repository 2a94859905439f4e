"""Verify, show, exports, the stand-alone checker, shares and pictures."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from discreet.errors import LedgerDamaged, LedgerError
from discreet.ledger import administration, burndown, check_log
from discreet.ledger.base_ledger import BaseLedger
from discreet.ledger.chain import Head
from discreet.ledger.memory import MemoryLedger
from discreet.ledger.policy import Policy
from discreet.privacy import Budget
from tests.ledger.charges import charge, open_memory


@pytest.fixture
def book() -> BaseLedger:
    """Two analysts, an unanswered charge, an amendment and some awkward texts."""
    made = open_memory(Path(), policy=Policy.of(per_analyst={"ana": Fraction(6, 10)}))
    for i in range(3):
        made.commit(made.reserve(charge(f"r{i}", question='=SUM("ü"),\n"x"')), {"value": i})
    made.reserve(charge("r3", analyst="ben", project="p"))
    made.amend(by="cora", reason="more of it", budget=Budget(epsilon=2))
    return made


def test_verify_reports_what_is_whole(book: BaseLedger) -> None:
    """Entries, charges, unanswered ones and the head; earlier heads are checked on the way."""
    report = administration.verify(book, [book.head])
    assert (report.entries, report.charges, report.unanswered) == (9, 4, 1)
    assert report.head == book.head and "9 entries" in str(report)
    with pytest.raises(LedgerDamaged):
        administration.verify(book, [Head(ledger=book.head.ledger, number=2, hash="0" * 64)])


def rewritten(book: BaseLedger, change: Callable[[int, dict[str, Any]], None]) -> MemoryLedger:
    """What a liar would make: the same log with changes, and every hash made to fit again."""
    rows = {row.number: row for row in book._store.read_reservations()}
    liar = open_memory(Path())
    fresh = liar._store.__class__()
    previous = "0" * 64
    for number, line in enumerate(book.read_lines()):
        record, row = json.loads(line), rows.get(number)
        change(number, record)
        record["previous"] = previous
        text = json.dumps(record, separators=(",", ":"))
        previous = hashlib.sha256(text.encode()).hexdigest()
        fresh.append(number, text, previous)
        if row is not None:
            fresh.add_reservation(row)
            if row.answered is not None and row.answer is not None:
                fresh.add_answer(row.number, row.answered, row.answer)
    liar._store = liar._commits.store = fresh
    liar._state.__init__()  # type: ignore[misc]  # read everything anew
    return liar


def honest(number: int, record: dict[str, Any]) -> None:
    """Change nothing."""


def test_a_rewritten_log_is_caught_by_a_head_or_by_its_sums(book: BaseLedger) -> None:
    """A chain that was made anew fits itself; an old head tells it apart, and sums that exceed limits are found."""
    head = book.head
    administration.verify(rewritten(book, honest), [head])

    def cheaper(number: int, record: dict[str, Any]) -> None:
        if number == 7:
            record["price"] = ["1/100"]

    with pytest.raises(LedgerDamaged, match="older than the head, or"):
        administration.verify(rewritten(book, cheaper), [head])

    def dearer(number: int, record: dict[str, Any]) -> None:
        if number == 1:
            record["price"] = ["9/10"]

    with pytest.raises(LedgerDamaged, match="exceed a limit"):
        administration.verify(rewritten(book, dearer))

    def forgetful(number: int, record: dict[str, Any]) -> None:
        if record["kind"] == "amended":
            record["totals"] = {}

    with pytest.raises(LedgerDamaged, match="wrong sums"):
        administration.verify(rewritten(book, forgetful))

    def earlier(number: int, record: dict[str, Any]) -> None:
        if number == 3:
            record["time"] = "2000-01-01T00:00:00.000000Z"

    with pytest.raises(LedgerDamaged, match="earlier"):
        administration.verify(rewritten(book, earlier))


def test_show_gives_one_entry(book: BaseLedger) -> None:
    """An entry as it was written; a number that is not there says which are."""
    assert administration.show(book, 1)["analyst"] == "ana"
    for wrong in (-1, 9):
        with pytest.raises(LedgerError, match="0 to 8"):
            administration.show(book, wrong)


def test_csv_export_is_a_table(book: BaseLedger) -> None:
    """One row for each entry, with hashes; formulas are marked as text; no answer is in it."""
    rows = list(csv.DictReader(io.StringIO(administration.export(book, "csv"))))
    assert [row["kind"] for row in rows][:3] == ["opened", "reserved", "answered"]
    assert rows[1]["question"].startswith("'=SUM") and rows[1]["price"] == "1/10"
    assert rows[-1]["hash"] == book.head.hash and rows[-1]["reason"] == "more of it"
    assert '"value"' not in administration.export(book, "csv")


def test_registry_export_describes_the_deployment(book: BaseLedger) -> None:
    """Unit, neighbours, budget, spending, mechanisms and declarations, as JSON."""
    entry = json.loads(administration.export(book, "registry", description="a hospital"))
    assert entry["budget"] == {"notion": "pure", "epsilon": 2.0}
    assert (entry["spent"], entry["unit"], entry["level"]) == (0.4, "one patient_id", "user")
    assert entry["mechanisms"] == {"Laplace": 4} and entry["releases"]["analysts"] == 2
    assert [declared["kind"] for declared in entry["declarations"]] == ["amended"]
    with pytest.raises(LedgerError, match="jsonl, csv or registry"):
        administration.export(book, "xml")


def test_the_checker_runs_alone(book: BaseLedger, tmp_path: Path) -> None:
    """The printed program, in an empty folder and without this package, accepts the log and finds each change."""
    (tmp_path / "check.py").write_text(administration.read_verifier())
    log, head = tmp_path / "log.jsonl", tmp_path / "head.json"
    log.write_text(administration.export(book, "jsonl"))
    head.write_text(book.head.to_json())

    def run(*names: Path) -> tuple[int, str]:
        command = [sys.executable, "-I", "-S", "check.py", *map(str, names)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S603  # ours
        return done.returncode, done.stdout

    code, words = run(log, head)
    assert code == 0 and "9 lines, 4 charges, 1 unanswered" in words and "2/5" in words and book.head.hash in words
    log.write_text(log.read_text().replace("1/10", "1/20", 1))
    assert run(log)[0] == 1
    assert run(tmp_path / "missing")[0] == 1
    assert run()[0] == 2


def test_the_checker_finds_every_change(book: BaseLedger) -> None:
    """Each line changed, dropped, doubled or swapped is found; a shorter log needs a head."""
    lines = book.read_lines()
    head = json.loads(book.head.to_json())
    check_log.check(lines, [head])
    for i in range(len(lines)):
        others = [[*lines[:i], lines[i].replace("2", "3", 1), *lines[i + 1 :]], [*lines[: i + 1], *lines[i:]]]
        others += [[*lines[:i], *lines[i + 1 :]]]
        others += [[*lines[:i], lines[i + 1], lines[i], *lines[i + 2 :]]] if i + 1 < len(lines) else []
        for other in others:
            with pytest.raises(check_log.LogError):
                check_log.check(other, [head])
    check_log.check(lines[:-1], [])
    with pytest.raises(check_log.LogError, match="empty"):
        check_log.check([], [])


@pytest.mark.parametrize(
    ("number", "change", "words"),
    [
        (1, {"price": ["-1/10"]}, "not an exact number"),
        (3, {"request": "r0"}, "charges a request twice"),
        (4, {"of": 1}, "answered before"),
        (1, {"kind": "opened"}, "wrong place"),
        (1, {"kind": "gift"}, "does not know"),
        (1, {"price": 3}, "cannot be read"),
    ],
)
def test_the_checker_reads_what_lines_say(book: BaseLedger, number: int, change: dict[str, Any], words: str) -> None:
    """A chain that was made anew still cannot give budget back, charge twice or answer twice."""

    def liar(at: int, record: dict[str, Any]) -> None:
        if at == number:
            record.update(change)

    lines = [line for _, line in rewritten(book, liar)._store.read_lines(0)]
    with pytest.raises(check_log.LogError, match=words):
        check_log.check(lines, [])


def test_the_checker_refuses_what_is_said_twice() -> None:
    """An object with a key twice could be read in two ways, so it is refused."""
    with pytest.raises(check_log.LogError, match="twice"):
        check_log.check(['{"number":0,"number":0}'], [])


def test_shares_by_analyst(book: BaseLedger) -> None:
    """What each analyst spent and their cap, the largest first."""
    first, second = administration.find_shares(book)
    assert (first.analyst, first.charges, first.spent, first.cap) == ("ana", 3, 0.3, 0.6)
    assert (second.analyst, second.spent, second.cap) == ("ben", 0.1, None)
    book.renew(by="cora", reason="other people")
    assert administration.find_shares(book) == []


def test_the_curve_goes_down(book: BaseLedger) -> None:
    """Points follow charges and amendments; text and picture hold the present state."""
    curve = burndown.read_curve(book)
    assert [round(point.left, 3) for point in curve] == [1.0, 0.9, 0.8, 0.7, 0.6, 1.6]
    assert len(burndown.as_text(curve, width=20).splitlines()[0]) == 20
    picture = burndown.as_svg(book)
    ElementTree.fromstring(picture)  # noqa: S314  # our own
    assert "1.6 of 2" in picture


def test_a_long_curve_is_thinned_out() -> None:
    """However many charges there are, the curve has few points and ends where the log ends."""
    book = open_memory(Path(), Budget(epsilon=100))
    for i in range(1000):
        book.reserve(charge(f"r{i}"))
    curve = burndown.read_curve(book)
    assert len(curve) < 300 and curve[-1].left == 0.0
