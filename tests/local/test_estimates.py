"""Estimates: unbiased, with the error that theory says, and intervals that hold what they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from discreet.entropy import SeededForTestsOnly
from discreet.errors import ParameterError
from discreet.local import Aggregator, Distribution, Frequencies, MeanEstimate, Task, encode_many, estimate, norm_sub
from discreet.local.estimation import estimate_frequencies, estimate_from_supports, score_interval
from discreet.local.hashing import LocalHashing
from discreet.local.planning import draw_binomial, people_needed, simulate
from discreet.local.protocol import FrequencyProtocol


def zipf(size: int, people: int) -> np.ndarray:
    """Answers of a fixed, skewed population."""
    weights = 1 / np.arange(1, size + 1) ** 1.1
    counts = np.floor(weights / weights.sum() * people).astype(int)
    counts[0] += people - counts.sum()
    return np.repeat(np.arange(size), counts)


def run(task: Task, answers: np.ndarray, seed: int) -> Frequencies:
    total = Aggregator(task)
    total.add(encode_many(task, answers, source=SeededForTestsOnly(seed)), batch="all")
    return estimate_frequencies(total)


CASES = [
    ("krr", 100, 4000),
    ("unary", 100, 2000),
    ("sue", 100, 2000),
    ("hash", 100, 2000),
    ("hadamard", 100, 4000),
    ("projective", 100, 4000),
    ("subset", 100, 2000),
]


@pytest.mark.parametrize(("name", "size", "people"), CASES)
@pytest.mark.parametrize("epsilon", [1, 3])
def test_unbiased_and_as_exact_as_theory(name: str, size: int, people: int, epsilon: float) -> None:
    """Over 100 seeds the mean error is within 5 standard errors of zero and MSE/theory within [0.95, 1.05]."""
    task = Task.for_epsilon("t", size, epsilon=epsilon, protocol=name)
    answers = zipf(size, people)
    truth = np.bincount(answers, minlength=size) / people
    seeds = 100
    errors = np.array([run(task, answers, seed).values - truth for seed in range(seeds)])
    protocol = task.protocol
    assert isinstance(protocol, FrequencyProtocol | LocalHashing)
    theory = np.array([protocol.unit_variance(f) for f in truth]) / people
    assert 0.95 <= (errors**2).mean() / theory.mean() <= 1.05
    assert np.abs(errors.mean(axis=0) / np.sqrt(theory / seeds)).max() < 5
    assert abs(errors[:, 0].mean()) < 5 * math.sqrt(theory[0] / seeds)


@pytest.mark.parametrize(
    ("name", "size", "people"), [(n, 10, 500) for n in ("krr", "unary", "hash", "hadamard", "projective", "subset")]
)
def test_intervals_cover(name: str, size: int, people: int) -> None:
    """Coverage of 95 % intervals is at least 94 %, also at a share of 2 % of 500 people; and jointly for all values."""
    task = Task.for_epsilon("t", size, epsilon=1, protocol=name)
    answers = np.repeat(np.arange(size), [10, 200, 90, 60, 50, 40, 30, 10, 10, 0])
    truth = np.bincount(answers, minlength=size) / people
    rounds = 1200
    payload = encode_many(task, np.tile(answers, rounds), source=SeededForTestsOnly(7)).payload
    inside, together = np.zeros(size), 0
    for number in range(rounds):
        total = Aggregator(task)
        part = payload[number * people : (number + 1) * people]
        from discreet.local import Reports

        total.add(Reports(task, part), batch="x")
        found = estimate_frequencies(total)
        inside += (found.low <= truth) & (truth <= found.high)
        together += bool(((found.low_all <= truth) & (truth <= found.high_all)).all())
    assert (inside / rounds).mean() >= 0.94
    assert (inside / rounds).min() >= 0.95 - 0.025  # each value alone, with room for 1,200 draws
    assert together / rounds >= 0.94


def test_coverage_by_simulation_is_at_least_nominal() -> None:
    """Twenty thousand simulated collections: the score interval's coverage is 95 % less 1 % at every share."""
    task = Task.for_epsilon("t", 4, epsilon=1, protocol="unary")
    assert isinstance(task.protocol, FrequencyProtocol)
    p, q = float(task.protocol.p), float(task.protocol.q)
    source = SeededForTestsOnly(9)
    for people, held in ((50, 0), (50, 5), (500, 10), (500, 250), (500, 500), (100_000, 17)):
        many = np.full(20_000, held)
        supports = draw_binomial(many, p, source) + draw_binomial(people - many, q, source)
        low, high = score_interval(supports, people, p, q, 0.95)
        assert ((low <= held / people) & (held / people <= high)).mean() >= 0.94


