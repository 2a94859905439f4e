"""Tests of calendars: days, weeks and months follow each other without a gap."""

from __future__ import annotations

import datetime as dt

import pytest

from discreet.errors import ParameterError
from discreet.series.calendar import Calendar, Step


@pytest.mark.parametrize("every", Step)
def test_every_day_is_in_one_period(every: Step) -> None:
    calendar = Calendar(dt.date(2023, 12, 1), every, 30)
    day, last = calendar.first, calendar.start(30)
    while day < last:
        period = calendar.find(day)
        assert calendar.start(period) <= day < calendar.start(period + 1)
        day += dt.timedelta(days=1)
    for outside in (last, calendar.first - dt.timedelta(days=1)):
        with pytest.raises(ParameterError, match="not in the series"):
            calendar.find(outside)


def test_months_are_those_of_the_year() -> None:
    calendar = Calendar(dt.date(2023, 11, 1), Step.MONTH, 4)
    assert [calendar.start(t).isoformat() for t in range(4)] == ["2023-11-01", "2023-12-01", "2024-01-01", "2024-02-01"]


@pytest.mark.parametrize(
    ("first", "every", "periods"),
    [
        (dt.date(2024, 1, 2), Step.MONTH, 3),
        (dt.datetime(2024, 1, 1), Step.DAY, 3),  # noqa: DTZ001  # a time is no day
        (dt.date(9999, 12, 30), Step.DAY, 30),
        (dt.date(2024, 1, 1), Step.DAY, 0),
        (dt.date(2024, 1, 1), Step.DAY, 10**6),
    ],
)
def test_what_is_no_calendar_is_refused(first: dt.date, every: Step, periods: int) -> None:
    with pytest.raises(ParameterError):
        Calendar(first, every, periods)
