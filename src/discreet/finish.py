"""From noisy integers to the rows of an answer. Only released numbers are visible here, so all of it is free.

Counts and sums are read off directly, means and variances are computed from them, quantiles and modes from chosen
cells; then come the analyst's own arithmetic, HAVING, ORDER BY, LIMIT, over the rows of all groupings.

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
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cmp_to_key
from typing import Any, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from discreet.bounding.recipes import AggregateRecipe
from discreet.entropy import SYSTEM, EntropySource
from discreet.errors import InternalError
from discreet.exact import Floats, float_down, float_up
from discreet.late_dataclass import dataclass
from discreet.plan.evaluate import RowValues, evaluate
from discreet.plan.expressions import Expression, ReleasedValue, walk
from discreet.plan.nodes import Order, Question
from discreet.plan.statistics.definitions import (
    ChoiceBasis,
    CountBasis,
    FirstMomentBasis,
    SecondMomentBasis,
    SumBasis,
)
from discreet.plan.statistics.formulas import FirstMoments, SecondMoments
from discreet.plan.statistics.limits import EVERYTHING, NumberLimits, find_limits
from discreet.plan.statistics.table import STATISTICS
from discreet.plan.types import INTEGER_MAX, INTEGER_MIN, Type, Value
from discreet.release import NoisyGroups, Plan, Release

# Simulated truths for each group: as many as fit the work that one answer may be, within these limits.
_DRAWS = (100, 1000)
_WORK = 200_000
# A level needs draws beyond its ends, at least this many; where that is too much work, the ends are not claimed.
_BEYOND = 2
_MOST_WORK = 2_000_000
# Of so many groups, means and variances are simulated together, in pieces of so many draws.
_MANY_GROUPS, _PIECE = 200, 1 << 18


@dataclass(frozen=True, slots=True)
class Cell:
    """One value of the answer with the interval of its noise; both ends None where there is no number."""

    value: Value
    low: Value = None
    high: Value = None


@dataclass(frozen=True, slots=True)
class Rows:
    """The answer before it is dressed: names, types, which columns have intervals, and the rows."""

    names: tuple[str, ...]
    types: tuple[Type, ...]
    measured: tuple[bool, ...]
    rows: tuple[tuple[Cell, ...], ...]


def finish(plan: Plan, drawn: Sequence[NoisyGroups], *, source: EntropySource = SYSTEM) -> Rows:
    """The rows that the question asked for, from what was drawn for each of its groupings."""
    question = plan.question
    parts = [_compute_groups(release, noisy) for release, noisy in zip(plan.releases, drawn)]
    places = [(part, group) for part, rows in enumerate(parts) for group in range(len(rows))]
    released = [parts[part][group] for part, group in places]
    chosen = _select_groups(question, released)
    outputs = [output.expression for output in question.outputs]
    intervals = [
        _make_intervals(release, noisy, rows, [places[i][1] for i in chosen if places[i][0] == part], source)
        for part, (release, noisy, rows) in enumerate(zip(plan.releases, drawn, parts))
    ]
    rows = tuple(
        tuple(
            Cell(evaluate(e, released[i]), *intervals[places[i][0]](column, places[i][1]))
            for column, e in enumerate(outputs)
        )
        for i in chosen
    )
    names = tuple(output.name for output in question.outputs)
    return Rows(names, tuple(e.type for e in outputs), find_measured(plan), rows)


def find_measured(plan: Plan) -> tuple[bool, ...]:
    """Which outputs will have intervals."""
    question, first = plan.question, plan.releases[0]
    outputs = [output.expression for output in question.outputs]
    return tuple(_is_measured(e, question) or _find_ended(first, e) is not None for e in outputs)


def list_columns(names: Sequence[str], types: Sequence[Type], measured: Sequence[bool]) -> list[tuple[str, Type]]:
    """The columns of the table of an answer: each output, and beside it the ends of its interval.

    >>> [name for name, _ in list_columns(["ward", "n"], [Type.TEXT, Type.INTEGER], [False, True])]
    ['ward', 'n', 'n_low', 'n_high']
    """
    return [
        (name + end, kind)
        for name, kind, has_ends in zip(names, types, measured)
        for end in (("", "_low", "_high") if has_ends else ("",))
    ]


def _is_measured(expression: Expression, question: Question) -> bool:
    """Whether noise went into a number, and nothing that was chosen."""
    parts = [part.index - len(question.keys) for part in walk(expression) if isinstance(part, ReleasedValue)]
    used = [STATISTICS[question.aggregates[index].statistic] for index in parts if index >= 0]
    return expression.type.is_number and bool(used) and not any(definition.is_chosen for definition in used)


def _compute_groups(release: Release, noisy: NoisyGroups) -> list[dict[Any, Value]]:
    """For each group, the value of every key and aggregate that expressions may refer to.

    Keys that this grouping does not group by are NULL.
    """
    bounded, question = release.bounded, release.bounded.question
    columns = [_compute_aggregate(release, noisy, i) for i in range(len(question.aggregates))]
    names = [question.refer_to_key(i) for i in bounded.keys]
    names += [question.refer_to_aggregate(i) for i in range(len(question.aggregates))]
    others: dict[Any, Value] = {
        question.refer_to_key(i): None for i in range(len(question.keys)) if i not in bounded.keys
    }
    others |= question.mark_groupings(bounded.keys)
    return [{**others, **dict(zip(names, (*key, *(c[i] for c in columns))))} for i, key in enumerate(noisy.keys)]


def _compute_aggregate(release: Release, noisy: NoisyGroups, index: int) -> list[Value]:
    """One of the question's aggregates for each group."""
    recipe = release.bounded.estimates[index]
    used = (recipe.count, recipe.steps, recipe.squares)
    steps = {at: release.to_steps(at, drawn) for at, drawn in noisy.measures.items() if at in used}
    return _compute_column(release, recipe, steps, noisy, release.bounded.question.aggregates[index].type)


