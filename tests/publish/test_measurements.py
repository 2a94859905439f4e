"""Tests of measurements: unbiased tables, closed-form variances, promised intervals, exact integers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discreet.entropy import SeededForTestsOnly
from discreet.errors import InternalError
from discreet.publish.allocation import allocate
from discreet.publish.measurements import Measurements, measure, project
from discreet.publish.range_strategies import RangeStrategy, StrategyKind
from discreet.publish.workload import Workload
from tests.publish.cubes import make_tables

WORKLOAD = Workload.of_ways((2, 3, 4), 2, one_way_weight=10)
CUBE = np.random.default_rng(5).integers(0, 400, WORKLOAD.sizes)
TABLES = make_tables(CUBE, WORKLOAD)
ALLOCATION = allocate(WORKLOAD, Fraction(1, 25))


def draw(seed: int) -> Measurements:
    return measure(TABLES, ALLOCATION, source=SeededForTestsOnly(seed))


def test_without_noise_tables_are_exact() -> None:
    """What is drawn around is the true vector: with noise taken away, every table comes back."""
    quiet = allocate(WORKLOAD, Fraction(10**3))
    found = measure(TABLES, quiet, source=SeededForTestsOnly(1))
    for part, table in TABLES.items():
        assert np.abs(found.table(part) - table).max() < 1


def test_tables_agree_with_each_other() -> None:
    found = draw(1)
    for part in ((0, 1), (0, 2), (1, 2)):
        for axis, column in enumerate(part):
            assert np.allclose(found.table(part).sum(axis=1 - axis), found.table((column,)))
        assert np.isclose(found.table(part).sum(), found.total)


def test_means_and_variances_are_as_stated() -> None:
    """Over many draws every cell has the true mean and the stated variance (six standard errors)."""
    draws = [draw(seed) for seed in range(400)]
    for part in ((0,), (1, 2)):
        cells = np.array([each.table(part) for each in draws])
        variance = ALLOCATION.cell_variance(part)
        assert (np.abs(cells.mean(axis=0) - TABLES[part]) < 6 * np.sqrt(variance / len(draws))).all()
        assert (np.abs(cells.var(axis=0) / variance - 1) < 6 * np.sqrt(2 / len(draws))).all()


def test_the_deviation_of_any_question_is_in_closed_form() -> None:
    """Intervals at 95% of cells, sums and random weights cover 93 to 97%; with half the deviation they do not."""
    chance = np.random.default_rng(7)
    questions = [chance.normal(size=(3, 4)) for _ in range(5)]
    questions += [(chance.random((3, 4)) < share).astype(float) for share in (0.1, 0.3, 0.5, 0.9)]
    covered, halved = [], []
    for seed in range(500):
        found = draw(seed)
        for values in questions:
            middle, deviation = found.answer((1, 2), values)
            off = abs(middle - float((values * TABLES[1, 2]).sum()))
            covered.append(off <= 1.96 * deviation)
            halved.append(off <= 0.98 * deviation)
    assert 0.93 <= np.mean(covered) <= 0.97
    assert np.mean(halved) < 0.75


def test_weights_count_in_parts_of_rows() -> None:
    """Where a row counts as 2^16, tables are still in rows."""
    parts = allocate(WORKLOAD, Fraction(10**3), steps=1 << 16)
    found = measure({part: table << 16 for part, table in TABLES.items()}, parts, source=SeededForTestsOnly(2))
    assert np.abs(found.table((0, 1)) - TABLES[0, 1]).max() < 1


def test_counts_beyond_64_bits_are_measured_exactly() -> None:
    huge = {part: table.astype(object) << 70 for part, table in TABLES.items()}
    found = measure(huge, allocate(WORKLOAD, Fraction(1, 25)), source=SeededForTestsOnly(3))
    assert np.allclose(found.table((0,)) / 2.0**70, TABLES[0,].astype(float))


def test_floats_and_other_tables_are_refused() -> None:
    with pytest.raises(InternalError, match="whole numbers"):
        measure(TABLES | {(0,): TABLES[0,].astype(float)}, ALLOCATION)
    with pytest.raises(InternalError, match="different marginals"):
        measure({part: table for part, table in TABLES.items() if part}, ALLOCATION)


def test_projection_is_exact() -> None:
    assert (project(CUBE, (0, 1, 2), (0, 2)) == CUBE.sum(axis=1)).all()


@pytest.mark.parametrize("kind", StrategyKind)
def test_intervals_of_ranges_cover(kind: StrategyKind) -> None:
    """93 to 97 % over 1,500 draws of a range; with half of the deviation far fewer (control)."""
    strategy = RangeStrategy(kind, 6, (30, 10, 20, 50) if kind is StrategyKind.HAAR else ())
    workload = Workload((2,), {(0,): 1.0}, {0: 6}, {0: strategy})
    fine = np.array([5, 100, 0, 3, 3, 70])
    tables = make_tables(np.array([105, 76]), workload)
    allocation = allocate(workload, Fraction(1, 4))
    wanted = np.array([0.0, 1, 1, 1, 0, 0])
    off = []
    for seed in range(1500):
        value, deviation = measure(tables, allocation, {0: fine}, source=SeededForTestsOnly(seed)).answer_fine(
            0, wanted
        )
        off.append((value - 103) / deviation)
    assert 0.93 <= np.mean(np.abs(off) <= 1.96) <= 0.97
    assert np.mean(np.abs(off) <= 0.98) < 0.75
