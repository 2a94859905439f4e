"""Calendars: the periods of a series, one after the other, from a first day on. Public."""

from __future__ import annotations

import datetime as dt
from enum import StrEnum
from typing import assert_never

from discreet import parameters
from discreet.errors import ParameterError
from discreet.late_dataclass import dataclass
from discreet.series.mechanism import MOST_PERIODS


class Step(StrEnum):
    """How long a period is."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


@dataclass(frozen=True, slots=True)
class Calendar:
    """So many periods from a first day on.

    >>> year = Calendar(dt.date(2024, 1, 31), Step.DAY, 366)
    >>> year.start(1), year.find(dt.date(2024, 2, 2))
    (datetime.date(2024, 2, 1), 2)
    """

    first: dt.date
    every: Step
    periods: int

    def __post_init__(self) -> None:
        parameters.read_whole(self.periods, "periods", most=MOST_PERIODS)
        if not isinstance(self.first, dt.date) or isinstance(self.first, dt.datetime):
            raise ParameterError("first", "must be a day", "Say first=datetime.date(2024, 1, 1).")
        if self.every is Step.MONTH and self.first.day != 1:
            raise ParameterError("first", "must be the first of a month, where periods are months", "Begin there.")
        try:
            self.start(self.periods)
        except (OverflowError, ValueError):
            raise ParameterError("periods", "end after the year 9999", "Say fewer.") from None

    def start(self, period: int) -> dt.date:
        """The first day of a period; of the first one it is number 0."""
        match self.every:
            case Step.DAY:
                return self.first + dt.timedelta(days=period)
            case Step.WEEK:
                return self.first + dt.timedelta(weeks=period)
            case Step.MONTH:
                months = self.first.year * 12 + self.first.month - 1 + period
                return dt.date(months // 12, months % 12 + 1, 1)
            case _:
                assert_never(self.every)

    def find(self, day: dt.date) -> int:
        """The period that a day is in; refused outside of the series."""
        for period in range(self.periods):
            if self.start(period) <= day < self.start(period + 1):
                return period
        raise ParameterError(
            "period", "is not in the series", f"It goes from {self.first} to {self.start(self.periods)}."
        )
