"""A line of the checklist: one choice of the codebook, and its grade."""

from __future__ import annotations

from enum import StrEnum

from discreet.late_dataclass import dataclass


class Grade(StrEnum):
    """How good a choice is."""

    GOOD = "✓"
    WEAK = "!"
    WRONG = "✗"


@dataclass(frozen=True, slots=True)
class CheckLine:
    """One choice of a codebook: its grade, its topic, what it means, and what to do about it."""

    grade: Grade
    topic: str
    finding: str
    fix: str = ""

    def __str__(self) -> str:
        return f"{self.grade} {self.topic}: {self.finding}" + (f" {self.fix}" if self.fix else "")
