"""The keys and aggregates of an answer as columns, from noisy integers and chosen cells. Nothing private is in reach.

Counts and sums are read off directly, means and variances are computed from them, quantiles and modes from chosen
cells. The analyst's own arithmetic is computed over these columns row by row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from discreet.bounding.recipes import AggregateRecipe
from discreet.errors import InternalError
from discreet.exact import Floats
from discreet.plan.evaluate import RowValues, evaluate
from discreet.plan.expressions import Expression, ReleasedValue, walk
from discreet.plan.statistics.definitions import (
    ChoiceBasis,
    CountBasis,
    FirstMomentBasis,
    SecondMomentBasis,
    SumBasis,
)
from discreet.plan.statistics.formulas import FirstMoments, SecondMoments
from discreet.plan.statistics.table import STATISTICS
from discreet.plan.types import INTEGER_MAX, INTEGER_MIN, Type, Value
from discreet.release import NoisyGroups, Release

ReleasedColumns: TypeAlias = Mapping[ReleasedValue, Sequence[Value]]
"""What expressions may refer to, each with a value for every group."""

# Integers below this in size stay within 64 bits when one as large is added.
_NEAR = 2**62


def compute_columns(release: Release, noisy: NoisyGroups) -> dict[ReleasedValue, Sequence[Value]]:
    """Every key and aggregate of one grouping. Keys that it does not group by are NULL."""
    bounded, question, count = release.bounded, release.bounded.question, len(noisy.keys)
    found: dict[ReleasedValue, Sequence[Value]] = {
        question.refer_to_key(i): [None] * count for i in range(len(question.keys)) if i not in bounded.keys
    }
    found |= {mark: [value] * count for mark, value in question.mark_groupings(bounded.keys).items()}
    keys = list(zip(*noisy.keys)) or [()] * len(bounded.keys)
    found |= {question.refer_to_key(i): values for i, values in zip(bounded.keys, keys)}
    for i in range(len(question.aggregates)):
        found[question.refer_to_aggregate(i)] = compute_aggregate(release, noisy, i)
    return found


def evaluate_column(expression: Expression, columns: ReleasedColumns, groups: Sequence[int]) -> list[Value]:
    """The value of an expression for each of some groups."""
    if isinstance(expression, ReleasedValue):
        column = columns[expression]
        return list(column) if groups == range(len(column)) else [column[group] for group in groups]
    return [evaluate(expression, row) for row in list_rows(expression, columns, groups)]


def list_rows(
    expression: Expression, columns: ReleasedColumns, groups: Sequence[int] | None = None
) -> Iterator[RowValues]:
    """For each group, or for some, what an expression refers to."""
    named = {part: columns[part] for part in walk(expression) if isinstance(part, ReleasedValue)}
    every = range(max(map(len, columns.values()), default=0)) if groups is None else groups
    return ({part: column[group] for part, column in named.items()} for group in every)


def compute_aggregate(release: Release, noisy: NoisyGroups, index: int) -> list[Value]:
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
    place = find_place(release, estimate)
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
            return _round_all(np.asarray(_take(measures, estimate.count)))
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
            return _to_list(*compute_moment(estimate, basis, measures))
        case ChoiceBasis():
            raise InternalError("A chosen value is not computed from noisy integers.")
        case _:
            assert_never(basis)


def _round_all(numbers: npt.NDArray[Any]) -> list[Value]:
    """Whole numbers, halves up."""
    if numbers.dtype == np.int64:
        return list(numbers.tolist())
    if numbers.dtype == np.float64 and _is_near(numbers):
        return list(np.floor(numbers + 0.5).astype(np.int64).tolist())
    return [_round_half_up(number) for number in numbers.tolist()]


def _is_near(numbers: npt.NDArray[Any]) -> bool:
    return not numbers.size or bool(numbers.min() > -_NEAR and numbers.max() < _NEAR)


def _round_half_up(number: float | Fraction) -> int:
    if isinstance(number, int):
        return number
    return math.floor(number + (0.5 if isinstance(number, float) else Fraction(1, 2)))  # the same, and quick for floats


def _add_whole(estimate: AggregateRecipe, steps: float, count: float) -> int:
    """A sum of integers, in integers. Beyond 64 bits it is the last one that has them."""
    if isinstance(steps, int) and isinstance(count, int) and _has_whole_steps(estimate):
        return limit_whole(steps * int(estimate.resolution) + count * int(estimate.origin))
    return limit_whole(_round_half_up(Fraction(steps) * estimate.resolution + Fraction(count) * estimate.origin))


def _has_whole_steps(estimate: AggregateRecipe) -> bool:
    return estimate.resolution.denominator == estimate.origin.denominator == 1


def limit_whole(value: int) -> int:
    """A whole number within 64 bits."""
    return min(max(value, INTEGER_MIN), INTEGER_MAX)


def shift_column(values: Sequence[Any], error: float) -> tuple[list[Value], list[Value]]:
    """Numbers less an error, and plus it: whole numbers within 64 bits, and reals.

    >>> shift_column([3, 2**63 - 1], 2)
    ([1, 9223372036854775805], [5, 9223372036854775807])
    """
    whole = isinstance(error, int) and abs(error) < _NEAR
    array = np.asarray(values) if whole and values else None
    if array is not None and array.dtype == np.int64 and _is_near(array):
        return list((array - error).tolist()), list((array + error).tolist())
    lows, highs = [value - error for value in values], [value + error for value in values]
    return _limit_column(values, lows), _limit_column(values, highs)


def _limit_column(values: Sequence[Any], ends: Sequence[Any]) -> list[Value]:
    """Ends of whole numbers within 64 bits; other ends as they are."""
    return [limit_whole(end) if isinstance(value, int) else end for value, end in zip(values, ends)]


def find_place(release: Release, recipe: AggregateRecipe) -> int:
    """Which of the quantiles of its spread a recipe is."""
    if recipe.spread is None:
        raise InternalError("A quantile without a spread.")
    return release.bounded.shares_of(recipe.spread).index(recipe.share or Fraction(0))


def compute_moment(
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
