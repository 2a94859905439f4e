"""Checks that a charge buys one draw: of requests that are repeated, and of requests that are interrupted and repeated.

Noise that is drawn again for the same charge can be averaged away. So whatever is asked again, and wherever a question
is interrupted, there are never more draws than the charges allow. Draws are counted where they are made, at the
mechanism. Interrupts come at lines of the package's own code, spread over the whole way of a question.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from discreet.audit.findings import Finding, Verdict
from discreet.curator import Curator
from discreet.errors import LedgerError
from discreet.mechanisms.laplace import Laplace
from discreet.opening import curate
from discreet.privacy import Budget

QUESTION = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
_FILES = str(Path(__file__).parents[1])


def check_repeated_requests(*, quick: bool) -> Iterator[Finding]:
    """One draw per charge: repeated, and interrupted at some places and repeated."""
    start = time.monotonic()
    yield _make_finding("repeated", _repeat(), "asked five times in two ways: one draw, one answer", start)
    start = time.monotonic()
    points = 12 if quick else 80
    yield _make_finding("interrupted", _interrupt_everywhere(points), f"{points} places: no second draw", start)


def _make_finding(how: str, problem: str, good: str, start: float) -> Finding:
    return Finding(
        name=f"one draw per charge: {how} requests",
        method="machinery",
        verdict=Verdict.BROKEN if problem else Verdict.HOLDS,
        detail=problem or good,
        seconds=time.monotonic() - start,
    )


def _open_curator() -> Curator:
    import pyarrow as pa

    visits = pa.table({"person": [i % 40 for i in range(120)], "ward": ["AB"[i % 2] for i in range(120)]})
    return curate({"visits": visits}, unit="person", max_rows=3, keys={"ward": ["A", "B"]}, budget=Budget(epsilon=100))


class _DrawCount:
    """How often noise was drawn."""

    value = 0


@contextmanager
def _counting_draws() -> Iterator[_DrawCount]:
    count, release = _DrawCount(), Laplace.release

    def release_and_count(self: Laplace, *arguments: Any, **named: Any) -> Any:
        count.value += 1
        return release(self, *arguments, **named)

    Laplace.release = release_and_count  # type: ignore[method-assign, assignment]  # put back below
    try:
        yield count
    finally:
        del Laplace.release  # as it was: the method of its base, which the grey box wraps


def _repeat() -> str:
    with _counting_draws() as draws, _open_curator() as curator:
        answers = [curator.ask(QUESTION, epsilon=1, request=name) for name in ("a", "a", "b", "a", "c")]
        if draws.value > len(curator.history()):
            return f"{draws.value} draws for {len(curator.history())} charges"
    if any(answer.table != answers[0].table for answer in answers):
        return "the same question got two answers"
    return ""


def _interrupt_everywhere(points: int) -> str:
    with _open_curator() as curator:
        curator.ask(QUESTION, epsilon=1)  # what is loaded or made once
    with _open_curator() as curator, _trace_lines(None) as whole:
        curator.ask(QUESTION, epsilon=1, request="r")
    # Half of the places are spread over the whole way, half over its last part, where the noise is drawn.
    late, step = whole.lines * 4 // 5, max(1, 2 * whole.lines // points)
    for at in sorted({*range(1, whole.lines, step), *range(late, whole.lines, max(1, step // 5))}):
        with _counting_draws() as draws, _open_curator() as curator:
            for line in (at, None):  # interrupted, then repeated; a lost draw is told, not drawn again
                with suppress(KeyboardInterrupt, LedgerError), _trace_lines(line):
                    curator.ask(QUESTION, epsilon=1, request="r")
            if draws.value > len(curator.history()):
                charges = len(curator.history())
                return f"interrupted at line {at} of {whole.lines}: {draws.value} draws for {charges} charges"
    return ""


class _LineTrace:
    """Counts the lines of the package that a thread runs, and raises an interrupt at one of them."""

    def __init__(self, at: int | None) -> None:
        self.at, self.lines = at, 0

    def trace(self, frame: FrameType, event: str, _: object) -> Any:
        if not frame.f_code.co_filename.startswith(_FILES):
            return None
        if event == "line":
            self.lines += 1
            if self.lines == self.at:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self.trace


@contextmanager
def _trace_lines(at: int | None) -> Iterator[_LineTrace]:
    before, trace = sys.gettrace(), _LineTrace(at)
    sys.settrace(trace.trace)
    try:
        yield trace
    finally:
        sys.settrace(before)
