"""Times as exact numbers of days, and the starts of days, months and other units of time.

Bounds of dates and timestamps are kept as days since 1970, as exact fractions. So a date and the timestamp at its
midnight are the same number, and both can be compared and merged without a rule of their own.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from fractions import Fraction

from discreet.plan.types import Type

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001  # plan times have no zone
_MICROSECONDS = 86_400 * 10**6
# The steps in which the values of a type lie, in days; others have none.
STEPS = {Type.DATE: Fraction(1), Type.TIMESTAMP: Fraction(1, _MICROSECONDS)}

# The least and the greatest length of each unit of time. So long after the start of one, the next one has begun.
_LENGTHS = {
    "year": (dt.timedelta(365), dt.timedelta(366)),
    "quarter": (dt.timedelta(90), dt.timedelta(92)),
    "month": (dt.timedelta(28), dt.timedelta(31)),
    "week": (dt.timedelta(7), dt.timedelta(7)),
    "day": (dt.timedelta(1), dt.timedelta(1)),
    "hour": (dt.timedelta(hours=1), dt.timedelta(hours=1)),
    "minute": (dt.timedelta(minutes=1), dt.timedelta(minutes=1)),
    "second": (dt.timedelta(seconds=1), dt.timedelta(seconds=1)),
}


def to_moment(when: dt.date) -> dt.datetime:
    """A timestamp as it is, a date as its midnight."""
    return when if isinstance(when, dt.datetime) else dt.datetime.combine(when, dt.time())


def to_days(when: dt.date) -> Fraction:
    """The days since 1970, exactly.

    >>> to_days(dt.date(1970, 1, 3)), to_days(dt.datetime(1969, 12, 31, 12))
    (Fraction(2, 1), Fraction(-1, 2))
    """
    return Fraction((to_moment(when) - _EPOCH) // dt.timedelta(microseconds=1), _MICROSECONDS)


def from_days(days: Fraction, kind: Type) -> dt.date:
    """The time of a type at so many days since 1970; between two of them the earlier one.

    >>> from_days(Fraction(3, 2), Type.DATE), from_days(Fraction(3, 2), Type.TIMESTAMP)
    (datetime.date(1970, 1, 2), datetime.datetime(1970, 1, 2, 12, 0))
    """
    moment = _EPOCH + dt.timedelta(microseconds=days * _MICROSECONDS // 1)
    return moment.date() if kind is Type.DATE else moment


def truncate(unit: str, when: dt.date) -> dt.date:
    """The start of the year, quarter, month, week, day, hour, minute or second that a time is in, of the same type."""
    moment = to_moment(when)
    start = moment.replace(microsecond=0)
    if unit == "week":
        start = start.replace(hour=0, minute=0, second=0) - dt.timedelta(days=moment.weekday())
    else:
        resets = {"second": {}, "minute": {"second": 0}, "hour": {"minute": 0, "second": 0}}
        day = {"hour": 0, "minute": 0, "second": 0}
        months = {"day": day, "month": {"day": 1, **day}, "year": {"month": 1, "day": 1, **day}}
        quarter = {"month": 3 * ((moment.month - 1) // 3) + 1, "day": 1, **day}
        start = start.replace(**{**resets, **months, "quarter": quarter}[unit])  # type: ignore[arg-type]  # ints only
    return start if isinstance(when, dt.datetime) else start.date()


def list_starts(unit: str, first: dt.date, last: dt.date) -> Iterator[dt.date]:
    """The starts of all units that begin, or have begun, between two times of one type.

    >>> [start.isoformat() for start in list_starts("month", dt.date(2023, 12, 24), dt.date(2024, 2, 1))]
    ['2023-12-01', '2024-01-01', '2024-02-01']
    """
    length = max(_LENGTHS[unit][1], _find_least_step(first))
    start = truncate(unit, first)
    while start <= last:
        yield start
        if type(start).max - start < length:
            return  # there are no later times
        start = truncate(unit, start + length)


def count_starts(unit: str, first: dt.date, last: dt.date) -> int:
    """How many starts ``list_starts`` has, or a few more."""
    return (to_moment(last) - to_moment(first)) // max(_LENGTHS[unit][0], _find_least_step(first)) + 2


def _find_least_step(when: dt.date) -> dt.timedelta:
    """Dates lie a day apart."""
    return dt.timedelta(0) if isinstance(when, dt.datetime) else dt.timedelta(1)
