"""Aggregates in terms to aggregates of the plan: what is measured, and what follows from it for free.

Equal aggregates are one measurement. Sample variances, covariances and correlations are arithmetic over released
numbers. MIN and MAX are the 1 % and the 99 % quantile, as a true extreme is the value of one person.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, assert_never

from discreet.bounding.relation_facts import Owner, RelationFacts
from discreet.errors import InternalError
from discreet.frontends.resolve import output_names
from discreet.frontends.resolve.calls import check_condition, make
from discreet.frontends.resolve.correlation import ArgumentPair, make_pair_statistic
from discreet.frontends.terms.positions import name_as_typed, refusal
from discreet.frontends.terms.syntax import AggregateTerm, Term
from discreet.plan.expressions import Call, Expression, Literal, ReleasedValue, find_columns
from discreet.plan.functions import make_literal
from discreet.plan.nodes import Aggregate
from discreet.plan.statistics.definitions import (
    Cells,
    ChoiceBasis,
    CountBasis,
    Counted,
    FirstMomentBasis,
    PairStatistic,
    SampleFactor,
    SecondMomentBasis,
    Statistic,
    SumBasis,
)
from discreet.plan.statistics.table import FIXED_SHARES, PAIR_STATISTICS, STATISTICS
from discreet.plan.types import Type

RowResolver: TypeAlias = Callable[[Term, str], Expression]

FINEST = 10**12  # of which a quantile's q may be a multiple


class Aggregates:
    """The aggregates of one question, as they are met.

    ``row`` resolves a term over one row, ``source`` is what is known of the rows, and ``keys`` are the question's keys,
    which must be complete before the first aggregate is met.
    """

    def __init__(self, row: RowResolver, source: RelationFacts, keys: Sequence[Expression]) -> None:
        self.row = row
        self.source = source
        self.keys = keys
        self.found: list[Aggregate] = []
        self._positions: dict[Aggregate, int] = {}
        self._named: dict[Expression, str] = {}  # expressions that have a name of their own
        self.titles = output_names.Titles(self.keys, self.found, self._named)

    def resolve(self, measure: AggregateTerm) -> Expression:
        """The released number that an aggregate stands for, which is measured from here on."""
        statistic = measure.statistic
        if isinstance(statistic, PairStatistic):
            return self._resolve_pair(measure, statistic)
        basis = STATISTICS[statistic].basis
        match basis:
            case CountBasis():
                return self._resolve_counted(measure, basis.counted)
            case SumBasis() | FirstMomentBasis() | SecondMomentBasis():
                return self._resolve_moment(measure, statistic)
            case ChoiceBasis():
                return self._resolve_choice(measure, statistic, basis.cells)
            case _:
                assert_never(basis)

    def _resolve_counted(self, measure: AggregateTerm, counted: Counted) -> Expression:
        match counted:
            case Counted.VALUES:
                return self._resolve_count(measure)
            case Counted.UNITS:
                return self._resolve_units(measure)
            case Counted.DISTINCT:
                return self._resolve_distinct(measure)
            case _:
                assert_never(counted)

    def _resolve_choice(self, measure: AggregateTerm, statistic: Statistic, cells: Cells) -> Expression:
        match cells:
            case Cells.RANKS:
                return self._resolve_quantile(measure, statistic)
            case Cells.KEYS:
                argument = self._apply_filter(measure, self._resolve_argument(measure))
                return self._add_aggregate(Aggregate(statistic, argument))
            case _:
                assert_never(cells)

    def _add_aggregate(self, wanted: Aggregate) -> ReleasedValue:
        position = self._positions.setdefault(wanted, len(self.found))
        if position == len(self.found):
            self.found.append(wanted)
        return ReleasedValue(len(self.keys) + position, str(wanted), wanted.type)

    # Arguments

    def _resolve_argument(self, measure: AggregateTerm) -> Expression:
        if measure.argument is None:
            word = output_names.sql_word_of(measure)
            raise refusal(measure.place, f"{word} needs an argument.", f"Write for example {word}(x).")
        return self.row(measure.argument, "an aggregate")

    def _resolve_condition(self, measure: AggregateTerm) -> Expression | None:
        if measure.condition is None:
            return None
        return check_condition(self.row(measure.condition, "FILTER"), "FILTER", measure.condition.place)

    def _apply_filter(self, measure: AggregateTerm, value: Expression) -> Expression:
        """SUM(x) FILTER (WHERE c) is the sum of CASE WHEN c THEN x END."""
        condition = self._resolve_condition(measure)
        if condition is None:
            return value
        return make("case", (condition, value, make_literal(None)), measure.place)

    def _check_number(self, measure: AggregateTerm, argument: Expression) -> Expression:
        """The argument of SUM, AVG and the like: a number, or a condition counted as 1 and 0."""
        if argument.type not in _find_types(measure.statistic):
            word = _name_as_typed(measure)
            rule = f"{word} needs numbers; this is of type {argument.type}."
            raise refusal(measure.place, rule, "COUNT takes every type; CAST(x AS DOUBLE) reads a number from a text.")
        return make("to_integer", (argument,), measure.place) if argument.type is Type.BOOLEAN else argument

    # Counts

    def _resolve_count(self, measure: AggregateTerm) -> Expression:
        argument = None if measure.argument is None else self._resolve_argument(measure)
        if isinstance(argument, Literal) and argument.value is not None:
            argument = None  # COUNT(1) counts rows
        if measure.condition is not None:
            argument = self._apply_filter(measure, make_literal(1) if argument is None else argument)
        return self._add_aggregate(Aggregate(Statistic.COUNT, argument, bounds=measure.bounds))

    def _resolve_units(self, measure: AggregateTerm) -> Expression:
        unit = self.source.unit
        if unit is None:
            if self.source.owner is Owner.ROW:
                rule = "Each row is its own unit here, so there are no units to count."
                raise refusal(measure.place, rule, "COUNT(*) counts the rows.")
            rule = "The rows that are counted do not name their unit."
            raise refusal(measure.place, rule, "Keep the unit's column in what is read.")
        argument = None if measure.condition is None else self._apply_filter(measure, unit)
        return self._add_aggregate(Aggregate(Statistic.COUNT_UNITS, argument))

    def _resolve_distinct(self, measure: AggregateTerm) -> Expression:
        """Distinct values; of the unit's own column, units."""
        argument = self._resolve_argument(measure)
        if not find_columns(argument):
            rule = "COUNT(DISTINCT ...) of a constant is 1 or 0."
            raise refusal(measure.place, rule, "Name a column.")
        argument = self._apply_filter(measure, argument)
        if argument in self.source.units:
            return self._add_aggregate(Aggregate(Statistic.COUNT_UNITS))
        if self._is_unit(argument):
            return self._add_aggregate(Aggregate(Statistic.COUNT_UNITS, argument))
        return self._add_aggregate(Aggregate(Statistic.COUNT_DISTINCT, argument))

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

    def _resolve_moment(self, measure: AggregateTerm, statistic: Statistic) -> Expression:
        argument = self._check_number(measure, self._apply_filter(measure, self._resolve_argument(measure)))
        word, distinct = _name_as_typed(measure), measure.distinct
        if distinct and not find_columns(argument):
            raise refusal(measure.place, f"{word}(DISTINCT ...) of a constant is that constant.", "Name a column.")
        wanted = Aggregate(statistic, argument, bounds=measure.bounds, distinct=distinct, typed=word)
        released = self._add_aggregate(wanted)
        if not measure.sample:
            return released
        factor = STATISTICS[statistic].sample
        if factor is None:
            raise InternalError("A statistic without a sample form was asked for it.")
        counted = Statistic.COUNT_DISTINCT if distinct else Statistic.COUNT
        form = self._make_sample_form(released, factor, self._add_aggregate(Aggregate(counted, argument)))
        self._named[form] = self.titles.of_aggregate(wanted)
        return form

    def _make_sample_form(self, released: ReleasedValue, wanted: SampleFactor, n: ReleasedValue) -> Expression:
        """The sample form from the population form and the released count n."""
        less_one = make("subtract", (n, make_literal(1)), None)
        factor = make("divide", (n, less_one), None)
        match wanted:
            case SampleFactor.RATIO:
                pass
            case SampleFactor.ROOT:
                factor = make("sqrt", (factor,), None)
            case _:
                assert_never(wanted)
        many = make("greater", (n, make_literal(1)), None)
        return make("case", (many, make("multiply", (released, factor), None), make_literal(None)), None)

    # Quantiles

    def _resolve_quantile(self, measure: AggregateTerm, statistic: Statistic) -> Expression:
        argument = self._resolve_argument(measure)
        word = _name_as_typed(measure)
        if argument.type not in STATISTICS[statistic].takes:
            rule = f"{word} needs numbers or times; this is of type {argument.type}."
            fix = "AVG gives the share of true." if argument.type is Type.BOOLEAN else "MODE(x) takes every type."
            raise refusal(measure.place, rule, fix)
        if measure.share is None or not 0 < measure.share < 1 or measure.share.denominator > FINEST:
            rule = "The q of a quantile must lie between 0 and 1, both excluded, with at most 12 decimals."
            raise refusal(measure.place, rule, "Write for example 0.5; MIN and MAX stand for 0.01 and 0.99.")
        argument = self._apply_filter(measure, argument)
        released = self._add_aggregate(Aggregate(statistic, argument, share=measure.share, typed=word))
        if measure.word in FIXED_SHARES:
            self._named[released] = output_names.join_words(measure.word, self.titles.of(argument))
        return released

    # Two arguments

    def _resolve_pair(self, measure: AggregateTerm, kind: PairStatistic) -> Expression:
        if measure.argument is None or measure.second is None:
            word = output_names.sql_word_of(measure)
            raise refusal(measure.place, f"{word} needs two arguments.", f"Write for example {word}(x, y).")
        # A condition on one of the two is enough: rows count where both are there.
        first = self._check_number(measure, self._apply_filter(measure, self.row(measure.argument, "an aggregate")))
        second = self._check_number(measure, self.row(measure.second, "an aggregate"))
        pair = ArgumentPair(first, second, self.source, self._add_sum_or_count, measure.place)
        form = make_pair_statistic(kind, pair, sample=measure.sample)
        self._named[form] = output_names.join_words(kind.value, self.titles.of(first), self.titles.of(second))
        return form

    def _add_sum_or_count(self, statistic: Statistic, argument: Expression) -> Expression:
        return self._add_aggregate(Aggregate(statistic, argument))


def _name_as_typed(measure: AggregateTerm) -> str:
    return name_as_typed(measure.place, output_names.sql_word_of(measure)).upper()


def _find_types(statistic: Statistic | PairStatistic) -> frozenset[Type]:
    """The types that an argument may have."""
    if isinstance(statistic, PairStatistic):
        return PAIR_STATISTICS[statistic].takes
    return STATISTICS[statistic].takes
