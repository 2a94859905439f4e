"""Charts from answers of any kind: missing values, negative ones, and texts that would be HTML."""

from __future__ import annotations

import re
from typing import Any

import pytest

from discreet.service.pages.charts import draw_bars, draw_burndown, find_measured


def make_row(value: Any, low: Any, high: Any, key: Any = "north") -> dict[str, Any]:
    return {"ward": key, "n": value, "n_low": low, "n_high": high}


def test_bars_lie_within_the_picture_and_within_their_error_bars() -> None:
    rows = [make_row(5, 2, 8), make_row(-3, -6, 0), make_row(0, 0, 0)]
    drawn = str(draw_bars(rows, "n"))
    numbers = [float(each) for each in re.findall(r'(?:x|x1|x2)="([\d.-]+)"', drawn)]
    assert all(0 <= each <= 380 for each in numbers)
    ends = [tuple(map(float, each)) for each in re.findall(r"M([\d.]+) [\d]+V[\d]+M[\d.]+ [\d]+H([\d.]+)", drawn)]
    assert len(ends) == 3 and all(first <= last for first, last in ends)


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
    points = [{"time": "2024-01-01T00", "left": left, "whole": 3.0} for left in (3.0, 2.0, 0.0)]
    heights = [float(each) for each in re.findall(r"[V ]([\d.]+)H", str(draw_burndown(points)))]
    assert heights == sorted(heights) and (heights[0], heights[-1]) == (10.0, 150.0)
