"""Slow and simple samplers in whole numbers (Canonne, Kamath and Steinke 2020), for tests of the fast ones.

They use no table, no float and no logarithm, only fair bits and comparisons of integers. They share no code with the
fast samplers, and tests compare the two. Nothing else should use them, because their running time depends on the value
that is drawn.
"""

from __future__ import annotations

import math
from fractions import Fraction

from discreet.entropy import EntropySource


def uniform_below(n: int, source: EntropySource) -> int:
    """0, ..., n − 1 with equal probability: bits are drawn until they are below n."""
    while True:
        value = source.bits(n.bit_length())
        if value < n:
            return value


def bernoulli(p: Fraction, source: EntropySource) -> bool:
    """True with probability p."""
    return uniform_below(p.denominator, source) < p.numerator


def bernoulli_exp(x: Fraction, source: EntropySource) -> bool:
    """True with probability e^(−x), x ≥ 0: one flip of e^(−1) for each whole unit, then one for what is left."""
    while x > 1:
        if not _bernoulli_exp_unit(Fraction(1), source):
            return False
        x -= 1
    return _bernoulli_exp_unit(x, source)


def _bernoulli_exp_unit(x: Fraction, source: EntropySource) -> bool:
    """For x ≤ 1: count how long flips of x/1, x/2, x/3, ... succeed; the count is even with probability e^(−x)."""
    k = 1
    while bernoulli(x / k, source):
        k += 1
    return k % 2 == 1


def geometric(scale: Fraction, source: EntropySource) -> int:
    """Whole k ≥ 0 with P(k) ∝ e^(−k/scale): for scale n/d it is ⌊(U + n·V)/d⌋ of two geometric pieces."""
    n, d = scale.numerator, scale.denominator
    while True:
        u = uniform_below(n, source)
        if bernoulli_exp(Fraction(u, n), source):
            break
    v = 0
    while bernoulli_exp(Fraction(1), source):
        v += 1
    return (u + n * v) // d


def discrete_laplace(scale: Fraction, source: EntropySource) -> int:
    """P(x) ∝ e^(−|x|/scale): a geometric magnitude with a sign; minus zero is drawn again."""
    while True:
        magnitude, negative = geometric(scale, source), source.bits(1)
        if magnitude or not negative:
            return -magnitude if negative else magnitude


def discrete_gaussian(variance: Fraction, source: EntropySource) -> int:
    """P(x) ∝ e^(−x²/(2·variance)): discrete Laplace of a whole scale near σ, kept with the right probability."""
    t = math.isqrt(math.floor(variance)) + 1
    while True:
        x = discrete_laplace(Fraction(t), source)
        if bernoulli_exp((abs(x) - variance / t) ** 2 / (2 * variance), source):
            return x


class UniformReal:
    """A uniform number in [0, 1] of which only the first bits are known; ``extend`` draws more of them."""

    def __init__(self, source: EntropySource) -> None:
        self._source, self._prefix, self._known = source, 0, 0

    def extend(self) -> None:
        self._prefix, self._known = self._prefix << 16 | self._source.bits(16), self._known + 16

    @property
    def low(self) -> Fraction:
        return Fraction(self._prefix, 1 << self._known)

    @property
    def high(self) -> Fraction:
        return Fraction(self._prefix + 1, 1 << self._known)


def rounded_gaussian(variance: Fraction, source: EntropySource) -> int:
    """round(σZ) for σ² = variance: |σZ| is k + f, whole part and fraction, and the fraction is kept as far as needed.

    k ≥ 0 is proposed with P(k) ∝ e^(−k²/(2·variance)) and f evenly; both are kept with e^(−f·(2k + f)/(2·variance)).
    So k + f has a density ∝ e^(−(k + f)²/(2·variance)). It is rounded up where f is above one half.
    """
    while True:
        k, f = discrete_gaussian(variance, source), UniformReal(source)
        if k >= 0 and _keeps_place(k, f, variance, source):
            while f.low < Fraction(1, 2) < f.high:
                f.extend()
            magnitude = k + (f.low >= Fraction(1, 2))
            return -magnitude if source.bits(1) else magnitude


def _keeps_place(k: int, f: UniformReal, variance: Fraction, source: EntropySource) -> bool:
    """True with probability e^(−x), x = f·(2k + f)/(2·variance): so many flips that each exponent is at most 1."""
    flips = math.floor((2 * k + 1) / (2 * variance)) + 1
    return all(_keeps_part(k, f, 2 * variance * flips, source) for _ in range(flips))


def _keeps_part(k: int, f: UniformReal, part: Fraction, source: EntropySource) -> bool:
    """``_bernoulli_exp_unit`` for x = f·(2k + f)/part, which is known as far as f is."""
    n = 1
    while _is_below(k, f, part * n, source):
        n += 1
    return n % 2 == 1


def _is_below(k: int, f: UniformReal, part: Fraction, source: EntropySource) -> bool:
    """Whether a fresh uniform number is below f·(2k + f)/part; more bits of both are drawn until that is sure."""
    u = UniformReal(source)
    while True:
        if u.high <= f.low * (2 * k + f.low) / part:
            return True
        if u.low >= f.high * (2 * k + f.high) / part:
            return False
        u.extend()
        f.extend()
