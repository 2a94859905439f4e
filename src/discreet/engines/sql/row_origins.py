"""Which rows of a table the rows of a relation are made of.

Two claims, each about columns of a relation and one scan of a table below it. Neither rests on a declaration: they
follow from the nodes alone.

``trace_values``: in every row of the relation these columns have the values of columns of one row of the scan.

- Conditions, caps, DISTINCT, SEMI and ANTI take rows away; windows add columns.
- New columns: where one is a column of the source as it is.
- An inner join: a pair has the values of both of its rows, and what is equated has one value (in one type). LEFT keeps
  the values of its left side; other outer joins are passed over.

``trace_rows``: moreover, no row of the scan is used for two rows of the relation, and the relation of two parts of the
scan together is what it is of the one, and what it is of the other.

- Conditions and new columns look at each row alone. Caps, DISTINCT and windows do not, and are passed over.
- A join pairs each row of a side alone. No row of a side is in two pairs where it meets at most one row of the other
  side. What SEMI, ANTI and LEFT do with a row of their left side is decided by that row and the right side.

A row meets at most one row of a side (``_meets_one``) that is capped to one row by columns it is joined on, that is a
look-up, that has groups by such columns, or that is made of such a side.
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
    split,
)


def trace_values(relation: Relation, columns: Sequence[Expression]) -> tuple[Scan, tuple[str, ...]] | None:
    """The scan of which one row gives all of these columns, and their names there; None where there is no reason."""
    match relation:
        case Scan():
            own = [column.name for column in columns if isinstance(column, Column) and column.table == relation.name]
            return (relation, tuple(own)) if len(own) == len(columns) else None
        case Where() | Capped() | Distinct() | Window():
            return trace_values(relation.source, columns)
        case Projection():
            below = _look_below(relation, columns)
            return None if below is None else trace_values(relation.source, below)
        case Join():
            return _trace_join(relation, columns)
        case Values() | PerUnit() | Union():
            return None
        case _:
            assert_never(relation)


def _trace_join(relation: Join, columns: Sequence[Expression]) -> tuple[Scan, tuple[str, ...]] | None:
    if relation.caps is not None:
        return None
    if relation.kind in (JoinKind.SEMI, JoinKind.ANTI):
        return trace_values(relation.left, columns)
    inner = relation.kind is JoinKind.INNER
    if inner or relation.kind is JoinKind.LEFT:
        found = trace_values(relation.left, _exchange(relation, columns, 0) if inner else columns)
        if found is not None:
            return found
    return trace_values(relation.right, _exchange(relation, columns, 1)) if inner else None


def trace_rows(relation: Relation, columns: Sequence[Expression]) -> tuple[Scan, tuple[str, ...]] | None:
    """The same where each row of the scan is used once at most, and its rows are used one by one."""
    match relation:
        case Scan():
            return trace_values(relation, columns)
        case Where():
            return trace_rows(relation.source, columns)
        case Projection():
            below = _look_below(relation, columns)
            return None if below is None else trace_rows(relation.source, below)
        case Join():
            return _trace_rows_of_join(relation, columns)
        case Capped() | Distinct() | Window() | Values() | PerUnit() | Union():
            return None
        case _:
            assert_never(relation)


def _trace_rows_of_join(relation: Join, columns: Sequence[Expression]) -> tuple[Scan, tuple[str, ...]] | None:
    if relation.caps is not None:
        return None
    if relation.kind in (JoinKind.SEMI, JoinKind.ANTI):
        return trace_rows(relation.left, columns)
    inner = relation.kind is JoinKind.INNER
    ours, theirs = (frozenset(pair[side] for pair in relation.on) for side in range(2))
    if inner or relation.kind is JoinKind.LEFT:
        found = trace_rows(relation.left, _exchange(relation, columns, 0) if inner else columns)
        if found is not None and (relation.single or _meets_one(relation.right, theirs)):
            return found
    if inner and not relation.single:  # a look-up counts the rows of its right side together
        found = trace_rows(relation.right, _exchange(relation, columns, 1))
        if found is not None and _meets_one(relation.left, ours):
            return found
    return None


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


def _exchange(relation: Join, columns: Sequence[Expression], side: int) -> list[Expression]:
    """The columns, with the one of a side in place of one of the other side that is equal to it in every pair."""
    equal = {pair[1 - side]: pair[side] for pair in relation.on if pair[0].type is pair[1].type}
    return [equal.get(column, column) for column in columns]


def _look_below(relation: Projection, columns: Sequence[Expression]) -> list[Expression] | None:
    own: dict[Expression, Expression] = {Column(relation.name, n, v.type): v for n, v in relation.columns}
    below = [own.get(column) for column in columns]
    return [found for found in below if found is not None] if None not in below else None


def follow_link(relation: Relation, catalog: Catalog) -> tuple[Join, Projection] | None:
    """The join by which the rows of a table reach their unit in one step (``plan.reach``), and the keys it reads.

    Conditions above it, and on the table, are passed over. None for every other relation.
    """
    while isinstance(relation, Where):
        relation = relation.source
    if not isinstance(relation, Join) or relation.kind is not JoinKind.INNER or relation.caps or relation.single:
        return None
    left, right = split(relation.left)[0], relation.right
    if not isinstance(left, Scan) or not isinstance(right, Distinct) or not isinstance(right.source, Projection):
        return None
    facts, keys = catalog.tables[left.table], right.source
    if facts.link is None or not isinstance(keys.source, Scan) or keys.source.table != facts.link.parent:
        return None
    return relation, keys
