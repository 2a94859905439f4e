"""A question as an indented text, for ``explain`` and for fixtures that people read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeAlias

from discreet.plan.expressions import Call, Column, Expression
from discreet.plan.nodes import Aggregate, Question
from discreet.plan.relations import (
    Compute,
    Derive,
    Distinct,
    Filter,
    Join,
    PerUnit,
    Relation,
    Scan,
    Union,
    Values,
    Window,
    every,
)

Write: TypeAlias = Callable[[Expression], str]


def show(question: Question) -> str:
    """The plan from the rows up, one line a step. Where several relations meet, columns are written with theirs.

    >>> from discreet.plan.nodes import Aggregate, Output, Statistic
    >>> from discreet.plan.relations import Scan
    >>> q = Question(source=Scan("visits"), aggregates=(Aggregate(Statistic.COUNT),))
    >>> print(show(Question(source=q.source, aggregates=q.aggregates, outputs=(Output("n", q.aggregate(0)),))))
    rows of visits
    measure count(*)
    show n = count(*)
    """
    write = writer(question.source)
    lines = rows(question.source, write)
    if question.keys:
        lines.append("for each " + ", ".join(map(write, question.keys)))
    lines += [f"measure {_aggregate(aggregate, write)}" for aggregate in question.aggregates]
    lines.append("show " + ", ".join(f"{output.name} = {output.expression}" for output in question.outputs))
    if question.having is not None:
        lines.append(f"having {question.having}")
    if question.order:
        lines.append("order by " + ", ".join(f"{o.expression}{' desc' * o.descending}" for o in question.order))
    if question.limit is not None or question.offset:
        lines.append(f"limit {question.limit} offset {question.offset}")
    return "\n".join(lines)


def writer(relation: Relation) -> Write:
    """How the expressions over a relation are written: plainly over one table, else with the names of relations."""
    return _qualified if any(not isinstance(node, Scan | Filter) for node in every(relation)) else str


def rows(relation: Relation, write: Write) -> list[str]:
    """The lines that say how the rows of a relation come about."""
    match relation:
        case Scan():
            return [f"rows of {relation.table}{f', as {relation.alias}' if relation.alias else ''}"]
        case Values():
            names = ", ".join(name for name, _ in relation.columns)
            return [f"public rows of {relation.name} ({names}): {len(relation.rows)}"]
        case Filter():
            return [*rows(relation.source, write), f"where {write(relation.condition)}"]
        case Derive():
            return [*rows(relation.source, write), f"as {relation.name}: {_named(relation.columns, write)}"]
        case Join():
            return _join(relation, write)
        case PerUnit():
            return _per_unit(relation, write)
        case Window():
            return _window(relation, write)
        case Distinct():
            return [*rows(relation.source, write), "each row once"]
        case Union():
            parts = [line for source in relation.sources for line in ("and", *_indented(rows(source, write)))]
            return ["union of", *parts[1:], f"as {relation.name}"]


def _join(relation: Join, write: Write) -> list[str]:
    lines = rows(relation.left, write)
    lines.append(f"{relation.kind} join{' by look-up' if relation.single else ''}")
    lines += _indented(rows(relation.right, write))
    if relation.on:
        lines.append("on " + " and ".join(f"{write(a)} = {write(b)}" for a, b in relation.on))
    if relation.caps is not None:
        sides = ("left", "right")
        caps = [
            f"{c.rows} rows of each {write(c.unit)} and {c.frequency} of a key on the {side}"
            for side, c in zip(sides, relation.caps)
        ]
        lines.append(f"at most {', '.join(caps)}")
    return lines


def _per_unit(relation: PerUnit, write: Write) -> list[str]:
    lines = rows(relation.source, write)
    lines.append(f"as {relation.name}: one row for each {_named(relation.keys, write)}")
    if relation.features:
        lines += _indented([f"{name} = {_compute(compute, write)}" for name, compute in relation.features])
    return lines


def _window(relation: Window, write: Write) -> list[str]:
    lines = rows(relation.source, write)
    order = ", ".join(f"{write(expression)}{' desc' * down}" for expression, down in relation.order)
    within = ", ".join(map(write, relation.parts)) or "all"
    lines.append(f"with {relation.name}: within {within}{f', by {order}' if order else ''}")
    return lines + _indented([f"{name} = {_compute(compute, write)}" for name, compute in relation.features])


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _named(columns: Iterable[tuple[str, Expression]], write: Write) -> str:
    return ", ".join(f"{name} = {write(expression)}" for name, expression in columns)


def _compute(compute: Compute, write: Write) -> str:
    inside = "*" if compute.argument is None else write(compute.argument)
    return f"{compute.feature}({inside}{f', {compute.offset}' if compute.offset != 1 else ''})"


def _aggregate(aggregate: Aggregate, write: Write) -> str:
    if aggregate.argument is None:
        return str(aggregate)
    written = Column("", write(aggregate.argument), aggregate.argument.type)  # a column is written by its name
    return str(replace(aggregate, argument=written))


def _qualified(expression: Expression) -> str:
    """An expression with every column written after the relation that holds it."""
    match expression:
        case Column():
            return f"{expression.table}.{expression.name}"
        case Call():
            return f"{expression.function}({', '.join(map(_qualified, expression.arguments))})"
        case _:
            return str(expression)
