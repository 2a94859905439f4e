"""Offers: what an analyst is ready to pay for a question, and what that is in the currency of the budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from discreet import parameters
from discreet.accounting.zcdp import rho_for
from discreet.errors import BudgetExceeded, ParameterError, UnknownLoss
from discreet.exact import Exact, float_down
from discreet.parameters import Epsilon, Number
from discreet.privacy import Budget

# Of an (ε, δ) budget, half of δ pays for turning ρ into ε, the other half for naming private keys; one question takes
# a hundredth of that half unless it says otherwise.
KEY_SHARE = Fraction(1, 2)
KEY_QUESTIONS = 100


# The least ε that a question may offer. With less, the noise is larger than any number that is shown.
LEAST_EPSILON = Fraction(1, 10**12)


def _check_least(name: str, amount: Exact, least: Fraction) -> None:
    if amount < least:
        fix = f"Offer {float(least):g} or more: with less, noise is all that is left. Nothing was charged."
        raise ParameterError(name, "is too small for any answer", fix)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What the analyst offers: a loss (``epsilon`` or ``rho``), or the ``error`` wanted for named columns.

    ``delta`` is what naming private keys may cost; ``level`` is the confidence of errors and intervals.
    """

    epsilon: Epsilon | None = None
    rho: Number | None = None
    error: Mapping[str, Number] | None = None
    delta: Number | None = None
    level: Number = 0.95

    def __post_init__(self) -> None:
        forms = [form is not None for form in (self.epsilon, self.rho, self.error)]
        if sum(forms) != 1:
            fix = "Say epsilon=0.5, rho=0.01, or error={'n': 12} to be told the price. Nothing was charged."
            raise ParameterError("cost", "must be given in exactly one form", fix)
        if self.epsilon is not None:
            _check_least("epsilon", parameters.read_epsilon(self.epsilon), LEAST_EPSILON)
        if self.rho is not None:
            _check_least("rho", parameters.read_positive(self.rho, "rho"), LEAST_EPSILON**2)
        for name, size in (self.error or {}).items():
            parameters.read_positive(size, f"error[{name!r}]")
        if self.error is not None and not self.error:
            raise ParameterError("error", "names no column", "Say error={'n': 12}. Nothing was charged.")
        if self.delta is not None:
            parameters.read_probability(self.delta, "delta")
        parameters.read_probability(self.level, "level")


@dataclass(frozen=True, slots=True)
class BudgetOffer:
    """What is offered, in the currency of the budget it comes from."""

    offer: Offer
    budget: Budget
    most: Fraction | None = None

    def __post_init__(self) -> None:
        if not self.budget.kind.offers:
            raise UnknownLoss(
                f"A budget in {self.budget.symbol} cannot pay for discrete noise. Declare ρ, or ε and δ. "
                "Nothing was charged."
            )

    @property
    def pure(self) -> bool:
        return self.budget.notion == "pure"

    @property
    def level(self) -> Fraction:
        """The confidence of errors and intervals."""
        return parameters.read_probability(self.offer.level, "level")

    def to_amount(self) -> Fraction:
        """The offer in the budget's own currency: ε of a pure budget, otherwise ρ."""
        epsilon, rho = self.offer.epsilon, self.offer.rho
        if rho is not None:
            if "rho" not in self.budget.kind.offers:
                fix = "This budget is counted in pure ε: say epsilon=0.5. Nothing was charged."
                raise ParameterError("rho", "cannot be spent from a pure budget", fix)
            return parameters.read_positive(rho, "rho")
        if "epsilon" not in self.budget.kind.offers:
            fix = "This budget is counted in ρ: say rho=0.01. Nothing was charged."
            raise ParameterError("epsilon", "has no meaning without a δ", fix)
        exact = parameters.read_epsilon(epsilon)
        if self.pure:
            return exact if isinstance(exact, Fraction) else exact.lower
        found = self._to_rho(exact)
        if found <= 0:
            fix = "Offer a larger ε, or say rho=. Nothing was charged."
            raise ParameterError("epsilon", "is too small to turn into ρ at the budget's δ", fix)
        return found

    def _to_rho(self, epsilon: Exact) -> Fraction:
        """What the ε of one question means: alone, at the part of δ for conversions, it would be (ε, δ)-private."""
        return rho_for(float_down(epsilon), float_down(self.budget.slack() * (1 - KEY_SHARE)))

    def check_most(self, amount: Fraction) -> None:
        """Refuse what is more than one question may cost."""
        if self.most is None:
            return
        limit = self._to_rho(self.most) if self.budget.notion == "approx" else self.most
        if amount > limit:
            raise BudgetExceeded(
                f"One question may cost at most {self.budget.describe(self.most)}, says the codebook (per_query). "
                "Offer less, or accept a larger error. Nothing was charged."
            )

    def key_delta(self) -> Fraction:
        """The δ for naming private keys in one question."""
        if not self.budget.slack():
            raise BudgetExceeded(
                "These groups come from the data, and naming them needs a δ that the budget does not have. "
                "Declare the keys in the codebook, or a budget with ε and δ. Nothing was charged."
            )
        if self.offer.delta is not None:
            return parameters.read_probability(self.offer.delta, "delta")
        return self.budget.slack() * KEY_SHARE / KEY_QUESTIONS
