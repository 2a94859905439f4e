"""Functions that GoogleSQL writes or means differently. What is the same is read by ``sql.functions``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from discreet.frontends.sql import functions
from discreet.frontends.sql.reader import OPERANDS, ExpressionReader, Form, make_binary, make_unary
from discreet.frontends.terms.positions import refusal
from discreet.frontends.terms.syntax import Constant, FunctionTerm, Term

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Node

# Parts of dates that mean the same, and ISOWEEK, which is our week: it begins on Monday.
PARTS = {word: word.lower() for word in ("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")}
PARTS |= {"ISOWEEK": "week", "MONDAY": "week", "DAYOFWEEK": "dayofweek"}


def _read_part(reader: ExpressionReader, node: Node) -> Constant:
    """The name of a part of a date."""
    kind = type(node).__name__
    word = str(node.this.name if kind == "WeekStart" else node.name).upper()
    plain = PARTS.get(word) if (kind == "WeekStart") == (word == "MONDAY") else None
    place = reader.places.of(node, word)
    if plain is None:
        fix = "Use YEAR, QUARTER, MONTH, ISOWEEK, DAY, HOUR, MINUTE or SECOND. WEEK begins on Sunday in GoogleSQL."
        raise refusal(place, "This part of a date is not available.", fix)
    return Constant(plain, place)


def _read_trunc(reader: ExpressionReader, node: Node) -> Term:
    part = _read_part(reader, node.args["unit"])
    return reader.apply("date_trunc", node, part, reader.read(node.this))


def _read_extract(reader: ExpressionReader, node: Node) -> Term:
    """EXTRACT; GoogleSQL counts Sunday as 1."""
    if str(node.this.name).upper() == "DATE":
        return reader.apply("to_date", node, reader.read(node.expression))
    part = _read_part(reader, node.this)
    found = reader.apply("part", node, part, reader.read(node.expression))
    return reader.apply("add", node, found, Constant(1)) if part.value == "dayofweek" else found


def _read_diff(reader: ExpressionReader, node: Node) -> Term:
    unit = node.args.get("unit")
    if unit is None:
        raise refusal(reader.place_of(node), "A difference of dates needs a unit.", "Write DATE_DIFF(a, b, DAY).")
    part = _read_part(reader, unit)
    return reader.apply("date_diff", node, part, reader.read(node.expression), reader.read(node.this))


def _refuse_elapsed(reader: ExpressionReader, node: Node) -> Term:
    rule = "TIMESTAMP_DIFF counts whole units that went by, which is not available."
    raise refusal(reader.place_of(node), rule, "DATETIME_DIFF(a, b, HOUR) counts the hours that begin between.")


def _read_concat(reader: ExpressionReader, node: Node) -> Term:
    """CONCAT is NULL if one part is."""
    texts = [reader.read(part) for part in node.expressions]
    return reader.apply("concat", node, *texts) if len(texts) > 1 else texts[0]


def _make_extreme_form(function: str) -> Form:
    """GREATEST and LEAST are NULL if one argument is."""

    def read(reader: ExpressionReader, node: Node) -> Term:
        arguments = [reader.read(part) for part in (node.this, *node.expressions)]
        if len(arguments) < 2:
            rule = f"{function.upper()} needs two arguments."
            raise refusal(reader.place_of(node), rule, f"Write {function.upper()}(a, b).")
        missing: list[FunctionTerm] = [reader.apply("is_null", node, argument) for argument in arguments]
        found = reader.apply(function, node, *arguments)
        return reader.apply("case", node, reader.apply("or", node, *missing), Constant(None), found)

    return Form(read, ("this", "expressions", "ignore_nulls"))


def _read_cast(reader: ExpressionReader, node: Node) -> Term:
    """CAST; a TIMESTAMP is read as a moment in UTC, which is how we read all of them."""
    return functions.read_cast(reader, node, {**functions.CASTS, "TIMESTAMPTZ": "to_timestamp"})


FUNCTIONS: Mapping[str, Form] = {
    "DateTrunc": Form(_read_trunc, ("this", "unit")),
    "TimestampTrunc": Form(_read_trunc, ("this", "unit")),
    "DatetimeTrunc": Form(_read_trunc, ("this", "unit")),
    "Extract": Form(_read_extract, OPERANDS),
    "DateDiff": Form(_read_diff, (*OPERANDS, "unit", "date_part_boundary")),
    "DatetimeDiff": Form(_read_diff, (*OPERANDS, "unit", "date_part_boundary")),
    "TimestampDiff": Form(_refuse_elapsed, (*OPERANDS, "unit")),
    "Concat": Form(_read_concat, ("expressions", "safe", "coalesce")),
    "Greatest": _make_extreme_form("greatest"),
    "Least": _make_extreme_form("least"),
    "SafeDivide": make_binary("divide"),
    "Date": make_unary("to_date"),
    "Length": Form(lambda reader, node: reader.apply("length", node, reader.read(node.this)), ("this", "binary")),
    "Cast": Form(_read_cast, ("this", "to")),
    "TryCast": Form(_read_cast, ("this", "to", "safe")),
}
