"""Casts of texts to numbers and dates in a question: by strict patterns, because engines differ in what they accept."""

from __future__ import annotations

from discreet.engines.sql.dialect import Dialect
from discreet.plan.types import Type

DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
WHOLE = "[+-]?[0-9]{1,19}"
DECIMAL = r"[+-]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?|[iI][nN][fF]([iI][nN][iI][tT][yY])?)"


# A number in a text has at most so many characters between its blanks.
LONGEST_REAL = 400


def write_integer_from_text(dialect: Dialect, text: str) -> str:
    """A whole number written in digits, else NULL."""
    trimmed = dialect.trim(text)
    return f"CASE WHEN {dialect.full_match(trimmed, WHOLE)} THEN {dialect.parse(trimmed, Type.INTEGER)} END"


def write_real_from_text(dialect: Dialect, text: str) -> str:
    """A decimal number, perhaps with an exponent, or an infinity; else NULL."""
    trimmed = dialect.trim(text)
    fits = f"{dialect.length(trimmed)} <= {LONGEST_REAL} AND {dialect.full_match(trimmed, DECIMAL)}"
    return f"CASE WHEN {fits} THEN {dialect.parse(trimmed, Type.REAL)} END"


def write_date_from_text(dialect: Dialect, text: str) -> str:
    """A date as 2001-12-31, else NULL."""
    trimmed = dialect.trim(text)
    fits = f"{dialect.full_match(trimmed, DAY)} AND {trimmed} >= '0001'"
    return f"CASE WHEN {fits} THEN {dialect.parse(trimmed, Type.DATE)} END"
