"""Caps and their periods: weeks begin on Monday and belong to one year, whatever the calendar says."""

from __future__ import annotations

from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from discreet.errors import BudgetExceeded, LedgerError, ParameterError
from discreet.exact import ln
from discreet.ledger.policy import Cap, Policy, check_name, period_of
from discreet.privacy import Budget
from tests.ledger.charges import Clock, charge, open_memory


def week_of(day: date) -> str:
    return period_of("week", f"{day.isoformat()}T12:00:00.000000Z")


def test_a_week_is_seven_days_from_a_monday() -> None:
    """Over thirty years: a week changes on Mondays only, and no two weeks share a name."""
    day, names = date(2010, 1, 4), list[str]()
    while day < date(2040, 1, 1):
        (name,) = {week_of(day + timedelta(days=i)) for i in range(7)}
        names.append(name)
        day += timedelta(days=7)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("day", "name"),
    [("2026-12-31", "2026-W53"), ("2027-01-01", "2026-W53"), ("2027-01-04", "2027-W01"), ("2029-12-31", "2030-W01")],
)
def test_the_week_at_new_year_has_one_name(day: str, name: str) -> None:
    """The first days of January may belong to the last week of the old year, and the last of December to the next."""
    assert week_of(date.fromisoformat(day)) == name


def test_a_weekly_cap_is_not_renewed_at_new_year() -> None:
    """31 December 2026 is a Thursday: what was spent then counts on 1 January, and no longer on Monday."""
    clock = Clock(2026, 12, 31)
    book = open_memory(Path(), policy=Policy.of(per_week=Fraction(1, 10)), clock=clock)
    book.reserve(charge("thursday"))
    clock.move(days=1)
    with pytest.raises(BudgetExceeded, match="and week"):
        book.reserve(charge("friday"))
    clock.move(days=3)
    book.reserve(charge("monday"))


def test_a_weekly_cap_does_not_mix_the_weeks_of_a_year() -> None:
    """30 December 2024 lies in the first week of 2025: January of 2024 is another week and does not count."""
    clock = Clock(2024, 1, 2)
    book = open_memory(Path(), policy=Policy.of(per_week=Fraction(1, 10)), clock=clock)
    book.reserve(charge("january"))
    clock.move(days=363)
    assert clock.now.date() == date(2024, 12, 30)
    book.reserve(charge("december"))
    with pytest.raises(BudgetExceeded):
        book.reserve(charge("again"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"over": "planet"},
        {"per": "hour"},
        {"over": "query", "per": "day"},
        {"name": "ana"},
        {"over": "analyst", "name": "two\nlines"},
        {"amount": -1},
    ],
    ids=str,
)
def test_caps_that_mean_nothing_are_refused(wrong: dict[str, object]) -> None:
    """Unknown words, a period of one question, a name of nobody, a negative amount."""
    with pytest.raises(ParameterError):
        Cap(**{"amount": 1, **wrong})  # type: ignore[arg-type]  # on purpose


def test_policies_that_contradict_themselves_are_refused() -> None:
    """The same cap twice; a cap that is counted otherwise than the budget; a name that is none."""
    with pytest.raises(ParameterError, match="twice"):
        Policy(caps=(Cap(amount=1, per="day"), Cap(amount=2, per="day")))
    with pytest.raises(ParameterError, match="same kind"):
        open_memory(Path(), Budget(epsilon=1), Policy.of(per_query=ln(2)))
    for wrong in ("", "x" * 201, "tab\t", 7):
        with pytest.raises(ParameterError, match="analyst"):
            check_name(wrong, "analyst")
    assert check_name("", "project") == ""


def test_who_is_not_listed_may_not_ask() -> None:
    """Lists of analysts and of projects, each with its own refusal."""
    book = open_memory(Path(), policy=Policy.of(analysts=["ana"], projects=["p"]))
    for name, other in (("analyst", {"analyst": "ben", "project": "p"}), ("project", {"project": "q"})):
        with pytest.raises(LedgerError, match=f"This {name} is not on the dataset's list.*Nothing was charged"):
            book.reserve(charge("r", **other))
    book.reserve(charge("r", project="p"))


def test_a_policy_comes_back_from_its_record() -> None:
    """What is written into the log is read as it was."""
    policy = Policy.of(per_query=1, per_analyst={"ana": 2}, per_project=3, per_week=4, analysts=["ben", "ana"])
    assert Policy.load(policy.dump()) == policy and policy.analysts == ("ana", "ben")
