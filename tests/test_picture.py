"""Pictures: values as people read them, nothing that runs, nothing that leaves its frame."""

from __future__ import annotations

import datetime as dt
import io
from xml.etree import ElementTree

import pytest
from rich.console import Console

from discreet.answer_rows import Cell, Rows, make_rows
from discreet.cli.answer_printing import print_answer
from discreet.picture import (
    answer_to_html,
    draw_chart,
    format_cell,
    format_interval,
    format_table,
    show,
    show_cell,
    show_key,
)
from discreet.plan.types import Type, Value
from tests.worlds.visits import BY_WARD, curator

SVG = "{http://www.w3.org/2000/svg}"


def rows_of(*values: tuple[Value, Value, Value, Value]) -> Rows:
    """Rows of a text key and a number with its interval."""
    made = tuple((Cell(key), Cell(value, low, high)) for key, value, low, high in values)
    return make_rows(("ward", "n"), (Type.TEXT, Type.REAL), (False, True), made)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "NULL"), (True, "true"), (12345, "12,345"), (12345.678, "12,345.68"), (0.1234567, "0.123457"), ("x", "x")],
)
def test_values_for_people(value: Value, text: str) -> None:
    """NULL by name, separators for thousands, six figures."""
    assert show(value) == text


def test_cells_have_their_interval() -> None:
    """An end that is not known is a dash, and so is an interval; a key has none, and 2024 may be a year."""
    assert show_cell(Cell(5, 1, None), measured=True) == "5 [1, —]"
    assert show_cell(Cell(41.25), measured=True) == "41.25 —" and format_interval(Cell(41.25)) == "—"
    assert show_cell(Cell(5, 1, 9), measured=False) == "5"
    assert [show_key(value) for value in (2024, 123456, None, True, "x")] == ["2024", "123,456", "NULL", "true", "x"]


def test_every_form_has_the_same_digits() -> None:
    """As many as the noise leaves meaningful, in the text, on the page and in the terminal."""
    rows = rows_of(("A", 41.23456, 40.98765, 41.5), ("B", 1234.5678, 1000.123, 1400.0))
    text, page = "\n".join(format_table(rows, 10, "95%")), answer_to_html(rows, 10, "95%", [])
    assert "41.23 [40.99, 41.50]" in text and "1,235 [1,000, 1,400]" in text
    assert all(f">{shown}<" in page for shown in ("41.23", "40.99 … 41.50", "1,235", "1,000 … 1,400"))
    answer = curator().ask(BY_WARD, epsilon=1)
    with io.StringIO() as stream:
        print_answer(Console(file=stream, width=200), answer)
        terminal = stream.getvalue()
    for row in answer.rows.rows:
        value, low, high = format_cell(row[2])
        assert f"{value} [{low}, {high}]" in repr(answer) and f"{low} … {high}" in terminal
        assert f">{value}<" in answer._repr_html_() and f">{low} … {high}<" in answer._repr_html_()


def test_midnights_are_days() -> None:
    """Where all of a column are; one noon among them keeps the hours of all."""
    midnight, noon = (dt.datetime(2024, 1, 1, hour) for hour in (0, 12))  # noqa: DTZ001  # data without a zone
    for moments, shown in (([midnight, None], ["2024-01-01", "NULL"]), ([midnight, noon], [str(midnight), str(noon)])):
        rows = make_rows(
            ("at", "n"), (Type.TIMESTAMP, Type.INTEGER), (False, True), tuple((Cell(m), Cell(1, 0, 2)) for m in moments)
        )
        assert [line.split("  ")[0] for line in format_table(rows, 10, "95%")[2:]] == shown
        assert all(f">{text}<" in answer_to_html(rows, 10, "95%", []) for text in shown)


def test_tables_line_up() -> None:
    """Numbers to the right, text to the left; without rows the names remain."""
    lines = format_table(rows_of(("A", 1, 0, 2), ("Long", 1000, 999, 1001)), 10, "95%")
    assert len({len(line) for line in lines}) == 1 and lines[2].startswith("A ") and lines[3].startswith("Long")
    assert format_table(rows_of(), 10, "95%")[0].split() == ["ward", "n", "[noise", "95%]"]


def test_html_escapes_and_says_what_it_leaves_out() -> None:
    """Keys come from data: whatever they are, they stay text."""
    evil = "<script>alert(1)</script>"
    page = answer_to_html(rows_of(*[(evil, i, i - 1, i + 1) for i in range(5)]), 3, "95%", [(evil, evil)])
    assert "<script" not in page and "&lt;script" in page and "2 more rows" in page and page.count("<tr>") == 4


def test_charts_have_a_bar_and_an_interval_for_each_row() -> None:
    """Bars begin at zero, also when numbers are negative; long names are cut; unknown values have no bar."""
    values = [("a" * 40, -50, -70, -30), ("b", 100, 80, 120), (None, 20, None, None), ("d", None, None, None)]
    svg = ElementTree.fromstring(draw_chart(rows_of(*values), 10))  # noqa: S314  # our own words
    bars, intervals = svg.findall(f"{SVG}rect"), svg.findall(f"{SVG}path")
    assert len(bars) == 3 and len(intervals) == 2
    negative, positive = bars[0].attrib, bars[1].attrib
    zero = float(negative["x"]) + float(negative["width"])
    assert zero == pytest.approx(float(positive["x"]), abs=0.2)
    assert float(positive["width"]) == pytest.approx(2 * float(negative["width"]), abs=0.2)
    labels = [node.text for node in svg.findall(f"{SVG}text")]
    assert labels[1:] == ["a" * 21 + "…", "b", "NULL"]


def test_one_bar_is_no_chart() -> None:
    """Neither is a table without numbers, nor one in which all numbers are zero without a scale."""
    assert draw_chart(rows_of(("a", 1, 0, 2)), 10) == ""
    assert draw_chart(make_rows(("ward",), (Type.TEXT,), (False,), ((Cell("a"),), (Cell("b"),))), 10) == ""
    assert "NaN" not in draw_chart(rows_of(("a", 0, 0, 0), ("b", 0, 0, 0)), 10)
