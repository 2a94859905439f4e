"""Tests of strategies for ranges: stated distances against brute force, exact decoding, and the best one is taken."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from discreet.exact import Integers
from discreet.publish.range_strategies import (
    RangeStrategy,
    RangeWorkload,
    StrategyKind,
    choose_strategy,
    find_mean_variance,
    list_ranges,
)

STRATEGIES = [
    RangeStrategy(StrategyKind.IDENTITY, 5),
    RangeStrategy(StrategyKind.HAAR, 8, (3, 1, 2, 5)),
    RangeStrategy(StrategyKind.HAAR, 6, (1, 7, 2, 2)),
    RangeStrategy(StrategyKind.HAAR, 1, (4,)),
    RangeStrategy(StrategyKind.TOEPLITZ, 7),
]


def list_columns(strategy: RangeStrategy) -> list[Integers]:
    """What one row in each cell adds, from the definition."""
    return [strategy.encode(np.eye(strategy.cells, dtype=np.int64)[cell]) for cell in range(strategy.cells)]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_stated_distances_are_those_of_all_rows_and_pairs(strategy: RangeStrategy) -> None:
    columns = list_columns(strategy)
    assert max(int((c * c).sum()) for c in columns) == strategy.length
    pairs = max(int(((a - b) ** 2).sum()) for a, b in product(columns, columns))
    assert pairs <= strategy.pair_distance
    assert strategy.length <= strategy.pair_distance
    if strategy.kind is StrategyKind.HAAR and strategy.cells == strategy.size > 1:
        assert max(pairs, strategy.length) == strategy.pair_distance, "half of the claim would be exceeded"


def test_twice_the_length_is_too_small_a_claim_for_halves() -> None:
    """Control: under replace the rule of thumb 2·length fails where signs are opposite."""
    strategy = RangeStrategy(StrategyKind.HAAR, 2, (1, 9))
    one, two = list_columns(strategy)
    assert int(((one - two) ** 2).sum()) > 2 * strategy.length
    assert int(((one - two) ** 2).sum()) <= strategy.pair_distance


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_decoding_and_reading_are_exact(strategy: RangeStrategy) -> None:
    chance = np.random.default_rng(0)
    counts = chance.integers(0, 2**40, strategy.cells)
    measured = strategy.encode(counts).astype(np.float64)
    assert len(measured) == strategy.size
    assert np.allclose(strategy.decode(measured), counts)
    wanted = chance.normal(size=strategy.cells)
    assert strategy.read(wanted) @ measured == pytest.approx(wanted @ counts)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_stated_variance_is_that_of_the_noise(strategy: RangeStrategy) -> None:
    chance = np.random.default_rng(1)
    wanted = np.ones(strategy.cells)
    wanted[-1] = 0
    draws = [wanted @ strategy.decode(chance.normal(size=strategy.size)) for _ in range(4000)]
    stated = float((strategy.read(wanted) ** 2).sum())
    assert np.var(draws) == pytest.approx(stated, rel=6 * np.sqrt(2 / 4000), abs=1e-9)


@pytest.mark.parametrize(
    ("cells", "ranges", "most"),
    [(64, RangeWorkload.ALL, 2.9), (1024, RangeWorkload.ALL, 4.2), (1024, RangeWorkload.DISTRIBUTION, 3.6)],
)
def test_ranges_are_as_exact_as_published(cells: int, ranges: RangeWorkload, most: float) -> None:
    """Root mean square errors in units of one cell's noise; cell by cell they are 4.7 and 18.5."""
    wanted = list_ranges(cells, ranges)
    chosen = choose_strategy(cells, ranges)
    assert chosen.kind is not StrategyKind.IDENTITY
    assert np.sqrt(find_mean_variance(chosen, wanted)) < most
    plain = RangeStrategy(StrategyKind.IDENTITY, cells)
    assert np.sqrt(find_mean_variance(plain, wanted)) > 1.5 * most


def test_short_ranges_of_few_cells_are_measured_cell_by_cell() -> None:
    assert choose_strategy(32, RangeWorkload.SHORT).kind is StrategyKind.IDENTITY
    assert choose_strategy(1, RangeWorkload.ALL).cells == 1
