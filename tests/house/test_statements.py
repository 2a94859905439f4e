"""Every statement of the theory has a lecture, a function and a test, and all of them exist."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from discreet.lectures import list_lectures
from tests.house.test_house import ROOT

PAGE = (ROOT / "docs" / "statements.md").read_text()
ROW = re.compile(r"^\| (.+?) \| \[[^\]]+\]\(lectures/([\w-]+)\.md\) \| `([\w.]+)` \| `([\w./:-]+)` \|$", re.M)
ROWS = ROW.findall(PAGE)


def find_name(path: str) -> object:
    """What a dotted path leads to; modules are imported on the way."""
    parts = path.split(".")
    found: object = import_module(parts[0])
    for place, part in enumerate(parts[1:], start=2):
        try:
            found = getattr(found, part)
        except AttributeError:
            found = import_module(".".join(parts[:place]))
    return found


def find_problems(row: tuple[str, str, str, str]) -> list[str]:
    """What of a row is not there."""
    _, lecture, name, test = row
    problems = [] if (ROOT / "docs" / "lectures" / f"{lecture}.md").is_file() else [lecture]
    try:
        find_name(name)
    except ImportError:
        problems.append(name)
    file, _, function = test.partition("::")
    path = ROOT / file
    if not path.is_file() or (function and f"\ndef {function}(" not in path.read_text()):
        problems.append(test)
    return problems


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_a_statement_can_be_traced(row: tuple[str, str, str, str]) -> None:
    assert find_problems(row) == []


def test_all_rows_are_read_and_lectures_are_in_them() -> None:
    """No row has another form; only the walk through the source has no statement of the theory."""
    assert len(ROWS) == len(re.findall(r"^\| (?!statement|---)", PAGE, re.M)) >= 45
    named = {row[1] for row in ROWS}
    assert {lecture.name for lecture in list_lectures()} - named == {"source"}


def test_a_row_that_leads_nowhere_is_seen() -> None:
    """Negative control."""
    row = ("x", "nowhere", "discreet.mechanisms.Nothing", "tests/test_odds.py::test_nothing")
    assert find_problems(row) == ["nowhere", "discreet.mechanisms.Nothing", "tests/test_odds.py::test_nothing"]
