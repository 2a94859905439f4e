"""Quantiles: sensitivities by brute force, exact loss, exact draws, and many quantiles at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import events
from discreet.entropy import SeededForTestsOnly
from discreet.errors import ParameterError
from discreet.exact import Interval
from discreet.mechanisms.quantiles.column_quantiles import Quantile, Quantiles
from discreet.mechanisms.quantiles.ranks import draw, runs_of
from tests.mechanisms.selecting import Untouched, max_divergence

GRID = range(4)
Data = tuple[int, ...]


def rank_error(data: Data, q: Fraction, value: int) -> Fraction:
    """Oracle: the definition."""
    n = len(data)
    below, above = sum(x < value for x in data), sum(x > value for x in data)
    return max(Fraction(0), below - q * n, above - (1 - q) * n)


def small_datasets(most: int) -> list[Data]:
    return [data for n in range(most + 1) for data in itertools.combinations_with_replacement(GRID, n)]


def add_remove(data: Data, rows: int = 1) -> Iterator[Data]:
    for new in itertools.product(GRID, repeat=rows):
        yield (*data, *new)


def replace(data: Data) -> Iterator[Data]:
    for i, new in itertools.product(range(len(data)), GRID):
        yield (*data[:i], new, *data[i + 1 :])


@given(
    data=st.lists(st.integers(-3, 9), max_size=8),
    q=st.fractions(Fraction(1, 20), Fraction(19, 20), max_denominator=1 << 30),
)
@settings(deadline=None, max_examples=80)
def test_runs_cover_the_grid_with_the_right_rank_errors(data: list[int], q: Fraction) -> None:
    """Runs are disjoint, cover all grid values in order, and have the rank error of the definition."""
    runs = runs_of(np.array(data, dtype=np.int64), q, -3, 9)
    seen = []
    for i, (start, length) in enumerate(zip(runs.starts.tolist(), runs.lengths.tolist())):
        for value in range(start, start + length):
            seen.append(value)
            assert runs.rank_error(i) == rank_error(tuple(data), q, value)
    assert seen == list(range(-3, 10))
    assert any(runs.rank_error(i) == 0 for i in range(len(runs.starts)))  # a true quantile is on the grid


@pytest.mark.parametrize("q", [Fraction(1, 2), Fraction(1, 4), Fraction(9, 10)])
def test_sensitivity_by_brute_force(q: Fraction) -> None:
    """Over all small datasets: exactly max(q, 1 − q) under add-remove, exactly 1 under replace."""
    found = max(
        abs(rank_error(data, q, v) - rank_error(near, q, v))
        for data in small_datasets(4)
        for near in add_remove(data)
        for v in GRID
    )
    assert found == Quantile(q=q, bounds=(0, 3), epsilon=1).sensitivity == max(q, 1 - q)
    swapped = max(
        abs(rank_error(data, q, v) - rank_error(near, q, v))
        for data in small_datasets(5)
        for near in replace(data)
        for v in GRID
    )
    claimed = Quantile(q=q, bounds=(0, 3), epsilon=1, neighbours="replace").sensitivity
    assert swapped <= claimed == 1
    assert swapped > max(q, 1 - q)  # so the add-remove value would not do


def test_sensitivity_of_several_rows_by_brute_force() -> None:
    """Two rows of one unit count twice, also when a unit with one row becomes one with two."""
    q = Fraction(1, 4)
    two = Quantile(q=q, bounds=(0, 3), epsilon=1, max_rows=2)
    found = max(
        abs(rank_error(data, q, v) - rank_error(near, q, v))
        for data in small_datasets(3)
        for near in add_remove(data, rows=2)
        for v in GRID
    )
    assert found == two.sensitivity == Fraction(3, 2)
    swapped = max(
        abs(rank_error((*data, *old), q, v) - rank_error((*data, *new), q, v))
        for data in small_datasets(3)
        for old in itertools.chain(itertools.product(GRID), itertools.product(GRID, repeat=2))
        for new in itertools.product(GRID, repeat=2)
        for v in GRID
    )
    assert swapped <= Quantile(q=q, bounds=(0, 3), epsilon=1, max_rows=2, neighbours="replace").sensitivity == 2


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("q", [Fraction(1, 2), Fraction(1, 4)])
def test_loss_is_within_the_claim_for_all_small_datasets(q: Fraction, neighbours: str) -> None:
    """The exact max-divergence over all small datasets and their neighbours is at most ε."""
    rule = Quantile(q=q, bounds=(0, 3), epsilon=2, neighbours=neighbours)
    known: dict[Data, list[Interval]] = {}

    def law(data: Data) -> list[Interval]:
        data = tuple(sorted(data))
        if data not in known:
            known[data] = [rule.probability(v, list(data)) for v in GRID]
        return known[data]

    worst = 0.0
    for data in small_datasets(3):
        for near in add_remove(data) if neighbours == "add-remove" else replace(data):
            worst = max(worst, max_divergence(zip(law(data), law(near))))
    assert 0.7 < worst <= 2 + 1e-12


def test_half_the_sensitivity_is_caught() -> None:
    """Negative control: twice the ε in the exponent loses more than the claimed ε."""
    careless = Quantile(q=Fraction(1, 2), bounds=(0, 40), epsilon=4)  # as if it were ε = 2
    here, there = [0] * 8, [0] * 8 + [40] * 1
    laws = [[careless.probability(v, data) for v in (0, 20, 40)] for data in (here, there)]
    honest = Quantile(q=Fraction(1, 2), bounds=(0, 40), epsilon=2)
    fair = [[honest.probability(v, data) for v in (0, 20, 40)] for data in (here, there)]
    assert max_divergence(zip(*fair)) <= 2
    assert max_divergence(zip(*laws)) > 2 * 0.9


@given(data=st.lists(st.integers(-5, 25), max_size=6), epsilon=st.fractions(Fraction(1, 10), 8))
@settings(deadline=None, max_examples=30)
def test_probabilities_sum_to_one(data: list[int], epsilon: Fraction) -> None:
    """All grid values together have probability one, whatever lies outside the bounds."""
    rule = Quantile(q=0.3, bounds=(0, 20), epsilon=epsilon)
    found = [rule.probability(v, data) for v in range(21)]
    assert sum(p.low for p in found) <= 1 <= sum(p.high for p in found)


@pytest.mark.parametrize(("low", "high"), [(0, 5), (-(10**6), 10**6)])
def test_draws_follow_the_exact_probabilities(low: int, high: int) -> None:
    """Draws fit the exact law by runs; a law of an ε 25 % larger does not fit."""
    from scipy.stats import chisquare

    data = [1, 1, 2, 4]
    rule, wrong = (Quantile(q=0.5, bounds=(low, high), epsilon=e) for e in (4, 5))
    runs = runs_of(np.array(data), Fraction(1, 2), low, high)
    source = SeededForTestsOnly(9)
    drawn = np.array([rule.release(data, source=source) for _ in range(8_000)])
    counts = np.bincount(np.searchsorted(runs.starts, drawn, side="right") - 1, minlength=len(runs.starts))

    def fit(law: Quantile) -> float:
        pairs = zip(runs.starts.tolist(), runs.lengths.tolist())
        mass = np.array([float(law.probability(start, data)) * length for start, length in pairs])
        some = mass * counts.sum() > 5  # rarer runs are too few to compare
        return float(chisquare(counts[some], mass[some] / mass[some].sum() * counts[some].sum()).pvalue)

    assert fit(rule) > 1e-3
    assert fit(wrong) < 1e-6


def test_rejection_is_exact_when_floats_are_far_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """The floats decide only how often a proposal is refused: with weights raised unevenly the law is the same."""
    from scipy.stats import chisquare

    monkeypatch.setattr(
        "discreet.mechanisms.quantiles.segments.RAISE", np.array([2.0, 3.0, 4.0, 5.0, 6.0])
    )  # one for each run
    runs = runs_of(np.array([2, 7]), Fraction(1, 2), 0, 9)
    factor, source = Fraction(2), SeededForTestsOnly(12)
    counts = np.bincount([draw(runs, factor, source) for _ in range(8_000)], minlength=10)
    weights = np.array([math.exp(-2 * float(rank_error((2, 7), Fraction(1, 2), v))) for v in range(10)])
    assert chisquare(counts, weights / weights.sum() * 8_000).pvalue > 1e-3


def test_median_is_good_and_bounds_hold() -> None:
    """A clear median is found within the stated rank error; outliers and NaN stay within the bounds."""
    rule = Quantile(q=0.5, bounds=(0, 100), resolution=0.5, epsilon=1)
    data = np.concatenate([np.linspace(20, 40, 2001), [math.inf, -math.inf, math.nan, 1e300]])
    found = rule.release(data, source=SeededForTestsOnly(1))
    assert isinstance(found, float)
    n = len(data)
    error = max((data < found).sum() - n / 2, (data > found).sum() - n / 2)
    assert error <= rule.error(1e-6)
    assert rule.error(0.05) == pytest.approx(math.log(200 * 19), rel=1e-6)  # 201 grid values, ε/(2Δ) = 1
    assert 0 <= Quantile(q=0.5, bounds=(0, 10), epsilon=1).release([]) <= 10


def test_error_bound_holds_exactly() -> None:
    """The chance of a rank error at or above the bound is at most β, on data where it is hardest."""
    rule = Quantile(q=0.5, bounds=(0, 50), epsilon=2)
    data = [25] * 40
    bound = rule.error(0.1)
    bad = sum(rule.probability(v, data).high for v in range(51) if rank_error(tuple(data), Fraction(1, 2), v) >= bound)
    assert bad <= Fraction(1, 10)


def test_events_and_budget_forms() -> None:
    """One exponential event; rho is solved downwards."""
    assert Quantile(q=0.5, bounds=(0, 1), epsilon=1).event == events.Exponential(epsilon=1)
    assert Quantile(q=0.5, bounds=(0, 1), rho=0.125).loss == 1
    many = Quantiles(qs=[0.1, 0.5, 0.9], bounds=(0, 9), epsilon=1, neighbours="replace")
    assert many.event == events.Exponential(epsilon=Fraction(1, 2), count=2, neighbours="replace")
    assert Quantiles(qs=[0.5], bounds=(0, 9), rho=0.125).event == events.Exponential(epsilon=1)
    assert many.privacy.epsilon() == 1


@pytest.mark.parametrize(("count", "levels"), [(1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4), (15, 4), (99, 7)])
def test_number_of_levels(count: int, levels: int) -> None:
    """⌊log₂ m⌋ + 1 levels, and no branch of the recursion is deeper."""
    qs = [Fraction(i, count + 1) for i in range(1, count + 1)]
    rule = Quantiles(qs=qs, bounds=(0, 9), epsilon=1)

    def depth(m: int) -> int:
        return 0 if m == 0 else 1 + max(depth(m // 2), depth(m - m // 2 - 1))

    assert rule.levels == levels == depth(count)


def test_a_row_takes_part_once_in_each_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sides of one level are disjoint ranges, and each row is used at most once in a level."""
    seen: list[tuple[int, int, int]] = []

    def spy(steps: Any, q: Fraction, low: int, high: int) -> Any:
        seen.append((low, high, len(steps)))
        return runs_of(steps, q, low, high)

    monkeypatch.setattr("discreet.mechanisms.quantiles.column_quantiles.runs_of", spy)
    rule = Quantiles(qs=[Fraction(i, 8) for i in range(1, 8)], bounds=(0, 99), epsilon=1)
    data = SeededForTestsOnly(1).words(500) % np.uint64(100)
    rule.release(data.astype(np.int64), source=SeededForTestsOnly(2))
    assert len(seen) == 7
    by_level = [[seen[0]], [seen[1], seen[4]], [seen[2], seen[3], seen[5], seen[6]]]  # depth first
    for level in by_level:
        assert sum(rows for _, _, rows in level) <= 500
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(level))


