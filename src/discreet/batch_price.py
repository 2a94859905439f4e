"""Prices of several questions that are asked as one: one offer, one charge, a weight for each question."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from discreet import parameters
from discreet.accounting import events
from discreet.accounting.account import compose
from discreet.accounting.zcdp import rho_for
from discreet.bounding.bound import BoundedQuestion
from discreet.errors import BudgetExceeded, ParameterError
from discreet.exact import float_down, lower
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.rounded_gaussian import RoundedGaussian
from discreet.offer import KEY_SHARE, BudgetOffer, Offer
from discreet.parameters import Number
from discreet.price import GroupingPricer, PriceTerms
from discreet.release import Noise, Plan


@dataclass(frozen=True, slots=True)
class PricedBatch:
    """The plans of a batch, and the events that are charged for all of them."""

    plans: tuple[Plan, ...]
    charged: tuple[events.Event, ...]


def price_batch(
    batch: Sequence[Sequence[BoundedQuestion]],
    offer: Offer,
    terms: PriceTerms,
    *,
    weights: Sequence[Number] | None = None,
    fixed: bool = False,
) -> PricedBatch:
    """One plan for each question, at its weight's share of what was offered for all.

    ``fixed`` prices the batch as one plan that is fixed in advance: see ``_price_fixed``.
    """
    if offer.error is not None:
        fix = "Offer epsilon or rho for the whole batch. Nothing was charged."
        raise ParameterError("error", "is for a single question", fix)
    shares = read_weights(weights, len(batch))
    if fixed:
        return _price_fixed(batch, offer, terms, shares)
    paid = BudgetOffer(offer, terms.budget, terms.per_query)
    # A stated δ is for the whole batch; each question has one of its own where none is stated.
    split = 1 if offer.delta is None else len(batch)
    plans = _BatchPricer(batch, shares, paid, terms, split).make_plans(paid.to_amount())
    return PricedBatch(plans, tuple(event for plan in plans for event in plan.events))


def read_weights(weights: Sequence[Number] | None, count: int) -> tuple[Fraction, ...]:
    """How much of a batch's price each question gets, as shares that sum to one."""
    if not count:
        raise ParameterError("questions", "is empty", "Give at least one question. Nothing was charged.")
    given = [Fraction(1)] * count if weights is None else [parameters.read_positive(w, "weights") for w in weights]
    if len(given) != count:
        fix = f"Give {count}, one for each question. Nothing was charged."
        raise ParameterError("weights", f"has {len(given)} numbers", fix)
    return tuple(weight / sum(given) for weight in given)


def _price_fixed(
    batch: Sequence[Sequence[BoundedQuestion]], offer: Offer, terms: PriceTerms, shares: Sequence[Fraction]
) -> PricedBatch:
    """A batch as one plan that is fixed in advance: as little noise as the offered ε and δ allow all of it together.

    Gaussian and Laplace noise are both tried; the one with the smaller errors is taken.

    Privacy: (ε, δ), as charged. Why: the events are settled before anything is drawn, so their privacy-loss
    distributions may be composed, or whatever other notion is tightest; every bound is certified from above. A filter
    could not do this, because later questions may depend on earlier answers.
    """
    budget = terms.budget
    if budget.notion != "approx" or offer.epsilon is None:
        fix = "Use it with a budget in ε and δ, and offer epsilon. Nothing was charged."
        raise ParameterError("fixed", "needs an ε and a δ", fix)
    # Half of the batch's δ is for naming private keys, if there are any; the loss distribution takes what is left.
    slack = budget.slack() * KEY_SHARE / 2 if offer.delta is None else parameters.read_probability(offer.delta, "delta")
    epsilon = lower(parameters.read_epsilon(offer.epsilon))
    paid = BudgetOffer(replace(offer, delta=slack / 2), budget, terms.per_query)
    pricers = [_BatchPricer(batch, shares, paid, terms, len(batch), noise) for noise in (RoundedGaussian, Laplace)]
    found = [plans for pricer in pricers if (plans := _find_largest(pricer.make_plans, epsilon, slack)) is not None]
    if not found:
        raise BudgetExceeded("So small an ε and δ cannot pay for all of these questions. Nothing was charged.")
    charged = events.Approximate(epsilon=epsilon, delta=slack, neighbours=terms.neighbours, unit=terms.unit)
    return PricedBatch(min(found, key=_mean_log_noise), (charged,))


@dataclass(frozen=True, slots=True)
class _BatchPricer:
    """What stays the same while the price of a batch is searched for; ``split`` questions share one δ."""

    batch: Sequence[Sequence[BoundedQuestion]]
    shares: Sequence[Fraction]
    paid: BudgetOffer
    terms: PriceTerms
    split: int
    noise: type[Noise] | None = None

    def make_plans(self, amount: Fraction) -> tuple[Plan, ...]:
        """The plans that cost this amount together."""
        return tuple(self._make_plan(forms, amount * share) for forms, share in zip(self.batch, self.shares))

    def _make_plan(self, forms: Sequence[BoundedQuestion], amount: Fraction) -> Plan:
        self.paid.check_most(amount)
        parts = [GroupingPricer(form, self.paid, self.terms, len(forms) * self.split, self.noise) for form in forms]
        return Plan(tuple(part.make_release(amount / len(parts)) for part in parts))


def _find_largest(
    make_plans: Callable[[Fraction], tuple[Plan, ...]], epsilon: Fraction, slack: Fraction
) -> tuple[Plan, ...] | None:
    """The plans with the largest amount, to two thousandths, whose whole loss stays within (ε, δ)."""

    def fits(amount: Fraction) -> bool:
        together = [event for plan in make_plans(amount) for event in plan.events]
        return compose(together).epsilon(float_down(slack)) <= float_down(epsilon)

    least = rho_for(float_down(epsilon), float_down(slack / 4)) / 4
    if least <= 0 or not fits(least):
        return None
    # Searched for as a multiple of the least, so that no amount is too small to be rounded.
    low, high = Fraction(1), Fraction(2)
    while fits(least * high):
        low, high = high, 2 * high
    while high > low * Fraction(1002, 1000):
        middle = Fraction(math.sqrt(low * high)).limit_denominator(1 << 50)
        low, high = (middle, high) if fits(least * middle) else (low, middle)
    return make_plans(least * low)


def _mean_log_noise(plans: tuple[Plan, ...]) -> float:
    """How large the noise is over all: the mean of the logarithms of its standard deviations."""
    noises = [noise for plan in plans for release in plan.releases for noise in release.noises.values()]
    return math.fsum(math.log(noise.standard_error) for noise in noises) / max(1, len(noises))
