"""Distinct values, weights, bounded sums and spreads: equal to the oracle on every engine, and within the claims."""

# ruff: noqa: S311  # worlds need seeds, not secrets
from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.bounding.contributions import BoundedPlan, Counts, Measure, Reach, Sensitivity, Spread, reach, sensitivity
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.engine import Groups
from discreet.engines.memory.engine import MemoryEngine
from discreet.engines.order import EngineHash
from discreet.errors import InternalError
from discreet.plan.expressions import Column, Expression
from discreet.plan.functions import make_call
from discreet.plan.relations import Scan
from discreet.plan.types import Value
from discreet.privacy import Neighbours
from tests.engines.answers import Key, uncapped
from tests.engines.conformance.engines import MEMORY, DuckDBOrder, EngineUnderTest
from tests.engines.worlds import (
    AGE,
    CODE,
    COST,
    DAY,
    FLAG,
    NAME,
    SALT,
    UNIT,
    WARD,
    WHEN,
    Rows,
    World,
    a_measure,
    a_row,
    a_world,
    catalog,
    frame,
)  # fmt: skip

UNITS = pytest.mark.parametrize("unit", [None, UNIT, NAME], ids=["row", "integer", "text"])
ARGUMENTS = (COST, AGE, WARD, CODE, FLAG, DAY, WHEN, make_call("multiply", COST, AGE), make_call("lower", WARD))
LISTS: dict[Expression, tuple[Value, ...]] = {
    WARD: ("A", "a", "", "Z"),
    FLAG: (False, True),
    CODE: (3, 1, 77),
    DAY: (dt.date(2020, 1, 2), dt.date(2020, 1, 1)),
    WHEN: (dt.datetime(9999, 12, 31), dt.datetime(2020, 1, 1, 5)),  # noqa: DTZ001  # times have no zone here
    COST: (0.0, 2.5, -3.75),
}

Cells = tuple[tuple[int, int], ...]
Answer = dict[Key, tuple[tuple[int, ...], tuple[Cells, ...]]]


def answer(groups: Groups) -> Answer:
    """Integers and histograms by group; groups of nothing but zeros may be missing, so they are left out here."""
    found: Answer = {}
    for i, key in enumerate(groups.keys):
        histograms = [column[i] for column in groups.spreads]
        for cells, counts in histograms:
            assert cells.dtype == counts.dtype == np.int64
            assert (counts > 0).all() and (np.diff(cells) > 0).all()
        found[key] = (
            tuple(column[i] for column in groups.values),
            tuple(tuple(zip(cells.tolist(), counts.tolist())) for cells, counts in histograms),
        )
    assert len(found) == len(groups.keys)
    return {key: (values, cells) for key, (values, cells) in found.items() if any(values) or any(cells)}


DISTINCT_SUMS = (Counts.DISTINCT_STEPS, Counts.DISTINCT_SQUARES)


def a_new_measure(rng: random.Random) -> Measure:
    old = next(m for m in (a_measure(rng) for _ in range(100)) if m.counts is Counts.STEPS)
    match rng.randrange(6):
        case 0 | 1:
            most, counts = rng.choice((1, 1, 2, 5)), rng.choice((Counts.DISTINCT, *DISTINCT_SUMS))
            if counts is not Counts.DISTINCT:
                return replace(old, counts=counts, max_values=most)
            return Measure(counts=Counts.DISTINCT, argument=rng.choice(ARGUMENTS), max_values=most)
        case 2:
            return Measure(counts=Counts.WEIGHT, last=rng.choice((1, 10, 1000)))
        case 3:
            return Measure(counts=Counts.UNITS, argument=rng.choice(ARGUMENTS))
        case 4:
            low = rng.randrange(-20, 10)
            wide = replace(old, first=-(2**50), last=2**50) if rng.random() < 0.5 else old
            return replace(wide, partial=(low, low + rng.randrange(40)))
        case _:
            low = rng.randrange(-2, 4)
            counted = rng.choice((Measure(counts=Counts.ROWS), Measure(counts=Counts.VALUES, argument=AGE)))
            return replace(counted, partial=(low, low + rng.randrange(4)))


