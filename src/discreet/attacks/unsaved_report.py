"""Unsaved report: a client gives a report out whose charge did not reach the disk, and so it never happened.

In the local model a person's own device counts what it has told. If it counts in memory first and the disk is full, the
count is lost with the program, and the report is told all the same; two programs with one file do not see each other.
The collector asks again and again and averages. In discreet the charge is on the disk, under a lock, before a report
is given out.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import numpy as np

from discreet.attacks.fiction import make_coins
from discreet.attacks.outcome import EPSILON, Bar, Outcome, Rate
from discreet.errors import DiscreetError
from discreet.local import Aggregator, Frequencies, Person, Task, choose, estimate
from discreet.mechanisms.randomized_response import RandomizedResponse

EACH = Fraction(EPSILON, 2)  # of one report; the budget is for two
LESSON = (
    "A client that forgets what it told tells it again with fresh noise, and 121 reports leave no doubt. discreet "
    "writes the charge down first; after a failed save, and from a second program, nothing is told beyond the budget."
)


def run(*, people: int = 120, asked: int = 121) -> Outcome:
    """Guess each person's answer, from all reports that their device gives out."""
    secret = make_coins("reports", people)
    coin = RandomizedResponse(epsilon=EACH, categories=2)
    naive = np.mean([np.asarray(coin.release(secret.astype(np.int64))) for _ in range(asked)], axis=0) > 0.5
    with tempfile.TemporaryDirectory() as folder:
        tasks = [choose(2, epsilon=EACH, n=1000).task(f"question {i}") for i in range(4)]
        told = [_collect_here(Path(folder) / f"{i}.json", int(one), tasks) for i, one in enumerate(secret)]
    # Two reports that contradict each other are worth a blind guess.
    ours = np.array([vote > 0 if vote else i % 2 == 0 for i, (vote, _) in enumerate(told)])
    raw, private = Rate.agreement(naive, secret), Rate.agreement(ours, secret)
    return Outcome(
        name="unsaved-report",
        raw=raw,
        private=private,
        lesson=LESSON,
        bars=(Bar(label="a client that forgets", rate=raw), Bar(label="discreet", rate=private)),
        facts={"reports of a forgetful client": asked, "most reports here": max(count for _, count in told)},
    )


def _collect_here(path: Path, answer: int, tasks: Sequence[Task]) -> tuple[float, int]:
    """What the reports that one person gives out say together, and their number.

    Two programs have the file open; the first save fails; then both are asked for more than the budget allows.
    """
    first, second = Person(budget=EPSILON, path=path), Person(budget=EPSILON, path=path)
    reports = []
    obstacle = path.with_name(path.name + ".part")
    obstacle.mkdir()
    with suppress(OSError):
        reports.append((tasks[0], first.report(tasks[0], answer)))
    obstacle.rmdir()
    for person, task in ((first, tasks[1]), (second, tasks[2]), (first, tasks[3])):
        with suppress(DiscreetError):
            reports.append((task, person.report(task, answer)))
    return float(sum(np.sign(_read_report(task, report)) for task, report in reports)), len(reports)


def _read_report(task: Task, report: bytes) -> float:
    """More than 0 if a report speaks for the answer 1, less if it speaks for 0."""
    collected = Aggregator(task)
    collected.add_wire([report], batch="all")
    shares = estimate(collected)
    if not isinstance(shares, Frequencies):
        raise TypeError("answers of two kinds have frequencies")
    zero, one = shares.values
    return float(one - zero)
