"""Direct measurements: every wanted table by itself, with noise on its own cells, normal or Laplace.

*Statement.* The release is one vector of whole numbers, m_B·(counts of B) for every wanted table B (and m_h times each
fine histogram), plus iid noise. A row counts as the whole number s, and one unit adds at most K·s to the counts of a
table in all (Σ w_j ≤ K·s over its rows, w_j ≥ 0).

- *Laplace*: under add-remove one unit moves the block of B by at most m_B·K·s in L1, so Δ₁ = K·s·Σ m. Under replace
  counts go and others come: Δ₁ = 2·K·s·Σ m. With discrete Laplace noise of scale Δ₁/ε it is ε-differentially private.
  Both are reached, by rows that differ in all columns.
- *normal*: one unit moves the block of B by at most m_B·K·s in L2, so Δ² = (K·s)²·Σ m²; under replace the squared
  distance is convex in both units and largest at rows of one kind each, which differ everywhere: twice that.

It is the only way for budgets of pure ε, and the baseline of all others: residuals of one vector (``allocation``) have
less noise at the same μ. Where Laplace noise is added, few numbers are worth more than clever ones: L1 grows with every
table, however it is turned.

What tables say of each other is put together: every table B ⊇ A tells the residual of A, with variance
v_B·Π_{B∖A} n_j before centring. They are uncorrelated, so weights 1/variance give the least variance, 1/Σ. Residuals of
different A are uncorrelated as well, being orthogonal projections of iid noise, so variances of linear questions add up
as they do for residuals that are measured by themselves.

*Intervals.* Sums of independent Laplace numbers lie between one Laplace number and the normal law, and the wider
interval of these two holds at every confidence: tests go through the exact laws of sums with weights of all kinds. Half
a step is added, because noise is in whole steps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist

import numpy as np

from discreet.errors import InternalError, UsageError
from discreet.exact import Floats, Integers
from discreet.late_dataclass import dataclass
from discreet.mechanisms.l2_noise import shorten
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.rounded_gaussian import RoundedGaussian
from discreet.privacy import Neighbours, Unit
from discreet.publish.allocation import FINE_SHARE, Allocation
from discreet.publish.residuals import center
from discreet.publish.workload import Attributes, Workload

# The least and the largest multiplier of a table: shares are right to a few hundredths, and products stay in 64 bits.
_LEAST, _MOST = 16, 1 << 12


@dataclass(frozen=True)
class DirectAllocation(Allocation):
    """The multipliers m_B of wanted tables. With ``laplace`` noise is Laplace of this scale, and ``variance`` 2·scale².

    That is no less than the variance of the discrete law.
    """

    laplace: Fraction | None = None

    @property
    def measured(self) -> tuple[Attributes, ...]:
        """The tables that get noise: those that are wanted."""
        return tuple(self.workload.weights) or ((),)

    def covers(self, attributes: Attributes) -> bool:
        """Whether a marginal follows from what is measured."""
        return attributes in self.workload.closure

    @cached_property
    def squared_sensitivity(self) -> int:
        """Δ²: how far one unit can move the vector in L2, squared."""
        squares = sum(m * m for m in (*self.multipliers.values(), *self.fine_multipliers.values()))
        return (self.max_rows * self.steps) ** 2 * squares * self._sides

    @property
    def sensitivity(self) -> int:
        """Δ₁: how far one unit can move the vector in L1."""
        whole = sum((*self.multipliers.values(), *self.fine_multipliers.values()))
        return self.max_rows * self.steps * whole * self._sides

    @property
    def _sides(self) -> int:
        """Under replace counts go and others come."""
        return 1 if self.neighbours is Neighbours.ADD_REMOVE else 2

    @cached_property
    def noise(self) -> RoundedGaussian | Laplace:
        """The mechanism that releases the vector."""
        if self.laplace is None:
            return super().noise
        return Laplace(sensitivity=self.sensitivity, scale=self.laplace, neighbours=self.neighbours, unit=self.unit)

    def encode(self, table: Integers) -> Integers:
        """What of a table gets noise, before it is multiplied: its counts."""
        return table

    def scale(self, part: Attributes) -> int:
        """How many units of the vector one row is in a table: m_B·steps."""
        return self.multipliers[part] * self.steps

    def residual_variance(self, part: Attributes) -> float:
        """The variance of a residual's noise before it is centred, in squared rows: what all tables say together."""
        return 1 / sum(1 / self._variance_from(part, table) for table in self.measured if set(part) <= set(table))

    def _variance_from(self, part: Attributes, table: Attributes) -> float:
        """What one table says of a residual."""
        others = math.prod(self.workload.sizes[column] for column in table if column not in part)
        return others * float((self.variance + Fraction(1, 12)) / self.scale(table) ** 2)

    def to_residuals(self, noisy: Mapping[Attributes, Integers]) -> dict[Attributes, Floats]:
        """Every residual of the closure, with the least variance."""
        tables = {part: np.asarray(block, dtype=np.float64) / self.scale(part) for part, block in noisy.items()}
        found = {}
        for part in self.workload.closure:
            whole = self.residual_variance(part)
            total: Floats = np.zeros(self.workload.shape(part))
            for table, counts in tables.items():
                if set(part) <= set(table):
                    axes = tuple(axis for axis, column in enumerate(table) if column not in part)
                    total = total + counts.sum(axis=axes) * (whole / self._variance_from(part, table))
            found[part] = center(total)
        return found

    def find_half(self, deviation: float, level: Fraction) -> float:
        """Half of an interval's width, where a number has this standard deviation."""
        normal = NormalDist().inv_cdf((1 + float(level)) / 2)
        if self.laplace is None:
            return normal * deviation
        single = math.log(1 / (1 - float(level))) / math.sqrt(2)
        step = 1 / min(map(self.scale, self.measured))
        return max(normal, single) * deviation + step / 2


