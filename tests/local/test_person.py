"""One person over time: memory, ledger, refusals; and that repeating an answer reveals no more."""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from discreet.entropy import SeededForTestsOnly, Words
from discreet.errors import BudgetExceeded, ParameterError, UsageError
from discreet.local import Aggregator, Domain, Person, Task, estimate, read_wire
from discreet.local.client import make_payload
from discreet.local.estimation import Frequencies
from discreet.local.person_memory import PersonMemory
from discreet.local.rappor import Rappor
from tests.local.reference import bit_at

OPEN = Domain(open=True)


def memoised(protocol: str = "krr", domain: object = 10, values: int = 2) -> Task:
    return Task.for_epsilon("t", domain, epsilon=1, protocol=protocol, values=values)


@pytest.mark.parametrize("name", ["krr", "unary", "hash", "hadamard", "subset", "projective"])
def test_twenty_thousand_repetitions_are_one_report(name: str) -> None:
    """Twenty thousand reports of one answer are all the same bytes: they reveal what one does, and cost once."""
    person, task = Person(), memoised(name, values=1)
    seen = {person.report(task, 3) for _ in range(20_000 if name == "krr" else 200)}
    assert len(seen) == 1
    assert person.spent == task.loss.upper and person.distinct(task) == 1
    assert task.total_loss <= 1


def test_reports_over_people_still_follow_the_law() -> None:
    """Across people, memoised reports have the protocol's exact probabilities: HMAC stands for coins."""
    task = Task.for_epsilon("t", 3, epsilon=1, protocol="krr", values=1)
    counts = Counter(Person(secret=number.to_bytes(32, "big")).report(task, 1)[-1] for number in range(6000))
    p, q = float(task.protocol.p), float(task.protocol.q)  # type: ignore[attr-defined]  # randomized response
    for symbol, chance in ((0, q), (1, p), (2, q)):
        assert abs(counts[symbol] - 6000 * chance) < 6 * math.sqrt(6000 * chance * (1 - chance))


def test_permanent_bytes_are_those_of_the_page() -> None:
    """The stream is HMAC-SHA-256 over digest, purpose, value and counter, as the wire page says."""
    secret, task = bytes(range(32)), memoised("unary", 20)
    head = task.digest + b"permanent\0" + (7).to_bytes(4, "big")
    blocks = b"".join(hmac.digest(secret, head + i.to_bytes(4, "big"), hashlib.sha256) for i in range(2))
    expected = make_payload(task, 7, blocks[: task.protocol.random_bytes])
    assert Person(secret=secret).report(task, 7)[19:] == expected
    unknown = Person(secret=secret).report(task, "nobody")
    head = task.digest + b"permanent\0" + b"\xff" * 4
    blocks = b"".join(hmac.digest(secret, head + i.to_bytes(4, "big"), hashlib.sha256) for i in range(2))
    assert unknown[19:] == make_payload(task, "nobody", blocks[: task.protocol.random_bytes + 8])


def test_rappor_repetition_reveals_only_the_permanent_bits() -> None:
    """Averaging 20,000 reports of one person gives back the permanent bits, exactly, and nothing of the answer.

    The average of a bit is instant_one or instant_other; which one is decided by the permanent bit alone, whose law
    costs ε∞. The defect of peers, drawing the permanent bits anew, would show averages in between.
    """
    task = Task.for_epsilon("t", OPEN, epsilon=4, protocol="rappor", values=1)
    protocol, person = task.protocol, Person(secret=b"s" * 32)
    assert isinstance(protocol, Rappor)
    source, sums = SeededForTestsOnly(1), np.zeros(protocol.bits)
    rows = [person.report(task, "value", source=source) for _ in range(20_000)]
    assert len({row[:20] for row in rows}) == 1  # one cohort, for ever
    packed = np.frombuffer(b"".join(row[20:] for row in rows), dtype=np.uint8).reshape(len(rows), -1)
    sums = np.unpackbits(packed, axis=1).mean(axis=0)
    near_one, near_other = np.abs(sums - 0.75) < 0.025, np.abs(sums - 0.5) < 0.025
    assert (near_one | near_other).all() and near_one.any() and near_other.any()
    assert person.spent == task.loss.upper and task.loss <= 4


