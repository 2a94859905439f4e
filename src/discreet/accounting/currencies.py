"""Currencies: the numbers that a filter counts, and the limits that it compares them with.

Each currency turns a loss into a price (a short tuple of exact numbers), adds prices, and says whether a total fits.
A filter needs nothing else, so its work does not grow with the number of charges.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Protocol, assert_never

from discreet.accounting import events
from discreet.accounting.gdp import GaussianNotion
from discreet.accounting.pure import PureNotion
from discreet.accounting.rdp import ORDERS, SCALE, Renyi
from discreet.accounting.spending_classes import ClassCurrency
from discreet.accounting.sums import LONG, Price, is_at_most, round_sum
from discreet.accounting.zcdp import ZeroConcentratedNotion
from discreet.errors import ParameterError, UnknownLoss
from discreet.exact import Exact, Ln, decimal, float_down, sqrt_upper, upper
from discreet.late_dataclass import dataclass
from discreet.parameters import Number
from discreet.privacy import Budget, Loss, Neighbours, Unit


def dearest_event(budget: Budget, *, unit: Unit, neighbours: Neighbours) -> events.Event:
    """The dearest thing that fits a budget, as an event: what the whole budget may come to."""
    common: dict[str, Any] = {"unit": unit, "neighbours": neighbours}
    match budget.notion:
        case "pure":
            return events.Pure(epsilon=budget.amount(), **common)
        case "approx":
            return events.Approximate(epsilon=budget.amount(), delta=budget.slack(), **common)
        case "zcdp":
            return events.ZeroConcentrated(rho=upper(budget.amount()), **common)
        case "gdp":
            return events.Gaussian(sensitivity=upper(budget.amount()), sigma=1, **common)
        case unknown:
            assert_never(unknown)


class Currency(Protocol):
    """Sums in one notion against limits: ``SumCurrency``, ``LogarithmCurrency`` and ``ClassCurrency``."""

    @property
    def nothing(self) -> Price:
        """The total before the first charge."""
        ...

    def price(self, loss: Loss) -> Price:
        """The price of a loss in this currency; refused where it is not known."""
        ...

    def add(self, total: Price, price: Price) -> Price:
        """The total after one more charge."""
        ...

    def fits(self, total: Price) -> bool:
        """Whether a total is within the limits."""
        ...

    def amount_of(self, total: Price) -> Exact:
        """A total in the budget's own form, rounded up."""
        ...

    def sums(self, total: Price) -> Mapping[str, Fraction]:
        """A total by the names of what is summed."""
        ...


def choose_currency(budget: Budget, notion: str | None, order: float | None, share: Number) -> Currency:
    """The currency in which a filter for this budget counts."""
    kind = budget.notion if notion is None else notion
    if kind == "pld":
        raise UnknownLoss(
            "A filter on privacy-loss distributions is not valid when events are chosen after seeing answers. "
            "Use the budget's own notion here, and compose([...]) for a plan that is fixed in advance."
        )
    if order is not None and kind != "rdp":
        raise ParameterError("order", "goes with notion='rdp' only", "Leave it out.")
    match kind, budget.notion:
        case "pure", "pure":
            limit = budget.amount()
            return LogarithmCurrency(limit) if isinstance(limit, Ln) else SumCurrency("epsilon", limit)
        case "zcdp", "zcdp":
            return SumCurrency("rho", upper(budget.amount()))
        case "gdp", "gdp":
            return SumCurrency("mu_squared", upper(budget.amount()) ** 2)
        case "approx", "approx":
            return ClassCurrency.of(budget, share)
        case "rdp", "approx":
            return _make_renyi_currency(budget, order)
    raise ParameterError(
        "notion", f"does not fit a budget in {budget.notion!r}", "Leave it out, or state another budget."
    )


