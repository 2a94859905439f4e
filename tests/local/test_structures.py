"""Surveys, hierarchies, square waves and heavy hitters."""

from __future__ import annotations

import math

import numpy as np
import pytest

from discreet.entropy import SeededForTestsOnly
from discreet.errors import ParameterError
from discreet.local import (
    Aggregator,
    Distribution,
    HeavyHitters,
    Hierarchy,
    MeanEstimate,
    Reports,
    Survey,
    Task,
    attributes,
    encode_many,
    estimate,
    read_wire,
)
from discreet.local.estimation import estimate_frequencies
from discreet.local.hierarchy import make_consistent


def collect(survey: Survey, reports: dict[str, Reports]) -> dict[str, Aggregator]:
    made = {}
    for task in survey.tasks:
        made[task.id] = Aggregator(task)
        made[task.id].add(reports[task.id], batch="all")
    return made


def test_survey_answers_one_question_each() -> None:
    """Each person's whole loss goes to one question; every question's estimate is unbiased for all people."""
    survey = attributes({"colour": ["r", "g", "b"], "age": (0, 100), "shop": 50}, epsilon=1, n=9000)
    assert survey.loss <= 1
    rng = np.random.default_rng(0)
    colours = np.array(["r", "g", "b"])[rng.choice(3, 9000, p=[0.6, 0.3, 0.1])]
    ages, shops = rng.uniform(20, 60, 9000), rng.integers(0, 50, 9000)
    reports = survey.encode_many([colours, ages, shops], source=SeededForTestsOnly(2))
    assert sum(len(part) for part in reports.values()) == 9000
    assert all(abs(len(part) - 3000) < 6 * math.sqrt(2000) for part in reports.values())
    found = collect(survey, reports)
    shares = estimate_frequencies(found[survey.tasks[0].id])
    assert np.abs(shares.values - [0.6, 0.3, 0.1]).max() < 6 * math.sqrt(1.6 / 3000)
    mean = estimate(found[survey.tasks[1].id])
    assert isinstance(mean, MeanEstimate) and mean.low - 3 < 40 < mean.high + 3
    one = survey.encode(["r", 33, None], source=SeededForTestsOnly(1))
    assert any(len(read_wire(task, [one])) == 1 for task in survey.tasks)


def test_bad_surveys_are_refused() -> None:
    """No tasks, equal tasks, memoised tasks, and the wrong number of answers."""
    task = Task.for_epsilon("t", 5, epsilon=1, protocol="krr")
    for tasks in ((), (task, task), (Task.for_epsilon("t", 5, epsilon=1, protocol="krr", values=1),)):
        with pytest.raises(ParameterError):
            Survey(tasks)
    with pytest.raises(ParameterError):
        Survey((task,)).encode([1, 2])


def test_sampling_one_beats_splitting() -> None:
    """m = 5, ε = 1: one question by lot has 18.4, splitting the loss 99.7 (OUE)."""
    whole = Task.for_epsilon("t", 50, epsilon=1, protocol="unary").protocol
    split = Task.for_epsilon("t", 50, epsilon=0.2, protocol="unary").protocol
    assert 5 * whole.unit_variance() == pytest.approx(18.4, rel=5e-3)  # type: ignore[attr-defined]  # unary
    assert split.unit_variance() == pytest.approx(99.7, rel=5e-3)  # type: ignore[attr-defined]  # unary


def test_consistency_keeps_consistent_trees_and_sums_to_one() -> None:
    """A tree without noise is left as it is; with noise the leaves sum to one and are nearer to the truth."""
    rng = np.random.default_rng(1)
    leaves = rng.dirichlet(np.ones(64))
    tree = [leaves.reshape(4, -1).sum(axis=1), leaves.reshape(16, -1).sum(axis=1), leaves]
    assert np.allclose(make_consistent(tree, [1.0, 2.0, 3.0], 4), leaves)
    raw, better = 0.0, 0.0
    for _ in range(200):
        noisy = [level + rng.normal(0, 0.1, level.size) for level in tree]
        found = make_consistent(noisy, [0.01, 0.01, 0.01], 4)
        assert found.sum() == pytest.approx(1)
        raw += (noisy[2][5:50].sum() - leaves[5:50].sum()) ** 2
        better += (found[5:50].sum() - leaves[5:50].sum()) ** 2
    assert better < raw / 3


