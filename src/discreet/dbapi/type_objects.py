"""Types and constructors of the database standard. A type object equals the names of our types that are of its kind."""

from __future__ import annotations

import datetime as dt

from discreet.plan.types import Type


class TypeObject:
    """One of the standard's kinds of columns, compared with the type in a cursor's description.

    >>> NUMBER == "integer", STRING == "integer", NUMBER != "text"
    (True, False, True)
    """

    def __init__(self, name: str, *kinds: Type) -> None:
        self.name, self.kinds = name, frozenset(str(kind) for kind in kinds)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, str) and str(other) in self.kinds)

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name


STRING = TypeObject("STRING", Type.TEXT)
NUMBER = TypeObject("NUMBER", Type.INTEGER, Type.REAL, Type.BOOLEAN)
DATETIME = TypeObject("DATETIME", Type.DATE, Type.TIMESTAMP)
BINARY = TypeObject("BINARY")
ROWID = TypeObject("ROWID")

Date = dt.date
Time = dt.time
Timestamp = dt.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> dt.date:  # noqa: N802  # the standard's name
    """The day of a moment that is counted in seconds since 1970, here."""
    return dt.datetime.fromtimestamp(ticks).date()  # noqa: DTZ006  # the standard means local time


def TimeFromTicks(ticks: float) -> dt.time:  # noqa: N802  # the standard's name
    """The time of day of such a moment."""
    return dt.datetime.fromtimestamp(ticks).time()  # noqa: DTZ006  # the standard means local time


def TimestampFromTicks(ticks: float) -> dt.datetime:  # noqa: N802  # the standard's name
    """Such a moment."""
    return dt.datetime.fromtimestamp(ticks)  # noqa: DTZ006  # the standard means local time
