"""Tests of workloads: closures, tops and refusals."""

from __future__ import annotations

import pytest

from discreet.errors import UsageError
from discreet.publish.workload import Workload


def test_the_closure_has_every_subset_once() -> None:
    workload = Workload((2, 3, 4), {(0, 1): 1.0, (1, 2): 1.0, (2,): 5.0})
    assert workload.closure == ((), (0,), (1,), (2,), (0, 1), (1, 2))
    assert workload.tops == ((0, 1), (1, 2))
    assert workload.shape((1, 2)) == (3, 4)
    assert workload.cells((1, 2)) == 12


def test_all_ways() -> None:
    workload = Workload.of_ways((2, 2, 2), 2, one_way_weight=10)
    assert len(workload.weights) == 6
    assert workload.weights[(1,)] == 10
    assert workload.without([(0, 1)]).tops == ((0, 2), (1, 2))


@pytest.mark.parametrize("wrong", [{(0, 0): 1.0}, {(1, 0): 1.0}, {(0, 9): 1.0}, {(0,): 0.0}, {(0,): float("nan")}])
def test_marginals_of_no_table_are_refused(wrong: dict[tuple[int, ...], float]) -> None:
    with pytest.raises(UsageError, match="Nothing was charged"):
        Workload((2, 2), wrong)


def test_a_column_needs_cells() -> None:
    with pytest.raises(UsageError, match="at least one cell"):
        Workload((2, 0), {(0,): 1.0})
