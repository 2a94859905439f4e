"""A ledger that lives as long as its process: for notebooks, tests and first steps. It forgets when Python ends."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from discreet.accounting.filters import Filter
from discreet.errors import InternalError, UsageError
from discreet.exact import Exact
from discreet.ledger.ledger import Charge, Entry, Record
from discreet.privacy import Budget, Neighbours, Unit


class MemoryLedger:
    """Charges against one budget over all analysts, who are assumed to talk to each other.

    Privacy: everything released against accepted charges is together within the budget, also when questions are
    chosen after seeing answers. Why: the charges pass through a filter (see ``accounting.filters``).
    """

    def __init__(self, budget: Budget, *, unit: Unit, neighbours: Neighbours) -> None:
        self.budget = budget
        self._filter = Filter(budget, unit=unit, neighbours=neighbours)
        self._lock = threading.Lock()
        self._entries: dict[str, Entry] = {}
        self._answers: dict[str, Record] = {}

    def replay(self, identity: str) -> Record | None:
        return self._answers.get(identity)

    def fits(self, charge: Charge) -> bool:
        return self._filter.can(charge.loss)

    def reserve(self, charge: Charge) -> None:
        with self._lock:
            if charge.request in self._entries:
                raise UsageError("This request was made before. Use a new request id. Nothing was charged.")
            self._filter.charge(charge.loss)
            self._entries[charge.request] = Entry(number=len(self._entries) + 1, charge=charge, answered=False)

    def commit(self, charge: Charge, record: Record) -> None:
        with self._lock:
            entry = self._entries.get(charge.request)
            if entry is None:
                raise InternalError("An answer without a reservation is never recorded.")
            self._entries[charge.request] = replace(entry, answered=True)
            self._answers[charge.identity] = record

    @property
    def spent(self) -> Exact:
        return self._filter.spent

    @property
    def remaining(self) -> Exact:
        return self._filter.remaining

    def history(self) -> Sequence[Entry]:
        return tuple(self._entries.values())
