"""Offers: what an analyst is ready to pay for a question, and what that is in the currency of the budget."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from fractions import Fraction
from typing import NoReturn, Self, assert_never

from discreet import parameters
from discreet.accounting.cost_words import describe_cost, describe_share
from discreet.accounting.currencies import SumCurrency
from discreet.accounting.gdp import GaussianNotion, mu_for
from discreet.accounting.spending_classes import ClassCurrency, SpendingClass, shorten_down
from discreet.accounting.sums import Price
from discreet.errors import BudgetExceeded, InternalError, ParameterError
from discreet.exact import Exact, decimal, float_down, lower
from discreet.late_dataclass import dataclass
from discreet.parameters import Epsilon, Number
from discreet.privacy import Budget, Loss


class NoiseFamily(StrEnum):
    """What noise a question gets: pure (Laplace), in shares of ε, or Gaussian, in shares of ρ."""

    PURE = "pure"
    GAUSSIAN = "gaussian"


@dataclass(frozen=True, slots=True)
class Payment:
    """What a question was priced at: its noise, the amount of each grouping in ε or ρ, and the δ for naming keys.

    It is put on record where it depends on what was left, so that the same question has the same price later.
    """

    family: NoiseFamily
    amounts: tuple[Fraction, ...]
    delta: Fraction = Fraction(0)

    def __str__(self) -> str:
        return " ".join([self.family, str(self.delta), *map(str, self.amounts)])

    @classmethod
    def read(cls, text: str) -> Self:
        """The payment that ``str`` wrote."""
        family, delta, *amounts = text.split()
        return cls(NoiseFamily(family), tuple(map(Fraction, amounts)), Fraction(delta))


@dataclass(frozen=True, slots=True)
class BudgetLeft:
    """What is left of an (ε, δ) budget: how it is counted, and the sums so far."""

    currency: ClassCurrency
    total: Price

    @classmethod
    def of_whole(cls, budget: Budget) -> BudgetLeft:
        """A budget from which nothing was spent."""
        currency = ClassCurrency.of(budget)
        return cls(currency, currency.nothing)

    def fits(self, loss: Loss) -> bool:
        """Whether a loss can be charged now."""
        return self.currency.fits(self.currency.add(self.total, self.currency.price(loss)))

    def key_delta(self) -> Fraction:
        """The δ for naming keys in the next question: φ/(j(j+1)) for the j-th, which never runs out.

        After j − 1 questions φ/j is left of the φ that is kept for failures, so j follows from what is left.
        """
        whole = self.currency.failure
        left = whole - self.total[2]
        return shorten_down(left * left / (whole + left)) if left > 0 else Fraction(0)


def find_mu_squared(loss: Loss) -> Fraction:
    """The μ² of a loss that has one without a failure; refused otherwise."""
    (price,) = SumCurrency("mu_squared", Fraction(0)).price(loss)
    return price


# The least ε that a question may offer. With less, the noise is larger than any number that is shown.
LEAST_EPSILON = Fraction(1, 10**12)


def describe_most(budget: Budget, left: Fraction) -> str:
    """The largest offer that a part of a budget is, as it is typed; empty where nothing is left."""
    if left <= LEAST_EPSILON:
        return ""
    share = f"share={_round_down(left)}"
    match budget.notion:
        case "pure" | "approx":
            return f"{share} (epsilon={_round_down(left * lower(budget.amount()))})"
        case "zcdp":
            return f"{share} (rho={_round_down(left * lower(budget.amount()))})"
        case "gdp":
            return share
        case unknown:
            assert_never(unknown)


def _round_down(number: Fraction) -> str:
    """Six digits, never more than the number: what a person types in again must fit."""
    text = f"{float_down(number):.6g}"
    return text if Fraction(text) <= number else f"{float_down(number * (1 - Fraction(1, 10**5))):.6g}"


def _check_least(name: str, amount: Exact, least: Fraction) -> None:
    if amount < least:
        fix = f"Offer {float(least):g} or more: with less, noise is all that is left. Nothing was charged."
        raise ParameterError(name, "is too small for any answer", fix)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What the analyst offers: a loss (``epsilon`` or ``rho``), a ``share`` of the budget, or the ``error`` wanted.

    Under an (ε, δ) budget an ``epsilon`` of x out of E means the share x/E. An error is wanted for named columns.
    ``group_size`` is roughly how many rows a group has: errors of averages, ratios and variances depend on it.
    ``delta`` is what naming private keys may cost; ``level`` is the confidence of errors and intervals.

    ``alone`` says that ``epsilon`` and ``delta`` are a guarantee, as a text in the GoogleSQL form states it: what is
    released for the question is (ε, δ)-private by itself. Without a ``delta`` it is that of the budget.

    ``ends`` asks for intervals of quantiles, MIN and MAX, which take half of what is paid for these.
    """

    epsilon: Epsilon | None = None
    rho: Number | None = None
    share: Number | None = None
    error: Mapping[str, Number] | None = None
    group_size: Number | None = None
    delta: Number | None = None
    level: Number = 0.95
    alone: bool = False
    ends: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.ends, bool):
            raise parameters.refuse("ends", "True or False", self.ends, "Say ends=True. Nothing was charged.")
        forms = [form is not None for form in (self.epsilon, self.rho, self.share, self.error)]
        if sum(forms) != 1:
            fix = "Say share=0.1, epsilon=0.5, rho=0.01, or error={'n': 12}. Nothing was charged."
            raise ParameterError("cost", "must be given in exactly one form", fix)
        if self.epsilon is not None:
            _check_least("epsilon", parameters.read_epsilon(self.epsilon), LEAST_EPSILON)
        if self.rho is not None:
            _check_least("rho", parameters.read_positive(self.rho, "rho"), LEAST_EPSILON**2)
        if self.share is not None:
            fix = "Offer a part of the budget: 1 for all of it, 0.1 for a tenth. Nothing was charged."
            part = parameters.read_positive(self.share, "share", fix=fix)
            if part > 1:
                raise ParameterError("share", f"is {float_down(part):.4g}, more than the whole budget", fix)
            _check_least("share", part, LEAST_EPSILON)
        if self.error is not None and not isinstance(self.error, Mapping):
            fix = "Name the column that it is wanted of: error={'n': 5}. Nothing was charged."
            raise parameters.refuse("error", "errors by the names of columns", self.error, fix)
        for name, size in (self.error or {}).items():
            parameters.read_positive(size, f"error[{name!r}]")
        if self.error is not None and not self.error:
            raise ParameterError("error", "names no column", "Say error={'n': 12}. Nothing was charged.")
        if self.group_size is not None:
            self._check_group_size(self.group_size)
        if self.delta is not None:
            parameters.read_probability(self.delta, "delta")
        if self.alone and self.epsilon is None:
            fix = "Say epsilon=1 with it. Nothing was charged."
            raise ParameterError("alone", "is a guarantee that needs an ε", fix)
        parameters.read_probability(self.level, "level")

    def _check_group_size(self, size: Number) -> None:
        fix = "Say how many rows a group has, roughly: group_size=500. Nothing was charged."
        if parameters.read_positive(size, "group_size", fix=fix) < 1:
            raise ParameterError("group_size", "is less than one row", fix)
        if self.error is None:
            fix = "Say error={'age': 1} with it, or leave it out. Nothing was charged."
            raise ParameterError("group_size", "belongs to a wanted error", fix)


