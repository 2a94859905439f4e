"""The sparse vector technique: exact probabilities, the loss, the stream's manners, and four wrong variants."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.accounting import events
from discreet.entropy import SeededForTestsOnly
from discreet.errors import BudgetExceeded, ParameterError, UsageError
from discreet.exact import ln
from discreet.mechanisms.sparse_vector import SparseVector
from tests.mechanisms.selecting import Untouched, max_divergence

EPS = 2


def outputs(questions: int, answers: int) -> Iterator[tuple[bool, ...]]:
    """Every sequence of verdicts that can be released."""
    for verdicts in itertools.product((False, True), repeat=questions):
        if sum(verdicts) <= answers:
            if sum(verdicts) < answers:
                yield verdicts
            else:
                last = max(i for i, yes in enumerate(verdicts) if yes)
                if last == questions - 1 or not any(verdicts[last + 1 :]):
                    yield verdicts[: last + 1]


def distinct(questions: int, answers: int) -> list[tuple[bool, ...]]:
    return sorted(set(outputs(questions, answers)))


@pytest.mark.parametrize("answers", [1, 2])
@pytest.mark.parametrize("monotone", [False, True])
def test_loss_is_within_the_claim(answers: int, monotone: bool) -> None:
    """Over neighbouring answers and all outputs, the exact max-divergence is at most ε."""
    rule = SparseVector(threshold=1, sensitivity=1, epsilon=EPS, answers=answers, monotone=monotone)
    moves = (0, 1) if monotone else (-1, 0, 1)
    cases: dict[tuple[int, ...], dict[tuple[bool, ...], Any]] = {}

    def known(answers_given: tuple[int, ...]) -> dict[tuple[bool, ...], Any]:
        if answers_given not in cases:
            cases[answers_given] = {o: rule.probability(o, answers_given) for o in distinct(3, answers)}
        return cases[answers_given]

    for here in ((0, 0, 0), (0, 2, 0), (5, 0, 1)):
        for change in itertools.product(moves, repeat=3):
            there = tuple(a + c for a, c in zip(here, change))
            assert max_divergence((known(here)[o], known(there)[o]) for o in known(here)) <= EPS + 1e-12


def test_loss_is_nearly_reached() -> None:
    """The bound is not idle: long runs of noes followed by a yes come close to ε."""
    rule = SparseVector(threshold=0, sensitivity=1, epsilon=EPS)
    output = (*[False] * 40, True)
    here, there = [0] * 40 + [-30], [1] * 40 + [-31]  # the noes and the yes all become less likely
    assert max_divergence([(rule.probability(output, here), rule.probability(output, there))]) > 0.8 * EPS


def test_probabilities_sum_to_one() -> None:
    """All outputs together have probability one."""
    rule = SparseVector(threshold=1, sensitivity=1, epsilon=1, answers=2)
    found = [rule.probability(o, [0, 3, 1]) for o in distinct(3, 2)]
    assert sum(p.low for p in found) <= 1 <= sum(p.high for p in found)


def test_half_the_answer_noise_is_caught() -> None:
    """Negative control: monotone noise on answers that move both ways loses more than ε."""
    wrong = SparseVector(threshold=0, sensitivity=1, epsilon=EPS, monotone=True)
    output = (*[False] * 40, True)
    here, there = [0] * 40 + [-30], [1] * 40 + [-31]
    assert max_divergence([(wrong.probability(output, here), wrong.probability(output, there))]) > EPS


# --- The wrong variants of Lyu, Su and Li (2017), as float enumerations over discrete noise --------------------------


def laplace(scale: float, reach: int = 400) -> dict[int, float]:
    q = math.exp(-1 / scale)
    return {z: (1 - q) / (1 + q) * q ** abs(z) for z in range(-reach, reach + 1)}


def at_least(scale: float, z: int) -> float:
    q = math.exp(-1 / scale)
    return q**z / (1 + q) if z > 0 else 1 - q ** (1 - z) / (1 + q)


def verdicts_chance(answers: list[int], output: list[bool], bar_scale: float, yes: Callable[[int], float]) -> float:
    """P(output): threshold 0 with one noise for all; ``yes(gap)`` is the chance that answer − bar = gap says yes."""
    total = 0.0
    for z, mass in laplace(bar_scale).items():
        chances = [yes(answer - z) for answer in answers]
        total += mass * math.prod(c if verdict else 1 - c for c, verdict in zip(chances, output))
    return total


def loss(chance: Callable[[list[int]], float], here: list[int], there: list[int]) -> float:
    return abs(math.log(chance(here) / chance(there)))


def test_the_enumeration_agrees_with_the_exact_law() -> None:
    """Positive control: for the right algorithm, the float enumeration gives the certified probability."""
    rule = SparseVector(threshold=0, sensitivity=1, epsilon=EPS, answers=2)
    bar, noise = float(rule.threshold_scale), float(rule.answer_scale)
    answers, output = [0, 2, -1, 1], [False, True, False, True]
    by_hand = verdicts_chance(answers, output, bar, lambda gap: at_least(noise, -gap))
    assert by_hand == pytest.approx(float(rule.probability(output, answers)), rel=1e-9)


def test_wrong_variant_without_noise_on_answers_is_caught() -> None:
    """Algorithm 5 there: noise on the threshold only. Some outputs become impossible on a neighbour: no ε at all."""

    def chance(answers: list[int]) -> float:
        return verdicts_chance(answers, [False, True], 2 / EPS, lambda gap: float(gap >= 0))

    assert chance([0, 1]) > 0.1
    assert chance([1, 0]) == 0


def test_wrong_variant_without_a_limit_on_yeses_is_caught() -> None:
    """Algorithm 6 there: noise that does not grow with the number of yeses, and no limit. The loss grows with them."""
    m = 40
    output = [False] * m + [True] * m

    def chance(answers: list[int]) -> float:
        return verdicts_chance(answers, output, 2 / EPS, lambda gap: at_least(2 / EPS, -gap))

    assert loss(chance, [0] * (2 * m), [1] * m + [-1] * m) > 5 * EPS


def test_wrong_variant_whose_noise_ignores_the_limit_is_caught() -> None:
    """Algorithm 4 there: c yeses, but answer noise of scale Δ/ε₂ for all c. The loss is up to (1 + 6c)/4·ε."""
    c = 6
    output = [False] * 40 + [True] * c

    def chance(answers: list[int]) -> float:
        return verdicts_chance(answers, output, 4 / EPS, lambda gap: at_least(4 / (3 * EPS), -gap))

    worst = loss(chance, [0] * 40 + [-60] * c, [1] * 40 + [-61] * c)
    assert EPS < worst <= (1 + 6 * c) / 4 * EPS + 1e-9


def test_wrong_variant_that_shows_the_compared_number_is_caught() -> None:
    """Algorithm 3 there: a yes comes with the very number that was compared, which tells the threshold's noise."""
    m, shown = 60, 0

    def chance(answers: list[int]) -> float:
        noise = laplace(2 / EPS)
        total = 0.0
        for z, mass in noise.items():
            if shown >= z:  # the number shown reaches the noisy threshold
                noes = math.prod(1 - at_least(2 / EPS, z - answer) for answer in answers[:-1])
                total += mass * noes * noise[shown - answers[-1]]
        return total

    assert loss(chance, [0] * m + [1], [1] * m + [0]) > 2 * EPS


