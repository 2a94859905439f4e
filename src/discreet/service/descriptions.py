"""What the service says about a dataset and its charges, as plain values: public facts and released numbers alone."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.accounting import events
from discreet.accounting.cost_words import describe_cost
from discreet.exact import float_down, float_up
from discreet.ledger.amount_text import dump_budget
from discreet.plan.times import from_days

if TYPE_CHECKING:
    from discreet.curator import Curator
    from discreet.ledger.ledger import Entry
    from discreet.plan.catalog import ColumnFacts, Link, TableFacts
    from discreet.plan.types import Type
    from discreet.service.tokens import Token


CODEBOOK_SCHEMA = "/codebook.schema.json"
"""Where the service has the JSON Schema of codebooks."""


def describe_dataset(curator: Curator, description: str) -> dict[str, Any]:
    """The public facts that the codebook declares."""
    return {
        "name": curator.name,
        "description": description,
        "codebook_schema": CODEBOOK_SCHEMA,
        "neighbours": str(curator.catalog.neighbours),
        "unit": curator.catalog.unit.column,
        "budget": str(curator.budget),
        "budget_terms": dump_budget(curator.budget),
        "remaining": curator.remaining,
        "tables": [_describe_table(table) for table in curator.catalog.tables.values()],
    }


def describe_budget(curator: Curator, odds: str) -> dict[str, Any]:
    """What is left, in numbers and in words, and what the whole budget means for one unit.

    ``left`` of ``whole`` is in the budget's own terms. ``share`` is the part that shares may still be asked for: prices
    are told in it, so that whoever paid 5 of 100 has 95 left.
    """
    from discreet.remaining_budget import RemainingBudget  # with the curator, so late

    return {
        "share": float_down(RemainingBudget(curator.ledger).share),
        "left": float_down(curator.ledger.remaining),
        "whole": float_up(curator.budget.amount()),
        "words": curator.remaining,
        "odds": odds,
    }


def describe_entry(curator: Curator, entry: Entry) -> dict[str, Any]:
    """One charge of the history."""
    charge = entry.charge
    return {
        "number": entry.number,
        "time": entry.time,
        "analyst": charge.analyst,
        "project": charge.project,
        "request": charge.request,
        "question": charge.question,
        "cost": describe_cost(curator.budget, charge.loss),
        "answered": entry.answered,
        "mechanisms": [events.dump(event) for event in charge.events],
    }


def describe_token(token: Token, now: datetime) -> dict[str, Any]:
    """What is known of a token. Its secret is not."""
    state = "revoked" if token.revoked else "valid" if token.is_valid(now) else "ended"
    return {
        "id": token.id,
        "name": token.name,
        "role": str(token.role),
        "project": token.project,
        "per_query": None if token.per_query is None else str(token.per_query),
        "state": state,
        "created": token.created.isoformat(timespec="seconds"),
        "expires": token.expires.isoformat(timespec="seconds"),
    }


def _describe_table(table: TableFacts) -> dict[str, Any]:
    return {
        "name": table.name,
        "public": table.public,
        "protects": None if table.public else str(table.unit),
        "owner": table.owner,
        "foreign_keys": [_describe_link(link) for link in table.keys],
        "reaches_unit_by": None if table.link is None else _describe_link(table.link),
        "size": table.size,
        "limits": _describe_facts(table.limits),
        "columns": [_describe_column(name, kind, facts) for name, (kind, facts) in table.columns.items()],
    }


def _describe_link(link: Link) -> dict[str, Any]:
    """A declared foreign key: which columns refer to which of another table."""
    return {"columns": list(link.columns), "parent": link.parent, "keys": list(link.keys)}


def _describe_column(name: str, kind: Type, facts: ColumnFacts) -> dict[str, Any]:
    described = {"name": name, "type": str(kind), **_describe_facts(facts)}
    if kind.is_time and facts.low is not None and facts.high is not None:
        described |= {"low": from_days(facts.low, kind), "high": from_days(facts.high, kind)}
    return described


def _describe_facts(facts: Any) -> dict[str, Any]:
    """The members of a value that say something."""
    stated = ((each.name, getattr(facts, each.name)) for each in fields(facts))
    return {name: _to_plain(value) for name, value in stated if value is not None}


def _to_plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    return list(value) if isinstance(value, tuple) else value
