"""Count, sum, mean and variance: sensitivities by brute force, exact divergence, intervals, bad input."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.entropy import SeededForTestsOnly
from discreet.errors import ParameterError
from discreet.exact import ln
from discreet.mechanisms.bounded_statistic import BoundedStatistic, exact_sum, exact_sum_of_squares
from discreet.mechanisms.count import Count, count_of
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.mean import Mean
from discreet.mechanisms.noise_mechanism import rho_within
from discreet.mechanisms.sum import Sum
from discreet.mechanisms.variance import Variance
from tests.mechanisms.exactly import Untouchable, reached, violated

BOUNDS = [(0, 3), (-2, 1), (-3, -1), (1, 2)]


def neighbours_of(values: list[int], relation: str, grid: range) -> Iterator[list[int]]:
    """All datasets that differ from this one in one row."""
    if relation == "add-remove":
        yield from ([*values, new] for new in grid)
        yield from (values[:i] + values[i + 1 :] for i in range(len(values)))
    else:
        yield from ([*values[:i], new, *values[i + 1 :]] for i in range(len(values)) for new in grid)


def worst_moves(mechanism: BoundedStatistic, sizes: tuple[int, ...], relation: str) -> list[int]:
    """The largest change of each noisy number over all small datasets and all of their neighbours."""
    low, high = mechanism.ends
    grid = range(low, high + 1)
    worst = [0] * len(mechanism.parts)
    for n in sizes:
        for values in product(grid, repeat=n):
            before = mechanism.answers(np.array(values, dtype=np.int64))
            for other in neighbours_of(list(values), relation, grid):
                after = mechanism.answers(np.array(other, dtype=np.int64))
                worst = [max(w, abs(a - b)) for w, a, b in zip(worst, after, before)]
    return worst


def stated(mechanism: BoundedStatistic) -> list[int]:
    """The sensitivity for which each noise was made."""
    return [int(Fraction(part.event.sensitivity)) for part in mechanism.parts if isinstance(part, Laplace)]


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_sum_sensitivity_is_that_of_the_worst_neighbours(bounds: tuple[int, int], relation: str) -> None:
    """max(|l|, |h|) under add-remove, h − l under replace: reached, never exceeded."""
    mechanism = Sum(bounds=bounds, epsilon=1, neighbours=relation)
    assert stated(mechanism) == worst_moves(mechanism, (1, 2), relation)


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_sum_sensitivity_with_several_rows_for_each_unit(bounds: tuple[int, int], rows: int) -> None:
    """Brute force over what a unit of 1 to m rows contributes."""
    grid = range(bounds[0], bounds[1] + 1)
    sums = {sum(values) for m in range(1, rows + 1) for values in product(grid, repeat=m)}
    plain = Sum(bounds=bounds, max_rows=rows, epsilon=1)
    fixed = Sum(bounds=bounds, max_rows=rows, epsilon=1, neighbours="replace")
    assert plain.sensitivity == max(abs(s) for s in sums)
    assert fixed.sensitivity == max(sums) - min(sums)


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("kind", [Mean, Variance])
def test_mean_and_variance_sensitivities(bounds: tuple[int, int], kind: type[Mean] | type[Variance]) -> None:
    """Each noisy number behind a mean or a variance moves at most as stated, under both relations, and that far."""
    plain = kind(bounds=bounds, epsilon=1)
    assert stated(plain) == worst_moves(plain, (2, 3), "add-remove")
    for n in (2, 3):
        fixed = kind(bounds=bounds, epsilon=1, neighbours="replace", size=n)
        assert stated(fixed) == worst_moves(fixed, (n,), "replace")


@pytest.mark.parametrize(
    ("mechanism", "x", "y", "outputs"),
    [
        (Sum(bounds=(0, 3), epsilon=1), [1, 2], [1, 2, 3], [(o,) for o in range(-5, 12)]),
        (Sum(bounds=(0, 3), epsilon=1, neighbours="replace"), [1, 0], [1, 3], [(o,) for o in range(-5, 12)]),
        (Mean(bounds=(0, 4), epsilon=1), [0, 4], [0, 4, 4], list(product(range(-4, 5), range(-1, 5)))),
        (Mean(bounds=(0, 4), epsilon=1, neighbours="replace", size=2), [0, 4], [4, 4], [(o,) for o in range(-4, 13)]),
        (Variance(bounds=(0, 2), epsilon=1), [0], [0, 2], list(product(range(4), range(-2, 3), range(4)))),
        (
            Variance(bounds=(0, 2), epsilon=1, neighbours="replace", size=3),
            [0, 0, 0],
            [0, 0, 2],
            [(o,) for o in range(-3, 14)],
        ),
    ],
    ids=lambda case: type(case).__name__,
)
def test_the_claim_is_exact_and_tight(
    mechanism: BoundedStatistic, x: list[int], y: list[int], outputs: list[Any]
) -> None:
    """The exact divergence on the worst neighbours is ε: not more, not less."""
    assert mechanism.privacy.epsilon() == pytest.approx(1, rel=1e-12)
    assert not violated(mechanism.probability, Fraction(1), x, y, outputs)
    assert reached(mechanism.probability, Fraction(1), x, y, outputs)


def test_wrong_claims_are_caught() -> None:
    """Negative controls: half the noise at the same claim, and noise for add-remove under replace."""
    half = Sum(bounds=(0, 3), epsilon=2)
    assert violated(half.probability, Fraction(1), [1], [1, 3], [(o,) for o in range(8)])
    plain = Sum(bounds=(-3, 3), epsilon=1)
    assert violated(plain.probability, Fraction(1), [-3], [3], [(o,) for o in range(-8, 8)])


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_counts_move_by_the_rows_of_a_unit(relation: str) -> None:
    """The claim for a count is tight at ``max_rows``."""
    count = Count(epsilon=1, max_rows=2, neighbours=relation)
    assert not violated(count.probability, Fraction(1), [True, False], [True, True], range(6))
    assert reached(count.probability, Fraction(1), 3, 5, range(8))
    assert violated(count.probability, Fraction(1), 3, 6, range(8))


def test_rows_are_counted() -> None:
    """Collections by length, bools by truth, numbers as they are."""
    assert count_of([True, False, True]) == count_of(np.array([True, False, True])) == 2
    assert count_of(["a", "b"]) == count_of({1, 2}) == count_of(np.int64(2)) == 2
    assert count_of([False, "x", True, 0]) == count_of(np.array([False, "x", True, 0], dtype=object)) == 3
    for bad in ("ab", True, 2.0, None, np.zeros((2, 2), dtype=bool)):
        with pytest.raises(ParameterError, match="rows"):
            Count(epsilon=1).release(bad, source=Untouchable())


@given(st.lists(st.integers(-(2**61), 2**61), max_size=40))
@settings(deadline=None, max_examples=60)
def test_sums_are_exact(values: list[int]) -> None:
    """No overflow, whatever fits the fixed point."""
    array = np.array(values, dtype=np.int64)
    assert exact_sum(array) == sum(values)
    assert exact_sum_of_squares(array) == sum(v * v for v in values)
    small = array >> 31
    assert exact_sum_of_squares(small) == sum(int(v) ** 2 for v in small)


def test_dirty_values_are_clamped_and_never_an_error() -> None:
    """NaN counts as the low end and infinities as the ends: no value can raise, wrap or leave the bounds."""
    mechanism = Sum(bounds=(-1, 2), resolution=0.5, epsilon=1)
    assert mechanism.answers([math.nan, math.inf, -math.inf, 1e300, 0.24]) == (-2 + 4 - 2 + 4 + 0,)


@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"rho": 0.1}, {"epsilon": 1, "delta": 1e-6}, {"epsilon": ln(3)}])
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_every_budget_form_is_kept(budget: dict[str, Any], relation: str) -> None:
    """All parts together cost at most what was declared, and nearly all of it is used."""
    for mechanism in (
        Count(**budget, neighbours=relation),
        Sum(bounds=(0, 9), **budget, neighbours=relation),
        Mean(bounds=(0, 9), **budget, neighbours=relation, size=50),
        Variance(bounds=(0, 9), **budget, neighbours=relation, size=50),
    ):
        loss = mechanism.privacy
        if "delta" in budget:
            assert loss.delta(1) <= 1e-6
        elif "rho" in budget:
            assert loss.notion("zcdp").words() == "ρ = 0.1"
        else:
            assert loss.epsilon() <= float(budget["epsilon"]) * (1 + 1e-12)
            assert loss.epsilon() > float(budget["epsilon"]) * (1 - 1e-12)


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"rho": 0.5}])
def test_intervals_and_errors_cover_as_often_as_said(relation: str, budget: dict[str, Any]) -> None:
    """Over 300 seeded releases: intervals miss at most as often as 90 % allows, errors likewise."""
    values = np.random.default_rng(1).integers(0, 101, 400)
    n = len(values)
    source = SeededForTestsOnly(77)
    for mechanism, truth in (
        (Sum(bounds=(0, 100), **budget, neighbours=relation), float(values.sum())),
        (Mean(bounds=(0, 100), **budget, neighbours=relation, size=n), float(values.mean())),
        (Variance(bounds=(0, 100), **budget, neighbours=relation, size=n), float(values.var())),
    ):
        error = mechanism.error(beta=0.1)
        answers = [mechanism.release(values, confidence=0.9, source=source) for _ in range(300)]
        missed = sum(truth not in answer for answer in answers)
        beyond = sum(abs(answer.value - truth) > error for answer in answers)
        assert missed <= 55  # 30 expected at most; the binomial chance of 56 is below 1e-5, and the seed is fixed
        assert beyond <= 55
        spread = math.sqrt(np.mean([(answer.value - truth) ** 2 for answer in answers]))
        assert 0.7 < spread / np.mean([answer.standard_error for answer in answers]) < 1.4


def test_means_and_variances_stay_in_their_range() -> None:
    """With too little data the answer is noise, but never outside of what is possible."""
    source = SeededForTestsOnly(5)
    for _ in range(50):
        mean = Mean(bounds=(10, 20), epsilon=0.1).release([12.0], source=source)
        assert 10 <= mean.low <= mean.value <= mean.high <= 20
        variance = Variance(bounds=(10, 20), epsilon=0.1).release([], source=source)
        assert 0 <= variance.low <= variance.value <= variance.high <= 25
    assert Mean(bounds=(10, 20), epsilon=0.1, size=3).error() == 10
    assert Variance(bounds=(10, 20), epsilon=0.1, size=3).error() == 25


def test_fine_resolutions_round_their_squares() -> None:
    """Sums of squares beyond 60 bits are rounded to coarser units, and the noise is made for that."""
    mechanism = Variance(bounds=(0, 10**6), resolution=Fraction(1, 10**6), epsilon=1, neighbours="replace", size=1000)
    assert mechanism._coarse > 1
    assert mechanism._reach <= int(Fraction(mechanism.parts[0].event.sensitivity)) * mechanism._coarse  # type: ignore[union-attr]  # Laplace
    values = np.linspace(0, 10**6, 1000)
    answer = mechanism.release(values, source=SeededForTestsOnly(3))
    assert values.var() in answer


def test_rho_for_approximate_budgets() -> None:
    """The published ρ(1, 1e-6) = 0.0243559704, from below."""
    rho = rho_within(Fraction(1), Fraction(1, 10**6))
    assert float(rho) == pytest.approx(0.0243559704, rel=1e-6)
    assert rho <= Fraction("0.0243559705")


BAD: list[tuple[str, dict[str, Any]]] = [
    ("bounds", {"bounds": (3, 1)}),
    ("bounds", {"bounds": (1, 1)}),
    ("bounds", {"bounds": 5}),
    ("bounds", {"bounds": "12"}),
    ("bounds", {"bounds": (0, float("inf"))}),
    ("bounds", {"bounds": (float("nan"), 1)}),
    ("bounds", {"bounds": (0, True)}),
    ("bounds", {"bounds": (0, 1, 2)}),
    ("resolution", {"resolution": 0}),
    ("resolution", {"resolution": Fraction(1, 1 << 70)}),
    ("max_rows", {"max_rows": 0}),
    ("max_rows", {"max_rows": "2"}),
    ("epsilon", {"epsilon": -1}),
    ("epsilon", {"epsilon": None}),
    ("epsilon and rho", {"rho": 1}),
    ("delta", {"delta": 2}),
]


@pytest.mark.parametrize(("name", "given"), BAD)
@pytest.mark.parametrize("kind", [Sum, Mean, Variance])
def test_bad_parameters_are_named(kind: type[BoundedStatistic], name: str, given: dict[str, Any]) -> None:
    """Each bad parameter is refused by name, with a fix."""
    with pytest.raises(ParameterError, match=name) as caught:
        kind(**{"bounds": (0, 1), "epsilon": 1, **given})
    assert caught.value.fix


@pytest.mark.parametrize("kind", [Mean, Variance])
def test_sizes_are_public_under_replace(kind: type[Mean] | type[Variance]) -> None:
    """Under replace the size must be given, fits the data, and goes with one row for each unit."""
    with pytest.raises(ParameterError, match="size"):
        kind(bounds=(0, 1), epsilon=1, neighbours="replace")
    with pytest.raises(ParameterError, match="max_rows"):
        kind(bounds=(0, 1), epsilon=1, neighbours="replace", size=5, max_rows=2)
    with pytest.raises(ParameterError, match="size"):
        kind(bounds=(0, 1), epsilon=1, neighbours="replace", size=5).release([1, 0], source=Untouchable())
    with pytest.raises(ParameterError, match="size"):
        kind(bounds=(0, 1), epsilon=1).error()


def test_bad_data_draws_nothing() -> None:
    """Text, tables and wrong confidences are refused before drawing."""
    for mechanism in (
        Sum(bounds=(0, 1), epsilon=1),
        Mean(bounds=(0, 1), epsilon=1),
        Variance(bounds=(0, 1), epsilon=1),
    ):
        bad: list[Any] = [["a"], [[1, 2]], 5, None]
        for values in bad:
            with pytest.raises(ParameterError):
                mechanism.release(values, source=Untouchable())
        with pytest.raises(ParameterError, match="confidence"):
            mechanism.release([1], confidence=0, source=Untouchable())
