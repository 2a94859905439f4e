"""Quotes: questions with their price, and the name by which the ledger knows them again. No data is touched here."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.accounting import events
from discreet.accounting.account import compose
from discreet.bounding.bound import bound_all
from discreet.parameters import Number
from discreet.plan.catalog import Catalog
from discreet.plan.nodes import Question
from discreet.plan.show import show
from discreet.price import Offer, price, price_batch, price_fixed, read_weights
from discreet.privacy import Budget, Loss
from discreet.release import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteContext:
    """Where prices are quoted: the dataset, what is public about it, what may be spent, and the version of its data."""

    name: str
    catalog: Catalog
    budget: Budget
    version: Callable[[Question], str]
    per_query: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Quote:
    """Questions that are ready to be asked: what they cost together, and the texts that name them and their data.

    ``events`` are what the ledger charges. That is what the plans will have released, or one event that covers it.
    """

    text: str
    plans: tuple[Plan, ...]
    events: tuple[events.Event, ...]
    identity: str
    version: str

    @property
    def loss(self) -> Loss:
        """What all of it costs."""
        return compose(self.events).loss


def quote(question: Question, offer: Offer, desk: QuoteContext) -> Quote:
    """One question, at what is offered."""
    plan = price(
        bound_all(question, desk.catalog),
        offer,
        desk.budget,
        unit=desk.catalog.unit,
        neighbours=desk.catalog.neighbours,
        most=desk.per_query,
    )
    return _make_quote((plan,), plan.events, desk)


def quote_batch(
    questions: Sequence[Question], offer: Offer, desk: QuoteContext, *, weights: Sequence[Number] | None, fixed: bool
) -> Quote:
    """Several questions under one price; ``fixed`` prices them as one plan by its privacy-loss distribution."""
    shares = read_weights(weights, len(questions))
    pricing = price_fixed if fixed else price_batch
    plans, charged = pricing(
        [bound_all(question, desk.catalog) for question in questions],
        offer,
        desk.budget,
        weights=shares,
        unit=desk.catalog.unit,
        neighbours=desk.catalog.neighbours,
        most=desk.per_query,
    )
    return _make_quote(plans, charged, desk)


def _make_quote(plans: tuple[Plan, ...], charged: tuple[events.Event, ...], desk: QuoteContext) -> Quote:
    """The identity is of the dataset, its version, the questions and the mechanisms: equal ones have one answer."""
    versions = [desk.version(plan.question) for plan in plans]
    facts = [desk.name]
    for plan, version in zip(plans, versions):
        facts += [version, repr(plan.question), *map(str, map(events.dump, plan.events))]
    if charged != plans[0].events:
        facts += ["together", *map(str, map(events.dump, charged))]
    return Quote(
        text="\n\n".join(show(plan.question) for plan in plans),
        plans=plans,
        events=charged,
        identity=hashlib.sha256("\n".join(facts).encode()).hexdigest(),
        version="; ".join(dict.fromkeys(versions)),
    )
