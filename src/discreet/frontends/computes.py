"""Aggregates and window functions inside one unit, as computations of the plan (``Compute``)."""

from __future__ import annotations

from discreet.frontends.calls import make, truth
from discreet.frontends.positions import refusal
from discreet.frontends.rows import Find, row
from discreet.frontends.terms import Measure, Term, Trait
from discreet.plan.expressions import Expression, Literal
from discreet.plan.functions import literal
from discreet.plan.nodes import Statistic
from discreet.plan.relations import Compute, Feature
from discreet.plan.types import Type

STATISTICS = {
    Statistic.COUNT: Feature.COUNT,
    Statistic.COUNT_UNITS: Feature.COUNT_DISTINCT,
    Statistic.COUNT_DISTINCT: Feature.COUNT_DISTINCT,
    Statistic.SUM: Feature.SUM,
    Statistic.MEAN: Feature.MEAN,
}
QUANTILES = {"min": Feature.MIN, "max": Feature.MAX, "median": Feature.MEDIAN}
WITHOUT_ARGUMENT = frozenset({Feature.COUNT, Feature.ROW_NUMBER, Feature.RANK, Feature.DENSE_RANK})
NUMBERS = frozenset({Feature.SUM, Feature.MEAN, Feature.MEDIAN})
WORDS = {Feature.MEAN: "avg", Feature.ANY: "bool_or", Feature.ALL: "bool_and"}


def word(wanted: Compute) -> str:
    """What SQL calls a computation."""
    return WORDS.get(wanted.feature, str(wanted.feature))


def compute(term: Measure | Trait, find: Find) -> Compute:
    """The computation that an aggregate means inside one unit."""
    feature = _feature(term)
    argument = None if term.argument is None else row(term.argument, find, "an aggregate")
    if feature is Feature.COUNT and isinstance(argument, Literal) and argument.value is not None:
        argument = None  # COUNT(1) counts rows
    if term.condition is not None:
        condition = truth(row(term.condition, find, "FILTER"), "FILTER", term.condition.place)
        argument = make("case", (condition, argument or literal(1), literal(None)), term.place)
    if argument is None:
        if feature not in WITHOUT_ARGUMENT:
            word_ = feature.upper()
            raise refusal(term.place, f"{word_} needs an argument.", f"Write for example {word_}(x).")
        return Compute(feature, None, Type.INTEGER)
    argument, kind = _typed(feature, argument, term)
    return Compute(feature, argument, kind, term.offset if isinstance(term, Trait) else 1)


def _feature(term: Measure | Trait) -> Feature:
    if isinstance(term, Trait):
        return term.feature
    if term.statistic is Statistic.QUANTILE and term.word in QUANTILES:
        return QUANTILES[term.word]
    found = STATISTICS.get(term.statistic) if isinstance(term.statistic, Statistic) else None
    if found is None or term.bounds is not None:
        rule = "This aggregate is not available inside a question."
        fix = "Inside are COUNT, COUNT(DISTINCT x), SUM, AVG, MIN, MAX, MEDIAN, BOOL_OR and BOOL_AND."
        raise refusal(term.place, rule, fix)
    return found


def _typed(feature: Feature, argument: Expression, term: Term) -> tuple[Expression, Type]:
    """The argument in the type that a feature takes, and the type that it yields."""
    match feature:
        case Feature.COUNT | Feature.COUNT_DISTINCT | Feature.ROW_NUMBER | Feature.RANK | Feature.DENSE_RANK:
            return argument, Type.INTEGER
        case Feature.ANY | Feature.ALL:
            return truth(argument, feature.upper(), term.place), Type.BOOLEAN
        case Feature.MIN | Feature.MAX | Feature.LAG | Feature.LEAD:
            return argument, argument.type
    if argument.type is Type.BOOLEAN:
        argument = make("to_integer", (argument,), term.place)
    if not argument.type.is_number:
        rule = f"{feature.upper()} needs numbers; this is of type {argument.type}."
        raise refusal(term.place, rule, "COUNT, MIN and MAX take every type.")
    return argument, argument.type if feature is Feature.SUM else Type.REAL
