"""What is known of functions of dates and timestamps, where these have bounds. The rules are part of ``facts.RULES``.

Bounds of times are days since 1970 (``plan.times``). Starts of months, years and other units between two bounds are
public keys, as bins of numbers are. Rows beyond the bounds have other keys and are left out by the plan, so a wrong
bound changes an answer and never a guarantee.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from discreet.plan.catalog import MAX_KEYS, ColumnFacts
from discreet.plan.evaluate import evaluate
from discreet.plan.expressions import Call, Literal
from discreet.plan.times import count_starts, from_days, list_starts, to_days, truncate
from discreet.plan.types import Type, Value

# The values that parts of a date have. Years have those between the bounds.
_PARTS: Mapping[str, tuple[int, int]] = {
    "quarter": (1, 4),
    "month": (1, 12),
    "week": (1, 53),
    "day": (1, 31),
    "dayofweek": (0, 6),
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
}


def facts_of_date_trunc(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
    """The starts of units between the bounds are public keys, unless they are too many."""
    unit, value = _word_of(call), arguments[1]
    return ColumnFacts(nullable=value.nullable) if unit is None else _facts_of_starts(unit, value, call.type)


def _facts_of_starts(unit: str, value: ColumnFacts, kind: Type) -> ColumnFacts:
    if value.low is None or value.high is None:
        return ColumnFacts(nullable=value.nullable)
    first, last = (from_days(end, kind) for end in (value.low, value.high))
    keys: tuple[Value, ...] | None = None
    if count_starts(unit, first, last) <= MAX_KEYS:
        keys = _with_null(tuple(list_starts(unit, first, last)), value)
    low, high = (to_days(truncate(unit, end)) for end in (first, last))
    return ColumnFacts(nullable=value.nullable, low=low, high=high, keys=keys)


def facts_of_part(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
    """Months, weekdays, hours and the like have few values, which are public keys; so have years between bounds."""
    unit, value = _word_of(call), arguments[1]
    ends = _PARTS.get(unit or "")
    if unit == "year" and value.low is not None and value.high is not None:
        first, last = (from_days(end, Type.DATE) for end in (value.low, value.high))
        ends = first.year, last.year
    if ends is None:
        return ColumnFacts(nullable=value.nullable)
    keys = _with_null(tuple(range(ends[0], ends[1] + 1)), value)
    low, high = map(Fraction, ends)
    return ColumnFacts(nullable=value.nullable, low=low, high=high, keys=keys, resolution=Fraction(1))


def facts_of_date_diff(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
    """Boundaries between two times: most of them from the earliest start to the latest end, and the other way round."""
    nullable = arguments[1].nullable or arguments[2].nullable
    a, b = ((fact.low, fact.high) for fact in arguments[1:])
    if a[0] is None or a[1] is None or b[0] is None or b[1] is None:
        return ColumnFacts(nullable=nullable)
    least, most = _count_between(call, a[1], b[0]), _count_between(call, a[0], b[1])
    return ColumnFacts(nullable=nullable, low=least, high=most, resolution=Fraction(1))


def facts_of_time_cast(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
    """A date as its midnight, and a timestamp as its day: then days between the bounds are public keys."""
    (only,) = arguments
    if only.low is None or only.high is None or not call.arguments[0].type.is_time:
        return ColumnFacts()
    if call.type is Type.TIMESTAMP:
        return ColumnFacts(nullable=only.nullable, low=only.low, high=only.high)
    return _facts_of_starts("day", only, Type.DATE)


def _count_between(call: Call, start: Fraction, end: Fraction) -> Fraction:
    word, *times = call.arguments
    ends = (Literal(from_days(at, part.type), part.type) for at, part in zip((start, end), times))
    return Fraction(str(evaluate(Call(call.function, (word, *ends), call.type), {})))


def _word_of(call: Call) -> str | None:
    """The unit of time that a call names."""
    word = call.arguments[0]
    return str(word.value) if isinstance(word, Literal) else None


def _with_null(keys: tuple[Value, ...], value: ColumnFacts) -> tuple[Value, ...]:
    return (*keys, None) if value.nullable else keys
