"""What is computed over some rows of one unit, as a function of their values: the meaning of each ``Feature``.

Sums and means of reals are taken in whole steps, a power of two that is so small, compared with the largest value, that
a double could hardly tell (the rule is in ``plan.real_steps``). So a feature never depends on how rows are stored, and
an engine need not hold or sort the rows of a unit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Any, assert_never

from discreet.errors import InternalError
from discreet.plan.evaluate import RowValues, evaluate, settle
from discreet.plan.real_steps import PARTS, count_steps, find_summed, is_stepped
from discreet.plan.relations import Feature, FeatureCall, RowFrame
from discreet.plan.types import Value


def compute_feature(compute: FeatureCall, rows: Sequence[RowValues]) -> Value:
    """A feature of all rows of a part. NULLs do not count; without values the result is NULL, or a count of 0."""
    argument = find_summed(compute)
    if argument is None:
        if compute.feature is not Feature.COUNT:
            raise InternalError(f"{compute.feature} of nothing.")
        return len(rows)
    values: list[Any] = [value for row in rows if (value := evaluate(argument, row)) is not None]
    if compute.feature is Feature.COUNT:
        return len(values)
    if compute.feature is Feature.COUNT_DISTINCT:
        return len(set(values))
    if not values:
        return None
    if is_stepped(compute):
        return _sum_in_steps(compute, values, _count_steps(compute, values))
    return settle(_reduce_values(compute, values), compute.type)


def _reduce_values(compute: FeatureCall, values: list[Any]) -> Any:
    match compute.feature:
        case Feature.SUM:
            return sum(values)
        case Feature.MEAN:
            return float(sum(values)) / float(len(values))
        case Feature.MEDIAN:
            return _middle(sorted(map(float, values)))
        case Feature.MIN:
            return min(values)
        case Feature.MAX:
            return max(values)
        case Feature.ANY:
            return any(values)
        case Feature.ALL:
            return all(values)
        case Feature.COUNT | Feature.COUNT_DISTINCT:
            raise InternalError(f"{compute.feature} is counted before.")
        case Feature.ROW_NUMBER | Feature.RANK | Feature.DENSE_RANK | Feature.LAG | Feature.LEAD:
            raise InternalError(f"{compute.feature} is for windows only.")
        case _:
            assert_never(compute.feature)


def _middle(ordered: list[float]) -> float:
    count = len(ordered)
    low, high = ordered[(count - 1) // 2], ordered[count // 2]
    return low if low == high else (low + high) / 2


def compute_window_feature(
    compute: FeatureCall, ordered: Sequence[RowValues], ranks: Sequence[tuple[Value, ...]]
) -> list[Value]:
    """A feature for each row of one part. ``ranks`` are the values that rows are ordered by; equal ones are peers.

    Without an order all rows are peers, so running sums and counts are those of the whole part.
    """
    count = len(ordered)
    if compute.feature is Feature.ROW_NUMBER:
        return list(range(1, count + 1))
    if compute.feature in (Feature.RANK, Feature.DENSE_RANK):
        return _rank_rows(ranks, dense=compute.feature is Feature.DENSE_RANK)
    if compute.feature in (Feature.LAG, Feature.LEAD):
        if compute.argument is None:
            raise InternalError(f"{compute.feature} of nothing.")
        away = compute.offset if compute.feature is Feature.LEAD else -compute.offset
        values = [evaluate(compute.argument, row) for row in ordered]
        return [values[i + away] if 0 <= i + away < count else None for i in range(count)]
    stepped: list[Value] | None = None
    argument = find_summed(compute)
    if argument is not None and is_stepped(compute):
        stepped = [evaluate(argument, row) for row in ordered]

    def compute_over(rows: slice) -> Value:
        return compute_feature(compute, ordered[rows]) if stepped is None else _sum_frame(compute, stepped, rows)

    if compute.frame is not None:
        return [compute_over(_find_rows(compute.frame, i, count)) for i in range(count)]
    found: list[Value] = []
    for _, peers in groupby(ranks):
        together = len(list(peers))
        found += [compute_over(slice(0, len(found) + together))] * together
    return found


def _find_rows(frame: RowFrame, place: int, count: int) -> slice:
    """The rows of a frame around the row at a place, of so many."""
    first = 0 if frame.first is None else max(0, place + frame.first)
    last = count if frame.last is None else max(0, place + frame.last + 1)
    return slice(first, max(first, last))


def _sum_frame(compute: FeatureCall, values: Sequence[Any], rows: slice) -> Value:
    """A sum or a mean of some reals of a part, in the steps of the whole part."""
    frame = [value for value in values[rows] if value is not None]
    return _sum_in_steps(compute, frame, _count_steps(compute, [v for v in values if v is not None])) if frame else None


def _count_steps(compute: FeatureCall, values: Sequence[float]) -> float:
    """How many steps make up 1: by a public size, or else by the largest of the values."""
    return count_steps(max(map(abs, values)) if compute.size is None else compute.size)


def _sum_in_steps(compute: FeatureCall, values: Sequence[float], scale: float) -> Value:
    """A sum or a mean of reals, each in whole steps and parts of a step."""
    products = [value * scale for value in values]
    steps = sum(map(math.trunc, products))
    parts = sum(math.trunc((product - math.trunc(product)) * PARTS) for product in products)
    if compute.feature is Feature.SUM:
        carry, rest = _cut(parts, PARTS)
        total = _make_double(steps + carry) + rest * (1 / PARTS)
    else:
        whole, left = _cut(steps, len(values))
        total = _make_double(whole * PARTS + _cut(left * PARTS + parts, len(values))[0]) * (1 / PARTS)
    return settle(total / scale, compute.type)


def _cut(number: int, by: int) -> tuple[int, int]:
    """Quotient and remainder, towards zero."""
    quotient, remainder = divmod(abs(number), by)
    return (quotient, remainder) if number >= 0 else (-quotient, -remainder)


def _make_double(number: int) -> float:
    """An integer of up to 126 bits as a double: its halves as doubles, put together."""
    high, low = _cut(number, 2**63)
    return high * 2.0**63 + low


def _rank_rows(ranks: Sequence[tuple[Value, ...]], *, dense: bool) -> list[Value]:
    found: list[Value] = []
    for place, (_, peers) in enumerate(groupby(ranks), start=1):
        found += [place if dense else len(found) + 1] * len(list(peers))
    return found
