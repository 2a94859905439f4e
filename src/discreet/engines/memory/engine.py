"""The memory engine: slow, obvious Python over rows. It is the oracle that decides whether every other engine is right.

It follows ``contributions.py`` step by step and shares no code with other engines beyond the meaning of expressions.
The rows of a relation are in ``memory.relations``.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from decimal import Decimal
from fractions import Fraction
from typing import Any, assert_never

import numpy as np

from discreet.bounding.contributions import BoundedPlan, Counts, Measure, Spread, group_cap, unit_bits
from discreet.engines.engine import Capabilities, GroupHistogram, Groups, ProgressCallback, key_order
from discreet.engines.failure import hide_error
from discreet.engines.memory.relations import KeyValues, MemoryRow, RelationReader
from discreet.engines.order import PortableOrder, SecretOrder, TypedValue
from discreet.engines.tabulation import FIRST_CODE, NULL_CODE, OTHER_CODE, Tabulation
from discreet.errors import InternalError, UsageError
from discreet.exact import Integers
from discreet.late_dataclass import dataclass
from discreet.plan.arrow import to_arrow_table
from discreet.plan.catalog import Catalog
from discreet.plan.evaluate import evaluate
from discreet.plan.expressions import Column
from discreet.plan.relations import Scan, Values
from discreet.plan.types import Type, Value, type_of

_versions = itertools.count(1)


@dataclass(slots=True)
class _Group:
    """What is collected for one group: integers and cells, by the position of measure or spread."""

    totals: Counter[int] = field(default_factory=Counter)
    cells: dict[int, Counter[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _UnitGroup:
    """What one unit has in one group: its rows, and what they weigh.

    ``weight`` is W of each row, ``unit_weight`` V, and ``cell_weight`` what a row adds to its cell of a spread.
    By lot, so many groups are ``kept``; 0 where this one is not.
    """

    unit: Value
    key: KeyValues
    rows: Sequence[MemoryRow]
    weight: int
    unit_weight: int
    cell_weight: int
    kept: int


class MemoryEngine:
    """Runs bounded questions over lists of dicts, or Arrow, pandas and polars frames, in memory.

    ``order`` is the rule of the secret order, so that it can be compared with an engine that has one of its own.
    """

    capabilities = Capabilities()

    def __init__(self, tables: Mapping[str, Any], catalog: Catalog, *, order: SecretOrder | None = None) -> None:
        self._tables = {name: _to_dicts(rows) for name, rows in tables.items()}
        self._versions = {name: next(_versions) for name in tables}
        self._catalog = catalog
        self._order = order or PortableOrder()

    def schema(self, table: str) -> Mapping[str, Type | None]:
        rows = self._tables[table]
        names = list(dict.fromkeys(name for row in rows for name in row))
        return {name: _kind_of([row.get(name) for row in rows]) for name in names}

    def version(self, table: str) -> str:
        return f"memory {self._versions[table]}"

    def count_public(self, table: str, columns: tuple[str, ...]) -> int:
        if not self._catalog.find_table(table).public:
            raise UsageError(f"The rows of the private table {table!r} are not counted. Nothing was charged.")
        read = RelationReader(self._tables, self._catalog, b"").read(Scan(table))
        wanted = [column for column in read.columns if column.name in columns]
        found = Counter(key for row in read.rows if None not in (key := tuple(row[column] for column in wanted)))
        return max(found.values(), default=0)

    def read_public(self, table: str) -> Values:
        facts = self._catalog.find_table(table)
        if not facts.public:
            raise UsageError(f"The rows of the private table {table!r} are not shown. Nothing was charged.")
        read = RelationReader(self._tables, self._catalog, b"").read(Scan(facts.name))
        columns = [Column(facts.name, name, kind) for name, (kind, _) in facts.columns.items()]
        rows = (tuple(row[column] for column in columns) for row in read.rows)
        return Values(facts.name, tuple((c.name, c.type) for c in columns), tuple(sorted(rows, key=key_order)))

    def prepare(self, table: str) -> None:
        """Nothing to do: rows are as ready as they will be."""

    def close(self) -> None:
        self._tables.clear()

    def run(
        self,
        bounded: BoundedPlan,
        *,
        salt: bytes,
        watch: ProgressCallback | None = None,
        generous: bool = False,  # noqa: ARG002  # the oracle takes what it needs
    ) -> Groups:
        try:
            return self._run(bounded, salt, watch)
        except Exception as error:
            raise hide_error(error) from None

    def tabulate(
        self,
        tabulation: Tabulation,
        *,
        salt: bytes,
        watch: ProgressCallback | None = None,
        generous: bool = False,  # noqa: ARG002  # the oracle takes what it needs
    ) -> tuple[Integers, ...]:
        try:
            return self._tabulate(tabulation, salt, watch)
        except Exception as error:
            raise hide_error(error) from None

    def _tabulate(self, tabulation: Tabulation, salt: bytes, watch: ProgressCallback | None) -> tuple[Integers, ...]:
        bounded = tabulation.bounded
        found = [np.zeros(tabulation.shape(i), dtype=np.int64) for i in range(len(tabulation.tables))]
        for groups in _group_by_unit(bounded, list(self._read_rows(bounded, salt))).values():
            rows = groups[()]
            weight = 1 if bounded.unit is None else _weigh_rows(bounded, len(rows))
            for row in rows:
                cells = [int(view.cells[_code_of(bounded.spreads[view.spread], row)]) for view in tabulation.views]
                for table, counts in zip(tabulation.tables, found):
                    counts[tuple(cells[view] for view in table)] += weight
        if watch is not None:
            watch(1.0)
        return tuple(found)

    def _run(self, bounded: BoundedPlan, salt: bytes, watch: ProgressCallback | None) -> Groups:
        found: dict[KeyValues, _Group] = {} if bounded.keys else {(): _Group()}
        order = _UnitOrder(bounded, self._order, salt)
        units = _group_by_unit(bounded, list(self._read_rows(bounded, salt)))
        for unit, groups in units.items():
            for part in _weigh_groups(bounded, unit, groups, order):
                _add(bounded, found.setdefault(part.key, _Group()), part)
        for i, measure in enumerate(bounded.measures):
            if measure.matched:
                for key, value in _match_items(measure, units, order):
                    found[key].totals[i] += _item_integer(measure, value)
        if watch is not None:
            watch(1.0)
        keys = sorted(found, key=key_order)
        collected = [found[key] for key in keys]
        return Groups(
            tuple(keys),
            tuple(tuple(_total(bounded, i, group) for group in collected) for i in range(len(bounded.measures))),
            tuple(tuple(_make_histogram(i, group) for group in collected) for i in range(len(bounded.spreads))),
        )

    def _read_rows(self, bounded: BoundedPlan, salt: bytes) -> Iterator[MemoryRow]:
        """Step 1: rows of the source that have a unit, and fall into a public group where keys are public."""
        domain = None if bounded.domain is None else set(bounded.domain)
        for row in RelationReader(self._tables, self._catalog, salt, self._order).read(bounded.source).rows:
            if bounded.unit is not None and evaluate(bounded.unit, row) is None:
                continue
            if domain is None or _key_of(bounded, row) in domain:
                yield row


def _key_of(bounded: BoundedPlan, row: MemoryRow) -> KeyValues:
    return tuple(evaluate(key, row) for key in bounded.keys)


def _group_by_unit(bounded: BoundedPlan, rows: Sequence[MemoryRow]) -> dict[Value, dict[KeyValues, list[MemoryRow]]]:
    """The rows of each unit by group; without a unit column every row is a unit of its own."""
    units: dict[Value, dict[KeyValues, list[MemoryRow]]] = {}
    for number, row in enumerate(rows):
        unit = number if bounded.unit is None else evaluate(bounded.unit, row)
        units.setdefault(unit, {}).setdefault(_key_of(bounded, row), []).append(row)
    return units


def _weigh_groups(
    bounded: BoundedPlan, unit: Value, groups: Mapping[KeyValues, Sequence[MemoryRow]], order: _UnitOrder
) -> Iterator[_UnitGroup]:
    """Step 3: what one unit's rows weigh in each of its groups. A function of the unit's own rows."""
    whole, count = 1 << bounded.weight_bits, sum(map(len, groups.values()))
    cap = group_cap(bounded)
    unit_weight = whole if cap is None else min(whole, cap * whole // len(groups))
    kept = _choose_groups(bounded, unit, groups, order) if any(m.by_lot for m in bounded.measures) else ()
    for key, rows in groups.items():
        if bounded.max_rows is not None:
            weight = cell_weight = min(whole, bounded.max_rows * whole // count)
        else:
            each = min(whole, (bounded.max_rows_per_group or 1) * whole // len(rows))
            weight = cell_weight = each
            if bounded.max_groups is not None:
                weight = each * min(whole, bounded.max_groups * whole // len(groups)) // whole
                cell_weight = each * (whole // math.ceil(len(groups) / bounded.max_groups)) // whole
        yield _UnitGroup(unit, key, rows, weight, unit_weight, cell_weight, len(kept) if key in kept else 0)


def _choose_groups(
    bounded: BoundedPlan, unit: Value, groups: Mapping[KeyValues, Sequence[MemoryRow]], order: _UnitOrder
) -> Collection[KeyValues]:
    """The groups that a unit is kept in by lot: a function of the unit's own rows and the secret order alone."""
    if bounded.unit is None or len(groups) == 1:
        return groups
    ordered = sorted(groups, key=lambda key: order.place_of(unit, key))
    if bounded.max_rows is None:
        return ordered[: bounded.max_groups]
    used = itertools.accumulate((len(groups[key]) for key in ordered), initial=0)
    return [key for key, before in zip(ordered, used) if before < bounded.max_rows]


