"""Costs in words: a part of the budget, and what it is by itself."""

from __future__ import annotations

from fractions import Fraction

import pytest

from discreet.accounting import events
from discreet.accounting.account import compose
from discreet.accounting.cost_words import describe_cost, describe_left, describe_share, largest_mu
from discreet.accounting.filters import Filter
from discreet.accounting.notions import loss_of
from discreet.accounting.spending_classes import ClassCurrency
from discreet.privacy import Budget

APPROX = Budget(epsilon=2, delta=1e-6)


@pytest.mark.parametrize(
    ("budget", "event", "words"),
    [
        (Budget(epsilon=2), events.Pure(epsilon=0.5), "ε 0.5"),
        (Budget(rho=2), events.ZeroConcentrated(rho=0.5), "ρ = 0.5"),
        (Budget(mu=2), events.Gaussian(sensitivity=1, sigma=2), "μ = 0.5"),
        (APPROX, events.Pure(epsilon=0.5), "1/4 of the budget (ε 0.5, pure)"),
        (APPROX, events.Pure(epsilon=2), "all of the budget (ε 2, pure)"),
        (APPROX, events.Approximate(epsilon=1, delta=1e-9), "1/2 of the budget (μ 1.232, alone ε 1 at δ 1e-06)"),
    ],
)
def test_a_cost_in_the_terms_of_its_budget(budget: Budget, event: events.Event, words: str) -> None:
    """The budget's own letter, or a part of it and what it is by itself."""
    assert describe_cost(budget, loss_of(event)) == words


def test_gaussian_noise_says_its_mu_and_its_epsilon() -> None:
    """Beside the part of the budget that it is charged as."""
    words = describe_cost(APPROX, loss_of(events.Gaussian(sensitivity=1, sigma=10)))
    assert words == "5.2 % of the budget (μ 0.1, alone ε 0.3969 at δ 1e-06)"


def test_what_has_no_part_in_the_budget() -> None:
    """A loss that is not private at this δ costs more than there is; a share is never rounded to zero or one."""
    lost = loss_of(events.Approximate(epsilon=1, delta=1e-3))
    assert "no ε follows" in describe_cost(APPROX, compose([events.Approximate(epsilon=1, delta=1e-3)]).loss)
    assert describe_cost(APPROX, lost).startswith("1/2 of the budget")
    assert describe_share(Fraction(999, 1000)) == "99.9 % of the budget"


def test_what_is_left_can_be_charged() -> None:
    """Both numbers: the pure ε as it is shown, and the μ as Gaussian noise."""
    spent = Filter(APPROX)
    spent.charge(events.Pure(epsilon=0.5))
    currency = ClassCurrency.of(APPROX)
    total = currency.add(currency.nothing, currency.price(loss_of(events.Pure(epsilon=0.5))))
    mu = largest_mu(currency, total)
    assert f"or μ {float(mu):.4g}" in describe_left(APPROX, spent.remaining, currency, total)
    assert spent.can(events.Gaussian(sensitivity=mu, sigma=1))
    assert not spent.can(events.Gaussian(sensitivity=mu * Fraction(1001, 1000), sigma=1))
    assert spent.can(events.Pure(epsilon=spent.remaining))
