"""What a charge buys, and what comes before it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import discreet
from discreet import Budget
from discreet.curator import Curator
from discreet.errors import EngineFailure, UsageError

COUNT = "SELECT COUNT(*) AS n FROM visits"


def make_curator(**facts: Any) -> Curator:
    visits = pa.table({"patient": [1, 1, 2]})
    return discreet.curate({"visits": visits}, unit="patient", max_rows=3, budget=Budget(epsilon=9), **facts)


def test_sources_are_looked_at_before_the_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that is not as declared is refused while nothing is charged."""
    with make_curator() as curator:

        def refuse(_: str) -> Any:
            raise UsageError("The table has other columns now.")

        monkeypatch.setattr(curator._engine, "schema", refuse)
        with pytest.raises(UsageError):
            curator.ask(COUNT, epsilon=1)
        assert not curator.history()


def test_each_run_has_a_secret_order_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Salts are drawn anew for every run of an engine."""
    with make_curator() as curator:
        salts, run = [], curator._engine.run

        def note(*given: Any, **named: Any) -> Any:
            salts.append(named["salt"])
            return run(*given, **named)

        monkeypatch.setattr(curator._engine, "run", note)
        for epsilon in (1, 2):
            curator.ask(COUNT, epsilon=epsilon)
        assert len(set(salts)) == len(salts) == 2 and all(len(salt) == 16 for salt in salts)


@pytest.mark.parametrize(("after", "told"), [(None, True), ("0.1s", False)])
def test_progress_is_not_told_where_answers_wait_for_a_raster(
    after: str | None, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How far a run has come would tell how long it takes."""
    with make_curator(answer_after=after) as curator:
        seen, run = [], curator._engine.run

        def note(*given: Any, **named: Any) -> Any:
            seen.append(named["watch"])
            return run(*given, **named)

        def watch(*_: Any) -> None: ...

        monkeypatch.setattr(curator._engine, "run", note)
        curator.ask(COUNT, epsilon=1, watch=watch)
        assert seen == [watch if told else None]


def test_an_answer_that_cannot_be_finished_is_finished_later_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The draw is on record: the same request gets its numbers when the fault is mended."""
    with make_curator() as curator:

        def fail(*_: Any, **__: Any) -> Any:
            raise RuntimeError("a bug of ours")

        with monkeypatch.context() as patch:
            patch.setattr("discreet.charged_answers.make_answer", fail)
            with pytest.raises(EngineFailure):
                curator.ask(COUNT, epsilon=1, request="r")
        assert len(curator.ask(COUNT, epsilon=1, request="r")) == 1
        assert len(curator.history()) == 1
