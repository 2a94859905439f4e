"""Weights and their sensitivities, from the definition alone: whole numbers on paper, no engine.

A unit is a list of (group, integers of a row). What it adds to each group is computed as the contract says, for two
units that know nothing of each other, and compared with ``sensitivity``.
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

from discreet.bounding.contributions import (
    LEAST_BITS,
    MOST_BITS,
    BoundedPlan,
    Counts,
    Measure,
    Sensitivity,
    choose_weight_bits,
    limits_groups,
    reach,
    sensitivity,
    unit_bits,
)
from discreet.errors import InternalError
from discreet.plan.expressions import Column
from discreet.plan.relations import Scan
from discreet.plan.types import Type
from discreet.privacy import Neighbours

UNIT, KEY, VALUE = (Column("t", name, Type.INTEGER) for name in ("u", "k", "x"))
Unit = list[tuple[int, int]]
Partials = Counter[int]
NORMS = ("l0", "l1", "l2_squared", "linf")


def a_plan(measure: Measure, bits: int, domain: int | None, **limits: Any) -> BoundedPlan:
    public = None if domain is None else tuple((i,) for i in range(domain))
    return BoundedPlan(
        source=Scan("t"), keys=(KEY,), domain=public, unit=UNIT, measures=(measure,), weight_bits=bits, **limits
    )


def steps(first: int, last: int) -> Measure:
    return Measure(counts=Counts.STEPS, argument=VALUE, first=first, last=last)


def partials(unit: Unit, plan: BoundedPlan) -> Partials:
    """What a unit adds to each group, in units of 2^-b, by the words of the contract."""
    (measure,), whole = plan.measures, 2**plan.weight_bits
    rows = Counter(group for group, _ in unit)
    found: Partials = Counter()
    for group in rows:
        total = sum(x for g, x in unit if g == group)
        if measure.by_unit:
            cap = plan.max_groups or plan.max_rows
            each = Fraction(1) if cap is None or not limits_groups(plan) else min(Fraction(1), Fraction(cap, len(rows)))
            low, high = measure.partial or (1, 1)
            found[group] = int(whole * each) * min(max(total, low), high)
        elif plan.max_rows is not None:
            found[group] = min(whole, plan.max_rows * whole // len(unit)) * total
        else:
            assert plan.max_rows_per_group is not None
            weight = min(whole, plan.max_rows_per_group * whole // rows[group])
            if plan.max_groups is not None:
                weight = weight * min(whole, plan.max_groups * whole // len(rows)) // whole
            found[group] = weight * total
    return found


def norms(changes: list[int]) -> Sensitivity:
    sizes = [abs(change) for change in changes if change]
    return Sensitivity(len(sizes), sum(sizes), sum(size**2 for size in sizes), max(sizes, default=0))


def moved(old: Unit, new: Unit, others: Partials, plan: BoundedPlan) -> Sensitivity:
    """How far the answer moves where one unit is replaced by another, beside others; an empty one has no rows."""
    (measure,) = plan.measures
    rounds = unit_bits(plan, measure) != plan.weight_bits
    sides = [others.copy(), others.copy()]
    for side, unit in zip(sides, (old, new)):
        side.update(partials(unit, plan))
    if rounds:
        sides = [Counter({k: settle(v, plan.weight_bits) for k, v in side.items()}) for side in sides]
    return norms([sides[1][k] - sides[0][k] for k in sides[0].keys() | sides[1].keys()])


def settle(total: int, bits: int) -> int:
    """To whole steps, halves up."""
    return int((Fraction(total, 2**bits) + Fraction(1, 2)).__floor__())


def a_unit(rng: random.Random, groups: int, ends: tuple[int, int]) -> Unit:
    """Units that are hard to bound: many rows or few, in many groups or few, at the bounds or between them."""
    own = rng.sample(range(groups), rng.randrange(1, groups + 1))
    values = rng.choice(((ends[0],), (ends[1],), ends, tuple(range(ends[0], ends[1] + 1))))
    if rng.random() < 0.5:
        return [(group, rng.choice(values)) for group in own for _ in range(rng.choice((1, 2, 7)))]
    return [(rng.choice(own), rng.choice(values)) for _ in range(rng.randrange(1, 30))]


FORMS: dict[str, dict[str, int]] = {
    "rows 1": {"max_rows": 1},
    "rows 4": {"max_rows": 4},
    "rows 9": {"max_rows": 9},
    "1 x 1": {"max_groups": 1, "max_rows_per_group": 1},
    "3 x 2": {"max_groups": 3, "max_rows_per_group": 2},
    "2 x 5": {"max_groups": 2, "max_rows_per_group": 5},
    "all x 2": {"max_rows_per_group": 2},
}
MEASURES: dict[str, tuple[Measure, tuple[int, int]]] = {
    "count": (Measure(counts=Counts.ROWS), (1, 1)),
    "sum": (steps(-3, 5), (-3, 5)),
    "lopsided sum": (steps(-1, 9), (-1, 9)),
    "units": (Measure(counts=Counts.UNITS), (1, 1)),
    "partial sum": (replace(steps(-50, 50), partial=(-4, 6)), (-9, 9)),
}


def worst(name: str, form: str, neighbours: Neighbours, cases: int) -> dict[str, Fraction]:
    """The largest share of each claim that random units reach."""
    rng, (measure, ends) = random.Random(f"{name} {form} {neighbours}"), MEASURES[name]
    found = dict.fromkeys(NORMS, Fraction(0))
    for _ in range(cases):
        groups = rng.choice((1, 2, 3, 6, 12))
        private = "max_rows" in FORMS[form] or "max_groups" in FORMS[form]
        domain = rng.choice((groups, None)) if private else groups
        plan = a_plan(measure, rng.choice((0, 2, 10)), domain, **FORMS[form])
        new = a_unit(rng, groups, ends) if neighbours is Neighbours.REPLACE else []
        others = Counter({k: rng.randrange(1 << plan.weight_bits) for k in range(groups)})
        change = moved(a_unit(rng, groups, ends), new, others, plan)
        claim = sensitivity(plan, measure, neighbours)
        for norm in NORMS:
            found[norm] = max(found[norm], Fraction(getattr(change, norm), getattr(claim, norm)))
    return found


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize(("name", "form"), list(product(MEASURES, FORMS)))
def test_no_unit_moves_more_than_is_claimed(name: str, form: str, neighbours: Neighbours) -> None:
    """Random units, limits, grids and totals of others: never beyond a claim, and the claims are not idle."""
    found = worst(name, form, neighbours, 400)
    assert max(found.values()) <= 1, found
    assert min(found["l1"], found["l2_squared"], found["linf"]) > Fraction(1, 2), found


def split(groups: int) -> Unit:
    return [(group, 1) for group in range(groups)]


@pytest.mark.parametrize(
    "limits", [{"max_rows": 3}, {"max_groups": 3, "max_rows_per_group": 1}], ids=["rows", "groups"]
)
def test_rounding_many_groups_before_the_noise_would_break_the_claim(limits: dict[str, int]) -> None:
    """Negative control: sixty groups just below a half, and a unit that adds a twentieth to each of them.

    Rounded, each moves by one, sixty in all where three are claimed. So these totals stay fine.
    """
    plan = a_plan(Measure(counts=Counts.ROWS), 10, 60, **limits)
    (measure,) = plan.measures
    assert unit_bits(plan, measure) == 10
    others = Counter(dict.fromkeys(range(60), 2**9 - 1))
    before, after = others, others + partials(split(60), plan)
    rounded = norms([settle(after[k], 10) - settle(before[k], 10) for k in range(60)])
    assert rounded.l1 == 60 > 20 * sensitivity(plan, measure, Neighbours.ADD_REMOVE).l1 / 2**10 - 1
    fine = norms([after[k] - before[k] for k in range(60)])
    assert fine.l1 <= sensitivity(plan, measure, Neighbours.ADD_REMOVE).l1 == 3 * 2**10


def test_totals_are_whole_where_rounding_is_free() -> None:
    """One group; as many groups as a unit may be in; whatever is chosen by lot; rows as units."""
    count, units = Measure(counts=Counts.ROWS), Measure(counts=Counts.UNITS)
    assert unit_bits(a_plan(count, 10, 1, max_rows=3), count) == 0
    assert unit_bits(a_plan(count, 10, 3, max_rows=3), count) == 10
    assert unit_bits(a_plan(units, 10, 3, max_rows=3), units) == 0
    assert unit_bits(a_plan(units, 10, 4, max_rows=3), units) == 10
    assert unit_bits(a_plan(count, 10, 3, max_rows_per_group=2), count) == 0
    assert unit_bits(a_plan(count, 10, 3, max_rows_per_group=2, max_groups=2), count) == 10
    for counts in (Counts.NAMED, Counts.WEIGHT, Counts.DISTINCT):
        assert unit_bits(a_plan(count, 10, None, max_rows=3), Measure(counts=counts, argument=VALUE)) == 0
    alone = replace(a_plan(count, 0, None, max_rows=3), unit=None, max_rows=None)
    assert unit_bits(alone, count) == 0


def bundles(unit: Unit, plan: BoundedPlan) -> tuple[int, int]:
    """The most that a unit has in one bundle of a spread, and how many bundles its groups make, first come first."""
    whole, rows = 2**plan.weight_bits, Counter(group for group, _ in unit)
    if plan.max_rows is not None:
        return sum(rows.values()) * min(whole, plan.max_rows * whole // len(unit)), 1
    limit, groups = plan.max_rows_per_group or 1, plan.max_groups or len(rows)
    parts = -(-len(rows) // groups)
    sizes = [n * (min(whole, limit * whole // n) * (whole // parts) // whole) for n in rows.values()]
    packed = [sum(sizes[i : i + parts]) for i in range(0, len(sizes), parts)]
    return max(packed), len(packed)


@pytest.mark.parametrize("form", FORMS)
def test_spreads_fit_their_bundles(form: str) -> None:
    """A unit in any number of groups: no bundle holds more than is claimed, and there are no more of them."""
    rng, largest = random.Random(form), Fraction(0)
    for _ in range(1000):
        groups = rng.choice((1, 2, 3, 6, 12))
        plan = a_plan(Measure(counts=Counts.ROWS), rng.choice((0, 2, 10)), groups, **FORMS[form])
        claim, (size, count) = reach(plan, Neighbours.ADD_REMOVE), bundles(a_unit(rng, groups, (1, 1)), plan)
        assert size <= claim.rows and count <= claim.groups
        largest = max(largest, Fraction(size, claim.rows))
    assert largest > Fraction(1, 2)


def test_weights_are_as_fine_as_sums_allow() -> None:
    """24 bits for counts; fewer for wide sums, never below 16; none where a row is the unit."""
    wide = Column("t", "x", Type.INTEGER)

    def bits(last: int) -> int:
        measure = Measure(counts=Counts.STEPS, argument=wide, last=last)
        return choose_weight_bits(a_plan(measure, 0, None, max_rows=16))

    assert choose_weight_bits(a_plan(Measure(counts=Counts.ROWS), 0, None, max_rows=20)) == MOST_BITS
    assert [bits(1 << power) for power in (20, 30, 31, 40, 60)] == [24, 20, 19, LEAST_BITS, LEAST_BITS]
    alone = replace(a_plan(Measure(counts=Counts.ROWS), 0, None, max_rows=1), unit=None, max_rows=None)
    assert choose_weight_bits(alone) == 0


@pytest.mark.parametrize(
    "limits", [{}, {"max_groups": 2}, {"max_rows": 2, "max_groups": 1}, {"max_rows": 2, "max_rows_per_group": 1}]
)
def test_limits_are_of_one_form(limits: dict[str, int]) -> None:
    with pytest.raises(InternalError):
        a_plan(Measure(counts=Counts.ROWS), 0, None, **limits)
