"""Tests of distances between tables: what one unit can do to them, by brute force, and exactness of large counts."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest

from discreet.exact import Integers
from discreet.privacy import Neighbours
from discreet.publish.table_distances import find_squared_distance, score_tables
from discreet.publish.workload import Workload
from tests.publish.cubes import list_cells, make_tables

WORKLOAD = Workload.of_ways((2, 2), 2)


def score(cube: Integers, made: list[Integers]) -> Integers:
    return score_tables(list(make_tables(cube, WORKLOAD).values()), [2 * table for table in made])


@pytest.mark.parametrize("neighbours", Neighbours)
def test_no_unit_moves_the_scores_further_than_stated(neighbours: Neighbours) -> None:
    """All units of up to two rows in steps of a half, on several tables; half of the claim is exceeded."""
    chance = np.random.default_rng(0)
    units = [u for size in range(5) for u in combinations_with_replacement(list_cells((2, 2)), size)]
    worst = 0
    for trial in range(6):
        base = chance.integers(0, 9, (2, 2)) * (trial > 0)
        made = list(make_tables(chance.integers(0, 4, (2, 2)), WORKLOAD).values())
        scored = []
        for unit in units:
            cube = base.copy()
            for cell in unit:
                cube[cell] += 1
            scored.append(score(cube, made))
        others = scored if neighbours is Neighbours.REPLACE else scored[:1]
        worst = max(worst, *(int(((a - b) ** 2).sum()) for a in scored for b in others))
    claim = find_squared_distance(len(WORKLOAD.closure), 2, 2, neighbours)
    assert worst <= claim
    if neighbours is Neighbours.ADD_REMOVE:
        assert worst == claim, "half of it is exceeded"
    else:
        assert worst > claim / 8


def test_scores_do_not_leave_64_bits() -> None:
    large = np.array([1 << 62, -(1 << 62)], dtype=np.int64)
    assert score_tables([large], [-large]).tolist() == [1 << 64]
