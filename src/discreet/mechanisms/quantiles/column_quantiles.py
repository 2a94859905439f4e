"""Quantiles of a bounded column: one quantile, or many at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from discreet import parameters
from discreet.accounting.events import Event
from discreet.accounting.events import Exponential as ExponentialEvent
from discreet.entropy import SYSTEM, EntropySource
from discreet.errors import ParameterError
from discreet.exact import Exact, Integers, Interval, lower
from discreet.late_dataclass import dataclass
from discreet.mechanisms.bounded_column import BoundedColumn
from discreet.mechanisms.exponential import loss_of_round, read_choice_budget, shorten_down, utility_loss
from discreet.mechanisms.mechanism import EventMechanism, OneEventMechanism, settle
from discreet.mechanisms.quantiles.ranks import draw, probability, runs_of
from discreet.parameters import Epsilon, Number
from discreet.privacy import Neighbours
from discreet.samplers import uniform_below

# Ranks are multiplied by the denominators of quantiles, within int64.
_MOST_ROWS, _MOST_PARTS = 1 << 31, 1 << 30
# Steps that a grid may have, and fine parts of one step that tell equal rows apart in ``Quantiles``.
_GRID_BITS, _PART_BITS = 61, 20


@dataclass(frozen=True, kw_only=True, repr=False)
class QuantileMechanism(OneEventMechanism):
    """The base of ``Quantile`` and ``Quantiles``: public bounds, a grid, and a budget.

    Values are clamped to ``bounds`` and rounded to multiples of ``resolution``, one at a time; NaN counts as the low
    end. ``max_rows`` is the largest number of rows that one unit has (the data must be prepared so).
    """

    bounds: Sequence[Number]
    resolution: Number = 1
    max_rows: int = 1
    epsilon: Epsilon | None = None
    rho: Number | None = None

    def __post_init__(self) -> None:
        EventMechanism.__post_init__(self)
        column = self.column
        settle(
            self,
            bounds=(column.low, column.high),
            resolution=column.step,
            max_rows=parameters.read_whole(self.max_rows, "max_rows"),
        )
        first, last = self.ends
        if last - first >= 1 << _GRID_BITS:
            raise ParameterError("resolution", "is too fine for the bounds", "Use coarser steps or tighter bounds.")
        epsilon, rho = read_choice_budget(self.epsilon, self.rho)
        settle(self, epsilon=epsilon, rho=rho)

    @cached_property
    def column(self) -> BoundedColumn:
        """The bounds and the step of the values."""
        return BoundedColumn.read(self.bounds, self.resolution)

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The bounds in steps, rounded outwards."""
        return self.column.ends

    def _encode(self, values: npt.ArrayLike) -> Integers:
        steps = self.column.encode(values)
        if steps.size > _MOST_ROWS:
            raise ParameterError("values", "must be at most 2^31 rows", "Give fewer rows.")
        return steps

    def _write(self, step: int) -> int | float:
        return step if self.column.step == 1 else float(step * self.column.step)


def read_q(value: object) -> Fraction:
    """A quantile strictly between 0 and 1, with a denominator small enough to multiply ranks by it."""
    q = parameters.read_probability(value, "q")
    if q.denominator > _MOST_PARTS:
        raise parameters.refuse("q", "a simpler fraction", value, "Use at most nine decimals.")
    return q


def read_qs(values: object) -> tuple[Fraction, ...]:
    """One or more quantiles that increase, with a common denominator small enough to multiply ranks by it."""
    if isinstance(values, str | bytes) or not isinstance(values, Sequence) or not values:
        raise ParameterError("qs", "must be one or more quantiles", "Give for example qs=[0.25, 0.5, 0.75].")
    qs = tuple(read_q(q) for q in values)
    if any(a >= b for a, b in pairwise(qs)):
        raise ParameterError("qs", "must increase", "Sort them, and give each once.")
    if math.lcm(*(q.denominator for q in qs)) > _MOST_PARTS:
        raise ParameterError("qs", "must be simpler fractions", "Use fewer decimals, or thirds of one kind.")
    return qs


