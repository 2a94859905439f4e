"""From noisy integers to the table of an answer. Only released numbers are visible here, so all of it is free.

Keys and aggregates are computed as columns (``released_columns``); then come the analyst's own arithmetic, HAVING,
ORDER BY, LIMIT, over the groups of all groupings, and the intervals of those that are shown (``noise_intervals``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from discreet.answer_rows import Rows, make_column
from discreet.entropy import SYSTEM, EntropySource
from discreet.noise_intervals import IntervalEnds, find_intervals, find_measured
from discreet.plan.expressions import ReleasedValue
from discreet.plan.nodes import Order, Question
from discreet.plan.types import Value
from discreet.release import NoisyGroups, Plan
from discreet.released_columns import ReleasedColumns, compute_columns, evaluate_column


def finish(plan: Plan, drawn: Sequence[NoisyGroups], *, source: EntropySource = SYSTEM) -> Rows:
    """The table that the question asked for, from what was drawn for each of its groupings."""
    question = plan.question
    parts = [compute_columns(release, noisy) for release, noisy in zip(plan.releases, drawn)]
    sizes = [len(noisy.keys) for noisy in drawn]
    released = parts[0] if len(parts) == 1 else _join_parts(parts)
    chosen = _select_groups(question, released, sum(sizes))
    outputs = [output.expression for output in question.outputs]
    ends = _find_ends(plan, drawn, parts, chosen, source)
    columns = [
        make_column(evaluate_column(expression, released, chosen), *ends[at]) for at, expression in enumerate(outputs)
    ]
    names = tuple(output.name for output in question.outputs)
    return Rows(names, tuple(e.type for e in outputs), find_measured(plan), tuple(columns))


def _join_parts(parts: Sequence[ReleasedColumns]) -> dict[ReleasedValue, Sequence[Value]]:
    """The groups of one grouping after those of another."""
    return {name: [value for part in parts for value in part[name]] for name in parts[0]}


def _find_ends(
    plan: Plan,
    drawn: Sequence[NoisyGroups],
    parts: Sequence[ReleasedColumns],
    chosen: Sequence[int],
    source: EntropySource,
) -> list[IntervalEnds]:
    """The ends of each output for the groups that are shown, of whichever grouping; () where there are none."""
    outputs = len(plan.question.outputs)
    if len(parts) == 1:
        found = find_intervals(plan.releases[0], drawn[0], parts[0], chosen, source)
        return [found.get(at, ((), ())) for at in range(outputs)]
    pairs: list[dict[int, tuple[Value, Value]]] = [{} for _ in range(outputs)]
    first = 0
    for release, noisy, columns in zip(plan.releases, drawn, parts):
        own = [group for group in chosen if first <= group < first + len(noisy.keys)]
        found = find_intervals(release, noisy, columns, [group - first for group in own], source)
        for at, ends in found.items():
            pairs[at] |= zip(own, zip(*ends))
        first += len(noisy.keys)
    unknown = (None, None)
    return [
        ([each.get(group, unknown)[0] for group in chosen], [each.get(group, unknown)[1] for group in chosen])
        for each in pairs
    ]


def _select_groups(question: Question, released: ReleasedColumns, count: int) -> Sequence[int]:
    """Which groups are shown, in which order: HAVING, ORDER BY, OFFSET and LIMIT over released numbers."""
    kept: Sequence[int] = range(count)
    if question.having is not None:
        held = evaluate_column(question.having, released, kept)
        kept = [group for group, holds in zip(kept, held) if holds is True]
    for criterion in reversed(question.order):  # sorting keeps the order of equals, so the first criterion comes last
        kept = _sort_groups(kept, criterion, released)
    end = None if question.limit is None else question.offset + question.limit
    return kept[question.offset : end]


def _sort_groups(groups: Sequence[int], criterion: Order, released: ReleasedColumns) -> list[int]:
    """Groups by one criterion. NULLs come first or last as it says, whichever the direction."""
    values: list[Any] = evaluate_column(criterion.expression, released, groups)
    unknown = [group for group, value in zip(groups, values) if value is None]
    known = [(value, group) for group, value in zip(groups, values) if value is not None]
    known.sort(key=lambda pair: pair[0], reverse=criterion.descending)
    ordered = [group for _, group in known]
    return unknown + ordered if criterion.nulls_first else ordered + unknown
