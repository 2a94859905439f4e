"""The kernel at its edges: units across blocks, ties, packed keys that do not fit, and exact sums."""

# ruff: noqa: S311  # times have no zone here, and worlds need seeds, not secrets
from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.engines.duckdb import prepared
from discreet.engines.duckdb.blocks import block_run as blocks
from discreet.engines.duckdb.blocks import kernel
from discreet.engines.duckdb.blocks.kernel import BlockPlan, RowLayout, UnitBlock, bound_block
from discreet.engines.memory.engine import MemoryEngine
from discreet.engines.order import EngineHash
from discreet.exact import Integers
from discreet.plan.expressions import Column
from discreet.plan.relations import Scan
from tests.engines.answers import as_dict, uncapped
from tests.engines.conformance.engines import DuckDBOrder
from tests.engines.duckdb.opening import engine_for
from tests.engines.worlds import AGE, NAME, SALT, UNIT, WARD, Rows, World, a_world, catalog

AGES = Measure(counts=Counts.STEPS, argument=AGE, first=-1000, last=1000)


def grouped(seed: int, unit: Column = UNIT) -> World:
    """A world with groups and a cap on them."""
    world = a_world(seed, unit=unit, units=12, most=12)
    bounded = replace(world.bounded, keys=world.bounded.keys or (WARD,), domain=None)
    return replace(world, bounded=bounded if bounded.max_groups else replace(bounded, max_groups=2))


def both_ways(world: World, order: EngineHash | None = None) -> None:
    """Blocks and SQL give the same, on the source and on a prepared table."""
    ways = [engine_for(world.rows, world.bounded.unit, blocks=blocks, order=order) for blocks in (True, False)]
    for _ in range(2):
        in_blocks, in_sql = (as_dict(engine.run(world.bounded, salt=SALT)) for engine in ways)
        assert in_blocks == in_sql
        for engine in ways:
            engine.prepare("t")
    for engine in ways:
        engine.close()


@pytest.mark.parametrize("unit", [UNIT, NAME], ids=["integer", "text"])
@pytest.mark.parametrize("size", [1, 3, 16])
def test_units_may_span_stretches(size: int, unit: Column, monkeypatch: pytest.MonkeyPatch) -> None:
    """However short the stretches, a block holds whole units."""
    monkeypatch.setattr(prepared, "BLOCK_ROWS", size)
    monkeypatch.setattr(blocks, "BLOCK_ROWS", size)
    both_ways(grouped(size, unit))


@pytest.mark.parametrize("bits", [1, 2])
def test_ties_fall_back_to_the_keys(bits: int) -> None:
    """With hashes of a bit or two nearly everything is a tie; both ways still choose the same groups, by key."""
    for seed in range(3):
        world = grouped(seed)
        both_ways(world, EngineHash(bits))
        oracle = MemoryEngine({"t": world.rows}, catalog(UNIT), order=DuckDBOrder(bits))
        wanted = as_dict(oracle.run(world.bounded, salt=SALT))
        assert as_dict(engine_for(world.rows, UNIT, order=EngineHash(bits)).run(world.bounded, salt=SALT)) == wanted


