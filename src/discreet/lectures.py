"""The lectures as pages: their list in order, and the text of each.

The pages are those of docs/lectures. The wheel carries them as ``pages/lectures``; in a checkout they are read where
they stand. The list is read from the page that lists them, so there is one list only.
"""

from __future__ import annotations

import re
from pathlib import Path

from discreet.errors import UsageError
from discreet.late_dataclass import dataclass
from discreet.parameters import find_name

SHIPPED = Path("pages") / "lectures"
"""Where the wheel has the pages, inside the package."""

_PLACES = (Path(__file__).parent / SHIPPED, Path(__file__).parents[2] / "docs" / "lectures")
_ENTRY = re.compile(r"^\d+\. \[[^\]]+\]\(([\w-]+)\.md\): (.+)$", re.M)
_LINK = re.compile(r"\[([^\]]+)\]\([^)\s]+\)")
_COMMENT = re.compile(r"<!--.*?-->\n+", re.S)
_WAY_ON = re.compile(r"\n+(?:Next:|Back to) [^\n]+\n*\Z")


@dataclass(frozen=True, slots=True)
class Lecture:
    """One page: its name, what it is about, and the name of the page after it."""

    name: str
    about: str
    following: str | None

    @property
    def text(self) -> str:
        """The page in Markdown, as it stands in docs/lectures."""
        return (_find_folder() / f"{self.name}.md").read_text(encoding="utf-8")

    @property
    def title(self) -> str:
        """The heading of the page."""
        return self.text.partition("\n")[0].removeprefix("# ")

    @property
    def plain(self) -> str:
        """The page in Markdown without what is of no use in a terminal: links, comments, the line to the next page."""
        return _WAY_ON.sub("\n", _LINK.sub(r"\1", _COMMENT.sub("", self.text)))


def list_lectures() -> tuple[Lecture, ...]:
    """All lectures, in the order in which they are meant to be read.

    >>> [lecture.name for lecture in list_lectures()][:3]
    ['anonymity', 'exact-statistics', 'randomized-response']
    """
    entries = _ENTRY.findall((_find_folder() / "README.md").read_text(encoding="utf-8"))
    names: list[str | None] = [*(name for name, _ in entries[1:]), None]
    return tuple(Lecture(name, about, following) for (name, about), following in zip(entries, names))


def find_lecture(name: str) -> Lecture:
    """The lecture of this name, or of an unambiguous part of its name.

    >>> find_lecture("Laplace").title
    'The Laplace mechanism'
    """
    by_name = {lecture.name: lecture for lecture in list_lectures()}
    return by_name[find_name(name, by_name, "lecture")]


def _find_folder() -> Path:
    for place in _PLACES:
        if (place / "README.md").is_file():
            return place
    raise UsageError("This installation has no lectures. Install discreet from its wheel, or run it from its source.")
