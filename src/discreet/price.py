"""Pricing: which mechanism, which scale, which share of the budget.

Every measure gets noise of its own, in equal shares of what the question may cost; so does every spread that quantiles
or modes are chosen from. Under a pure budget that is discrete Laplace noise and shares of ε; otherwise discrete
Gaussian noise and shares of ρ. Private keys are chosen by a rule that takes a share, too, and a δ. The groupings of a
question share its price equally. All of it follows from the plan and the codebook, so that it can be shown before
anything is spent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TypeAlias

from discreet import parameters
from discreet.accounting import events
from discreet.accounting.account import compose
from discreet.accounting.zcdp import rho_for
from discreet.bounding.bound import AggregateRecipe, BoundedQuestion
from discreet.bounding.contributions import group_cap, reach, sensitivity
from discreet.errors import BudgetExceeded, InternalError, ParameterError, Unbounded, UnknownLoss
from discreet.exact import Exact, float_down, lower, sqrt_lower
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.quantiles.cells import CellMode, CellQuantiles
from discreet.mechanisms.weighted_selection import better_selection
from discreet.parameters import Epsilon, Number
from discreet.plan.expressions import ReleasedValue
from discreet.plan.statistics.table import STATISTICS
from discreet.privacy import Budget, Neighbours, Unit
from discreet.release import CellChoice, KeyRule, Noise, Plan, Release

# Of an (ε, δ) budget, half of δ pays for turning ρ into ε, the other half for naming private keys; one question takes
# a hundredth of that half unless it says otherwise.
KEY_SHARE = Fraction(1, 2)
KEY_QUESTIONS = 100
# How far one unit may move a measure at most; noise for more would leave 64 bits.
MOST_MOVED = 1 << 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
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
            parameters.read_epsilon(self.epsilon)
        if self.rho is not None:
            parameters.read_positive(self.rho, "rho")
        for name, size in (self.error or {}).items():
            parameters.read_positive(size, f"error[{name!r}]")
        if self.error is not None and not self.error:
            raise ParameterError("error", "names no column", "Say error={'n': 12}. Nothing was charged.")
        if self.delta is not None:
            parameters.read_probability(self.delta, "delta")
        parameters.read_probability(self.level, "level")


def price(
    forms: Sequence[BoundedQuestion],
    request: Offer,
    budget: Budget,
    *,
    unit: Unit,
    neighbours: Neighbours,
    most: Fraction | None = None,
) -> Plan:
    """The plan that costs what was offered, or the least that has the errors wanted, in every grouping.

    ``most`` is what one question may cost, in the budget's own terms: ε, or ρ.
    """
    purse = BudgetOffer(request, budget, most)
    parts = [_GroupingPricer(form, purse, unit, neighbours, len(forms)) for form in forms]
    if request.error is None:
        amounts = [purse.to_amount() / len(parts)] * len(parts)
    else:
        amounts = [part.find_amount(request.error) for part in parts]
    purse.check_most(sum(amounts, Fraction(0)))
    return Plan(tuple(part.make_release(amount) for part, amount in zip(parts, amounts)))


PricedBatch: TypeAlias = tuple[tuple[Plan, ...], tuple[events.Event, ...]]
"""The plans of a batch, and the events that are charged for all of them."""


def read_weights(weights: Sequence[Number] | None, count: int) -> tuple[Fraction, ...]:
    """How much of a batch's price each question gets, as shares that sum to one."""
    if not count:
        raise ParameterError("questions", "is empty", "Give at least one question. Nothing was charged.")
    given = [Fraction(1)] * count if weights is None else [parameters.read_positive(w, "weights") for w in weights]
    if len(given) != count:
        fix = f"Give {count}, one for each question. Nothing was charged."
        raise ParameterError("weights", f"has {len(given)} numbers", fix)
    return tuple(weight / sum(given) for weight in given)