@dataclass(frozen=True, kw_only=True, repr=False)
class Quantile(QuantileMechanism):
    """A value with about a share q of the rows below it: the exponential mechanism over all values of the grid.

    The score of a value v is minus its rank error, max(0, below − q·n, above − (1 − q)·n), where ``below`` and
    ``above`` count the rows on either side. It is zero exactly for the q-quantiles, ties included.

    Privacy: ε-private and of bounded range (ε²/8-zCDP), with exp(−ε·error/(2Δ)) and Δ = m·max(q, 1 − q) between
    add-remove neighbours, Δ = m between replace neighbours, m = ``max_rows``. Why: a row that comes or goes moves
    below − q·n by 1 − q (if it is below v) or by q (if not), and likewise above − (1 − q)·n; a maximum moves no more
    than its parts. A replaced row is one that goes and one that comes, together q + (1 − q) = 1 at most. Tests find
    both values of Δ by going through all small datasets.
    Reference: McSherry and Talwar 2007; Smith 2011, for the runs between data points.

    >>> Quantile(q=0.5, bounds=(0, 100), epsilon=1000).release([10, 20, 30])
    20
    >>> Quantile(q=0.25, bounds=(0, 100), epsilon=1).sensitivity
    Fraction(3, 4)
    """

    q: Number

    def __post_init__(self) -> None:
        QuantileMechanism.__post_init__(self)
        settle(self, q=read_q(self.q))
        _ = self.loss

    @property
    def sensitivity(self) -> Fraction:
        """How far one unit moves the rank error of any value."""
        share = read_q(self.q)
        return self.max_rows * (max(share, 1 - share) if self.neighbours == Neighbours.ADD_REMOVE else Fraction(1))

    @cached_property
    def loss(self) -> Exact:
        """The pure ε: as given, or √(8ρ) rounded down."""
        return loss_of_round(self.epsilon, self.rho)

    @cached_property
    def factor(self) -> Fraction:
        """The multiple of the rank error in the exponent: ε/(2Δ)."""
        return shorten_down(lower(self.loss) / (2 * self.sensitivity))

    @property
    def event(self) -> Event:
        """The event that describes one release."""
        return ExponentialEvent(epsilon=self.loss, neighbours=self.neighbours, unit=self.unit)

    def release(self, values: npt.ArrayLike, *, source: EntropySource = SYSTEM) -> int | float:
        """The quantile: an int on the grid of whole numbers, otherwise the float next to a grid value."""
        runs = runs_of(self._encode(values), read_q(self.q), *self.ends)
        return self._write(draw(runs, self.factor, source))

    def probability(self, output: Number, given: npt.ArrayLike) -> Interval:
        """The probability of one grid value, certified to about 150 bits."""
        first, last = self.ends
        step = round(parameters.read_number(output, "output") / self.column.step)
        if not first <= step <= last:
            raise parameters.refuse("output", "within the bounds", output, "Ask about values of the grid.")
        return probability(runs_of(self._encode(given), read_q(self.q), first, last), self.factor, step)

    def error(self, beta: Number, of: int = 1) -> float:
        """The largest rank error, in rows, of any of ``of`` such quantiles, except with probability beta."""
        first, last = self.ends
        share = parameters.read_probability(beta, "beta") / parameters.read_whole(of, "of")
        return utility_loss(self.factor, beta=share, candidates=last - first + 1)


