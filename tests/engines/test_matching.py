"""Greedy matching of units and items: as from its definition, within the claims, and what would break them."""

# ruff: noqa: S311  # worlds need seeds, not secrets
from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from discreet.bounding.contributions import BoundedPlan, Counts, Measure, Sensitivity, sensitivity
from discreet.bounding.joint_measures import find_families, joint_sensitivity, list_forms
from discreet.engines.matching import Matching
from discreet.plan.expressions import Column
from discreet.plan.relations import Scan
from discreet.plan.types import Type
from discreet.privacy import Neighbours

UNIT, VALUE, KEY = (Column("t", name, Type.INTEGER) for name in ("u", "x", "k"))

Pair = tuple[int, int]  # a unit and an item; items 0, 4, 8 … are in group 0, 1, 5, 9 … in group 1, and so on
World = frozenset[Pair]
Rule = Callable[[World, int, int], frozenset[int]]

GROUPS = 4


def place(pair: Pair, salt: int) -> bytes:
    return hashlib.blake2b(repr((salt, pair)).encode(), digest_size=8).digest()


def take(pairs: Iterable[Pair], most: int) -> frozenset[int]:
    """The definition: pair after pair."""
    taken: set[int] = set()
    brought: Counter[int] = Counter()
    for unit, item in pairs:
        if item not in taken and brought[unit] < most:
            taken.add(item)
            brought[unit] += 1
    return frozenset(taken)


def by_hash(world: World, most: int, salt: int) -> frozenset[int]:
    return take(sorted(world, key=lambda pair: place(pair, salt)), most)


def by_frequency(world: World, most: int, salt: int) -> frozenset[int]:
    """Rare items first, which would match more of them: an order that depends on the data."""
    held = Counter(item for _, item in world)
    return take(sorted(world, key=lambda pair: (held[pair[1]], place(pair, salt))), most)


def by_position(world: World, most: int, salt: int) -> frozenset[int]:
    """By the number of a unit among those that are there, which is another one when a unit before it goes."""
    numbers = {unit: i for i, unit in enumerate(sorted({unit for unit, _ in world}))}
    return take(sorted(world, key=lambda pair: place((numbers[pair[0]], pair[1]), salt)), most)


def by_lot(world: World, most: int, salt: int) -> frozenset[int]:
    """Every unit chooses its items alone, and the union counts. It keeps the claim, but finds less."""
    found: set[int] = set()
    for unit in {unit for unit, _ in world}:
        own = sorted((pair for pair in world if pair[0] == unit), key=lambda pair: place(pair, salt))
        found.update(item for _, item in own[:most])
    return frozenset(found)


def a_world(rng: random.Random, *, units: int = 6, items: int = 9) -> World:
    dense = rng.choice((0.15, 0.3, 0.6, 0.9))
    return frozenset((u, i) for u in range(units) for i in range(items) if rng.random() < dense)


def neighbours_of(world: World, rng: random.Random) -> Iterator[tuple[Neighbours, World]]:
    """Every unit removed, and replaced by itself or a stranger with other items."""
    for unit in sorted({unit for unit, _ in world}):
        rest = frozenset(pair for pair in world if pair[0] != unit)
        yield Neighbours.ADD_REMOVE, rest
        for other in (unit, 99):
            yield Neighbours.REPLACE, rest | {(other, i) for i in range(9) if rng.random() < 0.5}


def a_plan(most: int) -> tuple[BoundedPlan, Measure]:
    measure = Measure(counts=Counts.DISTINCT, argument=VALUE, max_values=most)
    domain = tuple((group,) for group in range(GROUPS))
    return BoundedPlan(
        source=Scan("t"), keys=(KEY,), domain=domain, unit=UNIT, measures=(measure,), max_rows=7
    ), measure


def exceeds(before: frozenset[int], after: frozenset[int], claim: Sensitivity) -> bool:
    old, new = (Counter(item % GROUPS for item in taken) for taken in (before, after))
    sizes = [abs(new[group] - old[group]) for group in range(GROUPS) if new[group] != old[group]]
    found = (len(sizes), sum(sizes), sum(size * size for size in sizes), max(sizes, default=0))
    return any(size > most for size, most in zip(found, (claim.l0, claim.l1, claim.l2_squared, claim.linf)))


