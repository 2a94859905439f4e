"""The bounded question: integers for each group, to each of which one unit contributes a bounded amount.

This module is the contract between the planner, which claims sensitivities, and the engines, which must make the claims
true. An engine does these steps:

1. Take the rows of ``source``, a relation that keeps units apart (``plan.relations``). Keep those whose unit (if there
   is one) is not NULL, and whose key tuple is one of ``domain`` (where the keys are public).
2. Every row yields one integer for each ``Measure``, within [row_low, row_high] (``Measure.row``).
3. Every row gets a weight, in units of 2^-b (b is ``weight_bits``). Let its unit have n rows after step 1, be in
   g groups, and have c rows in the row's group.
   With ``max_rows`` K:  W = min(2^b, ⌊K·2^b/n⌋).
   Otherwise, with ``max_rows_per_group`` R and ``max_groups`` G:
   W = (min(2^b, ⌊R·2^b/c⌋)·min(2^b, ⌊G·2^b/g⌋)) >> b, where the second factor is 2^b if there is no G.
   So rows beyond a limit are not left out: all rows of the unit weigh less, and every measure of a row has its weight.
   (A person with 10 visits where 3 are allowed counts as 3 visits with the average of the 10.)
4. ROWS, VALUES, STEPS and SQUARES add W times the integer of each row. UNITS adds the unit's weight in a group,
   V = min(2^b, ⌊C·2^b/g⌋), where C is the most groups that one unit may be in (``group_cap``). A measure with
   ``partial`` bounds adds V times the unit's plain sum in the group, clamped to the bounds; without a value, nothing.
5. The answer is the sum over all units, for each group and measure. Where that costs nothing (``unit_bits`` is 0) it is
   rounded to whole steps, halves up. Totals of rows are not rounded where ``whole_totals`` is False: combinations of
   them are measured (``joint_measures``).

A ``Spread`` adds W to the cell of each row. With ``max_groups`` G the second factor of W is ⌊2^b/⌈g/G⌉⌋ here.

DISTINCT is not weighed but matched. Its pairs are (unit, item), where an item is a group and a value that the unit has
there. The pairs of all units are gone through in a secret order, and a pair is taken if no other unit has taken the
item and the unit has taken fewer than ``max_values`` in all groups. The answer is the number of items that are taken in
each group; for DISTINCT_STEPS and DISTINCT_SQUARES, the sum of the integers of their values, each once. The order is
one of all pairs that could be: it must not depend on which of them there are. It is the same for all three.

Two kinds of measures choose from a unit's groups in a secret random order, and count in whole numbers. The first
groups in that order are kept: ``max_groups`` of them at most, or with ``max_rows`` until so many rows are used up.

- NAMED: a unit adds 1 to each group that it is kept in. Private keys are named by this.
- WEIGHT: a unit adds ⌊√(last²/g)⌋ to each of the g groups that it is kept in.

But for these three, every step before the last is a function of one unit's rows and of the secret order. So a unit
moves the answer by its own vector of partial sums, and by nothing else. docs/proofs/weights.md proves the claims of
``sensitivity``, and docs/proofs/distinct-values.md those for DISTINCT.

Where a join does not keep units together, there is no unit to bound by, and ``unit`` is None. Then rows count as they
are, b is 0, and ``spread_rows`` says how many rows one unit can change after the truncation in ``source``: at most half
of them come, and half of them go.
"""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction
from math import isqrt
from typing import assert_never

from discreet.errors import InternalError
from discreet.late_dataclass import dataclass
from discreet.plan.expressions import Expression
from discreet.plan.relations import Relation
from discreet.plan.types import Value
from discreet.privacy import Neighbours

# Bits of a weight: the most, which no error shows, and the least that keep a share right to a thousandth.
MOST_BITS, LEAST_BITS = 24, 16
# What one unit moves has about so many bits, so that noise stays far from the edge of 64.
_MOVED_BITS = 55


