"""``answer_after``: nothing that read data is told between the doublings, by whatever way one looks."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import discreet
from discreet import charged_answers
from discreet.answer_times import Clock
from discreet.curator import Curator
from discreet.errors import CodebookError, DiscreetError, EngineFailure, RequestInFlight
from discreet.ledger import check_log
from discreet.ledger.base_ledger import BaseLedger
from discreet.release import draw
from tests.test_answer_times import NOON, Hands

VISITS = pa.table({"patient": [i % 40 for i in range(200)], "age": [i % 90 for i in range(200)]})
COUNT = "SELECT COUNT(*) AS n FROM visits"
MEAN = "SELECT AVG(age) AS a FROM visits"
DRAWING = 0.004


class Slow(Hands):
    """A curator whose engine takes a stated time, with what may be looked at while somebody waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float, after: str | None = "2s") -> None:
        super().__init__()
        self.curator = discreet.curate(
            {"visits": VISITS},
            unit="patient",
            max_rows=5,
            budget=discreet.Budget(epsilon=1000),
            answer_after=after,
        )
        self.waits: list[float] = []
        self.meanwhile: Callable[[], object] = lambda: None
        self.fails = False
        self.curator._clock = Clock(lambda: self.now, self.wait)
        self.ledger._clock = lambda: self.now
        run = self.curator._engine.run

        def run_slowly(*given: Any, **named: Any) -> Any:
            self.go_on(seconds)
            if self.fails:
                raise MemoryError("Ms Smith is 41")
            return run(*given, **named)

        def draw_slowly(*given: Any, **named: Any) -> Any:
            self.go_on(DRAWING)
            return draw(*given, **named)

        monkeypatch.setattr(self.curator._engine, "run", run_slowly)
        monkeypatch.setattr(charged_answers, "draw", draw_slowly)

    @property
    def ledger(self) -> BaseLedger:
        """The ledger, with all that it can tell."""
        assert isinstance(self.curator.ledger, BaseLedger)
        return self.curator.ledger

    def wait(self, seconds: float) -> None:
        """Wait, as somebody else looks."""
        self.waits.append(seconds)
        self.meanwhile()
        self.go_on(seconds)

    @property
    def elapsed(self) -> float:
        """Seconds since the first request."""
        return (self.now - NOON).total_seconds()

    def list_lines(self) -> list[tuple[str, str, str | None]]:
        """What the log says of times."""
        lines = map(json.loads, self.ledger.read_lines()[1:])
        return [(line["kind"], line["time"], line.get("not_before")) for line in lines]


def ask_all(curator: Curator, way: str) -> object:
    match way:
        case "question":
            return curator.ask(COUNT, epsilon=1, request="r")
        case "batch":
            return curator.ask_batch([COUNT, MEAN.replace("age", "clamp(age, 0, 90)")], epsilon=1, request="r")
        case _:
            return curator.ask(MEAN, epsilon=10, bounds="auto", request="r")


