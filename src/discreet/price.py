"""Pricing: which mechanism, which scale, which share of the budget.

Every measure gets noise of its own, in equal shares of what the question may cost; so does every spread that quantiles
or modes are chosen from. Under a pure budget that is discrete Laplace noise and shares of ε; otherwise discrete
Gaussian noise and shares of ρ. Private keys are chosen by a rule that takes a share, too, and a δ. The groupings of a
question share its price equally. All of it follows from the plan and the codebook, so that it can be shown before
anything is spent. Several questions under one price are in ``batch_price``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet import parameters
from discreet.bounding.bound import BoundedQuestion
from discreet.bounding.contributions import group_cap, reach, sensitivity
from discreet.bounding.recipes import AggregateRecipe
from discreet.errors import BudgetExceeded, InternalError, ParameterError, Unbounded
from discreet.exact import sqrt_lower
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.quantiles.cells import CellMode, CellQuantiles
from discreet.mechanisms.rounded_gaussian import RoundedGaussian
from discreet.mechanisms.weighted_selection import better_selection
from discreet.offer import BudgetOffer, Offer
from discreet.parameters import Number
from discreet.plan.expressions import ReleasedValue
from discreet.plan.statistics.table import STATISTICS
from discreet.privacy import Budget, Neighbours, Unit
from discreet.release import CellChoice, KeyRule, Noise, Plan, Release

# How far one unit may move a measure at most; noise for more would leave 64 bits.
MOST_MOVED = 1 << 60


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceTerms:
    """What every price of a dataset depends on: its budget, who is protected, and the most that one question may cost.

    ``per_query`` is in the budget's own terms: ε, or ρ.
    """

    budget: Budget
    unit: Unit
    neighbours: Neighbours
    per_query: Fraction | None = None

    @property
    def protection(self) -> Mapping[str, Any]:
        """Who is protected against what, as every mechanism is told."""
        return {"unit": self.unit, "neighbours": self.neighbours}


def price(forms: Sequence[BoundedQuestion], offer: Offer, terms: PriceTerms) -> Plan:
    """The plan that costs what was offered, or the least that has the errors wanted, in every grouping."""
    paid = BudgetOffer(offer, terms.budget, terms.per_query)
    parts = [GroupingPricer(form, paid, terms, len(forms)) for form in forms]
    if offer.error is None:
        amounts = [paid.to_amount() / len(parts)] * len(parts)
    else:
        amounts = [part.find_amount(offer.error) for part in parts]
    paid.check_most(sum(amounts, Fraction(0)))
    return Plan(tuple(part.make_release(amount) for part, amount in zip(parts, amounts)))


@dataclass(frozen=True, slots=True)
class GroupingPricer:
    """One grouping of a question, of ``parts`` that share a δ: what stays the same while a price is searched for."""

    bounded: BoundedQuestion
    offer: BudgetOffer
    terms: PriceTerms
    parts: int
    noise: type[Noise] | None = None

    def make_release(self, amount: Fraction) -> Release:
        """The release that costs this amount."""
        measured, spreads = self.bounded.measured, self.bounded.bounded.spreads
        private = self.bounded.selector is not None
        share = amount / (len(measured) + len(spreads) + private)
        return Release(
            bounded=self.bounded,
            noises={position: self._make_noise(position, share) for position in measured},
            choices={position: self._make_choice(position, share) for position in range(len(spreads))},
            selection=self._make_selection(share) if private else None,
            level=self.offer.level,
            **self.terms.protection,
        )

    def _make_noise(self, position: int, share: Fraction) -> Noise:
        bounded = self.bounded.bounded
        moves = sensitivity(bounded, bounded.measures[position], self.terms.neighbours)
        if moves.l1 > MOST_MOVED:
            raise Unbounded(
                "One unit may contribute so much here that no noise can hide it. Lower the limits, or join on fewer "
                "tables that multiply its rows. Nothing was charged."
            )
        if self.offer.pure:
            return Laplace(sensitivity=max(1, moves.l1), epsilon=share, **self.terms.protection)
        if self.noise is Laplace:
            # ε-private noise is ε²/2-zCDP, so a share of ρ buys ε = √(2ρ).
            epsilon = sqrt_lower(2 * share, bits=64)
            return Laplace(sensitivity=max(1, moves.l1), epsilon=epsilon, **self.terms.protection)
        return RoundedGaussian(squared_sensitivity=max(1, moves.l2_squared), rho=share, **self.terms.protection)

    def _make_choice(self, position: int, share: Fraction) -> CellChoice:
        """What chooses from a spread."""
        spread = self.bounded.bounded.spreads[position]
        far = reach(self.bounded.bounded, self.terms.neighbours)
        stated: dict[str, Any] = {"epsilon" if self.offer.pure else "rho": share, **self.terms.protection}
        shares = self.bounded.shares_of(position)
        if not shares:
            return CellMode(
                first=spread.first,
                last=spread.last,
                groups=far.groups,
                max_rows=far.rows,
                **stated,
            )
        return CellQuantiles(
            qs=shares,
            first=spread.first,
            last=spread.last,
            groups=far.groups,
            max_rows=far.rows,
            in_place=far.in_place,
            **stated,
        )

    def _make_selection(self, share: Fraction) -> KeyRule:
        """The rule for private keys that costs the share and the δ it needs, and names keys from fewer units on."""
        delta = self.offer.key_delta() / self.parts
        groups = group_cap(self.bounded.bounded)
        if groups is None:
            raise InternalError("Private keys without a cap on groups.")
        return better_selection(
            rho=share,
            delta=delta,
            max_groups=groups,
            min_units=self.bounded.question.min_units or 1,
            **self.terms.protection,
        )

    def find_amount(self, wanted: Mapping[str, Number]) -> Fraction:
        """The least amount, to a thousandth, that has errors of at most those wanted."""
        targets = [(self._find_estimate(name), parameters.read_positive(size, name)) for name, size in wanted.items()]

        def good(amount: Fraction) -> bool:
            release = self.make_release(amount)
            errors = [(release.error(estimate), size) for estimate, size in targets]
            return all(error is not None and Fraction(error) <= size for error, size in errors)

        low, high = Fraction(1, 1 << 40), Fraction(1)
        while not good(high):
            low, high = high, high * 16
            if high > parameters.MAX_EPSILON:
                raise BudgetExceeded("No loss worth the name of privacy gives so small an error. Nothing was charged.")
        while high > low * Fraction(1001, 1000):
            middle = Fraction(math.sqrt(float(low * high))).limit_denominator(1 << 50)
            low, high = (low, middle) if good(middle) else (middle, high)
        return high

    def _find_estimate(self, name: str) -> AggregateRecipe:
        question = self.bounded.question
        for output in question.outputs:
            if output.name == name and isinstance(output.expression, ReleasedValue):
                index = output.expression.index - len(question.keys)
                if index >= 0 and STATISTICS[self.bounded.estimates[index].statistic].has_direct_error:
                    return self.bounded.estimates[index]
        names = [output.name for output in question.outputs]
        fix = f"Give the error of a count or a sum among {', '.join(names)}. Nothing was charged."
        raise ParameterError(f"error[{name!r}]", "is not an error that public facts determine", fix)
