"""From a question to a bounded one: which integers are measured, and how the statistics follow from them.

A statistic is computed from noisy integers: a mean from a sum and a count, a variance from those and a sum of squares.
Equal integers are measured once, however many statistics use them. Sums for means are taken from the middle of the
bounds, which halves what one row can add. Quantiles and modes are chosen from the spread of an argument's values; all
quantiles of one argument share a spread, and are chosen together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from math import ceil, floor
from typing import assert_never

from discreet.bounding.contributions import BoundedPlan, Counts, Measure, Spread
from discreet.bounding.facts import MAX_KEYS, facts_of, include_ends
from discreet.bounding.lengths import check_row
from discreet.bounding.ranges import Range
from discreet.bounding.shape import check_expression, check_released, check_whole
from discreet.bounding.stability import NO_UNIT, Owner, RelationFacts, find_relation_facts
from discreet.bounding.structure import check_structure
from discreet.bounding.truncation import cap_joins
from discreet.errors import InternalError, Unbounded, UnitLost, UsageError
from discreet.exact import FIXED_LIMIT
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits
from discreet.plan.expressions import Expression, find_columns
from discreet.plan.nodes import Aggregate, Question
from discreet.plan.statistics.definitions import (
    Cells,
    ChoiceBasis,
    CountBasis,
    Counted,
    FirstMomentBasis,
    GroupBounds,
    SecondMomentBasis,
    Statistic,
    SumBasis,
)
from discreet.plan.statistics.table import STATISTICS
from discreet.plan.types import Type, Value

# Steps between the bounds where the codebook names no resolution: about a millionth of the range.
DEFAULT_STEPS = 1 << 20
# Squares are taken of fewer steps, so that they stay far from the edge of 64 bits.
SQUARE_STEPS = 1 << 15
# Cells of a spread: fine enough to choose a quantile from, few enough to count.
SPREAD_STEPS = 1 << 16
# The weight of one unit, which its groups share where private keys are chosen by weights.
WHOLE_WEIGHT = 1 << 20
# A row's own clamp where the analyst bounds what a unit adds to a group instead.
PARTIAL_STEPS = 1 << 50
# The largest bound of a sum. Squares of it, and of the noise for it, are doubles; nobody measures anything larger.
LARGEST_BOUND = 1 << 400
# The smallest step between values; smaller ones would not be doubles either.
SMALLEST_STEP = Fraction(1, 1 << 400)


@dataclass(frozen=True, slots=True)
class AggregateRecipe:
    """How one aggregate follows from measures: their positions, and the grid that the sum was taken on.

    ``count``, ``steps`` and ``squares`` are positions among the measures, ``spread`` is one among the spreads; None
    where not needed.
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


@dataclass(frozen=True, slots=True)
class BoundedQuestion:
    """A question, its bounded form, and the way back from integers to statistics, one for each aggregate.

    ``selector`` is the position of the count of units by which private keys may be named, ``weights`` that of their
    weights, where a unit may be in several groups. ``keys`` are the positions of the question's keys that this form
    groups by.
    """

    question: Question
    bounded: BoundedPlan
    estimates: tuple[AggregateRecipe, ...]
    selector: int | None = None
    keys: tuple[int, ...] = ()
    weights: int | None = None

    @property
    def measured(self) -> tuple[int, ...]:
        """The positions of the measures that statistics need, each of which gets noise of its own."""
        used = {p for e in self.estimates for p in (e.count, e.steps, e.squares) if p is not None}
        return tuple(sorted(used))

    def shares_of(self, spread: int) -> tuple[Fraction, ...]:
        """The quantiles that are chosen from a spread, ascending, each once; none for a mode."""
        wanted = {e.share for e in self.estimates if e.spread == spread and e.share is not None}
        return tuple(sorted(wanted))


def bound(question: Question, catalog: Catalog) -> BoundedQuestion:
    """The bounded form of a question with one grouping; refused where a bound or a limit is missing."""
    (only,) = bound_all(question, catalog)
    return only


