"""The price of a release: what its plan's offer buys from a budget of any kind, as it goes on record."""

from __future__ import annotations

from fractions import Fraction

from discreet.curator import Curator
from discreet.errors import UsageError
from discreet.gaussian_price import find_epsilon, find_mu_squared
from discreet.late_dataclass import dataclass
from discreet.publish.private_keys import KeyPrice, find_key_price, list_private, quote_keys
from discreet.publish.release_plan import ReleasePlan
from discreet.quote import Quote


@dataclass(frozen=True)
class ReleasePrice:
    """What a plan was priced at, as it goes on record: the μ² of tables, questions and series, and named keys.

    Under a budget of pure ε it is the ε of the tables, and there is nothing else.
    """

    paid: str
    rest: Fraction
    keys: Quote | None
    pure: bool = False

    @classmethod
    def find(cls, plan: ReleasePlan, curator: Curator, analyst: str, known: str | None) -> ReleasePrice:
        """The price on record, or what the offer buys now."""
        terms = curator.terms_for(analyst)
        if terms.budget.notion == "pure":
            _refuse_parts(plan)
            paid = find_epsilon(plan.offer, terms) if known is None else Fraction(known)
            return cls(str(paid), paid, None, pure=True)
        if not list_private(plan):
            paid = find_mu_squared(plan.offer, terms) if known is None else Fraction(known)
            return cls(str(paid), paid, None)
        price = find_key_price(plan, curator, analyst) if known is None else KeyPrice.read(known)
        return cls(str(price), price.rest, quote_keys(plan, curator, price, analyst))


def _refuse_parts(plan: ReleasePlan) -> None:
    """Refuse what Laplace noise is not made for: a budget of pure ε pays for tables and rows alone."""
    ranges = any(choice.ranges for choice in plan.columns.values())
    if plan.questions or plan.series or list_private(plan) or ranges:
        raise UsageError(
            "A budget of pure ε pays for tables and rows. Leave questions, series, ranges and private keys out of the "
            "plan (the curator answers questions by themselves), or declare a budget with ε and δ, ρ or μ. Nothing was "
            "charged."
        )
