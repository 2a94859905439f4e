"""Zero-concentrated differential privacy: the Rényi divergence of order α is at most ρα, for all α at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from discreet.accounting.rounding import exp_up, move_up, probability_up, shorten, sum_up, to_float
from discreet.exact import decimal, float_up
from discreet.late_dataclass import dataclass

_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, slots=True)
class ZeroConcentratedNotion:
    """The release is δ-approximately ρ-zCDP: ρ is ``rho``, δ is ``slack``.

    Privacy: outside of an event of probability at most δ, the Rényi divergence of every order α > 1 between the
    outputs on neighbours is at most ρα. ρ and δ each sum under adaptive composition, also when they are chosen after
    seeing earlier answers (Whitehouse, Ramdas, Rogers & Wu 2023); a group of k has k²ρ (Bun & Steinke 2016,
    Lemma 2.3, Prop. 1.9), known here for δ = 0 only. To (ε, δ) by Canonne, Kamath & Steinke 2020, Prop. 12, which is
    valid for every order α, so only the last evaluation is rounded, upwards.

    >>> round(ZeroConcentratedNotion(Fraction(1, 40)).epsilon(1e-6), 6)
    1.014074
    """

    kind: ClassVar[str] = "zcdp"

    rho: Fraction
    slack: Fraction = Fraction(0)

    def epsilon(self, delta: float) -> float:
        spare = self._spare(delta)
        if spare <= 0:
            return math.inf
        return epsilon_of(to_float(self.rho), spare)

    def delta(self, epsilon: float) -> float:
        if self.slack >= 1:
            return 1.0
        converted = delta_of(to_float(self.rho), epsilon)
        if not self.slack:
            return converted
        slack = to_float(self.slack)
        return probability_up(slack + (1 - slack) * converted)

    def _spare(self, delta: float) -> float:
        """The part of a target δ that is left for the conversion: δ = slack + (1 − slack)·spare, rounded down."""
        left = decimal(delta) - self.slack
        if left <= 0:
            return 0.0
        return float(left / (1 - self.slack)) * (1 - 2.0**-50)

    def compose(self, other: ZeroConcentratedNotion) -> ZeroConcentratedNotion:
        return ZeroConcentratedNotion(shorten(self.rho + other.rho), shorten(self.slack + other.slack))

    def repeat(self, count: int) -> ZeroConcentratedNotion:
        return ZeroConcentratedNotion(self.rho * count, self.slack * count)

    def for_group(self, size: int) -> ZeroConcentratedNotion | None:
        if self.slack and size > 1:
            return None
        return ZeroConcentratedNotion(self.rho * size * size, self.slack)

    def words(self) -> str:
        text = f"ρ = {float_up(self.rho):.6g}"
        return f"{text}, except with probability {float_up(self.slack):.3g}" if self.slack else text


def epsilon_of(rho: float, delta: float) -> float:
    """ε at δ for ρ-zCDP, rounded up: the least over orders of αρ + [ln(1/δ) + (α−1)ln(1−1/α) − ln α]/(α−1)."""
    if math.isinf(rho):
        return math.inf
    if rho == 0:
        return 0.0
    log = -math.log(delta)

    def terms(a: float) -> tuple[float, ...]:  # a = α − 1
        return rho, a * rho, -math.log1p(1 / a), log / a, -math.log1p(a) / a

    return max(0.0, move_up(sum_up(*terms(_find_least(lambda a: sum(terms(a)))))))


def delta_of(rho: float, epsilon: float) -> float:
    """δ at ε for ρ-zCDP, rounded up: the least over orders of exp((α−1)(αρ−ε+ln(1−1/α)) − ln α)."""
    if math.isinf(rho):
        return 1.0
    if rho == 0 or math.isinf(epsilon):
        return 0.0

    def terms(a: float) -> tuple[float, ...]:
        return a * rho, a * a * rho, -a * epsilon, -a * math.log1p(1 / a), -math.log1p(a)

    return min(1.0, exp_up(*terms(_find_least(lambda a: sum(terms(a))))))


@lru_cache(maxsize=256)
def rho_for(epsilon: float, delta: float) -> Fraction:
    """The largest ρ that ``epsilon_of`` converts to at most this ε at this δ, rounded down; zero where there is none.

    >>> round(float(rho_for(1.0, 1e-6)), 8)
    0.02435597
    """
    if delta <= 0 or epsilon <= 0:
        return Fraction(0)
    low, high = 0.0, epsilon + 1.0
    for _ in range(200):
        middle = (low + high) / 2
        if not low < middle < high or high - low <= 1e-13 * high:
            break
        low, high = (middle, high) if epsilon_of(middle, delta) <= epsilon else (low, middle)
    # A little less, so that every later conversion of a sum that fits agrees that it fits.
    return Fraction(low * (1 - 1e-11))


def _find_least(function: Callable[[float], float]) -> float:
    """Where a function of α − 1 with a single minimum is least, by golden section over its logarithm."""
    low, high = -30.0, 120.0
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(math.exp(left)), function(math.exp(right))
    while high - low > 1e-9:
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = function(math.exp(left))
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = function(math.exp(right))
    return math.exp((low + high) / 2)
