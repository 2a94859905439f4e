"""The bounding of ``contributions.py``, steps 3 to 5, in NumPy: for one block of rows that holds whole units.

A row comes as its unit, its *place* (a keyed hash of unit and group in the high bits, the group's code in the low bits)
and one integer for each value that is summed. Sorting by unit and place brings the rows of a pair together and the
pairs of a unit into their secret order, so that every limit is a difference of positions.

All arithmetic is in 64-bit integers that are proven wide enough (``fits``); questions that do not fit go another way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.bounding.contributions import Bounded, Counts, Measure
from discreet.exact import Integers

# Bits of the keyed hash that order a unit's groups; ties fall back to the order of the keys themselves.
HASH_BITS = 24
# Stands for NULL in a column of integers; no step can be as small.
NULL = -(2**63)


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of whole units. ``values`` are the steps of each distinct value, NULL where there is none."""

    units: Integers
    places: Integers
    values: tuple[Integers, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """What a bounded question needs of every block.

    ``sources`` says for each measure which value column it reads, or None. ``group_bits`` is the width of a code.
    """

    bounded: Bounded
    sources: tuple[int | None, ...]
    groups: int
    group_bits: int


def fits(measures: Sequence[Measure], rows: int) -> bool:
    """Whether all sums over so many rows stay below 2^62, so that no 64-bit addition can overflow."""
    largest = max((max(-m.row_low, m.row_high) for m in measures), default=1)
    return largest * max(rows, 1) < 2**62


def bounded_sums(shape: Shape, block: Block) -> Integers:
    """For each measure and group the sum of bounded partials over the units of a block."""
    if not block.units.size:
        return np.zeros((len(shape.sources), shape.groups), dtype=np.int64)
    pairs = _pairs(shape, block)
    allowed, kept = _allowed(shape.bounded, pairs)
    codes = pairs.codes[kept]
    sums = [
        _partials(measure, source, pairs, allowed)[kept]
        for measure, source in zip(shape.bounded.measures, shape.sources)
    ]
    return np.stack([_by_group(codes, partials, shape.groups) for partials in sums])


@dataclass(frozen=True, slots=True)
class _Pairs:
    """One entry for each pair of a unit and a group, a unit's pairs together and in their secret order."""

    codes: Integers
    rows: Integers
    first: Integers  # position of the first pair of the same unit
    starts: Integers
    sorted_values: tuple[Integers, ...]


def _pairs(shape: Shape, block: Block) -> _Pairs:
    units, places = block.units, block.places
    if (units[1:] < units[:-1]).any():  # blocks come ordered; if one does not, it is still bounded right
        by_unit = np.argsort(units, kind="stable")
        units, places = units[by_unit], places[by_unit]
        values = tuple(value[by_unit] for value in block.values)
    else:
        values = block.values
    rank = np.concatenate(([0], np.cumsum(units[1:] != units[:-1])))
    order, starts = _sorted(rank, places, HASH_BITS + shape.group_bits)
    firsts = order[starts]
    pair_rank = rank[firsts]
    changes = np.flatnonzero(np.concatenate(([True], pair_rank[1:] != pair_rank[:-1])))
    return _Pairs(
        codes=places[firsts] & ((1 << shape.group_bits) - 1),
        rows=np.diff(starts, append=units.size),
        first=np.repeat(changes, np.diff(changes, append=starts.size)),
        starts=starts,
        sorted_values=tuple(value[order] for value in values),
    )


def _sorted(rank: Integers, places: Integers, bits: int) -> tuple[Integers, Integers]:
    """The order of rows by unit and place, and where each pair starts in it."""
    if int(rank[-1]).bit_length() + bits <= 63:
        packed = (rank << bits) | places
        order = np.argsort(packed)
        key = packed[order]
        new = key[1:] != key[:-1]
    else:  # too many units and groups for one integer
        order = np.lexsort((places, rank))
        new = (rank[order][1:] != rank[order][:-1]) | (places[order][1:] != places[order][:-1])
    return order, np.flatnonzero(np.concatenate(([True], new)))


def _allowed(bounded: Bounded, pairs: _Pairs) -> tuple[Integers, Integers]:
    """Step 3 and 4: how many rows of each pair are allowed, and the positions of the pairs that are kept."""
    allowed = pairs.rows
    if bounded.max_rows_per_group is not None:
        allowed = np.minimum(allowed, bounded.max_rows_per_group)
    place = np.arange(allowed.size) - pairs.first
    if bounded.max_groups is not None:
        allowed = np.where(place < bounded.max_groups, allowed, 0)
    if bounded.max_rows is not None:
        before = np.cumsum(allowed) - allowed
        used = before - before[pairs.first]
        allowed = np.clip(bounded.max_rows - used, 0, allowed)
    return allowed, np.flatnonzero(allowed > 0)


def _partials(measure: Measure, source: int | None, pairs: _Pairs, allowed: Integers) -> Integers:
    match measure.counts:
        case Counts.UNITS:
            return np.ones(allowed.size, dtype=np.int64)
        case Counts.ROWS:
            return allowed
    values = pairs.sorted_values[source or 0]
    missing = values == NULL
    counts = pairs.rows
    if missing.any():
        counts = counts - np.add.reduceat(missing.astype(np.int64), pairs.starts)
        values = np.where(missing, 0, values)
    if measure.counts is Counts.VALUES:
        return np.minimum(counts, allowed)
    if measure.counts is Counts.SQUARES:
        values = values * values
    return _scaled(np.add.reduceat(values, pairs.starts), counts, allowed)


def _scaled(sums: Integers, counts: Integers, allowed: Integers) -> Integers:
    """sum·allowed/count towards zero, where more rows count than are allowed; by parts, so that nothing overflows."""
    over = np.flatnonzero(counts > allowed)
    if not over.size:
        return sums
    size, count, keep = np.abs(sums[over]), counts[over], allowed[over]
    whole, rest = np.divmod(size, count)
    scaled = whole * keep + rest * keep // count
    result = sums.copy()
    result[over] = np.where(sums[over] < 0, -scaled, scaled)
    return result


def _by_group(codes: Integers, partials: Integers, groups: int) -> Integers:
    """Exact sums by group. Doubles add halves of 31 bits, whose sums stay below 2^53 for up to 2^22 pairs."""
    total = np.zeros(groups, dtype=np.int64)
    for start in range(0, codes.size, 1 << 22):
        part, where = partials[start : start + (1 << 22)], codes[start : start + (1 << 22)]
        low = np.bincount(where, weights=part & (2**31 - 1), minlength=groups)
        high = np.bincount(where, weights=part >> 31, minlength=groups)
        total += low.astype(np.int64) + (high.astype(np.int64) << 31)
    return total
