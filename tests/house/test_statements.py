"""Every statement of the theory has a lecture, a function and a test, and all of them exist."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from discreet.lectures import list_lectures
from tests.house.test_house import ROOT
from tests.house.tracing import TracedRow, count_lines, find_problems, read_rows

PAGE = (ROOT / "docs" / "statements.md").read_text()
ROWS = read_rows(PAGE)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.statement[:40])
def test_a_statement_can_be_traced(row: TracedRow) -> None:
    assert find_problems(row) == []


def test_all_rows_are_read_and_lectures_are_in_them() -> None:
    """No row has another form; only the walk through the source has no statement of the theory."""
    assert len(ROWS) == count_lines(PAGE) >= 45
    named = {PurePosixPath(row.page).stem for row in ROWS}
    assert {lecture.name for lecture in list_lectures()} - named == {"source"}


def test_a_row_that_leads_nowhere_is_seen() -> None:
    """Negative control."""
    row = TracedRow("x", "nowhere.md", "discreet.mechanisms.Nothing", "tests/test_odds.py::test_nothing")
    assert find_problems(row) == ["nowhere.md", "discreet.mechanisms.Nothing", "tests/test_odds.py::test_nothing"]
