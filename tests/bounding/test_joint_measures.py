"""Joint measures, from the definition alone: rows on paper, every neighbour, and the way back.

A row is its group and its value, None for NULL. What a unit adds to each measure is computed as the contract of
``contributions`` says, and combined as the forms say.
"""

# ruff: noqa: S311  # worlds need seeds, not secrets
from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from discreet.bounding.contributions import BoundedPlan, Counts, Measure, Sensitivity
from discreet.bounding.joint_measures import (
    JointForm,
    JointMeasure,
    MeasureFamily,
    find_families,
    joint_sensitivity,
    list_forms,
    measure_alone,
    recover,
)
from discreet.errors import InternalError
from discreet.plan.expressions import Column
from discreet.plan.relations import Scan
from discreet.plan.types import Type
from discreet.privacy import Neighbours
from tests.bounding.test_weights import norms

UNIT, KEY, VALUE, OTHER = (Column("t", name, Type.INTEGER) for name in ("u", "k", "x", "y"))
Row = tuple[int, int | None]
ROWS = Measure(counts=Counts.ROWS)
VALUES = Measure(counts=Counts.VALUES, argument=VALUE)


def grid(first: int, last: int) -> tuple[Measure, Measure]:
    steps = Measure(counts=Counts.STEPS, argument=VALUE, first=first, last=last)
    return steps, replace(steps, counts=Counts.SQUARES)


RANGES = {"centred": (-3, 3), "from zero": (0, 7), "lopsided": (-1, 9), "above zero": (4, 9), "one": (0, 1)}
LIMITS: dict[str, dict[str, Any]] = {
    "rows 1": {"max_rows": 1},
    "rows 4": {"max_rows": 4},
    "3 x 2": {"max_groups": 3, "max_rows_per_group": 2},
    "all x 2": {"max_rows_per_group": 2},
}


def a_plan(measures: tuple[Measure, ...], bits: int, groups: int, limits: str) -> BoundedPlan:
    return BoundedPlan(
        source=Scan("t"),
        keys=(KEY,),
        domain=tuple((i,) for i in range(groups)),
        unit=UNIT,
        measures=measures,
        weight_bits=bits,
        whole_totals=False,
        **LIMITS[limits],
    )


def integer_of(measure: Measure, value: int | None) -> int:
    """What a row adds to a measure, before its weight."""
    if measure.counts is Counts.ROWS:
        return 1
    if value is None:
        return 0
    return {Counts.VALUES: 1, Counts.STEPS: value, Counts.SQUARES: value**2}[measure.counts]


