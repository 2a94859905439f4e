"""One draw in each of many groups at once: a group consists of runs of equally good values.

Run i has ``lengths[i]`` values, each with the weight e^(−factor·errors[i]). All groups are drawn together, so that ten
thousand small ones take milliseconds.

*How.* Run i is proposed with a whole-number weight W_i ≥ 2^s·length_i·e^(−x_i), found in floats and raised, and
accepted with 2^s·length_i·e^(−x_i)/W_i, decided exactly; otherwise the group starts again. So a run comes out in
proportion to its weight; the floats decide only how often a proposal is refused.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from discreet.entropy import EntropySource, Words
from discreet.exact import Integers, ceil_div, exp_minus_bounds
from discreet.late_dataclass import dataclass
from discreet.samplers import lazy
from discreet.samplers.lazy import RealBounds

# Float weights are multiplied by RAISE. A float comparison counts only beyond GUARD. Both are far larger than the error
# of the weights, which is below 2^-41 of themselves (exponents up to 745, each within 2^-51 of itself).
RAISE = 1 + 2.0**-36
GUARD = 2.0**-36
# A group's float weights are scaled to a sum of so many bits, which leaves room for raising them.
SUM_BITS = 59


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """The runs of all groups, one group after the other: those of group g from ``offsets[g]`` to ``offsets[g + 1]``.

    Every group has a run, every run a value; errors are whole numbers (int64, or Python ints where that is too short).
    """

    lengths: Integers
    errors: Integers
    offsets: Integers

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return len(self.offsets) - 1


def draw_each(segments: Segments, factor: Fraction, source: EntropySource) -> tuple[Integers, Integers]:
    """For each group the run that is drawn (its place among all runs), and which of its values, from 0 on."""
    found = np.zeros(segments.groups, dtype=np.int64)
    if not segments.groups:
        return found, found.copy()
    starts, stops = segments.offsets[:-1], segments.offsets[1:]
    least = np.minimum.reduceat(segments.errors, starts)
    gaps = segments.errors - np.repeat(least, stops - starts)
    sizes = segments.lengths.astype(np.float64) * np.exp(-gaps.astype(np.float64) * float(factor))
    shifts = SUM_BITS - np.frexp(np.add.reduceat(sizes, starts))[1].astype(np.int64)
    scaled = np.ldexp(sizes, np.repeat(shifts, stops - starts))
    bids = (scaled * RAISE).astype(np.uint64) + np.uint64(1)
    ends = np.cumsum(bids)  # wraps around 2^64; differences within a group are right all the same
    ends -= np.repeat(ends[starts] - bids[starts], stops - starts)
    left = np.arange(segments.groups)
    while left.size:
        picks = draw_below_each(ends[stops[left] - 1], source)
        runs = _find_first_above(ends, picks, starts[left], stops[left] - 1)
        shares = scaled[runs] / bids[runs].astype(np.float64)
        words = source.words(left.size)
        gap = words.astype(np.float64) * 2.0**-64 - shares
        taken = gap < 0
        for i in np.flatnonzero(np.abs(gap) <= GUARD).tolist():
            run, group = int(runs[i]), int(left[i])
            exact = share_bounds(
                factor * int(gaps[run]), int(segments.lengths[run]), int(shifts[group]), int(bids[run])
            )
            taken[i] = lazy.is_below(int(words[i]), 64, exact, source)
        found[left[taken]] = runs[taken]
        left = left[~taken]
    return found, draw_below_each(segments.lengths[found].astype(np.uint64), source).view(np.int64)


def draw_below_each(limits: Words, source: EntropySource) -> Words:
    """For each n ≥ 1 of ``limits`` a whole number below n, uniformly: each owns ⌊(2^64 − 1)/n⌋ words."""
    owned = np.uint64(2**64 - 1) // limits
    values = source.words(limits.size) // owned
    over = np.flatnonzero(values >= limits)
    if over.size:
        values[over] = draw_below_each(limits[over], source)
    return values


def _find_first_above(ends: Words, picks: Words, first: Integers, last: Integers) -> Integers:
    """For each pick the first run between ``first`` and ``last`` whose end is above it, by halving all ranges."""
    low, high = first.copy(), last.copy()
    while True:
        open_ = low < high
        if not open_.any():
            return low
        middle = (low + high) >> 1
        above: npt.NDArray[np.bool_] = ends[middle] > picks
        high = np.where(open_ & above, middle, high)
        low = np.where(open_ & ~above, middle + 1, low)


def share_bounds(exponent: Fraction, length: int, shift: int, bid: int) -> RealBounds:
    """The bounds of 2^shift·length·e^(−exponent)/bid, a chance."""
    guard = 64  # length/bid is below 2^63, and the enclosure of e^(−x) is 2 wide at most

    def bounds(bits: int) -> tuple[int, int]:
        low, high = exp_minus_bounds(exponent, bits + shift + guard)
        return low * length // (bid << guard), ceil_div(high * length, bid << guard)

    return bounds
