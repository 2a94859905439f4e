"""Tests of running series: one charge for all periods, one draw for each, and counts that are never counted again."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.accounting.events import Pure, RoundedGaussian, squared_mu
from discreet.errors import BudgetExceeded, DiscreetError, ParameterError, UsageError
from discreet.series import running_series
from discreet.series.mechanism import SeriesMechanism
from tests.series.visits import FIRST, QUESTION, draw_rows, open_any, open_visits


def spy_on_counts(patched: pytest.MonkeyPatch) -> list[list[int]]:
    """What every draw was handed."""
    seen: list[list[int]] = []
    measure = SeriesMechanism.measure

    def record(self: SeriesMechanism, counts: Any, **more: Any) -> int:
        seen.append(list(counts))
        return measure(self, counts, **more)

    patched.setattr(SeriesMechanism, "measure", record)
    return seen


def count_by_hand(rows: list[tuple[int | None, int]], k: int, apart: int, most: int, periods: int) -> list[int]:
    """From the definition: each patient's days in order, the first k that are far enough apart."""
    days: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for patient, day in rows:
        if patient is not None:
            days[patient][day] += 1
    found = [0] * periods
    for own in days.values():
        taken: list[int] = []
        for day in sorted(own):
            if len(taken) < k and (not taken or day - taken[-1] >= apart):
                taken.append(day)
                found[day] += min(own[day], most)
    return found


def test_all_periods_under_one_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = spy_on_counts(monkeypatch)
    rows = [*draw_rows(0), (None, 3), (None, 3)]
    curator = open_visits(rows)
    series = open_any(curator, days_per_unit=3, apart=2, rows_per_period=2)
    points = [series.release() for _ in range(6)]
    assert seen[-1] == count_by_hand(rows, 3, 2, 2, 6)
    assert seen == [seen[-1][: t + 1] for t in range(6)]
    assert [point.start for point in points] == [FIRST + dt.timedelta(days=t) for t in range(6)]
    charged = [event for entry in curator.history() for event in entry.charge.events]
    (priced,) = [event for event in charged if isinstance(event, RoundedGaussian)]
    assert all(event == Pure(epsilon=0, unit="patient") for event in charged if event is not priced)
    assert 0.99 < curator.history()[0].charge.loss.epsilon(Fraction(1, 10**6)) / 4 <= 1
    assert squared_mu(priced) > 0
    with pytest.raises(UsageError, match="in order"):
        series.release()


def test_late_changed_and_lost_rows_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was counted stays; a unit that was counted is not counted again, whatever its rows say later."""
    seen = spy_on_counts(monkeypatch)
    old: list[tuple[int | None, int]] = [(1, 0), (2, 0), (3, 1)]
    curator = open_visits(old)
    series = open_any(curator, days_per_unit=1, state=tmp_path / "state")
    series.release(), series.release()
    new = open_visits([(3, 0), (1, 1), (1, 2), (2, 2), (3, 2), (4, 2), (4, 0)])
    curator._engine = new._engine
    again = open_any(curator, days_per_unit=1, state=tmp_path / "state")
    again.release()
    assert seen[-1] == [2, 1, 1], "only patient 4, who was not counted before, is new"


def test_a_period_is_drawn_once_and_given_again() -> None:
    curator = open_visits(draw_rows(1))
    series = open_any(curator)
    one = series.release()
    lines = len(curator.history())
    assert series.release(0).value == one.value == open_any(curator).release(FIRST).value
    assert len(curator.history()) == lines
    two = series.release()
    assert two.period == 1
    assert series.points()[0].value == one.value, "later periods change nothing"
    assert series.to_arrow().column_names == ["period", "value", "low", "high"]


def test_a_crash_after_counting_draws_from_what_was_frozen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted between the count and the draw: the next run does not count again, though rows came."""
    curator = open_visits([(1, 0), (2, 1)])
    series = open_any(curator, state=tmp_path / "s")
    series.release()
    with monkeypatch.context() as patched:

        def interrupt(*_: Any) -> None:
            raise KeyboardInterrupt

        patched.setattr(type(curator.ledger), "claim", interrupt)
        with pytest.raises(KeyboardInterrupt):
            series.release()
    assert sorted(path.name for path in (tmp_path / "s").iterdir()) == ["0000.json", "0001.json"]
    seen = spy_on_counts(monkeypatch)
    curator._engine = open_visits([(1, 0), (2, 1), (3, 1), (4, 1)])._engine
    assert series.release().period == 1
    assert seen == [[1, 1]]


