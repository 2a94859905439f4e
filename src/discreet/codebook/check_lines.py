"""A line of the checklist: one choice, and how it came out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Grade(StrEnum):
    """How a line of the checklist came out."""

    GOOD = "✓"
    WEAK = "!"
    WRONG = "✗"


@dataclass(frozen=True, slots=True)
class CheckLine:
    """One choice: how it came out, what it is about, what it means, and what to do about it."""

    mark: Grade
    topic: str
    finding: str
    fix: str = ""

    def __str__(self) -> str:
        return f"{self.mark} {self.topic}: {self.finding}" + (f" {self.fix}" if self.fix else "")
