"""The protocol of spending: reserve durably, run, commit durably, deliver.

A reservation is a charge. It is made before any data is read and it is never taken back: a question that fails half-way
has still been paid for, because the failure itself may tell something. The same question on the same data is answered
from the record, for free: repeating what was already said reveals nothing.
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
    """What a question costs and what it is: ``identity`` is the same for the same question on the same data."""

    request: str
    analyst: str
    dataset: str
    identity: str
    question: str
    events: tuple[Event, ...]
    loss: Loss


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the history: who asked what, what it cost, and whether it was answered. Never a true value."""

    number: int
    charge: Charge
    answered: bool


class Ledger(Protocol):
    """Where charges and answers are kept. Members: ``memory.MemoryLedger``."""

    budget: Budget

    def replay(self, identity: str) -> Record | None:
        """The answer already given to the same question on the same data."""
        ...

    def fits(self, charge: Charge) -> bool:
        """Whether a charge would be accepted now."""
        ...

    def reserve(self, charge: Charge) -> None:
        """Record a charge before any data is read, or refuse it (BudgetExceeded, nothing recorded)."""
        ...

    def commit(self, charge: Charge, record: Record) -> None:
        """Record the answer to a reserved charge; only then may it be handed out."""
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
