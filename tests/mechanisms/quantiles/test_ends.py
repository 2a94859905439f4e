"""The ends of quantiles: loss over all small cases, exact draws, and what share of intervals holds the quantile."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from discreet.accounting import events
from discreet.entropy import SeededForTestsOnly
from discreet.errors import ParameterError
from discreet.mechanisms.quantiles.cells import CellQuantiles
from discreet.mechanisms.quantiles.ends import CellEnds
from discreet.mechanisms.quantiles.ranks import CellCounts
from tests.mechanisms.quantiles.test_cells import changes, fits, histogram, small

Rows = tuple[int, ...]
HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)
GRID = range(4)


def make_ends(q: Fraction = HALF, last: int = 3, **more: Any) -> CellEnds:
    return CellEnds(qs=[q], first=0, last=last, **more)


def list_edges(middle: int, first: int) -> list[int]:
    """From the definition: m − d for d = 0, 1, 2, 3, 4, 6, 8, 12, ... and the first cell."""
    distances = [0, 1, *(d for k in range(1, 62) for d in (2**k, 3 * 2 ** (k - 1)))]
    return [middle - d for d in distances if middle - d > first] + [first]


def low_law(
    rows: Sequence[int], middle: int, first: int, *, q: Fraction, far: int, factor: Fraction
) -> dict[int, float]:
    """The law of a low end, from the definition: rows below each bin and above it, and exp(−f·error)."""
    edges, n = list_edges(middle, first), len(rows)
    weights = {}
    for place, edge in enumerate(edges):
        above = sum(row >= edges[place - 1] for row in rows) if place else 0
        below = sum(row < edge for row in rows)
        parts = [Fraction(0), above - ((1 - q) * n + far)]
        parts += [] if edge == first else [below - (q * n - far)]
        weights[edge] = math.exp(-float(factor * max(parts)))
    return {edge: weight / math.fsum(weights.values()) for edge, weight in weights.items()}


def laws_of(rule: CellEnds, rows: Sequence[int], middle: int) -> tuple[dict[int, float], dict[int, float]]:
    """The laws of both ends of one quantile."""
    q = Fraction(rule.qs[0])
    terms: dict[str, Any] = {"far": rule.reach(q), "factor": rule.factor(q)}
    low = low_law(rows, middle, rule.first, q=q, **terms)
    high = low_law([-row for row in rows], -middle, -rule.last, q=1 - q, **terms)
    return low, {-edge: p for edge, p in high.items()}


def find_range(one: dict[int, float], other: dict[int, float]) -> float:
    logs = [math.log(p / other[edge]) for edge, p in one.items()]
    return max(logs) - min(logs)


# --- Loss ------------------------------------------------------------------------------------------------------------


def worst_ranges(rule: CellEnds, pairs: Iterator[tuple[Rows, Rows]]) -> float:
    """The largest range of one end over pairs of neighbours and all estimates."""

    @cache
    def laws(rows: Rows, middle: int) -> tuple[dict[int, float], dict[int, float]]:
        return laws_of(rule, rows, middle)

    worst = 0.0
    for rows, near in pairs:
        for middle in GRID:
            ranges = [find_range(a, b) for a, b in zip(laws(rows, middle), laws(near, middle), strict=True)]
            worst = max(worst, *ranges)
    return worst


def list_neighbours(come_and_go: Sequence[tuple[int, int]], most: int = 5) -> Iterator[tuple[Rows, Rows]]:
    for rows in small(most):
        for come, go in come_and_go:
            for near in changes(rows, come, go) if go <= len(rows) else ():
                yield rows, near


@pytest.mark.parametrize("q", [HALF, QUARTER], ids=["median", "quarter"])
def test_range_of_an_end_is_what_the_event_says(q: Fraction) -> None:
    """All small data sets, one row that comes or goes, all estimates. Half of the claim would not hold."""
    rule = make_ends(q, epsilon=4, beta=0.9)
    assert rule.event == events.Exponential(epsilon=2, count=2)
    worst = worst_ranges(rule, list_neighbours([(1, 0), (0, 1)]))
    assert 1 < worst <= 2 + 1e-9


@pytest.mark.parametrize("q", [HALF, QUARTER], ids=["median", "quarter"])
def test_range_of_an_end_where_rows_are_replaced(q: Fraction) -> None:
    """Two rows of each unit: four change in any groups. In place pairs of rows move an error by one."""
    rows = [(2, 0), (0, 2), (1, 1), (2, 2), (2, 1)]
    apart = make_ends(q, epsilon=4, beta=0.9, max_rows=2, neighbours="replace")
    assert 0.8 < worst_ranges(apart, list_neighbours(rows, 4)) <= 2 + 1e-9
    stays = make_ends(q, epsilon=4, beta=0.9, max_rows=2, neighbours="replace", in_place=True)
    assert 1 < worst_ranges(stays, list_neighbours(rows, 4)) <= 2 + 1e-9
    careless = make_ends(q, epsilon=4, beta=0.9, max_rows=1)  # calibrated for one row
    assert worst_ranges(careless, list_neighbours(rows, 4)) > 2.5


def test_estimate_and_ends_together_cost_what_both_say() -> None:
    """The joint law of an estimate and both of its ends, on neighbours: at most the sum of both, and half is not."""
    choice, rule = CellQuantiles(qs=[HALF], first=0, last=3, epsilon=2), make_ends(epsilon=2, beta=0.9)
    claimed, worst = choice.privacy.epsilon() + rule.privacy.epsilon(), 0.0

    @cache
    def joint(rows: Rows) -> dict[tuple[int, int, int], float]:
        found = {}
        for middle in GRID:
            chance = float(choice.probability(middle, histogram(rows)))
            low, high = laws_of(rule, rows, middle)
            for (a, p), (b, r) in itertools.product(low.items(), high.items()):
                found[middle, a, b] = chance * p * r
        return found

    for rows, near in list_neighbours([(1, 0)], 4):
        other = joint(near)
        worst = max(worst, *(abs(math.log(p / other[output])) for output, p in joint(rows).items()))
    assert claimed / 4 < worst <= claimed + 1e-9


def test_parts_of_rows_are_rows_of_a_finer_count() -> None:
    """Rows in parts of 2^-4, with ``max_rows`` in the same parts: the same loss, and a reach in parts."""
    whole, fine = make_ends(epsilon=1), make_ends(epsilon=1, max_rows=16)
    assert fine.event == whole.event
    assert fine.factor(HALF) == whole.factor(HALF) / 16
    assert fine.reach(HALF) in range(15 * whole.reach(HALF), 16 * whole.reach(HALF) + 1)


def test_events_count_two_ends_for_each_quantile_and_group() -> None:
    rule = CellEnds(qs=[0.25, 0.5, 0.75], first=0, last=9, groups=2, epsilon=3)
    assert rule.event == events.Exponential(epsilon=Fraction(1, 4), count=12)
    assert make_ends(rho=1).event == events.Exponential(epsilon=2, count=2)


# --- Draws -----------------------------------------------------------------------------------------------------------


def test_draws_follow_the_exact_probabilities() -> None:
    """Each group follows its own law, which is that of the definition; the law of another estimate does not fit."""
    rule = make_ends(QUARTER, last=9, epsilon=2, beta=0.5)
    groups: list[tuple[Rows, int]] = [((1, 1, 2, 3), 5), ((), 4), ((0, 0, 9, 9, 9, 9), 0), ((2,) * 9, 9)]
    given = [histogram(rows) for rows, _ in groups] * 2_500
    drawn = rule.release_all(given, [(middle,) for _, middle in groups] * 2_500, source=SeededForTestsOnly(3))
    for i, (rows, middle) in enumerate(groups):
        low, high = laws_of(rule, rows, middle)
        law = {(a, b): p * r for (a, p), (b, r) in itertools.product(low.items(), high.items())}
        for output, chance in law.items():
            assert float(rule.probability(output, (histogram(rows), (middle,)))) == pytest.approx(chance, rel=1e-12)
        assert fits(Counter(drawn[i::4]), law)
    low, high = laws_of(rule, groups[0][0], 6)
    assert not fits(Counter(drawn[0::4]), {(a, b): p * r for (a, p) in low.items() for (b, r) in high.items()})


def test_ends_lie_on_their_sides_and_within_the_cells() -> None:
    """Also at the last cells, with an offer so small that ranks leave 64 bits, and with more rows than floats count."""
    many = 1 << 58
    for epsilon in (1e-9, 1, 1000):
        rule = CellEnds(qs=[0.001, 0.5], first=-7, last=1 << 40, max_rows=1 << 50, epsilon=epsilon)
        for middle in ((-7, -7), (-7, 1 << 40), (5, 1 << 39)):
            cells: CellCounts = (np.array([-7, 3, 1 << 40]), np.array([many, 1, many]))
            found = rule.release(*cells, middle, source=SeededForTestsOnly(1))
            assert -7 <= found[0] <= middle[0] <= found[1] <= 1 << 40
            assert -7 <= found[2] <= middle[1] <= found[3] <= 1 << 40


def test_one_cell_has_one_interval() -> None:
    assert make_ends(last=0, epsilon=1).release(*histogram((0,) * 5), (0,)) == (0, 0)
    assert make_ends(epsilon=1).release_all([], []) == []


@pytest.mark.parametrize("wrong", [[(4,)], [(-1,)], [(1, 1)], [()], [(1,), (1,)], [(1.5,)]])
def test_estimates_that_cannot_be_are_refused(wrong: Any) -> None:
    with pytest.raises(ParameterError, match="estimates"):
        make_ends(epsilon=1).release_all([histogram((1, 2))], wrong)
    with pytest.raises(ParameterError, match="beta"):
        make_ends(epsilon=1, beta=0)
    with pytest.raises(ParameterError, match="in_place"):
        make_ends(epsilon=1, in_place=1)


# --- Coverage --------------------------------------------------------------------------------------------------------

SIZE = 1 << 16
TRIES = 500


def draw_rows(name: str, n: int) -> list[int]:
    """Rows of a shape, with a fixed seed."""
    draw = np.random.default_rng(n)
    shapes: dict[str, Callable[[], Any]] = {
        "normal": lambda: draw.normal(SIZE / 2, SIZE / 20, n),
        "skewed": lambda: draw.lognormal(6, 2, n),
        "few values": lambda: draw.choice([5, 6, 7, 60_000], n),
        "one value": lambda: np.full(n, 300),
    }
    found: list[int] = np.clip(shapes[name](), 0, SIZE).astype(np.int64).tolist()
    return found


def quantile_of(rows: Sequence[int], q: Fraction) -> int:
    """The least value with at least a share q of the rows at or below it, as QUANTILE_DISC."""
    return sorted(rows)[math.ceil(q * len(rows)) - 1]


def measure_coverage(rows: Sequence[int], q: Fraction, epsilon: Fraction, **more: Any) -> float:
    """What share of intervals holds the quantile, the estimate and the ends at half of ε each."""
    terms: dict[str, Any] = {"qs": [q], "first": 0, "last": SIZE, "epsilon": epsilon / 2}
    source, groups = SeededForTestsOnly(len(rows)), [histogram(rows)] * TRIES
    estimates = CellQuantiles(**terms).release_all(groups, source=source)
    ends = np.array(CellEnds(**terms, **more).release_all(groups, estimates, source=source))
    true = quantile_of(rows, q)
    return float(((ends[:, 0] <= true) & (true <= ends[:, 1])).mean())


@pytest.mark.parametrize("q", [Fraction(1, 100), HALF, Fraction(9, 10)], ids=["least", "median", "ninety"])
@pytest.mark.parametrize("n", [3, 40, 1_000])
@pytest.mark.parametrize("shape", ["normal", "skewed", "few values", "one value"])
def test_intervals_hold_the_quantile(shape: str, n: int, q: Fraction) -> None:
    """36 cases with ties, small groups and extremes: at least 93 of 100 (500 draws), where 95 are stated."""
    assert measure_coverage(draw_rows(shape, n), q, Fraction(1)) >= 0.93


def test_intervals_that_claim_less_hold_less() -> None:
    """The test sees a wrong reach: ends for β = 3/4 hold the quantile of a small group far less often."""
    rows = draw_rows("normal", 3)
    assert measure_coverage(rows, HALF, Fraction(1), beta=0.75) < 0.8


def test_wide_groups_have_narrow_intervals() -> None:
    """1,000 normal rows at ε = 1: the interval of the median is a small part of where the rows lie."""
    rows = histogram(draw_rows("normal", 1_000))
    rule = make_ends(last=SIZE, epsilon=Fraction(1, 2))
    low, high = rule.release(*rows, (SIZE // 2,), source=SeededForTestsOnly(1))
    assert high - low < SIZE / 20
