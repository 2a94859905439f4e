"""Ranks on a grid: how good a q-quantile each grid value is, and an exact draw of a good one.

Grid values between two data points are equally good, so they are handled as runs: at most 2n + 1 of them for n rows,
however fine the grid is.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.entropy import Source
from discreet.exact import Integers, ceil_div, exp_minus_bounds
from discreet.samplers import bernoulli_real, uniform_below
from discreet.samplers.lazy import Bounds

# The float weights are raised by this part, far more than they can be off (2^-44 where they matter).
_RAISE = 1 + 2.0**-36
_TOTAL_BITS = 61


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Runs of grid values: where each starts, how long it is, and its rank error times q's denominator."""

    starts: Integers
    lengths: Integers
    errors: Integers
    scale: int

    def rank_error(self, run: int) -> Fraction:
        """max(0, below − q·n, above − (1 − q)·n): zero exactly for the q-quantiles."""
        return Fraction(int(self.errors[run]), self.scale)


def runs_of(steps: Integers, q: Fraction, low: int, high: int) -> Runs:
    """All grid values from low to high as runs, for data that lies within them."""
    values, counts = np.unique(steps, return_counts=True)
    below = np.concatenate([[0], np.cumsum(counts)])  # rows below values[i]
    n = int(below[-1])
    starts = np.empty(2 * values.size + 1, dtype=np.int64)
    starts[0], starts[1::2], starts[2::2] = low, values, values + 1
    ends = np.append(starts[1:], high + 1)
    less, more = np.empty_like(starts), np.empty_like(starts)
    less[0::2], more[0::2] = below, n - below
    less[1::2], more[1::2] = below[:-1], n - below[1:]
    a, b = q.numerator, q.denominator
    errors = np.maximum(np.maximum(b * less - a * n, b * more - (b - a) * n), 0)
    some = ends > starts
    return Runs(starts[some], (ends - starts)[some], errors[some], b)


def draw(runs: Runs, factor: Fraction, source: Source) -> int:
    """A grid value v with probability ∝ exp(−factor·rank error of v), exactly.

    Run i has the weight length_i·e^(−x_i). A run is proposed with a whole-number weight W_i ≥ 2^s·length_i·e^(−x_i),
    found in floats and raised, and accepted with 2^s·length_i·e^(−x_i)/W_i, decided exactly; otherwise all starts
    again. So a run comes out in proportion to its weight; the floats decide only how often a proposal is refused.
    Within a run all values are equally likely.
    """
    gaps = (runs.errors - runs.errors.min()).astype(np.float64)
    sizes = runs.lengths.astype(np.float64) * np.exp(-gaps * float(factor / runs.scale)) * _RAISE
    shift = _TOTAL_BITS - int(np.ceil(np.log2(sizes.sum())))
    bids = np.ldexp(sizes, shift).astype(np.int64) + 1
    ends = np.cumsum(bids)
    while True:
        run = int(np.searchsorted(ends, uniform_below(int(ends[-1]), source=source), side="right"))
        if bernoulli_real(_share(runs, run, factor, shift, int(bids[run])), source=source):
            return int(runs.starts[run]) + uniform_below(int(runs.lengths[run]), source=source)


def _share(runs: Runs, run: int, factor: Fraction, shift: int, bid: int) -> Bounds:
    """The bounds of 2^shift·length·e^(−x)/bid."""
    exponent = factor * Fraction(int(runs.errors[run]) - int(runs.errors.min()), runs.scale)
    length = int(runs.lengths[run])
    guard = 128  # length·2^shift/bid is below 2^126, and the enclosure of e^(−x) is 2 wide at most

    def bounds(bits: int) -> tuple[int, int]:
        low, high = exp_minus_bounds(exponent, bits + guard + shift)
        return low * length // (bid << guard), ceil_div(high * length, bid << guard)

    return bounds
