"""The laws of discrete noise: exact probabilities and tails, as certified intervals.

``DiscreteLaplaceLaw``: P(z) ∝ exp(−|z|/scale). ``DiscreteGaussianLaw``: P(z) ∝ exp(−z²/(2·variance)).
``RoundedGaussianLaw``: a normal number, rounded. All are on the whole numbers, symmetric, and have one peak. Tests
compare the samplers with these laws, and the mechanisms compute their errors from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Protocol

from discreet.exact import BITS, Interval, ceil_div, exp_minus_bounds, sqrt_lower, sqrt_upper
from discreet.late_dataclass import dataclass
from discreet.mechanisms.normal_tail import normal_tail, pi_interval

# Above this standard deviation a tail is bounded by the normal tail instead of being summed.
_SUMMED = 512
# The largest scale or variance, in steps, that is allowed.
MOST = 1 << 1000
_SLACK = Fraction(1, 1 << 40)  # far more than the relative error of math.erfc
_UNDERFLOW = Fraction(1, 1 << 1000)  # covers its absolute error near the smallest floats


class NoiseLaw(Protocol):
    """A symmetric law on the whole numbers with one peak.

    Members: ``DiscreteLaplaceLaw``, ``DiscreteGaussianLaw``, ``RoundedGaussianLaw``.
    """

    def probability(self, z: int) -> Interval:
        """P(Z = z)."""
        ...

    def tail(self, z: int) -> Interval:
        """P(|Z| ≥ z), for z ≥ 0."""
        ...


@dataclass(frozen=True)
class DiscreteLaplaceLaw:
    """P(z) = (1 − q)/(1 + q)·q^|z| with q = exp(−1/scale).

    >>> round(float(DiscreteLaplaceLaw(Fraction(1)).probability(0)), 6)
    0.462117
    """

    scale: Fraction

    @cached_property
    def _q(self) -> Interval:
        # 1 − q is about 1/scale: that many more bits keep the peak's relative precision.
        return Interval.exp_minus(1 / self.scale, BITS + math.ceil(self.scale).bit_length())

    def power(self, z: int) -> Interval:
        """q^z for z ≥ 0."""
        return Interval.exp_minus(z / self.scale)

    @cached_property
    def peak(self) -> Interval:
        """P(Z = 0)."""
        one = Interval.of(1)
        return ((one - self._q) / (one + self._q)).trim(BITS + math.ceil(self.scale).bit_length())

    def probability(self, z: int) -> Interval:
        return self.peak * self.power(abs(z))

    def tail(self, z: int) -> Interval:
        if z <= 0:
            return Interval.of(1)
        return Interval.of(2) * self.power(z) / (Interval.of(1) + self._q)


@dataclass(frozen=True)
class DiscreteGaussianLaw:
    """P(z) = exp(−z²/(2·variance))/Z, where Z = Σ exp(−z²/(2·variance)).

    >>> round(float(DiscreteGaussianLaw(Fraction(1)).normaliser), 12)
    2.506628288043
    """

    variance: Fraction

    @property
    def normaliser(self) -> Interval:
        """Z, the sum of all weights."""
        return _normaliser(self.variance)

    def weight(self, z: int) -> Interval:
        """exp(−z²/(2·variance))."""
        return Interval.exp_minus(z * z / (2 * self.variance))

    def probability(self, z: int) -> Interval:
        return self.weight(z) / self.normaliser

    def tail(self, z: int) -> Interval:
        if z <= 0:
            return Interval.of(1)
        if self.variance <= _SUMMED**2:
            return Interval.of(2) * _weights_from(self.variance, z) / self.normaliser
        # Decreasing weights: the sum from z lies between the integrals from z and from z − 1. Z is at least
        # √(2πσ²), and above it by less than one part in 2^40 here.
        sigma = math.sqrt(float(self.variance))
        low, high = (math.erfc(end / sigma / math.sqrt(2)) for end in (z, z - 1))
        return Interval(
            max(Fraction(0), Fraction(low) * (1 - _SLACK) - _UNDERFLOW),
            min(Fraction(1), Fraction(high) * (1 + _SLACK) + _UNDERFLOW),
        )


@dataclass(frozen=True)
class RoundedGaussianLaw:
    """round(σZ) for a standard normal Z and σ² = ``variance``: P(z) = Φ((z + ½)/σ) − Φ((z − ½)/σ).

    A half, where rounding would have to choose, has probability zero.

    >>> round(float(RoundedGaussianLaw(Fraction(1)).probability(0)), 12)
    0.382924922548
    """

    variance: Fraction

    def _beyond(self, halves: int, bits: int = BITS) -> Interval:
        """P(σZ > halves/2), for halves ≥ 0."""
        return normal_tail(halves * halves / (4 * self.variance), bits)

    def probability(self, z: int) -> Interval:
        # Neighbouring tails of wide noise are almost equal: as many bits more as their difference loses.
        first, bits = 2 * abs(z) - 1, BITS + math.ceil(self.variance).bit_length()
        if z == 0:
            return Interval.of(1) - Interval.of(2) * self._beyond(1, bits)
        chance = self._beyond(first, bits) - self._beyond(first + 2, bits)
        return Interval(max(Fraction(0), chance.low), chance.high)

    def tail(self, z: int) -> Interval:
        return Interval.of(2) * self._beyond(2 * z - 1) if z > 0 else Interval.of(1)

    @cached_property
    def second_moment(self) -> Fraction:
        """At or above E[round(σZ)²], which is the variance of the noise.

        By Poisson summation it is σ² + 1/12 + Σ_{k ≥ 1} (−1)^k·(4σ² + 1/(πk)²)·exp(−2π²k²σ²). The terms alternate and
        fall, so the sum is not above zero. Narrow noise is summed: E[X²] = Σ_{z ≥ 1} (2z − 1)·P(|X| ≥ z).
        """
        if self.variance >= Fraction(1, 4):
            return self.variance + Fraction(1, 12)
        # From z = 64 on x² is above 64,000, and all later terms together are below 2^-5000.
        return sum((2 * z - 1) * self.tail(z).high for z in range(1, 65)) + Fraction(1, 1 << 5000)


@lru_cache(maxsize=128)
def _normaliser(variance: Fraction) -> Interval:
    """Σ exp(−z²/2σ²) = √(2πσ²)·Σ exp(−2π²σ²k²) (Poisson summation): whichever sum is the shorter."""
    if variance < Fraction(1, 4):
        return Interval.of(1) + Interval.of(2) * _weights_from(variance, 1)
    pi = pi_interval()
    two_pi = Interval.of(2 * variance) * pi
    root = Interval(sqrt_lower(two_pi.low), sqrt_upper(two_pi.high))
    # Terms shrink by more than half each, so those left out sum to less than the last one taken.
    total, k = Interval.of(1), 0
    while True:
        k += 1
        exponent = Interval.of(2 * variance * k * k) * pi * pi
        term = Interval(
            Fraction(exp_minus_bounds(exponent.high, BITS)[0], 1 << BITS),
            Fraction(exp_minus_bounds(exponent.low, BITS)[1], 1 << BITS),
        )
        total += Interval.of(2) * term
        if term.high <= Fraction(2, 1 << BITS):
            return (root * Interval(total.low, total.high + 2 * term.high)).trim()


@lru_cache(maxsize=512)
def _weights_from(variance: Fraction, first: int) -> Interval:
    """Σ_{z ≥ first} exp(−z²/2σ²) for first ≥ 1, by the recurrence w(z+1) = w(z)·q^(2z+1), q = exp(−1/2σ²).

    The weights are kept relative to w(first), so that far tails keep their digits.
    """
    bits = BITS + 2 * math.isqrt(math.ceil(variance)).bit_length() + 32
    one = 1 << bits
    ratio = exp_minus_bounds(Fraction(2 * first + 1) / (2 * variance), bits)
    square = exp_minus_bounds(1 / variance, bits)
    sum_low = sum_high = term_low = term_high = one
    ratio_low, ratio_high = ratio
    negligible = 1 << (bits - BITS)  # rounding up keeps terms from reaching one unit
    while term_high > negligible:
        term_low, term_high = term_low * ratio_low >> bits, ceil_div(term_high * ratio_high, one)
        ratio_low, ratio_high = ratio_low * square[0] >> bits, ceil_div(ratio_high * square[1], one)
        sum_low += term_low
        sum_high += term_high
    left_over = ceil_div(term_high * one, one - ratio_high)  # the rest falls faster than a geometric series
    relative = Interval(Fraction(sum_low, one), Fraction(sum_high + left_over, one))
    return relative * Interval.exp_minus(first * first / (2 * variance))


def log_inverse(p: Fraction) -> float:
    """ln(1/p), also where p is below all floats."""
    return math.log(p.denominator) - math.log(p.numerator)


def find_smallest(holds: Callable[[int], bool], near: int) -> int:
    """The smallest whole number ≥ 0 from which on ``holds`` is true, starting the search at a good guess."""
    low, high, width = max(0, near) - 1, max(0, near), 1
    while not holds(high):
        low, high, width = high, high + width, 2 * width
    width = 1
    while low >= 0 and holds(low):
        low, high, width = max(-1, low - width), low, 2 * width
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def chance_for_each(beta: Fraction, of: int) -> Fraction:
    """The probability that each of ``of`` independent noises may exceed a bound, so that any does with at most beta.

    1 − (1 − β)^(1/k), rounded down, and never below β/k (the union bound).
    """
    if of == 1:
        return beta
    one = Fraction(-math.expm1(math.log1p(-float(beta)) / of)) * (1 - _SLACK)
    return max(one, beta / of)


def noise_bound(law: NoiseLaw, beta: Fraction, of: int, near: float) -> int:
    """The smallest whole number that none of ``of`` independent noises exceeds, with probability 1 − ``beta``."""
    allowed = chance_for_each(beta, of)
    return find_smallest(lambda z: law.tail(z + 1).high <= allowed, math.floor(min(near, 2.0**62)))


def stays_within(law: NoiseLaw, bound: Fraction, beta: Fraction, of: int) -> bool:
    """Whether none of ``of`` independent noises exceeds ``bound`` steps, with probability 1 − ``beta``."""
    return law.tail(math.floor(bound) + 1).high <= chance_for_each(beta, of)
