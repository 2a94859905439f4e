"""Tests of residual tables against their definition."""

from __future__ import annotations

import numpy as np

from discreet.publish.residuals import assemble, center, find_scale, gather, take_residual
from discreet.publish.workload import Workload, list_subsets
from tests.publish.cubes import make_tables, stack

SIZES = (2, 3, 4)
WORKLOAD = Workload.of_ways(SIZES, 3)
CUBE = np.random.default_rng(3).integers(0, 9, SIZES)


def test_residuals_are_kronecker_products() -> None:
    ours = np.concatenate([take_residual(t).reshape(-1) for t in make_tables(CUBE, WORKLOAD).values()])
    assert (ours == stack(CUBE, WORKLOAD, dict.fromkeys(WORKLOAD.closure, 1))).all()


def test_marginals_are_sums_of_residuals() -> None:
    tables = make_tables(CUBE, WORKLOAD)
    residuals = {part: take_residual(t) / find_scale(t.shape) for part, t in tables.items()}
    for part, table in tables.items():
        assert np.allclose(assemble(residuals, part, table.shape), table)
        assert np.allclose(center(residuals[part]), residuals[part])


def test_a_linear_question_reads_residuals() -> None:
    tables = make_tables(CUBE, WORKLOAD)
    residuals = {part: take_residual(t) / find_scale(t.shape) for part, t in tables.items()}
    values = np.random.default_rng(4).normal(size=SIZES)
    parts = [float((gather(values, part, (0, 1, 2)) * residuals[part]).sum()) for part in list_subsets((0, 1, 2))]
    assert np.isclose(sum(parts), (values * CUBE).sum())


def test_integers_beyond_64_bits_stay_exact() -> None:
    """Counts so large that a product would wrap are multiplied in integers of any size."""
    table = np.array([[2**61, 5], [7, 11]], dtype=np.int64)
    exact = take_residual(table)
    total = 2**61 + 5 + 7 + 11
    assert exact[0, 0] == 4 * 2**61 - 2 * (2**61 + 5) - 2 * (2**61 + 7) + total
    assert exact.sum() == 0
