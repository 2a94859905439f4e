"""Odds: every bound against brute force, and words that never flatter."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting.gdp import GaussianNotion
from discreet.accounting.pure import PureNotion
from discreet.errors import ParameterError
from discreet.exact import ln
from discreet.odds import Odds, _format_odds, _format_percent, posterior, tail_epsilon
from discreet.privacy import Loss, Neighbours, Unit


def odds_of_pair(p: list[float], q: list[float]) -> Odds:
    """The odds of one pair of outputs distributions, from its exact profile in both directions."""

    def profile(epsilon: float) -> float:
        there = sum(max(0.0, a - math.exp(epsilon) * b) for a, b in zip(p, q))
        back = sum(max(0.0, b - math.exp(epsilon) * a) for a, b in zip(p, q))
        return max(there, back)

    ratios = [abs(math.log(a / b)) for a, b in zip(p, q)]
    return Odds(advantage=profile(0), epsilon=max(ratios), delta=0.0, profile=profile)


weights = st.lists(st.integers(1, 50), min_size=2, max_size=5)


@given(weights, weights, st.floats(0, 1))
@settings(deadline=None, max_examples=80)
def test_no_attack_beats_the_stated_detection(one: list[int], other: list[int], false_alarms: float) -> None:
    """Every test that alarms on a set of outputs, with a coin on one more, is within the bound."""
    size = min(len(one), len(other))
    p = [w / sum(one[:size]) for w in one[:size]]
    q = [w / sum(other[:size]) for w in other[:size]]
    odds = odds_of_pair(p, q)
    bound = odds.detection(false_alarms)
    order = sorted(range(size), key=lambda i: p[i] / q[i], reverse=True)  # the best test (Neyman and Pearson)
    right = wrong = 0.0
    for i in order:
        share = min(1.0, max(0.0, (false_alarms - wrong) / q[i]))
        right, wrong = right + share * p[i], wrong + share * q[i]
    assert right <= bound + 1e-12


@given(weights, weights)
@settings(deadline=None, max_examples=80)
def test_guesses_are_bounds(one: list[int], other: list[int]) -> None:
    """The average guess is the best decision rule's; the worst one is the largest posterior."""
    size = min(len(one), len(other))
    p = [w / sum(one[:size]) for w in one[:size]]
    q = [w / sum(other[:size]) for w in other[:size]]
    odds = odds_of_pair(p, q)
    assert sum(max(a, b) for a, b in zip(p, q)) / 2 <= odds.guess + 1e-12
    assert max(max(a, b) / (a + b) for a, b in zip(p, q)) <= odds.worst_guess + 1e-12


def test_detection_is_tight_for_the_gaussian() -> None:
    """N(1,1) against N(0,1): right alarms at α are Φ(Φ⁻¹(α) + 1); the published value at 0.1 is 0.38914."""
    loss = Loss((GaussianNotion(Fraction(1)),), Unit(), Neighbours.ADD_REMOVE)
    odds = loss.odds()
    assert 0.389141 <= odds.detection(0.1) <= 0.38925
    assert odds.advantage == pytest.approx(math.erf(0.5 / math.sqrt(2)), rel=1e-9)
    assert odds.detection(0.0) == pytest.approx(0, abs=1e-5)
    assert odds.detection(1.0) == 1.0


def test_detection_is_tight_for_the_coin() -> None:
    """ln 3: the trade-off curve has corners; 5 % false alarms find at most 15 %, and 60 % at most 13/15."""
    odds = Loss((PureNotion(ln(3)),), Unit(), Neighbours.ADD_REMOVE).odds()
    assert odds.detection(0.05) == pytest.approx(0.15, abs=1e-9)
    assert odds.detection(0.6) == pytest.approx(1 - 0.4 / 3, abs=1e-9)
    assert odds.detection(0.25) == pytest.approx(0.75, abs=1e-9)
    assert odds.guess == pytest.approx(0.75)


def test_curve_is_monotone_concave_and_above_guessing() -> None:
    curve = Loss((GaussianNotion(Fraction(4)),), Unit(), Neighbours.ADD_REMOVE).odds().curve(41)
    assert curve[0][0] == 0
    assert curve[-1] == (1.0, 1.0)
    heights = [right for _, right in curve]
    assert all(right >= wrong for wrong, right in curve)
    assert heights == sorted(heights)
    assert all(b - a >= c - b - 1e-4 for a, b, c in zip(heights, heights[1:], heights[2:]))


