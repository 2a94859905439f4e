"""The types of values in a plan, and the Python values of each type.

There are six types. When a table is scanned, each stored value is converted to one of them, and a value that does not
fit becomes NULL (``None``). A REAL is always finite: NaN becomes NULL, and an infinity becomes the largest real of its
sign, so that bounds clamp it like any other value beyond them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TypeAlias

Value: TypeAlias = bool | int | float | str | dt.date | dt.datetime | None

INTEGER_MIN, INTEGER_MAX = -(2**63), 2**63 - 1
LARGEST_REAL = float.fromhex("0x1.fffffffffffffp+1023")


class Type(StrEnum):
    """The type of a column or an expression. Every type also has the value NULL."""

    BOOLEAN = "boolean"
    INTEGER = "integer"  # 64 bits; a larger number is NULL
    REAL = "real"  # a finite double
    TEXT = "text"
    DATE = "date"
    TIMESTAMP = "timestamp"  # without time zone, to the microsecond

    @property
    def is_number(self) -> bool:
        return self in (Type.INTEGER, Type.REAL)

    @property
    def is_time(self) -> bool:
        return self in (Type.DATE, Type.TIMESTAMP)


NamedColumn: TypeAlias = tuple[str, Type, Sequence[Value]]
"""A column of a table: its name, its type and its values."""


def type_of(value: Value) -> Type | None:
    """The type of a Python value; None for NULL.

    >>> type_of(True), type_of(3), type_of("x"), type_of(None)
    (<Type.BOOLEAN: 'boolean'>, <Type.INTEGER: 'integer'>, <Type.TEXT: 'text'>, None)
    """
    match value:
        case None:
            return None
        case bool():
            return Type.BOOLEAN
        case int():
            return Type.INTEGER
        case float():
            return Type.REAL
        case str():
            return Type.TEXT
        case dt.datetime():
            return Type.TIMESTAMP
        case dt.date():
            return Type.DATE


def sort_values(values: Iterable[Value]) -> tuple[Value, ...]:
    """Values of one type in ascending order, with NULL last.

    >>> sort_values([None, 2, 1])
    (1, 2, None)
    """
    return tuple(sorted(values, key=lambda value: (value is None, value)))


def is_storable_text(value: str) -> bool:
    """Whether every engine can store a text: it has no NUL character and no half of a surrogate pair."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value
