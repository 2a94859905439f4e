"""One charge, one draw: whatever interrupts, fails or is asked again."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Self

import pyarrow as pa
import pytest

import discreet
from discreet import answer_record, charged_answers, charged_draw
from discreet.charged_draw import ChargedDraw
from discreet.curator import Curator
from discreet.errors import DiscreetError, DrawLost, EngineFailure, LedgerFailure, LedgerStopped
from discreet.finish import finish
from discreet.ledger.base_ledger import BaseLedger
from discreet.release import draw
from discreet.uninterrupted import run_uninterrupted

SOURCE = Path(charged_answers.__file__).parent
# Where charges and draws are in hand. An interrupt further down comes back to one of these lines.
HERE = (
    "curator",
    "charged_draw",
    "charged_answers",
    "quote_desk",
    "answer_record",
    "draw_record",
    "answer_times",
    "uninterrupted",
    "ledger",
    "bound_search",
)
FILES = tuple(str(SOURCE / name) for name in HERE)
VISITS = pa.table(
    {
        "patient": [i % 40 for i in range(200)],
        "ward": ["AB"[i % 2] for i in range(200)],
        "age": [i % 90 for i in range(200)],
    }
)
COUNTS = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
MEAN = "SELECT AVG(age) AS a FROM visits"
BATCH = [COUNTS, "SELECT COUNT(*) AS n FROM visits"]


class Draws:
    """Counts the draws, as the curator makes them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        monkeypatch.setattr(charged_answers, "draw", self)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        self.count += 1
        return draw(*arguments, **named)


def make_curator() -> Curator:
    return discreet.curate(
        {"visits": VISITS}, unit="patient", max_rows=5, keys={"ward": ["A", "B"]}, budget=discreet.Budget(epsilon=1000)
    )


@dataclass(frozen=True)
class Place:
    """A line and the lines of ours that called it, after so many entries into work that no interrupt reaches.

    Everything durable (charges, claims, draws, records) happens in such work. So between two visits of one place
    nothing was charged, drawn or written: they differ in what is being computed and in nothing that could be lost.
    """

    entries: int
    stack: tuple[tuple[str, int], ...]


class Trace:
    """Notes the places that this thread visits in the files above, from the first charge on; may interrupt at one.

    What comes before the first charge reads and charges nothing, so there is nothing to find.
    """

    def __init__(self, at: tuple[Place, int] | None = None) -> None:
        self.at = at
        self.visits: Counter[Place] = Counter()
        self.way: list[tuple[Place, int]] = []
        self._entries = 0
        self._charged = False

    def __enter__(self) -> Self:
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, _: object) -> Any:
        if not frame.f_code.co_filename.startswith(FILES):
            return None
        self._charged = self._charged or frame.f_code is Curator._answer.__code__
        if event == "call" and frame.f_code is run_uninterrupted.__code__:
            self._entries += 1
        if self._charged and event == "line":
            self._visit(frame)
        return self._trace

    def _visit(self, frame: FrameType) -> None:
        place = Place(self._entries, tuple(self._list_callers(frame)))
        self.visits[place] += 1
        self.way.append((place, self.visits[place]))
        if self.way[-1] == self.at:
            sys.settrace(None)
            raise KeyboardInterrupt

    def _list_callers(self, frame: FrameType | None) -> Iterator[tuple[str, int]]:
        while frame is not None:
            if frame.f_code.co_filename.startswith(FILES):
                yield frame.f_code.co_filename, frame.f_lineno
            frame = frame.f_back


# What is asked in each way, and how many draws it buys under how many charges.
WAYS: dict[str, tuple[int, int, Callable[[Curator], object]]] = {
    "question": (1, 1, lambda curator: curator.ask(COUNTS, epsilon=1, request="r")),
    "batch": (2, 1, lambda curator: curator.ask_batch(BATCH, epsilon=1, request="r")),
    "bounds": (2, 2, lambda curator: curator.ask(MEAN, epsilon=10, bounds="auto", request="r")),
}


def trace_way(way: str) -> Trace:
    """The way of one question through our lines in the calling thread, once it is charged."""
    with make_curator() as curator:
        WAYS[way][2](curator)  # what is loaded or cached once
    with make_curator() as curator, Trace() as trace:
        WAYS[way][2](curator)
    return trace


def check_points(
    monkeypatch: pytest.MonkeyPatch, way: str, choose: Callable[[Trace], Iterable[tuple[Place, int]]]
) -> None:
    """Interrupt at these visits and ask again: as many draws as were paid for, and an answer at once."""
    draws = Draws(monkeypatch)
    number, charges, ask = WAYS[way]
    points = list(choose(trace_way(way)))
    assert draws.count == 2 * number
    interrupted = 0
    for at in points:
        draws.count = 0
        with make_curator() as curator:
            try:
                with Trace(at):
                    ask(curator)
            except KeyboardInterrupt:
                interrupted += 1
            ask(curator)  # never told to wait: nothing runs any more
            assert (draws.count, len(curator.history())) == (number, charges), f"interrupted at {at}"
    # A search for bounds follows its noise, so that a few visits of the first run do not come again.
    assert interrupted >= (1 if len(points) < 100 else 0.9 * len(points)), (interrupted, len(points))


