"""The protocol of spending: reserve durably, run, commit durably, release.

A reservation is a charge. It is made before any data is read, and it is never refunded: a question that fails is still
charged, because the failure itself may reveal something. Three things cost nothing, because they reveal nothing new:

- the same question on the same data again: the recorded answer is returned;
- the same request again, after its answer was lost: the recorded answer is returned;
- the same request again, after it failed: it is run again under its charge. The first run released nothing, so there
  is still one release for one charge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from discreet.accounting.events import Event
from discreet.exact import Exact
from discreet.privacy import Budget, Loss

Record = Mapping[str, Any]
"""An answer as plain JSON values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """A question and what it costs.

    ``request`` is the caller's name for it, unique for the analyst; a retry has the same. ``identity`` is the same for
    the same question on the same data. ``project`` and ``version`` (of the data) are recorded where they are given.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A charge that is recorded in line ``number`` of the log; ``hash`` is the hash of that line.

    ``record`` is the answer, where the request was answered before; then nothing new was charged.
    """

    ledger: str
    number: int
    hash: str
    record: Record | None = None


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

    def replay(self, identity: str) -> Record | None:
        """The answer already given to the same question on the same data."""
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

    def abandon(self, reservation: Reservation) -> None:
        """Record that the run failed, so that a retry need not wait. The charge stays."""
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
