"""Covariance, correlation, regression and weighted means: arithmetic over released sums.

All sums are over the rows where both arguments are there. Each argument is taken from the middle of its bounds, which
keeps the sums small, and with them the noise. With u and v so centred and n the noisy count,

    covariance = sum(uv)/n - sum(u)/n · sum(v)/n.

Squares for variances, which lie between 0 and some c, are summed less c/2 for the same reason.
NULL stands where n is below 1 or where a noisy variance is not positive.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import floor
from typing import assert_never

from discreet.bounding.facts import Facts, facts_of
from discreet.frontends.resolve.calls import make
from discreet.frontends.terms.positions import Place, refusal
from discreet.late_dataclass import dataclass
from discreet.plan.expressions import Expression
from discreet.plan.functions import make_literal
from discreet.plan.statistics.definitions import PairStatistic, Statistic
from discreet.plan.types import Type

WIDEST = 10**100  # a bound whose square is still far from the end of reals


@dataclass(frozen=True, slots=True)
class ArgumentPair:
    """Two arguments, what is known of them, and the way to measure a sum or a count."""

    first: Expression
    second: Expression
    facts: Facts
    measure: Callable[[Statistic, Expression], Expression]
    place: Place | None

    def find_bounds(self, argument: Expression) -> tuple[Fraction, Fraction]:
        """The declared bounds of an argument, refused where there are none."""
        known = facts_of(argument, self.facts)
        if known.low is None or known.high is None:
            rule = f"{argument} has no bounds, so one person could move this without limit."
            fix = "Declare bounds for its columns (`discreet bounds` finds them), or use clamp(x, 0, 100)."
            raise refusal(self.place, rule, fix)
        if max(-known.low, known.high) > WIDEST:
            rule = f"The bounds of {argument} are too wide for squares."
            raise refusal(self.place, rule, "Use clamp(x, 0, 100) with bounds that fit.")
        return known.low, known.high

    def middle(self, argument: Expression) -> int | float:
        """About half-way between the bounds; whole for integers, so that they stay integers."""
        low, high = self.find_bounds(argument)
        middle = (low + high) / 2
        return _to_number(Fraction(floor(middle)) if argument.type is Type.INTEGER else middle)

    def centre(self, argument: Expression) -> Expression:
        """The argument less the middle of its bounds."""
        middle = self.middle(argument)
        return argument if middle == 0 else _call("subtract", argument, make_literal(middle))

    def largest_square(self, argument: Expression) -> int | float:
        """The square of the distance from the middle to the farther bound."""
        low, high = self.find_bounds(argument)
        middle = Fraction(self.middle(argument))
        return _to_number(max(middle - low, high - middle) ** 2)

    def keep_where_present(self, value: Expression, other: Expression) -> Expression:
        """The value where the other argument is there too."""
        if not facts_of(other, self.facts).nullable:
            return value
        return _call("case", _call("not", _call("is_null", other)), value, make_literal(None))

    def measure_sum(self, argument: Expression) -> Expression:
        """A released sum."""
        return self.measure(Statistic.SUM, argument)


def make_pair_statistic(kind: PairStatistic, pair: ArgumentPair, *, sample: bool) -> Expression:
    """The released expression for a statistic of two arguments."""
    match kind:
        case PairStatistic.WEIGHTED_MEAN:
            return _weighted_mean(pair)
        case PairStatistic.COVARIANCE:
            return _covariance(_make_moments(pair), sample=sample)
        case PairStatistic.CORRELATION:
            return _correlation(_make_moments(pair))
        case PairStatistic.SLOPE:
            moments = _make_moments(pair)
            return _make_case(moments.can_fit_line, _slope(moments))
        case PairStatistic.INTERCEPT:
            return _intercept(pair)
        case _:
            assert_never(kind)


@dataclass(frozen=True, slots=True)
class _Moments:
    """Means over n of centred arguments: of each, of their product, and of the second one's square."""

    n: Expression
    u: Expression
    v: Expression
    uv: Expression
    pair: ArgumentPair

    @property
    def enough(self) -> Expression:
        return _call("at_least", self.n, make_literal(1))

    @property
    def covariance(self) -> Expression:
        return _call("subtract", self.uv, _call("multiply", self.u, self.v))

    def variance(self, argument: Expression, other: Expression, mean: Expression) -> Expression:
        """The variance of one argument where both are there."""
        value = self.pair.keep_where_present(self.pair.centre(argument), other)
        largest = self.pair.largest_square(argument)
        half = make_literal(largest // 2 if isinstance(largest, int) else largest / 2)
        square = _call("clamp", _call("multiply", value, value), make_literal(0), make_literal(largest))
        total = self.pair.measure_sum(_call("subtract", square, half))
        squares = _call("add", _call("divide", total, self.n), half)
        return _call("subtract", squares, _call("multiply", mean, mean))

    @property
    def first_variance(self) -> Expression:
        return self.variance(self.pair.first, self.pair.second, self.u)

    @property
    def second_variance(self) -> Expression:
        return self.variance(self.pair.second, self.pair.first, self.v)

    @property
    def can_fit_line(self) -> Expression:
        """Whether a line over the second argument can be drawn."""
        return _call("and", self.enough, _call("greater", self.second_variance, make_literal(0)))


def _make_moments(pair: ArgumentPair) -> _Moments:
    first, second = pair.centre(pair.first), pair.centre(pair.second)
    product = _call("multiply", *sorted((first, second), key=str))  # the same measurement, whichever comes first
    n = pair.measure(Statistic.COUNT, product)
    sums = (pair.keep_where_present(first, pair.second), pair.keep_where_present(second, pair.first), product)
    u, v, uv = (_call("divide", pair.measure_sum(argument), n) for argument in sums)
    return _Moments(n, u, v, uv, pair)


def _covariance(moments: _Moments, *, sample: bool) -> Expression:
    if not sample:
        return _make_case(moments.enough, moments.covariance)
    less_one = _call("subtract", moments.n, make_literal(1))
    factor = _call("divide", moments.n, less_one)
    return _make_case(_call("greater", moments.n, make_literal(1)), _call("multiply", moments.covariance, factor))


def _correlation(moments: _Moments) -> Expression:
    first, second = moments.first_variance, moments.second_variance
    some = _call("greater", first, make_literal(0))
    root = _call("sqrt", _call("multiply", first, second))
    ratio = _call("clamp", _call("divide", moments.covariance, root), make_literal(-1.0), make_literal(1.0))
    return _make_case(_call("and", moments.enough, some, _call("greater", second, make_literal(0))), ratio)


def _slope(moments: _Moments) -> Expression:
    return _call("divide", moments.covariance, moments.second_variance)


def _intercept(pair: ArgumentPair) -> Expression:
    """Mean of the first, less the slope times the mean of the second."""
    moments = _make_moments(pair)
    first = _call("add", moments.u, make_literal(pair.middle(pair.first)))
    second = _call("add", moments.v, make_literal(pair.middle(pair.second)))
    return _make_case(moments.can_fit_line, _call("subtract", first, _call("multiply", _slope(moments), second)))


def _weighted_mean(pair: ArgumentPair) -> Expression:
    """The middle of the bounds plus sum(u·w)/sum(w), moved into the bounds."""
    low, high = pair.find_bounds(pair.first)
    pair.find_bounds(pair.second)
    total = pair.measure_sum(_call("multiply", pair.centre(pair.first), pair.second))
    weights = pair.measure_sum(pair.keep_where_present(pair.second, pair.first))
    value = _call("add", _call("divide", total, weights), make_literal(pair.middle(pair.first)))
    moved = _call("clamp", value, make_literal(float(low)), make_literal(float(high)))
    return _make_case(_call("greater", weights, make_literal(0)), moved)


def _to_number(value: Fraction) -> int | float:
    """A constant: whole where it is whole and fits."""
    return value.numerator if value.denominator == 1 and abs(value) < 1 << 62 else float(value)


def _make_case(condition: Expression, value: Expression) -> Expression:
    return _call("case", condition, value, make_literal(None))


def _call(function: str, *arguments: Expression) -> Expression:
    return make(function, arguments, None)
