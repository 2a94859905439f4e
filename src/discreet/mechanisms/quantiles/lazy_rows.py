"""Several quantiles of counted rows: the rows of a cell are spread over its places, which are found where needed.

Every cell is divided into 2^bits places. When a part of a cell with k rows is halved, ⌊k/2⌋ of them are in its lower
half and the rest in the upper one. So the place of every row follows from the counts, and no row is looked at alone.
Rows may be parts of rows: a count is any whole number, such as a sum of weights.

*A draw* gives the value v with probability ∝ w(v) = e^(−factor·rank error of v). Pieces cover the values. Within a
piece the rank error is at least what it would be if all rows of the piece were at v, so length·e^(−that) bounds the
weight of a piece. Pieces are halved while their bounds are loose. Then a piece is proposed by its bound, and a value in
it uniformly. The rank of the value is looked up, and the value is accepted with the chance w(v) over its part of the
bound; otherwise the draw starts again. So the law is exact, and no place far from the quantile was looked up.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate
from operator import itemgetter
from typing import TypeAlias

import numpy as np

from discreet.entropy import EntropySource
from discreet.exact import Integers
from discreet.late_dataclass import dataclass
from discreet.mechanisms.quantiles.segments import GUARD, RAISE, SUM_BITS, share_bounds
from discreet.samplers import lazy, uniform_below

# Pieces are halved until at least half of all proposals are accepted, or until no single piece wastes much.
_LOOSE, _WASTE, _MOST = 0.5, 1 / 256, 4096


class LazyRows:
    """The rows of one group: how many are in each cell, and their places, as far as these were asked for.

    Places are whole numbers: cell c has those from c·2^bits on. A cell is known as a list of parts, each with the
    number of its rows; the width of a part that has rows is a power of two.
    """

    def __init__(self, cells: Integers, counts: Integers, bits: int) -> None:
        self._cells, self._before = cells, np.concatenate([[0], np.cumsum(counts)])
        self._bits = bits
        self._parts: dict[int, list[_CellPart]] = {}  # by the number of the cell, in order

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self._before[-1])

    def look(self, place: int) -> tuple[int, int]:
        """How many rows are below a place, and how many at it; halves all parts around it."""
        i = int(np.searchsorted(self._cells, place >> self._bits))
        if i == len(self._cells) or int(self._cells[i]) != place >> self._bits:
            return int(self._before[i]), 0
        parts = self._find_parts(i)
        while True:
            at = bisect_right(parts, place, key=_first_place) - 1
            _, width, rows = parts[at]
            if width == 1 or not rows:
                return self._count_below(i, at), rows
            self._halve(parts, at)

    def cut(self, low: int, high: int) -> tuple[int, int]:
        """Where to divide the places from low to high, and how many rows are below the cut.

        There must be rows among them. Each end must be the end of a part, or lie where no rows are.
        """
        first = int(np.searchsorted(self._cells, low >> self._bits))
        last = int(np.searchsorted(self._cells, high >> self._bits, side="right"))
        if last - first > 1:
            middle = (first + last) // 2
            return int(self._cells[middle]) << self._bits, int(self._before[middle])
        start = int(self._cells[first]) << self._bits
        end = start + (1 << self._bits)
        if low < start:
            return start, int(self._before[first])
        if end <= high:
            return end, int(self._before[first + 1])
        parts = self._find_parts(first)
        under, over = (bisect_right(parts, place, key=_first_place) - 1 for place in (low, high))
        if under == over:
            self._halve(parts, under)
            over += 1
        middle = (under + over + 1) // 2
        return parts[middle][0], self._count_below(first, middle)

    def _find_parts(self, i: int) -> list[_CellPart]:
        if i not in self._parts:
            rows = int(self._before[i + 1]) - int(self._before[i])
            self._parts[i] = [(int(self._cells[i]) << self._bits, 1 << self._bits, rows)]
        return self._parts[i]

    def _count_below(self, i: int, at: int) -> int:
        """The rows below one part of a cell."""
        return int(self._before[i]) + sum(rows for _, _, rows in self._parts[i][:at])

    def _halve(self, parts: list[_CellPart], at: int) -> None:
        first, width, rows = parts[at]
        lower = rows // 2
        parts[at : at + 1] = [(first, width // 2, lower), (first + width // 2, width // 2, rows - lower)]


_CellPart: TypeAlias = tuple[int, int, int]
"""First place, width, rows."""
_first_place: Callable[[_CellPart], int] = itemgetter(0)


@dataclass(frozen=True, slots=True)
class Side:
    """The places from low to high, with ``rows`` rows after ``skipped`` others.

    An end that is ``taken`` was chosen before, and the rows at it belong to no side.
    """

    low: int
    high: int
    skipped: int
    rows: int
    low_taken: bool = False
    high_taken: bool = False

    def make_pieces(self) -> list[tuple[int, int, int, int]]:
        """Taken ends by themselves, and all between: low, high, rows below, rows within."""
        found = []
        if self.low_taken:
            found.append((self.low, self.low, self.skipped, 0))
        low, high = self.low + self.low_taken, self.high - self.high_taken
        if low <= high:
            found.append((low, high, self.skipped, self.rows))
        if self.high_taken and (self.high > self.low or not self.low_taken):
            found.append((self.high, self.high, self.skipped + self.rows, 0))
        return found


@dataclass(frozen=True, slots=True)
class Piece:
    """Some places of a side: the least rank error among them (times q's denominator), and bounds of their weight."""

    low: int
    high: int
    below: int
    inside: int
    error: int
    most: float
    waste: float

    @property
    def length(self) -> int:
        """How many places the piece has."""
        return self.high - self.low + 1

    def __lt__(self, other: Piece) -> bool:
        return self.waste > other.waste


class QuantileDraw:
    """One draw of a q-quantile of a side."""

    def __init__(self, column: LazyRows, side: Side, q: Fraction, factor: Fraction, source: EntropySource) -> None:
        self._column, self._side, self._q, self._source = column, side, q, source
        self._factor = factor / q.denominator
        self._rate = float(self._factor)

    def error(self, below: int, inside: int) -> int:
        """The rank error, times q's denominator, of a place with so many rows below it and so many at it."""
        less, n = below - self._side.skipped, self._side.rows
        a, b = self._q.numerator, self._q.denominator
        return max(0, b * less - a * n, b * (n - less - inside) - (b - a) * n)

    def _make_piece(self, low: int, high: int, below: int, inside: int) -> Piece:
        length, error = high - low + 1, self.error(below, inside)
        most = length * math.exp(-self._rate * error)
        if not inside or length == 1:
            return Piece(low, high, below, inside, error, most, 0.0)
        # At worst all rows of the piece are below a place, or all above it.
        worst = max(self.error(below, 0), self.error(below + inside, 0))
        return Piece(low, high, below, inside, error, most, most - length * math.exp(-self._rate * worst))

    def _cover(self) -> list[Piece]:
        """The places of the side as pieces, halved until their bounds are good."""
        heap = [self._make_piece(*piece) for piece in self._side.make_pieces()]
        heapq.heapify(heap)
        total, waste = sum(p.most for p in heap), sum(p.waste for p in heap)
        for _ in range(_MOST):
            if waste <= _LOOSE * total or heap[0].waste <= _WASTE * total:
                break
            one = heap[0]
            cut, rank = self._column.cut(one.low, one.high)
            lower = self._make_piece(one.low, cut - 1, one.below, rank - one.below)
            upper = self._make_piece(cut, one.high, rank, one.below + one.inside - rank)
            heapq.heapreplace(heap, lower)
            heapq.heappush(heap, upper)
            total += lower.most + upper.most - one.most
            waste += lower.waste + upper.waste - one.waste
        return heap

    def __call__(self) -> tuple[int, int, int]:
        """The place, how many rows are below it, and how many at it."""
        pieces = self._cover()
        shift = SUM_BITS - math.frexp(sum(piece.most for piece in pieces))[1]
        bids = [int(math.ldexp(piece.most, shift) * RAISE) + 1 for piece in pieces]
        ends = list(accumulate(bids))
        while True:
            chosen = bisect_right(ends, uniform_below(ends[-1], source=self._source))
            piece = pieces[chosen]
            place = piece.low + uniform_below(piece.length, source=self._source)
            below, at = piece.below, piece.inside
            if at and piece.length > 1:
                below, at = self._column.look(place)
            if self._accepts(self.error(below, at), piece.length, shift, bids[chosen]):
                return place, below, at

    def _accepts(self, error: int, length: int, shift: int, bid: int) -> bool:
        """True with probability 2^shift·length·e^(−factor·error)/bid."""
        word = self._source.word()
        gap = word * 2.0**-64 - math.ldexp(length * math.exp(-self._rate * error), shift) / bid
        if abs(gap) > GUARD:
            return gap < 0
        return lazy.is_below(word, 64, share_bounds(self._factor * error, length, shift, bid), self._source)


def draw_quantiles(
    column: LazyRows, shares: list[Fraction], side: Side, factor: Callable[[Fraction], Fraction], source: EntropySource
) -> list[int]:
    """The places of several quantiles of a side: the middle one first, then those of the sides that it leaves."""
    if not shares:
        return []
    middle = len(shares) // 2
    q = shares[middle]
    place, below, at = QuantileDraw(column, side, q, factor(q), source)()
    under = replace(side, high=place, high_taken=True, rows=below - side.skipped)
    above = side.skipped + side.rows - below - at
    over = replace(side, low=place, low_taken=True, skipped=below + at, rows=above)
    return [
        *draw_quantiles(column, [s / q for s in shares[:middle]], under, factor, source),
        place,
        *draw_quantiles(column, [(s - q) / (1 - q) for s in shares[middle + 1 :]], over, factor, source),
    ]
