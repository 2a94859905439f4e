"""Tests of what an offer buys in Gaussian noise: the price is what was offered, and no more."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import discreet
from discreet.accounting.account import compose
from discreet.accounting.events import squared_mu
from discreet.errors import UsageError
from discreet.gaussian_price import find_mu_squared, make_event
from discreet.offer import Offer
from discreet.privacy import Neighbours, Unit
from tests.publish.releases import make_visits, open_clinic

VISITS = make_visits(rows=30)


@pytest.mark.parametrize(
    ("budget", "offer"),
    [
        (discreet.Budget(rho=1), Offer(rho=Fraction(1, 10))),
        (discreet.Budget(epsilon=3, delta=1e-6), Offer(epsilon=1, alone=True)),
        (discreet.Budget(mu=1), Offer(share=Fraction(1, 4))),
    ],
)
def test_what_is_bought_costs_what_was_offered(budget: Any, offer: Offer) -> None:
    """Also as a control: twice the μ² would cost more than was offered."""
    terms = open_clinic(VISITS, budget=budget).terms_for("analyst")
    found = find_mu_squared(offer, terms)
    event = make_event(found, Unit("patient"), Neighbours.ADD_REMOVE)
    assert squared_mu(event) == found
    delta = Fraction(1, 10**6)
    if offer.rho is not None:
        assert found == Fraction(1, 5)
    elif offer.epsilon is not None:
        assert 0.999 < compose([event]).loss.epsilon(delta) <= 1
        assert compose([make_event(2 * found, Unit("patient"), Neighbours.ADD_REMOVE)]).loss.epsilon(delta) > 1.3
    else:
        assert Fraction(1, 5) < found <= Fraction(1, 4)


def test_pure_budgets_are_refused() -> None:
    with pytest.raises(UsageError, match=r"pure ε.*Nothing was charged"):
        find_mu_squared(Offer(epsilon=1), open_clinic(VISITS, budget=discreet.Budget(epsilon=3)).terms_for("analyst"))
