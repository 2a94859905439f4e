"""Pricing: which mechanism, which scale, which share of the budget; and drawing what was priced.

Every measure gets noise of its own, in equal shares of what the question may cost. Under a pure budget that is discrete
Laplace noise and shares of ε; otherwise discrete Gaussian noise and shares of ρ. Private keys are chosen by the optimal
rule, which takes a share, too, and a δ. All of it follows from the plan and the codebook, so that it can be shown
before anything is spent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from discreet import parameters
from discreet.accounting import events
from discreet.accounting.account import compose
from discreet.accounting.zcdp import rho_for
from discreet.bounding.bound import BoundedQuestion, Estimate
from discreet.bounding.contributions import Measure, Sensitivity, group_cap, reach, sensitivity
from discreet.engines.engine import EMPTY, Groups, Histogram
from discreet.entropy import SYSTEM, Source
from discreet.errors import BudgetExceeded, InternalError, ParameterError, UnknownLoss
from discreet.exact import Exact, Integers, float_down, sqrt_lower
from discreet.mechanisms.cells import CellMode, CellQuantiles
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.threshold import KeySelection
from discreet.parameters import Epsilon, Number
from discreet.plan.expressions import Released
from discreet.plan.nodes import Statistic
from discreet.plan.types import Value
from discreet.privacy import Budget, Loss, Neighbours, Unit

Noise: TypeAlias = Laplace | Gaussian
Choice: TypeAlias = CellQuantiles | CellMode

# Of an (ε, δ) budget, half of δ pays for turning ρ into ε, the other half for naming private keys; one question takes
# a hundredth of that half unless it says otherwise.
KEY_SHARE = Fraction(1, 2)
KEY_QUESTIONS = 100
# Exact sums are held to this range before noise: moving nothing by more than it moved before, so no loss grows.
SUM_LIMIT = 1 << 61


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the analyst offers: a loss (``epsilon`` or ``rho``), or the ``error`` wanted for named columns.

    ``delta`` is what naming private keys may cost; ``level`` is the confidence of errors and intervals.
    """

    epsilon: Epsilon | None = None
    rho: Number | None = None
    error: Mapping[str, Number] | None = None
    delta: Number | None = None
    level: Number = 0.95

    def __post_init__(self) -> None:
        forms = [form is not None for form in (self.epsilon, self.rho, self.error)]
        if sum(forms) != 1:
            fix = "Say epsilon=0.5, rho=0.01, or error={'n': 12} to be told the price. Nothing was charged."
            raise ParameterError("cost", "must be given in exactly one form", fix)
        if self.epsilon is not None:
            parameters.epsilon(self.epsilon)
        if self.rho is not None:
            parameters.positive(self.rho, "rho")
        for name, size in (self.error or {}).items():
            parameters.positive(size, f"error[{name!r}]")
        if self.error is not None and not self.error:
            raise ParameterError("error", "names no column", "Say error={'n': 12}. Nothing was charged.")
        if self.delta is not None:
            parameters.open_probability(self.delta, "delta")
        parameters.open_probability(self.level, "level")


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A priced question: the noise of each measure, the choice from each spread, the rule for keys, and their events.

    Privacy: the released values are a post-processing of the noisy measures and the selected keys, so their loss is
    the composition of ``events``. Why: the exact measures of neighbours differ by at most ``sensitivity`` (see
    ``contributions``), for which each noise is calibrated; a unit reaches into spreads no further than the choices
    allow for; the counts of units by which keys are chosen change by one in at most ``max_groups`` keys.
    """

    bounded: BoundedQuestion
    noises: Mapping[int, Noise]
    choices: Mapping[int, Choice]
    selection: KeySelection | None
    level: Fraction
    unit: Unit
    neighbours: Neighbours

    @property
    def events(self) -> tuple[events.Event, ...]:
        """What will have happened once this is drawn."""
        drawn = (*self.noises.values(), *self.choices.values(), *(() if self.selection is None else (self.selection,)))
        return tuple(event for mechanism in drawn for event in mechanism.events)

    @property
    def loss(self) -> Loss:
        """What it costs."""
        return compose(self.events).loss

    def noise_bound(self, position: int, *, parts: int = 1) -> int:
        """How far a noisy measure is off at most, in its own steps: at the level, or with others of ``parts`` at it."""
        return math.ceil(self.noises[position].noise_bound((1 - self.level) / parts))

    def error(self, estimate: Estimate) -> float | None:
        """The error of a count or a sum at the level, from public facts; None for what depends on unknown counts."""
        match estimate:
            case Estimate(count=int(count), steps=None):
                return float(self.noise_bound(count))
            case Estimate(statistic=Statistic.SUM, count=None, steps=int(steps)):
                return float(self.noise_bound(steps) * estimate.resolution)
            case Estimate(statistic=Statistic.SUM, count=int(count), steps=int(steps)):
                # steps·resolution + origin·count: both noises stay within their bounds together.
                moved = self.noise_bound(steps, parts=2) * estimate.resolution
                return float(moved + self.noise_bound(count, parts=2) * abs(estimate.origin))
        return None


def price(
    bounded: BoundedQuestion,
    request: Request,
    budget: Budget,
    *,
    unit: Unit,
    neighbours: Neighbours,
    most: Fraction | None = None,
) -> Release:
    """The release that costs what was offered, or the least that has the errors wanted.

    ``most`` is what one question may cost, in the budget's own terms: ε, or ρ.
    """
    if budget.notion == "gdp":
        raise UnknownLoss("A budget in μ cannot pay for discrete noise. Declare ρ, or ε and δ. Nothing was charged.")
    pricing = _Pricing(bounded, request, budget, unit, neighbours, most)
    amount = pricing.offered() if request.error is None else pricing.for_errors(request.error)
    return pricing.checked(amount)


@dataclass(frozen=True, slots=True)
class _Pricing:
    """Everything that stays the same while a price is searched for."""

    bounded: BoundedQuestion
    request: Request
    budget: Budget
    unit: Unit
    neighbours: Neighbours
    most: Fraction | None

    @property
    def pure(self) -> bool:
        return self.budget.notion == "pure"

    def offered(self) -> Fraction:
        """The offer in the budget's own currency: ε of a pure budget, otherwise ρ."""
        epsilon, rho = self.request.epsilon, self.request.rho
        if self.pure:
            if epsilon is None:
                fix = "This budget is counted in pure ε: say epsilon=0.5. Nothing was charged."
                raise ParameterError("rho", "cannot be spent from a pure budget", fix)
            exact = parameters.epsilon(epsilon)
            return exact if isinstance(exact, Fraction) else exact.lower
        if rho is not None:
            return parameters.positive(rho, "rho")
        if self.budget.notion == "zcdp":
            fix = "This budget is counted in ρ: say rho=0.01. Nothing was charged."
            raise ParameterError("epsilon", "has no meaning without a δ", fix)
        found = self._rho(parameters.epsilon(epsilon))
        if found <= 0:
            fix = "Offer a larger ε, or say rho=. Nothing was charged."
            raise ParameterError("epsilon", "is too small to turn into ρ at the budget's δ", fix)
        return found

    def _rho(self, epsilon: Exact) -> Fraction:
        """What the ε of one question means: alone, at the part of δ for conversions, it would be (ε, δ)-private."""
        return rho_for(float_down(epsilon), float_down(self.budget.slack() * (1 - KEY_SHARE)))

    def _check_most(self, amount: Fraction) -> None:
        """Refuse what is more than one question may cost."""
        if self.most is None:
            return
        limit = self._rho(self.most) if self.budget.notion == "approx" else self.most
        if amount > limit:
            symbol = "ρ" if self.budget.notion == "zcdp" else "ε"
            raise BudgetExceeded(
                f"One question may cost at most {symbol} {float_down(self.most):g}, says the codebook (per_query). "
                "Offer less, or accept a larger error. Nothing was charged."
            )

    def of(self, amount: Fraction) -> Release:
        """The release that costs this amount."""
        measured, spreads = self.bounded.measured, self.bounded.bounded.spreads
        private = self.bounded.selector is not None
        share = amount / (len(measured) + len(spreads) + private)
        return Release(
            bounded=self.bounded,
            noises={position: self._noise(position, share) for position in measured},
            choices={position: self._choice(position, share) for position in range(len(spreads))},
            selection=self._selection(share) if private else None,
            level=parameters.open_probability(self.request.level, "level"),
            unit=self.unit,
            neighbours=self.neighbours,
        )

    def checked(self, amount: Fraction) -> Release:
        """The release that costs this amount, if one question may cost as much."""
        self._check_most(amount)
        return self.of(amount)

    def _noise(self, position: int, share: Fraction) -> Noise:
        moves = measure_sensitivity(self.bounded, self.bounded.bounded.measures[position], self.neighbours)
        if self.pure:
            return Laplace(sensitivity=max(1, moves.l1), epsilon=share, neighbours=self.neighbours, unit=self.unit)
        return Gaussian(
            squared_sensitivity=max(1, moves.l2_squared),
            rho=share,
            dimension=max(1, moves.l0),
            neighbours=self.neighbours,
            unit=self.unit,
        )

    def _choice(self, position: int, share: Fraction) -> Choice:
        """What chooses from a spread."""
        spread = self.bounded.bounded.spreads[position]
        far = reach(self.bounded.bounded, self.neighbours)
        paid: dict[str, Fraction] = {"epsilon": share} if self.pure else {"rho": share}
        shares = self.bounded.shares(position)
        if not shares:
            return CellMode(
                first=spread.first,
                last=spread.last,
                groups=far.groups,
                max_rows=far.rows,
                neighbours=self.neighbours,
                unit=self.unit,
                **paid,
            )
        return CellQuantiles(
            qs=shares,
            first=spread.first,
            last=spread.last,
            groups=far.groups,
            max_rows=far.rows,
            neighbours=self.neighbours,
            unit=self.unit,
            **paid,
        )

    def _selection(self, share: Fraction) -> KeySelection:
        """The rule for private keys: ε of its own that costs the share, and the δ it needs."""
        delta = self._key_delta()
        groups = group_cap(self.bounded.bounded)
        if groups is None:
            raise InternalError("Private keys without a cap on groups.")
        # An (ε, δ) rule is δ-approximately ε²/2-zCDP, so a share of ρ buys ε = √(2ρ).
        epsilon = sqrt_lower(2 * share, bits=64)
        return KeySelection(
            epsilon=epsilon,
            delta=delta,
            max_groups=groups,
            min_units=self.bounded.question.min_units or 1,
            neighbours=self.neighbours,
            unit=self.unit,
        )

    def _key_delta(self) -> Fraction:
        if not self.budget.slack():
            raise BudgetExceeded(
                "These groups come from the data, and naming them needs a δ that the budget does not have. "
                "Declare the keys in the codebook, or a budget with ε and δ. Nothing was charged."
            )
        if self.request.delta is not None:
            return parameters.open_probability(self.request.delta, "delta")
        return self.budget.slack() * KEY_SHARE / KEY_QUESTIONS

    def for_errors(self, wanted: Mapping[str, Number]) -> Fraction:
        """The least amount, to a thousandth, that has errors of at most those wanted."""
        targets = [(self._estimate(name), parameters.positive(size, name)) for name, size in wanted.items()]

        def good(amount: Fraction) -> bool:
            release = self.of(amount)
            errors = [(release.error(estimate), size) for estimate, size in targets]
            return all(error is not None and Fraction(error) <= size for error, size in errors)

        low, high = Fraction(1, 1 << 40), Fraction(1)
        while not good(high):
            low, high = high, high * 16
            if high > parameters.MAX_EPSILON:
                raise BudgetExceeded("No loss worth the name of privacy gives so small an error. Nothing was charged.")
        while high > low * Fraction(1001, 1000):
            middle = Fraction(math.sqrt(float(low * high))).limit_denominator(1 << 50)
            low, high = (low, middle) if good(middle) else (middle, high)
        return high

    def _estimate(self, name: str) -> Estimate:
        question = self.bounded.question
        for output in question.outputs:
            if output.name == name and isinstance(output.expression, Released):
                index = output.expression.index - len(question.keys)
                if index >= 0 and self.bounded.estimates[index].statistic in _DIRECT:
                    return self.bounded.estimates[index]
        names = [output.name for output in question.outputs]
        fix = f"Give the error of a count or a sum among {', '.join(names)}. Nothing was charged."
        raise ParameterError(f"error[{name!r}]", "is not an error that public facts determine", fix)


