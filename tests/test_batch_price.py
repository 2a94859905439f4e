"""Prices of batches: shares that sum to one, and plans that stay within the offer together."""

from __future__ import annotations

from fractions import Fraction

import pytest

from discreet.accounting.account import compose
from discreet.batch_price import price_batch, read_weights
from discreet.bounding.bound import bound_all
from discreet.errors import ParameterError
from discreet.offer import Offer
from discreet.price import PriceTerms, price
from tests.worlds.hospital import COUNT, ask, catalog
from tests.worlds.prices import ADD, APPROX, PATIENT, PURE, ZCDP

TERMS = PriceTerms(budget=APPROX, unit=PATIENT, neighbours=ADD)
BATCH = [bound_all(ask(COUNT, keys=("ward",)), catalog()) for _ in range(3)]


def test_weights_are_shares() -> None:
    """Equal without a word, in proportion otherwise; one for each question."""
    assert read_weights(None, 4) == (Fraction(1, 4),) * 4
    assert read_weights([1, 3], 2) == (Fraction(1, 4), Fraction(3, 4))
    for weights, count in (([1], 2), ([1, -1], 2), ([], 0), (None, 0)):
        with pytest.raises(ParameterError):
            read_weights(weights, count)


def test_a_batch_of_one_costs_what_the_question_costs() -> None:
    """No surcharge, no discount."""
    (plan,) = price_batch(BATCH[:1], Offer(epsilon=1), TERMS).plans
    assert plan.events == price(BATCH[0], Offer(epsilon=1), TERMS).events


@pytest.mark.parametrize(("budget", "offer"), [(PURE, Offer(epsilon=1)), (ZCDP, Offer(rho=Fraction(1, 2)))])
def test_shares_sum_to_the_offer(budget: object, offer: Offer) -> None:
    """Whatever the weights, all plans together cost what was offered."""
    terms = PriceTerms(budget=budget, unit=PATIENT, neighbours=ADD)  # type: ignore[arg-type]  # budgets, by parameter
    batch = price_batch(BATCH, offer, terms, weights=[1, 2, 5])
    loss = compose([event for plan in batch.plans for event in plan.events]).loss
    assert batch.charged == tuple(event for plan in batch.plans for event in plan.events)
    if offer.epsilon is not None:
        assert loss.epsilon() == 1
    else:
        assert loss.notion("zcdp").words().startswith("ρ = 0.5")


def test_a_fixed_batch_stays_within_its_pair_and_uses_it() -> None:
    """Certified from above, and with little left over."""
    batch = price_batch(BATCH, Offer(epsilon=1, delta=1e-7), TERMS, fixed=True)
    together = compose([event for plan in batch.plans for event in plan.events]).epsilon(1e-7)
    assert 0.95 < together <= 1


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**8), Fraction(1, 10**12)])
def test_a_fixed_batch_for_next_to_nothing_has_a_price(epsilon: Fraction) -> None:
    """However small the offer, the search ends at a price that is within it."""
    batch = price_batch(BATCH, Offer(epsilon=epsilon, delta=1e-7), TERMS, fixed=True)
    together = compose([event for plan in batch.plans for event in plan.events])
    assert together.epsilon(1e-7) <= epsilon


def test_offers_that_cannot_pay_for_a_fixed_batch() -> None:
    """An ε that no number of the machine holds, and offers in the wrong form."""
    with pytest.raises(ParameterError, match=r"too small for any answer.*Nothing was charged"):
        price_batch(BATCH, Offer(epsilon=Fraction(1, 10**400), delta=1e-7), TERMS, fixed=True)
    with pytest.raises(ParameterError, match="needs an ε and a δ"):
        price_batch(BATCH, Offer(rho=1), TERMS, fixed=True)
    with pytest.raises(ParameterError):
        price_batch(BATCH, Offer(error={"a0": 3}), TERMS)
