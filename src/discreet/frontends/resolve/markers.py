"""Marks each row by what another SELECT holds for it, so that EXISTS and IN may stand anywhere in a condition.

A semi join can only keep rows. Under OR, or with a comparison such as ``<>`` beside the equalities, whether a row has a
match must be a value of the row. So the SELECT is grouped by what it is tied with (``PerUnit``), which leaves at most
one row for each row outside, and joined to it (LEFT JOIN). The row exists where the group does. With one comparison
``inner < outer`` it exists where the least inner value is below the outer one; with ``<>``, where the least or the
greatest differs.

Privacy: the groups of a private SELECT have the unit as a key, and the join equates it, so both keep the relation local
(``bounding.stability``). A row outside meets at most one group, so no row is multiplied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from discreet.frontends.resolve.calls import FLIPPED, make
from discreet.frontends.resolve.equalities import ExpressionPair, reads_only
from discreet.frontends.resolve.join_scopes import JoinSides, add_units
from discreet.frontends.resolve.scope import RelationMaker, Scope, find_facts_at
from discreet.frontends.terms.positions import Place
from discreet.late_dataclass import dataclass
from discreet.plan.expressions import Call, Column, Expression, Literal
from discreet.plan.functions import make_call
from discreet.plan.relations import Feature, FeatureCall, Join, JoinKind, PerUnit
from discreet.plan.types import Type

FALSE = Literal(value=False, type=Type.BOOLEAN)


@dataclass(frozen=True, slots=True)
class TiedComparison:
    """A comparison of an expression of a SELECT with one of the row outside: ``inner function outer``."""

    function: str
    inner: Expression
    outer: Expression


def find_comparison(condition: Expression, outer: Scope, inner: Scope) -> TiedComparison | None:
    """The comparison that a condition makes between a SELECT and the row outside; else None."""
    if not isinstance(condition, Call) or condition.function not in FLIPPED:
        return None
    one, two = condition.arguments
    if reads_only(one, inner.facts) and reads_only(two, outer.facts):
        return TiedComparison(condition.function, one, two)
    if reads_only(two, inner.facts) and reads_only(one, outer.facts):
        return TiedComparison(FLIPPED[condition.function], two, one)
    return None


def add_marker(
    sides: JoinSides,
    pairs: Sequence[ExpressionPair],
    comparison: TiedComparison | None,
    maker: RelationMaker,
    place: Place | None,
) -> tuple[Scope, Expression]:
    """The rows outside with one more column, and the condition over it that a row inside matches. It is never NULL."""
    outer, inner = sides.left, sides.right
    tied = add_units(sides, tuple(pairs))
    name = maker.make_name("matches")
    keys = {expression: f"key {i}" for i, expression in enumerate(dict.fromkeys(pair[1] for pair in tied), 1)}
    features = _list_features(comparison)
    groups = PerUnit(
        inner.relation,
        name,
        tuple((title, expression) for expression, title in keys.items()),
        tuple((str(call.feature), call) for call in features),
    )
    found = {call.feature: Column(name, str(call.feature), call.type) for call in features}
    on = tuple((one, Column(name, keys[two], two.type)) for one, two in tied)
    relation = Join(outer.relation, groups, JoinKind.LEFT, on, single=not inner.facts.private)
    facts = find_facts_at(relation, maker.catalog, place)
    return replace(outer, relation=relation, facts=facts), _write_condition(comparison, found)


def _list_features(comparison: TiedComparison | None) -> tuple[FeatureCall, ...]:
    """What is kept of a group of rows: how many there are, or the values at its ends."""
    if comparison is None:
        return (FeatureCall(Feature.COUNT, None, Type.INTEGER),)
    kind = comparison.inner.type
    least, most = (FeatureCall(feature, comparison.inner, kind) for feature in (Feature.MIN, Feature.MAX))
    if comparison.function in ("less", "at_most"):
        return (least,)
    return (most,) if comparison.function in ("greater", "at_least") else (least, most)


def _write_condition(comparison: TiedComparison | None, found: dict[Feature, Column]) -> Expression:
    if comparison is None:
        return make_call("not", make_call("is_null", found[Feature.COUNT]))
    ends = [make(comparison.function, (end, comparison.outer), None) for end in found.values()]
    return make_call("coalesce", ends[0] if len(ends) == 1 else make_call("or", *ends), FALSE)
