"""Which integers a statistic is computed from, and how.

A mean is computed from a sum and a count, a variance from those and a sum of squares. Equal integers are measured once,
however many statistics use them. Sums for means are taken from the middle of the bounds, which halves what one row can
add. Quantiles and modes are chosen from the spread of an argument's values; all quantiles of one argument share a
spread, and are chosen together.
"""

from __future__ import annotations

from dataclasses import field, replace
from fractions import Fraction
from math import ceil, floor, isqrt
from typing import assert_never

from discreet.bounding.contributions import Counts, Measure, Spread
from discreet.bounding.facts import facts_of
from discreet.bounding.grids import (
    DEFAULT_STEPS,
    SPREAD_STEPS,
    check_order,
    check_size,
    coarsen,
    limit_steps,
    make_steps,
    power_of_two,
)
from discreet.bounding.limits import ValueLimits
from discreet.bounding.ranges import Range
from discreet.bounding.relation_facts import Owner, RelationFacts
from discreet.bounding.time_grids import TimeGrid, make_time_grid
from discreet.bounding.value_steps import include_ends
from discreet.errors import InternalError, Unbounded, UnitLost, UsageError
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import ColumnFacts
from discreet.plan.expressions import Expression, find_columns
from discreet.plan.nodes import Aggregate
from discreet.plan.statistics.definitions import (
    Cells,
    ChoiceBasis,
    CountBasis,
    Counted,
    FirstMomentBasis,
    SecondMomentBasis,
    Statistic,
    SumBasis,
)
from discreet.plan.statistics.table import STATISTICS
from discreet.plan.types import Type

# A row's own clamp where the analyst bounds what a unit adds to a group instead.
PARTIAL_STEPS = 1 << 50


@dataclass(frozen=True, slots=True)
class AggregateRecipe:
    """How one aggregate follows from measures: their positions, and the grid that the sum was taken on.

    ``count``, ``steps`` and ``squares`` are positions among the measures, ``spread`` is one among the spreads; None
    where not needed. ``times`` says which times the numbers of a spread stand for.
    """

    statistic: Statistic
    count: int | None = None
    steps: int | None = None
    squares: int | None = None
    origin: Fraction = Fraction(0)
    resolution: Fraction = Fraction(1)
    low: Fraction | None = None
    high: Fraction | None = None
    spread: int | None = None
    share: Fraction | None = None
    times: TimeGrid | None = None


