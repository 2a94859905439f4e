"""Workloads: which marginal tables are wanted, and which smaller tables they consist of.

Columns are numbered, and column i has ``sizes[i]`` cells. A marginal is named by the sorted numbers of its columns; the
empty one is the total.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from functools import cached_property
from itertools import combinations
from typing import TypeAlias

from discreet.errors import UsageError
from discreet.late_dataclass import dataclass
from discreet.publish.range_strategies import RangeStrategy, StrategyKind

Attributes: TypeAlias = tuple[int, ...]
"""The columns of a marginal, by their numbers, ascending."""


def list_subsets(attributes: Attributes) -> tuple[Attributes, ...]:
    """All subsets, small ones first.

    >>> list_subsets((0, 2))
    ((), (0,), (2,), (0, 2))
    """
    return tuple(part for size in range(len(attributes) + 1) for part in combinations(attributes, size))


@dataclass(frozen=True)
class Workload:
    """Marginals over columns of these sizes, how much the error of each counts, and what is counted finely."""

    sizes: tuple[int, ...]
    weights: Mapping[Attributes, float]
    # Columns that are also counted in finer cells, with how many of these there are.
    fine: Mapping[int, int] = field(default_factory=dict)
    # How finer cells are measured where ranges of them are wanted; others are measured cell by cell.
    strategies: Mapping[int, RangeStrategy] = field(default_factory=dict)

    def strategy(self, column: int) -> RangeStrategy:
        """How the finer cells of a column are measured."""
        return self.strategies.get(column) or RangeStrategy(StrategyKind.IDENTITY, self.fine[column])

    def __post_init__(self) -> None:
        if any(size < 1 for size in self.sizes):
            raise UsageError("Every column of a release needs at least one cell. Nothing was charged.")
        for attributes, weight in self.weights.items():
            known = all(0 <= column < len(self.sizes) for column in attributes)
            if not known or list(attributes) != sorted(set(attributes)) or not weight > 0:
                raise UsageError(
                    "A marginal names columns of the release, each once and in order, with a weight above zero. "
                    "Nothing was charged."
                )

    @classmethod
    def of_ways(cls, sizes: Iterable[int], ways: int, one_way_weight: float = 1.0) -> Workload:
        """All marginals of up to so many columns."""
        listed = tuple(sizes)
        columns = tuple(range(len(listed)))
        wanted = [part for size in range(1, ways + 1) for part in combinations(columns, size)]
        return cls(listed, {part: one_way_weight if len(part) == 1 else 1.0 for part in wanted})

    @cached_property
    def closure(self) -> tuple[Attributes, ...]:
        """Every subset of a wanted marginal, the total first."""
        found = {part for attributes in self.weights for part in list_subsets(attributes)} | {()}
        return tuple(sorted(found, key=lambda part: (len(part), part)))

    @cached_property
    def tops(self) -> tuple[Attributes, ...]:
        """The marginals of the closure that are in no larger one: counting these gives all others."""
        covered = {part for attributes in self.closure for part in list_subsets(attributes)[:-1]}
        return tuple(attributes for attributes in self.closure if attributes not in covered)

    def shape(self, attributes: Attributes) -> tuple[int, ...]:
        """The sizes of a marginal's columns."""
        return tuple(self.sizes[column] for column in attributes)

    def cells(self, attributes: Attributes) -> int:
        """How many cells a marginal has."""
        return math.prod(self.shape(attributes))

    def without(self, dropped: Iterable[Attributes]) -> Workload:
        """The same without some marginals."""
        gone = set(dropped)
        return replace(self, weights={part: weight for part, weight in self.weights.items() if part not in gone})
