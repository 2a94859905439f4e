"""Quotes: questions with their price, and the name by which the ledger knows them again. No data is touched here."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction

from discreet.accounting import events
from discreet.accounting.account import compose
from discreet.batch_price import PricedBatch, price_batch
from discreet.bounding.bound import bound_all
from discreet.offer import Offer
from discreet.parameters import Number
from discreet.plan.catalog import Catalog
from discreet.plan.nodes import Question
from discreet.plan.show import show
from discreet.price import PriceTerms, price
from discreet.privacy import Budget, Loss
from discreet.recorded_release import frame_of
from discreet.release import CellChoice, KeyRule, Noise, Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteContext:
    """What quoting needs to know of a dataset: its name, what is public about it, its budget, and its version."""

    name: str
    catalog: Catalog
    budget: Budget
    version: Callable[[Question], str]
    per_query: Fraction | None = None

    @property
    def terms(self) -> PriceTerms:
        """What every price depends on."""
        return PriceTerms(
            budget=self.budget,
            unit=self.catalog.unit,
            neighbours=self.catalog.neighbours,
            per_query=self.per_query,
        )


@dataclass(frozen=True, slots=True)
class Quote:
    """Questions that are ready to be asked: what they cost together, and the texts that name them and their data.

    ``events`` are what the ledger charges. That is what the plans will have released, or one event that covers it.
    ``frames`` name, for each plan and each of its groupings, what its measures are taken of (``recorded_release``).
    """

    text: str
    plans: tuple[Plan, ...]
    events: tuple[events.Event, ...]
    identity: str
    version: str
    frames: tuple[tuple[str, ...], ...]

    @property
    def loss(self) -> Loss:
        """What all of it costs."""
        return compose(self.events).loss


def quote(question: Question, offer: Offer, context: QuoteContext) -> Quote:
    """One question, at what is offered."""
    plan = price(bound_all(question, context.catalog), offer, context.terms)
    return _make_quote(PricedBatch((plan,), plan.events), context)


def quote_batch(
    questions: Sequence[Question],
    offer: Offer,
    context: QuoteContext,
    *,
    weights: Sequence[Number] | None,
    fixed: bool,
) -> Quote:
    """Several questions under one price; ``fixed`` prices them as one plan by its privacy-loss distribution."""
    bounded = [bound_all(question, context.catalog) for question in questions]
    return _make_quote(price_batch(bounded, offer, context.terms, weights=weights, fixed=fixed), context)


def _make_quote(priced: PricedBatch, context: QuoteContext) -> Quote:
    plans, charged = priced.plans, priced.charged
    versions = [context.version(plan.question) for plan in plans]
    return Quote(
        text="\n\n".join(show(plan.question) for plan in plans),
        plans=plans,
        events=charged,
        identity=_identify(context.name, plans, versions, charged),
        version="; ".join(dict.fromkeys(versions)),
        frames=tuple(
            tuple(frame_of(release, context.name, version) for release in plan.releases)
            for plan, version in zip(plans, versions)
        ),
    )


def _identify(name: str, plans: Sequence[Plan], versions: Sequence[str], charged: Sequence[events.Event]) -> str:
    """The name of a release: the dataset, its version, what is measured of it within which limits, and the mechanisms.

    What is computed from the draw afterwards (outputs, HAVING, ORDER BY, LIMIT, the level of intervals) is not part of
    it: all of that can be finished again from the same draw.
    """
    facts = [name]
    for plan, version in zip(plans, versions):
        facts.append(version)
        for release in plan.releases:
            facts.append(repr(release.bounded.bounded))
            for rules in (release.noises, release.choices, {} if release.selection is None else {0: release.selection}):
                facts += [f"{position}: {_write_parameters(rule)}" for position, rule in rules.items()]
        facts += map(str, map(events.dump, plan.events))
    if charged != plans[0].events:
        facts += ["together", *map(str, map(events.dump, charged))]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()


def _write_parameters(mechanism: Noise | CellChoice | KeyRule) -> str:
    """A mechanism by its name and all parameters. Events alone would not do: they do not say which quantile it is."""
    known = [f"{field.name}={getattr(mechanism, field.name)!r}" for field in fields(mechanism) if field.init]
    return f"{type(mechanism).__name__}({', '.join(known)})"
