"""Which rows of a table the rows of a relation are made of: what lets limits be looked up instead of counted.

Two claims, each about columns of a relation and one scan of a table below it:

- ``trace_values``: in every row of the relation these columns have the values of columns of one row of the scan.
- ``trace_rows``: moreover, no row of the scan is used for two rows of the relation. So at least as many rows of the
  table as of the relation have the same values there.

Neither rests on a declaration: they follow from the nodes alone. Reasons, by node:

- Conditions, caps, DISTINCT, SEMI and ANTI take rows away; windows add columns.
- New columns: where one is a column of the source as it is.
- An inner join: a pair has the values of both of its rows, and what is equated has one value (in one type). No row of a
  side is in two pairs where it meets at most one row of the other side. Outer joins are passed over, except that LEFT
  keeps each row of its left side.

A row meets at most one row of a side (``_meets_one``) that is capped to one row by columns it is joined on, that is a
look-up, that has groups by such columns, or that is an inner join or a part of such sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from discreet.plan.catalog import Catalog
from discreet.plan.expressions import Column, Expression
from discreet.plan.relations import (
    Capped,
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


def trace_values(relation: Relation, columns: Sequence[Expression]) -> tuple[Scan, tuple[str, ...]] | None:
    """The scan of which one row gives all of these columns, and their names there; None where there is no reason."""
    return _trace(relation, columns, once=False)


def trace_rows(relation: Relation, columns: Sequence[Expression]) -> tuple[Scan, tuple[str, ...]] | None:
    """The same, where no row of the scan is used for two rows."""
    return _trace(relation, columns, once=True)


def _trace(relation: Relation, columns: Sequence[Expression], *, once: bool) -> tuple[Scan, tuple[str, ...]] | None:
    match relation:
        case Scan():
            own = [column.name for column in columns if isinstance(column, Column) and column.table == relation.name]
            return (relation, tuple(own)) if len(own) == len(columns) else None
        case Where() | Capped() | Distinct() | Window():
            return _trace(relation.source, columns, once=once)
        case Projection():
            below = _look_below(relation, columns)
            return None if below is None else _trace(relation.source, below, once=once)
        case Join():
            return _trace_join(relation, columns, once=once)
        case Values() | PerUnit() | Union():
            return None
        case _:
            assert_never(relation)


def _trace_join(relation: Join, columns: Sequence[Expression], *, once: bool) -> tuple[Scan, tuple[str, ...]] | None:
    if relation.caps is not None:
        return None
    if relation.kind in (JoinKind.SEMI, JoinKind.ANTI):
        return _trace(relation.left, columns, once=once)
    inner = relation.kind is JoinKind.INNER
    ours, theirs = ([pair[side] for pair in relation.on] for side in range(2))
    left = columns if not inner else _exchange(relation, columns, 0)
    if inner or relation.kind is JoinKind.LEFT:
        found = _trace(relation.left, left, once=once)
        if found is not None and (not once or relation.single or _meets_one(relation.right, frozenset(theirs))):
            return found
    if inner:
        found = _trace(relation.right, _exchange(relation, columns, 1), once=once)
        if found is not None and (not once or _meets_one(relation.left, frozenset(ours))):
            return found
    return None


def _exchange(relation: Join, columns: Sequence[Expression], side: int) -> list[Expression]:
    """The columns, with the one of a side in place of one of the other side that is equal to it in every pair."""
    equal = {pair[1 - side]: pair[side] for pair in relation.on if pair[0].type is pair[1].type}
    return [equal.get(column, column) for column in columns]


def _look_below(relation: Projection, columns: Sequence[Expression]) -> list[Expression] | None:
    own: dict[Expression, Expression] = {Column(relation.name, n, v.type): v for n, v in relation.columns}
    below = [own.get(column) for column in columns]
    return [found for found in below if found is not None] if None not in below else None


def _meets_one(relation: Relation, on: frozenset[Expression]) -> bool:
    """Whether no two rows of a relation have the same values, none of them NULL, of these expressions."""
    match relation:
        case Capped():
            return (relation.rows == 1 and on.issuperset(relation.by)) or _meets_one(relation.source, on)
        case Where() | Window():
            return _meets_one(relation.source, on)
        case Projection():
            own: dict[Expression, Expression] = {Column(relation.name, n, v.type): v for n, v in relation.columns}
            return _meets_one(relation.source, frozenset(own[column] for column in on if column in own))
        case PerUnit():
            return on.issuperset(Column(relation.name, name, key.type) for name, key in relation.keys)
        case Join():
            if relation.caps is not None or relation.kind in (JoinKind.RIGHT, JoinKind.FULL):
                return False
            if relation.kind in (JoinKind.SEMI, JoinKind.ANTI):
                return _meets_one(relation.left, on)
            theirs = frozenset(pair[1] for pair in relation.on)
            return _meets_one(relation.left, on) and (relation.single or _meets_one(relation.right, theirs))
        case Scan() | Values() | Distinct() | Union():
            return False
        case _:
            assert_never(relation)


def follow_link(relation: Relation, catalog: Catalog) -> tuple[Join, Projection] | None:
    """The join by which the rows of a table reach their unit in one step (``plan.reach``), and the keys it reads.

    Conditions above it are passed over. None for every other relation.
    """
    while isinstance(relation, Where):
        relation = relation.source
    if not isinstance(relation, Join) or relation.kind is not JoinKind.INNER or relation.caps or relation.single:
        return None
    left, right = relation.left, relation.right
    if not isinstance(left, Scan) or not isinstance(right, Distinct) or not isinstance(right.source, Projection):
        return None
    facts, keys = catalog.tables[left.table], right.source
    if facts.link is None or not isinstance(keys.source, Scan) or keys.source.table != facts.link.parent:
        return None
    return relation, keys
