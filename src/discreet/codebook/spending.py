"""Checks what a codebook says about spending: the budget, its caps, the names of who may ask, and the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from urllib.parse import parse_qsl

from discreet.codebook.entries import OTHERS, BudgetEntry, Document, did_you_mean
from discreet.errors import Problem
from discreet.parameters import MAX_EPSILON
from discreet.privacy import PAYABLE

CAPS = ("per_query", "per_day", "per_week", "per_month", "per_year")
DATABASES = ("postgresql://", "postgres://")
_LONGEST_NAME = 200


def find_problems(document: Document) -> Iterator[Problem]:
    """Problems of the budget, its caps, the names of who may ask, and the place of the ledger."""
    yield from _check_budget(document.budget)
    for word in CAPS:
        amount: Fraction | None = getattr(document.budget, word)
        if amount is not None:
            yield from _check_cap(f"budget.{word}", amount, document.budget)
    for word in ("analyst", "project"):
        yield from _check_names(word, document)
    if document.budget.stops == "analyst" and document.analysts is None:
        fix = "List the analysts, or leave it out: without a list, names are whatever is typed."
        yield Problem("budget.stops", 'is "analyst", and no analysts are listed', fix)
    if document.ledger is not None:
        yield from _check_ledger(document.ledger)


def _check_budget(budget: BudgetEntry) -> Iterator[Problem]:
    forms = "Write epsilon = 1, or epsilon = 1 with delta = 1e-9, or rho = 0.1, or mu = 0.5."
    stated = [word for word in PAYABLE if getattr(budget, word) is not None]
    if not stated:
        yield Problem("budget", "must say how much may be spent", forms)
    if len(stated) > 1:
        yield Problem("budget", f"must be given in one form, not in {' and '.join(stated)} both", forms)
    if budget.delta is not None and budget.epsilon is None:
        yield Problem("budget.delta", "goes with epsilon only", forms)
    for word in PAYABLE:
        yield from _check_amount(f"budget.{word}", getattr(budget, word))
    if budget.delta is not None and not 0 <= budget.delta < 1:
        fix = "Give a probability far below one over the number of people, for example delta = 1e-9."
        yield Problem("budget.delta", "must be at least 0 and below 1", fix)


def _check_amount(path: str, value: Fraction | None) -> Iterator[Problem]:
    if value is not None and not 0 < value <= MAX_EPSILON:
        word = path.rpartition(".")[2]
        yield Problem(path, f"must be above 0 and at most {MAX_EPSILON:,}", f"Write {word} = 1.")


def _check_cap(path: str, amount: Fraction, budget: BudgetEntry) -> Iterator[Problem]:
    wrong = list(_check_amount(path, amount))
    yield from wrong
    total = next((whole for word in PAYABLE if (whole := getattr(budget, word))), None)
    if not wrong and total is not None and amount > total:
        yield Problem(path, "is larger than the whole budget", "Give less than the budget, or leave it out.")


def _check_names(word: str, document: Document) -> Iterator[Problem]:
    """Names must be printable. Where a list of names exists, caps by name must be for names on it."""
    names: tuple[str, ...] | None = getattr(document, f"{word}s")
    caps: dict[str, Fraction] = getattr(document.budget, f"per_{word}") or {}
    if any(not _is_name(name) for name in (*(names or ()), *caps)):
        fix = f"Give names of 1 to {_LONGEST_NAME} printable characters; {OTHERS!r} is for everyone else in a cap."
        yield Problem(f"{word}s", "hold something that is not a name", fix)
    if names is not None and OTHERS in names:
        yield Problem(
            f"{word}s", f"list {OTHERS!r}, which stands for everyone else", "Leave the list out to allow all."
        )
    for name, amount in caps.items():
        path = f"budget.per_{word}" if name == OTHERS else f"budget.per_{word}.{name}"
        yield from _check_cap(path, amount, document.budget)
        if names is not None and name not in (OTHERS, *names):
            fix = did_you_mean(name, names) if names else f"Add the name to {word}s."
            yield Problem(path, f"is a cap for somebody who is not among {word}s", fix)


def _is_name(name: str) -> bool:
    return 0 < len(name) <= _LONGEST_NAME and name.isprintable()


def _check_ledger(place: str) -> Iterator[Problem]:
    """The ledger must be a local file, or a database without a password here, because a codebook is public."""
    form = 'Write ledger = "postgresql://host/database", or a file such as "hospital.ledger".'
    scheme = next((scheme for scheme in DATABASES if place.lower().startswith(scheme)), None)
    if scheme is None:
        if "://" in place or "=" in place or "\0" in place or not place.strip():
            yield Problem("ledger", "is neither a local file nor a PostgreSQL address", form)
        return
    if not place.startswith(scheme) or not place.isprintable() or " " in place:
        yield Problem("ledger", "is not a PostgreSQL address", form)
    address, _, options = place.removeprefix(scheme).partition("?")
    secret = ":" in address.rpartition("@")[0]
    if secret or any("password" in name.lower() for name, _ in parse_qsl(options, keep_blank_values=True)):
        fix = "Leave it out; PostgreSQL finds it in the environment (PGPASSWORD) or in a file (PGPASSFILE, ~/.pgpass)."
        yield Problem("ledger", "holds a password, and a codebook is public", fix)
