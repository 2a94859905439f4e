"""The small tables that statements join with: public groups, listed values, weights. Public facts, as Arrow tables."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import Any

from discreet.bounding.contributions import BoundedPlan, Counts, Measure, group_cap
from discreet.engines.steps import collect_steps
from discreet.errors import InternalError
from discreet.plan.arrow import make_arrow_array
from discreet.plan.evaluate import settle
from discreet.plan.types import Type, Value

# A unit in more groups than this adds no weight at all, which is less than it may.
MOST_WEIGHTS = 1 << 20


def make_lookups(bounded: BoundedPlan) -> dict[str, Any]:
    """The tables of a question by name: ``domain``, ``weights``, and ``listed0`` … for steps that are positions."""
    found: dict[str, Any] = {}
    if bounded.keys and bounded.domain is not None:
        found["domain"] = make_groups_table(bounded, list_public(bounded), coded=True)
    for number, steps in enumerate(collect_steps(bounded)):
        if steps.values is not None:
            found[f"listed{number}"] = _make_listed_table(steps.values, steps.argument.type)
    if bounded.unit is not None and any(m.counts is Counts.WEIGHT for m in bounded.measures):
        found["weights"] = _make_weights_table(bounded)
    return found


def list_public(bounded: BoundedPlan) -> tuple[tuple[Value, ...], ...]:
    """The public groups, each once, in the order of their numbers."""
    return tuple(dict.fromkeys(bounded.domain or ()))


def make_groups_table(bounded: BoundedPlan, keys: Sequence[tuple[Value, ...]], *, coded: bool = False) -> Any:
    """Groups as columns k0 …, with their positions as codes if asked for."""
    import pyarrow as pa

    columns = {}
    for i, key in enumerate(bounded.keys):
        columns[f"k{i}"] = make_arrow_array([settle(row[i], key.type) for row in keys], key.type)
    if coded:
        columns["code"] = make_arrow_array(range(len(keys)), Type.INTEGER)
    return pa.table(columns)


def weights(measure: Measure, most: int) -> list[int]:
    """⌊√(last²/g)⌋ for g = 1 … most, in whole numbers."""
    return [isqrt(measure.last * measure.last // g) for g in range(1, most + 1)]


def _make_weights_table(bounded: BoundedPlan) -> Any:
    """For each number of groups g what a unit adds to each of them: w0 …, by the position of the measure."""
    import pyarrow as pa

    cap = group_cap(bounded)
    if cap is None:
        raise InternalError("Weights without a cap on groups.")
    most = min(cap, MOST_WEIGHTS)
    columns = {"g": make_arrow_array(range(1, most + 1), Type.INTEGER)}
    for i, measure in enumerate(bounded.measures):
        if measure.counts is Counts.WEIGHT:
            columns[f"w{i}"] = make_arrow_array(weights(measure, most), Type.INTEGER)
    return pa.table(columns)


def _make_listed_table(values: Sequence[Value], kind: Type) -> Any:
    """Each value once, with its first position."""
    import pyarrow as pa

    cells = {settle(value, kind): cell for cell, value in reversed(tuple(enumerate(values)))}
    columns = {
        "listed": make_arrow_array(list(cells), kind),
        "cell": make_arrow_array(list(cells.values()), Type.INTEGER),
    }
    return pa.table(columns)