@pytest.mark.parametrize("way", ["question", "batch", "bounds"])
def test_times_within_one_doubling_cannot_be_told_apart(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """The time of the answer, the receipts, the history and every line of the log are the same; beyond, they differ."""

    def observe(seconds: float, after: str | None = "2s") -> tuple[object, ...]:
        slow = Slow(monkeypatch, seconds, after)
        found: Any = ask_all(slow.curator, way)
        receipts = [answer.receipt["time"] for answer in (found if isinstance(found, tuple) else (found,))]
        history = [(entry.time, entry.answered) for entry in slow.curator.history()]
        return slow.elapsed, receipts, history, slow.list_lines()

    quick, usual, late = observe(0.001), observe(0.4), observe(1.1)
    assert quick == usual != late
    # Two runs in a batch are one request; a search and the question after it are two.
    assert (quick[0], late[0]) == {"question": (2, 4), "batch": (2, 8), "bounds": (4, 8)}[way]
    assert observe(0.001, None) != observe(0.4, None)  # the control: without a raster all of it shows


@pytest.mark.parametrize("seconds", [0.001, 0.4])
def test_a_failure_is_told_on_the_raster(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """So is the line that stops the ledger, which other analysts would see."""
    slow = Slow(monkeypatch, seconds)
    slow.fails = True
    with pytest.raises(EngineFailure):
        slow.curator.ask(COUNT, epsilon=1)
    assert slow.elapsed == 2
    assert slow.list_lines()[-1][:2] == ("failed", "2030-01-01T12:00:01.000000Z")


def test_a_failure_is_on_record_also_when_the_waiting_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(monkeypatch, 0.1)
    slow.fails = True
    slow.meanwhile = interrupt
    with pytest.raises(KeyboardInterrupt):
        slow.curator.ask(COUNT, epsilon=1)
    assert slow.list_lines()[-1][0] == "failed"


def interrupt() -> None:
    raise KeyboardInterrupt


def test_a_refusal_after_the_data_was_read_is_told_on_the_raster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another run of the same request was quicker."""
    slow = Slow(monkeypatch, 0.1)

    def refuse(*_: object) -> None:
        raise RequestInFlight("Another run of this question was quicker.")

    monkeypatch.setattr(slow.ledger, "claim", refuse)
    with pytest.raises(RequestInFlight):
        slow.curator.ask(COUNT, epsilon=1)
    assert slow.elapsed == 2


def test_what_reads_no_data_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refusals of words, previews, and answers that are on record."""
    slow = Slow(monkeypatch, 0.1)
    with pytest.raises(DiscreetError):
        slow.curator.ask("SELECT age FROM visits", epsilon=1)
    slow.curator.preview(COUNT, epsilon=1)
    assert slow.elapsed == 0
    slow.curator.ask(COUNT, epsilon=1)
    assert slow.curator.ask(COUNT, epsilon=1).replayed and slow.elapsed == 2


def test_nothing_shows_while_the_answer_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by the same request, a replay, the history or progress, and neither before nor after the draw."""
    slow = Slow(monkeypatch, 0.1)
    seen = []

    def look() -> None:
        entry = slow.curator.history()[-1]
        with pytest.raises(RequestInFlight):
            slow.curator.ask(COUNT, epsilon=1, request="r")
        seen.append((entry.answered, entry.time, slow.curator.answered(COUNT, epsilon=1)))

    def watch(share: float) -> None:
        raise AssertionError(share)

    slow.meanwhile = look
    slow.curator.ask(COUNT, epsilon=1, request="r", watch=watch)
    assert slow.waits == pytest.approx([0.9, 1 - DRAWING])
    assert seen == [(False, "2030-01-01T12:00:00.000000Z", False)] * 2


def test_a_draw_that_waits_is_told_when_its_time_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted behind the draw and asked again: the same draw, not earlier."""
    slow = Slow(monkeypatch, 0.1)

    def interrupt_the_second() -> None:
        if len(slow.waits) == 2:
            raise KeyboardInterrupt

    slow.meanwhile = interrupt_the_second
    with pytest.raises(KeyboardInterrupt):
        slow.curator.ask(COUNT, epsilon=1, request="r")
    assert [kind for kind, _, _ in slow.list_lines()] == ["reserved", "claimed", "drawn"]
    slow.curator.ask(COUNT, epsilon=1, request="r")
    assert slow.elapsed == 2
    assert [kind for kind, _, _ in slow.list_lines()].count("drawn") == 1


def test_a_ledger_on_disk_keeps_the_time(tmp_path: Path) -> None:
    """``not_before`` is part of a whole log, for the ledger and for the separate program."""
    pa.parquet.write_table(VISITS, tmp_path / "visits.parquet")
    book = tmp_path / "book.toml"
    book.write_text(
        """
name = "book"
unit = "patient"
answer_after = "10ms"
[budget]
epsilon = 10
[tables.visits]
source = "visits.parquet"
max_rows = 5
[tables.visits.columns]
patient = "integer"
age = "integer"
"""
    )
    with discreet.open(book) as curator:
        curator.ask(COUNT, epsilon=1)
        ledger = curator.ledger
        assert isinstance(ledger, BaseLedger)
        ledger.scan()
        lines = ledger.read_lines()
    drawn = next(line for line in map(json.loads, lines) if line["kind"] == "drawn")
    reserved = json.loads(lines[1])
    assert drawn["not_before"] > reserved["time"]
    check_log.check(lines, [])
    with discreet.open(book) as curator:
        assert curator.ask(COUNT, epsilon=1).replayed


@pytest.mark.parametrize("text", ["2", "0s", "9ms", "61min", "-2s", "2 h", "1e3s", "٢s", "", "2s "])
def test_durations_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(CodebookError, match="answer_after"):
        discreet.curate({"visits": VISITS}, budget=discreet.Budget(epsilon=1), answer_after=text)


@pytest.mark.parametrize(("text", "seconds"), [("2s", 2), ("500ms", 0.5), ("1.5 s", 1.5), ("60min", 3600)])
def test_durations_are_read_exactly(text: str, seconds: float) -> None:
    curator = discreet.curate({"visits": VISITS}, budget=discreet.Budget(epsilon=1), answer_after=text)
    assert curator._answer_after == timedelta(seconds=seconds)
