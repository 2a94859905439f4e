"""WHERE: conditions on rows, and membership in other relations as joins that keep or leave out rows.

x IN (SELECT ...) and EXISTS keep a row if something matches, NOT IN and NOT EXISTS if nothing does. NOT IN keeps SQL's
meaning only where there is no NULL on either side, so it is refused elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from discreet.bounding.facts import facts_of
from discreet.frontends.resolve.calls import check_condition, make, split_conditions
from discreet.frontends.resolve.equalities import ExpressionPair, is_tied, pair_of, split_ands
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
    """The rows of a scope for which all terms hold. ``find`` looks names up, with refusals of its own."""
    look = find or (lambda name: scope.find(name).expression)
    found: dict[Expression, None] = {}
    members: list[tuple[MembershipTerm, bool]] = []
    for term in terms:
        rest, inside = _split(term)
        members += inside
        if rest is not None:
            expression = check_condition(resolve_row(rest, look, "WHERE"), "WHERE", rest.place)
            found |= dict.fromkeys(split_conditions(expression))
    found = {condition: None for condition in found if not is_tied(condition, scope)}
    for member, negated in members:
        kind = JoinKind.ANTI if negated else JoinKind.SEMI
        if member.tested is None:
            inner, pairs = _resolve_exists(member, scope, maker)
        else:
            value = resolve_row(member.tested, look, "WHERE")
            inner, pairs = _resolve_in(member, value, kind, scope.keep_where(*found), maker)
        scope = _join_membership(JoinSides(scope, inner, maker.catalog), kind, pairs, member)
    return scope.keep_where(*found)


def _split(term: Term) -> tuple[Term | None, list[tuple[MembershipTerm, bool]]]:
    """A condition without the memberships in it, and these with whether they are negated."""
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
    """The rows of the SELECT behind IN, and what must be equal."""
    inner = maker.resolve_subquery(member.query, member.place)
    shown = [column for column in inner.columns if not column.merged]
    if len(shown) != 1:
        rule = f"IN compares with one column; this SELECT has {len(shown)}."
        raise refusal(member.place, rule, "Select one column inside.")
    wanted = shown[0].expression
    pair = pair_of(make("equal", (value, wanted), member.place), scope.known, inner.known)
    if pair is None:
        rule = "IN (SELECT ...) compares a column of the rows with a column of the SELECT."
        raise refusal(member.place, rule, "Name a column on both sides.")
    if kind is JoinKind.ANTI:
        _check_nulls(value, scope, member.place, "before NOT IN")
        _check_nulls(wanted, inner, member.place, "inside NOT IN")
    return inner, (pair,)


def _check_nulls(expression: Expression, scope: Scope, place: Place | None, where_: str) -> None:
    """NOT IN is NULL, and no row remains, where a NULL is compared. Rows without a unit do not exist."""
    if expression in scope.known.units or not facts_of(expression, scope.known).nullable:
        return
    if make_call("not", make_call("is_null", expression)) in split(scope.relation)[1]:
        return
    rule = f"There may be a NULL {where_}, which would make it NULL for all rows."
    raise refusal(place, rule, "Add the condition IS NOT NULL for it, or use NOT EXISTS.")


def _resolve_exists(
    member: MembershipTerm, scope: Scope, maker: RelationMaker
) -> tuple[Scope, tuple[ExpressionPair, ...]]:
    """The rows of the SELECT in EXISTS, and what ties them to the row outside."""
    draft = _check_exists_query(member.query, member.place)
    inner = maker.resolve_from(draft.source, draft.where)

    def find(name: NameTerm) -> Expression:
        """A name means a column of the SELECT, else one of the row outside."""
        outside = not inner.find_matches(name) and scope.find_matches(name)
        return (scope if outside else inner).find(name).expression

    pairs: dict[ExpressionPair, None] = {}
    for term in split_ands(draft.where):
        if any(isinstance(part, MembershipTerm) for part in parts_of(term)):
            inner = apply_where((term,), inner, maker)
            continue
        condition = check_condition(resolve_row(term, find, "WHERE"), "WHERE", term.place)
        pair = pair_of(condition, scope.known, inner.known)
        if pair is not None:
            pairs[pair] = None
        elif find_columns(condition) <= inner.known.columns.keys():
            inner = inner.keep_where(*(part for part in split_conditions(condition) if not is_tied(part, inner)))
        else:
            rule = "EXISTS is tied to the row by equalities, one side of the row and one of the SELECT."
            raise refusal(term.place, rule, "Write it as a.x = b.y, and put other conditions outside.")
    if not pairs:
        rule = "This EXISTS is the same for all rows: nothing ties it to the row."
        raise refusal(member.place, rule, "Add an equality between a column of the row and one of the SELECT.")
    return inner, tuple(pairs)


def _check_exists_query(query: QueryTerm, place: Place | None) -> Draft:
    """The SELECT of an EXISTS: rows and conditions, and nothing that changes how many there are."""
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
    """The rows outside that have a partner inside, or none."""
    if not keeps_units(sides, pairs):
        word = "EXISTS" if member.tested is None else "IN (SELECT ...)"
        unit = sides.left.describe_unit() or sides.catalog.unit.column
        rule = f"{word} over a private table must compare the unit, or it would tell about other units."
        raise refusal(member.place, rule, f"Compare {unit} with the unit of the SELECT, or use a public table.")
    relation, known = connect(sides, kind, pairs, member.place)
    return replace(sides.left, relation=relation, known=known)