def bound_all(question: Question, catalog: Catalog) -> tuple[BoundedQuestion, ...]:
    """The bounded forms of a question, one for each of its groupings."""
    check_structure(question)
    question = replace(question, source=cap_joins(question.source, catalog))
    source = find_relation_facts(question.source, catalog)
    if source.owner is Owner.NOBODY:
        raise UsageError("This reads public tables only, which need no protection. Nothing was charged.")
    if source.owner is Owner.LOST:
        raise UnitLost(NO_UNIT)
    _check_question(question, source)
    everything = tuple(range(len(question.keys)))
    sets = (everything,) if question.sets is None else question.sets
    return tuple(_GroupingBounder(question, source, keys).bound_grouping() for keys in sets)


def _check_question(question: Question, source: RelationFacts) -> None:
    """Refuse keys and arguments that are not well formed, and limits that limit nothing."""
    arguments = (aggregate.argument for aggregate in question.aggregates)
    for expression in (*question.keys, *arguments):
        if expression is not None:
            check_expression(expression, source.columns)
    _check_texts(question, source)
    ends = (end for aggregate in question.aggregates for end in aggregate.bounds or ())
    if not all(isinstance(end, Fraction | int) for end in ends):
        raise UsageError("The bounds of an aggregate must be exact numbers. Nothing was charged.")
    for aggregate in question.aggregates:
        _check_parameters(aggregate)
    own = question.limits or ContributionLimits()
    for limit in (own.max_rows, own.max_groups, own.max_rows_per_group, question.min_units):
        if limit is not None:
            check_whole(limit, "what a unit may contribute, or how many units a group needs")
    _check_answer(question)
    everything = range(len(question.keys))
    if question.sets == ():
        raise UsageError("This asks for no grouping at all. Nothing was charged.")
    for positions in question.sets or ():
        if len(set(positions)) < len(positions) or any(position not in everything for position in positions):
            raise UsageError("A grouping names a key that is not there, or one twice. Nothing was charged.")


def _check_texts(question: Question, source: RelationFacts) -> None:
    """Refuse texts that may become too long, before anything is evaluated for public keys."""
    arguments = [a.argument for a in question.aggregates if a.argument is not None]
    held = tuple(dict.fromkeys((*source.columns, *question.keys)))
    check_row(held, arguments, source.columns, source.stored_text)


def _check_parameters(aggregate: Aggregate) -> None:
    """Refuse what a statistic has no use for, and would leave aside."""
    definition = STATISTICS[aggregate.statistic]
    if (aggregate.share is not None) is not definition.has_share:
        raise UsageError("A quantile needs a share, and nothing else has one. Nothing was charged.")
    if aggregate.bounds is not None and definition.group_bounds is not GroupBounds.UNIT:
        raise UsageError("Only sums and counts have bounds of their own. Nothing was charged.")


def _check_answer(question: Question) -> None:
    """Refuse what cannot be shown of released numbers: it would only fail when all is paid for."""
    kinds = [part.type for part in (*question.keys, *question.aggregates)]
    for expression in (*(output.expression for output in question.outputs), *(o.expression for o in question.order)):
        check_released(expression, kinds)
    if question.having is not None:
        check_released(question.having, kinds, Type.BOOLEAN)
    for number in (question.limit, question.offset):
        if number is not None:
            check_whole(number, "how many rows are shown, or left out", least=0)