def count_violations(rule: Rule, *, worlds: int, least: int = 1, granted: int | None = None, seed: int = 0) -> int:
    """How many neighbours move further than is claimed for ``max_values``, or for a smaller number if so granted."""
    violations = 0
    for number in range(worlds):
        rng = random.Random(f"{seed} {number}")
        world, most = a_world(rng), rng.randrange(least, 4)
        plan, measure = a_plan(granted or most)
        before = rule(world, most, number)
        for relation, other in neighbours_of(world, rng):
            after = rule(other, most, number)
            violations += exceeds(before, after, sensitivity(plan, measure, relation))
    return violations


@pytest.mark.parametrize("seed", range(2))
def test_every_neighbour_is_within_the_claims(seed: int) -> None:
    assert count_violations(by_hash, worlds=300, seed=seed) == 0


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 120))
def test_every_neighbour_of_many_worlds_is_within_the_claims(seed: int) -> None:
    assert count_violations(by_hash, worlds=1000, seed=seed) == 0


def test_a_unit_only_adds_and_at_most_so_many() -> None:
    """The heart of the proof: what is taken without a unit is taken with it, too."""
    for number in range(600):
        rng = random.Random(number)
        world, most = a_world(rng), rng.randrange(1, 4)
        taken = by_hash(world, most, number)
        for unit in {unit for unit, _ in world}:
            rest = frozenset(pair for pair in world if pair[0] != unit)
            fewer = by_hash(rest, most, number)
            assert fewer <= taken and len(taken - fewer) <= most


@pytest.mark.parametrize("rule", [by_frequency, by_position], ids=["frequency", "position"])
def test_an_order_that_depends_on_the_data_breaks_the_claims(rule: Rule) -> None:
    """Negative control: rare items first, or units by their position."""
    assert count_violations(rule, worlds=100) > 0


def test_one_value_more_breaks_the_claims() -> None:
    """Negative control: units that take two where one is claimed, and three where two are."""
    assert count_violations(by_hash, worlds=60, least=2, granted=1) > 0
    assert count_violations(by_hash, worlds=60, least=3, granted=2) > 0


def test_claims_are_reached() -> None:
    """Somebody alone with all values, who leaves, or is replaced by somebody in another group: no claim is slack."""
    for most in (1, 2):
        plan, measure = a_plan(most)
        one = by_hash(frozenset((1, GROUPS * i) for i in range(5)), most, 0)
        two = by_hash(frozenset((2, GROUPS * i + 1) for i in range(5)), most, 0)
        assert (len(one), len(two)) == (most, most)
        assert sensitivity(plan, measure, Neighbours.ADD_REMOVE) == Sensitivity(most, most, most**2, most)
        assert sensitivity(plan, measure, Neighbours.REPLACE) == Sensitivity(2 * most, 2 * most, 2 * most**2, most)


def test_matching_finds_more_than_lots() -> None:
    """Where many people share values, a value that is taken leaves room for another."""
    matched = drawn = 0
    for number in range(40):
        world = a_world(random.Random(number), units=9, items=9)
        matched += len(by_hash(world, 1, number))
        drawn += len(by_lot(world, 1, number))
    assert matched > 1.2 * drawn


@pytest.mark.parametrize("batch", [1, 3, 1000])
def test_batches_give_what_the_definition_says(batch: int) -> None:
    for number in range(150):
        rng = random.Random(number)
        world, most = a_world(rng, units=9, items=12), rng.choice((1, 2, 3, 2**70))
        pairs = sorted(world, key=lambda pair: place(pair, number))
        matching, taken = Matching(most), []
        for start in range(0, len(pairs), batch):
            part = np.array(pairs[start : start + batch], dtype=np.int64).reshape(-1, 2)
            taken += part[matching.take(part[:, 0], part[:, 1]), 1].tolist()
        assert len(taken) == len(set(taken))
        assert set(taken) == take(pairs, most)


def test_nothing_is_matched_of_nothing() -> None:
    none = np.empty(0, dtype=np.int64)
    assert Matching(1).take(none, none).tolist() == []


# Sums of distinct values

# The integer of each item, between −3 and 5. Items 0 and 3, and 1 and 5, have the same one.
INTEGERS = (5, -3, 0, 5, 2, -3, 1, 4, -2)


def a_summed_plan(most: int, *, groups: int = GROUPS) -> BoundedPlan:
    """How many values there are, their sum, and the sum of their squares."""
    plan, count = a_plan(most)
    steps = replace(count, counts=Counts.DISTINCT_STEPS, first=-3, last=5)
    measures = (count, steps, replace(steps, counts=Counts.DISTINCT_SQUARES))
    domain = tuple((group,) for group in range(groups))
    return replace(plan, measures=measures, domain=domain, whole_totals=False)


