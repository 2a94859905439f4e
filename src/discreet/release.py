"""Releases: what is drawn for a question, and what that costs.

A ``Release`` is one grouping of a question with its noise, its choices and its rule for keys, all of them settled. A
``Plan`` is what one question, or one batch of questions, releases under one price. ``draw`` is the only function that
turns private numbers into public ones.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

import numpy as np

from discreet.accounting import events
from discreet.accounting.account import compose
from discreet.bounding.bound import BoundedQuestion
from discreet.bounding.joint_measures import Recovery, Terms, combine_recoveries
from discreet.bounding.recipes import AggregateRecipe
from discreet.engines.engine import EMPTY, GroupHistogram, Groups
from discreet.entropy import SYSTEM, EntropySource
from discreet.errors import InternalError
from discreet.exact import Floats, Integers, float_down
from discreet.late_dataclass import dataclass
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.named_count import NamedCount
from discreet.mechanisms.noise_sums import bound_sum, deviation_of_sum
from discreet.mechanisms.quantiles.cells import CellMode, CellQuantiles
from discreet.mechanisms.quantiles.ends import CellEnds
from discreet.mechanisms.rounded_gaussian import RoundedGaussian
from discreet.mechanisms.threshold import GaussianThreshold, KeySelection, LaplaceThreshold
from discreet.mechanisms.weighted_selection import WeightedSelection
from discreet.plan.nodes import Question
from discreet.plan.statistics.table import STATISTICS
from discreet.plan.types import INTEGER_MAX, INTEGER_MIN, Value
from discreet.privacy import Loss, Neighbours, Unit

Noise: TypeAlias = Laplace | RoundedGaussian
CellChoice: TypeAlias = CellQuantiles | CellMode
KeyRule: TypeAlias = KeySelection | WeightedSelection | LaplaceThreshold | GaussianThreshold


@dataclass(frozen=True, slots=True)
class NoisyPart:
    """A combination of measures that noise is added to, by its place among the noises. Equal places are one charge."""

    noise: int
    terms: Terms


@dataclass(frozen=True, kw_only=True)
class Release:
    """A priced question: the noise of its measures, the choice from each spread, the rule for keys, and their events.

    Noise is added to ``parts``, which are combinations of measures; ``recoveries`` is the way back. ``ends`` are the
    intervals of quantiles, by the same places as their choices, where they were asked for.

    Privacy: the released values are a post-processing of the noisy measures and the selected keys, so their loss is
    the composition of ``events``. Why: all parts with one noise differ between neighbours by at most the
    ``joint_sensitivity`` (see ``joint_measures``) for which it is calibrated; a unit reaches into spreads no further
    than the choices allow for; the counts of units by which keys are chosen change by one in at most ``max_groups``
    keys, and their weights by one whole weight in squares. Where the noisy count at
    ``counted`` names the keys as well, the rule for keys draws it, so its events stand for both; its noise is among
    ``noises`` for its law alone.
    """

    bounded: BoundedQuestion
    noises: Mapping[int, Noise]
    parts: tuple[NoisyPart, ...]
    recoveries: Mapping[int, Recovery]
    choices: Mapping[int, CellChoice]
    selection: KeyRule | None
    level: Fraction
    unit: Unit
    neighbours: Neighbours
    counted: int | None = None
    ends: Mapping[int, CellEnds] = field(default_factory=dict)

    @cached_property
    def events(self) -> tuple[events.Event, ...]:
        """What will have happened once this is drawn: nothing is lost where everything is public."""
        drawn = (
            *self.drawn_noises.values(),
            *self.choices.values(),
            *self.ends.values(),
            *(() if self.selection is None else (self.selection,)),
        )
        found = tuple(event for mechanism in drawn for event in mechanism.events)
        return found or (events.Pure(epsilon=0, unit=self.unit, neighbours=self.neighbours),)

    @property
    def drawn_noises(self) -> dict[int, Noise]:
        """The noises that are drawn by themselves: all but that of a count that names keys."""
        named = None if self.named_place is None else self.parts[self.named_place].noise
        return {at: noise for at, noise in self.noises.items() if at != named}

    @property
    def loss(self) -> Loss:
        """What it costs."""
        return compose(self.events).loss

    @cached_property
    def named_count(self) -> NamedCount | None:
        """What is known of a count that named its key, where one does."""
        if self.counted is None or not isinstance(self.selection, LaplaceThreshold | GaussianThreshold):
            return None
        return NamedCount(self.selection.law, self.selection.bar, self.selection.min_units)

    @property
    def named_place(self) -> int | None:
        """Which part is the count that names keys; it is measured by itself."""
        return None if self.counted is None else self.recoveries[self.counted].terms[0][0]

    def units(self, position: int) -> int:
        """So many units of a measure's noisy integers are one of its steps."""
        return self.recoveries[position].units

    def to_steps(self, position: int, integers: Integers | Floats) -> Integers | Floats:
        """Noisy integers of a measure as steps: whole numbers where they are, and otherwise doubles."""
        units = self.units(position)
        return integers if units == 1 else np.asarray(integers, dtype=np.float64) / units

    def combine(self, exact: Mapping[int, Integers]) -> dict[int, Integers]:
        """What noise is added to: the combinations of exact measures, by their places among the parts."""
        return {place: _sum_terms(part.terms, exact) for place, part in enumerate(self.parts)}

    def recover(self, noisy: Mapping[int, Integers]) -> dict[int, Integers]:
        """The measures, in their units, from the parts that were drawn."""
        return {at: _sum_terms(recovery.terms, noisy) for at, recovery in self.recoveries.items() if recovery.terms}

    @property
    def public(self) -> dict[int, Integers]:
        """The measures that are public: their one group has the declared value."""
        return {position: np.array([value], dtype=object) for position, value in self.bounded.public.items()}

    def draw_noise(
        self, count: int, source: EntropySource, wanted: Collection[int] | None = None
    ) -> dict[int, Integers]:
        """Fresh noise of the measures, or of those wanted, in their units, as it is drawn for them together."""
        recoveries = {at: each for at, each in self.recoveries.items() if wanted is None or at in wanted}
        used = sorted({place for recovery in recoveries.values() for place, _ in recovery.terms})
        zeros = np.zeros(count, dtype=np.int64)
        noises = {place: self.noises[self.parts[place].noise] for place in used}
        parts = {place: np.asarray(noise.release(zeros, source=source)) for place, noise in noises.items()}
        drawn = {at: _sum_terms(recovery.terms, parts) for at, recovery in recoveries.items() if recovery.terms}
        return drawn | dict.fromkeys(self.public, zeros)

    def bound(self, factors: Mapping[int, Fraction], beta: Fraction | None = None) -> Fraction:
        """How far Σ factor·measure is off at most, in steps, with probability 1 − β: at the level, if not stated."""
        terms, divisor = self._find_noises(factors)
        return Fraction(bound_sum(terms, 1 - self.level if beta is None else beta), divisor)

    def deviation(self, factors: Mapping[int, Fraction]) -> float:
        """The standard deviation of the noise of Σ factor·measure, in steps."""
        terms, divisor = self._find_noises(factors)
        return deviation_of_sum(terms) / divisor

    def _find_noises(self, factors: Mapping[int, Fraction]) -> tuple[list[tuple[int, Noise]], int]:
        """The noises in a combination of measures with whole factors, and what to divide it by."""
        found = combine_recoveries(self.recoveries, factors)
        divisor = math.lcm(*(factor.denominator for factor in found.values()))
        return [(int(factor * divisor), self.noises[self.parts[at].noise]) for at, factor in found.items()], divisor

    def rank_error(self, spread: int) -> int:
        """How far off what is chosen from a spread is at most, in rows, at the level."""
        parts = 1 << self.bounded.bounded.weight_bits  # a spread counts in parts of rows
        return math.ceil(self.choices[spread].error(1 - self.level) / parts)

    def error(self, estimate: AggregateRecipe) -> float | None:
        """The error of a count or a sum at the level, from public facts; None for what depends on unknown counts."""
        if not STATISTICS[estimate.statistic].has_direct_error:
            return None
        count, steps = estimate.count, estimate.steps
        if steps is None:
            if count is None:
                raise InternalError("A count or a sum without a measure.")
            return float(math.ceil(self.bound({count: Fraction(1)})))  # counts are rounded to whole numbers
        factors = {steps: estimate.resolution}
        return float(self.bound(factors if count is None else factors | {count: estimate.origin}))


