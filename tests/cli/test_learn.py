"""The lectures from the shell: the list, one page for eyes and as JSON, and wrong names."""

from __future__ import annotations

import csv
import io
import json
from functools import partial

import pytest
from rich.cells import cell_len

from discreet.lectures import list_lectures
from tests.cli.commands import Run, on_terminal

NAMES = [lecture.name for lecture in list_lectures()]


@pytest.fixture
def run(run: Run) -> Run:
    """``discreet learn`` in a narrow terminal."""
    return partial(run, "learn", width=80)


def test_without_a_name_all_are_listed_in_order(run: Run) -> None:
    """The list names every lecture and what it is about, as text, JSON and CSV."""
    code, shown, _ = run()
    assert code == 0
    assert [line.split()[0] for line in shown.splitlines() if line.split()[0] in NAMES] == NAMES
    assert max(map(len, shown.splitlines())) <= 80 and "discreet learn anonymity" in shown
    code, shown, _ = run("--json")
    assert code == 0 and list(json.loads(shown)) == NAMES
    code, shown, _ = run("--format", "csv")
    assert code == 0 and [row["name"] for row in csv.DictReader(io.StringIO(shown))] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_one_page_fits_the_screen(run: Run, name: str) -> None:
    """Statement, code and the next page; nothing is wider than the screen, and no Markdown is left over."""
    code, shown, errors = run(name)
    assert (code, errors) == (0, "")
    assert "Statement." in shown and ">>> " in shown
    assert "<!--" not in shown and "```" not in shown and ".md)" not in shown
    following = dict(zip(NAMES, [*NAMES[1:], None]))[name]
    assert (f"Next: discreet learn {following}" in shown) == (following is not None)
    assert max(map(cell_len, shown.splitlines())) <= 80


def test_one_page_as_json(run: Run) -> None:
    """The text as it stands on the page."""
    code, shown, _ = run("laplace", "--json")
    found = json.loads(shown)
    assert code == 0 and found["title"] == "The Laplace mechanism" and found["next"] == "many-answers"
    assert found["text"].startswith("# The Laplace mechanism\n")


@pytest.mark.parametrize("name", ["", "nothing", "a"])
def test_unknown_names_are_told_the_known_ones(run: Run, name: str) -> None:
    """Exit code 2 and the list of names."""
    code, shown, errors = run(name)
    assert (code, shown) == (2, "") and "no such lecture" in errors and "laplace" in errors


def test_on_a_terminal() -> None:
    """A person sees the page in colours that both light and dark screens have."""
    code, shown = on_terminal("learn", "laplace", width=80)
    assert code == 0 and "\x1b[" in shown and "The Laplace mechanism" in shown
    assert "\x1b[48;" not in shown  # no background of its own