def price_batch(
    batch: Sequence[Sequence[BoundedQuestion]],
    offer: Offer,
    budget: Budget,
    *,
    weights: Sequence[Fraction],
    unit: Unit,
    neighbours: Neighbours,
    most: Fraction | None = None,
) -> PricedBatch:
    """One plan for each question, at its weight's share of what was offered for all."""
    purse = BudgetOffer(_check_batch_offer(offer), budget, most)
    # A stated δ is for the whole batch; each question has one of its own where none is stated.
    split = 1 if offer.delta is None else len(batch)
    plans = _make_plans(batch, purse, purse.to_amount(), weights=weights, unit=unit, neighbours=neighbours, split=split)
    return plans, tuple(event for plan in plans for event in plan.events)


def price_fixed(
    batch: Sequence[Sequence[BoundedQuestion]],
    offer: Offer,
    budget: Budget,
    *,
    weights: Sequence[Fraction],
    unit: Unit,
    neighbours: Neighbours,
    most: Fraction | None = None,
) -> PricedBatch:
    """The same as one plan that is fixed in advance: as little noise as the offered ε and δ allow all of it together.

    Gaussian and Laplace noise are both tried; the one with the smaller errors is taken.

    Privacy: (ε, δ), as charged. Why: the events are settled before anything is drawn, so their privacy-loss
    distributions may be composed, or whatever other notion is tightest; every bound is certified from above. A filter
    could not do this, because later questions may depend on earlier answers. (Gaussian noise on the groups of one
    question has a loss distribution of its own only where a unit is in one group; else its Rényi bound is used.)
    """
    _check_batch_offer(offer)
    if budget.notion != "approx" or offer.epsilon is None:
        fix = "Use it with a budget in ε and δ, and offer epsilon. Nothing was charged."
        raise ParameterError("fixed", "needs an ε and a δ", fix)
    # Half of the batch's δ is for naming private keys, if there are any; the loss distribution takes what is left.
    slack = budget.slack() * KEY_SHARE / 2 if offer.delta is None else parameters.read_probability(offer.delta, "delta")
    epsilon = lower(parameters.read_epsilon(offer.epsilon))
    purse = BudgetOffer(replace(offer, delta=slack / 2), budget, most)

    found = []
    for noise in (Gaussian, Laplace):
        plans = partial(
            _make_plans, batch, purse, weights=weights, unit=unit, neighbours=neighbours, split=len(batch), noise=noise
        )
        best = _find_largest(plans, epsilon, slack)
        if best is not None:
            found.append(best)
    if not found:
        raise BudgetExceeded("So small an ε and δ cannot pay for all of these questions. Nothing was charged.")
    charged = events.Approximate(epsilon=epsilon, delta=slack, neighbours=neighbours, unit=unit)
    return min(found, key=_spread), (charged,)


def _find_largest(
    plans: Callable[[Fraction], tuple[Plan, ...]], epsilon: Fraction, slack: Fraction
) -> tuple[Plan, ...] | None:
    """The plans with the largest amount, to two thousandths, whose whole loss stays within (ε, δ)."""

    def good(amount: Fraction) -> bool:
        settled = [event for plan in plans(amount) for event in plan.events]
        return compose(settled).epsilon(float_down(slack)) <= float_down(epsilon)

    low = rho_for(float_down(epsilon), float_down(slack / 4)) / 4
    if low <= 0 or not good(low):
        return None
    high = 2 * low
    while good(high):
        low, high = high, 2 * high
    while high > low * Fraction(1002, 1000):
        middle = Fraction(math.sqrt(float(low * high))).limit_denominator(1 << 50)
        low, high = (middle, high) if good(middle) else (low, middle)
    return plans(low)


def _spread(plans: tuple[Plan, ...]) -> float:
    """How large the noise is over all: the mean of the logarithms of its standard deviations."""
    noises = [noise for plan in plans for release in plan.releases for noise in release.noises.values()]
    return math.fsum(math.log(noise.standard_error) for noise in noises) / max(1, len(noises))


