"""Exact draws of ⌊Y⌋ for a *real* number Y with density ∝ exp(−E(|y|)): the blocks of ``block_table``, with a fraction.

The magnitude |Y| is a + r + f: the start a of a block, a whole place r in it, and a uniform fraction f. Both sides
start at 0, and ⌊Y⌋ is a + r, or its complement −(a + r) − 1 on the negative side; Y is a whole number with
probability zero. Words are dealt out as ``block_table`` says, with w = exp(−E(a)). What differs:

- in a cell, r and f are uniform and are kept with probability exp(−(E(a + r + f) − E(a))). So one attempt returns
  m = a + r on one side with probability s·w/2^W · 1/B · ∫₀¹ exp(−(E(m + f) − E(a))) df = s/(B·2^W) · ∫ exp(−E(y)) dy
  over m ≤ y ≤ m + 1: the mass of that unit interval, times a constant;
- in the tail, a side, i ~ geometric(e^(−D)) and f are proposed, and M + i + f is kept with probability
  T/m · exp(−(E(M + i + f) − E(M) − D·i)), which is at most 1, because E(M + i + f) ≥ E(M) + D·(i + f). This gives
  m/2^W · 1/sides · (1 − e^(−D))·e^(−D·i) · T/m · ∫₀¹ exp(−(E(M + i + f) − E(M) − D·i)) df, the same constant times
  the mass of the interval from M + i.

No integral is ever computed: f is drawn. The result does not show f, only whether it was kept, so f is made of as many
bits as that decision needs. Nearly always it needs none: the coin is below the acceptance probability of every place.
Otherwise one word of f and one more of the coin are compared by floats, and where these are closer than ``GUARD`` (and
what the unknown bits of f can change), ``lazy.is_below_at`` adds bits to both until the answer is certain.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from discreet.entropy import EntropySource, Words
from discreet.exact import Flags, Integers, exp_minus_bounds
from discreet.samplers import block_table, lazy
from discreet.samplers.block_table import STANDARD, BlockTable, TableLayout
from discreet.samplers.law import Law

_ZERO = Fraction(0)


class RealTable(BlockTable):
    """The table of ⌊Y⌋ for a law of real numbers. It is used like ``BlockTable``."""

    def __init__(self, law: Law, layout: TableLayout = STANDARD) -> None:
        super().__init__(law, layout)
        # One unit of the last known bit of f moves no acceptance probability by more than this.
        self._unknown = float(law.slope(self.tail_start)) * 2.0**-layout.word_bits if self.small else 0.0

    def _is_falling(self) -> bool:
        return True

    def _side_starts(self) -> tuple[int, ...]:
        return (0, 0) if self.law.signed else (0,)

    def _start(self, base: int) -> int:
        return ~base if base < 0 else base

    def _starts(self, bases: Integers) -> Integers:
        return bases ^ (bases >> 63)

    def _end(self, start: int) -> int:
        return start + (1 << self.block_bits)

    def _keeps_one(self, base: int, value: int, top: int, source: EntropySource) -> bool:
        if not self.small:
            return self._keeps(base, value, top, self._known, source)
        word_bits = self.layout.word_bits
        prefix, known, fraction = top << word_bits | source.word(), self._known + word_bits, source.word()
        start = float(self._start(base))
        place = self._start(value) - start + fraction * 2.0**-word_bits
        gap = prefix * 2.0**-known - math.exp(-place * (self._linear + self._square * (2 * start + place)))
        if abs(gap) > block_table.GUARD + 2.0**-known + self._unknown:
            return gap < 0
        bounds_at = self._make_bounds(self._start(base), value)
        return self._is_below((prefix, known), (fraction, word_bits), bounds_at, source)

    def _keeps(self, base: int, value: int, prefix: int, known: int, source: EntropySource) -> bool:
        """Whether a uniform with this prefix is below exp(−(E(|value| + f) − E(|base|))) for a fresh f, exactly."""
        return self._is_below((prefix, known), (0, 0), self._make_bounds(self._start(base), value), source)

    def _keeps_beyond(self, value: int, envelope: Fraction, source: EntropySource) -> bool:
        return self._is_below((0, 0), (0, 0), self._make_bounds(self.tail_start, value, envelope), source)

    def _make_bounds(self, start: int, value: int, envelope: Fraction = _ZERO) -> lazy.RealBoundsAt:
        """The bounds of exp(−(E(|value| + f) − E(start) − envelope)), as a function of f."""
        size = self._start(value)
        return lambda f, bits: exp_minus_bounds(self.law.rise(start, size + f) - envelope, bits)

    def _is_below(
        self, coin: lazy.Prefix, place: lazy.Prefix, bounds_at: lazy.RealBoundsAt, source: EntropySource
    ) -> bool:
        return lazy.is_below_at(coin, place, bounds_at, source, step=self.layout.word_bits)

    def _keeps_each(self, bases: Integers, words: Words, source: EntropySource) -> Flags:
        known, word_bits = self._known, self.layout.word_bits
        places = (words & np.uint64(self._mask)).view(np.int64)
        tops, more = words >> np.uint64(self.block_bits), source.words(len(words))
        fractions = source.words(len(words))
        uniform = (tops.astype(np.float64) + more.astype(np.float64) * 2.0**-word_bits) * 2.0**-known
        within = places.astype(np.float64) + fractions.astype(np.float64) * 2.0**-word_bits
        gap = uniform - np.exp(-self._rises(self._starts(bases).astype(np.float64), within))
        kept: Flags = gap < 0
        known += word_bits
        guard = block_table.GUARD + 2.0**-known + self._unknown
        for lane in np.flatnonzero(np.abs(gap) <= guard).tolist():
            base, prefix = int(bases[lane]), int(tops[lane]) << word_bits | int(more[lane])
            bounds_at = self._make_bounds(self._start(base), base ^ int(places[lane]))
            kept[lane] = self._is_below((prefix, known), (int(fractions[lane]), word_bits), bounds_at, source)
        return kept


@lru_cache(maxsize=64)
def make_real_table(law: Law, layout: TableLayout = STANDARD) -> RealTable:
    """The table of a law of real numbers; the last few used are kept, at most about 300 kB each."""
    return RealTable(law, layout)
