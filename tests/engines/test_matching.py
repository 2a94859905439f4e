"""Greedy matching of units and items: as from its definition, within the claims, and what would break them."""

# ruff: noqa: S311  # worlds need seeds, not secrets
from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pytest

from discreet.bounding.contributions import BoundedPlan, Counts, Measure, Sensitivity, sensitivity
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
        matching = Matching(most, GROUPS)
        for start in range(0, len(pairs), batch):
            part = np.array(pairs[start : start + batch], dtype=np.int64).reshape(-1, 2)
            matching.add(part[:, 0], part[:, 1], part[:, 1] % GROUPS)
        wanted = Counter(item % GROUPS for item in take(pairs, most))
        assert matching.counts == [wanted[group] for group in range(GROUPS)]


def test_nothing_is_matched_of_nothing() -> None:
    matching, none = Matching(1, 2), np.empty(0, dtype=np.int64)
    matching.add(none, none, none)
    assert matching.counts == [0, 0]
