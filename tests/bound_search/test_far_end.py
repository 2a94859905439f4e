"""How far bounds reach: within twice the best fixed clip, from released counts alone, and steady against false ones."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from discreet.bound_search.bound_rule import DOUBTS, read_bounds, threshold
from discreet.bound_search.far_end import LATER, Tail, choose_far_end, see_tails, walk_inwards
from discreet.bound_search.missing_bounds import SEARCH_SHARE
from discreet.exact import Floats
from discreet.mechanisms.laplace import Laplace
from discreet.parameters import Number
from discreet.plan.magnitude import BUCKETS, magnitude
from discreet.plan.types import Type


class Remembered:
    """The noise of a search with a quarter of ε = 1, whose bounds are computed once."""

    def __init__(self) -> None:
        self.noise = Laplace(sensitivity=1, epsilon=SEARCH_SHARE)
        self.standard_error = self.noise.standard_error
        self.noise_bound = cache(self._find_bound)

    def _find_bound(self, beta: Number = 0.05, of: int = 1) -> float:
        return self.noise.noise_bound(beta=beta, of=of)


NOISE = Remembered()
rng = np.random.default_rng(14)
late = rng.exponential(40, 30_000) * (rng.random(30_000) < 0.35)
DATA: dict[str, Floats] = {
    "lognormal, 10000": rng.lognormal(3, 1, 10_000),
    "lognormal, 1000": rng.lognormal(3, 1, 1_000),
    "delays": np.clip(late - rng.exponential(6, 30_000) * (late == 0), -60, 1300),
    "uniform": rng.uniform(0, 1000, 10_000),
    "negative": -rng.lognormal(1, 1, 5_000),
    "constant": np.full(1_000, 7.3),
    "heavy": rng.pareto(1.5, 10_000) * 10,
    "few": rng.lognormal(3, 1, 250),
}


def simulate(values: Floats, draws: int, later: float) -> float:
    """The root of the mean squared error of a sum within bounds that were found, over the best fixed clip's."""
    exact = dict.fromkeys(BUCKETS[Type.REAL], 0)
    for value in values.tolist():
        exact[magnitude(value)] += 1
    noises = np.round(rng.laplace(0, 1 / float(SEARCH_SHARE), (draws, len(exact)))).astype(int)
    squares = []
    for drawn in noises.tolist():
        found = read_bounds({bucket: n + extra for (bucket, n), extra in zip(exact.items(), drawn)}, NOISE)
        assert found is not None
        lost = np.clip(values, found.low, found.high).sum() - values.sum()
        squares.append(lost**2 + 2 * (max(-found.low, found.high) / later) ** 2)
    clips = np.quantile(np.abs(values), np.linspace(0.5, 1, 501))
    lost = np.array([np.clip(values, -clip, clip).sum() - values.sum() for clip in clips])
    return float(np.sqrt(np.mean(squares)) / np.sqrt(lost**2 + 2 * clips**2).min())


@pytest.mark.parametrize("name", DATA)
def test_sums_are_within_twice_the_best_fixed_clip(name: str) -> None:
    """At ε = 1 in all: a quarter for the search and the rest for the sum, against all of it and the best clip."""
    assert simulate(DATA[name], 60, float(1 - SEARCH_SHARE)) <= 2


def test_the_comparison_can_fail() -> None:
    """Negative control: with half of the budget for the sum, uniform values are no longer within twice the best."""
    assert simulate(DATA["uniform"], 60, 0.5) > 2


def test_a_false_bucket_far_away_needs_far_more() -> None:
    """What is enough next to the largest bucket is not enough ten powers of two beyond it."""
    sure = {5: 5000, 6: 4000} | dict.fromkeys(range(7, 30), 0)
    near, far = math.ceil(NOISE.noise_bound(beta=Fraction(1, 160))) + 1, 16
    assert see_tails({**sure, 7: near}, {}, (6, None), NOISE)[0].edge == 7
    assert see_tails({**sure, far: near}, {}, (6, None), NOISE)[0].edge == 6
    assert see_tails({**sure, far: 200}, {}, (6, None), NOISE)[0].edge == far
    assert see_tails(sure, {3: near}, (6, None), NOISE)[1].edge is None
    assert see_tails(sure, {3: 200}, (6, None), NOISE)[1].edge == 3


def test_an_end_holds_what_is_sure_and_grows_with_what_is_beyond() -> None:
    """Never below the least end; a heavier tail moves it outwards; nothing beyond leaves it where it is."""
    ends = []
    for beyond in (-20, 10, 30, 60):
        counts = {8: 3000, 9: 400, 10: beyond, 11: beyond // 4, 12: 0}
        ends.append(choose_far_end((Tail(counts, 9), Tail({}, None)), 10, NOISE))
    assert ends[0] == 2**10 and ends == sorted(ends) and ends[-1] > 2**10


def test_where_many_values_end_nothing_is_guessed_beyond() -> None:
    """If it is wanted: far fewer than half of the last bucket are none. A count near the guess keeps the guess."""
    ending, falling = Tail({8: 3000, 9: 4000, 10: 9, 11: 5}, 9), Tail({8: 60, 9: 30, 10: 9, 11: 5}, 9)
    assert ending.estimate_beyond(NOISE, 10) == {8: 3000, 9: 4000}
    assert ending.estimate_beyond(NOISE).keys() == {8, 9, 10, 11}
    found = falling.estimate_beyond(NOISE, 10)
    assert found == falling.estimate_beyond(NOISE) and found[10] > found[11] > 0


def test_small_values_are_let_in() -> None:
    """From the smallest sure bucket inwards, as long as there are more than noise."""
    assert walk_inwards({1: 9, 2: 30, 3: 40, 4: 5000}, 4, NOISE) == 2


def test_the_later_question_is_that_of_automatic_bounds() -> None:
    """The noise that ends are chosen for follows from the share of the search."""
    assert LATER == (1 - SEARCH_SHARE) / SEARCH_SHARE


def test_every_sure_bucket_is_inside() -> None:
    """Whatever the other counts are, and for both signs."""
    above = threshold(NOISE, len(BUCKETS[Type.REAL]), DOUBTS[0])
    for _ in range(200):
        counts = dict(zip(BUCKETS[Type.REAL], rng.integers(-40, 40, len(BUCKETS[Type.REAL])).tolist()))
        sure = rng.choice(BUCKETS[Type.REAL], 3).tolist()
        found = read_bounds(counts | dict.fromkeys(sure, above + 1), NOISE)
        assert found is not None and all(found.low <= bucket <= found.high for bucket in sure)
