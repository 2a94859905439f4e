"""Offers: in one form, in the currency of the budget, within what one question may cost."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from discreet.accounting.spending_classes import ClassCurrency
from discreet.bounding.bound import bound
from discreet.errors import BudgetExceeded, ParameterError
from discreet.exact import ln
from discreet.offer import BudgetLeft, BudgetOffer, Offer
from discreet.price import PriceTerms, price
from discreet.privacy import Budget
from tests.worlds.hospital import COUNT, ask, catalog
from tests.worlds.prices import ADD, APPROX, PATIENT, PURE, ZCDP, priced


@pytest.mark.parametrize(
    ("budget", "offer"),
    [
        (PURE, {}),
        (PURE, {"epsilon": 1, "rho": 1}),
        (PURE, {"rho": 1}),
        (ZCDP, {"epsilon": 1}),
        (PURE, {"epsilon": 0}),
        (PURE, {"epsilon": float("nan")}),
        (ZCDP, {"rho": -1}),
        (PURE, {"error": {}}),
        (PURE, {"error": {"a0": 0}}),
        (PURE, {"epsilon": 1, "level": 1}),
        (APPROX, {"epsilon": 1, "delta": 0}),
    ],
)
def test_bad_offers_are_refused(budget: Budget, offer: dict[str, Any]) -> None:
    """An offer in no form, in two, in the wrong currency or out of range."""
    with pytest.raises(ParameterError):
        priced(ask(COUNT, keys=("ward",)), budget, **offer)


def test_a_share_of_mu_is_a_share_of_its_square() -> None:
    """μ² adds up: a quarter of μ = 1 is μ = 1/2. An ε has no meaning there, and names of groups have no δ."""
    assert BudgetOffer(Offer(share=Fraction(1, 4)), Budget(mu=1)).to_amount() == Fraction(1, 8)
    plan = priced(ask(COUNT), Budget(mu=1), share=Fraction(1, 4))
    assert plan.loss.notion("gdp").words() == "μ = 0.5"
    with pytest.raises(ParameterError, match=r"share=0.1.*Nothing was charged"):
        priced(ask(COUNT), Budget(mu=1), epsilon=1)
    with pytest.raises(BudgetExceeded, match="Declare the keys"):
        BudgetOffer(Offer(share=1), Budget(mu=1)).key_delta()


def test_an_offer_is_turned_into_the_currency_of_the_budget() -> None:
    """ε stays ε in a pure budget, a logarithm is rounded down, ρ stays ρ; with a δ, ε becomes a share."""
    assert BudgetOffer(Offer(epsilon=Fraction(1, 2)), PURE).to_amount() == Fraction(1, 2)
    assert BudgetOffer(Offer(epsilon=ln(2)), PURE).to_amount() <= ln(2)
    assert BudgetOffer(Offer(rho=Fraction(1, 7)), APPROX).to_amount() == Fraction(1, 7)
    assert BudgetOffer(Offer(epsilon=1), APPROX).to_share() == Fraction(1, 3)
    assert BudgetOffer(Offer(share=0.25), PURE).to_amount() == Fraction(3, 4)
    with pytest.raises(ParameterError, match=r"too small for any answer.*Nothing was charged"):
        BudgetOffer(Offer(epsilon=Fraction(1, 10**400)), APPROX).to_amount()


@pytest.mark.parametrize(
    ("budget", "offer", "most"),
    [(PURE, Offer(epsilon=1), Fraction(1)), (ZCDP, Offer(rho=1), Fraction(1)), (APPROX, Offer(epsilon=1), Fraction(1))],
)
def test_one_question_may_cost_so_much_and_not_more(budget: Budget, offer: Offer, most: Fraction) -> None:
    """The limit itself is allowed; a little more is refused, and the message names the codebook's word."""
    question = (bound(ask(COUNT, keys=("ward",)), catalog()),)
    terms = PriceTerms(budget=budget, unit=PATIENT, neighbours=ADD, per_query=most)
    price(question, offer, terms)
    with pytest.raises(BudgetExceeded, match=r"per_query.*Nothing was charged"):
        price(question, offer, replace(terms, per_query=most * Fraction(999, 1000)))


def test_the_delta_of_keys() -> None:
    """What was said, or a tenth of δ for the first question and less for later ones; some budgets have none to give."""
    assert BudgetOffer(Offer(epsilon=1, delta=1e-9), APPROX).key_delta() == Fraction(1, 10**9)
    spent, currency = Fraction(0), ClassCurrency.of(APPROX)
    for number in range(1, 30):
        left = BudgetLeft(currency, (Fraction(0), Fraction(0), spent, *currency.nothing[3:]))
        found = BudgetOffer(Offer(epsilon=1), APPROX, left=left).key_delta()
        assert float(found) == pytest.approx(float(APPROX.slack()) / 5 / (number * (number + 1)), rel=1e-6)
        spent += found
    assert spent < APPROX.slack() / 5
    with pytest.raises(BudgetExceeded, match="Declare the keys"):
        BudgetOffer(Offer(epsilon=1), PURE).key_delta()
