"""Tests of allocations: stated sensitivities against brute force from the definition, and controls that fail."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from discreet.accounting.events import RoundedGaussian
from discreet.privacy import Neighbours, Unit
from discreet.publish import allocation as module
from discreet.publish.allocation import Allocation, allocate, find_distance
from discreet.publish.range_strategies import RangeStrategy, StrategyKind
from discreet.publish.workload import Attributes, Workload
from tests.publish.cubes import list_cells, stack

WORKLOADS = [
    Workload.of_ways((2, 3, 2), 2, one_way_weight=10),
    Workload.of_ways((2, 2, 3), 3),
    Workload((3, 4, 2), {(0, 1): 1.0, (2,): 3.0}),
    Workload((2, 1, 3), {(0, 1): 1.0, (1, 2): 2.0}),
]


def allocate_any(workload: Workload, neighbours: Neighbours, max_rows: int = 1, steps: int = 1) -> Allocation:
    return allocate(workload, Fraction(1, 50), neighbours=neighbours, max_rows=max_rows, steps=steps)


def move(workload: Workload, multipliers: dict[Attributes, int], *rows: tuple[tuple[int, ...], int]) -> int:
    """How far rows with these signed weights move the vector, squared, from the definition."""
    cube = np.zeros(workload.sizes, dtype=np.int64)
    for cell, weight in rows:
        cube[cell] += weight
    return int((stack(cube, workload, multipliers).astype(object) ** 2).sum())


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_row_moves_the_vector_as_far_as_stated(workload: Workload) -> None:
    """Add-remove: the claim is reached by every single row, so half of it would be wrong for all."""
    found = allocate_any(workload, Neighbours.ADD_REMOVE)
    moves = {move(workload, dict(found.multipliers), (cell, 1)) for cell in list_cells(workload.sizes)}
    assert moves == {found.squared_sensitivity}


@pytest.mark.parametrize("workload", WORKLOADS)
def test_replaced_rows_move_it_as_far_as_stated(workload: Workload) -> None:
    found = allocate_any(workload, Neighbours.REPLACE)
    cells, multipliers = list_cells(workload.sizes), dict(found.multipliers)
    pairs = max(move(workload, multipliers, (x, 1), (y, -1)) for x, y in product(cells, cells))
    alone = max(move(workload, multipliers, (x, 1)) for x in cells)
    assert found.squared_sensitivity == max(pairs, alone)


@pytest.mark.parametrize("neighbours", Neighbours)
def test_units_with_weights_stay_within_the_claim(neighbours: Neighbours) -> None:
    """All units with two rows in steps of a half, before and after: never beyond the claim, and it is reached."""
    workload = Workload.of_ways((2, 2), 2, one_way_weight=2)
    found = allocate_any(workload, neighbours, max_rows=2, steps=2)
    multipliers, cells = dict(found.multipliers), list_cells(workload.sizes)
    units = [[(cell, 1) for cell in unit] for size in range(5) for unit in combinations_with_replacement(cells, size)]
    others: list[list[tuple[tuple[int, ...], int]]] = [[]] if neighbours is Neighbours.ADD_REMOVE else units
    moves = [
        move(workload, multipliers, *one, *((cell, -weight) for cell, weight in two)) for one in units for two in others
    ]
    assert max(moves) == found.squared_sensitivity
    assert max(moves) > found.squared_sensitivity // 2, "a halved claim is exceeded"


@pytest.mark.parametrize("neighbours", Neighbours)
def test_fine_histograms_are_part_of_the_claim(neighbours: Neighbours) -> None:
    """A column of 2 cells that is also seen in 6 finer ones: all rows and pairs of rows, from the definition."""
    workload = Workload((2, 3), {(0, 1): 1.0}, {0: 6})
    found = allocate_any(workload, neighbours)
    multipliers, m = dict(found.multipliers), found.fine_multipliers[0]

    def vector(fine: int, other: int) -> list[int]:
        cube = np.zeros(workload.sizes, dtype=np.int64)
        cube[fine // 3, other] = 1
        return [*stack(cube, workload, multipliers).tolist(), *(m * (fine == place) for place in range(6))]

    rows = [vector(fine, other) for fine in range(6) for other in range(3)]
    others = rows if neighbours is Neighbours.REPLACE else [[0] * len(rows[0])]
    moves = [sum((a - b) ** 2 for a, b in zip(one, two)) for one in rows for two in others]
    assert max(moves) == found.squared_sensitivity
    assert m * m / found.squared_sensitivity < 0.06


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("kind", StrategyKind)
def test_strategies_for_ranges_are_part_of_the_claim(neighbours: Neighbours, kind: StrategyKind) -> None:
    """Six finer cells measured by each strategy: no row or pair of rows beyond the claim; half of it is exceeded."""
    strategy = RangeStrategy(kind, 6, (3, 1, 2, 5) if kind is StrategyKind.HAAR else ())
    workload = Workload((2, 3), {(0, 1): 1.0}, {0: 6}, {0: strategy})
    found = allocate_any(workload, neighbours, max_rows=2)
    multipliers, m = dict(found.multipliers), found.fine_multipliers[0]

    def vector(fine: int, other: int) -> list[int]:
        cube = np.zeros(workload.sizes, dtype=np.int64)
        cube[fine // 3, other] = 2
        block = strategy.encode(2 * np.eye(6, dtype=np.int64)[fine])
        return [*stack(cube, workload, multipliers).tolist(), *(m * int(value) for value in block)]

    rows = [vector(fine, other) for fine in range(6) for other in range(3)]
    others = rows if neighbours is Neighbours.REPLACE else [[0] * len(rows[0])]
    moves = [sum((a - b) ** 2 for a, b in zip(one, two)) for one in rows for two in others]
    assert found.squared_sensitivity / 2 < max(moves) <= found.squared_sensitivity
    if neighbours is Neighbours.ADD_REMOVE:
        assert max(moves) == found.squared_sensitivity
        assert 0.45 < 4 * m * m * strategy.length / found.squared_sensitivity < 0.55


def test_the_rule_of_root_two_is_false_for_residuals() -> None:
    """Negative control: under replace, twice the square of one row is too small a claim."""
    workload = Workload((2, 2), {(0, 1): 1.0})
    multipliers: dict[Attributes, int] = {(): 1, (0,): 1, (1,): 1, (0, 1): 100}
    single = find_distance(workload, multipliers, Neighbours.ADD_REMOVE)
    double = find_distance(workload, multipliers, Neighbours.REPLACE)
    assert double == max(move(workload, multipliers, (x, 1), (y, -1)) for x, y in product(list_cells((2, 2)), repeat=2))
    assert double > 2 * single


@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_bound_for_many_columns_is_no_smaller(workload: Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = allocate_any(workload, Neighbours.REPLACE).squared_sensitivity
    monkeypatch.setattr(module, "MOST_ENUMERATED", 0)
    bound = allocate_any(workload, Neighbours.REPLACE).squared_sensitivity
    assert exact <= bound <= 2 * exact


def test_ties_among_many_patterns_are_rounded_up() -> None:
    """Equal columns make thousands of equal patterns; what is claimed is at least what any of them moves."""
    workload = Workload.of_ways((2,) * 10, 2)
    found = allocate_any(workload, Neighbours.REPLACE)
    weights = {p: (m << len(p)) ** 2 for p, m in found.multipliers.items()}
    for code in (0, 1, 31, 1022, 1023, 341):
        assert module._sum_pattern(workload, weights, code) <= found.squared_sensitivity
    near = max(module._sum_pattern(workload, weights, code) for code in range(1024))
    assert near <= found.squared_sensitivity <= near * (1 + Fraction(1, 10**7))


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("mu_squared", [Fraction(1, 10**6), Fraction(1, 30), Fraction(7)])
def test_the_price_is_what_was_offered(neighbours: Neighbours, mu_squared: Fraction) -> None:
    found = allocate(WORKLOADS[0], mu_squared, neighbours=neighbours, max_rows=3, steps=1 << 16)
    assert mu_squared * (1 - Fraction(1, 10**9)) <= found.mu_squared <= mu_squared
    event = found.noise.event
    assert isinstance(event, RoundedGaussian)
    assert Fraction(event.squared_sensitivity) / Fraction(event.variance) == found.mu_squared


def test_the_allocation_is_the_best_of_its_neighbourhood() -> None:
    """The weighed sum of variances at a fixed price grows when any multiplier is changed."""
    workload = Workload.of_ways((4, 9, 30), 2, one_way_weight=10)

    def score(multipliers: dict[Attributes, int]) -> float:
        distance = find_distance(workload, multipliers, Neighbours.ADD_REMOVE)
        trial = Allocation(workload, multipliers, {}, Fraction(distance), 1, 1, Neighbours.ADD_REMOVE, Unit())  # μ² = 1
        return sum(w * workload.cells(a) * trial.cell_variance(a) for a, w in workload.weights.items())

    best = dict(allocate_any(workload, Neighbours.ADD_REMOVE).multipliers)
    for part in workload.closure:
        for factor in (0.8, 1.25):
            assert score(best) < score(best | {part: round(best[part] * factor)})