def _compute_column(
    release: Release, estimate: AggregateRecipe, steps: Mapping[int, Any], noisy: NoisyGroups, kind: Type
) -> list[Value]:
    """One statistic for each group, from the noisy steps of measures or from what was chosen."""
    if estimate.spread is None:
        return compute_statistic(estimate, steps, kind)
    spread = release.bounded.bounded.spreads[estimate.spread]
    chosen = noisy.chosen.get(estimate.spread, ())
    if spread.values is not None:
        return [spread.values[cells[0]] for cells in chosen]
    place = _find_place(release, estimate)
    low, high = estimate.low or Fraction(0), estimate.high or Fraction(0)
    exact = [min(max(spread.origin + spread.resolution * cells[place], low), high) for cells in chosen]
    if estimate.times is not None:
        return [estimate.times.at(round(value)) for value in exact]
    whole = spread.argument.type is Type.INTEGER
    return [round(value) if whole else float(value) for value in exact]


def compute_statistic(estimate: AggregateRecipe, measures: Any, kind: Type = Type.REAL) -> list[Value]:
    """One statistic for each group, from noisy steps; None where a noisy count leaves nothing to divide by.

    Counts and whole sums are rounded to whole numbers here, after the noise, where they were not before it.
    """
    basis = STATISTICS[estimate.statistic].basis
    match basis:
        case CountBasis():
            return [_round_half_up(count) for count in _take(measures, estimate.count).tolist()]
        case SumBasis() if kind is Type.INTEGER:
            steps = _take(measures, estimate.steps).tolist()
            counts = [0] * len(steps) if estimate.count is None else measures[estimate.count].tolist()
            return [_add_whole(estimate, *pair) for pair in zip(steps, counts)]
        case SumBasis():
            total = _take_floats(measures, estimate.steps) * float(estimate.resolution)
            if estimate.count is not None:
                total = total + float(estimate.origin) * _take_floats(measures, estimate.count)
            return _to_list(total)
        case FirstMomentBasis() | SecondMomentBasis():
            return _to_list(*_compute_moment(estimate, basis, measures))
        case ChoiceBasis():
            raise InternalError("A chosen value is not computed from noisy integers.")
        case _:
            assert_never(basis)