def test_interval_ends_are_where_the_reports_begin_to_contradict() -> None:
    """At each end the count is z standard deviations and half a report away from what the share would lead to."""
    p, q, people = 0.5, 0.27, 400
    supports = np.array([90, 150, 210])
    low, high = score_interval(supports, people, p, q, 0.95)
    for ends, side in ((low, 1), (high, -1)):
        spread = 1.959963984540054 * np.sqrt(people * (ends * p * (1 - p) + (1 - ends) * q * (1 - q)))
        assert np.allclose(people * (q + ends * (p - q)) + side * (spread + 0.5), supports)


def test_a_narrow_interval_would_be_seen() -> None:
    """Negative control: intervals of 90 % do not pass for 95 %."""
    source, many = SeededForTestsOnly(9), np.full(20_000, 250)
    supports = draw_binomial(many, 0.5, source) + draw_binomial(500 - many, 0.27, source)
    low, high = score_interval(supports, 500, 0.5, 0.27, 0.90)
    assert ((low <= 0.5) & (high >= 0.5)).mean() < 0.94


@pytest.mark.parametrize("name", ["sign", "window", "hybrid"])
@pytest.mark.parametrize("epsilon", [0.5, 1, 4])
def test_means_are_unbiased_as_exact_as_theory_and_covered(name: str, epsilon: float) -> None:
    """Means over 400 small collections: no bias, variance as the exact law says, coverage of 95 % less 2 %."""
    task = Task.for_epsilon("t", (-10, 30), epsilon=epsilon, protocol=name)
    answers = np.linspace(-10, 20, 200)
    rounds, truth = 400, answers.mean()
    payload = encode_many(task, np.tile(answers, rounds), source=SeededForTestsOnly(1)).payload
    found = []
    for number in range(rounds):
        total = Aggregator(task)
        from discreet.local import Reports

        total.add(Reports(task, payload[number * 200 : (number + 1) * 200]), batch="x")
        one = estimate(total)
        assert isinstance(one, MeanEstimate)
        found.append(one)
    protocol = task.protocol
    from discreet.local.number import NumberProtocol

    assert isinstance(protocol, NumberProtocol)
    theory = np.mean([protocol.unit_variance((x + 10) / 20 - 1) for x in answers[::20]]) * 20**2 / 200
    values = np.array([one.value for one in found])
    assert abs(values.mean() - truth) < 5 * math.sqrt(theory / rounds)
    assert 0.7 < values.var() / theory < 1.35
    assert np.mean([one.low <= truth <= one.high for one in found]) >= 0.93
    assert all(-10 <= one.consistent <= 30 for one in found)


def test_empty_collections_say_nothing() -> None:
    """Without reports the intervals are everything, and nothing fails."""
    shares = estimate(Aggregator(Task.for_epsilon("t", 5, epsilon=1, protocol="krr")))
    assert isinstance(shares, Frequencies) and shares.people == 0
    assert (shares.low == 0).all() and (shares.high == 1).all()
    mean = estimate(Aggregator(Task.for_epsilon("t", (0, 1), epsilon=1, protocol="hybrid")))
    assert isinstance(mean, MeanEstimate) and mean.low == -math.inf
    wave = estimate(Aggregator(Task.for_epsilon("t", (0, 1), epsilon=1, protocol="wave")))
    assert isinstance(wave, Distribution) and wave.shares.sum() == pytest.approx(1)


@given(values=arrays(np.float64, st.integers(1, 30), elements=st.floats(-2, 2)))
@settings(deadline=None, max_examples=200)
def test_norm_sub_is_a_projection(values: np.ndarray) -> None:
    """Norm-Sub gives shares that sum to one, is idempotent, keeps order, and is the nearest point of the simplex."""
    shares = norm_sub(values)
    assert shares.min() >= 0 and shares.sum() == pytest.approx(1)
    assert np.allclose(norm_sub(shares), shares, atol=1e-12)
    order = np.argsort(values, kind="stable")
    assert (np.diff(shares[order]) >= -1e-12).all()
    rng = np.random.default_rng(0)
    for _ in range(5):
        other = rng.dirichlet(np.ones(values.size))
        assert ((values - shares) ** 2).sum() <= ((values - other) ** 2).sum() + 1e-12


def test_norm_sub_of_zipf_beats_raw() -> None:
    """The consistent shares are nearer to the truth over all, and the largest is not badly off."""
    task = Task.for_epsilon("t", 1000, epsilon=1, protocol="unary")
    counts = np.bincount(zipf(1000, 100_000), minlength=1000)
    found = simulate(task, counts, source=SeededForTestsOnly(3))
    truth = counts / counts.sum()
    assert ((found.consistent - truth) ** 2).mean() < 0.25 * ((found.values - truth) ** 2).mean()
    assert abs(found.consistent[0] - truth[0]) < 0.03


