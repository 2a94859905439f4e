"""Audits what every mechanism depends on: the source of randomness, and the ledger that charges."""

from __future__ import annotations

import os
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from discreet.accounting.account import compose
from discreet.accounting.events import DiscreteLaplace, Event
from discreet.audit.findings import Finding, Verdict
from discreet.entropy import SYSTEM, Words
from discreet.errors import BudgetExceeded, DiscreetError, LedgerDamaged
from discreet.ledger.ledger import Charge, Ledger
from discreet.ledger.memory import MemoryLedger
from discreet.ledger.sqlite import SQLiteLedger
from discreet.privacy import Budget

_WORDS = 1 << 18


def _make_finding(name: str, problem: str, good: str, start: float, *, alpha: float = 0.0, samples: int = 0) -> Finding:
    return Finding(
        name=name,
        method="machinery",
        verdict=Verdict.BROKEN if problem else Verdict.HOLDS,
        detail=problem or good,
        alpha=alpha,
        samples=samples,
        seconds=time.monotonic() - start,
    )


def list_randomness_checks() -> list[Callable[[float], Finding]]:
    """Checks of the source of noise. Each takes the probability with which it may give a false alarm."""
    return [check_balanced_bits, check_no_repeats, check_separate_processes, check_separate_threads]


def check_balanced_bits(alpha: float) -> Finding:
    """Every bit of a word is as often set as not, and neighbouring words do not agree more than chance."""
    start = time.monotonic()
    words = SYSTEM.words(_WORDS)
    worst = max(_excess(words), _excess(words[1:] ^ words[:-1]))
    from scipy.special import ndtri

    limit = -float(ndtri(alpha / (2 * 128)))
    problem = f"a bit is {worst:.1f} standard deviations off" if worst > limit else ""
    good = f"worst of 128 bits is {worst:.1f} standard deviations off, {limit:.1f} allowed"
    return _make_finding("randomness: bits are balanced", problem, good, start, alpha=alpha, samples=_WORDS)


def _excess(words: Words) -> float:
    """How far the worst of the 64 bits is from being set half of the time, in standard deviations."""
    ones = [int(((words >> np.uint64(bit)) & np.uint64(1)).sum()) for bit in range(64)]
    return float(max(abs(2 * one - len(words)) for one in ones) / len(words) ** 0.5)


def check_no_repeats(alpha: float) -> Finding:
    """No 64-bit word occurs twice; by chance that happens in one of half a billion runs of this check."""
    start = time.monotonic()
    words = SYSTEM.words(_WORDS)
    repeated = len(words) - len(np.unique(words))
    problem = f"{repeated} words came twice" if repeated else ""
    by_chance = min(alpha, _WORDS**2 / 2.0**65)
    return _make_finding("randomness: no word repeats", problem, f"{_WORDS:,} words", start, alpha=by_chance)


def check_separate_processes(alpha: float) -> Finding:  # noqa: ARG001  # a repeat by chance is out of the question
    """Forked processes draw different words, and other words than their parent."""
    start = time.monotonic()
    name = "randomness: forked processes differ"
    if not hasattr(os, "fork"):
        return _make_finding(name, "", "this system has no fork", start)
    SYSTEM.word()  # the pool of the parent is filled, as it would be in a server
    drawn = [_draw_in_child() for _ in range(3)] + [SYSTEM.words(4).tobytes()]
    problem = "two processes drew the same words" if len(set(drawn)) < len(drawn) else ""
    return _make_finding(name, problem, "3 children and their parent", start)


def _draw_in_child() -> bytes:
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the child only draws words and leaves
        child = os.fork()
    if child == 0:
        try:
            os.write(write, np.array([SYSTEM.word() for _ in range(4)], dtype=np.uint64).tobytes())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        words = pipe.read()
    os.waitpid(child, 0)
    return words


def check_separate_threads(alpha: float) -> Finding:  # noqa: ARG001  # a repeat by chance is out of the question
    """Threads draw different words."""
    start = time.monotonic()
    drawn: list[tuple[int, ...]] = []
    threads = [threading.Thread(target=lambda: drawn.append(tuple(SYSTEM.word() for _ in range(8)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    words = [word for one in drawn for word in one]
    problem = "two threads drew the same word" if len(set(words)) < len(words) or len(words) != 32 else ""
    return _make_finding("randomness: threads differ", problem, "4 threads", start)


def check_ledger() -> Iterator[Finding]:
    """The ledger refuses charges that do not fit, replays answers for free, and notices damage to its file."""
    start = time.monotonic()
    memory = MemoryLedger(Budget(epsilon=1), unit=None, neighbours="add-remove", dataset="audit")
    yield _make_finding("ledger in memory: budget is kept", _overspend(memory), "10 of 11 charges of a tenth", start)
    with tempfile.TemporaryDirectory(prefix="discreet-audit-") as folder:
        start, path = time.monotonic(), Path(folder) / "audit.ledger"
        with _open_on_disk(path) as ledger:
            problem = _overspend(ledger)
        yield _make_finding("ledger on disk: budget is kept", problem, "10 of 11 charges of a tenth", start)
        start = time.monotonic()
        yield _make_finding(
            "ledger on disk: it remembers", _check_memory(path), "opened again: nothing left to spend", start
        )
        start = time.monotonic()
        yield _make_finding(
            "ledger on disk: damage is seen", _check_damage(path), "one changed digit is refused", start
        )


def _open_on_disk(path: Path) -> SQLiteLedger:
    return SQLiteLedger.open(path, dataset="audit", budget=Budget(epsilon=1), unit=None, neighbours="add-remove")


def _make_charge(number: int) -> Charge:
    spent: tuple[Event, ...] = (DiscreteLaplace(sensitivity=1, scale=10),)
    return Charge(
        request=f"request {number}",
        analyst="auditor",
        dataset="audit",
        identity=f"question {number}",
        question=f"question {number}",
        events=spent,
        loss=compose(spent).loss,
    )


def _overspend(ledger: Ledger) -> str:
    """Charge a tenth of the budget eleven times, and repeat one request."""
    for number in range(10):
        reservation = ledger.reserve(_make_charge(number))
        ledger.commit(reservation, {"answer": number})
    again = ledger.reserve(_make_charge(3))
    if again.record is None:
        return "the same request was charged twice"
    try:
        ledger.reserve(_make_charge(10))
    except BudgetExceeded:
        return "" if ledger.remaining == 0 else "the budget is not used up by what it was divided into"
    return "a charge beyond the budget was accepted"


def _check_memory(path: Path) -> str:
    with _open_on_disk(path) as ledger:
        try:
            ledger.reserve(_make_charge(11))
        except BudgetExceeded:
            return "" if len(ledger.history()) == 10 else "the history lost charges"
    return "a charge beyond the budget was accepted after the ledger was opened again"


def _check_damage(path: Path) -> str:
    """Change one question in the file; the ledger must not open."""
    data = path.read_bytes()
    at = data.rfind(b"question 7")
    if at < 0:
        return "the record of a charge is not in the file"
    path.write_bytes(data[:at] + b"question 6" + data[at + 10 :])
    try:
        with _open_on_disk(path):
            return "a changed record was not noticed"
    except LedgerDamaged:
        return ""
    except DiscreetError as error:
        return f"a changed record was refused for another reason: {error.code}"
