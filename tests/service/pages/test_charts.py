"""Charts from answers of any kind: missing values, negative ones, and texts that would be HTML."""

from __future__ import annotations

import re
from typing import Any

import pytest

from discreet.service.pages.charts import draw_bars, draw_burndown, find_measured, find_ticks


def make_row(value: Any, low: Any, high: Any, key: Any = "north") -> dict[str, Any]:
    return {"ward": key, "n": value, "n_low": low, "n_high": high}


def test_bars_lie_within_the_picture_and_within_their_error_bars() -> None:
    rows = [make_row(5, 2, 8), make_row(-3, -6, 0), make_row(0, 0, 0)]
    drawn = str(draw_bars(rows, "n"))
    numbers = [float(each) for each in re.findall(r'(?:x|x1|x2)="([\d.-]+)%"', drawn)]
    assert len(numbers) > 20 and all(0 <= each <= 100 for each in numbers)
    found = re.findall(r'<rect x="([\d.]+)%" y="\d+" width="([\d.]+)%"', drawn)
    bars = [(float(x), float(width)) for x, width in found]
    ends = [tuple(map(float, each)) for each in re.findall(r'"error"><line x1="([\d.]+)%" x2="([\d.]+)%"', drawn)]
    tips = [bars[0][0] + bars[0][1], bars[1][0], bars[2][0]]
    assert len(ends) == 3 and all(first <= tip <= last for (first, last), tip in zip(ends, tips))


@pytest.mark.parametrize(("low", "high"), [(0, 1e308), (0, 5e-324), (-1e-9, 1e9), (-3, 0), (0, 0), (-1e308, 1e308)])
def test_every_range_has_few_ticks_within_it(low: float, high: float) -> None:
    ticks = find_ticks(low, high)
    assert 1 <= len(ticks) <= 7 and all(low <= tick <= high * (1 + 1e-9) for tick in ticks if tick)


@pytest.mark.parametrize("value", [None, "text", float("nan"), float("inf"), True])
def test_values_that_are_no_numbers_have_no_bar(value: Any) -> None:
    assert draw_bars([make_row(value, None, None)], "n") is None
    assert str(draw_bars([make_row(value, None, None), make_row(1, None, None)], "n")).count("<rect") == 1


def test_keys_are_text_and_never_html() -> None:
    drawn = str(draw_bars([make_row(1, 0, 2, "<script>"), make_row(1, 0, 2, None)], "n"))
    assert "<script>" not in drawn and "&lt;script&gt;" in drawn and "NULL" in drawn


def test_long_answers_are_drawn_in_part_and_say_so() -> None:
    drawn = str(draw_bars([make_row(1, 0, 2)] * 100, "n"))
    assert drawn.count("<rect") == 60 and "the first 60 rows" in drawn
    assert draw_bars([], "n") is None and find_measured({"ward": 1, "n_low": 2}) == []


def test_the_budget_over_time_goes_down_in_steps() -> None:
    days = zip(("01", "02", "05"), (3.0, 2.0, 0.0))
    points = [
        {"time": f"2024-01-{day}T00:00:00+00:00", "left": left, "whole": 3.0, "share": left / 3} for day, left in days
    ]
    (path,) = re.findall(r'd="(M[^"]+)" class="steps"', str(draw_burndown(points)))
    assert path == "M0 0.00H25.00V33.33H100.00V100.00H100"
    assert 'd="M0 0.00H100"' in str(draw_burndown(points[:1]))
