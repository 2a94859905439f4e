"""Tests of estimates: tables that could be counts, and agree on their one-way tables."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from discreet.entropy import SeededForTestsOnly
from discreet.exact import Floats
from discreet.publish.allocation import allocate
from discreet.publish.estimates import estimate_one_way, estimate_table, estimate_total, fit, to_simplex
from discreet.publish.measurements import measure
from discreet.publish.workload import Workload
from tests.publish.cubes import make_tables

WORKLOAD = Workload.of_ways((8, 12, 3), 3)


def make_cube(dependence: float) -> Floats:
    """A table in which the first two columns go together more or less."""
    near = np.exp(-dependence * (np.arange(8)[:, None] * 1.5 - np.arange(12)) ** 2)
    cube = near[:, :, None] * np.array([5.0, 2.0, 1.0])
    return np.asarray(cube / cube.sum() * 20_000)


def test_the_nearest_table_without_negative_cells() -> None:
    table = np.array([5.0, -3.0, 2.0, 0.5])
    found = to_simplex(table, 4.0)
    assert np.isclose(found.sum(), 4) and (found >= 0).all()
    for other in np.random.default_rng(0).dirichlet(np.ones(4), 300) * 4:
        assert ((found - table) ** 2).sum() <= ((other - table) ** 2).sum() + 1e-9


def test_fitting_gives_the_sides() -> None:
    sides = [np.array([3.0, 7.0]), np.array([1.0, 4.0, 5.0])]
    found = fit(np.ones((2, 3)), sides)
    assert np.allclose(found, np.outer(*sides) / 10)


def test_estimates_could_be_counts() -> None:
    cube = np.round(make_cube(0.3)).astype(np.int64)
    for mu_squared in (Fraction(1, 10**5), Fraction(1, 30)):
        found = measure(make_tables(cube, WORKLOAD), allocate(WORKLOAD, mu_squared), source=SeededForTestsOnly(1))
        total = estimate_total(found)
        for part in WORKLOAD.closure:
            table = estimate_table(found, part)
            assert (table >= 0).all()
            assert np.isclose(table.sum(), total)
        for column in (0, 1):
            close = np.abs(estimate_table(found, (0, 1)).sum(axis=1 - column) - estimate_one_way(found, column))
            assert close.max() < 0.02 * total


def test_shrinking_beats_the_plain_tables() -> None:
    """With and without dependence the estimate is nearer to the truth than the clipped noisy table."""
    for dependence in (0.0, 0.02, 0.5):
        cube = np.round(make_cube(dependence)).astype(np.int64)
        found = measure(make_tables(cube, WORKLOAD), allocate(WORKLOAD, Fraction(1, 200)), source=SeededForTestsOnly(2))
        truth = cube.sum(axis=2)
        ours = np.abs(estimate_table(found, (0, 1)) - truth).sum()
        plain = np.abs(to_simplex(found.table((0, 1)), estimate_total(found)) - truth).sum()
        assert ours < plain


def test_a_pair_that_was_not_measured_is_a_product() -> None:
    workload = Workload((8, 12, 3), {(0,): 1.0, (1,): 1.0, (2,): 1.0})
    cube = np.round(make_cube(0.3)).astype(np.int64)
    found = measure(make_tables(cube, workload), allocate(workload, Fraction(1)), source=SeededForTestsOnly(3))
    product = np.outer(estimate_one_way(found, 0), estimate_one_way(found, 1)) / estimate_total(found)
    assert np.allclose(estimate_table(found, (0, 1)), product)


def test_an_empty_dataset_has_estimates() -> None:
    cube = np.zeros((8, 12, 3), dtype=np.int64)
    found = measure(make_tables(cube, WORKLOAD), allocate(WORKLOAD, Fraction(1, 30)), source=SeededForTestsOnly(4))
    assert all(np.isfinite(estimate_table(found, part)).all() for part in WORKLOAD.closure)
