"""Allocations: how much noise every residual of a workload gets under one μ, and what all of it costs together.

*Statement.* The release is one vector of whole numbers, m_A·q_A for every A of the closure (``residuals``), plus iid
rounded normal noise of one variance V. The whole numbers m_A say how exactly each residual is measured:
σ_A² = V/(m_A·N_A·s)² in squared rows, where a row counts as the whole number s. It is μ-Gaussian private with
μ² = Δ²/V, where Δ is how far one unit moves the vector. One unit adds Σ_j w_j·e_{x_j} to the counts, with whole w_j ≥ 0
and Σ w_j ≤ K·s. A row in the cell x moves the vector by s·c_x with ‖c_x‖² = Σ_A m_A²·Π_{i∈A} n_i(n_i − 1) =: λ, the
same for every x.

- add-remove: ‖Σ w_j c_{x_j}‖ ≤ K·s·√λ, so Δ² = (K·s)²·λ. It is reached, so nothing smaller will do.
- replace: the square of the distance is convex in both units, so it is largest at corners: rows of one kind each, or
  nothing at all on one side. Δ² = (K·s)²·max(λ, max over sets S of columns that agree of D(S)), where
  D(S) = Σ_A 2·m_A²·N_A²·(p_A − Π_{i∈A}(1 − 1/n_i if i∈S, else −1/n_i)). The rule of thumb 2·λ is too small here.
  With more columns than can be gone through, the maximum is taken for each A by itself, which is no less.

A column may also be counted in finer cells: a block h of the vector is m_h times this histogram, or what a strategy
for ranges makes of it (``range_strategies``). λ grows by m_h²·length, and D by m_h²·pair_distance: 1 and 2 where cells
are measured one by one.

docs/proofs/residuals.md proves it. What follows from the noisy vector is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist

import numpy as np

from discreet.errors import InternalError
from discreet.exact import Floats, Integers
from discreet.late_dataclass import dataclass
from discreet.mechanisms.l2_noise import shorten
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.rounded_gaussian import RoundedGaussian
from discreet.privacy import Neighbours, Unit
from discreet.publish.residuals import center, find_factor, find_length, find_product, find_scale, take_residual
from discreet.publish.workload import Attributes, Workload

# With so many columns at most, all sets of agreeing columns are gone through.
MOST_ENUMERATED = 16
# What fine histograms get of μ², all of them together.
FINE_SHARE = Fraction(1, 20)
# What they get where ranges of them are wanted.
RANGE_SHARE = Fraction(1, 2)
# The least multiplier: with it the shape of an allocation is right to a thousandth.
_LEAST = 256
_LEAST_FINE = 64


@dataclass(frozen=True)
class Allocation:
    """The multipliers m_A of a workload's residuals and the variance V of the noise, with who is protected.

    A row counts as ``steps``, and one unit as ``max_rows`` rows at most. ``earlier`` is what was measured before of the
    same tables, if anything was: it makes numbers more exact, and is paid for by itself.
    """

    workload: Workload
    multipliers: Mapping[Attributes, int]
    fine_multipliers: Mapping[int, int]
    variance: Fraction
    steps: int
    max_rows: int
    neighbours: Neighbours
    unit: Unit
    earlier: Allocation | None = None

    @cached_property
    def squared_sensitivity(self) -> int:
        """Δ²: how far one unit can move the vector, squared."""
        distance = find_distance(self.workload, self.multipliers, self.neighbours)
        for column, m in self.fine_multipliers.items():
            strategy = self.workload.strategy(column)
            alone = self.neighbours is Neighbours.ADD_REMOVE
            distance += m * m * (strategy.length if alone else strategy.pair_distance)
        return max(1, (self.max_rows * self.steps) ** 2 * distance)

    @property
    def mu_squared(self) -> Fraction:
        """What the whole vector costs."""
        return self.squared_sensitivity / self.variance

    @property
    def measured(self) -> tuple[Attributes, ...]:
        """The parts that get noise, in the order of the vector."""
        return self.workload.closure

    def encode(self, table: Integers) -> Integers:
        """What of a table gets noise, before it is multiplied: its residual."""
        return take_residual(table)

    def to_residuals(self, noisy: Mapping[Attributes, Integers]) -> dict[Attributes, Floats]:
        """The residuals in rows, without the part of the noise that no residual can have."""
        return {part: center(np.asarray(drawn, dtype=np.float64) / self.scale(part)) for part, drawn in noisy.items()}

    def find_half(self, deviation: float, level: Fraction) -> float:
        """Half of an interval's width, where a number has this standard deviation."""
        return NormalDist().inv_cdf((1 + float(level)) / 2) * deviation

    @cached_property
    def noise(self) -> RoundedGaussian | Laplace:
        """The mechanism that releases the vector."""
        return RoundedGaussian(
            squared_sensitivity=self.squared_sensitivity,
            variance=self.variance,
            neighbours=self.neighbours,
            unit=self.unit,
        )

    def scale(self, part: Attributes) -> int:
        """How many units of the vector one row is in a residual: m_A·N_A·steps."""
        return self.multipliers[part] * find_scale(self.workload.shape(part)) * self.steps

    def residual_variance(self, part: Attributes) -> float:
        """σ_A² with the variance of rounding: of a residual's noise before it is centred, in squared rows.

        What was measured twice is averaged with weights 1/σ², so that its variance is 1/Σ(1/σ²).
        """
        own = float((self.variance + Fraction(1, 12)) / self.scale(part) ** 2)
        if self.earlier is None or part not in self.earlier.multipliers:
            return own
        before = self.earlier.residual_variance(part)
        return own * before / (own + before)

    def cell_variance(self, attributes: Attributes) -> float:
        """The variance of one cell of a measured marginal, in squared rows: the same for all of its cells."""
        found = 0.0
        for part in self.workload.closure:
            if set(part) <= set(attributes):
                length = float(find_length(self.workload.shape(part)))
                others = math.prod(self.workload.sizes[column] for column in attributes if column not in part)
                found += length * self.residual_variance(part) / others**2
        return found

    def fine_variance(self, column: int) -> float:
        """The variance of one number that is measured of a fine histogram, in squared rows."""
        scale = self.fine_multipliers[column] * self.steps
        return float((self.variance + Fraction(1, 12)) / scale**2)

    def covers(self, attributes: Attributes) -> bool:
        """Whether a marginal follows from what is measured."""
        return attributes in self.multipliers


