"""SQL functions to terms: numbers, texts, dates and casts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from discreet.frontends import constants, sql_aggregates, sql_refusals, sql_words
from discreet.frontends.positions import refusal
from discreet.frontends.sql_reader import OPERANDS, Form, Reader, one, several, two
from discreet.frontends.terms import Constant, Term

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Node

TO_THE_END = 1_000_000_000  # characters; more than any text has

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

# Functions that the parser knows by name only, with the number of their arguments.
NAMED: Mapping[str, tuple[str, int]] = {
    "bin": ("bin", 2),
    "clamp": ("clamp", 3),
    "magnitude": ("magnitude", 1),
    "prefix": ("starts_with", 2),
    "suffix": ("ends_with", 2),
}


USAGE = {"bin": "bin(age, 10)", "clamp": "clamp(x, 0, 100)", "magnitude": "magnitude(cost)"}


def _round(reader: Reader, node: Node) -> Term:
    digits = node.args.get("decimals")
    return reader.apply("round", node, reader.read(node.this), Constant(0) if digits is None else reader.read(digits))


def _concat(reader: Reader, node: Node) -> Term:
    """concat() passes NULLs over, unlike ||."""
    texts = [reader.apply("coalesce", node, reader.read(part), Constant("")) for part in node.expressions]
    return reader.apply("concat", node, *texts) if len(texts) > 1 else texts[0]


def _substring(reader: Reader, node: Node) -> Term:
    start, count = node.args.get("start"), node.args.get("length")
    first = Constant(1) if start is None else reader.read(start)
    length = Constant(TO_THE_END) if count is None else reader.read(count)
    return reader.apply("substring", node, reader.read(node.this), first, length)


def _left(reader: Reader, node: Node) -> Term:
    return reader.apply("substring", node, reader.read(node.this), Constant(1), reader.read(node.expression))


def _extract(reader: Reader, node: Node) -> Term:
    return reader.apply("part", node, _word(reader, node.this), reader.read(node.expression))


def _trunc(reader: Reader, node: Node) -> Term:
    return reader.apply("date_trunc", node, _word(reader, node.args["unit"]), reader.read(node.this))


def _date_diff(reader: Reader, node: Node) -> Term:
    unit = node.args.get("unit")
    if unit is None:
        raise refusal(reader.place(node), "date_diff needs a unit.", "Write date_diff('day', a, b).")
    return reader.apply("date_diff", node, _word(reader, unit), reader.read(node.expression), reader.read(node.this))


def _word(reader: Reader, node: Node) -> Constant:
    """The name of a part of a date, bare or as a text."""
    word = str(node.name).lower()
    return Constant(WORDS.get(word, word), reader.places.of(node, word.upper()))


def _cast(reader: Reader, node: Node) -> Term:
    return cast(reader, node, CASTS)


def cast(reader: Reader, node: Node, casts: Mapping[str, str]) -> Term:
    """CAST to one of the types that a dialect has."""
    target = node.args["to"]
    name = str(getattr(target.this, "name", target.this))
    function = casts.get(name) if type(target).__name__ == "DataType" else None
    if function is None or target.expressions or target.args.get("nested"):
        rule = f"CAST to {name} is not available."
        fix = "Available are BOOLEAN, BIGINT, DOUBLE, VARCHAR, DATE and TIMESTAMP."
        raise refusal(reader.place(node), rule, fix)
    inner = reader.read(node.this)
    if isinstance(inner, Constant) and isinstance(inner.value, str):
        if function == "to_date":
            return Constant(constants.date(inner.value, inner.place), reader.place(node))
        if function == "to_timestamp":
            return Constant(constants.moment(inner.value, inner.place), reader.place(node))
    return reader.apply(function, node, inner)


def _named(reader: Reader, node: Node) -> Term:
    """A function that the parser knows by name only."""
    name = str(node.name).lower()
    arguments = node.expressions
    if name in {"date_part", "datepart"} and len(arguments) == 2:
        return reader.apply("part", node, _word(reader, arguments[0]), reader.read(arguments[1]))
    if name in WORDS and len(arguments) == 1:
        return reader.apply("part", node, Constant(WORDS[name]), reader.read(arguments[0]))
    if name in sql_aggregates.NAMED:
        return sql_aggregates.named(reader, node, name)
    known = NAMED.get(name)
    if known is None:
        reason = sql_refusals.FUNCTIONS.get(name)
        rule = reason.rule if reason else f"There is no function {name!r} in a question."
        raise refusal(reader.place(node), rule, reason.fix if reason else sql_words.nearest_function(name))
    function, count = known
    if len(arguments) != count:
        rule = f"{name} takes {count} argument{'s' * (count > 1)}."
        raise refusal(reader.place(node), rule, f"Write {USAGE.get(name, f'{name}(x, y)')}.")
    return reader.apply(function, node, *(reader.read(argument) for argument in arguments))


def _date_part(word: str) -> Form:
    def read(reader: Reader, node: Node) -> Term:
        return reader.apply("part", node, Constant(word), reader.read(node.this))

    return Form(read, ("this",))


FORMS: Mapping[str, Form] = {
    # numbers
    "Add": two("add"),
    "Sub": two("subtract"),
    "Mul": two("multiply"),
    "Div": two("divide", "typed", "safe"),
    "Mod": two("modulo"),
    "Pow": two("power"),
    "Abs": one("abs"),
    "Sign": one("sign"),
    "Floor": one("floor"),
    "Ceil": one("ceil"),
    "Round": Form(_round, ("this", "decimals")),
    "Sqrt": one("sqrt"),
    "Ln": one("ln"),
    "Exp": one("exp"),
    "Least": several("least", "ignore_nulls"),
    "Greatest": several("greatest", "ignore_nulls"),
    # texts
    "Concat": Form(_concat, ("expressions", "safe", "coalesce")),
    "Lower": one("lower"),
    "Upper": one("upper"),
    "Trim": one("trim"),
    "Length": one("length"),
    "Substring": Form(_substring, ("this", "start", "length")),
    "Left": Form(_left, OPERANDS),
    "StartsWith": two("starts_with"),
    "EndsWith": two("ends_with"),
    "Contains": two("contains"),
    # dates
    "Extract": Form(_extract, OPERANDS),
    "DateTrunc": Form(_trunc, ("this", "unit")),
    "TimestampTrunc": Form(_trunc, ("this", "unit")),
    "DateDiff": Form(_date_diff, (*OPERANDS, "unit", "date_part_boundary")),
    "Year": _date_part("year"),
    "Quarter": _date_part("quarter"),
    "Month": _date_part("month"),
    "Week": _date_part("week"),
    "WeekOfYear": _date_part("week"),
    "Day": _date_part("day"),
    "DayOfMonth": _date_part("day"),
    "DayOfWeek": _date_part("dayofweek"),
    "Hour": _date_part("hour"),
    "Minute": _date_part("minute"),
    "Second": _date_part("second"),
    # casts, and functions that the parser knows by name only
    "Cast": Form(_cast, ("this", "to")),
    "TryCast": Form(_cast, ("this", "to", "safe")),
    "Anonymous": Form(_named, ("this", "expressions")),
}
