"""Joint measures: whole-number combinations of a group's exact measures, which one noise hides together.

Two measures of the same rows need not cost twice as much as one. Let a row add 1 to the count N and s to the sum S,
with lo ≤ s ≤ hi. Then A = hi·N − S and B = S − lo·N get hi − s ≥ 0 and s − lo ≥ 0 from it, together hi − lo, whatever
s is: the row's mass is cut into parts. So (A, B) moves in all as far as one measure does, and N = (A + B)/(hi − lo) and
S = (lo·A + hi·B)/(hi − lo) come out of one charge. The squares of steps are cut into (hi − s)², 2(hi − s)(s − lo) and
(s − lo)²; rows without a value are one more part, which no other row has.

Distinct values that units bring are cut in the same way: an item adds what a row does, and a unit adds at most
``max_values`` items (docs/proofs/distinct-values.md).

All of it is linear, so nothing changes for engines: they add up measures, and combinations are taken of the totals.
docs/proofs/joint-measures.md has the proofs. ``strategies`` chooses which combinations are measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import lcm
from typing import TypeAlias

from discreet.bounding.contributions import BoundedPlan, Counts, Measure, Sensitivity, gone_rows, sensitivity
from discreet.errors import InternalError
from discreet.late_dataclass import dataclass
from discreet.privacy import Neighbours

Terms: TypeAlias = tuple[tuple[int, int], ...]
"""A linear combination: (place, whole factor) for each term."""

# The middle part of squares is weighed by this, below √3.5, where lengths count and not sums: (13/7)² ≤ 3.5.
MIDDLE, ENDS = 13, 7


@dataclass(frozen=True, slots=True)
class JointMeasure:
    """Combinations of the measures of a group (by their positions), which get noise of one law, for one charge.

    A single part is bounded row by row as ``row`` says. Of several parts, none gets less than 0 from a row; what they
    get sums to at most ``row.row_high``, and has at most the length ``length``.
    """

    parts: tuple[Terms, ...]
    row: Measure
    length: int = 0


def measure_alone(measures: Sequence[Measure], position: int) -> JointMeasure:
    """One measure as it is."""
    return JointMeasure((((position, 1),),), measures[position])


def joint_sensitivity(bounded: BoundedPlan, joint: JointMeasure, neighbours: Neighbours) -> Sensitivity:
    """How far one unit can move all parts of a joint measure in all groups.

    Privacy: under add-remove the vector over groups and parts moves by one unit's p, under replace by p − p′.
    Why: p is a sum over rows of weight times the row's vector f, where f ≥ 0, Σf ≤ m and ‖f‖ ≤ m₂. The norm of a sum is
    at most the sum of norms, so in each group p is as long as that of one measure whose rows add m (or m₂) at most, and
    everything that ``sensitivity`` shows for add-remove follows in the same way. Under replace L1 is at most twice
    that; and since p and p′ have no negative entries, ‖p − p′‖² ≤ ‖p‖² + ‖p′‖². Where rows of several units are joined,
    p are the rows that come and p′ those that go, with ``gone_rows`` of them each.
    It needs totals that are not rounded before they are combined (``BoundedPlan.whole_totals`` is False): a rounded
    count may stay while the rounded sum moves.
    """
    if len(joint.parts) == 1:
        return sensitivity(bounded, joint.row, neighbours)
    if bounded.unit is None and bounded.spread_rows > 1:
        most, long = (gone_rows(bounded, neighbours) * size for size in (joint.row.row_high, joint.length))
        return Sensitivity(2 * most, 2 * most, 2 * long**2, most)
    units = 1 if neighbours is Neighbours.ADD_REMOVE else 2
    sums = sensitivity(bounded, joint.row, Neighbours.ADD_REMOVE)
    lengths = sensitivity(bounded, replace(joint.row, last=joint.length), Neighbours.ADD_REMOVE)
    return Sensitivity(
        units * sums.l0 * len(joint.parts), units * sums.l1, units * lengths.l2_squared, units * sums.linf
    )


def _steps_between(first: int, last: int, like: Measure | None = None) -> Measure:
    """What a row adds, or an item where ``like`` is of distinct values."""
    if like is None or not like.matched:
        return Measure(counts=Counts.STEPS, first=first, last=last)
    return Measure(counts=Counts.DISTINCT_STEPS, first=first, last=last, max_values=like.max_values)


@dataclass(frozen=True, slots=True)
class MeasureFamily:
    """Measures of the same rows: how many there are, their steps, the squares of these, and the rows without a value.

    All are positions. ``count`` counts the rows that have steps, or all of them; ``rows`` counts all of them, where
    ``count`` does not.
    """

    count: int
    steps: int | None = None
    squares: int | None = None
    rows: int | None = None


def find_families(measures: Sequence[Measure], measured: Sequence[int]) -> list[MeasureFamily]:
    """Which of the measures that statistics need are about the same rows."""
    at = {measures[position]: position for position in measured}
    rows = at.get(Measure(counts=Counts.ROWS))
    found, counted = [], set()
    for measure, position in at.items():
        if measure.counts is Counts.DISTINCT_STEPS:
            found += _find_distinct_family(at, measure)
            continue
        if measure.counts is not Counts.STEPS or measure.partial is not None:
            continue
        own = at.get(Measure(counts=Counts.VALUES, argument=measure.argument))
        count = rows if own is None else own
        if count is None:
            continue
        squares = _find_squares(at, measure, Counts.SQUARES)
        found.append(MeasureFamily(count, position, squares, None if own is None else rows))
        counted.add(own)
    if rows is not None:
        values = [p for m, p in at.items() if m.counts is Counts.VALUES and m.partial is None and p not in counted]
        found += [MeasureFamily(position, rows=rows) for position in values]
    return found


def _find_distinct_family(at: Mapping[Measure, int], steps: Measure) -> list[MeasureFamily]:
    """The distinct values of an argument: their number, their steps and the squares of these, of the same items."""
    count = at.get(Measure(counts=Counts.DISTINCT, argument=steps.argument, max_values=steps.max_values))
    if count is None:
        return []
    return [MeasureFamily(count, at[steps], _find_squares(at, steps, Counts.DISTINCT_SQUARES))]


def _find_squares(at: Mapping[Measure, int], steps: Measure, counts: Counts) -> int | None:
    return next((p for m, p in at.items() if m.counts is counts and _same_grid(m, steps)), None)


def _same_grid(one: Measure, two: Measure) -> bool:
    grids = [(m.argument, m.origin, m.resolution, m.first, m.last, m.max_values) for m in (one, two)]
    return grids[0] == grids[1]


@dataclass(frozen=True, slots=True)
class JointForm:
    """One way to measure some positions: as many parts as positions."""

    positions: frozenset[int]
    joint: JointMeasure


def list_forms(measures: Sequence[Measure], family: MeasureFamily) -> list[JointForm]:
    """The ways to measure a family jointly, each for itself; what is left out is measured as it is."""
    rows, like = None if family.rows is None else _subtract(family.rows, family.count), measures[family.count]
    forms = []
    if rows is not None:
        # Every row adds 1 to exactly one of the two.
        cells = (((family.count, 1),), rows)
        forms.append(_make_form((family.count, family.rows), cells, _steps_between(0, 1)))
    if family.steps is None:
        return forms
    # A row without a value adds 0 steps, so 0 is within the range, also where the codebook says that there is none.
    steps = measures[family.steps]
    low, high = steps.row_low, steps.row_high
    if low == high:
        return forms
    size, middle = high - low, low + high
    row = _steps_between(-size, size, like)
    centred = JointMeasure((_combine((family.steps, 2), (family.count, -middle)),), row)
    # The count may be one of all rows, to which a row without a value adds, too: −middle is within the range.
    forms.append(JointForm(frozenset({family.steps}), centred))
    ends = (
        _combine((family.count, high), (family.steps, -1)),
        _combine((family.steps, 1), (family.count, -low)),
    )
    bases: list[tuple[tuple[int, ...], tuple[Terms, ...], int, int]] = [
        ((family.count, family.steps), ends, size, size)
    ]
    if family.squares is not None:
        n, s, q = family.count, family.steps, family.squares
        for weight, end, most in ((1, 1, size**2), (MIDDLE, ENDS, 10 * size**2)):
            squared = (
                _combine((n, end * high**2), (s, -2 * end * high), (q, end)),
                _combine((n, -2 * weight * low * high), (s, 2 * weight * middle), (q, -2 * weight)),
                _combine((n, end * low**2), (s, -2 * end * low), (q, end)),
            )
            bases.append(((n, s, q), squared, most, end * size**2))
    for positions, parts, most, length in bases:
        row = _steps_between(0, most, like)
        forms.append(_make_form(positions, parts, row, length))
        if rows is not None:
            cell = tuple((position, length * factor) for position, factor in rows)
            forms.append(_make_form((*positions, family.rows), (*parts, cell), row, length))
    return forms


def _make_form(positions: Sequence[int | None], parts: tuple[Terms, ...], row: Measure, length: int = 1) -> JointForm:
    used = frozenset(position for position in positions if position is not None)
    return JointForm(used, JointMeasure(parts, row, length))


def _subtract(one: int, two: int) -> Terms:
    return ((one, 1), (two, -1))


def _combine(*terms: tuple[int, int]) -> Terms:
    return tuple((position, factor) for position, factor in terms if factor)


@dataclass(frozen=True, slots=True)
class Recovery:
    """How a measure follows from what was drawn: the sum of the terms, ``units`` of which are one step.

    The places of terms count all parts of all joint measures, in their order.
    """

    terms: Terms
    units: int


def recover(joints: Sequence[JointMeasure], positions: Sequence[int]) -> dict[int, Recovery]:
    """Every measure as a combination of parts, exactly: the inverse of the combinations."""
    parts = [dict(part) for joint in joints for part in joint.parts]
    if len(parts) != len(positions):
        raise InternalError("There are not as many parts as measures.")
    # Rows of [P | 1], brought to [1 | P⁻¹].
    size = len(parts)
    rows = [
        [Fraction(part.get(position, 0)) for position in positions] + [Fraction(i == j) for j in range(size)]
        for i, part in enumerate(parts)
    ]
    for column in range(size):
        pivot = next((i for i in range(column, size) if rows[i][column]), None)
        if pivot is None:
            raise InternalError("A measure does not follow from its parts.")
        rows[column], rows[pivot] = rows[pivot], rows[column]
        lead = rows[column][column]
        rows[column] = [value / lead for value in rows[column]]
        for i in range(size):
            factor = rows[i][column]
            if i != column and factor:
                rows[i] = [value - factor * above for value, above in zip(rows[i], rows[column])]
    return {position: _make_recovery(row[size:]) for position, row in zip(positions, rows)}


def _make_recovery(factors: Sequence[Fraction]) -> Recovery:
    divisor = lcm(*(factor.denominator for factor in factors))
    return Recovery(_combine(*((slot, int(factor * divisor)) for slot, factor in enumerate(factors))), divisor)


def combine_recoveries(recoveries: Mapping[int, Recovery], factors: Mapping[int, Fraction]) -> dict[int, Fraction]:
    """A combination of measures, in steps, as one of parts."""
    found: dict[int, Fraction] = {}
    for position, factor in factors.items():
        recovery = recoveries[position]
        for slot, times in recovery.terms:
            found[slot] = found.get(slot, Fraction(0)) + factor * times / recovery.units
    return {slot: factor for slot, factor in found.items() if factor}
