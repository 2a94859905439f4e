"""Aggregates mean what they say: arithmetic over released sums against the plain formulas, shares, units, titles."""

from __future__ import annotations

import math
import random
import statistics
from fractions import Fraction
from typing import Any

import pytest

from discreet.bounding.bound import bound
from discreet.bounding.facts import facts_of
from discreet.bounding.stability import find_relation_facts
from discreet.errors import QuestionError, Unbounded
from discreet.frontends import read_sql
from discreet.frontends.chain import aggregates
from discreet.frontends.chain.aggregates import max_, mean, median, min_, quantile
from discreet.frontends.chain.builder import TableBuilder
from discreet.frontends.chain.operands import ChainExpression, col
from discreet.plan.evaluate import evaluate
from discreet.plan.expressions import Column, Literal, ReleasedValue, walk
from discreet.plan.nodes import Aggregate, Question
from discreet.plan.statistics.definitions import Statistic
from discreet.plan.types import Type, Value
from tests.worlds.tables import CATALOG

VISITS = TableBuilder(CATALOG, "visits")
AGE, COST, SMOKER = (
    Column("visits", "age", Type.INTEGER),
    Column("visits", "cost", Type.REAL),
    Column("visits", "smoker", Type.BOOLEAN),
)
Row = dict[Column | ReleasedValue, Value]


def rows(seed: int, count: int, *, nulls: float = 0.2) -> list[Row]:
    """Rows with NULLs in them, in which cost rises with age."""
    source = random.Random(seed)  # noqa: S311  # test data, not noise
    found: list[Row] = []
    for _ in range(count):
        age = source.randint(0, 110)
        cost = min(10_000.0, max(0.0, 60.0 * age + source.gauss(0, 900)))
        found.append(
            {
                AGE: None if source.random() < nulls else age,
                COST: None if source.random() < nulls else cost,
                SMOKER: source.choice((True, False, None)),
            }
        )
    return found


def measured(aggregate: Aggregate, data: list[Row]) -> Value:
    """A sum or a count without noise."""
    if aggregate.argument is None:
        return len(data)
    values = [value for row in data if (value := evaluate(aggregate.argument, row)) is not None]
    if aggregate.statistic is Statistic.COUNT:
        return len(values)
    assert aggregate.statistic is Statistic.SUM
    return math.fsum(value for value in values if isinstance(value, int | float))


def answered(question: Question, data: list[Row]) -> list[Value]:
    """The outputs of a question without groups and without noise."""
    released: dict[Column | ReleasedValue, Value] = {
        question.refer_to_aggregate(i): measured(aggregate, data) for i, aggregate in enumerate(question.aggregates)
    }
    return [evaluate(output.expression, released) for output in question.outputs]


def pairs(data: list[Row], *, smokers: bool = False) -> tuple[list[float], list[float]]:
    kept: list[tuple[Any, Any]] = [
        (row[AGE], row[COST])
        for row in data
        if row[AGE] is not None and row[COST] is not None and (row[SMOKER] is True or not smokers)
    ]
    return [age for age, _ in kept], [cost for _, cost in kept]


def one(text: str, data: list[Row]) -> Any:
    (value,) = answered(read_sql.read(f"SELECT {text} AS x FROM visits", CATALOG), data)
    return value


