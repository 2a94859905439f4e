"""Tables of how functions and aggregates are written in SQL, for hints in refusals and for docs/sql.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from discreet.plan.catalog import suggest_nearest
from discreet.plan.functions import FUNCTIONS
from discreet.plan.statistics.definitions import ArgumentForm, GroupBounds, Statistic, Wording
from discreet.plan.statistics.table import STATISTICS, list_names, list_wordings

# One way to write each function of ``plan.functions``. Tests read each and find the function in the plan.
EXAMPLES: Mapping[str, str] = {
    "add": "age + 1",
    "subtract": "age - 1",
    "multiply": "age * 2",
    "divide": "cost / 2",
    "quotient": "age // 10",
    "modulo": "age % 10",
    "negate": "-age",
    "abs": "abs(cost)",
    "sign": "sign(cost)",
    "floor": "floor(cost)",
    "ceil": "ceil(cost)",
    "trunc": "trunc(cost)",
    "round": "round(cost, 2)",
    "sqrt": "sqrt(cost)",
    "ln": "ln(cost)",
    "log10": "log10(cost)",
    "log2": "log2(cost)",
    "sin": "sin(cost)",
    "cos": "cos(cost)",
    "tan": "tan(cost)",
    "asin": "asin(cost / 10000)",
    "acos": "acos(cost / 10000)",
    "atan": "atan(cost)",
    "atan2": "atan2(cost, age)",
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
    "position": "position('flu' IN note)",
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

# Every name of a function that can stand before a parenthesis.
FUNCTION_NAMES = (
    "abs", "acos", "asin", "atan", "atan2", "bin", "ceil", "clamp", "coalesce", "concat", "contains", "cos", "cot",
    "date_diff", "date_part", "date_trunc", "day", "dayofweek", "degrees", "ends_with", "exp", "extract",
    "floor", "greatest", "hour", "if", "ifnull", "least", "left", "length", "ln", "log", "log10", "log2", "lower",
    "magnitude", "minute", "mod", "month", "nullif", "pi", "position", "power", "quarter", "radians", "round",
    "second", "sign", "sin", "sqrt", "starts_with", "strpos", "substring", "tan", "trim", "trunc", "upper", "week",
    "year",
)  # fmt: skip  # a list of words
NAMES = tuple(sorted((*FUNCTION_NAMES, *list_names())))

# The columns that stand in the examples of docs/sql.md.
EXAMPLE_COLUMNS = {"number": "cost", "other": "age", "condition": "smoker", "unit": "patient_id", "key": "ward"}


def suggest_function(name: str) -> str:
    """A hint: the name of the nearest function, or where the functions are listed.

    >>> suggest_function("averge")
    "Did you mean 'avg'?"
    """
    hint = suggest_nearest(name, NAMES)
    return hint if hint.startswith("Did") else "`discreet help sql` lists the functions."


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
    rows = ["| in SQL | in a chain | measures |", "|---|---|---|"]
    for _, wording in list_wordings():
        ways = ", ".join(f"`{example.format(**EXAMPLE_COLUMNS)}`" for example in wording.examples)
        rows.append(f"| {ways} | {_write_chain(wording)} | {wording.help} |")
    return "\n".join(rows)


def _write_chain(wording: Wording) -> str:
    """How a wording is written in a chain; empty where the chain has no verb for it."""
    if wording.verb is None:
        return ""
    sample = ", sample=True" if wording.sample else ""
    kind = "key" if "{key}" in wording.examples[0] else "number"
    return f"`{wording.verb}({_write_arguments(wording.arguments, EXAMPLE_COLUMNS[kind])}{sample})`"


def _write_arguments(form: ArgumentForm, column: str) -> str:
    match form:
        case ArgumentForm.NOTHING | ArgumentForm.ROWS_OR_VALUE | ArgumentForm.CONDITION:
            return ""
        case ArgumentForm.VALUE:
            return f'"{column}"'
        case ArgumentForm.VALUE_AND_SHARE:
            return f'"{column}", 0.25'
        case ArgumentForm.PAIR:
            return f'"{column}", "{EXAMPLE_COLUMNS["other"]}"'
        case _:
            assert_never(form)


def write_google_table() -> str:
    """The table of aggregates and their bounds in the GoogleSQL form, in docs/sql.md."""
    alike: dict[tuple[GroupBounds, bool], list[str]] = {}
    for statistic, wording in list_wordings():
        known = STATISTICS[statistic] if isinstance(statistic, Statistic) else None
        bounds = (GroupBounds.REFUSED, False) if known is None else (known.group_bounds, known.needs_bounds)
        alike.setdefault(bounds, []).extend(wording.google)
    rows = ["| aggregate | `contribution_bounds_per_group` | `contribution_bounds_per_row` |", "|---|---|---|"]
    for (group, row), names in alike.items():
        ways = ", ".join(f"`{name}`" for name in names)
        rows.append(f"| {ways} | {_describe_group_bounds(group)} | {'move every row' if row else 'not available'} |")
    return "\n".join(rows)


def _describe_group_bounds(bounds: GroupBounds) -> str:
    match bounds:
        case GroupBounds.UNIT:
            return "hold what one unit adds to a group"
        case GroupBounds.ROWS:
            return "move every row"
        case GroupBounds.REFUSED:
            return "not available"
        case _:
            assert_never(bounds)
