"""Rows that fit tables: gradual updating (Zhang et al. 2021, "PrivSyn", section 5). Post-processing of a release.

The rows begin as independent draws from the one-way tables. Then, table after table and round after round, some rows of
cells that are too full give way to rows of cells that are too empty: half of the new ones are copies of whole rows
that are in the cell already, and half are the old rows with only the table's own columns changed. Steps get smaller,
and in the second half of the rounds copies are more: they disturb other tables less. Where noise is small there are
more rounds, because then it is the fitting that limits what rows know.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

import numpy as np

from discreet.exact import Flags, Floats, Integers
from discreet.late_dataclass import dataclass
from discreet.publish.allocation import Allocation
from discreet.publish.chance import PublicChance
from discreet.publish.noise_prediction import predict_noise
from discreet.publish.workload import Attributes

# Steps fall to so much of the first one, in however many rounds there are.
_LAST_STEP = 0.03
# The share of copies in the first and in the second half.
COPIES = (0.5, 0.85)
# Below the first number of predicted noise, in parts of the rows, there are so many rounds.
_ROUNDS = ((0.02, 40), (0.05, 30), (math.inf, 20))


def choose_rounds(allocation: Allocation, rows: int) -> int:
    """How many rounds are worth it, by the mean noise that is predicted for tables of several columns. Public."""
    several = [part for part in allocation.workload.weights if len(part) > 1]
    noise = sum(predict_noise(allocation, part, rows) for part in several) / max(1, len(several))
    return next(rounds for most, rounds in _ROUNDS if noise < most)


Allowed: TypeAlias = Callable[[Integers], Flags]
"""Which rows (one line for each, one column for each column) keep every constraint."""


@dataclass
class RowFitter:
    """Rows of codes, and the tables that they are to fit; ``tables`` sum to the number of rows."""

    rows: Integers
    sizes: Sequence[int]
    tables: Mapping[Attributes, Floats]
    chance: PublicChance
    allowed: Allowed | None = None
    _dice: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # One long row of random numbers, begun at another place for each use, is chance enough for this.
        self._dice = self.chance.uniform(2 * self.rows.shape[1])

    def run(self, rounds: int, watch: Callable[[float], None] | None = None) -> Integers:
        """The rows after all rounds. ``watch`` hears the share that is done."""
        order = list(self.tables)
        for number in range(rounds):
            step = _LAST_STEP ** (number / rounds)
            copies = COPIES[2 * number // rounds]
            for place in self.chance.shuffle(len(order)):
                self._fit(order[place], step, copies)
            if watch is not None:
                watch((number + 1) / rounds)
        return self.rows

    def _roll(self) -> Floats:
        count = self.rows.shape[1]
        start = self.chance.below(count)
        return np.asarray(self._dice[start : start + count])

    def _fit(self, attributes: Attributes, step: float, copies: float) -> None:
        target = self.tables[attributes].reshape(-1)
        shape = tuple(self.sizes[column] for column in attributes)
        cells = self._find_cells(attributes, shape)
        counts = np.bincount(cells, minlength=target.size)
        missing = (target - counts) * step
        held = np.maximum(counts, 1)
        leaving = np.nonzero(self._roll() < (np.maximum(-missing, 0) / held)[cells])[0]
        if not leaving.size:
            return
        wanted = np.maximum(missing, 0)
        copied = np.where(counts > 0, wanted * copies, 0)
        givers = self._choose_givers(copied / held, cells)
        made = self.chance.round(wanted - copied)
        self._exchange(leaving, givers, np.repeat(np.arange(target.size), made), attributes, shape)

    def _find_cells(self, attributes: Attributes, shape: tuple[int, ...]) -> Integers:
        cells = self.rows[attributes[0]].astype(np.int64)
        for column, size in zip(attributes[1:], shape[1:]):
            cells = cells * size + self.rows[column]
        return np.asarray(cells)

    def _choose_givers(self, rates: Floats, cells: Integers) -> Integers:
        """Rows to copy; one row may be copied more than once."""
        rate = rates[cells]
        times = np.floor(rate) + (self._roll() < rate - np.floor(rate))
        some = np.nonzero(times)[0]
        return np.repeat(some, times[some].astype(np.int64))

    def _exchange(
        self, leaving: Integers, givers: Integers, made: Integers, attributes: Attributes, shape: tuple[int, ...]
    ) -> None:
        """Put copies and changed rows in the places of rows that leave."""
        places = leaving[self.chance.shuffle(leaving.size)]
        offers = self.chance.shuffle(givers.size + made.size)[: places.size]
        places = places[: offers.size]
        copies = offers < givers.size
        change = made[offers[~copies] - givers.size]
        new = self.rows[:, places]
        new[:, copies] = self.rows[:, givers[offers[copies]]]
        for column, values in zip(attributes, np.unravel_index(change, shape)):
            new[column, ~copies] = values
        if self.allowed is not None:
            good = self.allowed(new)
            places, new = places[good], new[:, good]
        self.rows[:, places] = new


def begin_rows(one_ways: Sequence[Floats], count: int, chance: PublicChance) -> Integers:
    """Rows whose columns fit their one-way tables, independently of each other."""
    return np.stack([chance.deal(table, count) for table in one_ways]).astype(np.int32)
