"""Report noisy max and top-k: exact probabilities, ties, the loss, and tie rules that would break it."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import events
from discreet.entropy import SeededForTestsOnly
from discreet.errors import ParameterError
from discreet.exact import Interval, ln
from discreet.mechanisms.exponential import Exponential
from discreet.mechanisms.noisy_max import NoisyMax, TopK
from discreet.mechanisms.winner import OneSidedNoise, TwoSidedNoise, reach, win_probability
from tests.mechanisms.selecting import Untouched, max_divergence, neighbours_of

SCORES = [(0, 0), (0, 3), (1, 0, 0)]


def by_hand(scores: list[int], scale: Fraction, *, signed: bool, output: int, reach: int = 60) -> float:
    """Oracle: go through a grid of all noise vectors, ties shared evenly, in floats."""
    q = math.exp(-1 / float(scale))
    values = range(-reach if signed else 0, reach + 1)
    mass = {z: (1 - q) / (1 + q) * q ** abs(z) if signed else (1 - q) * q**z for z in values}
    chance = 0.0
    for noise in itertools.product(values, repeat=len(scores)):
        noisy = [s + z for s, z in zip(scores, noise)]
        if noisy[output] == max(noisy):
            chance += math.prod(mass[z] for z in noise) / noisy.count(max(noisy))
    return chance


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("scores", [[0, 0], [0, 2], [1, -1]])
def test_probability_against_going_through_all_noise(scores: list[int], signed: bool) -> None:
    """The certified probability is that of the definition, with ties shared evenly."""
    noise = TwoSidedNoise(Fraction(2)) if signed else OneSidedNoise(Fraction(2))
    exact = win_probability(noise, scores[0], scores[1:])
    assert float(exact) == pytest.approx(by_hand(scores, Fraction(2), signed=signed, output=0), abs=1e-9)
    assert exact.high - exact.low < Fraction(1, 1 << 100)


def test_three_candidates_against_going_through_all_noise() -> None:
    """Three-way ties are shared as well."""
    top = NoisyMax(sensitivity=1, epsilon=4)
    exact = [float(top.probability(i, [1, 0, 1])) for i in range(3)]
    assert sum(exact) == pytest.approx(1, abs=1e-12)
    for i in range(3):
        hand = by_hand([1, 0, 1], Fraction(1, 2), signed=False, output=i, reach=20)
        assert exact[i] == pytest.approx(hand, abs=1e-9)


@pytest.mark.parametrize("noise", ["exponential", "laplace", "gumbel"])
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("scores", SCORES)
def test_loss_is_within_the_claim_for_all_neighbours(scores: tuple[int, ...], monotone: bool, noise: str) -> None:
    """Over every neighbouring score vector, ties included, the exact max-divergence is at most ε."""
    top = NoisyMax(sensitivity=1, epsilon=2, monotone=monotone, noise=noise)
    near = list(neighbours_of(scores, 1, monotone=monotone))[:27]
    known = {case: [top.probability(i, case) for i in range(len(scores))] for case in {scores, *near}}
    assert max(max_divergence(zip(known[scores], known[case])) for case in near) <= 2 + 1e-12


@pytest.mark.parametrize("noise", ["exponential", "laplace"])
def test_loss_is_tight(noise: str) -> None:
    """A far-off candidate that comes 2Δ closer gains nearly e^ε."""
    top = NoisyMax(sensitivity=1, epsilon=2, noise=noise)
    gain = max_divergence([(top.probability(1, [12, 0]), top.probability(1, [11, 1]))])
    assert (1.9 if noise == "exponential" else 1.5) < gain <= 2 + 1e-12


def test_missing_factor_two_is_caught() -> None:
    """Negative control: the monotone scale on general scores loses more than ε."""
    wrong = NoisyMax(sensitivity=1, epsilon=2, monotone=True)
    assert max_divergence([(wrong.probability(1, [12, 0]), wrong.probability(1, [11, 1]))]) > 3.5


def test_ties_by_true_score_would_break_the_guarantee() -> None:
    """Negative control: breaking ties towards the larger *true* score loses more than ε.

    With scores (1, 0) ties go to the first, with the neighbouring (0, 1) to the second: the second candidate needs
    2Δ + 1 more noise, not 2Δ.
    """
    noise = OneSidedNoise(Fraction(1, 2))  # scale 2Δ/ε for Δ = 1, ε = 4: fair ties lose at most 4

    def second_wins(first: int, second: int) -> Interval:
        chance = Interval.of(0)
        for z in range(reach(noise)):
            value = second + z  # it wins from `value` against anything below, and against a tie if its score is larger
            limit = value - first + (1 if second > first else 0)
            chance = (chance + noise.chance_at(z) * noise.chance_below(limit)).trim()
        return chance

    fair = [win_probability(noise, second, [first]) for first, second in ((1, 0), (0, 1))]
    assert max_divergence([(fair[0], fair[1])]) <= 4 + 1e-12
    assert max_divergence([(second_wins(9, 7), second_wins(8, 8))]) <= 4 + 1e-9  # equal scores: no harm yet
    worst = max(
        max_divergence([(second_wins(a, b), second_wins(a + da, b + db))])
        for a, b in ((1, 0), (2, 1))
        for da in (-1, 0, 1)
        for db in (-1, 0, 1)
    )
    assert worst > 4 + 0.1


def test_any_fixed_order_for_ties_keeps_the_guarantee() -> None:
    """Ties to the lowest index are as private as fair ties: the rule does not look at scores."""
    noise = OneSidedNoise(Fraction(1, 2))

    def last_wins(scores: tuple[int, ...]) -> Interval:
        """The last index wins only when strictly above all others."""
        chance = Interval.of(0)
        for z in range(reach(noise)):
            alone = noise.chance_at(z)
            for other in scores[:-1]:
                alone = alone * noise.chance_below(scores[-1] + z - other)
            chance = (chance + alone).trim()
        return chance

    for scores in ((0, 0), (1, 0), (0, 0, 0)):
        for near in neighbours_of(scores, 1):
            assert max_divergence([(last_wins(scores), last_wins(near))]) <= 4 + 1e-12


@pytest.mark.parametrize("noise", ["exponential", "laplace", "gumbel"])
def test_draws_follow_the_exact_probabilities(noise: str) -> None:
    """Draws fit the exact law, ties included."""
    from scipy.stats import chisquare

    scores, top = [0, 1, 1], NoisyMax(sensitivity=1, epsilon=3, noise=noise)
    source = SeededForTestsOnly(8)
    counts = np.bincount([top.release(scores, source=source) for _ in range(6_000)], minlength=3)
    exact = np.array([float(top.probability(i, scores)) for i in range(3)])
    assert chisquare(counts, exact / exact.sum() * counts.sum()).pvalue > 1e-3
    wrong = np.array([float(NoisyMax(sensitivity=1, epsilon=4, noise=noise).probability(i, scores)) for i in range(3)])
    assert chisquare(counts, wrong / wrong.sum() * counts.sum()).pvalue < 1e-9


def test_gumbel_is_the_exponential_mechanism() -> None:
    """The same probabilities and the same event; other noises are pure only."""
    top = NoisyMax(sensitivity=2, epsilon=1, noise="gumbel")
    choice = Exponential(sensitivity=2, epsilon=1)
    assert [top.probability(i, [3, 1, 0]) for i in range(3)] == [choice.probability(i, [3, 1, 0]) for i in range(3)]
    assert top.event == choice.event
    assert NoisyMax(sensitivity=2, epsilon=1).event == events.Pure(epsilon=1)
    assert NoisyMax(sensitivity=1, epsilon=ln(3)).event == events.Pure(epsilon=ln(3))
    assert NoisyMax(sensitivity=2, epsilon=1).privacy.epsilon() == 1


@pytest.mark.parametrize("noise", ["exponential", "laplace", "gumbel"])
def test_error_bound_holds(noise: str) -> None:
    """With scores at the bound, the wrong one wins with at most β."""
    top = NoisyMax(sensitivity=1, epsilon=2, noise=noise)
    bound = math.floor(top.error(0.05, of=3)) + 1
    assert 1 - top.probability(0, [bound, 0, 0]).low <= Fraction(1, 20)
    assert top.error(0.05, of=1) == 0
    assert top.error(0.05, of=3) < top.error(0.05, of=300)


def test_scores_near_the_end_of_64_bits_do_not_wrap() -> None:
    """Large scores and large noise are added exactly."""
    top = NoisyMax(sensitivity=1 << 60, epsilon=Fraction(1, 1000))
    assert top.release([(1 << 62) - 1, -(1 << 62) + 1], source=SeededForTestsOnly(2)) in {0, 1}
    assert NoisyMax(sensitivity=1, epsilon=50).release([(1 << 62) - 1, -(1 << 62) + 1]) == 0


@given(scores=st.lists(st.integers(-5, 5), min_size=3, max_size=4), epsilon=st.fractions(Fraction(1, 2), 6))
@settings(deadline=None, max_examples=20)
def test_top_k_probabilities_sum_to_one(scores: list[int], epsilon: Fraction) -> None:
    """All ordered pairs of different candidates together have probability one."""
    top = TopK(k=2, sensitivity=1, epsilon=epsilon)
    found = [top.probability(pair, scores) for pair in itertools.permutations(range(len(scores)), 2)]
    assert sum(p.low for p in found) <= 1 <= sum(p.high for p in found)


@pytest.mark.parametrize("monotone", [False, True])
def test_top_k_loss_is_within_the_claim(monotone: bool) -> None:
    """Two rounds of ε/2 lose at most ε on every pair of neighbours."""
    top = TopK(k=2, sensitivity=1, epsilon=2, monotone=monotone)
    scores = (2, 0, 1)
    pairs = list(itertools.permutations(range(3), 2))
    for near in neighbours_of(scores, 1, monotone=monotone):
        assert max_divergence((top.probability(p, scores), top.probability(p, near)) for p in pairs) <= 2 + 1e-12


def test_top_k_budget_forms() -> None:
    """epsilon is shared over the rounds; rho gives each round √(8ρ/k), so that all cost at most ρ."""
    assert TopK(k=5, sensitivity=1, epsilon=1).event == events.Exponential(epsilon=Fraction(1, 5), count=5)
    for k in (1, 3, 7):
        loss = TopK(k=k, sensitivity=1, rho=0.1).loss
        assert isinstance(loss, Fraction)
        assert 0 <= Fraction(1, 10) - k * loss**2 / 8 < Fraction(1, 1 << 60)
    many = TopK(k=100, sensitivity=1, epsilon=10)
    assert many.privacy.epsilon() == pytest.approx(10)
    assert many.privacy.epsilon(1e-6) < 2.42


def test_top_k_draws_follow_the_exact_probabilities() -> None:
    """Draws of ordered pairs fit the exact law."""
    from scipy.stats import chisquare

    scores, top = [0, 1, 2], TopK(k=2, sensitivity=1, epsilon=4)
    pairs = list(itertools.permutations(range(3), 2))
    source = SeededForTestsOnly(4)
    drawn = [top.release(scores, source=source) for _ in range(6_000)]
    counts = np.array([drawn.count(pair) for pair in pairs])
    exact = np.array([float(top.probability(pair, scores)) for pair in pairs])
    assert chisquare(counts, exact / exact.sum() * counts.sum()).pvalue > 1e-3


def test_top_k_error_bound_holds() -> None:
    """In all rounds together, a pick further below the best one left than the bound has at most β."""
    top = TopK(k=2, sensitivity=1, epsilon=4)
    bound = Fraction(top.error(0.1, of=4))
    scores = [Fraction(0), Fraction(0), -bound, -bound]
    good = top.probability((0, 1), scores).low + top.probability((1, 0), scores).low
    assert 1 - good <= Fraction(1, 10)


@pytest.mark.parametrize(
    "bad",
    [
        {"sensitivity": 0, "epsilon": 1},
        {"sensitivity": 0.5, "epsilon": 1},
        {"sensitivity": 1, "epsilon": 0},
        {"sensitivity": 1, "epsilon": math.inf},
        {"sensitivity": 1, "epsilon": 1, "noise": "gauss"},
        {"sensitivity": 1, "epsilon": 1, "noise": None},
        {"sensitivity": 1, "epsilon": 1, "monotone": True, "neighbours": "replace"},
    ],
    ids=str,
)
def test_bad_parameters_are_refused(bad: dict[str, Any]) -> None:
    """Parameters outside the theorem are refused when the mechanism is made."""
    with pytest.raises(ParameterError):
        NoisyMax(**bad)


@pytest.mark.parametrize(
    "bad",
    [
        {"k": 0, "sensitivity": 1, "epsilon": 1},
        {"k": 1.5, "sensitivity": 1, "epsilon": 1},
        {"k": 2, "sensitivity": 1},
        {"k": 2, "sensitivity": 1, "epsilon": 1, "rho": 1},
        {"k": 2, "sensitivity": 1, "rho": -1},
    ],
    ids=str,
)
def test_bad_top_k_parameters_are_refused(bad: dict[str, Any]) -> None:
    """Parameters outside the theorem are refused when the mechanism is made."""
    with pytest.raises(ParameterError):
        TopK(**bad)


@pytest.mark.parametrize("bad", [[], [0.5, 1.0], [Fraction(1, 2)], [math.nan], ["a"], [True], [1 << 62]], ids=repr)
def test_bad_scores_are_refused_before_anything_is_drawn(bad: Any) -> None:
    """Scores must be whole numbers for discrete noise; the source is never touched otherwise."""
    with pytest.raises(ParameterError):
        NoisyMax(sensitivity=1, epsilon=1).release(bad, source=Untouched())


def test_top_k_refuses_too_few_candidates_and_impossible_outputs() -> None:
    """k candidates are needed, and an output is k different indices."""
    top = TopK(k=3, sensitivity=1, epsilon=1)
    with pytest.raises(ParameterError):
        top.release([1, 2], source=Untouched())
    for output in ((0, 1), (0, 1, 1), (0, 1, 9)):
        with pytest.raises(ParameterError):
            top.probability(output, [1, 2, 3, 4])
