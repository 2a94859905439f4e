"""Reads the history: turns a line of the log back into the charge that it recorded."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from discreet.accounting import events as ev
from discreet.accounting.account import compose
from discreet.ledger.ledger import Charge, Entry
from discreet.ledger.store import ReservationRow
from discreet.privacy import Loss


def entry_of(line: str, row: ReservationRow, dataset: str) -> Entry:
    """The entry of a reservation."""
    record = json.loads(line)
    events = tuple(ev.load(event) for event in record["events"])
    charge = Charge(
        request=record["request"],
        analyst=record["analyst"],
        dataset=dataset,
        identity=record["identity"],
        question=record["question"],
        events=events,
        loss=loss_of(events),
        project=record["project"],
        version=record["version"],
        paid=record.get("paid", ""),
    )
    return Entry(number=row.number, charge=charge, answered=row.answered is not None, time=record["time"])


@lru_cache(maxsize=4096)
def loss_of(events: tuple[ev.Event, ...]) -> Loss:
    """What these events cost together."""
    return compose(events).loss


@lru_cache(maxsize=4096)
def describe_events(events: tuple[ev.Event, ...]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Events as plain values, and what they cost together in every notion, in words."""
    return [ev.dump(event) for event in events], {notion.kind: notion.words() for notion in loss_of(events).notions}
