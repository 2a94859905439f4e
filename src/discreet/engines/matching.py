"""Which distinct values count: pairs of a unit and an item, taken greedily in a secret order. No SQL here.

An item is a group and a value. A pair is taken if its item is free and its unit has taken fewer than ``max_values``.
What one unit can change is proved in docs/proofs/distinct-values.md, for any order of pairs that does not depend on
which pairs there are.

The work is one pass over the pairs, however they are distributed. It needs 8 bytes for each unit, 1 for each item, or
twice that, and a batch of pairs at a time.
"""

from __future__ import annotations

from array import array

import numpy as np

from discreet.exact import Integers


class Matching:
    """Says which pairs are taken, while they come in their order. Units and items are numbers from 0."""

    def __init__(self, max_values: int) -> None:
        self._most = min(max_values, 2**62)
        self._room = array("q")  # how many values each unit may still take
        self._free = bytearray()  # 1 for each item that nobody has taken

    def take(self, units: Integers, items: Integers) -> Integers:
        """Go on with the next pairs: the places of those that are taken. Every item is taken once at most."""
        taken = array("q")
        if not len(units):
            return np.frombuffer(taken, dtype=np.int64)
        self._grow(int(units.max()) + 1, int(items.max()) + 1)
        room, free = self._room, self._free
        # Pairs that could not be taken before this batch cannot be taken in it. The others are gone through one by one.
        able = (np.frombuffer(free, dtype=np.uint8)[items] > 0) & (np.frombuffer(room, dtype=np.int64)[units] > 0)
        for place, unit, item in zip(np.flatnonzero(able).tolist(), units[able].tolist(), items[able].tolist()):
            if free[item] and room[unit]:
                free[item] = 0
                room[unit] -= 1
                taken.append(place)
        return np.frombuffer(taken, dtype=np.int64)

    def _grow(self, units: int, items: int) -> None:
        """Make place for units and items that were not seen before, for twice as many as there were at least."""
        if units > len(self._room):
            more = max(units, 2 * len(self._room)) - len(self._room)
            self._room = self._room + array("q", [self._most]) * more
        if items > len(self._free):
            more = max(items, 2 * len(self._free)) - len(self._free)
            self._free = self._free + b"\1" * more