def _match_items(
    measure: Measure, units: Mapping[Value, Mapping[KeyValues, Sequence[MemoryRow]]], order: _UnitOrder
) -> Collection[tuple[KeyValues, Value]]:
    """The groups and values that units take, pair after pair in the secret order; all where a row is its own unit."""
    pairs = {
        (unit, key, value)
        for unit, groups in units.items()
        for key, rows in groups.items()
        for row in rows
        if (value := _argument_of(measure, row)) is not None
    }
    if order.bounded.unit is None or measure.argument is None or measure.max_values is None:
        return {(key, value) for _, key, value in pairs}
    kind = measure.argument.type
    taken: set[tuple[KeyValues, Value]] = set()
    brought: Counter[Value] = Counter()
    for unit, key, value in sorted(pairs, key=lambda pair: order.place_of_value(pair[0], pair[1], (pair[2], kind))):
        if (key, value) not in taken and brought[unit] < measure.max_values:
            taken.add((key, value))
            brought[unit] += 1
    return taken


def _item_integer(measure: Measure, value: Value) -> int:
    """What an item counts for a measure."""
    if measure.counts is Counts.DISTINCT:
        return 1
    if not isinstance(value, int | float):
        raise InternalError("Only numbers have steps.")
    steps = _steps(measure, value)
    return steps if measure.counts is Counts.DISTINCT_STEPS else steps * steps


