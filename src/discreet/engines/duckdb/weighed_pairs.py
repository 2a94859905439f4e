"""Steps 3 and 4 of ``contributions.py`` on arrays: what the rows of some units add to each group.

All rows of a unit are together here, and units may be any integers. They are numbered by a hash table that fits into a
processor's cache, pairs of a unit and a group are brought together by counting or by a radix sort, and each pair is
weighed as ``sql.unit_sums`` does it. Sums of pairs are kept modulo 2^64: a product with a weight is less than 2^62 in
size, even where the sum is not, so the product is right. Products are then added up by group in halves of 31 bits, of
2^21 pairs at most, so that doubles hold the sums exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from discreet.errors import InternalError
from discreet.exact import Integers
from discreet.late_dataclass import dataclass

# Rows or pairs that are weighed at once, and groups that there may be.
MOST_PAIRS, MOST_GROUPS = 1 << 21, 1 << 20
_DIGIT, HALF = 16, 31
# Cells for each row up to which counting in all of them is quicker, and bytes of numbers whose sums doubles hold.
DENSE, _EXACT_BYTES = 4, 4
_LOW = (1 << HALF) - 1
# An odd number, so that products tell units apart, and not the one that parts them (``unit_parts``).
_SLOT_FACTOR = np.uint64(0xD6E8FEB86659FD93)

Whole: TypeAlias = npt.NDArray[np.integer]


@dataclass(frozen=True, eq=False)
class UnitRows:
    """Rows, or pairs of a unit and a group: the unit, the number of the group, and integers to sum.

    ``rows`` says how many rows each entry stands for; None where it is one.
    """

    units: Integers
    groups: Whole
    sums: tuple[Whole, ...]
    rows: Integers | None = None

    def __len__(self) -> int:
        return len(self.units)

    @property
    def arrays(self) -> tuple[Whole, ...]:
        return (self.units, self.groups, *self.sums, *(() if self.rows is None else (self.rows,)))

    def pick(self, where: slice | npt.NDArray[np.intp]) -> UnitRows:
        """Some of the entries."""
        rows = None if self.rows is None else self.rows[where]
        return UnitRows(self.units[where], self.groups[where], tuple(s[where] for s in self.sums), rows)


@dataclass(frozen=True, slots=True)
class PairShare:
    """What a measure adds for each pair.

    The weight of its rows times a sum, or times the number of rows where ``total`` is None; or ``by_unit`` the weight
    of its unit, if that sum is not 0. ``most`` is the size of what it adds, at most.
    """

    most: int
    total: int | None = None
    by_unit: bool = False


@dataclass(frozen=True, slots=True)
class WeightRule:
    """The limits of a question, each None where there is none, and what its measures add.

    ``groups_of_unit`` is the limit for the weight of units.
    """

    bits: int
    rows: int | None
    rows_in_group: int | None
    groups: int | None
    groups_of_unit: int | None
    shares: tuple[PairShare, ...]

    @property
    def needs_pairs(self) -> bool:
        """Whether anything depends on which rows of a unit are in the same group."""
        return self.rows is None or any(share.by_unit for share in self.shares)

    def share(self, most: int | None, count: Integers) -> Integers:
        """The least of 2^b and ⌊most·2^b/count⌋, which is less where there are more than ``most``."""
        found = np.full(len(count), 1 << self.bits)
        if most is not None:
            over = np.flatnonzero(count > most)
            found[over] = (most << self.bits) // count[over]
        return found


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Sums by group: the numbers of the groups, and for each measure the lower and the upper halves of sums."""

    groups: Integers
    low: tuple[Integers, ...]
    high: tuple[Integers, ...]


def gather(parts: Sequence[UnitRows], groups: int) -> UnitRows:
    """One entry for each unit and group."""
    rows = join(parts)
    units, numbers = number_units(rows.units)
    pairs, owners = _bring_together(rows, numbers, groups)
    return UnitRows(units[owners], pairs.groups, pairs.sums, pairs.rows)


