"""Joins along a foreign key, without reading the table of the key twice.

The rows of a table reach their unit by a join with the distinct keys and units of the table they refer to
(``plan.reach``). If they are joined with rows of that table as well, on the key and on the unit, the keys say nothing
new: for rows l and x with the same key, of which x is made of a row of the table with that key and the unit u, the keys
have exactly one row of this key and u. So the pairs are those of l and x with the same key, and the unit of l is u.
Pairs where u is NULL come along; they belong to nobody, meet nobody on the unit, and are dropped in the end, as all
rows without a unit. This does not rest on the declaration: a key may be held by several units, or repeat.
"""

from __future__ import annotations

from dataclasses import replace

from discreet.engines.sql.row_origins import follow_link, trace_values
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import Catalog
from discreet.plan.expressions import Column, Expression, find_columns
from discreet.plan.relations import Join, JoinKind, Projection, Relation, Where


@dataclass(frozen=True, slots=True)
class DroppedLink:
    """A join without the keys of a link, and for each of their columns the one that has the same values."""

    join: Join
    same: dict[Column, Column]


def drop_link(relation: Join, catalog: Catalog) -> DroppedLink | None:
    """The join without a link that one of its sides reads; None where the link is needed."""
    if relation.caps is not None or relation.single or relation.kind not in (JoinKind.INNER, JoinKind.SEMI):
        return None
    for side in (1, 0) if relation.kind is JoinKind.INNER else (1,):
        found = _drop_on_side(relation, side, catalog)
        if found is not None:
            return found
    return None


def _drop_on_side(relation: Join, side: int, catalog: Catalog) -> DroppedLink | None:
    linked, other = (relation.left, relation.right)[:: 1 if side == 0 else -1]
    link = follow_link(linked, catalog)
    if link is None:
        return None
    joined, keys = link
    own = {name: Column(keys.name, name, value.type) for name, value in keys.columns}
    equal = {pair[side]: pair[1 - side] for pair in relation.on if pair[0].type is pair[1].type}
    by_key = {theirs: ours for ours, theirs in joined.on}
    shown = [by_key.get(column, column) for column in own.values()]  # the foreign key of the row itself, and the unit
    outside = [equal[column] for column in shown if column in equal]
    if len(outside) < len(shown) or set(by_key) - set(own.values()) or not _is_parent(other, outside, keys):
        return None
    unit, source = equal[own["unit"]], _drop_keys(linked, joined, frozenset(own.values()))
    if source is None or not isinstance(unit, Column):
        return None
    left, right = (source, other) if side == 0 else (other, source)
    on = tuple(pair for pair in relation.on if pair[side] not in own.values())
    same = {column: found for column, found in zip(own.values(), shown) if isinstance(found, Column)}
    same[own["unit"]] = unit
    return DroppedLink(replace(relation, left=left, right=right, on=on), same)


def _is_parent(other: Relation, columns: list[Expression], keys: Projection) -> bool:
    """Whether the columns of the other side are, in every row, those of the keys in one row of their table."""
    found = trace_values(other, columns)
    names = tuple(value.name for _, value in keys.columns if isinstance(value, Column))
    return found is not None and found == (replace(found[0], table=_table_of(keys)), names)


def _table_of(keys: Projection) -> str:
    return getattr(keys.source, "table", "")


def _drop_keys(linked: Relation, joined: Join, own: frozenset[Column]) -> Relation | None:
    """The side with the table alone; None if a condition reads the keys."""
    if linked is joined:
        return joined.left
    if not isinstance(linked, Where) or find_columns(linked.condition) & own:
        return None
    below = _drop_keys(linked.source, joined, own)
    return None if below is None else replace(linked, source=below)