def test_rappor_permanent_bits_clear_set_bits() -> None:
    """A set bit stays set with permanent_one/2^16 only: the peer that never clears one gives no privacy."""
    task = Task.for_epsilon("t", OPEN, epsilon=2, protocol="rappor", values=1)
    protocol = task.protocol
    assert isinstance(protocol, Rappor)
    kept = total = 0
    for number in range(1500):
        stream = SeededForTestsOnly(number).words(protocol.random_bytes // 8).tobytes()
        bits = protocol.make_permanent_bits("v", 0, stream).tobytes()
        places = set(protocol.find_places("v", 0))
        kept += sum(bit_at(bits, place) for place in places)
        total += len(places)
    chance = protocol.permanent_one / 65536
    assert abs(kept - total * chance) < 6 * math.sqrt(total * chance * (1 - chance))
    assert chance < 0.75


def test_rappor_end_to_end() -> None:
    """3,000 people, four values: the decoded shares are near the truth, within their intervals."""
    task = Task.read(
        Task(
            name="t",
            epsilon=Fraction(8),
            domain=OPEN,
            values=1,
            protocol=Rappor.for_epsilon(8, bits=32, hashes=2, cohorts=4),
        ).json
    )
    words, shares = ["alpha", "beta", "gamma", "delta"], [0.5, 0.3, 0.2, 0.0]
    answers = [word for word, share in zip(words, shares) for _ in range(round(share * 3000))]
    source = SeededForTestsOnly(4)
    wires = [
        Person(secret=hashlib.sha256(str(i).encode()).digest()).report(task, a, source=source)
        for i, a in enumerate(answers)
    ]
    total = Aggregator(task)
    total.add(read_wire(task, wires), batch="all")
    found = estimate(total, candidates=words)
    assert isinstance(found, Frequencies)
    assert np.abs(found.values - shares).max() < 0.15
    assert ((found.low_all <= shares) & (shares <= found.high_all)).all()
    with pytest.raises(ParameterError):
        estimate(total)


def test_new_answers_cost_and_are_refused_at_the_end() -> None:
    """Two values may be remembered; the third is refused, the first two may be repeated for ever."""
    person, task = Person(), memoised(values=2)
    first, second = person.report(task, 1), person.report(task, 2)
    with pytest.raises(BudgetExceeded):
        person.report(task, 3)
    assert person.report(task, 1) == first and person.report(task, 2) == second
    assert person.spent == 2 * task.loss.upper <= 2
    assert task.total_loss <= 2
    # To stay unnoticed, the latest remembered report can be repeated instead.
    assert person.report(task, 3, when_exhausted="repeat") == second
    assert person.spent == 2 * task.loss.upper
    with pytest.raises(ParameterError):
        person.report(task, 3, when_exhausted="degrade")


def test_unknown_answers_are_one_value() -> None:
    """Everything the domain does not have is remembered as the same unknown answer."""
    person, task = Person(), memoised(values=1)
    assert person.report(task, "x") == person.report(task, None) == person.report(task, 999)
    assert person.distinct(task) == 1


def test_budget_over_all_tasks() -> None:
    """The person's own budget bounds all tasks together, with and without memory."""
    person, once = Person(budget=2.5), Task.for_epsilon("u", 5, epsilon=1, protocol="krr")
    person.report(once, 1)
    person.report(memoised(), 1)
    for _ in range(5):
        person.report(memoised(), 1)
    with pytest.raises(BudgetExceeded):
        person.report(once, 1)
    with pytest.raises(BudgetExceeded):
        person.report(memoised(), 2)
    assert person.report(memoised(), 2, when_exhausted="repeat") == person.report(memoised(), 1)
    assert person.spent <= Fraction(5, 2)


def test_memory_survives_a_restart(tmp_path: Path) -> None:
    """The secret, the marks and what was spent are in the file before the report is out; answers are not."""
    path, task = tmp_path / "memory.json", memoised(domain=["anna", "bertha"], values=1)
    first = Person(path=path).report(task, "anna")
    again = Person(path=path)
    assert again.report(task, "anna") == first and again.spent == task.loss.upper
    with pytest.raises(BudgetExceeded):
        again.report(task, "bertha")
    text = path.read_text()
    assert "anna" not in text and path.stat().st_mode & 0o077 == 0
    with pytest.raises(UsageError):
        Person(path=path, secret=b"x" * 32)
    path.write_text(json.dumps({"discreet": "other"}))
    with pytest.raises(UsageError):
        Person(path=path)


class LooksIntoTheFile(SeededForTestsOnly):
    """A source that notes what the memory file says at the moment when noise is drawn."""

    def __init__(self, path: Path) -> None:
        super().__init__(1)
        self.path, self.seen = path, list[Fraction]()

    def words(self, count: int) -> Words:
        self.seen.append(Fraction(json.loads(self.path.read_text())["spent"]))
        return super().words(count)


def test_what_one_off_reports_cost_survives_a_restart(tmp_path: Path) -> None:
    """A report without memory leaves no mark, but its cost is in the file before the report is drawn, and stays."""
    path, once = tmp_path / "memory.json", Task.for_epsilon("u", 5, epsilon=1, protocol="krr")
    source = LooksIntoTheFile(path)
    Person(path=path, budget=1.5).report(once, 1, source=source)
    assert source.seen and set(source.seen) == {once.loss.upper}
    again = Person(path=path, budget=1.5)
    assert again.spent == once.loss.upper and again.distinct(once) == 0
    with pytest.raises(BudgetExceeded):
        again.report(once, 1)
    assert Person(path=path).spent == once.loss.upper


def test_bad_persons_are_refused() -> None:
    """A short secret or a budget that is none."""
    for bad in (b"", b"short", "x" * 32):
        with pytest.raises(ParameterError):
            Person(secret=bad)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(ParameterError):
        Person(budget=-1)
    with pytest.raises(ParameterError):
        Task.for_epsilon("t", OPEN, epsilon=1, protocol="rappor")
    with pytest.raises(ParameterError):
        _ = Task.for_epsilon("t", 5, epsilon=1, protocol="krr").total_loss


# --- the memory file: what was told is in it, whatever fails, and whoever else reports ---


@pytest.mark.parametrize("broken", ["open", "fsync", "replace"])
@pytest.mark.parametrize("memory", [True, False])
def test_a_failed_save_changes_nothing_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str, memory: bool
) -> None:
    """After a save that failed no report is out, and none comes out until a save succeeds."""
    path = tmp_path / "memory.json"
    task = memoised(values=1) if memory else Task.for_epsilon("u", 5, epsilon=1, protocol="krr")
    person = Person(path=path, budget=1.5)

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "no space left")

    with monkeypatch.context() as patch:
        patch.setattr(*((Path, "replace", fail) if broken == "replace" else (os, broken, fail)))
        for answer in (1, 2, 2):
            with pytest.raises(OSError, match="no space"):
                person.report(task, answer)
    assert person.spent == 0 and person.distinct(task) == 0
    assert PersonMemory.read(path.read_text()).spent == 0
    person.report(task, 2)
    assert person.spent == task.loss.upper
    with pytest.raises(BudgetExceeded):
        person.report(task, 1)


