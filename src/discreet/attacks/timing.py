"""Timing: if larger noise takes longer to draw, the time of an answer reveals the size of its noise.

The textbook's sampler flips a coin until it fails and returns the number of flips. An attacker who counts the flips, or
measures their time, knows the size of the noise and can subtract it (Jin et al. 2022). A sampler that looks a number up
in a table does the same work for every number.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from discreet.attacks.fiction import make_coins
from discreet.attacks.outcome import EPSILON, Bar, Outcome, Rate
from discreet.entropy import SYSTEM, EntropySource, Words
from discreet.exact import Flags, Floats, Integers
from discreet.late_dataclass import dataclass
from discreet.mechanisms.laplace import Laplace

NoiseFunction: TypeAlias = Callable[[int, EntropySource], int]

MOVE = 50  # how far one person moves the answer
LESSON = (
    "The slow sampler's random words give its noise away, and the clock sees them. discreet draws the same number of "
    "words for every answer. What a shared machine shows beyond that, through caches or load, nobody can promise away."
)


class Meter:
    """A source that counts the words drawn from the system's source: the time of a draw, without measurement noise."""

    def __init__(self) -> None:
        self.drawn = 0

    def words(self, count: int) -> Words:
        self.drawn += count
        return SYSTEM.words(count)

    def word(self) -> int:
        self.drawn += 1
        return SYSTEM.word()

    def bits(self, count: int) -> int:
        self.drawn += -(-count // 64)
        return SYSTEM.bits(count)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Observations:
    """Answers with the words and the nanoseconds that each took."""

    answers: Integers
    words: Floats
    clock: Floats


def run(*, attempts: int = 2000) -> Outcome:
    """Guess for each answer whether the person who would move it by 50 is in the data."""
    secrets = make_coins("timing", 2 * attempts)
    naive, ours = _watch(_add_slow_noise, secrets), _watch(_add_discreet_noise, secrets)
    rates = {
        "slow sampler, answers only": _rate_guesses(naive, np.zeros(2 * attempts), secrets),
        "slow sampler, with the clock": _rate_guesses(naive, naive.clock, secrets),
        "slow sampler, with its work": _rate_guesses(naive, naive.words, secrets),
        "discreet, with its work": _rate_guesses(ours, ours.words, secrets),
        "discreet, with the clock": _rate_guesses(ours, ours.clock, secrets),
    }
    return Outcome(
        name="timing",
        raw=rates["slow sampler, with its work"],
        private=rates["discreet, with the clock"],
        lesson=LESSON,
        bars=tuple(Bar(label=label, rate=rate) for label, rate in rates.items()),
        facts={"words that an answer takes": f"{_describe_span(naive)} slow, {_describe_span(ours)} discreet"},
    )


def _describe_span(seen: _Observations) -> str:
    low, high = int(seen.words.min()), int(seen.words.max())
    return str(low) if low == high else f"{low} to {high}"


def _add_slow_noise(value: int, source: EntropySource) -> int:
    """Flip until a coin fails; a result of minus zero starts again. The law is right, but the time reveals the size."""
    stay = math.floor(math.exp(-EPSILON / MOVE) * 2**64)
    while True:
        size = 0
        while source.word() < stay:
            size += 1
        positive = source.word() & 1
        if size or positive:
            return value + (size if positive else -size)


def _add_discreet_noise(value: int, source: EntropySource) -> int:
    return int(Laplace(sensitivity=MOVE, epsilon=EPSILON).release(value, source=source))


def _watch(noisy: NoiseFunction, secrets: Flags) -> _Observations:
    """One answer for each secret, with the words and the time that it took."""
    meter, rows = Meter(), []
    for value in (MOVE * secrets).tolist():
        drawn, start = meter.drawn, time.perf_counter_ns()
        answer = noisy(value, meter)
        rows.append((answer, meter.drawn - drawn, time.perf_counter_ns() - start))
    answers, words, clock = np.array(rows).T
    return _Observations(answers=answers, words=words.astype(np.float64), clock=clock.astype(np.float64))


def _rate_guesses(seen: _Observations, cost: Floats, secrets: Flags) -> Rate:
    """Learn from the first half how cost and noise are related, then guess the second half.

    The attacker has the program, so the first half needs no secrets of anybody. Of two rules the better one on the
    first half is used: the answer alone, or the count whose noise would have the size that the cost suggests.
    """
    half = len(secrets) // 2
    sizes = np.abs(seen.answers - MOVE * secrets)[:half]
    # A rare pause of the machine says nothing about the noise, so costs are clamped to their 99 % quantile.
    clamped = np.minimum(cost, np.quantile(cost[:half], 0.99))
    spread = clamped[:half].var()
    slope = np.mean((clamped[:half] - clamped[:half].mean()) * (sizes - sizes.mean())) / spread if spread else 0.0
    expected = sizes.mean() + slope * (clamped - clamped[:half].mean())
    by_size: Flags = seen.answers > MOVE / 2
    off = [np.abs(np.abs(seen.answers - value) - expected) for value in (0, MOVE)]
    by_cost: Flags = off[1] < off[0]
    rules = sorted((by_size, by_cost), key=lambda rule: int((rule[:half] == secrets[:half]).sum()))
    return Rate.agreement(rules[-1][half:], secrets[half:])