@dataclass(slots=True)
class _GroupingBounder:
    """One grouping of a question while its measures are collected."""

    question: Question
    source: RelationFacts
    positions: tuple[int, ...]
    measures: dict[Measure, int] = field(default_factory=dict)
    spreads: dict[Spread, int] = field(default_factory=dict)

    def bound_grouping(self) -> BoundedQuestion:
        domain = self._find_domain()
        if domain is not None and not self.question.aggregates:
            raise UsageError("This asks for public keys only; add an aggregate such as COUNT(*). Nothing was charged.")
        estimates = tuple(self._make_recipe(aggregate) for aggregate in self.question.aggregates)
        limits, unit = self._choose_limits(), self.source.unit
        grouped = unit is not None and limits.max_rows is None
        max_groups = self._cap_groups(domain, limits) if grouped else None
        selector = None if domain is not None else self._add_measure(self._measure_units())
        several = domain is None and self.question.min_units is None and (max_groups or limits.max_rows or 1) > 1
        weights = self._add_measure(Measure(counts=Counts.WEIGHT, last=WHOLE_WEIGHT)) if several and unit else None
        bounded = BoundedPlan(
            source=self.question.source,
            keys=self._keys,
            domain=domain,
            unit=unit,
            measures=tuple(self.measures),
            spreads=tuple(self.spreads),
            max_groups=max_groups,
            max_rows_per_group=limits.max_rows_per_group if grouped else None,
            max_rows=limits.max_rows if unit is not None else None,
            spread_rows=self.source.spread_rows or 1,
        )
        return BoundedQuestion(self.question, bounded, estimates, selector, self.positions, weights)

    @property
    def _keys(self) -> tuple[Expression, ...]:
        return tuple(self.question.keys[i] for i in self.positions)

    # Limits

    def _choose_limits(self) -> ContributionLimits:
        """The question's own limits where it has some, with the codebook's for what they leave open."""
        own, declared = self.question.limits, self.source.limits
        if own is None:
            return declared
        if own.max_rows is not None:
            return ContributionLimits(max_rows=own.max_rows)
        groups = own.max_groups or declared.max_groups or declared.max_rows
        rows = own.max_rows_per_group or declared.max_rows_per_group or declared.max_rows
        return ContributionLimits(max_groups=groups, max_rows_per_group=rows)

    def _cap_groups(self, domain: Sequence[object] | None, limits: ContributionLimits) -> int | None:
        """The cap on groups per unit, or None where there cannot be more groups than that anyway.

        Keys that are declared constant per unit need one group only; the cap of 1 is still enforced, not believed.
        """
        if not self._keys:
            return None
        cap = limits.max_groups
        if all(facts_of(key, self.source).constant for key in self._keys):
            cap = 1
        if cap is None:
            raise Unbounded(
                "The codebook does not say in how many groups one unit may count. Add max_groups, or max_rows. "
                "Nothing was charged."
            )
        return None if domain is not None and len(domain) <= cap else cap

    # Keys

    def _find_domain(self) -> tuple[tuple[Value, ...], ...] | None:
        """All public groups: the combinations of the keys' values, where every key has public ones."""
        if not self._keys:
            return ((),)
        for key in self._keys:
            self._check_key(key, facts_of(key, self.source))
        domains = [facts_of(key, self.source).keys for key in self._keys]
        size = 1
        for values in domains:
            if values is None:
                self._check_private()
                return None
            size *= len(values)
        if size > MAX_KEYS:
            raise UsageError(
                f"These keys have {size:,} combinations; at most {MAX_KEYS:,} can be shown. Nothing was charged."
            )
        if self.question.min_units is not None:
            raise UsageError(
                "These groups are public and always shown, so a least number of units cannot hide any. "
                "Use HAVING on a count. Nothing was charged."
            )
        return tuple(dict.fromkeys(product(*(values or () for values in domains))))  # a group twice is paid for once

    def _check_private(self) -> None:
        """Keys from the data are chosen by units, so there must be units to choose by."""
        if self.source.owner is Owner.MIXED:
            raise UnitLost(
                "This join does not keep units together, so its groups cannot be chosen by units. Group by columns "
                "whose keys the codebook lists. Nothing was charged."
            )

    def _check_key(self, key: Expression, facts: ColumnFacts) -> None:
        if key in self.source.units:
            raise UsageError(
                f"Groups by {str(key)!r} would be single units. Group by a property of them. Nothing was charged."
            )
        if key.type is Type.REAL and facts.keys is None:
            raise UsageError(
                f"Groups by the real number {key} would be single rows. Use bin(x, width). Nothing was charged."
            )

    # Statistics

    def _make_recipe(self, aggregate: Aggregate) -> AggregateRecipe:
        """What is measured for an aggregate, as its row in the table of statistics says."""
        basis = STATISTICS[aggregate.statistic].basis
        match basis:
            case CountBasis():
                measure = self._measure_counted(aggregate, basis.counted)
                return AggregateRecipe(aggregate.statistic, count=self._add_measure(measure))
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
                return self._measure_units(aggregate.argument)
            case Counted.DISTINCT:
                if aggregate.argument is None:
                    raise InternalError("Distinct values of nothing.")
                return Measure(counts=Counts.DISTINCT, argument=aggregate.argument)
            case _:
                assert_never(counted)

    def _plan_choice(self, aggregate: Aggregate, cells: Cells) -> AggregateRecipe:
        match cells:
            case Cells.RANKS:
                return self._plan_quantile(aggregate)
            case Cells.KEYS:
                return self._plan_mode(aggregate)
            case _:
                assert_never(cells)

    def _measure_units(self, argument: Expression | None = None) -> Measure:
        """Units with a row in the group. Where a row is its own unit, rows."""
        if self.source.owner is Owner.MIXED:
            raise UnitLost(
                "This join does not keep units together, so they cannot be counted. Count rows, or join on the unit. "
                "Nothing was charged."
            )
        if self.source.unit is None:
            return Measure(counts=Counts.ROWS) if argument is None else self._measure_values(argument)
        if argument is not None and not facts_of(argument, self.source).nullable:
            argument = None
        return Measure(counts=Counts.UNITS, argument=argument)

    def _measure_count(self, aggregate: Aggregate) -> Measure:
        measure = (
            Measure(counts=Counts.ROWS) if aggregate.argument is None else self._measure_values(aggregate.argument)
        )
        if aggregate.bounds is None:
            return measure
        low, high = aggregate.bounds
        return replace(measure, partial=_check_order(ceil(low), floor(high)))

    def _measure_values(self, argument: Expression) -> Measure:
        """Values that are not NULL; rows, where the codebook says that there are no NULLs."""
        if not facts_of(argument, self.source).nullable:
            return Measure(counts=Counts.ROWS)
        return Measure(counts=Counts.VALUES, argument=argument)

    def _plan_moments(self, aggregate: Aggregate, *, with_count: bool, with_squares: bool = False) -> AggregateRecipe:
        """Sums and what needs them. A sum uses the centred steps of a mean where one is asked for anyway."""
        argument, facts = self._check_number(aggregate.statistic, aggregate.argument)
        _check_size(argument, facts.low, facts.high)
        same = [a.statistic for a in self.question.aggregates if a.argument == argument and a.bounds is None]
        bases = [STATISTICS[statistic].basis for statistic in same]
        squared = any(isinstance(basis, SecondMomentBasis) for basis in bases)
        centred = squared or any(isinstance(basis, FirstMomentBasis) for basis in bases)
        steps = _make_steps(argument, facts, centred=centred, squared=squared)
        counted = with_count or steps.origin != 0
        count = self._add_measure(self._measure_values(argument)) if counted else None
        position = self._add_measure(steps)
        squares = self._add_measure(replace(steps, counts=Counts.SQUARES)) if with_squares else None
        return AggregateRecipe(
            aggregate.statistic, count, position, squares, steps.origin, steps.resolution, facts.low, facts.high
        )

    def _plan_bounded_sum(self, aggregate: Aggregate, bounds: tuple[Fraction, Fraction]) -> AggregateRecipe:
        """A sum of which one unit adds to a group something within bounds that the analyst set."""
        argument, low, high = aggregate.argument, *bounds
        if argument is None or not argument.type.is_number:
            raise UsageError("sum needs a number. Use CAST, or count. Nothing was charged.")
        _check_size(argument, low, high)
        whole = argument.type is Type.INTEGER
        step = facts_of(argument, self.source).resolution or (Fraction(1) if whole else None)
        step = include_ends(step, Range(low, high)) or (
            _power_of_two(max(high - low, abs(low), abs(high)) / DEFAULT_STEPS)
        )
        partial = _check_order(floor(low / step), ceil(high / step))
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
        return AggregateRecipe(aggregate.statistic, steps=self._add_measure(measure), resolution=step)

    def _plan_quantile(self, aggregate: Aggregate) -> AggregateRecipe:
        argument, facts = self._check_number(aggregate.statistic, aggregate.argument)
        if aggregate.share is None:
            raise InternalError("A quantile without a share.")
        steps = _make_steps(argument, facts, centred=False, squared=False, most=SPREAD_STEPS)
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
        )

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

    def _check_number(self, statistic: Statistic, argument: Expression | None) -> tuple[Expression, ColumnFacts]:
        """A bounded number, or the reason why it is none."""
        if argument is None or not argument.type.is_number:
            raise UsageError(f"{statistic} needs a number. Use CAST, or count. Nothing was charged.")
        facts = facts_of(argument, self.source)
        if facts.low is None or facts.high is None:
            raise Unbounded(_explain_unbounded(statistic, argument))
        return argument, facts

    def _add_measure(self, measure: Measure) -> int:
        """Where a measure stands in the list; equal measures stand once."""
        return self.measures.setdefault(measure, len(self.measures))


