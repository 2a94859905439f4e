"""Conditions on one table that follow from a condition on several: an engine can test them before it joins.

Where (a₁ AND b₁) OR (a₂ AND b₂) is true, one of its parts is, and all within it. So a₁ OR a₂ is true, too, and if a₁
and a₂ read one table only, its other rows need not be joined. The condition itself is tested as well: what is added
takes no row away that it would keep. Engines find such conditions over plain columns themselves, not over guarded ones.
"""

from __future__ import annotations

from collections.abc import Iterator

from discreet.plan.expressions import Call, Expression, find_columns
from discreet.plan.types import Type


def find_implied(condition: Expression) -> Iterator[Expression]:
    """For each table that every part of a disjunction has conditions on: the disjunction of these."""
    parts = [list(_flatten(part, "and")) for part in _flatten(condition, "or")]
    if len(parts) < 2 or len({column.table for column in find_columns(condition)}) < 2:
        return
    by_table = [_group_by_table(part) for part in parts]
    for table in sorted(set.intersection(*(set(found) for found in by_table))):
        yield _combine("or", [_combine("and", found[table]) for found in by_table])


def _flatten(expression: Expression, function: str) -> Iterator[Expression]:
    if isinstance(expression, Call) and expression.function == function:
        for argument in expression.arguments:
            yield from _flatten(argument, function)
    else:
        yield expression


def _group_by_table(conditions: list[Expression]) -> dict[str, list[Expression]]:
    found: dict[str, list[Expression]] = {}
    for condition in conditions:
        tables = {column.table for column in find_columns(condition)}
        if len(tables) == 1:
            found.setdefault(tables.pop(), []).append(condition)
    return found


def _combine(function: str, conditions: list[Expression]) -> Expression:
    return conditions[0] if len(conditions) == 1 else Call(function, tuple(conditions), Type.BOOLEAN)