def spread(trace: Trace) -> Iterable[tuple[Place, int]]:
    """Some thirty visits, evenly over the whole way."""
    return trace.way[:: max(1, len(trace.way) // 31)]


def visit_all(trace: Trace) -> Iterable[tuple[Place, int]]:
    """The first and the last visit of every place, and every twelfth of those between, which are loops' rounds."""
    between = [(place, visit) for place, visit in trace.way if 1 < visit < trace.visits[place]]
    ends = [(place, visit) for place, visit in trace.way if visit in (1, trace.visits[place])]
    return [*ends, *between[::12]]


@pytest.mark.parametrize("way", list(WAYS))
def test_no_interrupt_buys_a_second_draw(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """At points that are spread over the whole way."""
    check_points(monkeypatch, way, spread)


@pytest.mark.long
@pytest.mark.parametrize("way", list(WAYS))
def test_no_interrupt_anywhere_buys_a_second_draw(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """At every single place from the charge to the answer."""
    check_points(monkeypatch, way, visit_all)


def draw_first(self: ChargedDraw, reservation: Any, exact: Any, steps: Any) -> Any:
    """A broken order: drawn before it is claimed."""
    drawn, record = steps.draw(exact)
    self.ledger.claim(reservation)
    self.ledger.record_draw(reservation, record, None, steps.frames)
    return drawn, None


def let_interrupts_reach_draws(work: Any) -> Any:
    """Charges are out of reach of interrupts as ever, draws are not."""
    return run_uninterrupted(work) if "reserve" in work.__code__.co_names else work()


def test_a_draw_within_reach_of_interrupts_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: with draw and claim in the wrong order the same points find a second draw."""
    monkeypatch.setattr(ChargedDraw, "_draw_once", draw_first)
    monkeypatch.setattr(charged_draw, "run_uninterrupted", let_interrupts_reach_draws)
    with pytest.raises(AssertionError, match="interrupted at") as found:
        check_points(monkeypatch, "question", visit_all)
    assert "(2, 1) == (1, 1)" in str(found.value)


def test_a_retry_finishes_from_what_was_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure behind the draw costs nothing more: the retry has the same numbers and draws nothing."""
    draws = Draws(monkeypatch)
    curator = make_curator()

    def fail(*_: object, **__: object) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(answer_record, "finish", fail)
    with pytest.raises(KeyboardInterrupt):
        curator.ask(COUNTS, epsilon=1, request="r")
    monkeypatch.setattr(answer_record, "finish", finish)
    answer = curator.ask(COUNTS, epsilon=1, request="r")
    assert draws.count == 1 and len(curator.history()) == 1
    assert answer.table["n"].to_pylist() == curator.ask(COUNTS, epsilon=1).table["n"].to_pylist()


def test_a_draw_that_is_not_on_record_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Claimed, and the record failed: the same id never draws again; a new one is charged anew."""
    draws = Draws(monkeypatch)
    curator = make_curator()
    ledger = curator.ledger
    assert isinstance(ledger, BaseLedger)

    def fail(*_: object) -> None:
        raise LedgerFailure("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(ledger, "record_draw", fail)
        with pytest.raises(LedgerFailure, match="disk"):
            curator.ask(COUNTS, epsilon=1, request="r")
    with pytest.raises(DrawLost, match="The charge stands"):
        curator.ask(COUNTS, epsilon=1, request="r")
    curator.ask(COUNTS, epsilon=1, request="another")
    assert draws.count == 2 == len(curator.history())


def test_a_failure_stops_the_ledger_until_the_owner_has_looked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail-stop: one constant message, then nothing is charged; replays and previews go on."""
    curator = make_curator()
    before = curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=1)

    def fail(*_: object, **__: object) -> Any:
        raise MemoryError("Ms Smith is 41")

    with monkeypatch.context() as patch:
        patch.setattr(curator._engine, "run", fail)
        with pytest.raises(EngineFailure) as caught:
            curator.ask(COUNTS, epsilon=1, request="r")
    assert caught.value.__context__ is None and caught.value.__cause__ is None
    frames = []
    trace = caught.value.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    assert "_count_and_draw" not in frames and "_run" not in frames
    other = "SELECT COUNT(*) AS m FROM visits WHERE ward = 'A'"
    for question, kept in ((COUNTS, "Your charge stands"), (other, "Nothing was charged")):
        with pytest.raises(LedgerStopped, match=kept):
            curator.ask(question, epsilon=1)
    assert curator.preview(COUNTS, epsilon=1).cost
    assert curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=1).table == before.table
    ledger = curator.ledger
    assert isinstance(ledger, BaseLedger)
    ledger.allow(by="cora", reason="the disk was full")
    assert len(curator.ask(COUNTS, epsilon=1, request="r")) == 2
    with pytest.raises(DiscreetError, match="not stopped"):
        ledger.allow(by="cora", reason="again")


def test_what_is_asked_of_a_draw_is_free() -> None:
    """Another name, order, limit, arithmetic or level: the same noise, no charge."""
    curator = make_curator()
    first = curator.ask(COUNTS, epsilon=1)
    counts = dict(zip(first.table["ward"].to_pylist(), first.table["n"].to_pylist()))
    wide = curator.ask(COUNTS, epsilon=1, level=0.999)
    assert wide.replayed and wide.receipt["level"] == "99.9%" and first.receipt["level"] == "95%"
    assert wide.table["n_high"][0].as_py() > first.table["n_high"][0].as_py()
    other = curator.ask(
        "SELECT ward, COUNT(*) * 2 AS twice FROM visits GROUP BY ward ORDER BY ward DESC LIMIT 1", epsilon=1
    )
    assert other.replayed and other.table["twice"].to_pylist() == [2 * counts["B"]]
    assert len(curator.history()) == 1