def _check_batch_offer(offer: Offer) -> Offer:
    if offer.error is not None:
        fix = "Offer epsilon or rho for the whole batch. Nothing was charged."
        raise ParameterError("error", "is for a single question", fix)
    return offer


def _make_plans(
    batch: Sequence[Sequence[BoundedQuestion]],
    purse: BudgetOffer,
    amount: Fraction,
    *,
    weights: Sequence[Fraction],
    unit: Unit,
    neighbours: Neighbours,
    split: int,
    noise: type[Noise] | None = None,
) -> tuple[Plan, ...]:
    """The plans that cost this amount together."""
    plans = []
    for forms, weight in zip(batch, weights):
        purse.check_most(amount * weight)
        parts = [_GroupingPricer(form, purse, unit, neighbours, len(forms) * split, noise) for form in forms]
        plans.append(Plan(tuple(part.make_release(amount * weight / len(parts)) for part in parts)))
    return tuple(plans)


@dataclass(frozen=True, slots=True)
class BudgetOffer:
    """What is offered, in the currency of the budget it comes from."""

    request: Offer
    budget: Budget
    most: Fraction | None = None

    def __post_init__(self) -> None:
        if self.budget.notion == "gdp":
            raise UnknownLoss(
                "A budget in μ cannot pay for discrete noise. Declare ρ, or ε and δ. Nothing was charged."
            )

    @property
    def pure(self) -> bool:
        return self.budget.notion == "pure"

    @property
    def level(self) -> Fraction:
        """The confidence of errors and intervals."""
        return parameters.read_probability(self.request.level, "level")

    def to_amount(self) -> Fraction:
        """The offer in the budget's own currency: ε of a pure budget, otherwise ρ."""
        epsilon, rho = self.request.epsilon, self.request.rho
        if self.pure:
            if epsilon is None:
                fix = "This budget is counted in pure ε: say epsilon=0.5. Nothing was charged."
                raise ParameterError("rho", "cannot be spent from a pure budget", fix)
            exact = parameters.read_epsilon(epsilon)
            return exact if isinstance(exact, Fraction) else exact.lower
        if rho is not None:
            return parameters.read_positive(rho, "rho")
        if self.budget.notion == "zcdp":
            fix = "This budget is counted in ρ: say rho=0.01. Nothing was charged."
            raise ParameterError("epsilon", "has no meaning without a δ", fix)
        found = self._to_rho(parameters.read_epsilon(epsilon))
        if found <= 0:
            fix = "Offer a larger ε, or say rho=. Nothing was charged."
            raise ParameterError("epsilon", "is too small to turn into ρ at the budget's δ", fix)
        return found

    def _to_rho(self, epsilon: Exact) -> Fraction:
        """What the ε of one question means: alone, at the part of δ for conversions, it would be (ε, δ)-private."""
        return rho_for(float_down(epsilon), float_down(self.budget.slack() * (1 - KEY_SHARE)))

    def check_most(self, amount: Fraction) -> None:
        """Refuse what is more than one question may cost."""
        if self.most is None:
            return
        limit = self._to_rho(self.most) if self.budget.notion == "approx" else self.most
        if amount > limit:
            symbol = "ρ" if self.budget.notion == "zcdp" else "ε"
            raise BudgetExceeded(
                f"One question may cost at most {symbol} {float_down(self.most):g}, says the codebook (per_query). "
                "Offer less, or accept a larger error. Nothing was charged."
            )

    def key_delta(self) -> Fraction:
        """The δ for naming private keys in one question."""
        if not self.budget.slack():
            raise BudgetExceeded(
                "These groups come from the data, and naming them needs a δ that the budget does not have. "
                "Declare the keys in the codebook, or a budget with ε and δ. Nothing was charged."
            )
        if self.request.delta is not None:
            return parameters.read_probability(self.request.delta, "delta")
        return self.budget.slack() * KEY_SHARE / KEY_QUESTIONS


