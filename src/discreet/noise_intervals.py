"""Intervals of the noise in an answer, from released numbers and public laws alone.

Intervals cover the noise (not the sampling of people): exact where a column is a count or a sum, and otherwise by
simulating the known noise: values that could have been the truth are the released ones minus fresh noise of the same
law, and the interval holds the middle share of what they give. A truth that leaves nothing to divide by lies anywhere
within the limits of its statistic, so the intervals of small groups reach to the bounds and cover more than they say.
The interval of a count that named its key holds given that it did (``mechanisms.named_count``). A level so high that it
would take too many simulated truths leaves the ends unknown. What was chosen rather than measured (quantiles, modes)
has no interval of its own: how far off it is depends on the data around it; the preview tells its error in ranks. The
ends of quantiles are chosen, too, where they were asked for (``mechanisms.quantiles.ends``).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from discreet.bounding.recipes import AggregateRecipe
from discreet.entropy import EntropySource
from discreet.errors import InternalError
from discreet.exact import Floats, float_down, float_up
from discreet.plan.expressions import Expression, ReleasedValue, walk
from discreet.plan.nodes import Question
from discreet.plan.statistics.definitions import FirstMomentBasis, SecondMomentBasis
from discreet.plan.statistics.limits import EVERYTHING, NumberLimits, find_limits
from discreet.plan.statistics.table import STATISTICS
from discreet.plan.types import Type, Value
from discreet.release import NoisyGroups, Plan, Release
from discreet.released_columns import (
    ReleasedColumns,
    compute_aggregate,
    compute_columns,
    compute_moment,
    evaluate_column,
    find_place,
    list_rows,
    shift_column,
)

# Simulated truths for each group: as many as fit the work that one answer may be, within these limits.
_DRAWS = (100, 1000)
_WORK = 200_000
# A level needs draws beyond its ends, at least this many; where that is too much work, the ends are not claimed.
_BEYOND = 2
_MOST_WORK = 2_000_000
# Other expressions are simulated row by row: so many at most, and beyond it their ends are not claimed.
_MOST_APART = 10_000_000
# From so many groups on, means and variances by themselves are simulated together, in pieces of so many draws.
_MANY_GROUPS, _PIECE = 1, 1 << 18

IntervalEnds: TypeAlias = tuple[Sequence[Value], Sequence[Value]]
"""The lower and the upper ends of one column, for each group that is shown."""


def find_measured(plan: Plan) -> tuple[bool, ...]:
    """Which outputs will have intervals."""
    question, first = plan.question, plan.releases[0]
    outputs = [output.expression for output in question.outputs]
    return tuple(_is_measured(e, question) or _find_ended(first, e) is not None for e in outputs)


def _is_measured(expression: Expression, question: Question) -> bool:
    """Whether noise went into a number, and nothing that was chosen."""
    parts = [part.index - len(question.keys) for part in walk(expression) if isinstance(part, ReleasedValue)]
    used = [STATISTICS[question.aggregates[index].statistic] for index in parts if index >= 0]
    return expression.type.is_number and bool(used) and not any(definition.is_chosen for definition in used)


def find_intervals(
    release: Release, noisy: NoisyGroups, columns: ReleasedColumns, groups: Sequence[int], source: EntropySource
) -> dict[int, IntervalEnds]:
    """The intervals of some groups of one grouping, by the outputs that have any."""
    question, found = release.bounded.question, dict[int, IntervalEnds]()
    simulated = []
    for at, output in enumerate(question.outputs):
        expression, recipe = output.expression, _find_ended(release, output.expression)
        if _is_named_count(release, expression):
            found[at] = _invert_named(release, evaluate_column(expression, columns, groups))
        elif recipe is not None:
            pairs = [_read_ends(release, recipe, noisy, group) for group in groups]
            found[at] = [low for low, _ in pairs], [high for _, high in pairs]
        elif (error := _find_exact_error(release, expression)) is not None:
            found[at] = shift_column(evaluate_column(expression, columns, groups), error)
        elif _is_measured(expression, question):
            simulated.append(at)
    return found | (_simulate(release, noisy, groups, simulated, source) if simulated and groups else {})


def _invert_named(release: Release, counts: Sequence[Any]) -> IntervalEnds:
    """The intervals of counts that named their keys; equal counts have equal ones."""
    named = release.named_count
    if named is None:
        raise InternalError("No count names the keys here.")
    ends = {count: named.find_ends(count, release.level) for count in set(counts)}
    return [ends[count][0] for count in counts], [ends[count][1] for count in counts]


def _is_named_count(release: Release, expression: Expression) -> bool:
    """Whether a column is the count that names the keys. Its interval holds given that the key was named."""
    question = release.bounded.question
    if not isinstance(expression, ReleasedValue) or expression.index < len(question.keys):
        return False
    estimate = release.bounded.estimates[expression.index - len(question.keys)]
    return estimate.steps is None and estimate.count is not None and estimate.count == release.counted


def _find_ended(release: Release, expression: Expression) -> AggregateRecipe | None:
    """The recipe of a column that is a quantile whose ends were chosen; None for other columns."""
    question = release.bounded.question
    if not isinstance(expression, ReleasedValue) or expression.index < len(question.keys):
        return None
    recipe = release.bounded.estimates[expression.index - len(question.keys)]
    return recipe if recipe.spread in release.ends else None


def _read_ends(release: Release, recipe: AggregateRecipe, noisy: NoisyGroups, group: int) -> tuple[Value, Value]:
    """The values at both ends of a quantile. A cell holds the values that are rounded to it, half a step around."""
    if recipe.spread is None:
        raise InternalError("Ends of nothing that was chosen.")
    spread, place = release.bounded.bounded.spreads[recipe.spread], find_place(release, recipe)
    cells = noisy.ends[recipe.spread][group][2 * place : 2 * place + 2]
    half = spread.resolution / 2
    least, most = recipe.low or Fraction(0), recipe.high or Fraction(0)
    low, high = (
        min(max(spread.origin + spread.resolution * cell + shift, least), most)
        for cell, shift in zip(cells, (-half, half), strict=True)
    )
    if recipe.times is not None:
        return recipe.times.at(math.ceil(low)), recipe.times.end_of(math.floor(high))
    if spread.argument.type is Type.INTEGER:
        return math.ceil(low), math.floor(high)
    return float_down(low), float_up(high)


def _find_exact_error(release: Release, expression: Expression) -> float | int | None:
    """The error of a column that is a count or a sum, from the law of its noise."""
    question = release.bounded.question
    if not isinstance(expression, ReleasedValue) or expression.index < len(question.keys):
        return None
    estimate = release.bounded.estimates[expression.index - len(question.keys)]
    if estimate.spread is not None:
        return None
    error = release.error(estimate)
    return math.ceil(error) if error is not None and expression.type is Type.INTEGER else error


def _simulate(
    release: Release, noisy: NoisyGroups, groups: Sequence[int], columns: Sequence[int], source: EntropySource
) -> dict[int, IntervalEnds]:
    """The middle share of what a column would be for truths that the noise could have come from."""
    least, most = _DRAWS
    needed = math.ceil(_BEYOND / float((1 - release.level) / 2))
    if needed > least and needed * len(groups) > _MOST_WORK:
        return {}
    draws = max(least, needed, min(most, _WORK // len(groups)))
    outputs, found = release.bounded.question.outputs, dict[int, IntervalEnds]()
    if len(groups) >= _MANY_GROUPS:
        together = [c for c in columns if _find_moment(release, outputs[c].expression) is not None]
        found |= _simulate_together(release, noisy, groups, together, draws=draws, source=source)
        columns = [c for c in columns if c not in together]
    if draws * len(groups) > _MOST_APART:
        return found
    return found | _simulate_apart(release, noisy, groups, columns, draws=draws, source=source)


def _simulate_apart(
    release: Release,
    noisy: NoisyGroups,
    groups: Sequence[int],
    columns: Sequence[int],
    *,
    draws: int,
    source: EntropySource,
) -> dict[int, IntervalEnds]:
    """Group by group, for any expression."""
    outputs, limits = release.bounded.question.outputs, _limit_statistics(release)
    tail, ends = float((1 - release.level) / 2), {column: list[tuple[Value, Value]]() for column in columns}
    for group in groups if columns else ():
        truths = {}
        for position, shift in release.draw_noise(draws, source).items():
            if position == release.counted and release.named_count is not None:
                seen = int(noisy.measures[position][group])
                truths[position] = release.named_count.draw_counts(seen, draws, source=source)
                continue
            truths[position] = int(noisy.measures[position][group]) - shift.astype(object)
        chosen_here = {p: (cells[group],) * draws for p, cells in noisy.chosen.items()}
        simulated = NoisyGroups((noisy.keys[group],) * draws, truths, chosen_here)
        for column in columns:
            values = _list_limits(release, simulated, outputs[column].expression, limits)
            ends[column].append(_middle_of(values, tail))
    return {column: ([low for low, _ in pairs], [high for _, high in pairs]) for column, pairs in ends.items()}


def _find_moment(
    release: Release, expression: Expression
) -> tuple[AggregateRecipe, FirstMomentBasis | SecondMomentBasis] | None:
    """The recipe of a column that is a mean or a variance by itself, whose count does not name the keys."""
    keys = len(release.bounded.question.keys)
    if not isinstance(expression, ReleasedValue) or expression.index < keys:
        return None
    recipe = release.bounded.estimates[expression.index - keys]
    basis = STATISTICS[recipe.statistic].basis
    if not isinstance(basis, FirstMomentBasis | SecondMomentBasis):
        return None
    return None if recipe.count == release.counted and release.named_count is not None else (recipe, basis)


def _simulate_together(
    release: Release,
    noisy: NoisyGroups,
    groups: Sequence[int],
    columns: Sequence[int],
    *,
    draws: int,
    source: EntropySource,
) -> dict[int, IntervalEnds]:
    """The same for means and variances of many groups, some groups at a time."""
    outputs = release.bounded.question.outputs
    ends: dict[int, tuple[list[Value], list[Value]]] = {column: ([], []) for column in columns}
    some, read = max(1, _PIECE // draws), _list_read(release, columns)
    for first in range(0, len(groups), some) if columns else ():
        truths = _draw_truths(release, noisy, groups[first : first + some], read, draws=draws, source=source)
        for column in columns:
            for known, more in zip(ends[column], _simulate_moment(release, outputs[column].expression, truths)):
                known.extend(more)
    return dict(ends)


def _list_read(release: Release, columns: Sequence[int]) -> frozenset[int]:
    """The measures that means and variances are computed from."""
    outputs = release.bounded.question.outputs
    found = [_find_moment(release, outputs[column].expression) for column in columns]
    recipes = [moment[0] for moment in found if moment is not None]
    return frozenset(p for recipe in recipes for p in (recipe.count, recipe.steps, recipe.squares) if p is not None)


def _draw_truths(
    release: Release,
    noisy: NoisyGroups,
    groups: Sequence[int],
    read: Collection[int],
    *,
    draws: int,
    source: EntropySource,
) -> dict[int, Floats]:
    """Truths that the noise of some groups could have come from, by measure: a row of draws for each group."""
    noise = release.draw_noise(len(groups) * draws, source, read)
    seen = {at: np.asarray(noisy.measures[at])[groups].astype(np.float64) for at in noise}
    return {at: seen[at][:, None] - drawn.astype(np.float64).reshape(len(groups), draws) for at, drawn in noise.items()}


def _simulate_moment(
    release: Release, expression: Expression, truths: Mapping[int, Floats]
) -> tuple[list[Value], list[Value]]:
    """Both ends of a mean or a variance, for each group."""
    found = _find_moment(release, expression)
    if found is None:
        raise InternalError("Only means and variances are simulated together.")
    recipe, basis = found
    steps = {at: release.to_steps(at, values) for at, values in truths.items()}
    values, known = compute_moment(recipe, basis, steps)
    unknown, draws = _limit_statistics(release)[expression], values.shape[1]
    cut = math.floor(float((1 - release.level) / 2) * draws)
    lows = np.partition(np.where(known, values, unknown[0]), cut, axis=1)[:, cut]
    highs = np.partition(np.where(known, values, unknown[1]), draws - 1 - cut, axis=1)[:, draws - 1 - cut]
    return _list_ends(lows), _list_ends(highs)


def _list_ends(ends: Floats) -> list[Value]:
    return [None if math.isinf(end) else end for end in ends.tolist()]


def _list_limits(
    release: Release, simulated: NoisyGroups, expression: Expression, limits: Mapping[Expression, NumberLimits]
) -> list[NumberLimits]:
    """Where a column lies for each of the truths."""
    if isinstance(expression, ReleasedValue):  # an aggregate by itself, which needs no rows to evaluate it in
        unknown = limits.get(expression, EVERYTHING)
        values: Any = compute_aggregate(release, simulated, expression.index - len(release.bounded.question.keys))
        return [unknown if value is None else (value, value) for value in values]
    return [find_limits(expression, row, limits) for row in list_rows(expression, compute_columns(release, simulated))]


def _limit_statistics(release: Release) -> dict[Expression, NumberLimits]:
    """Where each mean or variance lies, from the bounds of its values, for truths that leave nothing to divide by."""
    question, found = release.bounded.question, dict[Expression, NumberLimits]()
    for index, estimate in enumerate(release.bounded.estimates):
        basis = STATISTICS[estimate.statistic].basis
        if isinstance(basis, FirstMomentBasis | SecondMomentBasis):
            bounds = float(estimate.low or 0), float(estimate.high or 0)
            found[question.refer_to_aggregate(index)] = basis.limits(*bounds)
    return found


def _middle_of(values: Sequence[NumberLimits], tail: float) -> tuple[Value, Value]:
    """The two quantiles of numbers that lie within limits; an end is None where nothing limits it."""
    cut = math.floor(tail * len(values))
    low, high = sorted(low for low, _ in values)[cut], sorted(high for _, high in values)[len(values) - 1 - cut]
    return None if math.isinf(low) else low, None if math.isinf(high) else high
