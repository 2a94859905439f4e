"""Reads SQL functions into terms: functions of numbers, texts and dates, and casts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from discreet.frontends.sql import aggregates, function_tables, intervals, mathematics, refusals
from discreet.frontends.sql.reader import OPERANDS, ExpressionReader, Form, make_binary, make_unary, make_variadic
from discreet.frontends.terms import constants
from discreet.frontends.terms.positions import refusal
from discreet.frontends.terms.syntax import Constant, Term

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Node

TO_THE_END = 1_000_000_000  # a number of characters that no text exceeds

WORDS: Mapping[str, str] = {
    **{f"{word}s": word for word in ("year", "month", "day", "hour", "minute", "second")},
    "dow": "dayofweek",
    "weekday": "dayofweek",
    "weekofyear": "week",
    "dayofmonth": "day",
}

CASTS: Mapping[str, str] = {
    "BOOLEAN": "to_boolean",
    "INT": "to_integer",
    "BIGINT": "to_integer",
    "FLOAT": "to_real",
    "DOUBLE": "to_real",
    "TEXT": "to_text",
    "VARCHAR": "to_text",
    "DATE": "to_date",
    "TIMESTAMP": "to_timestamp",
    "TIMESTAMPNTZ": "to_timestamp",
}

# Functions that have no class in the parser's tree, with the number of their arguments.
NAMED: Mapping[str, tuple[str, int]] = {
    "bin": ("bin", 2),
    "clamp": ("clamp", 3),
    "magnitude": ("magnitude", 1),
    "prefix": ("starts_with", 2),
    "suffix": ("ends_with", 2),
}


USAGE = {"bin": "bin(age, 10)", "clamp": "clamp(x, 0, 100)", "magnitude": "magnitude(cost)"}


def _read_round(reader: ExpressionReader, node: Node) -> Term:
    digits = node.args.get("decimals")
    return reader.apply("round", node, reader.read(node.this), Constant(0) if digits is None else reader.read(digits))


def _read_concat(reader: ExpressionReader, node: Node) -> Term:
    """concat(), which ignores NULLs. The operator || does not."""
    texts = [reader.apply("coalesce", node, reader.read(part), Constant("")) for part in node.expressions]
    return reader.apply("concat", node, *texts) if len(texts) > 1 else texts[0]


def _read_substring(reader: ExpressionReader, node: Node) -> Term:
    start, count = node.args.get("start"), node.args.get("length")
    first = Constant(1) if start is None else reader.read(start)
    length = Constant(TO_THE_END) if count is None else reader.read(count)
    return reader.apply("substring", node, reader.read(node.this), first, length)


def _read_left(reader: ExpressionReader, node: Node) -> Term:
    return reader.apply("substring", node, reader.read(node.this), Constant(1), reader.read(node.expression))


def _read_extract(reader: ExpressionReader, node: Node) -> Term:
    return reader.apply("part", node, _read_date_word(reader, node.this), reader.read(node.expression))


def _read_trunc(reader: ExpressionReader, node: Node) -> Term:
    return reader.apply("date_trunc", node, _read_date_word(reader, node.args["unit"]), reader.read(node.this))


def _read_date_diff(reader: ExpressionReader, node: Node) -> Term:
    unit = node.args.get("unit")
    if unit is None:
        raise refusal(reader.place_of(node), "date_diff needs a unit.", "Write date_diff('day', a, b).")
    return reader.apply(
        "date_diff", node, _read_date_word(reader, unit), reader.read(node.expression), reader.read(node.this)
    )


def _read_date_word(reader: ExpressionReader, node: Node) -> Constant:
    """The name of a part of a date, written bare or as a text."""
    word = str(node.name).lower()
    return Constant(WORDS.get(word, word), reader.places.of(node, word.upper()))


def _read_cast(reader: ExpressionReader, node: Node) -> Term:
    return read_cast(reader, node, CASTS)


def read_cast(reader: ExpressionReader, node: Node, casts: Mapping[str, str]) -> Term:
    """CAST to one of the types that a dialect has."""
    target = node.args["to"]
    name = str(getattr(target.this, "name", target.this))
    function = casts.get(name) if type(target).__name__ == "DataType" else None
    if function is None or target.expressions or target.args.get("nested"):
        rule = f"CAST to {name} is not available."
        fix = "Available are BOOLEAN, BIGINT, DOUBLE, VARCHAR, DATE and TIMESTAMP."
        raise refusal(reader.place_of(node), rule, fix)
    inner = reader.read(node.this)
    if isinstance(inner, Constant) and isinstance(inner.value, str):
        if function == "to_date":
            return Constant(constants.read_date(inner.value, inner.place), reader.place_of(node))
        if function == "to_timestamp":
            return Constant(constants.read_moment(inner.value, inner.place), reader.place_of(node))
    return reader.apply(function, node, inner)


def _read_named(reader: ExpressionReader, node: Node) -> Term:
    """A function that has no class in the parser's tree."""
    name = str(node.name).lower()
    arguments = node.expressions
    if name in {"date_part", "datepart"} and len(arguments) == 2:
        return reader.apply("part", node, _read_date_word(reader, arguments[0]), reader.read(arguments[1]))
    if name in WORDS and len(arguments) == 1:
        return reader.apply("part", node, Constant(WORDS[name]), reader.read(arguments[0]))
    if name == "date_sub" and len(arguments) == 2 and type(arguments[1]).__name__ == "Interval":
        return intervals.subtract_span(reader, node, *arguments)
    if name in aggregates.NAMED:
        return aggregates.read_named(reader, node, name)
    known = NAMED.get(name)
    if known is None:
        reason = refusals.FUNCTIONS.get(name)
        rule = reason.rule if reason else f"There is no function {name!r} in a question."
        raise refusal(reader.place_of(node), rule, reason.fix if reason else function_tables.suggest_function(name))
    function, count = known
    if len(arguments) != count:
        rule = f"{name} takes {count} argument{'s' * (count > 1)}."
        raise refusal(reader.place_of(node), rule, f"Write {USAGE.get(name, f'{name}(x, y)')}.")
    return reader.apply(function, node, *(reader.read(argument) for argument in arguments))


