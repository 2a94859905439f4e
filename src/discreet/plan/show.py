"""Prints a question as an indented text, for ``explain`` and for test fixtures that people read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeAlias, assert_never

from discreet.plan.expressions import Call, Column, Expression, Literal, ReleasedValue
from discreet.plan.nodes import Aggregate, Order, Question
from discreet.plan.relations import (
    Capped,
    Distinct,
    FeatureCall,
    Join,
    PerUnit,
    Projection,
    Relation,
    Scan,
    Union,
    Values,
    Where,
    Window,
    walk_relations,
)

ExpressionWriter: TypeAlias = Callable[[Expression], str]


def show(question: Question) -> str:
    """The plan as text, one line for each step, from the rows up. With several relations, columns have their names.

    >>> from discreet.plan.nodes import Aggregate, Output
    >>> from discreet.plan.relations import Scan
    >>> from discreet.plan.statistics.definitions import Statistic
    >>> q = Question(source=Scan("visits"), aggregates=(Aggregate(Statistic.COUNT),))
    >>> print(show(Question(source=q.source, aggregates=q.aggregates, outputs=(Output("n", q.refer_to_aggregate(0)),))))
    rows of visits
    measure count(*)
    show n = count(*)
    """
    write = choose_writer(question.source)
    lines = show_rows(question.source, write)
    if question.keys:
        lines.append("for each " + ", ".join(map(write, question.keys)))
    lines += [f"measure {_show_aggregate(aggregate, write)}" for aggregate in question.aggregates]
    lines.append("show " + ", ".join(f"{output.name} = {output.expression}" for output in question.outputs))
    if question.having is not None:
        lines.append(f"having {question.having}")
    if question.order:
        lines.append("order by " + ", ".join(map(_show_order, question.order)))
    if question.limit is not None or question.offset:
        lines.append(f"limit {question.limit} offset {question.offset}")
    return "\n".join(lines)


def _show_order(order: Order) -> str:
    return f"{order.expression}{' desc' * order.descending}{' nulls first' * order.nulls_first}"


def choose_writer(relation: Relation) -> ExpressionWriter:
    """How expressions over a relation are written: plainly over one table, else with the names of relations."""
    return _write_qualified if any(not isinstance(node, Scan | Where) for node in walk_relations(relation)) else str


def show_rows(relation: Relation, write: ExpressionWriter) -> list[str]:
    """The lines that say how the rows of a relation are made."""
    match relation:
        case Scan():
            return [f"rows of {relation.table}{f', as {relation.alias}' if relation.alias else ''}"]
        case Values():
            names = ", ".join(name for name, _ in relation.columns)
            return [f"public rows of {relation.name} ({names}): {len(relation.rows)}"]
        case Where():
            return [*show_rows(relation.source, write), f"where {write(relation.condition)}"]
        case Projection():
            return [*show_rows(relation.source, write), f"as {relation.name}: {_show_columns(relation.columns, write)}"]
        case Join():
            return _show_join(relation, write)
        case PerUnit():
            return _show_per_unit(relation, write)
        case Window():
            return _show_window(relation, write)
        case Distinct():
            return [*show_rows(relation.source, write), "each row once"]
        case Capped():
            by = ", ".join(map(write, relation.by))
            return [*show_rows(relation.source, write), f"at most {relation.rows} rows of each {by}"]
        case Union():
            parts = [line for source in relation.sources for line in ("and", *_indent(show_rows(source, write)))]
            return ["union of", *parts[1:], f"as {relation.name}"]
        case _:
            assert_never(relation)


def _show_join(relation: Join, write: ExpressionWriter) -> list[str]:
    lines = show_rows(relation.left, write)
    lines.append(f"{relation.kind} join{' by look-up' if relation.single else ''}")
    lines += _indent(show_rows(relation.right, write))
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


def _show_per_unit(relation: PerUnit, write: ExpressionWriter) -> list[str]:
    lines = show_rows(relation.source, write)
    lines.append(f"as {relation.name}: one row for each {_show_columns(relation.keys, write)}")
    if relation.features:
        lines += _indent([f"{name} = {_show_feature_call(call, write)}" for name, call in relation.features])
    return lines


def _show_window(relation: Window, write: ExpressionWriter) -> list[str]:
    lines = show_rows(relation.source, write)
    order = ", ".join(f"{write(expression)}{' desc' * down}" for expression, down in relation.order)
    within = ", ".join(map(write, relation.parts)) or "all"
    lines.append(f"with {relation.name}: within {within}{f', by {order}' if order else ''}")
    return lines + _indent([f"{name} = {_show_feature_call(call, write)}" for name, call in relation.features])


def _indent(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _show_columns(columns: Iterable[tuple[str, Expression]], write: ExpressionWriter) -> str:
    return ", ".join(f"{name} = {write(expression)}" for name, expression in columns)


def _show_feature_call(call: FeatureCall, write: ExpressionWriter) -> str:
    inside = "*" if call.argument is None else write(call.argument)
    frame = "" if call.frame is None else f" over {call.frame}"
    return f"{call.feature}({inside}{f', {call.offset}' if call.offset != 1 else ''}){frame}"


def _show_aggregate(aggregate: Aggregate, write: ExpressionWriter) -> str:
    if aggregate.argument is None:
        return str(aggregate)
    shown = Column("", write(aggregate.argument), aggregate.argument.type)  # a column is printed as its name
    return str(replace(aggregate, argument=shown))


def _write_qualified(expression: Expression) -> str:
    """An expression in which every column is written after the name of its relation."""
    match expression:
        case Column():
            return f"{expression.table}.{expression.name}"
        case Call():
            return f"{expression.function}({', '.join(map(_write_qualified, expression.arguments))})"
        case Literal() | ReleasedValue():
            return str(expression)
        case _:
            assert_never(expression)
