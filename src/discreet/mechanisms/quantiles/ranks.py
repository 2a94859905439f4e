"""Ranks on a grid: computes how good a q-quantile each grid value is, and draws a good one exactly.

Grid values between two data points are equally good, so they are handled as runs: at most 2m + 1 of them for m
distinct values, however fine the grid is and however many rows there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from discreet.entropy import EntropySource
from discreet.exact import Integers, Interval
from discreet.late_dataclass import dataclass
from discreet.mechanisms.quantiles.segments import Segments, draw_each
from discreet.mechanisms.scores import exp_minus, sum_intervals

CellCounts: TypeAlias = tuple[Integers, Integers]
"""Cells in ascending order, and how many rows each holds (at least one)."""


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Runs of grid values: where each starts, how long it is, and its rank error times q's denominator.

    Those of several groups follow one another, from one of ``offsets`` to the next.
    """

    starts: Integers
    lengths: Integers
    errors: Integers
    scale: int
    offsets: Integers

    def rank_error(self, run: int) -> Fraction:
        """max(0, below − q·n, above − (1 − q)·n): zero exactly for the q-quantiles."""
        return Fraction(int(self.errors[run]), self.scale)


def runs_of(steps: Integers, q: Fraction, low: int, high: int) -> Runs:
    """All grid values from low to high as runs, for data that lies within them."""
    return runs_of_counts([np.unique(steps, return_counts=True)], q, low, high)


def runs_of_counts(groups: Sequence[CellCounts], q: Fraction, low: int, high: int) -> Runs:
    """The runs of data that is counted by value, in several groups at once."""
    sizes = np.array([len(cells) for cells, _ in groups], dtype=np.int64)
    values = np.concatenate([cells for cells, _ in groups])
    counts = np.concatenate([counts for _, counts in groups])
    return runs_of_groups(values, counts, sizes, q, low=low, high=high)


def runs_of_groups(
    values: Integers, counts: Integers, sizes: Integers, q: Fraction, *, low: Integers | int, high: Integers | int
) -> Runs:
    """The runs of groups that follow one another, with ``sizes`` distinct values each, and perhaps a range for each.

    In all of them together value i lies between run 2i + g, the gap before it, and run 2i + g + 2, where g is the
    number of its group.
    """
    number = np.repeat(np.arange(len(sizes)), sizes)
    places = 2 * np.arange(values.size) + number + 1
    bounds = np.concatenate([[0], np.cumsum(2 * sizes + 1)])
    seen = np.concatenate([[0], np.cumsum(counts)])
    edges = seen[np.concatenate([[0], np.cumsum(sizes)])]  # rows before each group
    below = seen[:-1] - edges[:-1][number]

    starts = np.empty(int(bounds[-1]), dtype=np.int64)
    less = np.zeros_like(starts)
    starts[bounds[:-1]], starts[places], starts[places + 1] = low, values, values + 1
    less[places], less[places + 1] = below, below + counts
    ends = np.append(starts[1:], 0)
    ends[bounds[1:] - 1] = high + 1
    rows = np.repeat(np.diff(edges), 2 * sizes + 1)
    more = rows - less
    more[places] -= counts

    errors = rank_errors(less, more, rows, q)
    some = ends > starts
    offsets = np.concatenate([[0], np.cumsum(np.add.reduceat(some, bounds[:-1], dtype=np.int64))])
    return Runs(starts[some], (ends - starts)[some], errors[some], q.denominator, offsets)


def rank_errors(less: Integers, more: Integers, rows: Integers, q: Fraction) -> Integers:
    """The denominator of q times max(0, less − q·rows, more − (1 − q)·rows); Python ints where int64 is short."""
    a, b = q.numerator, q.denominator
    parts: list[npt.NDArray[Any]] = [less, more, rows]
    if int(rows.max()) * b >= 1 << 62:
        parts = [part.astype(object) for part in parts]
    below, above, n = parts
    errors: Integers = np.maximum(np.maximum(b * below - a * n, b * above - (b - a) * n), 0)
    return errors


def probability(runs: Runs, factor: Fraction, value: int) -> Interval:
    """The probability that ``draw`` gives this grid value, certified to about 150 bits."""
    # e^(−x) relative to the best run, so that the sum is at least one.
    least = int(runs.errors.min())
    rates = [exp_minus(factor * Fraction(int(error) - least, runs.scale)) for error in runs.errors]
    whole = sum_intervals([Interval.of(size) * one for size, one in zip(runs.lengths.tolist(), rates)])
    return rates[int(np.searchsorted(runs.starts, value, side="right")) - 1] / whole


def draw(runs: Runs, factor: Fraction, source: EntropySource) -> int:
    """A grid value v of one group, with probability ∝ exp(−factor·rank error of v), exactly."""
    return int(draw_all(runs, factor, source)[0])


def draw_all(runs: Runs, factor: Fraction, source: EntropySource) -> Integers:
    """One value for each group, drawn as in ``draw``."""
    found, places = draw_each(Segments(runs.lengths, runs.errors, runs.offsets), factor / runs.scale, source)
    return runs.starts[found] + places