_DIRECT = frozenset({Statistic.COUNT, Statistic.COUNT_UNITS, Statistic.COUNT_DISTINCT, Statistic.SUM})


def measure_sensitivity(bounded: BoundedQuestion, measure: Measure, neighbours: Neighbours) -> Sensitivity:
    """How far one unit can move a measure."""
    return sensitivity(bounded.bounded, measure, neighbours)


@dataclass(frozen=True, slots=True)
class Noisy:
    """What was drawn: the keys that may be named, in an order of their own, and for each of them the noisy integers of
    every measure and the cells chosen from every spread.
    """

    keys: tuple[tuple[Value, ...], ...]
    measures: Mapping[int, Integers]
    chosen: Mapping[int, tuple[tuple[int, ...], ...]] = field(default_factory=dict)


def draw(release: Release, groups: Groups, *, source: Source = SYSTEM) -> Noisy:
    """Choose the keys and add the noise. The only function that turns private numbers into public ones.

    Privacy: the loss of ``release.events``. Keys are the public domain in its own order, or the selected ones sorted,
    so that no order of rows shows; a public group without rows is a noisy zero.
    """
    bounded = release.bounded.bounded
    positions = {key: index for index, key in enumerate(groups.keys)}
    if release.selection is None:
        keys = bounded.domain or ()
    else:
        units = groups.values[release.bounded.selector or 0]
        keys = tuple(release.selection.release(dict(zip(groups.keys, units)), source=source))
    order = [positions.get(key) for key in keys]
    exact = {p: _column(groups.values[p], order) for p in release.noises}
    noisy = {p: np.asarray(noise.release(exact[p], source=source)) for p, noise in release.noises.items()}
    chosen = {p: _chosen(choice, groups.spreads[p], order, source) for p, choice in release.choices.items()}
    return Noisy(keys, noisy, chosen)


def _chosen(
    choice: Choice, spread: Sequence[Histogram], order: list[int | None], source: Source
) -> tuple[tuple[int, ...], ...]:
    """The cells chosen in each group; a group without rows has an empty spread to choose from."""
    found = []
    for i in order:
        cells, counts = EMPTY if i is None else spread[i]
        drawn = choice.release(cells, counts, source=source)
        found.append(drawn if isinstance(drawn, tuple) else (drawn,))
    return tuple(found)


def _column(values: tuple[int, ...], order: list[int | None]) -> Integers:
    """One measure in the order of the keys, zero where a group has no rows, held to the range of sums."""
    held = (0 if i is None else max(-SUM_LIMIT, min(SUM_LIMIT, values[i])) for i in order)
    return np.fromiter(held, dtype=np.int64, count=len(order))