def _sum_terms(terms: Terms, numbers: Mapping[int, Integers]) -> Integers:
    """A combination in integers of any size."""
    if len(terms) == 1 and terms[0][1] == 1:
        return numbers[terms[0][0]]
    taken = [(np.asarray(numbers[place]), int(factor)) for place, factor in terms]
    if all(array.dtype == np.int64 and array.size for array, _ in taken):
        most = sum(abs(factor) * max(abs(int(array.min())), abs(int(array.max()))) for array, factor in taken)
        if most < 2**62:  # so that no part of the sum leaves 64 bits
            near: Integers = np.sum([array * factor for array, factor in taken], axis=0)
            return near
    total: Integers = np.sum([array.astype(object) * factor for array, factor in taken], axis=0)
    return total


def format_level(level: Fraction) -> str:
    """A confidence for people, never rounded up to certainty.

    >>> format_level(Fraction(95, 100)), format_level(Fraction(10**30 - 1, 10**30))
    ('95%', '99.99999999999999%')
    """
    percent = float_down(100 * level)
    text = f"{percent:.15g}"
    return f"{percent:.16g}%" if text == "100" else f"{text}%"


@dataclass(frozen=True)
class Plan:
    """One question as it will be released: a release for each of its groupings.

    Privacy: the composition of all events. They are fixed before anything is drawn, so every notion may price them.
    """

    releases: tuple[Release, ...]

    @property
    def question(self) -> Question:
        """What was asked."""
        return self.releases[0].bounded.question

    @cached_property
    def events(self) -> tuple[events.Event, ...]:
        """What will have happened once this is drawn."""
        return tuple(event for release in self.releases for event in release.events)

    @cached_property
    def loss(self) -> Loss:
        """What it costs."""
        return compose(self.events).loss

    @property
    def level(self) -> Fraction:
        """The confidence of errors and intervals."""
        return self.releases[0].level

    @property
    def unit(self) -> Unit:
        """Who is protected."""
        return self.releases[0].unit

    @property
    def neighbours(self) -> Neighbours:
        """Which datasets must look alike."""
        return self.releases[0].neighbours

    def error(self, index: int) -> float | None:
        """The error of an aggregate at the level, in whichever grouping it is largest; None where it is not known."""
        errors = [release.error(release.bounded.estimates[index]) for release in self.releases]
        known = [error for error in errors if error is not None]
        return max(known) if len(known) == len(errors) else None


