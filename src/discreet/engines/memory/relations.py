"""The rows of a relation, one node at a time, in slow and obvious Python: the part of the oracle below aggregation.

A row is a dict from columns to values. Every function here says what a node of ``plan.relations`` means; other engines
are held to it. Nothing here knows whether a plan keeps units apart: ``bounding.stability`` decides that, and tests let
this code run plans that it refuses, to see them fail.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from decimal import Decimal
from typing import Any, TypeAlias, assert_never

from discreet.engines.engine import key_order
from discreet.engines.memory.per_unit import compute_feature, compute_window_feature
from discreet.engines.order import PortableOrder, SecretOrder
from discreet.errors import UsageError
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import Catalog, TableFacts
from discreet.plan.evaluate import evaluate, settle
from discreet.plan.expressions import Column, Expression, ReleasedValue
from discreet.plan.functions import find_common_type
from discreet.plan.relations import (
    Capped,
    Caps,
    Distinct,
    Join,
    JoinKind,
    PerUnit,
    Projection,
    Relation,
    Scan,
    Union,
    Values,
    Where,
    Window,
)
from discreet.plan.types import INTEGER_MAX, INTEGER_MIN, Type, Value

MemoryRow: TypeAlias = dict[Column | ReleasedValue, Value]
KeyValues: TypeAlias = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class MemoryRelation:
    """The columns of a relation, also where it has no rows, and its rows in no order that means anything."""

    columns: tuple[Column, ...]
    rows: list[MemoryRow]


@dataclass(frozen=True, slots=True)
class RelationReader:
    """Reads relations over some tables. ``salt`` and ``order`` say which rows truncations keep."""

    tables: Mapping[str, Sequence[Mapping[str, Any]]]
    catalog: Catalog
    salt: bytes
    order: SecretOrder = field(default_factory=PortableOrder)

    def read(self, relation: Relation) -> MemoryRelation:
        """The rows of a relation."""
        match relation:
            case Scan():
                return self._read_scan(relation)
            case Values():
                return _read_values(relation)
            case Where():
                source = self.read(relation.source)
                return MemoryRelation(
                    source.columns, [r for r in source.rows if evaluate(relation.condition, r) is True]
                )
            case Projection():
                return _derive(relation, self.read(relation.source))
            case Join():
                return self._read_join(relation)
            case PerUnit():
                return _group_per_unit(relation, self.read(relation.source))
            case Window():
                return _add_window(relation, self.read(relation.source))
            case Distinct():
                source = self.read(relation.source)
                once = {tuple(row[column] for column in source.columns): row for row in source.rows}
                return MemoryRelation(source.columns, list(once.values()))
            case Capped():
                return self._cap(relation)
            case Union():
                return _unite(relation, [self.read(source) for source in relation.sources])
            case _:
                assert_never(relation)

    def _read_scan(self, relation: Scan) -> MemoryRelation:
        facts = self.catalog.tables[relation.table]
        columns = tuple(Column(relation.name, name, kind) for name, (kind, _) in facts.columns.items())
        return MemoryRelation(
            columns, [_read_row(facts, relation.name, stored) for stored in self.tables[relation.table]]
        )

    def _read_join(self, relation: Join) -> MemoryRelation:
        left, right = self.read(relation.left), self.read(relation.right)
        if relation.caps is not None:
            ours, theirs = ([pair[side] for pair in relation.on] for side in (0, 1))
            kinds = [find_common_type((pair[0].type, pair[1].type)) for pair in relation.on]
            left = _truncate(left, relation.caps[0], ours, kinds, self._place_of)
            right = _truncate(right, relation.caps[1], theirs, kinds, self._place_of)
        return _join(relation, left, right)

    def _cap(self, relation: Capped) -> MemoryRelation:
        """The first rows, in the secret order, with the same values; rows without a unit are left out."""
        source = self.read(relation.source)
        known = [row for row in source.rows if evaluate(relation.by[0], row) is not None]
        ordered = sorted(known, key=lambda row: self._place_of(source.columns, row))
        kept = _keep_first(ordered, lambda row: tuple(evaluate(by, row) for by in relation.by), relation.rows)
        return MemoryRelation(source.columns, kept)

    def _place_of(self, columns: Sequence[Column], row: MemoryRow) -> tuple[Any, ...]:
        """Where a row stands in the secret order: by its values alone, so equal rows stand together."""
        values = [_normalise_zero(row[column]) for column in _sort_columns(columns)]
        kinds = [column.type for column in _sort_columns(columns)]
        return self.order.place_of_row(self.salt, list(zip(values, kinds))), key_order(values)


def _read_row(facts: TableFacts, name: str, stored: Mapping[str, Any]) -> MemoryRow:
    """A stored row as values of the declared types; what does not fit, or is too long a text, is NULL."""
    by_name = {column.lower(): value for column, value in stored.items()}
    row: MemoryRow = {}
    for column, (kind, known) in facts.columns.items():
        if column.lower() not in by_name and column not in stored:
            raise UsageError(f"The table {facts.name!r} has no column {column!r} in its data. Nothing was charged.")
        value = to_declared_type(stored.get(column, by_name.get(column.lower())), kind)
        too_long = isinstance(value, str) and len(value) > (known.max_length or 0)
        row[Column(name, column, kind)] = None if too_long else value
    return row


def to_declared_type(value: Any, kind: Type) -> Value:
    """A stored value in a declared type, or None where it is not one."""
    match kind, value:
        case Type.BOOLEAN, bool():
            return value
        case Type.INTEGER, int() if not isinstance(value, bool):
            return value if INTEGER_MIN <= value <= INTEGER_MAX else None
        case Type.INTEGER, float() | Decimal() if math.isfinite(value) and value == int(value):
            return to_declared_type(int(value), kind)
        case Type.REAL, int() | float() | Decimal() if not isinstance(value, bool):
            return settle(value, Type.REAL)
        case Type.TEXT, str():
            return value
        case Type.DATE, dt.datetime():
            moment = settle(value, Type.TIMESTAMP)
            return moment.date() if isinstance(moment, dt.datetime) else None
        case Type.DATE, dt.date():
            return value
        case Type.TIMESTAMP, dt.date():
            return settle(value, Type.TIMESTAMP)
    return None


def _read_values(relation: Values) -> MemoryRelation:
    columns = tuple(Column(relation.name, name, kind) for name, kind in relation.columns)
    rows = [
        {c: to_declared_type(value, c.type) for c, value in zip(columns, row, strict=True)} for row in relation.rows
    ]
    return MemoryRelation(columns, rows)  # type: ignore[arg-type]  # a dict of columns is a row


def _derive(relation: Projection, source: MemoryRelation) -> MemoryRelation:
    columns = tuple(Column(relation.name, name, expression.type) for name, expression in relation.columns)
    rows: list[MemoryRow] = [
        {column: evaluate(expression, row) for column, (_, expression) in zip(columns, relation.columns)}
        for row in source.rows
    ]
    return MemoryRelation(columns, rows)


def _unite(relation: Union, sources: Sequence[MemoryRelation]) -> MemoryRelation:
    """Columns by position, under the names of the first source."""
    columns = tuple(Column(relation.name, name, expression.type) for name, expression in relation.sources[0].columns)
    rows: list[MemoryRow] = [
        {column: row[own] for column, own in zip(columns, source.columns, strict=True)}
        for source in sources
        for row in source.rows
    ]
    return MemoryRelation(columns, rows)


# Joins


def _join(relation: Join, left: MemoryRelation, right: MemoryRelation) -> MemoryRelation:
    matches = _make_matcher(relation, right.rows)
    if relation.kind in (JoinKind.SEMI, JoinKind.ANTI):
        wanted = relation.kind is JoinKind.SEMI
        return MemoryRelation(left.columns, [row for row in left.rows if bool(matches(row)) is wanted])
    rows: list[MemoryRow] = []
    matched: set[int] = set()
    for ours_row in left.rows:
        found = matches(ours_row)
        matched.update(found)
        rows += [{**ours_row, **right.rows[i]} for i in found]
        if not found and relation.kind in (JoinKind.LEFT, JoinKind.FULL):
            rows.append({**ours_row, **dict.fromkeys(right.columns)})
    if relation.kind in (JoinKind.RIGHT, JoinKind.FULL):
        alone = [row for i, row in enumerate(right.rows) if i not in matched]
        rows += [{**dict.fromkeys(left.columns), **row} for row in alone]
    return MemoryRelation((*left.columns, *right.columns), rows)


def _make_matcher(relation: Join, rights: Sequence[MemoryRow]) -> Callable[[MemoryRow], list[int]]:
    """For a row of the left side, the positions of the rows of the right side that it pairs with."""
    kinds = [find_common_type((ours.type, theirs.type)) for ours, theirs in relation.on]
    lefts, theirs = ([pair[side] for pair in relation.on] for side in (0, 1))
    places: dict[KeyValues, list[int]] = {}
    for i, row in enumerate(rights):
        key = _join_key_of(theirs, kinds, row)
        if key is not None:
            places.setdefault(key, []).append(i)
    if relation.single:
        places = {key: found for key, found in places.items() if len(found) == 1}

    def matches(row: MemoryRow) -> list[int]:
        key = _join_key_of(lefts, kinds, row)
        return [] if key is None else places.get(key, [])

    return matches


def _join_key_of(expressions: Sequence[Expression], kinds: Sequence[Type | None], row: MemoryRow) -> KeyValues | None:
    """What a row is joined on, in the type that both sides share (doubles where integers meet reals); None if NULL."""
    values = [evaluate(expression, row) for expression in expressions]
    if any(value is None for value in values):
        return None
    return tuple(value if kind is None else settle(value, kind) for value, kind in zip(values, kinds))


def _truncate(
    side: MemoryRelation,
    caps: Caps,
    on: Sequence[Expression],
    kinds: Sequence[Type | None],
    place_of: Callable[[Sequence[Column], MemoryRow], Any],
) -> MemoryRelation:
    """At most so many rows of each unit, and of these at most so many with the same value of the join expressions.

    Values are the same if the join would say so: integers that meet reals are compared as doubles.
    """
    known = [row for row in side.rows if evaluate(caps.unit, row) is not None]
    whole = [row for row in known if _join_key_of(on, kinds, row) is not None]
    ordered = sorted(whole, key=lambda row: place_of(side.columns, row))
    kept = _keep_first(ordered, lambda row: (evaluate(caps.unit, row),), caps.rows)
    kept = _keep_first(kept, lambda row: _join_key_of(on, kinds, row) or (), caps.frequency)
    return MemoryRelation(side.columns, kept)


def _keep_first(rows: Sequence[MemoryRow], key: Callable[[MemoryRow], KeyValues], most: int) -> list[MemoryRow]:
    seen: Counter[KeyValues] = Counter()
    kept = []
    for row in rows:
        seen[key(row)] += 1
        if seen[key(row)] <= most:
            kept.append(row)
    return kept


def _normalise_zero(value: Value) -> Value:
    return value + 0.0 if isinstance(value, float) else value  # one zero, whatever its sign


def _sort_columns(columns: Sequence[Column]) -> list[Column]:
    return sorted(columns, key=lambda column: (column.table, column.name))


# Grouping inside a unit, and windows


def _group_per_unit(relation: PerUnit, source: MemoryRelation) -> MemoryRelation:
    keys = tuple(Column(relation.name, name, key.type) for name, key in relation.keys)
    features = tuple(Column(relation.name, name, compute.type) for name, compute in relation.features)
    rows: list[MemoryRow] = []
    for key, members in _split_parts([key for _, key in relation.keys], source.rows).items():
        row: MemoryRow = dict(zip(keys, key))
        for column, (_, compute) in zip(features, relation.features):
            row[column] = compute_feature(compute, members)
        rows.append(row)
    return MemoryRelation((*keys, *features), rows)


def _add_window(relation: Window, source: MemoryRelation) -> MemoryRelation:
    columns = tuple(Column(relation.name, name, compute.type) for name, compute in relation.features)
    rows: list[MemoryRow] = []
    for members in _split_parts(relation.parts, source.rows).values():
        ordered = _sort_rows(members, [(column, False) for column in _sort_columns(source.columns)])
        ordered = _sort_rows(ordered, relation.order)
        ranks = [tuple(evaluate(expression, row) for expression, _ in relation.order) for row in ordered]
        computed = [compute_window_feature(compute, ordered, ranks) for _, compute in relation.features]
        for i, row in enumerate(ordered):
            rows.append({**row, **{column: values[i] for column, values in zip(columns, computed)}})
    return MemoryRelation((*source.columns, *columns), rows)


def _split_parts(keys: Sequence[Expression], rows: Sequence[MemoryRow]) -> dict[KeyValues, list[MemoryRow]]:
    """Rows by the values of some expressions; NULLs are equal here."""
    parts: dict[KeyValues, list[MemoryRow]] = {}
    for row in rows:
        parts.setdefault(tuple(evaluate(key, row) for key in keys), []).append(row)
    return parts


def _sort_rows(rows: Sequence[MemoryRow], order: Sequence[tuple[Expression, bool]]) -> list[MemoryRow]:
    """Rows in an order, NULLs last either way. Sorting is stable, so the last criterion goes first."""
    found = list(rows)
    for expression, descending in reversed(order):
        placed = [(evaluate(expression, row), row) for row in found]
        present = [pair for pair in placed if pair[0] is not None]
        present.sort(key=_value_of, reverse=descending)
        found = [row for _, row in present] + [row for value, row in placed if value is None]
    return found


def _value_of(pair: tuple[Any, MemoryRow]) -> Any:
    return pair[0]
