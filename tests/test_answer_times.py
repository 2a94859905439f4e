"""The raster on which a request may learn something."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from discreet.answer_times import AnswerTimes, Clock

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


@dataclass
class Hands:
    """A clock that stands still until it is told to go on."""

    now: datetime = NOON

    @property
    def clock(self) -> Clock:
        """The clock for those who only read it."""
        return Clock(lambda: self.now, self.go_on)

    def go_on(self, seconds: float) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("elapsed", "draw", "answer"),
    [(0, 1, 2), (1, 1, 2), (1.000001, 2, 2), (2, 2, 2), (2.000001, 4, 4), (4, 4, 4), (100, 128, 128), (-5, 1, 2)],
)
def test_the_next_time_is_a_doubling(elapsed: float, draw: float, answer: float) -> None:
    """R/2, R, 2R ... for drawing, R, 2R, 4R ... for telling; a clock that was set back makes nothing earlier."""
    hands = Hands()
    times = AnswerTimes.begin(timedelta(seconds=2), hands.clock)
    hands.go_on(elapsed)
    assert times.find_draw_time() == NOON + timedelta(seconds=draw)
    assert times.find_answer_time() == NOON + timedelta(seconds=answer)


def test_without_a_raster_nothing_waits() -> None:
    hands = Hands()
    times = AnswerTimes.begin(None, hands.clock)
    hands.go_on(3)
    assert times.find_draw_time() is None and times.find_answer_time() is None
    times.wait_for_draw()
    times.wait_for_answer()
    assert hands.now == NOON + timedelta(seconds=3)


def test_waiting_goes_on_until_the_time_is_there() -> None:
    """A sleep that ends too early is not the end."""
    hands = Hands()
    lazy = Clock(lambda: hands.now, lambda seconds: hands.go_on(max(seconds / 2, 1e-6)))
    AnswerTimes.begin(timedelta(seconds=2), lazy).wait_for_answer()
    assert hands.now >= NOON + timedelta(seconds=2)
