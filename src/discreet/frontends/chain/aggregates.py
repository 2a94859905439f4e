"""The aggregates of a data-frame chain: ``mean("age")``, ``median("cost")``, ``correlation("age", "cost")``."""

from __future__ import annotations

from discreet import parameters
from discreet.errors import UsageError
from discreet.frontends.chain.operands import ChainExpression, Operand, as_expression
from discreet.frontends.terms.positions import refusal
from discreet.frontends.terms.syntax import AggregateTerm, Term, aggregates_in
from discreet.parameters import Number
from discreet.plan.statistics.definitions import PairStatistic, Statistic
from discreet.plan.statistics.table import FIXED_SHARES


def _check_argument(value: Operand) -> Term:
    """The argument of an aggregate: a column or an expression, without aggregates in it."""
    term = as_expression(value).term
    if aggregates_in(term):
        rule = "An aggregate cannot stand inside an aggregate."
        raise refusal(None, rule, "Measure each on its own, and combine them outside: sum('x') / count().")
    return term


def _make_aggregate(statistic: Statistic, argument: Operand | None, *, sample: bool = False) -> ChainExpression:
    return ChainExpression(
        AggregateTerm(statistic, None if argument is None else _check_argument(argument), sample=sample)
    )


def _make_pair(kind: PairStatistic, first: Operand, second: Operand, *, sample: bool = False) -> ChainExpression:
    return ChainExpression(AggregateTerm(kind, _check_argument(first), sample=sample, second=_check_argument(second)))


def _make_named_quantile(word: str, argument: Operand) -> ChainExpression:
    share = FIXED_SHARES[word]
    return ChainExpression(AggregateTerm(Statistic.QUANTILE, _check_argument(argument), share=share, word=word))


def count(value: Operand | None = None) -> ChainExpression:
    """The number of rows, or of rows where a value is there."""
    return _make_aggregate(Statistic.COUNT, value)


def count_units() -> ChainExpression:
    """The number of distinct units, such as patients."""
    return _make_aggregate(Statistic.COUNT_UNITS, None)


def count_distinct(value: Operand) -> ChainExpression:
    """The number of distinct values."""
    return _make_aggregate(Statistic.COUNT_DISTINCT, value)


def sum_(value: Operand) -> ChainExpression:
    """The total."""
    return _make_aggregate(Statistic.SUM, value)


def mean(value: Operand) -> ChainExpression:
    """The average."""
    return _make_aggregate(Statistic.MEAN, value)


def variance(value: Operand, *, sample: bool = False) -> ChainExpression:
    """The variance of the population; with ``sample`` the estimate from a sample, n/(n − 1) times as large."""
    return _make_aggregate(Statistic.VARIANCE, value, sample=sample)


def stddev(value: Operand, *, sample: bool = False) -> ChainExpression:
    """The standard deviation of the population, or with ``sample`` its estimate from a sample."""
    return _make_aggregate(Statistic.STDDEV, value, sample=sample)


def standard_error(value: Operand) -> ChainExpression:
    """The standard error of the mean: how far the average of so many values is off by the chance of sampling."""
    return _make_aggregate(Statistic.STANDARD_ERROR, value)


def median(value: Operand) -> ChainExpression:
    """The value with half of the rows below it."""
    return _make_named_quantile("median", value)


def quantile(value: Operand, q: Number) -> ChainExpression:
    """The value with a share ``q`` of the rows below it, 0 < q < 1. Several of one column share the budget well."""
    try:
        share = parameters.read_number(q, "q")
    except UsageError:
        raise refusal(None, "The q of a quantile must be a number.", "Write quantile('age', 0.25).") from None
    return ChainExpression(AggregateTerm(Statistic.QUANTILE, _check_argument(value), share=share))


def min_(value: Operand) -> ChainExpression:
    """The 1 % quantile: the true minimum is the value of one person."""
    return _make_named_quantile("min", value)


def max_(value: Operand) -> ChainExpression:
    """The 99 % quantile: the true maximum is the value of one person."""
    return _make_named_quantile("max", value)


def mode(value: Operand) -> ChainExpression:
    """The most frequent of the values that the codebook lists for a column."""
    return _make_aggregate(Statistic.MODE, value)


def covariance(first: Operand, second: Operand, *, sample: bool = False) -> ChainExpression:
    """The covariance of the population, or with ``sample`` its estimate from a sample."""
    return _make_pair(PairStatistic.COVARIANCE, first, second, sample=sample)


def correlation(first: Operand, second: Operand) -> ChainExpression:
    """Pearson's correlation, between −1 and 1."""
    return _make_pair(PairStatistic.CORRELATION, first, second)


def slope(dependent: Operand, independent: Operand) -> ChainExpression:
    """The slope of the line that fits ``dependent`` over ``independent`` best."""
    return _make_pair(PairStatistic.SLOPE, dependent, independent)


def intercept(dependent: Operand, independent: Operand) -> ChainExpression:
    """Where that line stands when ``independent`` is 0."""
    return _make_pair(PairStatistic.INTERCEPT, dependent, independent)


def weighted_mean(value: Operand, weight: Operand) -> ChainExpression:
    """The average in which each row counts with its weight."""
    return _make_pair(PairStatistic.WEIGHTED_MEAN, value, weight)
