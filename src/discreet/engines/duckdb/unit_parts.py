"""Rows parted by unit: in memory up to a limit, and beyond it in files. Every unit is in one part, whatever it is.

A unit's part follows from a product that no two units have in common, so units that share a part at one level are
parted at the next. One with very many rows cannot be parted from itself: its rows are gathered to pairs of the unit and
a group as they are read, of which it has no more than there are groups; a group may be a finer number, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.engines.duckdb.weighed_pairs import MOST_PAIRS, UnitRows, gather, join
from discreet.errors import InternalError
from discreet.late_dataclass import dataclass

# Parts of one level, as the eight bits of a number that NumPy sorts by radix.
PARTS = 256
# Rows that are read at a time, and those that are too few for a part of their own.
BLOCK_ROWS = 1 << 18
FEW_ROWS = 1 << 15
# An odd number: so the product modulo 2^64 tells all units apart. It is that of Fibonacci hashing, 2^64 over the golden
# ratio, whose upper bits spread units that follow each other.
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_LEVELS = 8


@dataclass(frozen=True, slots=True)
class _StoredBlock:
    """The arrays of a block in a file, one behind the other: their types, their length, and how many are sums."""

    types: tuple[Any, ...]
    rows: int
    sums: int


def are_many(held: Sequence[UnitRows]) -> bool:
    """Whether entries are so many that they are gathered: again only when there are twice as many as afterwards."""
    return sum(map(len, held)) > max(MOST_PAIRS, 2 * len(held[0]))


class UnitParts:
    """The rows of a question by unit, in ``groups`` groups. Files are made in ``folder``, the caller's to remove."""

    def __init__(self, folder: Path, most_bytes: int, groups: int, level: int = 0) -> None:
        if level >= _LEVELS:
            raise InternalError("One unit is in more groups than there are.")
        self._folder, self._most_bytes, self._groups, self._level = folder, most_bytes, groups, level
        # Blocks of rows in the order of their parts, each with where its parts begin and where the last one ends.
        self._held: list[tuple[UnitRows, list[int]]] = []
        self._bytes = 0
        self._stored: list[list[_StoredBlock]] = [[] for _ in range(PARTS)]
        self._rows = np.zeros(PARTS, np.int64)

    def add(self, rows: UnitRows) -> None:
        """More rows, in any order."""
        parts = self._find_parts(rows.units)
        sorted_rows = rows.pick(np.argsort(parts, kind="stable"))
        found = np.bincount(parts, minlength=PARTS)
        self._held.append((sorted_rows, [0, *np.cumsum(found).tolist()]))
        self._rows += found
        self._bytes += sum(array.nbytes for array in sorted_rows.arrays)
        if self._bytes > self._most_bytes:
            self._store()

    def read(self) -> Iterator[UnitRows]:
        """All rows, part by part: each has all rows of its units, and no more rows than are weighed at once."""
        held: list[UnitRows] = []
        for part in range(PARTS):
            if self._rows[part] > MOST_PAIRS:
                yield from self._part_again(self._read_blocks(part))
                continue
            if held and sum(map(len, held)) + self._rows[part] > FEW_ROWS:  # fewer are not worth the while
                yield join(held)
                held = []
            held += self._read_blocks(part)
        if held:
            yield join(held)

    def _part_again(self, blocks: Iterable[UnitRows]) -> Iterator[UnitRows]:
        """The rows of a part that are too many, gathered to pairs; parted at the next level, if these are too many."""
        gathered = self._gather_blocks(blocks)
        held = list(islice(gathered, 2))
        if len(held) < 2 and all(len(pairs) <= MOST_PAIRS or _is_one_unit(pairs) for pairs in held):
            yield from held
            return
        finer = UnitParts(self._folder, self._most_bytes, self._groups, self._level + 1)
        for pairs in chain(held, gathered):
            finer.add(pairs)
        yield from finer.read()

    def _gather_blocks(self, blocks: Iterable[UnitRows]) -> Iterator[UnitRows]:
        """Pairs of many blocks at a time. One unit alone has no more of them than there are groups, so it is kept."""
        held = list[UnitRows]()
        for block in blocks:
            held.append(block)
            if are_many(held):
                held = [gather(held, self._groups)]
                if len(held[0]) > MOST_PAIRS // 2 and not _is_one_unit(held[0]):
                    yield held.pop()
        if held:
            yield gather(held, self._groups)

    def _find_parts(self, units: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        mixed = units.view(np.uint64) * _FACTOR
        return (mixed >> np.uint64(64 - 8 * (self._level + 1))).astype(np.uint8)

    def _store(self) -> None:
        """Everything that is held goes to files, behind what is there.

        What is too much for one part is gathered first: in a join one unit can have the square of its rows.
        """
        for part in range(PARTS):
            with self._find_path(part).open("ab") as file:
                for rows in _cut_blocks(self._list_held(part)):
                    block = rows if self._rows[part] <= MOST_PAIRS else gather([rows], self._groups)
                    types = tuple(array.dtype for array in block.arrays)
                    self._stored[part].append(_StoredBlock(types, len(block), len(block.sums)))
                    for array in block.arrays:
                        file.write(np.ascontiguousarray(array).data)
        self._held.clear()
        self._bytes = 0

    def _list_held(self, part: int) -> list[UnitRows]:
        places = ((rows, starts[part], starts[part + 1]) for rows, starts in self._held)
        return [rows.pick(slice(start, end)) for rows, start, end in places if start < end]

    def _read_blocks(self, part: int) -> Iterator[UnitRows]:
        """The rows of a part, whose file is removed behind the reader."""
        if self._stored[part]:
            with self._find_path(part).open("rb") as file:
                for block in self._stored[part]:
                    units, groups, *more = (np.fromfile(file, kind, block.rows) for kind in block.types)
                    counted = more[block.sums] if len(more) > block.sums else None
                    yield UnitRows(units, groups, tuple(more[: block.sums]), counted)
            self._find_path(part).unlink()
        yield from _cut_blocks(self._list_held(part))

    def _find_path(self, part: int) -> Path:
        return self._folder / f"level-{self._level}-part-{part}"


def _is_one_unit(rows: UnitRows) -> bool:
    return bool(rows.units.min() == rows.units.max())


def _cut_blocks(pieces: Sequence[UnitRows]) -> Iterator[UnitRows]:
    """The same rows in pieces of about one size, none of which is long."""
    held, rows = list[UnitRows](), 0
    for piece in pieces:
        if held and rows + len(piece) > BLOCK_ROWS:
            yield join(held)
            held, rows = [], 0
        held.append(piece)
        rows += len(piece)
    if held:
        yield join(held)
