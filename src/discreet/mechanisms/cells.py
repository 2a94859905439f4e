"""Choosing from counts by cell, in many groups at once: quantiles, and the most frequent value.

A unit may reach into several groups. These mechanisms state the loss of all groups together: as if a unit changed
``max_rows`` rows in each of ``groups`` groups (see ``bounding.contributions.reach``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np

from discreet import parameters
from discreet.accounting.events import Event
from discreet.accounting.events import Exponential as ExponentialEvent
from discreet.entropy import SYSTEM, Source
from discreet.errors import ParameterError
from discreet.exact import Exact, Integers, lower
from discreet.mechanisms.exponential import loss_from_rho, short, utility_loss
from discreet.mechanisms.mechanism import Stated, only_one, settle
from discreet.mechanisms.quantile import read_q
from discreet.mechanisms.ranks import draw, runs_of
from discreet.parameters import Epsilon, Number
from discreet.privacy import Neighbours
from discreet.samplers import categorical_exp, uniform_below

# Fine parts of one cell that tell equal rows apart where several quantiles are chosen.
_PART_BITS = 20


@dataclass(frozen=True, kw_only=True, repr=False)
class Cells(Stated):
    """What quantiles and modes share: the cells ``first`` to ``last``, how far a unit reaches, and a budget."""

    first: int
    last: int
    groups: int = 1
    max_rows: int = 1
    epsilon: Epsilon | None = None
    rho: Number | None = None

    def __post_init__(self) -> None:
        Stated.__post_init__(self)
        settle(
            self,
            groups=parameters.whole(self.groups, "groups"),
            max_rows=parameters.whole(self.max_rows, "max_rows"),
        )
        if self.last < self.first:
            raise ParameterError("last", "is below first", "Give the cells in ascending order.")
        form = only_one({"epsilon": self.epsilon, "rho": self.rho}, "Give epsilon=1, or rho=0.1 to count in zCDP.")
        if form == "epsilon":
            settle(self, epsilon=parameters.epsilon(self.epsilon))
        else:
            settle(self, rho=parameters.positive(self.rho, "rho"))
        _ = self.loss

    @property
    def rounds(self) -> int:
        """How many choices one unit can influence in one group."""
        return 1

    @cached_property
    def loss(self) -> Exact:
        """The ε of one choice."""
        rounds = self.rounds * self.groups
        if self.epsilon is None:
            return loss_from_rho(self.rho, rounds)
        whole = parameters.epsilon(self.epsilon)
        return whole if rounds == 1 else lower(whole) / rounds

    @property
    def event(self) -> Event:
        """What one release of all groups amounts to."""
        return ExponentialEvent(
            epsilon=self.loss, count=self.rounds * self.groups, neighbours=self.neighbours, unit=self.unit
        )

    @property
    def events(self) -> tuple[Event, ...]:
        return (self.event,)


@dataclass(frozen=True, kw_only=True, repr=False)
class CellQuantiles(Cells):
    """For each group, the cells with about shares ``qs`` of the rows below them.

    Privacy: as ``Quantile`` and ``Quantiles``, in each of ``groups`` groups. Why: a choice loses ε·c/R when c ≤ R =
    ``max_rows`` rows of its group change, and ``reach`` covers what a unit changes in all groups.
    """

    qs: Sequence[Number]

    def __post_init__(self) -> None:
        read = tuple(read_q(q) for q in self.qs)
        if not read or any(a >= b for a, b in pairwise(read)):
            raise ParameterError("qs", "must increase, and be at least one", "Sort them, and give each once.")
        settle(self, qs=read)
        Cells.__post_init__(self)

    @property
    def rounds(self) -> int:
        return len(self.qs).bit_length()

    def _factor(self, q: Fraction) -> Fraction:
        """The multiple of the rank error in the exponent."""
        share = max(q, 1 - q) if self.neighbours == Neighbours.ADD_REMOVE else Fraction(1)
        return short(lower(self.loss) / (2 * self.max_rows * share))

    def release(self, cells: Integers, counts: Integers, *, source: Source = SYSTEM) -> tuple[int, ...]:
        """The chosen cells of one group, in the order of ``qs``; ``counts`` are the rows in each of ``cells``."""
        rows = np.repeat(np.asarray(cells, dtype=np.int64), np.asarray(counts, dtype=np.int64))
        shares = [read_q(q) for q in self.qs]
        if len(shares) == 1:
            return (draw(runs_of(rows, shares[0], self.first, self.last), self._factor(shares[0]), source),)
        fine = np.sort((rows << _PART_BITS) + uniform_below(1 << _PART_BITS, rows.size, source=source))
        low, high = self.first << _PART_BITS, ((self.last + 1) << _PART_BITS) - 1
        return tuple(value >> _PART_BITS for value in self._side(fine, shares, low, high, source))

    def _side(self, rows: Integers, shares: list[Fraction], low: int, high: int, source: Source) -> list[int]:
        """The quantiles of one side, whose sorted rows lie within [low, high]."""
        if not shares:
            return []
        middle = len(shares) // 2
        q = shares[middle]
        value = draw(runs_of(rows, q, low, high), self._factor(q), source)
        under, over = np.searchsorted(rows, [value, value + 1])
        left = self._side(rows[:under], [s / q for s in shares[:middle]], low, value, source)
        right = self._side(rows[over:], [(s - q) / (1 - q) for s in shares[middle + 1 :]], value, high, source)
        return [*left, value, *right]

    def error(self, beta: Number, of: int = 1) -> float:
        """The largest rank error, in rows, of all quantiles of ``of`` groups, except with probability beta."""
        share = parameters.open_probability(beta, "beta") / (parameters.whole(of, "of") * len(self.qs))
        parts = _PART_BITS if len(self.qs) > 1 else 0
        q = read_q(self.qs[0]) if len(self.qs) == 1 else Fraction(0)
        one = utility_loss(self._factor(q), beta=share, candidates=(self.last - self.first + 1) << parts)
        return self.rounds * (one + (len(self.qs) > 1))


@dataclass(frozen=True, kw_only=True, repr=False)
class CellMode(Cells):
    """For each group, a cell that holds about as many rows as the fullest: the exponential mechanism on counts.

    Privacy: a choice loses ε·c/R when c ≤ R = ``max_rows`` rows of its group change. Why: rows that come only raise
    counts, by c at most, so under add-remove e^(ε·count/R) suffices; a replaced unit may do both, which takes half.
    """

    def _factor(self) -> Fraction:
        monotone = self.neighbours == Neighbours.ADD_REMOVE
        return short(lower(self.loss) / (self.max_rows if monotone else 2 * self.max_rows))

    def release(self, cells: Integers, counts: Integers, *, source: Source = SYSTEM) -> int:
        """The chosen cell of one group."""
        scores = np.zeros(self.last - self.first + 1, dtype=np.int64)
        scores[np.asarray(cells, dtype=np.int64) - self.first] = counts
        return self.first + categorical_exp(scores, self._factor(), source=source)

    def error(self, beta: Number, of: int = 1) -> float:
        """How many rows fewer than the fullest cell a chosen one may have, in all of ``of`` groups."""
        share = parameters.open_probability(beta, "beta") / parameters.whole(of, "of")
        return utility_loss(self._factor(), beta=share, candidates=self.last - self.first + 1)
