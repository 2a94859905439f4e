"""A SELECT inside a question, to a relation that keeps units apart.

Columns that are only passed on need no node of their own. New columns are a ``Derive``, which carries the unit along
even where the SELECT does not name it. GROUP BY with the unit is ``PerUnit`` (``features``), OVER is ``Window``
(``windows``), UNION ALL is ``Union`` (``unions``), and DISTINCT with the unit is ``Distinct``.
"""

from __future__ import annotations

from discreet.frontends import features, unions, windows
from discreet.frontends.memberships import where
from discreet.frontends.outputs import finished
from discreet.frontends.rows import is_aggregate
from discreet.frontends.scope import Maker, Scope
from discreet.frontends.terms import Draft, Query, Stacked, parts_of


def scope_of(query: Query, maker: Maker) -> Scope:
    """The columns of a SELECT inside a question."""
    if isinstance(query, Stacked):
        return unions.stacked(query, maker)
    base = where(query.where, maker.scope(query.source, query.where), maker)
    derived = features.grouped(query, base, maker) if _aggregates(query) else windows.plain(query, base, maker)
    return finished(derived, maker, distinct=query.distinct)


def _aggregates(draft: Draft) -> bool:
    """Whether a SELECT makes groups."""
    terms = [item.term for item in draft.select] + list(draft.having)
    return bool(draft.group or draft.having) or any(is_aggregate(part) for term in terms for part in parts_of(term))