def a_spread(rng: random.Random) -> Spread:
    if rng.random() < 0.4:
        argument = rng.choice(list(LISTS))
        return Spread(argument=argument, first=0, last=len(LISTS[argument]) - 1, values=LISTS[argument])
    argument = rng.choice((COST, AGE, make_call("multiply", COST, AGE)))
    first = rng.randrange(-40, 5)
    return Spread(
        argument=argument,
        origin=Fraction(rng.choice((0, 0, 3, -7))),
        resolution=Fraction(rng.choice((1, 2, Fraction(1, 4)))),
        first=first,
        last=first + rng.choice((0, 3, 60)),
    )


def a_broad_world(seed: int, *, unit: Column | None, units: int = 5, most: int = 12) -> World:
    """A world whose question asks for what is new, perhaps besides what is old, perhaps for spreads alone."""
    world = a_world(seed, unit=unit, units=units, most=most)
    rng = random.Random(f"measures {seed}")
    kind = rng.randrange(4)
    old = world.bounded.measures if kind == 0 else ()
    new = tuple(a_new_measure(rng) for _ in range(rng.randrange(1, 4))) if kind != 3 else ()
    asked = tuple(dict.fromkeys(a_spread(rng) for _ in range(rng.randrange(1, 4)))) if kind != 2 else ()
    measures = tuple(dict.fromkeys((*old, *new)))
    if group_free(world.bounded):
        measures = tuple(m for m in measures if m.counts is not Counts.WEIGHT) or (Measure(counts=Counts.ROWS),)
    return replace(world, bounded=replace(world.bounded, measures=measures, spreads=asked))


def group_free(bounded: BoundedPlan) -> bool:
    """Whether a unit may be in any number of groups."""
    return bounded.unit is not None and bounded.keys != () and bounded.max_groups is None and bounded.max_rows is None


def in_memory(rows: Rows, bounded: BoundedPlan) -> Answer:
    return answer(MEMORY.run({"t": rows}, catalog(bounded.unit), bounded))


def run(engine: EngineUnderTest, rows: Rows, bounded: BoundedPlan) -> Answer:
    return answer(engine.run({"t": frame(rows)}, catalog(bounded.unit), bounded))


def agree(engine: EngineUnderTest, rows: Rows, bounded: BoundedPlan) -> None:
    tables, declared = {"t": frame(rows)}, catalog(bounded.unit)
    assert run(engine, rows, bounded) == answer(engine.run_oracle(tables, declared, bounded))


@UNITS
@pytest.mark.parametrize("seed", range(4))
def test_agreement_where_no_limit_binds(seed: int, unit: Column | None, other: EngineUnderTest) -> None:
    """Random tables and questions with the new measures: the oracle's integers and histograms."""
    world = a_broad_world(seed, unit=unit)
    agree(other, world.rows, uncapped(world.bounded))


@pytest.mark.parametrize(("unit", "seeds"), [(UNIT, 6), (NAME, 2)], ids=["integer", "text"])
def test_agreement_where_limits_bind(unit: Column, seeds: int, other: EngineUnderTest) -> None:
    """With the same secret order in the oracle, the chosen groups, values and ranks are equal, too."""
    for seed in range(200, 200 + seeds):
        world = a_broad_world(seed, unit=unit, most=20)
        agree(other, world.rows, world.bounded)


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_agreement_in_many_worlds(part: int, other: EngineUnderTest) -> None:
    for seed in range(1000 + 20 * part, 1020 + 20 * part):
        free = a_broad_world(seed, unit=(None, UNIT, NAME)[seed % 3])
        agree(other, free.rows, uncapped(free.bounded))
        world = a_broad_world(seed, unit=(UNIT, NAME)[seed % 2], most=20)
        agree(other, world.rows, world.bounded)


def test_worlds_are_worth_testing() -> None:
    """Limits bind in most worlds, every new measure is asked for, and answers are rarely empty."""
    worlds = [a_broad_world(seed, unit=UNIT, most=20) for seed in range(200, 230)]
    answers = [in_memory(world.rows, world.bounded) for world in worlds]
    free = [in_memory(world.rows, uncapped(world.bounded)) for world in worlds]
    assert sum(bool(found) for found in answers) > 20
    assert sum(a != b for a, b in zip(answers, free)) > 15
    asked = [measure for world in worlds for measure in world.bounded.measures]
    assert {Counts.DISTINCT, *DISTINCT_SUMS, Counts.WEIGHT, Counts.UNITS} <= {measure.counts for measure in asked}
    assert any(measure.partial for measure in asked)
    assert any(not world.bounded.measures for world in worlds)


