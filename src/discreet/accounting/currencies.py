"""Currencies: the numbers that a filter counts, and the limits that it compares them with.

Each currency turns a loss into a price (a short tuple of exact numbers), adds prices, and says whether a total fits.
A filter needs nothing else, so its work does not grow with the number of charges.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, TypeAlias, assert_never

from discreet import parameters
from discreet.accounting import events
from discreet.accounting.approximate import ApproximateNotion
from discreet.accounting.gdp import GaussianNotion
from discreet.accounting.pure import PureNotion
from discreet.accounting.rdp import ORDERS, SCALE, Renyi
from discreet.accounting.zcdp import ZeroConcentratedNotion, epsilon_of, rho_for
from discreet.errors import ParameterError, UnknownLoss
from discreet.exact import Exact, Ln, ceil_div, decimal, float_down, lower, sqrt_upper, upper
from discreet.parameters import Number
from discreet.privacy import Budget, Loss, Neighbours, Unit

Price: TypeAlias = tuple[Fraction, ...]

# Sums with denominators beyond this length are rounded up to multiples of 10^-24, so that a charge stays cheap.
_LONG = 128
_GRID = 10**24
# The ε of a charge that has none: it is above every budget, and so is every sum with it.
_NEVER = Fraction(10**30)


def round_sum(x: Fraction) -> Fraction:
    """A short number itself; a long one rounded up to a multiple of 10^-24."""
    if x.denominator.bit_length() <= _LONG:
        return x
    return Fraction(ceil_div(x.numerator * _GRID, x.denominator), _GRID)


def _is_at_most(x: Fraction, limit: Fraction) -> bool:
    """Whether x ≤ limit, in plain integers, which is several times as fast as comparing Fractions."""
    return x.numerator * limit.denominator <= limit.numerator * x.denominator


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
    """Sums in one notion against limits: ``SumCurrency``, ``LogarithmCurrency`` and ``ApproximateCurrency``."""

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
            return ApproximateCurrency.of(budget, share)
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
            case "rho", ZeroConcentratedNotion() as known:
                if known.slack:
                    raise UnknownLoss(
                        "The charge has a δ of its own, and a budget in ρ has none to give. Budget (ε, δ)."
                    )
                amount = known.rho
            case "mu_squared", GaussianNotion() as known:
                amount = known.mu_squared
            case "tau", Renyi() as known:
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
        return _is_at_most(total[0], self.limit)

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
        if isinstance(amount, Ln) and amount.of.numerator.bit_length() <= _LONG:
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


@dataclass(frozen=True)
class ApproximateCurrency:
    """(ε, δ): the δ of events sum to at most ``failure``, and either their ε sum to at most ε or their ρ to ``rho``.

    ρ is the largest zCDP that converts to ε at what is left of δ. Totals are (Σε, Σρ, Σδ).

    Privacy: together (ε, δ), for adaptively chosen events. Reason: each (ε_i, δ_i) event is, outside of a failure of
    probability δ_i, ε_i-private and ε_i²/2-zCDP; failures sum to at most ``failure``. Without failures let L be the
    privacy loss at the end; δ is then at most the mean of (1 − e^(ε−L))⁺. Where Σε ≤ ε at the end, L ≤ ε and the
    term is 0. Elsewhere Σρ never exceeded ρ, so the term is the same as that of the run cut off before Σρ exceeds ρ;
    and that run is ρ-zCDP (Whitehouse, Ramdas, Rogers & Wu 2023), so the terms sum to at most the rest of δ. The
    split of δ is fixed in advance: letting it depend on the charges would not be valid.
    """

    epsilon: Fraction
    rho: Fraction
    failure: Fraction
    rest: float
    nothing: Price = (Fraction(0), Fraction(0), Fraction(0))

    @classmethod
    def of(cls, budget: Budget, share: Number) -> ApproximateCurrency:
        """The currency of a declared (ε, δ); this share of δ is kept for the δ of events."""
        part = parameters.read_nonnegative(share, "share")
        if part > 1:
            raise parameters.refuse("share", "between 0 and 1", share, "Give a share of δ, for example share=0.5.")
        epsilon, failure = lower(budget.amount()), budget.slack() * part
        rest = float_down(budget.slack() - failure)
        return cls(epsilon, rho_for(float_down(epsilon), rest), failure, rest)

    def price(self, loss: Loss) -> Price:
        pairs = loss.notion("approx") if loss.has("approx") else None
        zcdp = loss.notion("zcdp") if loss.has("zcdp") else None
        if isinstance(pairs, ApproximateNotion):
            epsilon, delta = pairs.basic_total()
            squares = sum((part.count * upper(part.epsilon) ** 2 for part in pairs.parts), Fraction(0))
            rho = squares / 2
            if not delta and isinstance(zcdp, ZeroConcentratedNotion) and not zcdp.slack:
                rho = min(rho, zcdp.rho)
            return round_sum(upper(epsilon)), round_sum(rho), round_sum(delta)
        if isinstance(zcdp, ZeroConcentratedNotion):
            return _NEVER, round_sum(zcdp.rho), round_sum(zcdp.slack)
        raise UnknownLoss("The charge is known neither as (ε, δ) nor in zCDP, so an (ε, δ) filter cannot take it.")

    def add(self, total: Price, price: Price) -> Price:
        (spent, rho, failure), (more, more_rho, more_failure) = total, price
        # Most charges have no δ of their own.
        failed = round_sum(failure + more_failure) if more_failure else failure
        return round_sum(spent + more), round_sum(rho + more_rho), failed

    def fits(self, total: Price) -> bool:
        spent, rho, failure = total
        if not _is_at_most(failure, self.failure):
            return False
        return _is_at_most(spent, self.epsilon) or _is_at_most(rho, self.rho)

    def amount_of(self, total: Price) -> Exact:
        spent, rho, _ = total
        converted = epsilon_of(float(rho), self.rest) if self.rest > 0 else math.inf
        return spent if math.isinf(converted) else min(spent, decimal(converted))

    def sums(self, total: Price) -> Mapping[str, Fraction]:
        spent, rho, failure = total
        named = {"rho": rho, "delta": failure}
        return named if spent >= _NEVER else {"epsilon": spent} | named


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
