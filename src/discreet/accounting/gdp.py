"""Gaussian differential privacy: no attack is better than a test between N(0,1) and N(μ,1)."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from discreet.accounting.rounding import UNIT, find_smallest, move_up, probability_up, shorten, to_float
from discreet.exact import Exact, float_up, sqrt_upper, upper
from discreet.late_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class GaussianNotion:
    """The release is μ-Gaussian private; the exact μ² is kept, so composition is exact.

    Privacy: for all neighbours, any test between the two outputs is at best as good as one between N(0,1) and N(μ,1).
    μ² sums under adaptive composition (Dong, Roth & Su 2022, Cor. 3.3), also when each μ is chosen after seeing
    earlier answers (Smith & Thakurta 2022); a group of k has kμ (Dong, Roth & Su 2022, Thm. 2.14). To (ε, δ) exactly:
    δ = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) (Balle & Wang 2018, Thm. 8), rounded up by a margin of 2^-50 times the sizes
    that enter: below 10^-11 relative for μ above 10^-3. With a ``slack`` δ all of this holds outside of a failure of
    probability δ; failures sum.

    >>> round(GaussianNotion(Fraction(1)).epsilon(1e-6), 6)
    4.886554
    """

    kind: ClassVar[str] = "gdp"

    mu_squared: Fraction
    slack: Fraction = Fraction(0)

    @property
    def mu(self) -> Fraction:
        """A rational at or above μ."""
        return sqrt_upper(self.mu_squared)

    def epsilon(self, delta: float) -> float:
        mu = math.sqrt(to_float(self.mu_squared))
        if delta <= self.slack or math.isinf(mu):
            return math.inf
        # The tail bound that solves μ²/2 + μ·√(2·ln(1/δ)) is a first guess from above.
        return find_smallest(self.delta, delta, mu * mu / 2 + mu * math.sqrt(-2 * math.log(delta)))

    def delta(self, epsilon: float) -> float:
        inner = delta_of(math.sqrt(to_float(self.mu_squared)), epsilon)
        if not self.slack:
            return inner
        slack = to_float(self.slack)
        return probability_up(slack + (1 - slack) * inner)

    def compose(self, other: GaussianNotion) -> GaussianNotion:
        return GaussianNotion(shorten(self.mu_squared + other.mu_squared), shorten(self.slack + other.slack))

    def repeat(self, count: int) -> GaussianNotion:
        return GaussianNotion(self.mu_squared * count, self.slack * count)

    def for_group(self, size: int) -> GaussianNotion | None:
        if self.slack and size > 1:
            return None
        return GaussianNotion(self.mu_squared * size * size, self.slack)

    def words(self) -> str:
        text = f"μ = {float_up(self.mu):.6g}"
        return f"{text}, except with probability {float_up(self.slack):.3g}" if self.slack else text


def mu_squared_of(span: Exact) -> Fraction:
    """μ² of any release whose log-ratios lie within a range of this width, rounded up: 2ε of an ε-private one.

    μ = 2·Φ⁻¹(1/(1 + e^(−span/2))), which is 2√2·erf⁻¹(tanh(span/4)): docs/proofs/pure-as-gaussian.md. It is never
    above √(π/8)·span, and never above 2·√span.

    >>> round(float(mu_squared_of(Fraction(2))), 6)
    1.517911
    """
    width = to_float(span)
    exact = upper(span)
    tangent = exact * exact * _PI_OVER_EIGHT
    if width > 1400:
        return 4 * exact
    if width < 1e-6:
        return shorten(tangent)
    low, high = 0.0, width
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if _covers(middle, width) else (middle, high)
    return min(shorten(tangent), Fraction(move_up(8 * high * high, 16 * UNIT)))


def _covers(x: float, width: float) -> bool:
    """Whether erf(x) ≥ tanh(width/4) for certain, by whichever of erf and erfc is small and so exact."""
    if width < 2:
        return math.erf(x) * (1 - 16 * UNIT) >= math.tanh(width / 4) * (1 + 16 * UNIT)
    return math.erfc(x) * (1 + 16 * UNIT) <= 2 / (1 + math.exp(width / 2)) * (1 - (16 + width) * UNIT)


# At or above π/8.
_PI_OVER_EIGHT = Fraction(3926990816987242, 10**16)
_HALVINGS = 70


def delta_of(mu: float, epsilon: float) -> float:
    """δ at ε ≥ 0 for μ-Gaussian privacy, rounded up."""
    if math.isinf(mu):
        return 1.0
    if mu == 0 or math.isinf(epsilon):
        return 0.0
    a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if a > 40:  # below Φ(−40) < 10^-349: no float is smaller, except zero
        return 5e-324
    # e^ε·Φ(−b) = φ-factor·erfcx(b/√2), because b² − a² = 2ε; nothing overflows.
    factor = math.exp(-a * a / 2)
    present, absent = math.erfc(a / _ROOT) / 2, factor * _erfcx(b / _ROOT) / 2
    if a > 0:
        present = factor * _erfcx(a / _ROOT) / 2
    margin = UNIT * (4 + a * a + (abs(a) + 1) * b)
    # Where numbers are subnormal, each of at most six roundings costs up to one smallest float, whatever its size.
    return min(1.0, max(0.0, present - absent) + margin * (present + absent) + 8 * 5e-324)


@lru_cache(maxsize=256)
def mu_for(epsilon: float, delta: float) -> Fraction:
    """The largest μ that ``delta_of`` converts to at most this δ at this ε, rounded down; zero where there is none.

    >>> round(1 / float(mu_for(1.0, 1e-5)), 7)
    3.7306316
    """
    if delta <= 0:
        return Fraction(0)
    low, high = 0.0, 1.0
    while delta_of(high, epsilon) <= delta:
        low, high = high, 2 * high
        if math.isinf(high):
            return Fraction(low)
    for _ in range(1200):
        middle = (low + high) / 2
        if not low < middle < high or high - low <= 1e-13 * high:
            break
        low, high = (middle, high) if delta_of(middle, epsilon) <= delta else (low, middle)
    # A little less, so that every later conversion of a sum that fits agrees that it fits.
    return Fraction(low * (1 - 1e-11))


_ROOT = math.sqrt(2)


def _erfcx(x: float) -> float:
    """e^(x²)·erfc(x) for x ≥ 0, to a few units in the last place."""
    if x > 25:
        # The asymptotic series; from x = 25 on its sixth term is below 10^-16.
        square = 1 / (2 * x * x)
        series, term = 1.0, 1.0
        for n in range(1, 14, 2):
            term *= -n * square
            series += term
        return series / (x * math.sqrt(math.pi))
    # x² in two parts: the head has few bits, so its square is exact and e^tail corrects the rest.
    head = math.floor(x * 2**20) / 2**20
    return math.erfc(x) * math.exp(head * head) * math.exp((x - head) * (x + head))
