"""The most that a question of an agent may cost, as a share of the budget, and what a question would cost as one.

An agent always says it. A question is then asked at an explicit share, so that it costs no more, whatever others ask in
the meantime.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import assert_never

from discreet.accounting.currencies import SumCurrency
from discreet.accounting.spending_classes import ClassCurrency
from discreet.errors import ParameterError
from discreet.exact import float_up, lower, upper
from discreet.privacy import Budget, Loss

_FORM = re.compile(r"\s*(share|epsilon|rho)\s*[=:]?\s*([0-9]{1,9}(?:\.[0-9]{1,18})?|[0-9]{1,9}/[1-9][0-9]{0,8})\s*")
_FIX = 'Say at_most="share 0.02" (of the whole budget), or "epsilon 0.1" or "rho 0.01". Nothing was charged.'


def read_at_most(text: str, budget: Budget) -> Fraction:
    """The share of the budget that a text allows.

    >>> read_at_most("share 0.02", Budget(epsilon=1)), read_at_most("epsilon 0.1", Budget(epsilon=2))
    (Fraction(1, 50), Fraction(1, 20))
    """
    found = _FORM.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ParameterError("at_most", "is not an amount that can be read", _FIX)
    word, amount = found[1], Fraction(found[2])
    if word != "share":
        if word not in budget.kind.offers or (word == "rho" and budget.notion != "zcdp"):
            rule = f"is in {word}, and this budget is counted in {budget.kind.word}"
            raise ParameterError("at_most", rule, 'Say at_most="share 0.02". Nothing was charged.')
        amount = amount / upper(budget.amount())
    if not 0 < amount <= 1:
        raise ParameterError("at_most", "must be above nothing and no more than the whole budget", _FIX)
    return amount


def find_share(budget: Budget, loss: Loss) -> Fraction:
    """What part of a whole budget a loss is, rounded up. More than the budget is more than 1."""
    match budget.notion:
        case "approx":
            currency = ClassCurrency.of(budget)
            return currency.share_of(currency.price(loss))
        case "pure":
            (epsilon,) = SumCurrency("epsilon", Fraction(0)).price(loss)
            return epsilon / lower(budget.amount())
        case "zcdp":
            (rho,) = SumCurrency("rho", Fraction(0)).price(loss)
            return rho / lower(budget.amount())
        case "gdp":
            (squared,) = SumCurrency("mu_squared", Fraction(0)).price(loss)
            return squared / lower(budget.amount()) ** 2
        case unknown:
            assert_never(unknown)


def describe_share(share: Fraction) -> str:
    """A share for people and agents: ``2 % of the budget``."""
    return f"{100 * float_up(share):.3g} % of the whole budget"
