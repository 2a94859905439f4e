"""Randomized response: exact loss, unbiased estimates, sample sizes, bad input."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.entropy import SeededForTestsOnly
from discreet.errors import ParameterError
from discreet.exact import Interval, ln
from discreet.mechanisms.estimate import Estimate
from discreet.mechanisms.randomized_response import RandomizedResponse
from discreet.privacy import Neighbours, Unit
from tests.mechanisms.exactly import Untouchable, reached, violated


def test_the_coin_is_ln_3_exactly() -> None:
    """Truth with 3/4, the other answer with 1/4: the ratio is exactly 3, so ε is exactly ln 3 (errata 1)."""
    coin = RandomizedResponse.coin()
    assert coin.probability(True, given=True) == Interval.of(Fraction(3, 4))
    assert coin.probability(True, given=False) == Interval.of(Fraction(1, 4))
    ratio = coin.probability(True, True) / coin.probability(True, False)
    assert ratio == Interval.of(3)
    assert coin.epsilon == ln(3)
    assert coin == RandomizedResponse(epsilon=ln(3)) == RandomizedResponse(gamma=Fraction(1, 4))
    assert coin.privacy.notion("pure").amount == ln(3)  # type: ignore[attr-defined]  # Pure


@pytest.mark.parametrize("epsilon", [ln(3), ln(Fraction(5, 4)), Fraction(1, 10), Fraction(1), Fraction(7)])
@pytest.mark.parametrize("k", [2, 3, 10])
def test_the_claim_is_exact_and_tight(epsilon: Any, k: int) -> None:
    """For all pairs of answers the ratios are within e^ε, and e^ε is reached; probabilities sum to one."""
    response = RandomizedResponse(epsilon=epsilon, categories=k)
    for given_ in range(1, k):
        assert not violated(response.probability, epsilon, 0, given_, range(k))
        assert reached(response.probability, epsilon, 0, given_, range(k))
    total = sum((response.probability(o, 0) for o in range(k)), start=Interval.of(0))
    assert Fraction(1) in total
    wrong = RandomizedResponse(epsilon=epsilon * 2, categories=k)
    assert violated(wrong.probability, epsilon, 0, 1, range(k))  # negative control


@given(st.fractions(Fraction(1, 1000), Fraction(499, 1000)))
@settings(deadline=None, max_examples=50)
def test_gamma_is_kept_exactly(gamma: Fraction) -> None:
    """Keep with 1/2 + γ, and ε = ln((1/2 + γ)/(1/2 − γ)) is a value, not an approximation."""
    response = RandomizedResponse(gamma=gamma)
    assert response.keep == Interval.of(Fraction(1, 2) + gamma)
    assert response.epsilon == ln((Fraction(1, 2) + gamma) / (Fraction(1, 2) - gamma))


@given(st.fractions(Fraction(1, 100), 20), st.integers(2, 1000), st.integers(1, 300))
@settings(deadline=None, max_examples=60)
def test_bounds_for_lazy_comparison_enclose_the_probability(epsilon: Fraction, k: int, bits: int) -> None:
    """At any precision the integers enclose 2^bits·keep, and are close together."""
    response = RandomizedResponse(epsilon=epsilon, categories=k)
    low, high = response._keep_bounds(bits)
    assert low <= response.keep.high * 2**bits
    assert response.keep.low * 2**bits <= high
    assert high - low <= 3


def test_the_statement_is_about_one_respondent_under_replace() -> None:
    """The number of respondents is visible, so add-remove is refused."""
    loss = RandomizedResponse(epsilon=1).privacy
    assert (loss.neighbours, loss.unit) == (Neighbours.REPLACE, Unit("respondent"))
    with pytest.raises(ParameterError, match="neighbours"):
        RandomizedResponse(epsilon=1, neighbours="add-remove")


@pytest.mark.parametrize("mechanism", [RandomizedResponse.coin(), RandomizedResponse(epsilon=1)])
def test_two_answers_are_kept_as_often_as_said(mechanism: RandomizedResponse) -> None:
    """With a fixed seed, the share kept is within 6 standard errors; a 2 % different share is not."""
    n = 200_000
    kept = float(np.mean(mechanism.release(np.ones(n, dtype=bool), source=SeededForTestsOnly(5))))
    truth = float(mechanism.keep)
    spread = math.sqrt(truth * (1 - truth) / n)
    assert abs(kept - truth) < 6 * spread
    assert abs(kept - truth * 0.98) > 6 * spread


def test_other_categories_are_uniform() -> None:
    """Among k categories the wrong ones are equally likely (chi-square, fixed seed)."""
    from scipy.stats import chisquare

    response = RandomizedResponse(epsilon=1, categories=["a", "b", "c", "d"])
    out = response.release(["b"] * 100_000, source=SeededForTestsOnly(6))
    counts = [out.count(label) for label in "abcd"]
    expected = [float(response.probability(label, "b")) * len(out) for label in "abcd"]
    assert chisquare(counts, expected).pvalue > 1e-6
    assert chisquare(counts, expected[1:] + expected[:1]).pvalue < 1e-9


def test_responses_have_the_kind_of_the_answers() -> None:
    """Bools give bools, ints ints, labels labels; one answer gives one response."""
    source = SeededForTestsOnly(2)
    coin = RandomizedResponse.coin()
    assert isinstance(coin.release(True, source=source), bool)
    assert type(coin.release(1, source=source)) is int
    assert coin.release([True, False], source=source).dtype == np.bool_
    assert coin.release([1, 0, 1], source=source).dtype == np.int64
    colours = RandomizedResponse(epsilon=1, categories=("red", "green", "blue"))
    assert colours.release("red", source=source) in {"red", "green", "blue"}
    assert set(colours.release(np.array(["red", "blue"]), source=source)) <= {"red", "green", "blue"}
    pairs = RandomizedResponse(epsilon=1, categories=[(0, 1), (1, 0)])
    assert pairs.release((0, 1), source=source) in {(0, 1), (1, 0)}


def test_the_estimator_is_unbiased_exactly() -> None:
    """Averaged over all responses of three people with their exact probabilities, the estimate is the true share."""
    coin, answers = RandomizedResponse.coin(), [True, True, False]
    mean = 0.0
    for bits in range(8):
        responses = [bool(bits >> i & 1) for i in range(3)]
        mean += float(coin.probability(responses, answers)) * coin.estimate(responses).value
    assert mean == pytest.approx(2 / 3, abs=1e-12)
    naive = sum(float(coin.probability([True], [a])) for a in answers) / 3
    assert naive == pytest.approx(1 / 4 + (2 / 3) / 2)  # the notes' 1/4 + p/2: biased


def test_the_estimate_is_the_slides_formula() -> None:
    """Averaging ((e^ε + 1)y − 1)/(e^ε − 1) over responses is the same estimator."""
    response = RandomizedResponse(epsilon=1)
    responses = [True] * 61 + [False] * 39
    e = math.exp(1)
    assert response.estimate(responses).value == pytest.approx(((e + 1) * 0.61 - 1) / (e - 1))


def test_categories_are_estimated_together() -> None:
    """Shares of all categories sum to one, and lie in their intervals for a fixed seed."""
    response = RandomizedResponse(epsilon=2, categories=["a", "b", "c"])
    answers = ["a"] * 6000 + ["b"] * 3000 + ["c"] * 1000
    shares = response.estimate(response.release(answers, source=SeededForTestsOnly(8)))
    assert sum(share.value for share in shares.values()) == pytest.approx(1)
    for label, truth in (("a", 0.6), ("b", 0.3), ("c", 0.1)):
        assert truth in shares[label]
        assert shares[label].standard_error < 0.02


def test_intervals_cover_as_often_as_said() -> None:
    """Over all numbers of yes-responses of 40 people, the exact coverage of the interval is at least 95 %."""
    coin, n, yes = RandomizedResponse.coin(), 40, 10
    covered = 0.0
    for count in range(n + 1):
        chance = sum(
            math.comb(yes, a) * 0.75**a * 0.25 ** (yes - a)
            * math.comb(n - yes, count - a) * 0.25 ** (count - a) * 0.75 ** (n - yes - count + a)
            for a in range(max(0, count - n + yes), min(yes, count) + 1)
        )  # fmt: skip
        if yes / n in coin.estimate([True] * count + [False] * (n - count)):
            covered += chance
    assert covered >= 0.95


def test_sample_sizes_and_errors_are_reverse() -> None:
    """people_needed gives enough people, one in a thousand fewer is not enough, and it grows like 1/(γα)²."""
    for response in (RandomizedResponse.coin(), RandomizedResponse(epsilon=0.1), RandomizedResponse(gamma=0.01)):
        people = response.people_needed(alpha=0.05, beta=0.1)
        assert response.accuracy(people, beta=0.1) <= 0.05
        assert response.accuracy(people - 1 - people // 1000, beta=0.1) > 0.05
    few, many = (RandomizedResponse(gamma=g).people_needed(alpha=0.02) for g in (0.2, 0.1))
    assert many / few == pytest.approx(4, rel=1e-3)
    assert isinstance(RandomizedResponse.coin().estimate([True, False]), Estimate)


def test_the_error_holds_exactly_for_few_people() -> None:
    """For 30 people the exact chance of an error beyond ``error`` is at most β, whatever their answers."""
    coin, n, beta = RandomizedResponse.coin(), 30, 0.2
    bound = coin.error(beta, people=n)
    for yes in (0, 7, 30):
        beyond = 0.0
        for a in range(yes + 1):
            for b in range(n - yes + 1):
                chance = math.comb(yes, a) * 0.75**a * 0.25 ** (yes - a)
                chance *= math.comb(n - yes, b) * 0.25**b * 0.75 ** (n - yes - b)
                if abs(((a + b) / n - 0.25) / 0.5 - yes / n) > bound:
                    beyond += chance
        assert beyond <= beta


BAD: list[tuple[str, dict[str, Any]]] = [
    ("epsilon", {}),
    ("epsilon", {"epsilon": 0}),
    ("epsilon", {"epsilon": float("nan")}),
    ("epsilon and gamma", {"epsilon": 1, "gamma": 0.1}),
    ("gamma", {"gamma": 0}),
    ("gamma", {"gamma": 0.5}),
    ("gamma", {"gamma": 0.1, "categories": 3}),
    ("categories", {"epsilon": 1, "categories": 1}),
    ("categories", {"epsilon": 1, "categories": 2.5}),
    ("categories", {"epsilon": 1, "categories": "ab"}),
    ("categories", {"epsilon": 1, "categories": []}),
    ("categories", {"epsilon": 1, "categories": ["a"]}),
    ("categories", {"epsilon": 1, "categories": ["a", "a"]}),
    ("categories", {"epsilon": 1, "categories": [["a"], ["b"]]}),
]


@pytest.mark.parametrize(("name", "given"), BAD)
def test_bad_parameters_are_named(name: str, given: dict[str, Any]) -> None:
    """Each bad parameter is refused by name, with a fix."""
    with pytest.raises(ParameterError, match=name) as caught:
        RandomizedResponse(**given)
    assert caught.value.fix


@pytest.mark.parametrize("answers", [2, -1, 0.5, "yes", None, [0, 2], [True, "no"], [0.0, 1.0], float("nan")])
def test_answers_outside_the_categories_draw_nothing(answers: object) -> None:
    """An answer that is not a category is refused before a coin is thrown."""
    with pytest.raises(ParameterError, match="answers"):
        RandomizedResponse.coin().release(answers, source=Untouchable())
    with pytest.raises(ParameterError, match="answers"):
        RandomizedResponse(epsilon=1, categories=["a", "b"]).release(answers, source=Untouchable())


def test_bad_questions_about_errors_are_refused() -> None:
    """Empty responses, impossible errors and shares are refused by name."""
    coin = RandomizedResponse.coin()
    with pytest.raises(ParameterError, match="responses"):
        coin.estimate([])
    with pytest.raises(ParameterError, match="confidence"):
        coin.estimate([True], confidence=1)
    with pytest.raises(ParameterError, match="alpha"):
        coin.people_needed(alpha=0)
    with pytest.raises(ParameterError, match="alpha"):
        coin.people_needed(alpha=1e-200)
    with pytest.raises(ParameterError, match="people"):
        coin.error(people=0)


@pytest.mark.parametrize("share", [0, Fraction(1, 10), Fraction(1, 2), 1])
def test_expected_share_of_yes(share: Fraction | int) -> None:
    """1/4 + p/2 for the coin, 1/2 − γ + 2γp for γ; what ``estimate`` makes of it is p again."""
    coin = RandomizedResponse.coin()
    assert coin.expected_share(share) == Interval.of(Fraction(1, 4) + Fraction(share) / 2)
    gamma = Fraction(1, 10)
    assert RandomizedResponse(gamma=gamma).expected_share(share) == Interval.of(
        Fraction(1, 2) - gamma + 2 * gamma * share
    )
    by_hand = coin.probability(1, given=1) * Interval.of(share) + coin.probability(1, given=0) * Interval.of(1 - share)
    assert coin.expected_share(share) == by_hand
    yes = int(1000 * coin.expected_share(share).low)
    assert coin.estimate([1] * yes + [0] * (1000 - yes)).value == pytest.approx(float(share))


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_shares_beyond_one_are_refused(share: float) -> None:
    """A share is between 0 and 1."""
    with pytest.raises(ParameterError, match="share"):
        RandomizedResponse.coin().expected_share(share)