@dataclass(frozen=True, slots=True)
class _GroupingPricer:
    """One grouping of a question, of ``parts`` that share a δ: what stays the same while a price is searched for."""

    bounded: BoundedQuestion
    purse: BudgetOffer
    unit: Unit
    neighbours: Neighbours
    parts: int
    noise: type[Noise] | None = None

    def make_release(self, amount: Fraction) -> Release:
        """The release that costs this amount."""
        measured, spreads = self.bounded.measured, self.bounded.bounded.spreads
        private = self.bounded.selector is not None
        share = amount / (len(measured) + len(spreads) + private)
        return Release(
            bounded=self.bounded,
            noises={position: self._make_noise(position, share) for position in measured},
            choices={position: self._make_choice(position, share) for position in range(len(spreads))},
            selection=self._make_selection(share) if private else None,
            level=self.purse.level,
            unit=self.unit,
            neighbours=self.neighbours,
        )

    def _make_noise(self, position: int, share: Fraction) -> Noise:
        bounded = self.bounded.bounded
        moves = sensitivity(bounded, bounded.measures[position], self.neighbours)
        if moves.l1 > MOST_MOVED:
            raise Unbounded(
                "One unit may contribute so much here that no noise can hide it. Lower the limits, or join on fewer "
                "tables that multiply its rows. Nothing was charged."
            )
        if self.purse.pure:
            return Laplace(sensitivity=max(1, moves.l1), epsilon=share, neighbours=self.neighbours, unit=self.unit)
        if self.noise is Laplace:
            # ε-private noise is ε²/2-zCDP, so a share of ρ buys ε = √(2ρ).
            epsilon = sqrt_lower(2 * share, bits=64)
            return Laplace(sensitivity=max(1, moves.l1), epsilon=epsilon, neighbours=self.neighbours, unit=self.unit)
        return Gaussian(
            squared_sensitivity=max(1, moves.l2_squared),
            rho=share,
            dimension=max(1, moves.l0),
            neighbours=self.neighbours,
            unit=self.unit,
        )

    def _make_choice(self, position: int, share: Fraction) -> CellChoice:
        """What chooses from a spread."""
        spread = self.bounded.bounded.spreads[position]
        far = reach(self.bounded.bounded, self.neighbours)
        paid: dict[str, Fraction] = {"epsilon": share} if self.purse.pure else {"rho": share}
        shares = self.bounded.shares_of(position)
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
            in_place=far.in_place,
            neighbours=self.neighbours,
            unit=self.unit,
            **paid,
        )

    def _make_selection(self, share: Fraction) -> KeyRule:
        """The rule for private keys that costs the share and the δ it needs, and names keys from fewer units on."""
        delta = self.purse.key_delta() / self.parts
        groups = group_cap(self.bounded.bounded)
        if groups is None:
            raise InternalError("Private keys without a cap on groups.")
        return better_selection(
            rho=share,
            delta=delta,
            max_groups=groups,
            min_units=self.bounded.question.min_units or 1,
            neighbours=self.neighbours,
            unit=self.unit,
        )

    def find_amount(self, wanted: Mapping[str, Number]) -> Fraction:
        """The least amount, to a thousandth, that has errors of at most those wanted."""
        targets = [(self._find_estimate(name), parameters.read_positive(size, name)) for name, size in wanted.items()]

        def good(amount: Fraction) -> bool:
            release = self.make_release(amount)
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

    def _find_estimate(self, name: str) -> AggregateRecipe:
        question = self.bounded.question
        for output in question.outputs:
            if output.name == name and isinstance(output.expression, ReleasedValue):
                index = output.expression.index - len(question.keys)
                if index >= 0 and STATISTICS[self.bounded.estimates[index].statistic].has_direct_error:
                    return self.bounded.estimates[index]
        names = [output.name for output in question.outputs]
        fix = f"Give the error of a count or a sum among {', '.join(names)}. Nothing was charged."
        raise ParameterError(f"error[{name!r}]", "is not an error that public facts determine", fix)
