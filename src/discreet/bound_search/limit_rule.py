"""The rule that turns noisy counts of units, by how much each contributes, into a limit on what one unit contributes.

Units are counted in cells: every power of two is cut into its lower and its upper half (1, 2, 3, 4 to 5, 6 to 7, 8 to
11, 12 to 15, ...). A limit K loses Σ (n − K) over the units with n > K, spread over the groups that are asked for, and
a later question has noise in proportion to K. The limit where the square root of both squares is least is taken.
What is lost follows from the noisy counts: as counted up to the largest power of two that is seen, and as
``far_end.Tail`` guesses beyond it. A few units with very much are not seen; the limit leaves them out, and that is what
protects them.

Privacy: none is spent here. The noisy counts have been released, the law of their noise and the cells are public.
Reference: Amin, Kulesza, Munoz and Vassilvitskii 2019, "Bounding User Contributions: A Bias-Variance Trade-off in
Differential Privacy".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from discreet.bound_search.bound_rule import DOUBTS, threshold
from discreet.bound_search.far_end import LATER, STEPS, Tail, see_tails
from discreet.errors import InternalError
from discreet.late_dataclass import dataclass
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.noise_sums import bound_sum
from discreet.parameters import Number, read_probability
from discreet.release import Noise

# A unit with more rows or groups than this counts as one with this many.
MAX_COUNT = 1 << 16
CELLS = (1, *(start for e in range(1, 16) for start in (1 << e, 3 << (e - 1))), MAX_COUNT)
"""The least number in each cell."""
# Many units have the same number of rows, or nearly so: where so many standard deviations of noise are missing, none
# has more. (Columns of numbers have thinner tails, of which that would leave out too much.)
MISSED = 10
# A limit that noise alone shows more often than this is worse than none: it could be a thousand times too large.
LIMIT_DOUBTS = DOUBTS[:-1]


@dataclass(frozen=True, slots=True)
class CellNoise:
    """The noise of cells, in parts of ``parts`` to the whole. A power of two has two cells, so two of them add up."""

    noise: Noise
    parts: int = 1

    @property
    def standard_error(self) -> float:
        """The standard deviation of the noise of two cells together."""
        return math.sqrt(2) * self.noise.standard_error / self.parts

    def noise_bound(self, beta: Number = 0.05, of: int = 1) -> float:
        """The size that none of ``of`` such sums exceeds, with probability 1 − ``beta``."""
        return bound_sum([(1, self.noise), (1, self.noise)], read_probability(beta, "beta") / of) / self.parts

    def find_later_error(self, searches: int) -> float:
        """The standard deviation of a later question's noise, of one unit of which one counts.

        The search has ``searches`` groupings, which share its price equally. Laplace noise falls in proportion to the
        price, Gaussian noise as its root.
        """
        more = LATER * searches
        return self.noise.standard_error / self.parts / (more if isinstance(self.noise, Laplace) else math.sqrt(more))


@dataclass(frozen=True, slots=True)
class NoisyLimit:
    """A limit, the noisy count of units above which a power of two is seen, and how often noise alone is seen."""

    limit: int
    above: int
    doubt: Fraction


def read_limit(counts: Mapping[int, int], noise: CellNoise, *, later: float, groups: int = 1) -> NoisyLimit | None:
    """The limit with the smallest expected error; None where no power of two is sure.

    ``counts`` are noisy numbers of units by the least number of their cell, ``later`` is the noise of a later question
    about one of ``groups`` groups.

    >>> noise = CellNoise(Laplace(sensitivity=1, epsilon=1))
    >>> counts = dict.fromkeys(CELLS, 0) | {3: 950, 4: 20, 6: 2}
    >>> read_limit(counts, noise, later=1)
    NoisyLimit(limit=6, above=46, doubt=Fraction(1, 1000000000))
    """
    octaves = _add_octaves(counts)
    for doubt in LIMIT_DOUBTS:
        above = threshold(noise, len(octaves), doubt)
        sure = [e for e, count in octaves.items() if count > above]
        if sure:
            tail, _ = see_tails(octaves, {}, (max(sure), None), noise)
            return NoisyLimit(_choose_limit(tail, counts, noise, later * groups), above, doubt)
    return None


def threshold_of(noise: CellNoise) -> int:
    """The noisy count of units above which a power of two is seen at all."""
    return threshold(noise, len({_exponent(start) for start in CELLS}), LIMIT_DOUBTS[-1])


def _add_octaves(counts: Mapping[int, int]) -> dict[int, int]:
    """The counts of powers of two, by exponent."""
    octaves: dict[int, int] = {}
    for start, count in counts.items():
        octaves[_exponent(start)] = octaves.get(_exponent(start), 0) + count
    return octaves


def _choose_limit(tail: Tail, counts: Mapping[int, int], noise: CellNoise, weight: float) -> int:
    """The limit whose loss and ``weight`` times whose size have the least root of squares."""
    if tail.edge is None:
        raise InternalError("A limit of a tail without an edge.")
    beyond = tail.estimate_beyond(noise, MISSED)
    cells = [(start, _end_of(start)) for start in CELLS if _exponent(start) <= tail.edge + STEPS]
    units = [
        float(counts[start]) if (e := _exponent(start)) <= tail.edge else beyond.get(e, 0.0) / _count_cells(e)
        for start, _ in cells
    ]

    def expect_error(limit: int) -> float:
        lost = sum(number * find_excess(*cell, limit) for number, cell in zip(units, cells))
        return math.hypot(max(0.0, lost), limit * weight)

    return min(sorted({end for cell in cells for end in cell}), key=expect_error)


def find_excess(first: int, last: int, limit: int) -> float:
    """How far whole numbers from ``first`` to ``last`` are beyond a limit, on average, where all are as frequent.

    >>> find_excess(4, 5, 3), find_excess(4, 5, 4), find_excess(4, 5, 5)
    (1.5, 0.5, 0.0)
    """
    if limit <= first:
        return (first + last) / 2 - limit
    over = max(0, last - limit)
    return over * (over + 1) / 2 / (last - first + 1)


def _exponent(start: int) -> int:
    return start.bit_length() - 1


def _count_cells(exponent: int) -> int:
    return sum(_exponent(start) == exponent for start in CELLS)


def _end_of(start: int) -> int:
    """The greatest number in a cell."""
    position = CELLS.index(start)
    return MAX_COUNT if start == MAX_COUNT else CELLS[position + 1] - 1
