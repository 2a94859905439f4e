"""Which row of a table the values of a relation come from.

The claim, about columns of a relation and one scan of a table below it: in every row of the relation these columns have
the values of columns of one row of the scan. It does not rest on a declaration, but follows from the nodes alone:

- Conditions, caps, DISTINCT, SEMI and ANTI take rows away; windows add columns.
- New columns: where one is a column of the source as it is.
- An inner join: a pair has the values of both of its rows, and what is equated has one value (in one type). LEFT keeps
  the values of its left side; other outer joins are passed over.
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
