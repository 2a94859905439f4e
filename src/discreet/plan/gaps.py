"""What an engine cannot say of a question, in one table: the planner refuses it before anything is charged.

Every engine gives the same integers for the same question. Where one cannot, that is a gap. An engine names its gaps
(``Capabilities.gaps``), the curator hands them to the planner with the catalog, and docs/engines.md prints them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import fields, is_dataclass
from enum import StrEnum
from typing import Any, get_args

from discreet.errors import UsageError
from discreet.late_dataclass import dataclass
from discreet.plan.elementary import ELEMENTARY
from discreet.plan.expressions import Call, Literal
from discreet.plan.nodes import Question
from discreet.plan.relations import Feature, FeatureCall, Relation, RowFrame, Values, inputs_of

# The rows that an engine may look at again for each row of a frame that moves.
MOST_FRAME_ROWS = 32
# How deep calls may nest, where an engine plans a question for as long as the square of that or longer; and for how
# many calls one of ``plan.elementary`` counts, by the steps that it is made of.
MOST_NESTED, ELEMENTARY_DEPTH = 40, 7


class Gap(StrEnum):
    """Something that an engine cannot say."""

    NUL = "nul"
    DISTINCT_IN_FRAME = "distinct_in_frame"
    WIDE_EXTREMES = "wide_extremes"
    WIDE_SUMS = "wide_sums"
    DEEP = "deep"


@dataclass(frozen=True, slots=True)
class GapWords:
    """What is refused, why, and what to do instead."""

    what: str
    why: str
    fix: str


# With r rows of one person such a frame is r² work, and whether that person is there would show in the time.
_LOOKS_AGAIN = "the whole frame is looked at again for each row, so the time would tell who has many rows"
_NARROWER = "Take a narrower frame, or begin it at UNBOUNDED PRECEDING, in the opposite order if need be"

GAPS: Mapping[Gap, GapWords] = {
    Gap.NUL: GapWords(
        what="texts in a question, or in rows that an analyst brings, that hold the character U+0000",
        why="no text of the database can hold it, and none that is compared with it",
        fix="Take the character out: no row holds it",
    ),
    Gap.DISTINCT_IN_FRAME: GapWords(
        what="COUNT(DISTINCT ...) over a frame of rows (ROWS BETWEEN ...)",
        why="the database counts no distinct values in a frame",
        fix="Leave the frame out: the count then runs from the first row on",
    ),
    Gap.WIDE_EXTREMES: GapWords(
        what=f"MIN and MAX over a frame that moves at its start and may hold more than {MOST_FRAME_ROWS} rows",
        why=_LOOKS_AGAIN,
        fix=_NARROWER,
    ),
    Gap.WIDE_SUMS: GapWords(
        what=f"COUNT, SUM and AVG over a frame that moves at its start and may hold more than {MOST_FRAME_ROWS} rows",
        why=_LOOKS_AGAIN,
        fix=_NARROWER,
    ),
    Gap.DEEP: GapWords(
        what=f"calls nested more than {MOST_NESTED} deep, those of subqueries included; a logarithm or an angle is "
        f"{ELEMENTARY_DEPTH} of them",
        why="it would plan the question for many minutes",
        fix="Nest fewer calls",
    ),
}


def check_gaps(question: Question, gaps: Set[str]) -> None:
    """Refuse what the engine of a dataset cannot say. Nothing is read for this."""
    if not gaps:
        return
    found = {
        gap for part in walk_plan((question.source, question.keys, question.aggregates)) for gap in _find_gaps(part)
    }
    if find_depth(question.source) + find_depth((question.keys, question.aggregates)) > MOST_NESTED:
        found.add(Gap.DEEP)
    for gap in sorted(found & gaps):
        words = GAPS[Gap(gap)]
        raise UsageError(
            f"The engine of this dataset has no {words.what}: {words.why}. {words.fix}. Nothing was charged."
        )


def _find_gaps(part: Any) -> Iterator[Gap]:
    """The gaps that a node of a plan falls into."""
    match part:
        case Literal(value=str() as text) if "\0" in text:
            yield Gap.NUL
        case Values() if any(isinstance(value, str) and "\0" in value for row in part.rows for value in row):
            yield Gap.NUL
        case FeatureCall() if part.feature is Feature.COUNT_DISTINCT and part.frame is not None:
            yield Gap.DISTINCT_IN_FRAME
        case FeatureCall() if part.frame is not None and _is_wide(part.frame):
            yield Gap.WIDE_EXTREMES if part.feature in (Feature.MIN, Feature.MAX) else Gap.WIDE_SUMS


def find_depth(part: Any) -> int:
    """How deep calls nest in a part of a plan: those of a relation stand on top of those below it."""
    if isinstance(part, tuple):
        return max(map(find_depth, part), default=0)
    if not is_dataclass(part):
        return 0
    values = [getattr(part, own.name) for own in fields(part)]
    if isinstance(part, Call):
        own_depth = ELEMENTARY_DEPTH if part.function in ELEMENTARY else 1
        return own_depth + find_depth(part.arguments)
    if not isinstance(part, get_args(Relation)):
        return max(map(find_depth, values), default=0)
    inputs = inputs_of(part)
    beside = (value for value in values if value is not inputs and not isinstance(value, get_args(Relation)))
    return find_depth(inputs) + max(map(find_depth, beside), default=0)


def _is_wide(frame: RowFrame) -> bool:
    """Whether a frame leaves rows behind on its way, and may hold many."""
    return frame.first is not None and (frame.last is None or frame.last - frame.first >= MOST_FRAME_ROWS)


def walk_plan(part: Any) -> Iterator[Any]:
    """Every node of a plan, whatever it is."""
    if isinstance(part, tuple):
        for inner in part:
            yield from walk_plan(inner)
    elif is_dataclass(part):
        yield part
        for own in fields(part):
            yield from walk_plan(getattr(part, own.name))
