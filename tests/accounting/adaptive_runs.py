"""The worst adaptive run against a filter, by an exact dynamic programme over all strategies of few choices.

A strategy sees all outcomes so far and picks the next release, or stops. Every run ends with the likelihoods P and Q of
its transcript on two neighbours. The best distinguisher at ε has the advantage Σ(P − e^ε·Q)⁺. The programme takes, at
each state, the choice with the largest advantage; likelihoods depend on how often each outcome was seen only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

Likelihoods = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Choice:
    """A release with its outcomes: the probability of each on the one dataset and on its neighbour."""

    name: str
    outcomes: Likelihoods


def response(epsilon: float) -> Choice:
    """Randomized response."""
    keep = 1 / (1 + math.exp(-epsilon))
    return Choice(f"response {epsilon:g}", ((keep, 1 - keep), (1 - keep, keep)))


def threshold(mu: float, at: float) -> Choice:
    """Whether Gaussian noise was above a threshold: N(μ, 1) against N(0, 1)."""

    def above(x: float) -> float:
        return math.erfc(x / math.sqrt(2)) / 2

    high = (above(at - mu), above(at))
    return Choice(f"threshold {mu:g} at {at:g}", (high, (1 - high[0], 1 - high[1])))


def failure(delta: float) -> Choice:
    """Nothing, except with probability δ, when it tells everything."""
    return Choice(f"failure {delta:g}", ((delta, 0.0), (1 - delta, 1 - delta), (0.0, delta)))


def find_worst(choices: Sequence[Choice], accepts: Callable[[tuple[int, ...]], bool], epsilon: float) -> float:
    """The largest advantage at ε of any adaptive strategy; ``accepts`` decides by how often each choice was made."""
    factor = math.exp(epsilon)

    @cache
    def best(seen: tuple[tuple[int, ...], ...]) -> float:
        one = other = 1.0
        for choice, counts in zip(choices, seen):
            for (p, q), times in zip(choice.outcomes, counts):
                one, other = one * p**times, other * q**times
        value = max(0.0, one - factor * other)
        made = tuple(map(sum, seen))
        for i, choice in enumerate(choices):
            if accepts((*made[:i], made[i] + 1, *made[i + 1 :])):
                value = max(value, sum(best(_count(seen, i, o)) for o in range(len(choice.outcomes))))
        return value

    return best(tuple((0,) * len(choice.outcomes) for choice in choices))


def _count(seen: tuple[tuple[int, ...], ...], choice: int, outcome: int) -> tuple[tuple[int, ...], ...]:
    row = tuple(times + (at == outcome) for at, times in enumerate(seen[choice]))
    return (*seen[:choice], row, *seen[choice + 1 :])