def test_a_folder_that_is_not_flushed_gives_no_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rename happened, but the disk may not know: no report; the file counts, and the next call goes on from it."""
    path, task, calls = tmp_path / "memory.json", memoised(values=1), list[int]()
    person, real = Person(path=path), os.fsync

    def fail_second(handle: int) -> None:
        calls.append(handle)
        if len(calls) == 2:
            raise OSError(5, "input/output error")
        real(handle)

    monkeypatch.setattr(os, "fsync", fail_second)
    with pytest.raises(OSError, match="input/output"):
        person.report(task, 1)
    with pytest.raises(BudgetExceeded):
        person.report(task, 2)
    assert person.report(task, 1) == Person(path=path).report(task, 1)


def test_two_objects_on_one_file_keep_one_promise(tmp_path: Path) -> None:
    """Each reads again what the other told; together they tell what one may tell, and spend one budget."""
    path, task = tmp_path / "memory.json", memoised(values=2)
    one, two = Person(path=path, budget=2), Person(path=path, budget=2)
    assert one.report(task, 1) == two.report(task, 1)
    assert two.report(task, 2) != b"" and two.distinct(task) == 2
    for person in (one, two):
        with pytest.raises(BudgetExceeded):
            person.report(task, 3)
        with pytest.raises(BudgetExceeded):
            person.report(Task.for_epsilon("u", 5, epsilon=1, protocol="krr"), 3)
        assert person.spent == 2 * task.loss.upper


def _report_all(path: str, answers: list[int], budget: int) -> int:
    """How many distinct reports one process gets out."""
    person, told = Person(path=Path(path), budget=budget), 0
    for answer in answers:
        try:
            person.report(memoised(domain=1000, values=20), answer)
            told += 1
        except BudgetExceeded:
            continue
    return told


def test_processes_on_one_file_keep_one_promise(tmp_path: Path) -> None:
    """Three processes ask for forty different answers each of a task of twenty: twenty are told, all in the file."""
    path, task = tmp_path / "memory.json", memoised(domain=1000, values=20)
    asked = [[100 * process + number for number in range(40)] for process in range(3)]
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as pool:
        told = sum(pool.map(_report_all, [str(path)] * 3, asked, [1000] * 3))
    person = Person(path=path)
    assert told == person.distinct(task) == 20
    assert person.spent == 20 * task.loss.upper


def test_a_file_that_went_back_in_time_is_refused(tmp_path: Path) -> None:
    """Removed, replaced, or put back from a backup: nothing is told from a memory that has less than was told."""
    path, task = tmp_path / "memory.json", memoised(values=1)
    person = Person(path=path)
    old = path.read_text()
    report = person.report(task, 1)
    new = path.read_text()
    for text in (None, old, PersonMemory(secret=b"x" * 32, spent=Fraction(9)).json):
        path.unlink() if text is None else path.write_text(text)
        with pytest.raises(UsageError, match="older"):
            person.report(task, 2)
    path.write_text(new)
    assert person.report(task, 1) == report
    for bad in (b"\xff", b"{}", b'{"discreet":"local-person/1","secret":"00","spent":"0","marks":{},"last":{}}'):
        path.write_bytes(bad)
        with pytest.raises(UsageError, match="cannot be read"):
            Person(path=path)
