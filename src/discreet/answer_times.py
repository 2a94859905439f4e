"""When a request may learn something: on a raster of doublings since it arrived.

How long a question takes depends on the data. With ``answer_after = R`` in the codebook, what read data is handed out
R, 2R, 4R, ... after the request arrived and at no other time: answers, failures and refusals alike.

Statement. Let t be the time at which the engine is done with a request, and d the time that drawing takes after that.
The line of the claim, or of the failure, is written at the first of R/2, R, 2R, ... that is not before t; the answer or
the error leaves at the first of R, 2R, 4R, ... at which the draw is done. So of t and d an analyst learns two whole
numbers, how often each was doubled, and not the times. Why half: numbers of lines stand in receipts, and a second
request could see by them when the first one was drawn. So the draw begins on the raster as well.

What follows after the last waiting (finishing, recording, printing) works on released numbers alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta


@dataclass(frozen=True, slots=True)
class Clock:
    """The time in UTC, and a way to let it pass. Tests bring a clock of their own."""

    now: Callable[[], datetime]
    sleep: Callable[[float], None]

    def wait_until(self, moment: datetime | None) -> None:
        """Return at a moment, or at once where it is past or None."""
        while moment is not None and (left := (moment - self.now()).total_seconds()) > 0:
            self.sleep(left)


SYSTEM_CLOCK = Clock(lambda: datetime.now(UTC), time.sleep)


@dataclass(frozen=True, slots=True)
class AnswerTimes:
    """The times at which one request, which arrived at ``arrived``, may learn something; None means at once."""

    arrived: datetime
    after: timedelta | None
    clock: Clock = SYSTEM_CLOCK

    @classmethod
    def begin(cls, after: timedelta | None, clock: Clock) -> AnswerTimes:
        """The times of a request that arrives now."""
        return cls(clock.now(), after, clock)

    def find_draw_time(self) -> datetime | None:
        """The next time at which noise may be drawn, or a failure put on record: R/2, R, 2R, ..."""
        return None if self.after is None else self._find_next(self.after / 2)

    def find_answer_time(self) -> datetime | None:
        """The next time at which an answer or an error may leave: R, 2R, 4R, ..."""
        return None if self.after is None else self._find_next(self.after)

    def _find_next(self, step: timedelta) -> datetime:
        now = self.clock.now()
        while self.arrived + step < now:
            step *= 2
        return self.arrived + step

    def wait_for_draw(self) -> None:
        """Wait until noise may be drawn."""
        self.clock.wait_until(self.find_draw_time())

    def wait_for_answer(self) -> None:
        """Wait until an error may leave."""
        self.clock.wait_until(self.find_answer_time())
