"""A question, as immutable values: which rows, which groups, which statistics, what to show of released numbers.

Below the aggregation, rows belong to units and no unit's rows meet another's (``relations``). ``Aggregate`` is the only
place where they do.
Above it there are only released numbers (``ReleasedValue``), so ``outputs``, ``having``, ``order`` and ``limit`` are
post-processing and cost nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field
from fractions import Fraction

from discreet.late_dataclass import dataclass
from discreet.plan.catalog import ContributionLimits
from discreet.plan.expressions import Expression, ReleasedValue
from discreet.plan.relations import Relation, find_tables, split
from discreet.plan.statistics.definitions import Statistic
from discreet.plan.statistics.table import STATISTICS
from discreet.plan.types import Type


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One statistic of an argument in each group. Two equal aggregates are one measurement.

    ``share`` is the q of a quantile. For COUNT_UNITS an argument says which rows count: those where it is not NULL.
    ``bounds`` are public limits that the analyst set for what one unit adds to a group (a sum or a count).
    ``distinct`` asks for the statistic of distinct values, each of which counts once, whoever has it (SUM(DISTINCT x)).
    ``typed`` is the name of the function that the analyst wrote, for messages alone.
    """

    statistic: Statistic
    argument: Expression | None = None
    share: Fraction | None = None
    bounds: tuple[Fraction, Fraction] | None = None
    distinct: bool = False
    typed: str = field(default="", compare=False, repr=False)

    @property
    def name(self) -> str:
        """The name of the function, as it was typed where somebody did."""
        return self.typed or str(self.statistic)

    @property
    def type(self) -> Type:
        """The type that the statistic has of itself, or else that of its argument."""
        own = STATISTICS[self.statistic].result
        if own is not None:
            return own
        whole = all(Fraction(end).denominator == 1 for end in self.bounds or ())
        return Type.REAL if self.argument is None or not whole else self.argument.type

    def __str__(self) -> str:
        share = "" if self.share is None else f", {float(self.share):g}"
        bounds = "" if self.bounds is None else " within [{:g}, {:g}]".format(*map(float, self.bounds))
        argument = f"{'DISTINCT ' * self.distinct}{'*' if self.argument is None else self.argument}"
        return f"{self.statistic}({argument}{share}){bounds}"


@dataclass(frozen=True, slots=True)
class Output:
    """A column of the answer: an expression over keys and aggregates, under the name the analyst gave it."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Order:
    """One sort criterion over released numbers; NULLs come last, or first."""

    expression: Expression
    descending: bool = False
    nulls_first: bool = False


def make_grouping_mark(index: int, key: Expression) -> ReleasedValue:
    """GROUPING of a key: 0 in the rows of groupings by it, and 1 in all others. It is public, as the groupings are."""
    return ReleasedValue(-1 - index, f"grouping({key})", Type.INTEGER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked. ``ReleasedValue(i)`` refers to the i-th of keys followed by aggregates.

    ``sets`` asks for several groupings at once, each by some of the keys (their positions); the other keys are NULL
    in its rows, and ``ReleasedValue(-1 - i)`` tells whether the i-th key is among them (``make_grouping_mark``).
    ``limits`` replace the codebook's limits on what a unit contributes, and ``min_units`` leaves out groups that have
    fewer units: both are public parameters of the question.
    """

    source: Relation
    keys: tuple[Expression, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    outputs: tuple[Output, ...] = ()
    having: Expression | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
    sets: tuple[tuple[int, ...], ...] | None = None
    limits: ContributionLimits | None = None
    min_units: int | None = None

    def mark_groupings(self, keys: Collection[int]) -> dict[ReleasedValue, int]:
        """The marks of a grouping by some of the keys: 1 for each key that it does not group by."""
        return {make_grouping_mark(i, key): int(i not in keys) for i, key in enumerate(self.keys)}

    @property
    def tables(self) -> tuple[str, ...]:
        """The declared tables that the question reads."""
        return find_tables(self.source)

    @property
    def conditions(self) -> tuple[Expression, ...]:
        """The conditions on the rows that are aggregated, in the order they were given."""
        return split(self.source)[1]

    def refer_to_key(self, index: int) -> ReleasedValue:
        """The reference to a key in the answer."""
        return ReleasedValue(index, str(self.keys[index]), self.keys[index].type)

    def refer_to_aggregate(self, index: int) -> ReleasedValue:
        """The reference to an aggregate in the answer."""
        wanted = self.aggregates[index]
        return ReleasedValue(len(self.keys) + index, str(wanted), wanted.type)
