"""What a loss costs and what is left, in words: the same in previews, answers, receipts, budgets and histories."""

from __future__ import annotations

import math
from fractions import Fraction

from discreet.accounting.currencies import Currency
from discreet.accounting.gdp import GaussianNotion
from discreet.accounting.spending_classes import ClassCurrency
from discreet.accounting.sums import NEVER, Price
from discreet.exact import Exact, float_down, float_up, sqrt_lower
from discreet.privacy import Budget, Loss

# A share this close to a simple fraction is written as one: what is left of it are roundings.
_CLOSE = 1e-6
_SIMPLE = 20


def describe_cost(budget: Budget, loss: Loss) -> str:
    """What a loss costs: of (ε, δ) the part of the budget, and what it is by itself; otherwise ε, ρ or μ.

    >>> from discreet.accounting import events, loss_of
    >>> describe_cost(Budget(epsilon=3, delta=1e-6), loss_of(events.Pure(epsilon=1)))
    '1/3 of the budget (ε 1, pure)'
    >>> describe_cost(Budget(epsilon=3, delta=1e-6), loss_of(events.Gaussian(sensitivity=1, sigma=8)))
    '3.88 % of the budget (μ 0.125, alone ε 0.5039 at δ 1e-06)'
    """
    if budget.notion == "pure":
        return f"ε {loss.epsilon():.4g}"
    if budget.notion != "approx":
        return loss.notion(budget.notion).words()
    currency = ClassCurrency.of(budget)
    share = currency.share_of(currency.price(loss))
    return f"{describe_share(share)} ({_describe_alone(budget, loss)})"


def describe_share(share: Fraction) -> str:
    """A part of the budget, for people.

    >>> [describe_share(Fraction(1, 20)), describe_share(Fraction(2, 3)), describe_share(Fraction(1, 81))]
    ['1/20 of the budget', '2/3 of the budget', '1/81 of the budget']
    >>> [describe_share(Fraction(317, 1000)), describe_share(Fraction(1))]
    ['31.7 % of the budget', 'all of the budget']
    """
    if share >= NEVER:
        return "more than the budget"
    for simple in (share.limit_denominator(_SIMPLE), Fraction(1, max(1, round(1 / share))) if share else share):
        if simple and abs(share / simple - 1) < _CLOSE:
            return "all of the budget" if simple == 1 else f"{simple} of the budget"
    return f"{100 * float(share):.3g} % of the budget"


def _describe_alone(budget: Budget, loss: Loss) -> str:
    """What a loss is by itself: a pure ε, or its μ, where it has one, and its ε at the budget's δ."""
    pure = loss.epsilon()
    if not math.isinf(pure):
        return f"ε {pure:.4g}, pure"
    delta = float(budget.slack())
    epsilon = loss.epsilon(delta)
    alone = f"no ε follows at δ {delta:.2g}" if math.isinf(epsilon) else f"alone ε {epsilon:.4g} at δ {delta:.2g}"
    known = loss.notion("gdp") if loss.has("gdp") else None
    return f"μ {float_up(known.mu):.4g}, {alone}" if isinstance(known, GaussianNotion) else alone


def describe_left(budget: Budget, left: Exact, currency: Currency, total: Price) -> str:
    """What is left, for people; of (ε, δ) two numbers: what pure noise could still cost, and what Gaussian noise could.

    >>> budget = Budget(epsilon=3, delta=1e-6)
    >>> currency = ClassCurrency.of(budget)
    >>> describe_left(budget, Fraction(3), currency, currency.nothing)
    'ε 3 of 3 at δ 1e-06, or μ 0.6344 of Gaussian noise'
    """
    words = budget.describe_left(left)
    if not isinstance(currency, ClassCurrency):
        return words
    return f"{words}, or μ {float_down(largest_mu(currency, total)):.4g} of Gaussian noise"


def largest_mu(currency: ClassCurrency, total: Price) -> Fraction:
    """The largest μ of Gaussian noise that still fits, rounded down."""
    return sqrt_lower(2 * currency.largest_rho(total, rounded=True), bits=64)
