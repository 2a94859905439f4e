"""What an engine cannot say of a question, in one table: the planner refuses it before anything is charged.

Every engine gives the same integers for the same question. Where one cannot, that is a gap. An engine names its gaps
(``Capabilities.gaps``), the curator hands them to the planner with the catalog, and docs/engines.md prints them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from typing import Any

from discreet.errors import UsageError
from discreet.plan.expressions import Literal
from discreet.plan.nodes import Question
from discreet.plan.relations import Values
from discreet.plan.types import Value


class Gap(StrEnum):
    """Something that an engine cannot say."""

    NUL = "nul"


@dataclass(frozen=True, slots=True)
class GapWords:
    """What is refused, why, and what to do instead."""

    what: str
    why: str
    fix: str


GAPS: Mapping[Gap, GapWords] = {
    Gap.NUL: GapWords(
        what="texts in a question, or in rows that an analyst brings, that hold the character U+0000",
        why="no text of the database can hold it, and none that is compared with it",
        fix="Take the character out: no row holds it",
    ),
}


def check_gaps(question: Question, gaps: Set[str]) -> None:
    """Refuse what the engine of a dataset cannot say. Nothing is read for this."""
    if Gap.NUL in gaps:
        parts = (question.source, question.keys, question.aggregates)
        if any(isinstance(value, str) and "\0" in value for value in _list_constants(parts)):
            words = GAPS[Gap.NUL]
            raise UsageError(
                f"The engine of this dataset has no {words.what}: {words.why}. {words.fix}. Nothing was charged."
            )


def _list_constants(part: Any) -> Iterator[Value]:
    """Every constant of a plan that an engine would have to hold, in whatever node it is."""
    if isinstance(part, Literal):
        yield part.value
    elif isinstance(part, Values):
        yield from (value for row in part.rows for value in row)
    elif isinstance(part, tuple):
        for inner in part:
            yield from _list_constants(inner)
    elif is_dataclass(part):
        for own in fields(part):
            yield from _list_constants(getattr(part, own.name))