def test_the_right_algorithm_passes_the_same_cases() -> None:
    """Positive control: on the datasets that catch the wrong variants, the right one keeps its ε."""
    for answers in (1, 6):
        rule = SparseVector(threshold=0, sensitivity=1, epsilon=EPS, answers=answers)
        output = [False] * 40 + [True] * answers
        for here, there in (
            ([0] * 40 + [-8] * answers, [1] * 40 + [-9] * answers),
            ([0] * (40 + answers), [1] * 40 + [-1] * answers),
        ):
            assert max_divergence([(rule.probability(output, here), rule.probability(output, there))]) <= EPS + 1e-9


# --- Manners ---------------------------------------------------------------------------------------------------------


def test_split_is_near_the_best_and_never_above_epsilon() -> None:
    """ε₁ : ε₂ = 1 : (2c)^(2/3), or 1 : c^(2/3) for monotone answers, and their sum is at most ε."""
    for c, monotone in ((1, False), (10, False), (10, True), (10**6, False)):
        rule = SparseVector(threshold=0, sensitivity=1, epsilon=1, answers=c, monotone=monotone)
        first, second = rule.split
        assert first + second == 1
        assert min(first, second) > 0
        assert float(second / first) == pytest.approx((c if monotone else 2 * c) ** (2 / 3), rel=0.02)
        assert rule.threshold_scale == 1 / first
        assert rule.answer_scale == (1 if monotone else 2) * c / second
    first, second = SparseVector(threshold=0, sensitivity=1, epsilon=ln(3)).split
    assert first + second <= ln(3).lower


