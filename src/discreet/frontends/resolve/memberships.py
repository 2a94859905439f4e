"""Resolves WHERE: conditions on rows, and IN (SELECT ...) and EXISTS, which become semi joins and anti joins.

x IN (SELECT ...) and EXISTS keep a row if a row of the SELECT matches. NOT IN and NOT EXISTS keep it if none matches.
An anti join has the meaning of NOT IN in SQL only where there is no NULL on either side, so NOT IN is refused
elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from discreet.bounding.facts import facts_of
from discreet.frontends.resolve.calls import check_condition, make, split_conditions
from discreet.frontends.resolve.equalities import ExpressionPair, is_required, pair_of, split_ands
from discreet.frontends.resolve.join_scopes import JoinSides, connect, keeps_units
from discreet.frontends.resolve.rows import ColumnFinder, is_aggregate, resolve_row
from discreet.frontends.resolve.scope import RelationMaker, Scope
from discreet.frontends.terms.positions import Place, refusal
from discreet.frontends.terms.syntax import (
    Draft,
    FunctionTerm,
    MembershipTerm,
    NameTerm,
    QueryTerm,
    Term,
    apply,
    parts_of,
)
from discreet.plan.expressions import Expression, find_columns
from discreet.plan.functions import make_call
from discreet.plan.relations import JoinKind, split


def apply_where(terms: Sequence[Term], scope: Scope, maker: RelationMaker, find: ColumnFinder | None = None) -> Scope:
    """The rows of a scope for which all terms are true. ``find`` looks up names, with its own refusals."""
    find_column = find or (lambda name: scope.find(name).expression)
    conditions: dict[Expression, None] = {}
    members: list[tuple[MembershipTerm, bool]] = []
    for term in terms:
        rest, inside = _split(term)
        members += inside
        if rest is not None:
            expression = check_condition(resolve_row(rest, find_column, "WHERE"), "WHERE", rest.place)
            conditions |= dict.fromkeys(split_conditions(expression))
    conditions = {condition: None for condition in conditions if not is_required(condition, scope)}
    for member, negated in members:
        kind = JoinKind.ANTI if negated else JoinKind.SEMI
        if member.tested is None:
            inner, pairs = _resolve_exists(member, scope, maker)
        else:
            value = resolve_row(member.tested, find_column, "WHERE")
            inner, pairs = _resolve_in(member, value, kind, scope.keep_where(*conditions), maker)
        scope = _join_membership(JoinSides(scope, inner, maker.catalog), kind, pairs, member)
    return scope.keep_where(*conditions)


def _split(term: Term) -> tuple[Term | None, list[tuple[MembershipTerm, bool]]]:
    """A condition without its IN (SELECT ...) and EXISTS, and these, each with whether it is negated."""
    if not any(isinstance(part, MembershipTerm) for part in parts_of(term)):
        return term, []
    rest: list[Term] = []
    members: list[tuple[MembershipTerm, bool]] = []
    for part in split_ands([term]):
        inner, negated = part, False
        while isinstance(inner, FunctionTerm) and inner.function == "not":
            inner, negated = inner.arguments[0], not negated
        if isinstance(inner, MembershipTerm):
            members.append((inner, negated))
        else:
            rest.append(part)
    if not rest:
        return None, members
    return (rest[0] if len(rest) == 1 else apply("and", *rest, place=term.place)), members


def _resolve_in(
    member: MembershipTerm, value: Expression, kind: JoinKind, scope: Scope, maker: RelationMaker
) -> tuple[Scope, tuple[ExpressionPair, ...]]:
    """The scope of the SELECT of an IN, and the pairs of expressions that must be equal."""
    inner = maker.resolve_subquery(member.query, member.place)
    shown = [column for column in inner.columns if not column.merged]
    if len(shown) != 1:
        rule = f"IN compares with one column; this SELECT has {len(shown)}."
        raise refusal(member.place, rule, "Select one column inside.")
    wanted = shown[0].expression
    pair = pair_of(make("equal", (value, wanted), member.place), scope.facts, inner.facts)
    if pair is None:
        rule = "IN (SELECT ...) compares a column of the rows with a column of the SELECT."
        raise refusal(member.place, rule, "Name a column on both sides.")
    if kind is JoinKind.ANTI:
        _check_nulls(value, scope, member.place, "before NOT IN")
        _check_nulls(wanted, inner, member.place, "inside NOT IN")
    return inner, (pair,)


def _check_nulls(expression: Expression, scope: Scope, place: Place | None, side: str) -> None:
    """Refuse NOT IN where a compared value may be NULL: then it would be NULL, and no row would remain.

    The unit is never NULL, because rows without a unit are dropped.
    """
    if expression in scope.facts.units or not facts_of(expression, scope.facts).nullable:
        return
    if make_call("not", make_call("is_null", expression)) in split(scope.relation)[1]:
        return
    rule = f"There may be a NULL {side}, which would make it NULL for all rows."
    raise refusal(place, rule, "Add the condition IS NOT NULL for it, or use NOT EXISTS.")


def _resolve_exists(
    member: MembershipTerm, scope: Scope, maker: RelationMaker
) -> tuple[Scope, tuple[ExpressionPair, ...]]:
    """The scope of the SELECT of an EXISTS, and the pairs that relate it to the row outside."""
    draft = _check_exists_query(member.query, member.place)
    inner = maker.resolve_from(draft.source, draft.where)

    def find(name: NameTerm) -> Expression:
        """The column of the SELECT that a name means, else the column of the row outside."""
        outside = not inner.find_matches(name) and scope.find_matches(name)
        return (scope if outside else inner).find(name).expression

    pairs: dict[ExpressionPair, None] = {}
    for term in split_ands(draft.where):
        if any(isinstance(part, MembershipTerm) for part in parts_of(term)):
            inner = apply_where((term,), inner, maker)
            continue
        condition = check_condition(resolve_row(term, find, "WHERE"), "WHERE", term.place)
        pair = pair_of(condition, scope.facts, inner.facts)
        if pair is not None:
            pairs[pair] = None
        elif find_columns(condition) <= inner.facts.columns.keys():
            inner = inner.keep_where(*(part for part in split_conditions(condition) if not is_required(part, inner)))
        else:
            rule = "EXISTS is tied to the row by equalities, one side of the row and one of the SELECT."
            raise refusal(term.place, rule, "Write it as a.x = b.y, and put other conditions outside.")
    if not pairs:
        rule = "This EXISTS is the same for all rows: nothing ties it to the row."
        raise refusal(member.place, rule, "Add an equality between a column of the row and one of the SELECT.")
    return inner, tuple(pairs)


def _check_exists_query(query: QueryTerm, place: Place | None) -> Draft:
    """The SELECT of an EXISTS. One with groups or aggregates is refused."""
    if not isinstance(query, Draft):
        raise refusal(place, "EXISTS takes one SELECT.", "Put the UNION into a subquery in FROM.")
    outputs = [part for item in query.select for part in parts_of(item.term)]
    if query.group != () or query.having or query.qualify or any(is_aggregate(part) for part in outputs):
        rule = "EXISTS takes a SELECT without GROUP BY, HAVING, QUALIFY and aggregates."
        raise refusal(place, rule, "Write EXISTS (SELECT 1 FROM ... WHERE ...).")
    return query


def _join_membership(
    sides: JoinSides, kind: JoinKind, pairs: tuple[ExpressionPair, ...], member: MembershipTerm
) -> Scope:
    """The rows outside that match a row inside, or that match none."""
    if not keeps_units(sides, pairs):
        word = "EXISTS" if member.tested is None else "IN (SELECT ...)"
        unit = sides.left.describe_unit() or sides.catalog.unit.column
        rule = f"{word} over a private table must compare the unit, or it would tell about other units."
        raise refusal(member.place, rule, f"Compare {unit} with the unit of the SELECT, or use a public table.")
    relation, facts = connect(sides, kind, pairs, member.place)
    return replace(sides.left, relation=relation, facts=facts)
