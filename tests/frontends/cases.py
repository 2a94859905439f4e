"""Reads the fixtures of tests/fixtures/questions; its README says how they are written."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent.parent / "fixtures" / "questions"


class QuestionCase(NamedTuple):
    """A question and what is expected of it."""

    file: str
    question: str
    expected: str


def cases() -> list[QuestionCase]:
    """All cases of all files."""
    found = []
    for path in sorted(FOLDER.glob("*.sql")):
        for block in path.read_text().split("\n----\n"):
            question, arrow, expected = block.partition("\n-->\n")
            assert arrow, f"{path.name}: a case without -->"
            found.append(QuestionCase(path.stem, question.strip("\n"), expected.strip("\n")))
    return found