def test_a_giant_unit_and_too_many_groups_go_the_other_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit the kernel is answered in SQL, with the same result."""
    world = grouped(2)
    engine = engine_for(world.rows, UNIT)
    wanted = as_dict(engine.run(world.bounded, salt=SALT))
    for name in ("MOST_GROUPS", "MOST_BLOCK_ROWS"):
        with monkeypatch.context() as patch:
            patch.setattr(blocks, name, 1)
            assert as_dict(engine.run(world.bounded, salt=SALT)) == wanted


def test_wide_measures_go_the_other_way() -> None:
    """Steps that could overflow 64 bits in a block are summed in SQL."""
    top = 2**61 - 1
    wide = Measure(counts=Counts.STEPS, argument=AGE, first=-top, last=top)
    world = grouped(4)
    assert not kernel.fits((wide,), 3)
    both_ways(replace(world, bounded=replace(world.bounded, measures=(wide,))))


def brute(shape: BlockPlan, units: Integers, places: Integers, values: Integers) -> dict[int, list[int]]:
    """Steps 3 to 5 for two measures, rows and steps, in plain Python."""
    bounded, mask = shape.bounded, (1 << shape.layout.group_bits) - 1
    pairs: dict[int, dict[int, list[int]]] = {}
    for unit, place, value in zip(units.tolist(), places.tolist(), values.tolist()):
        pairs.setdefault(unit, {}).setdefault(place, []).append(value)
    totals: dict[int, list[int]] = {}
    for groups in pairs.values():
        left = bounded.max_rows if bounded.max_rows is not None else 10**9
        for place in sorted(groups)[: bounded.max_groups]:
            counted = [value for value in groups[place] if value != kernel.NULL]
            allowed = min(len(groups[place]), bounded.max_rows_per_group or 10**9, left)
            left -= allowed
            if allowed > 0:
                scaled = sum(counted)
                if len(counted) > allowed:
                    scaled = int(Fraction(scaled * allowed, len(counted)))
                total = totals.setdefault(place & mask, [0, 0])
                total[0] += allowed
                total[1] += scaled
    return totals


LAYOUTS = {
    "packed": RowLayout(2, 3, ((-1000, 1000),)),
    "packed, few units at once": RowLayout(24, 24, ((-1000, 1000),)),
    "separate": RowLayout(24, 3, ((-(2**40), 2**40),)),
    "separate, too wide for one key": RowLayout(24, 38, ((-(2**40), 2**40),)),
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("ordered", [True, False])
def test_blocks_against_plain_python(name: str, ordered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random blocks in every layout, also unordered ones: equal to the obvious loop."""
    layout = LAYOUTS[name]
    monkeypatch.setattr(kernel, "RANK_BITS", 1)
    rng = np.random.default_rng(len(name))
    for trial in range(40):
        size = int(rng.integers(1, 300))
        units = rng.integers(-5, 5, size) * 2**58 + rng.integers(0, 12, size)
        units = np.sort(units) if ordered else units
        places = (rng.integers(0, 4, size) << layout.group_bits) | rng.integers(0, 8, size)
        values = np.where(rng.random(size) < 0.2 * (trial % 2), kernel.NULL, rng.integers(-1000, 1000, size))
        limits: list[dict[str, Any]] = [
            {"max_rows": 4},
            {"max_rows_per_group": 2, "max_groups": 2},
            {"max_rows": 7, "max_groups": 3},
        ]
        bounded = BoundedPlan(
            source=Scan("t"),
            keys=(WARD,),
            domain=None,
            unit=UNIT,
            measures=(Measure(counts=Counts.ROWS), AGES),
            **limits[trial % 3],
        )
        shape = BlockPlan(bounded, (None, 0), 8, layout)
        block = UnitBlock(units, places, (values,))
        if layout.packed:
            fields = np.where(values == kernel.NULL, 2001, values + 1000)
            block = UnitBlock(units, (places << layout.widths[0]) | fields)
        wanted = brute(shape, units, places, values)
        assert bound_block(shape, block).sums.T.tolist() == [wanted.get(code, [0, 0]) for code in range(8)]


def test_the_layouts_are_what_they_are_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control for the test above: packed where it should be, and beyond 63 bits where it should be."""
    monkeypatch.setattr(kernel, "RANK_BITS", 1)
    assert [layout.packed for layout in LAYOUTS.values()] == [True, True, False, False]
    few = LAYOUTS["packed, few units at once"]
    assert 63 - few.place_bits - sum(few.widths) < (120).bit_length()
    wide = LAYOUTS["separate, too wide for one key"]
    assert wide.place_bits + (50).bit_length() > 63


def test_sums_by_group_are_exact_beyond_doubles() -> None:
    """Sums that a double could not hold come out to the last unit."""
    partials = np.array([2**60 + 1, -(2**60), 2**53 + 1, -1, 2**61], dtype=np.int64)
    codes = np.array([0, 0, 1, 1, 0])
    assert kernel._sum_by_group(codes, partials, 2).tolist() == [2**61 + 1, 2**53]


def test_scaling_rounds_towards_zero() -> None:
    sums, counts, allowed = (np.array(v) for v in ([7, -7, 7, 2**61], [3, 3, 2, 2**20], [2, 2, 2, 3]))
    assert kernel._scale_sums(sums, counts, allowed).tolist() == [4, -4, 7, 3 * 2**41]


def test_a_cap_that_nothing_reaches_changes_nothing() -> None:
    """Elision: without a cap on groups or rows the order is not even computed, and the answer is the same."""
    rng = random.Random(9)
    world = grouped(9)
    rows: Rows = list(world.rows)
    rng.shuffle(rows)
    loose = uncapped(world.bounded)
    free = replace(loose, max_groups=None)
    engine = engine_for(rows, UNIT)
    wanted = as_dict(engine.run(loose, salt=SALT))
    assert as_dict(engine.run(free, salt=SALT)) == wanted
    assert as_dict(engine_for(rows, UNIT, blocks=False).run(free, salt=SALT)) == wanted
