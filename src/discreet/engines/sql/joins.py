"""Joins in SQL: pairs by plain equality, look-ups, and sides that are truncated first."""

from __future__ import annotations

from collections.abc import Sequence

from discreet.engines.sql.clauses import Clauses, CommonTable, write_order
from discreet.errors import InternalError
from discreet.late_dataclass import dataclass
from discreet.plan.expressions import Column, Expression
from discreet.plan.functions import find_common_type
from discreet.plan.relations import Caps, Join
from discreet.plan.types import Type


@dataclass(frozen=True, slots=True)
class _JoinSide:
    """A side of a join: its rows, and the columns that they are joined on."""

    rows: CommonTable
    keys: tuple[str, ...]


def write_join(
    clauses: Clauses, relation: Join, sides: tuple[CommonTable, CommonTable], salt: bytes, *, unique: bool = False
) -> str:
    """A join of two sides, as something to write after FROM. For truncation, a side carries all of its columns.

    ``unique`` says that no key of the right side repeats, so that a look-up has nothing to take away.
    """
    kinds = [_find_shared_type(ours, theirs) for ours, theirs in relation.on]
    caps: tuple[Caps | None, Caps | None] = relation.caps or (None, None)
    left, right = (
        _add_side(clauses, rows, [(pair[i], kind) for pair, kind in zip(relation.on, kinds)], caps[i], salt)
        for i, rows in enumerate(sides)
    )
    if relation.single and not unique:
        left, right = _add_anchor(clauses, left), _drop_repeated_keys(clauses, _add_anchor(clauses, right))
    same = " AND ".join(f"{ours} = {theirs}" for ours, theirs in zip(left.keys, right.keys)) or "true"
    return clauses.dialect.join(left.rows.name, relation.kind, right.rows.name, same)


def _find_shared_type(ours: Expression, theirs: Expression) -> Type:
    kind = find_common_type((ours.type, theirs.type))
    if kind is None:
        raise InternalError("A join compares values of different kinds.")
    return kind


def _add_side(
    clauses: Clauses, source: CommonTable, on: Sequence[tuple[Expression, Type]], caps: Caps | None, salt: bytes
) -> _JoinSide:
    """A side with its keys, each in the type that both sides share."""
    if caps is None and all(part in source.columns and part.type is kind for part, kind in on):
        # No copies: DuckDB orders joins only where nothing but columns stands between them.
        return _JoinSide(source, tuple(source.columns[part] for part, _ in on if isinstance(part, Column)))
    layers = clauses.make_layers(source)
    values = [clauses.dialect.widen(layers.write_value(part), part.type, kind) for part, kind in on]
    unit = "" if caps is None else layers.write_value(caps.unit)
    keys = tuple(clauses.make_name("k") for _ in values)
    items = [*source.columns.values(), *(f"{sql} AS {key}" for sql, key in zip(values, keys))]
    top = clauses.add_layers(layers, source)
    if caps is None:
        return _JoinSide(CommonTable(clauses.add(items, top), source.columns), keys)
    name = clauses.make_name("u")
    below = _JoinSide(CommonTable(clauses.add([*items, f"{unit} AS {name}"], top), source.columns), keys)
    return _truncate(clauses, below, name, caps, salt)


def _truncate(clauses: Clauses, side: _JoinSide, unit: str, caps: Caps, salt: bytes) -> _JoinSide:
    """At most so many rows of each unit, then at most so many with the same keys, as both sides compare them.

    The secret order is that of all columns, so that rows which stand at the same place are equal in everything.
    """
    columns = sorted(side.rows.columns.items(), key=lambda item: (item[0].table, item[0].name))
    values = [(name, column.type) for column, name in columns]
    place = clauses.make_name("h")
    known = " AND ".join(f"{name} IS NOT NULL" for name in (unit, *side.keys))
    placed = ["*", f"{clauses.dialect.place_of_row(values, salt)} AS {place}"]
    hashed = clauses.add(placed, side.rows.name, f" WHERE {known}")
    order = [place, *(write_order(name) for name, _ in values)]
    by_unit = clauses.add_first_rows(hashed, [unit], order, caps.rows)
    by_key = clauses.add_first_rows(by_unit, side.keys, order, caps.frequency)
    return _JoinSide(CommonTable(by_key, side.rows.columns), side.keys)


def _add_anchor(clauses: Clauses, side: _JoinSide) -> _JoinSide:
    """A side without keys with one that is the same everywhere, so that a look-up has something to take away."""
    if side.keys:
        return side
    key = clauses.make_name("k")
    items = [*side.rows.columns.values(), f"{clauses.dialect.literal(1, Type.INTEGER)} AS {key}"]
    return _JoinSide(CommonTable(clauses.add(items, side.rows.name), side.rows.columns), (key,))


def _drop_repeated_keys(clauses: Clauses, side: _JoinSide) -> _JoinSide:
    """Rows whose keys are held by others, too, get NULL for keys, which matches nothing."""
    alone = clauses.make_name("n")
    counted = clauses.add(["*", f"count(*) OVER (PARTITION BY {', '.join(side.keys)}) AS {alone}"], side.rows.name)
    keys = tuple(clauses.make_name("k") for _ in side.keys)
    nulled = (f"CASE WHEN {alone} = 1 THEN {old} END AS {new}" for old, new in zip(side.keys, keys))
    return _JoinSide(CommonTable(clauses.add([*side.rows.columns.values(), *nulled], counted), side.rows.columns), keys)
