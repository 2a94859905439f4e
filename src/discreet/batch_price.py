"""Prices of several questions that are asked as one: one offer, one charge, a weight for each question."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from discreet import parameters
from discreet.accounting import events
from discreet.accounting.account import compose
from discreet.accounting.zcdp import rho_for
from discreet.bounding.bound import BoundedQuestion
from discreet.errors import BudgetExceeded, ParameterError
from discreet.exact import float_down, lower
from discreet.late_dataclass import dataclass
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.rounded_gaussian import RoundedGaussian
from discreet.offer import BudgetOffer, NoiseFamily, Offer, Payment
from discreet.parameters import Number
from discreet.price import GroupingPricer, PriceTerms, find_within, mean_log_noise
from discreet.privacy import Loss
from discreet.release import Noise, Plan


@dataclass(frozen=True, slots=True)
class PricedBatch:
    """The plans of a batch, and the events that are charged for all of them."""

    plans: tuple[Plan, ...]
    charged: tuple[events.Event, ...]
    payment: Payment | None = None


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
        fix = "Offer share, epsilon or rho for the whole batch. Nothing was charged."
        raise ParameterError("error", "is for a single question", fix)
    shares = read_weights(weights, len(batch))
    if fixed:
        return _price_fixed(batch, offer, terms, shares)
    paid = BudgetOffer(offer, terms.budget, terms.per_query, terms.left)
    if terms.paid is not None:
        return _make_batch(batch, shares, paid, terms, terms.paid)
    known = _price_plainly(batch, shares, paid, terms)
    if not known:
        raise BudgetExceeded("No noise that this offer could buy fits what is left of the budget. Nothing was charged.")
    return min(known, key=lambda priced: mean_log_noise(priced.plans))


def _price_plainly(
    batch: Sequence[Sequence[BoundedQuestion]], shares: Sequence[Fraction], paid: BudgetOffer, terms: PriceTerms
) -> list[PricedBatch]:
    """The batch with each kind of noise that the budget can pay for, where it fits."""
    # A δ for keys is for the whole batch.
    delta = paid.key_delta() if _has_private_keys(batch) else Fraction(0)
    found = [_price_in_family(batch, shares, paid, terms, Payment(family, (), delta)) for family in paid.families]
    return [priced for priced in found if priced is not None]


def _price_in_family(
    batch: Sequence[Sequence[BoundedQuestion]],
    shares: Sequence[Fraction],
    paid: BudgetOffer,
    terms: PriceTerms,
    start: Payment,
) -> PricedBatch | None:
    """The batch with one kind of noise; None where no class that holds has a place for it."""

    def make(amount: Fraction) -> PricedBatch:
        return _make_batch(batch, shares, paid, terms, replace(start, amounts=(amount,)))

    if all(map(_is_free, batch)):
        return make(Fraction(0))
    if not paid.by_share:
        return make(paid.to_amount())
    return find_within(lambda amount: make(amount).charged, make, paid, start.family)


def _make_batch(
    batch: Sequence[Sequence[BoundedQuestion]],
    shares: Sequence[Fraction],
    paid: BudgetOffer,
    terms: PriceTerms,
    payment: Payment,
) -> PricedBatch:
    pricer = _BatchPricer(batch, shares, paid, terms, payment)
    plans = pricer.make_plans(payment.amounts[0])
    return PricedBatch(plans, _list_events(plans), payment)


def _has_private_keys(batch: Sequence[Sequence[BoundedQuestion]]) -> bool:
    return any(form.selector is not None for forms in batch for form in forms)


def _is_free(forms: Sequence[BoundedQuestion]) -> bool:
    return all(form.is_free for form in forms)


def _list_events(plans: Sequence[Plan]) -> tuple[events.Event, ...]:
    return tuple(event for plan in plans for event in plan.events)


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

    Gaussian and Laplace noise are both tried. So is the plan that the same share buys without being fixed, where it is
    what was stated, too: so a fixed batch is never worse. Of those that fit the one with the smallest errors is taken.

    Privacy: (ε, δ), and what the events cost in every other notion; both are charged (``events.FixedPlan``). Why: the
    events are settled before anything is drawn, so their privacy-loss distributions may be composed, or whatever other
    notion is tightest; every bound is certified from above. A filter could not do this, because later questions may
    depend on earlier answers. The plain plan is charged as its events.
    """
    budget = terms.budget
    if budget.notion != "approx" or (offer.epsilon is None and offer.share is None):
        fix = "Use it with a budget in ε and δ, and offer epsilon or share. Nothing was charged."
        raise ParameterError("fixed", "needs an ε and a δ", fix)
    paid = BudgetOffer(offer, budget, terms.per_query, terms.left)
    if all(map(_is_free, batch)):
        return _make_batch(batch, shares, paid, terms, Payment(NoiseFamily.PURE, (Fraction(0),), Fraction(0)))
    if terms.paid is not None:
        make = _make_fixed if len(terms.paid.amounts) > 1 else _make_batch
        return make(batch, shares, paid, terms, terms.paid)
    found = [*_search_fixed(batch, shares, paid, terms), *_list_plain_as_stated(batch, shares, paid, terms)]
    if not found:
        raise BudgetExceeded("So small an ε and δ cannot pay for all of these questions. Nothing was charged.")
    return min(found, key=lambda priced: (not paid.known_left.fits(_lose(priced)), mean_log_noise(priced.plans)))


