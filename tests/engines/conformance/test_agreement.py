"""Every engine gives the integers that contributions.py describes: those of the oracle, choices included."""

# ruff: noqa: S311  # worlds need seeds, not secrets
from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.engines.engine import Groups
from discreet.plan.expressions import Column
from discreet.plan.relations import Scan
from tests.engines.answers import Sums, as_dict, uncapped
from tests.engines.conformance.engines import DUCKDB, MEMORY, EngineUnderTest
from tests.engines.worlds import CODE, NAME, SALT, UNIT, Rows, World, a_world, catalog, frame

UNITS = pytest.mark.parametrize("unit", [None, UNIT, NAME], ids=["row", "integer", "text"])


def in_memory(rows: Rows, bounded: BoundedPlan) -> Sums:
    return as_dict(MEMORY.run({"t": rows}, catalog(bounded.unit), bounded))


def agree(engine: EngineUnderTest, rows: Rows, bounded: BoundedPlan) -> None:
    tables, declared = {"t": frame(rows)}, catalog(bounded.unit)
    assert as_dict(engine.run(tables, declared, bounded)) == as_dict(engine.run_oracle(tables, declared, bounded))


@UNITS
@pytest.mark.parametrize("seed", range(6))
def test_engines_agree_where_no_limit_binds(seed: int, unit: Column | None, other: EngineUnderTest) -> None:
    """Random tables and questions: all integers are equal."""
    world = a_world(seed, unit=unit)
    agree(other, world.rows, uncapped(world.bounded))


@pytest.mark.parametrize("unit", [UNIT, NAME], ids=["integer", "text"])
@pytest.mark.parametrize("seed", range(100, 110))
def test_engines_agree_where_limits_bind(seed: int, unit: Column, other: EngineUnderTest) -> None:
    """Weighed sums are equal, and with the same secret order in the oracle so are the chosen groups."""
    world = a_world(seed, unit=unit, most=14)
    agree(other, world.rows, world.bounded)


def test_another_order_is_noticed() -> None:
    """Negative control: the oracle's own order chooses other groups than DuckDB's, and the comparison sees it."""
    worlds = [a_world(seed, unit=UNIT, most=14) for seed in range(100, 114)]
    different = 0
    for world in worlds:
        tables = {"t": frame(world.rows)}
        own, theirs = (as_dict(engine.run_oracle(tables, catalog(UNIT), world.bounded)) for engine in (MEMORY, DUCKDB))
        different += own != theirs
    assert different > 0


@pytest.mark.parametrize("unit", [UNIT, NAME], ids=["integer", "text"])
@pytest.mark.parametrize("seed", [101, 104])
def test_the_order_of_rows_does_not_matter(seed: int, unit: Column, engine: EngineUnderTest) -> None:
    """Rows in another order, beside units that were not there before: what is taken of a unit stays the same."""
    world = a_world(seed, unit=unit, units=8, most=14)
    bounded = replace(world.bounded, keys=(*world.bounded.keys, unit), domain=None)
    rows = list(world.rows)
    more: Rows = [{**row, "unit": 900 + i, "name": f"newcomer {i}"} for i, row in enumerate(rows[:20])]
    before = as_dict(engine.run({"t": frame(rows)}, catalog(unit), bounded))
    random.Random(seed).shuffle(rows)
    after = as_dict(engine.run({"t": frame([*more[:9], *rows, *more[9:]])}, catalog(unit), bounded))
    new = {row[unit.name] for row in more}
    assert before and {key: sums for key, sums in after.items() if key[-1] not in new} == before


def test_choices_depend_on_the_salt(engine: EngineUnderTest) -> None:
    """Another salt keeps other groups: the order is a secret of each question."""
    world = a_world(1, unit=UNIT, units=40, most=20)
    keys, named = a_world(7, unit=UNIT).bounded.keys or (UNIT,), (Measure(counts=Counts.NAMED),)
    bounded = replace(uncapped(world.bounded), keys=keys, measures=named, max_groups=1)
    with engine.open({"t": frame(world.rows)}, catalog(UNIT)) as opened:
        answers = [as_dict(opened.run(bounded, salt=bytes([i] * 16))) for i in range(5)]
    assert any(answer != answers[0] for answer in answers)


def chosen_counts(run: Callable[..., Groups], groups: int, keep: int) -> list[int]:
    """How many units keep each of several groups."""
    bounded = BoundedPlan(source=Scan("t"), keys=(CODE,), domain=None, unit=UNIT,
                      measures=(Measure(counts=Counts.NAMED),), max_groups=keep, max_rows_per_group=1)  # fmt: skip
    found = as_dict(run(bounded, salt=SALT))
    return [found.get((code,), (0,))[0] for code in range(groups)]


def test_every_group_is_chosen_as_often(engine: EngineUnderTest) -> None:
    """The secret order is fair: of 12 groups each unit keeps 3, and no group is favoured (chi square, p > 1e-9)."""
    from scipy.stats import chi2

    template = dict.fromkeys(frame([]).column_names)
    units, groups, keep = 4000, 12, 3
    rows: Rows = [{**template, "unit": u, "code": c} for u in range(units) for c in range(groups)]
    random.Random(5).shuffle(rows)
    with engine.open({"t": frame(rows)}, catalog(UNIT)) as opened:
        counts = chosen_counts(opened.run, groups, keep)
    assert sum(counts) == units * keep
    expected = units * keep / groups
    statistic = sum((count - expected) ** 2 / expected for count in counts) / (1 - keep / groups)
    assert chi2.sf(statistic, groups - 1) > 1e-9


def test_worlds_are_worth_testing() -> None:
    """The random questions do bind: limits change answers in most worlds, and answers are rarely empty."""
    worlds: list[World] = [a_world(seed, unit=UNIT, most=14) for seed in range(100, 130)]
    answers = [in_memory(world.rows, world.bounded) for world in worlds]
    free = [in_memory(world.rows, uncapped(world.bounded)) for world in worlds]
    assert sum(bool(answer) for answer in answers) > 20
    assert sum(a != b for a, b in zip(answers, free)) > 15
