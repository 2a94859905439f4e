"""Choices from counts by cell, in many groups at once: quantiles, and the most frequent value.

A unit may have rows in several groups. These mechanisms state the loss of all groups together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np

from discreet import parameters
from discreet.accounting.events import Event
from discreet.accounting.events import Exponential as ExponentialEvent
from discreet.entropy import SYSTEM, EntropySource
from discreet.errors import ParameterError
from discreet.exact import Exact, Integers, Interval, lower
from discreet.late_dataclass import dataclass
from discreet.mechanisms.exponential import loss_of_round, read_choice_budget, shorten_down, utility_loss
from discreet.mechanisms.mechanism import EventMechanism, OneEventMechanism, settle
from discreet.mechanisms.quantiles.column_quantiles import read_q, read_qs
from discreet.mechanisms.quantiles.group_sides import draw_quantiles_of_groups, expand_rows
from discreet.mechanisms.quantiles.lazy_rows import LazyRows, Side, draw_quantiles
from discreet.mechanisms.quantiles.ranks import CellCounts, draw_all, probability, runs_of_counts
from discreet.mechanisms.quantiles.segments import Segments, draw_each
from discreet.mechanisms.scores import exp_minus, sum_intervals
from discreet.parameters import Epsilon, Number
from discreet.privacy import Neighbours

# Fine parts of one cell that tell equal rows apart where several quantiles are chosen, and places on the grid in all.
_PART_BITS, _GRID_BITS = 20, 61
# A group has fewer rows than this.
_MOST_ROWS = 1 << 60
# In a group with more cells than this (or rows, for several quantiles) only the cells near the quantile are read.
# Smaller groups are drawn together, in batches of about so many cells or rows.
_FEW, _BATCH = 1024, 1 << 20


@dataclass(frozen=True, kw_only=True, repr=False)
class CellMechanism(OneEventMechanism):
    """The base of quantiles and modes of cells ``first`` to ``last``: how many rows a unit has where, and a budget.

    The groups that one unit has rows in can be put into ``groups`` bundles with at most ``max_rows`` of its rows each.
    So groups=5, max_rows=3 is for a unit with up to 3 rows in each of 5 groups, and groups=1, max_rows=20 is for one
    with up to 20 rows in any groups. Rows may be counted in parts, if ``max_rows`` is counted in the same parts.

    ``release_all`` draws in all groups at once; a group is its cells and the rows in each of them. Their order is the
    caller's, who must make it independent of the data. A group without rows is an empty histogram.

    Privacy: ``event`` covers the draws of all groups together. A choice in one group has the range ε₀·c/M if c rows of
    it come or go, where ε₀ = ``loss`` and M = ``max_rows``, or 2·``max_rows`` under replace: the rows of the old unit
    and those of the new one. Why that covers all groups: they are drawn independently, and ranges of independent draws
    add up. Under add-remove, the changed groups are a unit's bundles of at most M rows, so each bundle has a range of
    at most ε₀. Under replace, bundles of both units are paired, those that share a group first, which makes ``groups``
    pairs with at most M rows each. docs/proofs/choices-in-groups.md has the steps.
    Reference: Durfee and Rogers 2019 for bounded range; the bundles are proved there and tested over all small cases.
    """

    first: int
    last: int
    groups: int = 1
    max_rows: int = 1
    epsilon: Epsilon | None = None
    rho: Number | None = None

    def __post_init__(self) -> None:
        EventMechanism.__post_init__(self)
        wide = 1 << _GRID_BITS
        settle(
            self,
            first=parameters.read_whole(self.first, "first", least=-wide, most=wide),
            last=parameters.read_whole(self.last, "last", least=-wide, most=wide),
            groups=parameters.read_whole(self.groups, "groups"),
            max_rows=parameters.read_whole(self.max_rows, "max_rows", most=_MOST_ROWS),
        )
        if self.last < self.first:
            raise ParameterError("last", "is below first", "Give the cells in ascending order.")
        if self.size << self._bits >= wide:
            raise ParameterError("last", "is too far from first", "Use fewer, coarser cells.")
        epsilon, rho = read_choice_budget(self.epsilon, self.rho)
        settle(self, epsilon=epsilon, rho=rho)
        _ = self.loss  # refuse a ρ that is too large, now

    @property
    def size(self) -> int:
        """How many cells there are."""
        return self.last - self.first + 1

    @property
    def rounds(self) -> int:
        """How many choices one unit can influence in one group."""
        return 1

    @property
    def _bits(self) -> int:
        """A cell has 2^bits places."""
        return 0

    @property
    def _ends(self) -> tuple[int, int]:
        """The first place and the last."""
        return self.first << self._bits, ((self.last + 1) << self._bits) - 1

    @cached_property
    def loss(self) -> Exact:
        """The ε₀ of one choice."""
        return loss_of_round(self.epsilon, self.rho, self.rounds * self.groups)

    @property
    def _changes(self) -> int:
        """M: how many rows of one bundle come or go between neighbours."""
        return self.max_rows * (1 if self.neighbours == Neighbours.ADD_REMOVE else 2)

    @property
    def event(self) -> Event:
        """The event that describes one release of all groups."""
        return ExponentialEvent(
            epsilon=self.loss, count=self.rounds * self.groups, neighbours=self.neighbours, unit=self.unit
        )

    def find_rank_factor(self, q: Fraction, *, in_place: bool) -> Fraction:
        """The multiple of a rank error in the exponent, where one choice is by the error for the rank q·n."""
        moved: Fraction | int = self._changes * max(q, 1 - q)
        if in_place:
            moved = min(moved, self.max_rows)
        return shorten_down(lower(self.loss) / (2 * moved))

    def _read(self, histograms: Sequence[CellCounts]) -> list[CellCounts]:
        """Cells in ascending order within the declared ones, with whole counts of one or more."""
        return [self._check_histogram(cells, counts) for cells, counts in histograms]

    def _check_histogram(self, cells: object, counts: object) -> CellCounts:
        read, rows = _read_whole(cells, "cells"), _read_whole(counts, "counts")
        if read.ndim != 1 or read.shape != rows.shape:
            raise ParameterError("counts", "must be one number for each cell", "Give two flat lists of one length.")
        if read.size:
            if int(read[0]) < self.first or int(read[-1]) > self.last or bool((read[1:] <= read[:-1]).any()):
                raise ParameterError("cells", "must ascend, from first to last at most", "Sort them, each once.")
            if int(rows.min()) < 1 or float(rows.sum(dtype=np.float64)) >= _MOST_ROWS:
                raise ParameterError("counts", "must be one row or more, and not too many", "Leave out empty cells.")
        return read, rows


@dataclass(frozen=True, kw_only=True, repr=False)
class CellQuantiles(CellMechanism):
    """For each group, the cells with about shares ``qs`` of the rows below them: as ``Quantile`` and ``Quantiles``.

    ``in_place=True`` states that there is one group only, so that a replaced unit stays in it.

    Privacy: for all groups together, what ``CellMechanism`` states. Why: a row that comes or goes moves the rank error
    of a cell by at most m = max(q, 1 − q), so c rows move it by c·m up or down, and exp(−ε₀·error/(2·M·m)) has the
    range ε₀·c/M. Under replace in one place, rows that go are paired with rows that come: a pair moves a rank error by
    1 at most, and ``max_rows`` pairs cover the two units, so exp(−ε₀·error/(2·max_rows)) does. For several quantiles
    there are L levels, and a row takes part once in each (see ``Quantiles``), so ``event`` counts L choices for each
    group. Reference: Smith 2011; Kaplan, Schnapp and Stemmer 2022; docs/proofs/choices-in-groups.md.

    >>> median = CellQuantiles(qs=[0.5], first=0, last=100, epsilon=2000)
    >>> median.release([10, 20, 30], [5, 2, 6])
    (20,)
    >>> CellQuantiles(qs=[0.25, 0.5, 0.75], first=0, last=100, groups=5, epsilon=1).event.count
    10
    """

    qs: Sequence[Number]
    in_place: bool = False

    def __post_init__(self) -> None:
        settle(self, qs=read_qs(self.qs), in_place=read_in_place(self.in_place))
        CellMechanism.__post_init__(self)

    @property
    def rounds(self) -> int:
        """How many levels there are: a unit can influence one choice in each."""
        return len(self.qs).bit_length()

    @property
    def _bits(self) -> int:
        return _PART_BITS if len(self.qs) > 1 else 0

    def _factor(self, q: Fraction) -> Fraction:
        """The multiple of the rank error in the exponent, for a quantile q of a group or of one side."""
        return self.find_rank_factor(q, in_place=self.in_place and len(self.qs) == 1)

    def release(self, cells: Integers, counts: Integers, *, source: EntropySource = SYSTEM) -> tuple[int, ...]:
        """The chosen cells of one group, in the order of ``qs``; ``counts`` are the rows in each of ``cells``."""
        return self.release_all([(cells, counts)], source=source)[0]

    def release_all(self, histograms: Sequence[CellCounts], *, source: EntropySource = SYSTEM) -> list[tuple[int, ...]]:
        """The chosen cells of each group, in the order of ``qs``. In a group without rows all cells are equally likely.

        ``event`` covers one call for all groups. Small groups are drawn together. A large group is drawn by itself and
        most of its cells are not read. The law is the same.
        """
        read, shares = self._read(histograms), [read_q(q) for q in self.qs]
        sizes = [cells.size if len(shares) == 1 else int(counts.sum()) for cells, counts in read]
        small = [i for i, size in enumerate(sizes) if size <= _FEW]
        found: dict[int, tuple[int, ...]] = {}
        for batch in _make_batches(small, sizes):
            places = self._draw_together([read[i] for i in batch], shares, source)
            found.update(zip(batch, zip(*((place >> self._bits).tolist() for place in places))))
        return [found[i] if i in found else self._draw_alone(*read[i], shares, source) for i in range(len(read))]

    def _draw_together(self, groups: list[CellCounts], shares: list[Fraction], source: EntropySource) -> list[Integers]:
        if len(shares) == 1:
            runs = runs_of_counts(groups, shares[0], self.first, self.last)
            return [draw_all(runs, self._factor(shares[0]), source)]
        sides = expand_rows(groups, self._bits, *self._ends)
        return draw_quantiles_of_groups(sides, shares, self._factor, source)

    def _draw_alone(
        self, cells: Integers, counts: Integers, shares: list[Fraction], source: EntropySource
    ) -> tuple[int, ...]:
        column = LazyRows(cells, counts, self._bits)
        low, high = self._ends
        places = draw_quantiles(column, shares, Side(low, high, 0, column.rows), self._factor, source)
        return tuple(place >> self._bits for place in places)

    def probability(self, output: int, given: CellCounts) -> Interval:
        """The probability of one cell in a group with this histogram, where one quantile is chosen; to 150 bits."""
        if len(self.qs) > 1:
            raise ParameterError("qs", "must be one for an exact probability", "Ask about one quantile at a time.")
        value = parameters.read_whole(output, "output", least=self.first, most=self.last)
        q = read_q(self.qs[0])
        return probability(
            runs_of_counts([self._check_histogram(*given)], q, self.first, self.last), self._factor(q), value
        )

    def error(self, beta: Number, of: int = 1) -> float:
        """The largest rank error, in rows, of all quantiles of ``of`` groups, except with probability beta.

        Errors of the levels add up; so may the rows at one of the 2^20 places of a cell, which are few.
        """
        share = parameters.read_probability(beta, "beta") / (parameters.read_whole(of, "of") * len(self.qs))
        one = len(self.qs) == 1
        worst = self._factor(read_q(self.qs[0]) if one else Fraction(0))
        found = utility_loss(worst, beta=share, candidates=self.size << self._bits)
        return found if one else self.rounds * (found + 1)

    def usual_error(self, beta: Number) -> float:
        """The rank error, in rows, that a quantile exceeds with probability beta where values are spread evenly.

        Then ranks are equally frequent among cells, and the error of one choice falls off as exp(−factor·error):
        ln(1/β)/factor, in each level. ``error`` holds whatever the values are, and is far larger.
        """
        share = parameters.read_probability(beta, "beta")
        worst = read_q(self.qs[0]) if len(self.qs) == 1 else Fraction(0)
        return self.rounds * math.log(1 / share) / float(self._factor(worst))


@dataclass(frozen=True, kw_only=True, repr=False)
class CellMode(CellMechanism):
    """For each group, a cell with about as many rows as the fullest cell: the exponential mechanism on counts.

    Privacy: for all groups together, what ``CellMechanism`` states, between neighbours of the stated relation. Why: if
    a rows of a group come and b go, every count moves by at most a up and at most b down, so exp(ε₀·count/M) has the
    range ε₀·(a + b)/M. Counts need not all move the same way: what matters is how far apart the moves of two cells can
    be. Reference: McSherry and Talwar 2007; Durfee and Rogers 2019; docs/proofs/choices-in-groups.md.

    >>> CellMode(first=0, last=9, epsilon=50).release([3, 7], [4, 90])
    (7,)
    """

    @cached_property
    def factor(self) -> Fraction:
        """The multiple of a count in the exponent."""
        return shorten_down(lower(self.loss) / self._changes)

    def release(self, cells: Integers, counts: Integers, *, source: EntropySource = SYSTEM) -> tuple[int, ...]:
        """The chosen cell of one group."""
        return self.release_all([(cells, counts)], source=source)[0]

    def release_all(self, histograms: Sequence[CellCounts], *, source: EntropySource = SYSTEM) -> list[tuple[int, ...]]:
        """The chosen cell of each group; in a group without rows all are equally likely.

        ``event`` covers one call for all groups.
        """
        read = self._read(histograms)
        batches = _make_batches(range(len(read)), [cells.size for cells, _ in read])
        return [(cell,) for batch in batches for cell in self._draw_together([read[i] for i in batch], source)]

    def _draw_together(self, groups: list[CellCounts], source: EntropySource) -> list[int]:
        """Cells without rows are the last run of a group: all of them together are drawn, and then one of them."""
        sizes = np.array([len(cells) for cells, _ in groups], dtype=np.int64)
        stops = np.cumsum(sizes + 1)
        lengths = np.ones(int(stops[-1]), dtype=np.int64)
        lengths[stops - 1] = self.size - sizes
        rows = np.concatenate([part for _, counts in groups for part in (counts, [0])])
        some = lengths > 0
        offsets = np.concatenate([[0], np.cumsum(some)[stops - 1]])
        found, places = draw_each(Segments(lengths[some], -rows[some], offsets), self.factor, source)
        return [
            int(cells[run]) if run < len(cells) else self._find_empty(cells, place)
            for (cells, _), run, place in zip(groups, (found - offsets[:-1]).tolist(), places.tolist())
        ]

    def _find_empty(self, cells: Integers, place: int) -> int:
        """The empty cell with exactly ``place`` empty cells below it."""
        free = cells - self.first - np.arange(cells.size)  # empty cells below each cell that has rows
        return self.first + place + int(np.searchsorted(free, place, side="right"))

    def probability(self, output: int, given: CellCounts) -> Interval:
        """The probability of one cell in a group with this histogram, certified to about 150 bits."""
        value = parameters.read_whole(output, "output", least=self.first, most=self.last)
        cells, counts = self._check_histogram(*given)
        rows = dict(zip(cells.tolist(), counts.tolist()))
        top = max(rows.values(), default=0)
        rates = {cell: exp_minus(self.factor * (top - count)) for cell, count in rows.items()}
        empty = exp_minus(self.factor * top)
        whole = sum_intervals([*rates.values(), Interval.of(self.size - len(rows)) * empty])
        return rates.get(value, empty) / whole

    def error(self, beta: Number, of: int = 1) -> float:
        """How many rows fewer than the fullest cell a chosen one may have, in all of ``of`` groups."""
        share = parameters.read_probability(beta, "beta") / parameters.read_whole(of, "of")
        return utility_loss(self.factor, beta=share, candidates=self.size)


def read_in_place(value: object) -> bool:
    """Whether there is one group only, so that a replaced unit stays in it."""
    if not isinstance(value, bool):
        raise parameters.refuse("in_place", "True or False", value, "Say True if there is one group only.")
    return value


def _read_whole(values: object, name: str) -> Integers:
    """Whole numbers as an int64 array, without a copy where they are one."""
    if isinstance(values, np.ndarray) and values.dtype == np.int64:
        return values
    return parameters.read_integers(values, name)


def _make_batches(numbers: Iterable[int], sizes: Sequence[int]) -> Iterator[list[int]]:
    """The numbers of the groups in batches: a few large groups or many small ones in each."""
    batch, room = list[int](), _BATCH
    for i in numbers:
        batch.append(i)
        room -= sizes[i] + 1
        if room <= 0:
            yield batch
            batch, room = [], _BATCH
    if batch:
        yield batch