def totals(unit: list[Row], plan: BoundedPlan) -> Counter[tuple[int, int]]:
    """What a unit adds to (measure, group), in units of 2^-b."""
    whole, rows = 2**plan.weight_bits, Counter(group for group, _ in unit)
    found: Counter[tuple[int, int]] = Counter()
    for group, value in unit:
        if plan.max_rows is not None:
            weight = min(whole, plan.max_rows * whole // len(unit))
        else:
            weight = min(whole, (plan.max_rows_per_group or 0) * whole // rows[group])
            if plan.max_groups is not None:
                weight = weight * min(whole, plan.max_groups * whole // len(rows)) // whole
        for position, measure in enumerate(plan.measures):
            found[position, group] += weight * integer_of(measure, value)
    return found


def combined(joint: JointMeasure, sums: Counter[tuple[int, int]], groups: int) -> list[int]:
    return [sum(f * sums[p, g] for p, f in part) for part in joint.parts for g in range(groups)]


def a_unit(rng: random.Random, groups: int, ends: tuple[int, int], *, nulls: bool) -> list[Row]:
    inside = tuple(range(ends[0], ends[1] + 1))
    values: tuple[int | None, ...] = rng.choice(((ends[0],), (ends[1],), ends, inside))
    values = rng.choice((values, (*values, None), (None,))) if nulls else values
    own = rng.sample(range(groups), rng.randrange(1, groups + 1))
    return [(rng.choice(own), rng.choice(values)) for _ in range(rng.choice((1, 2, 4, 9, 23)))]


def all_forms(ends: tuple[int, int], *, counted: Measure) -> tuple[tuple[Measure, ...], list[JointForm]]:
    """A count, steps, squares and the rows, and every form of measuring them jointly."""
    measures = (counted, *grid(*ends)) if counted == ROWS else (counted, *grid(*ends), ROWS)
    families = find_families(measures, range(len(measures)))
    return measures, [form for family in families for form in list_forms(measures, family)]


def worst_shares(
    ends: tuple[int, int], limits: str, neighbours: Neighbours, counted: Measure, cases: int
) -> list[dict[str, Fraction]]:
    """For every form, the largest share of its claims that random units reach."""
    rng = random.Random(f"{ends} {limits} {neighbours} {counted.counts}")
    measures, forms = all_forms(ends, counted=counted)
    found = [dict.fromkeys(("l1", "l2_squared", "linf"), Fraction(0)) for _ in forms]
    for _ in range(cases):
        groups = rng.choice((1, 2, 5))
        plan = a_plan(measures, rng.choice((0, 3, 10)), groups, limits)
        old = totals(a_unit(rng, groups, ends, nulls=True), plan)
        new: Counter[tuple[int, int]] = Counter()
        if neighbours is Neighbours.REPLACE:
            new = totals(a_unit(rng, groups, ends, nulls=True), plan)
        for worst, form in zip(found, forms):
            sides = [combined(form.joint, side, groups) for side in (old, new)]
            change = norms([b - a for a, b in zip(*sides)])
            claim = joint_sensitivity(plan, form.joint, neighbours)
            for norm in worst:
                worst[norm] = max(worst[norm], Fraction(getattr(change, norm), getattr(claim, norm)))
    return found


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize(("name", "limits"), list(product(RANGES, LIMITS)))
@pytest.mark.parametrize("counted", [ROWS, VALUES], ids=["rows", "values"])
def test_no_unit_moves_parts_further_than_claimed(
    name: str, limits: str, neighbours: Neighbours, counted: Measure
) -> None:
    """Every form, with NULLs also where rows are counted as if there were none; and the claims are nearly reached."""
    for worst in worst_shares(RANGES[name], limits, neighbours, counted, 150):
        assert max(worst.values()) <= 1, worst
        assert worst["l1"] > Fraction(1, 3), worst  # not one half where no value is near 0, which is in the range


def test_half_of_a_claim_would_be_noticed() -> None:
    """Negative control: units reach more than half of every claim, so a halved one fails the test above."""
    for worst in worst_shares((-3, 3), "rows 4", Neighbours.ADD_REMOVE, VALUES, 600):
        assert min(worst["l1"], worst["l2_squared"]) > Fraction(1, 2), worst


def test_rounded_totals_would_break_the_claim() -> None:
    """A unit of weight 0.9 can leave the rounded count and move the rounded sum: more than one row's mass."""
    measures, forms = all_forms((0, 10), counted=ROWS)
    joint = next(form.joint for form in forms if form.positions == {0, 1} and len(form.joint.parts) == 2)
    plan = a_plan(measures, 0, 1, "rows 1")
    claim = joint_sensitivity(plan, joint, Neighbours.ADD_REMOVE)
    before, after = Counter({(0, 0): 0, (1, 0): 0}), Counter({(0, 0): 0, (1, 0): 9})  # 0.4 and 1.3 rows, say
    change = norms([b - a for a, b in zip(combined(joint, before, 1), combined(joint, after, 1))])
    assert claim.l1 == 10 and change.l1 == 18


@pytest.mark.parametrize("counted", [ROWS, VALUES], ids=["rows", "values"])
@pytest.mark.parametrize("name", RANGES)
def test_measures_come_back_exactly(name: str, counted: Measure) -> None:
    """The recovered integers over their units are the exact measures, for every form."""
    rng = random.Random(name)
    measures, forms = all_forms(RANGES[name], counted=counted)
    exact = [rng.randrange(-(10**9), 10**9) for _ in measures]
    for form in forms:
        alone = [measure_alone(measures, p) for p in range(len(measures)) if p not in form.positions]
        joints = [form.joint, *alone]
        assert len(form.positions) == len(form.joint.parts)
        parts = [sum(f * exact[p] for p, f in part) for joint in joints for part in joint.parts]
        found = recover(joints, range(len(measures)))
        for position, recovery in found.items():
            assert sum(f * parts[place] for place, f in recovery.terms) == recovery.units * exact[position]


def test_what_belongs_together_is_found() -> None:
    """Steps go with the count of their own values, or with all rows; counts of values with all rows."""
    steps, squares = grid(-2, 2)
    other = Measure(counts=Counts.VALUES, argument=OTHER)
    assert find_families((ROWS, steps), (0, 1)) == [MeasureFamily(0, 1)]
    assert find_families((VALUES, steps, squares, ROWS), range(4)) == [MeasureFamily(0, 1, 2, 3)]
    assert find_families((VALUES, steps, ROWS), (0, 1)) == [MeasureFamily(0, 1)]
    assert find_families((ROWS, other), (0, 1)) == [MeasureFamily(1, rows=0)]
    assert find_families((steps,), (0,)) == [] == find_families((VALUES, other), (0, 1))
    bounded = replace(steps, partial=(-5, 5))
    assert find_families((ROWS, bounded), (0, 1)) == []


def test_parts_that_say_too_little_are_refused() -> None:
    """As many parts as measures, and none of them twice."""
    joint = measure_alone((ROWS, VALUES), 0)
    with pytest.raises(InternalError, match="not as many"):
        recover([joint], (0, 1))
    with pytest.raises(InternalError, match="does not follow"):
        recover([joint, joint], (0, 1))


def test_rows_of_several_units_are_claimed_row_by_row() -> None:
    """Where a join mixes units, a unit changes so many rows, each of which moves the parts by its mass."""
    measures, forms = all_forms((0, 10), counted=ROWS)
    joint = next(form.joint for form in forms if form.positions == {0, 1} and len(form.joint.parts) == 2)
    plan = BoundedPlan(source=Scan("t"), keys=(), domain=((),), unit=None, measures=measures, spread_rows=6)
    claim: dict[Neighbours, Sensitivity] = {n: joint_sensitivity(plan, joint, n) for n in Neighbours}
    # Three rows come and three others go: the masses of all six, or 30 up in one part and 30 down in the other.
    assert claim[Neighbours.ADD_REMOVE].l1 == 60 and claim[Neighbours.REPLACE].l1 == 120
    assert claim[Neighbours.ADD_REMOVE].l2_squared == 1800 and claim[Neighbours.REPLACE].l2_squared == 7200
    alone = joint_sensitivity(plan, measure_alone(measures, 0), Neighbours.ADD_REMOVE)
    assert (alone.l1, alone.l2_squared) == (3, 9)


def test_a_part_is_not_measured_where_nothing_can_vary() -> None:
    """Steps that are always 0 have no mass to cut."""
    measures: tuple[Measure, ...] = (ROWS, *grid(0, 0))
    assert list_forms(measures, MeasureFamily(0, 1, 2)) == []
