"""The lectures: one list, every page in its form, and the pages in the wheel."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from discreet import lectures
from discreet.errors import UsageError
from discreet.lectures import Lecture, find_lecture, list_lectures

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "lectures"
LECTURES = list_lectures()
SECTIONS = ("## In plain words", "## In mathematics", "## Run it", "## Neighbours and references")


def find_gaps(text: str) -> list[str]:
    """What a page lacks of the form that all pages have."""
    gaps = [section for section in SECTIONS if f"\n{section}\n" not in text]
    gaps += [] if "\n**Statement.** " in text else ["statement"]
    gaps += [] if "\n>>> " in text else ["code"]
    return gaps + (
        [] if re.search(r"^In the source: |\. In the\s+source: |In\s+the\s+source", text, re.M) else ["source"]
    )


def test_every_page_is_listed_once_and_in_a_chain() -> None:
    """The list names exactly the pages of the folder, and each page leads to the next one of the list."""
    names = [lecture.name for lecture in LECTURES]
    assert sorted(names) == sorted(path.stem for path in FOLDER.glob("*.md") if path.stem != "README")
    assert [lecture.following for lecture in LECTURES] == [*names[1:], None]
    for lecture in LECTURES:
        way_on = lecture.text.rstrip().rpartition("\n")[2]
        assert f"({lecture.following or 'README'}.md)" in way_on, lecture.name


@pytest.mark.parametrize("lecture", LECTURES, ids=lambda lecture: lecture.name)
def test_every_page_has_the_form(lecture: Lecture) -> None:
    """Statement, plain words, mathematics, code, neighbours and references; 60 to 120 lines."""
    # The last page walks through the source, so all of it is about that.
    gaps = [] if lecture.following is None else find_gaps(lecture.text)
    assert gaps == []
    assert 60 <= len(lecture.text.splitlines()) <= 120
    assert len(lecture.text.split("```pycon")) == len(re.findall(r"\n\n```\n", lecture.text)) + 1, "an open fence"


def test_the_check_of_the_form_can_fail() -> None:
    """Negative control: a page without its parts is seen."""
    assert find_gaps("# A page\n\n## In plain words\n") == [*SECTIONS[1:], "statement", "code", "source"]


@pytest.mark.parametrize("lecture", LECTURES, ids=lambda lecture: lecture.name)
def test_a_terminal_sees_no_links_and_no_comments(lecture: Lecture) -> None:
    """Links become their words, comments and the line to the next page go, and the code stays as it is."""
    plain = lecture.plain
    assert ".md)" not in plain and "<!--" not in plain and "\nNext:" not in plain
    code = re.findall(r"```pycon\n.*?```", lecture.text, re.S)
    assert code == re.findall(r"```pycon\n.*?```", plain, re.S)


def test_files_that_pages_name_exist() -> None:
    """Paths in the pages are those of the project, whole or by their end."""
    known = [f"/{path.relative_to(ROOT).as_posix()}" for top in ("src", "tests") for path in (ROOT / top).rglob("*")]
    for lecture in LECTURES:
        for name in re.findall(r"`((?:[\w.-]+/)+[\w.-]*)`", lecture.text):
            assert any(path.endswith(f"/{name.rstrip('/')}") for path in known), f"{lecture.name}: {name}"


def test_the_wheel_carries_the_pages() -> None:
    """The build puts the folder where the package looks for it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert included["docs/lectures"] == f"discreet/{lectures.SHIPPED.as_posix()}"


def test_shipped_pages_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the package has pages of its own they are read; where there are none the error says so."""
    (tmp_path / "README.md").write_text("# Lectures\n\n1. [one](one.md): the only page\n")
    (tmp_path / "one.md").write_text("# One\n")
    monkeypatch.setattr(lectures, "_PLACES", (tmp_path, FOLDER))
    assert [(lecture.name, lecture.title) for lecture in list_lectures()] == [("one", "One")]
    monkeypatch.setattr(lectures, "_PLACES", (tmp_path / "nowhere",))
    with pytest.raises(UsageError, match="no lectures"):
        list_lectures()


@pytest.mark.parametrize("name", ["LAPLACE", "laplace", " Laplace "])
def test_names_are_found_however_they_are_written(name: str) -> None:
    """Capitals and spaces do not matter; an unambiguous part is enough."""
    assert find_lecture(name).name == "laplace"
    assert find_lecture("randomized response").name == find_lecture("response").name == "randomized-response"


@pytest.mark.parametrize("lecture", LECTURES, ids=lambda lecture: lecture.name)
def test_a_picture_stands_behind_the_code_that_makes_it(lecture: Lecture) -> None:
    """A page with a picture makes a ``figure`` in the block before it; the name in the comment is its text."""
    for block, alternative in re.findall(r"```pycon\n([^`]*)\n```\n\n<!-- picture: (.+?) -->", lecture.text):
        assert ">>> figure = draw_" in block and len(alternative) > 10
    assert lecture.text.count("<!-- picture") == lecture.text.count(">>> figure = ")
