"""Up to which size reals of one unit count where they are summed: far beyond their bounds, where these are known.

So the steps in which reals are added are public (``plan.real_steps``), and engines need not look for the largest value
of each group before they add. Values that an owner did not expect still count as they are: bounds are applied to what
leaves the unit, and not within it.

Privacy: a value's size is cut by constants, in its own row, so the relation stays local (``stability``), and no
sensitivity depends on it. What is known of a feature's values bounds them where they are measured, as before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from discreet.bounding.facts import facts_of
from discreet.bounding.grids import LARGEST_BOUND
from discreet.bounding.relation_facts import RelationFacts
from discreet.bounding.stability import find_relation_facts
from discreet.plan.catalog import Catalog
from discreet.plan.real_steps import MARGIN, is_stepped
from discreet.plan.relations import (
    Capped,
    Distinct,
    FeatureCall,
    Join,
    PerUnit,
    Projection,
    Relation,
    Scan,
    Union,
    Values,
    Where,
    Window,
)


def set_sizes(relation: Relation, catalog: Catalog) -> Relation:
    """A relation in which each sum and mean of a unit's reals says up to which size they count, if that is public."""
    match relation:
        case Scan() | Values():
            return relation
        case Join():
            left, right = (set_sizes(source, catalog) for source in (relation.left, relation.right))
            return replace(relation, left=left, right=right)
        case Union():
            return replace(relation, sources=tuple(_set_part(source, catalog) for source in relation.sources))
        case Projection():
            return _set_part(relation, catalog)
        case PerUnit() | Window():
            features = relation.features
            if any(is_stepped(call) or call.size is not None for _, call in features):
                facts = find_relation_facts(relation.source, catalog)
                features = tuple((name, _set_size(call, facts)) for name, call in features)
            return replace(relation, source=set_sizes(relation.source, catalog), features=features)
        case Where() | Distinct() | Capped():
            return replace(relation, source=set_sizes(relation.source, catalog))
        case _:
            assert_never(relation)


def _set_part(relation: Projection, catalog: Catalog) -> Projection:
    return replace(relation, source=set_sizes(relation.source, catalog))


def _set_size(call: FeatureCall, source: RelationFacts) -> FeatureCall:
    if call.argument is None or not is_stepped(call):
        return replace(call, size=None)
    facts = facts_of(call.argument, source)
    largest = 0 if facts.low is None or facts.high is None else max(-facts.low, facts.high)
    return replace(call, size=float(largest * MARGIN) if 0 < largest <= LARGEST_BOUND else None)
