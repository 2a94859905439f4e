"""Charges, draws and answers as a store has them on record, each checked against the hash in the log."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from discreet.errors import LedgerDamaged
from discreet.late_dataclass import dataclass
from discreet.ledger import chain
from discreet.ledger.ledger import Record, Reservation
from discreet.ledger.store import ReservationRow, Store


@dataclass(frozen=True, slots=True)
class RecordReader:
    """Reads what a store holds. What does not fit its hash is refused."""

    store: Store

    def read_reservation(self, row: ReservationRow, ledger: str) -> Reservation:
        """A charge with what was drawn and answered for it, as far as it came."""
        return Reservation(
            ledger=ledger,
            number=row.number,
            hash=chain.digest(next(self.store.read_lines(row.number))[1]),
            analyst=row.analyst,
            request=row.request,
            record=None if row.answered is None else self.read_answer(row),
            draw=None if row.drawn is None else self._read_draw(row),
            not_before=None if row.drawn is None else self._read_not_before(row.drawn),
        )

    def read_answer(self, row: ReservationRow) -> Record:
        """The recorded answer, checked against the hash in the log."""
        text = row.answer or ""
        if row.answered is None or self.read_record(row.answered).get("answer") != chain.digest(text):
            raise LedgerDamaged("A recorded answer was changed. See `discreet help ledger`. Nothing was charged.")
        return _read_json(text)

    def _read_draw(self, row: ReservationRow) -> Record:
        """What was drawn, checked against the hash in the log."""
        text = row.draw or ""
        if row.drawn is None or self.read_record(row.drawn).get("draw") != chain.digest(text):
            raise LedgerDamaged("A recorded draw was changed. See `discreet help ledger`. Nothing was charged.")
        return _read_json(text)

    def _read_not_before(self, drawn: int) -> datetime | None:
        text = self.read_record(drawn).get("not_before")
        return None if text is None else chain.time_from_text(text)

    def read_record(self, number: int) -> dict[str, Any]:
        """One line of the log, read."""
        found = next(self.store.read_lines(number), None)
        if found is None or found[0] != number:
            raise LedgerDamaged("An entry of the ledger is missing. See `discreet help ledger`. Nothing was charged.")
        return _read_json(found[1])


def _read_json(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    return found
