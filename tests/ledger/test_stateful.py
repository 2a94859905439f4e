"""Any order of operations, crashes included, against a model of fifty lines."""

from __future__ import annotations

import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from discreet.errors import BudgetExceeded, RequestConflict, RequestInFlight
from discreet.ledger.ledger import Reservation
from discreet.ledger.policy import Policy, period_of
from discreet.ledger.sqlite import SQLiteLedger
from discreet.privacy import Budget
from tests.ledger.charges import Clock, charge, open_sqlite

ANALYSTS = st.sampled_from(["ana", "ben"])
REQUESTS = st.sampled_from([f"r{i}" for i in range(12)])
COSTS = st.sampled_from([Fraction(1, 10), Fraction(1, 3), Fraction(1, 7), Fraction(1, 2)])
ANALYST_CAP, MONTH_CAP = Fraction(2), Fraction(1)


class Model:
    """What a ledger should do, as plainly as it can be said."""

    def __init__(self) -> None:
        self.limit = Fraction(3)
        self.charges: list[tuple[str, Fraction, str]] = []
        self.bodies: dict[tuple[str, str], tuple[str, Fraction]] = {}
        self.answers: dict[tuple[str, str], Any] = {}
        self.running: set[tuple[str, str]] = set()

    def reserve(self, analyst: str, request: str, question: str, cost: Fraction, month: str) -> str:
        key = (analyst, request)
        if key in self.bodies:
            if self.bodies[key] != (question, cost):
                return "conflict"
        else:
            twins = [k for k, body in self.bodies.items() if k[0] == analyst and body == (question, cost)]
            open_twins = [k for k in twins if k not in self.answers]
            if open_twins:
                key = open_twins[0]
        if key in self.answers:
            return "answered"
        if key in self.running:
            return "in flight"
        if key not in self.bodies:
            mine = sum((c for a, c, _ in self.charges if a == analyst), cost)
            monthly = sum((c for _, c, m in self.charges if m == month), cost)
            if self.spent() + cost > self.limit or mine > ANALYST_CAP or monthly > MONTH_CAP:
                return "exceeded"
            self.bodies[key] = (question, cost)
            self.charges.append((analyst, cost, month))
        self.running.add(key)
        return "run"

    def spent(self) -> Fraction:
        return sum((cost for _, cost, _ in self.charges), Fraction(0))


class Machine(RuleBasedStateMachine):
    """Drives a SQLite ledger and the model side by side."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.clock, self.model = Clock(), Model()
        self.latest = self.clock.now
        self.held: dict[tuple[str, str], Reservation] = {}
        self.book = self.open()

    def open(self) -> SQLiteLedger:
        policy = Policy.of(per_analyst=ANALYST_CAP, per_month=MONTH_CAP)
        book = open_sqlite(Path(self.folder.name), Budget(epsilon=self.model.limit), policy, clock=self.clock)
        book._store.connection.execute("PRAGMA synchronous = OFF")  # crashes here are of the process alone
        return book

    def teardown(self) -> None:
        self.book.scan()
        self.book.close()
        self.folder.cleanup()

    @rule(analyst=ANALYSTS, request=REQUESTS, question=st.sampled_from("pq"), cost=COSTS)
    def reserve(self, analyst: str, request: str, question: str, cost: Fraction) -> None:
        self.latest = max(self.latest, self.clock.now)
        month = period_of("month", self.latest.isoformat())
        asked = charge(request, cost, analyst=analyst, question=question, identity=f"{question} {cost}")
        fits = self.book.fits(asked)
        expected = self.model.reserve(analyst, request, question, cost, month)
        assert expected != "exceeded" or not fits
        try:
            held = self.book.reserve(asked)
            found = "run" if held.record is None else "answered"
        except RequestConflict:
            found = "conflict"
        except RequestInFlight:
            found = "in flight"
        except BudgetExceeded:
            found = "exceeded"
        assert found == expected
        if found == "run":
            key = next(k for k in self.model.running if k not in self.held or self.held[k].number == held.number)
            self.held[key] = held
        elif found == "answered":
            assert held.record == self.model.answers[analyst, request]

    @precondition(lambda self: self.held)
    @rule(data=st.data(), value=st.integers())
    def commit(self, data: st.DataObject, value: int) -> None:
        key = data.draw(st.sampled_from(sorted(self.held)))
        self.book.commit(self.held.pop(key), {"value": value})
        self.model.answers[key] = {"value": value}
        self.model.running.discard(key)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.held)))
        self.book.abandon(self.held.pop(key))
        self.model.running.discard(key)

    @rule()
    def crash(self) -> None:
        self.book.close()  # the process is gone, and with it everything that it was running
        self.held.clear()
        self.model.running.clear()
        self.book = self.open()

    @rule(days=st.integers(-400, 40))
    def pass_time(self, days: int) -> None:
        self.clock.move(days=days)
        for key, held in list(self.held.items()):  # leases do not outlive such jumps, so these runs are given up
            self.book.abandon(held)
            self.model.running.discard(key)
        self.held.clear()

    @rule(limit=st.sampled_from([Fraction(1), Fraction(3), Fraction(5)]))
    def amend(self, limit: Fraction) -> None:
        self.book.amend(budget=Budget(epsilon=limit), by="cora", reason="a test")
        self.latest = max(self.latest, self.clock.now)
        self.model.limit = limit

    @invariant()
    def sums_agree(self) -> None:
        spent = self.model.spent()
        assert self.book.spent == spent
        assert self.book.remaining == max(Fraction(0), self.model.limit - spent)
        assert len(self.book.history()) == len(self.model.charges)


TestMachine = Machine.TestCase
TestMachine.settings = settings(
    max_examples=40, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
