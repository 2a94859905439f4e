"""Releases: what is drawn for a question, and what that costs.

A ``Release`` is one grouping of a question with its noise, its choices and its rule for keys, all of them settled. A
``Plan`` is what one question, or one batch of questions, releases under one price. ``draw`` is the only function that
turns private numbers into public ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

import numpy as np

from discreet.accounting import events
from discreet.accounting.account import compose
from discreet.bounding.bound import BoundedQuestion
from discreet.bounding.contributions import unit_bits
from discreet.bounding.recipes import AggregateRecipe
from discreet.engines.engine import EMPTY, GroupHistogram, Groups
from discreet.entropy import SYSTEM, EntropySource
from discreet.errors import InternalError
from discreet.exact import Floats, Integers, float_down
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.named_count import NamedCount
from discreet.mechanisms.quantiles.cells import CellMode, CellQuantiles
from discreet.mechanisms.rounded_gaussian import RoundedGaussian
from discreet.mechanisms.threshold import GaussianThreshold, KeySelection, LaplaceThreshold
from discreet.mechanisms.weighted_selection import WeightedSelection
from discreet.plan.nodes import Question
from discreet.plan.statistics.table import STATISTICS
from discreet.plan.types import Value
from discreet.privacy import Loss, Neighbours, Unit

Noise: TypeAlias = Laplace | RoundedGaussian
CellChoice: TypeAlias = CellQuantiles | CellMode
KeyRule: TypeAlias = KeySelection | WeightedSelection | LaplaceThreshold | GaussianThreshold


@dataclass(frozen=True, kw_only=True)
class Release:
    """A priced question: the noise of each measure, the choice from each spread, the rule for keys, and their events.

    Privacy: the released values are a post-processing of the noisy measures and the selected keys, so their loss is
    the composition of ``events``. Why: the exact measures of neighbours differ by at most ``sensitivity`` (see
    ``contributions``), for which each noise is calibrated; a unit reaches into spreads no further than the choices
    allow for; the counts of units by which keys are chosen change by one in at most ``max_groups`` keys, and their
    weights by one whole weight in squares. Where the noisy count at ``counted`` names the keys as well, the rule for
    keys draws it, so its events stand for both; its noise is among ``noises`` for its law alone.
    """

    bounded: BoundedQuestion
    noises: Mapping[int, Noise]
    choices: Mapping[int, CellChoice]
    selection: KeyRule | None
    level: Fraction
    unit: Unit
    neighbours: Neighbours
    counted: int | None = None

    @cached_property
    def events(self) -> tuple[events.Event, ...]:
        """What will have happened once this is drawn."""
        noises = (noise for position, noise in self.noises.items() if position != self.counted)
        drawn = (*noises, *self.choices.values(), *(() if self.selection is None else (self.selection,)))
        return tuple(event for mechanism in drawn for event in mechanism.events)

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

    def unit_bits(self, position: int) -> int:
        """The noisy integers of a measure are in units of 2^-bits of its steps."""
        bounded = self.bounded.bounded
        return unit_bits(bounded, bounded.measures[position])

    def to_steps(self, position: int, integers: Integers) -> Integers | Floats:
        """Noisy integers of a measure as steps: whole numbers where they are, and otherwise doubles."""
        bits = self.unit_bits(position)
        return np.ldexp(np.asarray(integers, dtype=np.float64), -bits) if bits else integers

    def noise_bound(self, position: int, *, parts: int = 1) -> Fraction:
        """How far a noisy measure is off at most, in steps: at the level, or with others of ``parts`` at it."""
        units = math.ceil(self.noises[position].noise_bound((1 - self.level) / parts))
        return Fraction(units, 1 << self.unit_bits(position))

    def error(self, estimate: AggregateRecipe) -> float | None:
        """The error of a count or a sum at the level, from public facts; None for what depends on unknown counts."""
        if not STATISTICS[estimate.statistic].has_direct_error:
            return None
        count, steps = estimate.count, estimate.steps
        if steps is None:
            if count is None:
                raise InternalError("A count or a sum without a measure.")
            return float(math.ceil(self.noise_bound(count)))  # counts are rounded to whole numbers
        if count is None:
            return float(self.noise_bound(steps) * estimate.resolution)
        # steps·resolution + origin·count: both noises stay within their bounds together.
        moved = self.noise_bound(steps, parts=2) * estimate.resolution
        return float(moved + self.noise_bound(count, parts=2) * abs(estimate.origin))


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
    every measure and the cells chosen from every spread.
    """

    keys: tuple[tuple[Value, ...], ...]
    measures: Mapping[int, Integers]
    chosen: Mapping[int, tuple[tuple[int, ...], ...]] = field(default_factory=dict)


def draw(release: Release, groups: Groups, *, source: EntropySource = SYSTEM) -> NoisyGroups:
    """Choose the keys and add the noise. The only function that turns private numbers into public ones.

    Privacy: the loss of ``release.events``. Keys are the public domain in its own order, or the selected ones sorted,
    so that no order of rows shows; a public group without rows is a noisy zero.
    """
    bounded = release.bounded.bounded
    positions = {key: index for index, key in enumerate(groups.keys)}
    noisy: dict[int, Integers] = {}
    if release.selection is None:
        keys = bounded.domain or ()
    else:
        named = release.selection.release(_weigh_keys(release, groups), source=source)
        keys = tuple(named)
        if release.counted is not None:
            if not isinstance(named, dict):
                raise InternalError("A rule without counts cannot release one.")
            noisy[release.counted] = np.array(list(named.values()), dtype=np.int64)
    order = [positions.get(key) for key in keys]
    for p, noise in release.noises.items():
        if p != release.counted:
            noisy[p] = np.asarray(noise.release(_order_measure(groups.values[p], order), source=source))
    chosen = {p: _choose_cells(choice, groups.spreads[p], order, source) for p, choice in release.choices.items()}
    return NoisyGroups(keys, noisy, chosen)


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


def _choose_cells(
    choice: CellChoice, spread: Sequence[GroupHistogram], order: list[int | None], source: EntropySource
) -> tuple[tuple[int, ...], ...]:
    """The cells chosen in each group; a group without rows has an empty spread to choose from."""
    return tuple(choice.release_all([EMPTY if i is None else spread[i] for i in order], source=source))


def _order_measure(values: tuple[int, ...], order: list[int | None]) -> Integers:
    """One measure in the order of the keys, zero where a group has no rows. Integers may be of any size."""
    exact = np.empty(len(order), dtype=object)
    exact[:] = [0 if i is None else values[i] for i in order]
    return exact
