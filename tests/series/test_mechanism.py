"""Tests of series: every pattern of participation, decoding, stated errors, and the control that is not monotone."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest

from discreet.accounting.events import squared_mu
from discreet.entropy import SeededForTestsOnly
from discreet.errors import ParameterError
from discreet.series.mechanism import SeriesMechanism, Wanted, find_squared_distance, make_coefficients


def list_patterns(periods: int, most: int, apart: int) -> list[tuple[int, ...]]:
    """Every set of periods in which one unit may be present."""
    found = [p for size in range(1, most + 1) for p in combinations(range(periods), size)]
    return [p for p in found if all(b - a >= apart for a, b in pairwise(p))]


def move(coefficients: tuple[int, ...], pattern: tuple[int, ...]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """What one count in each of some periods adds to the series, from the definition."""
    moved = np.zeros(len(coefficients), dtype=np.int64)
    for day in pattern:
        moved[day:] += np.array(coefficients[: len(coefficients) - day])
    return moved


@pytest.mark.parametrize("decay", [0.0, 0.7, 1.0])
@pytest.mark.parametrize(
    ("periods", "most", "apart"), [(6, 1, 1), (7, 3, 1), (8, 3, 2), (9, 2, 4), (5, 5, 1), (9, 9, 3)]
)
def test_no_pattern_moves_the_series_further(decay: float, periods: int, most: int, apart: int) -> None:
    """Add-remove is reached exactly, so half of it is exceeded; no two units are further apart than under replace."""
    for band in (1, 3, periods):
        coefficients = make_coefficients(periods, decay, band)
        claim = find_squared_distance(coefficients, most, apart)
        moves = [move(coefficients, pattern) for pattern in list_patterns(periods, most, apart)]
        assert max(int((m * m).sum()) for m in moves) == claim
        assert max(int(((m - o) ** 2).sum()) for m in moves[:40] for o in moves) <= 2 * claim


def test_coefficients_that_go_up_again_are_refused() -> None:
    """Negative control: for (4, 1, 4) the regular pattern is not the worst one, so the bound would be wrong."""
    wild = (4, 1, 4, 0, 0)
    regular = move(wild, (0, 1))
    worst = max(int((m * m).sum()) for m in (move(wild, p) for p in list_patterns(5, 2, 1)))
    assert worst > int((regular * regular).sum())
    with pytest.raises(ParameterError, match="not increase"):
        find_squared_distance(wild, 2, 1)
    with pytest.raises(ParameterError, match="not increase"):
        find_squared_distance((2, 1, -1), 1, 1)


@pytest.mark.parametrize("wanted", list(Wanted))
def test_decoding_gives_what_is_wanted(wanted: Wanted) -> None:
    """With hardly any noise: the periods, the running totals, and the sums of windows."""
    series = SeriesMechanism(periods=20, max_periods=3, apart=2, mu=100, wanted=wanted, window=4)
    counts = np.random.default_rng(1).integers(0, 50, 20).tolist()
    source = SeededForTestsOnly(1)
    measured = [series.measure(counts[: t + 1], source=source) for t in range(20)]
    sums = {
        Wanted.PERIODS: counts,
        Wanted.TOTALS: np.cumsum(counts),
        Wanted.WINDOWS: [sum(counts[max(0, t - 3) : t + 1]) for t in range(20)],
    }
    assert np.abs(series.decode(measured) - sums[wanted]).max() < 1
    assert np.allclose(series.decode(measured[:7]), series.decode(measured)[:7]), "later periods change nothing"


def test_stated_deviations_are_those_of_the_noise() -> None:
    series = SeriesMechanism(periods=12, max_periods=2, mu=Fraction(1, 2), wanted="totals")
    zeros = [0] * 12
    draws = []
    for seed in range(400):
        source = SeededForTestsOnly(seed)
        draws.append(series.decode([series.measure(zeros[: t + 1], source=source) for t in range(12)]))
    ratio = np.std(draws, axis=0) / series.deviations
    assert np.abs(ratio - 1).max() < 6 / np.sqrt(2 * 400)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_the_price_is_what_was_stated(neighbours: str) -> None:
    series = SeriesMechanism(periods=30, max_periods=4, apart=7, max_count=3, mu=Fraction(1, 3), neighbours=neighbours)
    assert Fraction(1, 9) * (1 - Fraction(1, 10**9)) <= squared_mu(series.event) <= Fraction(1, 9)
    plain = find_squared_distance(series.weights, 4, 7)
    assert series.squared_sensitivity == 9 * plain * (1 if neighbours == "add-remove" else 2)


def test_the_choice_follows_what_is_wanted() -> None:
    """For totals of units that come once, correlated noise is several times better; for single days it is not used."""
    days, totals = (SeriesMechanism(periods=365, max_periods=1, mu=1, wanted=w) for w in ("periods", "totals"))
    assert sum(map(bool, days.weights)) == 1
    assert np.sqrt((totals.deviations**2).mean()) < 3
    plain = np.sqrt(np.arange(1, 366).mean())
    assert plain > 13
    always = SeriesMechanism(periods=60, max_periods=60, mu=1, wanted="totals")
    assert sum(map(bool, always.weights)) == 1, "who is there every day is hidden best by plain noise"


@pytest.mark.parametrize(
    "wrong",
    [
        {"periods": 0},
        {"max_periods": 0},
        {"apart": 0},
        {"mu": 0},
        {"wanted": "days"},
        {"window": 99},
        {"periods": 10**9},
    ],
)
def test_wrong_parameters_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        SeriesMechanism(**({"periods": 30, "max_periods": 1, "mu": 1} | wrong))  # type: ignore[arg-type]


def test_counts_beyond_the_series_are_refused() -> None:
    series = SeriesMechanism(periods=3, max_periods=1, mu=1)
    with pytest.raises(ParameterError, match="1 to 3 periods"):
        series.measure([1, 2, 3, 4])
