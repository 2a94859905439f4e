"""Which of a unit's rows and values are taken, for many pairs of a unit and a group at once, in NumPy.

Rows are sorted by pair: pair i has ``rows[i]`` of them from ``starts[i]`` on, of which ``allowed[i]`` may be taken. A
block has at most 2^24 rows, so products of ranks stay far below 2^63.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from discreet.exact import Integers

Mask: TypeAlias = npt.NDArray[np.bool_]


def sort_within(cells: Integers, missing: Mask, rows: Integers, ends: tuple[int, int]) -> tuple[Integers, Mask]:
    """The cells of each pair in ascending order, those that are missing last."""
    first, last = ends
    width = (last - first + 1).bit_length()
    pair = np.repeat(np.arange(rows.size), rows)
    if rows.size.bit_length() + width > 63:
        order = np.lexsort((cells, missing, pair))
        return cells[order], missing[order]
    field = np.where(missing, last - first + 1, cells - first)
    keys = np.sort((pair << width) | field) & ((1 << width) - 1)
    absent = keys > last - first
    return np.where(absent, 0, keys + first), absent


def pick_evenly(missing: Mask, starts: Integers, rows: Integers, allowed: Integers) -> Integers:
    """The positions of the rows that are taken: of n with a value, in their order, as many as allowed, evenly spaced.

    The r-th is taken if ⌊r·allowed/n + 1/2⌋ > ⌊(r − 1)·allowed/n + 1/2⌋. Missing rows come last in their pair.
    """
    counts = rows
    taken = np.repeat(allowed > 0, rows)
    if missing.any():
        counts = rows - np.add.reduceat(missing.astype(np.int64), starts)
        taken &= ~missing
    over = np.flatnonzero((counts > allowed) & (allowed > 0))
    if over.size:
        n, most = (np.repeat(part[over], counts[over]) for part in (counts, allowed))
        where, rank = _find_members(starts[over], counts[over])
        before = (2 * rank * most + n) // (2 * n)
        after = (2 * (rank + 1) * most + n) // (2 * n)
        taken[where] = after > before
    return np.flatnonzero(taken)


def pick_first_values(
    values: Integers, order: Integers, starts: Integers, rows: Integers, allowed: Integers
) -> Integers:
    """The positions of values that are taken: of each pair's distinct ones the first in their order, ties by value.

    A value may be taken at several positions where no choice is needed.
    """
    taken = np.repeat(allowed > 0, rows) & (order >= 0)
    over = np.flatnonzero((rows > allowed) & (allowed > 0))
    if over.size:
        where, _ = _find_members(starts[over], rows[over])
        pair = np.repeat(np.arange(over.size), rows[over])[taken[where]]
        where = where[taken[where]]
        taken[where] = False
        ranked = np.lexsort((values[where], order[where], pair))
        where, pair = where[ranked], pair[ranked]
        value = values[where]
        new = np.ones(where.size, dtype=np.bool_)
        new[1:] = (value[1:] != value[:-1]) | (pair[1:] != pair[:-1])
        where, pair = where[new], pair[new]
        place = np.arange(where.size) - np.searchsorted(pair, pair)
        taken[where[place < allowed[over][pair]]] = True
    return np.flatnonzero(taken)


def _find_members(starts: Integers, rows: Integers) -> tuple[Integers, Integers]:
    """The positions of the rows of some pairs, and the number of each within its pair, from 0."""
    ends = np.cumsum(rows)
    number = np.arange(ends[-1] if ends.size else 0) - np.repeat(ends - rows, rows)
    return np.repeat(starts, rows) + number, number
