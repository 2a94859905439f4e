"""The exact probability that one of several noisy whole numbers is the largest, with ties broken uniformly."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Protocol, TypeAlias

from discreet.exact import Interval, ceil_div
from discreet.late_dataclass import dataclass
from discreet.mechanisms.laws import DiscreteLaplaceLaw, find_smallest
from discreet.mechanisms.scores import exp_minus

_ZERO, _ONE = Interval.of(0), Interval.of(1)
# Noise values whose tail has less than this probability are not summed; their mass is added to the upper end.
_NEGLIGIBLE = Fraction(1, 1 << 110)

# Probabilities in whole parts of 2^-160, from below and from above. In long sums they are far faster than fractions.
FixedChance: TypeAlias = tuple[int, int]
_BITS = 160
UNIT = 1 << _BITS


def multiply(a: FixedChance, b: FixedChance) -> FixedChance:
    """The product of two probabilities."""
    return a[0] * b[0] >> _BITS, ceil_div(a[1] * b[1], UNIT)


class ChanceTable(dict[int, FixedChance]):
    """A function of whole numbers to probabilities, each computed once."""

    def __init__(self, function: Callable[[int], Interval]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, z: int) -> FixedChance:
        exact = self._function(z)
        self[z] = max(0, math.floor(exact.low * UNIT)), min(UNIT, math.ceil(exact.high * UNIT))
        return self[z]


class WholeNoise(Hashable, Protocol):
    """Noise on whole numbers, as a value. Members: ``OneSidedNoise``, ``TwoSidedNoise``."""

    def chance_at(self, z: int) -> Interval:
        """P(Z = z)."""
        ...

    def chance_below(self, z: int) -> Interval:
        """P(Z < z)."""
        ...

    def chance_beyond(self, z: int) -> Interval:
        """P(|Z| ≥ z)."""
        ...


@dataclass(frozen=True)
class OneSidedNoise:
    """P(z) = (1 − q)·q^z on 0, 1, 2, ..., with q = exp(−1/scale)."""

    scale: Fraction

    @cached_property
    def _stop(self) -> Interval:
        return _ONE - Interval.exp_minus(1 / self.scale)

    def chance_at(self, z: int) -> Interval:
        return self._stop * self.chance_beyond(z) if z >= 0 else _ZERO

    def chance_below(self, z: int) -> Interval:
        return _ONE - self.chance_beyond(z)

    def chance_beyond(self, z: int) -> Interval:
        return _power(self.scale, max(z, 0))


@dataclass(frozen=True)
class TwoSidedNoise:
    """P(z) ∝ exp(−|z|/scale) on all whole numbers."""

    scale: Fraction

    @cached_property
    def _law(self) -> DiscreteLaplaceLaw:
        return DiscreteLaplaceLaw(self.scale)

    @cached_property
    def _half(self) -> Interval:
        """P(Z ≥ 0) = 1/(1 + q)."""
        return _ONE / (_ONE + Interval.exp_minus(1 / self.scale))

    def chance_at(self, z: int) -> Interval:
        return self._law.peak * _power(self.scale, abs(z))

    def chance_below(self, z: int) -> Interval:
        return self.chance_from(1 - z) if z <= 0 else _ONE - self.chance_from(z)

    def chance_from(self, z: int) -> Interval:
        """P(Z ≥ z), for z ≥ 0."""
        return self._half * _power(self.scale, z)

    def chance_beyond(self, z: int) -> Interval:
        return Interval.of(2) * self.chance_from(z) if z > 0 else _ONE


@lru_cache(maxsize=1 << 14)
def _power(scale: Fraction, z: int) -> Interval:
    return exp_minus(z / scale)


@lru_cache(maxsize=64)
def reach(noise: WholeNoise) -> int:
    """A whole number that |noise| reaches with a negligible probability only."""
    return find_smallest(lambda z: noise.chance_beyond(z).high <= _NEGLIGIBLE, 1)


@lru_cache(maxsize=64)
def chances(noise: WholeNoise) -> ChanceTable:
    """P(Z = z) for every z."""
    return ChanceTable(noise.chance_at)


@lru_cache(maxsize=64)
def chances_under(noise: WholeNoise) -> ChanceTable:
    """P(Z < z) for every z."""
    return ChanceTable(noise.chance_below)


def win_probability(noise: WholeNoise, own: int, others: list[int]) -> Interval:
    """The probability that ``own`` plus noise is the largest, ties shared evenly.

    It is the sum over its noisy value v of P(own + Z = v)·E[1/(1 + ties at v); no other above v].
    """
    far, at, under = reach(noise), chances(noise), chances_under(noise)
    low = high = 0
    for z in range(-far, far):
        here = at[z]
        if here[1]:
            rivals = [(at[own + z - other], under[own + z - other]) for other in others]
            part = multiply(here, _unbeaten_chance(rivals))
            low, high = low + part[0], high + part[1]
    return Interval(Fraction(low, UNIT), Fraction(high, UNIT) + noise.chance_beyond(far).high)


def _unbeaten_chance(rivals: list[tuple[FixedChance, FixedChance]]) -> FixedChance:
    """E[1/(1 + ties); none above], from each rival's chances to be equal and to be less."""
    ties = [(UNIT, UNIT)]  # ties[t]: probability that nobody is above and t are equal, among those seen so far
    for equal, less in rivals:
        more = [multiply(tie, equal) for tie in ties]
        same = [multiply(tie, less) for tie in ties]
        pairs = zip([(0, 0), *more], [*same, (0, 0)])
        ties = [(a[0] + b[0], a[1] + b[1]) for a, b in pairs]
    low = sum(tie[0] // (t + 1) for t, tie in enumerate(ties))
    return low, sum(ceil_div(tie[1], t + 1) for t, tie in enumerate(ties))
