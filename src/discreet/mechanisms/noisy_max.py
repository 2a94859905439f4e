"""The largest of many scores, or the k largest: a release names the candidates and never shows their scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property, reduce
from operator import mul
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import parameters
from discreet.accounting.events import Event, Pure
from discreet.accounting.events import Exponential as ExponentialEvent
from discreet.entropy import SYSTEM, EntropySource
from discreet.errors import ParameterError
from discreet.exact import Exact, Integers, Interval, float_up
from discreet.late_dataclass import dataclass
from discreet.mechanisms.exponential import (
    Exponential,
    SelectionMechanism,
    check_monotone,
    loss_of_round,
    read_choice_budget,
    utility_loss,
)
from discreet.mechanisms.laplace import scale_for
from discreet.mechanisms.laws import find_smallest
from discreet.mechanisms.mechanism import EventMechanism, OneEventMechanism, settle
from discreet.mechanisms.scores import LIMIT, ScoresLike, read_position, read_scores
from discreet.mechanisms.winner import OneSidedNoise, TwoSidedNoise, WholeNoise, win_probability
from discreet.parameters import Epsilon, Number
from discreet.samplers import categorical_exp, discrete_laplace, geometric, uniform_below

NOISES = ("exponential", "laplace", "gumbel")


@dataclass(frozen=True, kw_only=True, repr=False)
class NoisyMax(OneEventMechanism):
    """Add independent noise to whole scores and report the index of the largest; ties are broken uniformly.

    ``noise`` is "exponential" (one-sided, P(z) ∝ exp(−z/b) on 0, 1, 2, ...; the least error), "laplace" (two-sided),
    or "gumbel", which is the exponential mechanism and is drawn as that. The scale b is 2Δ/ε, or Δ/ε for monotone
    scores.

    Privacy: ε-private between neighbours of the stated relation whose scores differ by at most ``sensitivity``. Why:
    give every candidate a rank in a random order drawn beforehand; candidate i wins if its noisy score beats each
    other j, or ties with a lower-ranked j. Hold order and other noises fixed: i wins from some noise value t on. If i
    wins with noise z, then on a neighbour it wins with z + 2Δ (z + Δ for monotone scores, add-remove only), because
    every comparison keeps its margin and its tie rule. Scores and Δ are whole, so this shift maps the noise's values
    to values, and P(z ≥ t + 2Δ) ≥ e^(−2Δ/b)·P(z ≥ t). The rank must not look at the scores: breaking ties by the
    *true* score would need one step more, and lose up to e^((2Δ+1)/b).
    Reference: Dwork and Roth 2014, Claim 3.9; Ding et al. 2021; for "gumbel" McSherry and Talwar 2007.

    >>> top = NoisyMax(sensitivity=1, epsilon=1000)
    >>> top.release([3, 9, 4])
    1
    """

    sensitivity: int
    epsilon: Epsilon
    monotone: bool = False
    noise: str = "exponential"

    def __post_init__(self) -> None:
        EventMechanism.__post_init__(self)
        settle(
            self,
            sensitivity=parameters.read_whole(self.sensitivity, "sensitivity", most=LIMIT),
            epsilon=parameters.read_epsilon(self.epsilon),
        )
        check_monotone(monotone=self.monotone, neighbours=self.neighbours)
        if self.noise not in NOISES:
            raise ParameterError("noise", "is not a known kind", f"Use one of {', '.join(map(repr, NOISES))}.")

    @cached_property
    def scale(self) -> Fraction:
        """The scale b of the noise, rounded up where ε is irrational."""
        return scale_for((1 if self.monotone else 2) * self.sensitivity, parameters.read_epsilon(self.epsilon))

    @property
    def event(self) -> Event:
        """The event of one release: of bounded range with Gumbel noise, otherwise only ε-private."""
        kind = ExponentialEvent if self.noise == "gumbel" else Pure
        return kind(epsilon=self.epsilon, neighbours=self.neighbours, unit=self.unit)

    @property
    def _exponential(self) -> Exponential:
        """The exponential mechanism that Gumbel noise amounts to."""
        return Exponential(
            sensitivity=self.sensitivity,
            epsilon=self.epsilon,
            monotone=self.monotone,
            neighbours=self.neighbours,
            unit=self.unit,
        )

    @property
    def _noise(self) -> WholeNoise:
        return TwoSidedNoise(self.scale) if self.noise == "laplace" else OneSidedNoise(self.scale)

    def release(self, scores: Sequence[int] | Integers, *, source: EntropySource = SYSTEM) -> int:
        """The index of the winner."""
        steps = _read_whole_scores(scores)
        if self.noise == "gumbel":
            return categorical_exp(steps, 1 / self.scale, source=source)
        draw = discrete_laplace if self.noise == "laplace" else geometric
        noise = draw(self.scale, len(steps), source=source)
        # Python integers where the sum may leave int64. This is very rare.
        small = noise.dtype == np.int64 and int(np.abs(noise).max()) < LIMIT
        noisy = steps + noise if small else steps.astype(object) + noise.astype(object)
        winners = np.flatnonzero(noisy == noisy.max())
        return int(winners[uniform_below(len(winners), source=source)])

    def probability(self, output: int, given: Sequence[int] | Integers) -> Interval:
        """The probability that the candidate at index ``output`` wins, certified; for few candidates."""
        steps = _read_whole_scores(given).tolist()
        chosen = read_position(output, len(steps))
        if self.noise == "gumbel":
            return self._exponential.probability(chosen, steps)
        return win_probability(self._noise, steps.pop(chosen), steps)

    def error(self, beta: Number, of: int) -> float:
        """How far below the best of ``of`` candidates the winner may be, except with probability beta.

        The winner is below the best by at most its own noise minus the best's: at most the largest of the k − 1 other
        noises when noise is one-sided, at most twice the largest of all k when it is two-sided.
        """
        share = parameters.read_probability(beta, "beta")
        candidates = parameters.read_whole(of, "of")
        if candidates == 1:
            return 0.0
        if self.noise == "gumbel":
            return utility_loss(1 / self.scale, beta=share, candidates=candidates)
        one_sided = self.noise == "exponential"
        allowed = share / (candidates - 1 if one_sided else candidates)
        near = math.floor(min(float(self.scale) * -math.log(float(allowed)), 2.0**62))
        bound = find_smallest(lambda z: self._noise.chance_beyond(z + 1).high <= allowed, near)
        return float_up(Fraction(bound if one_sided else 2 * bound))


def _read_whole_scores(scores: object) -> Integers:
    read = read_scores(scores)
    if read.steps.dtype != np.int64 or read.unit != 1:
        fix = "Round scores to whole steps (and the sensitivity with them), or use Exponential for real scores."
        raise ParameterError("scores", "must be whole numbers", fix)
    return read.steps.astype(np.int64)


@dataclass(frozen=True, kw_only=True, repr=False)
class TopK(SelectionMechanism):
    """The k best candidates, best first, by k rounds of the exponential mechanism, each without the ones before.

    The whole budget is given: ``epsilon`` is shared evenly (ε/k for each round), ``rho`` gives each round √(8ρ/k).
    Sorting scores with Gumbel noise once and keeping k has the same law; here the rounds are drawn exactly.

    Privacy: k rounds of the exponential mechanism with loss ε₀ each: kε₀-private and kε₀²/8-zCDP between neighbours of
    the stated relation whose scores differ by at most ``sensitivity``. Why: each round sees the outcomes before it, as
    adaptive composition allows, and leaving out candidates changes no sensitivity (nor monotonicity, add-remove only).
    Reference: Durfee and Rogers 2019 (one draw of Gumbel noise is k rounds); Dong, Durfee and Rogers 2020.

    >>> TopK(k=4, sensitivity=1, rho=0.5).event
    Exponential(epsilon=1, count=4, neighbours='add-remove', unit='one row')
    >>> TopK(k=2, sensitivity=1, epsilon=2000).release([1, 5, 3])
    (1, 2)
    """

    k: int
    epsilon: Epsilon | None = None
    rho: Number | None = None

    def __post_init__(self) -> None:
        SelectionMechanism.__post_init__(self)
        settle(self, k=parameters.read_whole(self.k, "k"))
        epsilon, rho = read_choice_budget(self.epsilon, self.rho)
        settle(self, epsilon=epsilon, rho=rho)
        _ = self.loss  # refuse a ρ that is too large, now

    @cached_property
    def loss(self) -> Exact:
        """The ε₀ of one round."""
        return loss_of_round(self.epsilon, self.rho, self.k)

    @cached_property
    def factor(self) -> Fraction:
        """The multiple of a score in the exponent of one round."""
        return self._factor(self.loss)

    @property
    def event(self) -> Event:
        """The event of one release: k rounds."""
        return ExponentialEvent(epsilon=self.loss, count=self.k, neighbours=self.neighbours, unit=self.unit)

    def _check(self, count: int) -> None:
        if count < self.k:
            raise ParameterError("scores", "are fewer than k", "Give at least k candidates, or a smaller k.")

    def release(self, scores: ScoresLike, *, source: EntropySource = SYSTEM) -> tuple[int, ...]:
        """The indices of the k chosen candidates, in the order of the rounds."""
        read = read_scores(scores)
        self._check(len(read))
        left = np.arange(len(read))
        steps: npt.NDArray[Any] = read.steps
        chosen: list[int] = []
        for _ in range(self.k):
            i = categorical_exp(steps, self.factor * read.unit, source=source)
            chosen.append(int(left[i]))
            left, steps = np.delete(left, i), np.delete(steps, i)
        return tuple(chosen)

    def probability(self, output: Sequence[int], given: ScoresLike) -> Interval:
        """The probability of these indices in this order."""
        read = read_scores(given)
        self._check(len(read))
        picks = [read_position(i, len(read)) for i in output]
        if len(picks) != self.k or len(set(picks)) != self.k:
            raise ParameterError("output", "must be k different indices", "Give what release returns.")
        one = Exponential(sensitivity=self.sensitivity, epsilon=self.loss, monotone=self.monotone)
        exact = read.exact_scores()
        left = list(range(len(read)))
        rounds = []
        for pick in picks:
            rounds.append(one.probability(left.index(pick), [exact[i] for i in left]))
            left.remove(pick)
        return reduce(mul, rounds)

    def error(self, beta: Number, of: int) -> float:
        """How far each pick may be below the best one left, among ``of`` candidates, in all rounds together."""
        share = parameters.read_probability(beta, "beta") / self.k
        return utility_loss(self.factor, beta=share, candidates=parameters.read_whole(of, "of"))
