"""The bounded question: integers for each group, to each of which one unit contributes a bounded amount.

This module is the contract between the planner, which claims sensitivities, and the engines, which must make the claims
true. An engine does these steps:

1. Take the rows of ``source``, a relation that keeps units apart (``plan.relations``). Keep those whose unit (if there
   is one) is not NULL, and whose key tuple is one of ``domain`` (where the keys are public).
2. Every row yields one integer for each ``Measure``, within [row_low, row_high] (``Measure.row``).
3. For each unit and group, a number of rows is *allowed*. It is at most ``max_rows_per_group``. Where ``max_rows`` is
   set, a unit's groups are taken in a secret random order until ``max_rows`` rows are used up.
   Let n rows of the unit count for a measure in the group. If n is at most the allowed number, the unit's partial sum
   is the plain sum. Otherwise it is the sum scaled down to the allowed rows: sum·allowed/n, rounded towards zero. (A
   person with 10 visits where 3 are allowed counts as 3 visits with the average of the 10.) A measure with ``partial``
   bounds is not scaled: its sum is clamped to them, and without a value it is 0.
4. For each unit, at most ``max_groups`` groups are kept. A secret random order chooses them.
5. The answer is the sum of the partial sums over units, for each group and measure.

Three kinds of measures use the allowed rows in another way:

- DISTINCT: of a unit's distinct values in a kept group, as many are taken as rows are allowed, in a secret order. The
  answer is the number of values that at least one unit has in the group after that.
- WEIGHT: a unit adds ⌊√(last²/g)⌋ to each of the g groups that it is kept in.
- ``Spread``: the allowed rows themselves are counted by cell. Of n rows that have a value, in the order of their cells,
  the r-th is taken if ⌊r·allowed/n + 1/2⌋ > ⌊(r − 1)·allowed/n + 1/2⌋. So the rows that are taken are evenly spaced;
  they are as many as allowed, or all n if n is not more. (A person with 10 visits where 3 are allowed is represented by
  three typical visits.)

Every step before the last is a function of one unit's rows and of the secret order. So a unit moves the answer by its
own vector of partial sums, and by nothing else.

Where a join does not keep units together, there is no unit to bound by, and ``unit`` is None. Then rows count as they
are, and ``spread_rows`` says how many rows one unit can add or take away after the truncation inside ``source``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import isqrt
from typing import assert_never

from discreet.errors import InternalError
from discreet.plan.expressions import Expression
from discreet.plan.relations import Relation
from discreet.plan.types import Value
from discreet.privacy import Neighbours


class Counts(StrEnum):
    """What a measure adds up."""

    ROWS = "rows"  # 1 for each row
    VALUES = "values"  # 1 for each row whose argument is not NULL
    UNITS = "units"  # 1 for each unit that has a row in the group (with an argument: one where it is not NULL)
    STEPS = "steps"  # the argument in steps from the origin; NULL is 0
    SQUARES = "squares"  # the square of that
    DISTINCT = "distinct"  # 1 for each distinct value of the argument
    WEIGHT = "weight"  # the more groups a unit is in, the less it adds to each


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One integer for each group.

    A value x becomes steps: x is clamped to [low, high] and steps = floor((x − origin)/resolution + 1/2), computed in
    doubles (in integers where the argument is an INTEGER and origin and resolution are whole), then clamped to
    [first, last] as an integer. ``first`` and ``last`` are the steps of low and high, rounded outwards.
    ``partial`` bounds what one unit adds to one group. It is for ROWS, VALUES and STEPS, and replaces the scaling.
    """

    counts: Counts
    argument: Expression | None = None
    origin: Fraction = Fraction(0)
    resolution: Fraction = Fraction(1)
    first: int = 0
    last: int = 1
    partial: tuple[int, int] | None = None

    @property
    def row_low(self) -> int:
        """The least that a row can add. It is never above 0, because a row may add nothing."""
        return min(0, self.first) if self.counts is Counts.STEPS else 0

    @property
    def row_high(self) -> int:
        """The most that a row can add. It is never below 0."""
        match self.counts:
            case Counts.STEPS:
                return max(0, self.last)
            case Counts.SQUARES:
                return max(self.first**2, self.last**2)
            case Counts.ROWS | Counts.VALUES | Counts.UNITS | Counts.DISTINCT | Counts.WEIGHT:
                return 1
            case _:
                assert_never(self.counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The distribution of an argument's values in each group: the number of allowed rows in each cell.

    A cell is the step of a number as in ``Measure``. With ``values``, a cell is a position in this list, and other
    values are not counted. NULL is not counted.
    """

    argument: Expression
    origin: Fraction = Fraction(0)
    resolution: Fraction = Fraction(1)
    first: int = 0
    last: int = 1
    values: tuple[Value, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedPlan:
    """A bounded question, which an engine can run. ``unit`` is None where each row is its own unit.

    ``max_groups`` is None where the claims hold without a cap on groups.
    """

    source: Relation
    keys: tuple[Expression, ...]
    domain: tuple[tuple[Value, ...], ...] | None
    unit: Expression | None
    measures: tuple[Measure, ...]
    spreads: tuple[Spread, ...] = ()
    max_groups: int | None = None
    max_rows_per_group: int | None = None
    max_rows: int | None = None
    spread_rows: int = 1

    def __post_init__(self) -> None:
        capped = self.max_rows is not None or self.max_rows_per_group is not None
        if self.unit is not None and not capped:
            raise InternalError("A bounded question about units must cap their rows.")
        if self.unit is not None and self.spread_rows != 1:
            raise InternalError("Rows cannot be bounded by unit and by truncation both.")


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How far one unit can move a vector of integers.

    The fields bound the number of coordinates that change, the sum of their changes in size, the sum of squares, and
    the largest change.
    """

    l0: int
    l1: int
    l2_squared: int
    linf: int


def sensitivity(bounded: BoundedPlan, measure: Measure, neighbours: Neighbours) -> Sensitivity:
    """How far one unit can move a measure's vector over all groups.

    Privacy: under add-remove the vector moves by one unit's partials p; under replace by p − p′.
    Why: with at most G groups of at most R rows, p has at most G entries in [R·a, R·b], where a ≤ 0 ≤ b bound a row.
    So Σ|p| ≤ G·R·m and Σp² ≤ G·(R·m)² for m = max(−a, b). In p − p′, k groups overlap and there the entries differ by
    at most R·(b − a); 2(G − k) others differ by at most R·m. Among d groups in all, k ≥ 2G − d. Both sums are linear in
    k, so their largest values are at the ends. Since b − a ≤ 2m, the sum of sizes is largest at the least k.
    With at most K rows in all, Σ|p| ≤ K·m, hence Σp² ≤ (K·m)². For p − p′ both sums are convex functions of the row
    counts, so in the worst case each side is in one group: both in the same one, where the entry is at most K·(b − a),
    or in two, with at most K·m in each.
    Reference: Wilson et al. 2020, "Differentially private SQL with bounded user contribution", section 3.
    """
    groups, among = group_cap(bounded), group_count(bounded)
    if measure.counts is Counts.WEIGHT:
        if bounded.spread_rows > 1:
            raise InternalError("Rows of several units have no weights.")
        return _weight_sensitivity(measure.last, groups, neighbours)
    low, high = (measure.row_low, measure.row_high) if measure.partial is None else _include_zero(measure.partial)
    m, spread = max(-low, high), high - low
    if bounded.unit is None and bounded.spread_rows > 1:
        changed = bounded.spread_rows * (1 if neighbours is Neighbours.ADD_REMOVE else 2)
        return _total_sensitivity(changed, among, among=among, m=m, spread=spread, neighbours=Neighbours.ADD_REMOVE)
    single = bounded.unit is None or measure.counts is Counts.UNITS or measure.partial is not None
    rows = 1 if single else bounded.max_rows_per_group
    if bounded.max_rows is not None and not single:
        return _total_sensitivity(bounded.max_rows, groups, among=among, m=m, spread=spread, neighbours=neighbours)
    if groups is None or rows is None:
        raise InternalError("A measure without caps has no sensitivity.")
    return _group_sensitivity(groups, rows, among=among, m=m, spread=spread, neighbours=neighbours)


@dataclass(frozen=True, slots=True)
class Reach:
    """How many rows of spreads one unit can change: its groups make ``groups`` bundles of at most ``rows`` rows each.

    ``in_place`` says that there is one group only, so that the rows of a replaced unit stay in it.
    """

    groups: int
    rows: int
    in_place: bool = False


def reach(bounded: BoundedPlan, neighbours: Neighbours) -> Reach:
    """How many rows one unit can change in the spreads of all groups.

    Privacy: choices that are calibrated for these bundles have, over all groups together, the loss that they state (see
    ``mechanisms.quantiles.cells``, which counts the rows of the old unit and of the new one where units are replaced).
    Why: with at most G groups of at most R rows, each group is a bundle. With at most K rows in all, or with rows that
    are bounded by truncation inside ``source``, all groups are one bundle.
    """
    in_place = neighbours is Neighbours.REPLACE and group_count(bounded) == 1 and bounded.spread_rows == 1
    if bounded.unit is None:
        return Reach(1, bounded.spread_rows, in_place)
    if bounded.max_rows is not None:
        return Reach(1, bounded.max_rows, in_place)
    groups = group_cap(bounded)
    if groups is None or bounded.max_rows_per_group is None:
        raise InternalError("A spread without caps has no reach.")
    return Reach(groups, bounded.max_rows_per_group, in_place)


def _include_zero(ends: tuple[int, int]) -> tuple[int, int]:
    """Bounds that also include 0, for a unit that adds nothing."""
    return min(0, ends[0]), max(0, ends[1])


def _weight_sensitivity(whole: int, groups: int | None, neighbours: Neighbours) -> Sensitivity:
    """The sensitivity of weights.

    A unit in g groups adds from 0 to whole/√g to each of them: at most whole² in squares, and √g·whole in sum.
    """
    if groups is None:
        raise InternalError("Weights without a cap on groups.")
    units = 1 if neighbours is Neighbours.ADD_REMOVE else 2
    return Sensitivity(units * groups, units * isqrt(groups * whole**2), units * whole**2, whole)


def _group_sensitivity(
    groups: int, rows: int, *, among: int | None, m: int, spread: int, neighbours: Neighbours
) -> Sensitivity:
    """The sensitivity where a unit is in at most ``groups`` of ``among`` groups, with at most ``rows`` rows in each."""
    if neighbours is Neighbours.ADD_REMOVE:
        return Sensitivity(groups, groups * rows * m, groups * (rows * m) ** 2, rows * m)
    shared = 0 if among is None else max(0, 2 * groups - among)
    apart = 2 * (groups - shared)
    l2_shared = shared * (rows * spread) ** 2 + apart * (rows * m) ** 2
    l2_all = groups * (rows * spread) ** 2
    return Sensitivity(
        shared + apart,
        shared * rows * spread + apart * rows * m,
        max(l2_shared, l2_all),
        rows * max(m, spread),
    )


def _total_sensitivity(
    total: int, groups: int | None, *, among: int | None, m: int, spread: int, neighbours: Neighbours
) -> Sensitivity:
    """The sensitivity where a unit has at most ``total`` rows, in whatever groups they are."""
    l0 = total if groups is None else min(groups, total)
    if neighbours is Neighbours.ADD_REMOVE:
        return Sensitivity(l0, total * m, (total * m) ** 2, total * m)
    if among == 1:
        return Sensitivity(1, total * spread, (total * spread) ** 2, total * spread)
    wide = max((total * spread) ** 2, 2 * (total * m) ** 2)
    return Sensitivity(2 * l0, 2 * total * m, wide, total * max(m, spread))


def group_count(bounded: BoundedPlan) -> int | None:
    """How many groups there are in all; None where that is not public."""
    if not bounded.keys:
        return 1
    return None if bounded.domain is None else len(bounded.domain)


def group_cap(bounded: BoundedPlan) -> int | None:
    """The most groups that one unit can be in: the smallest of the cap, the number of groups and the number of rows."""
    caps = (bounded.max_groups, bounded.max_rows, group_count(bounded), 1 if bounded.unit is None else None)
    return min((cap for cap in caps if cap is not None), default=None)
