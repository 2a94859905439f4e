"""Joins: two scopes side by side, with units kept together or the missing condition spelled out.

Conditions that equate an expression of each side become the pairs of the join. What else an inner join asks for is a
condition on its rows. Canonical forms, so that equal questions give equal plans: RIGHT JOIN is LEFT JOIN the other way
round, and a public side of an inner join stands on the right.

Where a declared foreign key is followed, the units are equated, too: a row and the row that it refers to belong to the
same unit. The plan shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from discreet.bounding.facts import facts_of
from discreet.bounding.stability import Owner, RelationFacts, find_relation_facts
from discreet.errors import UnitLost
from discreet.frontends.resolve.calls import check_condition, make, split_conditions
from discreet.frontends.resolve.equalities import ExpressionPair, is_tied, pair_of, reads_only
from discreet.frontends.resolve.rows import resolve_row
from discreet.frontends.resolve.scope import Scope, VisibleColumn, explain_lost_unit
from discreet.frontends.terms.positions import Place, refusal
from discreet.frontends.terms.syntax import JoinTerm, NameTerm, Term
from discreet.plan.catalog import Catalog
from discreet.plan.expressions import Expression, Literal
from discreet.plan.relations import Caps, Join, JoinKind, Relation
from discreet.plan.types import Type

# Which conditions a kind can take besides equalities: above the join, or below it on the right side.
ABOVE = frozenset({JoinKind.INNER})
BELOW = frozenset({JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI})
LOOKED_UP = frozenset({JoinKind.INNER, JoinKind.LEFT})
TRUE = Literal(value=True, type=Type.BOOLEAN)


def join(term: JoinTerm, left: Scope, right: Scope, more: Sequence[ExpressionPair], catalog: Catalog) -> Scope:
    """Two scopes joined as a term says; ``more`` are pairs that WHERE brings to an inner join."""
    _check_qualifiers(left, right, term.place)
    if term.kind is JoinKind.RIGHT:
        turned = replace(term, left=term.right, right=term.left, kind=JoinKind.LEFT)
        joined = _join_scopes(turned, right, left, more, catalog)
        return replace(
            joined, columns=_order_columns(joined.columns, left, right), sources=(*left.sources, *right.sources)
        )
    if term.kind is JoinKind.INNER and right.known.private and not left.known.private:
        joined = _join_scopes(term, right, left, [(b, a) for a, b in more], catalog)
        return replace(
            joined, columns=_order_columns(joined.columns, left, right), sources=(*left.sources, *right.sources)
        )
    return _join_scopes(term, left, right, more, catalog)


def _join_scopes(term: JoinTerm, left: Scope, right: Scope, more: Sequence[ExpressionPair], catalog: Catalog) -> Scope:
    both = Scope(left.relation, (*left.columns, *right.columns), (*left.sources, *right.sources), left.known)
    names = _find_shared_names(term, left, right)
    pairs = [_pair_shared_name(name, left, right) for name in names]
    residual: list[Expression] = []
    for condition in _resolve_conditions(term.on, both):
        pair = pair_of(condition, left.known, right.known)
        if pair is not None:
            pairs.append(pair)
        elif condition != TRUE:  # ON TRUE says nothing
            residual.append(condition)
    pairs += more
    right = _filter_right(term, residual, right)
    relation, facts = connect(JoinSides(left, right, catalog), term.kind, tuple(dict.fromkeys(pairs)), term.place)
    if term.kind in (JoinKind.SEMI, JoinKind.ANTI):
        return replace(left, relation=relation, known=facts)
    shown = _merge_columns(names, left, right, term.kind)
    joined = Scope(relation, shown, (*left.sources, *right.sources), facts)
    return joined.keep_where(*(c for c in residual if not is_tied(c, joined))) if term.kind in ABOVE else joined


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


def _filter_right(term: JoinTerm, residual: Sequence[Expression], right: Scope) -> Scope:
    """The right side with the conditions that concern it alone; refused where a kind cannot take a condition."""
    if term.kind in ABOVE or not residual:
        return right
    place = term.on[0].place if term.on else term.place
    for condition in residual:
        if term.kind not in BELOW or not reads_only(condition, right.known):
            word = str(term.kind).upper()
            rule = f"ON of a {word} JOIN takes equalities between the two sides, and conditions on the right side."
            if term.kind not in BELOW:
                rule = f"ON of a {word} JOIN takes equalities between the two sides only."
            raise refusal(place, rule, "Filter the other side in a subquery of its own, or use JOIN with WHERE.")
    return right.keep_where(*residual)


# USING and NATURAL


def _find_shared_names(term: JoinTerm, left: Scope, right: Scope) -> tuple[NameTerm, ...]:
    """The names that both sides must agree in."""
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
    return pair_of(condition, left.known, right.known) or (one, two)


def _merge_columns(names: Sequence[NameTerm], left: Scope, right: Scope, kind: JoinKind) -> tuple[VisibleColumn, ...]:
    """All columns of both sides, of which those named by USING are one."""
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
    """Two scopes that are to be joined, and the tables they are about."""

    left: Scope
    right: Scope
    catalog: Catalog

    @property
    def private(self) -> bool:
        """Whether rows of units would meet."""
        return self.left.known.private and self.right.known.private


def connect(
    sides: JoinSides, kind: JoinKind, pairs: tuple[ExpressionPair, ...], place: Place | None
) -> tuple[Relation, RelationFacts]:
    """The relation that joins two scopes on pairs, and what is known of it; or the condition that is missing."""
    left, right, catalog = sides
    ours, theirs = left.known, right.known
    caps = None
    if sides.private:
        pairs = add_units(sides, pairs)
        if not _equates_units(pairs, ours, theirs):
            caps = _find_caps(kind, pairs, ours, theirs)
            if caps is None and ours.owner is Owner.UNIT and theirs.owner is Owner.UNIT:
                raise _explain_missing_condition(left, right, pairs, kind, place)
    elif theirs.private and kind in (JoinKind.LEFT, JoinKind.FULL):
        rule = "This join keeps rows of a public table that match nobody, and they would belong to nobody."
        fix = "Use JOIN, or keep the rows of the private table; groups without rows are shown if their keys are public."
        raise refusal(place, rule, fix)
    looked_up = not theirs.private and kind in LOOKED_UP
    single = looked_up and any(facts_of(b, theirs).unique for _, b in pairs)
    relation = Join(left.relation, right.relation, kind, pairs, single, caps)
    try:
        return relation, find_relation_facts(relation, catalog)
    except UnitLost as error:
        raise explain_lost_unit(error, place) from None


def add_units(sides: JoinSides, pairs: tuple[ExpressionPair, ...]) -> tuple[ExpressionPair, ...]:
    """The pairs, and the units where they follow a declared foreign key without equating them."""
    ours, theirs = sides.left.known, sides.right.known
    if _equates_units(pairs, ours, theirs) or not _follows_key(pairs, sides.left, sides.right, sides.catalog):
        return pairs
    return (*pairs, (ours.units[0], theirs.units[0]))


def keeps_units(sides: JoinSides, pairs: tuple[ExpressionPair, ...]) -> bool:
    """Whether a join on pairs keeps rows of different units apart."""
    return not sides.private or _equates_units(add_units(sides, pairs), sides.left.known, sides.right.known)


def _equates_units(pairs: Iterable[ExpressionPair], ours: RelationFacts, theirs: RelationFacts) -> bool:
    return any(a in ours.units and b in theirs.units for a, b in pairs)


def _follows_key(pairs: Iterable[ExpressionPair], left: Scope, right: Scope, catalog: Catalog) -> bool:
    """Whether a pair follows a declared foreign key, or ties two references to the same row."""
    if not left.known.units or not right.known.units:
        return False
    return any(_refer_alike(left, one, right, two, catalog) for one, two in pairs)


def _refer_alike(left: Scope, one: Expression, right: Scope, two: Expression, catalog: Catalog) -> bool:
    """Whether one column refers to the other, or both refer to the same."""
    ours, theirs = _find_origins(left, one), _find_origins(right, two)
    referred, also = _find_targets(ours, catalog), _find_targets(theirs, catalog)
    return bool(referred & (also | theirs) or also & ours)


def _find_origins(scope: Scope, expression: Expression) -> set[tuple[str, str]]:
    """The declared columns that an expression shows unchanged."""
    return {c.origin for c in scope.columns if c.expression == expression and c.origin is not None}


def _find_targets(origins: Iterable[tuple[str, str]], catalog: Catalog) -> set[tuple[str, str]]:
    """The keys of private tables that declared columns refer to, where a row and what it refers to share a unit.

    A reference to the unit itself, other than the one that says whose row it is, may name somebody else.
    """
    found = set()
    for table, column in origins:
        facts = catalog.tables[table]
        for link in (*facts.keys, facts.link):
            if link is None or link.column.lower() != column.lower() or catalog.tables[link.parent].public:
                continue
            parent = catalog.tables[link.parent]
            key = parent.find_column(link.key)
            if link == facts.link or key != parent.unit_column:
                found.add((parent.name, key.name))
    return found


def _find_caps(
    kind: JoinKind, pairs: Sequence[ExpressionPair], ours: RelationFacts, theirs: RelationFacts
) -> tuple[Caps, Caps] | None:
    """The truncation that the codebook declares for the columns of a join that pairs rows of different units."""
    if kind is not JoinKind.INNER or not pairs:
        return None
    found = []
    for side, expressions in ((ours, [a for a, _ in pairs]), (theirs, [b for _, b in pairs])):
        declared = [facts_of(expression, side).frequency for expression in expressions]
        frequencies = [frequency for frequency in declared if frequency is not None]
        if side.unit is None or not frequencies:
            return None
        found.append(Caps(side.unit, _row_limit(side), min(frequencies)))
    return found[0], found[1]


def _row_limit(side: RelationFacts) -> int:
    limits = side.limits
    return limits.max_rows or (limits.max_groups or 1) * (limits.max_rows_per_group or 1)


def _explain_missing_condition(
    left: Scope, right: Scope, pairs: Sequence[ExpressionPair], kind: JoinKind, place: Place | None
) -> Exception:
    """The condition that would keep units together, in the analyst's own words."""
    rule = "This join would pair rows of different units."
    one, two = left.describe_unit(qualified=True), right.describe_unit(qualified=True)
    if one is None or two is None:
        side = left if one is None else right
        title = side.sources[0].qualifier or "the subquery"
        return refusal(place, rule, f"Select the column that names the unit in {title}, and join on it.")
    fix = f"Add AND {one} = {two}" if pairs else f"Use JOIN with ON {one} = {two}"
    if kind is JoinKind.INNER and pairs:
        fix += ", or declare max_frequency for the join columns in the codebook"
    return refusal(place, rule, f"{fix}.")