class Counts(StrEnum):
    """What a measure adds up."""

    ROWS = "rows"  # 1 for each row
    VALUES = "values"  # 1 for each row whose argument is not NULL
    UNITS = "units"  # 1 for each unit that has a row in the group (with an argument: one where it is not NULL)
    STEPS = "steps"  # the argument in steps from the origin; NULL is 0
    SQUARES = "squares"  # the square of that
    DISTINCT = "distinct"  # 1 for each distinct value of the argument that a unit brings
    DISTINCT_STEPS = "distinct steps"  # such a value in steps from the origin
    DISTINCT_SQUARES = "distinct squares"  # the square of that
    NAMED = "named"  # 1 for each unit that is kept in the group
    WEIGHT = "weight"  # the more groups a unit is kept in, the less it adds to each


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One integer for each group.

    A value x becomes steps: x is clamped to [low, high] and steps = floor((x − origin)/resolution + 1/2), computed in
    doubles (in integers where the argument is an INTEGER and origin and resolution are whole), then clamped to
    [first, last] as an integer. ``first`` and ``last`` are the steps of low and high, rounded outwards.
    ``partial`` bounds what one unit adds to one group. It is for ROWS, VALUES and STEPS, and replaces limits on rows.
    ``max_values`` is for matched measures: how many values one unit brings, in all groups together. ``public`` is the
    value itself, where it is declared: it is shown as it is, and what an engine counts is not used.
    """

    counts: Counts
    argument: Expression | None = None
    origin: Fraction = Fraction(0)
    resolution: Fraction = Fraction(1)
    first: int = 0
    last: int = 1
    partial: tuple[int, int] | None = None
    max_values: int | None = None
    public: int | None = None

    @property
    def row_low(self) -> int:
        """The least that a row can add. It is never above 0, because a row may add nothing."""
        return min(0, self.first) if self.counts in (Counts.STEPS, Counts.DISTINCT_STEPS) else 0

    @property
    def row_high(self) -> int:
        """The most that a row can add. It is never below 0."""
        match self.counts:
            case Counts.STEPS | Counts.DISTINCT_STEPS:
                return max(0, self.last)
            case Counts.SQUARES | Counts.DISTINCT_SQUARES:
                return max(self.first**2, self.last**2)
            case Counts.ROWS | Counts.VALUES | Counts.UNITS | Counts.DISTINCT | Counts.NAMED | Counts.WEIGHT:
                return 1
            case _:
                assert_never(self.counts)

    @property
    def by_lot(self) -> bool:
        """Whether it chooses from a unit's groups in the secret order, instead of weighing them."""
        return self.counts in (Counts.NAMED, Counts.WEIGHT)

    @property
    def matched(self) -> bool:
        """Whether it is about the distinct values that units bring."""
        return self.counts in (Counts.DISTINCT, Counts.DISTINCT_STEPS, Counts.DISTINCT_SQUARES)

    @property
    def weighed(self) -> bool:
        """Whether it is a sum of weights. Others count in whole numbers."""
        return not self.by_lot and not self.matched

    @property
    def by_unit(self) -> bool:
        """Whether a unit adds one number to a group, however many rows it has there."""
        return self.counts is Counts.UNITS or self.partial is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The distribution of an argument's values in each group: the weight of the rows in each cell.

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
    weight_bits: int = 0
    whole_totals: bool = True

    def __post_init__(self) -> None:
        grouped = self.max_groups is not None or self.max_rows_per_group is not None
        if self.unit is not None and (self.max_rows is None) is (self.max_rows_per_group is None):
            raise InternalError("A bounded question about units must cap their rows, in all or in each group.")
        if self.max_rows is not None and grouped:
            raise InternalError("Rows cannot be capped in all and in each group both.")
        if self.unit is not None and self.spread_rows != 1:
            raise InternalError("Rows cannot be bounded by unit and by truncation both.")
        if not 0 <= self.weight_bits <= MOST_BITS or (self.unit is None and self.weight_bits):
            raise InternalError("Weights have too many bits, or nobody to weigh.")


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


def unit_bits(bounded: BoundedPlan, measure: Measure) -> int:
    """The answers of a measure are in units of 2^-bits: 0 where they are whole numbers.

    Privacy: rounding to whole steps moves no group further than ``sensitivity`` claims. Why: a total that moves by at
    most a whole number t still moves by at most t when it is rounded. In one group, or in as many groups as a unit may
    be in anyway, every group has such a t and the claims add them up. Otherwise a unit can move many groups by a little
    each, and rounding could make a whole step of each little. There totals stay fine, and are rounded after the noise.
    """
    if not measure.weighed or bounded.unit is None:
        return 0
    if not bounded.whole_totals and not measure.by_unit:
        return bounded.weight_bits
    if group_count(bounded) == 1:
        return 0
    whole = not limits_groups(bounded) and (measure.by_unit or bounded.max_rows is None)
    return 0 if whole else bounded.weight_bits


