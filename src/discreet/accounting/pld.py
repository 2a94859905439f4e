"""Privacy-loss distributions: the tightest known account of a plan whose parameters are fixed in advance.

The loss of one release is a random variable, ln(P/Q) of a dominating pair; the losses of many releases add up. Their
sum is computed numerically, with certified bounds from above and from below. Questions may depend on earlier answers;
the *parameters* may not, so there is no filter on this notion (Tran, Koskela, Räisä & Honkela 2026).

>>> from discreet.accounting import events
>>> plan = LossDistribution((events.RandomizedResponse(epsilon=1, count=10),))
>>> round(plan.epsilon(1e-6), 5)
9.99998
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import fields, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar, TypeAlias

import numpy as np

from discreet.accounting import events as ev
from discreet.accounting.convolve import MAX_LENGTH, LossSum, compute_tilted_sum
from discreet.accounting.discretise import Masses, connect, span
from discreet.accounting.pairs import ROUNDING, Atoms, Direction, DominatingPair
from discreet.accounting.profiles import gaussian_pair, group_event, pair_of
from discreet.late_dataclass import dataclass

CountedPairs: TypeAlias = tuple[tuple[DominatingPair, int], ...]

# The variance that the grid may add, relative to that of the sum; it raises ε by about half of it.
_ADDED = 2e-6
_ADDED_MANY = 1e-4  # for more than _MANY different parts, where each transform costs time
_MANY = 64
_ADDED_FINE = 1e-7  # for lower bounds, which lose the square root of it
_POINTS = 8192  # grid points to a standard deviation, for sums of few parts
# The shares of δ that the answer may lose to ignored tails, and to uncertainty in lower bounds.
_IGNORED = 1e-9
_DOUBTED = 1e-4
# With more releases than this, the rounding errors of single losses would add up to more than the answer.
_MAX_RELEASES = 1 << 36


@dataclass(frozen=True, eq=False)
class LossDistribution:
    """The privacy-loss distribution of all these events together; computed only when it is needed, and then stored.

    Two are equal when they have the same events equally often, in any order and grouping.

    Privacy: ε(δ) and δ(ε) hold for the sequence of all events, each run on neighbours as it states, with parameters
    fixed in advance and queries that may depend on earlier answers. Reason: products of dominating pairs dominate (Zhu,
    Dong & Wang 2022, Thm 10); moving losses to a grid, leaving out tails and computing in floats only ever add to δ
    (see ``discretise`` and ``convolve``).
    """

    kind: ClassVar[str] = "pld"

    events: tuple[ev.Event, ...]

    @cached_property
    def counts(self) -> frozenset[tuple[ev.Event, int]]:
        """How often each different event happens."""
        totals: Counter[ev.Event] = Counter()
        for event in self.events:
            totals[event if event.count == 1 else replace(event, count=1)] += event.count
        return frozenset(totals.items())

    def __eq__(self, other: object) -> bool:
        return self.counts == other.counts if isinstance(other, LossDistribution) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.counts)

    def epsilon(self, delta: float) -> float:
        return _epsilon(self, float(delta))

    def delta(self, epsilon: float) -> float:
        return _delta(self, float(epsilon))

    def bounds(self, delta: float) -> tuple[float, float]:
        """Certified (lower, upper) bounds on the smallest ε at this δ, for the dominating pairs of the events."""
        return _least_epsilon(self, float(delta)), _epsilon(self, float(delta))

    def compose(self, other: LossDistribution) -> LossDistribution:
        return LossDistribution(self.events + other.events)

    def repeat(self, count: int) -> LossDistribution:
        return LossDistribution(tuple(event.times(count) for event in self.events))

    def for_group(self, size: int) -> LossDistribution | None:
        """The distribution at ``size`` times the sensitivity; None where an event has no such rule."""
        grouped = [group_event(event, size) for event in self.events]
        known = tuple(event for event in grouped if event is not None)
        return LossDistribution(known) if len(known) == len(grouped) else None

    def words(self) -> str:
        releases = sum(event.count for event in self.events)
        return f"distribution of {releases:,} release{'s' if releases != 1 else ''}, parameters fixed up front"


def _sort_key(pair: tuple[ev.Event, int]) -> tuple[object, ...]:
    """The sort key of an event: its parameters, so that the order of the input does not matter."""
    event, count = pair
    own = [getattr(event, name) for name in _PARAMETERS[type(event)]]
    return type(event).__name__, *(str(_sort_key((x, 1))) if isinstance(x, ev.Event) else float(x) for x in own), count


_PARAMETERS = {
    kind: [f.name for f in fields(kind) if f.name not in {"count", "neighbours", "unit"}] for kind in ev.KINDS.values()
}


@lru_cache(maxsize=256)
def _count_pairs(plan: LossDistribution) -> CountedPairs:
    """The dominating pairs and their counts; Gaussians add up to one of larger distance, exactly."""
    squared_mu, terms = Fraction(0), []
    for event, count in sorted(plan.counts, key=_sort_key):
        if isinstance(event, ev.Gaussian | ev.RoundedGaussian):
            squared_mu += count * ev.squared_mu(event)
        else:
            terms.append((pair_of(event), count))
    if squared_mu:
        terms.append((gaussian_pair(squared_mu), 1))
    return tuple(terms)


def _directions(terms: CountedPairs) -> tuple[Direction, ...]:
    return ("remove",) if all(law.symmetric for law, _ in terms) else ("remove", "add")


def _top(terms: CountedPairs, direction: Direction) -> float:
    """The largest possible total loss, rounded up; infinite when there is no bound."""
    total = math.fsum(law.top(direction) * count for law, count in terms)
    return total * (1 + 8 * ROUNDING) if all(_infinite_mass(law) == 0 for law, _ in terms) else math.inf


def _infinite_mass(law: DominatingPair) -> float:
    return law.only_p + law.only_q if isinstance(law, Atoms) else 0.0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class GridSum:
    """The parts of a sum of losses that do not depend on the ε or δ in question."""

    total: LossSum
    infinite: float
    certain: float
    slack: float
    splits: int
    drift: float


@lru_cache(maxsize=16)
def _prepare_sum(plan: LossDistribution, direction: Direction, decades: int, *, fine: bool) -> GridSum:
    """The masses of all parts on one grid, with tails ignored below 10^-decades; lower ones when ``fine``."""
    terms = _count_pairs(plan)
    ignored = 10.0**-decades / sum(count for _, count in terms)
    spans = [span(law, direction, ignored) for law, _ in terms]
    deviation = math.sqrt(sum(count * _variance(law, direction) for law, count in terms))
    step = _choose_step(terms, deviation, max(high - low for low, high in spans), fine=fine)
    parts = [connect(law, direction, step=step, low=low, high=high) for (law, _), (low, high) in zip(terms, spans)]
    counts = [count for _, count in terms]
    tilts = (min(0.25 / deviation, 0.05), max(40 / deviation, 1.0))
    masses = [(part.first, part.lower if fine else part.upper, count) for part, count in zip(parts, counts)]
    return GridSum(
        total=LossSum(step=step, parts=tuple(masses), tilts=tilts),
        infinite=_chance_of_any([part.infinite for part in parts], counts) * (1 + 64 * ROUNDING),
        certain=_chance_of_any([part.certain for part in parts], counts) * (1 - 64 * ROUNDING),
        slack=_sum(parts, counts, lambda part: part.slack),
        splits=int(_sum(parts, counts, lambda part: part.spread > 0)),
        drift=_sum(parts, counts, lambda part: part.drift),
    )


def _sum(parts: list[Masses], counts: list[int], value: Callable[[Masses], float]) -> float:
    return math.fsum(value(part) * count for part, count in zip(parts, counts))


def _chance_of_any(chances: list[float], counts: list[int]) -> float:
    """The probability that something happens at least once."""
    return -math.expm1(math.fsum(math.log1p(-min(p, 1 - ROUNDING)) * n for p, n in zip(chances, counts)))


def _variance(law: DominatingPair, direction: Direction) -> float:
    """About the variance of one loss. It chooses the grid; no bound depends on it."""
    if isinstance(law, Atoms):
        law = law.turn_to(direction)
        mean = float(law.p @ law.losses)
        return max(float(law.p @ (law.losses - mean) ** 2), 1e-4 * float(np.max(np.abs(law.losses))) ** 2, 1e-20)
    distance = min(float(law.profile_in(direction)(np.zeros(1))[0][0]), 1 - 1e-15)
    rough = -4 * distance * math.log1p(-distance) + 1e-20
    if law.symmetric:
        return rough
    # Sampled laws have long thin tails, which do not show in the distance.
    low, high = span(law, direction, 1e-12)
    coarse = connect(law, direction, step=max(math.sqrt(rough) / 2, (high - low) / 50_000), low=low, high=high)
    mean = float(coarse.upper @ coarse.losses)
    return float(coarse.upper @ (coarse.losses - mean) ** 2)


def _choose_step(terms: CountedPairs, deviation: float, widest: float, *, fine: bool) -> float:
    """The distance of grid points: small enough for the answer, large enough for the memory."""
    size = sum(count for _, count in terms)
    added = _ADDED_FINE if fine else _ADDED_MANY if len(terms) > _MANY else _ADDED
    step = deviation * math.sqrt(6 * added / size)
    if len(terms) <= _MANY:
        step = min(step, deviation / _POINTS)
    room = MAX_LENGTH // 4
    coarsest = max(4 * widest / room, 32 * deviation / room)
    step = max(step, coarsest)
    common = _common_step([law.lattice for law, _ in terms if law.lattice is not None])
    exact = all(isinstance(law, Atoms) and law.lattice is not None for law, _ in terms)
    if exact and common * MAX_LENGTH > 24 * max(deviation, widest / 6):
        return common  # every loss is a multiple of it: nothing is split, and the answer is exact
    if common >= step:
        return common / math.ceil(common / step)
    fraction, exponent = math.frexp(step)
    return math.ldexp(math.ceil(fraction * (1 << 20)) / (1 << 20), exponent)  # so that its multiples are exact


def _common_step(lattices: list[Fraction]) -> float:
    """The largest step that all these lattices are multiples of; zero where there are none."""
    common = Fraction(0)
    if len(lattices) > _MANY:
        return 0.0
    for lattice in lattices:
        scaled = math.gcd(common.numerator * lattice.denominator, lattice.numerator * common.denominator)
        common = Fraction(scaled, common.denominator * lattice.denominator)
    return float(common)


def _decades(delta: float) -> int:
    """The decades below which tails are ignored, in coarse classes, so that several answers share one grid."""
    needed = -math.log10(max(delta, 1e-280) * _IGNORED)
    return next((limit for limit in (20, 40, 80, 160) if needed <= limit), 290)


def _find_only_pair(terms: CountedPairs) -> DominatingPair | None:
    """The only pair, where there is just one, because its profile needs no convolution."""
    return terms[0][0] if len(terms) == 1 and terms[0][1] == 1 else None


def _has_too_many(terms: CountedPairs) -> bool:
    """Whether there are so many releases that rounding errors would be larger than the answer."""
    return sum(count for _, count in terms) > _MAX_RELEASES


def _delta_towards(plan: LossDistribution, epsilon: float, direction: Direction, decades: int) -> float:
    law = _find_only_pair(_count_pairs(plan))
    if law is not None:
        value, error = law.delta(np.array([epsilon]), direction)
        return min(1.0, float(value[0] + error[0]))
    grid = _prepare_sum(plan, direction, decades, fine=False)
    at = epsilon - grid.slack
    # Neighbouring ε share a tilt, so that a curve of many ε needs few convolutions.
    found = compute_tilted_sum(grid.total, 4 * round(grid.total.tilt_for_epsilon(at) / 4))
    return 1.0 if found is None else min(1.0, grid.infinite + found.upper(at))


@lru_cache(maxsize=4096)
def _delta(plan: LossDistribution, epsilon: float) -> float:
    if not plan.events:
        return 0.0
    at = math.nextafter(epsilon, -math.inf)  # a float stands for the decimal it prints as
    return max(_refine_delta(plan, at, direction) for direction in _directions(_count_pairs(plan)))


def _refine_delta(plan: LossDistribution, epsilon: float, direction: Direction) -> float:
    if epsilon >= _top(_count_pairs(plan), direction):
        return 0.0
    if _has_too_many(_count_pairs(plan)):
        return 1.0
    decades = 20
    while True:
        delta = _delta_towards(plan, epsilon, direction, decades)
        needed = _decades(delta)
        if needed <= decades:
            return delta
        decades = needed


@lru_cache(maxsize=1024)
def _epsilon(plan: LossDistribution, delta: float) -> float:
    if not plan.events:
        return 0.0
    at = math.nextafter(delta, 0.0) if delta > 0 else 0.0
    return max(_epsilon_towards(plan, at, direction) for direction in _directions(_count_pairs(plan)))


def _epsilon_towards(plan: LossDistribution, delta: float, direction: Direction) -> float:
    terms = _count_pairs(plan)
    top = _top(terms, direction)
    if delta <= 0 or _has_too_many(terms):
        return top
    law = _find_only_pair(terms)
    if law is not None:
        return min(top, _solve(lambda x: _delta_towards(plan, x, direction, 20), delta, 0.0, 1.0))
    grid = _prepare_sum(plan, direction, _decades(delta), fine=False)
    rest = delta - grid.infinite
    if rest <= 0:
        return top
    found = compute_tilted_sum(grid.total, grid.total.tilt_for_delta(rest))
    if found is None:
        return top
    return min(top, max(0.0, grid.slack + _solve(found.upper, rest, found.start, found.end)))


def _solve(function: Callable[[float], float], target: float, low: float, high: float) -> float:
    """A point near the smallest one where a falling function is at or below its target; infinite when not found."""
    at_low = function(low)
    if at_low <= target:
        return low
    at_high = function(high)
    while at_high > target:
        if high > 1e6:
            return math.inf
        high *= 2
        at_high = function(high)
    for step in range(200):
        if high - low <= 1e-10 * abs(high):
            break
        middle = (low + high) / 2
        if step % 3 and at_high > 0:  # logarithms of δ are nearly straight
            share = math.log(at_low / target) / math.log(at_low / at_high)
            middle = low + (high - low) * min(max(share, 1e-3), 1 - 1e-3)
        at_middle = function(middle)
        if at_middle <= target:
            high, at_high = middle, at_middle
        else:
            low, at_low = middle, at_middle
    return high


@lru_cache(maxsize=1024)
def _least_epsilon(plan: LossDistribution, delta: float) -> float:
    if not plan.events:
        return 0.0
    at = math.nextafter(delta, 1.0)
    return max(_least_epsilon_towards(plan, at, direction) for direction in _directions(_count_pairs(plan)))


def _least_epsilon_towards(plan: LossDistribution, delta: float, direction: Direction) -> float:
    """An ε at which δ is certainly larger than this δ, so that the true ε is above it."""
    law = _find_only_pair(_count_pairs(plan))
    if law is not None:
        return _find_last(
            lambda x: float(np.subtract(*law.delta(np.array([x]), direction))[0]), delta, _epsilon(plan, delta)
        )
    if delta <= 1e-280 or _has_too_many(_count_pairs(plan)):
        return 0.0
    grid = _prepare_sum(plan, direction, _decades(delta), fine=True)
    # The splits moved the sum up by at most ``moved``, except with probability ``doubt`` (Hoeffding 1963, Thm 2).
    doubt = _DOUBTED * delta
    moved = grid.drift + grid.total.step * math.sqrt(grid.splits * -math.log(doubt) / 2) if grid.splits else 0.0
    moved = (moved + grid.slack) * (1 + 8 * ROUNDING)
    found = compute_tilted_sum(grid.total, grid.total.tilt_for_delta(delta))
    if found is None:
        return 0.0
    floor = found.lower
    return _find_last(
        lambda x: grid.certain + floor(x + moved) - doubt * bool(grid.splits), delta, _epsilon(plan, delta)
    )


def _find_last(function: Callable[[float], float], target: float, high: float) -> float:
    """A point below ``high``, near the largest one where a falling function is above its target; zero if none is."""
    if not math.isfinite(high):
        return 0.0
    steps = (high * (1 - 4.0**-k) for k in range(20, 0, -1))
    low = next((x for x in steps if function(x) > target), 0.0)
    for _ in range(60 if low else 0):
        if high - low <= 1e-9 * high:
            break
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) > target else (low, middle)
    return low