def weigh(rows: UnitRows, groups: int, rule: WeightRule) -> GroupSums:
    """What rows add to groups, numbered below ``groups``. Every row of their units is among them."""
    if len(rows) > MOST_PAIRS or groups > MOST_GROUPS:
        raise InternalError("More rows or groups than sums can hold.")
    units, owners = number_units(rows.units)
    if rule.needs_pairs:
        rows, owners = _bring_together(rows, owners, groups)
    counts = np.ones(len(rows), np.int64) if rows.rows is None else rows.rows
    if rule.rows is not None:
        everywhere = np.bincount(owners, weights=None if rows.rows is None else counts, minlength=len(units))
        weights = rule.share(rule.rows, everywhere.astype(np.int64))[owners]
    else:
        weights = rule.share(rule.rows_in_group, counts)
    if rule.needs_pairs:
        had = np.bincount(owners, minlength=len(units))
        if rule.groups is not None:
            weights = (weights * rule.share(rule.groups, had)[owners]) >> rule.bits
        of_units = rule.share(rule.groups_of_unit, had)
    products = []
    for share in rule.shares:
        total = counts if share.total is None else rows.sums[share.total]
        products.append(np.where(total != 0, of_units[owners], 0) if share.by_unit else weights * total)
    return sum_by_group(rows.groups, products, [share.most for share in rule.shares], groups)


def join(parts: Sequence[UnitRows]) -> UnitRows:
    """All entries of several."""
    if len(parts) == 1:
        return parts[0]
    units, numbers = (np.concatenate(found) for found in zip(*((part.units, part.groups) for part in parts)))
    sums = tuple(np.concatenate(found) for found in zip(*(part.sums for part in parts)))
    if all(part.rows is None for part in parts):
        return UnitRows(units, numbers, sums)
    counted = [np.ones(len(part), np.int64) if part.rows is None else part.rows for part in parts]
    return UnitRows(units, numbers, sums, np.concatenate(counted))


def number_units(units: Integers) -> tuple[Integers, Integers]:
    """The different units, and for each entry the number of its own."""
    if len(units) and bool(np.all(units[1:] >= units[:-1])):  # as those of a prepared table
        first = np.concatenate(([True], units[1:] != units[:-1]))
        in_order: Integers = np.cumsum(first) - 1
        return units[first], in_order
    return _number_by_slots(units)


def _number_by_slots(units: Integers) -> tuple[Integers, Integers]:
    """The same of units in any order, in a third of the time of a hash table that is asked row by row.

    Each slot of a table is one unit's, whose rows have its number. Rows of other units that hash to it are left over,
    and Arrow numbers them: few, or all of them, if somebody has chosen the units so.
    """
    bits = max(1, (len(units) - 1).bit_length())
    slots = ((units.view(np.uint64) * _SLOT_FACTOR) >> np.uint64(64 - bits)).view(np.int64)
    owners, taken = np.empty(1 << bits, np.int64), np.zeros(1 << bits, bool)
    owners[slots], taken[slots] = units, True
    used = np.flatnonzero(taken)
    place = np.empty(1 << bits, np.int64)
    place[used] = np.arange(len(used))
    found, numbers = owners[used], place.take(slots)
    left = np.flatnonzero(owners.take(slots) != units)
    if len(left):
        others, theirs = _encode(units[left])
        numbers[left] = theirs.astype(np.int64) + len(used)
        found = np.concatenate((found, others))
    return found, numbers


def _encode(values: Integers) -> tuple[Integers, Whole]:
    """The different values, and for each its number among these."""
    import pyarrow as pa

    held = pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])
    coded = held.dictionary_encode()
    return read_array(coded.dictionary).astype(np.int64, copy=False), read_array(coded.indices)


def read_array(array: Any) -> Whole:
    """An Arrow array of integers without NULLs, as it lies in memory. Arrow's own way there would import pandas."""
    if array.null_count:
        raise InternalError("A row has no unit, no group or no integer.")
    if not len(array):
        return np.zeros(0, array.type.to_pandas_dtype())
    values = np.frombuffer(array.buffers()[1], array.type.to_pandas_dtype())
    return values[array.offset : array.offset + len(array)]


