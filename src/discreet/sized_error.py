"""Errors of averages, ratios and variances: they divide by the size of a group, and a rough size makes them known.

Let a numerator A and a count B get the noises a and b, and let r = A/B be the truth in a group with B = n. Then
A′/B′ − r = (a − r·b)/(n + b), so the error is at most e where a − (r + e)·b ≤ e·n and a − (r − e)·b ≥ −e·n (Fieller).
The noises are symmetric, so each of the two fails with at most half the chance with which |a − (r ± e)·b| exceeds e·n.
Where both hold, n + b ≥ 0 follows. Nothing is approximated; that r lies within public bounds is all that is used.

A variance is the same whatever its values are counted from. From the true mean m on, with Q̃ the sum of squares and S̃
that of values (0 in truth), V′ − v = (q̃ − v·b)/(n + b) − (s̃/(n + b))². The first part is as above, with q̃ = q − 2m·s +
m²·b. The square only lowers V′: by at most g² where g bounds the error of the mean, which takes a tenth of the chance.
The form of a sample divides by n − 1: it is the same with n − 1 for n.

Only public facts are used: what is asked, bounds of values, laws of noise, and the size that is declared or named.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

from discreet.bounding.bound import BoundedQuestion
from discreet.bounding.contributions import Counts, Measure
from discreet.bounding.recipes import AggregateRecipe
from discreet.late_dataclass import dataclass
from discreet.plan.expressions import Call, Expression, Literal, ReleasedValue
from discreet.plan.statistics.definitions import CountBasis, FirstMomentBasis, SecondMomentBasis, Statistic, SumBasis
from discreet.plan.statistics.table import STATISTICS
from discreet.release import Release

# The share of the chance to fail that is kept for the error of a mean in that of a variance.
_FOR_MEAN = Fraction(1, 10)
# Rounds in which an error is found, and how near it is then.
_ROUNDS = 40
_NEAR = Fraction(1, 1000)


@dataclass(frozen=True, slots=True)
class QuotientError:
    """Σ factor·measure over a count, times ``scale``. The true quotient lies within [low, high], before it is scaled.

    ``rounded`` is what rounding to whole numbers may add to the numerator, and for each unit of the quotient to B.
    """

    numerator: tuple[tuple[int, Fraction], ...]
    count: int
    low: Fraction
    high: Fraction
    scale: Fraction = Fraction(1)
    rounded: tuple[Fraction, Fraction] = (Fraction(0), Fraction(0))

    def bound_noise(self, release: Release, error: Fraction, beta: Fraction) -> Fraction:
        """What n·e must be at least, for an error of e times the scale."""
        truths = {self.low, (self.low + self.high) / 2, self.high}
        return max(self._bound_at(release, at, beta) for truth in truths for at in {truth - error, truth + error})

    def _bound_at(self, release: Release, quotient: Fraction, beta: Fraction) -> Fraction:
        far = release.bound(_add_terms((*self.numerator, (self.count, -quotient))), beta)
        return far + self.rounded[0] + abs(quotient) * self.rounded[1]

    @property
    def width(self) -> Fraction:
        """The largest error that there is."""
        return (self.high - self.low) * self.scale

    def holds(self, release: Release, error: Fraction, size: Fraction, beta: Fraction) -> bool:
        """Whether the error is at most that, with probability 1 − β, in a group of this size."""
        plain = error / self.scale
        return self.bound_noise(release, plain, beta) <= plain * size


@dataclass(frozen=True, slots=True)
class VarianceError:
    """A variance from a count, a sum of steps and one of their squares; ``sample``: it divides by n − 1."""

    count: int
    steps: int
    squares: int
    first: int
    last: int
    resolution: Fraction
    sample: bool = False

    @property
    def width(self) -> Fraction:
        """The largest error that there is."""
        return (self.resolution * (self.last - self.first) / 2) ** 2 * (2 if self.sample else 1)

    def holds(self, release: Release, error: Fraction, size: Fraction, beta: Fraction) -> bool:
        """Whether the error is at most that, with probability 1 − β, in a group of this size."""
        divisor = size - 1 if self.sample else size
        if divisor <= 0:
            return False
        mean = QuotientError(((self.steps, Fraction(1)),), self.count, Fraction(self.first), Fraction(self.last))
        lowered = find_error(mean, release, divisor, beta * _FOR_MEAN) ** 2
        whole, rest = error / self.resolution**2, beta * (1 - _FOR_MEAN)
        below = whole - lowered
        if below <= 0:
            return False
        most = size / divisor
        return all(
            self._bound_at(release, mean, spread * most + moved, rest) <= abs(moved) * divisor
            for mean, spread in self._list_truths()
            for moved in (whole, -below)
        )

    def _list_truths(self) -> list[tuple[Fraction, Fraction]]:
        """Means and variances at the ends and in the middle of where they lie: v ≤ (last − m)(m − first)."""
        means = (Fraction(self.first), Fraction(self.first + self.last, 2), Fraction(self.last))
        most = {mean: (self.last - mean) * (mean - self.first) for mean in means}
        return [(mean, spread) for mean in means for spread in {Fraction(0), most[mean]}]

    def _bound_at(self, release: Release, mean: Fraction, spread: Fraction, beta: Fraction) -> Fraction:
        terms = ((self.squares, Fraction(1)), (self.steps, -2 * mean), (self.count, mean**2 - spread))
        return release.bound(_add_terms(terms), beta)


SizedError: TypeAlias = QuotientError | VarianceError


def find_error(of: SizedError, release: Release, size: Fraction, beta: Fraction | None = None) -> Fraction:
    """The least error, to a thousandth, that holds in a group of this size; never more than the width.

    Without a β it is that of the level.
    """
    chance = 1 - release.level if beta is None else beta
    high = of.width
    if not high or not of.holds(release, high, size, chance):
        return high
    low = high / (1 << 40)
    for _ in range(_ROUNDS):
        if high <= low * (1 + _NEAR):
            break
        middle = Fraction(math.sqrt(float(low * high))).limit_denominator(1 << 60)
        low, high = (low, middle) if of.holds(release, middle, size, chance) else (middle, high)
    return high


def _add_terms(terms: Iterable[tuple[int, Fraction]]) -> dict[int, Fraction]:
    """A combination of measures; a measure may be named twice."""
    found: dict[int, Fraction] = {}
    for position, factor in terms:
        found[position] = found.get(position, Fraction(0)) + factor
    return found


# What is asked


def read_sized(bounded: BoundedQuestion, expression: Expression) -> SizedError | None:
    """An output whose error follows from the size of its group; None for everything else."""
    return _SizedReader(bounded).read(expression)


@dataclass(frozen=True, slots=True)
class _SizedReader:
    """The outputs of one grouping."""

    bounded: BoundedQuestion

    def read(self, expression: Expression) -> SizedError | None:
        estimate = self._find_estimate(expression)
        if estimate is not None:
            return self._read_statistic(estimate)
        return self._read_sample(expression) or self._read_quotient(expression)

    def _find_estimate(self, expression: Expression) -> AggregateRecipe | None:
        index = expression.index - len(self.bounded.question.keys) if isinstance(expression, ReleasedValue) else -1
        return self.bounded.estimates[index] if index >= 0 else None

    def _read_statistic(self, estimate: AggregateRecipe, *, sample: bool = False) -> SizedError | None:
        basis, count, steps = STATISTICS[estimate.statistic].basis, estimate.count, estimate.steps
        if count is None or steps is None or self._measures[steps].matched:
            return None  # how many distinct values there are does not follow from the size of a group
        measure = self._measures[steps]
        if isinstance(basis, FirstMomentBasis) and basis.by_size:
            ends = Fraction(measure.first), Fraction(measure.last)
            return QuotientError(((steps, Fraction(1)),), count, *ends, scale=estimate.resolution)
        if estimate.statistic is Statistic.VARIANCE and estimate.squares is not None:
            grid = measure.first, measure.last, measure.resolution
            return VarianceError(count, steps, estimate.squares, *grid, sample=sample)
        return None

    def _read_sample(self, expression: Expression) -> SizedError | None:
        """``CASE WHEN n > 1 THEN v * (n / (n - 1)) END``, as the form of a sample is written."""
        match expression:
            case Call(
                "case",
                (
                    Call("greater", (n, Literal(1))),
                    Call("multiply", (value, Call("divide", (above, Call("subtract", (below, Literal(1))))))),
                    Literal(None),
                ),
            ) if n == above == below:
                estimate = self._find_estimate(value)
                if estimate is not None and isinstance(STATISTICS[estimate.statistic].basis, SecondMomentBasis):
                    return self._read_statistic(estimate, sample=True)
        return None

    def _read_quotient(self, expression: Expression) -> QuotientError | None:
        """A count or a sum of rows over a count of all of them, with factors that are written down."""
        match expression:
            case Call("divide", (above, below)):
                numerator, denominator = _read_scaled(above), _read_scaled(below)
            case Call("multiply", (Literal() as factor, inner)) | Call("multiply", (inner, Literal() as factor)):
                found, scale = self._read_quotient(inner), _read_factor(factor)
                return None if found is None or not scale else _scale(found, scale)
            case _:
                return None
        if numerator is None or denominator is None:
            return None
        (over, top), (under, bottom) = numerator, denominator
        found = self._divide(self._find_estimate(top), self._find_estimate(bottom))
        return None if found is None else _scale(found, over / under)

    def _divide(self, top: AggregateRecipe | None, bottom: AggregateRecipe | None) -> QuotientError | None:
        if top is None or bottom is None or bottom.count is None:
            return None
        if bottom.statistic is not Statistic.COUNT or replace(self._measures[bottom.count], public=None) != Measure(
            counts=Counts.ROWS
        ):
            return None
        basis, half = STATISTICS[top.statistic].basis, Fraction(1, 2)
        if isinstance(basis, CountBasis) and top.count is not None:
            measure = self._measures[top.count]
            if measure.counts is Counts.VALUES and measure.partial is None:
                return QuotientError(
                    ((top.count, Fraction(1)),), bottom.count, Fraction(0), Fraction(1), rounded=(half, half)
                )
        if isinstance(basis, SumBasis) and top.steps is not None and self._measures[top.steps].partial is None:
            counted = () if top.count is None else ((top.count, top.origin),)
            summed = ((top.steps, top.resolution), *counted)
            low, high = min(Fraction(0), top.low or Fraction(0)), max(Fraction(0), top.high or Fraction(0))
            return QuotientError(summed, bottom.count, low, high, rounded=(half, half))
        return None

    @property
    def _measures(self) -> tuple[Measure, ...]:
        return self.bounded.bounded.measures


def _scale(found: QuotientError, scale: Fraction) -> QuotientError:
    terms = found.numerator, found.count, found.low, found.high
    return QuotientError(*terms, scale=found.scale * abs(scale), rounded=found.rounded)


def _read_scaled(expression: Expression) -> tuple[Fraction, Expression] | None:
    """A released number with a factor that is written down, through casts and NULLIF(x, 0); None for all else."""
    match expression:
        case ReleasedValue():
            return Fraction(1), expression
        case Call("null_if", (inner, Literal(0))):
            return _read_scaled(inner)
        case Call("multiply", (Literal() as factor, inner)) | Call("multiply", (inner, Literal() as factor)):
            found, scale = _read_scaled(inner), _read_factor(factor)
            return None if found is None or not scale else (found[0] * scale, found[1])
        case Call("to_real", (inner,)):
            return _read_scaled(inner)
        case _:
            return None


def _read_factor(literal: Literal) -> Fraction | None:
    if literal.exact is not None:
        return literal.exact
    value = literal.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return Fraction(value)
