"""Exact draws from a law by table: one word picks a block of values, a second word the place inside the block.

Magnitudes are cut into blocks of B = 2^b neighbours, narrow enough that the law hardly falls inside one. A *cell* is
one block on one side: cell base ``a`` stands for the values a, a±1, ..., a±(B−1) going away from zero. On the negative
side the base is ~(j·B) = −j·B − 1, so no value has two names, and base XOR r is the r-th value on either side.

With w = exp(−E(|a|)) the weight of a cell and s a fixed whole number, the 2^W words are dealt out like this:

- *cells*: ⌊s·w⌋ words for each;
- *fraction*: as many words as there are cells; such a word picks a cell evenly and keeps it with probability
  s·w − ⌊s·w⌋;
- *tail*: m words for all values beyond the cells, where m ≥ T = sides·s·exp(−E(M))/((1 − e^(−D))·B), M is the first
  magnitude outside and D the slope of E there. A side and i ~ geometric(e^(−D)) are proposed; |x| = M + i (one more
  on the negative side) is kept with probability T/m · exp(−(E(|x|) − E(M) − D·i)), which is at most 1: E is convex;
- *filler*: the few words that remain; draw again.

A cell is thus reached with probability s·w/2^W. Inside it r is uniform and is kept with probability
exp(−(E(|x|) − E(|a|))), so one attempt returns every x of a cell with probability s·exp(−E(|x|))/(B·2^W). A value of
the tail has m/2^W · 1/sides · (1 − e^(−D))·e^(−D·i) · T/m · exp(−(E(|x|) − E(M) − D·i)), which is the same expression.
Attempts are independent and repeated until one succeeds, so the result has exactly the law. No normalising constant
is ever needed.

*Why each comparison is exact.* Floors are certified by integer intervals. A uniform U is first compared with a number
below every acceptance probability of the table (nearly all draws end here), then with the float value of its own
one, and that answer counts only where it is further away than ``GUARD``, which is thousands of times the float error;
otherwise ``lazy.is_below`` compares with certified intervals, adding bits to U until they are apart.

*Time.* Every draw takes the same steps, whatever its size: the first comparison uses one number for all cells, and
the number of attempts does not depend on the value that the last one returns. Fraction and tail words are rarer
than one in 2^30. In arrays all integers have one width. A *single* draw is a Python integer, and Python makes those
from −5 to 256 some 20 to 30 ns faster than others, about 2 % of a draw; where that matters, draw arrays of at least
``FEW`` values.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt

from discreet.entropy import EntropySource, Words
from discreet.exact import Flags, Floats, Integers, ceil_div, exp_minus_bounds
from discreet.late_dataclass import dataclass
from discreet.samplers import lazy
from discreet.samplers.alias import make_alias_table
from discreet.samplers.arguments import Size, read_shape
from discreet.samplers.law import Law

Lanes: TypeAlias = npt.NDArray[np.intp]

# A float comparison counts only where the two numbers are further apart than this. The float exponent and numpy's exp
# are each good to about 2^-50; tests compare them with certified intervals.
GUARD = 2.0**-40
# Lanes worked on at once: few enough to stay in the processor's cache.
CHUNK = 1 << 14
# Up to this many values the loop in Python is faster than numpy's calls.
FEW = 20
# From this scale on values are Python integers: int64 has room for 2^7 scales, enough with probability 1 − 2^-180 (a
# value beyond that would raise an OverflowError, never wrap around).
WIDE = 1 << 56
# Marks lanes that hit the fraction, the tail or the filler; no base is that low.
_RARE = -(1 << 63)
_NO_LANES = np.empty(0, dtype=np.intp)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLayout:
    """How a table is laid out. Any layout gives the same law; tests use tiny words to make rare events common."""

    word_bits: int = 64
    tail_bits: int = 32  # the tail has about one word in 2^tail_bits
    fall: Fraction = Fraction(1, 32)  # how much E may grow inside one block


STANDARD = TableLayout()


class BlockTable:
    """The table of one law: ``draw`` for one value, ``fill`` for arrays. It is never changed once built."""

    def __init__(self, law: Law, layout: TableLayout = STANDARD) -> None:
        self.law = law
        self.layout = layout
        reach = law.find_reach(Fraction(layout.tail_bits * 7, 10))  # 0.7 > ln 2
        width = layout.fall / law.slope(reach)
        self.block_bits = max(0, (width.numerator // width.denominator).bit_length() - 1)
        self.blocks = ceil_div(reach, 1 << self.block_bits)
        self.tail_start = self.blocks << self.block_bits
        self.cell_count = self.blocks * (1 + law.signed)
        self._deal()
        self.wide = WIDE * law.slope(WIDE) <= 1  # the scale is at least WIDE
        # A place and a comparison share one word where some bits are left for the second; huge blocks take more words.
        self.small = self.block_bits <= layout.word_bits - layout.word_bits // 5
        self._known = layout.word_bits - (self.block_bits if self.small else 0)
        self._compares = self._is_falling()
        self._quick = self._quick_limit()
        self._mask = (1 << self.block_bits) - 1
        self._bases = self._int64_bases() if self.small else np.empty(0, dtype=np.int64)
        self._base_of = self._bases.data
        use_floats = self.small and self._compares
        self._linear, self._square = (float(law.linear), float(law.square)) if use_floats else (0.0, 0.0)

    # ---- what a cell stands for

    def _is_falling(self) -> bool:
        """Whether the law falls inside a cell, so that its places must be compared."""
        return self.block_bits > 0

    def _side_starts(self) -> tuple[int, ...]:
        """The first magnitude of each side."""
        return (0, 1) if self.law.signed else (0,)

    def _start(self, base: int) -> int:
        """The magnitude at which the cell of this base starts."""
        return abs(base)

    def _starts(self, bases: Integers) -> Integers:
        return np.abs(bases)

    def _end(self, start: int) -> int:
        """The last magnitude of the cell that starts here."""
        return start + (1 << self.block_bits) - 1

    # ---- building

    def _deal(self) -> None:
        """Deal the words out and cut them into an alias table."""
        bits = self.layout.word_bits + 96 + self.tail_start.bit_length()
        words = 1 << self.layout.word_bits
        while True:
            weights = self._weights(bits)
            tail = self._tail_weight(bits)
            total = sum(high for _, high in weights) + tail
            self.multiplier = (words - self.cell_count - 1 << bits) // total
            masses = [self.multiplier * low >> bits for low, _ in weights]
            if masses == [self.multiplier * high >> bits for _, high in weights]:
                break
            bits *= 2  # some s·w lies too close to a whole number to know its floor
        self.tail_mass = ceil_div(self.multiplier * tail, 1 << bits)
        masses += [self.cell_count, self.tail_mass]
        masses.append(words - sum(masses))
        column_bits = (len(masses) - 1).bit_length()
        masses += [0] * ((1 << column_bits) - len(masses))
        self.shift = self.layout.word_bits - column_bits
        thresholds, others = make_alias_table(masses, 1 << self.shift)
        self._thresholds = np.array(thresholds, dtype=np.uint64)
        self._cells = np.empty(2 << column_bits, dtype=np.int32)  # two outcomes for each column: below and not below
        self._cells[0::2] = np.arange(1 << column_bits)
        self._cells[1::2] = others
        self._threshold_of, self._cell_of = self._thresholds.data, self._cells.data

    def _weights(self, bits: int) -> list[tuple[int, int]]:
        """Bounds on 2^bits·exp(−E(|base|)) of every cell."""
        sides = [self._side_weights(start, bits) for start in self._side_starts()]
        return [bound for block in zip(*sides) for bound in block]

    def _side_weights(self, start: int, bits: int) -> list[tuple[int, int]]:
        """Bounds on 2^bits·exp(−E(start + j·B)): each is the one before times a ratio, which itself shrinks evenly."""
        law, step = self.law, 1 << self.block_bits
        low, high = exp_minus_bounds(law.exponent(start), bits)
        ratio_low, ratio_high = exp_minus_bounds(law.rise(start, start + step), bits)
        bend_low, bend_high = exp_minus_bounds(2 * law.square * step * step, bits)
        weights = []
        for _ in range(self.blocks):
            weights.append((low, high))
            low = low * ratio_low >> bits
            high = -(-high * ratio_high >> bits)
            if law.square:
                ratio_low = ratio_low * bend_low >> bits
                ratio_high = -(-ratio_high * bend_high >> bits)
        return weights

    def _tail_weight(self, bits: int) -> int:
        """At least 2^bits·T/s: the weight of the envelopes of the tail, in the measure of the cells."""
        _, first = exp_minus_bounds(self.law.exponent(self.tail_start), bits)
        _, ratio = exp_minus_bounds(self.law.slope(self.tail_start), bits)
        return (1 + self.law.signed) * ceil_div(first << bits, (1 << bits) - ratio << self.block_bits)

    def _quick_limit(self) -> int:
        """A number below all acceptance probabilities of the table. Comparing with it decides nearly every draw."""
        last = self.tail_start - (1 << self.block_bits) + self._side_starts()[-1]
        low, _ = exp_minus_bounds(self.law.rise(last, self._end(last)), self._known)
        return low

    def _int64_bases(self) -> Integers:
        bases = self._cells.astype(np.int64)
        rare = bases >= self.cell_count
        if self.law.signed:
            bases = (bases >> 1 << self.block_bits) ^ -(bases & 1)
        else:
            bases <<= self.block_bits
        bases[rare] = _RARE
        return bases

    # ---- one value at a time, in Python integers of any size

    def draw(self, source: EntropySource) -> int:
        """One value."""
        while True:
            value = self.attempt(source)
            if value is not None:
                return value

    def attempt(self, source: EntropySource) -> int | None:
        """One attempt: a value, or None for another try."""
        word = source.word()
        column = word >> self.shift
        branch = 2 * column + (word >= self._threshold_of[column])
        if not self.small:
            cell = self._cell_of[branch]
            return (
                self._draw_rare(cell, source)
                if cell >= self.cell_count
                else self._draw_within(self._base(cell), source)
            )
        # Looked up and not computed: the time of arithmetic on Python's integers would depend on their size.
        base = self._base_of[branch]
        if base == _RARE:
            return self._draw_rare(self._cell_of[branch], source)
        return self._draw_within(base, source) if self._compares else base

    def _base(self, cell: int) -> int:
        if not self.law.signed:
            return cell << self.block_bits
        base = cell >> 1 << self.block_bits
        return ~base if cell & 1 else base

    def _draw_within(self, base: int, source: EntropySource) -> int | None:
        """A value of the cell with this base, or None where its place in the block is not kept."""
        word = source.word()
        if self.small:
            place, top = word & self._mask, word >> self.block_bits
        else:
            place, top = source.bits(self.block_bits), word
        value = base ^ place
        return value if top < self._quick or self._keeps_one(base, value, top, source) else None

    def _keeps_one(self, base: int, value: int, top: int, source: EntropySource) -> bool:
        """The comparison of ``_keeps`` for one draw: by floats where they are sure."""
        if not self.small:
            return self._keeps(base, value, top, self._known, source)
        prefix, known = top << self.layout.word_bits | source.word(), self._known + self.layout.word_bits
        start = float(self._start(base))
        place = self._start(value) - start
        gap = prefix * 2.0**-known - math.exp(-place * (self._linear + self._square * (2 * start + place)))
        if abs(gap) > GUARD + 2.0**-known:
            return gap < 0
        return self._keeps(base, value, prefix, known, source)

    def _keeps(self, base: int, value: int, prefix: int, known: int, source: EntropySource) -> bool:
        """Whether a uniform with this prefix is below exp(−(E(|value|) − E(|base|))), exactly."""
        rise = self.law.rise(self._start(base), self._start(value))
        return lazy.is_below(prefix, known, lazy.bounds_of_exp_minus(rise), source, step=self.layout.word_bits)

    def _draw_rare(self, cell: int, source: EntropySource) -> int | None:
        """What a word of the fraction, the tail or the filler leads to."""
        kind = cell - self.cell_count
        if kind == 0:
            return self._draw_fraction(source)
        return self._draw_tail(source) if kind == 1 else None

    def _draw_fraction(self, source: EntropySource) -> int | None:
        cell = source.bits((self.cell_count - 1).bit_length())
        while cell >= self.cell_count:
            cell = source.bits((self.cell_count - 1).bit_length())
        base = self._base(cell)
        bounds = self._fraction_bounds(self.law.exponent(self._start(base)))
        if not lazy.is_below(0, 0, bounds, source, step=self.layout.word_bits):
            return None
        return self._draw_within(base, source) if self._compares else base

    def _fraction_bounds(self, exponent: Fraction) -> lazy.RealBounds:
        """The bounds of s·w − ⌊s·w⌋ for w = exp(−exponent)."""
        s, extra = self.multiplier, self.layout.word_bits

        def scaled_bounds(bits: int) -> tuple[int, int]:
            low, high = exp_minus_bounds(exponent, bits + extra)
            return s * low >> extra, ceil_div(s * high, 1 << extra)

        known = extra
        while (low := scaled_bounds(known)[0] >> known) != scaled_bounds(known)[1] >> known:
            known *= 2
        floor = low

        def bounds(bits: int) -> tuple[int, int]:
            low, high = scaled_bounds(bits)
            return low - (floor << bits), high - (floor << bits)

        return bounds

    def _draw_tail(self, source: EntropySource) -> int | None:
        slope = self.law.slope(self.tail_start)
        negative = self.law.signed and source.bits(1)
        further = make_block_table(Law(linear=slope, signed=False), self.layout).draw(source)
        value = ~(self.tail_start + further) if negative else self.tail_start + further
        kept = self._keeps_beyond(value, slope * further, source) and lazy.is_below(
            0, 0, self._tail_bounds, source, step=self.layout.word_bits
        )
        return value if kept else None

    def _keeps_beyond(self, value: int, envelope: Fraction, source: EntropySource) -> bool:
        """Keeps a value of the tail with probability exp(−(E(|value|) − E(M) − envelope))."""
        excess = self.law.rise(self.tail_start, self._start(value)) - envelope
        return lazy.is_below(0, 0, lazy.bounds_of_exp_minus(excess), source, step=self.layout.word_bits)

    def _tail_bounds(self, bits: int) -> tuple[int, int]:
        """Bounds on T/m."""
        more = bits + self.layout.word_bits + self.tail_start.bit_length() + 8
        low, high = exp_minus_bounds(self.law.exponent(self.tail_start), more)
        ratio_low, ratio_high = exp_minus_bounds(self.law.slope(self.tail_start), more)
        times = (1 + self.law.signed) * self.multiplier << bits
        mass = self.tail_mass << self.block_bits
        return (
            times * low // (mass * ((1 << more) - ratio_low)),
            ceil_div(times * high, mass * ((1 << more) - ratio_high)),
        )

    # ---- many values at once, in int64

    def fill(self, out: Integers, source: EntropySource) -> None:
        """Fill a flat int64 array with independent values."""
        if len(out) < FEW:
            for lane in range(len(out)):
                out[lane] = self.draw(source)
            return
        chunks = range(0, len(out), CHUNK)
        lost = np.concatenate([start + self._fill_chunk(out[start : start + CHUNK], source) for start in chunks])
        again = np.empty(len(lost), dtype=np.int64)
        self.fill(again, source)
        out[lost] = again

    def _fill_chunk(self, out: Integers, source: EntropySource) -> Lanes:
        """Fill the array; returns the lanes whose attempt failed and that must be drawn again."""
        words = source.words(len(out))
        columns = (words >> np.uint64(self.shift)).view(np.int64)
        branches = words >= self._thresholds.take(columns)
        columns <<= 1
        columns += branches
        self._bases.take(columns, out=out, mode="clip")  # mode: columns are in range, and numpy then needs no copy
        rare = np.flatnonzero(out == _RARE) if out.min() == _RARE else _NO_LANES
        out[rare] = 0  # these lanes are drawn below, so any base is good here
        lost = self._place(out, source) if self._compares else _NO_LANES
        if rare.size:
            lost = np.setdiff1d(lost, rare)
            for lane in rare.tolist():
                value = self._draw_rare(self._cell_of[columns[lane]], source)
                out[lane] = self.draw(source) if value is None else value
        return lost

    def _place(self, bases: Integers, source: EntropySource) -> Lanes:
        """Turn bases into values in place by adding the place inside the block; returns the lanes that are not kept."""
        words = source.words(len(bases))  # low bits: the place; the others: a uniform for the comparison
        undecided = np.flatnonzero(words >= np.uint64(self._quick << self.block_bits))
        lost = undecided[~self._keeps_each(bases[undecided], words[undecided], source)]
        words &= np.uint64(self._mask)
        bases ^= words.view(np.int64)
        return lost

    def _keeps_each(self, bases: Integers, words: Words, source: EntropySource) -> Flags:
        """The comparison of ``_keeps`` for many lanes: by floats where they are sure, exactly elsewhere."""
        known, word_bits = self._known, self.layout.word_bits
        places = (words & np.uint64(self._mask)).view(np.int64)
        tops, more = words >> np.uint64(self.block_bits), source.words(len(words))
        uniform = (tops.astype(np.float64) + more.astype(np.float64) * 2.0**-word_bits) * 2.0**-known
        gap = uniform - np.exp(-self._rises(self._starts(bases).astype(np.float64), places.astype(np.float64)))
        kept: Flags = gap < 0
        known += word_bits
        for lane in np.flatnonzero(np.abs(gap) <= GUARD + 2.0**-known).tolist():
            base, prefix = int(bases[lane]), int(tops[lane]) << word_bits | int(more[lane])
            kept[lane] = self._keeps(base, base ^ int(places[lane]), prefix, known, source)
        return kept

    def _rises(self, starts: Floats, places: Floats) -> Floats:
        """E(start + place) − E(start) in floats, to within a few parts in 2^52."""
        return places * (self._linear + self._square * (2 * starts + places))


def sample(table: BlockTable, size: Size | None, source: EntropySource) -> int | Integers:
    """One value, or an array of them: int64, or Python integers where the scale is wide."""
    if size is None:
        return table.draw(source)
    lengths = read_shape(size)
    count = math.prod(lengths)
    if table.wide:
        values = np.array([table.draw(source) for _ in range(count)], dtype=object)
        return cast("Integers", values.reshape(lengths))  # the one exception to int64, stated in every docstring
    out = np.empty(count, dtype=np.int64)
    table.fill(out, source)
    return out.reshape(lengths)


@lru_cache(maxsize=64)
def make_block_table(law: Law, layout: TableLayout = STANDARD) -> BlockTable:
    """The table of a law; the last few used are kept, at most about 300 kB each."""
    return BlockTable(law, layout)
