"""A rule for keys where a unit may be in many: every unit spreads one weight over its keys."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from discreet import parameters
from discreet.accounting.events import Approximate, Event, RoundedGaussian
from discreet.entropy import SYSTEM, EntropySource
from discreet.exact import Integers, Interval, ceil_div, sqrt_lower
from discreet.late_dataclass import dataclass
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.keys import KeyT, read_counts, read_units
from discreet.mechanisms.laws import RoundedGaussianLaw, find_smallest
from discreet.mechanisms.mechanism import EventMechanism, settle
from discreet.mechanisms.threshold import GaussianThreshold, KeySelection, certified_share, upper_tail
from discreet.parameters import Number
from discreet.privacy import Neighbours, Unit
from discreet.samplers import rounded_gaussian

_ONE = Interval.of(1)
_MOST_GROUPS, _MOST_WHOLE = 1 << 20, 1 << 40
# The smallest δ of one key for which tails are computed.
_LEAST = Fraction(1, 1 << 150)
# The threshold may be above the least valid one by a unit's whole weight over this number.
_FINE = 1 << 12


@dataclass(frozen=True, kw_only=True, repr=False)
class WeightedSelection(EventMechanism):
    """Name the keys whose noisy weight reaches a threshold: a unit in g keys adds ⌊√(whole²/g)⌋ to each of them.

    For units in many keys: the noise does not grow with ``max_groups``, only the weight of a unit in a key falls, and
    a unit in few keys still counts fully there. ``whole`` is the weight of a unit in one key; it is large so that
    rounding down costs nothing.

    Privacy: μ-Gaussian private besides an event of probability δ, with μ² = 2ρ and variance σ² = whole²/(2ρ) between
    add-remove neighbours, and σ² = whole²/ρ under replace; hence δ-approximately ρ-zCDP. The threshold τ is so high
    that for every g from 1 to C = ``max_groups``, g keys with the weight w(g) = ⌊√(whole²/g)⌋ each all stay below it
    except with probability δ: 1 − (1 − P(w(g) + Z ≥ τ))^g ≤ δ, for the rounded normal Z and "at least τ", rounded up.
    Why: neighbours differ in one unit's keys, g ≤ C of them. (1) Keys that both datasets have: their weights differ by
    w(g) in at most g places, which is at most g·w(g)² ≤ whole² in squares, so noisy weights, and with them the names,
    cost μ (``RoundedGaussian``). Under replace the weights of the old unit go and those of the new come; none
    is negative, so the squares add up to at most 2·whole². (2) Keys that only one dataset has: they are that unit's
    alone, so there are t ≤ g of them, each with the weight w(g) exactly; one of them is named with probability at most
    δ. Leave that event out on either side, and what remains are the names among the common keys, because noises are
    independent. So the release is a function of those and of a coin that fails with probability δ (``NoisyThreshold``
    says why that may be composed), and δ does not double under replace.
    Reference: Gopi, Gulhane, Kulkarni, Shen, Shokouhi and Yekhanin 2020 (weights and threshold); Dong, Roth & Su 2022.

    >>> rule = WeightedSelection(rho=0.125, delta=1e-9, max_groups=100)
    >>> rule.weight(1), rule.weight(100)
    (1048576, 104857)
    >>> rule.kept_from(0.05)  # units that are in 100 keys each
    169
    """

    rho: Number
    delta: Number
    max_groups: int = 1
    whole: int = 1 << 20

    def __post_init__(self) -> None:
        EventMechanism.__post_init__(self)
        settle(
            self,
            rho=parameters.read_positive(self.rho, "rho"),
            delta=parameters.read_probability(self.delta, "delta"),
            max_groups=parameters.read_whole(self.max_groups, "max_groups", most=_MOST_GROUPS),
            whole=parameters.read_whole(self.whole, "whole", most=_MOST_WHOLE),
        )
        if self.delta < self.max_groups * _LEAST:
            raise parameters.refuse("delta", "larger", self.delta, "Give at least 1e-40 for each group.")
        if not self.weight(self.max_groups):
            raise parameters.refuse("whole", "at least √max_groups", self.whole, "Leave it out: 2^20 is fine enough.")

    @property
    def _units(self) -> int:
        """How many units' weights change between neighbours."""
        return 1 if self.neighbours == Neighbours.ADD_REMOVE else 2

    def weight(self, groups: int) -> int:
        """The weight that a unit in so many keys adds to each of them."""
        return math.isqrt(self.whole**2 // groups)

    @cached_property
    def noise_variance(self) -> Fraction:
        """The variance parameter σ² of the noise, in squares of the weights' unit."""
        return self._units * self.whole**2 / (2 * parameters.read_positive(self.rho, "rho"))

    @cached_property
    def law(self) -> RoundedGaussianLaw:
        """The law of the noise."""
        return RoundedGaussianLaw(self.noise_variance)

    @cached_property
    def bar(self) -> int:
        """The threshold τ; above the least valid one by at most a 4096th of a unit's weight."""
        allowed = parameters.read_probability(self.delta, "delta")
        return _find_threshold(self.noise_variance, allowed, self.max_groups, self.whole)

    @property
    def events(self) -> tuple[Event, ...]:
        """The noise on the weights, and the failure that names a key which only one neighbour has."""
        noise = RoundedGaussian(
            squared_sensitivity=self._units * self.whole**2,
            variance=self.noise_variance,
            neighbours=self.neighbours,
            unit=self.unit,
        )
        return noise, Approximate(epsilon=0, delta=self.delta, neighbours=self.neighbours, unit=self.unit)

    def release(self, weights: Mapping[KeyT, int], *, source: EntropySource = SYSTEM) -> tuple[KeyT, ...]:
        """The keys that are named, sorted; ``weights`` has the weight of each. Keys without weight are never named."""
        keys, own = read_counts(weights)
        return tuple(keys[i] for i in np.flatnonzero(self.release_array(own, source=source)).tolist())

    def release_array(self, weights: Integers, *, source: EntropySource = SYSTEM) -> npt.NDArray[np.bool_]:
        """For many keys at once: which are named, in the caller's order, which must not depend on the data."""
        own, bar = read_units(weights), self.bar
        noise = rounded_gaussian(self.noise_variance, len(own), source=source)
        noisy = np.asarray(Grid().add(own, noise))
        return np.asarray((own > 0) & (noisy >= bar), dtype=np.bool_)

    def probability(self, output: bool, given: int) -> Interval:  # noqa: FBT001  # the output is a bool
        """The probability that a key of weight ``given`` is named (True) or not (False)."""
        if not isinstance(output, bool):
            raise parameters.refuse("output", "True or False", output, "Ask for named (True) or not (False).")
        weight = parameters.read_whole(given, "given", least=0, most=1 << 60)
        named = upper_tail(self.law, self.bar - weight) if weight else Interval.of(0)
        return named if output else _ONE - named

    def kept_from(self, beta: Number, of: int = 1) -> int:
        """The number of units, each in ``max_groups`` keys, from which on keys are named, except with probability beta.

        For ``of`` keys together. Units that are in fewer keys weigh more, and fewer of them are enough.
        """
        share = parameters.read_probability(beta, "beta") / parameters.read_whole(of, "of")
        missing = _find_tail(self.noise_variance, share)
        return ceil_div(self.bar - 1 + missing, self.weight(self.max_groups))

    def error(self, beta: Number, of: int = 1) -> float:
        """The number of units below which one of ``of`` keys may be missing, except with probability beta."""
        return float(self.kept_from(beta, of))


@lru_cache(maxsize=256)
def _find_threshold(variance: Fraction, delta: Fraction, most: int, whole: int) -> int:
    """The largest over g ≤ most of w(g) + z(g), where P(any of g noises ≥ z(g)) ≤ δ; or slightly more.

    w falls and z rises, so for g between a and b the sum is at most w(a) + z(b). Ranges that cannot contain the largest
    sum are left out; for a range that is narrow enough that bound is used.
    """
    tails: dict[int, int] = {}

    def weight(g: int) -> int:
        return math.isqrt(whole**2 // g)

    def tail(g: int) -> int:
        if g not in tails:
            tails[g] = _find_tail(variance, certified_share(delta, g))
        return tails[g]

    best = max(weight(1) + tail(1), weight(most) + tail(most))
    ranges = [(1, most)]
    while ranges:
        a, b = ranges.pop()
        bound = weight(a) + tail(b)
        if bound <= best or b - a < 2:
            continue
        if bound <= best + whole // _FINE:
            best = bound
            continue
        middle = math.isqrt(a * b)
        middle = min(max(middle, a + 1), b - 1)
        best = max(best, weight(middle) + tail(middle))
        ranges += [(a, middle), (middle, b)]
    return best


def _find_tail(variance: Fraction, chance: Fraction) -> int:
    """The smallest z ≥ 0 with P(Z ≥ z) ≤ chance, certified."""
    law = RoundedGaussianLaw(variance)
    near = math.floor(math.sqrt(float(variance)) * _normal_tail(float(chance)))
    return find_smallest(lambda z: upper_tail(law, z).high <= chance, near)


def _normal_tail(chance: float) -> float:
    """About where a normal variable has this tail, by Newton's steps on its logarithm. A search starts there."""
    if chance >= 0.5:
        return 0.0
    x, log = math.sqrt(-2 * math.log(chance)), math.log(chance)
    for _ in range(60):
        tail = math.erfc(x / math.sqrt(2)) / 2
        slope = -math.exp(-x * x / 2) / math.sqrt(2 * math.pi) / tail
        step = (math.log(tail) - log) / slope
        x -= step
        if abs(step) < 1e-14:
            break
    return x


def better_selection(
    *,
    rho: Number,
    delta: Number,
    max_groups: int,
    min_units: int = 1,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    unit: Unit | str | None = None,
    beta: Number = Fraction(1, 20),
) -> KeySelection | WeightedSelection | GaussianThreshold:
    """The rule that costs ρ and δ and names keys from fewer units on, with probability 1 − beta.

    The choice depends on public parameters only. Units are taken to be in ``max_groups`` keys each, the worst case for
    weights. In a tie it is ``KeySelection``. ``min_units`` above 1 needs the units of each key, so then it is that or
    ``GaussianThreshold`` (whose noisy counts are not used). An (ε, δ)-private rule is δ-approximately
    ε²/2-zCDP, so ρ buys ε = √(2ρ) for ``KeySelection``: much less than Gaussian noise gets out of ρ, unless δ is large.

    >>> [type(better_selection(rho=0.1, delta=d, max_groups=2)).__name__ for d in (0.1, 1e-8)]
    ['KeySelection', 'WeightedSelection']
    """
    epsilon = sqrt_lower(2 * parameters.read_positive(rho, "rho"), bits=64)
    other: WeightedSelection | GaussianThreshold
    if min_units == 1:
        other = WeightedSelection(rho=rho, delta=delta, max_groups=max_groups, neighbours=neighbours, unit=unit)
    else:
        other = GaussianThreshold(
            rho=rho, delta=delta, max_groups=max_groups, min_units=min_units, neighbours=neighbours, unit=unit
        )
    moves = max_groups * (1 if other.neighbours == Neighbours.ADD_REMOVE else 2)
    counted = _units_needed(float(epsilon) / moves, float(parameters.read_delta(delta)) / moves, float(beta))
    if other.kept_from(beta) < counted + min_units - 1:
        return other
    return KeySelection(
        epsilon=epsilon, delta=delta, max_groups=max_groups, min_units=min_units, neighbours=neighbours, unit=unit
    )


def _units_needed(epsilon: float, delta: float, beta: float) -> float:
    """About how many units ``KeySelection`` needs: its closed form (Desfontaines et al. 2022, Theorem 1) in floats."""
    grows = math.expm1(epsilon)
    rest = delta / grows
    rises = math.log((grows + 2 * delta) / (delta * (grows + 2))) / epsilon  # until about one half
    half = min(1.0, math.expm1(rises * epsilon) * rest)
    return math.ceil(rises + max(0.0, math.log((1 + rest - half) / (beta + rest))) / epsilon)
