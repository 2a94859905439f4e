"""Questions and series of a release: priced with its tables, drawn under its charge.

*Statement.* The one charge of a release holds the events of its tables, of all its questions and of all its series; all
of them are rounded normal noise, and their μ² add up to what was offered. Each question and series gets the mechanism
that the curator would give it at its part of μ², with the same limits and sensitivities. What is drawn goes on lines of
its own in the ledger, which cost nothing and buy one draw each, and which name the plan that pays. So a crash anywhere
leads to no second draw and to no second charge.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from discreet.accounting import events
from discreet.accounting.account import compose
from discreet.answer import Answer
from discreet.curator import Curator
from discreet.errors import InternalError, RequestConflict, UsageError
from discreet.late_dataclass import dataclass
from discreet.ledger.ledger import Charge
from discreet.preview import Preview
from discreet.privacy import Budget
from discreet.publish.plan_entries import SeriesEntry
from discreet.publish.release_plan import ReleasePlan
from discreet.quote import Quote
from discreet.series.opening_series import open_reserved_series
from discreet.series.running_series import RunningSeries


@dataclass(frozen=True)
class PricedParts:
    """The questions and series of a plan at their prices; both may be none."""

    plan: ReleasePlan
    quoted: Quote | None
    series: tuple[RunningSeries, ...]
    budget: Budget

    @property
    def events(self) -> tuple[events.Event, ...]:
        """What is charged for them."""
        asked = () if self.quoted is None else self.quoted.events
        return (*asked, *(each.event for each in self.series))

    @property
    def digest(self) -> str:
        """A name for everything that is drawn under the charge beside tables."""
        facts = [] if self.quoted is None else [self.quoted.identity]
        return hashlib.sha256("\n".join([*facts, *(each.identity for each in self.series)]).encode()).hexdigest()

    def answer(self, curator: Curator, main: Charge) -> tuple[Answer, ...]:
        """The answers to all questions, drawn once under the release's charge."""
        if self.quoted is None:
            return ()
        charge = make_free_line(main, "questions", curator)
        try:
            return curator.answer_quoted(replace(self.quoted, identity=charge.identity), charge)
        except RequestConflict as error:
            raise UsageError("The questions of this release were drawn for another plan or other data.") from error

    def release_series(self, curator: Curator, main: Charge) -> None:
        """Draw what the plan releases of each series; what was drawn before stays."""
        check_paid(main, curator)
        for entry, series in zip(self.plan.series, self.series):
            for period in range(count_released(entry)):
                series.release(period)

    def describe(self) -> list[str]:
        """What the parts are and how exact they would be, a line for each."""
        lines = []
        for entry, plan in zip(self.plan.questions, () if self.quoted is None else self.quoted.plans):
            shown = Preview(plan=plan, budget=self.budget, fits=True, remaining="")
            errors = "; ".join(f"{column.name} {column.words()}" for column in shown.columns)
            lines.append(f"question  {entry.name}: {errors}")
        for own, series in zip(self.plan.series, self.series):
            told = series.preview()
            lines.append(
                f"series    {own.name}: {own.periods} periods, ± {told.first_error:.4g} in the first, "
                f"± {told.last_error:.4g} in the last"
            )
        return lines


def check_paid(main: Charge, curator: Curator) -> None:
    """Nothing is drawn for nothing unless the charge that pays for it is on record."""
    if curator.ledger.find_paid(main.identity, main.analyst) is None:
        raise InternalError("A part of a release was to be drawn before it was charged.")


def make_free_line(main: Charge, what: str, curator: Curator) -> Charge:
    """A line of the ledger for one draw that ``main`` pays for; it must stand already."""
    check_paid(main, curator)
    identity = hashlib.sha256(f"{main.identity}\n{what}".encode()).hexdigest()
    free = events.Pure(epsilon=0, unit=curator.catalog.unit, neighbours=curator.catalog.neighbours)
    return replace(
        main,
        request=f"{main.request}: {what}",
        identity=identity,
        question=f"{what} of {main.question!r} ({identity})",
        events=(free,),
        loss=compose([free]).loss,
        paid="0",
    )


def count_released(entry: SeriesEntry) -> int:
    """How many periods of a series the bundle has."""
    found = entry.periods if entry.released is None else entry.released
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= entry.periods:
        raise UsageError(f"released of the series {entry.name!r} is at most its periods. Nothing was charged.")
    return found


def price_parts(
    plan: ReleasePlan, curator: Curator, shares: Sequence[Fraction], analyst: str, project: str
) -> PricedParts:
    """The questions and series of a plan, each at its part of μ². Nothing is read or charged."""
    asked, counted = shares[: len(plan.questions)], shares[len(plan.questions) :]
    quoted = None
    if plan.questions:
        quoted = curator.quote_at([entry.sql for entry in plan.questions], asked, level=plan.level, analyst=analyst)
    series = [
        open_plan_series(plan, entry, curator, analyst=analyst, project=project, reserved=share)
        for entry, share in zip(plan.series, counted)
    ]
    for entry in plan.series:
        count_released(entry)
    return PricedParts(plan, quoted, tuple(series), curator.budget)


def open_plan_series(
    plan: ReleasePlan, entry: SeriesEntry, curator: Curator, *, analyst: str, project: str, reserved: Fraction | None
) -> RunningSeries:
    """A series of a plan, at the part of μ² that is reserved for it, or as it was recorded."""
    question = curator.read_question(entry.question)
    choices: dict[str, Any] = entry.choices | {"level": plan.level, "analyst": analyst, "project": project}
    name, payer = f"{plan.name} / {entry.name}", f"publish: {plan.name} ({plan.digest})"
    return open_reserved_series(curator, question, name=name, payer=payer, reserved=reserved, **choices)