@dataclass(frozen=True, slots=True)
class NoisyGroups:
    """What was drawn: the keys that may be named, in an order of their own, and for each of them the noisy integers of
    every measure, the cells chosen from every spread, and the ends of their intervals (low, high, low, high, ...).
    """

    keys: tuple[tuple[Value, ...], ...]
    measures: Mapping[int, Integers]
    chosen: Mapping[int, tuple[tuple[int, ...], ...]] = field(default_factory=dict)
    ends: Mapping[int, tuple[tuple[int, ...], ...]] = field(default_factory=dict)


def draw(release: Release, groups: Groups, *, source: EntropySource = SYSTEM) -> NoisyGroups:
    """Choose the keys and add the noise. The only function that turns private numbers into public ones.

    Privacy: the loss of ``release.events``. Keys are the public domain in its own order, or the selected ones sorted,
    so that no order of rows shows; a public group without rows is a noisy zero. What is public is not read from groups.
    """
    bounded = release.bounded.bounded
    parts: dict[int, Integers] = {}
    if release.selection is None:
        keys = bounded.domain or ()
    else:
        named = release.selection.release(_weigh_keys(release, groups), source=source)
        keys = tuple(named)
        if release.named_place is not None:
            if not isinstance(named, dict):
                raise InternalError("A rule without counts cannot release one.")
            parts[release.named_place] = np.array(list(named.values()), dtype=np.int64)
    order = _find_order(groups.keys, keys)
    exact = {p: _order_measure(groups.values[p], order) for p in release.bounded.measured}
    noisy = release.recover(parts | _add_noise(release, release.combine(exact), source)) | release.public
    spreads = {p: _order_spread(groups.spreads[p], order) for p in release.choices}
    chosen = {p: tuple(choice.release_all(spreads[p], source=source)) for p, choice in release.choices.items()}
    ends = {p: tuple(rule.release_all(spreads[p], chosen[p], source=source)) for p, rule in release.ends.items()}
    return NoisyGroups(keys, noisy, chosen, ends)


