"""Both engines, and both ways of the DuckDB engine, give the integers that contributions.py describes."""

# ruff: noqa: S311  # times have no zone here, and worlds need seeds, not secrets
from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import duckdb
import pytest

from discreet.bounding.contributions import BoundedPlan
from discreet.engines.duckdb.blocks.kernel import HASH_BITS
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.engine import Groups
from discreet.engines.memory import engine as memory
from discreet.engines.memory.engine import MemoryEngine
from discreet.plan.expressions import Column, Expression
from discreet.plan.relations import Scan
from discreet.plan.types import Value
from tests.engines.worlds import NAME, SALT, UNIT, Rows, World, a_world, catalog, frame

Key = tuple[Value, ...]
UNITS = pytest.mark.parametrize("unit", [None, UNIT, NAME], ids=["row", "integer", "text"])


def as_dict(groups: Groups) -> dict[Key, tuple[int, ...]]:
    """The integers by group; groups of zeros alone may be missing in an answer, so they are left out here."""
    rows = {key: tuple(column[i] for column in groups.values) for i, key in enumerate(groups.keys)}
    assert len(rows) == len(groups.keys), "a group appears twice"
    return {key: values for key, values in rows.items() if any(values)}


def in_memory(rows: Rows, bounded: BoundedPlan) -> dict[Key, tuple[int, ...]]:
    return as_dict(MemoryEngine({"t": rows}, catalog(bounded.unit)).run(bounded, salt=SALT))


def engine_for(rows: Rows, unit: Expression | None) -> DuckDBEngine:
    return DuckDBEngine({"t": frame(rows)}, catalog(unit), threads=2)


def uncapped(bounded: BoundedPlan) -> BoundedPlan:
    """The same question with limits that nothing reaches."""
    if bounded.unit is None:
        return bounded
    return replace(bounded, max_groups=10_000, max_rows_per_group=10_000, max_rows=None)


@UNITS
@pytest.mark.parametrize("seed", range(10))
def test_engines_agree_where_no_limit_binds(seed: int, unit: Column | None) -> None:
    """Random tables and questions: memory, DuckDB in SQL, DuckDB in blocks, and a prepared table are equal."""
    world = a_world(seed, unit=unit)
    bounded = uncapped(world.bounded)
    wanted = in_memory(world.rows, bounded)
    engine = engine_for(world.rows, unit)
    assert as_dict(engine.run(bounded, salt=SALT)) == wanted
    assert as_dict(engine._run(bounded, SALT, None, blocks=False)) == wanted
    engine.prepare("t")
    assert as_dict(engine.run(bounded, salt=SALT)) == wanted
    engine.close()


@pytest.fixture
def duckdb_order(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lets the memory engine order a unit's groups as the DuckDB engine does, so that even choices can be compared."""
    connection = duckdb.connect()
    low, high = (int.from_bytes(part, "little") for part in (SALT[:8], SALT[8:]))

    def place(salt: bytes, unit: Value, key: Key) -> tuple[int, tuple[Any, ...]]:
        kinds = {int: "BIGINT", float: "DOUBLE"}
        marks = ", ".join(f"CAST(? AS {kinds[type(v)]})" if type(v) in kinds else "?" for v in (unit, *key))
        sql = f"SELECT hash({marks}, CAST({low} AS UBIGINT), CAST({high} AS UBIGINT)) >> {64 - HASH_BITS}"
        found = connection.execute(sql, [unit, *key]).fetchall()
        return found[0][0], tuple((v is None, v) for v in key)

    monkeypatch.setattr(memory, "_place", place)
    yield
    connection.close()


@pytest.mark.parametrize("unit", [UNIT, NAME], ids=["integer", "text"])
@pytest.mark.parametrize("seed", range(100, 114))
def test_engines_agree_where_limits_bind(seed: int, unit: Column, duckdb_order: None) -> None:
    """With the same order of groups, the chosen groups and the scaled sums are equal, too."""
    world = a_world(seed, unit=unit, most=14)
    wanted = in_memory(world.rows, world.bounded)
    engine = engine_for(world.rows, unit)
    assert as_dict(engine.run(world.bounded, salt=SALT)) == wanted
    assert as_dict(engine._run(world.bounded, SALT, None, blocks=False)) == wanted
    engine.prepare("t")
    prepared = as_dict(engine.run(world.bounded, salt=SALT))
    assert prepared == as_dict(engine._run(world.bounded, SALT, None, blocks=False))
    if unit is UNIT:  # a prepared table orders texts by a hash of their own
        assert prepared == wanted
    engine.close()


def test_choices_depend_on_the_salt() -> None:
    """Another salt keeps other groups: the order is a secret of each question."""
    world = a_world(1, unit=UNIT, units=40, most=20)
    bounded = replace(uncapped(world.bounded), keys=a_world(7, unit=UNIT).bounded.keys or (UNIT,), max_groups=1)
    for run in (MemoryEngine({"t": world.rows}, catalog(UNIT)).run, engine_for(world.rows, UNIT).run):
        answers = [as_dict(run(bounded, salt=bytes([i] * 16))) for i in range(5)]
        assert any(answer != answers[0] for answer in answers)


def chosen_counts(run: Callable[..., Groups], groups: int, units: int, keep: int) -> list[int]:
    """How many units keep each of several groups."""
    from discreet.bounding.contributions import Counts, Measure
    from tests.engines.worlds import CODE

    bounded = BoundedPlan(source=Scan("t"), keys=(CODE,), domain=None, unit=UNIT,
                      measures=(Measure(counts=Counts.UNITS),), max_groups=keep, max_rows_per_group=1)  # fmt: skip
    found = as_dict(run(bounded, salt=SALT))
    return [found.get((code,), (0,))[0] for code in range(groups)]


def test_every_group_is_chosen_as_often() -> None:
    """The secret order is fair: of 12 groups each unit keeps 3, and no group is favoured (chi square, p > 1e-9)."""
    from scipy.stats import chi2

    rng = random.Random(5)
    blank = a_world(0, unit=UNIT, units=1, most=1)
    template = dict.fromkeys(frame(blank.rows).column_names)
    units, groups, keep = 4000, 12, 3
    rows: Rows = [{**template, "unit": u, "code": c} for u in range(units) for c in range(groups)]
    rng.shuffle(rows)
    counts = chosen_counts(engine_for(rows, UNIT).run, groups, units, keep)
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
