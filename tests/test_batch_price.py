"""Prices of batches: shares that sum to one, and plans that stay within the offer together."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from discreet.accounting.account import compose
from discreet.batch_price import price_batch, read_weights
from discreet.bounding.bound import bound_all
from discreet.errors import ParameterError
from discreet.offer import BudgetLeft, Offer, Payment
from discreet.price import PriceTerms, mean_log_noise, price
from discreet.privacy import Budget
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


OFFERS = [
    Offer(share=1),
    Offer(share=Fraction(1, 20)),
    Offer(epsilon=3),
    Offer(epsilon=1),
    Offer(epsilon=Fraction(1, 5)),
    Offer(epsilon=3, delta=1e-6),
    Offer(epsilon=1, delta=1e-9),
]


@pytest.mark.parametrize("offer", OFFERS, ids=str)
@pytest.mark.parametrize(("keys", "count"), [("ward", 1), ("ward", 3), ("ward", 30), ("town", 3)])
def test_a_fixed_batch_is_never_worse_than_a_plain_one_that_keeps_what_was_stated(
    offer: Offer, keys: str, count: int
) -> None:
    """Its errors are at most those of the plain batch, where that is (ε, δ)-private by itself or only a share was said.

    Whatever is taken keeps the statement, and fits the budget.
    """
    batch = [bound_all(ask(COUNT, keys=(keys,)), catalog())] * count
    fixed = price_batch(batch, offer, TERMS, fixed=True)
    loss = compose(fixed.charged).loss
    stated = 1e-6 if offer.delta is None else float(offer.delta)
    assert BudgetLeft.of_whole(APPROX).fits(loss)
    if offer.epsilon is not None:
        assert loss.epsilon(stated) <= float(offer.epsilon) * (1 + 1e-12)
    plain = price_batch(batch, offer, TERMS)
    if offer.share is not None or compose(plain.charged).loss.epsilon(stated) <= float(offer.epsilon or 0):
        assert mean_log_noise(fixed.plans) <= mean_log_noise(plain.plans)


def test_a_plain_plan_that_is_more_than_was_stated_is_not_taken() -> None:
    """A small share of a large budget buys more Gaussian noise than its ε is by itself: the fixed plan is noisier."""
    wide = PriceTerms(budget=Budget(epsilon=8, delta=1e-6), unit=PATIENT, neighbours=ADD)
    batch, offer = BATCH * 10, Offer(epsilon=2, delta=1e-7)
    plain, fixed = price_batch(batch, offer, wide), price_batch(batch, offer, wide, fixed=True)
    assert compose(plain.charged).loss.epsilon(1e-7) > 2 >= compose(fixed.charged).loss.epsilon(1e-7)
    assert mean_log_noise(fixed.plans) > mean_log_noise(plain.plans)


@pytest.mark.parametrize("offer", OFFERS[:4], ids=str)
def test_a_fixed_batch_is_priced_again_from_its_payment(offer: Offer) -> None:
    """Whichever plan was taken, what is on record gives it again."""
    batch = price_batch(BATCH, offer, TERMS, fixed=True)
    assert batch.payment is not None
    paid = replace(TERMS, paid=Payment.read(str(batch.payment)))
    assert price_batch(BATCH, offer, paid, fixed=True).charged == batch.charged
