"""Tests of one charge and one draw: in whatever order things fail, nothing is drawn twice or told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from discreet.accounting.account import compose
from discreet.accounting.events import RoundedGaussian
from discreet.answer_times import SYSTEM_CLOCK, AnswerTimes
from discreet.charged_draw import ChargedDraw, DrawSteps
from discreet.errors import DrawLost, EngineFailure, LedgerStopped
from discreet.ledger.ledger import Charge
from discreet.ledger.memory import MemoryLedger
from discreet.privacy import Budget, Neighbours

EVENT = RoundedGaussian(squared_sensitivity=1, variance=100)


def open_ledger() -> MemoryLedger:
    return MemoryLedger(Budget(rho=1), unit=None, neighbours=Neighbours.ADD_REMOVE, dataset="test")


def make(ledger: MemoryLedger, request: str = "r") -> ChargedDraw:
    charge = Charge(
        request=request,
        analyst="a",
        dataset="test",
        identity="i",
        question="q",
        events=(EVENT,),
        loss=compose([EVENT]).loss,
    )
    return ChargedDraw(ledger, charge, AnswerTimes(datetime.now(UTC), None, SYSTEM_CLOCK))


def run(
    ledger: MemoryLedger, count: Callable[[bool], int], draw: Callable[[int], dict[str, Any]], request: str = "r"
) -> Any:
    """What was drawn, as it is on record."""

    def draw_and_dump(exact: int) -> tuple[dict[str, Any], dict[str, Any]]:
        record = draw(exact)
        return record, record

    steps = DrawSteps(count, draw_and_dump, lambda record: record)
    return make(ledger, request).run(steps, lambda _, drawn: drawn)


def draw_new(drawn: list[int]) -> Callable[[int], dict[str, Any]]:
    """A draw that is another one each time."""

    def draw(exact: int) -> dict[str, Any]:
        drawn.append(exact)
        return {"noisy": exact + len(drawn)}

    return draw


def test_a_retry_gets_the_same_draw() -> None:
    ledger, drawn = open_ledger(), list[int]()
    one = run(ledger, lambda _: 7, draw_new(drawn))
    two = run(ledger, lambda _: 8, draw_new(drawn))
    assert one == two == {"noisy": 8}
    assert drawn == [7]
    assert len(ledger.history()) == 1


def test_an_interrupt_while_counting_can_be_repeated() -> None:
    ledger, drawn = open_ledger(), list[int]()

    def interrupt(_: bool) -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(ledger, interrupt, draw_new(drawn))
    assert run(ledger, lambda _: 7, draw_new(drawn)) == {"noisy": 8}
    assert len(ledger.history()) == 1


def test_a_failure_is_tried_once_more_with_more_memory() -> None:
    ledger, flags = open_ledger(), list[bool]()

    def count(generous: bool) -> int:
        flags.append(generous)
        if not generous:
            raise MemoryError("row 17 is Jane Doe")
        return 3

    assert run(ledger, count, draw_new([])) == {"noisy": 4}
    assert flags == [False, True]


def test_what_failed_is_not_told_and_stops_the_ledger() -> None:
    ledger = open_ledger()

    def fail(_: bool) -> int:
        raise ValueError("row 17 is Jane Doe")

    with pytest.raises(EngineFailure) as caught:
        run(ledger, fail, draw_new([]))
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert "Jane" not in str(caught.value)
    with pytest.raises(LedgerStopped):
        run(ledger, lambda _: 1, draw_new([]), "another")


def test_a_draw_that_never_got_on_record_is_lost() -> None:
    """After the claim nothing is drawn a second time, even if the first draw failed."""
    ledger, drawn = open_ledger(), list[int]()

    def draw(_: int) -> dict[str, Any]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(ledger, lambda _: 7, draw)
    with pytest.raises(DrawLost):
        run(ledger, lambda _: 7, draw_new(drawn))
    assert drawn == []
