"""Offers: in one form, in the currency of the budget, within what one question may cost."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from discreet.errors import BudgetExceeded, ParameterError, UnknownLoss
from discreet.exact import ln
from discreet.offer import BudgetOffer, Offer
from discreet.privacy import Budget
from tests.worlds.hospital import COUNT, ask
from tests.worlds.prices import APPROX, PURE, ZCDP, priced


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


def test_a_gaussian_dp_budget_cannot_pay() -> None:
    """Discrete noise has no μ."""
    with pytest.raises(UnknownLoss, match="Nothing was charged"):
        priced(ask(COUNT), Budget(mu=1), rho=1)


def test_an_offer_is_turned_into_the_currency_of_the_budget() -> None:
    """ε stays ε in a pure budget, a logarithm is rounded down, ρ stays ρ; with a δ, ε becomes ρ."""
    assert BudgetOffer(Offer(epsilon=Fraction(1, 2)), PURE).to_amount() == Fraction(1, 2)
    assert BudgetOffer(Offer(epsilon=ln(2)), PURE).to_amount() <= ln(2)
    assert BudgetOffer(Offer(rho=Fraction(1, 7)), APPROX).to_amount() == Fraction(1, 7)
    assert 0 < BudgetOffer(Offer(epsilon=1), APPROX).to_amount() < Fraction(1, 2)
    with pytest.raises(ParameterError, match=r"too small for any answer.*Nothing was charged"):
        BudgetOffer(Offer(epsilon=Fraction(1, 10**400)), APPROX).to_amount()


@pytest.mark.parametrize(
    ("budget", "offer", "most"),
    [(PURE, Offer(epsilon=1), Fraction(1)), (ZCDP, Offer(rho=1), Fraction(1)), (APPROX, Offer(epsilon=1), Fraction(1))],
)
def test_one_question_may_cost_so_much_and_not_more(budget: Budget, offer: Offer, most: Fraction) -> None:
    """The limit itself is allowed; a little more is refused, and the message names the codebook's word."""
    paid = BudgetOffer(offer, budget, most)
    paid.check_most(paid.to_amount())
    with pytest.raises(BudgetExceeded, match=r"per_query.*Nothing was charged"):
        paid.check_most(paid.to_amount() * Fraction(1001, 1000))


def test_the_delta_of_keys() -> None:
    """What was said, or a hundredth of half of the budget's δ; a budget without δ has none to give."""
    assert BudgetOffer(Offer(epsilon=1, delta=1e-9), APPROX).key_delta() == Fraction(1, 10**9)
    assert BudgetOffer(Offer(epsilon=1), APPROX).key_delta() == APPROX.slack() / 200
    with pytest.raises(BudgetExceeded, match="Declare the keys"):
        BudgetOffer(Offer(epsilon=1), PURE).key_delta()