def allocate_directly(
    workload: Workload,
    amount: Fraction,
    *,
    pure: bool,
    steps: int = 1,
    max_rows: int = 1,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    unit: Unit | None = None,
) -> DirectAllocation:
    """The measurements of all wanted tables that cost at most ``amount``: ε where noise is ``pure``, otherwise μ².

    What is made small is Σ w_B·cells_B·deviation_B: m_B ∝ (w_B·cells_B)^(1/2) under L1, and ^(1/3) under L2. A fine
    histogram gets its share of the price, in all.
    """
    if amount <= 0:
        raise InternalError("Noise without a price.")
    if workload.strategies:
        raise UsageError("Ranges are not measured directly: leave ranges out, or bins in. Nothing was charged.")
    power = 1 / 2 if pure else 1 / 3
    wanted = {part: (weight * workload.cells(part)) ** power for part, weight in workload.weights.items()} or {(): 1.0}
    least = min(wanted.values())
    multipliers = {part: min(_MOST, round(_LEAST * each / least)) for part, each in wanted.items()}
    fine = dict.fromkeys(workload.fine, _share_fine(multipliers, len(workload.fine), pure=pure))
    found = DirectAllocation(workload, multipliers, fine, Fraction(1), steps, max_rows, neighbours, unit or Unit())
    if pure:
        scale = found.sensitivity / amount
        return replace(found, laplace=scale, variance=2 * scale * scale)
    return replace(found, variance=shorten(found.squared_sensitivity / amount))


def _share_fine(multipliers: Mapping[Attributes, int], count: int, *, pure: bool) -> int:
    """The multiplier of each fine histogram, where all of them together get their share."""
    if not count:
        return 1
    share = FINE_SHARE / (1 - FINE_SHARE)
    if pure:
        return max(1, round(sum(multipliers.values()) * share / count))
    return max(1, round(math.sqrt(sum(m * m for m in multipliers.values()) * share / count)))