def test_event_covers_the_whole_stream() -> None:
    """One event of ε, plus the declared share for numbers."""
    rule = SparseVector(threshold=5, sensitivity=1, epsilon=1, answers=3, unit="person")
    assert rule.event == events.Pure(epsilon=1, unit="person")
    assert SparseVector(threshold=5, sensitivity=1, epsilon=1, answer_epsilon=0.5).event == events.Pure(epsilon=1.5)
    assert rule.privacy.epsilon() == 1


def test_stream_stops_after_its_yeses() -> None:
    """After c yeses the stream refuses, whatever is asked; noes are free."""
    stream = SparseVector(threshold=100, sensitivity=1, epsilon=200, answers=2).start()
    assert [stream(value) for value in (0, 200, 0, 0, 200)] == [False, True, False, False, True]
    assert stream.left == 0
    for _ in range(2):
        with pytest.raises(BudgetExceeded):
            stream(0)
    assert "0 of 2" in repr(stream)


def test_stream_and_batch_have_one_law() -> None:
    """Streams and batches both fit the exact probabilities of all outputs; a wrong ε does not."""
    from scipy.stats import chisquare

    rule = SparseVector(threshold=1, sensitivity=1, epsilon=4, answers=1)
    answers, cases = [0, 1, 2], distinct(3, 1)
    source = SeededForTestsOnly(6)

    def by_stream() -> tuple[bool, ...]:
        stream, seen = rule.start(source=source), []
        for value in answers:
            seen.append(stream(value))
            if seen[-1]:
                break
        return tuple(seen)

    for draw in (by_stream, lambda: tuple(rule.release(answers, source=source).tolist())):
        drawn = [draw() for _ in range(4_000)]
        counts = np.array([drawn.count(case) for case in cases])
        assert counts.sum() == len(drawn)
        exact = np.array([float(rule.probability(case, answers)) for case in cases])
        assert chisquare(counts, exact * counts.sum() / exact.sum()).pvalue > 1e-3
        other = SparseVector(threshold=1, sensitivity=1, epsilon=8, answers=1)
        wrong = np.array([float(other.probability(case, answers)) for case in cases])
        assert chisquare(counts, wrong * counts.sum() / wrong.sum()).pvalue < 1e-9


def test_batch_ends_with_the_last_yes() -> None:
    """What comes after the c-th yes is not part of the output."""
    rule = SparseVector(threshold=50, sensitivity=1, epsilon=400, answers=2)
    assert rule.release([0, 100, 100, 0, 100]).tolist() == [False, True, True]
    assert rule.release([0, 100, 0]).tolist() == [False, True, False]
    assert rule.release([]).tolist() == []


