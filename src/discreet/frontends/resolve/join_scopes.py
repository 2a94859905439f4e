"""Joins two scopes. The join keeps units apart, or it is refused with the condition that is missing.

An equality between an expression of one side and one of the other becomes a pair of the join. Any other condition of an
inner join becomes a condition on its rows. Two canonical forms make equal questions equal plans: a RIGHT JOIN is
written as a LEFT JOIN with its sides exchanged, and the public side of an inner join is the right one.

Where a join follows a declared foreign key, the units are equated, too, because a row and the row that it refers to
belong to the same unit. The plan shows this equality.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from discreet.bounding.facts import facts_of
from discreet.bounding.limits import most_rows
from discreet.bounding.relation_facts import Owner, RelationFacts
from discreet.frontends.resolve.calls import check_condition, make, split_conditions
from discreet.frontends.resolve.equalities import ExpressionPair, is_required, pair_of, reads_only
from discreet.frontends.resolve.foreign_keys import find_missing_pairs, follows_key
from discreet.frontends.resolve.public_keys import keeps_public, list_rows
from discreet.frontends.resolve.rows import resolve_row
from discreet.frontends.resolve.scope import Scope, VisibleColumn, find_facts_at
from discreet.frontends.terms.positions import Place, refusal
from discreet.frontends.terms.syntax import JoinTerm, NameTerm, Term
from discreet.plan.catalog import Catalog
from discreet.plan.expressions import Expression, Literal
from discreet.plan.relations import Caps, Join, JoinKind, Relation
from discreet.plan.types import Type

# The kinds of join that can have other conditions than equalities: above the join, or below it on the right side.
ABOVE = frozenset({JoinKind.INNER})
BELOW = frozenset({JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI})
LOOKED_UP = frozenset({JoinKind.INNER, JoinKind.LEFT})
TRUE = Literal(value=True, type=Type.BOOLEAN)


def join(term: JoinTerm, left: Scope, right: Scope, more: Sequence[ExpressionPair], catalog: Catalog) -> Scope:
    """Two scopes, joined as a term says. ``more`` are pairs from WHERE, for an inner join."""
    _check_qualifiers(left, right, term.place)
    if keeps_public(term.kind, left, right):
        return _join_public_keys(term, left, right, catalog)
    if term.kind is JoinKind.RIGHT:
        exchanged = replace(term, left=term.right, right=term.left, kind=JoinKind.LEFT)
        joined = _join_scopes(exchanged, right, left, more, catalog)
        return replace(
            joined, columns=_order_columns(joined.columns, left, right), sources=(*left.sources, *right.sources)
        )
    if term.kind is JoinKind.INNER and right.facts.private and not left.facts.private:
        joined = _join_scopes(term, right, left, [(b, a) for a, b in more], catalog)
        return replace(
            joined, columns=_order_columns(joined.columns, left, right), sources=(*left.sources, *right.sources)
        )
    return _join_scopes(term, left, right, more, catalog)


def _join_scopes(term: JoinTerm, left: Scope, right: Scope, more: Sequence[ExpressionPair], catalog: Catalog) -> Scope:
    both = Scope(left.relation, (*left.columns, *right.columns), (*left.sources, *right.sources), left.facts)
    names = _find_shared_names(term, left, right)
    pairs = [_pair_shared_name(name, left, right) for name in names]
    other_conditions: list[Expression] = []
    for condition in _resolve_conditions(term.on, both):
        pair = pair_of(condition, left.facts, right.facts)
        if pair is None and term.kind in BELOW and reads_only(condition, left.facts):
            pair = (condition, TRUE)  # where it is not true, the row meets nothing
        if pair is not None:
            pairs.append(pair)
        elif condition != TRUE:  # ON TRUE says nothing
            other_conditions.append(condition)
    pairs += more
    right = _filter_right(term, other_conditions, right)
    relation, facts = connect(JoinSides(left, right, catalog), term.kind, tuple(dict.fromkeys(pairs)), term.place)
    if term.kind in (JoinKind.SEMI, JoinKind.ANTI):
        return replace(left, relation=relation, facts=facts)
    shown = _merge_columns(names, left, right, term.kind)
    joined = Scope(relation, shown, (*left.sources, *right.sources), facts)
    return (
        joined.keep_where(*(c for c in other_conditions if not is_required(c, joined)))
        if term.kind in ABOVE
        else joined
    )


def _join_public_keys(term: JoinTerm, left: Scope, right: Scope, catalog: Catalog) -> Scope:
    """A join that keeps the public side, as an inner one whose groups are public (``public_keys``)."""
    private, public = (left, right) if left.facts.private else (right, left)
    public = list_rows(public, catalog)
    both = Scope(private.relation, (*private.columns, *public.columns), (), private.facts)
    for condition in _resolve_conditions(term.on, both):
        if pair_of(condition, private.facts, public.facts) is None and not reads_only(condition, private.facts):
            rule = "ON of a join that keeps public rows takes equalities, and conditions on the private side."
            raise refusal(term.on[0].place, rule, "Filter the public side in a subquery of its own.")
    joined = _join_scopes(replace(term, kind=JoinKind.INNER), private, public, [], catalog)
    shown = list(joined.columns)
    for name in _find_shared_names(term, private, public):  # what USING names is the public key
        one, two = private.find(name), public.find(name)
        hidden = [column for column in shown if column == replace(two, merged=True)]
        shown[shown.index(one)], shown[shown.index(hidden[0])] = replace(one, merged=True), two
    shown = list(_order_columns(tuple(shown), left, right))
    return replace(joined, columns=tuple(shown), sources=(*left.sources, *right.sources))


def _check_qualifiers(left: Scope, right: Scope, place: Place | None) -> None:
    taken = {source.qualifier.lower() for source in left.sources if source.qualifier}
    for source in right.sources:
        if source.qualifier.lower() in taken:
            rule = f"Two tables are called {source.qualifier!r} here."
            raise refusal(place, rule, f"Give one another name: {source.qualifier} AS other.")


def _order_columns(columns: tuple[VisibleColumn, ...], left: Scope, right: Scope) -> tuple[VisibleColumn, ...]:
    """The columns in the order in which the question names their tables."""
    order = {source.qualifier: i for i, source in enumerate((*left.sources, *right.sources))}
    return tuple(sorted(columns, key=lambda column: order.get(column.qualifier, -1)))


# Conditions


def _resolve_conditions(terms: Iterable[Term], both: Scope) -> list[Expression]:
    found: dict[Expression, None] = {}
    for term in terms:
        expression = check_condition(resolve_row(term, lambda name: both.find(name).expression, "ON"), "ON", term.place)
        found |= dict.fromkeys(split_conditions(expression))
    return list(found)


def _filter_right(term: JoinTerm, other_conditions: Sequence[Expression], right: Scope) -> Scope:
    """The right side with the conditions that read it alone. Other conditions are refused, except in an inner join."""
    if term.kind in ABOVE or not other_conditions:
        return right
    place = term.on[0].place if term.on else term.place
    for condition in other_conditions:
        if term.kind not in BELOW:
            rule = f"ON of a {str(term.kind).upper()} JOIN takes equalities between the two sides only."
            raise refusal(place, rule, "Filter a side in a subquery of its own, or use JOIN with WHERE.")
        if not reads_only(condition, right.facts):
            rule = (
                f"ON of a {str(term.kind).upper()} JOIN takes equalities between the two sides, and conditions on one."
            )
            fix = "Join by the equalities alone and compare in CASE WHEN, or use JOIN, or EXISTS with one comparison."
            raise refusal(place, rule, fix)
    return right.keep_where(*other_conditions)


# USING and NATURAL


def _find_shared_names(term: JoinTerm, left: Scope, right: Scope) -> tuple[NameTerm, ...]:
    """The names of USING or NATURAL, which are equal on both sides."""
    if term.using is not None:
        return term.using
    if not term.natural:
        return ()
    theirs = {column.name.lower() for column in right.columns if not column.merged}
    shared = dict.fromkeys(c.name for c in left.columns if not c.merged and c.name.lower() in theirs)
    if not shared:
        rule = "NATURAL JOIN: the two sides have no column in common."
        raise refusal(term.place, rule, "Write JOIN ... ON with the columns that are meant.")
    return tuple(NameTerm(name, None, term.place) for name in shared)


def _pair_shared_name(name: NameTerm, left: Scope, right: Scope) -> ExpressionPair:
    one, two = left.find(name).expression, right.find(name).expression
    condition = make("equal", (one, two), name.place)
    return pair_of(condition, left.facts, right.facts) or (one, two)


def _merge_columns(names: Sequence[NameTerm], left: Scope, right: Scope, kind: JoinKind) -> tuple[VisibleColumn, ...]:
    """All columns of both sides. Columns that USING names are merged into one."""
    shown = [*left.columns, *right.columns]
    for name in names:
        one, two = left.find(name), right.find(name)
        shown[shown.index(two)] = replace(two, merged=True)
        if kind is JoinKind.FULL:
            at = shown.index(one)
            shown[at] = replace(one, merged=True)
            shown.insert(
                at, VisibleColumn("", one.name, make("coalesce", (one.expression, two.expression), name.place))
            )
    return tuple(shown)


# The join itself


class JoinSides(NamedTuple):
    """Two scopes that are to be joined, and the catalog of their tables."""

    left: Scope
    right: Scope
    catalog: Catalog

    @property
    def private(self) -> bool:
        """Whether both sides have private rows."""
        return self.left.facts.private and self.right.facts.private


def connect(
    sides: JoinSides, kind: JoinKind, pairs: tuple[ExpressionPair, ...], place: Place | None
) -> tuple[Relation, RelationFacts]:
    """The join of two scopes on pairs, and its facts. A refusal names the condition that is missing."""
    left, right, catalog = sides
    ours, theirs = left.facts, right.facts
    caps = None
    if sides.private:
        pairs = add_units(sides, pairs)
        if not _equates_units(pairs, ours, theirs):
            caps = _find_caps(kind, pairs, ours, theirs)
            if caps is None and ours.owner is Owner.UNIT and theirs.owner is Owner.UNIT:
                raise _explain_missing_condition(sides, pairs, kind, place)
    elif theirs.private and kind in (JoinKind.LEFT, JoinKind.FULL):
        rule = "This join keeps rows of a public table that match nobody, and they would belong to nobody."
        fix = "Use JOIN, or keep the rows of the private table; groups without rows are shown if their keys are public."
        raise refusal(place, rule, fix)
    looked_up = not theirs.private and kind in LOOKED_UP
    single = looked_up and any(facts_of(b, theirs).unique for _, b in pairs)
    relation = Join(left.relation, right.relation, kind, pairs, single, caps)
    return relation, find_facts_at(relation, catalog, place)


def add_units(sides: JoinSides, pairs: tuple[ExpressionPair, ...]) -> tuple[ExpressionPair, ...]:
    """The pairs. If they follow a declared foreign key without equating the units, a pair of the units is added."""
    ours, theirs = sides.left.facts, sides.right.facts
    if _equates_units(pairs, ours, theirs) or not follows_key(pairs, sides.left, sides.right, sides.catalog):
        return pairs
    return (*pairs, (ours.units[0], theirs.units[0]))


def keeps_units(sides: JoinSides, pairs: tuple[ExpressionPair, ...]) -> bool:
    """Whether a join on pairs never pairs rows of different units."""
    return not sides.private or _equates_units(add_units(sides, pairs), sides.left.facts, sides.right.facts)


def _equates_units(pairs: Iterable[ExpressionPair], ours: RelationFacts, theirs: RelationFacts) -> bool:
    return any(a in ours.units and b in theirs.units for a, b in pairs)


def _find_caps(
    kind: JoinKind, pairs: Sequence[ExpressionPair], ours: RelationFacts, theirs: RelationFacts
) -> tuple[Caps, Caps] | None:
    """The truncation of a join that pairs rows of different units, from max_frequency in the codebook; else None."""
    if kind is not JoinKind.INNER or not pairs:
        return None
    found = []
    for side, expressions in ((ours, [a for a, _ in pairs]), (theirs, [b for _, b in pairs])):
        declared = [facts_of(expression, side).frequency for expression in expressions]
        frequencies = [frequency for frequency in declared if frequency is not None]
        if side.unit is None or not frequencies:
            return None
        found.append(Caps(side.unit, most_rows(side.limits), min(frequencies)))
    return found[0], found[1]


def _explain_missing_condition(
    sides: JoinSides, pairs: Sequence[ExpressionPair], kind: JoinKind, place: Place | None
) -> Exception:
    """The refusal of a join, with the condition that would keep units apart, in the analyst's names."""
    left, right, catalog = sides
    rule = "This join would pair rows of different units."
    rest = find_missing_pairs(pairs, left, right, catalog)
    if rest:
        rule = "This join follows some columns of a foreign key, and would pair rows of different units."
        return refusal(place, rule, f"Add AND {' AND '.join(rest)}: its columns refer to a row together.")
    one, two = left.describe_unit(qualified=True), right.describe_unit(qualified=True)
    if one is None or two is None:
        side = left if one is None else right
        title = side.sources[0].qualifier or "the subquery"
        return refusal(place, rule, f"Select the column that names the unit in {title}, and join on it.")
    fix = f"Add AND {one} = {two}" if pairs else f"Use JOIN with ON {one} = {two}"
    if kind is JoinKind.INNER and pairs:
        fix += ", or declare max_frequency for the join columns in the codebook"
    return refusal(place, rule, f"{fix}.")
