"""Makes neighbours of a table: one unit is added, removed or replaced, with values that often cause errors.

The values are all that a column of its type can have: NaN, infinities, minus zero, the ends of integers, NULL, keys
that nobody else has, very long texts, ids that look like others, and more rows than any limit allows. The same table
always gives the same neighbours.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from discreet.errors import UsageError
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import ColumnFacts, TableFacts
from discreet.plan.types import INTEGER_MAX, INTEGER_MIN, Type, Value
from discreet.privacy import Neighbours

AuditRow: TypeAlias = dict[str, Value]

NASTY: Mapping[Type, tuple[Value, ...]] = {
    Type.BOOLEAN: (True, False, None),
    Type.INTEGER: (0, INTEGER_MAX, INTEGER_MIN, None, -1, 2**53 + 1, 1),
    Type.REAL: (
        *(float("nan"), float("inf"), -float("inf"), -0.0, 5e-324, 1.7976931348623157e308, -1e300),
        *(None, 0.1, 1e-9, 2.0**53 + 2),
    ),
    Type.TEXT: ("", "rare", "x" * 100_000, None, " ", "RARE", "rare ", "'; --", "\0", "e\u0301", "😀", "NULL"),
    Type.DATE: (dt.date.min, dt.date.max, None, dt.date(2024, 2, 29)),
    Type.TIMESTAMP: (dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59), None, dt.datetime(1970, 1, 1)),  # noqa: DTZ001  # plan timestamps have no zone
}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two tables that differ in one unit, and the change that leads from one to the other."""

    what: str
    relation: Neighbours
    before: Sequence[AuditRow]
    after: Sequence[AuditRow]


def make_neighbours(
    rows: Sequence[AuditRow], table: TableFacts, relation: Neighbours, *, most: int | None = None
) -> Iterator[Pair]:
    """Pairs of neighbouring tables, those that find most errors first; at most ``most`` of them."""
    found = _make_pairs(list(rows), table, relation)
    for number, pair in enumerate(found):
        if most is not None and number >= most:
            return
        yield pair


def _make_pairs(rows: list[AuditRow], table: TableFacts, relation: Neighbours) -> Iterator[Pair]:
    if table.public:
        return  # the rows of a public table are nobody's, so it has no neighbours
    if table.link is not None:
        raise UsageError(f"The rows of {table.name!r} reach their unit by others. Give the whole dataset.")
    unit = _find_unit_column(table)
    for what, new in _make_newcomers(rows, table):
        if relation is Neighbours.ADD_REMOVE:
            yield Pair(f"add a unit: {what}", relation, rows, rows + new)
        else:
            removed = _choose_owner(rows, unit)
            rest = _remove_owner(rows, unit, removed)
            renamed = new if unit is None else [row | {unit: removed} for row in new]
            yield Pair(f"replace a unit: {what}", relation, rows, rest + (renamed[:1] if unit is None else renamed))
    if relation is Neighbours.ADD_REMOVE:
        for owner in _choose_owners(rows, unit):
            yield Pair("remove a unit", relation, rows, _remove_owner(rows, unit, owner))


def _find_unit_column(table: TableFacts) -> str | None:
    """The column that names the unit; None where rows are their own units."""
    column = table.unit_column
    return None if column is None else column.name


