"""Step 2 of ``contributions.py`` in SQL: the integers of a row.

An integer is NULL where the row does not count. Rounding is as ``Measure`` says, and the clamp is the very last thing,
so whatever the data holds, an integer lies within its bounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from discreet.engines.sql.dialect import Dialect
from discreet.engines.sql.layers import Layers
from discreet.engines.steps import StepGrid
from discreet.errors import InternalError
from discreet.plan.expressions import Expression
from discreet.plan.types import INTEGER_MAX, INTEGER_MIN, Type

MOST_BOUND = 2**1000
# Sums of whole doubles below it have no error.
EXACT = 2**53
# The largest whole doubles that are brought within bounds by sums of them.
MOST_CLAMPED = 2.0**51


def write_integer(steps: StepGrid, number: int, layers: Layers, raw: Mapping[Expression, str]) -> str:
    """The integer of a row. ``number`` names the table of listed values, ``raw`` reals that may not be finite."""
    value, dialect = layers.write_value(steps.argument), layers.dialect
    if steps.values is not None:
        return f"listed{number}.cell"
    if not steps.argument.type.is_number:
        return f"CASE WHEN {value} IS NOT NULL THEN 1 END"  # only ever counted
    if steps.argument.type is Type.INTEGER and steps.origin.denominator == steps.resolution.denominator == 1:
        return _write_whole_steps(dialect, steps, value)
    return _write_real_steps(steps, _write_real(steps, layers, raw), layers)


def write_whole_real(steps: StepGrid, layers: Layers, raw: Mapping[Expression, str], *, alone: bool) -> str | None:
    """The integer of a row as a double, for an engine that adds these up in less time; None where it may be none.

    Whole doubles are added without error, in any order, as long as all that are added come to less than 2^53 in size
    (``EXACT``). Who sums them has to know that. ``alone``: rows are only added up, by group.
    """
    whole = steps.argument.type is Type.INTEGER and steps.origin.denominator == steps.resolution.denominator == 1
    if steps.values is not None or not steps.argument.type.is_number or whole or not layers.dialect.sums_reals:
        return None
    size = max(-steps.first, steps.last)
    if size >= EXACT:
        return None
    found = _define_steps(steps, _write_real(steps, layers, raw), layers)
    clamp = _clamp_by_sums if alone and size <= MOST_CLAMPED else _clamp_by_choice
    return clamp(steps, found, layers.dialect)


def _clamp_by_choice(grid: StepGrid, steps: str, dialect: Dialect) -> str:
    """Steps within their bounds, and NULL for NaN. It takes the less time the more of them lie within."""
    low, high = (dialect.literal(float(end), Type.REAL) for end in (grid.first, grid.last))
    return f"CASE WHEN {steps} BETWEEN {low} AND {high} THEN {steps} ELSE {_write_far(steps, low, high, dialect)} END"


def _clamp_by_sums(grid: StepGrid, steps: str, dialect: Dialect) -> str:
    """The same, in a time that does not depend on how many lie within: it is less where a sixth of them does not.

    Half of |s − low| − |s − high| + low + high is s within low and high. Engines do sums for many rows at once, and
    choices row by row. Every number in it is whole and at most 2^53 in size, so that none is rounded, if steps and
    bounds are at most ``MOST_CLAMPED``.
    """
    low, high, both, half, most, least = (
        dialect.literal(end, Type.REAL)
        for end in (*map(float, (grid.first, grid.last, grid.first + grid.last)), 0.5, MOST_CLAMPED, -MOST_CLAMPED)
    )
    within = f"(abs({steps} - {low}) - abs({steps} - {high}) + {both}) * {half}"
    far = _write_far(steps, low, high, dialect)
    return f"CASE WHEN {steps} NOT BETWEEN {least} AND {most} THEN {far} ELSE {within} END"


def _write_far(steps: str, low: str, high: str, dialect: Dialect) -> str:
    """The bound that steps beyond them have; NULL for NaN."""
    return f"CASE WHEN {steps} < {low} THEN {low} WHEN NOT {dialect.is_nan(steps)} THEN {high} END"


def _write_real(steps: StepGrid, layers: Layers, raw: Mapping[Expression, str]) -> str:
    """The argument as a double, which may be infinite or NaN where that does not matter."""
    value, dialect = layers.write_value(steps.argument), layers.dialect
    if _is_far_from_largest(steps):
        computed = layers.find_computed(steps.argument) if dialect.leaves_guards_out else None
        value = raw.get(steps.argument, computed or value)
    return dialect.widen(value, steps.argument.type, Type.REAL)


def _define_steps(grid: StepGrid, value: str, layers: Layers) -> str:
    """The name of the step that is nearest to a value, as a double of any size."""
    return layers.define(layers.dialect.steps(value, float(grid.origin), float(grid.resolution)), grid.argument)


def _is_far_from_largest(grid: StepGrid) -> bool:
    """Whether infinities and the largest reals are both beyond the bounds, so that it does not matter which is read.

    NaN counts as NULL here, and −0.0 is in the step of 0.0.
    """
    ends = (grid.origin + step * grid.resolution for step in (grid.first, grid.last))
    return all(abs(end) < MOST_BOUND for end in (*ends, grid.origin))


def _write_real_steps(grid: StepGrid, value: str, layers: Layers) -> str:
    """In doubles. Most values lie within the bounds and are tested first, before steps are, which makes this fast."""
    dialect, (first, last) = layers.dialect, (grid.first, grid.last)
    steps = _define_steps(grid, value, layers)
    low, high = (dialect.literal(float(end), Type.REAL) for end in (first, last))
    least, most = (dialect.literal(end, Type.INTEGER) for end in (first, last))
    ends = _find_ends(grid)
    inside = f"{steps} >= {low} AND {steps} <= {high}"
    outside = f"WHEN {dialect.is_nan(value)} IS NOT FALSE THEN NULL WHEN {steps} < {low} THEN {least} ELSE {most} END"
    whole = dialect.integer_of_whole(steps)
    clamped = f"CASE WHEN {inside} THEN {whole} {outside}"
    if ends is not None:
        below, above = (dialect.literal(end, Type.REAL) for end in ends)
        # NaN is above all numbers here, on every engine.
        clamped = (
            f"CASE WHEN {value} > {above} OR {value} < {below} OR {value} IS NULL "
            f"THEN CASE WHEN {inside} THEN {whole} {outside} ELSE {whole} END"
        )
    if max(-first, last) <= 2**53:
        return clamped  # such bounds are doubles themselves, so the comparisons were exact
    return f"CASE WHEN NOT {dialect.is_nan(value)} THEN least(greatest({clamped}, {least}), {most}) END"


def _find_ends(grid: StepGrid) -> tuple[float, float] | None:
    """Two reals between which every step lies within the bounds; None where rounding leaves it open.

    Why it holds between them: subtracting, dividing, adding and rounding down are monotone in doubles, so the steps of
    what lies between the ends lie between the steps of the ends, which are computed here by the same operations.
    """
    origin, resolution = float(grid.origin), float(grid.resolution)
    ends = origin + grid.first * resolution, origin + grid.last * resolution
    if not all(map(math.isfinite, ends)) or max(-grid.first, grid.last) > 2**53:
        return None
    low, high = (math.floor((end - origin) / resolution + 0.5) for end in ends)
    return ends if grid.first <= low and high <= grid.last else None


def _write_whole_steps(dialect: Dialect, grid: StepGrid, value: str) -> str:
    """In integers: the value is clamped first, then counted from the lowest step, so that nothing is negative."""
    first, last = grid.first, grid.last
    origin, resolution = int(grid.origin), int(grid.resolution)
    low, high = origin + first * resolution, origin + last * resolution
    if low > INTEGER_MAX or high < INTEGER_MIN:
        raise InternalError("The bounds of a measure lie outside 64 bits.")
    least, most = (dialect.literal(min(max(end, INTEGER_MIN), INTEGER_MAX), Type.INTEGER) for end in (low, high))
    clamped = f"least(greatest({value}, {least}), {most})"
    wide = max(abs(low), abs(high), (high - low + resolution) * 2) >= 2**62
    number = dialect.to_wide(clamped) if wide else clamped

    def constant(whole: int) -> str:
        return dialect.wide_literal(whole) if wide else dialect.literal(whole, Type.INTEGER)

    if resolution == 1:
        steps = f"{number} - {constant(origin)}"
    else:
        doubled = f"({number} - {constant(low)}) * 2 + {constant(resolution)}"
        steps = f"{dialect.trunc_divide(doubled, constant(2 * resolution), wide=wide)} + {constant(first)}"
    return f"CASE WHEN {value} IS NOT NULL THEN {dialect.as_integer(steps)} END"
