"""Resolves INTERSECT and EXCEPT: the rows of one SELECT that another one has, or lacks, each once.

Two rows are the same if all their columns are, and two NULLs are the same here. A join never equates NULLs, so a column
that may be NULL on both sides is compared in two parts: whether it is NULL, and its value with a constant instead.
With that, INTERSECT is a semi join, EXCEPT an anti join, and each row stays once.

Privacy: the unit is one of the columns, in the same place of both SELECTs. So a row is compared with rows of its own
unit only, and both joins and DISTINCT keep the relation local (``bounding.stability``).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

from discreet.bounding.facts import facts_of
from discreet.frontends.resolve.equalities import ExpressionPair
from discreet.frontends.resolve.join_scopes import JoinSides, connect
from discreet.frontends.resolve.scope import RelationMaker, Scope, SourceName, VisibleColumn, find_facts_at
from discreet.frontends.resolve.select_outputs import SelectResult, project
from discreet.frontends.resolve.unions import align_parts
from discreet.frontends.terms.positions import refusal
from discreet.frontends.terms.syntax import SetTerm
from discreet.plan.expressions import Expression, Literal
from discreet.plan.functions import make_call
from discreet.plan.relations import Distinct, JoinKind
from discreet.plan.types import Type, Value

# What stands for NULL while values are compared; whether it is NULL is compared, too.
STAND_INS: Mapping[Type, Value] = {
    Type.BOOLEAN: False,
    Type.INTEGER: 0,
    Type.REAL: 0.0,
    Type.TEXT: "",
    Type.DATE: dt.date(1970, 1, 1),
    Type.TIMESTAMP: dt.datetime(1970, 1, 1),  # noqa: DTZ001  # timestamps have no zone here
}


def resolve_set(query: SetTerm, maker: RelationMaker) -> Scope:
    """The rows of the first SELECT that the second has, or lacks. The names of the columns are those of the first."""
    word = "EXCEPT" if query.without else "INTERSECT"
    parts = align_parts((query.left, query.right), word, query.place, maker)
    if not parts.has_unit:
        rule = f"{word} would compare rows of different units."
        unit = maker.catalog.unit.column
        fix = f"Select {unit} in the same place of each part." if unit else "Declare a unit in the codebook."
        raise refusal(query.place, rule, fix)
    sides = [_make_side(scope, outputs, maker) for scope, outputs in zip(parts.scopes, parts.outputs)]
    pairs = [
        pair
        for one, two in zip(sides[0].columns, sides[1].columns)
        for pair in _equate(one.expression, two.expression, sides[0], sides[1])
    ]
    kind = JoinKind.ANTI if query.without else JoinKind.SEMI
    joined, _ = connect(JoinSides(sides[0], sides[1], maker.catalog), kind, tuple(dict.fromkeys(pairs)), query.place)
    relation = Distinct(joined)
    facts = find_facts_at(relation, maker.catalog, query.place)
    return Scope(relation, sides[0].columns, (SourceName("", ""),), facts)


def _make_side(scope: Scope, outputs: tuple[VisibleColumn, ...], maker: RelationMaker) -> Scope:
    node, shown = project(SelectResult(scope, outputs), maker.make_name("part"), hidden=False)
    return Scope(node, shown, (SourceName("", ""),), find_facts_at(node, maker.catalog, None))


def _equate(one: Expression, two: Expression, left: Scope, right: Scope) -> tuple[ExpressionPair, ...]:
    """The pairs that say that two values are the same, or both NULL. A unit is never NULL."""
    plain = one in left.facts.units and two in right.facts.units
    if plain or not (facts_of(one, left.facts).nullable and facts_of(two, right.facts).nullable):
        return ((one, two),)
    stand_in = Literal(STAND_INS[one.type], one.type)
    missing = (make_call("is_null", one), make_call("is_null", two))
    return missing, (make_call("coalesce", one, stand_in), make_call("coalesce", two, stand_in))
