"""From what DuckDB stores to the plan's types: the casts at the very bottom of every question.

A stored type either has a plan type or it has none, and then its column cannot be declared. What a stored value cannot
be in the declared type is NULL: numbers beyond 64 bits, NaN, dates outside the years 1 to 9999, texts of more code
points than declared. An infinity is the largest real of its sign.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import assert_never

from discreet.engines.duckdb.dialect import DIALECT, quote_name
from discreet.engines.sql import text_forms
from discreet.engines.sql.layers import write_real
from discreet.errors import InternalError
from discreet.plan.types import Type

# The moments that Python, and so the meaning of the plan, knows.
FIRST_DAY, LAST_DAY = "DATE '0001-01-01'", "DATE '9999-12-31'"
FIRST_MOMENT, LAST_MOMENT = "TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP '9999-12-31 23:59:59.999999'"

_PLAN_TYPES: Mapping[str, Type] = {
    "BOOLEAN": Type.BOOLEAN,
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"), Type.INTEGER),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"), Type.INTEGER),
    **dict.fromkeys(("FLOAT", "DOUBLE", "DECIMAL"), Type.REAL),
    **dict.fromkeys(("VARCHAR", "ENUM", "UUID"), Type.TEXT),
    "DATE": Type.DATE,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), Type.TIMESTAMP),
    "TIMESTAMP WITH TIME ZONE": Type.TIMESTAMP,
    '"NULL"': Type.TEXT,  # a column of nothing but NULLs: Arrow and pandas have such
}


def plan_type(stored: str) -> Type | None:
    """The plan type of a DuckDB type, by its name; None where there is none.

    >>> plan_type("DECIMAL(18,3)"), plan_type("ENUM('a', 'b')"), plan_type("INTEGER[]")
    (<Type.REAL: 'real'>, <Type.TEXT: 'text'>, None)
    """
    if stored.endswith("]"):
        return None
    return _PLAN_TYPES.get(re.split(r"\(", stored, maxsplit=1)[0].strip())


def fits(stored: Type | None, declared: Type) -> bool:
    """Whether a stored kind of value can be read as a declared one. Texts can be read as anything, as from CSV."""
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
    return f"CASE WHEN length({value}) <= {max_length} THEN {value} END"


def write_unguarded_real(name: str, stored: str, declared: Type) -> str | None:
    """A stored real as a double that may be NaN or infinite; None for everything else."""
    if declared is not Type.REAL or plan_type(stored) is not Type.REAL:
        return None
    return quote_name(name) if stored == "DOUBLE" else f"CAST({quote_name(name)} AS DOUBLE)"


def _write_own_type(column: str, stored: str, kind: Type | None) -> str:
    """A stored value in the plan type of its own kind."""
    match kind:
        case Type.INTEGER:
            return column if stored == "BIGINT" else f"TRY_CAST({column} AS BIGINT)"
        case Type.REAL:
            return write_real(DIALECT, column if stored == "DOUBLE" else f"CAST({column} AS DOUBLE)")
        case Type.TEXT:
            # A column of a DuckDB file may have a collation, which its type does not show. Code points decide here.
            return f"({column} COLLATE C)" if stored == "VARCHAR" else f"CAST({column} AS VARCHAR)"
        case Type.DATE:
            return f"CASE WHEN {column} BETWEEN {FIRST_DAY} AND {LAST_DAY} THEN {column} END"
        case Type.TIMESTAMP:
            moment = _write_moment(column, stored)
            return f"CASE WHEN {moment} BETWEEN {FIRST_MOMENT} AND {LAST_MOMENT} THEN {moment} END"
        case Type.BOOLEAN | None:
            return column
        case _:
            assert_never(kind)


def _write_moment(column: str, stored: str) -> str:
    """A time without zone, to the microsecond; times with a zone are taken in UTC."""
    if stored == "TIMESTAMP":
        return column
    if stored == "TIMESTAMP WITH TIME ZONE":
        return f"TRY(make_timestamp(epoch_us({column})))"
    return f"TRY_CAST({column} AS TIMESTAMP)"


_CONVERSIONS: Mapping[tuple[Type, Type], Callable[[str], str]] = {
    (Type.INTEGER, Type.REAL): lambda value: f"CAST({value} AS DOUBLE)",
    (Type.DATE, Type.TIMESTAMP): lambda value: f"CAST({value} AS TIMESTAMP)",
    (Type.TIMESTAMP, Type.DATE): lambda value: f"CAST({value} AS DATE)",
    (Type.TEXT, Type.BOOLEAN): partial(text_forms.write_boolean_from_text, DIALECT),
    (Type.TEXT, Type.INTEGER): partial(text_forms.write_integer_from_text, DIALECT),
    (Type.TEXT, Type.REAL): lambda value: write_real(DIALECT, f"({text_forms.write_real_from_text(DIALECT, value)})"),
    (Type.TEXT, Type.DATE): partial(text_forms.write_date_from_text, DIALECT),
    (Type.TEXT, Type.TIMESTAMP): partial(text_forms.write_moment_from_text, DIALECT),
    (Type.INTEGER, Type.TEXT): lambda value: f"CAST({value} AS VARCHAR)",
    (Type.BOOLEAN, Type.TEXT): lambda value: f"CAST({value} AS VARCHAR)",
    (Type.DATE, Type.TEXT): lambda value: f"CAST({value} AS VARCHAR)",
}
