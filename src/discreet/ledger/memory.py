"""A ledger in memory, for notebooks, tests and first steps. It is lost when Python ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Self

from discreet.ledger.base_ledger import LEASE, BaseLedger
from discreet.ledger.chain import START, Head
from discreet.ledger.ledger_terms import LedgerTerms
from discreet.ledger.policy import Policy
from discreet.ledger.store import Lease, ReservationRow
from discreet.privacy import Budget, Neighbours, Unit


class MemoryStore:
    """A store that keeps its lines in a list. No write can fail, so there is nothing to roll back."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._head = (-1, START)
        self._rows: dict[int, ReservationRow] = {}
        self._requests: dict[tuple[str, str], int] = {}
        self._identities: dict[str, list[int]] = {}
        self._leases: dict[int, Lease] = {}

    def begin(self, *, write: bool) -> None:
        """Nothing to do: memory belongs to one process, and its ledger has one leader."""

    def commit(self) -> None:
        """Nothing to do: changes are made at once."""

    def rollback(self) -> None:
        """Nothing to do: a refusal has changed nothing."""

    def read_head(self) -> tuple[int, str]:
        return self._head

    def read_lines(self, first: int) -> Iterator[tuple[int, str]]:
        return iter(list(enumerate(self._lines[first:], first)))

    def read_reservations(self) -> Iterator[ReservationRow]:
        return iter([row for _, row in sorted(self._rows.items())])

    def append(self, number: int, line: str, digest: str) -> None:
        self._lines.append(line)
        self._head = (number, digest)

    def add_reservation(self, row: ReservationRow) -> None:
        self._rows[row.number] = row
        self._requests[row.analyst, row.request] = row.number
        self._identities.setdefault(row.identity, []).append(row.number)

    def find_by_request(self, analyst: str, request: str) -> ReservationRow | None:
        number = self._requests.get((analyst, request))
        return None if number is None else self._rows[number]

    def find_by_identity(self, identity: str) -> list[ReservationRow]:
        return [self._rows[number] for number in self._identities.get(identity, [])]

    def find_by_number(self, number: int) -> ReservationRow | None:
        return self._rows.get(number)

    def add_answer(self, number: int, answered: int, answer: str) -> None:
        self._rows[number] = self._rows[number]._replace(answered=answered, answer=answer)

    def find_lease(self, number: int) -> Lease | None:
        return self._leases.get(number)

    def set_lease(self, number: int, lease: Lease | None) -> None:
        if lease is None:
            self._leases.pop(number, None)
        else:
            self._leases[number] = lease

    def note_head(self, head: Head) -> None:
        """Nothing to do."""

    def check(self) -> None:
        """Nothing to do: there is no file."""

    def close(self) -> None:
        """Nothing to do."""


class MemoryLedger(BaseLedger):
    """Charges against one budget over all analysts, who are assumed to talk to each other.

    Privacy: as stated in ``ledger.Ledger``, while the process lives. Why: the charges pass through a filter, and what
    is forgotten at the end was released within the budget.
    """

    def __init__(
        self,
        budget: Budget,
        *,
        unit: Unit | str | None,
        neighbours: Neighbours | str,
        dataset: str = "",
        policy: Policy | None = None,
        clock: Callable[[], datetime] | None = None,
        lease: float = LEASE,
    ) -> None:
        super().__init__(MemoryStore(), clock=clock, lease=lease)
        self.write_opening(
            LedgerTerms.read(dataset=dataset, budget=budget, unit=unit, neighbours=neighbours, policy=policy)
        )

    @classmethod
    def on(cls, terms: LedgerTerms) -> Self:
        """A new ledger on these terms."""
        return cls(
            terms.budget, unit=terms.unit, neighbours=terms.neighbours, dataset=terms.dataset, policy=terms.policy
        )

    def close(self) -> None:
        """Nothing to do: the history can still be read."""
