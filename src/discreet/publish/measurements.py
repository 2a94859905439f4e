"""Measurements: the noisy residuals of a workload, which are all that a release knows of the data.

``measure`` is the only function here that sees private numbers. Tables, rows, intervals and pages follow from what it
returns, so they cost nothing more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from discreet.accounting import events
from discreet.entropy import SYSTEM, EntropySource
from discreet.errors import InternalError
from discreet.exact import Floats, Integers
from discreet.late_dataclass import dataclass
from discreet.publish.allocation import Allocation
from discreet.publish.residuals import assemble, gather
from discreet.publish.workload import Attributes, list_subsets

_WIDEST = 1 << 62


@dataclass(frozen=True)
class StagedScores:
    """What was drawn to choose tables: noisy distances from independence in steps, and their noise."""

    tables: tuple[Attributes, ...]
    noisy: tuple[int, ...]
    squared_sensitivity: int
    variance: Fraction

    @property
    def event(self) -> events.RoundedGaussian:
        """What they cost."""
        return events.RoundedGaussian(squared_sensitivity=self.squared_sensitivity, variance=self.variance)


@dataclass(frozen=True)
class Measurements:
    """What was drawn: for each residual its noisy integers m_A·q_A, and for each fine histogram m_h times it.

    Where tables are measured directly (``direct_tables``), it is their counts that have noise.
    """

    allocation: Allocation
    noisy: Mapping[Attributes, Integers]
    noisy_fine: Mapping[int, Integers] = field(default_factory=dict)
    # What was drawn before it, where a release has two stages.
    first: Measurements | None = None
    scores: StagedScores | None = None
    # Public tables that estimates lean on, in shares. They are no measurements: values and intervals do not use them.
    priors: Mapping[Attributes, Floats] = field(default_factory=dict)

    @cached_property
    def residuals(self) -> dict[Attributes, Floats]:
        """The residuals in rows, without the part of the noise that no residual can have."""
        own = self.allocation.to_residuals(self.noisy)
        if self.first is None:
            return own
        before = self.first.residuals
        return {
            part: self._average(part, table, before[part]) if part in before else table for part, table in own.items()
        }

    def _average(self, part: Attributes, own: Floats, before: Floats) -> Floats:
        """A residual that was measured twice, with the least variance."""
        together = self.allocation.residual_variance(part)
        share = together / self.first.allocation.residual_variance(part) if self.first is not None else 0.0
        return np.asarray(share * before + (1 - share) * own)

    @property
    def drawn_events(self) -> tuple[events.Event, ...]:
        """Everything that was drawn, as the ledger counts it."""
        earlier = () if self.first is None else self.first.drawn_events
        return (*earlier, *(() if self.scores is None else (self.scores.event,)), self.allocation.noise.event)

    @property
    def total(self) -> float:
        """The noisy number of rows."""
        return float(self.residuals[()])

    def fine_table(self, column: int) -> Floats:
        """The fine histogram of a column in rows, without bias."""
        return self.allocation.workload.strategy(column).decode(self._scale_fine(column))

    def _scale_fine(self, column: int) -> Floats:
        """What was measured of a fine histogram, in rows."""
        scale = self.allocation.fine_multipliers[column] * self.allocation.steps
        return np.asarray(self.noisy_fine[column], dtype=np.float64) / scale

    def answer_fine(self, column: int, values: Floats) -> tuple[float, float]:
        """Σ values·fine cells, without bias, and its standard deviation in closed form."""
        read = self.allocation.workload.strategy(column).read(values)
        deviation = math.sqrt(float((read * read).sum()) * self.allocation.fine_variance(column))
        return float(read @ self._scale_fine(column)), deviation

    def table(self, attributes: Attributes) -> Floats:
        """A marginal without bias: its cells may be negative, and they add up like all other tables of the release."""
        return assemble(self.residuals, attributes, self.allocation.workload.shape(attributes))

    def answer(self, attributes: Attributes, values: Floats) -> tuple[float, float]:
        """Σ values·cells of a marginal, without bias, and its standard deviation in closed form."""
        variance = 0.0
        for part in list_subsets(attributes):
            read = gather(values, part, attributes)
            variance += float((read * read).sum()) * self.allocation.residual_variance(part)
        return float((values * self.table(attributes)).sum()), math.sqrt(variance)


def measure(
    tables: Mapping[Attributes, Integers],
    allocation: Allocation,
    fine: Mapping[int, Integers] | None = None,
    *,
    source: EntropySource = SYSTEM,
) -> Measurements:
    """Draw the noise of all residuals and fine histograms, once, as one vector.

    ``tables`` and ``fine`` are the exact counts, a row being ``steps``.

    Privacy: the loss of ``allocation.noise``, for its unit and neighbours, if every unit adds at most
    ``max_rows``·``steps`` to the counts in all, and the tables are marginals of one table (see ``allocation``). Noise
    is added to whole numbers, and drawn exactly.
    """
    workload, fine = allocation.workload, fine or {}
    if set(tables) != set(workload.closure) or set(fine) != set(workload.fine):
        raise InternalError("Counts and allocation are about different marginals.")
    checked = {part: _check(np.asarray(tables[part]), workload.shape(part)) for part in workload.closure}
    vector = [_multiply(allocation.encode(checked[part]), allocation.multipliers[part]) for part in allocation.measured]
    for column, size in workload.fine.items():
        encoded = workload.strategy(column).encode(_check(np.asarray(fine[column]), (size,)))
        vector.append(_multiply(encoded, allocation.fine_multipliers[column]))
    drawn = np.asarray(allocation.noise.release(np.concatenate([each.reshape(-1) for each in vector]), source=source))
    ends = np.cumsum([each.size for each in vector])[:-1]
    return to_measurements(allocation, np.split(drawn, ends))


def to_measurements(allocation: Allocation, blocks: Sequence[Integers]) -> Measurements:
    """What was drawn, by its blocks: what is measured of tables, then the fine histograms."""
    workload = allocation.workload
    noisy = {part: block.reshape(workload.shape(part)) for part, block in zip(allocation.measured, blocks)}
    return Measurements(allocation, noisy, dict(zip(workload.fine, blocks[len(noisy) :], strict=True)))


def combine_stages(last: Measurements, first: Measurements, scores: StagedScores) -> Measurements:
    """What the stages of a release know together: one-way tables were measured twice."""
    return replace(last, allocation=replace(last.allocation, earlier=first.allocation), first=first, scores=scores)


def _check(table: Integers, shape: tuple[int, ...]) -> Integers:
    if table.shape != shape or not (table.dtype == object or np.issubdtype(table.dtype, np.integer)):
        raise InternalError("Counts must be whole numbers, one for each cell.")
    return table


def _multiply(residual: Integers, multiplier: int) -> Integers:
    """A product in 64 bits, or in integers of any size where that might not do."""
    largest = int(np.asarray(np.abs(residual)).max(initial=0))
    return np.asarray((residual if largest * multiplier < _WIDEST else residual.astype(object)) * multiplier)


def project(table: Integers, attributes: Attributes, part: Attributes) -> Integers:
    """A smaller marginal of a marginal, exactly."""
    axes = tuple(axis for axis, column in enumerate(attributes) if column not in part)
    return np.asarray(table.sum(axis=axes)) if axes else table


def find_cells(allocation: Allocation) -> int:
    """How many noisy numbers are drawn."""
    workload = allocation.workload
    return sum(map(workload.cells, allocation.measured)) + sum(
        workload.strategy(column).size for column in workload.fine
    )