def test_consistency_is_least_squares() -> None:
    """The two passes give the weighted least-squares solution, computed directly."""
    rng = np.random.default_rng(3)
    values, variances = [rng.normal(size=3), rng.normal(size=9)], [0.5, 2.0]
    rows = [np.kron(np.eye(3), np.ones(3)) / math.sqrt(0.5), np.eye(9) / math.sqrt(2.0), np.ones((1, 9)) * 1e6]
    target = np.concatenate([values[0] / math.sqrt(0.5), values[1] / math.sqrt(2.0), [1e6]])
    direct = np.linalg.lstsq(np.vstack(rows), target, rcond=None)[0]
    assert np.allclose(make_consistent(values, variances, 3), direct, atol=1e-6)


def test_ranges_by_hierarchy() -> None:
    """30,000 people on 200 ordered values: ranges are near and covered, quantiles close; bad ranges are refused."""
    tree = Hierarchy.for_epsilon("age", 200, epsilon=2, n=30_000)
    assert tree.levels == 4 and tree.survey.loss <= 2
    rng = np.random.default_rng(0)
    answers = np.clip(rng.normal(80, 20, 30_000), 0, 199).astype(int)
    found = tree.estimate(collect(tree.survey, tree.encode_many(answers, source=SeededForTestsOnly(5))))
    hits = 0
    for first, last in ((0, 199), (60, 99), (0, 79), (80, 199), (3, 130), (100, 100), (64, 127), (10, 20)):
        truth = ((answers >= first) & (answers <= last)).mean()
        low, high = found.interval(first, last)
        assert abs(found.share(first, last) - truth) < 0.1
        hits += low <= truth <= high
    assert hits >= 7
    assert abs(found.quantile(0.5) - 80) <= 6
    assert len(tree.encode(77)) > 19 and len(tree.encode(-5)) > 19
    for bad in ((-1, 5), (5, 4), (0, 200)):
        with pytest.raises(ParameterError):
            found.share(*bad)


def test_square_wave_finds_the_distribution() -> None:
    """A two-humped distribution comes back: small distance of the distribution functions, mean and median near."""
    task = Task.for_epsilon("income", (0, 100), epsilon=2, protocol="wave", buckets=128)
    rng = np.random.default_rng(0)
    answers = np.concatenate([rng.normal(30, 6, 30_000), rng.normal(70, 8, 20_000)]).clip(0, 100)
    total = Aggregator(task)
    total.add(encode_many(task, answers, source=SeededForTestsOnly(1)), batch="all")
    found = estimate(total)
    assert isinstance(found, Distribution)
    assert found.shares.sum() == pytest.approx(1) and found.shares.min() >= 0
    for value in range(5, 100, 5):
        assert abs(found.below(value) - (answers <= value).mean()) < 0.03
    assert abs(found.mean - answers.mean()) < 1
    assert abs(found.quantile(0.5) - np.median(answers)) < 2


def test_heavy_hitters_are_found() -> None:
    """The frequent words of 40,000 people are found among 63^5 texts, with their shares."""
    search = HeavyHitters.for_epsilon("words", epsilon=3, length=5)
    words = ["apple"] * 10_000 + ["pear"] * 8_000 + ["fig"] * 6_000
    rng = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words += ["".join(rng.choice(letters, 5)) for _ in range(16_000)]
    reports = search.encode_many(words, source=SeededForTestsOnly(6))
    found = search.find(reports, keep=12)
    assert set(found.names[:3]) == {"apple", "pear", "fig"}
    for name, share in (("apple", 0.25), ("pear", 0.2), ("fig", 0.15)):
        place = found.names.index(name)
        assert found.low_all[place] <= share <= found.high_all[place]
    assert search.survey.loss <= 3
    assert len(search.encode("apple")) > 19
    with pytest.raises(ParameterError):
        HeavyHitters.for_epsilon("w", epsilon=1, alphabet=b"abc")
    with pytest.raises(ParameterError):
        HeavyHitters.for_epsilon("w", epsilon=1, length=0)


def test_the_old_name_of_a_mean_warns_and_works() -> None:
    """``discreet.local.Mean`` is deprecated and names its successor; other unknown names are still errors."""
    import discreet.local as package

    with pytest.warns(DeprecationWarning, match="MeanEstimate"):
        assert package.Mean is package.MeanEstimate
    with pytest.raises(AttributeError, match="Median"):
        getattr(package, "Median")  # noqa: B009  # the checker knows that there is none
    assert "Mean" not in package.__all__