def _add_noise(release: Release, sums: Mapping[int, Integers], source: EntropySource) -> dict[int, Integers]:
    """The parts with their noise. All parts of one charge are one vector, and drawn at once."""
    noisy: dict[int, Integers] = {}
    for at, noise in release.drawn_noises.items():
        places = [place for place, part in enumerate(release.parts) if part.noise == at]
        drawn = np.asarray(noise.release(np.concatenate([sums[place] for place in places]), source=source))
        noisy |= dict(zip(places, np.split(drawn, len(places))))
    return noisy


def _weigh_keys(release: Release, groups: Groups) -> dict[tuple[Value, ...], int]:
    """What the rule for keys goes by: the units of each group, or their weights (one whole weight in one group)."""
    rule, bounded = release.selection, release.bounded
    if bounded.selector is None:
        raise InternalError("Private keys without a measure to choose them by.")
    if not isinstance(rule, WeightedSelection):
        return dict(zip(groups.keys, groups.values[bounded.selector]))
    if bounded.weights is not None:
        return dict(zip(groups.keys, groups.values[bounded.weights]))
    if rule.max_groups != 1:
        raise InternalError("Units in several groups without their weights.")
    return {key: units * rule.weight(1) for key, units in zip(groups.keys, groups.values[bounded.selector])}


def _order_spread(spread: Sequence[GroupHistogram], order: list[int | None]) -> list[GroupHistogram]:
    """One spread in the order of the keys; a group without rows has an empty one to choose from."""
    return [EMPTY if i is None else spread[i] for i in order]


def _order_measure(values: tuple[int, ...], order: list[int | None]) -> Integers:
    """One measure in the order of the keys, zero where a group has no rows. Integers may be of any size."""
    return pack_integers([0 if i is None else values[i] for i in order])


def _find_order(found: Sequence[tuple[Value, ...]], keys: Sequence[tuple[Value, ...]]) -> list[int | None]:
    """Where each key is among the groups; None where it has no rows."""
    positions = {key: index for index, key in enumerate(found)}
    return [positions.get(key) for key in keys]


def pack_integers(values: Sequence[int]) -> Integers:
    """Integers as an array: of 64 bits where all of them have these, and otherwise of any size.

    >>> pack_integers([1, 2]).dtype, pack_integers([2**70]).tolist()
    (dtype('int64'), [1180591620717411303424])
    """
    if not values or (min(values) >= INTEGER_MIN and max(values) <= INTEGER_MAX):
        return np.array(values, dtype=np.int64)
    return np.array(values, dtype=object)
