"""Resolves a SELECT inside a question to a relation that keeps units apart.

Outputs that are columns of FROM need no new node. New columns make a ``Projection``, which also has the unit, even
where the SELECT does not name it. GROUP BY with the unit makes a ``PerUnit`` (``unit_groups``), OVER a ``Window``
(``unit_windows``), UNION ALL a ``Union`` (``unions``), INTERSECT and EXCEPT a
semi join or an anti join (``set_operations``), and DISTINCT with the unit a ``Distinct`` (``select_outputs``).
"""

from __future__ import annotations

from discreet.frontends.resolve import set_operations, unions, unit_groups, unit_windows
from discreet.frontends.resolve.memberships import apply_where
from discreet.frontends.resolve.rows import is_aggregate
from discreet.frontends.resolve.scope import RelationMaker, Scope
from discreet.frontends.resolve.select_outputs import show_outputs
from discreet.frontends.terms.syntax import Draft, QueryTerm, SetTerm, UnionTerm, parts_of


def scope_of(query: QueryTerm, maker: RelationMaker) -> Scope:
    """The columns of a SELECT inside a question."""
    if isinstance(query, UnionTerm):
        return unions.resolve_union(query, maker)
    if isinstance(query, SetTerm):
        return set_operations.resolve_set(query, maker)
    base = apply_where(query.where, maker.resolve_from(query.source, query.where), maker)
    result = (
        unit_groups.resolve_groups(query, base, maker)
        if _has_groups(query)
        else unit_windows.resolve_rows(query, base, maker)
    )
    return show_outputs(result, maker, distinct=query.distinct)


def _has_groups(draft: Draft) -> bool:
    """Whether a SELECT has groups."""
    terms = [item.term for item in draft.select] + list(draft.having)
    return bool(draft.group or draft.having) or any(is_aggregate(part) for term in terms for part in parts_of(term))
