"""Answers and their receipts, as they are made from a draw, put on record, and given again.

Everything here is a function of released numbers and public facts. So making it, keeping it and giving it is free.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from discreet.accounting import events
from discreet.accounting.account import compose
from discreet.accounting.cost_words import describe_cost
from discreet.answer import Answer, read_rows
from discreet.draw_record import dump_draws, load_draws
from discreet.entropy import SimulationSource
from discreet.explanation import BEYOND, explain, list_chosen, list_clamped, list_limits
from discreet.finish import finish
from discreet.ledger.ledger import Ledger, Record, Reservation
from discreet.plan.show import show
from discreet.privacy import Budget
from discreet.quote import Quote
from discreet.recorded_release import RecordedPlan, find_in_record
from discreet.release import NoisyGroups, Plan, format_level


def make_answer(
    plan: Plan,
    drawn: Sequence[NoisyGroups],
    quoted: Quote,
    reservation: Reservation,
    *,
    dataset: str,
    budget: Budget,
    remaining: str,
    time: datetime,
) -> Answer:
    """What follows from noisy numbers: nothing private is in reach."""
    whole = {} if len(quoted.plans) == 1 else {"batch": describe_cost(budget, quoted.loss)}
    receipt = {
        "request": reservation.request,
        "dataset": dataset,
        "analyst": reservation.analyst,
        "time": time.isoformat(timespec="seconds"),
        "protects": f"{plan.unit} ({plan.neighbours})",
        "cost": describe_cost(budget, plan.loss),
        "loss": budget.loss_to_dict(plan.loss),
        "mechanisms": [events.dump(event) for event in plan.events],
        **_describe_finish(plan),
        "limits": list_limits(plan),
        "clamped": list_clamped(plan),
        "interval": BEYOND,
        **whole,
        "ledger": {"ledger": reservation.ledger, "number": reservation.number, "hash": reservation.hash},
    }
    return _finish(plan, drawn, receipt, budget, remaining)


def to_record(answers: tuple[Answer, ...]) -> dict[str, Any]:
    """What goes on record: an answer as it is, a batch as a list."""
    records = [answer.record() for answer in answers]
    return records[0] if len(records) == 1 else {"batch": records}


def holds_answers(record: Record) -> bool:
    """Whether a record is that of a question; releases, series and bounds that were bought have others."""
    return all("columns" in one and "receipt" in one for one in record.get("batch", [record]))


def read_record(record: Record, remaining: str) -> tuple[Answer, ...]:
    """The answers on record, as they were given."""
    return tuple(read_answer(one, remaining) for one in record.get("batch", [record]))


Known: TypeAlias = Reservation | tuple[tuple[Reservation, RecordedPlan], ...]
"""A charge for the same release, or for each question a charge with what of its draws answers it."""


def find_known(quoted: Quote, ledger: Ledger, analyst: str | None) -> Known | None:
    """What is on record of the same release, or of draws that hold all of it: of one analyst, or of all of them."""
    same = ledger.replay(quoted.identity, analyst)
    if same is not None:
        return same
    known = []
    for plan, frames in zip(quoted.plans, quoted.frames):
        drawn = ledger.find_draws(frames[0], analyst)
        pairs = ((each, find_in_record(plan, frames, each.draw or {})) for each in drawn)
        found = next(((each, fitted) for each, fitted in pairs if fitted is not None), None)
        if found is None:
            return None
        known.append(found)
    return tuple(known)


def answer_known(known: Known, quoted: Quote, *, budget: Budget, remaining: str) -> tuple[Answer, ...]:
    """The answers that follow from what is on record."""
    if isinstance(known, Reservation):
        return _answer_again(known, quoted, budget, remaining)
    return tuple(_answer_from(each, fitted, budget, remaining) for each, fitted in known)


def _answer_again(reservation: Reservation, quoted: Quote, budget: Budget, remaining: str) -> tuple[Answer, ...]:
    """The answers on record, of one question or of a batch; finished anew where something else is asked."""
    record = reservation.record or {}
    records = record.get("batch", [record])
    if reservation.draw is None:  # recorded before draws were
        return read_record(record, remaining)
    draws = load_draws(reservation.draw, quoted.plans)
    return tuple(
        _finish_again(one, plan, drawn, budget, remaining) for one, plan, drawn in zip(records, quoted.plans, draws)
    )


def _answer_from(reservation: Reservation, found: RecordedPlan, budget: Budget, remaining: str) -> Answer:
    """An answer that follows from what was drawn for another question, under the receipt of that charge."""
    record = reservation.record or {}
    receipt = record.get("batch", [record])[found.place]["receipt"]
    return _finish_again({"receipt": receipt}, found.plan, found.drawn, budget, remaining)


def _finish_again(record: Record, plan: Plan, drawn: Sequence[NoisyGroups], budget: Budget, remaining: str) -> Answer:
    asked = _describe_finish(plan)
    if "columns" in record and record["receipt"] | asked == record["receipt"]:
        return read_answer(record, remaining)
    return _finish(plan, drawn, record["receipt"] | asked, budget, remaining, replayed=True)


def _finish(
    plan: Plan,
    drawn: Sequence[NoisyGroups],
    receipt: Mapping[str, Any],
    budget: Budget,
    remaining: str,
    *,
    replayed: bool = False,
) -> Answer:
    return Answer(
        rows=finish(plan, drawn, source=_make_simulation(drawn, plan)),
        spent=plan.loss,
        remaining=remaining,
        receipt=receipt,
        explanation=explain(plan, budget),
        replayed=replayed,
    )


def read_answer(record: Record, remaining: str) -> Answer:
    """The answer that ``Answer.record`` wrote."""
    receipt = record["receipt"]
    return Answer(
        rows=read_rows(record),
        spent=compose([events.load(event) for event in receipt["mechanisms"]]).loss,
        remaining=remaining,
        receipt=receipt,
        explanation=record["explanation"],
        replayed=True,
    )


def _make_simulation(drawn: Sequence[NoisyGroups], plan: Plan) -> SimulationSource:
    """The bits from which intervals are simulated: those of the draw, so that equal questions have equal ends."""
    return SimulationSource(json.dumps(dump_draws((tuple(drawn),), [plan])).encode())


def _describe_finish(plan: Plan) -> dict[str, Any]:
    """What was asked of the draw, for people and exactly: equal values mean equal rows."""
    exactly, chosen = f"{plan.question!r} at {plan.level}", list_chosen(plan)
    return {
        "question": show(plan.question),
        "level": format_level(plan.level),
        **({"chosen": chosen} if chosen else {}),
        "finish": hashlib.sha256(exactly.encode()).hexdigest(),
    }
