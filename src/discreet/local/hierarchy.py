"""Ranges over ordered values: each person reports a node of a tree, at a random level."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt

from discreet import parameters
from discreet.entropy import SYSTEM, EntropySource
from discreet.errors import ParameterError
from discreet.exact import Floats
from discreet.late_dataclass import dataclass
from discreet.local.aggregate import Aggregator
from discreet.local.estimation import estimate_frequencies, z_score
from discreet.local.protocol import FrequencyProtocol
from discreet.local.protocol_choice import choose
from discreet.local.reports import Reports
from discreet.local.survey import Survey
from discreet.local.task import Task


@dataclass(frozen=True, kw_only=True)
class Hierarchy:
    """A tree over ``size`` ordered values with ``branching`` children at each node; one task for each level.

    Privacy: that of the survey of its levels.
    Why: the level is drawn by lot, and the node at a level is a function of the answer.
    Reference: Cormode, Kulkarni & Srivastava 2019; Hay, Rastogi, Miklau & Suciu 2010 for the consistency.
    """

    size: int
    branching: int
    survey: Survey

    @classmethod
    def for_epsilon(
        cls, name: str, size: int, *, epsilon: object, n: int, branching: int = 4, epoch: int = 0
    ) -> Hierarchy:
        """A tree whose levels each use the protocol that ``choose`` finds."""
        parameters.read_whole(size, "size", least=2, most=1 << 22)
        parameters.read_whole(branching, "branching", least=2, most=1 << 10)
        levels = max(1, math.ceil(math.log(size, branching) - 1e-9))
        share = max(1, n // levels)
        tasks = tuple(
            choose(branching**level, epsilon=epsilon, n=share).task(f"{name}, level {level}", epoch=epoch)
            for level in range(1, levels + 1)
        )
        return cls(size=size, branching=branching, survey=Survey(tasks))

    @property
    def levels(self) -> int:
        """How many levels the tree has below its root."""
        return len(self.survey.tasks)

    @cached_property
    def _spans(self) -> list[int]:
        """How many values a node of each level covers."""
        return [self.branching ** (self.levels - level) for level in range(1, self.levels + 1)]

    def encode_many(self, answers: npt.NDArray[np.integer], *, source: EntropySource = SYSTEM) -> dict[str, Reports]:
        """Reports of many people, by task id; unknown answers become random ones."""
        values = np.where((answers >= 0) & (answers < self.size), answers, -1).astype(np.int64)
        return self.survey.encode_many([values // span for span in self._spans], source=source)

    def encode(self, answer: int, *, source: EntropySource = SYSTEM) -> bytes:
        """One person's report."""
        known = not isinstance(answer, bool) and isinstance(answer, int) and 0 <= answer < self.size
        return self.survey.encode([answer // span if known else None for span in self._spans], source=source)

    def estimate(self, aggregates: Mapping[str, Aggregator]) -> Ranges:
        """The tree's shares, made consistent by weighing each level by its exact variance."""
        values, variances = [], []
        for task in self.survey.tasks:
            aggregate = aggregates[task.id]
            if not aggregate.people:
                raise ParameterError("aggregates", "must have reports at every level", "Collect more.")
            values.append(estimate_frequencies(aggregate).values)
            variances.append(_variance(task) / aggregate.people)
        return Ranges(
            size=self.size,
            leaves=make_consistent(values, variances, self.branching),
            variances=tuple(variances),
            branching=self.branching,
        )


def _variance(task: Task) -> float:
    protocol = task.protocol
    if not isinstance(protocol, FrequencyProtocol):
        raise ParameterError("task", "must count frequencies", "Use Hierarchy.for_epsilon.")
    # At the frequency where the variance is largest, so that the error of a range is not understated.
    return max(protocol.unit_variance(0.0), protocol.unit_variance(1.0))


def make_consistent(values: list[Floats], variances: list[float], branching: int) -> Floats:
    """The leaves of the tree nearest to all its noisy nodes: parents are the sums of their children, the root is one.

    Upwards, the value of each node and the sum of its children are averaged by their variances. Downwards, the
    difference between a parent and the sum of its children is spread evenly over the children.
    """
    upward, spread = [values[-1]], [variances[-1]]
    for own, variance in zip(values[-2::-1], variances[-2::-1]):
        sums, below = upward[0].reshape(-1, branching).sum(axis=1), branching * spread[0]
        weight = below / (below + variance)
        upward.insert(0, weight * own + (1 - weight) * sums)
        spread.insert(0, weight * variance)
    parents = np.array([1.0])
    for level in upward:
        children = level.reshape(-1, branching)
        parents = (children + (parents - children.sum(axis=1))[:, np.newaxis] / branching).reshape(-1)
    return parents


@dataclass(frozen=True, kw_only=True)
class Ranges:
    """Shares of ordered values that answer ranges; sums of them are consistent with each other."""

    size: int
    leaves: Floats
    variances: tuple[float, ...]
    branching: int

    def share(self, first: int, last: int) -> float:
        """The share of people from ``first`` to ``last``, both included."""
        self._check(first, last)
        return float(self.leaves[first : last + 1].sum())

    def interval(self, first: int, last: int, *, level: float = 0.95) -> tuple[float, float]:
        """An interval for ``share``, from the nodes that cover the range. The estimate is at least as accurate."""
        middle = self.share(first, last)
        reach = z_score(float(parameters.read_probability(level, "level"))) * math.sqrt(
            self._cover_variance(first, last)
        )
        return middle - reach, middle + reach

    def _cover_variance(self, first: int, last: int) -> float:
        """The variance of the fewest nodes that make up the range."""
        total, low, high = 0.0, first, last + 1
        for variance in reversed(self.variances):
            up_low, down_high = -(-low // self.branching), high // self.branching
            if up_low >= down_high:
                return total + variance * (high - low)
            total += variance * (up_low * self.branching - low + high - down_high * self.branching)
            low, high = up_low, down_high
        return total

    def quantile(self, share: float) -> int:
        """The smallest value such that at least this share of the people is at or below it."""
        wanted = float(parameters.read_probability(share, "share"))
        return min(self.size - 1, int(np.searchsorted(np.maximum.accumulate(np.cumsum(self.leaves)), wanted)))

    def _check(self, first: int, last: int) -> None:
        if not 0 <= first <= last < self.size:
            raise ParameterError("range", "must lie within the values, first before last", "Give share(0, 9), say.")
