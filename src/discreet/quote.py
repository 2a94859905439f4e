"""Quotes: questions with their price, and the name by which the ledger knows them again. No data is touched here."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from fractions import Fraction

from discreet import parameters
from discreet.accounting import events
from discreet.accounting.account import compose
from discreet.accounting.events import to_exact
from discreet.batch_price import PricedBatch, price_batch, read_weights
from discreet.bounding.bound import BoundedQuestion, bound_all
from discreet.errors import InternalError, ParameterError
from discreet.exact import Ln
from discreet.late_dataclass import dataclass
from discreet.mechanisms.quantiles.ends import CellEnds
from discreet.offer import BudgetLeft, BudgetOffer, NoiseFamily, Offer, Payment
from discreet.parameters import Number
from discreet.plan.catalog import Catalog
from discreet.plan.nodes import Question
from discreet.plan.relations import find_tables
from discreet.plan.show import show
from discreet.price import PriceTerms, choose_group_size, price_at, price_in_families
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
    left: BudgetLeft | None = None
    # What a question of this identity was priced at before; None where it was not asked.
    find_paid: Callable[[str], str | None] = lambda _: None

    @property
    def terms(self) -> PriceTerms:
        """What every price depends on."""
        return PriceTerms(
            budget=self.budget,
            unit=self.catalog.unit,
            neighbours=self.catalog.neighbours,
            per_query=self.per_query,
            left=self.left,
            sizes=self.catalog.sizes,
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
    paid: str = ""
    alternatives: tuple[Plan, ...] = ()
    # How many rows a group has, roughly, where an error is wanted.
    group_size: Fraction | None = None

    @property
    def loss(self) -> Loss:
        """What all of it costs."""
        return compose(self.events).loss


def quote(question: Question, offer: Offer, context: QuoteContext) -> Quote:
    """One question, at what is offered."""
    forms, terms = bound_all(question, context.catalog), context.terms
    _check_ends(offer, [forms])
    if offer.error is not None:
        size = choose_group_size(forms[0], offer, terms)
        return replace(_quote_forms(forms, offer, context, terms), group_size=size)
    return _quote_forms(forms, offer, context, terms)


def _quote_forms(forms: Sequence[BoundedQuestion], offer: Offer, context: QuoteContext, terms: PriceTerms) -> Quote:
    if context.budget.notion != "approx":
        plan = price_in_families(forms, offer, terms)[0].plan
        return _make_quote(PricedBatch((plan,), plan.events), context)
    # What an offer buys depends on what is left, so the question is known by the offer, and its price is on record.
    identity = _identify_offer(context, [forms], offer)
    known = context.find_paid(identity)
    if known is not None:
        terms = replace(terms, paid=Payment.read(known))
    best, *others = price_in_families(forms, offer, terms)
    quoted = _make_quote(PricedBatch((best.plan,), best.plan.events), context)
    others_plans = tuple(other.plan for other in others)
    return replace(quoted, identity=identity, paid=str(best.payment), alternatives=others_plans)


def _check_ends(offer: Offer, batch: Sequence[Sequence[BoundedQuestion]]) -> None:
    """Refuse to buy ends where there is nothing that they could belong to."""
    if offer.ends and not any(map(_has_ends, batch)):
        rule = "buys intervals of quantiles, MIN and MAX, and none is asked for"
        fix = "Leave it out: numbers with noise have intervals without it, and a mode has none. Nothing was charged."
        raise ParameterError("ends", rule, fix)


def _has_ends(forms: Sequence[BoundedQuestion]) -> bool:
    """Whether a question has something that ends could belong to."""
    return any(recipe.share is not None for form in forms for recipe in form.estimates)


# What stands between the payments of several questions on record.
_BETWEEN = " and "

# A payment at which questions are compared: with it two of them are the same release where all parameters are.
_COMPARED = Fraction(1, 100)
_COMPARED_DELTA = Fraction(1, 10**9)


def _identify_offer(
    context: QuoteContext, batch: Sequence[Sequence[BoundedQuestion]], offer: Offer, said: Sequence[str] = ()
) -> str:
    """The name of a release by what was offered for it: what it would be at one and the same payment, and the offer."""
    stated = {name: getattr(offer, name) for name in ("epsilon", "rho", "share", "error", "group_size", "delta")}
    words = [f"{name}={_write_number(value)}" for name, value in stated.items() if value is not None]
    # The least price for an error depends on the level at which it is wanted.
    words += ["alone"] if offer.alone else []
    words += [f"level={parameters.read_probability(offer.level, 'level')}"] if offer.error else []
    paid, plans = BudgetOffer(offer, context.budget), []
    for forms in batch:
        payment = Payment(NoiseFamily.GAUSSIAN, (_COMPARED,) * len(forms), _COMPARED_DELTA)
        plans.append(price_at(forms, paid, context.terms, payment).plan)
    versions = [context.version(plan.question) for plan in plans]
    compared = _identify(context, plans, versions, plans[0].events)
    facts = ["offer", compared, repr(context.budget), *words, *said]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()


def _write_number(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name!r}: {_write_number(size)}" for name, size in sorted(value.items()))
    return str(value if isinstance(value, Ln) else parameters.read_number(value, "offer"))


def quote_batch(
    questions: Sequence[Question],
    offer: Offer,
    context: QuoteContext,
    *,
    weights: Sequence[Number] | None,
    fixed: bool,
) -> Quote:
    """Several questions under one price; ``fixed`` prices them as one plan by its privacy-loss distribution."""
    bounded, terms = [bound_all(question, context.catalog) for question in questions], context.terms
    _check_ends(offer, bounded)
    if context.budget.notion != "approx":
        return _make_quote(price_batch(bounded, offer, terms, weights=weights, fixed=fixed), context)
    read_weights(weights, len(bounded))  # refuses what is no batch
    said = [f"fixed={fixed}", *(() if weights is None else [_write_number(weight) for weight in weights])]
    identity = _identify_offer(context, bounded, offer, said)
    known = context.find_paid(identity)
    if known is not None:
        terms = replace(terms, paid=Payment.read(known))
    priced = price_batch(bounded, offer, terms, weights=weights, fixed=fixed)
    return replace(_make_quote(priced, context), identity=identity, paid=str(priced.payment))


def quote_gaussian(
    asked: Sequence[tuple[Question, Fraction]], level: Number, context: QuoteContext, delta: Fraction = Fraction(0)
) -> Quote:
    """Several questions with normal noise, each at a μ² of its own. For releases, which charge for them together.

    Loss: at most the sum of all μ², and ``delta`` for each question whose keys come from the data. Refused is what
    needs another mechanism: quantiles and modes, and without ``delta`` keys from the data.
    """
    plans: list[Plan] = []
    for question, mu_squared in asked:
        forms = bound_all(question, context.catalog)
        if any((form.selector is not None and not delta) or form.bounded.spreads for form in forms):
            raise ParameterError(
                "questions",
                "of a release are counts, sums, means and variances by declared keys",
                "Declare the keys in the codebook, or ask this question by itself. Nothing was charged.",
            )
        paying = sum(not form.is_free for form in forms) or 1
        amounts = tuple(mu_squared / 2 / paying * (not form.is_free) for form in forms)
        offer = BudgetOffer(Offer(rho=mu_squared / 2, level=level), context.budget)
        plan = price_at(forms, offer, context.terms, Payment(NoiseFamily.GAUSSIAN, amounts, delta)).plan
        normal = [event for event in plan.events if isinstance(event, events.RoundedGaussian)]
        failing = [event for event in plan.events if isinstance(event, events.Approximate)]
        others = len(plan.events) - len(normal) - (len(failing) if delta else 0)
        if others or any(to_exact(event.epsilon) or to_exact(event.delta) > delta for event in failing):
            raise InternalError("A question has noise that its price does not know.")
        if sum(map(events.squared_mu, normal), Fraction(0)) > mu_squared:
            raise InternalError("A question costs more than its part of a release.")
        plans.append(plan)
    return _make_quote(PricedBatch(tuple(plans), tuple(event for plan in plans for event in plan.events)), context)


def quote_each(asked: Sequence[tuple[Question, Offer]], context: QuoteContext) -> Quote:
    """Several questions, each at an offer of its own, under one charge.

    Each is priced as if it were asked after those before it, so every one keeps by itself what its offer states.
    Loss: the sum of all. Why: the events are those of the questions, and one charge holds them together.
    """
    bounded = [bound_all(question, context.catalog) for question, _ in asked]
    _check_ends(asked[0][1], bounded)
    offers = [replace(offer, ends=offer.ends and _has_ends(forms)) for (_, offer), forms in zip(asked, bounded)]
    if context.budget.notion != "approx":
        plans = [_quote_forms(forms, offer, context, context.terms).plans[0] for forms, offer in zip(bounded, offers)]
        return _make_quote(PricedBatch(tuple(plans), tuple(event for plan in plans for event in plan.events)), context)
    named = [_identify_offer(context, [forms], offer) for forms, offer in zip(bounded, offers)]
    identity = hashlib.sha256("\n".join(["each", *named]).encode()).hexdigest()
    known = context.find_paid(identity)
    payments = [Payment.read(words) for words in known.split(_BETWEEN)] if known is not None else None
    found: list[tuple[Plan, Payment]] = []
    left = context.left
    for at, (forms, offer) in enumerate(zip(bounded, offers)):
        terms = replace(context.terms, left=left, paid=None if payments is None else payments[at])
        best = price_in_families(forms, offer, terms)[0]
        found.append((best.plan, best.payment))
        if left is not None:
            left = replace(left, total=left.currency.add(left.total, left.currency.price(best.plan.loss)))
    plans = [plan for plan, _ in found]
    together = PricedBatch(tuple(plans), tuple(event for plan in plans for event in plan.events))
    paid = _BETWEEN.join(str(payment) for _, payment in found)
    return replace(_make_quote(together, context), identity=identity, paid=paid)


def _make_quote(priced: PricedBatch, context: QuoteContext) -> Quote:
    plans, charged = priced.plans, priced.charged
    versions = [context.version(plan.question) for plan in plans]
    return Quote(
        text="\n\n".join(show(plan.question) for plan in plans),
        plans=plans,
        events=charged,
        identity=_identify(context, plans, versions, charged),
        version="; ".join(dict.fromkeys(versions)),
        frames=tuple(
            tuple(frame_of(release, context.name, version) for release in plan.releases)
            for plan, version in zip(plans, versions)
        ),
    )


def _identify(
    context: QuoteContext, plans: Sequence[Plan], versions: Sequence[str], charged: Sequence[events.Event]
) -> str:
    """The name of a release: the dataset, its version, what is measured of it within which limits, and the mechanisms.

    Limits are the caps in the bounded plan, and the lengths of the texts in its tables: longer ones are read as NULL.

    What is computed from the draw afterwards (outputs, HAVING, ORDER BY, LIMIT, the level of intervals) is not part of
    it: all of that can be finished again from the same draw.
    """
    facts = [context.name]
    for plan, version in zip(plans, versions):
        facts += [version, *_list_lengths(plan.question, context.catalog)]
        for release in plan.releases:
            facts += [repr(release.bounded.bounded), repr(release.parts)]
            named = {} if release.selection is None else {0: release.selection}
            for rules in (release.noises, release.choices, release.ends, named):
                facts += [f"{position}: {_write_parameters(rule)}" for position, rule in rules.items()]
        facts += map(str, map(events.dump, plan.events))
    if charged != plans[0].events:
        facts += ["together", *map(str, map(events.dump, charged))]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()


def _list_lengths(question: Question, catalog: Catalog) -> list[str]:
    """The declared lengths of the text columns of all tables that a question reads."""
    columns = (
        (table, *item) for table in find_tables(question.source) for item in catalog.tables[table].columns.items()
    )
    return [f"{t}.{name}: {known.max_length}" for t, name, (_, known) in columns if known.max_length is not None]


def _write_parameters(mechanism: Noise | CellChoice | CellEnds | KeyRule) -> str:
    """A mechanism by its name and all parameters. Events alone would not do: they do not say which quantile it is."""
    known = [f"{field.name}={getattr(mechanism, field.name)!r}" for field in fields(mechanism) if field.init]
    return f"{type(mechanism).__name__}({', '.join(known)})"
