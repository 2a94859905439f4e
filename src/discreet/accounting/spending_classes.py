"""The filter of (ε, δ) budgets: several sums side by side, of which one has to stay within its limit.

Every charge is counted in all the forms it has: its ε, its μ², its Rényi divergence τ at a few orders, and the δ of its
own failures. A *class* is one of these sums with a limit that was fixed in advance. A charge is accepted while some
class holds. So pure noise, Gaussian noise and choices may be mixed, and their order does not matter.

Privacy: everything that was accepted is together (ε, δ)-private, for adaptively chosen charges. Statement and proof:
docs/proofs/filter-over-classes.md. In short: sums never fall, so the class that holds at the end held all the way. The
transcripts are divided by the first class that holds at their end; those of class j are transcripts of a run that was
cut off before class j broke, and that run is (ε, δ_j)-private. The δ_j and the δ kept for failures sum to δ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache

from discreet import parameters
from discreet.accounting import events
from discreet.accounting.approximate import ApproximateNotion
from discreet.accounting.gdp import GaussianNotion, mu_for, mu_squared_of
from discreet.accounting.notions import loss_of
from discreet.accounting.rdp import ORDERS, SCALE, Renyi
from discreet.accounting.rounding import to_float
from discreet.accounting.sums import NEVER, Price, is_at_most, round_price, round_sum
from discreet.accounting.zcdp import ZeroConcentratedNotion, epsilon_of, rho_for
from discreet.errors import UnknownLoss
from discreet.exact import Exact, ceil_div, decimal, float_down, lower, upper
from discreet.late_dataclass import dataclass
from discreet.parameters import Number
from discreet.privacy import Budget, Loss

# The orders at which every charge is counted, whatever the budget is: so caps and later budgets can use the same sums.
COUNTED_ORDERS = (
    1.5, 2.0, 2.8, 4.0, 5.6, 8.0, 11.0, 16.0, 23.0, 32.0, 45.0, 64.0, 91.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0,
)  # fmt: skip
# What is summed, in the order of a price. The first three are what version 0.1.0 wrote.
OLD_SUMS = ("epsilon", "rho", "delta")
SUMS = (*OLD_SUMS, "charges", "share", "mu_squared", *(f"tau_{order:g}" for order in COUNTED_ORDERS))

# How δ is divided. The part for failures may be chosen; of the rest, three quarters are for μ. Of the last quarter
# three quarters are for the order that is best for ε; the orders that are best for ε/2, ε/4 and ε/8 share the rest.
FAILURE_PART = Fraction(1, 5)
_GAUSSIAN_PART = Fraction(3, 4)
_MAIN_ORDER_PART = Fraction(3, 4)
_FURTHER_ORDERS = 3
# Of version 0.1.0: one half for failures, the other for turning ρ into ε.
OLD_FAILURE_PART = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class SpendingClass:
    """One sum and its limit: while the sum is within the limit, what was charged is (ε, ``delta``)-private."""

    name: str
    limit: Fraction
    delta: float = 0.0
    order: float = 0.0

    def to_epsilon(self, total: Fraction) -> float:
        """The ε that a sum means at the δ of this class, rounded up."""
        match self.name:
            case "epsilon":
                return to_float(total)
            case "rho":
                return epsilon_of(to_float(total), self.delta)
            case "mu_squared":
                return GaussianNotion(total).epsilon(self.delta)
            case _:
                scaled = ceil_div(total.numerator * SCALE, total.denominator)
                return Renyi((self.order,), (scaled,)).epsilon(self.delta) if total else 0.0

    @property
    def gaussian(self) -> Fraction:
        """How much of this sum Gaussian noise of ρ = 1 costs; zero where it has no place in the class."""
        match self.name:
            case "epsilon":
                return Fraction(0)
            case "rho":
                return Fraction(1)
            case "mu_squared":
                return Fraction(2)
            case _:
                return Fraction(self.order)


@dataclass(frozen=True)
class ClassCurrency:
    """(ε, δ): the failures of charges sum to at most ``failure``, and the sum of some class is within its limit.

    A charge that comes before all others may also use the whole ε and δ at once, as (ε, δ); after it nothing else fits.
    ``names`` are the sums in their order: those of version 0.1.0 (Σε, Σρ, Σδ), or all.
    """

    epsilon: Fraction
    delta: Fraction
    failure: Fraction
    classes: tuple[SpendingClass, ...]
    names: tuple[str, ...] = SUMS

    @classmethod
    def of(cls, budget: Budget, share: Number = FAILURE_PART) -> ClassCurrency:
        """The currency of a declared (ε, δ); this share of δ is kept for the δ of charges."""
        part = parameters.read_nonnegative(share, "share")
        if part > 1:
            raise parameters.refuse("share", "between 0 and 1", share, "Give a share of δ, for example share=0.2.")
        epsilon, failure = lower(budget.amount()), budget.slack() * part
        rest = budget.slack() - failure
        return cls(epsilon, budget.slack(), failure, _make_classes(epsilon, rest))

    @classmethod
    def of_old_ledger(cls, budget: Budget) -> ClassCurrency:
        """The currency of ledgers that version 0.1.0 opened: Σε ≤ ε, or Σρ within what converts at half of δ."""
        epsilon, failure = lower(budget.amount()), budget.slack() * OLD_FAILURE_PART
        rest = float_down(budget.slack() - failure)
        by_rho = SpendingClass("rho", rho_for(float_down(epsilon), rest), rest)
        return cls(epsilon, budget.slack(), failure, (SpendingClass("epsilon", epsilon), by_rho), OLD_SUMS)

    @cached_property
    def nothing(self) -> Price:
        """The total before the first charge."""
        return (Fraction(0),) * len(self.names)

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    @cached_property
    def _limits(self) -> tuple[tuple[int, Fraction], ...]:
        return tuple((self._places[each.name], each.limit) for each in self.classes)

    def price(self, loss: Loss) -> Price:
        """A loss in every sum; refused where it has no form that can be summed."""
        return price_in_all(loss)[: len(self.names)]

    def add(self, total: Price, price: Price) -> Price:
        """The total after one more charge."""
        sums = [round_sum(one + more) if more else one for one, more in zip(total, price, strict=True)]
        if "share" in self._places:
            place = self._places["share"]
            sums[place] = round_sum(total[place] + (price[place] or self.share_of(price)))
        return tuple(sums)

    def share_of(self, price: Price) -> Fraction:
        """The part of the whole budget that a price is: of the class in which it is least."""
        least = min((price[place] / limit for place, limit in self._limits if limit), default=NEVER)
        # Rounded down, so that shares that sum to one fit. What fits is decided by the sums of the classes alone.
        return shorten_down(least, 40) if least else least

    def take_over(self, total: Price, before: ClassCurrency) -> Price:
        """A total of another ε in the terms of this one: only the shares that were asked for are parts of ε."""
        if "share" not in self._places or len(total) != len(self.names):
            return total
        asked = round_sum(total[self._places["share"]] * before.epsilon / self.epsilon)
        return tuple(asked if name == "share" else value for name, value in zip(self.names, total))

    def fits(self, total: Price) -> bool:
        """Whether a total is within the limits."""
        failure = total[2]
        if is_at_most(failure, self.failure) and any(is_at_most(total[at], limit) for at, limit in self._limits):
            return True
        first = "charges" in self._places and total[self._places["charges"]] == 1
        return first and is_at_most(total[0], self.epsilon) and is_at_most(failure, self.delta)

    def amount_of(self, total: Price) -> Exact:
        """The ε that a total means, rounded up: of the class in which it is least."""
        found = [each.to_epsilon(total[at]) for each, (at, _) in zip(self.classes, self._limits) if total[at] < NEVER]
        least = min(found, default=math.inf)
        if total[0] < NEVER and not decimal(least) < total[0]:
            return total[0]
        return NEVER if math.isinf(least) else decimal(least)

    def sums(self, total: Price) -> Mapping[str, Fraction]:
        """A total by the names of what is summed, without sums that some charge has no part in."""
        return {name: value for name, value in zip(self.names, total) if value < NEVER}

    def list_left(self, total: Price) -> Sequence[tuple[SpendingClass, Fraction]]:
        """The classes that hold, each with what is left of its limit."""
        if not is_at_most(total[2], self.failure):
            return ()
        pairs = zip(self.classes, self._limits)
        return [(each, limit - total[at]) for each, (at, limit) in pairs if is_at_most(total[at], limit)]

    def share_left(self, total: Price) -> Fraction:
        """The part of the budget that shares may still be asked for."""
        left = [rest / each.limit for each, rest in self.list_left(total) if each.limit]
        if not left:
            return Fraction(0)
        asked = total[self._places["share"]] if "share" in self._places else 1 - max(left)
        return max(Fraction(0), 1 - asked)

    def allow(self, total: Price, share: Fraction) -> Sequence[tuple[SpendingClass, Fraction]]:
        """What a share of the budget may cost in each class that holds.

        It is the share of the limit where the class has as much left as shares were left; otherwise the same part of
        what is left. A charge that stays within one of these leaves enough for all shares that are left: by induction,
        shares that sum to one fit, whatever noise each of them bought.
        """
        left = self.share_left(total)
        found = []
        for each, rest in self.list_left(total):
            whole = rest >= left * each.limit * (1 - Fraction(1, 1 << 28))
            found.append((each, min(rest, share * each.limit) if whole else share / left * rest))
        return found

    def part_of(self, each: SpendingClass, price: Price) -> Fraction:
        """What a price is in one class."""
        return price[self._places[each.name]]

    def largest_epsilon(self, total: Price) -> Fraction:
        """The largest ε of one pure release that still fits, rounded down."""
        best = Fraction(0)
        for each, rest in self.list_left(total):
            found = rest if each.name == "epsilon" else _find_pure(each, rest)
            best = max(best, found)
        while best and not self.fits(self.add(total, self._price_pure(best))):
            best *= 1 - Fraction(1, 1 << 30)
            if best < _LEAST:
                return Fraction(0)
        return best

    def largest_rho(self, total: Price, *, rounded: bool = False) -> Fraction:
        """The largest ρ of Gaussian noise that still fits, rounded down; ``rounded``: of noise that has a μ."""
        found = [
            rest / each.gaussian
            for each, rest in self.list_left(total)
            if each.gaussian and (rounded or each.name != "mu_squared")
        ]
        best = max(found, default=Fraction(0)) * (1 - Fraction(1, 1 << 28))
        # A short number: its price is then exact, or rounded up by less than what was taken off.
        return shorten_down(best) if best > _LEAST * _LEAST else Fraction(0)

    def _price_pure(self, epsilon: Fraction) -> Price:
        return self.price(loss_of(events.Pure(epsilon=epsilon)))


# Less than this is nothing: with so small an ε noise is all that is left.
_LEAST = Fraction(1, 10**12)


def shorten_down(x: Fraction, bits: int = 30) -> Fraction:
    """A number of about this many binary digits, at or below x > 0."""
    shift = bits - (x.numerator.bit_length() - x.denominator.bit_length())
    scaled = x * Fraction(2) ** shift
    return Fraction(scaled.numerator // scaled.denominator) / Fraction(2) ** shift


@lru_cache(maxsize=256)
def _make_classes(epsilon: Fraction, rest: Fraction) -> tuple[SpendingClass, ...]:
    """The classes of an ε at what is left of δ: Σε, Σμ², and Στ at the orders that are best for ε, ε/2, ε/4, ε/8."""
    found = [SpendingClass("epsilon", epsilon)]
    size, slack = float_down(epsilon), float_down(rest * _GAUSSIAN_PART)
    if slack > 0:
        found.append(SpendingClass("mu_squared", mu_for(size, slack) ** 2, slack))
    last = rest * (1 - _GAUSSIAN_PART)
    parts = [_MAIN_ORDER_PART, *[(1 - _MAIN_ORDER_PART) / _FURTHER_ORDERS] * _FURTHER_ORDERS]
    known: dict[float, SpendingClass] = {}
    for halvings, part in enumerate(parts):
        slack = float_down(last * part)
        if slack <= 0:
            continue
        order = max(COUNTED_ORDERS, key=lambda a: _find_renyi_limit(size / 2**halvings, slack, a) / a)
        limit = _find_renyi_limit(size, slack, order)
        if limit > 0 and order not in known:
            known[order] = SpendingClass(f"tau_{order:g}", Fraction(limit), slack, order)
    return (*found, *known.values())


def _find_renyi_limit(epsilon: float, delta: float, order: float) -> float:
    """The largest τ that converts to ε at δ, rounded down: ε − ln(1 − 1/α) + ln(δα)/(α − 1)."""
    terms = (epsilon, -math.log1p(-1 / order), math.log(delta) / (order - 1), math.log(order) / (order - 1))
    return math.fsum(terms) - 2.0**-46 * math.fsum(map(abs, terms))


def _find_pure(each: SpendingClass, rest: Fraction) -> Fraction:
    """About the largest ε of one pure release whose part in this class is within what is left."""
    low, high = 0.0, to_float(rest) + 1.0
    while _count_pure(each, high) < rest and high < 1e6:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _count_pure(each, middle) <= rest else (low, middle)
    return Fraction(low) * (1 - Fraction(1, 1 << 30))


def _count_pure(each: SpendingClass, epsilon: float) -> float:
    """What a pure release costs in a class, in floats: a guess, which is checked exactly."""
    if each.name == "rho":
        return epsilon * epsilon / 2
    if each.name == "mu_squared":
        return float(mu_squared_of(Fraction(2 * epsilon))) if epsilon else 0.0
    a = each.order
    moment = math.log1p(math.exp(-(2 * a - 1) * epsilon)) - math.log1p(math.exp(-epsilon))
    return min(epsilon, a * epsilon * epsilon / 2, epsilon + moment / (a - 1))


_ORDER_PLACES = tuple(ORDERS.index(order) for order in COUNTED_ORDERS)


def price_in_all(loss: Loss) -> Price:
    """A loss in all sums, rounded up; ``NEVER`` where it has no such form.

    Forms with a δ hold outside of one failure, the same for all of them where the δ are equal; different δ are those of
    different failures and are added.
    """
    known = {notion.kind: notion for notion in loss.notions}
    pairs, zcdp, curve, gaussian = (known.get(kind) for kind in ("approx", "zcdp", "rdp", "gdp"))
    epsilon = rho = mu_squared = NEVER
    failures: set[Fraction] = set()
    if isinstance(pairs, ApproximateNotion):
        amount, delta = pairs.basic_total()
        epsilon = upper(amount)
        rho = sum((part.count * upper(part.epsilon) ** 2 for part in pairs.parts), Fraction(0)) / 2
        failures.add(delta)
    if isinstance(zcdp, ZeroConcentratedNotion):
        rho = min(rho, zcdp.rho)
        failures.add(zcdp.slack)
    if isinstance(gaussian, GaussianNotion):
        mu_squared = gaussian.mu_squared
        failures.add(gaussian.slack)
    if isinstance(curve, Renyi):
        failures.add(curve.slack)
    if not failures:
        raise UnknownLoss("The charge is known neither as (ε, δ) nor in zCDP, so an (ε, δ) filter cannot take it.")
    taus = [NEVER if rho >= NEVER else min(epsilon, rho * Fraction(order)) for order in COUNTED_ORDERS]
    if isinstance(curve, Renyi) and curve.orders is ORDERS:
        taus = [min(tau, Fraction(curve.values[at], SCALE)) for tau, at in zip(taus, _ORDER_PLACES)]
    return (
        round_sum(epsilon),
        round_sum(rho),
        round_sum(sum(failures, Fraction(0))),
        Fraction(1),
        Fraction(0),
        round_price(mu_squared),
        *map(round_price, taus),
    )


def price_from_old_sums(total: Price) -> Price:
    """Sums of version 0.1.0 (Σε, Σρ, Σδ) in all sums: τ is at most αρ, and at most ε; a μ is not known."""
    epsilon, rho, delta = total
    taus = (NEVER if rho >= NEVER else min(epsilon, rho * Fraction(order)) for order in COUNTED_ORDERS)
    return (epsilon, rho, delta, Fraction(1), Fraction(0), NEVER, *map(round_price, taus))


def find_share_left(budget: Budget, currency: object, total: Price, remaining: Exact) -> Fraction:
    """The part of a budget that shares may still be asked for, rounded down, whatever the budget is counted in."""
    if isinstance(currency, ClassCurrency):
        return currency.share_left(total)
    left = lower(remaining) / upper(budget.amount())
    return left**2 if budget.notion == "gdp" else left
