"""Who takes questions: what this package needs of a curator, and how an offer is divided among questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Protocol

from discreet.answer import Answer
from discreet.errors import ParameterError
from discreet.offer import BudgetOffer, Offer
from discreet.plan.catalog import Catalog
from discreet.preview import Preview
from discreet.privacy import Budget


class CuratorLike(Protocol):
    """Takes questions, as plans with an offer. The curator is one."""

    catalog: Catalog

    @property
    def budget(self) -> Budget:
        """What may be spent in all."""
        ...

    @property
    def ask(self) -> Callable[..., Answer]:
        """Answer a question and charge for it."""
        ...

    @property
    def preview(self) -> Callable[..., Preview]:
        """What it would cost; free."""
        ...

    @property
    def answered(self) -> Callable[..., bool]:
        """Whether it was answered before, so that asking again is free."""
        ...


def divide(offered: Offer, budget: Budget, shares: Sequence[Fraction]) -> list[dict[str, Fraction]]:
    """Shares of an offer, each an offer of its own, in the budget's own currency: together they cost the whole."""
    if offered.error is not None:
        fix = "The error follows from the bounds, which are not known yet: offer epsilon or rho. Nothing was charged."
        raise ParameterError("error", "cannot be promised where bounds are missing", fix)
    amount = BudgetOffer(offered, budget).to_amount()
    name = budget.kind.offers[-1]
    return [{name: amount * share} for share in shares]
