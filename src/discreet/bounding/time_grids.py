"""Times as whole numbers of days or seconds, so that quantiles of them are chosen as those of whole numbers are.

A date x is counted as the days from the start of its bounds, ``date_diff('day', start, x)``, and a timestamp as the
seconds. The start is public: it follows from the codebook and from the question.

Privacy: unit, neighbours, sensitivity and loss are those of a quantile of this whole number (``CellQuantiles``). Why:
the number of a row is a function of this row alone and of the public start, so a unit that comes or goes moves as many
rows of the spread as it has. What is shown is a function of the chosen cell and of the start. A wrong bound changes
an answer and never a guarantee: times beyond it count as the first or the last cell.
"""

from __future__ import annotations

import datetime as dt
from fractions import Fraction

from discreet.late_dataclass import dataclass
from discreet.plan.expressions import Call, Expression, Literal
from discreet.plan.times import from_days, to_moment, truncate
from discreet.plan.types import Type

_UNITS = {Type.DATE: ("day", dt.timedelta(days=1)), Type.TIMESTAMP: ("second", dt.timedelta(seconds=1))}


@dataclass(frozen=True, slots=True)
class TimeGrid:
    """Whole days from a date, or whole seconds from a timestamp, to the last time of the bounds.

    >>> grid = TimeGrid(dt.date(2024, 1, 1), dt.date(2024, 12, 31), Type.DATE)
    >>> grid.at(31).isoformat()
    '2024-02-01'
    """

    start: dt.date
    last: dt.date
    kind: Type

    def count(self, argument: Expression) -> Expression:
        """The number of a time: how many days or seconds have begun since the start."""
        word, _ = _UNITS[self.kind]
        start = Literal(self.start, self.kind)
        return Call("date_diff", (Literal(word, Type.TEXT), start, argument), Type.INTEGER)

    def at(self, count: int) -> dt.date:
        """The time with a number, no later than the last; where a second has many of them, the first."""
        return self.start + count * _UNITS[self.kind][1]

    def end_of(self, count: int) -> dt.date:
        """The last time with a number: of a second its last microsecond."""
        if self.kind is Type.DATE:
            return self.at(count)
        return min(to_moment(self.at(count)) + dt.timedelta(microseconds=999_999), to_moment(self.last))


def make_time_grid(low: Fraction, high: Fraction, kind: Type) -> TimeGrid:
    """The grid of a type of times between bounds, which are days since 1970."""
    first, last = (from_days(end, kind) for end in (low, high))
    return TimeGrid(truncate(_UNITS[kind][0], first), last, kind)
