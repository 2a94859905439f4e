"""The types of values in a plan, and how a value of each type is written down in Python.

Six types are enough for questions about people. Whatever an engine stores is brought to one of them when a table is
scanned; what does not fit becomes NULL (``None``). A REAL is always finite: NaN and infinities become NULL, too.
"""

from __future__ import annotations

import datetime as dt
from enum import StrEnum
from typing import TypeAlias

Value: TypeAlias = bool | int | float | str | dt.date | dt.datetime | None

INTEGER_MIN, INTEGER_MAX = -(2**63), 2**63 - 1


class Type(StrEnum):
    """What a column or an expression holds; every type also holds NULL."""

    BOOLEAN = "boolean"
    INTEGER = "integer"  # 64 bits; what does not fit is NULL
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
