"""The protocol of a store: the place where a ledger keeps its lines, reservations and leases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from discreet.late_dataclass import dataclass
from discreet.ledger.chain import Head


class ReservationRow(NamedTuple):
    """A reservation as the store finds it again: the line that made it, and how far it came.

    ``claimed``, ``drawn`` and ``answered`` are the lines that say so; ``draw`` and ``answer`` are the texts whose
    hashes the latter two hold.
    """

    number: int
    analyst: str
    request: str
    identity: str
    answered: int | None = None
    answer: str | None = None
    claimed: int | None = None
    drawn: int | None = None
    draw: str | None = None


@dataclass(frozen=True, slots=True)
class Lease:
    """The owner that runs a reservation now; until a time (seconds since 1970) nobody else should run it."""

    owner: str
    until: float


class Store(Protocol):
    """Lines, reservations and leases, changed in transactions of one writer at a time.

    Between ``begin`` and ``commit`` nobody else writes, and every read sees all that was committed before. ``commit``
    returns only when the changes would survive a loss of power. Any error of these methods halts the ledger, except
    ``RequestInFlight`` (another writer keeps the lock for too long).
    """

    def begin(self, *, write: bool) -> None:
        """Start a transaction; with ``write``, wait until nobody else writes."""
        ...

    def commit(self) -> None:
        """Make the changes durable."""
        ...

    def rollback(self) -> None:
        """Forget the changes; also after a failure of any kind."""
        ...

    def read_head(self) -> tuple[int, str]:
        """The number and hash of the last line, as the store recorded them beside it."""
        ...

    def read_lines(self, first: int) -> Iterator[tuple[int, str]]:
        """The lines from a number on, in order."""
        ...

    def read_reservations(self) -> Iterator[ReservationRow]:
        """Every reservation, in the order of their lines."""
        ...

    def append(self, number: int, line: str, digest: str) -> None:
        """Add a line, which becomes the head."""
        ...

    def add_reservation(self, row: ReservationRow) -> None:
        """Store a reservation."""
        ...

    def find_by_request(self, analyst: str, request: str) -> ReservationRow | None:
        """The reservation with this request id of this analyst."""
        ...

    def find_by_identity(self, identity: str) -> list[ReservationRow]:
        """The reservations of the same question on the same data, oldest first."""
        ...

    def find_by_number(self, number: int) -> ReservationRow | None:
        """The reservation that a line made."""
        ...

    def add_claim(self, number: int, claimed: int) -> None:
        """Note that line ``claimed`` took the one draw of a reservation."""
        ...

    def add_draw(self, number: int, drawn: int, draw: str) -> None:
        """Keep what was drawn for a reservation; line ``drawn`` has its hash."""
        ...

    def add_answer(self, number: int, answered: int, answer: str) -> None:
        """Keep the answer to a reservation; line ``answered`` has its hash."""
        ...

    def find_lease(self, number: int) -> Lease | None:
        """The lease of a reservation; None where nobody runs it."""
        ...

    def set_lease(self, number: int, lease: Lease | None) -> None:
        """Set who runs a reservation; None where nobody does."""
        ...

    def note_head(self, head: Head) -> None:
        """Receive the new head after lines were committed, outside of the transaction."""
        ...

    def check(self) -> None:
        """The store's own check of its file; LedgerDamaged where it finds something."""
        ...

    def close(self) -> None:
        """Close the file or the connection."""
        ...
