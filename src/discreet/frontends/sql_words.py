"""How the functions of a question are written in SQL: for "did you mean", and for the table in docs/sql.md."""

from __future__ import annotations

from collections.abc import Mapping

from discreet.plan.catalog import nearest
from discreet.plan.functions import FUNCTIONS

# One way to write each function of ``plan.functions``; tests read each of these and find the function in the plan.
WRITTEN: Mapping[str, str] = {
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

# Every name that can stand before a parenthesis.
NAMES = (
    "abs", "avg", "bin", "ceil", "clamp", "coalesce", "concat", "contains", "count", "count_if", "date_diff",
    "date_part", "date_trunc", "day", "dayofweek", "ends_with", "exp", "extract", "floor", "greatest", "hour", "if",
    "ifnull", "least", "left", "length", "ln", "lower", "minute", "mod", "month", "nullif", "power", "quarter",
    "round", "second", "sign", "sqrt", "starts_with", "stddev", "stddev_pop", "stddev_samp", "substring", "sum",
    "trim", "upper", "var_pop", "var_samp", "variance", "week", "year",
)  # fmt: skip  # a list of words


def nearest_function(name: str) -> str:
    """A hint at the function that was meant.

    >>> nearest_function("averge")
    "Did you mean 'avg'?"
    """
    hint = nearest(name, NAMES)
    return hint if hint.startswith("Did") else "docs/sql.md lists the functions."


def function_table() -> str:
    """The table of functions in docs/sql.md."""
    rows = ["| in SQL | what it yields | constants |", "|---|---|---|"]
    for name, function in FUNCTIONS.items():
        fixed = sorted(position + 1 for position in function.constants if position < 4)
        constants = "the list" if name == "in" else ", ".join(f"argument {position}" for position in fixed)
        words = f" ({', '.join(function.words)})" if function.words else ""
        rows.append(f"| `{WRITTEN[name].replace('|', chr(92) + '|')}` | {function.help}{words} | {constants} |")
    return "\n".join(rows)
