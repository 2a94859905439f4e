"""Statistics as columns from noisy integers, whether they are computed together or one by one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discreet.bounding.recipes import AggregateRecipe
from discreet.plan.expressions import ReleasedValue
from discreet.plan.functions import make_call, make_literal
from discreet.plan.statistics.definitions import Statistic
from discreet.plan.types import INTEGER_MAX, INTEGER_MIN, Type
from discreet.released_columns import compute_statistic, evaluate_column, shift_column


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Statistic.SUM, 10 * 4 + 2 * 3.0),
        (Statistic.MEAN, 10 + 2 * 0.75),
        (Statistic.VARIANCE, 4 * (9 / 4 - 0.75**2)),
        (Statistic.STDDEV, 2 * (9 / 4 - 0.75**2) ** 0.5),
    ],
)
def test_statistics_follow_from_integers(kind: Statistic, expected: float) -> None:
    """Four values with three steps in all, of size 2, from 10; nine squared steps."""
    estimate = AggregateRecipe(kind, 0, 1, 2, Fraction(10), Fraction(2), Fraction(0), Fraction(100))
    measures = {0: np.array([4]), 1: np.array([3]), 2: np.array([9])}
    assert compute_statistic(estimate, measures) == pytest.approx([expected])


def test_impossible_values_are_held_to_the_possible() -> None:
    """A noisy mean stays within the bounds, a noisy variance at or above zero, and nothing is divided by nothing."""
    mean = AggregateRecipe(Statistic.MEAN, 0, 1, None, Fraction(50), Fraction(1), Fraction(0), Fraction(100))
    assert compute_statistic(mean, {0: np.array([1, 0, -3]), 1: np.array([999, 5, 5])}) == [100.0, None, None]
    variance = AggregateRecipe(Statistic.VARIANCE, 0, 1, 2, Fraction(50), Fraction(1), Fraction(0), Fraction(100))
    assert compute_statistic(variance, {0: np.array([2]), 1: np.array([9]), 2: np.array([-4])}) == [0.0]


WHOLE = AggregateRecipe(Statistic.SUM, 0, 1, None, Fraction(50), Fraction(1), Fraction(0), Fraction(100))
HALVES = AggregateRecipe(Statistic.SUM, 0, 1, None, Fraction(1, 2), Fraction(1, 2), Fraction(0), Fraction(9))


@pytest.mark.parametrize("recipe", [WHOLE, HALVES])
def test_whole_sums_are_exact_and_within_64_bits(recipe: AggregateRecipe) -> None:
    """Arrays of 64 bits, of any size and of doubles give the sum that fractions give, halves up."""
    counts, steps = [3, -7, 2**61], [5, 2**61, -(2**61)]
    expected = []
    for count, step in zip(counts, steps):
        exact = Fraction(step) * recipe.resolution + Fraction(count) * recipe.origin
        expected.append(min(max((exact + Fraction(1, 2)).__floor__(), INTEGER_MIN), INTEGER_MAX))
    for kind in (np.int64, object):
        measures = {0: np.array(counts, dtype=kind), 1: np.array(steps, dtype=kind)}
        assert compute_statistic(recipe, measures, Type.INTEGER) == expected


def test_counts_are_rounded_halves_up() -> None:
    """Whatever array they come in."""
    recipe = AggregateRecipe(Statistic.COUNT, 0, None, None, Fraction(0), Fraction(1), None, None)
    for numbers in (np.array([1.5, -1.5, 2.49]), np.array([Fraction(3, 2), Fraction(-3, 2), 2.49], dtype=object)):
        assert compute_statistic(recipe, {0: numbers}) == [2, -1, 2]
    assert compute_statistic(recipe, {0: np.array([1e30, 0.5])}) == [int(1e30), 1]
    assert compute_statistic(recipe, {0: np.array([2**70], dtype=object)}) == [2**70]


def test_ends_of_whole_numbers_stay_within_64_bits() -> None:
    """The quick way gives what the slow one gives."""
    assert shift_column([5, -5], 3) == ([2, -8], [8, -2])
    assert shift_column([INTEGER_MAX, INTEGER_MIN], 3) == (
        [INTEGER_MAX - 3, INTEGER_MIN],
        [INTEGER_MAX, INTEGER_MIN + 3],
    )
    assert shift_column([2**70], 3) == ([INTEGER_MAX], [INTEGER_MAX])
    assert shift_column([0.5], 0.25) == ([0.25], [0.75])
    assert shift_column([], 3) == ([], [])


def test_expressions_see_the_groups_that_are_shown() -> None:
    """In the order in which they are shown; a constant has a value for each."""
    n = ReleasedValue(0, "n", Type.INTEGER)
    twice = make_call("add", n, n)
    columns = {n: [1, 2, 3]}
    assert evaluate_column(n, columns, range(3)) == [1, 2, 3] and evaluate_column(n, columns, [2, 0]) == [3, 1]
    assert evaluate_column(twice, columns, [2, 0]) == [6, 2]
    assert evaluate_column(make_literal(7), columns, [2, 0]) == [7, 7]
