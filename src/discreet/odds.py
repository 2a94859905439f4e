"""States what a privacy loss means for a person, as odds and as sentences.

All bounds follow from one function, the privacy profile: δ(ε) is the smallest δ for which the release is (ε,δ)-private
in both directions. An attacker who compares two neighbouring datasets can use nothing beyond the profile (Dong, Roth &
Su 2022, "Gaussian differential privacy", Prop. 2.12), so these bounds hold for every attack, known or not. Numbers are
rounded up, so that they never understate the risk.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from discreet.errors import ParameterError
from discreet.late_dataclass import dataclass

Profile: TypeAlias = Callable[[float], float]

# Covers the rounding of the few float operations on top of a profile.
_MARGIN = 1 + 2.0**-46
# A steeper slope cannot change the result as a float.
_STEEPEST = 30.0
# The distances t above ε that ``tail_epsilon`` tries.
_DISTANCES = (1 / 256, 1 / 64, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)


def posterior(prior: float, epsilon: float) -> float:
    """The largest probability that a guess of probability ``prior`` can have after a release with loss ``epsilon``.

    >>> round(posterior(0.5, math.log(3)), 4)
    0.75
    """
    if not 0 <= prior <= 1:
        raise ParameterError("prior", "must be a probability", "Give for example prior=0.5.")
    if math.isinf(epsilon):
        return 1.0 if prior > 0 else 0.0
    if epsilon == 0 or prior == 0:
        return prior
    return min(1.0, prior / (prior + (1 - prior) * math.exp(-epsilon)) * _MARGIN)


def tail_epsilon(epsilon: Profile, delta: float) -> float:
    """A loss that is exceeded with probability at most δ, from ``epsilon``, the function that gives ε at a δ.

    This is more than ε(δ): an (ε, δ)-private release may exceed the loss ε with a probability above δ. But δ(ε) is at
    least (1 − e^(−t))·Pr[loss > ε + t], for every t > 0; the best of several t is taken. For a pure loss it is ε.

    >>> tail_epsilon(lambda delta: 1.0, 0.0)
    1.0
    """
    sure = epsilon(0.0)
    if delta <= 0 or math.isinf(delta):
        return sure
    return min(sure, *((epsilon(delta * -math.expm1(-t) / _MARGIN) + t) * _MARGIN for t in _DISTANCES))


@dataclass(frozen=True)
class Odds:
    """The attacker's best odds against one protected unit.

    ``advantage``: largest difference between the rates of a right and a wrong alarm (total variation distance, δ(0)).
    ``guess``: how often a 50:50 guess is right at most after seeing the release, on average: (1 + advantage)/2.
    ``worst_guess``: what a 50:50 guess becomes at most for the worst output, except with probability ``delta``;
    ``epsilon`` is the loss that is exceeded with at most that probability (``tail_epsilon``).
    """

    advantage: float
    epsilon: float
    delta: float
    profile: Profile
    about: str = "one person"

    @property
    def guess(self) -> float:
        return min(1.0, (1 + self.advantage) / 2 * _MARGIN)

    @property
    def worst_guess(self) -> float:
        return posterior(0.5, self.epsilon)

    def detection(self, false_alarms: float) -> float:
        """The largest rate of right alarms any attack can have at this rate of false alarms.

        From δ(ε): right ≤ e^ε·wrong + δ(ε); and the same for the rates of silence, with the two datasets swapped,
        gives right ≤ 1 − e^(−ε)·(1 − δ(ε) − wrong). Both hold for every ε ≥ 0, so the result is valid even where the
        search does not find the best ε. The first bound is convex in e^ε, the second in e^(−ε).
        """
        if not 0 <= false_alarms <= 1:
            raise ParameterError("false_alarms", "must be a probability", "Give for example false_alarms=0.05.")

        def first(slope: float) -> float:
            return math.exp(slope) * false_alarms + self.profile(slope)

        def second(slope: float) -> float:
            return 1 - math.exp(-slope) * max(0.0, 1 - self.profile(slope) - false_alarms)

        steepest = min(_STEEPEST, self.epsilon)
        best = min(_find_least(first, steepest), _find_least(second, steepest)) * _MARGIN
        return min(1.0, max(best, false_alarms))

    def curve(self, points: int = 21) -> list[tuple[float, float]]:
        """The trade-off curve as (false alarms, largest right alarms) pairs."""
        if isinstance(points, bool) or not isinstance(points, int) or not 2 <= points <= 10_000:
            raise ParameterError("points", "must be a whole number, at least 2", "Give for example points=21.")
        return [(i / (points - 1), self.detection(i / (points - 1))) for i in range(points)]

    def sentence(self, prior: float = 0.5) -> str:
        """The worst case as a sentence for the people concerned."""
        if math.isinf(self.epsilon):
            return f"There is no bound on what this release reveals about {self.about}."
        after = posterior(prior, self.epsilon)
        text = (
            f"A guess about {self.about} that was {_format_odds(prior)} becomes at most {_format_odds(after, up=True)}"
        )
        if self.delta:
            text += f", except with probability {self.delta:.2g}"
        return f"{text}."

    def __str__(self) -> str:
        return (
            f"{self.sentence()} On average over what is released, a 50:50 guess is right at most "
            f"{_format_percent(self.guess)} of the time; with 5 % false alarms an attacker finds at most "
            f"{_format_percent(self.detection(0.05))} of those present."
        )

    __repr__ = __str__


def _find_least(function: Profile, steepest: float, steps: int = 24) -> float:
    """The least value found by a golden-section search over [0, steepest], the ends included."""
    low, high = 0.0, steepest
    ratio = (math.sqrt(5) - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = function(left), function(right)
    best = min(function(low), function(high), at_left, at_right)
    for _ in range(steps):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = function(right)
        best = min(best, at_left, at_right)
    return best


def _format_percent(p: float) -> str:
    """A probability as a percentage, rounded up so that it never understates the risk."""
    return f"{min(100.0, math.ceil(p * 1000 - 1e-9) / 10):g} %"


def _format_odds(p: float, *, up: bool = False) -> str:
    """A probability as odds out of 100, with more digits where they matter; rounded up on request.

    >>> _format_odds(0.5), _format_odds(0.75001, up=True), _format_odds(0.99995)
    ('50:50', '75.1:24.9', '99.995:0.005')
    """
    if p >= 1:
        return "certain"
    if p <= 0:
        return "impossible"
    digits = 1 if 0.001 <= p <= 0.999 else min(12, 1 - math.floor(math.log10(min(p, 1 - p) * 100)))
    scale = 10**digits
    rounded = math.ceil(p * 100 * scale - 1e-9) if up else round(p * 100 * scale)
    top = min(rounded, 100 * scale) / scale
    return f"{top:.{digits}f}".rstrip("0").rstrip(".") + ":" + f"{100 - top:.{digits}f}".rstrip("0").rstrip(".")
