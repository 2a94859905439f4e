"""Turns aggregates and window functions inside one unit into features of the plan (``FeatureCall``)."""

from __future__ import annotations

from typing import assert_never

from discreet.frontends.resolve.calls import check_condition, make
from discreet.frontends.resolve.rows import ColumnFinder, resolve_row
from discreet.frontends.terms.positions import name_as_typed, refusal
from discreet.frontends.terms.syntax import AggregateTerm, FeatureTerm, Term
from discreet.plan.expressions import Expression, Literal
from discreet.plan.functions import make_literal
from discreet.plan.relations import NUMBERINGS, Feature, FeatureCall
from discreet.plan.statistics.table import list_wordings
from discreet.plan.types import Type

# What an aggregate is inside one unit, by the statistic and by the word of a quantile that has one.
FEATURES = {(statistic, wording.word): wording.inside for statistic, wording in list_wordings()}
WITHOUT_ARGUMENT = NUMBERINGS | {Feature.COUNT}
NUMBERS = frozenset({Feature.SUM, Feature.MEAN, Feature.MEDIAN})
WORDS = {Feature.MEAN: "avg", Feature.ANY: "bool_or", Feature.ALL: "bool_and"}


def word_of(call: FeatureCall) -> str:
    """The name of a feature in SQL."""
    return WORDS.get(call.feature, str(call.feature))


def make_feature_call(term: AggregateTerm | FeatureTerm, find: ColumnFinder) -> FeatureCall:
    """The feature that an aggregate means inside one unit."""
    feature = _find_feature(term)
    argument = None if term.argument is None else resolve_row(term.argument, find, "an aggregate")
    if feature is Feature.COUNT and isinstance(argument, Literal) and argument.value is not None:
        argument = None  # COUNT(1) counts rows
    if term.condition is not None:
        condition = check_condition(resolve_row(term.condition, find, "FILTER"), "FILTER", term.condition.place)
        argument = make("case", (condition, argument or make_literal(1), make_literal(None)), term.place)
    if argument is None:
        if feature not in WITHOUT_ARGUMENT:
            name = feature.upper()
            raise refusal(term.place, f"{name} needs an argument.", f"Write for example {name}(x).")
        return FeatureCall(feature, None, Type.INTEGER)
    argument, kind = _cast_argument(feature, argument, term)
    return FeatureCall(feature, argument, kind, term.offset if isinstance(term, FeatureTerm) else 1)


def _find_feature(term: AggregateTerm | FeatureTerm) -> Feature:
    if isinstance(term, FeatureTerm):
        return term.feature
    found = FEATURES[term.statistic, term.word]
    if term.distinct:
        rule = "Inside one unit, DISTINCT is available in COUNT(DISTINCT x) only."
        raise refusal(term.place, rule, "Select DISTINCT unit, x in a subquery, and aggregate x over that.")
    if found is None or term.bounds is not None:
        rule = "This aggregate is not available inside a question."
        fix = "Inside are COUNT, COUNT(DISTINCT x), SUM, AVG, MIN, MAX, MEDIAN, BOOL_OR and BOOL_AND."
        raise refusal(term.place, rule, fix)
    return found


def _cast_argument(feature: Feature, argument: Expression, term: Term) -> tuple[Expression, Type]:
    """The argument in the type that a feature takes, and the type that it yields."""
    match feature:
        case Feature.COUNT | Feature.COUNT_DISTINCT | Feature.ROW_NUMBER | Feature.RANK | Feature.DENSE_RANK:
            return argument, Type.INTEGER
        case Feature.ANY | Feature.ALL:
            return check_condition(argument, feature.upper(), term.place), Type.BOOLEAN
        case Feature.MIN | Feature.MAX | Feature.LAG | Feature.LEAD:
            return argument, argument.type
        case Feature.SUM:
            number = _cast_number(feature, argument, term)
            return number, number.type
        case Feature.MEAN | Feature.MEDIAN:
            return _cast_number(feature, argument, term), Type.REAL
        case _:
            assert_never(feature)


def _cast_number(feature: Feature, argument: Expression, term: Term) -> Expression:
    """The argument as a number; a condition counts as 1 and 0."""
    if argument.type is Type.BOOLEAN:
        argument = make("to_integer", (argument,), term.place)
    if not argument.type.is_number:
        word = name_as_typed(term.place, feature).upper()
        rule = f"{word} needs numbers; this is of type {argument.type}."
        raise refusal(term.place, rule, "COUNT, MIN and MAX take every type.")
    return argument
