"""Scalar expressions: immutable trees of columns, literals and calls.

An expression is pure and total: for any value in the data it yields a value of its type or NULL, never an error. Facts
are computed from the tree each time they are needed, and a column is always identified by its table and name. So a fact
is never used for another definition than its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from fractions import Fraction
from typing import TypeAlias

from discreet.late_dataclass import dataclass
from discreet.plan.types import Type, Value


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a declared table."""

    table: str
    name: str
    type: Type

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant that the analyst wrote. A NULL has a ``type``, too.

    ``exact`` is the number that arithmetic on constants gave before it was rounded to ``value``. Further arithmetic
    starts from it, so that a constant is rounded once.
    """

    value: Value
    type: Type
    exact: Fraction | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        if self.value is None:
            return "NULL"
        if isinstance(self.value, str):
            return "'" + self.value.replace("'", "''") + "'"
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Call:
    """A function of ``functions.py`` applied to arguments. ``type`` is the type of its result."""

    function: str
    arguments: tuple[Expression, ...]
    type: Type

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True, slots=True)
class ReleasedValue:
    """A key or a measured number of the answer: the one at position ``index`` among keys and then aggregates.

    It is used only above the aggregation, where everything is post-processing.
    """

    index: int
    name: str = field(compare=False)
    type: Type

    def __str__(self) -> str:
        return self.name


Expression: TypeAlias = Column | Literal | Call | ReleasedValue


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything inside it, outermost first."""
    yield expression
    if isinstance(expression, Call):
        for argument in expression.arguments:
            yield from walk(argument)


def find_columns(expression: Expression) -> frozenset[Column]:
    """The columns that an expression reads."""
    return frozenset(part for part in walk(expression) if isinstance(part, Column))
