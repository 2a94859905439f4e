"""What was drawn, as plain JSON values and back: the part of a release that is on record before anything else.

Keys are written by their types, and integers as texts, so that every reader of JSON sees them whole. Nothing in it is
private: it is what the mechanisms gave out.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from discreet.plan.types import Type, Value
from discreet.release import NoisyGroups, Plan

Draws: TypeAlias = tuple[tuple[NoisyGroups, ...], ...]
"""For each plan of a quote, and each of its groupings, what was drawn."""


def dump_draws(draws: Draws) -> dict[str, Any]:
    """Draws as plain values, for the ledger."""
    return {"plans": [[_dump_groups(groups) for groups in plan] for plan in draws]}


def load_draws(record: Mapping[str, Any], plans: Sequence[Plan]) -> Draws:
    """The draws that ``dump_draws`` wrote, for the plans that they were drawn for."""
    return tuple(
        tuple(
            load_groups(groups, [key.type for key in release.bounded.bounded.keys])
            for groups, release in zip(written, plan.releases, strict=True)
        )
        for written, plan in zip(record["plans"], plans, strict=True)
    )


def _dump_groups(groups: NoisyGroups) -> dict[str, Any]:
    return {
        "keys": [[to_plain(value) for value in key] for key in groups.keys],
        "measures": {str(position): [str(value) for value in values] for position, values in groups.measures.items()},
        "chosen": _dump_cells(groups.chosen),
        **({"ends": _dump_cells(groups.ends)} if groups.ends else {}),
    }


def load_groups(record: Mapping[str, Any], kinds: Sequence[Type]) -> NoisyGroups:
    """What was drawn for one grouping, whose keys are of these kinds."""
    return NoisyGroups(
        keys=tuple(tuple(map(from_plain, key, kinds)) for key in record["keys"]),
        measures={
            int(position): np.array([int(value) for value in values], dtype=object)
            for position, values in record["measures"].items()
        },
        chosen=_load_cells(record["chosen"]),
        ends=_load_cells(record.get("ends", {})),
    )


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
