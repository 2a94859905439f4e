"""Square wave: a report is mostly near the answer's bucket, so the whole distribution can be estimated."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import ClassVar

import numpy as np

from discreet import parameters
from discreet.errors import ParameterError
from discreet.exact import Floats, Integers, Ln, float_up
from discreet.late_dataclass import dataclass
from discreet.local.number import draw_in_window, window_chance
from discreet.local.protocol import SymbolProtocol, read_epsilon, read_integer, read_threshold, write_threshold
from discreet.local.words import WORD, Bytes, is_below, loss_of, near_ratio, near_threshold, read_words


@dataclass(frozen=True, kw_only=True)
class SquareWave(SymbolProtocol):
    """One of the ``width`` cells around the answer's bucket with probability inside/2^64, otherwise another cell.

    There are width − 1 more cells than buckets, so that the outermost buckets are as private and as useful as others.

    Privacy: ε-private for each respondent, under replace.
    Why: as for the window of ``WindowResponse``, without the rounding.
    Reference: Li, Wang, Lopuhaä-Zwakenberg, Skoric & Li 2020, §5.
    """

    name: ClassVar[str] = "wave"
    buckets: int
    width: int
    inside: int

    def __post_init__(self) -> None:
        parameters.read_whole(self.buckets, "buckets", least=2, most=1 << 15)
        if not 0 < self.width <= 1 << 15:
            raise ParameterError("parameters.width", "must be from 1 to 32768", "Use for_epsilon.")

    @classmethod
    def for_epsilon(cls, epsilon: object, buckets: int) -> SquareWave:
        """The protocol whose width keeps most information about the answer: twice b of the paper, in buckets."""
        exact = read_epsilon(epsilon)
        width = max(1, round(2 * half_width(float_up(exact)) * buckets))
        return cls(buckets=buckets, width=width, inside=near_threshold(exact, width, buckets - 1))

    @classmethod
    def read(cls, given: Mapping[str, object]) -> SquareWave:
        """The protocol from a task's parameters."""
        buckets, width = (read_integer(given, name, 1, 1 << 15) for name in ("buckets", "width"))
        return cls(buckets=buckets, width=width, inside=read_threshold(given, "inside"))

    @property
    def parameters(self) -> dict[str, int | str]:
        return {"buckets": self.buckets, "width": self.width, "inside": write_threshold(self.inside)}

    @property
    def random_bytes(self) -> int:
        return 16

    @property
    def symbols(self) -> int:
        return self.buckets + self.width - 1

    @property
    def epsilon(self) -> Ln:
        return loss_of(near_ratio(self.inside, self.width, self.buckets - 1))

    def respond(self, answers: Integers, random: Bytes) -> Integers:
        words = read_words(random)
        return draw_in_window(answers, self.width, self.buckets - 1, is_below(words[:, 0], self.inside), words[:, 1])

    def chance(self, symbol: int, answer: int) -> Fraction:
        return window_chance(symbol, answer, self.width, self.buckets - 1, self.inside)

    def smooth(self, shares: Floats) -> Floats:
        """The probabilities of the reports for a distribution over buckets: a constant plus a running sum."""
        near, far = self._densities()
        padded = np.concatenate([np.zeros(self.width), np.cumsum(shares), np.full(self.width - 1, shares.sum())])
        running = padded[self.width :] - padded[: -self.width]
        return np.asarray(far * shares.sum() + (near - far) * running)

    def gather(self, weights: Floats) -> Floats:
        """The transpose of ``smooth``: for each bucket, the sum of the weights of its reports."""
        near, far = self._densities()
        sums = np.concatenate([[0.0], np.cumsum(weights)])
        window = sums[self.width :] - sums[: -self.width]
        return np.asarray(far * weights.sum() + (near - far) * window)

    def _densities(self) -> tuple[float, float]:
        share = self.inside / WORD
        return share / self.width, (1 - share) / (self.buckets - 1)

    def fit_distribution(self, state: Integers, *, smoothed: bool = True, rounds: int = 10_000) -> Floats:
        """The distribution over the buckets with the greatest likelihood, by expectation maximisation.

        With ``smoothed`` each round ends with binomial smoothing (1, 2, 1), so that the noise of the reports does not
        appear as detail. It stops when a round gains less than a thousandth of e^ε in log-likelihood.
        """
        shares = np.full(self.buckets, 1 / self.buckets)
        if not state.any():
            return shares
        before, enough = -math.inf, 1e-3 * math.exp(float_up(self.epsilon))
        for _ in range(rounds):
            law = self.smooth(shares)
            gained = float(state @ np.log(law))
            if gained - before < enough:
                break
            before = gained
            shares = shares * self.gather(state / law)
            if smoothed and self.buckets > 2:
                edges = np.concatenate([shares[:1], shares, shares[-1:]])
                shares = (edges[:-2] + 2 * edges[1:-1] + edges[2:]) / 4
            shares /= shares.sum()
        return shares


def half_width(epsilon: float) -> float:
    """The b of the square wave that keeps most information: (ε·e^ε − e^ε + 1)/(2e^ε(e^ε − 1 − ε))."""
    if epsilon < 1e-2:  # the limit at ε = 0; near it the formula loses its digits
        return 0.5
    power = math.exp(epsilon)
    return (epsilon * power - power + 1) / (2 * power * (power - 1 - epsilon))
