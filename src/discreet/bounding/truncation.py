"""Truncates a unit's rows below the joins that would multiply them, so that no more come out than the limit allows.

``fan_out`` says which sides of which joins need it. Here a ``Capped`` is put directly under such a join. All caps that
are open are one number: the largest with which no relation of the question exceeds the limit, but for no side less than
what the codebook declares for its rows. A plan that multiplies nothing is left as it is.

Conditions that read one side of a join only are moved below it first, where that does not change the answer. So a cap
leaves out rows that would have counted only if a unit has more of them than the cap.

A cap to one row of a key goes below an inner join where the key is that of one side, and the other side has one row of
each unit at most (``_lower``): tables are capped, and joins stand side by side.

Privacy: a ``Capped`` keeps relations local (``stability``), so no sensitivity changes. What the caps guarantee is the
claim of ``fan_out``; it is checked again on the plan that was made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import assert_never

from discreet.bounding.fan_out import SideCap, choose_cap
from discreet.bounding.join_facts import pair_sides
from discreet.bounding.relation_facts import Owner, RelationFacts
from discreet.bounding.stability import find_relation_facts
from discreet.errors import InternalError
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import Catalog
from discreet.plan.expressions import Column, Expression, find_columns
from discreet.plan.relations import (
    Capped,
    Distinct,
    Join,
    JoinKind,
    PerUnit,
    Projection,
    Relation,
    Scan,
    Union,
    Values,
    Where,
    Window,
    inputs_of,
    split,
    walk_relations,
)


def cap_joins(relation: Relation, catalog: Catalog) -> Relation:
    """The relation, in which no unit has more rows than the limit where joins multiply them."""
    if not any(isinstance(node, Join) for node in walk_relations(relation)):
        return relation
    rows = [find_relation_facts(node, catalog).rows for node in _find_peaks(relation)]
    capped = _Truncation(catalog, choose_cap(rows, catalog.max_joined_rows)).rewrite(relation)
    found = relation if _count_caps(capped) == _count_caps(relation) else capped
    if any(find_relation_facts(node, catalog).rows.open for node in _find_peaks(found)):
        raise InternalError("A join multiplies rows of a unit that were not truncated.")
    return found


def _count_caps(relation: Relation) -> int:
    return sum(isinstance(node, Capped) for node in walk_relations(relation))


def _find_peaks(relation: Relation) -> Iterator[Relation]:
    """The relation, and everything below that may have more rows of a unit than what is made of it."""
    yield relation
    for node in walk_relations(relation):
        if isinstance(node, PerUnit | Capped | Join):  # a side that meets at most one row may go away altogether
            yield from inputs_of(node)


@dataclass(frozen=True, slots=True)
class _Truncation:
    """Rewrites relations from the top down. ``cap`` is the number for caps that are open."""

    catalog: Catalog
    cap: int

    def rewrite(self, relation: Relation) -> Relation:
        match relation:
            case Scan() | Values():
                return relation
            case Where():
                base, conditions = split(relation)
                if isinstance(base, Join) and not self._is_link(base):
                    return self._rewrite_join(base, conditions)
                return _keep_where(self.rewrite(base), conditions)
            case Join():
                return relation if self._is_link(relation) else self._rewrite_join(relation, ())
            case Union():
                return replace(relation, sources=tuple(self._rewrite_part(source) for source in relation.sources))
            case Projection():
                return self._rewrite_part(relation)
            case PerUnit() | Window() | Distinct() | Capped():
                return replace(relation, source=self.rewrite(relation.source))
            case _:
                assert_never(relation)

    def _rewrite_part(self, relation: Projection) -> Projection:
        return replace(relation, source=self.rewrite(relation.source))

    def _is_link(self, relation: Join) -> bool:
        """Whether a join only gives a table its unit (``plan.reach``). It has one form, which is checked."""
        return isinstance(relation.left, Scan) and self.catalog.tables[relation.left.table].link is not None

    def _rewrite_join(self, relation: Join, conditions: Sequence[Expression]) -> Relation:
        """A join under conditions: those that read one side go below it, and then the sides are capped."""
        left, right = (find_relation_facts(source, self.catalog) for source in inputs_of(relation))
        ours = [c for c in conditions if _goes_left(relation, left) and _reads_only(c, left)]
        theirs = [c for c in conditions if _goes_right(relation, right) and _reads_only(c, right)]
        rest = [c for c in conditions if c not in ours and c not in theirs]
        below = (_keep_where(relation.left, ours), _keep_where(relation.right, theirs))
        sides = tuple(self.rewrite(source) for source in below)
        found = tuple(find_relation_facts(source, self.catalog) for source in sides)
        joined = replace(relation, left=sides[0], right=sides[1])
        if Owner.MIXED not in (left.owner, right.owner) and relation.caps is None and (left.private or right.private):
            caps = pair_sides(joined, found[0], found[1], self.catalog).caps
            one, two = (self._cap(*side) for side in zip(sides, caps, found))
            joined = replace(joined, left=one, right=two)
        return _keep_where(joined, rest)

    def _cap(self, side: Relation, cap: SideCap | None, facts: RelationFacts) -> Relation:
        if cap is None:
            return side
        if facts.unit is None:
            raise InternalError("Rows without a unit are to be truncated.")
        by = tuple(dict.fromkeys((facts.unit, *cap.keys)))
        if cap.open:
            return Capped(side, by, max(cap.least, self.cap))
        return _lower(side, by) or Capped(side, by, 1)


def _lower(side: Relation, by: tuple[Expression, ...]) -> Join | None:
    """An inner join of which one side is capped to one row instead of the whole; None where that would be another cap.

    The claim: it has at most one row for each value of ``by``, and one for each that the join has. Let A have at most
    one row of each unit, because it is capped to that, and be joined with a table B on the unit alone, under
    conditions of each side. The pairs of a unit and key are those of the one row of A, if there is one, with the rows
    of B that have this unit and key. So whether one of the pairs is kept, or one of the rows of B before it is joined,
    one pair is left, or none where there was none. Which one it is, is decided by the secret order either way.
    """
    if not isinstance(side, Join) or side.kind is not JoinKind.INNER or side.caps or side.single or len(side.on) != 1:
        return None
    ((left, right),) = side.on
    for one, other, ours, theirs in ((side.left, side.right, left, right), (side.right, side.left, right, left)):
        base = split(other)[0]
        if not isinstance(one, Capped) or (one.by, one.rows) != ((ours,), 1) or not isinstance(base, Scan):
            continue
        below = tuple(theirs if key == ours else key for key in by)
        named = all(isinstance(key, Column) and key.table == base.name for key in below)
        if not named or theirs not in below or ours.type is not theirs.type:
            continue
        capped = Capped(other, (theirs, *(key for key in dict.fromkeys(below) if key != theirs)), 1)
        return replace(side, right=capped) if one is side.left else replace(side, left=capped)
    return None


def _keep_where(relation: Relation, conditions: Sequence[Expression]) -> Relation:
    for condition in conditions:
        relation = Where(relation, condition)
    return relation


def _goes_left(relation: Join, left: RelationFacts) -> bool:
    """Whether a condition on the left side leaves out the same rows below the join. It would not under a truncation."""
    kinds = (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)
    return left.private and relation.caps is None and relation.kind in kinds


def _goes_right(relation: Join, right: RelationFacts) -> bool:
    return right.private and relation.caps is None and relation.kind in (JoinKind.INNER, JoinKind.RIGHT)


def _reads_only(condition: Expression, side: RelationFacts) -> bool:
    columns = find_columns(condition)
    return bool(columns) and columns <= side.columns.keys()