def _bring_together(rows: UnitRows, owners: Integers, groups: int) -> tuple[UnitRows, Integers]:
    """One entry for each pair, and the number of the unit of each."""
    size = (int(owners.max(initial=-1)) + 1) * groups
    cells = owners * groups + rows.groups
    if size <= DENSE * len(rows) and rows.rows is None and all(c.itemsize <= _EXACT_BYTES for c in rows.sums):
        return _count_cells(rows, cells, size, groups)
    order = sort_cells(cells, size)
    cells = cells[order]
    first = np.flatnonzero(np.concatenate((np.ones(min(1, len(cells)), bool), cells[1:] != cells[:-1])))
    counts = np.diff(first, append=len(cells)) if rows.rows is None else _sum_runs(rows.rows[order], first)
    sums = tuple(_sum_runs(column[order], first) for column in rows.sums)
    pairs = cells[first]
    owned = pairs // groups
    return UnitRows(owned, pairs - owned * groups, sums, counts), owned


def _count_cells(rows: UnitRows, cells: Integers, size: int, groups: int) -> tuple[UnitRows, Integers]:
    """The same by counting in every cell that there may be, where these are not many more than the rows.

    Sums of 2^21 numbers of 32 bits are less than 2^53, which doubles hold exactly.
    """
    counts = np.bincount(cells, minlength=size)
    pairs = np.flatnonzero(counts != 0)  # several times faster than of integers
    sums = tuple(np.bincount(cells, column, size)[pairs].astype(np.int64) for column in rows.sums)
    owned = pairs // groups
    return UnitRows(owned, pairs - owned * groups, sums, counts[pairs]), owned


def sort_cells(cells: Integers, most: int) -> npt.NDArray[np.intp]:
    """An order in which equal cells stand together. NumPy sorts 16 bits by radix, several times faster than more."""
    order, bits = np.argsort(cells.astype(np.uint16), kind="stable"), most.bit_length()
    for shift in range(_DIGIT, bits, _DIGIT):
        digits = (cells[order] >> shift).astype(np.uint8 if bits - shift <= 8 else np.uint16)
        order = order[np.argsort(digits, kind="stable")]
    return order


def _sum_runs(values: Whole, first: npt.NDArray[np.intp]) -> Integers:
    """Sums of runs that begin at these places, modulo 2^64: what has been summed at the end, less that before it."""
    if not len(first):
        return np.zeros(0, np.int64)
    so_far: Integers = np.cumsum(values.astype(np.int64, copy=False))
    summed: Integers = so_far[np.append(first[1:], len(values)) - 1]
    summed[1:] -= summed[:-1].copy()
    return summed


def sum_by_group(numbers: Whole, products: Sequence[Integers], sizes: Sequence[int], groups: int) -> GroupSums:
    """Sums of products of at most so a size, for the groups that there are: in halves, where doubles are too short."""
    places: Whole = numbers
    if groups > len(numbers):  # few of many
        present, places = _encode(numbers.astype(np.int64, copy=False))
    else:
        present = np.flatnonzero(np.bincount(numbers, minlength=groups))

    def add_up(values: Integers) -> Integers:
        found = np.bincount(places, weights=values).astype(np.int64)
        return found if groups > len(numbers) else found[present]

    low, high = [], []
    for product, most in zip(products, sizes):
        small = most * len(numbers) < 2**53
        low.append(add_up(product if small else product & _LOW))
        high.append(np.zeros_like(present) if small else add_up(product >> HALF))
    return GroupSums(present, tuple(low), tuple(high))


class GroupTotals:
    """Sums by group of any number of rows, as whole numbers."""

    def __init__(self, groups: int, measures: int) -> None:
        """Three parts of each sum: two of 31 bits, to each of which less than that is added at a time, and the rest."""
        self._parts = np.zeros((3, measures, groups), np.int64)
        self._present = np.zeros(groups, bool)

    def add(self, found: GroupSums) -> None:
        self._present[found.groups] = True
        for measure, (low, high) in enumerate(zip(found.low, found.high)):
            carried = high + (low >> HALF)
            for part, more in enumerate((low & _LOW, carried & _LOW, carried >> HALF)):
                self._parts[part, measure, found.groups] += more

    def read(self) -> dict[int, tuple[int, ...]]:
        """The sums of all measures by the number of each group that has rows."""
        present = np.flatnonzero(self._present)
        low, middle, rest = self._parts[:, :, present].transpose(0, 2, 1).tolist()
        return {
            int(group): tuple((c << 2 * HALF) + (b << HALF) + a for a, b, c in zip(*parts))
            for group, *parts in zip(present, low, middle, rest)
        }