@dataclass(frozen=True)
class SumCurrency:
    """One number that adds up to at most ``limit``: ε, ρ, μ², or τ at the ``order``; ``name`` says which."""

    name: str
    limit: Fraction
    order: float = 0.0
    delta: float = 0.0
    nothing: Price = (Fraction(0),)

    def price(self, loss: Loss) -> Price:
        match self.name, loss.notion(_NOTIONS[self.name]):
            case "epsilon", PureNotion() as known:
                amount = upper(known.amount)
            case "rho", ZeroConcentratedNotion(rho, slack):
                _refuse_failure(slack, "ρ")
                amount = rho
            case "mu_squared", GaussianNotion(mu_squared, slack):
                _refuse_failure(slack, "μ")
                amount = mu_squared
            case "tau", Renyi() as known:
                _refuse_failure(known.slack, "ε at a single order")
                if self.order not in known.orders:
                    raise UnknownLoss("The charge has no bound at the order of this filter.")
                amount = Fraction(known.values[known.orders.index(self.order)], SCALE)
            case _:
                raise UnknownLoss(f"The charge cannot be stated as {self.name}.")
        return (round_sum(amount),)

    def add(self, total: Price, price: Price) -> Price:
        (spent,), (more,) = total, price
        return (round_sum(spent + more),)

    def fits(self, total: Price) -> bool:
        return is_at_most(total[0], self.limit)

    def amount_of(self, total: Price) -> Exact:
        (spent,) = total
        if self.name == "mu_squared":
            return sqrt_upper(spent)
        if self.name == "tau" and spent:
            curve = Renyi((self.order,), (math.ceil(spent * SCALE),))
            return decimal(curve.epsilon(self.delta))
        return spent

    def sums(self, total: Price) -> Mapping[str, Fraction]:
        return {self.name: total[0]}


def _refuse_failure(slack: Fraction, counted: str) -> None:
    if slack:
        raise UnknownLoss(f"The charge has a δ of its own, and a budget in {counted} has none to give. Budget (ε, δ).")


_NOTIONS = {"epsilon": "pure", "rho": "zcdp", "mu_squared": "gdp", "tau": "rdp"}


@dataclass(frozen=True)
class LogarithmCurrency:
    """Pure ε against a limit ln(x): logarithms are multiplied under the logarithm, so that ln 3 twice fits ln 9."""

    limit: Ln
    nothing: Price = (Fraction(0), Fraction(1))

    def price(self, loss: Loss) -> Price:
        known = loss.notion("pure")
        if not isinstance(known, PureNotion):
            raise UnknownLoss("The charge cannot be stated as a pure ε.")
        amount = known.amount
        if isinstance(amount, Ln) and amount.of.numerator.bit_length() <= LONG:
            return Fraction(0), amount.of
        return round_sum(upper(amount)), Fraction(1)

    def add(self, total: Price, price: Price) -> Price:
        (plain, product), (more, factor) = total, price
        return round_sum(plain + more), round_sum(product * factor)

    def fits(self, total: Price) -> bool:
        plain, product = total
        if not plain:
            return product <= self.limit.of
        return upper(self.amount_of(total)) <= self.limit.lower

    def amount_of(self, total: Price) -> Exact:
        plain, product = total
        if product == 1:
            return plain
        return plain + Ln(product).upper if plain else Ln(product)

    def sums(self, total: Price) -> Mapping[str, Fraction]:
        return {"epsilon": upper(self.amount_of(total))}


def _make_renyi_currency(budget: Budget, order: float | None) -> SumCurrency:
    """τ at one order, against the largest τ that converts to the budget: ε − ln(1 − 1/α) + ln(δα)/(α − 1)."""
    epsilon, delta = float_down(budget.amount()), float_down(budget.slack())
    if order is not None and order not in ORDERS:
        raise ParameterError("order", "is not one of the orders that are kept", "Leave it out to have the best chosen.")

    def limit(a: float) -> float:
        terms = (epsilon, -math.log1p(-1 / a), math.log(delta) / (a - 1), math.log(a) / (a - 1))
        return math.fsum(terms) - 2.0**-46 * math.fsum(map(abs, terms))

    # By default the order that allows most Gaussian noise, whose curve is a line through zero.
    best = float(order) if order is not None else max(ORDERS, key=lambda a: limit(a) / a)
    if limit(best) <= 0:
        raise ParameterError("budget", "is too small for a filter at this order", "Raise it, or leave notion out.")
    return SumCurrency("tau", Fraction(limit(best)), order=best, delta=delta)
