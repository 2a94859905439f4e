"""The protocol of spending: reserve durably, run, commit durably, release.

A reservation is a charge. It is made before any data is read, and it is never refunded: a question that fails is still
charged, because the failure itself may reveal something. Three things cost nothing, because they reveal nothing new:

- what follows from draws that are on record, for the same analyst: it is finished from them;
- the same request again, after its answer got lost on the way: the recorded answer is given out;
- the same request again, after it failed before its noise was drawn: it is run again under the charge that stands.

One charge buys one draw. Before the noise is drawn, the charge is *claimed*, which nobody can do twice; what was drawn
is put on record before anything is computed from it. So a retry either finds nothing claimed, and runs; or finds what
was drawn, and finishes from that; or finds a claim whose draw never got on record, and is told that it is lost. No
order of interrupts, crashes and retries looks at two draws for one charge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from discreet.accounting.currencies import Currency
from discreet.accounting.events import Event
from discreet.accounting.sums import Price
from discreet.exact import Exact
from discreet.late_dataclass import dataclass
from discreet.privacy import Budget, Loss

Record = Mapping[str, Any]
"""An answer as plain JSON values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """A question and what it costs.

    ``request`` is the caller's name for it, unique for the analyst; a retry has the same. ``identity`` is the same for
    the same question on the same data. ``project`` and ``version`` (of the data) are recorded where they are given.
    ``paid`` is what it was priced at, where that depends on what was left.
    """

    request: str
    analyst: str
    dataset: str
    identity: str
    question: str
    events: tuple[Event, ...]
    loss: Loss
    project: str = ""
    version: str = ""
    paid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A charge that is recorded in line ``number`` of the log; ``hash`` is the hash of that line.

    ``record`` is the answer, where the request was answered before, and ``draw`` what was drawn for it, where it got
    that far; then nothing new was charged, and nothing may be drawn. What was drawn is told ``not_before`` a time.
    """

    ledger: str
    number: int
    hash: str
    analyst: str
    request: str
    record: Record | None = None
    draw: Record | None = None
    not_before: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One charge of the history: who asked what, what it cost, and whether it was answered. It has no true value."""

    number: int
    charge: Charge
    answered: bool
    time: str = ""


class Ledger(Protocol):
    """The record of charges and answers. Members: ``MemoryLedger``, ``SQLiteLedger``, ``PostgresLedger``.

    Privacy: everything released against accepted charges is together within the budget, for the unit and neighbours
    that the ledger names, also when questions are chosen after seeing answers and analysts talk to each other. Why:
    the charges pass one by one through a filter (see ``accounting.filters``), and only answers that ``commit``
    returned are handed out.
    """

    @property
    def budget(self) -> Budget:
        """The most that may be spent."""
        ...

    def replay(self, identity: str, analyst: str | None = None) -> Reservation | None:
        """The charge for the same release on the same data that was answered, with its draw and its answer.

        Of one analyst, or of all of them.
        """
        ...

    def find_draws(self, frame: str, analyst: str | None = None) -> Sequence[Reservation]:
        """The latest answered charges, newest first, for which something was drawn within this frame."""
        ...

    def find_paid(self, identity: str, analyst: str, *, shared: bool = False) -> str | None:
        """What a charge of this analyst for the same release was priced at; of anybody, where answers are shared."""
        ...

    def find_request(self, analyst: str, request: str) -> Reservation | None:
        """The charge of a request of an analyst, with its answer where it was answered."""
        ...

    def fits(self, charge: Charge) -> bool:
        """Whether a charge would be accepted now."""
        ...

    def reserve(self, charge: Charge) -> Reservation:
        """Record a charge before any data is read, or refuse it and record nothing.

        A request that was made before is not charged again: its answer is returned, or it may be run again.
        """
        ...

    def commit(self, reservation: Reservation, record: Record) -> Record:
        """Record the answer to a reserved charge. Only the record that is returned may be released.

        It is the same object, or the answer of another run of the same request where that run was faster.
        """
        ...

    def claim(self, reservation: Reservation) -> None:
        """Take the one draw that a charge buys; refused where it was taken before, or where the ledger is stopped."""
        ...

    def record_draw(
        self, reservation: Reservation, draw: Record, not_before: datetime | None = None, frames: Sequence[str] = ()
    ) -> None:
        """Record what was drawn under a claim, before anything is computed from it, and when it may be told.

        ``frames`` are names by which ``find_draws`` finds it again.
        """
        ...

    def abandon(self, reservation: Reservation) -> None:
        """Say that the run was interrupted, so that a retry need not wait. The charge stands."""
        ...

    def fail(self, reservation: Reservation) -> None:
        """Put a failed run on record, which stops the ledger: nothing is charged until the owner allows it again."""
        ...

    @property
    def counted(self) -> tuple[Currency, Price]:
        """How the budget is counted, and the sums so far."""
        ...

    @property
    def spent(self) -> Exact:
        """What is spent, in the budget's own form, rounded up."""
        ...

    @property
    def remaining(self) -> Exact:
        """What is left, rounded down."""
        ...

    def history(self) -> Sequence[Entry]:
        """Every charge, oldest first."""
        ...

    def close(self) -> None:
        """Close the file or the connection."""
        ...
