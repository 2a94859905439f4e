"""What is known of a join: when it keeps units apart, and how many rows it makes of a unit's rows.

Privacy: ``stability`` says what a local and a mixed relation are. A join of two private relations on the unit is local,
because it pairs rows of the same unit only. A join with a public relation is local, because it pairs a private row with
public rows. Any other join of private relations is mixed, and allowed only where both sides were truncated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from discreet.bounding.facts import facts_of
from discreet.bounding.fan_out import PairedSide, Pairing, count_matches, pair_private, pair_public
from discreet.bounding.limits import find_reference, limit_pairs, most_rows
from discreet.bounding.relation_facts import NO_UNIT, Owner, RelationFacts, check_owners, make_nullable
from discreet.errors import InternalError, UnitLost
from discreet.plan.catalog import Catalog, ColumnFacts
from discreet.plan.expressions import Column, Expression
from discreet.plan.functions import make_call
from discreet.plan.reach import reach
from discreet.plan.relations import Capped, Join, JoinKind, PerUnit, Scan

TRUNCATED = (
    "Rows are truncated by the values of a join only where both sides are private and units are not kept together: "
    "else whether a row remains would depend on other units. Nothing was charged."
)


def facts_of_join(relation: Join, left: RelationFacts, right: RelationFacts, *, catalog: Catalog) -> RelationFacts:
    """What is known of a join from what is known of its sides."""
    if left.owner is Owner.LOST and isinstance(relation.left, Scan):
        return _facts_of_link(relation, relation.left, left, right, catalog)
    check_owners(left, right)
    if relation.single and right.private:
        raise InternalError("Only a public relation can be a look-up.")
    if relation.caps is not None and not (left.private and right.private):
        raise UnitLost(TRUNCATED)
    columns = _join_columns(relation.kind, left, right)
    if left.private and right.private:
        return _join_private(relation, left, right, columns, catalog)
    if left.private or right.private:
        private, side = (left, JoinKind.LEFT) if left.private else (right, JoinKind.RIGHT)
        facts = _join_public(relation, private, columns, private_side=side)
        pairing = pair_sides(relation, left, right, catalog)
        return replace(facts, rows=pairing.rows, single=_find_single(pairing, left, right))
    return RelationFacts(columns=columns, owner=Owner.NOBODY)


def pair_sides(relation: Join, left: RelationFacts, right: RelationFacts, catalog: Catalog) -> Pairing:
    """How many rows a join makes of a unit's rows, and how its private sides have to be capped."""
    if left.private and right.private:
        sides = (_find_side(relation, i, (left, right), catalog) for i in (0, 1))
        return pair_private(relation.kind, *sides)
    private, public = (left, 1) if left.private else (right, 0)
    other = (relation.left, relation.right)[public]
    unique = any(facts_of(pair[public], (left, right)[public]).unique for pair in relation.on)
    once = unique or relation.single or relation.kind in (JoinKind.SEMI, JoinKind.ANTI)
    matches = 1 if once else count_matches(relation, other, public, catalog)
    found = pair_public(PairedSide(private.rows, most_rows(private.limits)), matches)
    return found if public else found.exchange()


def _find_single(pairing: Pairing, left: RelationFacts, right: RelationFacts) -> frozenset[str]:
    """The relations of which a unit has no row twice in a join."""
    found = (side.single if once else frozenset[str]() for side, once in zip((left, right), pairing.once))
    return frozenset[str]().union(*found)


def _find_side(relation: Join, i: int, sides: tuple[RelationFacts, RelationFacts], catalog: Catalog) -> PairedSide:
    """A private side of a join of private rows on the unit."""
    ours, theirs, side = (relation.left, relation.right)[i], (relation.left, relation.right)[1 - i], sides[i]
    on = [pair[i] for pair in relation.on]
    capped = isinstance(ours, Capped) and ours.rows == 1 and all(e in on or e in side.units for e in ours.by)
    grouped = isinstance(ours, PerUnit) and all(
        Column(ours.name, name, key.type) in (*on, *side.units) for name, key in ours.keys
    )
    declared = most_rows(side.limits)
    alone = all(pair[0] in sides[0].units and pair[1] in sides[1].units for pair in relation.on)
    single: tuple[Expression, ...] | None = () if alone and declared == 1 else None
    reference = find_reference([(pair[1 - i], pair[i]) for pair in relation.on], theirs, ours, catalog)
    if reference and all(mine.table in side.single for _, mine in reference):
        single = tuple(mine for _, mine in reference)
    return PairedSide(side.rows, declared, once=capped or grouped or side.rows.most == 1, single=single)


def _facts_of_link(
    relation: Join, scan: Scan, left: RelationFacts, right: RelationFacts, catalog: Catalog
) -> RelationFacts:
    """The facts of a linked table: each row has the unit of the row that its declared foreign key refers to.

    Any other join of such a table is refused, such as one on some of the columns of a foreign key.
    """
    if relation != reach(scan.table, catalog, scan.alias).relation:
        raise UnitLost(NO_UNIT)
    return RelationFacts(
        columns=_join_columns(relation.kind, left, right),
        owner=Owner.UNIT,
        units=right.units,
        limits=left.limits,
        single=frozenset({scan.name}),
    )


