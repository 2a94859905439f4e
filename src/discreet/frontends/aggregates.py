"""Aggregates in terms to aggregates of the plan: what is measured, and what follows from it for free.

Equal aggregates are one measurement. Sample variances, covariances and correlations are arithmetic over released
numbers. MIN and MAX are the 1 % and the 99 % quantile, as a true extreme is the value of one person.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeAlias

from discreet.bounding.stability import Known, Owner
from discreet.frontends import names
from discreet.frontends.calls import make, truth
from discreet.frontends.correlation import Pair, paired
from discreet.frontends.positions import refusal
from discreet.frontends.terms import Measure, Paired, Term
from discreet.plan.expressions import Call, Expression, Literal, Released, columns
from discreet.plan.functions import literal
from discreet.plan.nodes import Aggregate, Statistic
from discreet.plan.types import Type

Row: TypeAlias = Callable[[Term, str], Expression]

FINEST = 10**12  # of which a quantile's q may be a multiple
# What MIN and MAX are over all units.
EXTREMES = {"min": Fraction(1, 100), "max": Fraction(99, 100)}


class Aggregates:
    """The aggregates of one question, as they are met.

    ``row`` resolves a term over one row, ``source`` is what is known of the rows, and ``keys`` are the question's keys,
    which must be complete before the first aggregate is met.
    """

    def __init__(self, row: Row, source: Known, keys: Sequence[Expression]) -> None:
        self.row = row
        self.source = source
        self.keys = keys
        self.found: list[Aggregate] = []
        self._positions: dict[Aggregate, int] = {}
        self._named: dict[Expression, str] = {}  # expressions that have a name of their own
        self.titles = names.Titles(self.keys, self.found, self._named)

    def released(self, measure: Measure) -> Expression:
        """The released number that an aggregate stands for, which is measured from here on."""
        match measure.statistic:
            case Paired():
                return self._paired(measure, measure.statistic)
            case Statistic.COUNT:
                return self._count(measure)
            case Statistic.COUNT_UNITS:
                return self._units(measure)
            case Statistic.COUNT_DISTINCT:
                return self._distinct(measure)
            case Statistic.QUANTILE:
                return self._quantile(measure)
            case Statistic.MODE:
                return self._measured(Aggregate(Statistic.MODE, self._chosen(measure, self._argument(measure))))
            case statistic:
                return self._moment(measure, statistic)

    def _measured(self, wanted: Aggregate) -> Released:
        position = self._positions.setdefault(wanted, len(self.found))
        if position == len(self.found):
            self.found.append(wanted)
        return Released(len(self.keys) + position, str(wanted), wanted.type)

    # Arguments

    def _argument(self, measure: Measure) -> Expression:
        if measure.argument is None:
            word = names.called(measure)
            raise refusal(measure.place, f"{word} needs an argument.", f"Write for example {word}(x).")
        return self.row(measure.argument, "an aggregate")

    def _condition(self, measure: Measure) -> Expression | None:
        if measure.condition is None:
            return None
        return truth(self.row(measure.condition, "FILTER"), "FILTER", measure.condition.place)

    def _chosen(self, measure: Measure, value: Expression) -> Expression:
        """SUM(x) FILTER (WHERE c) is the sum of CASE WHEN c THEN x END."""
        condition = self._condition(measure)
        if condition is None:
            return value
        return make("case", (condition, value, literal(None)), measure.place)

    def _number(self, measure: Measure, argument: Expression) -> Expression:
        """The argument of SUM, AVG and the like: a number, or a condition counted as 1 and 0."""
        if argument.type is Type.BOOLEAN:
            return make("to_integer", (argument,), measure.place)
        if not argument.type.is_number:
            rule = f"{names.called(measure)} needs numbers; this is of type {argument.type}."
            raise refusal(measure.place, rule, "COUNT takes every type; CAST(x AS DOUBLE) reads a number from a text.")
        return argument

    # Counts

    def _count(self, measure: Measure) -> Expression:
        argument = None if measure.argument is None else self._argument(measure)
        if isinstance(argument, Literal) and argument.value is not None:
            argument = None  # COUNT(1) counts rows
        if measure.condition is not None:
            argument = self._chosen(measure, literal(1) if argument is None else argument)
        return self._measured(Aggregate(Statistic.COUNT, argument, bounds=measure.bounds))

    def _units(self, measure: Measure) -> Expression:
        unit = self.source.unit
        if unit is None:
            if self.source.owner is Owner.ROW:
                rule = "Each row is its own unit here, so there are no units to count."
                raise refusal(measure.place, rule, "COUNT(*) counts the rows.")
            rule = "The rows that are counted do not name their unit."
            raise refusal(measure.place, rule, "Keep the unit's column in what is read.")
        argument = None if measure.condition is None else self._chosen(measure, unit)
        return self._measured(Aggregate(Statistic.COUNT_UNITS, argument))

    def _distinct(self, measure: Measure) -> Expression:
        """Distinct values; of the unit's own column, units."""
        argument = self._argument(measure)
        if not columns(argument):
            rule = "COUNT(DISTINCT ...) of a constant is 1 or 0."
            raise refusal(measure.place, rule, "Name a column.")
        argument = self._chosen(measure, argument)
        if argument in self.source.units:
            return self._measured(Aggregate(Statistic.COUNT_UNITS))
        if self._is_unit(argument):
            return self._measured(Aggregate(Statistic.COUNT_UNITS, argument))
        return self._measured(Aggregate(Statistic.COUNT_DISTINCT, argument))

    def _is_unit(self, expression: Expression) -> bool:
        """Whether an expression is the row's unit or NULL, as CASE WHEN c THEN unit END is."""
        if not isinstance(expression, Call) or expression.function not in {"case", "null_if"}:
            return expression in self.source.units
        if expression.function == "null_if":
            return self._is_unit(expression.arguments[0])
        results = (*expression.arguments[1::2], expression.arguments[-1])
        values = [part for part in results if not (isinstance(part, Literal) and part.value is None)]
        return bool(values) and all(self._is_unit(part) for part in values)

    # Sums, means, variances

    def _moment(self, measure: Measure, statistic: Statistic) -> Expression:
        argument = self._number(measure, self._chosen(measure, self._argument(measure)))
        released = self._measured(Aggregate(statistic, argument, bounds=measure.bounds))
        return self._sample(released, statistic, argument) if measure.sample else released

    def _sample(self, released: Released, statistic: Statistic, argument: Expression) -> Expression:
        """The sample form from the population form and the released count n: times n/(n − 1), its root for stddev."""
        n = self._measured(Aggregate(Statistic.COUNT, argument))
        less_one = make("subtract", (n, literal(1)), None)
        factor = make("divide", (n, less_one), None)
        if statistic is Statistic.STDDEV:
            factor = make("sqrt", (factor,), None)
        many = make("greater", (n, literal(1)), None)
        form = make("case", (many, make("multiply", (released, factor), None), literal(None)), None)
        self._named[form] = self.titles.of_aggregate(Aggregate(statistic, argument))
        return form

    # Quantiles

    def _quantile(self, measure: Measure) -> Expression:
        argument = self._argument(measure)
        word = names.called(measure)
        if argument.type.is_time:
            rule = f"{word} of dates is not available."
            fix = f"Count days: {word}(clamp(date_diff('day', DATE '2020-01-01', x), 0, 3650))."
            raise refusal(measure.place, rule, fix)
        if not argument.type.is_number:
            rule = f"{word} needs numbers; this is of type {argument.type}."
            fix = "AVG gives the share of true." if argument.type is Type.BOOLEAN else "MODE(x) takes every type."
            raise refusal(measure.place, rule, fix)
        if measure.share is None or not 0 < measure.share < 1 or measure.share.denominator > FINEST:
            rule = "The q of a quantile must lie between 0 and 1, both excluded, with at most 12 decimals."
            raise refusal(measure.place, rule, "Write for example 0.5; MIN and MAX stand for 0.01 and 0.99.")
        argument = self._chosen(measure, argument)
        released = self._measured(Aggregate(Statistic.QUANTILE, argument, share=measure.share))
        if measure.word in EXTREMES:
            self._named[released] = names.joined(measure.word, self.titles.of(argument))
        return released

    # Two arguments

    def _paired(self, measure: Measure, kind: Paired) -> Expression:
        if measure.argument is None or measure.second is None:
            word = names.called(measure)
            raise refusal(measure.place, f"{word} needs two arguments.", f"Write for example {word}(x, y).")
        # A condition on one of the two is enough: rows count where both are there.
        first = self._number(measure, self._chosen(measure, self.row(measure.argument, "an aggregate")))
        second = self._number(measure, self.row(measure.second, "an aggregate"))
        pair = Pair(first, second, self.source, self._sum_or_count, measure.place)
        form = paired(kind, pair, sample=measure.sample)
        self._named[form] = names.joined(kind.value, self.titles.of(first), self.titles.of(second))
        return form

    def _sum_or_count(self, statistic: Statistic, argument: Expression) -> Expression:
        return self._measured(Aggregate(statistic, argument))
