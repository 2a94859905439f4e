"""One unit moves the integers by no more than contributions.py claims: every neighbour of random small databases."""

# ruff: noqa: S311  # times have no zone here, and worlds need seeds, not secrets
from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from discreet.bounding.contributions import Sensitivity, sensitivity
from discreet.plan.expressions import Column
from discreet.privacy import Neighbours
from tests.engines.answers import Sums, as_dict
from tests.engines.conformance.engines import MEMORY, EngineUnderTest
from tests.engines.worlds import NAME, UNIT, Rows, World, a_row, a_world, catalog, frame


def answer(rows: Rows, world: World, engine: EngineUnderTest) -> Sums:
    table = frame(rows) if engine.slow else rows  # the oracle needs no types
    return as_dict(engine.run({"t": table}, catalog(world.bounded.unit), world.bounded))


def moved(before: Sums, after: Sums, measure: int) -> Sensitivity:
    """How far one measure's vector moved, in every norm."""
    zero = (0,) * (measure + 1)
    changes = [after.get(k, zero)[measure] - before.get(k, zero)[measure] for k in before.keys() | after.keys()]
    sizes = [abs(change) for change in changes if change]
    return Sensitivity(len(sizes), sum(sizes), sum(s * s for s in sizes), max(sizes, default=0))


def exceeds(found: Sensitivity, claim: Sensitivity) -> bool:
    return any(getattr(found, n) > getattr(claim, n) for n in ("l0", "l1", "l2_squared", "linf"))


def neighbours(world: World, rng: random.Random) -> list[tuple[Neighbours, Rows, Rows]]:
    """Pairs of tables that differ in one unit: with and without it, and with one unit's rows replaced by others."""
    rows, unit = world.rows, world.bounded.unit
    pairs = []
    if unit is None:
        for i in range(0, len(rows), 5):
            rest = rows[:i] + rows[i + 1 :]
            pairs.append((Neighbours.ADD_REMOVE, rows, rest))
            pairs.append((Neighbours.REPLACE, rows, [*rest, a_row(rng, 3)]))
        return pairs
    for who in {row["unit"] for row in rows if row["unit"] is not None}:
        rest = [row for row in rows if row["unit"] != who]
        pairs.append((Neighbours.ADD_REMOVE, rows, rest))
        other = rng.choice((who, 12345))
        assert isinstance(other, int)
        changed = [*rest, *(a_row(rng, other) for _ in range(rng.randrange(12)))]
        rng.shuffle(changed)
        pairs.append((Neighbours.REPLACE, rows, changed))
    return pairs


def check(world: World, engine: EngineUnderTest, rng: random.Random, shrink: Any = lambda claim: claim) -> int:
    """The number of claims that were broken."""
    broken = 0
    known: dict[int, Sums] = {}
    for relation, before, after in neighbours(world, rng):
        if id(before) not in known:
            known[id(before)] = answer(before, world, engine)
        changed = answer(after, world, engine)
        for i, measure in enumerate(world.bounded.measures):
            claim = shrink(sensitivity(world.bounded, measure, relation))
            broken += exceeds(moved(known[id(before)], changed, i), claim)
    return broken


UNITS = pytest.mark.parametrize(("unit", "seeds"), [(None, 1), (UNIT, 2), (NAME, 1)], ids=["row", "integer", "text"])


@UNITS
def test_every_claim_is_kept(unit: Column | None, seeds: int, engine: EngineUnderTest) -> None:
    """Random worlds, every unit of each removed and replaced: no claim is broken. Hundreds where engines are quick."""
    units, many = (3, seeds) if engine.slow else (5, 250)
    for seed in range(300, 300 + many):
        world = a_world(seed, unit=unit, units=units)
        if _claimable(world):
            assert check(world, engine, random.Random(seed)) == 0, seed


@pytest.mark.long
def test_every_claim_is_kept_in_many_worlds(engine: EngineUnderTest) -> None:
    for seed in range(400, 480):
        world = a_world(seed, unit=(UNIT, NAME, None)[seed % 3])
        if _claimable(world):
            assert check(world, engine, random.Random(seed)) == 0, seed


def _claimable(world: World) -> bool:
    """Whether the claims are finite: a question without keys, with public keys, or with a cap on groups or rows."""
    bounded = world.bounded
    return bounded.unit is None or not bounded.keys or None not in (bounded.max_groups or bounded.max_rows,)


def halved(name: str) -> Any:
    return lambda claim: replace(claim, **{name: getattr(claim, name) // 2})


@pytest.mark.parametrize("name", ["l0", "l1", "l2_squared", "linf"])
def test_a_halved_claim_is_caught(name: str) -> None:
    """Negative control: the worlds are rich enough to break a claim that is half of what it should be."""
    worlds = [a_world(seed, unit=UNIT, most=20) for seed in range(60)]
    broken = sum(check(w, MEMORY, random.Random(0), halved(name)) for w in worlds if _claimable(w))
    assert broken > 0


def test_a_missing_cap_is_caught(engine: EngineUnderTest) -> None:
    """Negative control: an engine that forgets the cap on groups breaks the claims."""
    worlds = (a_world(seed, unit=UNIT, most=20) for seed in range(100))
    world = next(w for w in worlds if w.bounded.max_groups == 1 and len(w.bounded.keys) == 1 and not w.bounded.domain)
    forgetful = replace(world, bounded=replace(world.bounded, max_groups=10_000))
    full = answer(world.rows, forgetful, engine)
    broken = 0
    for who in {row["unit"] for row in world.rows if row["unit"] is not None}:
        less = answer([row for row in world.rows if row["unit"] != who], forgetful, engine)
        broken += any(
            exceeds(moved(full, less, i), sensitivity(world.bounded, m, Neighbours.ADD_REMOVE))
            for i, m in enumerate(world.bounded.measures)
        )
    assert broken > 0