def test_large_losses_do_not_overflow() -> None:
    odds = Loss((PureNotion(Fraction(5000)),), Unit(), Neighbours.ADD_REMOVE).odds()
    assert odds.detection(0.05) == 1.0
    assert odds.worst_guess == 1.0
    assert "certain" in odds.sentence()


@given(st.floats(0.01, 0.99), st.floats(0, 20))
@settings(deadline=None, max_examples=80)
def test_posterior_is_bayes_rule_rounded_up(prior: float, epsilon: float) -> None:
    odds = prior / (1 - prior) * math.exp(epsilon)
    assert posterior(prior, epsilon) == pytest.approx(odds / (1 + odds))
    assert posterior(prior, epsilon) >= prior
    assert posterior(prior, 0) == prior


def test_posterior_at_the_ends() -> None:
    assert posterior(0.5, math.inf) == 1.0
    assert posterior(0.0, math.inf) == posterior(0.0, 3) == 0.0
    assert posterior(1.0, 0.5) == 1.0
    for bad in (-0.1, 1.1, float("nan")):
        with pytest.raises(ParameterError, match="prior"):
            posterior(bad, 1)


@given(st.floats(0.05, 3), st.floats(1e-12, 0.05))
@settings(deadline=None, max_examples=60)
def test_tail_of_the_loss_is_bounded(mu: float, delta: float) -> None:
    """For a normal loss of mean μ²/2 and deviation μ: the stated loss is exceeded with probability at most δ."""
    notion = GaussianNotion(Fraction(mu) ** 2)
    epsilon = tail_epsilon(notion.epsilon, delta)
    assert math.erfc((epsilon - mu * mu / 2) / mu / math.sqrt(2)) / 2 <= delta * (1 + 1e-9)


def test_tail_of_a_pure_loss_is_the_loss() -> None:
    assert tail_epsilon(PureNotion(Fraction(1)).epsilon, 0.0) == 1.0
    assert tail_epsilon(PureNotion(Fraction(1)).epsilon, 1e-6) <= 1.0


def test_sentences() -> None:
    loss = Loss((PureNotion(ln(3)),), Unit("patient"), Neighbours.ADD_REMOVE)
    odds = loss.odds()
    assert odds.sentence() == "A guess about one patient that was 50:50 becomes at most 75:25."
    assert odds.sentence(prior=0.01) == "A guess about one patient that was 1:99 becomes at most 3:97."
    assert "impossible" in odds.sentence(prior=0)
    assert repr(odds) == str(odds)
    assert "5 % false alarms an attacker finds at most 15" in str(odds)
    gaussian = Loss((GaussianNotion(Fraction(1)),), Unit(), Neighbours.ADD_REMOVE).odds()
    assert "except with probability 1e-09" in str(gaussian)
    nothing = Odds(advantage=1.0, epsilon=math.inf, delta=0.0, profile=lambda _: 1.0)
    assert nothing.sentence() == "There is no bound on what this release reveals about one person."
    assert nothing.guess == nothing.worst_guess == nothing.detection(0.3) == 1.0


@given(st.floats(0.0001, 0.9999))
@settings(deadline=None, max_examples=150)
def test_shown_odds_never_flatter(p: float) -> None:
    """What is printed as an upper bound is at or above the number, to within a billionth of a step."""
    shown = _format_odds(p, up=True)
    top, bottom = (float(part) for part in shown.split(":"))
    assert top >= 100 * p - 1e-9
    assert top + bottom == pytest.approx(100)
    assert float(_format_percent(p).removesuffix(" %")) >= 100 * p - 1e-9


def test_bad_rates_are_refused() -> None:
    odds = Loss((PureNotion(ln(3)),), Unit(), Neighbours.ADD_REMOVE).odds()
    for bad in (-0.1, 1.1, float("nan")):
        with pytest.raises(ParameterError, match="false_alarms"):
            odds.detection(bad)
    for points in (1, 0, 2.5, True):
        with pytest.raises(ParameterError, match="points"):
            odds.curve(points)  # type: ignore[arg-type]  # on purpose


def test_advantage_of_composed_coins() -> None:
    """Two coins of ln 3: the best rule is right 10/16 + ... as counted by hand over the four outcomes."""
    keep, flip = 0.75, 0.25
    outcomes = list(itertools.product((keep, flip), repeat=2))
    p = [a * b for a, b in outcomes]
    q = [(1 - a) * (1 - b) for a, b in outcomes]
    assert odds_of_pair(p, q).advantage == pytest.approx(sum(max(0, a - b) for a, b in zip(p, q)))
