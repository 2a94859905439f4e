"""One charge, one draw: the order of reserving, counting, claiming, drawing and recording, for whatever is drawn.

Privacy: nothing is counted before the charge stands, and what is drawn under it is drawn once, whatever interrupts,
crashes and retries come between (see ``ledger.ledger``). What leaves here was drawn, or is one of our own errors
without a trace that leads to exact numbers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Generic, TypeVar

from discreet.answer_times import AnswerTimes
from discreet.errors import DiscreetError, EngineFailure, LedgerDamaged, LedgerError, LedgerFailure
from discreet.late_dataclass import dataclass
from discreet.ledger.ledger import Charge, Ledger, Record, Reservation
from discreet.uninterrupted import run_uninterrupted

LOG = logging.getLogger("discreet.curator")

Counted = TypeVar("Counted")
Drawn = TypeVar("Drawn")
T = TypeVar("T")

CHARGE_STANDS = "The charge stands and is on record. Asking the same again, at the same price, is free."
"""What an interrupt after a charge says beside itself."""


@dataclass(frozen=True, slots=True)
class DrawSteps(Generic[Counted, Drawn]):
    """What is counted and drawn for a charge.

    ``count`` reads data; its flag asks for more memory. ``draw`` turns what was counted into released numbers, and says
    how they go on record, as plain JSON values. ``load`` reads them from the record of an earlier run.
    """

    count: Callable[[bool], Counted]
    draw: Callable[[Counted], tuple[Drawn, Record]]
    load: Callable[[Record], Drawn]
    # Names by which later questions find what was drawn.
    frames: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChargedDraw:
    """A charge, the ledger that takes it, and the times at which its caller may learn something."""

    ledger: Ledger
    charge: Charge
    times: AnswerTimes

    def run(self, steps: DrawSteps[Counted, Drawn], finish: Callable[[Reservation, Drawn | None], T]) -> T:
        """What ``finish`` makes of what is drawn for the charge, or was drawn for it before.

        It gets None where an old ledger has an answer on record without its draw. ``draw`` is called at most once, and
        so is ``count`` but for one more try where it fails.
        """
        held: list[Reservation] = []
        try:
            # No interrupt comes between the charge and the note of it.
            run_uninterrupted(lambda: held.append(self.ledger.reserve(self.charge)))
            return finish(held[0], self._find_draw(held[0], steps))
        except Exception:
            raise
        except BaseException as interrupt:  # the same request may go on at once
            for reservation in held:
                self._note(self.ledger.abandon, reservation)
                interrupt.add_note(CHARGE_STANDS)
            raise

    def _find_draw(self, reservation: Reservation, steps: DrawSteps[Counted, Drawn]) -> Drawn | None:
        if reservation.draw is not None:
            self.times.clock.wait_until(reservation.not_before)
            return steps.load(reservation.draw)
        if reservation.record is not None:
            return None
        outcome = self._count_and_draw(reservation, steps)
        if isinstance(outcome, BaseException):
            self._end_run(outcome, reservation)
            raise outcome
        drawn, not_before = outcome
        self.times.clock.wait_until(not_before)
        return drawn

    def _count_and_draw(
        self, reservation: Reservation, steps: DrawSteps[Counted, Drawn]
    ) -> tuple[Drawn, datetime | None] | BaseException:
        """Exact integers, then the one draw that the charge buys and when it may be told; or the error to show.

        Exact values live in this frame and below. So an error is handed back instead of raised from here: what leaves
        has no traceback, context or cause that would lead to them.
        """
        try:
            exact = self._count(steps.count)
            self.times.wait_for_draw()
            return run_uninterrupted(lambda: self._draw_once(reservation, exact, steps))
        except (LedgerError, LedgerDamaged, LedgerFailure) as error:  # the ledger's own words hold nothing private
            error.__cause__ = error.__context__ = None
            return error.with_traceback(None)
        except Exception as error:
            LOG.error("A question failed after it was charged.", exc_info=error)
            return EngineFailure()
        except BaseException as error:  # an interrupt stays an interrupt, and the request may be run again
            return type(error)(*error.args)

    def _count(self, count: Callable[[bool], Counted]) -> Counted:
        """Exact integers. A run that failed is tried once more, with more memory, before anything else is done."""
        try:
            return count(False)  # the one flag of a callback
        except Exception as error:
            LOG.error("A question failed after it was charged; it is tried once more.", exc_info=error)
        return count(True)  # the one flag of a callback

    def _draw_once(
        self, reservation: Reservation, exact: Counted, steps: DrawSteps[Counted, Drawn]
    ) -> tuple[Drawn, datetime | None]:
        """Claim, draw, record: out of reach of interrupts, and never twice for one charge. And when it may be told."""
        self.ledger.claim(reservation)
        drawn, record = steps.draw(exact)
        not_before = self.times.find_answer_time()
        self.ledger.record_draw(reservation, record, not_before, steps.frames)
        return drawn, not_before

    def _end_run(self, error: BaseException, reservation: Reservation) -> None:
        """Tell the ledger how a run ended without a draw, and wait until the caller may know it."""
        if not isinstance(error, Exception):
            return  # when an interrupt came, the one who sent it knows
        if isinstance(error, EngineFailure):
            try:
                self.times.wait_for_draw()
            finally:
                self._note(self.ledger.fail, reservation)
        else:
            self._note(self.ledger.abandon, reservation)
        self.times.wait_for_answer()

    def _note(self, write: Callable[[Reservation], None], reservation: Reservation) -> None:
        """Tell the ledger how a run ended. A ledger that cannot be told has halted, and the next charge says so."""
        try:
            write(reservation)
        except DiscreetError as error:
            LOG.error("The ledger could not be told how a run ended.", exc_info=error)