def _make_date_part_form(word: str) -> Form:
    def read(reader: ExpressionReader, node: Node) -> Term:
        return reader.apply("part", node, Constant(word), reader.read(node.this))

    return Form(read, ("this",))


FORMS: Mapping[str, Form] = {
    # numbers
    **mathematics.FORMS,
    "Mul": make_binary("multiply"),
    "Div": make_binary("divide", "typed", "safe"),
    "SafeDivide": make_binary("divide"),
    "Mod": make_binary("modulo"),
    "Pow": make_binary("power"),
    "Abs": make_unary("abs"),
    "Sign": make_unary("sign"),
    "Floor": make_unary("floor"),
    "Ceil": make_unary("ceil"),
    "Round": Form(_read_round, ("this", "decimals")),
    "Sqrt": make_unary("sqrt"),
    "Ln": make_unary("ln"),
    "Exp": make_unary("exp"),
    "Least": make_variadic("least", "ignore_nulls"),
    "Greatest": make_variadic("greatest", "ignore_nulls"),
    # texts
    "Concat": Form(_read_concat, ("expressions", "safe", "coalesce")),
    "Lower": make_unary("lower"),
    "Upper": make_unary("upper"),
    "Trim": make_unary("trim"),
    "Length": make_unary("length"),
    "Substring": Form(_read_substring, ("this", "start", "length")),
    "Left": Form(_read_left, OPERANDS),
    "StartsWith": make_binary("starts_with"),
    "EndsWith": make_binary("ends_with"),
    "Contains": make_binary("contains"),
    # dates
    **intervals.FORMS,
    "Extract": Form(_read_extract, OPERANDS),
    "DateTrunc": Form(_read_trunc, ("this", "unit")),
    "TimestampTrunc": Form(_read_trunc, ("this", "unit")),
    "DateDiff": Form(_read_date_diff, (*OPERANDS, "unit", "date_part_boundary")),
    "Year": _make_date_part_form("year"),
    "Quarter": _make_date_part_form("quarter"),
    "Month": _make_date_part_form("month"),
    "Week": _make_date_part_form("week"),
    "WeekOfYear": _make_date_part_form("week"),
    "Day": _make_date_part_form("day"),
    "DayOfMonth": _make_date_part_form("day"),
    "DayOfWeek": _make_date_part_form("dayofweek"),
    "Hour": _make_date_part_form("hour"),
    "Minute": _make_date_part_form("minute"),
    "Second": _make_date_part_form("second"),
    # casts, and functions that have no class in the parser's tree
    "Cast": Form(_read_cast, ("this", "to")),
    "TryCast": Form(_read_cast, ("this", "to", "safe")),
    "Anonymous": Form(_read_named, ("this", "expressions")),
}
