"""Answers, charges, bounds and limits from the records that a server sends: the same values as at home."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from discreet.accounting import events
from discreet.accounting.account import compose
from discreet.accounting.pure import PureNotion
from discreet.answer import Answer, read_rows
from discreet.bound_search import Bounds, Contributions
from discreet.ledger.ledger import Charge, Entry
from discreet.plan.catalog import Catalog
from discreet.privacy import Loss


def read_received(record: Mapping[str, Any], catalog: Catalog) -> Answer:
    """An answer as the server gave it."""
    return Answer(
        rows=read_rows(record),
        spent=find_loss(record["receipt"]["mechanisms"], catalog),
        remaining=record["remaining"],
        receipt=record["receipt"],
        explanation=record["explanation"],
        replayed=record["replayed"],
    )


def find_loss(mechanisms: list[Mapping[str, Any]], catalog: Catalog) -> Loss:
    """What mechanisms cost together; nothing where there are none."""
    if not mechanisms:
        return Loss((PureNotion(Fraction(0)),), catalog.unit, catalog.neighbours)
    return compose([events.load(event) for event in mechanisms]).loss


def read_entry(described: Mapping[str, Any], dataset: str, catalog: Catalog) -> Entry:
    """One charge of the history. What identifies the release stays with the server."""
    charged = tuple(events.load(event) for event in described["mechanisms"])
    charge = Charge(
        request=described["request"],
        analyst=described["analyst"],
        dataset=dataset,
        identity="",
        question=described["question"],
        events=charged,
        loss=find_loss(described["mechanisms"], catalog),
        project=described["project"],
    )
    return Entry(number=described["number"], charge=charge, answered=described["answered"], time=described["time"])


def read_bounds(document: Mapping[str, Any], catalog: Catalog) -> Bounds:
    """Bounds that were bought."""
    return Bounds(
        of=document["of"],
        low=document["low"],
        high=document["high"],
        above=document["above"],
        doubt=Fraction(document["doubt"]),
        answer=read_received(document["answer"], catalog),
    )


def read_contributions(document: Mapping[str, Any], catalog: Catalog) -> Contributions:
    """Limits that were bought."""
    return Contributions(
        of=document["of"],
        by=tuple(document["by"]),
        share=None if document["share"] is None else Fraction(document["share"]),
        rows=document["max_rows"],
        groups=document["max_groups"],
        rows_per_group=document["max_rows_per_group"],
        answer=read_received(document["answer"], catalog),
        above=document["above"],
    )
