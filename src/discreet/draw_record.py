"""What was drawn, as plain JSON values and back: the part of a release that is on record before anything else.

Keys are written by their types, and integers as digits in a text, so that every reader of JSON sees them whole. Nothing
in it is private: it is what the mechanisms gave out.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from discreet.bounding.contributions import BoundedPlan
from discreet.exact import Integers
from discreet.plan.types import Type, Value
from discreet.release import NoisyGroups, Plan, pack_integers

Draws: TypeAlias = tuple[tuple[NoisyGroups, ...], ...]
"""For each plan of a quote, and each of its groupings, what was drawn."""

# Stands on record for the keys of all public groups, in the order of the plan.
PUBLIC_KEYS = "public"


def dump_draws(draws: Draws, plans: Sequence[Plan]) -> dict[str, Any]:
    """Draws as plain values, for the ledger, and the plans that they were drawn for."""
    return {
        "plans": [
            [_dump_groups(groups, release.bounded.bounded) for groups, release in zip(each, plan.releases, strict=True)]
            for each, plan in zip(draws, plans, strict=True)
        ]
    }


def load_draws(record: Mapping[str, Any], plans: Sequence[Plan]) -> Draws:
    """The draws that ``dump_draws`` wrote, for the plans that they were drawn for."""
    return tuple(
        tuple(
            load_groups(groups, release.bounded.bounded) for groups, release in zip(written, plan.releases, strict=True)
        )
        for written, plan in zip(record["plans"], plans, strict=True)
    )


def _dump_groups(groups: NoisyGroups, bounded: BoundedPlan) -> dict[str, Any]:
    """Public groups stand in the plan, and the record does not list them again; the integers of a measure are a text.

    So a million groups are a few texts, and not millions of values.
    """
    public = groups.keys is bounded.domain
    return {
        "keys": PUBLIC_KEYS if public else [[to_plain(value) for value in key] for key in groups.keys],
        "measures": {str(at): " ".join(map(str, values.tolist())) for at, values in groups.measures.items()},
        "chosen": _dump_cells(groups.chosen),
        **({"ends": _dump_cells(groups.ends)} if groups.ends else {}),
    }


def load_groups(record: Mapping[str, Any], bounded: BoundedPlan) -> NoisyGroups:
    """What was drawn for one grouping. It belongs to this plan: names of draws are digests of their groups, too."""
    keys = record["keys"]
    kinds = [key.type for key in bounded.keys]
    return NoisyGroups(
        keys=(bounded.domain or ()) if keys == PUBLIC_KEYS else tuple(tuple(map(from_plain, k, kinds)) for k in keys),
        measures={int(position): _load_integers(values) for position, values in record["measures"].items()},
        chosen=_load_cells(record["chosen"]),
        ends=_load_cells(record.get("ends", {})),
    )


def _load_integers(written: str | Sequence[str]) -> Integers:
    """Integers of any size. Older records have a list of texts."""
    values = [int(value) for value in (written.split() if isinstance(written, str) else written)]
    return pack_integers(values)


def _dump_cells(chosen: Mapping[int, Sequence[Sequence[int]]]) -> dict[str, Any]:
    return {str(position): [[str(cell) for cell in cells] for cells in each] for position, each in chosen.items()}


def _load_cells(record: Mapping[str, Any]) -> dict[int, tuple[tuple[int, ...], ...]]:
    return {int(at): tuple(tuple(int(cell) for cell in cells) for cells in each) for at, each in record.items()}


def to_plain(value: Value) -> Any:
    """A value as JSON has it; dates and times as texts."""
    return value.isoformat() if isinstance(value, dt.date) else value


def from_plain(value: Any, kind: Type) -> Value:
    """The value of a type that ``to_plain`` wrote."""
    if value is None or not kind.is_time:
        return value  # type: ignore[no-any-return]  # JSON has the other types as they are
    return dt.datetime.fromisoformat(value) if kind is Type.TIMESTAMP else dt.date.fromisoformat(value)


def dump_values(values: Sequence[Value], kind: Type) -> list[Any]:
    """Values of one type as JSON has them; dates and times as texts."""
    return list(map(to_plain, values)) if kind.is_time else list(values)


def load_values(values: Sequence[Any], kind: Type) -> tuple[Value, ...]:
    """The values of a type that ``dump_values`` wrote."""
    return tuple(from_plain(value, kind) for value in values) if kind.is_time else tuple(values)
