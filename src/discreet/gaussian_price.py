"""Prices of releases: what an offer buys in μ², or in pure ε, before anything is read."""

from __future__ import annotations

from fractions import Fraction

from discreet.accounting import events
from discreet.accounting.account import compose
from discreet.errors import BudgetExceeded, UsageError
from discreet.offer import BudgetOffer, NoiseFamily, Offer
from discreet.price import PriceTerms, find_within
from discreet.privacy import Neighbours, Unit


def find_mu_squared(offer: Offer, terms: PriceTerms) -> Fraction:
    """The largest μ² that an offer pays for, rounded down; refused where the budget cannot pay for normal noise."""
    if terms.budget.notion == "pure":
        raise UsageError(
            "This is paid for in Gaussian noise, which a budget of pure ε cannot pay for. Declare a budget with ε "
            "and δ, ρ or μ. Nothing was charged."
        )
    paid = BudgetOffer(offer, terms.budget, terms.per_query, terms.left)

    def list_events(rho: Fraction) -> tuple[events.Event, ...]:
        return (make_event(2 * rho, terms.unit, terms.neighbours),)

    if paid.by_share:
        found = find_within(list_events, lambda rho: 2 * rho, paid, NoiseFamily.GAUSSIAN)
        if found is None:
            raise BudgetExceeded("This offer buys no noise that fits what is left. Nothing was charged.")
    else:
        found = 2 * paid.to_amount()
    loss = compose(list_events(found / 2)).loss
    if not paid.is_small(found / 2, loss):
        paid.refuse_large(loss)
    return found


def find_epsilon(offer: Offer, terms: PriceTerms) -> Fraction:
    """The ε that an offer pays for out of a budget of pure ε."""
    paid = BudgetOffer(offer, terms.budget, terms.per_query, terms.left)
    found = paid.to_amount()
    event = events.Pure(epsilon=found, unit=terms.unit, neighbours=terms.neighbours)
    loss = compose([event]).loss
    if not paid.is_small(found, loss):
        paid.refuse_large(loss)
    return found


def make_event(mu_squared: Fraction, unit: Unit, neighbours: Neighbours) -> events.RoundedGaussian:
    """Normal noise of this μ², as the ledger counts it."""
    return events.RoundedGaussian(squared_sensitivity=1, variance=1 / mu_squared, unit=unit, neighbours=neighbours)
