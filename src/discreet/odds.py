"""What a privacy loss means for a person, in odds and in words.

Everything here follows from one function, the privacy profile: δ(ε), the smallest δ for which the release is
(ε,δ)-private. A profile is all an attacker who compares two neighbouring datasets can use (Dong, Roth & Su 2022,
"Gaussian differential privacy", Prop. 2.12), so these bounds hold for every attack, known or not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from discreet.errors import ParameterError

Profile: TypeAlias = Callable[[float], float]

# Slopes at which the trade-off curve is taken; any finite set gives valid (if slightly loose) bounds.
_SLOPES = tuple(i / 16 for i in range(-320, 321))


def posterior(prior: float, epsilon: float) -> float:
    """The most a guess of probability ``prior`` can become after a release with pure loss ``epsilon``.

    >>> round(posterior(0.5, math.log(3)), 4)
    0.75
    """
    if not 0 <= prior <= 1:
        raise ParameterError("prior", "must be a probability", "Give for example prior=0.5.")
    if math.isinf(epsilon):
        return 1.0 if prior > 0 else 0.0
    return prior / (prior + (1 - prior) * math.exp(-epsilon))


@dataclass(frozen=True)
class Odds:
    """The attacker's best odds against one protected unit.

    ``advantage``: largest difference between the rates of a right and a wrong alarm (total variation distance, δ(0)).
    ``guess``: what a 50:50 guess becomes at most on average over outputs, (1 + advantage)/2.
    ``worst_guess``: what it becomes for the worst output, except with probability ``delta``.
    """

    advantage: float
    epsilon: float
    delta: float
    profile: Profile

    @property
    def guess(self) -> float:
        return min(1.0, (1 + self.advantage) / 2)

    @property
    def worst_guess(self) -> float:
        return posterior(0.5, self.epsilon)

    def detection(self, false_alarms: float) -> float:
        """The largest rate of right alarms any attack can have at this rate of false alarms.

        From δ(ε): right ≤ e^ε·wrong + δ(ε), and by symmetry right ≤ 1 − e^(−ε)·(1 − δ(ε) − wrong), for every ε.
        """
        if not 0 <= false_alarms <= 1:
            raise ParameterError("false_alarms", "must be a probability", "Give for example false_alarms=0.05.")
        best = 1.0
        for slope in (s for s in (*_SLOPES, self.epsilon) if s >= 0 and math.isfinite(s)):
            delta = self.profile(slope)
            best = min(
                best,
                math.exp(slope) * false_alarms + delta,
                1 - math.exp(-slope) * max(0.0, 1 - delta - false_alarms),
            )
        return max(best, false_alarms)

    def curve(self, points: int = 21) -> list[tuple[float, float]]:
        """The trade-off curve as (false alarms, largest right alarms) pairs."""
        return [(i / (points - 1), self.detection(i / (points - 1))) for i in range(points)]

    def sentence(self, prior: float = 0.5) -> str:
        """The worst case in words a person understands."""
        if math.isinf(self.epsilon):
            return "There is no bound on what this release reveals about one person."
        after = posterior(prior, self.epsilon)
        text = f"A guess about one person that was {_odds(prior)} becomes at most {_odds(after, up=True)}"
        if self.delta:
            text += f", except with probability {self.delta:.2g}"
        return f"{text}."

    def __str__(self) -> str:
        return (
            f"{self.sentence()} On average over what is released, a 50:50 guess is right at most "
            f"{_percent(self.guess)} of the time; with 5 % false alarms an attacker finds at most "
            f"{_percent(self.detection(0.05))} of those present."
        )

    __repr__ = __str__


def _percent(p: float) -> str:
    """A probability as a percentage, rounded up: against ourselves."""
    return f"{min(100.0, math.ceil(p * 1000 - 1e-9) / 10):g} %"


def _odds(p: float, *, up: bool = False) -> str:
    """A probability as odds out of 100, with more digits where they matter; rounded up on request.

    >>> _odds(0.5), _odds(0.75001, up=True), _odds(0.99995)
    ('50:50', '75.1:24.9', '99.995:0.005')
    """
    if p >= 1:
        return "certain"
    digits = 1 if 0.001 <= p <= 0.999 else min(12, 1 - math.floor(math.log10(min(p, 1 - p) * 100)))
    scale = 10**digits
    rounded = math.ceil(p * 100 * scale - 1e-6) if up else round(p * 100 * scale)
    top = min(rounded, 100 * scale) / scale
    return f"{top:.{digits}f}".rstrip("0").rstrip(".") + ":" + f"{100 - top:.{digits}f}".rstrip("0").rstrip(".")
