"""What this package needs of a curator, and how an offer is divided among several questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Protocol

from discreet import parameters
from discreet.answer import Answer
from discreet.errors import ParameterError
from discreet.exact import lower
from discreet.offer import BudgetOffer, Offer
from discreet.plan.catalog import Catalog
from discreet.preview import Preview
from discreet.privacy import Budget


class CuratorProtocol(Protocol):
    """Prices and answers questions, which are given as plans with an offer. Member: ``Curator``."""

    @property
    def catalog(self) -> Catalog:
        """What is declared."""
        ...

    @property
    def budget(self) -> Budget:
        """What may be spent in all."""
        ...

    @property
    def ask(self) -> Callable[..., Answer]:
        """Answers a question and charges for it."""
        ...

    @property
    def preview(self) -> Callable[..., Preview]:
        """Says what a question would cost. It is free."""
        ...

    @property
    def explain(self) -> Callable[..., str]:
        """Says how a question would be answered, and why that is private. It is free."""
        ...

    @property
    def answered(self) -> Callable[..., bool]:
        """Says whether a question was answered before. Then it is free to ask it again."""
        ...


def divide_offer(offered: Offer, budget: Budget, shares: Sequence[Fraction]) -> list[dict[str, Fraction]]:
    """Divide an offer into one for each share, in the budget's own currency. Together they cost the whole offer."""
    if offered.error is not None:
        fix = "The error follows from the bounds, which are not known yet: offer epsilon or rho. Nothing was charged."
        raise ParameterError("error", "cannot be promised where bounds are missing", fix)
    if offered.alone and budget.notion == "approx":
        fix = "Declare bounds, or say epsilon beside the question instead of in it. Nothing was charged."
        raise ParameterError("bounds", "cannot be bought within the ε and δ that a question states of itself", fix)
    if offered.rho is not None or offered.share is not None or budget.notion != "approx":
        paid = BudgetOffer(offered, budget)
        name = "share" if offered.share is not None else budget.kind.offers[-1]
        whole = parameters.read_positive(offered.share, "share") if offered.share is not None else paid.to_amount()
    else:
        name, whole = "epsilon", lower(parameters.read_epsilon(offered.epsilon))
    return [{name: whole * share} for share in shares]
