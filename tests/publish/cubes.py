"""Small tables of counts and what follows from their definition, for the tests of publish."""

from __future__ import annotations

from itertools import product

import numpy as np

from discreet.exact import Integers
from discreet.publish.measurements import project
from discreet.publish.workload import Attributes, Workload


def list_cells(sizes: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Every cell of the full table."""
    return list(product(*(range(size) for size in sizes)))


def make_tables(cube: Integers, workload: Workload) -> dict[Attributes, Integers]:
    """The marginals of a full table, for the closure of a workload."""
    everything = tuple(range(cube.ndim))
    return {part: project(cube, everything, part) for part in workload.closure}


def stack(cube: Integers, workload: Workload, multipliers: dict[Attributes, int]) -> Integers:
    """The vector that noise is added to, from its definition: Kronecker products of n·I − 11ᵀ."""
    parts = []
    for part, table in make_tables(cube, workload).items():
        matrix = np.ones((1, 1), dtype=np.int64)
        for column in part:
            size = workload.sizes[column]
            matrix = np.kron(matrix, size * np.eye(size, dtype=np.int64) - 1)
        parts.append(multipliers[part] * (matrix @ table.reshape(-1)))
    return np.concatenate(parts)