def test_numbers_come_with_noise_of_their_own() -> None:
    """A yes may be given as a number with a separate budget; a no is None; without the budget it is refused."""
    rule = SparseVector(threshold=100, sensitivity=1, epsilon=200, answers=2, answer_epsilon=1000)
    stream = rule.start()
    assert stream.number(0) is None
    assert stream.number(300) == 300
    assert stream(300) is True
    with pytest.raises(BudgetExceeded):
        stream.number(300)
    with pytest.raises(UsageError, match="answer_epsilon"):
        SparseVector(threshold=1, sensitivity=1, epsilon=1).start().number(3)
    assert rule.number_scale == Fraction(2, 1000)


def test_streams_cannot_be_copied() -> None:
    """A copy would answer again with the same threshold noise, unpaid."""
    stream = SparseVector(threshold=1, sensitivity=1, epsilon=1).start()
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(UsageError):
            attempt(stream)


def test_error_bound_holds() -> None:
    """Answers further from the threshold than the bound are judged rightly with at least 1 − β."""
    rule = SparseVector(threshold=0, sensitivity=1, epsilon=2)
    bound = int(rule.error(0.1, of=4))
    answers = [-bound - 1] * 3 + [bound + 1]
    assert rule.probability([False, False, False, True], answers).low >= Fraction(9, 10)
    assert rule.error(0.1, of=4) < rule.error(0.1, of=400)


def test_a_threshold_between_whole_numbers_is_the_upper_one() -> None:
    """Noisy answers are whole, so 2.5 and 3 are one threshold."""
    here = SparseVector(threshold=2.5, sensitivity=1, epsilon=1).probability([True], [3])
    assert here == SparseVector(threshold=3, sensitivity=1, epsilon=1).probability([True], [3])


@pytest.mark.parametrize(
    "bad",
    [
        {"threshold": math.nan, "sensitivity": 1, "epsilon": 1},
        {"threshold": "1", "sensitivity": 1, "epsilon": 1},
        {"threshold": 1, "sensitivity": 0, "epsilon": 1},
        {"threshold": 1, "sensitivity": 0.5, "epsilon": 1},
        {"threshold": 1, "sensitivity": 1, "epsilon": 0},
        {"threshold": 1, "sensitivity": 1, "epsilon": 1, "answers": 0},
        {"threshold": 1, "sensitivity": 1, "epsilon": 1, "answers": 1.5},
        {"threshold": 1, "sensitivity": 1, "epsilon": 1, "answer_epsilon": -1},
        {"threshold": 1, "sensitivity": 1, "epsilon": 1, "monotone": True, "neighbours": "replace"},
        {"threshold": 1, "sensitivity": 1, "epsilon": 1, "monotone": "yes"},
    ],
    ids=str,
)
def test_bad_parameters_are_refused(bad: dict[str, Any]) -> None:
    """Parameters outside the theorem are refused when the mechanism is made."""
    with pytest.raises(ParameterError):
        SparseVector(**bad)


@pytest.mark.parametrize("bad", [[0.5], [math.nan], ["a"], [[1, 2]], [True]], ids=repr)
def test_bad_values_are_refused_before_anything_is_drawn(bad: Any) -> None:
    """A batch must be one row of whole numbers."""
    with pytest.raises(ParameterError):
        SparseVector(threshold=1, sensitivity=1, epsilon=1).release(bad, source=Untouched())


@pytest.mark.parametrize("bad", [0.5, math.nan, "a", None, True, 1 << 70])
def test_a_bad_question_costs_nothing(bad: Any) -> None:
    """A stream refuses what is no whole number, without drawing and without counting it."""
    stream = SparseVector(threshold=1, sensitivity=1, epsilon=1).start(source=SeededForTestsOnly(1))
    stream._source = Untouched()
    with pytest.raises(ParameterError):
        stream(bad)
    assert stream.left == 1


@pytest.mark.parametrize("output", [[True, False], [True, True], [False], [False, False, False]])
def test_impossible_outputs_are_refused(output: list[bool]) -> None:
    """The probability of something that can never be released is not asked for by mistake."""
    with pytest.raises(ParameterError):
        SparseVector(threshold=1, sensitivity=1, epsilon=1).probability(output, [0, 0])
