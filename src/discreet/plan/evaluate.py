"""What every function means, in slow and obvious Python. All engines must agree with it.

``evaluate`` computes an expression for one row. It never raises an error for a value: where there is no result, the
result is None. The memory engine uses it for private rows, and the curator for released numbers (HAVING, ORDER BY,
arithmetic). Tests compare every other engine with it, for each function and many values.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, assert_never

from discreet.errors import InternalError
from discreet.plan import elementary
from discreet.plan.expressions import Call, Column, Expression, Literal, ReleasedValue
from discreet.plan.magnitude import magnitude
from discreet.plan.times import to_moment, truncate
from discreet.plan.types import INTEGER_MAX, INTEGER_MIN, LARGEST_REAL, Type, Value

RowValues: TypeAlias = Mapping[Column | ReleasedValue, Value]
Meaning: TypeAlias = Callable[..., Value]


def evaluate(expression: Expression, row: RowValues) -> Value:
    """The value of an expression for one row."""
    match expression:
        case Literal():
            return expression.value
        case Column() | ReleasedValue():
            return row[expression]
        case Call("case"):
            return _evaluate_case(expression, row)
        case Call():
            values = [evaluate(argument, row) for argument in expression.arguments]
            return settle(_apply(expression, values), expression.type)
        case _:
            assert_never(expression)


def _align_types(call: Call, values: list[Value]) -> list[Any]:
    """Arguments of two types in one: integers among reals become doubles, dates among timestamps become timestamps.

    Engines do the same. In particular two numbers beyond 2^53 may be equal as doubles.
    """
    kinds = {argument.type for argument in call.arguments}
    if kinds >= {Type.INTEGER, Type.REAL} and call.function != "round":
        return [float(value) if isinstance(value, int) else value for value in values]
    if kinds >= {Type.DATE, Type.TIMESTAMP}:
        return [settle(value, Type.TIMESTAMP) if isinstance(value, dt.date) else value for value in values]
    return values


def settle(value: Any, kind: Type) -> Value:
    """A result as a value of its type.

    NaN and an integer beyond 64 bits become NULL. A real beyond all doubles becomes the largest one of its sign. A time
    with a zone becomes the time without one that clocks in UTC show; its day is the day in UTC.

    >>> settle(dt.datetime.fromisoformat("2024-01-02T08:30+09:00"), Type.TIMESTAMP).isoformat()
    '2024-01-01T23:30:00'
    """
    if value is None:
        return None
    if kind is Type.REAL:
        try:
            real = float(value)
        except OverflowError:
            real = LARGEST_REAL if value > 0 else -LARGEST_REAL
        return None if math.isnan(real) else min(max(real, -LARGEST_REAL), LARGEST_REAL) + 0.0  # never -0.0
    if kind is Type.INTEGER:
        return int(value) if INTEGER_MIN <= value <= INTEGER_MAX else None
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        value = value.astimezone(dt.UTC).replace(tzinfo=None)
    if kind is Type.TIMESTAMP and not isinstance(value, dt.datetime):
        return dt.datetime(value.year, value.month, value.day)  # noqa: DTZ001  # timestamps have no zone here
    return value  # type: ignore[no-any-return]  # of its kind already


def _apply(call: Call, given: list[Value]) -> Value:
    values = _align_types(call, given)
    if call.function == "null_if":
        return None if None not in values and values[0] == values[1] else given[0]
    lenient = NULL_AWARE.get(call.function)
    if lenient is not None:
        return lenient(*values)
    if any(value is None for value in values):
        return None
    meaning = STRICT.get(call.function)
    if meaning is None:
        raise InternalError(f"The function {call.function!r} has no meaning in evaluate.py.")
    try:
        return meaning(*values)
    except (ArithmeticError, ValueError):
        return None  # outside the function's domain: overflow, division by zero, no such date


def _evaluate_case(expression: Call, row: RowValues) -> Value:
    *branches, otherwise = expression.arguments
    for condition, result in zip(branches[::2], branches[1::2]):
        if evaluate(condition, row) is True:
            return settle(evaluate(result, row), expression.type)
    return settle(evaluate(otherwise, row), expression.type)


# Functions whose result may be a value where an argument is NULL.


def _and(*values: Value) -> Value:
    return False if False in values else None if None in values else True


def _or(*values: Value) -> Value:
    return True if True in values else None if None in values else False


def _in(value: Value, *members: Value) -> Value:
    if value is None:
        return None
    if any(member is not None and member == value for member in members):
        return True
    return None if None in members else False


def _coalesce(*values: Value) -> Value:
    return next((value for value in values if value is not None), None)


def _make_extreme(choose: Callable[[list[Any]], Any]) -> Meaning:
    def extreme(*values: Value) -> Value:
        known = [value for value in values if value is not None]
        return choose(known) if known else None

    return extreme


NULL_AWARE: Mapping[str, Meaning] = {
    "and": _and,
    "or": _or,
    "in": _in,
    "is_null": lambda a: a is None,
    "coalesce": _coalesce,
    "least": _make_extreme(min),
    "greatest": _make_extreme(max),
}


# Functions that yield NULL where an argument is NULL.


def _modulo(a: int, b: int) -> int:
    """The remainder, with the sign of the dividend. A divisor of zero raises ArithmeticError and so yields NULL."""
    return int(math.copysign(1, a)) * (abs(a) % abs(b))


def _quotient(a: int, b: int) -> int:
    """The whole part of a quotient. A divisor of zero raises ArithmeticError and so yields NULL."""
    size = abs(a) // abs(b)
    return size if (a < 0) == (b < 0) else -size


def _make_elementary(name: str) -> Meaning:
    return lambda *arguments: elementary.compute(name, *map(float, arguments))


# From here on every double is a whole number.
WHOLE_FROM = 2.0**53


def _round(a: float, digits: int) -> float | None:
    """Round halves away from zero, after scaling in doubles, as databases do."""
    if abs(digits) > 15:
        return None
    scale = 10.0 ** abs(digits)
    if abs(float(a)) >= WHOLE_FROM and digits >= 0:
        return float(a)
    scaled = float(a) * scale if digits >= 0 else float(a) / scale
    whole = math.floor(abs(scaled))
    whole += abs(scaled) - whole >= 0.5
    result = math.copysign(whole, scaled)
    return result / scale if digits >= 0 else result * scale


def _bin(a: float, width: float) -> float | None:
    """The lower edge of a bin: exact for integers, in doubles where one of them is a real."""
    if width <= 0:
        return None
    if isinstance(a, int) and isinstance(width, int):
        return a // width * width
    bins = float(a) / float(width)
    return (math.floor(bins) if math.isfinite(bins) else bins) * float(width)


def _exp(a: float) -> float:
    try:
        return math.exp(float(a))
    except OverflowError:
        return LARGEST_REAL


def _power(a: float, b: float) -> float:
    """A power. Beyond doubles it is the largest real; negative if an odd whole power of a negative number."""
    try:
        return math.pow(float(a), float(b))
    except OverflowError:
        return -LARGEST_REAL if a < 0 and float(b) % 2 == 1 else LARGEST_REAL


def _substring(text: str, start: int, count: int) -> str | None:
    """Part of a text. The first position is 1; a position before it yields NULL and does not count from the end."""
    if start < 1 or count < 0:
        return None
    return text[start - 1 : start - 1 + count]


def _like(text: str, pattern: str) -> bool:
    """Whether a pattern matches the whole text. % matches any text and _ one character; there is no escape character.

    The loop remembers only the last %, so no pattern takes long.
    """
    at = here = 0
    resume, covered = -1, 0
    while at < len(text):
        if here < len(pattern) and pattern[here] == "%":
            resume, covered = here, at
            here += 1
        elif here < len(pattern) and pattern[here] in ("_", text[at]):
            at, here = at + 1, here + 1
        elif resume >= 0:
            covered += 1
            at, here = covered, resume + 1
        else:
            return False
    return not pattern[here:].strip("%")


# Letters whose other case is a single letter only in Unicode's simple case mapping, which databases use.
_SIMPLE = {"ß": "ẞ", "İ": "i"}


def _map_letters(change: Callable[[str], str]) -> Callable[[str], str]:
    """A change of case, letter by letter. A letter that would become several stays, so that lengths never change."""

    def one(letter: str) -> str:
        candidates = (change(letter), _SIMPLE.get(letter, "") if change(letter) != letter else "", letter.title())
        return next((new for new in candidates if len(new) == 1), letter)

    return lambda text: "".join(map(one, text))


_lower, _upper = _map_letters(str.lower), _map_letters(str.upper)


def _ilike(text: str, pattern: str) -> bool:
    return _like(_lower(text), _lower(pattern))


def _part(part: str, when: dt.date) -> int:
    clock = to_moment(when)
    return {
        "year": clock.year,
        "quarter": (clock.month + 2) // 3,
        "month": clock.month,
        "week": clock.isocalendar().week,
        "day": clock.day,
        "dayofweek": clock.isoweekday() % 7,  # Sunday is 0
        "hour": clock.hour,
        "minute": clock.minute,
        "second": clock.second,
    }[part]


def _date_diff(part: str, a: dt.date, b: dt.date) -> int:
    """How many boundaries of a unit of time lie between two moments."""
    if part in {"year", "month"}:
        months = 12 * (b.year - a.year) + b.month - a.month
        return b.year - a.year if part == "year" else months
    start, end = (truncate(part, to_moment(when)) for when in (a, b))
    seconds = {"day": 86_400, "hour": 3_600, "minute": 60, "second": 1}[part]
    apart = end - start
    return (apart.days * 86_400 + apart.seconds) // seconds


_WHOLE = re.compile(r"[+-]?\d{1,19}")
_REAL = re.compile(r"[+-]?((\d{1,400}(\.\d{0,400})?|\.\d{1,400})([eE][+-]?\d{1,4})?|(?i:inf(inity)?))")


def _to_integer(a: Any) -> int | None:
    if isinstance(a, str):
        text = a.strip(" ")
        return int(text) if _WHOLE.fullmatch(text) and text.isascii() else None
    return int(round(a))  # noqa: RUF046  # round of an Any is an Any to the type checker


def _to_real(a: Any) -> float | None:
    if isinstance(a, str):
        text = a.strip(" ")
        return float(text) if _REAL.fullmatch(text) and text.isascii() else None
    return float(a)


_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})")


def _to_date(a: Any) -> dt.date | None:
    if isinstance(a, str):
        match = _DATE.fullmatch(a.strip(" "))
        return dt.date(*map(int, match.groups())) if match and a.isascii() else None
    return a.date() if isinstance(a, dt.datetime) else a


def _to_text(a: Any) -> str:
    return str(a).lower() if isinstance(a, bool) else a.isoformat() if isinstance(a, dt.date) else str(a)


STRICT: Mapping[str, Meaning] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: float(a) / float(b),
    "quotient": _quotient,
    "modulo": _modulo,
    "negate": lambda a: -a,
    "abs": abs,
    "sign": lambda a: (a > 0) - (a < 0),
    "floor": lambda a: math.floor(float(a)),
    "ceil": lambda a: math.ceil(float(a)),
    "trunc": lambda a: math.trunc(float(a)),
    "round": _round,
    "sqrt": lambda a: math.sqrt(float(a)),
    **{name: _make_elementary(name) for name in elementary.ELEMENTARY},
    "exp": _exp,
    "power": _power,
    "clamp": lambda a, low, high: min(max(a, low), high),
    "bin": _bin,
    "magnitude": magnitude,
    "equal": lambda a, b: a == b,
    "unequal": lambda a, b: a != b,
    "less": lambda a, b: a < b,
    "at_most": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "at_least": lambda a, b: a >= b,
    "not": lambda a: not a,
    "lower": _lower,
    "upper": _upper,
    "trim": lambda a: a.strip(" "),
    "length": len,
    "concat": lambda *texts: "".join(texts),
    "substring": _substring,
    "starts_with": lambda a, b: a.startswith(b),
    "ends_with": lambda a, b: a.endswith(b),
    "contains": lambda a, b: b in a,
    "position": lambda a, b: a.find(b) + 1,
    "like": _like,
    "ilike": _ilike,
    "part": _part,
    "date_trunc": truncate,
    "date_diff": _date_diff,
    "to_boolean": bool,
    "to_integer": _to_integer,
    "to_real": _to_real,
    "to_text": _to_text,
    "to_date": _to_date,
    "to_timestamp": lambda a: a,
}