def _list_plain_as_stated(
    batch: Sequence[Sequence[BoundedQuestion]], shares: Sequence[Fraction], paid: BudgetOffer, terms: PriceTerms
) -> list[PricedBatch]:
    """What the same share buys plainly, where it keeps what was stated.

    A share states no more than what it is of the budget. An ε states that the batch by itself is (ε, δ)-private, with
    the δ that is offered; where none is, with that of the budget.
    """
    try:
        plain = _price_plainly(batch, shares, paid, terms)
    except (BudgetExceeded, ParameterError):  # more than one question may cost, or too little to name keys
        return []
    return [priced for priced in plain if paid.offer.share is not None or paid.is_private_alone(_lose(priced))]


def _lose(priced: PricedBatch) -> Loss:
    return compose(priced.charged).loss


def _search_fixed(
    batch: Sequence[Sequence[BoundedQuestion]], shares: Sequence[Fraction], paid: BudgetOffer, terms: PriceTerms
) -> list[PricedBatch]:
    """The batch with each kind of noise, as exact as its (ε, δ) allows; without those that no noise allows."""
    slack = paid.key_delta()
    if _has_private_keys(batch):
        # A third names private keys; it is charged beside the rest, and the rest has to cover it, too.
        slack = slack * 2 / 3
    epsilon = paid.to_share() * lower(terms.budget.amount())
    found = []
    for family in NoiseFamily:

        def make(amount: Fraction, family: NoiseFamily = family) -> PricedBatch:
            return _make_fixed(batch, shares, paid, terms, Payment(family, (amount, epsilon), slack))

        priced = _find_largest(make, epsilon, slack)
        found += [] if priced is None else [priced]
    return found


def _make_fixed(
    batch: Sequence[Sequence[BoundedQuestion]],
    shares: Sequence[Fraction],
    paid: BudgetOffer,
    terms: PriceTerms,
    payment: Payment,
) -> PricedBatch:
    """A fixed batch at a payment: the ρ of all of it, its ε, and its δ. Laplace noise has a share of ρ here, too."""
    amount, epsilon = payment.amounts
    noise: type[Noise] = Laplace if payment.family is NoiseFamily.PURE else RoundedGaussian
    keys = Payment(NoiseFamily.GAUSSIAN, (amount,), payment.delta / 2)
    plans = _BatchPricer(batch, shares, paid, terms, keys, noise).make_plans(amount)
    charged = events.FixedPlan(
        epsilon=epsilon,
        delta=payment.delta,
        events=_list_events(plans),
        neighbours=terms.neighbours,
        unit=terms.unit,
    )
    return PricedBatch(plans, (charged,), payment)


@dataclass(frozen=True, slots=True)
class _BatchPricer:
    """What stays the same while the price of a batch is searched for; its questions share one δ."""

    batch: Sequence[Sequence[BoundedQuestion]]
    shares: Sequence[Fraction]
    paid: BudgetOffer
    terms: PriceTerms
    payment: Payment
    noise: type[Noise] | None = None

    def make_plans(self, amount: Fraction) -> tuple[Plan, ...]:
        """The plans that cost this amount together."""
        # What is free leaves its share to the others.
        shares = [share * (not _is_free(forms)) for forms, share in zip(self.batch, self.shares)]
        whole = sum(shares) or Fraction(1)
        return tuple(self._make_plan(forms, amount * share / whole) for forms, share in zip(self.batch, shares))

    def _make_plan(self, forms: Sequence[BoundedQuestion], amount: Fraction) -> Plan:
        split, payment = len(forms) * len(self.batch), self.payment
        parts = [
            GroupingPricer(form, self.paid, self.terms, split, payment.family, self.noise, payment.delta)
            for form in forms
        ]
        paying = sum(not form.is_free for form in forms) or 1
        plan = Plan(tuple(part.make_release(amount / paying * (not part.bounded.is_free)) for part in parts))
        if not self.paid.is_small(amount, plan.loss):
            self.paid.refuse_large(plan.loss)
        return plan


def _find_largest(make: Callable[[Fraction], PricedBatch], epsilon: Fraction, slack: Fraction) -> PricedBatch | None:
    """The plans with the largest amount, to two thousandths, whose whole loss stays within (ε, δ)."""

    def fits(amount: Fraction) -> bool:
        together = _list_events(make(amount).plans)
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
    return make(least * low)
