"""The memory engine: slow, obvious Python over rows. It is the oracle that decides whether every other engine is right.

It follows ``contributions.py`` step by step and shares no code with other engines beyond the meaning of expressions.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

from discreet.bounding.contributions import Bounded, Counts, Measure
from discreet.engines.engine import Groups, Watch
from discreet.errors import InternalError, UsageError
from discreet.plan.catalog import Catalog, TableFacts
from discreet.plan.evaluate import evaluate, settle
from discreet.plan.expressions import Column, Released
from discreet.plan.relations import Scan, split
from discreet.plan.types import INTEGER_MAX, INTEGER_MIN, Type, Value, type_of

Key: TypeAlias = tuple[Value, ...]
Row: TypeAlias = dict[Column | Released, Value]

_versions = itertools.count(1)


class MemoryEngine:
    """Runs bounded questions over lists of dicts, or Arrow, pandas and polars frames, in memory."""

    def __init__(self, tables: Mapping[str, Any], catalog: Catalog) -> None:
        self._tables = {name: _dicts(rows) for name, rows in tables.items()}
        self._versions = {name: next(_versions) for name in tables}
        self._catalog = catalog

    def schema(self, table: str) -> Mapping[str, Type | None]:
        rows = self._tables[table]
        names = list(dict.fromkeys(name for row in rows for name in row))
        return {name: _kind([row.get(name) for row in rows]) for name in names}

    def version(self, table: str) -> str:
        return f"memory {self._versions[table]}"

    def prepare(self, table: str) -> None:
        """Nothing to do: rows are as ready as they will be."""

    def close(self) -> None:
        self._tables.clear()

    def run(self, bounded: Bounded, *, salt: bytes, watch: Watch | None = None) -> Groups:
        rows = list(self._rows(bounded))
        totals: dict[Key, list[int]] = {} if bounded.keys else {(): [0] * len(bounded.measures)}
        for unit, groups in _by_unit(bounded, rows).items():
            for key, partials in _contribution(bounded, unit, groups, salt).items():
                total = totals.setdefault(key, [0] * len(bounded.measures))
                for i, partial in enumerate(partials):
                    total[i] += partial
        if watch is not None:
            watch(1.0)
        keys = tuple(totals)
        return Groups(keys, tuple(tuple(totals[key][i] for key in keys) for i in range(len(bounded.measures))))

    def _rows(self, bounded: Bounded) -> Iterator[Row]:
        """Step 1: rows that fulfil every condition, have a unit, and fall into a public group where keys are public."""
        base, conditions = split(bounded.source)
        if not isinstance(base, Scan):
            raise InternalError("not yet")
        facts = self._catalog.tables[base.table]
        domain = None if bounded.domain is None else set(bounded.domain)
        for stored in self._tables[base.table]:
            row = _scanned(facts, stored)
            if not all(evaluate(condition, row) is True for condition in conditions):
                continue
            if bounded.unit is not None and evaluate(bounded.unit, row) is None:
                continue
            if domain is None or _key(bounded, row) in domain:
                yield row


def _key(bounded: Bounded, row: Row) -> Key:
    return tuple(evaluate(key, row) for key in bounded.keys)


def _by_unit(bounded: Bounded, rows: Sequence[Row]) -> dict[Value, dict[Key, list[Row]]]:
    """The rows of each unit by group; without a unit column every row is a unit of its own."""
    units: dict[Value, dict[Key, list[Row]]] = {}
    for number, row in enumerate(rows):
        unit = number if bounded.unit is None else evaluate(bounded.unit, row)
        units.setdefault(unit, {}).setdefault(_key(bounded, row), []).append(row)
    return units


def _contribution(bounded: Bounded, unit: Value, groups: dict[Key, list[Row]], salt: bytes) -> dict[Key, list[int]]:
    """Steps 2 to 4: what one unit adds to each group, a function of its own rows and the secret order alone."""
    order = sorted(groups, key=lambda key: (_place(salt, unit, key), repr(key)))
    left = bounded.max_rows
    kept: dict[Key, list[int]] = {}
    for key in order[: bounded.max_groups]:
        rows = groups[key]
        allowed = len(rows)
        if bounded.max_rows_per_group is not None:
            allowed = min(allowed, bounded.max_rows_per_group)
        if left is not None:
            allowed = min(allowed, left)
            left -= allowed
        if allowed > 0:
            kept[key] = [_partial(measure, rows, allowed) for measure in bounded.measures]
    return kept


def _place(salt: bytes, unit: Value, key: Key) -> bytes:
    return hashlib.blake2b(repr((unit, key)).encode("utf-8", "backslashreplace"), key=salt).digest()


def _partial(measure: Measure, rows: Sequence[Row], allowed: int) -> int:
    """The sum over one unit's rows in a group, scaled down to the allowed number of rows, towards zero."""
    if measure.counts is Counts.UNITS:
        return 1
    integers = [integer for row in rows if (integer := row_integer(measure, row)) is not None]
    total, count = sum(integers), len(integers)
    if count <= allowed:
        return total
    return int(Fraction(total * allowed, count))  # int of a Fraction rounds towards zero


