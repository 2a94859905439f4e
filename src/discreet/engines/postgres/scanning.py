"""From what PostgreSQL stores to the plan's types: the casts at the very bottom of every question.

A stored type either has a plan type or it has none, and then its column cannot be declared. What a stored value cannot
be in the declared type is NULL: numbers beyond 64 bits, NaN, dates outside the years 1 to 9999 and infinite ones, texts
of more code points than declared. An infinity is the largest real of its sign. Values of ``char(n)`` come without the
blanks that fill them up, as PostgreSQL itself compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import assert_never

from discreet.engines.postgres import reals
from discreet.engines.postgres.dialect import DIALECT, quote_name
from discreet.engines.postgres.tables import WHOLE_NUMERIC
from discreet.engines.sql import text_forms
from discreet.engines.sql.layers import write_real
from discreet.errors import InternalError
from discreet.plan.types import Type

ENUM = "enum"
_PLAN_TYPES: Mapping[str, Type] = {
    "bool": Type.BOOLEAN,
    **dict.fromkeys(("int2", "int4", "int8", WHOLE_NUMERIC), Type.INTEGER),
    **dict.fromkeys(("float4", "float8", "numeric"), Type.REAL),
    **dict.fromkeys(("text", "varchar", "bpchar", "uuid", ENUM), Type.TEXT),
    "date": Type.DATE,
    **dict.fromkeys(("timestamp", "timestamptz"), Type.TIMESTAMP),
}
# The moments that Python, and so the meaning of the plan, knows.
_ENDS: Mapping[str, tuple[str, str]] = {
    "date": ("0001-01-01", "9999-12-31"),
    "timestamp": ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"),
    "timestamptz": ("0001-01-01 00:00:00+00", "9999-12-31 23:59:59.999999+00"),
}


def plan_type(stored: str) -> Type | None:
    """The plan type of a PostgreSQL type, by its name in the catalog; None where there is none.

    A numeric without places holds integers, as decimals do on every engine.

    >>> plan_type("numeric"), plan_type("bpchar"), plan_type("jsonb")
    (<Type.REAL: 'real'>, <Type.TEXT: 'text'>, None)
    """
    return _PLAN_TYPES.get(stored)


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
    # A code point has one to four bytes. How many bytes there are is known without unpacking a long text, and most
    # texts leave by the first branch.
    size = f"octet_length({value})"
    return (
        f"CASE WHEN {size} <= {max_length} THEN {value} "
        f"WHEN {size} <= {4 * max_length} THEN CASE WHEN char_length({value}) <= {max_length} THEN {value} END END"
    )


def write_unguarded_real(name: str, stored: str, declared: Type) -> str | None:
    """A stored real as a double that may be NaN or infinite; None for everything else."""
    if declared is not Type.REAL or stored not in ("float4", "float8"):
        return None
    return quote_name(name) if stored == "float8" else f"CAST({quote_name(name)} AS float8)"


def write_unchecked_text(name: str, stored: str, declared: Type, max_length: int | None) -> None:
    """Nothing: the length of a text is stored beside it, so that checking it takes little."""


def _write_own_type(column: str, stored: str, kind: Type | None) -> str:
    """A stored value in the plan type of its own kind."""
    match kind:
        case Type.INTEGER if stored == WHOLE_NUMERIC:
            # NaN is above every number here, and so beyond the last.
            first, last = (f"CAST('{end}' AS numeric)" for end in (-(2**63), 2**63 - 1))
            return f"CASE WHEN {column} >= {first} AND {column} <= {last} THEN CAST({column} AS bigint) END"
        case Type.INTEGER:
            return f"CAST({column} AS bigint)"
        case Type.REAL:
            number = f"({reals.write_from_numeric(column)})" if stored == "numeric" else f"CAST({column} AS float8)"
            return write_real(DIALECT, number)
        case Type.TEXT:
            return f'(CAST({column} AS text) COLLATE "C")'
        case Type.DATE | Type.TIMESTAMP:
            first, last = (f"CAST('{end}' AS {stored})" for end in _ENDS[stored])
            known = f"{column} AT TIME ZONE 'UTC'" if stored == "timestamptz" else column
            return f"CASE WHEN {column} >= {first} AND {column} <= {last} THEN {known} END"
        case Type.BOOLEAN | None:
            return column
        case _:
            assert_never(kind)


# A clock as it stands behind a day.
_CLOCK = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"


def _write_whole(value: str) -> str:
    """A finite real as an integer, if it is one of 64 bits."""
    return f"CASE WHEN {value} = floor({value}) THEN {DIALECT.integer_of_real(value)} END"


def _write_moment(text: str) -> str:
    """A time as 2001-12-31 23:59:59.5 or 2001-12-31T23:59:59, or a date alone; else NULL."""
    trimmed = DIALECT.trim(text)
    fits = f"{DIALECT.full_match(trimmed, f'{text_forms.DAY}([ T]{_CLOCK})?')} AND {trimmed} >= '0001'"
    return f"CASE WHEN {fits} THEN {DIALECT.parse(trimmed, Type.TIMESTAMP)} END"


def _write_boolean(text: str) -> str:
    """true, t or 1; false, f or 0, in small or capital letters; else NULL."""
    small = DIALECT.lower(DIALECT.trim(text))
    return f"CASE WHEN {small} IN ('true', 't', '1') THEN true WHEN {small} IN ('false', 'f', '0') THEN false END"


_CONVERSIONS: Mapping[tuple[Type, Type], Callable[[str], str]] = {
    (Type.INTEGER, Type.REAL): lambda value: f"CAST({value} AS float8)",
    (Type.DATE, Type.TIMESTAMP): lambda value: f"CAST({value} AS timestamp)",
    (Type.TIMESTAMP, Type.DATE): lambda value: f"CAST({value} AS date)",
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