def sensitivity(bounded: BoundedPlan, measure: Measure, neighbours: Neighbours) -> Sensitivity:
    """How far one unit can move a measure's vector over all groups, in its own units (``unit_bits``).

    Privacy: under add-remove the vector moves by one unit's partials p; under replace by p − p′.
    Why: let a ≤ 0 ≤ b bound a row, m = max(−a, b). With max_rows K the weights of a unit's rows sum to K at most. So
    Σ|p| ≤ K·m, hence Σp² ≤ (K·m)². p lies in the convex hull of 0 and of the points with K·a or K·b in one group; the
    square of the distance between two such points is largest at corners: K·(b − a) in one group, or K·m in each of two.
    With G groups of R rows, a unit in g groups moves each by at most R·m·min(1, G/g). So Σ|p| ≤ G·R·m, and
    Σp² ≤ g·(R·m·min(1, G/g))² ≤ G·(R·m)². Under replace Σ|p − p′| ≤ 2·G·R·m, and the squares are at most
    G·R²·max((b − a)², 2·m²). Weights are rounded down, which keeps all of it. A unit may change any number of groups.
    docs/proofs/weights.md has the steps. Where rows of several units are joined, S/2 rows may go and S/2 others come:
    as if a unit with K = S/2 rows were replaced. Measures by lot keep whole groups: at most G, or K, of them change.
    Matched measures: a unit adds at most ``max_values`` items ℓ and takes none away. So its partials are sums over ℓ
    items, each in one group and between a and b, as if they were ℓ rows that count in full: the rules for max_rows hold
    with K = ℓ (docs/proofs/distinct-values.md).
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
        gone = gone_rows(bounded, neighbours)
        most = 2 * gone if among is None else min(among, 2 * gone)
        return _total_sensitivity(gone, most, among=among, m=m, spread=spread, neighbours=Neighbours.REPLACE)
    if bounded.unit is not None and measure.matched:
        return _match_sensitivity(measure, among=among, m=m, spread=spread, neighbours=neighbours)
    m, spread = (size << unit_bits(bounded, measure) for size in (m, spread))
    single = bounded.unit is None or measure.by_unit or measure.counts is Counts.NAMED
    rows = 1 if single else bounded.max_rows_per_group
    if bounded.max_rows is not None and not single:
        total = bounded.max_rows
        return _total_sensitivity(total, among, among=among, m=m, spread=spread, neighbours=neighbours)
    if groups is None or rows is None:
        raise InternalError("A measure without caps has no sensitivity.")
    whole_groups = bounded.unit is None or measure.by_lot
    rule = _group_sensitivity if whole_groups else _weighed_sensitivity
    return rule(groups, rows, among=among, m=m, spread=spread, neighbours=neighbours)


def gone_rows(bounded: BoundedPlan, neighbours: Neighbours) -> int:
    """Where rows of several units are joined: how many rows can go, and how many others can come in their place.

    Both are half of ``spread_rows`` for one unit (``stability``), and twice that where a unit is replaced.
    """
    return -(-bounded.spread_rows // 2) * (1 if neighbours is Neighbours.ADD_REMOVE else 2)


def choose_weight_bits(bounded: BoundedPlan) -> int:
    """How fine weights are: as the largest measure of a question allows, within limits; 0 where a row is the unit."""
    if bounded.unit is None:
        return 0
    plain = [m for m in bounded.measures if m.weighed]
    moved = [sensitivity(bounded, measure, Neighbours.ADD_REMOVE).l1 for measure in plain]
    return max(LEAST_BITS, min(MOST_BITS, _MOVED_BITS - max(moved, default=1).bit_length()))


@dataclass(frozen=True, slots=True)
class Reach:
    """How much of spreads one unit can change: its groups make ``groups`` bundles of at most ``rows`` rows each.

    ``rows`` are in units of 2^-b, as the cells of spreads are. ``in_place`` says that there is one group only, so that
    the rows of a replaced unit stay in it.
    """

    groups: int
    rows: int
    in_place: bool = False


def reach(bounded: BoundedPlan, neighbours: Neighbours) -> Reach:
    """How much one unit can change in the spreads of all groups.

    Privacy: choices that are calibrated for these bundles have, over all groups together, the loss that they state (see
    ``mechanisms.quantiles.cells``, which counts the rows of the old unit and of the new one where units are replaced).
    Why: with at most K rows in all, or with rows that are bounded by truncation inside ``source``, all groups are one
    bundle. With G groups of R rows, a unit in g groups has at most R/s rows in each, s = ⌈g/G⌉. So any s of them make a
    bundle, and ⌈g/s⌉ ≤ G bundles hold all. docs/proofs/choices-in-groups.md has the case of a replaced unit.
    """
    in_place = neighbours is Neighbours.REPLACE and group_count(bounded) == 1 and bounded.spread_rows == 1
    if bounded.unit is None:
        return Reach(1, bounded.spread_rows, in_place)
    if bounded.max_rows is not None:
        return Reach(1, bounded.max_rows << bounded.weight_bits, in_place)
    groups = group_cap(bounded)
    if groups is None or bounded.max_rows_per_group is None:
        raise InternalError("A spread without caps has no reach.")
    return Reach(groups, bounded.max_rows_per_group << bounded.weight_bits, in_place)


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


def _match_sensitivity(
    measure: Measure, *, among: int | None, m: int, spread: int, neighbours: Neighbours
) -> Sensitivity:
    """The sensitivity of matched values: a unit adds the integers of ``max_values`` items at most, in all groups."""
    most = measure.max_values
    if most is None or most < 1:
        raise InternalError("Distinct values without a limit have no sensitivity.")
    touched = most if neighbours is Neighbours.ADD_REMOVE else 2 * most
    touched = touched if among is None else min(touched, among)
    return _total_sensitivity(most, touched, among=among, m=m, spread=spread, neighbours=neighbours)


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


def _weighed_sensitivity(
    groups: int, rows: int, *, among: int | None, m: int, spread: int, neighbours: Neighbours
) -> Sensitivity:
    """The sensitivity where a unit in g groups has at most rows·min(1, groups/g) rows in each of them."""
    if neighbours is Neighbours.ADD_REMOVE:
        l1, squares, largest = groups * rows * m, groups * (rows * m) ** 2, rows * m
    else:
        l1, squares, largest = 2 * groups * rows * m, groups * rows**2 * max(spread**2, 2 * m**2), rows * spread
    if among is not None:  # each group moves by at most so much, however many rows there are
        l1, squares = min(l1, among * largest), min(squares, among * largest**2)
    return Sensitivity(l1 if among is None else among, l1, squares, largest)


def _total_sensitivity(
    total: int, touched: int | None, *, among: int | None, m: int, spread: int, neighbours: Neighbours
) -> Sensitivity:
    """The sensitivity where a unit has at most ``total`` rows, in whatever groups they are: in ``touched`` at most.

    Without such a number, no more groups change than the sum of all changes says.
    """
    one = total * m
    if neighbours is Neighbours.ADD_REMOVE:
        return Sensitivity(one if touched is None else touched, one, one**2, one)
    wide = total * spread
    if among == 1:
        return Sensitivity(1, wide, wide**2, wide)
    return Sensitivity(2 * one if touched is None else touched, 2 * one, max(wide**2, 2 * one**2), wide)


def limits_groups(bounded: BoundedPlan) -> bool:
    """Whether a unit can be in more groups than count in full."""
    cap, among = bounded.max_groups or bounded.max_rows, group_count(bounded)
    return bounded.unit is not None and cap is not None and (among is None or among > cap)


def group_count(bounded: BoundedPlan) -> int | None:
    """How many groups there are in all; None where that is not public."""
    if not bounded.keys:
        return 1
    return None if bounded.domain is None else len(bounded.domain)


def group_cap(bounded: BoundedPlan) -> int | None:
    """The most groups of one unit that count in full: the least of the cap, the number of groups and of rows."""
    caps = (bounded.max_groups, bounded.max_rows, group_count(bounded), 1 if bounded.unit is None else None)
    return min((cap for cap in caps if cap is not None), default=None)