def allocate(
    workload: Workload,
    mu_squared: Fraction,
    *,
    steps: int = 1,
    max_rows: int = 1,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    unit: Unit | None = None,
) -> Allocation:
    """The measurements with the least weighed sum of cells' variances that cost at most μ².

    Σ v_A·σ_A² is least under Σ p_A/σ_A² = const where σ_A² ∝ √(p_A/v_A). Here v_A is what the residual of A adds to the
    sum: Σ_{B⊇A} w_B·Π_A(n_i − 1)·Π_{B∖A} 1/n_j. The variance is rounded up, so the price is at most what was said.
    """
    if mu_squared <= 0:
        raise InternalError("Noise without a price.")
    wanted = {part: _find_precision(workload, part) for part in workload.closure}
    least = min(wanted.values())
    multipliers = {part: max(1, round(_LEAST * precision / least)) for part, precision in wanted.items()}
    fine = {column: _share_fine(workload, multipliers, column) for column in workload.fine}
    coarse = _LEAST_FINE // min(fine.values(), default=_LEAST_FINE)
    if coarse > 1:  # finer whole numbers for all, so that shares are right
        multipliers = {part: coarse * multiplier for part, multiplier in multipliers.items()}
        fine = {column: _share_fine(workload, multipliers, column) for column in workload.fine}
    found = Allocation(workload, multipliers, fine, Fraction(1), steps, max_rows, neighbours, unit or Unit())
    return replace(found, variance=shorten(found.squared_sensitivity / mu_squared))


def _share_fine(workload: Workload, multipliers: Mapping[Attributes, int], column: int) -> int:
    """The multiplier of a fine histogram, where all of them together get their share of μ², each the same."""
    whole = find_distance(workload, multipliers, Neighbours.ADD_REMOVE)
    share = RANGE_SHARE if workload.strategies else FINE_SHARE
    length = workload.strategy(column).length
    return max(1, math.isqrt(int(whole * share / (1 - share)) // (len(workload.fine) * length)))


def _find_precision(workload: Workload, part: Attributes) -> float:
    """1/(N_A·σ_A) up to a factor; a residual that is always zero (of a column with one cell) is given some."""
    shape = workload.shape(part)
    length, weight = float(find_length(shape)), _weigh(workload, part)
    share = (weight / length) ** 0.25 if length and weight else 1.0
    return share / find_scale(shape)


def _weigh(workload: Workload, part: Attributes) -> float:
    """v_A."""
    own = math.prod(workload.sizes[column] - 1 for column in part)
    total = 0.0
    for attributes, weight in workload.weights.items():
        if set(part) <= set(attributes):
            total += weight / math.prod(workload.sizes[column] for column in attributes if column not in part)
    return own * total


def find_distance(workload: Workload, multipliers: Mapping[Attributes, int], neighbours: Neighbours) -> int:
    """The largest squared distance between neighbours, where a unit has one row that counts as one."""
    weights = {part: (m * find_scale(workload.shape(part))) ** 2 for part, m in multipliers.items()}
    single = sum(int(weight * find_length(workload.shape(part))) for part, weight in weights.items())
    if neighbours is Neighbours.ADD_REMOVE:
        return single
    if len(workload.sizes) <= MOST_ENUMERATED:
        return max(single, _enumerate_patterns(workload, weights))
    return max(single, sum(int(weight * _bound_pair(workload, part)) for part, weight in weights.items()))


def _bound_pair(workload: Workload, part: Attributes) -> Fraction:
    """The largest squared distance between two rows in one residual, over the columns in which they agree."""
    shape = workload.shape(part)
    patterns = ([bool(code >> i & 1) for i in range(len(part))] for code in range(1 << len(part)))
    return 2 * (find_length(shape) - min(find_product(shape, agree) for agree in patterns))


def _enumerate_patterns(workload: Workload, weights: Mapping[Attributes, int]) -> int:
    """The largest D(S) over all S. Doubles find the candidates, and exact sums decide among them."""
    codes = np.arange(1 << len(workload.sizes))
    total = np.zeros(len(codes))
    for part, weight in weights.items():
        product: Floats = np.ones(len(codes))
        for column in part:
            same, other = (float(find_factor(workload.sizes[column], agree=agree)) for agree in (True, False))
            product = product * np.where(codes >> column & 1, same, other)
        total += 2 * (float(find_length(workload.shape(part))) - product) * float(weight)
    near = codes[total >= total.max() * (1 - 1e-9)]
    found = max(_sum_pattern(workload, weights, int(code)) for code in near[:_MOST_SUMMED])
    if len(near) <= _MOST_SUMMED:
        return found
    return math.ceil(found * (1 + Fraction(1, 10**8)))  # others are at most as much larger as doubles are wrong


_MOST_SUMMED = 64


def _sum_pattern(workload: Workload, weights: Mapping[Attributes, int], code: int) -> int:
    total = 0
    for part, weight in weights.items():
        shape, agree = workload.shape(part), [bool(code >> column & 1) for column in part]
        total += int(2 * weight * (find_length(shape) - find_product(shape, agree)))
    return total
