"""Covariance, correlation, regression and weighted means: arithmetic over released sums.

All sums are over the rows where both arguments are there. Each argument is taken from the middle of its bounds, which
keeps the sums small, and with them the noise. With u and v so centred and n the noisy count,

    covariance = sum(uv)/n - sum(u)/n · sum(v)/n.

Squares for variances, which lie between 0 and some c, are summed less c/2 for the same reason.
NULL stands where n is below 1 or where a noisy variance is not positive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import floor

from discreet.bounding.facts import Facts, facts_of
from discreet.frontends.calls import make
from discreet.frontends.positions import Place, refusal
from discreet.frontends.terms import Paired
from discreet.plan.expressions import Expression
from discreet.plan.functions import literal
from discreet.plan.nodes import Statistic
from discreet.plan.types import Type

WIDEST = 10**100  # a bound whose square is still far from the end of reals


@dataclass(frozen=True, slots=True)
class Pair:
    """Two arguments, what is known of them, and the way to measure a sum or a count."""

    first: Expression
    second: Expression
    facts: Facts
    measure: Callable[[Statistic, Expression], Expression]
    place: Place | None

    def bounds(self, argument: Expression) -> tuple[Fraction, Fraction]:
        """The declared bounds of an argument, refused where there are none."""
        known = facts_of(argument, self.facts)
        if known.low is None or known.high is None:
            rule = f"{argument} has no bounds, so one person could move this without limit."
            raise refusal(self.place, rule, "Declare bounds for its columns in the codebook, or use clamp(x, 0, 100).")
        if max(-known.low, known.high) > WIDEST:
            rule = f"The bounds of {argument} are too wide for squares."
            raise refusal(self.place, rule, "Use clamp(x, 0, 100) with bounds that fit.")
        return known.low, known.high

    def middle(self, argument: Expression) -> int | float:
        """About half-way between the bounds; whole for integers, so that they stay integers."""
        low, high = self.bounds(argument)
        middle = (low + high) / 2
        return _number(Fraction(floor(middle)) if argument.type is Type.INTEGER else middle)

    def centred(self, argument: Expression) -> Expression:
        """The argument less the middle of its bounds."""
        middle = self.middle(argument)
        return argument if middle == 0 else _of("subtract", argument, literal(middle))

    def largest_square(self, argument: Expression) -> int | float:
        """The square of the distance from the middle to the farther bound."""
        low, high = self.bounds(argument)
        middle = Fraction(self.middle(argument))
        return _number(max(middle - low, high - middle) ** 2)

    def beside(self, value: Expression, other: Expression) -> Expression:
        """The value where the other argument is there too."""
        if not facts_of(other, self.facts).nullable:
            return value
        return _of("case", _of("not", _of("is_null", other)), value, literal(None))

    def sum(self, argument: Expression) -> Expression:
        """A released sum."""
        return self.measure(Statistic.SUM, argument)


def paired(kind: Paired, pair: Pair, *, sample: bool) -> Expression:
    """The released expression for a statistic of two arguments."""
    match kind:
        case Paired.WEIGHTED_MEAN:
            return _weighted(pair)
        case Paired.COVARIANCE:
            return _covariance(_moments(pair), sample=sample)
        case Paired.CORRELATION:
            return _correlation(_moments(pair))
        case Paired.SLOPE:
            moments = _moments(pair)
            return _where(moments.spread, _slope(moments))
        case Paired.INTERCEPT:
            return _intercept(pair)


@dataclass(frozen=True, slots=True)
class _Moments:
    """Means over n of centred arguments: of each, of their product, and of the second one's square."""

    n: Expression
    u: Expression
    v: Expression
    uv: Expression
    pair: Pair

    @property
    def enough(self) -> Expression:
        return _of("at_least", self.n, literal(1))

    @property
    def covariance(self) -> Expression:
        return _of("subtract", self.uv, _of("multiply", self.u, self.v))

    def variance(self, argument: Expression, other: Expression, mean: Expression) -> Expression:
        """The variance of one argument where both are there."""
        value = self.pair.beside(self.pair.centred(argument), other)
        largest = self.pair.largest_square(argument)
        half = literal(largest // 2 if isinstance(largest, int) else largest / 2)
        square = _of("clamp", _of("multiply", value, value), literal(0), literal(largest))
        total = self.pair.sum(_of("subtract", square, half))
        squares = _of("add", _of("divide", total, self.n), half)
        return _of("subtract", squares, _of("multiply", mean, mean))

    @property
    def first(self) -> Expression:
        return self.variance(self.pair.first, self.pair.second, self.u)

    @property
    def second(self) -> Expression:
        return self.variance(self.pair.second, self.pair.first, self.v)

    @property
    def spread(self) -> Expression:
        """Whether a line over the second argument can be drawn."""
        return _of("and", self.enough, _of("greater", self.second, literal(0)))


def _moments(pair: Pair) -> _Moments:
    first, second = pair.centred(pair.first), pair.centred(pair.second)
    product = _of("multiply", *sorted((first, second), key=str))  # the same measurement, whichever comes first
    n = pair.measure(Statistic.COUNT, product)
    sums = (pair.beside(first, pair.second), pair.beside(second, pair.first), product)
    u, v, uv = (_of("divide", pair.sum(argument), n) for argument in sums)
    return _Moments(n, u, v, uv, pair)


def _covariance(moments: _Moments, *, sample: bool) -> Expression:
    if not sample:
        return _where(moments.enough, moments.covariance)
    less_one = _of("subtract", moments.n, literal(1))
    factor = _of("divide", moments.n, less_one)
    return _where(_of("greater", moments.n, literal(1)), _of("multiply", moments.covariance, factor))


def _correlation(moments: _Moments) -> Expression:
    first, second = moments.first, moments.second
    some = _of("greater", first, literal(0))
    root = _of("sqrt", _of("multiply", first, second))
    ratio = _of("clamp", _of("divide", moments.covariance, root), literal(-1.0), literal(1.0))
    return _where(_of("and", moments.enough, some, _of("greater", second, literal(0))), ratio)


def _slope(moments: _Moments) -> Expression:
    return _of("divide", moments.covariance, moments.second)


def _intercept(pair: Pair) -> Expression:
    """Mean of the first, less the slope times the mean of the second."""
    moments = _moments(pair)
    first = _of("add", moments.u, literal(pair.middle(pair.first)))
    second = _of("add", moments.v, literal(pair.middle(pair.second)))
    return _where(moments.spread, _of("subtract", first, _of("multiply", _slope(moments), second)))


def _weighted(pair: Pair) -> Expression:
    """The middle of the bounds plus sum(u·w)/sum(w), moved into the bounds."""
    low, high = pair.bounds(pair.first)
    pair.bounds(pair.second)
    total = pair.sum(_of("multiply", pair.centred(pair.first), pair.second))
    weights = pair.sum(pair.beside(pair.second, pair.first))
    value = _of("add", _of("divide", total, weights), literal(pair.middle(pair.first)))
    moved = _of("clamp", value, literal(float(low)), literal(float(high)))
    return _where(_of("greater", weights, literal(0)), moved)


def _number(value: Fraction) -> int | float:
    """A constant: whole where it is whole and fits."""
    return value.numerator if value.denominator == 1 and abs(value) < 1 << 62 else float(value)


def _where(condition: Expression, value: Expression) -> Expression:
    return _of("case", condition, value, literal(None))


def _of(function: str, *arguments: Expression) -> Expression:
    return make(function, arguments, None)
