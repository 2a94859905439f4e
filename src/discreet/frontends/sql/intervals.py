"""Reads INTERVAL and arithmetic on constant dates, which is done at once: DATE '1998-12-01' - INTERVAL 90 DAY.

Years, quarters and months keep the day, or take the last day of a shorter month. A date that whole days are added to
stays a date; hours, minutes and seconds make it a timestamp. INTERVAL beside a column is refused: whether such a sum
exists at all depends on the value.
"""

from __future__ import annotations

import calendar
import datetime as dt
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from discreet.frontends.sql.reader import OPERANDS, ExpressionReader, Form
from discreet.frontends.terms import constants
from discreet.frontends.terms.positions import Place, refusal
from discreet.frontends.terms.syntax import Constant, Term
from discreet.late_dataclass import dataclass

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Node

MONTHS = {"year": 12, "quarter": 3, "month": 1}
DAYS = {"week": 7, "day": 1}
SECONDS = {"hour": 3600, "minute": 60, "second": 1}
# More than all dates span; a longer interval has no date at its end.
MAX_COUNT = 1_000_000_000_000

_PART = re.compile(r"\s*(-?\d{1,13})\s*([a-z]+)\s*", re.ASCII | re.IGNORECASE)
_COUNT = re.compile(r"\s*-?\d{1,13}\s*", re.ASCII)
_FIX = "Write for example INTERVAL 3 MONTH or INTERVAL '90' DAY."


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A length of time: whole months, whole days, and seconds."""

    months: int = 0
    days: int = 0
    seconds: int = 0

    def __add__(self, other: TimeSpan) -> TimeSpan:
        return TimeSpan(self.months + other.months, self.days + other.days, self.seconds + other.seconds)

    def __neg__(self) -> TimeSpan:
        return TimeSpan(-self.months, -self.days, -self.seconds)

    def add_to(self, when: dt.date) -> dt.date:
        """The moment so long after another one; ValueError or OverflowError if it is no date.

        >>> TimeSpan(months=1).add_to(dt.date(2024, 1, 31)), TimeSpan(days=-1).add_to(dt.date(2024, 3, 1))
        (datetime.date(2024, 2, 29), datetime.date(2024, 2, 29))
        """
        year, month = divmod(12 * when.year + when.month - 1 + self.months, 12)
        if not dt.MINYEAR <= year <= dt.MAXYEAR:
            raise ValueError("a year that does not exist")
        moved = when.replace(year=year, month=month + 1, day=min(when.day, calendar.monthrange(year, month + 1)[1]))
        if self.seconds and not isinstance(moved, dt.datetime):
            moved = dt.datetime.combine(moved, dt.time())
        return moved + dt.timedelta(days=self.days, seconds=self.seconds)


def read_time_span(reader: ExpressionReader, node: Node) -> TimeSpan:
    """The length that an INTERVAL means."""
    place = reader.place_of(node)
    reader.check_parts(node, "this", "unit")
    unit, inner = node.args.get("unit"), node.this
    while type(inner).__name__ == "Paren":
        inner = inner.this
    sign = 1
    if type(inner).__name__ == "Neg":
        inner, sign = inner.this, -1
    if type(inner).__name__ != "Literal":
        raise refusal(place, "INTERVAL needs a constant number.", _FIX)
    text = str(inner.this)
    if unit is not None:
        span = _make_span(text, str(unit.name), place)
    else:
        span = TimeSpan()
        parts = list(_PART.finditer(text))
        if not parts or "".join(part.group() for part in parts) != text:
            raise refusal(place, "This is no interval.", _FIX)
        for part in parts:
            span += _make_span(part.group(1), part.group(2), place)
    return span if sign > 0 else -span


def _make_span(count: str, unit: str, place: Place) -> TimeSpan:
    word = unit.lower().removesuffix("s")
    if not _COUNT.fullmatch(count) or abs(int(count)) > MAX_COUNT:
        raise refusal(place, "INTERVAL takes a whole number.", _FIX)
    number = int(count)
    if word in MONTHS:
        return TimeSpan(months=number * MONTHS[word])
    if word in DAYS:
        return TimeSpan(days=number * DAYS[word])
    if word in SECONDS:
        return TimeSpan(seconds=number * SECONDS[word])
    known = ", ".join((*MONTHS, *DAYS, *SECONDS))
    raise refusal(place, f"INTERVAL does not know {unit.lower()!r}.", f"Known: {known}.")


def add_span(reader: ExpressionReader, node: Node, when: Term, span: TimeSpan) -> Constant:
    """A constant date and an interval, as a constant."""
    place = reader.place_of(node)
    start = when.value if isinstance(when, Constant) else None
    if isinstance(start, str):
        start = constants.read_day_or_moment(start, when.place)
    if not isinstance(start, dt.date):
        rule = "INTERVAL is added to constant dates only."
        raise refusal(place, rule, "Compare differences instead: date_diff('day', a, b) <= 30.")
    try:
        return Constant(span.add_to(start), place)
    except (ValueError, OverflowError):
        raise refusal(place, "This date does not exist.", "Dates go from the year 1 to the year 9999.") from None


def _read_sum(reader: ExpressionReader, node: Node) -> Term:
    """A + b; with an interval, or with days beside a constant date, a date."""
    left, right = node.this, node.expression
    if type(left).__name__ == "Interval" and type(right).__name__ != "Interval":
        left, right = right, left
    if type(right).__name__ == "Interval":
        return add_span(reader, node, reader.read(left), read_time_span(reader, right))
    one, two = reader.read(node.this), reader.read(node.expression)
    if _is_integer(one) and _is_date(two):
        one, two = two, one
    if _is_date(one) and _is_integer(two):
        return _add_days(reader, node, one, two, 1)
    return reader.apply("add", node, one, two)


def _read_difference(reader: ExpressionReader, node: Node) -> Term:
    """A - b; with an interval, or with days beside a constant date, a date."""
    if type(node.expression).__name__ == "Interval":
        return add_span(reader, node, reader.read(node.this), -read_time_span(reader, node.expression))
    one, two = reader.read(node.this), reader.read(node.expression)
    if _is_date(one) and _is_integer(two):
        return _add_days(reader, node, one, two, -1)
    if _is_date(one) and _is_date(two):
        return reader.apply("date_diff", node, Constant("day"), two, one)
    return reader.apply("subtract", node, one, two)


def subtract_span(reader: ExpressionReader, node: Node, when: Node, span: Node) -> Constant:
    """DATE_SUB(d, INTERVAL 30 DAY) of a constant date."""
    return add_span(reader, node, reader.read(when), -read_time_span(reader, span))


def _add_days(reader: ExpressionReader, node: Node, when: Term, days: Term, sign: int) -> Term:
    count = days.value if isinstance(days, Constant) else None
    if not isinstance(count, int) or abs(count) > MAX_COUNT:
        raise refusal(reader.place_of(node), "This date does not exist.", "Dates go from the year 1 to the year 9999.")
    return add_span(reader, node, when, TimeSpan(days=sign * count))


def _is_date(term: Term) -> bool:
    """Whether a term is a constant day; a timestamp has no days that a number could count."""
    value = term.value if isinstance(term, Constant) else None
    return isinstance(value, dt.date) and not isinstance(value, dt.datetime)


def _is_integer(term: Term) -> bool:
    value = term.value if isinstance(term, Constant) else None
    return isinstance(value, int) and not isinstance(value, bool)


def _make_shift_form(sign: int) -> Form:
    """DATE_ADD and DATE_SUB of a constant date and an interval."""

    def read(reader: ExpressionReader, node: Node) -> Term:
        unit, length = node.args.get("unit"), node.expression
        if type(length).__name__ == "Interval":
            span = read_time_span(reader, length)
        elif unit is not None and type(length).__name__ == "Literal":
            span = _make_span(str(length.this), str(unit.name), reader.place_of(node))
        else:
            raise refusal(reader.place_of(node), "This needs a date and a constant interval.", _FIX)
        return add_span(reader, node, reader.read(node.this), span if sign > 0 else -span)

    return Form(read, (*OPERANDS, "unit"))


def _read_day(reader: ExpressionReader, node: Node) -> Term:
    """make_date(2024, 1, 31) of constants."""
    place = reader.place_of(node)
    parts = [reader.read(node.args[part]) for part in ("year", "month", "day")]
    numbers = [part.value for part in parts if isinstance(part, Constant) and _is_integer(part)]
    fix = "Write the day itself: DATE '2024-01-31'."
    if len(numbers) != 3:
        raise refusal(place, "make_date takes constant numbers only.", fix)
    try:
        return Constant(dt.date(*numbers), place)  # type: ignore[arg-type]  # integers, as tested
    except (ValueError, OverflowError):
        raise refusal(place, "This date does not exist.", fix) from None


FORMS: Mapping[str, Form] = {
    "Add": Form(_read_sum, OPERANDS),
    "Sub": Form(_read_difference, OPERANDS),
    **{f"{kind}Add": _make_shift_form(1) for kind in ("Date", "Datetime", "Timestamp")},
    **{f"{kind}Sub": _make_shift_form(-1) for kind in ("Date", "Datetime", "Timestamp")},
    "DateFromParts": Form(_read_day, ("year", "month", "day")),
}
