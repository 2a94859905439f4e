"""The arithmetic of spending under audit: whatever is accepted must fit, counted anew and by other means.

A budget is filled until it refuses. What was accepted is then summed here, or composed exactly. An owner's changes
(amend, a restored backup) must not make anything unspent.
"""

from __future__ import annotations

import math
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

from discreet.accounting import events
from discreet.accounting.account import compose
from discreet.accounting.filters import Filter
from discreet.accounting.spending_classes import ClassCurrency
from discreet.audit.findings import Finding, Verdict
from discreet.errors import BudgetExceeded
from discreet.exact import decimal
from discreet.ledger.base_ledger import BaseLedger
from discreet.ledger.ledger import Charge
from discreet.ledger.memory import MemoryLedger
from discreet.ledger.policy import Policy
from discreet.ledger.sqlite import SQLiteLedger, restore
from discreet.privacy import Budget

_MOST = 400
_TENTH = events.Pure(epsilon=Fraction(1, 10))
_WHY = "audit"


def check_spending() -> Iterator[Finding]:
    """All checks of sums, caps and an owner's changes."""
    checks: list[tuple[str, Callable[[], str], str]] = [
        ("ledger: δ is counted", lambda: find_delta_overspent(_fill_ledger), "the sum of δ stays within the budget's"),
        ("filter: δ is counted", lambda: find_delta_overspent(_fill_filter), "the sum of δ stays within the budget's"),
        ("ledger: noise is counted", lambda: find_overspent(_fill_ledger), "exact composition stays within budgets"),
        ("filter: noise is counted", lambda: find_overspent(_fill_filter), "exact composition stays within budgets"),
        ("filter: classes share δ", find_overlapping_classes, "each class is within ε at its own δ, which sum to δ"),
        ("ledger: caps are kept", find_cap_overspent, "each analyst is stopped at the cap"),
        ("ledger: amend keeps what is spent", find_forgetful_amendment, "over the dataset and for each analyst"),
        ("ledger: restore keeps what is spent", find_forgetful_restore, "what the lost file had stays spent"),
    ]
    for name, find, good in checks:
        start = time.monotonic()
        problem = find()
        yield Finding(
            name=name,
            method="machinery",
            verdict=Verdict.BROKEN if problem else Verdict.HOLDS,
            detail=problem or good,
            seconds=time.monotonic() - start,
        )


def _make_charge(number: int, event: events.Event, analyst: str = "auditor") -> Charge:
    name = f"question {number}"
    return Charge(
        request=name,
        analyst=analyst,
        dataset="audit",
        identity=name,
        question=name,
        events=(event,),
        loss=compose([event]).loss,
    )


def _open(budget: Budget, policy: Policy | None = None) -> MemoryLedger:
    return MemoryLedger(budget, unit=None, neighbours="add-remove", dataset="audit", policy=policy)


def _fill_ledger(budget: Budget, event: events.Event) -> int:
    """How many equal charges a ledger accepts."""
    return _count_charges(_open(budget), event)


def _count_charges(ledger: BaseLedger, event: events.Event, analyst: str = "auditor") -> int:
    first = len(ledger.history())
    for number in range(_MOST):
        try:
            ledger.reserve(_make_charge(first + number, event, analyst))
        except BudgetExceeded:
            return number
    return _MOST


def _fill_filter(budget: Budget, event: events.Event) -> int:
    """How many equal charges a filter accepts."""
    counted = Filter(budget)
    for number in range(_MOST):
        try:
            counted.charge(event)
        except BudgetExceeded:
            return number
    return _MOST


def find_delta_overspent(fill: Callable[[Budget, events.Event], int]) -> str:
    """Whether charges with a δ of their own are accepted beyond the budget's δ."""
    budget, small = Budget(epsilon=10, delta=1e-6), Fraction(1, 10**8)
    costs: tuple[events.Event, ...] = (
        events.Approximate(epsilon=Fraction(1, 100), delta=small),
        events.ZeroConcentrated(rho=Fraction(1, 10_000), delta=small),
    )
    for event in costs:
        accepted = fill(budget, event)
        if not accepted:
            return "a charge that fits was refused"
        if accepted * small > budget.slack():
            return f"{accepted} charges with δ = {float(small):g} were accepted within δ = {float(budget.slack()):g}"
    return ""