# What an answer may not depend on


@pytest.mark.parametrize("seed", [203, 209])
def test_the_order_of_rows_does_not_matter_to_values(seed: int, engine: EngineUnderTest) -> None:
    world = a_broad_world(seed, unit=UNIT, units=8, most=20)
    values = Measure(counts=Counts.DISTINCT, argument=COST, max_values=2)
    bounded = replace(world.bounded, measures=(*world.bounded.measures, values))
    rows = list(world.rows)
    wanted = run(engine, rows, bounded)
    random.Random(seed).shuffle(rows)
    assert run(engine, rows, bounded) == wanted


@UNITS
def test_sums_of_distinct_values_agree(unit: Column | None, other: EngineUnderTest) -> None:
    """The number of values, their sum and their squares are about the same items, in groups and in all.

    Values that fall into one step count once each; the integers may be wide, and missing values are in no item.
    """
    rng, template = random.Random(5), dict.fromkeys(frame([]).column_names)
    wards, ages, costs = ("A", "B", None), (3, 8, 9, None), (0.25, 0.26, 2.5, -7.0, 1e6, None)
    rows: Rows = [
        {**template, "unit": u, NAME.name: f"p{u}", "Ward": rng.choice(wards), "age": rng.choice(ages), "cost": cost}
        for u in range(9)
        for cost in rng.choices(costs, k=6)
    ]
    measures: list[Measure] = []
    for most, argument, last in ((1, COST, 9), (2, COST, 9), (2, AGE, 2**38)):
        limit = most if unit is not None else None
        steps = Measure(counts=Counts.DISTINCT_STEPS, argument=argument, first=-(2**30), last=last, max_values=limit)
        measures += [Measure(counts=Counts.DISTINCT, argument=argument, max_values=limit), steps]
        measures += [replace(steps, counts=Counts.DISTINCT_SQUARES, first=-9)]
        measures += [replace(steps, resolution=Fraction(1, 2**20))]
    limits: dict[str, Any] = {"max_rows": 4} if unit is not None else {}
    for keys, domain in (((), None), ((WARD,), None), ((WARD,), (("A",), (None,), ("Z",)))):
        bounded = BoundedPlan(
            source=Scan("t"), keys=keys, domain=domain, unit=unit, measures=tuple(dict.fromkeys(measures)), **limits
        )
        agree(other, rows, bounded)


def test_another_salt_takes_other_values(engine: EngineUnderTest) -> None:
    """Each unit brings one of two values, if its neighbours leave one to it, which depends on the secret."""
    template = a_row(random.Random(0), 0)
    rows: Rows = [{**template, "unit": u, "code": c} for u in range(12) for c in (u, u + 1)]
    bounded = BoundedPlan(source=Scan("t"), keys=(), domain=None, unit=UNIT, max_rows_per_group=1,
                      measures=(Measure(counts=Counts.DISTINCT, argument=CODE, max_values=1),))  # fmt: skip
    with engine.open({"t": frame(rows)}, catalog(UNIT)) as opened:
        counts = [opened.run(bounded, salt=bytes([i] * 16)).values[0][0] for i in range(8)]
    assert len(set(counts)) > 1
    assert all(6 <= count <= 12 for count in counts)


def test_ties_in_the_secret_order_go_by_value() -> None:
    """With a hash of one bit most pairs are ties, and the integers are still those of the oracle."""
    rng, template = random.Random(77), dict.fromkeys(frame([]).column_names)
    measure = Measure(counts=Counts.DISTINCT, argument=CODE, max_values=1)
    for unit in (UNIT, NAME):
        rows: Rows = [
            {**template, "unit": u, NAME.name: f"p{u}", "flag": rng.random() < 0.5, "code": rng.randrange(40)}
            for u in range(60)
            for _ in range(2)
        ]
        bounded = BoundedPlan(source=Scan("t"), keys=(FLAG,), domain=None, unit=unit, measures=(measure,), max_rows=3)
        tables, declared = {"t": frame(rows)}, catalog(unit)
        engine = DuckDBEngine(tables, declared, order=EngineHash(bits=1))
        oracle = MemoryEngine(tables, declared, order=DuckDBOrder(bits=1))
        for salt in (SALT, bytes(range(16)), bytes(16)):
            assert answer(engine.run(bounded, salt=salt)) == answer(oracle.run(bounded, salt=salt))
        engine.close()


