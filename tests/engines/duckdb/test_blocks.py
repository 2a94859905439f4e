"""Blocks at their edges: small arrays, few bits, tiny parts and more threads change no integer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from discreet.bounding.contributions import Counts, Measure, Spread
from discreet.engines.duckdb.blocks import block_run, kernel, tallies
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.order import EngineHash
from discreet.engines.sql import spreads
from tests.engines.conformance.test_measures import a_broad_world, answer
from tests.engines.duckdb.opening import engine_for
from tests.engines.worlds import AGE, COST, SALT, UNIT, catalog, frame


def test_small_arrays_and_small_bits_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sparse counting, values that do not fit beside the place, ties of hashes and tiny parts: the same answers."""
    worlds = [a_broad_world(seed, unit=unit, most=20) for seed, unit in ((2, None), (202, UNIT), (207, UNIT))]
    wide = Spread(argument=AGE, first=-(2**45), last=2**45)
    worlds.append(replace(worlds[1], bounded=replace(worlds[1].bounded, spreads=(wide, *worlds[1].bounded.spreads))))
    for world in worlds:
        engine = engine_for(world.rows, world.bounded.unit)
        wanted = answer(engine_for(world.rows, world.bounded.unit, blocks=False).run(world.bounded, salt=SALT))
        assert answer(engine.run(world.bounded, salt=SALT)) == wanted
        for module, name, value in (
            (spreads, "MOST_CELLS", 0), (tallies, "MOST_CELLS", 0), (kernel, "RANK_BITS", 60),
            (kernel, "PART_ROWS", 2), (block_run, "BLOCK_ROWS", 3),
        ):  # fmt: skip
            with monkeypatch.context() as patch:
                patch.setattr(module, name, value)
                patch.setattr(tallies, "GATHERED", 2)
                assert answer(engine.run(world.bounded, salt=SALT)) == wanted, name
        ties = (engine_for(world.rows, world.bounded.unit, blocks=b, order=EngineHash(1)) for b in (True, False))
        tied = [answer(other.run(world.bounded, salt=SALT)) for other in ties]
        assert tied[0] == tied[1]
        engine.close()


@pytest.mark.parametrize("seed", [203, 209])
def test_threads_do_not_matter(seed: int) -> None:
    world = a_broad_world(seed, unit=UNIT, units=8, most=20)
    bounded = replace(world.bounded, measures=(*world.bounded.measures, Measure(counts=Counts.DISTINCT, argument=COST)))
    one, three = (DuckDBEngine({"t": frame(world.rows)}, catalog(UNIT), threads=threads) for threads in (1, 3))
    assert answer(one.run(bounded, salt=SALT)) == answer(three.run(bounded, salt=SALT))
