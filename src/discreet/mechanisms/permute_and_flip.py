"""Permute-and-flip: chooses a candidate with pure privacy, never worse than the exponential mechanism."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

import numpy as np

from discreet import parameters
from discreet.accounting.events import Event, Pure
from discreet.entropy import SYSTEM, EntropySource
from discreet.exact import Exact, Interval
from discreet.late_dataclass import dataclass
from discreet.mechanisms.exponential import ChoiceMechanism, SelectionMechanism, utility_loss
from discreet.mechanisms.mechanism import settle
from discreet.mechanisms.scores import ScoresLike, read_position, read_scores, weights
from discreet.parameters import Epsilon, Number
from discreet.samplers import bernoulli_exp_each, uniform_below


@dataclass(frozen=True, kw_only=True, repr=False)
class PermuteAndFlip(ChoiceMechanism):
    """Flip a coin for each candidate, heads with exp(ε·(u − best)/(2Δ)); return a uniform one of the heads.

    The best candidate always shows heads. To take the candidates in random order and to stop at the first heads gives
    the same law, because the coins do not depend on the order.

    Privacy: ε-private between neighbours of the stated relation whose scores differ by at most ``sensitivity``. Why:
    it is also the argmax of scores with independent one-sided exponential noise of scale 2Δ/ε; with the other noises
    held fixed, a candidate that wins needs at most 2Δ more noise (Δ for monotone scores, add-remove only) to win on a
    neighbour. It is *not* of bounded range, so the ε²/8 of the exponential mechanism does not hold: for many choices
    in a row ``Exponential`` is the better one.
    Reference: McKenna and Sheldon 2020; Ding et al. 2021 for the exponential noise.

    >>> flip = PermuteAndFlip(sensitivity=1, epsilon=2)
    >>> round(float(flip.probability(0, given=[1, 0])), 4)  # 1 − e⁻¹/2
    0.8161
    >>> flip.event
    Pure(epsilon=2, count=1, neighbours='add-remove', unit='one row')
    """

    epsilon: Epsilon

    def __post_init__(self) -> None:
        SelectionMechanism.__post_init__(self)
        settle(self, epsilon=parameters.read_epsilon(self.epsilon))

    @cached_property
    def loss(self) -> Exact:
        """The pure ε."""
        return parameters.read_epsilon(self.epsilon)

    @cached_property
    def factor(self) -> Fraction:
        """The multiple of a score in the exponent: ε/(2Δ), or ε/Δ for monotone scores."""
        return self._factor(self.loss)

    @property
    def event(self) -> Event:
        """The event that describes one release."""
        return Pure(epsilon=self.loss, neighbours=self.neighbours, unit=self.unit)

    def release(self, scores: ScoresLike, *, source: EntropySource = SYSTEM) -> int:
        """The index of the chosen candidate."""
        read = read_scores(scores)
        # The exponent −factor·(score − best) is formed inside, exactly: the difference of two floats need not be one.
        coins = bernoulli_exp_each(read.steps, -self.factor * read.unit, origin=read.best_step(), source=source)
        heads = np.flatnonzero(coins)
        return int(heads[uniform_below(len(heads), source=source)])

    def probability(self, output: int, given: ScoresLike) -> Interval:
        """The probability of choosing the candidate at index ``output``; the work grows with the number squared.

        It is p·E[1/(1 + H)], where p is its chance of heads and H the number of heads among the others.
        """
        read = read_scores(given)
        chosen = read_position(output, len(read))
        others = weights(read, self.factor)
        own = others.pop(chosen)
        heads = [Interval.of(1)]  # heads[h]: the probability of h heads among the candidates seen so far
        for p in others:
            tails = Interval.of(1) - p
            heads = [
                ((heads[h - 1] * p if h else _ZERO) + (heads[h] * tails if h < len(heads) else _ZERO)).trim()
                for h in range(len(heads) + 1)
            ]
        mean = sum((heads[h] * Interval.of(Fraction(1, h + 1)) for h in range(len(heads))), _ZERO)
        return own * mean

    def error(self, beta: Number, of: int) -> float:
        """How far below the best of ``of`` candidates the chosen one may be, except with probability beta.

        It is the bound of the exponential mechanism, which is never better (McKenna and Sheldon 2020).
        """
        return utility_loss(
            self.factor,
            beta=parameters.read_probability(beta, "beta"),
            candidates=parameters.read_whole(of, "of"),
        )


_ZERO = Interval.of(0)