# Claims


def norms(changes: list[int]) -> Sensitivity:
    sizes = [abs(change) for change in changes if change]
    return Sensitivity(len(sizes), sum(sizes), sum(size * size for size in sizes), max(sizes, default=0))


def moved(before: Answer, after: Answer, position: int) -> Sensitivity:
    """How far one measure's vector moved, in every norm."""
    keys = before.keys() | after.keys()
    old, new = ({k: v[0][position] for k, v in found.items()} for found in (before, after))
    return norms([new.get(key, 0) - old.get(key, 0) for key in keys])


def stirred(before: Answer, after: Answer, position: int) -> list[tuple[int, int]]:
    """For each group whose histogram changed, how many rows left and how many came."""
    found = []
    for key in before.keys() | after.keys():
        old, new = (dict(answers[key][1][position]) if key in answers else {} for answers in (before, after))
        changes = [new.get(cell, 0) - old.get(cell, 0) for cell in old.keys() | new.keys()]
        if any(changes):
            found.append((-sum(c for c in changes if c < 0), sum(c for c in changes if c > 0)))
    return found


def beyond(changes: list[tuple[int, int]], claim: Reach) -> bool:
    """Whether a change of histograms is more than a reach covers: of the old unit's rows, or of the new one's."""
    return any(count_bundles(side, claim.rows) > claim.groups for side in zip(*changes))


def count_bundles(sizes: Sequence[int], room: int) -> int | float:
    """How many bundles hold these changes, each the largest first into the first with room."""
    bundles: list[int] = []
    for size in sorted(sizes, reverse=True):
        if size > room:
            return float("inf")
        place = next((i for i, used in enumerate(bundles) if used + size <= room), None)
        if place is None:
            bundles.append(size)
        else:
            bundles[place] += size
    return sum(used > 0 for used in bundles)


def exceeds(found: Sensitivity, claim: Sensitivity) -> bool:
    return any(getattr(found, name) > getattr(claim, name) for name in ("l0", "l1", "l2_squared", "linf"))


