"""A question as an indented text, for ``explain`` and for fixtures that people read."""

from __future__ import annotations

from discreet.plan.nodes import Question
from discreet.plan.relations import Scan, split


def show(question: Question) -> str:
    """The plan from the rows up, one line a step.

    >>> from discreet.plan.nodes import Aggregate, Output, Statistic
    >>> from discreet.plan.relations import Scan
    >>> q = Question(source=Scan("visits"), aggregates=(Aggregate(Statistic.COUNT),))
    >>> print(show(Question(source=q.source, aggregates=q.aggregates, outputs=(Output("n", q.aggregate(0)),))))
    rows of visits
    measure count(*)
    show n = count(*)
    """
    base, _ = split(question.source)
    lines = [f"rows of {base.table}" if isinstance(base, Scan) else str(base)]
    lines += [f"where {condition}" for condition in question.conditions]
    if question.keys:
        lines.append("for each " + ", ".join(map(str, question.keys)))
    lines += [f"measure {aggregate}" for aggregate in question.aggregates]
    lines.append("show " + ", ".join(f"{output.name} = {output.expression}" for output in question.outputs))
    if question.having is not None:
        lines.append(f"having {question.having}")
    if question.order:
        lines.append("order by " + ", ".join(f"{o.expression}{' desc' * o.descending}" for o in question.order))
    if question.limit is not None or question.offset:
        lines.append(f"limit {question.limit} offset {question.offset}")
    return "\n".join(lines)