@dataclass(slots=True)
class MeasureCollector:
    """The measures and spreads of one grouping while they are collected. A row may add ``most_steps`` at most.

    ``public_size`` is the exact number of units of the one group there is, where the codebook declares it: of rows,
    where a row is its own unit. It is taken in place of a count, so it costs nothing, and sums are taken from the
    middle of their bounds.
    Privacy: unit and neighbours are the codebook's. A declared number is the same for all data, so no unit moves it
    and it loses nothing, whether it is true or not. Sums and squares have the sensitivities that they have anyway.
    """

    aggregates: tuple[Aggregate, ...]
    source: RelationFacts
    most_steps: int | None = None
    value_limits: ValueLimits = field(default_factory=ValueLimits)
    public_size: int | None = None
    measures: dict[Measure, int] = field(default_factory=dict)
    spreads: dict[Spread, int] = field(default_factory=dict)

    def make_recipe(self, aggregate: Aggregate) -> AggregateRecipe:
        """What is measured for an aggregate, as its row in the table of statistics says."""
        basis = STATISTICS[aggregate.statistic].basis
        match basis:
            case CountBasis():
                measure = self._measure_counted(aggregate, basis.counted)
                return AggregateRecipe(aggregate.statistic, count=self.add_measure(measure))
            case SumBasis():
                if aggregate.bounds is not None:
                    return self._plan_bounded_sum(aggregate, aggregate.bounds)
                return self._plan_moments(aggregate, with_count=False)
            case FirstMomentBasis():
                return self._plan_moments(aggregate, with_count=True)
            case SecondMomentBasis():
                return self._plan_moments(aggregate, with_count=True, with_squares=True)
            case ChoiceBasis():
                return self._plan_choice(aggregate, basis.cells)
            case _:
                assert_never(basis)

    def _measure_counted(self, aggregate: Aggregate, counted: Counted) -> Measure:
        match counted:
            case Counted.VALUES:
                return self._measure_count(aggregate)
            case Counted.UNITS:
                return self.measure_units(aggregate.argument)
            case Counted.DISTINCT:
                if aggregate.argument is None:
                    raise InternalError("Distinct values of nothing.")
                return self._measure_distinct(aggregate.argument)
            case _:
                assert_never(counted)

    def _measure_distinct(self, argument: Expression) -> Measure:
        """Distinct values. Where a row is its own unit it has one value, and there is nothing to limit."""
        most = None if self.source.unit is None else self.value_limits.choose(facts_of(argument, self.source))
        return Measure(counts=Counts.DISTINCT, argument=argument, max_values=most)

    def _plan_choice(self, aggregate: Aggregate, cells: Cells) -> AggregateRecipe:
        match cells:
            case Cells.RANKS:
                return self._plan_quantile(aggregate)
            case Cells.KEYS:
                return self._plan_mode(aggregate)
            case _:
                assert_never(cells)

    def measure_units(self, argument: Expression | None = None) -> Measure:
        """Units with a row in the group. Where a row is its own unit, rows."""
        if self.source.owner is Owner.MIXED:
            raise UnitLost(
                "This join does not keep units together, so they cannot be counted. Count rows, or join on the unit. "
                "Nothing was charged."
            )
        if self.source.unit is None:
            return self._measure_rows() if argument is None else self._measure_values(argument)
        if argument is not None and not facts_of(argument, self.source).nullable:
            argument = None
        return Measure(counts=Counts.UNITS, argument=argument, public=self.public_size if argument is None else None)

    def _measure_rows(self) -> Measure:
        """All rows. Their number may be public where each is its own unit; a unit of several rows may have any."""
        return Measure(counts=Counts.ROWS, public=self.public_size if self.source.unit is None else None)

    def measure_named(self) -> Measure:
        """What private keys are named by: the units that are kept in a group. Where a row is its own unit, rows."""
        units = self.measure_units()
        return Measure(counts=Counts.NAMED) if units.counts is Counts.UNITS else units

    def _measure_count(self, aggregate: Aggregate) -> Measure:
        measure = self._measure_rows() if aggregate.argument is None else self._measure_values(aggregate.argument)
        if aggregate.bounds is None:
            return measure
        low, high = aggregate.bounds
        return replace(measure, public=None, partial=check_order(ceil(low), floor(high)))

    def _measure_values(self, argument: Expression) -> Measure:
        """Values that are not NULL; rows, where the codebook says that there are no NULLs."""
        if not facts_of(argument, self.source).nullable:
            return self._measure_rows()
        return Measure(counts=Counts.VALUES, argument=argument)

    def _plan_moments(self, aggregate: Aggregate, *, with_count: bool, with_squares: bool = False) -> AggregateRecipe:
        """Sums and what needs them. A sum uses the centred steps of a mean where one is asked for anyway."""
        argument, facts = self._check_number(aggregate, aggregate.argument)
        check_size(argument, facts.low, facts.high)
        alike = [a for a in self.aggregates if a.argument == argument and a.bounds is None]
        same = [a.statistic for a in alike if a.distinct is aggregate.distinct]
        bases = [STATISTICS[statistic].basis for statistic in same]
        squared = any(isinstance(basis, SecondMomentBasis) for basis in bases)
        counted = self._measure_distinct(argument) if aggregate.distinct else self._measure_values(argument)
        centred = squared or counted.public is not None or any(isinstance(b, FirstMomentBasis) for b in bases)
        far = self.most_steps if counted.max_values is None else limit_steps(counted.max_values)
        if far is not None and squared:
            far = isqrt(far)
        steps = make_steps(argument, facts, centred=centred, squared=squared, far=far)
        if aggregate.distinct:
            steps = replace(steps, counts=Counts.DISTINCT_STEPS, max_values=counted.max_values)
        count = self.add_measure(counted) if with_count or steps.origin != 0 else None
        position = self.add_measure(steps)
        squared_steps = Counts.DISTINCT_SQUARES if aggregate.distinct else Counts.SQUARES
        squares = self.add_measure(replace(steps, counts=squared_steps)) if with_squares else None
        return AggregateRecipe(
            aggregate.statistic, count, position, squares, steps.origin, steps.resolution, facts.low, facts.high
        )

    def _plan_bounded_sum(self, aggregate: Aggregate, bounds: tuple[Fraction, Fraction]) -> AggregateRecipe:
        """A sum of which one unit adds to a group something within bounds that the analyst set."""
        argument, low, high = aggregate.argument, *bounds
        if argument is None or not argument.type.is_number:
            raise UsageError("sum needs a number. Use CAST, or count. Nothing was charged.")
        check_size(argument, low, high)
        whole = argument.type is Type.INTEGER
        step = facts_of(argument, self.source).resolution or (Fraction(1) if whole else None)
        step = include_ends(step, Range(low, high)) or (
            power_of_two(max(high - low, abs(low), abs(high)) / DEFAULT_STEPS)
        )
        partial = check_order(floor(low / step), ceil(high / step))
        if self.most_steps is not None:
            step = coarsen(step, max(map(abs, partial)), self.most_steps)
            partial = floor(low / step), ceil(high / step)
        if max(map(abs, partial)) > PARTIAL_STEPS:
            raise Unbounded(f"The bounds of sum({argument}) are too wide for its resolution. Nothing was charged.")
        measure = Measure(
            counts=Counts.STEPS,
            argument=argument,
            resolution=step,
            first=-PARTIAL_STEPS,
            last=PARTIAL_STEPS,
            partial=partial,
        )
        return AggregateRecipe(aggregate.statistic, steps=self.add_measure(measure), resolution=step)

    def _plan_quantile(self, aggregate: Aggregate) -> AggregateRecipe:
        if aggregate.share is None:
            raise InternalError("A quantile without a share.")
        argument, facts, times = self._count_times(aggregate)
        steps = make_steps(argument, facts, centred=False, squared=False, most=SPREAD_STEPS)
        spread = Spread(
            argument=argument,
            origin=steps.origin,
            resolution=steps.resolution,
            first=steps.first,
            last=steps.last,
        )
        position = self.spreads.setdefault(spread, len(self.spreads))
        return AggregateRecipe(
            aggregate.statistic,
            origin=steps.origin,
            resolution=steps.resolution,
            low=facts.low,
            high=facts.high,
            spread=position,
            share=aggregate.share,
            times=times,
        )

    def _count_times(self, aggregate: Aggregate) -> tuple[Expression, ColumnFacts, TimeGrid | None]:
        """The number that a quantile is chosen of: times are counted from the start of their bounds."""
        argument = aggregate.argument
        if argument is None or not argument.type.is_time:
            return *self._check_number(aggregate, argument), None
        low, high = self._find_bounds(aggregate, argument, facts_of(argument, self.source))
        times = make_time_grid(low, high, argument.type)
        counted = times.count(argument)
        return counted, facts_of(counted, self.source), times

    def _plan_mode(self, aggregate: Aggregate) -> AggregateRecipe:
        argument = aggregate.argument
        if argument is None:
            raise InternalError("A mode of nothing.")
        values = facts_of(argument, self.source).keys
        values = None if values is None else tuple(value for value in values if value is not None)
        if not values:
            raise Unbounded(
                f"mode({argument}) chooses among values that are publicly known, and none are declared. Declare keys "
                f"for it, or use GROUP BY {argument} with ORDER BY and LIMIT. Nothing was charged."
            )
        spread = Spread(argument=argument, first=0, last=len(values) - 1, values=values)
        return AggregateRecipe(aggregate.statistic, spread=self.spreads.setdefault(spread, len(self.spreads)))

    def _check_number(self, aggregate: Aggregate, argument: Expression | None) -> tuple[Expression, ColumnFacts]:
        """A bounded number, or the reason why it is none."""
        if argument is None or not argument.type.is_number:
            raise UsageError(f"{aggregate.name} needs a number. Use CAST, or count. Nothing was charged.")
        facts = facts_of(argument, self.source)
        self._find_bounds(aggregate, argument, facts)
        return argument, facts

    def _find_bounds(self, aggregate: Aggregate, argument: Expression, facts: ColumnFacts) -> tuple[Fraction, Fraction]:
        if facts.low is None or facts.high is None:
            raise Unbounded(_explain_unbounded(aggregate.name, argument, self.source))
        return facts.low, facts.high

    def add_measure(self, measure: Measure) -> int:
        """Where a measure stands in the list; equal measures stand once."""
        return self.measures.setdefault(measure, len(self.measures))


def _explain_unbounded(word: str, argument: Expression, source: RelationFacts) -> str:
    """What is missing, under the name that the analyst typed. Of times no bounds can be bought with a question."""
    columns = sorted(find_columns(argument), key=lambda column: column.name)
    names = ", ".join(column.name for column in columns if not facts_of(column, source).bounded)
    if columns and not names and argument.type.is_number:
        return (
            f"{word}({argument}) has no bounds, although its columns have some: the function has none between them. "
            f"Ask for clamp({argument}, low, high). Nothing was charged."
        )
    rule = f"{word}({argument}) has no bounds, so one person could move it without limit."
    if argument.type.is_time:
        return f"{rule} Declare bounds for {names or 'it'} in the codebook, or limit it in WHERE. Nothing was charged."
    return (
        f"{rule} Declare bounds for {names or 'it'} in the codebook (`discreet bounds` finds them at a price), ask for "
        f'clamp({argument}, low, high), or say bounds="auto" (--bounds auto). Nothing was charged.'
    )