@dataclass(frozen=True, slots=True)
class BudgetOffer:
    """What is offered, in the currency of the budget it comes from."""

    offer: Offer
    budget: Budget
    most: Fraction | None = None
    left: BudgetLeft | None = None

    @property
    def families(self) -> tuple[NoiseFamily, ...]:
        """The noise that the budget can pay for: both kinds under (ε, δ), unless ρ is offered, which is Gaussian."""
        if self.budget.notion == "pure":
            return (NoiseFamily.PURE,)
        if self.budget.notion == "approx" and self.offer.rho is None:
            return (NoiseFamily.PURE, NoiseFamily.GAUSSIAN)
        return (NoiseFamily.GAUSSIAN,)

    @property
    def by_share(self) -> bool:
        """Whether what it buys follows from a share of an (ε, δ) budget and from what is left of it."""
        return self.budget.notion == "approx" and self.offer.rho is None and self.offer.error is None

    @property
    def known_left(self) -> BudgetLeft:
        """What is left of an (ε, δ) budget; all of it where nothing was said."""
        return BudgetLeft.of_whole(self.budget) if self.left is None else self.left

    def to_share(self) -> Fraction:
        """The part of an (ε, δ) budget that is offered; refused where it is more than is left."""
        epsilon, share = self.offer.epsilon, self.offer.share
        if share is not None:
            part = parameters.read_positive(share, "share")
        else:
            part = lower(parameters.read_epsilon(epsilon)) / lower(self.budget.amount())
        left = self.known_left.currency.share_left(self.known_left.total)
        if part > left * (1 + Fraction(1, 1 << 28)):
            raise BudgetExceeded(self._describe_too_much(part, left))
        return part

    def _describe_too_much(self, part: Fraction, left: Fraction) -> str:
        """What was asked, what is left, and what would fit."""
        most = describe_most(self.budget, left)
        rest = f"Left: {describe_share(left)}. Offer at most {most}." if most else "Nothing is left."
        asked = describe_share(part) if part <= 1 else "more than all of it"
        return f"The offer ({asked}) is more than is left of {self.budget!r}. {rest} Nothing was charged."

    def allow(self) -> list[tuple[SpendingClass, Fraction]]:
        """What the share may cost, class by class."""
        left = self.known_left
        share = self.to_share()
        return list(left.currency.allow(left.total, min(share, left.currency.share_left(left.total))))

    def find_room_alone(self, loss: Loss) -> Fraction:
        """By what factor a loss may grow, or has to shrink, to be what the offer states by itself; 1 where it is.

        Gaussian noise is scaled by its μ²: at most the largest that is (ε, δ)-private by itself, failures included.
        """
        if not self.offer.alone:
            return Fraction(1)
        epsilon, delta = lower(parameters.read_epsilon(self.offer.epsilon)), self._delta_alone
        if self.is_private_alone(loss):
            return Fraction(1)
        known = loss.notion("gdp") if loss.has("gdp") else None
        if not isinstance(known, GaussianNotion):
            return Fraction(1, 2)
        rest = (delta - known.slack) / (1 - known.slack)
        return mu_for(float_down(epsilon), max(0.0, float_down(rest))) ** 2 / known.mu_squared

    def is_private_alone(self, loss: Loss) -> bool:
        """Whether a loss is (ε, δ) by itself, with the ε that is offered."""
        epsilon = lower(parameters.read_epsilon(self.offer.epsilon))
        return decimal(loss.delta(epsilon)) <= self._delta_alone

    @property
    def _delta_alone(self) -> Fraction:
        """The δ of a stated guarantee: its own, or that of the budget."""
        return self.budget.slack() if self.offer.delta is None else parameters.read_delta(self.offer.delta)

    @property
    def level(self) -> Fraction:
        """The confidence of errors and intervals."""
        return parameters.read_probability(self.offer.level, "level")

    def to_amount(self) -> Fraction:
        """The offer as an amount that does not depend on what is left: ε of a pure budget, otherwise ρ."""
        epsilon, rho = self.offer.epsilon, self.offer.rho
        if self.by_share:
            raise InternalError("What a share buys depends on what is left.")
        if self.offer.share is not None:
            whole = lower(self.budget.amount())
            # Shares of μ are shares of μ², which is what adds up; Gaussian noise of ρ has μ² = 2ρ.
            whole = whole**2 / 2 if self.budget.notion == "gdp" else whole
            return parameters.read_positive(self.offer.share, "share") * whole
        if rho is not None:
            if "rho" not in self.budget.kind.offers:
                fix = "This budget is counted in pure ε: say epsilon=0.5. Nothing was charged."
                raise ParameterError("rho", "cannot be spent from a pure budget", fix)
            return parameters.read_positive(rho, "rho")
        if "epsilon" not in self.budget.kind.offers:
            fix = f"This budget is counted in {self.budget.symbol}: say share=0.1 or rho=0.01. Nothing was charged."
            raise ParameterError("epsilon", "has no meaning without a δ", fix)
        exact = parameters.read_epsilon(epsilon)
        return exact if isinstance(exact, Fraction) else exact.lower

    def is_small(self, amount: Fraction, loss: Loss) -> bool:
        """Whether it is within what one question may cost."""
        if self.most is None:
            return True
        if self.budget.notion == "approx":
            return BudgetLeft.of_whole(self.budget.with_amount(self.most)).fits(loss)
        if self.budget.notion == "gdp":
            return find_mu_squared(loss) <= self.most**2
        return amount <= self.most

    def refuse_large(self, loss: Loss) -> NoReturn:
        """Refuse what is more than one question may cost, and say what it would cost: shares count otherwise."""
        raise BudgetExceeded(
            f"One question may cost at most {self.budget.describe(self.most or Fraction(0))} by itself (per_query of "
            f"the codebook or of the token), and this one would cost {describe_cost(self.budget, loss)}. Offer less, "
            "or accept a larger error. Nothing was charged."
        )

    def key_delta(self) -> Fraction:
        """The δ for naming private keys in one question."""
        if not self.budget.slack():
            raise BudgetExceeded(
                "These groups come from the data, and naming them needs a δ that the budget does not have. "
                "Declare the keys in the codebook, or a budget with ε and δ. Nothing was charged."
            )
        if self.offer.delta is not None:
            stated = parameters.read_probability(self.offer.delta, "delta")
            return stated / 2 if self.offer.alone else stated  # the other half is for the noise
        found = self.known_left.key_delta()
        if not found:
            raise BudgetExceeded(
                "Nothing is left of the δ that names groups from the data. Declare the keys in the codebook. "
                "Nothing was charged."
            )
        return found
