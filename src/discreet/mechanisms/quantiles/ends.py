"""The ends of an interval around a chosen quantile: on each side one more choice, among a few cells around it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np

from discreet import parameters
from discreet.entropy import SYSTEM, EntropySource
from discreet.errors import ParameterError
from discreet.exact import Integers, Interval
from discreet.late_dataclass import dataclass
from discreet.mechanisms.exponential import utility_loss
from discreet.mechanisms.mechanism import settle
from discreet.mechanisms.quantiles.cells import CellMechanism, read_in_place
from discreet.mechanisms.quantiles.column_quantiles import read_q, read_qs
from discreet.mechanisms.quantiles.ranks import CellCounts, rank_errors
from discreet.mechanisms.quantiles.segments import Segments, draw_each
from discreet.mechanisms.scores import exp_minus, sum_intervals
from discreet.parameters import Number


@dataclass(frozen=True, kw_only=True, repr=False)
class CellEnds(CellMechanism):
    """For each group and each of ``qs`` an interval around a released estimate m that holds the quantile.

    The low end: edges m − d with d = 0, 1, 2, 3, 4, 6, 8, 12, … down to ``first`` cut the cells into bins: the cells
    from m on, and one bin between each two edges. One bin is chosen for the rank q·n − r, and its lower edge is shown.
    The error of a bin is max(0, below − (q·n − r), above − ((1 − q)·n + r)), where below and above count rows outside
    of the bin; for the bin that begins at ``first`` it is the last of the three, or 0. The high end is the same with
    the order of the cells turned around, and 1 − q.

    Privacy: for all groups together, what ``CellMechanism`` states, given any estimates that were released before; the
    estimates have a price of their own. Why: the bins follow from m and public facts, and r is a public constant, so
    neighbours have the same candidates. A row that comes or goes moves n, and with it each part of an error, by at
    most max(q, 1 − q), as in ``CellQuantiles``: n is private, and it is part of the score. Each quantile has two ends
    and a unit can influence all of them, so ``event`` counts two choices for each quantile and group. Nothing depends
    on whole rows: rows may be counted in parts, if ``max_rows`` is. Reference: Smith 2011 for the choice by ranks;
    docs/proofs/quantile-ends.md has the steps.

    Coverage: the interval holds a given q-quantile (at most q of the rows below it, at most 1 − q above) with
    probability 1 − ``beta`` or more, for any rows and any law of m. Why: ends lie on their own sides of m, so only one
    can be wrong. A low end above the quantile has at least q·n rows below its bin, so an error of r or more. Some bin
    has the error 0: the one with rank q·n − r, or the first if there is no such rank. So of J + 1 bins at most J are
    wrong, and r is so large that they have together at most beta of the weight.

    >>> ends = CellEnds(qs=[0.5], first=0, last=100, epsilon=2000)
    >>> ends.release([10, 20, 30], [50, 20, 60], (20,))
    (20, 20)
    """

    qs: Sequence[Number]
    in_place: bool = False
    beta: Number = Fraction(1, 20)

    def __post_init__(self) -> None:
        qs, beta = read_qs(self.qs), parameters.read_probability(self.beta, "beta")
        settle(self, qs=qs, beta=beta, in_place=read_in_place(self.in_place))
        CellMechanism.__post_init__(self)

    @property
    def rounds(self) -> int:
        """How many choices one unit can influence in one group: two for each quantile."""
        return 2 * len(self.qs)

    def factor(self, q: Number) -> Fraction:
        """The multiple of the rank error in the exponent. The two ends of a quantile have the same."""
        return self.find_rank_factor(read_q(q), in_place=self.in_place)

    @cached_property
    def distances(self) -> Integers:
        """How far from an estimate the edges of bins can be: 1, 2, 3, 4, 6, 8, 12, … within the cells."""
        powers = (1 << k for k in range(self.size.bit_length()))
        steps = (step for power in powers for step in (power, power + power // 2))
        return np.array(sorted({step for step in steps if step < self.size}), dtype=np.int64)

    def reach(self, q: Number) -> int:
        """r: how many rows (or parts of rows) beyond the quantile each end aims at."""
        beta = parameters.read_probability(self.beta, "beta")
        return math.ceil(utility_loss(self.factor(q), beta=beta, candidates=len(self.distances) + 2))

    def error(self, beta: Number, of: int = 1) -> float:
        """So many rows lie between the quantile and an end, or its bin; of all ends of ``of`` groups, but for beta."""
        share = parameters.read_probability(beta, "beta") / (parameters.read_whole(of, "of") * self.rounds)
        bins = len(self.distances) + 2
        return max(self.reach(q) + utility_loss(self.factor(q), beta=share, candidates=bins) for q in self.qs)

    def release(
        self, cells: Integers, counts: Integers, estimates: Sequence[int], *, source: EntropySource = SYSTEM
    ) -> tuple[int, ...]:
        """The ends for one group: low and high for each of ``qs``, around the estimates that were released."""
        return self.release_all([(cells, counts)], [estimates], source=source)[0]

    def release_all(
        self,
        histograms: Sequence[CellCounts],
        estimates: Sequence[Sequence[int]],
        *,
        source: EntropySource = SYSTEM,
    ) -> list[tuple[int, ...]]:
        """For each group low and high for each of ``qs``. ``event`` covers one call for all groups."""
        read = self._read(histograms)
        if len(read) != len(estimates):
            raise ParameterError("estimates", "must be one list for each group", "Give those that were released.")
        sides = [list(self._list_sides(group, around)) for group, around in zip(read, estimates)]
        shown = [np.empty(self.rounds, dtype=np.int64) for _ in read]
        for place in range(self.rounds):
            bins = [side[place] for side in sides]
            for i, end in enumerate(_draw_ends(bins, self.factor(self.qs[place // 2]), source)):
                shown[i][place] = end
        return [tuple(ends.tolist()) for ends in shown]

    def probability(self, output: Sequence[int], given: tuple[CellCounts, Sequence[int]]) -> Interval:
        """The probability of these ends in a group with this histogram and these estimates, to about 150 bits."""
        group, around = given
        found = Interval.of(1)
        for place, bins in enumerate(self._list_sides(self._check_histogram(*group), around)):
            rates = [exp_minus(self.factor(self.qs[place // 2]) * Fraction(int(e), bins.scale)) for e in bins.errors]
            own = [rate for edge, rate in zip(bins.edges.tolist(), rates) if edge == output[place]]
            found = found * (sum_intervals(own) / sum_intervals(rates)) if own else Interval.of(0)
        return found

    def _list_sides(self, group: CellCounts, estimates: Sequence[int]) -> Iterator[_Bins]:
        """The bins of the low end and those of the high end, for each quantile."""
        if len(estimates) != len(self.qs):
            raise ParameterError("estimates", "must be one for each quantile", "Give those that were released.")
        cells, counts = group
        turned = -cells[::-1], counts[::-1]
        for q, estimate in zip(self.qs, estimates):
            share, far = read_q(q), self.reach(q)
            middle = parameters.read_whole(estimate, "estimates", least=self.first, most=self.last)
            yield _make_bins(group, middle, self.first, self.distances, q=share, far=far)
            high = _make_bins(turned, -middle, -self.last, self.distances, q=1 - share, far=far)
            yield _Bins(-high.edges, high.errors, high.scale)


@dataclass(frozen=True, slots=True, eq=False)
class _Bins:
    """The bins of one end: the edge that each of them shows, and its rank error times q's denominator."""

    edges: Integers
    errors: Integers
    scale: int


