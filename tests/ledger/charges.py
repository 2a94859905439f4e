"""Charges to test ledgers with, and ledgers to charge."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

from discreet.accounting import events as ev
from discreet.accounting.account import compose
from discreet.ledger.base_ledger import BaseLedger
from discreet.ledger.ledger import Charge, Record
from discreet.ledger.memory import MemoryLedger
from discreet.ledger.policy import Policy
from discreet.ledger.sqlite import SQLiteLedger
from discreet.privacy import Budget, Loss

ONE = Budget(epsilon=1)
TERMS: dict[str, Any] = {"dataset": "hospital", "unit": "patient_id", "neighbours": "add-remove"}


@lru_cache(maxsize=256)
def laplace(epsilon: Fraction) -> tuple[tuple[ev.Event, ...], Loss]:
    events = (ev.Laplace(sensitivity=1, scale=1 / epsilon, unit="patient_id"),)
    return events, compose(events).loss


def charge(request: str, epsilon: Fraction | str = "1/10", **other: Any) -> Charge:
    """A charge of a pure ε; its question and identity follow from the request unless they are told."""
    events, loss = laplace(Fraction(epsilon))
    known = {
        "request": request,
        "analyst": "ana",
        "dataset": "hospital",
        "identity": f"identity of {request}",
        "question": f"question of {request}",
        "events": events,
        "loss": loss,
    }
    return Charge(**{**known, **other})


class Clock:
    """A clock that a test sets."""

    def __init__(self, year: int = 2030, month: int = 1, day: int = 1) -> None:
        self.now = datetime(year, month, day, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def move(self, **by: float) -> None:
        self.now += timedelta(**by)


Opener = Callable[..., BaseLedger]


def open_sqlite(path: Path, budget: Budget = ONE, policy: Policy | None = None, **other: Any) -> SQLiteLedger:
    return SQLiteLedger.open(path / "hospital.ledger", budget=budget, policy=policy, **{**TERMS, **other})


def open_memory(_: Path, budget: Budget = ONE, policy: Policy | None = None, **other: Any) -> MemoryLedger:
    return MemoryLedger(budget, policy=policy, **{**TERMS, **other})


def replayed(book: BaseLedger, identity: str = "identity of r") -> Record | None:
    """The answer that the ledger has for a release."""
    found = book.replay(identity)
    return None if found is None else found.record
