"""Permute-and-flip: exact probabilities against an oracle, the loss, and never worse than the exponential mechanism."""

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
from discreet.errors import ParameterError, UnknownLoss
from discreet.exact import Interval, ln
from discreet.mechanisms.exponential import Exponential
from discreet.mechanisms.permute_and_flip import PermuteAndFlip
from tests.mechanisms.selecting import Untouched, max_divergence, neighbours_of

SCORES = [(0,), (0, 0), (0, 3), (2, 0, 1), (0, 0, 5)]


def by_walking(scores: list[int], factor: Fraction, output: int) -> Interval:
    """Oracle: walk through each of the k! orders and stop at the first heads."""
    heads = [Interval.exp_minus(factor * (max(scores) - s)) for s in scores]
    chance = Interval.of(0)
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        reached = Interval.of(1)
        for i in order:
            if i == output:
                chance += reached * heads[i]
                break
            reached = reached * (Interval.of(1) - heads[i])
    return chance * Interval.of(Fraction(1, len(orders)))


@given(scores=st.lists(st.integers(-6, 6), min_size=1, max_size=5), epsilon=st.fractions(Fraction(1, 10), 5))
@settings(deadline=None, max_examples=30)
def test_probability_is_that_of_walking_in_random_order(scores: list[int], epsilon: Fraction) -> None:
    """Uniform among all heads is the same law as the first heads in a random order."""
    flip = PermuteAndFlip(sensitivity=1, epsilon=epsilon)
    for i in range(len(scores)):
        ours, oracle = flip.probability(i, scores), by_walking(scores, flip.factor, i)
        assert ours.low <= oracle.high
        assert oracle.low <= ours.high
        assert ours.high - ours.low < Fraction(1, 1 << 120)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), 2, ln(3)])
@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("monotone", [False, True])
def test_loss_is_within_the_claim_for_all_neighbours(epsilon: Any, scores: tuple[int, ...], monotone: bool) -> None:
    """Over every neighbouring score vector, the exact max-divergence is at most ε."""
    flip = PermuteAndFlip(sensitivity=1, epsilon=epsilon, monotone=monotone)
    outputs = range(len(scores))
    worst = max(
        max_divergence((flip.probability(i, scores), flip.probability(i, near)) for i in outputs)
        for near in neighbours_of(scores, 1, monotone=monotone)
    )
    assert worst <= float(epsilon) + 1e-12


def test_loss_is_tight() -> None:
    """A far-off candidate that comes 2Δ closer gains e^ε exactly in the limit."""
    flip = PermuteAndFlip(sensitivity=1, epsilon=1)
    here, there = [30, 0], [29, 1]
    assert max_divergence([(flip.probability(1, here), flip.probability(1, there))]) == pytest.approx(1, abs=1e-5)


def test_missing_factor_two_is_caught() -> None:
    """Negative control: the monotone form on general scores loses nearly 2ε."""
    wrong = PermuteAndFlip(sensitivity=1, epsilon=1, monotone=True)
    assert max_divergence([(wrong.probability(1, [30, 0]), wrong.probability(1, [29, 1]))]) > 1.9


def test_range_is_not_bounded_by_epsilon() -> None:
    """Why ε²/8 is not claimed: on some pair of neighbours, log-ratios lie further apart than ε."""
    flip, choice = PermuteAndFlip(sensitivity=1, epsilon=1), Exponential(sensitivity=1, epsilon=1)
    starts = [a for a in itertools.product((0, -1, -4), repeat=3) if max(a) == 0]
    pairs = [(a, b) for a in starts for b in neighbours_of(a, 1)]
    assert max(spread(flip, a, b) for a, b in pairs) > 1 + 1e-3
    assert max(spread(choice, a, b) for a, b in pairs) <= 1 + 1e-9


def spread(choice: PermuteAndFlip | Exponential, here: tuple[int, ...], there: tuple[int, ...]) -> float:
    """How far apart the log-ratios of the outputs are."""
    ratios = [
        math.log(float(choice.probability(i, here)) / float(choice.probability(i, there))) for i in range(len(here))
    ]
    return max(ratios) - min(ratios)


def test_event_is_pure_only() -> None:
    """The event says ε-private and nothing about bounded range."""
    flip = PermuteAndFlip(sensitivity=1, epsilon=1, unit="person")
    assert flip.event == events.Pure(epsilon=1, unit="person")
    assert flip.privacy.epsilon() == 1
    bounded = Exponential(sensitivity=1, epsilon=1, unit="person").privacy
    try:
        claimed = flip.privacy.notion("zcdp").epsilon(1e-6)
    except UnknownLoss:
        return
    assert claimed > bounded.notion("zcdp").epsilon(1e-6)


