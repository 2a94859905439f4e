"""Resolves WHERE: conditions on rows, and IN (SELECT ...) and EXISTS, which become semi joins and anti joins.

Under OR, and where EXISTS has a comparison beside its equalities, they become markers of the rows (``markers``).

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
from discreet.frontends.resolve.markers import TiedComparison, add_marker, find_comparison
from discreet.frontends.resolve.rows import ColumnFinder, explain_misplaced, is_aggregate, resolve_row
from discreet.frontends.resolve.rows import make_call as make_term_call
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
from discreet.late_dataclass import dataclass
from discreet.plan.expressions import Expression, find_columns
from discreet.plan.functions import make_call
from discreet.plan.relations import JoinKind, split


@dataclass(frozen=True, slots=True)
class TiedSelect:
    """The SELECT of an IN or EXISTS, the pairs that tie it to the row, and one comparison beside them, if there is."""

    inner: Scope
    pairs: tuple[ExpressionPair, ...]
    comparison: TiedComparison | None = None


def apply_where(terms: Sequence[Term], scope: Scope, maker: RelationMaker, find: ColumnFinder | None = None) -> Scope:
    """The rows of a scope for which all terms are true. ``find`` looks up names, with its own refusals."""
    find_column = find or (lambda name: scope.find(name).expression)
    conditions: dict[Expression, None] = {}
    members: list[tuple[MembershipTerm, bool]] = []
    mixed: list[Term] = []
    for term in terms:
        rest, inside, nested = _split(term)
        members += inside
        mixed += nested
        if rest is not None:
            expression = check_condition(resolve_row(rest, find_column, "WHERE"), "WHERE", rest.place)
            conditions |= dict.fromkeys(split_conditions(expression))
    conditions = {condition: None for condition in conditions if not is_required(condition, scope)}
    resolver = _MembershipResolver(scope, maker, find_column, tuple(conditions))
    for member, negated in members:
        resolver.join(member, negated=negated)
    for term in mixed:
        resolver.mark(term)
    return resolver.scope.keep_where(*conditions, *resolver.conditions)


class _MembershipResolver:
    """The rows while IN and EXISTS are added to them. ``known`` are plain conditions of the same WHERE."""

    def __init__(self, scope: Scope, maker: RelationMaker, find: ColumnFinder, known: tuple[Expression, ...]) -> None:
        self.scope = scope
        self.maker = maker
        self.find = find
        self.known = known
        self.conditions: list[Expression] = []

    def join(self, member: MembershipTerm, *, negated: bool) -> None:
        """Keep the rows for which a membership holds, or does not."""
        tied = self._resolve(member, negated=negated)
        if tied.comparison is None:
            kind = JoinKind.ANTI if negated else JoinKind.SEMI
            self.scope = _join_membership(self._find_sides(tied), kind, tied.pairs, member)
        else:
            self.conditions.append(self._add_marker(member, tied, negated=negated))

    def mark(self, term: Term) -> None:
        """Keep the rows for which a condition with memberships inside is true."""
        self.conditions.append(check_condition(self._resolve_mixed(term, negated=False), "WHERE", term.place))

    def _resolve_mixed(self, term: Term, *, negated: bool) -> Expression:
        """A condition in which every membership is one over a marker. ``negated``: an odd number of NOTs is around."""
        if isinstance(term, MembershipTerm):
            return self._add_marker(term, self._resolve(term, negated=negated), negated=False)
        if not any(isinstance(part, MembershipTerm) for part in parts_of(term)):
            return resolve_row(term, self.find, "WHERE")
        if isinstance(term, FunctionTerm) and term.function in ("and", "or", "not"):
            inside = negated != (term.function == "not")
            return make_term_call(term, tuple(self._resolve_mixed(part, negated=inside) for part in term.arguments))
        inner = next(part for part in parts_of(term) if isinstance(part, MembershipTerm))
        raise explain_misplaced(inner, "WHERE")

    def _resolve(self, member: MembershipTerm, *, negated: bool) -> TiedSelect:
        if member.tested is None:
            return _resolve_exists(member, self.scope, self.maker)
        value = resolve_row(member.tested, self.find, "WHERE")
        kind = JoinKind.ANTI if negated else JoinKind.SEMI
        return _resolve_in(member, value, kind, self.scope.keep_where(*self.known), self.maker)

    def _add_marker(self, member: MembershipTerm, tied: TiedSelect, *, negated: bool) -> Expression:
        sides = self._find_sides(tied)
        _check_units(sides, tied.pairs, member)
        self.scope, found = add_marker(sides, tied.pairs, tied.comparison, self.maker, member.place)
        return make_call("not", found) if negated else found

    def _find_sides(self, tied: TiedSelect) -> JoinSides:
        return JoinSides(self.scope, tied.inner, self.maker.catalog)


def _split(term: Term) -> tuple[Term | None, list[tuple[MembershipTerm, bool]], list[Term]]:
    """A condition without its IN (SELECT ...) and EXISTS, and these, each with whether it is negated.

    The last are conditions that have some of them inside, under OR.
    """
    if not any(isinstance(part, MembershipTerm) for part in parts_of(term)):
        return term, [], []
    rest: list[Term] = []
    members: list[tuple[MembershipTerm, bool]] = []
    mixed: list[Term] = []
    for part in split_ands([term]):
        inner, negated = part, False
        while isinstance(inner, FunctionTerm) and inner.function == "not":
            inner, negated = inner.arguments[0], not negated
        if isinstance(inner, MembershipTerm):
            members.append((inner, negated))
        elif any(isinstance(inside, MembershipTerm) for inside in parts_of(part)):
            mixed.append(part)
        else:
            rest.append(part)
    if not rest:
        return None, members, mixed
    return (rest[0] if len(rest) == 1 else apply("and", *rest, place=term.place)), members, mixed


def _resolve_in(
    member: MembershipTerm, value: Expression, kind: JoinKind, scope: Scope, maker: RelationMaker
) -> TiedSelect:
    """The SELECT of an IN, and the pair of expressions that must be equal."""
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
    return TiedSelect(inner, (pair,))


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


def _resolve_exists(member: MembershipTerm, scope: Scope, maker: RelationMaker) -> TiedSelect:
    """The SELECT of an EXISTS, and what ties it to the row outside."""
    draft = _check_exists_query(member.query, member.place)
    inner = maker.resolve_from(draft.source, draft.where)

    def find(name: NameTerm) -> Expression:
        """The column of the SELECT that a name means, else the column of the row outside."""
        outside = not inner.find_matches(name) and scope.find_matches(name)
        return (scope if outside else inner).find(name).expression

    pairs: dict[ExpressionPair, None] = {}
    comparison: TiedComparison | None = None
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
        elif comparison is None and (found := find_comparison(condition, scope, inner)) is not None:
            comparison = found
        else:
            rule = "EXISTS is tied to the row by equalities, and by one comparison such as a.x <> b.y beside them."
            raise refusal(term.place, rule, "Write it as a.x = b.y, and put other conditions outside.")
    if not pairs:
        rule = "This EXISTS is the same for all rows: nothing ties it to the row."
        raise refusal(member.place, rule, "Add an equality between a column of the row and one of the SELECT.")
    return TiedSelect(inner, tuple(pairs), comparison)


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
    _check_units(sides, pairs, member)
    relation, facts = connect(sides, kind, pairs, member.place)
    return replace(sides.left, relation=relation, facts=facts)


def _check_units(sides: JoinSides, pairs: tuple[ExpressionPair, ...], member: MembershipTerm) -> None:
    if not keeps_units(sides, pairs):
        word = "EXISTS" if member.tested is None else "IN (SELECT ...)"
        unit = sides.left.describe_unit() or sides.catalog.unit.column
        rule = f"{word} over a private table must compare the unit, or it would tell about other units."
        raise refusal(member.place, rule, f"Compare {unit} with the unit of the SELECT, or use a public table.")
