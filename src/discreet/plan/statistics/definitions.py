"""The words in which an aggregate is defined: what it measures, how it is finished, how it is asked for.

``table`` holds one ``StatisticDefinition`` for each ``Statistic``, and every other part of the house reads it there.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from fractions import Fraction
from typing import TypeAlias, assert_never

from discreet.exact import Floats
from discreet.late_dataclass import dataclass
from discreet.plan.relations import Feature
from discreet.plan.statistics.formulas import FirstMoments, SecondMoments
from discreet.plan.types import Type


class Statistic(StrEnum):
    """What can be measured in a group."""

    COUNT = "count"  # rows, or rows where the argument is not NULL
    COUNT_UNITS = "count_units"  # distinct units
    COUNT_DISTINCT = "count_distinct"  # distinct values of the argument, of which a unit brings only so many
    SUM = "sum"
    MEAN = "mean"
    VARIANCE = "variance"  # of the population
    STDDEV = "stddev"
    STANDARD_ERROR = "sem"  # of the mean, as of a sample
    QUANTILE = "quantile"  # the value with about a share of the rows below it
    MODE = "mode"  # the most frequent of the argument's public keys


class PairStatistic(StrEnum):
    """Statistics of two arguments, which follow from released sums."""

    COVARIANCE = "covar"
    CORRELATION = "corr"
    SLOPE = "regr_slope"  # of the first argument over the second
    INTERCEPT = "regr_intercept"
    WEIGHTED_MEAN = "weighted_avg"  # of the first argument, weighted by the second


# What is measured, and how the statistic follows from it


class Counted(StrEnum):
    """What a count counts."""

    VALUES = "values"  # rows, or those where the argument is not NULL
    UNITS = "units"
    DISTINCT = "distinct"  # distinct values of the argument


class Cells(StrEnum):
    """What a choice chooses from."""

    RANKS = "ranks"  # steps between the bounds of a number, by how many rows lie below
    KEYS = "keys"  # the public keys of the argument, by how many rows have them


@dataclass(frozen=True, slots=True)
class CountBasis:
    """One noisy count, which is the statistic."""

    counted: Counted


@dataclass(frozen=True, slots=True)
class SumBasis:
    """A noisy sum of steps, which is the statistic; with the count where steps are not taken from zero."""


@dataclass(frozen=True, slots=True)
class FirstMomentBasis:
    """A noisy count and a noisy sum. NULL where the noisy count is below 1.

    ``limits`` says where the statistic lies for values within bounds, whatever they are. ``by_size`` says that the
    error is shown for some numbers of values, by the rule for means.
    """

    formula: Callable[[FirstMoments], Floats]
    limits: Callable[[float, float], tuple[float, float]]
    by_size: bool = False


@dataclass(frozen=True, slots=True)
class SecondMomentBasis:
    """A noisy count, a noisy sum and a noisy sum of squares. NULL where the noisy count is below 1.

    ``limits`` says where the statistic lies for values within bounds, whatever they are.
    """

    formula: Callable[[SecondMoments], Floats]
    limits: Callable[[float, float], tuple[float, float]]


@dataclass(frozen=True, slots=True)
class ChoiceBasis:
    """A value that is chosen by the exponential mechanism; nothing is added to it."""

    cells: Cells


Basis: TypeAlias = CountBasis | SumBasis | FirstMomentBasis | SecondMomentBasis | ChoiceBasis


# How it is asked for


class ArgumentForm(StrEnum):
    """How the arguments of an aggregate are written."""

    NOTHING = "nothing"  # count_units()
    ROWS_OR_VALUE = "rows or value"  # COUNT(*), COUNT(x), COUNT(DISTINCT x)
    CONDITION = "condition"  # COUNT_IF(c)
    VALUE = "value"  # SUM(x)
    VALUE_AND_SHARE = "value and share"  # QUANTILE(x, 0.25)
    PAIR = "pair"  # CORR(x, y)


class GroupBounds(StrEnum):
    """What bounds for one unit in a group mean (``contribution_bounds_per_group`` of GoogleSQL)."""

    UNIT = "unit"  # they hold what the unit adds
    ROWS = "rows"  # every row is moved into them
    REFUSED = "refused"


class SampleFactor(StrEnum):
    """What turns the form of the population into that of a sample of n."""

    RATIO = "n/(n - 1)"
    ROOT = "the root of n/(n - 1)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """One way to ask for an aggregate.

    ``names`` are the function's names in SQL, the usual one first; ``parsed`` are the classes that the parser makes of
    them, none where it knows them by name only. ``google`` are the names that GoogleSQL has for it. ``verb`` is the
    function of the chain, as ``discreet`` offers it. ``examples`` show it in SQL, with {number}, {other}, {condition},
    {unit} and {key} for columns of these kinds; the first of them means what the verb means. ``share`` is the q of a
    quantile that has a name of its own, and ``inside`` says what the aggregate is inside one unit.
    """

    names: tuple[str, ...]
    parsed: tuple[str, ...]
    google: tuple[str, ...]
    verb: str | None
    arguments: ArgumentForm
    examples: tuple[str, ...]
    help: str
    inside: Feature | None
    sample: bool = False
    share: Fraction | None = None

    @property
    def word(self) -> str:
        """The name that a quantile with a fixed share keeps; empty for everything else."""
        return "" if self.share is None else self.names[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticDefinition:
    """Everything that is said of a statistic.

    ``takes`` are the types of its argument (a BOOLEAN among numbers counts as 1 and 0) and ``result`` is its own type,
    None for that of the argument. ``title`` names it in previews and ``output`` names a column without a name.
    """

    takes: frozenset[Type]
    result: Type | None
    basis: Basis
    title: str
    output: str
    group_bounds: GroupBounds
    sample: SampleFactor | None
    wordings: tuple[Wording, ...]

    @property
    def needs_bounds(self) -> bool:
        """Whether one row could move it without limit, if its argument had no bounds."""
        match self.basis:
            case CountBasis():
                return False
            case SumBasis() | FirstMomentBasis() | SecondMomentBasis():
                return True
            case ChoiceBasis():
                return self.basis.cells is Cells.RANKS
            case _:
                assert_never(self.basis)

    @property
    def has_direct_error(self) -> bool:
        """Whether its error follows from public facts alone."""
        match self.basis:
            case CountBasis() | SumBasis():
                return True
            case FirstMomentBasis() | SecondMomentBasis() | ChoiceBasis():
                return False
            case _:
                assert_never(self.basis)

    @property
    def has_moments(self) -> bool:
        """Whether it is a sum, or follows from sums: of all values, or of distinct ones."""
        return isinstance(self.basis, SumBasis | FirstMomentBasis | SecondMomentBasis)

    @property
    def is_chosen(self) -> bool:
        """Whether it is chosen, and not computed from noisy integers."""
        return isinstance(self.basis, ChoiceBasis)

    @property
    def has_share(self) -> bool:
        """Whether it takes a share, as a quantile does."""
        return self.basis == ChoiceBasis(Cells.RANKS)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairDefinition:
    """Everything that is said of a statistic of two arguments, whose formula is arithmetic over released sums."""

    takes: frozenset[Type]
    wordings: tuple[Wording, ...]