def find_overspent(fill: Callable[[Budget, events.Event], int]) -> str:
    """Whether more is accepted than the budget allows, by certified bounds on the composition of what was accepted."""
    laplace, gaussian = events.Laplace(sensitivity=1, scale=10), events.Gaussian(sensitivity=1, sigma=20)
    cases: tuple[tuple[Budget, events.Event, tuple[float, float]], ...] = (
        (Budget(epsilon=1, delta=1e-6), gaussian, (1.0, 1e-6)),
        (Budget(epsilon=1, delta=1e-6), laplace, (1.0, 1e-6)),
    )
    for budget, event, (epsilon, delta) in cases:
        accepted = fill(budget, event)
        if not accepted:
            return "a charge that fits was refused"
        low, _ = compose([event.times(accepted)]).bounds(delta)
        if low > epsilon * (1 + 1e-9):
            return f"{accepted} of {event!r} cost ε = {low:.4g} at least, at δ = {delta:g}; the budget is {epsilon:g}"
    # What adds up without any conversion: ε of Laplace noise; ρ and μ² of Gaussian noise, 1/800 and 1/400.
    for budget, limit, event, own in (
        (Budget(epsilon=1), Fraction(1), laplace, Fraction(1, 10)),
        (Budget(rho=Fraction(1, 4)), Fraction(1, 4), gaussian, Fraction(1, 800)),
        (Budget(mu=Fraction(1, 2)), Fraction(1, 4), gaussian, Fraction(1, 400)),
    ):
        accepted = fill(budget, event)
        if accepted * own != limit:
            return f"{accepted} of {event!r} were accepted within {budget!r}"
    return ""


def find_overlapping_classes() -> str:
    """Whether the classes of an (ε, δ) filter have more δ together than there is, or a limit too large for their own.

    Any one of them may hold at the end, so their δ add up. Each is filled with one Gaussian release here, of which the
    exact ε at the δ of the class must be within the budget.
    """
    for epsilon, delta in ((Fraction(1, 2), Fraction(1, 10**5)), (Fraction(3), Fraction(1, 10**6))):
        currency = ClassCurrency.of(Budget(epsilon=epsilon, delta=delta))
        given = currency.failure + sum((decimal(each.delta) for each in currency.classes), Fraction(0))
        if given > delta:
            return f"classes and failures have δ = {float(given):.4g} together, the budget has {float(delta):.4g}"
        for each in currency.classes:
            if each.name == "epsilon":
                least = each.limit
            else:
                mu_squared = 2 * each.limit / each.gaussian
                filled = events.Gaussian(sensitivity=1, sigma=1 / math.sqrt(mu_squared))
                least = Fraction(compose([filled]).bounds(each.delta)[0])
            if least > epsilon * (1 + Fraction(1, 10**9)):
                return f"the class {each.name} allows ε = {float(least):.4g} at its δ, the budget is {float(epsilon):g}"
    return ""


def find_cap_overspent() -> str:
    """Whether an analyst can spend more than the cap, or the cap of one stops another."""
    ledger = _open(Budget(epsilon=1), Policy.of(per_analyst=Fraction(3, 10)))
    accepted = [_count_charges(ledger, _TENTH, analyst) for analyst in ("one", "two")]
    return "" if accepted == [3, 3] else f"with a cap of 3 tenths analysts spent {accepted} tenths"


def find_forgetful_amendment() -> str:
    """Whether a change of budget or policy makes something unspent, at once or when the ledger is opened again."""
    with tempfile.TemporaryDirectory(prefix="discreet-audit-") as folder:
        path = Path(folder) / "amended.ledger"
        with _open_on_disk(path) as ledger:
            for number in range(6):
                ledger.reserve(_make_charge(number, _TENTH))
            ledger.amend(budget=Budget(epsilon=2), by=_WHY, reason=_WHY)
            problem = _find_remaining(ledger, Fraction(14, 10))
            ledger.amend(policy=Policy.of(per_analyst=Fraction(7, 10)), by=_WHY, reason=_WHY)
            problem = problem or _find_remaining(ledger, Fraction(14, 10))
        with SQLiteLedger.open_existing(path) as ledger:
            accepted = _count_charges(ledger, _TENTH)
            problem = problem or ("" if accepted == 1 else f"{accepted} tenths fit a cap with one tenth left")
            return problem or _find_remaining(ledger, Fraction(13, 10))


def find_forgetful_restore() -> str:
    """Whether what was spent after a backup is there again when the backup takes the ledger's place."""
    with tempfile.TemporaryDirectory(prefix="discreet-audit-") as folder:
        path, backup = Path(folder) / "restored.ledger", Path(folder) / "backup.ledger"
        with _open_on_disk(path) as ledger:
            for number in range(5):
                ledger.reserve(_make_charge(number, _TENTH))
            ledger.backup(backup)
            for number in range(5, 9):
                ledger.reserve(_make_charge(number, _TENTH))
        for end in ("-wal", "-shm"):
            path.with_name(path.name + end).unlink(missing_ok=True)
        shutil.copyfile(backup, path)
        restore(path, by=_WHY, reason=_WHY)
        with SQLiteLedger.open_existing(path) as ledger:
            return _find_remaining(ledger, Fraction(1, 10))


def _open_on_disk(path: Path) -> SQLiteLedger:
    return SQLiteLedger.open(path, dataset="audit", budget=Budget(epsilon=1), unit=None, neighbours="add-remove")


def _find_remaining(ledger: BaseLedger, right: Fraction) -> str:
    left = ledger.remaining
    return "" if left == right else f"{float(left):g} is left where {float(right):g} should be"