def claims_of(plan: BoundedPlan, relation: Neighbours) -> list[tuple[Sequence[Sequence[tuple[int, int]]], Sensitivity]]:
    """Combinations of the three, and how far one unit may move them: each alone, and every joint form."""
    alone = [([[(i, 1)]], sensitivity(plan, measure, relation)) for i, measure in enumerate(plan.measures)]
    (family,) = find_families(plan.measures, range(3))
    forms = list_forms(plan.measures, family)
    assert {len(form.joint.parts) for form in forms} == {1, 2, 3}
    return alone + [(form.joint.parts, joint_sensitivity(plan, form.joint, relation)) for form in forms]


def count_sum_violations(*, worlds: int, part: int = 1, more: int = 0, groups: int = GROUPS) -> int:
    """How many vectors of sums move further than claimed, or than a part of it, where units take ``more`` items."""
    violations = 0
    for number in range(worlds):
        rng = random.Random(f"sums {number}")
        world, most = a_world(rng), rng.randrange(1, 4)
        plan = a_summed_plan(most, groups=groups)
        before = by_hash(world, most + more, number)
        for relation, other in neighbours_of(world, rng):
            after = by_hash(other, most + more, number)
            for parts, claim in claims_of(plan, relation):
                changes = [b - a for a, b in zip(*(add_up(parts, taken, groups) for taken in (before, after)))]
                sizes = [abs(change) for change in changes if change]
                found = (len(sizes), sum(sizes), sum(size * size for size in sizes), max(sizes, default=0))
                most_moved = (claim.l0, claim.l1 // part, claim.l2_squared // part, claim.linf // part)
                violations += any(size > granted for size, granted in zip(found, most_moved))
    return violations


def add_up(parts: Sequence[Sequence[tuple[int, int]]], taken: Iterable[int], groups: int) -> list[int]:
    """Every combination in every group, over the items that are taken."""
    totals = Counter[tuple[int, int]]()
    for item in taken:
        for position in range(3):
            totals[position, item % groups] += INTEGERS[item] ** position
    return [sum(f * totals[p, group] for p, f in part) for part in parts for group in range(groups)]


@pytest.mark.parametrize("groups", [1, GROUPS])
def test_sums_of_values_are_within_the_claims(groups: int) -> None:
    """The number of values, their sum, that of their squares, and their joint forms: every unit removed, replaced."""
    assert count_sum_violations(worlds=40, groups=groups) == 0


@pytest.mark.long
def test_sums_of_values_of_many_worlds_are_within_the_claims() -> None:
    assert sum(count_sum_violations(worlds=2000, groups=groups) for groups in (1, 2, GROUPS)) == 0


def test_half_of_the_claims_on_sums_is_broken() -> None:
    """Negative control: half of what is claimed, and units that take one value more than is claimed."""
    assert count_sum_violations(worlds=20, part=2) > 0
    assert count_sum_violations(worlds=20, more=1) > 0


def test_claims_on_sums_are_reached() -> None:
    """Somebody alone with the largest values, who leaves, or is replaced by somebody with the least."""
    plan = a_summed_plan(2)
    count, steps, squares = plan.measures
    add = [sensitivity(plan, measure, Neighbours.ADD_REMOVE) for measure in plan.measures]
    assert add == [Sensitivity(2, 2, 4, 2), Sensitivity(2, 10, 100, 10), Sensitivity(2, 50, 2500, 50)]
    assert sensitivity(plan, steps, Neighbours.REPLACE) == Sensitivity(4, 20, 16**2, 16)  # from +5 twice to −3 twice
    assert sensitivity(plan, squares, Neighbours.REPLACE) == Sensitivity(4, 100, 2 * 2500, 50)
    one = replace(plan, domain=((0,),))
    assert sensitivity(one, steps, Neighbours.REPLACE) == Sensitivity(1, 16, 16**2, 16)
    assert sensitivity(one, replace(count, max_values=7), Neighbours.REPLACE) == Sensitivity(1, 7, 49, 7)


def test_values_of_rows_that_are_units_are_bounded_by_the_row() -> None:
    plan = replace(a_summed_plan(1), unit=None, max_rows=None)
    steps = replace(plan.measures[1], max_values=None)
    assert sensitivity(plan, steps, Neighbours.ADD_REMOVE) == Sensitivity(1, 5, 25, 5)
    assert sensitivity(plan, steps, Neighbours.REPLACE).l1 == 10