def _round_half_up(number: float | Fraction) -> int:
    if isinstance(number, int):
        return number
    return math.floor(number + (0.5 if isinstance(number, float) else Fraction(1, 2)))  # the same, and quick for floats


def _add_whole(estimate: AggregateRecipe, steps: float, count: float) -> int:
    """A sum of integers, in integers. Beyond 64 bits it is the last one that has them."""
    return _limit_whole(_round_half_up(Fraction(steps) * estimate.resolution + Fraction(count) * estimate.origin))


def _limit_whole(value: int) -> int:
    return min(max(value, INTEGER_MIN), INTEGER_MAX)


def _compute_moment(
    estimate: AggregateRecipe, basis: FirstMomentBasis | SecondMomentBasis, measures: Any
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """A mean or a variance for each group, and where a count leaves something to divide by."""
    first, known = _make_moments(estimate, measures), _take_floats(measures, estimate.count) >= 1
    if isinstance(basis, FirstMomentBasis):
        return basis.formula(first), known
    return basis.formula(SecondMoments(first=first, squares=_take_floats(measures, estimate.squares))), known


def _make_moments(estimate: AggregateRecipe, measures: Any) -> FirstMoments:
    counts = _take_floats(measures, estimate.count)
    return FirstMoments(
        count=np.where(counts >= 1, counts, 1.0),
        steps=_take_floats(measures, estimate.steps),
        origin=float(estimate.origin),
        size=float(estimate.resolution),
        low=float(estimate.low or 0),
        high=float(estimate.high or 0),
    )


def _take(measures: Any, position: int | None) -> Any:
    """The noisy integers of one measure, which must be there."""
    if position is None:
        raise InternalError("A statistic lacks a measure that it needs.")
    return measures[position]


def _take_floats(measures: Any, position: int | None) -> Floats:
    return np.asarray(_take(measures, position), dtype=np.float64)


def _to_list(values: Floats, known: npt.NDArray[np.bool_] | None = None) -> list[Value]:
    if known is None:
        return list(values.tolist())
    return [value if there else None for value, there in zip(values.tolist(), known.tolist())]


def _select_groups(question: Question, released: Sequence[RowValues]) -> list[int]:
    """Which groups are shown, in which order: HAVING, ORDER BY, OFFSET and LIMIT over released numbers."""
    kept = list(range(len(released)))
    if question.having is not None:
        kept = [i for i in kept if evaluate(question.having, released[i]) is True]
    if question.order:

        def compare(a: int, b: int) -> int:
            return _compare(question.order, released[a], released[b])

        kept.sort(key=cmp_to_key(compare))
    end = None if question.limit is None else question.offset + question.limit
    return kept[question.offset : end]


def _compare(order: Iterable[Order], a: RowValues, b: RowValues) -> int:
    for criterion in order:
        left: Any = evaluate(criterion.expression, a)
        right: Any = evaluate(criterion.expression, b)
        if left is None or right is None:
            if (left is None) != (right is None):
                return (1 if left is None else -1) * (-1 if criterion.nulls_first else 1)  # whichever the direction
        elif left != right:
            return (1 if left > right else -1) * (-1 if criterion.descending else 1)
    return 0


Ends: TypeAlias = Callable[[int, int], tuple[Value, Value]]


def _make_intervals(
    release: Release, noisy: NoisyGroups, released: Sequence[RowValues], chosen: Sequence[int], source: EntropySource
) -> Ends:
    """A function from (column, group) to the ends of its interval."""
    question = release.bounded.question
    outputs = [output.expression for output in question.outputs]
    named = {column for column, e in enumerate(outputs) if _is_named_count(release, e)}
    found = ((c, _find_exact_error(release, e)) for c, e in enumerate(outputs) if c not in named)
    exact = {column: error for column, error in found if error is not None}
    ended = {column: recipe for column, e in enumerate(outputs) if (recipe := _find_ended(release, e)) is not None}
    known = {*named, *exact, *ended}
    simulated = [c for c, e in enumerate(outputs) if c not in known and _is_measured(e, question)]
    ends = _simulate(release, noisy, chosen, simulated, source) if simulated and chosen else {}

    def interval(column: int, group: int) -> tuple[Value, Value]:
        value: Any
        if column in named and release.named_count is not None:
            value = evaluate(outputs[column], released[group])
            return release.named_count.find_ends(value, release.level)
        if column in ended:
            return _read_ends(release, ended[column], noisy, group)
        if column in exact:
            value = evaluate(outputs[column], released[group])
            low, high = value - exact[column], value + exact[column]
            return (_limit_whole(low), _limit_whole(high)) if isinstance(value, int) else (low, high)
        return ends.get((column, group), (None, None))

    return interval


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
    spread, place = release.bounded.bounded.spreads[recipe.spread], _find_place(release, recipe)
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


def _find_place(release: Release, recipe: AggregateRecipe) -> int:
    """Which of the quantiles of its spread a recipe is."""
    if recipe.spread is None:
        raise InternalError("A quantile without a spread.")
    return release.bounded.shares_of(recipe.spread).index(recipe.share or Fraction(0))


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
    release: Release, noisy: NoisyGroups, chosen: Sequence[int], columns: Sequence[int], source: EntropySource
) -> dict[tuple[int, int], tuple[Value, Value]]:
    """The middle share of what a column would be for truths that the noise could have come from."""
    least, most = _DRAWS
    tail = float((1 - release.level) / 2)
    needed = math.ceil(_BEYOND / tail)
    if needed > least and needed * len(chosen) > _MOST_WORK:
        return {}
    draws = max(least, needed, min(most, _WORK // len(chosen)))
    outputs, limits = release.bounded.question.outputs, _limit_statistics(release)
    ends: dict[tuple[int, int], tuple[Value, Value]] = {}
    if len(chosen) >= _MANY_GROUPS:
        together = [c for c in columns if _find_moment(release, outputs[c].expression) is not None]
        ends |= _simulate_together(release, noisy, chosen, together, draws=draws, source=source)
        columns = [c for c in columns if c not in together]
    for group in chosen if columns else ():
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
            ends[column, group] = _middle_of(_list_limits(release, simulated, outputs[column].expression, limits), tail)
    return ends


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
    chosen: Sequence[int],
    columns: Sequence[int],
    *,
    draws: int,
    source: EntropySource,
) -> dict[tuple[int, int], tuple[Value, Value]]:
    """The same for means and variances of many groups, some groups at a time."""
    outputs, ends = release.bounded.question.outputs, dict[tuple[int, int], tuple[Value, Value]]()
    some = max(1, _PIECE // draws)
    for first in range(0, len(chosen), some) if columns else ():
        groups = chosen[first : first + some]
        truths = _draw_truths(release, noisy, groups, draws, source)
        for column in columns:
            lows, highs = _simulate_moment(release, outputs[column].expression, truths)
            ends |= {(column, group): pair for group, pair in zip(groups, zip(lows, highs))}
    return ends


def _draw_truths(
    release: Release, noisy: NoisyGroups, groups: Sequence[int], draws: int, source: EntropySource
) -> dict[int, Floats]:
    """Truths that the noise of some groups could have come from, by measure: a row of draws for each group."""
    seen = {at: np.array([float(values[group]) for group in groups]) for at, values in noisy.measures.items()}
    noise = release.draw_noise(len(groups) * draws, source)
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
    values, known = _compute_moment(recipe, basis, steps)
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
        values: Any = _compute_aggregate(release, simulated, expression.index - len(release.bounded.question.keys))
        return [unknown if value is None else (value, value) for value in values]
    return [find_limits(expression, row, limits) for row in _compute_groups(release, simulated)]


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