def _check_order(low: int, high: int) -> tuple[int, int]:
    if low > high:
        raise UsageError("The lower bound is above the upper one. Nothing was charged.")
    return low, high


def _check_size(argument: Expression, *ends: Fraction | None) -> None:
    """Refuse bounds whose sums or squares would leave doubles, which would only show when they are computed."""
    if any(abs(end) > LARGEST_BOUND for end in ends if end is not None):
        raise Unbounded(
            f"The bounds of {argument} are beyond all use. Declare narrower ones, or ask for "
            f"clamp({argument}, low, high). Nothing was charged."
        )


def _explain_unbounded(statistic: Statistic, argument: Expression) -> str:
    names = ", ".join(sorted(column.name for column in find_columns(argument)))
    return (
        f"{statistic}({argument}) has no bounds, so one person could move it without limit. "
        f"Declare bounds for {names or 'it'} in the codebook, or ask for clamp({argument}, low, high). "
        "Nothing was charged."
    )


def _make_steps(
    argument: Expression, facts: ColumnFacts, *, centred: bool, squared: bool, most: int | None = None
) -> Measure:
    """The grid that a sum is taken on, in at most so many steps."""
    low, high = facts.low or Fraction(0), facts.high or Fraction(0)
    whole = argument.type is Type.INTEGER
    resolution = facts.resolution or (Fraction(1) if whole else _power_of_two((high - low) / DEFAULT_STEPS))
    if whole:
        resolution = Fraction(max(1, floor(resolution)))
        if ceil(low) <= floor(high):
            low, high = Fraction(ceil(low)), Fraction(floor(high))  # no whole number lies between them and the bounds
    most = SQUARE_STEPS if squared else most
    if most is not None and (high - low) / resolution > most:
        coarse = _power_of_two((high - low) / most)
        resolution = Fraction(max(1, ceil(coarse))) if whole else coarse
    origin = floor((low + high) / 2 / resolution) * resolution if centred else Fraction(0)
    first, last = floor((low - origin) / resolution), ceil((high - origin) / resolution)
    if max(-first, last) > FIXED_LIMIT:
        raise Unbounded(
            f"The bounds of {argument} are too wide for its resolution. Use coarser steps. Nothing was charged."
        )
    return Measure(counts=Counts.STEPS, argument=argument, origin=origin, resolution=resolution, first=first, last=last)


def _power_of_two(size: Fraction) -> Fraction:
    """The largest power of two at or below a size, if that is a step at all; 1 for an empty range."""
    if size <= 0:
        return Fraction(1)
    if size < SMALLEST_STEP:
        return SMALLEST_STEP
    power = Fraction(2) ** (size.numerator.bit_length() - size.denominator.bit_length())
    return power if power <= size else power / 2
