"""Answers of engines, as something that can be compared."""

from __future__ import annotations

from dataclasses import replace

from discreet.bounding.contributions import BoundedPlan
from discreet.engines.engine import Groups, key_order
from discreet.plan.types import Value

Key = tuple[Value, ...]
Sums = dict[Key, tuple[int, ...]]


def as_dict(groups: Groups) -> Sums:
    """The integers by group; groups of zeros alone may be missing in an answer, so they are left out here."""
    assert list(groups.keys) == sorted(groups.keys, key=key_order), "groups are not in key order"
    rows = {key: tuple(column[i] for column in groups.values) for i, key in enumerate(groups.keys)}
    assert len(rows) == len(groups.keys), "a group appears twice"
    return {key: values for key, values in rows.items() if any(values)}


def uncapped(bounded: BoundedPlan) -> BoundedPlan:
    """The same question with limits that nothing reaches."""
    if bounded.unit is None:
        return bounded
    measures = tuple(m if m.max_values is None else replace(m, max_values=10_000) for m in bounded.measures)
    return replace(bounded, measures=measures, max_groups=10_000, max_rows_per_group=10_000, max_rows=None)