def broken_claims(world: World, before: Answer, after: Answer, relation: Neighbours, *, part: int = 1) -> int:
    """How many claims a pair of neighbours breaks, where only a part of each claim is granted."""
    bounded, broken = world.bounded, 0
    for i, measure in enumerate(bounded.measures):
        claim = sensitivity(bounded, measure, relation)
        cut = Sensitivity(*(getattr(claim, name) // part for name in ("l0", "l1", "l2_squared", "linf")))
        broken += exceeds(moved(before, after, i), cut)
    claimed = reach(bounded, relation)
    for i in range(len(bounded.spreads)):
        broken += beyond(stirred(before, after, i), replace(claimed, rows=claimed.rows // part))
    return broken


def neighbours(world: World, rng: random.Random) -> Iterator[tuple[Neighbours, Rows]]:
    """Tables that differ from a world's in one unit."""
    rows, unit = world.rows, world.bounded.unit
    if unit is None:
        for i in range(0, len(rows), 12):
            yield Neighbours.ADD_REMOVE, rows[:i] + rows[i + 1 :]
            yield Neighbours.REPLACE, [*rows[:i], *rows[i + 1 :], a_row(rng, 3)]
        return
    for who in sorted({row["unit"] for row in rows if isinstance(row["unit"], int)}):
        rest = [row for row in rows if row["unit"] != who]
        yield Neighbours.ADD_REMOVE, rest
        other = rng.choice((who, 12345))
        changed = [*rest, *(a_row(rng, other) for _ in range(rng.randrange(25)))]
        rng.shuffle(changed)
        yield Neighbours.REPLACE, changed


def claimable(world: World) -> bool:
    return not group_free(world.bounded)


def keeps_every_claim(engine: EngineUnderTest, world: World, seed: int) -> None:
    before = run(engine, world.rows, world.bounded)
    for relation, rows in neighbours(world, random.Random(seed)):
        assert broken_claims(world, before, run(engine, rows, world.bounded), relation) == 0, (seed, relation)


@pytest.mark.parametrize(("unit", "seeds"), [(None, 1), (UNIT, 2), (NAME, 1)], ids=["row", "integer", "text"])
def test_every_claim_is_kept(unit: Column | None, seeds: int, engine: EngineUnderTest) -> None:
    """Every unit of a few random worlds removed and replaced: no measure and no histogram moves beyond its claim."""
    for seed in range(500, 500 + seeds):
        world = a_broad_world(seed, unit=unit, units=2, most=20)
        if claimable(world):
            keeps_every_claim(engine, world, seed)


@pytest.mark.long
def test_every_claim_is_kept_in_many_worlds(engine: EngineUnderTest) -> None:
    for seed in range(600, 630):
        world = a_broad_world(seed, unit=(UNIT, NAME, UNIT, None)[seed % 4], units=4, most=20)
        if claimable(world):
            keeps_every_claim(engine, world, seed)


def a_tight_world(**limits: Any) -> World:
    """One unit that has as much as it may of everything, beside others that have nothing of it."""
    template = dict.fromkeys(frame([]).column_names)
    own: Rows = [{**template, "unit": 7, "code": c, "age": 10 * c + i, "cost": 5.0} for c in range(8) for i in range(6)]
    others: Rows = [{**template, "unit": 1, "code": c} for c in range(8)]
    measures = (
        Measure(counts=Counts.DISTINCT, argument=AGE, max_values=8),
        Measure(counts=Counts.UNITS, argument=AGE),
        Measure(counts=Counts.STEPS, argument=COST, first=-(2**50), last=2**50, partial=(-3, 20)),
        Measure(counts=Counts.WEIGHT, last=100),
        Measure(counts=Counts.NAMED),
        Measure(counts=Counts.ROWS),
        Measure(counts=Counts.STEPS, argument=COST, first=0, last=5),
    )
    asked = (Spread(argument=AGE, last=100), Spread(argument=COST, last=5, values=(5.0, 6.0)))
    bounded = BoundedPlan(source=Scan("t"), keys=(CODE,), domain=None, unit=UNIT, measures=measures, spreads=asked,
                      weight_bits=12, **limits)  # fmt: skip
    return World([*others, *own], bounded)


@pytest.mark.parametrize("limits", [{"max_groups": 4, "max_rows_per_group": 2}, {"max_rows": 12}], ids=str)
def test_halved_claims_are_caught(limits: dict[str, int], engine: EngineUnderTest) -> None:
    """Negative control: the unit reaches every claim, so half of any would be too little."""
    world = a_tight_world(**limits)
    rest = [row for row in world.rows if row["unit"] != 7]
    before, after = run(engine, world.rows, world.bounded), run(engine, rest, world.bounded)
    assert broken_claims(world, before, after, Neighbours.ADD_REMOVE) == 0
    broken = broken_claims(world, before, after, Neighbours.ADD_REMOVE, part=2)
    assert broken == len(world.bounded.measures) + len(world.bounded.spreads)


# Edges


def test_groups_without_values_have_empty_histograms(engine: EngineUnderTest) -> None:
    """A group that was observed stands in the answer, with nothing counted; public groups that do not occur may not."""
    template = dict.fromkeys(frame([]).column_names)
    own = ((1, "A", 5), (2, "B", None), (3, "B", None), (4, "C", 1))
    rows: Rows = [{**template, "unit": who, "Ward": ward, "age": age} for who, ward, age in own]
    cases: list[tuple[Column | None, dict[str, Any]]] = [
        (None, {}),
        (UNIT, {"max_rows": 3}),
        (UNIT, {"max_groups": 1, "max_rows_per_group": 1}),
    ]
    for unit, limits in cases:
        for domain in (None, (("A",), ("B",), ("Z",))):
            bounded = BoundedPlan(source=Scan("t"), keys=(WARD,), domain=domain, unit=unit, measures=(),
                              spreads=(Spread(argument=AGE, last=9),), **limits)  # fmt: skip
            groups = engine.run({"t": frame(rows)}, catalog(unit), bounded)
            found = {key: (c.tolist(), n.tolist()) for key, (c, n) in zip(groups.keys, groups.spreads[0])}
            assert found[("A",)] == ([5], [1])
            assert found[("B",)] == ([], [])
            assert (("C",) in found) is (domain is None)
            assert groups.values == ()


@pytest.mark.parametrize("unit", [None, UNIT], ids=["row", "integer"])
def test_without_keys_and_rows_there_is_one_empty_group(unit: Column | None, engine: EngineUnderTest) -> None:
    limits: dict[str, Any] = {"max_rows": 2} if unit is not None else {}
    bounded = BoundedPlan(source=Scan("t"), keys=(), domain=None, unit=unit, spreads=(Spread(argument=AGE, last=9),),
                      measures=(Measure(counts=Counts.DISTINCT, argument=WARD, max_values=2),), **limits)  # fmt: skip
    for asked in (bounded, replace(bounded, measures=())):
        groups = engine.run({"t": frame([])}, catalog(unit), asked)
        assert groups.keys == ((),)
        assert groups.values == ((0,),) * len(asked.measures)
        assert [part.tolist() for part in groups.spreads[0][0]] == [[], []]


def test_listed_values_count_at_their_first_place(engine: EngineUnderTest) -> None:
    """Many listed values, one of them twice: each counts where it stands first, and others count nowhere."""
    values = (*(f"w{i}" for i in range(3000)), "A", "B", "A")
    template = dict.fromkeys(frame([]).column_names)
    rows: Rows = [{**template, "unit": i, "Ward": ward} for i, ward in enumerate(("A", "A", "w2999", "no", None))]
    spread = Spread(argument=WARD, last=len(values) - 1, values=values)
    bounded = BoundedPlan(source=Scan("t"), keys=(), domain=None, unit=None, measures=(), spreads=(spread,))
    cells, counts = engine.run({"t": frame(rows)}, catalog(None), bounded).spreads[0][0]
    assert (cells.tolist(), counts.tolist()) == ([2999, 3000], [1, 2])


BAD: dict[str, dict[str, Any]] = {
    "a partial square": {"measures": (Measure(counts=Counts.SQUARES, argument=AGE, partial=(0, 1)),)},
    "partial bounds the wrong way": {"measures": (Measure(counts=Counts.ROWS, partial=(2, 1)),)},
    "partial bounds too wide": {"measures": (Measure(counts=Counts.ROWS, partial=(0, 2**62)),)},
    "distinct values of nothing": {"measures": (Measure(counts=Counts.DISTINCT, max_values=1),)},
    "distinct values without a limit": {"measures": (Measure(counts=Counts.DISTINCT, argument=WARD),)},
    "distinct values that may not be": {"measures": (Measure(counts=Counts.DISTINCT, argument=WARD, max_values=0),)},
    "sums of values without a limit": {"measures": (Measure(counts=Counts.DISTINCT_STEPS, argument=AGE),)},
    "weights too wide": {"measures": (Measure(counts=Counts.WEIGHT, last=2**40),)},
    "weights without a cap": {"measures": (Measure(counts=Counts.WEIGHT, last=10),)},
    "no cells": {"spreads": (Spread(argument=AGE, first=1, last=0),)},
    "too many cells": {"spreads": (Spread(argument=AGE, last=2**62),)},
    "steps of texts": {"spreads": (Spread(argument=WARD),)},
    "a grid beyond doubles": {"spreads": (Spread(argument=COST, resolution=Fraction(1, 10**400)),)},
}


@pytest.mark.parametrize("name", BAD)
def test_what_could_overflow_is_refused(name: str, dialect_engine: EngineUnderTest) -> None:
    """Plans that the planner never makes are refused before anything is summed."""
    bounded = BoundedPlan(source=Scan("t"), keys=(WARD,), domain=None, unit=UNIT, max_rows_per_group=2,
                      **{"measures": (), **BAD[name]})  # fmt: skip
    with pytest.raises(InternalError):
        dialect_engine.run({"t": frame([])}, catalog(UNIT), bounded)