def test_a_draw_that_was_lost_ends_the_series(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows whether something was seen of it, so nothing is drawn again."""
    curator = open_visits([(1, 0), (2, 1)])
    series = open_any(curator)
    series.release()
    with monkeypatch.context() as patched:

        def interrupt(*_: Any, **__: Any) -> int:
            raise KeyboardInterrupt

        patched.setattr(SeriesMechanism, "measure", interrupt)
        with pytest.raises(KeyboardInterrupt):
            series.release()
    with pytest.raises(DiscreetError):
        series.release()
    assert len(series.points()) == 1


def test_missing_state_is_refused(tmp_path: Path) -> None:
    curator = open_visits(draw_rows(2))
    series = open_any(curator, state=tmp_path / "s")
    series.release()
    assert (tmp_path / "s").stat().st_mode & 0o077 == 0
    assert (tmp_path / "s" / "0000.json").stat().st_mode & 0o077 == 0
    (tmp_path / "s" / "0000.json").rename(tmp_path / "kept")
    with pytest.raises(UsageError, match=r"cannot go on.*Nothing was charged"):
        series.release()
    (tmp_path / "kept").rename(tmp_path / "s" / "0000.json")
    assert series.release().period == 1


@pytest.mark.parametrize(
    "more", [{"days_per_unit": 3}, {"apart": 2}, {"periods": 7}, {"wanted": "totals"}, {"first": dt.date(2024, 1, 2)}]
)
def test_a_changed_plan_is_refused(more: dict[str, Any]) -> None:
    curator = open_visits(draw_rows(3))
    open_any(curator).release()
    lines = len(curator.history())
    with pytest.raises(UsageError, match="another plan"):
        open_any(curator, **more).release()
    assert len(curator.history()) == lines


@pytest.mark.parametrize(
    ("question", "more", "what"),
    [
        (QUESTION, {"days_per_unit": None}, "days_per_unit"),
        (QUESTION, {"by": "patient"}, "column of days"),
        (QUESTION, {"by": "dey"}, "column of days"),
        (QUESTION, {"every": "hour"}, "every"),
        (QUESTION, {"every": "month", "first": dt.date(2024, 1, 5)}, "first of a month"),
        (QUESTION, {"wanted": "sums"}, "wanted"),
        (QUESTION, {"periods": 10**6}, "periods"),
        (QUESTION, {"name": ""}, "name"),
        (QUESTION, {"name": "a: 1"}, "name"),
        (QUESTION, {"apart": 0}, "apart"),
        ("SELECT day, COUNT(*) AS n FROM visits GROUP BY day", {}, "without groups"),
        ("SELECT COUNT(DISTINCT patient) AS n FROM visits", {}, "one count of rows"),
    ],
)
def test_bad_series_are_refused_before_the_charge(question: str, more: dict[str, Any], what: str) -> None:
    curator = open_visits(draw_rows(4))
    stated = {"name": "daily", "by": "day", "first": FIRST, "periods": 6, "days_per_unit": 2, "epsilon": 1}
    with pytest.raises(DiscreetError, match=what):
        curator.series(question, **(stated | more)).release()
    assert not curator.history()


def test_previews_are_free_and_true() -> None:
    curator = open_visits(draw_rows(5))
    series = open_any(curator, wanted="totals")
    shown = series.preview()
    assert not curator.history() and shown.fits and "once for all" in str(shown)
    point = [series.release() for _ in range(6)][-1]
    assert point.high - point.value == pytest.approx(shown.last_error)
    assert series.preview().paid
    with pytest.raises(BudgetExceeded):
        open_any(curator, name="more", epsilon=10).release()


def test_rows_as_units_are_all_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = spy_on_counts(monkeypatch)
    curator = open_visits([(1, 0), (1, 0), (1, 2)], unit=None, max_rows=None)
    series = open_any(curator, days_per_unit=None, periods=3)
    for _ in range(3):
        series.release()
    assert seen[-1] == [2, 0, 1]
    with pytest.raises(UsageError, match="leave the limits out"):
        open_any(curator, days_per_unit=2)


def test_weeks_months_and_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = spy_on_counts(monkeypatch)
    rows = [(p, d) for p, d in ((1, 0), (2, 6), (3, 7), (4, 20), (5, 31), (6, 59), (7, 60))]
    curator = open_visits(list(rows))
    for every, periods in (("week", 3), ("month", 3)):
        series = curator.series(
            "SELECT COUNT(*) AS n FROM visits WHERE patient <> 2",
            name=every, by="day", first=FIRST, every=every, periods=periods, days_per_unit=1, epsilon=1,
        )  # fmt: skip
        for _ in range(periods):
            series.release()
    assert [1, 1, 1] in seen and [3, 2, 1] in seen


def test_pure_budgets_cannot_pay() -> None:
    with pytest.raises(UsageError, match="pure ε"):
        open_any(open_visits(draw_rows(6), budget=discreet.Budget(epsilon=3)), epsilon=1).release()
    assert running_series.PREFIX == "series: "
    with pytest.raises(ParameterError):
        open_any(open_visits(draw_rows(6)), window=99).preview()
