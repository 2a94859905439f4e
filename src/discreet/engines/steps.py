"""Step 2 of ``contributions.py``: which integers a row yields, and whether their sums can be held. No SQL here."""

from __future__ import annotations

import math
from fractions import Fraction

from discreet.bounding.contributions import BoundedPlan, Counts, Measure, Spread, unit_bits
from discreet.errors import InternalError
from discreet.late_dataclass import dataclass
from discreet.plan.expressions import Expression
from discreet.plan.types import Value

MAX_ROW = 2**79
"""The most that one row may add to a sum."""


@dataclass(frozen=True, slots=True)
class StepGrid:
    """What determines the integer of a row. With ``values`` it is the position among these."""

    argument: Expression
    origin: Fraction
    resolution: Fraction
    first: int
    last: int
    values: tuple[Value, ...] | None = None


def steps_of(what: Measure | Spread) -> StepGrid:
    """The integers that a measure adds up, or that a spread counts."""
    if what.argument is None:
        raise InternalError("This measure has no argument.")
    values = what.values if isinstance(what, Spread) else None
    return StepGrid(what.argument, what.origin, what.resolution, what.first, what.last, values)


def has_steps(measure: Measure) -> bool:
    """Whether a measure looks at the integer of a row, be it only to see whether there is one."""
    if measure.argument is None or measure.counts is Counts.ROWS:
        return False
    return measure.weighed or measure.counts in (Counts.DISTINCT_STEPS, Counts.DISTINCT_SQUARES)


def collect_steps(bounded: BoundedPlan) -> tuple[StepGrid, ...]:
    """One entry for each integer that a row yields, those of spreads first.

    Values that are only counted need an entry where nothing else reads them.
    """
    having = [measure for measure in bounded.measures if has_steps(measure)]
    summed = [*map(steps_of, bounded.spreads), *(steps_of(m) for m in having if m.counts not in _COUNTED)]
    arguments = {steps.argument for steps in summed if steps.values is None}
    counted = {m.argument: steps_of(m) for m in having if m.argument not in arguments}
    return tuple(dict.fromkeys((*summed, *counted.values())))


_COUNTED = (Counts.VALUES, Counts.UNITS)
_SUMMED = (Counts.STEPS, Counts.SQUARES, Counts.DISTINCT_STEPS, Counts.DISTINCT_SQUARES)


def source_of(measure: Measure, steps: tuple[StepGrid, ...]) -> int | None:
    """The entry that a measure reads; None for those that read none. Counting values reads any of their argument."""
    if not has_steps(measure):
        return None
    if measure.counts in _COUNTED:
        return next(i for i, s in enumerate(steps) if s.argument == measure.argument and s.values is None)
    return steps.index(steps_of(measure))


def check(bounded: BoundedPlan) -> None:
    """Refuse a question whose integers could overflow; the planner never makes one."""
    for measure in bounded.measures:
        wide = max(-measure.first, measure.last) >= (2**40 if measure.counts is Counts.WEIGHT else 2**62)
        if wide or max(-measure.row_low, measure.row_high) << bounded.weight_bits >= MAX_ROW:
            raise InternalError("A measure is too wide to be summed without overflow.")
        if measure.counts in _SUMMED:
            _check_grid(measure)
        if measure.partial is not None:
            _check_partial(measure, measure.partial)
        if measure.matched:
            _check_distinct(bounded, measure)
    for spread in bounded.spreads:
        if max(-spread.first, spread.last) >= 2**62 or spread.last < spread.first:
            raise InternalError("A spread has too many cells, or none.")
        if spread.values is None:
            _check_grid(spread)
            if not spread.argument.type.is_number:
                raise InternalError("Only numbers are spread over steps.")


def round_totals(bounded: BoundedPlan, measure: Measure, totals: list[int]) -> list[int]:
    """Step 5: the totals of groups in the units of the answer (``unit_bits``), halves up."""
    if not measure.weighed or unit_bits(bounded, measure) == bounded.weight_bits:
        return totals
    half = 1 << bounded.weight_bits - 1
    return [(total + half) >> bounded.weight_bits for total in totals]


def _check_distinct(bounded: BoundedPlan, measure: Measure) -> None:
    if measure.argument is None:
        raise InternalError("Distinct values of nothing.")
    if bounded.unit is not None and (measure.max_values is None or measure.max_values < 1):
        raise InternalError("Distinct values without a limit.")


def _check_partial(measure: Measure, partial: tuple[int, int]) -> None:
    low, high = partial
    if measure.counts not in (Counts.ROWS, Counts.VALUES, Counts.STEPS) or low > high or max(-low, high) >= 2**62:
        raise InternalError("The bounds of a unit's sum are wrong.")


def _check_grid(what: Measure | Spread) -> None:
    """Doubles must be able to hold origin and resolution."""
    try:
        _, resolution = float(what.origin), float(what.resolution)
    except OverflowError:
        raise InternalError("The grid of a measure is beyond doubles.") from None
    if resolution <= 0 or not math.isfinite(resolution):
        raise InternalError("The grid of a measure is beyond doubles.")
