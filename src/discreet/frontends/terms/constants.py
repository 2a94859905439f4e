"""Reads constants: integers within 64 bits, finite reals, dates that exist, and texts that can be stored."""

from __future__ import annotations

import datetime as dt
import math
import re

from discreet.frontends.terms.positions import Place, refusal
from discreet.plan.types import INTEGER_MAX, INTEGER_MIN, Value, is_storable_text

MAX_TEXT = 10_000

_INTEGER = re.compile(r"\d+", re.ASCII)
_REAL = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?", re.ASCII)


def read_number(text: str, place: Place | None, *, negative: bool = False) -> int | float:
    """A number as SQL writes it.

    >>> read_number("30", None), read_number("1.5e3", None), read_number("30", None, negative=True)
    (30, 1500.0, -30)
    """
    if _INTEGER.fullmatch(text):
        digits = text.lstrip("0") or "0"
        value = int(digits) if len(digits) <= 19 else INTEGER_MAX + 2
        return _check_integer(-value if negative else value, place)
    if not _REAL.fullmatch(text) or len(text) > 400:
        raise refusal(place, "This is not a number that can be read here.", "Write it like 12, -3.5 or 1e6.")
    real = _check_finite(float(text), place)
    if real == 0 and re.search(r"[1-9]", re.split("[eE]", text)[0]):
        raise refusal(place, "This number is too small for a real.", "Reals go down to about 5e-324; write 0.")
    return -real if negative and real else real


def _check_integer(value: int, place: Place | None) -> int:
    if not INTEGER_MIN <= value <= INTEGER_MAX:
        fix = "Integers go up to 9223372036854775807; write larger numbers as reals, like 1e19."
        raise refusal(place, "This integer does not fit into 64 bits.", fix)
    return value


def _check_finite(value: float, place: Place | None) -> float:
    if not math.isfinite(value):
        raise refusal(place, "This number is not finite.", "Reals go up to about 1.8e308.")
    return value + 0.0  # turns -0.0 into 0.0


def read_date(text: str, place: Place | None) -> dt.date:
    """A day that is written as year-month-day."""
    found = _parse_moment(text) if _DATE.fullmatch(text) else None
    if found is None:
        raise refusal(place, "This is not a date.", "Write an existing day as year-month-day: DATE '2024-01-31'.")
    return found.date()


def read_moment(text: str, place: Place | None) -> dt.datetime:
    """A point in time without a zone. A day alone means its first moment."""
    found = _parse_moment(text) if _DATE.fullmatch(text) or _MOMENT.fullmatch(text) else None
    if found is None:
        fix = "Write it without a zone: TIMESTAMP '2024-01-31 08:30:00'."
        raise refusal(place, "This is not a timestamp.", fix)
    return found


def _parse_moment(text: str) -> dt.datetime | None:
    """The moment that a text names; None if it does not exist, such as the 30th of February."""
    try:
        return dt.datetime.fromisoformat(text)
    except ValueError:
        return None


def read_day_or_moment(text: str, place: Place | None) -> dt.date:
    """A text where a date is expected: a point in time if the text has a time of day, else a day."""
    return read_moment(text, place) if _MOMENT.fullmatch(text) else read_date(text, place)


def check_text(value: str, place: Place | None) -> str:
    """The same text. A text that is too long, or that engines cannot store, is refused."""
    if not is_storable_text(value):
        raise refusal(place, "This text has characters that cannot be stored.", "Remove them.")
    if len(value) > MAX_TEXT:
        raise refusal(place, f"This text is longer than {MAX_TEXT:,} characters.", "Shorten it.")
    return value


def read_python_value(value: object) -> Value:
    """A Python value as a constant of a question.

    >>> read_python_value(3), read_python_value("A"), read_python_value(None)
    (3, 'A', None)
    """
    item = getattr(value, "item", None)  # NumPy's numbers
    if callable(item) and getattr(value, "shape", None) == ():
        value = item()
    match value:
        case None | bool():
            return value
        case int():
            return _check_integer(int(value), None)
        case float():
            return _check_finite(float(value), None)
        case str():
            return check_text(str(value), None)
        case dt.datetime() if value.tzinfo is not None:
            raise refusal(None, "A timestamp in a question has no time zone.", "Use value.replace(tzinfo=None).")
        case dt.datetime():
            return dt.datetime.fromisoformat(value.isoformat())  # also for subclasses, such as pandas' Timestamp
        case dt.date():
            return value
    kind = type(value).__name__
    raise refusal(None, f"A {kind} cannot be a constant of a question.", "Use a bool, number, text, date or None.")
