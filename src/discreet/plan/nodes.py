"""A question, as immutable values: which rows, which groups, which statistics, what to show of released numbers.

Below the aggregation everything works on one private row at a time. ``Aggregate`` is the only place where rows meet.
Above it there are only released numbers (``Released``), so ``outputs``, ``having``, ``order`` and ``limit`` are
post-processing and cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from discreet.plan.expressions import Expression, Released
from discreet.plan.types import Type


@dataclass(frozen=True, slots=True)
class Scan:
    """All rows of a declared table."""

    table: str


@dataclass(frozen=True, slots=True)
class Filter:
    """The rows for which a condition is true (not false, not NULL)."""

    source: Relation
    condition: Expression


Relation: TypeAlias = Scan | Filter


class Statistic(StrEnum):
    """What can be measured in a group."""

    COUNT = "count"  # rows, or rows where the argument is not NULL
    COUNT_UNITS = "count_units"  # distinct units
    SUM = "sum"
    MEAN = "mean"
    VARIANCE = "variance"  # of the population
    STDDEV = "stddev"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One statistic of an argument in each group. Two equal aggregates are one measurement."""

    statistic: Statistic
    argument: Expression | None = None

    @property
    def type(self) -> Type:
        """Counts are integers, everything else is real."""
        return Type.INTEGER if self.statistic in (Statistic.COUNT, Statistic.COUNT_UNITS) else Type.REAL

    def __str__(self) -> str:
        return f"{self.statistic}({'*' if self.argument is None else self.argument})"


@dataclass(frozen=True, slots=True)
class Output:
    """A column of the answer: an expression over keys and aggregates, under the name the analyst gave it."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Order:
    """One sort criterion over released numbers; NULLs come last."""

    expression: Expression
    descending: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked. ``Released(i)`` refers to the i-th of keys followed by aggregates."""

    source: Relation
    keys: tuple[Expression, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    outputs: tuple[Output, ...] = ()
    having: Expression | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0

    @property
    def table(self) -> str:
        """The table that the question reads."""
        node = self.source
        while isinstance(node, Filter):
            node = node.source
        return node.table

    @property
    def conditions(self) -> tuple[Expression, ...]:
        """The conditions on rows, in the order they were given."""
        found: list[Expression] = []
        node = self.source
        while isinstance(node, Filter):
            found.append(node.condition)
            node = node.source
        return tuple(reversed(found))

    def key(self, index: int) -> Released:
        """The reference to a key in the answer."""
        return Released(index, str(self.keys[index]), self.keys[index].type)

    def aggregate(self, index: int) -> Released:
        """The reference to an aggregate in the answer."""
        wanted = self.aggregates[index]
        return Released(len(self.keys) + index, str(wanted), wanted.type)
