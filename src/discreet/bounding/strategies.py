"""Strategies: which joint measures are measured, and in which shares of the price.

Every statistic that is shown has an error that is a combination of the noises of measures. A strategy is good where
the geometric mean of these errors is small. The strategies that are tried: every measure by itself, and what becomes of
it when joint forms are taken one after another, as long as one makes the errors smaller. Shares are chosen for each.
All of it follows from public facts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias, assert_never

import numpy as np

from discreet.bounding.bound import BoundedQuestion
from discreet.bounding.cells import list_cell_forms
from discreet.bounding.contributions import BoundedPlan, Measure, Sensitivity
from discreet.bounding.joint_measures import (
    JointForm,
    JointMeasure,
    find_families,
    joint_sensitivity,
    list_forms,
    measure_alone,
)
from discreet.bounding.recipes import AggregateRecipe
from discreet.errors import InternalError
from discreet.exact import Floats
from discreet.late_dataclass import dataclass
from discreet.plan.statistics.definitions import (
    ChoiceBasis,
    CountBasis,
    FirstMomentBasis,
    SecondMomentBasis,
    SumBasis,
)
from discreet.plan.statistics.table import STATISTICS
from discreet.privacy import Neighbours

ShownError: TypeAlias = tuple[tuple[int, Fraction], ...]
"""The error of a statistic as a combination of the noises of measures: (position, factor)."""

# Rounds of choosing shares, each of which needs the errors of the one before; and the least share.
_ROUNDS = 40
_LEAST = 1 / 64
# A form must be better by this much, so that rounding does not decide.
_BETTER = 1e-6


@dataclass(frozen=True, slots=True)
class PricedBy:
    """What is split into shares, and how the error of noise follows: ε (``power`` 2) or ρ (1), and by which norm."""

    pure: bool
    power: int

    def size(self, moves: Sensitivity) -> float:
        """How far a unit moves a vector, in the norm that the noise hides."""
        return float(max(1, moves.l1)) if self.pure else math.sqrt(max(1, moves.l2_squared))


@dataclass(frozen=True, slots=True)
class Strategy:
    """Joint measures, how far one unit moves each, and the share that each gets; the shares sum to one."""

    joints: tuple[JointMeasure, ...]
    moves: tuple[Sensitivity, ...]
    shares: tuple[Fraction, ...]


def list_shown(bounded: BoundedQuestion) -> tuple[ShownError, ...]:
    """The errors of the statistics that are computed from noisy numbers, equal ones once. Public numbers have none."""
    described = [_describe_error(e, bounded.bounded.measures) for e in bounded.estimates if e.spread is None]
    noisy = [tuple(term for term in error if term[0] not in bounded.public) for error in described]
    return tuple(error for error in dict.fromkeys(noisy) if error)


def _describe_error(estimate: AggregateRecipe, measures: Sequence[Measure]) -> ShownError:
    """The error of a statistic, up to a factor. Means and variances depend on the data: typical ones are assumed.

    With the mean at m and the variance v, both in steps, n times the error of a mean is that of S − m·N, and n times
    that of a variance is that of Q − 2m·S + (m² − v)·N. Here m is three quarters of the way between the bounds,
    and v is that of evenly spread values.
    """
    count, steps, squares = estimate.count, estimate.steps, estimate.squares
    basis = STATISTICS[estimate.statistic].basis
    match basis:
        case CountBasis() if count is not None:
            return ((count, Fraction(1)),)
        case SumBasis() if steps is not None:
            summed = ((steps, estimate.resolution),)
            return summed if count is None or not estimate.origin else (*summed, (count, estimate.origin))
        case FirstMomentBasis() | SecondMomentBasis() if steps is not None and count is not None:
            low, high = measures[steps].first, measures[steps].last
            mean, variance = low + Fraction(3, 4) * (high - low), Fraction((high - low) ** 2, 12)
            if squares is None:
                return _without_zeros((steps, Fraction(1)), (count, -mean))
            return _without_zeros((squares, Fraction(1)), (steps, -2 * mean), (count, mean**2 - variance))
        case CountBasis() | SumBasis() | FirstMomentBasis() | SecondMomentBasis() | ChoiceBasis():
            raise InternalError("A statistic lacks a measure that it needs.")
        case _:
            assert_never(basis)


def _without_zeros(*terms: tuple[int, Fraction]) -> ShownError:
    return tuple(term for term in terms if term[1])


def choose_strategy(
    bounded: BoundedQuestion, neighbours: Neighbours, priced: PricedBy, most_moved: int, *, alone: int | None = None
) -> Strategy:
    """The strategy with the smallest errors; nothing that one unit could move further than ``most_moved``.

    The measure at ``alone`` is combined with no other.
    """
    plan, measured = bounded.bounded, bounded.measured
    combined = [position for position in measured if position != alone]
    families = find_families(plan.measures, combined)
    forms = [form for family in families for form in list_forms(plan.measures, family)]
    forms += list_cell_forms(plan.measures, combined)
    judge = _Judge(plan, measured, list_shown(bounded), neighbours, priced)
    # Too far for joint parts, such a plan is measured one by one, and refused where even that is too far.
    forms = [form for form in forms if judge.move(form.joint).l1 <= most_moved]
    chosen: tuple[JointForm, ...] = ()
    score, best = judge.judge(())
    while True:
        taken = frozenset().union(*(form.positions for form in chosen))
        tried = [(judge.judge((*chosen, form)), form) for form in forms if not form.positions & taken]
        if not tried:
            return best
        (found, strategy), form = min(tried, key=lambda each: each[0][0])
        if found >= score - _BETTER:
            return best
        chosen, score, best = (*chosen, form), found, strategy


@dataclass(frozen=True, slots=True)
class _Judge:
    """What every strategy for a question is judged by."""

    plan: BoundedPlan
    measured: tuple[int, ...]
    shown: tuple[ShownError, ...]
    neighbours: Neighbours
    priced: PricedBy

    def move(self, joint: JointMeasure) -> Sensitivity:
        return joint_sensitivity(self.plan, joint, self.neighbours)

    def judge(self, forms: Sequence[JointForm]) -> tuple[float, Strategy]:
        """The mean logarithm of the errors with some joint forms and all other measures alone, and the strategy."""
        taken = frozenset().union(*(form.positions for form in forms))
        alone = [measure_alone(self.plan.measures, p) for p in self.measured if p not in taken]
        joints = (*(form.joint for form in forms), *alone)
        moves = tuple(self.move(joint) for joint in joints)
        if len(joints) <= 1 or not self.shown:
            shares: tuple[Fraction, ...] = (Fraction(1, max(1, len(joints))),) * len(joints)
            score = self._score(self._find_weights(joints, moves), np.ones(len(joints))) if joints else 0.0
            return score, Strategy(joints, moves, shares)
        weights = self._find_weights(joints, moves)
        shares = _find_shares(weights.tobytes(), len(joints), self.priced.power)
        score = self._score(weights, np.array([float(share) for share in shares]))
        return score, Strategy(joints, moves, shares)

    def _find_weights(self, joints: Sequence[JointMeasure], moves: Sequence[Sensitivity]) -> Floats:
        """For each shown error and each joint measure, the variance that its noise adds where it has the whole price.

        Positions and parts are scaled to about one, so that doubles lose nothing that matters here.
        """
        sizes = {p: float(max(1, m.row_high, -m.row_low)) for p, m in enumerate(self.plan.measures)}
        place = {position: column for column, position in enumerate(self.measured)}
        matrix = np.zeros((len(place), len(place)))
        owner, row = [], 0
        for number, joint in enumerate(joints):
            scale = self.priced.size(moves[number])
            for part in joint.parts:
                for position, factor in part:
                    matrix[row, place[position]] = factor * sizes[position] / scale
                owner.append(number)
                row += 1
        errors = np.zeros((len(self.shown), len(place)))
        for line, shown in enumerate(self.shown):
            for position, share in shown:
                errors[line, place[position]] = float(share) * sizes[position]
        squares = (errors @ np.linalg.inv(matrix)) ** 2
        weights = np.zeros((len(self.shown), len(joints)))
        for column, number in enumerate(owner):
            weights[:, number] += squares[:, column]
        return weights

    def _score(self, weights: Floats, shares: Floats) -> float:
        if not len(weights):
            return 0.0
        return float(np.log(weights @ shares**-self.priced.power).mean() / 2)


@lru_cache(maxsize=256)
def _find_shares(weights: bytes, joints: int, power: int) -> tuple[Fraction, ...]:
    """The shares with the smallest geometric mean of errors, for the doubles of ``_Judge._find_weights``.

    The variance V_j of an error is Σ_i w_ji/s_i^power. Where Σ_j ln V_j is least, s_i^(power + 1) is in proportion
    to Σ_j w_ji/V_j. Questions of one shape have the same weights, so what was found is kept.
    """
    given = np.frombuffer(weights).reshape(-1, joints)
    shares: Floats = np.full(joints, 1 / joints)
    for _ in range(_ROUNDS):
        variances = given @ shares**-power
        pull: Floats = (given / variances[:, None]).sum(axis=0) ** (1 / (power + 1))
        shares = np.maximum(pull / pull.sum(), _LEAST / joints)
        shares = shares / shares.sum()
    rounded = [Fraction(share).limit_denominator(1000) for share in shares.tolist()]
    return tuple(share / sum(rounded) for share in rounded)
