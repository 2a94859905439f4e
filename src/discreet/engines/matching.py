"""Which distinct values are counted: pairs of a unit and an item, taken greedily in a secret order. No SQL here.

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
    """Counts the items that are taken in each group, while pairs come in their order.

    Units, items and groups are numbers from 0. An item is always of the same group.
    """

    def __init__(self, max_values: int, groups: int) -> None:
        self._most = min(max_values, 2**62)
        self._room = array("q")  # how many values each unit may still take
        self._free = bytearray()  # 1 for each item that nobody has taken
        self.counts = [0] * groups

    def add(self, units: Integers, items: Integers, groups: Integers) -> None:
        """Go on with the next pairs."""
        if not len(units):
            return
        self._grow(int(units.max()) + 1, int(items.max()) + 1)
        room, free, counts = self._room, self._free, self.counts
        # Pairs that could not be taken before this batch cannot be taken in it. The others are gone through one by one.
        able = (np.frombuffer(free, dtype=np.uint8)[items] > 0) & (np.frombuffer(room, dtype=np.int64)[units] > 0)
        for unit, item, group in zip(units[able].tolist(), items[able].tolist(), groups[able].tolist()):
            if free[item] and room[unit]:
                free[item] = 0
                room[unit] -= 1
                counts[group] += 1

    def _grow(self, units: int, items: int) -> None:
        """Make place for units and items that were not seen before, for twice as many as there were at least."""
        if units > len(self._room):
            more = max(units, 2 * len(self._room)) - len(self._room)
            self._room = self._room + array("q", [self._most]) * more
        if items > len(self._free):
            more = max(items, 2 * len(self._free)) - len(self._free)
            self._free = self._free + b"\1" * more
