"""The table of aggregates: one row for each, from its names to its formula.

The front ends take their names, arguments and refusals from here, ``bounding.bound`` what to measure, ``finish`` how
to compute, ``price`` and ``preview`` what is known of the error, docs/sql.md its tables, and the audit its questions.
A new aggregate is a row here; where its basis is new, too, the type checker names the places that have to know it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from discreet.plan.relations import Feature
from discreet.plan.statistics.definitions import (
    ArgumentForm,
    Cells,
    ChoiceBasis,
    CountBasis,
    Counted,
    FirstMomentBasis,
    GroupBounds,
    PairDefinition,
    PairStatistic,
    SampleFactor,
    SecondMomentBasis,
    Statistic,
    StatisticDefinition,
    SumBasis,
    Wording,
)
from discreet.plan.statistics.formulas import (
    find_deviation,
    find_mean,
    find_standard_error,
    find_variance,
    limit_deviation,
    limit_mean,
    limit_variance,
)
from discreet.plan.types import Type

EVERY_TYPE = frozenset(Type)
NUMBERS = frozenset({Type.INTEGER, Type.REAL})
NUMBERS_AND_CONDITIONS = NUMBERS | {Type.BOOLEAN}
NUMBERS_AND_TIMES = NUMBERS | {Type.DATE, Type.TIMESTAMP}

STATISTICS: Mapping[Statistic, StatisticDefinition] = {
    Statistic.COUNT: StatisticDefinition(
        takes=EVERY_TYPE,
        result=Type.INTEGER,
        basis=CountBasis(Counted.VALUES),
        title="count",
        output="count",
        group_bounds=GroupBounds.UNIT,
        sample=None,
        wordings=(
            Wording(
                names=("count",),
                parsed=("Count",),
                google=("COUNT",),
                verb="count",
                arguments=ArgumentForm.ROWS_OR_VALUE,
                examples=("COUNT(*)", "COUNT(1)", "COUNT({number})"),
                help="rows; with a column, rows where a value is there",
                inside=Feature.COUNT,
            ),
            Wording(
                names=("count_if", "countif"),
                parsed=("CountIf",),
                google=("COUNTIF",),
                verb=None,
                arguments=ArgumentForm.CONDITION,
                examples=("COUNT_IF({condition})", "COUNT(*) FILTER (WHERE {condition})"),
                help="rows where a condition is true; FILTER goes with all",
                inside=Feature.COUNT,
            ),
        ),
    ),
    Statistic.COUNT_UNITS: StatisticDefinition(
        takes=EVERY_TYPE,
        result=Type.INTEGER,
        basis=CountBasis(Counted.UNITS),
        title="count_units",
        output="count_units",
        group_bounds=GroupBounds.REFUSED,
        sample=None,
        wordings=(
            Wording(
                names=(),
                parsed=(),
                google=(),
                verb="count_units",
                arguments=ArgumentForm.NOTHING,
                examples=("COUNT(DISTINCT {unit})",),
                help="distinct units, where the column is the one that names them",
                inside=Feature.COUNT_DISTINCT,
            ),
        ),
    ),
    Statistic.COUNT_DISTINCT: StatisticDefinition(
        takes=EVERY_TYPE,
        result=Type.INTEGER,
        basis=CountBasis(Counted.DISTINCT),
        title="count_distinct",
        output="count_distinct",
        group_bounds=GroupBounds.REFUSED,
        sample=None,
        wordings=(
            Wording(
                names=("approx_count_distinct",),
                parsed=("ApproxDistinct",),
                google=("APPROX_COUNT_DISTINCT",),
                verb="count_distinct",
                arguments=ArgumentForm.VALUE,
                examples=("COUNT(DISTINCT {key})", "APPROX_COUNT_DISTINCT({key})"),
                help="distinct values of anything else, of which each unit brings at most `max_values`: a lower bound",
                inside=Feature.COUNT_DISTINCT,
            ),
        ),
    ),
    Statistic.SUM: StatisticDefinition(
        takes=NUMBERS_AND_CONDITIONS,
        result=None,
        basis=SumBasis(),
        title="sum",
        output="sum",
        group_bounds=GroupBounds.UNIT,
        sample=None,
        wordings=(
            Wording(
                names=("sum",),
                parsed=("Sum",),
                google=("SUM",),
                verb="sum",
                arguments=ArgumentForm.VALUE,
                examples=("SUM({number})",),
                help="total of the values that are there; a condition counts as 1 and 0",
                inside=Feature.SUM,
            ),
        ),
    ),
    Statistic.MEAN: StatisticDefinition(
        takes=NUMBERS_AND_CONDITIONS,
        result=Type.REAL,
        basis=FirstMomentBasis(find_mean, limit_mean, by_size=True),
        title="mean",
        output="avg",
        group_bounds=GroupBounds.ROWS,
        sample=None,
        wordings=(
            Wording(
                names=("avg", "mean"),
                parsed=("Avg",),
                google=("AVG",),
                verb="mean",
                arguments=ArgumentForm.VALUE,
                examples=("AVG({number})",),
                help="average of the values that are there; of a condition, the share of true",
                inside=Feature.MEAN,
            ),
        ),
    ),
    Statistic.VARIANCE: StatisticDefinition(
        takes=NUMBERS_AND_CONDITIONS,
        result=Type.REAL,
        basis=SecondMomentBasis(find_variance, limit_variance),
        title="variance",
        output="variance",
        group_bounds=GroupBounds.REFUSED,
        sample=SampleFactor.RATIO,
        wordings=(
            Wording(
                names=("var_pop",),
                parsed=("VariancePop",),
                google=("VAR_POP",),
                verb="variance",
                arguments=ArgumentForm.VALUE,
                examples=("VAR_POP({number})",),
                help="variance of the population",
                inside=None,
            ),
            Wording(
                names=("var_samp", "variance", "var"),
                parsed=("Variance",),
                google=("VAR_SAMP", "VARIANCE"),
                verb="variance",
                arguments=ArgumentForm.VALUE,
                examples=("VARIANCE({number})", "VAR_SAMP({number})"),
                help="variance of a sample: that of the population times n/(n − 1); NULL when n is not above 1",
                inside=None,
                sample=True,
            ),
        ),
    ),
    Statistic.STDDEV: StatisticDefinition(
        takes=NUMBERS_AND_CONDITIONS,
        result=Type.REAL,
        basis=SecondMomentBasis(find_deviation, limit_deviation),
        title="stddev",
        output="stddev",
        group_bounds=GroupBounds.REFUSED,
        sample=SampleFactor.ROOT,
        wordings=(
            Wording(
                names=("stddev_pop",),
                parsed=("StddevPop",),
                google=("STDDEV_POP",),
                verb="stddev",
                arguments=ArgumentForm.VALUE,
                examples=("STDDEV_POP({number})",),
                help="standard deviation of the population",
                inside=None,
            ),
            Wording(
                names=("stddev_samp", "stddev", "stdev"),
                parsed=("Stddev", "StddevSamp"),
                google=("STDDEV_SAMP", "STDDEV"),
                verb="stddev",
                arguments=ArgumentForm.VALUE,
                examples=("STDDEV({number})", "STDDEV_SAMP({number})"),
                help="standard deviation of a sample: the root of its variance; NULL when n is not above 1",
                inside=None,
                sample=True,
            ),
        ),
    ),
    Statistic.STANDARD_ERROR: StatisticDefinition(
        takes=NUMBERS_AND_CONDITIONS,
        result=Type.REAL,
        basis=SecondMomentBasis(find_standard_error, limit_deviation),
        title="standard error",
        output="sem",
        group_bounds=GroupBounds.REFUSED,
        sample=None,
        wordings=(
            Wording(
                names=("sem",),
                parsed=(),
                google=(),
                verb="standard_error",
                arguments=ArgumentForm.VALUE,
                examples=("SEM({number})",),
                help="standard error of the mean: STDDEV_POP over the root of n; it tells of sampling, not of noise",
                inside=None,
            ),
        ),
    ),
    Statistic.QUANTILE: StatisticDefinition(
        takes=NUMBERS_AND_TIMES,
        result=None,
        basis=ChoiceBasis(Cells.RANKS),
        title="quantile",
        output="quantile",
        group_bounds=GroupBounds.REFUSED,
        sample=None,
        wordings=(
            Wording(
                names=("median",),
                parsed=("Median",),
                google=(),
                verb="median",
                arguments=ArgumentForm.VALUE,
                examples=("MEDIAN({number})",),
                help="the value with half of the rows below it",
                inside=Feature.MEDIAN,
                share=Fraction(1, 2),
            ),
            Wording(
                names=(
                    "quantile",
                    "quantile_cont",
                    "quantile_disc",
                    "percentile_cont",
                    "percentile_disc",
                    "approx_quantile",
                ),
                parsed=("Quantile", "PercentileCont", "PercentileDisc", "ApproxQuantile"),
                google=("PERCENTILE_CONT", "PERCENTILE_DISC"),
                verb="quantile",
                arguments=ArgumentForm.VALUE_AND_SHARE,
                examples=(
                    "QUANTILE({number}, 0.25)",
                    "PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY {number})",
                    "PERCENTILE_DISC({number}, 0.25)",
                    "APPROX_QUANTILE({number}, 0.25)",
                ),
                help="the value with this share of the rows below it, strictly between 0 and 1",
                inside=None,
            ),
            Wording(
                names=("min",),
                parsed=("Min",),
                google=("MIN",),
                verb="min",
                arguments=ArgumentForm.VALUE,
                examples=("MIN({number})",),
                help="the 1 % quantile: a true minimum is the value of one person",
                inside=Feature.MIN,
                share=Fraction(1, 100),
            ),
            Wording(
                names=("max",),
                parsed=("Max",),
                google=("MAX",),
                verb="max",
                arguments=ArgumentForm.VALUE,
                examples=("MAX({number})",),
                help="the 99 % quantile: a true maximum is the value of one person",
                inside=Feature.MAX,
                share=Fraction(99, 100),
            ),
        ),
    ),
    Statistic.MODE: StatisticDefinition(
        takes=EVERY_TYPE,
        result=None,
        basis=ChoiceBasis(Cells.KEYS),
        title="mode",
        output="mode",
        group_bounds=GroupBounds.REFUSED,
        sample=None,
        wordings=(
            Wording(
                names=("mode",),
                parsed=("Mode",),
                google=(),
                verb="mode",
                arguments=ArgumentForm.VALUE,
                examples=("MODE({key})",),
                help="the most frequent of the keys that the codebook lists",
                inside=None,
            ),
        ),
    ),
}

PAIR_STATISTICS: Mapping[PairStatistic, PairDefinition] = {
    PairStatistic.COVARIANCE: PairDefinition(
        takes=NUMBERS_AND_CONDITIONS,
        wordings=(
            Wording(
                names=("covar_pop",),
                parsed=("CovarPop",),
                google=("COVAR_POP",),
                verb="covariance",
                arguments=ArgumentForm.PAIR,
                examples=("COVAR_POP({number}, {other})",),
                help="covariance over the rows where both are there; NULL where noise leaves nothing to divide by",
                inside=None,
            ),
            Wording(
                names=("covar_samp",),
                parsed=("CovarSamp",),
                google=("COVAR_SAMP",),
                verb="covariance",
                arguments=ArgumentForm.PAIR,
                examples=("COVAR_SAMP({number}, {other})",),
                help="covariance of a sample: that of the population times n/(n − 1)",
                inside=None,
                sample=True,
            ),
        ),
    ),
    PairStatistic.CORRELATION: PairDefinition(
        takes=NUMBERS_AND_CONDITIONS,
        wordings=(
            Wording(
                names=("corr",),
                parsed=("Corr",),
                google=("CORR",),
                verb="correlation",
                arguments=ArgumentForm.PAIR,
                examples=("CORR({number}, {other})",),
                help="Pearson's correlation over the same rows, between −1 and 1",
                inside=None,
            ),
        ),
    ),
    PairStatistic.SLOPE: PairDefinition(
        takes=NUMBERS_AND_CONDITIONS,
        wordings=(
            Wording(
                names=("regr_slope",),
                parsed=("RegrSlope",),
                google=(),
                verb="slope",
                arguments=ArgumentForm.PAIR,
                examples=("REGR_SLOPE({number}, {other})",),
                help="slope of the line that fits the first over the second best",
                inside=None,
            ),
        ),
    ),
    PairStatistic.INTERCEPT: PairDefinition(
        takes=NUMBERS_AND_CONDITIONS,
        wordings=(
            Wording(
                names=("regr_intercept",),
                parsed=("RegrIntercept",),
                google=(),
                verb="intercept",
                arguments=ArgumentForm.PAIR,
                examples=("REGR_INTERCEPT({number}, {other})",),
                help="where that line stands when the second is 0",
                inside=None,
            ),
        ),
    ),
    PairStatistic.WEIGHTED_MEAN: PairDefinition(
        takes=NUMBERS_AND_CONDITIONS,
        wordings=(
            Wording(
                names=("weighted_avg", "avg_weighted"),
                parsed=(),
                google=(),
                verb="weighted_mean",
                arguments=ArgumentForm.PAIR,
                examples=("WEIGHTED_AVG({number}, {other})", "AVG_WEIGHTED({number}, {other})"),
                help="average in which each row counts with its weight, the second argument",
                inside=None,
            ),
        ),
    ),
}

# The quantiles that have names of their own: median, min and max.
FIXED_SHARES: Mapping[str, Fraction] = {
    wording.word: wording.share for wording in STATISTICS[Statistic.QUANTILE].wordings if wording.share is not None
}


def list_wordings() -> Iterator[tuple[Statistic | PairStatistic, Wording]]:
    """Every way to ask for an aggregate, with what it asks for, in the order of the docs."""
    for statistic, definition in STATISTICS.items():
        yield from ((statistic, wording) for wording in definition.wordings)
    for pair, pair_definition in PAIR_STATISTICS.items():
        yield from ((pair, wording) for wording in pair_definition.wordings)


def list_names() -> list[str]:
    """Every name of an aggregate in SQL."""
    return [name for _, wording in list_wordings() for name in wording.names]
