"""Step 2 of ``contributions.py`` in DuckDB's SQL: the integers of a row.

An integer is NULL where the row does not count. Rounding is as ``Measure`` says, and the clamp is the very last thing,
so whatever the data holds, an integer lies within its bounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from discreet.bounding.contributions import BoundedPlan, Counts, Measure, Spread
from discreet.engines.sql.layers import Layers, cast
from discreet.errors import InternalError
from discreet.plan.expressions import Expression
from discreet.plan.types import INTEGER_MAX, INTEGER_MIN, Type, Value

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
    return measure.argument is not None and measure.counts not in (Counts.ROWS, Counts.DISTINCT, Counts.WEIGHT)


def collect_steps(bounded: BoundedPlan) -> tuple[StepGrid, ...]:
    """One entry for each integer that a row yields: first those of spreads, because the kernel sorts by the first.

    Values that are only counted need an entry where nothing else reads them.
    """
    having = [measure for measure in bounded.measures if has_steps(measure)]
    summed = [*map(steps_of, bounded.spreads), *(steps_of(m) for m in having if m.counts not in _COUNTED)]
    arguments = {steps.argument for steps in summed if steps.values is None}
    counted = {m.argument: steps_of(m) for m in having if m.argument not in arguments}
    return tuple(dict.fromkeys((*summed, *counted.values())))


_COUNTED = (Counts.VALUES, Counts.UNITS)


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
        if wide or max(-measure.row_low, measure.row_high) >= MAX_ROW:
            raise InternalError("A measure is too wide to be summed without overflow.")
        if measure.counts in (Counts.STEPS, Counts.SQUARES):
            _check_grid(measure)
        if measure.partial is not None:
            _check_partial(measure, measure.partial)
        if measure.counts is Counts.DISTINCT and measure.argument is None:
            raise InternalError("Distinct values of nothing.")
    for spread in bounded.spreads:
        if max(-spread.first, spread.last) >= 2**62 or spread.last < spread.first:
            raise InternalError("A spread has too many cells, or none.")
        if spread.values is None:
            _check_grid(spread)
            if not spread.argument.type.is_number:
                raise InternalError("Only numbers are spread over steps.")


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


def write_integer(steps: StepGrid, number: int, layers: Layers, raw: Mapping[Expression, str]) -> str:
    """The integer of a row. ``number`` names the table of listed values, ``raw`` reals that may not be finite."""
    value = layers.write_value(steps.argument)
    if steps.values is not None:
        return f"listed{number}.cell"
    if not steps.argument.type.is_number:
        return f"CASE WHEN {value} IS NOT NULL THEN 1 END"  # only ever counted
    if steps.argument.type is Type.INTEGER and steps.origin.denominator == steps.resolution.denominator == 1:
        return _write_whole_steps(steps, value)
    value = raw.get(steps.argument, value)
    return _write_real_steps(steps, cast(value, steps.argument.type, Type.REAL), layers)


def _write_real_steps(grid: StepGrid, value: str, layers: Layers) -> str:
    """In doubles. Most values lie within the bounds and leave at the first branch, which makes this fast."""
    first, last = grid.first, grid.last
    moved = f"{value} - {_write_double(float(grid.origin))}" if grid.origin else value
    steps = layers.define(f"floor(({moved}) / {_write_double(float(grid.resolution))} + 0.5::DOUBLE)", grid.argument)
    low, high = _write_double(float(first)), _write_double(float(last))
    clamped = (
        f"CASE WHEN {steps} >= {low} AND {steps} <= {high} THEN TRY_CAST({steps} AS BIGINT) "
        f"WHEN isfinite({value}) IS NOT TRUE THEN NULL "
        f"WHEN {steps} < {low} THEN {_write_whole(first)} ELSE {_write_whole(last)} END"
    )
    if max(-first, last) <= 2**53:
        return clamped  # such bounds are doubles themselves, so the comparisons were exact
    return (
        f"CASE WHEN isfinite({value}) THEN least(greatest({clamped}, {_write_whole(first)}), {_write_whole(last)}) END"
    )


def _write_whole_steps(grid: StepGrid, value: str) -> str:
    """In integers: the value is clamped first, then counted from the lowest step, so that nothing is negative."""
    first, last = grid.first, grid.last
    origin, resolution = int(grid.origin), int(grid.resolution)
    low, high = origin + first * resolution, origin + last * resolution
    clamped = f"least(greatest({value}, {_write_whole(max(low, INTEGER_MIN))}), {_write_whole(min(high, INTEGER_MAX))})"
    if low > INTEGER_MAX or high < INTEGER_MIN:
        raise InternalError("The bounds of a measure lie outside 64 bits.")
    wide = max(abs(low), abs(high), (high - low + resolution) * 2) >= 2**62
    number = f"CAST({clamped} AS HUGEINT)" if wide else clamped
    if resolution == 1:
        steps = f"{number} - ({origin})"
    else:
        steps = f"(({number} - ({low})) * 2 + {resolution}) // {2 * resolution} + ({first})"
    return f"CASE WHEN {value} IS NOT NULL THEN CAST({steps} AS BIGINT) END"


def _write_double(value: float) -> str:
    return f"CAST('{value!r}' AS DOUBLE)"


def _write_whole(value: int) -> str:
    return f"CAST({value} AS BIGINT)"
