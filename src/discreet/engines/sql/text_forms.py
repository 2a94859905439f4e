"""Numbers and dates that are written as texts: read by strict patterns, because engines differ in what they accept."""

from __future__ import annotations

from discreet.engines.sql.dialect import Dialect
from discreet.plan.types import Type

DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
CLOCK = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
WHOLE = "[+-]?[0-9]{1,19}"
DECIMAL = r"[+-]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?|[iI][nN][fF]([iI][nN][iI][tT][yY])?)"


def write_integer_from_text(dialect: Dialect, text: str) -> str:
    """A whole number written in digits, else NULL."""
    trimmed = dialect.trim(text)
    return f"CASE WHEN {dialect.full_match(trimmed, WHOLE)} THEN {dialect.parse(trimmed, Type.INTEGER)} END"


def write_real_from_text(dialect: Dialect, text: str) -> str:
    """A decimal number, perhaps with an exponent, or an infinity; else NULL."""
    trimmed = dialect.trim(text)
    fits = f"{dialect.length(trimmed)} <= 400 AND {dialect.full_match(trimmed, DECIMAL)}"
    return f"CASE WHEN {fits} THEN {dialect.parse(trimmed, Type.REAL)} END"


def write_date_from_text(dialect: Dialect, text: str) -> str:
    """A date as 2001-12-31, else NULL."""
    trimmed = dialect.trim(text)
    fits = f"{dialect.full_match(trimmed, DAY)} AND {trimmed} >= '0001'"
    return f"CASE WHEN {fits} THEN {dialect.parse(trimmed, Type.DATE)} END"


def write_moment_from_text(dialect: Dialect, text: str) -> str:
    """A time as 2001-12-31 23:59:59.5 or 2001-12-31T23:59:59, or a date alone; else NULL."""
    trimmed = dialect.trim(text)
    fits = f"{dialect.full_match(trimmed, f'{DAY}([ T]{CLOCK})?')} AND {trimmed} >= '0001'"
    return f"CASE WHEN {fits} THEN {dialect.parse(trimmed, Type.TIMESTAMP)} END"


def write_boolean_from_text(dialect: Dialect, text: str) -> str:
    """true, t or 1; false, f or 0, in small or capital letters; else NULL."""
    small = dialect.lower(dialect.trim(text))
    return f"CASE WHEN {small} IN ('true', 't', '1') THEN true WHEN {small} IN ('false', 'f', '0') THEN false END"
