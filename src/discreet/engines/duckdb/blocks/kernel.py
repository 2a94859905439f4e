"""The bounding of ``contributions.py``, steps 3 to 5, in NumPy: for one block of rows that holds whole units.

A row comes as its unit and one integer, its *place*: a keyed hash of unit and group in the high bits, then the group's
code, then the row's values where they fit. Sorting by unit and place brings the rows of a pair together and the pairs
of a unit into their secret order, so that every limit is a difference of positions. Values that do not fit beside the
place come as columns of their own; that costs an indirect sort, which is slower. Cells of a spread are values like
others; the first field is sorted within pairs already, so the first spread costs no sort of its own.

All arithmetic is in 64-bit integers that are proven wide enough (``fits``); questions that do not fit go another way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.engines.duckdb.blocks import samples
from discreet.errors import InternalError
from discreet.exact import Integers

# Bits of a packed key that are left for the unit's number within its block: the fewest that are worth it.
RANK_BITS = 12
# Rows that are sorted at once: so few that all of their columns stay in the cache of a core.
PART_ROWS = 1 << 16
# Stands for NULL in a column of its own; no step can be as small.
NULL = -(2**63)


MaskedSteps: TypeAlias = tuple[Integers, npt.NDArray[np.bool_]]
"""The steps of rows, zero where there is none, and the mark of those."""


@dataclass(frozen=True, slots=True)
class RowLayout:
    """How a row's integers are laid out: ``hash_bits`` | ``group_bits`` | one field for each value, if packed.

    ``ranges`` are the first and last step of each value. A field holds step − first, and one more for NULL.
    """

    hash_bits: int
    group_bits: int
    ranges: tuple[tuple[int, int], ...]
    separate: bool = False  # rows carry more than integers, and must be found again after sorting

    @property
    def widths(self) -> tuple[int, ...]:
        """The bits of each field."""
        return tuple((last - first + 1).bit_length() for first, last in self.ranges)

    @property
    def place_bits(self) -> int:
        """The bits that tell pairs of one unit apart."""
        return self.hash_bits + self.group_bits

    @property
    def packed(self) -> bool:
        """Whether values travel in the place itself."""
        return not self.separate and self.place_bits + sum(self.widths) + RANK_BITS <= 63


@dataclass(frozen=True, slots=True)
class UnitBlock:
    """Rows of whole units. ``values`` is empty where they are packed into places.

    ``distinct`` are values to tell apart, as integers, each with its secret order, which is negative for NULL.
    """

    units: Integers
    places: Integers
    values: tuple[Integers, ...] = ()
    distinct: tuple[tuple[Integers, Integers], ...] = ()


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """What a bounded question needs of every block.

    ``sources`` says which value each measure reads, if any, and ``spreads`` which each spread counts; ``weights`` is
    for each measure what a unit in g groups adds to each of them, at position g.
    """

    bounded: BoundedPlan
    sources: tuple[int | None, ...]
    groups: int
    layout: RowLayout
    spreads: tuple[int, ...] = ()
    weights: tuple[Integers | None, ...] = ()


@dataclass(slots=True)
class BlockResult:
    """What a block adds: sums for each measure and group, for each spread the position (group·cells + cell − first) of
    every row that is taken, and for each distinct argument the groups and values that are taken.
    """

    sums: Integers
    cells: list[list[Integers]]
    values: list[list[tuple[Integers, Integers]]]


def fits(measures: Sequence[Measure], rows: int) -> bool:
    """Whether all sums over so many rows stay below 2^62, so that no 64-bit addition can overflow."""
    return max(map(_most_per_row, measures), default=1) * max(rows, 1) < 2**62


def _most_per_row(measure: Measure) -> int:
    """The most that one row can add to the sum of a group."""
    if measure.counts is Counts.WEIGHT:
        return measure.last
    low, high = measure.partial or (measure.row_low, measure.row_high)
    return max(-low, high, 1)


def bound_block(shape: BlockPlan, block: UnitBlock) -> BlockResult:
    """The bounded contribution of the units of a block."""
    bounded = shape.bounded
    sums = np.zeros((len(shape.sources), shape.groups), dtype=np.int64)
    part = BlockResult(sums, [[] for _ in shape.spreads], [[] for _ in block.distinct])
    if not block.units.size:
        return part
    block = _order_by_unit(block)
    find = _find_packed_pairs if shape.layout.packed else _find_separate_pairs
    for pairs in find(shape.layout, block):
        allowed, kept = _choose_allowed(bounded, pairs)
        codes = pairs.codes[kept]
        for i, measure in enumerate(bounded.measures):
            if measure.counts is not Counts.DISTINCT:
                sums[i] += _sum_by_group(codes, _compute_partials(shape, i, pairs, allowed)[kept], shape.groups)
        for i, source in enumerate(shape.spreads):
            part.cells[i].append(_find_cells(shape, source, pairs, allowed))
        for i, (values, order) in enumerate(pairs.distinct):
            taken = samples.pick_first_values(values, order, pairs.starts, pairs.rows, allowed)
            part.values[i].append((np.repeat(pairs.codes, pairs.rows)[taken], values[taken]))
    return part


@dataclass(frozen=True, slots=True)
class _Pairs:
    """One entry for each pair of a unit and a group, a unit's pairs together and in their secret order.

    ``starts`` are the positions of each pair's first row among sorted rows, whose ``values`` come with a mark of what
    is missing.
    """

    codes: Integers
    rows: Integers
    first: Integers  # position of the first pair of the same unit
    starts: Integers
    values: tuple[MaskedSteps, ...]
    distinct: tuple[tuple[Integers, Integers], ...] = ()


def _order_by_unit(block: UnitBlock) -> UnitBlock:
    """Blocks come ordered by unit. If one ever did not, it would still be bounded right."""
    if not (block.units[1:] < block.units[:-1]).any():
        return block
    return _pick_rows(block, np.argsort(block.units, kind="stable"))


def _find_packed_pairs(layout: RowLayout, block: UnitBlock) -> Iterator[_Pairs]:
    """Sort one integer a row: unit, place and values together, for as many units at once as the bits can number."""
    below = sum(layout.widths)
    bits = layout.place_bits + below
    cuts = _find_cuts(block.units, 1 << (63 - bits))
    for start, end in pairwise(cuts.tolist()):
        units = block.units[start:end]
        rank = np.zeros(units.size, dtype=np.int64)
        np.cumsum(units[1:] != units[:-1], out=rank[1:])
        rank <<= bits
        rank |= block.places[start:end]
        rank.sort()
        yield _pairs_of_keys(layout, rank >> below, _unpack_fields(layout, rank))


def _find_cuts(units: Integers, most: int) -> Integers:
    """Where to cut a block between units: every PART_ROWS rows or so, and with at most ``most`` units in a part."""
    starts = np.concatenate(([0], np.flatnonzero(units[1:] != units[:-1]) + 1))
    by_rows = starts[np.searchsorted(starts, np.arange(PART_ROWS, units.size, PART_ROWS), side="right") - 1]
    return np.unique(np.concatenate((starts[::most], by_rows, [units.size])))


def _unpack_fields(layout: RowLayout, keys: Integers) -> tuple[MaskedSteps, ...]:
    """The values in packed keys. Missing ones count as zero steps."""
    found: list[MaskedSteps] = []
    shift = sum(layout.widths)
    for (first, last), width in zip(layout.ranges, layout.widths):
        shift -= width
        field = (keys >> shift) & ((1 << width) - 1)
        missing = field > last - first
        found.append((np.where(missing, 0, field + first) if missing.any() else field + first, missing))
    return tuple(found)


def _find_separate_pairs(layout: RowLayout, block: UnitBlock) -> Iterator[_Pairs]:
    """Sort positions by unit and place, and bring the values after them."""
    for start, end in pairwise(_find_cuts(block.units, PART_ROWS).tolist()):
        part = _pick_rows(block, slice(start, end))
        rank = np.concatenate(([0], np.cumsum(part.units[1:] != part.units[:-1])))
        bits = layout.place_bits
        if int(rank[-1]).bit_length() + bits <= 63:
            keys = (rank << bits) | part.places
            order = np.argsort(keys)
            pairs = _pairs_of_keys(layout, keys[order], _read_columns(part, order))
        else:  # too many units and groups for one integer: compare the parts
            order = np.lexsort((part.places, rank))
            unit, place = rank[order], part.places[order]
            starts = np.flatnonzero(np.concatenate(([True], (place[1:] != place[:-1]) | (unit[1:] != unit[:-1]))))
            pairs = _pairs_of_starts(
                layout, starts, (unit[starts], place[starts]), unit.size, _read_columns(part, order)
            )
        yield replace(pairs, distinct=_pick_rows(part, order).distinct) if block.distinct else pairs


def _pick_rows(block: UnitBlock, rows: Integers | slice) -> UnitBlock:
    """Some rows of a block, in a given order."""
    distinct = tuple((value[rows], place[rows]) for value, place in block.distinct)
    return UnitBlock(block.units[rows], block.places[rows], tuple(value[rows] for value in block.values), distinct)


def _read_columns(block: UnitBlock, order: Integers) -> tuple[MaskedSteps, ...]:
    found: list[MaskedSteps] = []
    for column in block.values:
        value = column[order]
        missing = value == NULL
        found.append((np.where(missing, 0, value) if missing.any() else value, missing))
    return tuple(found)


def _pairs_of_keys(layout: RowLayout, keys: Integers, values: tuple[MaskedSteps, ...]) -> _Pairs:
    """Pairs from sorted keys of unit and place."""
    starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    pair = keys[starts]
    return _pairs_of_starts(layout, starts, (pair >> layout.place_bits, pair), keys.size, values)


def _pairs_of_starts(
    layout: RowLayout, starts: Integers, pair: tuple[Integers, Integers], rows: int, values: tuple[MaskedSteps, ...]
) -> _Pairs:
    """Pairs from where they start among sorted rows; ``pair`` is the unit and the place of each."""
    unit, place = pair
    changes = np.flatnonzero(np.concatenate(([True], unit[1:] != unit[:-1])))
    return _Pairs(
        codes=place & ((1 << layout.group_bits) - 1),
        rows=np.diff(starts, append=rows),
        first=np.repeat(changes, np.diff(changes, append=starts.size)),
        starts=starts,
        values=values,
    )


def _choose_allowed(bounded: BoundedPlan, pairs: _Pairs) -> tuple[Integers, Integers]:
    """Steps 3 and 4: how many rows of each pair are allowed, and the positions of the pairs that are kept."""
    allowed = pairs.rows
    if bounded.max_rows_per_group is not None:
        allowed = np.minimum(allowed, bounded.max_rows_per_group)
    if bounded.max_groups is not None:
        place = np.arange(allowed.size) - pairs.first
        allowed = np.where(place < bounded.max_groups, allowed, 0)
    if bounded.max_rows is not None:
        before = np.cumsum(allowed) - allowed
        used = before - before[pairs.first]
        allowed = np.clip(bounded.max_rows - used, 0, allowed)
    return allowed, np.flatnonzero(allowed > 0)


def _compute_partials(shape: BlockPlan, position: int, pairs: _Pairs, allowed: Integers) -> Integers:
    measure, source = shape.bounded.measures[position], shape.sources[position]
    match measure.counts:
        case Counts.WEIGHT:
            return _look_up_weights(shape.weights[position], pairs, allowed)
        case Counts.UNITS if source is None:
            return np.ones(allowed.size, dtype=np.int64)
        case Counts.ROWS:
            return allowed if measure.partial is None else np.clip(pairs.rows, *measure.partial)
        case Counts.UNITS | Counts.VALUES | Counts.STEPS | Counts.SQUARES:
            return _compute_value_partials(measure, pairs.values[source or 0], pairs, allowed)
        case Counts.DISTINCT:
            raise InternalError("Distinct values are counted, not summed.")
        case _:
            assert_never(measure.counts)


def _compute_value_partials(measure: Measure, steps: MaskedSteps, pairs: _Pairs, allowed: Integers) -> Integers:
    """Partials of a measure that reads values."""
    values, missing = steps
    counts = pairs.rows
    if missing.any():
        counts = counts - np.add.reduceat(missing.astype(np.int64), pairs.starts)
    if measure.counts is Counts.UNITS:
        return (counts > 0).astype(np.int64)
    if measure.counts is Counts.VALUES:
        return np.minimum(counts, allowed) if measure.partial is None else _clip_known(counts, counts, measure.partial)
    if measure.partial is not None:
        return _clip_known(counts, _clamp_sums(values, pairs.starts, measure.partial), measure.partial)
    if measure.counts is Counts.SQUARES:
        values = values * values
    return _scale_sums(np.add.reduceat(values, pairs.starts), counts, allowed)


def _clip_known(counts: Integers, sums: Integers, ends: tuple[int, int]) -> Integers:
    """Sums within bounds; 0 for a pair without a value."""
    return np.where(counts > 0, np.clip(sums, *ends), 0)


def _look_up_weights(table: Integers | None, pairs: _Pairs, allowed: Integers) -> Integers:
    """What each pair adds where its unit is kept in so many groups."""
    if table is None:
        raise InternalError("A weight without its table.")
    groups = np.bincount(pairs.first, weights=allowed > 0, minlength=pairs.first.size).astype(np.int64)
    return table[groups[pairs.first]]


def _clamp_sums(values: Integers, starts: Integers, ends: tuple[int, int]) -> Integers:
    """Sums of pairs within bounds below 2^61. High and low halves are summed apart, for steps of up to 62 bits.

    Where the high half is cut at 2^31, the sum is beyond the bounds with or without it.
    """
    high = np.add.reduceat(values >> 31, starts)
    low = np.add.reduceat(values & (2**31 - 1), starts)
    total: Integers = np.clip((np.clip(high, -(2**31), 2**31) << 31) + low, *ends)
    return total


def _find_cells(shape: BlockPlan, source: int, pairs: _Pairs, allowed: Integers) -> Integers:
    """The positions of the rows that are taken for a spread."""
    (first, last), (cells, missing) = shape.layout.ranges[source], pairs.values[source]
    if source or not shape.layout.packed:
        cells, missing = samples.sort_within(cells, missing, pairs.rows, (first, last))
    taken = samples.pick_evenly(missing, pairs.starts, pairs.rows, allowed)
    starts = np.repeat(pairs.codes * (last - first + 1) - first, pairs.rows)
    return starts[taken] + cells[taken]


def _scale_sums(sums: Integers, counts: Integers, allowed: Integers) -> Integers:
    """sum·allowed/count towards zero, where more rows count than are allowed; by parts, so that nothing overflows."""
    over = np.flatnonzero((counts > allowed) & (allowed > 0))
    if not over.size:
        return sums
    size, count, keep = np.abs(sums[over]), counts[over], allowed[over]
    whole, rest = np.divmod(size, count)
    scaled = whole * keep + rest * keep // count
    result = sums.copy()
    result[over] = np.where(sums[over] < 0, -scaled, scaled)
    return result


def _sum_by_group(codes: Integers, partials: Integers, groups: int) -> Integers:
    """Exact sums by group. Doubles add halves of 31 bits, whose sums stay below 2^53 for up to 2^22 pairs."""
    total = np.zeros(groups, dtype=np.int64)
    for start in range(0, codes.size, 1 << 22):
        part, where = partials[start : start + (1 << 22)], codes[start : start + (1 << 22)]
        low = np.bincount(where, weights=part & (2**31 - 1), minlength=groups)
        high = np.bincount(where, weights=part >> 31, minlength=groups)
        total += low.astype(np.int64) + (high.astype(np.int64) << 31)
    return total