@given(scores=st.lists(st.integers(-8, 8), min_size=1, max_size=6), epsilon=st.fractions(Fraction(1, 10), 6))
@settings(deadline=None, max_examples=50)
def test_never_worse_than_the_exponential_mechanism(scores: list[int], epsilon: Fraction) -> None:
    """Expected loss of score, and the chance of any loss t or more, are at most those of the exponential mechanism."""
    flip, choice = PermuteAndFlip(sensitivity=1, epsilon=epsilon), Exponential(sensitivity=1, epsilon=epsilon)
    best = max(scores)
    ours = [flip.probability(i, scores) for i in range(len(scores))]
    theirs = [choice.probability(i, scores) for i in range(len(scores))]
    assert sum(p.low * (best - s) for p, s in zip(ours, scores)) <= sum(
        p.high * (best - s) for p, s in zip(theirs, scores)
    )
    for t in {best - s for s in scores} - {0}:
        assert sum(p.low for p, s in zip(ours, scores) if best - s >= t) <= sum(
            p.high for p, s in zip(theirs, scores) if best - s >= t
        )


def test_draws_follow_the_exact_probabilities() -> None:
    """Draws fit the exact law, and not that of the exponential mechanism (negative control)."""
    from scipy.stats import chisquare

    scores: list[Any] = [0.5, 1, Fraction(9, 4), 3, 3]
    flip, other = PermuteAndFlip(sensitivity=1, epsilon=1), Exponential(sensitivity=1, epsilon=1)
    source = SeededForTestsOnly(3)
    counts = np.bincount([flip.release(scores, source=source) for _ in range(20_000)], minlength=5)
    exact = np.array([float(flip.probability(i, scores)) for i in range(5)])
    wrong = np.array([float(other.probability(i, scores)) for i in range(5)])
    assert chisquare(counts, exact / exact.sum() * 20_000).pvalue > 1e-3
    assert chisquare(counts, wrong / wrong.sum() * 20_000).pvalue < 1e-9


def test_differences_of_floats_are_not_rounded() -> None:
    """Scores whose distance is no float (1 and 10⁻³⁰⁰) are handled, and the best one always shows heads."""
    flip = PermuteAndFlip(sensitivity=1, epsilon=1000)
    assert {flip.release([1.0, 1e-300, -0.3], source=SeededForTestsOnly(i)) for i in range(20)} == {0}


def test_error_is_that_of_the_exponential_mechanism() -> None:
    """The stated bound holds: the worst case for it misses with less than β."""
    flip = PermuteAndFlip(sensitivity=1, epsilon=2)
    bound = Fraction(flip.error(0.05, of=8))
    assert float(bound) == Exponential(sensitivity=1, epsilon=2).error(0.05, of=8)
    assert 1 - flip.probability(0, [Fraction(0)] + [-bound] * 7).low <= Fraction(1, 20)


@pytest.mark.parametrize(
    "bad",
    [
        {"sensitivity": 0, "epsilon": 1},
        {"sensitivity": 1, "epsilon": 0},
        {"sensitivity": 1, "epsilon": math.nan},
        {"sensitivity": 1, "epsilon": None},
        {"sensitivity": 1, "epsilon": 1, "monotone": True, "neighbours": "replace"},
    ],
    ids=str,
)
def test_bad_parameters_are_refused(bad: dict[str, Any]) -> None:
    """Parameters outside the theorem are refused when the mechanism is made."""
    with pytest.raises(ParameterError):
        PermuteAndFlip(**bad)


@pytest.mark.parametrize("bad", [[], [math.nan], [math.inf, 1.0], ["a"], [True, 2], None], ids=repr)
def test_bad_scores_are_refused_before_anything_is_drawn(bad: Any) -> None:
    """The source is never touched for scores that cannot be used."""
    with pytest.raises(ParameterError):
        PermuteAndFlip(sensitivity=1, epsilon=1).release(bad, source=Untouched())


def test_the_candidate_itself_is_chosen() -> None:
    """``choose`` gives the candidate that ``release`` names by its index, from the same bits."""
    mechanism = PermuteAndFlip(sensitivity=1, epsilon=1)
    scores = {"tea": 3, "coffee": 4, "milk": 2}
    for seed in range(20):
        index = mechanism.release(list(scores.values()), source=SeededForTestsOnly(seed))
        found = mechanism.choose(list(scores), scores.__getitem__, source=SeededForTestsOnly(seed))
        assert found == list(scores)[index]
