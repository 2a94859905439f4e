"""Times as exact days, and the starts of units of time."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.plan.functions import TRUNCATIONS
from discreet.plan.times import count_starts, from_days, list_starts, to_days, to_moment, truncate
from discreet.plan.types import Type

LAST = dt.datetime.combine(dt.date.max, dt.time.max)


@settings(deadline=None)
@given(st.dates(), st.datetimes())
def test_days_are_exact(day: dt.date, moment: dt.datetime) -> None:
    """There and back, to the microsecond, from the first year to the last; a date is its midnight."""
    assert from_days(to_days(day), Type.DATE) == day and from_days(to_days(moment), Type.TIMESTAMP) == moment
    assert to_days(day) == to_days(to_moment(day)) and from_days(to_days(moment), Type.DATE) == moment.date()


@settings(deadline=None)
@given(st.datetimes(), st.datetimes())
def test_days_keep_the_order(one: dt.datetime, other: dt.datetime) -> None:
    """Of times, so of bounds."""
    assert (to_days(one) < to_days(other)) == (one < other)


@settings(deadline=None)
@given(st.datetimes(), st.sampled_from(TRUNCATIONS), st.integers(0, 40), st.booleans())
def test_starts_are_all_and_no_others(first: dt.datetime, unit: str, length: int, whole: bool) -> None:
    """As walking from hour to hour (or second to second) finds them, also where the calendar ends."""
    step = dt.timedelta(seconds=1) if unit in ("minute", "second") else dt.timedelta(hours=1)
    steps = [first + i * step for i in range(length * 30) if LAST - first > i * step] or [first]
    walked = [moment.date() if whole else moment for moment in steps]
    found = list(list_starts(unit, walked[0], walked[-1]))
    assert found == sorted({truncate(unit, moment) for moment in walked})
    assert len(found) <= count_starts(unit, walked[0], walked[-1]) <= 2 * len(found) + 3


@pytest.mark.parametrize(("unit", "start"), [("week", "2024-02-26"), ("quarter", "2024-01-01"), ("hour", "2024-02-29")])
def test_truncated_by_hand(unit: str, start: str) -> None:
    assert str(truncate(unit, dt.date(2024, 2, 29))) == start