@given(
    parts=st.integers(10, 1 << 30),
    picks=st.sets(st.floats(0.001, 0.999), min_size=1, max_size=12),
)
@settings(deadline=None, max_examples=30)
def test_ranks_never_leave_64_bits(parts: int, picks: set[float]) -> None:
    """The quantiles of sides have denominators of at most the common one of all, so ranks times them fit int64."""
    seen: list[Fraction] = []

    def spy(steps: Any, q: Fraction, low: int, high: int) -> Any:
        seen.append(q)
        return runs_of(steps, q, low, high)

    qs = sorted({Fraction(max(1, int(pick * parts)), parts) for pick in picks})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("discreet.mechanisms.quantiles.column_quantiles.runs_of", spy)
        Quantiles(qs=qs, bounds=(0, 99), epsilon=1).release([1, 2, 50], source=SeededForTestsOnly(1))
    assert len(seen) == len(qs)
    assert all(0 < q < 1 and q.denominator <= parts for q in seen)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_loss_of_two_levels_by_brute_force(neighbours: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole recursion on a tiny grid, without random parts: exact max-divergence at most ε over all neighbours."""
    from discreet.mechanisms.quantiles import column_quantiles

    monkeypatch.setattr(column_quantiles, "_PART_BITS", 0)
    rule = Quantiles(qs=[Fraction(1, 3), Fraction(2, 3)], bounds=(0, 3), epsilon=2, neighbours=neighbours)

    def law(data: Data, q: Fraction, low: int, high: int) -> dict[int, float]:
        inside = [x for x in data if low <= x <= high]
        weights = {v: math.exp(-float(rule._factor(q) * rank_error(tuple(inside), q, v))) for v in range(low, high + 1)}
        return {v: w / math.fsum(weights.values()) for v, w in weights.items()}

    def joint(data: Data) -> dict[tuple[int, int], float]:
        """qs[1] first, then qs[0]/qs[1] among the rows below it."""
        chances = {}
        for v, p in law(data, Fraction(2, 3), 0, 3).items():
            left = tuple(x for x in data if x < v)
            for u, r in law(left, Fraction(1, 2), 0, v).items():
                chances[u, v] = p * r
        return chances

    laws = {data: joint(data) for data in small_datasets(4)}
    worst = 0.0
    for data in small_datasets(3):
        for near in add_remove(data) if neighbours == "add-remove" else replace(data):
            other = laws[tuple(sorted(near))]
            worst = max(worst, *(abs(math.log(p / other[o])) for o, p in laws[data].items()))
    assert 0.5 < worst <= 2 + 1e-9
    # The oracle is the law that is drawn.
    source, data = SeededForTestsOnly(5), (0, 1, 3)
    drawn = [rule.release(list(data), source=source) for _ in range(3_000)]
    for outcome, p in laws[data].items():
        assert abs(drawn.count(outcome) / 3_000 - p) <= 5 * math.sqrt(p / 3_000)


def test_many_quantiles_are_good_ordered_and_fair_to_ties() -> None:
    """Deciles of heavily tied data: in order, within the stated rank error, ties split between the sides."""
    qs = [Fraction(i, 10) for i in range(1, 10)]
    rule = Quantiles(qs=qs, bounds=(0, 100), epsilon=4)
    data = np.repeat([5, 30, 31, 90], [4000, 1000, 1000, 4000])
    for seed in range(5):
        found = rule.release(data, source=SeededForTestsOnly(seed))
        assert list(found) == sorted(found)
        for q, value in zip(qs, found):
            below, above = (data < value).sum(), (data > value).sum()
            assert max(below - q * 10_000, above - (1 - q) * 10_000) <= rule.error(1e-6)
    assert rule.error(0.05) < 400


def test_deciles_are_the_true_ones_when_noise_is_negligible() -> None:
    """With an enormous ε the recursion gives the true quantiles: sides and their shares are right."""
    qs = [Fraction(i, 10) for i in range(1, 10)]
    rule = Quantiles(qs=qs, bounds=(0, 1000), epsilon=9000)
    assert rule.release(range(1, 1000)) == tuple(range(100, 1000, 100))


@pytest.mark.parametrize("make", [Quantile, Quantiles])
def test_replace_is_tight_at_the_worst_pair(make: type) -> None:
    """One value gets a rank worse while nearly all others get one better: the loss comes close to ε, and stays below.

    Data 0, 0, 2, 61: the value 1 is a median, those from 3 to 60 are one row off. With a 0 replaced by 61 it is the
    other way round. Half the factor's denominator (the add-remove one) would lose 2ε.
    """
    which: dict[str, Any] = {"q": Fraction(1, 2)} if make is Quantile else {"qs": [Fraction(1, 2)]}
    rule = make(bounds=(0, 61), epsilon=1, neighbours="replace", **which)
    factor = float(rule.factor if make is Quantile else rule._factor(Fraction(1, 2)))

    def chance(data: Data) -> float:
        weights = [math.exp(-factor * float(rank_error(data, Fraction(1, 2), v))) for v in range(62)]
        return weights[1] / math.fsum(weights)

    assert 0.9 < math.log(chance((0, 0, 2, 61)) / chance((0, 2, 61, 61))) <= 1


def test_all_rows_equal() -> None:
    """All quantiles of a constant column are that constant, also those at the sides."""
    rule = Quantiles(qs=[0.1, 0.25, 0.5, 0.75, 0.9], bounds=(0, 1000), epsilon=3)
    assert set(rule.release([7] * 5000, source=SeededForTestsOnly(1))) == {7}


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        (Quantile, {"q": 0, "bounds": (0, 1), "epsilon": 1}),
        (Quantile, {"q": 1, "bounds": (0, 1), "epsilon": 1}),
        (Quantile, {"q": math.nan, "bounds": (0, 1), "epsilon": 1}),
        (Quantile, {"q": Fraction(1, (1 << 31) - 1), "bounds": (0, 1), "epsilon": 1}),
        (Quantile, {"q": 0.5, "bounds": (1, 1), "epsilon": 1}),
        (Quantile, {"q": 0.5, "bounds": (2, 1), "epsilon": 1}),
        (Quantile, {"q": 0.5, "bounds": (0, math.inf), "epsilon": 1}),
        (Quantile, {"q": 0.5, "bounds": (0,), "epsilon": 1}),
        (Quantile, {"q": 0.5, "bounds": "01", "epsilon": 1}),
        (Quantile, {"q": 0.5, "bounds": None, "epsilon": 1}),
        (Quantile, {"q": 0.5, "bounds": (0, 1), "epsilon": 1, "resolution": 0}),
        (Quantile, {"q": 0.5, "bounds": (0, 1), "epsilon": 1, "resolution": Fraction(1, 1 << 62)}),
        (Quantile, {"q": 0.5, "bounds": (0, 1), "epsilon": 1, "max_rows": 0}),
        (Quantile, {"q": 0.5, "bounds": (0, 1), "epsilon": 0}),
        (Quantile, {"q": 0.5, "bounds": (0, 1)}),
        (Quantile, {"q": 0.5, "bounds": (0, 1), "epsilon": 1, "rho": 1}),
        (Quantiles, {"qs": [], "bounds": (0, 1), "epsilon": 1}),
        (Quantiles, {"qs": [0.5, 0.25], "bounds": (0, 1), "epsilon": 1}),
        (Quantiles, {"qs": [0.5, 0.5], "bounds": (0, 1), "epsilon": 1}),
        (Quantiles, {"qs": "0.5", "bounds": (0, 1), "epsilon": 1}),
        (Quantiles, {"qs": [0.5, 1.5], "bounds": (0, 1), "epsilon": 1}),
        (Quantiles, {"qs": [Fraction(1, 1 << 20), Fraction(1, 3**15)], "bounds": (0, 1), "epsilon": 1}),
        (Quantiles, {"qs": [0.5], "bounds": (0, 1), "epsilon": 1, "resolution": Fraction(1, 1 << 45)}),
    ],
    ids=str,
)
def test_bad_parameters_are_refused(kind: type, bad: dict[str, Any]) -> None:
    """Parameters outside the theorem are refused when the mechanism is made."""
    with pytest.raises(ParameterError):
        kind(**bad)


@pytest.mark.parametrize("bad", [["a"], [[1, 2]], [None], [1 + 2j]], ids=repr)
def test_bad_values_are_refused_before_anything_is_drawn(bad: Any) -> None:
    """Values must be one column of numbers."""
    for rule in (Quantile(q=0.5, bounds=(0, 9), epsilon=1), Quantiles(qs=[0.5], bounds=(0, 9), epsilon=1)):
        with pytest.raises(ParameterError):
            rule.release(bad, source=Untouched())


@pytest.mark.parametrize("output", [-1, 10, math.nan, "3"])
def test_outputs_must_be_on_the_grid(output: Any) -> None:
    """Asking for the probability of a value outside the bounds is refused."""
    with pytest.raises(ParameterError):
        Quantile(q=0.5, bounds=(0, 9), epsilon=1).probability(output, [1, 2])