def _make_newcomers(rows: list[AuditRow], table: TableFacts) -> Iterator[tuple[str, list[AuditRow]]]:
    """The rows of unusual units; one row each where rows are their own units."""
    unit = _find_unit_column(table)
    kinds = {name: kind for name, (kind, _) in table.columns.items() if name != unit}
    facts = {name: known for name, (_, known) in table.columns.items()}
    ids = _make_ids(rows, table)
    normal = {name: find_usual(kind, facts[name], rows, name) for name, kind in kinds.items()}

    def make_row(values: Mapping[str, Value], owner: Value) -> AuditRow:
        row = {name: values.get(name, normal[name]) for name in kinds}
        return row if unit is None else row | {unit: owner}

    many = 1 if unit is None else 40
    yield "as usual", [make_row({}, ids[0])]
    yield "at the upper bounds, many rows", [make_row(find_ends(facts, high=True), ids[0]) for _ in range(many)]
    yield "at the lower bounds, many rows", [make_row(find_ends(facts, high=False), ids[0]) for _ in range(many)]
    yield "all NULL", [make_row(dict.fromkeys(kinds, None), ids[0]) for _ in range(min(many, 3))]
    for shift in range(max(len(NASTY[kind]) for kind in kinds.values())):
        values = {name: NASTY[kind][shift % len(NASTY[kind])] for name, kind in kinds.items()}
        yield f"strange values {shift + 1}", [make_row(values, ids[shift % len(ids)]) for _ in range(min(many, 2))]
    for name, kind in kinds.items():
        keys = facts[name].keys or NASTY[kind]
        if unit is not None:
            spread = [make_row({name: keys[i % len(keys)]}, ids[0]) for i in range(many)]
            yield f"rows in every group of {name}", spread
        yield f"a rare value of {name}", [make_row({name: make_rare(kind)}, ids[0])]
        for value in NASTY[kind]:
            yield f"{name} is {describe_value(value)}", [make_row({name: value}, ids[-1]) for _ in range(min(many, 5))]
    if unit is not None:
        for owner in ids:
            yield f"an id like others ({describe_value(owner)})", [make_row({}, owner) for _ in range(7)]
        yield "a NULL id", [make_row({}, None) for _ in range(7)]


def find_usual(kind: Type, facts: ColumnFacts, rows: Sequence[AuditRow], name: str) -> Value:
    """An ordinary value of a column."""
    if facts.keys:
        return facts.keys[0]
    return next((row[name] for row in rows if row.get(name) is not None), NASTY[kind][0])


def find_ends(facts: Mapping[str, ColumnFacts], *, high: bool) -> dict[str, Value]:
    """The declared bounds of those columns that have some."""
    bounds = {name: known.high if high else known.low for name, known in facts.items()}
    return {name: int(end) if end.denominator == 1 else float(end) for name, end in bounds.items() if end is not None}


def make_rare(kind: Type) -> Value:
    """A value that nobody else has."""
    values: dict[Type, Value] = {Type.TEXT: "only once", Type.INTEGER: 987_654_321, Type.REAL: 0.123456789}
    return values.get(kind, NASTY[kind][0])


def _make_ids(rows: Sequence[AuditRow], table: TableFacts) -> list[Value]:
    """Ids that no row has yet, but that look like others."""
    unit = _find_unit_column(table)
    return [None] if unit is None else make_ids_like([row[unit] for row in rows], table.columns[unit][0])


def make_ids_like(taken: Sequence[Value], kind: Type) -> list[Value]:
    """Ids of a type that are not taken, but look like those that are."""
    known = next((owner for owner in taken if owner is not None), None)
    texts: tuple[Value, ...] = ("new", "", " ", "x" * 1000, "\0", "NEW", f"{known} ", str(known).upper())
    numbers: tuple[Value, ...] = (10**9 + 7, 0, -1, INTEGER_MAX, INTEGER_MIN, 2**53 + 1)
    others = texts if kind is Type.TEXT else numbers if kind is Type.INTEGER else NASTY[kind]
    return [value for value in others if value not in taken and value is not None]


def _choose_owners(rows: Sequence[AuditRow], unit: str | None) -> list[Any]:
    """The units to remove: the one with most rows first, then some others."""
    if unit is None:
        return list(range(0, len(rows), max(1, len(rows) // 6)))
    counts: dict[Value, int] = {}
    for row in rows:
        if row[unit] is not None:
            counts[row[unit]] = counts.get(row[unit], 0) + 1
    ordered = sorted(counts, key=lambda owner: -counts[owner])
    return ordered[:3] + ordered[-2:]


def _choose_owner(rows: Sequence[AuditRow], unit: str | None) -> Any:
    owners = _choose_owners(rows, unit)
    return owners[0] if owners else None


def _remove_owner(rows: Sequence[AuditRow], unit: str | None, owner: Any) -> list[AuditRow]:
    if unit is None:
        return [row for number, row in enumerate(rows) if number != owner]
    return [row for row in rows if row[unit] != owner]


def describe_value(value: Value) -> str:
    """A value as a short text for people."""
    if value is None:
        return "NULL"
    text = str(value)
    return repr(text) if len(text) <= 24 else f"a text of {len(text):,} characters"