@pytest.mark.parametrize(
    ("trials", "chance"),
    [(5, 0.3), (40, 0.1), (1000, 0.001), (1000, 0.4), (10**6, 0.27), (10**9, 0.5), (10**9, 1e-8), (30, 0.97), (0, 0.5)],
)
def test_binomial_has_the_right_moments(trials: int, chance: float) -> None:
    """Mean, variance and third moment of 40,000 draws, and no draw out of range."""
    draws = draw_binomial(np.full(40_000, trials), chance, SeededForTestsOnly(11)).astype(float)
    mean, variance = trials * chance, trials * chance * (1 - chance)
    assert draws.min() >= 0 and draws.max() <= trials
    assert abs(draws.mean() - mean) <= 6 * math.sqrt(variance / 40_000) + 1e-12
    if variance:
        spread = math.sqrt((2 + 1 / variance) / 40_000)
        assert abs(draws.var() / variance - 1) < 6 * spread
        skew = ((draws - mean) ** 3).mean() / variance**1.5
        assert abs(skew - (1 - 2 * chance) / math.sqrt(variance)) < 0.35 + 3 / math.sqrt(variance)


def test_binomial_against_the_exact_law() -> None:
    """Draws around the switch between the two methods follow the exact probabilities."""
    for trials, chance in ((30, 0.3), (40, 0.3), (25, 0.5)):
        draws = draw_binomial(np.full(50_000, trials), chance, SeededForTestsOnly(5))
        law = [math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(trials + 1)]
        seen = np.bincount(draws, minlength=trials + 1) / 50_000
        assert np.abs(seen - law).max() < 6 * math.sqrt(0.25 / 50_000)


def test_simulation_equals_collection_in_law() -> None:
    """Simulated estimates have the mean and the variance of collected ones, for every protocol."""
    counts = np.array([500, 300, 200])
    for name in ("krr", "unary", "hash", "hadamard", "projective", "subset"):
        task = Task.for_epsilon("t", 3, epsilon=1, protocol=name)
        assert isinstance(task.protocol, FrequencyProtocol | LocalHashing)
        found = np.array([simulate(task, counts, source=SeededForTestsOnly(s)).values for s in range(400)])
        theory = np.array([task.protocol.unit_variance(f) for f in counts / 1000]) / 1000
        assert np.abs((found.mean(axis=0) - counts / 1000) / np.sqrt(theory / 400)).max() < 5
        assert np.abs(found.var(axis=0) / theory - 1).max() < 0.4


def test_a_billion_people_at_once() -> None:
    """Planning at 10^9 people needs no reports."""
    task = Task.for_epsilon("t", 1000, epsilon=1, protocol="projective")
    found = simulate(task, np.full(1000, 10**6))
    assert found.people == 10**9 and np.abs(found.values - 0.001).max() < 6 * math.sqrt(3.8e-9)


def test_people_needed_gives_the_width() -> None:
    """The planner's number makes the interval as narrow as asked."""
    task = Task.for_epsilon("t", 50, epsilon=1, protocol="hadamard")
    people = people_needed(task, 0.01)
    found = estimate_from_supports(np.full(1, people // 2), people, float(task.protocol.p), 0.5, names=["x"])  # type: ignore[attr-defined]  # a frequency protocol
    assert (found.high - found.low)[0] / 2 == pytest.approx(0.01, rel=0.01)
    assert people_needed(task, 0.01, of=50) > 2 * people
    mean = Task.for_epsilon("t", (0, 100), epsilon=1, protocol="sign")
    assert people_needed(mean, 1.0) == pytest.approx((1.96 * 50) ** 2 * 4.6827, rel=1e-3)
    for bad in (0, -1, math.nan):
        with pytest.raises(ParameterError):
            people_needed(task, bad)
    with pytest.raises(ParameterError):
        people_needed(Task.for_epsilon("t", 10, epsilon=1, protocol="wave"), 0.1)


def test_bad_estimates_are_refused() -> None:
    """Levels that are none, counts that do not fit, and the wrong kind of task."""
    task = Task.for_epsilon("t", 5, epsilon=1, protocol="krr")
    for level in (0, 1, -1, math.nan, "0.9"):
        with pytest.raises(ParameterError):
            estimate(Aggregator(task), level=level)  # type: ignore[arg-type]  # on purpose
    for counts in ([1, 2], [1, 2, 3, 4, -5], [0.5] * 5):
        with pytest.raises(ParameterError):
            simulate(task, counts)
    with pytest.raises(ParameterError):
        estimate_frequencies(Aggregator(Task.for_epsilon("t", (0, 1), epsilon=1, protocol="sign")))
