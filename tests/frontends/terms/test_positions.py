"""Places and their display: marks stand under the right letters, whatever the line looks like."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import QuestionError
from discreet.frontends.terms.positions import WIDTH, Place, refusal


@settings(deadline=None, max_examples=200)
@given(st.text(alphabet="ab \tñ漢\x01\n", max_size=300), st.integers(0, 300), st.integers(0, 20))
def test_line_and_column_count_from_one(text: str, start: int, length: int) -> None:
    """Line and column lead back to the place, and the excerpt is two lines of bounded width."""
    start = min(start, len(text))
    place = Place(text, start, min(len(text), start + length))
    lines = text.split("\n")
    assert sum(len(line) + 1 for line in lines[: place.line - 1]) + place.column - 1 == start
    shown, marks = place.format_excerpt().split("\n")
    assert len(shown) <= WIDTH + 4 and set(marks) <= {" ", "^"} and "^" in marks


def test_wide_letters_move_the_mark() -> None:
    """A letter that fills two columns of the terminal counts as two."""
    assert Place("漢字 = x", 5, 6).format_excerpt().split("\n")[1] == "  " + " " * 7 + "^"


def test_long_lines_are_cut_around_the_place() -> None:
    """The place stays visible in the middle of a long line."""
    text = "a" * 500 + "HERE" + "b" * 500
    shown, marks = Place(text, 500, 504).format_excerpt().split("\n")
    assert shown[marks.index("^") :].startswith("HERE") and shown.strip().startswith("…") and shown.endswith("…")


@pytest.mark.parametrize("place", [None, Place("SELECT x", 7, 8)])
def test_refusals_survive_pickling(place: Place | None) -> None:
    """A refusal keeps its parts when it crosses a process border."""
    error = refusal(place, "A rule.", "A fix.")
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301  # our own bytes
    assert isinstance(copy, QuestionError)
    assert (str(copy), copy.rule, copy.fix, copy.line, copy.column) == (
        str(error),
        "A rule.",
        "A fix.",
        error.line,
        error.column,
    )
