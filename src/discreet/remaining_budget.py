"""What is left of a budget, and what it would buy: the nearest offer, the least errors, the curve of errors."""

from __future__ import annotations

from fractions import Fraction

from discreet.accounting.cost_words import describe_left
from discreet.accounting.spending_classes import ClassCurrency, find_share_left
from discreet.error_curve import CurvePoint, list_shares
from discreet.errors import BudgetExceeded, ParameterError
from discreet.late_dataclass import dataclass
from discreet.ledger.ledger import Ledger
from discreet.offer import LEAST_EPSILON, BudgetLeft, Offer, describe_most
from discreet.plan.nodes import Question
from discreet.preview import make_point
from discreet.price import choose_group_size
from discreet.quote import Quote, QuoteContext, quote


@dataclass(frozen=True, slots=True)
class RemainingBudget:
    """What a ledger has left to spend. Nothing here charges or reads data."""

    ledger: Ledger

    @property
    def words(self) -> str:
        """What is left, in words."""
        return describe_left(self.ledger.budget, self.ledger.remaining, *self.ledger.counted)

    @property
    def left(self) -> BudgetLeft | None:
        """What prices depend on, where the budget counts by classes."""
        currency, total = self.ledger.counted
        return BudgetLeft(currency, total) if isinstance(currency, ClassCurrency) else None

    @property
    def share(self) -> Fraction:
        """The part of the budget that shares may still be asked for, rounded down."""
        return find_share_left(self.ledger.budget, *self.ledger.counted, self.ledger.remaining)

    def describe_nearest(self, quoted: Quote) -> str:
        """The largest offer that fits, where a quote is more than is left."""
        currency, total = self.ledger.counted
        left, price = self.share, currency.price(quoted.loss)
        if isinstance(currency, ClassCurrency):
            too_much = currency.share_of(price) > left
        else:
            too_much = not currency.fits(currency.add(total, price))
        most = describe_most(self.ledger.budget, left)
        return f"offer at most {most}" if most and too_much else ""

    def describe_least(self, question: Question, offer: Offer, context: QuoteContext) -> str:
        """The least errors of the columns wanted that the rest of the budget buys; empty where no error was wanted."""
        left = self.share
        if offer.error is None or left < LEAST_EPSILON:
            return ""
        rest = Offer(share=left, delta=offer.delta, level=offer.level, ends=offer.ends)
        try:
            plan = quote(question, rest, context).plans[0]
        except BudgetExceeded:  # more than one question may cost
            return ""
        size = choose_group_size(plan.releases[0].bounded, offer, context.terms)
        point = make_point(plan, left, self.ledger.budget, size)
        errors = [f"{error.name} {error.words}" for error in point.errors if error.name in offer.error]
        return f"all that is left would buy {', '.join(errors)}"

    def trace_curve(self, question: Question, offer: Offer, context: QuoteContext) -> tuple[CurvePoint, ...]:
        """What shares of the budget would buy, from the smallest up to all that is left; without what is refused."""
        found = []
        for share in list_shares(self.share):
            offered = Offer(share=share, delta=offer.delta, level=offer.level, ends=offer.ends)
            try:
                plan = quote(question, offered, context).plans[0]
            except (BudgetExceeded, ParameterError):  # more than one question may cost, or too little to name keys
                continue
            found.append(make_point(plan, share, self.ledger.budget))
        return tuple(found)
