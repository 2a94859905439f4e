"""Pricing: which mechanism, which scale, which share of the budget.

What is shown gets equal shares of what the question may cost: the statistics that are computed from noisy integers,
each spread that quantiles or modes are chosen from, and the choice of private keys. Which combinations of integers get
noise, and in which shares, ``bounding.strategies`` chooses. Where the ends of quantiles are wanted, they take half of
what their quantiles get. Pure noise is discrete Laplace noise, in shares of ε;
Gaussian noise is rounded, in shares of ρ. A budget of ε and δ can pay for both, so both are tried, and the one with the
smaller errors is taken. Private keys are chosen by a rule that takes a δ, too. The groupings of a question share its
price equally, without those of which everything is public. All of it follows from the plan, the codebook and what is
left of the budget, so that it can be shown before anything is spent. Several questions under one price are in
``batch_price``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from typing import Any, TypeVar

from discreet import parameters
from discreet.accounting import events
from discreet.accounting.account import compose
from discreet.bounding.bound import BoundedQuestion
from discreet.bounding.contributions import Reach, Sensitivity, group_cap, reach, unit_bits
from discreet.bounding.joint_measures import Recovery, recover
from discreet.bounding.named_counts import name_by_count
from discreet.bounding.strategies import PricedBy, Strategy, choose_strategy, list_shown
from discreet.error_targets import find_group_size, read_targets
from discreet.errors import BudgetExceeded, InternalError, ParameterError, Unbounded
from discreet.exact import sqrt_lower
from discreet.late_dataclass import dataclass
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.quantiles.cells import CellMode, CellQuantiles
from discreet.mechanisms.quantiles.ends import CellEnds
from discreet.mechanisms.rounded_gaussian import RoundedGaussian
from discreet.mechanisms.threshold import GaussianThreshold, KeySelection, LaplaceThreshold
from discreet.mechanisms.weighted_selection import better_selection
from discreet.offer import BudgetLeft, BudgetOffer, NoiseFamily, Offer, Payment, find_mu_squared
from discreet.parameters import Number
from discreet.privacy import Budget, Neighbours, Unit
from discreet.release import CellChoice, KeyRule, Noise, NoisyPart, Plan, Release

# How far one unit may move a measure at most; noise for more would leave 64 bits.
MOST_MOVED = 1 << 60


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceTerms:
    """What every price of a dataset depends on: its budget, who is protected, and the most that one question may cost.

    ``per_query`` is in the budget's own terms: ε, or ρ. ``left`` is what is left of an (ε, δ) budget; ``paid`` is what
    the question was priced at before, where it was. ``sizes`` are the public numbers of rows of tables, roughly.
    """

    budget: Budget
    unit: Unit
    neighbours: Neighbours
    per_query: Fraction | None = None
    left: BudgetLeft | None = None
    paid: Payment | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def protection(self) -> Mapping[str, Any]:
        """Who is protected against what, as every mechanism is told."""
        return {"unit": self.unit, "neighbours": self.neighbours}


@dataclass(frozen=True, slots=True)
class PricedPlan:
    """A plan and what it was priced at."""

    plan: Plan
    payment: Payment


def price(forms: Sequence[BoundedQuestion], offer: Offer, terms: PriceTerms) -> Plan:
    """The plan that costs what was offered, or the least that has the errors wanted, in every grouping."""
    return price_in_families(forms, offer, terms)[0].plan


def price_in_families(forms: Sequence[BoundedQuestion], offer: Offer, terms: PriceTerms) -> tuple[PricedPlan, ...]:
    """The plan with each kind of noise that the budget can pay for, the better one first.

    Better is what fits; then, at a given cost, the smaller errors (their geometric mean), and at given errors the
    smaller part of the budget.
    """
    paid = BudgetOffer(offer, terms.budget, terms.per_query, terms.left)
    if terms.paid is not None:
        return (price_at(forms, paid, terms, terms.paid),)
    found, refused = [], None
    families = paid.families[:1] if all(form.is_free for form in forms) else paid.families
    for family in families:
        try:
            priced = _price_in_family(forms, paid, terms, family)
        except (ParameterError, BudgetExceeded) as error:  # so little ε cannot name keys, or be so exact, but ρ may
            refused = error
            continue
        if priced is not None:
            found.append(priced)
    if not found and refused is not None:
        raise refused
    if not found:
        raise BudgetExceeded(
            "No noise that this offer could buy fits what is left of the budget. Offer a share of it, such as "
            "share=0.1. Nothing was charged."
        )
    if len(found) > 1:
        found.sort(key=lambda each: _rank(each.plan, paid))
    small = [each for each in found if paid.is_small(sum(each.payment.amounts, Fraction(0)), each.plan.loss)]
    if not small:
        paid.refuse_large(found[0].plan.loss)
    return tuple(small)


def _rank(plan: Plan, paid: BudgetOffer) -> tuple[bool, float]:
    left = paid.known_left
    if paid.offer.error is None:
        return not left.fits(plan.loss), mean_log_noise([plan])
    return not left.fits(plan.loss), float(left.currency.share_of(left.currency.price(plan.loss)))


def _price_in_family(
    forms: Sequence[BoundedQuestion], paid: BudgetOffer, terms: PriceTerms, family: NoiseFamily
) -> PricedPlan | None:
    """The plan with one kind of noise; None where no class that holds has a place for it."""
    delta = paid.key_delta() if any(form.selector is not None for form in forms) else Fraction(0)
    parts = sum(not form.is_free for form in forms)
    if not parts:
        return price_at(forms, paid, terms, Payment(family, (Fraction(0),) * len(forms), delta))
    if paid.offer.error is not None:
        pricers = [GroupingPricer(form, paid, terms, len(forms), family, delta=delta) for form in forms]
        amounts = tuple(pricer.find_amount(paid.offer.error) for pricer in pricers)
        return price_at(forms, paid, terms, Payment(family, amounts, delta))

    def make(amount: Fraction) -> PricedPlan:
        amounts = tuple(Fraction(0) if form.is_free else amount / parts for form in forms)
        return price_at(forms, paid, terms, Payment(family, amounts, delta))

    if paid.by_share:
        return find_within(lambda amount: make(amount).plan.events, make, paid, family)
    amount = paid.to_amount()
    if terms.budget.notion == "gdp" and paid.offer.share is not None:
        return _hold_to_share_of_mu(make, amount)
    return make(amount)


def _hold_to_share_of_mu(make: Callable[[Fraction], PricedPlan], amount: Fraction) -> PricedPlan | None:
    """What costs at most μ² = 2ρ: noise does, choices cost more than that at the same ρ and get less."""
    allowed = 2 * amount
    for kept in _KEPT_BACK:
        priced = make(amount)
        cost = find_mu_squared(priced.plan.loss)
        if cost <= allowed:
            return priced
        amount *= allowed / cost * (1 - kept)
    return None


def price_at(forms: Sequence[BoundedQuestion], paid: BudgetOffer, terms: PriceTerms, payment: Payment) -> PricedPlan:
    """The plan at a given payment."""
    pricers = [GroupingPricer(form, paid, terms, len(forms), payment.family, delta=payment.delta) for form in forms]
    try:
        releases = tuple(pricer.make_release(amount) for pricer, amount in zip(pricers, payment.amounts, strict=True))
    except ParameterError as error:
        if all(form.selector is None for form in forms):
            raise
        raise BudgetExceeded(
            "So small an offer cannot name groups from the data. Offer more, or declare the keys in the codebook. "
            "Nothing was charged."
        ) from error
    return PricedPlan(Plan(releases), payment)


T = TypeVar("T")

# What is kept back at each correction of an amount, until its price is within what a share may cost. It begins with
# what prices are rounded up by. It grows, because the price of a choice falls more slowly than the amount: corrections
# by the price alone come ever closer and never arrive.
_KEPT_BACK = tuple(Fraction(4**correction, 1 << 32) for correction in range(12))


def find_within(
    list_events: Callable[[Fraction], tuple[events.Event, ...]],
    make: Callable[[Fraction], T],
    paid: BudgetOffer,
    family: NoiseFamily,
) -> T | None:
    """What a share buys with one kind of noise: the largest amount whose price is within what some class allows.

    Pure noise is bought from Σε; Gaussian noise from the class that has most for it. Choices and keys cost there what
    they cost, so the amount is corrected by its real price, which grows in proportion or nearly so. Pure noise is then
    (ε, δ)-private by itself, too, with the δ of its keys; Gaussian noise is held to that where the offer states it.
    """
    currency, allowed = paid.known_left.currency, paid.allow()
    if family is NoiseFamily.PURE:
        epsilon = next((allow for each, allow in allowed if each.name == "epsilon"), Fraction(0))
        return make(epsilon) if epsilon > 0 else None
    amount = max((allow / each.gaussian for each, allow in allowed if each.gaussian), default=Fraction(0))
    amount *= 1 - _KEPT_BACK[0]
    for kept in _KEPT_BACK:
        if amount <= 0:
            return None
        loss = compose(list_events(amount)).loss
        cost = currency.price(loss)
        room = max((allow / currency.part_of(each, cost) for each, allow in allowed if each.gaussian), default=amount)
        room = min(room, paid.find_room_alone(loss))
        if room >= 1:
            return make(amount)
        amount *= room * (1 - kept)
    return None


def mean_log_noise(plans: Sequence[Plan]) -> float:
    """How large the errors of what is shown are over all: the mean of the logarithms of noise, ranks and bars.

    Sizes of groups often fall as a power law, so that twice the bar halves the number of groups that are named.
    """
    sizes: list[float] = []
    for release in (release for plan in plans for release in plan.releases):
        sizes += [release.deviation(dict(shown)) for shown in list_shown(release.bounded)]
        sizes += [max(1.0, choice.error(Fraction(1, 20))) for choice in release.choices.values()]
        if release.selection is not None:
            sizes.append(float(release.selection.kept_from(Fraction(1, 2))))
    return math.fsum(map(math.log, sizes)) / max(1, len(sizes))


@dataclass(frozen=True, slots=True)
class GroupingPricer:
    """One grouping of a question, of ``parts`` that share a δ: what stays the same while a price is searched for."""

    bounded: BoundedQuestion
    offer: BudgetOffer
    terms: PriceTerms
    parts: int
    family: NoiseFamily
    noise: type[Noise] | None = None
    delta: Fraction = Fraction(0)

    def make_release(self, amount: Fraction) -> Release:
        """The release that costs this amount: in the form that is predicted to be better, where there are two."""
        form = name_by_count(self.bounded)
        if form is None:
            return self.make_form(amount)
        joint = replace(self, bounded=form).make_form(amount, joint=True)
        try:
            plain = self.make_form(amount)
        except ParameterError:  # so little ε cannot choose keys among so many groups, but a noisy count may
            return joint
        return min(joint, plain, key=lambda release: mean_log_noise([Plan((release,))]))

    def make_form(self, amount: Fraction, *, joint: bool = False) -> Release:
        """The release in one form; ``joint``: the noisy count of units names the keys, and needs no second share."""
        spreads, selector, shown = self.bounded.bounded.spreads, self.bounded.selector, list_shown(self.bounded)
        paying = len(shown) + len(spreads) + (selector is not None and not joint)
        share = amount / max(1, paying)
        strategy = self._choose_strategy(selector if joint else None)
        noises = {
            at: self._make_noise(moves, share * len(shown) * part)
            for at, (moves, part) in enumerate(zip(strategy.moves, strategy.shares))
        }
        parts = tuple(NoisyPart(at, terms) for at, each in enumerate(strategy.joints) for terms in each.parts)
        selection: KeyRule | None = None
        if selector is not None and joint:
            selection = self._make_bar(next(noises[part.noise] for part in parts if part.terms == ((selector, 1),)))
        elif selector is not None:
            selection = self._make_selection(share)
        return Release(
            bounded=self.bounded,
            noises=noises,
            parts=parts,
            recoveries=self._find_recoveries(strategy),
            choices={position: self._make_choice(position, share) for position in range(len(spreads))},
            ends={position: self._make_ends(position, share / 2) for position in self._ended},
            selection=selection,
            level=self.offer.level,
            counted=selector if joint else None,
            **self.terms.protection,
        )

    def _choose_strategy(self, named: int | None) -> Strategy:
        """Which combinations of measures get noise, in which shares; a count that names keys is in none."""
        pure = self.family is NoiseFamily.PURE or self.noise is Laplace
        priced = PricedBy(pure, power=2 if self.family is NoiseFamily.PURE else 1)
        return choose_strategy(self.bounded, self.terms.neighbours, priced, MOST_MOVED, alone=named)

    def _find_recoveries(self, strategy: Strategy) -> dict[int, Recovery]:
        bounded = self.bounded.bounded
        found = recover(strategy.joints, self.bounded.measured)
        noisy = {
            position: replace(recovery, units=recovery.units << unit_bits(bounded, bounded.measures[position]))
            for position, recovery in found.items()
        }
        return noisy | dict.fromkeys(self.bounded.public, Recovery((), 1))

    def _make_noise(self, moves: Sensitivity, share: Fraction) -> Noise:
        if moves.l1 > MOST_MOVED:
            raise Unbounded(
                "One unit may contribute so much here that no noise can hide it. Lower the limits, or join on fewer "
                "tables that multiply its rows. Nothing was charged."
            )
        if self.family is NoiseFamily.PURE:
            return Laplace(sensitivity=max(1, moves.l1), epsilon=share, **self.terms.protection)
        if self.noise is Laplace:
            # ε-private noise is ε²/2-zCDP, so a share of ρ buys ε = √(2ρ).
            epsilon = sqrt_lower(2 * share, bits=64)
            return Laplace(sensitivity=max(1, moves.l1), epsilon=epsilon, **self.terms.protection)
        return RoundedGaussian(squared_sensitivity=max(1, moves.l2_squared), rho=share, **self.terms.protection)

    def _make_choice(self, position: int, share: Fraction) -> CellChoice:
        """What chooses from a spread."""
        stated = self._state_choice(position, share / 2 if position in self._ended else share)
        shares = self.bounded.shares_of(position)
        if not shares:
            return CellMode(**stated)
        return CellQuantiles(qs=shares, in_place=self._reach.in_place, **stated)

    def _make_ends(self, position: int, share: Fraction) -> CellEnds:
        """What chooses the ends of the quantiles of a spread."""
        return CellEnds(
            qs=self.bounded.shares_of(position),
            in_place=self._reach.in_place,
            beta=1 - self.offer.level,
            **self._state_choice(position, share),
        )

    def _state_choice(self, position: int, share: Fraction) -> dict[str, Any]:
        """What every choice from a spread is told: its cells, how far a unit reaches, and its price."""
        spread = self.bounded.bounded.spreads[position]
        return {
            "first": spread.first,
            "last": spread.last,
            "groups": self._reach.groups,
            "max_rows": self._reach.rows,
            "epsilon" if self.family is NoiseFamily.PURE else "rho": share,
            **self.terms.protection,
        }

    @property
    def _reach(self) -> Reach:
        return reach(self.bounded.bounded, self.terms.neighbours)

    @property
    def _ended(self) -> tuple[int, ...]:
        """The spreads whose quantiles get ends."""
        spreads = range(len(self.bounded.bounded.spreads)) if self.offer.offer.ends else ()
        return tuple(position for position in spreads if self.bounded.shares_of(position))

    def _make_selection(self, share: Fraction) -> KeyRule:
        """The rule for private keys that costs the share and the δ it needs, and names keys from fewer units on."""
        if self.family is NoiseFamily.PURE:
            return KeySelection(epsilon=share, **self._key_terms)
        return better_selection(rho=share, **self._key_terms)

    def _make_bar(self, noise: Noise) -> KeyRule:
        """The rule that names keys by a count with this noise."""
        if isinstance(noise, Laplace):
            return LaplaceThreshold(scale=noise.event.scale, **self._key_terms)
        return GaussianThreshold(variance=noise.event.variance, **self._key_terms)

    @property
    def _key_terms(self) -> dict[str, Any]:
        """What every rule for private keys is told."""
        groups = group_cap(self.bounded.bounded)
        if groups is None:
            raise InternalError("Private keys without a cap on groups.")
        return {
            "delta": (self.delta or self.offer.key_delta()) / self.parts,
            "max_groups": groups,
            "min_units": self.bounded.question.min_units or 1,
            **self.terms.protection,
        }

    def find_amount(self, wanted: Mapping[str, Number]) -> Fraction:
        """The least amount, to a thousandth, that has errors of at most those wanted."""
        errors = {name: parameters.read_positive(size, name) for name, size in wanted.items()}
        targets = read_targets(self.bounded, errors, choose_group_size(self.bounded, self.offer.offer, self.terms))

        def good(amount: Fraction) -> bool:
            try:
                release = self.make_release(amount)
            except ParameterError:  # too little for a rule that names keys
                return False
            return all(target.is_met(release) for target in targets)

        low, high = Fraction(1, 1 << 40), Fraction(1)
        while not good(high):
            low, high = high, high * 16
            if high > parameters.MAX_EPSILON:
                raise BudgetExceeded("No loss worth the name of privacy gives so small an error. Nothing was charged.")
        while high > low * Fraction(1001, 1000):
            middle = Fraction(math.sqrt(float(low * high))).limit_denominator(1 << 50)
            low, high = (low, middle) if good(middle) else (middle, high)
        return high


def choose_group_size(form: BoundedQuestion, offer: Offer, terms: PriceTerms) -> Fraction | None:
    """How many rows a group has, roughly: as the analyst says, else from public numbers; None where it is not known."""
    if offer.group_size is not None:
        return parameters.read_positive(offer.group_size, "group_size")
    return find_group_size(form, terms.sizes)
