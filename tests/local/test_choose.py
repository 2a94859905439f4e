"""The chooser: the right protocol for each regime, and a table that tells the truth."""

from __future__ import annotations

import math

import pytest

from discreet.errors import ParameterError
from discreet.local import Domain, Limits, choose


@pytest.mark.parametrize(
    ("size", "epsilon", "best"),
    [
        (2, 1, "krr"),
        (4, 1, "krr"),  # sets of one are randomized response
        (16, 1, "subset"),
        (64, 2, "subset"),
        (1000, 1, "projective"),
        (1000, 0.5, "projective"),
        (1000, 4, "projective"),
        (1000, 8, "krr"),
        (100_000, 1, "projective"),
    ],
)
def test_best_for_each_regime(size: int, epsilon: float, best: str) -> None:
    """The recommendation of theory for each size and loss."""
    assert choose(size, epsilon=epsilon, n=10_000).best.name == best


def test_choice_is_never_much_worse_than_the_least() -> None:
    """The chosen variance is within the tolerance of the least among those that fit."""
    for size in (2, 5, 17, 90, 400, 5000):
        for epsilon in (0.2, 1, 3, 6):
            choice = choose(size, epsilon=epsilon, n=1000)
            assert choice.best.variance <= 1.03 * min(one.variance for one in choice.candidates)
            assert [one.variance for one in choice.candidates] == sorted(one.variance for one in choice.candidates)
            assert choice.best.error == pytest.approx(1.959964 * math.sqrt(choice.best.variance / 1000))


def test_limits_are_kept_and_explained() -> None:
    """Each limit rules protocols out, with its reason in the table."""
    tight = choose(1000, epsilon=1, n=1000, limits=Limits(influence=2.6))
    assert tight.best.name in ("hadamard", "unary (SUE)") and tight.best.influence <= 2.6
    assert "influence above 2.6" in tight.explain()
    additive = choose(1000, epsilon=1, n=1000, limits=Limits(additive=True))
    assert additive.best.name == "unary (OUE)" and "not additive" in additive.explain()
    short = choose(1000, epsilon=1, n=1000, limits=Limits(payload_bytes=2))
    assert short.best.bits <= 16
    quick = choose(1000, epsilon=1, n=10**6, limits=Limits(server_steps=5))
    assert quick.best.server_steps <= 5
    with pytest.raises(ParameterError, match="limits"):
        choose(1000, epsilon=1, n=1000, limits=Limits(payload_bytes=2, additive=True))


def test_table_names_what_it_shows() -> None:
    """The explanation has a row for each candidate and says why."""
    choice = choose(["a", "b", "c"], epsilon=1, n=500)
    text = choice.explain()
    assert "chosen" in text and "influence" in text and choice.because in text
    assert len(choice.table()) == len(choice.candidates) >= 7
    task = choice.task("letters", epoch=3)
    assert task.domain.labels == ("a", "b", "c") and task.epoch == 3 and task.loss <= 1


def test_open_domains_are_hashed_and_numbers_averaged() -> None:
    """Where values cannot be listed, local hashing; for numbers, the hybrid."""
    assert choose(Domain(open=True), epsilon=1, n=100).best.name == "hash"
    assert choose((0, 10), epsilon=2, n=100).best.name == "hybrid"
    small = choose((0, 10), epsilon=0.3, n=100)
    assert small.best.name == "sign"  # the same error, in one bit


@pytest.mark.parametrize("bad", [{"n": 0}, {"n": 1.5}, {"epsilon": 0}, {"epsilon": "1"}, {"level": 1}])
def test_bad_questions_are_refused(bad: dict[str, object]) -> None:
    """Numbers that make no sense are refused."""
    with pytest.raises(ParameterError):
        choose(10, **{"epsilon": 1, "n": 100, **bad})  # type: ignore[arg-type]  # on purpose
