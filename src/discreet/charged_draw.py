"""One charge, one draw: the order of reserving, counting, claiming, drawing and recording, for whatever is drawn.

Privacy: nothing is counted before the charge stands, and what is drawn under it is drawn once, whatever interrupts,
crashes and retries come between (see ``ledger.ledger``). What leaves here was drawn, or is one of our own errors
without a trace that leads to exact numbers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from discreet.answer_times import AnswerTimes
from discreet.errors import DiscreetError, EngineFailure, LedgerDamaged, LedgerError, LedgerFailure
from discreet.late_dataclass import dataclass
from discreet.ledger.ledger import Charge, Ledger, Record, Reservation
from discreet.uninterrupted import run_uninterrupted

LOG = logging.getLogger("discreet.curator")

T = TypeVar("T")

CHARGE_STANDS = "The charge stands and is on record. Asking the same again, at the same price, is free."
"""What an interrupt after a charge says beside itself."""


@dataclass(frozen=True, slots=True)
class ChargedDraw:
    """A charge, the ledger that takes it, and the times at which its caller may learn something."""

    ledger: Ledger
    charge: Charge
    times: AnswerTimes

    def run(self, count: Callable[[bool], T], draw: Callable[[T], Record]) -> tuple[Reservation, Record]:
        """What is drawn for the charge, or was drawn for it before.

        ``count`` reads data; its flag asks for more memory. ``draw`` turns what was counted into released numbers, as
        plain JSON values. It is called at most once, and so is ``count`` but for one more try where it fails.
        """
        held: list[Reservation] = []
        try:
            run_uninterrupted(lambda: held.append(self.ledger.reserve(self.charge)))
            return held[0], self._find_draw(held[0], count, draw)
        except Exception:
            raise
        except BaseException as interrupt:  # the same request may go on at once
            for reservation in held:
                self._note(self.ledger.abandon, reservation)
                interrupt.add_note(CHARGE_STANDS)
            raise

    def _find_draw(self, reservation: Reservation, count: Callable[[bool], T], draw: Callable[[T], Record]) -> Record:
        if reservation.draw is not None:
            self.times.clock.wait_until(reservation.not_before)
            return reservation.draw
        outcome = self._count_and_draw(reservation, count, draw)
        if isinstance(outcome, BaseException):
            self._end_run(outcome, reservation)
            raise outcome
        return outcome

    def _count_and_draw(
        self, reservation: Reservation, count: Callable[[bool], T], draw: Callable[[T], Record]
    ) -> Record | BaseException:
        """What was drawn, or the error that the caller may see. It is handed back: no trace leads to exact numbers."""
        try:
            exact = self._count(count)
            self.times.wait_for_draw()
            drawn = run_uninterrupted(lambda: self._draw_once(reservation, exact, draw))
            self.times.wait_for_answer()
        except (LedgerError, LedgerDamaged, LedgerFailure) as error:  # the ledger's own words hold nothing private
            error.__cause__ = error.__context__ = None
            return error.with_traceback(None)
        except Exception as error:
            LOG.error("A release failed after it was charged.", exc_info=error)
            return EngineFailure()
        except BaseException as error:  # an interrupt stays an interrupt, and the request may be run again
            return type(error)(*error.args)
        return drawn

    def _count(self, count: Callable[[bool], T]) -> T:
        try:
            return count(False)  # the one flag of a callback
        except Exception as error:
            LOG.error("A release failed after it was charged; it is tried once more.", exc_info=error)
        return count(True)  # the one flag of a callback

    def _draw_once(self, reservation: Reservation, exact: T, draw: Callable[[T], Record]) -> Record:
        """Claim, draw, record: out of reach of interrupts, and never twice for one charge."""
        self.ledger.claim(reservation)
        drawn = draw(exact)
        self.ledger.record_draw(reservation, drawn, self.times.find_answer_time())
        return drawn

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
