"""What is computed over some rows of one unit, as a function of their values: the meaning of each ``Feature``.

Sums of reals are taken one by one in ascending order, in doubles. So a feature never depends on how rows are stored.
Running sums of reals are taken in whole steps instead: a power of two that is so small, compared with the largest value
of the part, that a double could hardly tell. Nobody can sort all values anew for every row of a long part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from itertools import groupby
from operator import add
from typing import Any, assert_never

from discreet.errors import InternalError
from discreet.plan.evaluate import RowValues, evaluate, settle
from discreet.plan.relations import Feature, FeatureCall
from discreet.plan.types import Type, Value


def compute_feature(compute: FeatureCall, rows: Sequence[RowValues]) -> Value:
    """A feature of all rows of a part. NULLs do not count; without values the result is NULL, or a count of 0."""
    if compute.argument is None:
        if compute.feature is not Feature.COUNT:
            raise InternalError(f"{compute.feature} of nothing.")
        return len(rows)
    values: list[Any] = [value for row in rows if (value := evaluate(compute.argument, row)) is not None]
    if compute.feature is Feature.COUNT:
        return len(values)
    if compute.feature is Feature.COUNT_DISTINCT:
        return len(set(values))
    return settle(_reduce_values(compute, values), compute.type) if values else None


def _reduce_values(compute: FeatureCall, values: list[Any]) -> Any:
    match compute.feature:
        case Feature.SUM:
            return _total(values)
        case Feature.MEAN:
            return float(_total(values)) / float(len(values))  # of integers, the exact sum
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


def _total(values: list[Any]) -> Any:
    """The sum, exact for integers. For reals it starts with the smallest; ``sum`` would correct what doubles lose."""
    return reduce(add, sorted(values))


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
    found: list[Value] = []
    steps = _step(compute, ordered) if any(ranks) else None
    for _, peers in groupby(ranks):
        together = len(list(peers))
        frame = ordered[: len(found) + together]
        found += [compute_feature(compute, frame) if steps is None else _sum_in_steps(compute, frame, steps)] * together
    return found


def _step(compute: FeatureCall, part: Sequence[RowValues]) -> float | None:
    """How many steps make up 1, for sums of reals over the rows of a part; None for all other features."""
    argument = compute.argument
    if argument is None or argument.type is not Type.REAL or compute.feature not in (Feature.SUM, Feature.MEAN):
        return None
    sizes = [abs(value) for row in part if isinstance(value := evaluate(argument, row), float)]
    largest = max(sizes, default=0.0)
    return 2.0 ** min(77 - math.floor(math.log2(largest)), 1000) if largest else 1.0


def _sum_in_steps(compute: FeatureCall, rows: Sequence[RowValues], steps: float) -> Value:
    """A sum or a mean of reals, each in whole steps towards zero."""
    values: list[Any] = [] if compute.argument is None else [evaluate(compute.argument, row) for row in rows]
    whole = [math.trunc(value * steps) for value in values if value is not None]
    if not whole:
        return None
    sign = -1 if sum(whole) < 0 else 1
    high, low = divmod(abs(sum(whole)), 2**63)
    total = (sign * high * 2.0**63 + sign * low) / steps
    return settle(total / len(whole) if compute.feature is Feature.MEAN else total, compute.type)


def _rank_rows(ranks: Sequence[tuple[Value, ...]], *, dense: bool) -> list[Value]:
    found: list[Value] = []
    for place, (_, peers) in enumerate(groupby(ranks), start=1):
        found += [place if dense else len(found) + 1] * len(list(peers))
    return found