@dataclass(frozen=True, slots=True)
class _UnitOrder:
    """The secret order of a question: where a unit's groups stand, and where pairs do. Ties go by value."""

    bounded: BoundedPlan
    order: SecretOrder
    salt: bytes

    def place_of(self, unit: Value, key: KeyValues) -> tuple[Any, ...]:
        """Where a group stands among a unit's groups."""
        return self._place(unit, key), key_order(key)

    def place_of_value(self, unit: Value, key: KeyValues, value: TypedValue) -> tuple[Any, ...]:
        """Where a unit with a value in a group stands among all such pairs."""
        return self._place(unit, key, value), unit, key_order([*key, value[0]])

    def _place(self, unit: Value, key: KeyValues, *more: TypedValue) -> Any:
        if self.bounded.unit is None:
            raise InternalError("Rows that are their own units have no secret order.")
        typed = [(value, part.type) for value, part in zip(key, self.bounded.keys)]
        return self.order.place_of_group(self.salt, (unit, self.bounded.unit.type), [*typed, *more])


def _add(bounded: BoundedPlan, group: _Group, part: _UnitGroup) -> None:
    """Step 4: add what one unit has in a group."""
    for i, measure in enumerate(bounded.measures):
        match measure.counts:
            case Counts.DISTINCT | Counts.DISTINCT_STEPS | Counts.DISTINCT_SQUARES:
                pass  # a matter of all units together
            case Counts.NAMED:
                group.totals[i] += part.kept > 0
            case Counts.WEIGHT:
                group.totals[i] += math.isqrt(measure.last**2 // part.kept) if part.kept else 0
            case Counts.UNITS:
                has = measure.argument is None or any(_argument_of(measure, row) is not None for row in part.rows)
                group.totals[i] += part.unit_weight * has
            case Counts.ROWS | Counts.VALUES | Counts.STEPS | Counts.SQUARES:
                integers = [integer for row in part.rows if (integer := row_integer(measure, row)) is not None]
                total = sum(integers)
                if measure.partial is None:
                    group.totals[i] += part.weight * total
                elif integers:
                    low, high = measure.partial
                    group.totals[i] += part.unit_weight * min(max(total, low), high)
            case _:
                assert_never(measure.counts)
    for i, spread in enumerate(bounded.spreads):
        cells = group.cells.setdefault(i, Counter())
        for row in part.rows:
            cell = _cell_of(spread, row)
            if cell is not None and part.cell_weight:
                cells[cell] += part.cell_weight


def _total(bounded: BoundedPlan, position: int, group: _Group) -> int:
    """Step 5: the answer of one group, rounded to whole steps where that is free."""
    measure = bounded.measures[position]
    total = group.totals[position]
    if not measure.weighed or unit_bits(bounded, measure) == bounded.weight_bits:
        return total
    return math.floor(Fraction(total, 1 << bounded.weight_bits) + Fraction(1, 2))


def _make_histogram(position: int, group: _Group) -> GroupHistogram:
    cells = sorted(group.cells.get(position, Counter()).items())
    return np.array([cell for cell, _ in cells], dtype=np.int64), np.array([n for _, n in cells], dtype=np.int64)


def _cell_of(spread: Spread, row: MemoryRow) -> int | None:
    """The cell that a row counts in; None where it counts nowhere."""
    value = evaluate(spread.argument, row)
    if spread.values is not None:
        return None if value is None or value not in spread.values else spread.values.index(value)
    if value is None or isinstance(value, str | dt.date):
        return None
    return _steps(spread, value)


def _code_of(spread: Spread, row: MemoryRow) -> int:
    """The code of a row in a spread, as ``tabulation`` says."""
    if evaluate(spread.argument, row) is None:
        return NULL_CODE
    cell = _cell_of(spread, row)
    return OTHER_CODE if cell is None else cell + FIRST_CODE - (spread.first if spread.values is None else 0)


def _weigh_rows(bounded: BoundedPlan, count: int) -> int:
    """Step 3: W of each row of a unit that has so many rows in all."""
    whole = 1 << bounded.weight_bits
    return min(whole, (bounded.max_rows or 1) * whole // count)


def _argument_of(measure: Measure, row: MemoryRow) -> Value:
    return None if measure.argument is None else evaluate(measure.argument, row)


def row_integer(measure: Measure, row: MemoryRow) -> int | None:
    """Step 2: what one row counts for a measure; None where it does not count."""
    if measure.counts is Counts.ROWS:
        return 1
    value = _argument_of(measure, row)
    if value is None or isinstance(value, str | dt.date):
        return None if value is None or measure.counts is not Counts.VALUES else 1
    if measure.counts is Counts.VALUES:
        return 1
    steps = _steps(measure, value)
    return steps if measure.counts is Counts.STEPS else steps * steps


def _steps(grid: Measure | Spread, value: int | float) -> int:
    origin, resolution = grid.origin, grid.resolution
    if isinstance(value, int) and origin.denominator == resolution.denominator == 1:
        steps = math.floor((value - origin) / resolution + Fraction(1, 2))
    else:
        real = (float(value) - float(origin)) / float(resolution) + 0.5
        steps = math.floor(real) if math.isfinite(real) else grid.last if real > 0 else grid.first
    return min(max(steps, grid.first), grid.last)


def _to_dicts(rows: Any) -> list[dict[str, Any]]:
    if isinstance(rows, list):
        return rows
    found: list[dict[str, Any]] = _keep_known_days(to_arrow_table(rows)).to_pylist()
    return found


def _keep_known_days(table: Any) -> Any:
    """An Arrow table in which days and moments outside the years 1 to 9999, which Python does not know, are NULL."""
    import pyarrow as pa
    from pyarrow import compute

    ends: Mapping[Any, tuple[Any, Any]] = {
        pa.date32(): (dt.date.min, dt.date.max),
        pa.timestamp("us"): (dt.datetime.min, dt.datetime.max),  # noqa: DTZ901  # plan timestamps have no zone
    }
    for i, column in enumerate(table.columns):
        if column.type in ends:
            first, last = (pa.scalar(end, column.type) for end in ends[column.type])
            known = compute.and_(compute.greater_equal(column, first), compute.less_equal(column, last))
            kept = compute.if_else(known, column, pa.scalar(None, column.type))
            table = table.set_column(i, table.column_names[i], kept)
    return table


def _kind_of(values: Sequence[Any]) -> Type | None:
    kinds = {Type.REAL if isinstance(v, Decimal) else type_of(v) for v in values if v is not None}
    if kinds == {Type.INTEGER, Type.REAL}:
        return Type.REAL
    return kinds.pop() if len(kinds) == 1 else Type.TEXT if not kinds else None
