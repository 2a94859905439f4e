"""The aggregates of a data-frame chain: ``mean("age")``, ``median("cost")``, ``correlation("age", "cost")``."""

from __future__ import annotations

from fractions import Fraction

from discreet import parameters
from discreet.errors import UsageError
from discreet.frontends.aggregates import EXTREMES
from discreet.frontends.chain_terms import Expression, Operand, column_or_expression
from discreet.frontends.positions import refusal
from discreet.frontends.terms import Measure, Paired, Term, measures_in
from discreet.parameters import Number
from discreet.plan.nodes import Statistic


def _inner(value: Operand) -> Term:
    """The argument of an aggregate: a column or an expression, without aggregates in it."""
    term = column_or_expression(value).term
    if measures_in(term):
        rule = "An aggregate cannot stand inside an aggregate."
        raise refusal(None, rule, "Measure each on its own, and combine them outside: sum('x') / count().")
    return term


def _measure(statistic: Statistic, argument: Operand | None, *, sample: bool = False) -> Expression:
    return Expression(Measure(statistic, None if argument is None else _inner(argument), sample=sample))


def _pair(kind: Paired, first: Operand, second: Operand, *, sample: bool = False) -> Expression:
    return Expression(Measure(kind, _inner(first), sample=sample, second=_inner(second)))


def count(value: Operand | None = None) -> Expression:
    """The number of rows, or of rows where a value is there."""
    return _measure(Statistic.COUNT, value)


def count_units() -> Expression:
    """The number of distinct units, such as patients."""
    return _measure(Statistic.COUNT_UNITS, None)


def count_distinct(value: Operand) -> Expression:
    """The number of distinct values."""
    return _measure(Statistic.COUNT_DISTINCT, value)


def sum_(value: Operand) -> Expression:
    """The total."""
    return _measure(Statistic.SUM, value)


def mean(value: Operand) -> Expression:
    """The average."""
    return _measure(Statistic.MEAN, value)


def variance(value: Operand, *, sample: bool = False) -> Expression:
    """The variance of the population; with ``sample`` the estimate from a sample, n/(n − 1) times as large."""
    return _measure(Statistic.VARIANCE, value, sample=sample)


def stddev(value: Operand, *, sample: bool = False) -> Expression:
    """The standard deviation of the population, or with ``sample`` its estimate from a sample."""
    return _measure(Statistic.STDDEV, value, sample=sample)


def median(value: Operand) -> Expression:
    """The value with half of the rows below it."""
    return Expression(Measure(Statistic.QUANTILE, _inner(value), share=Fraction(1, 2), word="median"))


def quantile(value: Operand, q: Number) -> Expression:
    """The value with a share ``q`` of the rows below it, 0 < q < 1. Several of one column share the budget well."""
    try:
        share = parameters.number(q, "q")
    except UsageError:
        raise refusal(None, "The q of a quantile must be a number.", "Write quantile('age', 0.25).") from None
    return Expression(Measure(Statistic.QUANTILE, _inner(value), share=share))


def min_(value: Operand) -> Expression:
    """The 1 % quantile: the true minimum is the value of one person."""
    return Expression(Measure(Statistic.QUANTILE, _inner(value), share=EXTREMES["min"], word="min"))


def max_(value: Operand) -> Expression:
    """The 99 % quantile: the true maximum is the value of one person."""
    return Expression(Measure(Statistic.QUANTILE, _inner(value), share=EXTREMES["max"], word="max"))


def mode(value: Operand) -> Expression:
    """The most frequent of the values that the codebook lists for a column."""
    return _measure(Statistic.MODE, value)


def covariance(first: Operand, second: Operand, *, sample: bool = False) -> Expression:
    """The covariance of the population, or with ``sample`` its estimate from a sample."""
    return _pair(Paired.COVARIANCE, first, second, sample=sample)


def correlation(first: Operand, second: Operand) -> Expression:
    """Pearson's correlation, between −1 and 1."""
    return _pair(Paired.CORRELATION, first, second)


def slope(dependent: Operand, independent: Operand) -> Expression:
    """The slope of the line that fits ``dependent`` over ``independent`` best."""
    return _pair(Paired.SLOPE, dependent, independent)


def intercept(dependent: Operand, independent: Operand) -> Expression:
    """Where that line stands when ``independent`` is 0."""
    return _pair(Paired.INTERCEPT, dependent, independent)


def weighted_mean(value: Operand, weight: Operand) -> Expression:
    """The average in which each row counts with its weight."""
    return _pair(Paired.WEIGHTED_MEAN, value, weight)
