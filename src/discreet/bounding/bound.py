"""From a question to a bounded one: which integers are measured, and how the statistics follow from them.

A statistic is computed from noisy integers: a mean from a sum and a count, a variance from those and a sum of squares.
Equal integers are measured once, however many statistics use them. Sums for means are taken from the middle of the
bounds, which halves what one row can add.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import ceil, floor

from discreet.bounding.contributions import Bounded, Counts, Measure
from discreet.bounding.facts import MAX_KEYS, facts_of
from discreet.errors import Unbounded, UsageError
from discreet.exact import FIXED_LIMIT
from discreet.plan.catalog import Catalog, ColumnFacts, TableFacts
from discreet.plan.expressions import Column, Expression, columns
from discreet.plan.nodes import Aggregate, Question, Statistic
from discreet.plan.types import Type, Value

# Steps between the bounds where the codebook names no resolution: about a millionth of the range.
DEFAULT_STEPS = 1 << 20
# Squares are taken of fewer steps, so that they stay far from the edge of 64 bits.
SQUARE_STEPS = 1 << 15


@dataclass(frozen=True, slots=True)
class Estimate:
    """How one aggregate follows from measures: their positions, and the grid that the sum was taken on.

    ``count``, ``steps`` and ``squares`` are positions among the measures, or None where not needed.
    """

    statistic: Statistic
    count: int | None = None
    steps: int | None = None
    squares: int | None = None
    origin: Fraction = Fraction(0)
    resolution: Fraction = Fraction(1)
    low: Fraction | None = None
    high: Fraction | None = None


@dataclass(frozen=True, slots=True)
class BoundedQuestion:
    """A question, its bounded form, and the way back from integers to statistics, one for each aggregate.

    ``selector`` is the position of the count of units that decides which private keys may be named.
    """

    question: Question
    bounded: Bounded
    estimates: tuple[Estimate, ...]
    selector: int | None = None

    @property
    def measured(self) -> tuple[int, ...]:
        """The positions of the measures that statistics need, each of which gets noise of its own."""
        used = {p for e in self.estimates for p in (e.count, e.steps, e.squares) if p is not None}
        return tuple(sorted(used))


def bound(question: Question, catalog: Catalog) -> BoundedQuestion:
    """The bounded form of a question; refused where a bound or a limit is missing."""
    table = catalog.table(question.table)
    domain = _domain(question.keys, catalog, table)
    if domain is not None and not question.aggregates:
        raise UsageError("This asks for public keys only; add an aggregate such as COUNT(*). Nothing was charged.")
    measures: dict[Measure, int] = {}
    estimates = tuple(_estimate(aggregate, question, catalog, table, measures) for aggregate in question.aggregates)
    selector = None if domain is not None else _position(measures, _units(table))
    limits = table.limits
    unit = table.unit_column
    grouped = unit is not None and limits.max_rows is None
    bounded = Bounded(
        table=table.name,
        conditions=question.conditions,
        keys=question.keys,
        domain=domain,
        unit=unit,
        measures=tuple(measures),
        max_groups=_max_groups(question.keys, domain, table, catalog) if grouped else None,
        max_rows_per_group=limits.max_rows_per_group if grouped else None,
        max_rows=limits.max_rows if unit is not None else None,
    )
    return BoundedQuestion(question, bounded, estimates, selector)


def _max_groups(
    keys: Sequence[Expression], domain: Sequence[object] | None, table: TableFacts, catalog: Catalog
) -> int | None:
    """The cap on groups per unit, or None where there cannot be more groups than that anyway.

    Keys that are declared constant per unit need one group only; the cap of 1 is still enforced, not believed.
    """
    if not keys:
        return None
    cap = table.limits.max_groups
    if all(facts_of(key, catalog).constant for key in keys):
        cap = 1
    if cap is None:
        raise Unbounded(
            f"The codebook gives no max_groups for {table.name!r}. Add it, or max_rows. Nothing was charged."
        )
    return None if domain is not None and len(domain) <= cap else cap


def _domain(keys: Sequence[Expression], catalog: Catalog, table: TableFacts) -> tuple[tuple[Value, ...], ...] | None:
    """All public groups: the combinations of the keys' values, where every key has public ones."""
    if not keys:
        return ((),)
    for key in keys:
        _check_key(key, facts_of(key, catalog), table)
    domains = [facts_of(key, catalog).keys for key in keys]
    size = 1
    for values in domains:
        if values is None:
            return None
        size *= len(values)
    if size > MAX_KEYS:
        raise UsageError(
            f"These keys have {size:,} combinations; at most {MAX_KEYS:,} can be shown. Nothing was charged."
        )
    return tuple(product(*(values or () for values in domains)))