@pytest.mark.parametrize("smokers", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_two_arguments(seed: int, *, smokers: bool) -> None:
    """Without noise the released arithmetic is the textbook formula over complete pairs."""
    data = rows(seed, 300)
    ages, costs = pairs(data, smokers=smokers)
    chosen = " FILTER (WHERE smoker)" if smokers else ""
    slope, intercept = statistics.linear_regression(ages, costs)
    sample = statistics.covariance(ages, costs)
    close = {"rel_tol": 1e-9, "abs_tol": 1e-6}
    assert math.isclose(one(f"CORR(age, cost){chosen}", data), statistics.correlation(ages, costs), **close)
    assert math.isclose(one(f"CORR(cost, age){chosen}", data), statistics.correlation(ages, costs), **close)
    assert math.isclose(one(f"COVAR_SAMP(age, cost){chosen}", data), sample, **close)
    assert math.isclose(one(f"COVAR_POP(age, cost){chosen}", data), sample * (len(ages) - 1) / len(ages), **close)
    assert math.isclose(one(f"REGR_SLOPE(cost, age){chosen}", data), slope, **close)
    assert math.isclose(one(f"REGR_INTERCEPT(cost, age){chosen}", data), intercept, **close)
    weighted = math.fsum(a * c for a, c in zip(ages, costs)) / math.fsum(ages)
    assert math.isclose(one(f"WEIGHTED_AVG(cost, age){chosen}", data), weighted, **close)


def test_too_few_pairs() -> None:
    """NULL stands where there is nothing to compute from, and never an error."""
    words = ("CORR(age, cost)", "COVAR_POP(age, cost)", "COVAR_SAMP(age, cost)", "REGR_SLOPE(cost, age)",
             "REGR_INTERCEPT(cost, age)", "WEIGHTED_AVG(cost, age)")  # fmt: skip  # a list of words
    single: list[Row] = [{AGE: 30, COST: 10.0, SMOKER: True}]
    for word in words:
        assert one(word, []) is None
        assert one(word, [{AGE: 30, COST: None, SMOKER: True}] * 5) is None
        alone = one(word, single)
        assert alone in {None, 0.0} or (word.startswith("WEIGHTED") and alone == 10.0)
    same: list[Row] = [{AGE: 30, COST: float(cost), SMOKER: True} for cost in range(9)]
    assert one("CORR(age, cost)", same) is None and one("REGR_SLOPE(cost, age)", same) is None


def test_noise_cannot_leave_the_range() -> None:
    """With any noise whatever, a correlation stays in [-1, 1], a weighted mean in its bounds, and nothing fails."""
    source = random.Random(5)  # noqa: S311  # stands for noise of any kind
    for text, low, high in (("CORR(age, cost)", -1, 1), ("WEIGHTED_AVG(cost, age)", 0, 10_000)):
        question = read_sql.read(f"SELECT {text} AS x FROM visits", CATALOG)
        some = 0
        for _ in range(4_000):
            released: dict[Column | ReleasedValue, Value] = {
                question.refer_to_aggregate(i): source.randint(-50, 50) if a.statistic is Statistic.COUNT
                else source.gauss(0, 10.0 ** source.randint(-3, 12))
                for i, a in enumerate(question.aggregates)
            }  # fmt: skip  # one rule a line
            value = evaluate(question.outputs[0].expression, released)
            assert value is None or (isinstance(value, float) and low <= value <= high)
            some += value is not None
        assert some > 10


def test_centred_sums_are_smaller() -> None:
    """Each sum is bounded by half the range: the product by the product of the halves."""
    question = read_sql.read("SELECT CORR(age, cost) AS x FROM visits", CATALOG)
    source = find_relation_facts(question.source, CATALOG)
    widest = {}
    for aggregate in question.aggregates:
        assert aggregate.argument is not None
        facts = facts_of(aggregate.argument, source)
        assert facts.low is not None and facts.high is not None
        widest[str(aggregate)] = max(-facts.low, facts.high)
    halves = [55, 5000, 55 * 5000, 55 * 5000, 1513, 12_500_000]  # of age, cost, the product twice, and the squares
    assert sorted(widest.values()) == sorted(halves)
    assert len(bound(question, CATALOG).bounded.measures) == len(question.aggregates) == 6


@pytest.mark.parametrize("high", ["1e-9", "0.3", "7", "1e6", "4e9", "1e30", "1e99"])
def test_wide_and_narrow_bounds(high: str) -> None:
    """Whatever the bounds, the question is a plan of finite constants, or refused where it is bounded."""
    for argument in (f"clamp(cost, 0, {high})", f"CAST(clamp(cost, 0, {high}) AS BIGINT)", f"clamp(age, 0, {high})"):
        for word in ("CORR", "REGR_INTERCEPT", "WEIGHTED_AVG"):
            question = read_sql.read(f"SELECT {word}({argument}, age) AS x FROM visits", CATALOG)
            constants = [part.value for part in walk(question.outputs[0].expression) if isinstance(part, Literal)]
            assert all(value is None or abs(float(str(value))) < 1e301 for value in constants)
            try:
                bound(question, CATALOG)
            except Unbounded as error:
                assert str(error).endswith("Nothing was charged.")  # noqa: PT017  # either outcome is right


def test_bounds_beyond_squares() -> None:
    """Bounds whose squares are no reals are refused."""
    for text in ("CORR(age, clamp(cost, 0, 1e200))", "WEIGHTED_AVG(clamp(cost, -1e300, 0), age)"):
        with pytest.raises(QuestionError, match="too wide"):
            read_sql.read(f"SELECT {text} FROM visits", CATALOG)


def test_statistics_of_one_pair_share_their_sums() -> None:
    """Whatever is asked of a pair, each sum is measured once, in both orders."""
    text = "SELECT CORR(age, cost), COVAR_POP(cost, age), REGR_SLOPE(cost, age), REGR_SLOPE(age, cost) FROM visits"
    assert len(read_sql.read(text, CATALOG).aggregates) == 6


@pytest.mark.parametrize(("text", "share"), [
    ("QUANTILE(age, 0.1)", Fraction(1, 10)),
    ("QUANTILE(age, .30)", Fraction(3, 10)),
    ("QUANTILE(age, 1e-3)", Fraction(1, 1000)),
    ("QUANTILE(age, (0.7))", Fraction(7, 10)),
    ("PERCENTILE_CONT(0.1) WITHIN GROUP (ORDER BY age DESC)", Fraction(9, 10)),
    ("MEDIAN(age)", Fraction(1, 2)),
    ("MIN(age)", Fraction(1, 100)),
    ("MAX(age)", Fraction(99, 100)),
])  # fmt: skip  # a table
def test_shares_are_exact(text: str, share: Fraction) -> None:
    """The q of a quantile is the decimal as it is written, not the nearest double."""
    (aggregate,) = read_sql.read(f"SELECT {text} FROM visits", CATALOG).aggregates
    assert aggregate.share == share


def test_quantiles_in_the_chain() -> None:
    """Floats are the decimals they print as; what is no share is refused."""
    (aggregate,) = VISITS.agg(quantile("age", 0.1)).question.aggregates
    assert aggregate.share == Fraction(1, 10)
    assert VISITS.agg(quantile("age", Fraction(1, 3))).question.outputs[0].name == "quantile_33_3333_age"
    wrong: tuple[Any, ...] = (0, 1, -0.5, 1.5, Fraction(1, 10**13), float("nan"), "0.5", None, True, [0.5])
    for q in wrong:
        with pytest.raises(QuestionError, match="quantile"):
            _ = VISITS.agg(quantile("age", q)).question


def test_extremes_say_what_they_are() -> None:
    """MIN and MAX are named so, and the plan shows the quantile."""
    question = VISITS.agg(min_("age"), max_("age"), median("age")).question
    assert [output.name for output in question.outputs] == ["min_age", "max_age", "median_age"]
    assert [str(output.expression) for output in question.outputs] == [
        "quantile(age, 0.01)", "quantile(age, 0.99)", "quantile(age, 0.5)"
    ]  # fmt: skip  # a list
    assert "1 % quantile" in (min_.__doc__ or "") and "one person" in (max_.__doc__ or "")


@pytest.mark.parametrize("name", [
    "mean", "median", "min_", "max_", "mode", "sum_", "count_distinct", "variance", "stddev"
])  # fmt: skip  # a list of words
def test_aggregates_do_not_nest(name: str) -> None:
    """No aggregate takes an aggregate, in any argument."""
    with pytest.raises(QuestionError, match="inside an aggregate"):
        getattr(aggregates, name)(mean("age"))
    with pytest.raises(QuestionError, match="inside an aggregate"):
        aggregates.correlation("age", mean("age"))


def test_filter_in_the_chain() -> None:
    """filter belongs to one aggregate, once, with a condition on rows."""
    kept = mean("age").alias("a").filter(col("smoker"))
    assert kept.name == "a"
    wrong: list[tuple[ChainExpression, Any]] = [
        (col("age"), col("smoker")), (mean("age") + 1, col("smoker")), (kept, col("smoker")),
        (mean("age"), True), (mean("age"), mean("age") > 3),
    ]  # fmt: skip  # a list
    for expression, condition in wrong:
        with pytest.raises(QuestionError, match="filter"):
            expression.filter(condition)


def test_units_of_rows() -> None:
    """Where each row is its own unit there are no units to count, only rows."""
    with pytest.raises(QuestionError, match="own unit"):
        _ = TableBuilder(CATALOG, "answers").agg(aggregates.count_units()).question


def test_other_people_are_no_unit() -> None:
    """Negative control: only the unit itself, or NULL, counts as units; anything else is distinct values."""
    kinds = {
        "patient_id": Statistic.COUNT_UNITS,
        "CASE WHEN smoker THEN patient_id END": Statistic.COUNT_UNITS,
        "CASE WHEN smoker THEN patient_id WHEN age > 3 THEN NULL ELSE patient_id END": Statistic.COUNT_UNITS,
        "CASE WHEN smoker THEN patient_id ELSE 0 END": Statistic.COUNT_DISTINCT,
        "CASE WHEN smoker THEN patient_id ELSE age END": Statistic.COUNT_DISTINCT,
        "NULLIF(age, patient_id)": Statistic.COUNT_DISTINCT,
        "COALESCE(patient_id, 0)": Statistic.COUNT_DISTINCT,
        "patient_id + 0": Statistic.COUNT_DISTINCT,
        "patient_id % 2": Statistic.COUNT_DISTINCT,
    }
    for text, kind in kinds.items():
        (aggregate,) = read_sql.read(f"SELECT COUNT(DISTINCT {text}) FROM visits", CATALOG).aggregates
        assert aggregate.statistic is kind, text
