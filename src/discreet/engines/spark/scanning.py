"""From what Spark stores to the plan's types: the casts at the very bottom of every question.

A stored type either has a plan type or it has none, and then its column cannot be declared. What a stored value cannot
be in the declared type is NULL: numbers beyond 64 bits, NaN, dates outside the years 1 to 9999, texts that are not
UTF-8 or of more code points than declared. An infinity is the largest real of its sign.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import assert_never

from discreet.engines.spark.dialect import DIALECT, quote_name
from discreet.engines.sql import text_forms
from discreet.engines.sql.layers import write_real
from discreet.engines.sql.statement import UncheckedText
from discreet.errors import InternalError
from discreet.plan.spark_types import type_of_spark
from discreet.plan.types import Type

# The moments that Python, and so the meaning of the plan, knows.
_ENDS: Mapping[Type, tuple[str, str]] = {
    Type.DATE: ("DATE '0001-01-01'", "DATE '9999-12-31'"),
    Type.TIMESTAMP: ("TIMESTAMP_NTZ '0001-01-01 00:00:00'", "TIMESTAMP_NTZ '9999-12-31 23:59:59.999999'"),
}
# A clock as it stands behind a day.
_CLOCK = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"


def plan_type(stored: str) -> Type | None:
    """The plan type of a Spark type, by its simple name; None where there is none."""
    return type_of_spark(stored)


def fits(stored: Type | None, declared: Type) -> bool:
    """Whether a stored kind of value can be read as a declared one. Texts can be read as anything."""
    return stored is declared or (stored is not None and (stored, declared) in _CONVERSIONS)


def write_stored_column(name: str, stored: str, declared: Type, max_length: int | None) -> str:
    """A stored column as a column of the plan, for one of the pairs that ``fits``. Too long a text is NULL."""
    column, kind = quote_name(name), plan_type(stored)
    value = _write_own_type(column, stored, kind)
    if kind is not declared:
        value = _CONVERSIONS[kind, declared](value)  # type: ignore[index]  # ``fits`` was asked
    if declared is not Type.TEXT:
        return value
    if max_length is None:
        raise InternalError(f"The text {name!r} has no length.")
    if kind is not Type.TEXT:
        return f"CASE WHEN char_length({value}) <= {max_length} THEN {value} END"
    return f"CASE WHEN {_write_is_short(column, max_length)} THEN {value} END"


def write_unchecked_text(name: str, stored: str, declared: Type, max_length: int | None) -> UncheckedText | None:
    """A stored text that is short, perhaps of bytes that are no text; None for everything else.

    Whether bytes are a text takes a look at each of them. Spark groups by bytes, which are equal for equal texts.
    """
    if declared is not Type.TEXT or plan_type(stored) is not Type.TEXT or max_length is None:
        return None
    column = quote_name(name)
    return UncheckedText(f"CASE WHEN {_write_is_short(column, max_length)} THEN {column} END", _write_valid)


def _write_is_short(column: str, max_length: int) -> str:
    """Whether a stored text has at most so many code points.

    They are counted of bytes that are no text, too, without an error; so a text is validated once. No code point takes
    less than a byte, and how many bytes there are Spark knows without reading them.
    """
    return f"octet_length({column}) <= {max_length} OR char_length({column}) <= {max_length}"


def _write_valid(text: str) -> str:
    """A text, NULL where its bytes are none."""
    return f"try_validate_utf8({text})"


def write_unguarded_real(name: str, stored: str, declared: Type) -> str | None:
    """A stored real as a double that may be NaN or infinite; None for everything else."""
    if declared is not Type.REAL or stored not in ("float", "double"):
        return None
    return quote_name(name) if stored == "double" else f"CAST({quote_name(name)} AS DOUBLE)"


def _write_own_type(column: str, stored: str, kind: Type | None) -> str:
    """A stored value in the plan type of its own kind."""
    match kind:
        case Type.INTEGER:
            return column if stored == "bigint" else f"try_cast({column} AS BIGINT)"
        case Type.REAL:
            return write_real(DIALECT, column if stored == "double" else f"CAST({column} AS DOUBLE)")
        case Type.TEXT:
            return _write_valid(column)
        case Type.DATE | Type.TIMESTAMP:
            first, last = _ENDS[kind]
            moment = f"CAST({column} AS TIMESTAMP_NTZ)" if stored == "timestamp" else column
            return f"CASE WHEN {moment} >= {first} AND {moment} <= {last} THEN {moment} END"
        case Type.BOOLEAN | None:
            return column
        case _:
            assert_never(kind)


def _write_whole(value: str) -> str:
    """A finite real as an integer, if it is one of 64 bits."""
    return f"CASE WHEN {value} = rint({value}) THEN {DIALECT.integer_of_real(value)} END"


def _write_moment(text: str) -> str:
    """A time as 2001-12-31 23:59:59.5 or 2001-12-31T23:59:59, or a date alone; else NULL."""
    trimmed = DIALECT.trim(text)
    written = f"{DIALECT.full_match(trimmed, f'{text_forms.DAY}([ T]{_CLOCK})?')} AND {trimmed} >= '0001'"
    return f"CASE WHEN {written} THEN {DIALECT.parse(trimmed, Type.TIMESTAMP)} END"


def _write_boolean(text: str) -> str:
    """true, t or 1; false, f or 0, in small or capital letters; else NULL."""
    small = DIALECT.lower(DIALECT.trim(text))
    return f"CASE WHEN {small} IN ('true', 't', '1') THEN true WHEN {small} IN ('false', 'f', '0') THEN false END"


_CONVERSIONS: Mapping[tuple[Type, Type], Callable[[str], str]] = {
    (Type.INTEGER, Type.REAL): lambda value: f"CAST({value} AS DOUBLE)",
    (Type.DATE, Type.TIMESTAMP): lambda value: f"CAST({value} AS TIMESTAMP_NTZ)",
    (Type.TIMESTAMP, Type.DATE): lambda value: f"CAST({value} AS DATE)",
    (Type.REAL, Type.INTEGER): lambda value: _write_whole(f"({value})"),
    (Type.TEXT, Type.BOOLEAN): _write_boolean,
    (Type.TEXT, Type.INTEGER): partial(text_forms.write_integer_from_text, DIALECT),
    (Type.TEXT, Type.REAL): lambda value: write_real(DIALECT, f"({text_forms.write_real_from_text(DIALECT, value)})"),
    (Type.TEXT, Type.DATE): partial(text_forms.write_date_from_text, DIALECT),
    (Type.TEXT, Type.TIMESTAMP): _write_moment,
    (Type.INTEGER, Type.TEXT): lambda value: DIALECT.to_text(value, Type.INTEGER),
    (Type.BOOLEAN, Type.TEXT): lambda value: DIALECT.to_text(value, Type.BOOLEAN),
    (Type.DATE, Type.TEXT): lambda value: DIALECT.to_text(f"({value})", Type.DATE),
}