def _make_bins(group: CellCounts, middle: int, first: int, distances: Integers, *, q: Fraction, far: int) -> _Bins:
    """The bins of a low end, from the estimate down to the first cell, for the rank q·n − far."""
    cells, counts = group
    edges = np.concatenate([[middle], middle - distances[distances < middle - first], [first] * (middle > first)])
    edges = edges.astype(np.int64)
    seen = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    below = seen[np.searchsorted(cells, edges, side="left")]
    rows = np.full_like(below, int(seen[-1]))
    above = rows - np.concatenate([seen[-1:], below[:-1]])
    if far + int(seen[-1]) >= (1 << 62) // q.denominator:
        below, above, rows = (part.astype(object) for part in (below, above, rows))
    less = below + far
    less[-1] = 0  # nothing is below the first cell, so this bin holds every rank that is too small
    return _Bins(edges, rank_errors(less, above - far, rows, q), q.denominator)


def _draw_ends(bins: Sequence[_Bins], factor: Fraction, source: EntropySource) -> list[int]:
    """One edge for each group, with probability ∝ exp(−factor·error) of its bin, exactly."""
    if not bins:
        return []
    offsets = np.concatenate([[0], np.cumsum([len(each.edges) for each in bins])]).astype(np.int64)
    errors = np.concatenate([each.errors for each in bins])
    found, _ = draw_each(
        Segments(np.ones(len(errors), dtype=np.int64), errors, offsets), factor / bins[0].scale, source
    )
    edges: list[int] = np.concatenate([each.edges for each in bins])[found].tolist()
    return edges