def _join_columns(kind: JoinKind, left: RelationFacts, right: RelationFacts) -> dict[Column, ColumnFacts]:
    """The columns of both sides. A side that may be missing may be NULL, and no column is known to be unique."""
    if kind in (JoinKind.SEMI, JoinKind.ANTI):
        return dict(left.columns)
    columns = {}
    for side, missing in ((left, (JoinKind.RIGHT, JoinKind.FULL)), (right, (JoinKind.LEFT, JoinKind.FULL))):
        for column, facts in side.columns.items():
            columns[column] = make_nullable(facts) if kind in missing else replace(facts, unique=False)
    return columns


def _join_public(
    relation: Join, private: RelationFacts, columns: Mapping[Column, ColumnFacts], *, private_side: JoinKind
) -> RelationFacts:
    """The facts of a join of private rows with public ones.

    Joins that keep unmatched public rows are refused: such a row belongs to nobody, and it would show that nobody
    matches it.
    """
    allowed = {JoinKind.INNER, private_side} | (
        {JoinKind.SEMI, JoinKind.ANTI} if private_side is JoinKind.LEFT else set()
    )
    if relation.kind not in allowed:
        raise UnitLost(
            f"A {str(relation.kind).upper()} JOIN keeps public rows that belong to nobody. "
            "Use JOIN, or put the private table on the side that is kept; groups without rows are shown anyway where "
            "the keys are public. Nothing was charged."
        )
    once = relation.kind in (JoinKind.SEMI, JoinKind.ANTI) or (relation.single and private_side is JoinKind.LEFT)
    if private.owner is Owner.ROW and not once:
        raise UnitLost(
            "Each row is its own unit, so it may match one public row at most. Put the private table first and declare "
            "the public table's key as unique. Nothing was charged."
        )
    constants = {column: replace(facts, constant=False) for column, facts in columns.items()}
    if private.owner is Owner.UNIT:
        constants = {
            column: facts if column in private.columns else replace(facts, constant=False)
            for column, facts in columns.items()
        }
    return replace(private, columns=constants)


def _join_private(
    relation: Join, left: RelationFacts, right: RelationFacts, columns: Mapping[Column, ColumnFacts], catalog: Catalog
) -> RelationFacts:
    if Owner.ROW in (left.owner, right.owner):
        raise UnitLost(
            "Each row is its own unit, so rows of two private tables cannot be joined: a pair would belong to two. "
            "Declare a unit in the codebook. Nothing was charged."
        )
    ours, theirs = left.unit, right.unit
    if ours is None or theirs is None or ours.type is not theirs.type:
        raise UnitLost(
            "The unit is not of the same type on both sides, so it cannot be told whose rows belong together. Declare "
            "it with one type in all tables. Nothing was charged."
        )
    if not any(a in left.units and b in right.units for a, b in relation.on):
        return _mix_units(relation, left, right, columns)
    if relation.caps is not None:
        raise UnitLost(TRUNCATED)
    pairing = pair_sides(relation, left, right, catalog)
    # Where no row of the left side is in two pairs, the join has no more rows than that side.
    met_once = relation.kind in (JoinKind.INNER, JoinKind.LEFT) and pairing.once[0]
    limits = left.limits if met_once else limit_pairs(relation, left.limits, right.limits, catalog)
    match relation.kind:
        case JoinKind.SEMI | JoinKind.ANTI:
            return replace(left, columns=columns)
        case JoinKind.INNER:
            units = (*left.units, *right.units)
        case JoinKind.LEFT:
            units = left.units
        case JoinKind.RIGHT:
            units = right.units
        case JoinKind.FULL:
            units = (make_call("coalesce", ours, theirs),)
        case _:
            assert_never(relation.kind)
    single = _find_single(pairing, left, right)
    return RelationFacts(
        columns=columns, owner=Owner.UNIT, units=units, limits=limits, rows=pairing.rows, single=single
    )


def _mix_units(
    relation: Join, left: RelationFacts, right: RelationFacts, columns: Mapping[Column, ColumnFacts]
) -> RelationFacts:
    """A join that pairs rows of different units, after both sides were truncated by unit and then by key (``Caps``).

    Privacy: one unit adds or takes away at most ``spread_rows`` rows. Why: after the truncation by unit it has at most
    a rows on the left. One row more or less changes a side that is truncated by key by at most two rows: the row itself
    comes, and another row of its key goes. So the left side changes by at most 2a rows. Each of them pairs with at most
    k′ rows of the right side, which has no more rows of one key. The same holds for the unit's b rows on the right and
    k rows of one key on the left. If first one side changes and then the other, old and new pairs differ by at most
    2a·k′ + 2b·k rows. Half of them come and half of them go, at most: of the 2a rows a come and a go, and so on.
    """
    caps = relation.caps
    if caps is None or relation.kind is not JoinKind.INNER:
        ours, theirs = left.unit, right.unit
        raise UnitLost(
            "This join would pair rows of different units. "
            f"Add ON {_write_qualified(ours)} = {_write_qualified(theirs)}, or "
            "declare max_frequency for the join columns in the codebook and use a plain JOIN. Nothing was charged."
        )
    one, two = caps
    if one.unit not in left.units or two.unit not in right.units or not relation.on:
        raise InternalError("A truncation that is not by unit.")
    spread = 2 * one.rows * two.frequency + 2 * two.rows * one.frequency
    return RelationFacts(columns=columns, owner=Owner.MIXED, spread_rows=spread)


def _write_qualified(unit: Expression | None) -> str:
    return f"{unit.table}.{unit.name}" if isinstance(unit, Column) else str(unit)
