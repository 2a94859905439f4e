"""Places in the user's text, and errors that show them.

line 1, column 8: The table 'visits' has no declared column 'wrd'.
  SELECT wrd, COUNT(*) FROM visits GROUP BY 1
         ^^^
Did you mean 'ward'? Nothing was charged.
"""

from __future__ import annotations

import re
import unicodedata

from discreet.errors import QuestionError
from discreet.late_dataclass import dataclass

WIDTH = 100  # characters of a line that an error shows


@dataclass(frozen=True, slots=True)
class Place:
    """A part of the user's text, from ``start`` up to ``end`` (``end`` is not included)."""

    text: str
    start: int
    end: int

    @property
    def line(self) -> int:
        """The number of the line, from 1."""
        return self.text.count("\n", 0, self.start) + 1

    @property
    def column(self) -> int:
        """The number of the character in its line, from 1."""
        return self.start - self._line_start + 1

    @property
    def _line_start(self) -> int:
        return self.text.rfind("\n", 0, self.start) + 1

    @property
    def words(self) -> str:
        """The part itself."""
        return self.text[self.start : self.end]

    def extend_to(self, other: Place) -> Place:
        """The part of the text from the beginning of one place to the end of the other."""
        return Place(self.text, min(self.start, other.start), max(self.end, other.end))

    def format_excerpt(self) -> str:
        """The line with carets under the place, cut to a readable width.

        >>> print(Place("SELECT wrd FROM visits", 7, 10).format_excerpt())
          SELECT wrd FROM visits
                 ^^^
        """
        line_end = self.text.find("\n", self.start)
        line = self.text[self._line_start : len(self.text) if line_end < 0 else line_end]
        at = self.start - self._line_start
        carets = max(1, min(self.end, self._line_start + len(line)) - self.start)
        first = max(0, at - WIDTH // 2) if len(line) > WIDTH else 0
        shown = line[first : first + WIDTH]
        before = "…" if first else ""
        after = "…" if first + WIDTH < len(line) else ""
        carets = min(carets, max(1, len(shown) - (at - first)))
        blank = _count_columns(before + line[first:at])
        under = _count_columns(line[at : at + carets]) or 1
        return f"  {before}{_make_printable(shown)}{after}\n  {' ' * blank}{'^' * under}"


def _make_printable(text: str) -> str:
    """A text of the same length that can be printed: tabs become spaces, and control characters become dots."""
    return "".join(" " if c.isspace() else c if c.isprintable() else "·" for c in text)


def _count_columns(text: str) -> int:
    """How many columns of a terminal a text fills. A wide letter fills two."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in _make_printable(text)
    )  # fmt: skip  # one rule a line


def name_as_typed(place: Place | None, name: str) -> str:
    """The name of a function as it was typed at a place; our own where there is none.

    >>> name_as_typed(Place("SELECT ucase (x)", 7, 12), "upper")
    'ucase'
    """
    found = None if place is None else re.match(r"([^\W\d]\w*)\s*\(", place.text[place.start :])
    return found[1] if found else name


def refusal(place: Place | None, rule: str, fix: str) -> QuestionError:
    """The error for a rule that is broken at a place. A chain of calls has no places, so there ``place`` is None."""
    if place is None:
        return QuestionError(rule, fix)
    return QuestionError(rule, fix, place.line, place.column, place.format_excerpt())
