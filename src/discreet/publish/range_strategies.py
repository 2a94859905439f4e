"""How a histogram is measured, so that sums over ranges of its cells are exact: cell by cell, by halves, or by sums.

*Statement.* x are the counts of m cells in order. A strategy measures the whole numbers y = B·x. One row adds a column
of B. All columns have a squared length of at most ``length``, and two of them are at most ``pair_distance`` apart,
squared. So a block y times a whole number w adds w²·length to the squared distance of neighbours under add-remove, and
w²·pair_distance under replace (``allocation``; a unit with K rows moves the block by at most K times as far).

- IDENTITY: y = x. length 1, pair_distance 2.
- HAAR: the total, and for every half of a half its left minus its right side, each times the weight of its level.
  A row is in one difference of each level: length Σ w². Two rows that part at a level agree above it, have opposite
  signs there and are in different differences below: (2·w)² plus twice the squares below.
- TOEPLITZ: y_i = Σ_{j ≤ i} c_{i−j}·x_j with f_j = C(2j, j)/4^j in steps of 1/1024. No entry is negative, so two columns
  are at most twice as far apart, squared, as the first one, which is the longest, is long.

What is wanted of the cells is linear in y, so its variance is that of the noise times a squared length (``read``).
``choose_strategy`` takes the one with the least mean variance over the wanted ranges; public facts decide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from functools import cached_property
from typing import assert_never

import numpy as np

from discreet.exact import Floats, Integers
from discreet.late_dataclass import dataclass
from discreet.publish.chance import PublicChance

_SCALE = 1024
_WIDEST = 1 << 62
# So many ranges, the same ones for everybody, stand for all.
_TRIED = 300


class StrategyKind(StrEnum):
    """The strategies."""

    IDENTITY = "identity"
    HAAR = "haar"
    TOEPLITZ = "toeplitz"


class RangeWorkload(StrEnum):
    """Which sums of cells are wanted."""

    ALL = "all"  # all ranges alike
    SHORT = "short"  # of at most a 32nd of the cells
    DISTRIBUTION = "distribution"  # from the first cell on


@dataclass(frozen=True)
class RangeStrategy:
    """A strategy for so many cells; ``weights`` of HAAR are those of the total and then of the levels, coarse first."""

    kind: StrategyKind
    cells: int
    weights: tuple[int, ...] = ()

    @cached_property
    def levels(self) -> int:
        """How often the cells can be halved."""
        return max(0, (self.cells - 1).bit_length())

    @property
    def size(self) -> int:
        """How many numbers are measured."""
        return 1 << self.levels if self.kind is StrategyKind.HAAR else self.cells

    @cached_property
    def coefficients(self) -> Integers:
        """The first column of TOEPLITZ."""
        found, factor = [], 1.0
        for j in range(self.cells):
            found.append(round(_SCALE * factor))
            factor *= (2 * j + 1) / (2 * j + 2)
        return np.array(found, dtype=np.int64)

    @property
    def length(self) -> int:
        """The largest squared length of what one row adds."""
        match self.kind:
            case StrategyKind.IDENTITY:
                return 1
            case StrategyKind.HAAR:
                return sum(weight * weight for weight in self.weights)
            case StrategyKind.TOEPLITZ:
                return int((self.coefficients.astype(object) ** 2).sum())
            case _:
                assert_never(self.kind)

    @property
    def pair_distance(self) -> int:
        """At least the largest squared distance between what two rows add, and what one row adds."""
        if self.kind is not StrategyKind.HAAR:
            return 2 * self.length
        squares = [weight * weight for weight in self.weights[1:]]
        return max([self.length, *(4 * own + 2 * sum(squares[level + 1 :]) for level, own in enumerate(squares))])

    def encode(self, counts: Integers) -> Integers:
        """B·x, exactly."""
        match self.kind:
            case StrategyKind.IDENTITY:
                return counts
            case StrategyKind.HAAR:
                return self._encode_halves(counts)
            case StrategyKind.TOEPLITZ:
                return self._add_up(counts)
            case _:
                assert_never(self.kind)

    def _add_up(self, counts: Integers) -> Integers:
        """Weighed sums of all cells so far, in 64 bits, or in integers of any size where that might not do."""
        largest = int(np.asarray(np.abs(counts)).max(initial=0)) * self.cells * _SCALE
        exact = counts.astype(np.int64 if largest < _WIDEST else object)
        return np.asarray(np.convolve(exact, self.coefficients.astype(exact.dtype))[: self.cells])

    def _encode_halves(self, counts: Integers) -> Integers:
        sums = np.concatenate([counts.astype(object), np.zeros(self.size - self.cells, dtype=object)])
        parts = []
        for level in range(self.levels, 0, -1):
            left, right = sums[0::2], sums[1::2]
            parts.append((left - right) * self.weights[level])
            sums = left + right
        return np.concatenate([sums * self.weights[0], *reversed(parts)])

    def read(self, wanted: Floats) -> Floats:
        """The numbers g for which Σ wanted·x̂ = Σ g·y: the variance of the sum is Σ g² times that of a y."""
        match self.kind:
            case StrategyKind.IDENTITY:
                return wanted
            case StrategyKind.HAAR:
                return self._read_halves(wanted)
            case StrategyKind.TOEPLITZ:
                inverse = self._inverse
                return np.asarray(np.convolve(wanted[::-1], inverse)[: self.cells][::-1])
            case _:
                assert_never(self.kind)

    def _read_halves(self, wanted: Floats) -> Floats:
        sums = np.concatenate([wanted, np.zeros(self.size - self.cells)])
        parts = []
        for level in range(self.levels, 0, -1):
            left, right = sums[0::2], sums[1::2]
            under = 1 << (self.levels - level + 1)
            parts.append((left - right) / (under * self.weights[level]))
            sums = left + right
        return np.concatenate([sums / (self.size * self.weights[0]), *reversed(parts)])

    @cached_property
    def _inverse(self) -> Floats:
        """The first column of the inverse of TOEPLITZ."""
        values = self.coefficients.astype(np.float64)
        inverse = np.zeros(self.cells)
        inverse[0] = 1 / values[0]
        for t in range(1, self.cells):
            inverse[t] = -(values[1 : t + 1] @ inverse[t - 1 :: -1][:t]) / values[0]
        return inverse

    def decode(self, measured: Floats) -> Floats:
        """The cells without bias, from what was measured."""
        match self.kind:
            case StrategyKind.IDENTITY:
                return measured
            case StrategyKind.HAAR:
                return self._decode_halves(measured)
            case StrategyKind.TOEPLITZ:
                return np.asarray(np.convolve(measured, self._inverse)[: self.cells])
            case _:
                assert_never(self.kind)

    def _decode_halves(self, measured: Floats) -> Floats:
        sums, start = measured[:1] / self.weights[0], 1
        for level in range(1, self.levels + 1):
            differences = measured[start : 2 * start] / self.weights[level]
            sums = np.stack([(sums + differences) / 2, (sums - differences) / 2], axis=1).reshape(-1)
            start *= 2
        return np.asarray(sums[: self.cells])


def list_ranges(cells: int, ranges: RangeWorkload) -> list[Floats]:
    """Some of the wanted sums, as numbers for each cell. Public: the same for everybody."""
    chance = PublicChance(f"ranges {ranges} {cells}".encode())
    longest = max(1, cells // 32) if ranges is RangeWorkload.SHORT else cells
    found = []
    for _ in range(_TRIED):
        length = 1 + chance.below(longest)
        start = 0 if ranges is RangeWorkload.DISTRIBUTION else chance.below(cells - length + 1)
        row = np.zeros(cells)
        row[start : start + length] = 1
        found.append(row)
    return found


def choose_strategy(cells: int, ranges: RangeWorkload) -> RangeStrategy:
    """The strategy with the least mean variance of the wanted sums, at one price under add-remove."""
    wanted = list_ranges(cells, ranges)
    tried = [RangeStrategy(StrategyKind.IDENTITY, cells), RangeStrategy(StrategyKind.TOEPLITZ, cells)]
    tried.append(_weigh_halves(cells, wanted))
    return min(tried, key=lambda strategy: find_mean_variance(strategy, wanted))


def find_mean_variance(strategy: RangeStrategy, wanted: Sequence[Floats]) -> float:
    """The mean variance of sums, where the noise hides one row at μ = 1."""
    return strategy.length * float(np.mean([(strategy.read(row) ** 2).sum() for row in wanted]))


def _weigh_halves(cells: int, wanted: Sequence[Floats]) -> RangeStrategy:
    """HAAR with the weights that suit the sums: Σ E_l/w_l² is least under Σ w_l² = const where w_l² ∝ √E_l."""
    levels = max(0, (cells - 1).bit_length())
    plain = RangeStrategy(StrategyKind.HAAR, cells, (1,) * (levels + 1))
    reads = np.mean([plain.read(row) ** 2 for row in wanted], axis=0)
    ends = [0, *(1 << level for level in range(levels + 1))]
    energies = [float(reads[ends[i] : ends[i + 1]].sum()) for i in range(levels + 1)]
    roots = [math.sqrt(math.sqrt(max(energy, 1e-12))) for energy in energies]
    least = max(max(roots) / 64, min(roots))
    return RangeStrategy(StrategyKind.HAAR, cells, tuple(max(1, round(64 * root / least)) for root in roots))