def row_integer(measure: Measure, row: Row) -> int | None:
    """Step 2: what one row counts for a measure; None where it does not count."""
    if measure.counts is Counts.ROWS:
        return 1
    value = None if measure.argument is None else evaluate(measure.argument, row)
    if value is None or isinstance(value, str | dt.date):
        return None if value is None or measure.counts is not Counts.VALUES else 1
    if measure.counts is Counts.VALUES:
        return 1
    steps = _steps(measure, value)
    return steps if measure.counts is Counts.STEPS else steps * steps


def _steps(measure: Measure, value: int | float) -> int:
    origin, resolution = measure.origin, measure.resolution
    if isinstance(value, int) and origin.denominator == resolution.denominator == 1:
        steps = math.floor((value - origin) / resolution + Fraction(1, 2))
    else:
        real = (float(value) - float(origin)) / float(resolution) + 0.5
        steps = math.floor(real) if math.isfinite(real) else measure.last if real > 0 else measure.first
    return min(max(steps, measure.first), measure.last)


def _dicts(rows: Any) -> list[dict[str, Any]]:
    if isinstance(rows, list):
        return rows
    from discreet.engines.sources import arrow_table

    found: list[dict[str, Any]] = arrow_table(rows).to_pylist()
    return found


def _kind(values: Sequence[Any]) -> Type | None:
    kinds = {Type.REAL if isinstance(v, Decimal) else type_of(v) for v in values if v is not None}
    if kinds == {Type.INTEGER, Type.REAL}:
        return Type.REAL
    return kinds.pop() if len(kinds) == 1 else Type.TEXT if not kinds else None


def _scanned(facts: TableFacts, stored: Mapping[str, Any]) -> Row:
    """A stored row as values of the declared types; what does not fit is NULL."""
    by_name = {name.lower(): value for name, value in stored.items()}
    row: Row = {}
    for name, (kind, _) in facts.columns.items():
        if name.lower() not in by_name and name not in stored:
            raise UsageError(f"The table {facts.name!r} has no column {name!r} in its data. Nothing was charged.")
        row[Column(facts.name, name, kind)] = brought(stored.get(name, by_name.get(name.lower())), kind)
    return row


def brought(value: Any, kind: Type) -> Value:
    """A stored value in a declared type, or None where it is not one."""
    match kind, value:
        case Type.BOOLEAN, bool():
            return value
        case Type.INTEGER, int() if not isinstance(value, bool):
            return value if INTEGER_MIN <= value <= INTEGER_MAX else None
        case Type.REAL, int() | float() | Decimal() if not isinstance(value, bool):
            return settle(value, Type.REAL)
        case Type.TEXT, str():
            return value
        case Type.TIMESTAMP, dt.datetime():
            return value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
        case Type.DATE, dt.datetime():
            return value.date()
        case Type.DATE, dt.date():
            return value
        case Type.TIMESTAMP, dt.date():
            return settle(value, Type.TIMESTAMP)
    return None
