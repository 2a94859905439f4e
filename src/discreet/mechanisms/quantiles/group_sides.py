"""Several quantiles of many small groups at once: finds the place of every row, and goes level by level in all groups.

The law is that of ``lazy_rows``, which is for groups with many rows. Groups that are drawn together differ only in
their rows and in the ends of their sides, so one call of numpy draws them all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from discreet.entropy import EntropySource
from discreet.exact import Integers
from discreet.late_dataclass import dataclass
from discreet.mechanisms.quantiles.ranks import CellCounts, draw_all, runs_of_groups


@dataclass(frozen=True, slots=True, eq=False)
class GroupSides:
    """One side of each group: its rows, sorted by group and place, the group of each row, and the ends of the sides."""

    rows: Integers
    number: Integers
    low: Integers
    high: Integers


def expand_rows(groups: Sequence[CellCounts], bits: int, low: int, high: int) -> GroupSides:
    """All rows of all groups, each at its place among the 2^bits of its cell: ⌊k/2⌋ of k rows in each lower half."""
    counts = np.concatenate([counts for _, counts in groups])
    places = np.repeat(np.concatenate([cells for cells, _ in groups]), counts)
    number = np.repeat(np.arange(len(groups)), [int(counts.sum()) for _, counts in groups])
    rows = np.repeat(counts, counts)
    rank = np.arange(rows.size) - np.repeat(np.cumsum(counts) - counts, counts)  # among the rows of the same part
    for _ in range(bits):
        lower = rows // 2
        above = rank >= lower
        places = 2 * places + above
        rank, rows = np.where(above, rank - lower, rank), np.where(above, rows - lower, lower)
    ends = np.ones(len(groups), dtype=np.int64)
    return GroupSides(places, number, low * ends, high * ends)  # rows ascend within each cell, and so do cells


def draw_quantiles_of_groups(
    sides: GroupSides, shares: list[Fraction], factor: Callable[[Fraction], Fraction], source: EntropySource
) -> list[Integers]:
    """For each of ``shares`` the places in all groups: the middle share first, then those of the sides it leaves."""
    if not shares:
        return []
    middle = len(shares) // 2
    q = shares[middle]
    rows, number, groups = sides.rows, sides.number, len(sides.low)
    new = np.ones(rows.size, dtype=np.bool_)
    new[1:] = (rows[1:] != rows[:-1]) | (number[1:] != number[:-1])
    first = np.flatnonzero(new)
    counts = np.diff(np.append(first, rows.size))
    sizes = np.bincount(number[first], minlength=groups)
    runs = runs_of_groups(rows[first], counts, sizes, q, low=sides.low, high=sides.high)
    found = draw_all(runs, factor(q), source)
    under, over = rows < found[number], rows > found[number]
    below = GroupSides(rows[under], number[under], sides.low, found)
    above = GroupSides(rows[over], number[over], found, sides.high)
    return [
        *draw_quantiles_of_groups(below, [s / q for s in shares[:middle]], factor, source),
        found,
        *draw_quantiles_of_groups(above, [(s - q) / (1 - q) for s in shares[middle + 1 :]], factor, source),
    ]
