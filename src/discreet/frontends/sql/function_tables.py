"""Tables of how functions and aggregates are written in SQL, for hints in refusals and for docs/sql.md."""

from __future__ import annotations

from collections.abc import Mapping

from discreet.plan.catalog import suggest_nearest
from discreet.plan.functions import FUNCTIONS

# One way to write each function of ``plan.functions``. Tests read each and find the function in the plan.
EXAMPLES: Mapping[str, str] = {
    "add": "age + 1",
    "subtract": "age - 1",
    "multiply": "age * 2",
    "divide": "cost / 2",
    "modulo": "age % 10",
    "negate": "-age",
    "abs": "abs(cost)",
    "sign": "sign(cost)",
    "floor": "floor(cost)",
    "ceil": "ceil(cost)",
    "round": "round(cost, 2)",
    "sqrt": "sqrt(cost)",
    "ln": "ln(cost)",
    "exp": "exp(cost)",
    "power": "power(cost, 2)",
    "least": "least(cost, 100)",
    "greatest": "greatest(cost, 0)",
    "clamp": "clamp(cost, 0, 100)",
    "bin": "bin(age, 10)",
    "magnitude": "magnitude(cost)",
    "equal": "ward = 'A'",
    "unequal": "ward <> 'A'",
    "less": "age < 18",
    "at_most": "age <= 18",
    "greater": "age > 18",
    "at_least": "age >= 18",
    "in": "ward IN ('A', 'B')",
    "is_null": "ward IS NULL",
    "not": "NOT smoker",
    "and": "smoker AND age > 18",
    "or": "smoker OR age > 18",
    "case": "CASE WHEN age < 18 THEN 'young' ELSE 'grown' END",
    "coalesce": "coalesce(cost, 0)",
    "null_if": "nullif(ward, 'A')",
    "lower": "lower(ward)",
    "upper": "upper(ward)",
    "trim": "trim(note)",
    "length": "length(note)",
    "concat": "ward || note",
    "substring": "substring(note, 1, 3)",
    "starts_with": "starts_with(note, 'flu')",
    "ends_with": "ends_with(note, 'flu')",
    "contains": "contains(note, 'flu')",
    "like": "note LIKE 'flu%'",
    "ilike": "note ILIKE 'flu%'",
    "part": "extract(month FROM day)",
    "date_trunc": "date_trunc('month', day)",
    "date_diff": "date_diff('day', day, seen)",
    "to_boolean": "CAST(age AS BOOLEAN)",
    "to_integer": "CAST(cost AS BIGINT)",
    "to_real": "CAST(note AS DOUBLE)",
    "to_text": "CAST(age AS VARCHAR)",
    "to_date": "CAST(seen AS DATE)",
    "to_timestamp": "CAST(day AS TIMESTAMP)",
}

# Every name that can stand before a parenthesis, for hints.
NAMES = (
    "abs", "approx_count_distinct", "approx_quantile", "avg", "avg_weighted", "bin", "ceil", "clamp", "coalesce",
    "concat", "contains", "corr", "count", "count_if", "covar_pop", "covar_samp", "date_diff", "date_part",
    "date_trunc", "day", "dayofweek", "ends_with", "exp", "extract", "floor", "greatest", "hour", "if", "ifnull",
    "least", "left", "length", "ln", "lower", "magnitude", "max", "median", "min", "minute", "mod", "mode", "month",
    "nullif", "percentile_cont", "percentile_disc", "power", "quantile", "quantile_cont", "quantile_disc", "quarter",
    "regr_intercept", "regr_slope", "round", "second", "sign", "sqrt", "starts_with", "stddev", "stddev_pop",
    "stddev_samp", "substring", "sum", "trim", "upper", "var_pop", "var_samp", "variance", "week", "weighted_avg",
    "year",
)  # fmt: skip  # a list of words


# The aggregates, each with the ways to write it. Tests read each of them.
AGGREGATES: Mapping[tuple[str, ...], str] = {
    ("COUNT(*)", "COUNT(1)"): "rows",
    ("COUNT(age)",): "rows where a value is there",
    ("COUNT_IF(smoker)", "COUNT(*) FILTER (WHERE smoker)"): "rows where a condition is true; FILTER goes with all",
    ("COUNT(DISTINCT patient_id)",): "distinct units, where the column is the one that names them",
    ("COUNT(DISTINCT ward)", "APPROX_COUNT_DISTINCT(ward)"): (
        "distinct values of anything else, of which each unit brings as many as it may have rows"
    ),
    ("SUM(cost)", "AVG(cost)"): "total and average of the values that are there; a condition counts as 1 and 0",
    ("VAR_POP(cost)", "STDDEV_POP(cost)"): "variance and standard deviation of the population",
    ("VARIANCE(cost)", "VAR_SAMP(cost)", "STDDEV(cost)", "STDDEV_SAMP(cost)"): (
        "the sample forms: the population form times n/(n − 1), or its root; NULL when n is not above 1"
    ),
    ("MEDIAN(cost)",): "the value with half of the rows below it",
    ("QUANTILE(cost, 0.25)", "PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY cost)", "PERCENTILE_DISC(cost, 0.25)",
     "APPROX_QUANTILE(cost, 0.25)"): "the value with this share of the rows below it, strictly between 0 and 1",
    ("MIN(cost)", "MAX(cost)"): "the 1 % and the 99 % quantile: a true extreme is the value of one person",
    ("MODE(ward)",): "the most frequent of the keys that the codebook lists",
    ("COVAR_POP(age, cost)", "COVAR_SAMP(age, cost)", "CORR(age, cost)"): (
        "covariance and correlation over the rows where both are there; NULL where noise leaves nothing to divide by"
    ),
    ("REGR_SLOPE(cost, age)", "REGR_INTERCEPT(cost, age)"): "the line that fits the first over the second best",
    ("WEIGHTED_AVG(cost, age)", "AVG_WEIGHTED(cost, age)"): "average in which each row counts with its weight",
}  # fmt: skip  # one line a row where it fits


def suggest_function(name: str) -> str:
    """A hint: the name of the nearest function, or where the functions are listed.

    >>> suggest_function("averge")
    "Did you mean 'avg'?"
    """
    hint = suggest_nearest(name, NAMES)
    return hint if hint.startswith("Did") else "docs/sql.md lists the functions."


def write_function_table() -> str:
    """The table of functions in docs/sql.md."""
    rows = ["| in SQL | what it yields | constants |", "|---|---|---|"]
    for name, function in FUNCTIONS.items():
        fixed = sorted(position + 1 for position in function.constants if position < 4)
        constants = "the list" if name == "in" else ", ".join(f"argument {position}" for position in fixed)
        words = f" ({', '.join(function.words)})" if function.words else ""
        rows.append(f"| `{EXAMPLES[name].replace('|', chr(92) + '|')}` | {function.help}{words} | {constants} |")
    return "\n".join(rows)


def write_aggregate_table() -> str:
    """The table of aggregates in docs/sql.md."""
    rows = ["| in SQL | measures |", "|---|---|"]
    rows += [f"| {', '.join(f'`{way}`' for way in ways)} | {what} |" for ways, what in AGGREGATES.items()]
    return "\n".join(rows)
