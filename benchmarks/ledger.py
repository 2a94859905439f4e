"""How fast is the ledger? Durable charges alone and in groups, the cost of one question, and verify.

    python benchmarks/ledger.py [--entries 1000000] [--folder .]

The targets are ratios within one run on one machine, because disks differ by a factor of a hundred.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from discreet.accounting import events as ev
from discreet.accounting.account import compose
from discreet.ledger import administration, chain
from discreet.ledger.ledger import Charge
from discreet.ledger.sqlite import SQLiteLedger
from discreet.ledger.store import ReservationRow
from discreet.privacy import Budget

EVENTS = (ev.DiscreteLaplace(sensitivity=1, scale=10**6, unit="patient_id"),)
LOSS = compose(EVENTS).loss
# As long as the record of a small table with its receipt and explanation.
ANSWER = json.dumps({"rows": [["Cardiology", 9173, 8187, 10159]] * 60}, separators=(",", ":"))
BUDGET = Budget(epsilon=1000, delta=1e-6)
CLIENTS = 32


def charge(request: str) -> Charge:
    return Charge(
        request=request,
        analyst="ana",
        dataset="bench",
        identity=hashlib.sha256(request.encode()).hexdigest(),
        question="SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
        events=EVENTS,
        loss=LOSS,
    )


def open_ledger(folder: Path, name: str) -> SQLiteLedger:
    path = folder / f"{name}.ledger"
    return SQLiteLedger.open(path, dataset="bench", budget=BUDGET, unit="patient_id", neighbours="add-remove")


def timed(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def syncs(folder: Path, count: int) -> float:
    """Seconds for one durable write of a page, by the disk alone."""
    handle = os.open(folder / "plain", os.O_WRONLY | os.O_CREAT)
    page = b"x" * 4096

    def work() -> None:
        for i in range(count):
            os.pwrite(handle, page, 4096 * i)
            os.fdatasync(handle)

    seconds = timed(work)
    os.close(handle)
    return seconds / count


def one_by_one(folder: Path, count: int) -> float:
    """Charges per second, each waiting for the disk by itself."""
    with open_ledger(folder, "alone") as book:
        book.reserve(charge("first"))

        def work() -> None:
            for i in range(count):
                book.reserve(charge(f"r{i}"))

        return count / timed(work)


def together(folder: Path, each: int) -> float:
    """Charges per second from 32 clients of one process, who share waits."""
    with open_ledger(folder, "together") as book:

        def client(n: int) -> None:
            for i in range(each):
                book.reserve(charge(f"{n}-{i}"))

        threads = [threading.Thread(target=client, args=(n,)) for n in range(CLIENTS)]

        def work() -> None:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        seconds = timed(work)
        assert len(book.history()) == CLIENTS * each  # noqa: S101  # a benchmark that lies is worth nothing
        return CLIENTS * each / seconds


def question(folder: Path, count: int) -> float:
    """Seconds that the ledger adds to one question: look for an answer, reserve, commit."""
    with open_ledger(folder, "question") as book:

        def work() -> None:
            for i in range(count):
                asked = charge(f"r{i}")
                book.replay(asked.identity)
                book.commit(book.reserve(asked), {"rows": [["A", 17, 12, 22]] * 100})

        return timed(work) / count


def fill(folder: Path, entries: int) -> Path:
    """A ledger of many entries, written in one go: what verify reads is the same."""
    with open_ledger(folder, "large") as book:
        store, state = book._store, book.state  # noqa: SLF001  # to write a million entries without waiting for each
        sample = json.loads(_sample(folder))
        store.begin(write=True)
        for i in range(entries // 2):
            asked = charge(f"r{i}")
            fields = {k: v for k, v in sample.items() if k not in ("number", "previous", "kind", "time")}
            fields |= {"request": asked.request, "identity": asked.identity}
            number = state.number + 1
            line = chain.make_line(number, state.hash, "reserved", state.time, fields)
            state.absorb(number, line)
            store.append(number, line, state.hash)
            store.add_reservation(ReservationRow(number, asked.analyst, asked.request, asked.identity))
            answer = ANSWER
            answered = chain.make_line(
                number + 1, state.hash, "answered", state.time, {"of": number, "answer": chain.digest(answer)}
            )
            state.absorb(number + 1, answered)
            store.append(number + 1, answered, state.hash)
            store.add_answer(number, number + 1, answer)
        store.commit()
    return folder / "large.ledger"


def _sample(folder: Path) -> str:
    with open_ledger(folder, "sample") as book:
        book.reserve(charge("sample"))
        return book.read_lines()[1]


def hashing(path: Path) -> float:
    """Seconds to hash the same bytes alone, entry by entry, from memory."""
    with SQLiteLedger.open_existing(path) as book:
        texts = [line.encode() for line in book.read_lines()]
        texts += [ANSWER.encode()] * (len(texts) // 2)

    def work() -> None:
        for text in texts:
            hashlib.sha256(text).hexdigest()

    return timed(work)


def verifying(path: Path) -> float:
    with SQLiteLedger.open_existing(path) as book:
        start = time.perf_counter()
        administration.verify(book)
        return time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, default=Path())
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        sync = syncs(folder, 300)
        alone = one_by_one(folder, 300)
        group = together(folder, 100)
        added = question(folder, 200) - 2 * sync
        print(f"disk alone               {1e3 * sync:8.2f} ms for a durable page")
        print(f"charges one by one       {alone:8,.0f} per second")
        print(f"charges of {CLIENTS} clients    {group:8,.0f} per second   × {group / alone:.1f}   (target × 5)")
        print(f"one question             {1e3 * added:8.2f} ms beyond two waits for the disk   (target 10)")
        path = fill(folder, given.entries)
        plain, verify = hashing(path), verifying(path)
        print(f"hashing {given.entries:,} entries {plain:6.2f} s")
        print(f"verifying them           {verify:8.2f} s   × {verify / plain:.2f}   (target × 3)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
