"""Releases as plain values and back: what was drawn, for the ledger and the bundle, and the columns of a bundle.

Nothing here is private: it is what the mechanism gave out, and what the curator declared.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.draw_record import from_plain, to_plain
from discreet.errors import UsageError
from discreet.exact import Integers
from discreet.plan.expressions import Column
from discreet.plan.types import Type
from discreet.privacy import Neighbours, Unit
from discreet.publish.allocation import Allocation
from discreet.publish.columns import PublishedColumn
from discreet.publish.direct_tables import DirectAllocation
from discreet.publish.measurements import Measurements, StagedScores, combine_stages, to_measurements
from discreet.publish.range_strategies import RangeStrategy, StrategyKind
from discreet.publish.workload import Workload

TABLE = "release"
"""The name under which a bundle's columns are known to questions."""

_LONG = 1 << 63


def dump_measurements(measured: Measurements) -> dict[str, Any]:
    """What was drawn, with everything that gives the numbers their meaning."""
    allocation, workload = measured.allocation, measured.allocation.workload
    vector = np.concatenate([block.reshape(-1) for block in (*measured.noisy.values(), *measured.noisy_fine.values())])
    staged: dict[str, Any] = {}
    if measured.first is not None and measured.scores is not None:
        staged = {"first": dump_measurements(measured.first), "scores": _dump_scores(measured.scores)}
    if measured.priors:
        staged["priors"] = [[list(part), table.reshape(-1).tolist()] for part, table in measured.priors.items()]
    if isinstance(allocation, DirectAllocation):
        staged["direct"] = {"laplace": None if allocation.laplace is None else str(allocation.laplace)}
    return staged | {
        "sizes": list(workload.sizes),
        "weights": [[list(part), weight] for part, weight in workload.weights.items()],
        "fine": [[column, size] for column, size in workload.fine.items()],
        "strategies": [[c, str(s.kind), s.cells, list(s.weights)] for c, s in workload.strategies.items()],
        "multipliers": [[list(part), str(m)] for part, m in allocation.multipliers.items()],
        "fine_multipliers": [[column, str(m)] for column, m in allocation.fine_multipliers.items()],
        "variance": str(allocation.variance),
        "steps": str(allocation.steps),
        "max_rows": str(allocation.max_rows),
        "neighbours": str(allocation.neighbours),
        "unit": allocation.unit.column,
        "numbers": _pack(vector),
    }


def load_measurements(record: Mapping[str, Any]) -> Measurements:
    """The measurements that ``dump_measurements`` wrote."""
    workload = Workload(
        tuple(record["sizes"]),
        {tuple(part): float(weight) for part, weight in record["weights"]},
        {int(column): int(size) for column, size in record["fine"]},
        {
            int(column): RangeStrategy(StrategyKind(kind), int(cells), tuple(map(int, weights)))
            for column, kind, cells, weights in record.get("strategies", ())
        },
    )
    allocation = Allocation(
        workload,
        {tuple(part): int(m) for part, m in record["multipliers"]},
        {int(column): int(m) for column, m in record["fine_multipliers"]},
        Fraction(record["variance"]),
        int(record["steps"]),
        int(record["max_rows"]),
        Neighbours.read(record["neighbours"]),
        Unit(record["unit"]),
    )
    if "direct" in record:
        allocation = _load_direct(allocation, record["direct"]["laplace"])
    if set(allocation.multipliers) != set(allocation.measured):
        raise UsageError("These measurements do not belong to their tables. The bundle was changed or is damaged.")
    sizes = [workload.cells(part) for part in allocation.measured] + [workload.strategy(c).size for c in workload.fine]
    vector = _unpack(record["numbers"], sum(sizes))
    found = to_measurements(allocation, np.split(vector, np.cumsum(sizes)[:-1]))
    priors = {tuple(part): np.array(t).reshape(workload.shape(tuple(part))) for part, t in record.get("priors", ())}
    found = replace(found, priors=priors)
    if "first" not in record:
        return found
    return combine_stages(found, load_measurements(record["first"]), _load_scores(record["scores"]))


def _load_direct(known: Allocation, laplace: str | None) -> DirectAllocation:
    """The same numbers as direct measurements; the variance of Laplace noise follows from its scale."""
    scale = None if laplace is None else Fraction(laplace)
    facts = {each.name: getattr(known, each.name) for each in fields(known)}
    if scale is not None:
        facts["variance"] = 2 * scale * scale
    return DirectAllocation(**facts, laplace=scale)


def _dump_scores(scores: StagedScores) -> dict[str, Any]:
    return {
        "tables": [list(part) for part in scores.tables],
        "noisy": [str(value) for value in scores.noisy],
        "squared_sensitivity": str(scores.squared_sensitivity),
        "variance": str(scores.variance),
    }


def _load_scores(record: Mapping[str, Any]) -> StagedScores:
    return StagedScores(
        tuple(tuple(part) for part in record["tables"]),
        tuple(int(value) for value in record["noisy"]),
        int(record["squared_sensitivity"]),
        Fraction(record["variance"]),
    )


def hash_measurements(record: Mapping[str, Any]) -> str:
    """A name for what was drawn; rows are made from it as their public seed."""
    return hashlib.sha256(str(record["numbers"]).encode()).hexdigest()


def _pack(vector: Integers) -> str:
    """Integers as text: 64 bits each where they fit, else in digits."""
    values = np.asarray(vector)
    if values.dtype == object and max(map(abs, values.tolist()), default=0) >= _LONG:
        return "digits:" + " ".join(map(str, values.tolist()))
    return "int64:" + base64.b64encode(zlib.compress(values.astype("<i8").tobytes(), 6)).decode()


def _unpack(text: str, count: int) -> Integers:
    form, _, body = text.partition(":")
    try:
        if form == "digits":
            found = np.array([int(word) for word in body.split()], dtype=object)
        else:
            found = np.frombuffer(zlib.decompress(base64.b64decode(body)), dtype="<i8").astype(np.int64)
    except (ValueError, zlib.error):
        found = np.empty(0, dtype=np.int64)
    if len(found) != count:
        raise UsageError("The measurements of this bundle are not whole. It was changed or is damaged.")
    return found


def dump_column(column: PublishedColumn) -> dict[str, Any]:
    """A column's cells and how they are decoded."""
    return {
        "name": column.name,
        "type": str(column.kind),
        "nullable": column.nullable,
        "values": None if column.values is None else [to_plain(value) for value in column.values],
        "low": str(column.low),
        "width": str(column.width),
        "points": column.points,
        "fine": column.fine,
        "starts": list(column.starts),
        "origin": None if column.origin is None else column.origin.isoformat(),
    }


def load_column(record: Mapping[str, Any]) -> PublishedColumn:
    """The column that ``dump_column`` wrote."""
    kind = Type(record["type"])
    listed = record["values"]
    return PublishedColumn(
        name=record["name"],
        kind=kind,
        expression=Column(TABLE, record["name"], kind),
        nullable=record["nullable"],
        values=None if listed is None else tuple(from_plain(value, kind) for value in listed),
        low=Fraction(record["low"]),
        width=Fraction(record["width"]),
        points=record["points"],
        fine=record["fine"],
        starts=tuple(record["starts"]),
        origin=None if record["origin"] is None else dt.date.fromisoformat(record["origin"]),
    )