@dataclass(frozen=True, kw_only=True, repr=False)
class Quantiles(QuantileMechanism):
    """Several quantiles at once: the middle one first, then each side of it by itself, and so on.

    Of m quantiles there are ⌊log₂ m⌋ + 1 levels; every row takes part once in each level, so the budget is divided by
    the number of levels and not by m. Rows with equal values are told apart by a fresh random part of a step, drawn
    for each row by itself, so that a side gets its share of them. Results never decrease.

    Privacy: given the random parts, each level is of bounded range ε₀, and there are L levels: Lε₀-private and
    Lε₀²/8-zCDP between neighbours of the stated relation. Why: given the results of earlier levels, the sides are fixed
    ranges of values, and a row is in one of them at most. So m = ``max_rows`` rows that come or go, in one side or in
    several, change the draws of those sides only: one with c rows has a range of ε₀·c/m, because it is drawn with
    exp(−ε₀·error/(2Δ)), Δ = m·max(q, 1 − q) for its own q. The sides of a level are drawn independently, so their
    ranges add up, to at most ε₀. A replaced unit is one that goes and one that comes, up to 2m rows in the same or in
    different sides, so under replace Δ = 2m·max(q, 1 − q). The random parts are drawn alike on both sides, for each
    row by itself: the law is a mixture of such pairs, and a mixture loses no more than its worst pair.
    docs/proofs/choices-in-groups.md has the steps.
    Reference: Kaplan, Schnapp and Stemmer 2022; bounded range by Durfee and Rogers 2019.

    >>> deciles = Quantiles(qs=[0.25, 0.5, 0.75], bounds=(0, 1000), epsilon=5000)
    >>> deciles.levels, deciles.release(range(1, 1000))
    (2, (250, 500, 750))
    """

    qs: Sequence[Number]

    def __post_init__(self) -> None:
        QuantileMechanism.__post_init__(self)
        settle(self, qs=read_qs(self.qs))
        first, last = self.ends
        if (last - first + 1) << _PART_BITS >= 1 << _GRID_BITS:
            raise ParameterError("resolution", "is too fine for the bounds", "Use coarser steps or tighter bounds.")
        _ = self.loss

    @property
    def levels(self) -> int:
        """How often the column is divided: ⌊log₂ m⌋ + 1."""
        return len(self.qs).bit_length()

    @cached_property
    def loss(self) -> Exact:
        """The ε₀ of one level."""
        return loss_of_round(self.epsilon, self.rho, self.levels)

    @property
    def event(self) -> Event:
        """The event of one release: one exponential mechanism for each level."""
        return ExponentialEvent(epsilon=self.loss, count=self.levels, neighbours=self.neighbours, unit=self.unit)

    def _factor(self, q: Fraction) -> Fraction:
        """The multiple of the rank error in the exponent, for a quantile q of one side."""
        changes = self.max_rows * (1 if self.neighbours == Neighbours.ADD_REMOVE else 2)
        return shorten_down(lower(self.loss) / (2 * changes * max(q, 1 - q)))

    def release(self, values: npt.ArrayLike, *, source: EntropySource = SYSTEM) -> tuple[int | float, ...]:
        """The quantiles, in the order of ``qs``."""
        first, last = self.ends
        steps = self._encode(values)
        fine = (steps << _PART_BITS) + uniform_below(1 << _PART_BITS, steps.size, source=source)
        shares = [read_q(q) for q in self.qs]
        found = self._draw_side(np.sort(fine), shares, first << _PART_BITS, ((last + 1) << _PART_BITS) - 1, source)
        return tuple(self._write(value >> _PART_BITS) for value in found)

    def _draw_side(
        self, rows: Integers, shares: list[Fraction], low: int, high: int, source: EntropySource
    ) -> list[int]:
        """The quantiles of one side, whose sorted rows lie within [low, high]."""
        if not shares:
            return []
        middle = len(shares) // 2
        q = shares[middle]
        value = draw(runs_of(rows, q, low, high), self._factor(q), source)
        under, over = np.searchsorted(rows, [value, value + 1])
        left = self._draw_side(rows[:under], [s / q for s in shares[:middle]], low, value, source)
        right = self._draw_side(rows[over:], [(s - q) / (1 - q) for s in shares[middle + 1 :]], value, high, source)
        return [*left, value, *right]

    def error(self, beta: Number, of: int = 1) -> float:
        """The largest rank error, in rows, of all quantiles of ``of`` such releases, except with probability beta.

        Errors of the levels add up; rows that share even the random part may add their number, which is rare.
        """
        first, last = self.ends
        share = parameters.read_probability(beta, "beta") / (parameters.read_whole(of, "of") * len(self.qs))
        one = utility_loss(self._factor(Fraction(0)), beta=share, candidates=(last - first + 1) << _PART_BITS)
        return self.levels * (one + 1)