def _check_key(key: Expression, facts: ColumnFacts, table: TableFacts) -> None:
    if isinstance(key, Column) and key == table.unit_column:
        raise UsageError(
            f"Groups by {key.name!r} would be single units. Group by a property of them. Nothing was charged."
        )
    if key.type is Type.REAL and facts.keys is None:
        raise UsageError(
            f"Groups by the real number {key} would be single rows. Use bin(x, width). Nothing was charged."
        )


def _estimate(
    aggregate: Aggregate, question: Question, catalog: Catalog, table: TableFacts, measures: dict[Measure, int]
) -> Estimate:
    match aggregate.statistic:
        case Statistic.COUNT:
            return Estimate(aggregate.statistic, count=_position(measures, _count(aggregate.argument, catalog)))
        case Statistic.COUNT_UNITS:
            return Estimate(aggregate.statistic, count=_position(measures, _units(table)))
        case statistic:
            return _moments(statistic, aggregate.argument, question, catalog, measures)


def _units(table: TableFacts) -> Measure:
    return Measure(counts=Counts.ROWS if table.unit_column is None else Counts.UNITS)


def _count(argument: Expression | None, catalog: Catalog) -> Measure:
    """Rows, or values that are not NULL; the same thing where the codebook says that there are no NULLs."""
    if argument is None or not facts_of(argument, catalog).nullable:
        return Measure(counts=Counts.ROWS)
    return Measure(counts=Counts.VALUES, argument=argument)


def _moments(
    statistic: Statistic,
    argument: Expression | None,
    question: Question,
    catalog: Catalog,
    measures: dict[Measure, int],
) -> Estimate:
    """Sums and what needs them. A sum uses the centred steps of a mean where one is asked for anyway."""
    if argument is None or not argument.type.is_number:
        raise UsageError(f"{statistic} needs a number. Use CAST, or count. Nothing was charged.")
    facts = facts_of(argument, catalog)
    if facts.low is None or facts.high is None:
        raise Unbounded(_unbounded(statistic, argument))
    asked = {a.statistic for a in question.aggregates if a.argument == argument}
    squared = bool(asked & {Statistic.VARIANCE, Statistic.STDDEV})
    centred = squared or Statistic.MEAN in asked
    steps = _steps(argument, facts, centred=centred, squared=squared)
    needs_count = statistic is not Statistic.SUM or steps.origin != 0
    count = _position(measures, _count(argument, catalog)) if needs_count else None
    position = _position(measures, steps)
    squares = None
    if statistic in (Statistic.VARIANCE, Statistic.STDDEV):
        squares = _position(measures, _squares(steps))
    return Estimate(statistic, count, position, squares, steps.origin, steps.resolution, facts.low, facts.high)


def _unbounded(statistic: Statistic, argument: Expression) -> str:
    names = ", ".join(sorted(column.name for column in columns(argument)))
    return (
        f"{statistic}({argument}) has no bounds, so one person could move it without limit. "
        f"Declare bounds for {names or 'it'} in the codebook, or ask for clamp({argument}, low, high). "
        "Nothing was charged."
    )


def _steps(argument: Expression, facts: ColumnFacts, *, centred: bool, squared: bool) -> Measure:
    """The grid that a sum is taken on."""
    low, high = facts.low or Fraction(0), facts.high or Fraction(0)
    whole = argument.type is Type.INTEGER
    resolution = facts.resolution or (Fraction(1) if whole else _power_of_two((high - low) / DEFAULT_STEPS))
    if whole:
        resolution = Fraction(max(1, floor(resolution)))
    if squared and (high - low) / resolution > SQUARE_STEPS:
        coarse = _power_of_two((high - low) / SQUARE_STEPS)
        resolution = Fraction(max(1, ceil(coarse))) if whole else coarse
    origin = floor((low + high) / 2 / resolution) * resolution if centred else Fraction(0)
    first, last = floor((low - origin) / resolution), ceil((high - origin) / resolution)
    if max(-first, last) > FIXED_LIMIT:
        raise Unbounded(
            f"The bounds of {argument} are too wide for its resolution. Use coarser steps. Nothing was charged."
        )
    return Measure(counts=Counts.STEPS, argument=argument, origin=origin, resolution=resolution, first=first, last=last)


def _squares(steps: Measure) -> Measure:
    return Measure(
        counts=Counts.SQUARES,
        argument=steps.argument,
        origin=steps.origin,
        resolution=steps.resolution,
        first=steps.first,
        last=steps.last,
    )


def _power_of_two(size: Fraction) -> Fraction:
    """The largest power of two at or below a size; 1 for an empty range."""
    if size <= 0:
        return Fraction(1)
    power = Fraction(2) ** (size.numerator.bit_length() - size.denominator.bit_length())
    return power if power <= size else power / 2


def _position(measures: dict[Measure, int], measure: Measure) -> int:
    """Where a measure stands in the list; equal measures stand once."""
    return measures.setdefault(measure, len(measures))
