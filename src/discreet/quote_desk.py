"""Where prices are told: quotes, previews and explanations of questions, and what public tables say for nothing.

Nothing is charged and no private row is read here.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from typing import Any

from discreet import post_processing
from discreet.accounting.cost_words import describe_cost
from discreet.answer import Answer
from discreet.answer_record import Known, find_known
from discreet.computation_preview import preview_exactly, preview_quote, quote_computation
from discreet.engines.engine import Engine
from discreet.entropy import SYSTEM
from discreet.errors import BudgetExceeded
from discreet.explanation import explain
from discreet.frontends.outer.computation import OuterColumn
from discreet.frontends.read_sql import QuestionAndOffer, ReleasedComputation
from discreet.late_dataclass import dataclass
from discreet.ledger.ledger import Charge, Ledger
from discreet.offer import Offer
from discreet.parameters import Number, read_probability
from discreet.plan.nodes import Question
from discreet.plan.types import Type
from discreet.post_processing import count_groups
from discreet.preview import BatchPreview, Preview
from discreet.quote import Quote, QuoteContext, quote, quote_batch, quote_gaussian
from discreet.release import format_level
from discreet.remaining_budget import RemainingBudget
from discreet.stated_offer import StatedOffer
from discreet.statement_reader import StatementReader

# A tenth of the budget, to have numbers to explain with.
DEFAULT_OFFER: Mapping[str, Any] = {"share": Fraction(1, 10)}


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteDesk:
    """What prices of a dataset depend on: its declaration, the versions of its tables, and what its ledger has left.

    Of private tables the engine is asked for versions, and nothing else.
    """

    name: str
    statements: StatementReader
    engine: Engine
    ledger: Ledger
    per_query: Fraction | None
    shared_answers: bool

    @property
    def left(self) -> RemainingBudget:
        """What is left, and what it would buy."""
        return RemainingBudget(self.ledger)

    def make_context(self, analyst: str = "") -> QuoteContext:
        """What quoting a price needs to know, for what this analyst asks."""
        return QuoteContext(
            name=self.name,
            catalog=self.statements.catalog,
            budget=self.ledger.budget,
            version=self.find_version,
            per_query=self.per_query,
            left=self.left.left,
            find_paid=lambda identity: self.ledger.find_paid(identity, analyst, shared=self.shared_answers),
        )

    def find_version(self, question: Question) -> str:
        """The versions of all tables that a question reads."""
        return "; ".join(self.engine.version(table) for table in question.tables)

    def find_known(self, quoted: Quote, analyst: str) -> Known | None:
        """What is on record of the analyst; of all of them, where the codebook says that answers are shared.

        Without that word nobody learns what others asked.
        """
        return find_known(quoted, self.ledger, None if self.shared_answers else analyst)

    def quote(self, question: Question, offer: Offer, analyst: str) -> Quote:
        """One question at what is offered. Where that is more than is left, it may still follow from the record."""
        context = self.make_context(analyst)
        try:
            return quote(question, offer, context)
        except BudgetExceeded:
            if context.left is None:
                raise
            quoted = quote(question, offer, replace(context, left=None))
            if self.find_known(quoted, analyst) is None:
                raise
            return quoted

    def quote_at(
        self,
        questions: Sequence[Question],
        mu_squared: Sequence[Fraction],
        *,
        level: Number,
        analyst: str,
        delta: Fraction = Fraction(0),
    ) -> Quote:
        """Questions with normal noise, each at a μ² of its own.

        ``delta`` is what each may cost for naming keys from the data; without it these are refused.
        """
        return quote_gaussian(list(zip(questions, mu_squared, strict=True)), level, self.make_context(analyst), delta)

    def make_charge(self, quoted: Quote, analyst: str, request: str | None = None, project: str = "") -> Charge:
        """What the ledger is asked to take for quoted questions."""
        return Charge(
            request=request or str(uuid.UUID(int=SYSTEM.bits(128))),
            analyst=analyst,
            dataset=self.name,
            identity=quoted.identity,
            question=quoted.text,
            events=quoted.events,
            loss=quoted.loss,
            project=project,
            version=quoted.version,
            paid=quoted.paid,
        )

    def explain_refusal(
        self, refused: BudgetExceeded, question: Question, offer: Offer, quoted: Quote | None, analyst: str
    ) -> BudgetExceeded:
        """A refusal, with what the question would cost and the nearest that fits."""
        nearest = "" if quoted is None else self.left.describe_nearest(quoted)
        budget = self.ledger.budget
        cost = "" if quoted is None or not nearest else f"it would cost {describe_cost(budget, quoted.loss)}"
        least = self.left.describe_least(question, offer, self.make_context(analyst))
        more = [words for words in (cost, nearest, least) if words]
        return BudgetExceeded(" ".join([str(refused), *(f"{w[0].upper()}{w[1:]}." for w in more)])) if more else refused

    def preview(self, question: Question, offer: Offer, analyst: str, project: str, *, curve: bool) -> Preview:
        """What one question would cost at this offer, and how far off its answer would be."""
        quoted = self._quote_in_any_case(lambda context: quote(question, offer, context), analyst)

        def least() -> str:
            return self.left.describe_least(question, offer, self.make_context(analyst))

        return Preview(
            plan=quoted.plans[0],
            alternatives=quoted.alternatives,
            group_size=quoted.group_size,
            curve=self.left.trace_curve(question, offer, self.make_context(analyst)) if curve else (),
            **self._check_quote(quoted, analyst, project, None if offer.error is None else least),
        )

    def preview_computation(
        self, computation: ReleasedComputation, stated: StatedOffer, analyst: str, project: str
    ) -> Preview:
        """What the questions of a computation would cost together; the rest is free."""
        outputs = self.check_computation(computation)
        if not computation.questions:
            return preview_exactly(computation, outputs, budget=self.ledger.budget, remaining=self.left.words)
        quoted = self._quote_in_any_case(lambda context: quote_computation(computation, stated, context), analyst)
        return preview_quote(computation, outputs, quoted, **self._check_quote(quoted, analyst, project))

    def preview_batch(
        self,
        questions: Sequence[Question],
        offer: Offer,
        analyst: str,
        project: str,
        *,
        weights: Sequence[Number] | None,
        fixed: bool,
    ) -> BatchPreview:
        """What several questions would cost together, and how far off each answer would be."""
        quoted = self._quote_in_any_case(
            lambda context: quote_batch(questions, offer, context, weights=weights, fixed=fixed), analyst
        )
        terms = self._check_quote(quoted, analyst, project)
        each = tuple(Preview(plan=plan, **terms) for plan in quoted.plans)
        return BatchPreview(each=each, loss=quoted.loss, **terms)

    def check_computation(self, computation: ReleasedComputation) -> tuple[tuple[OuterColumn, Type], ...]:
        """Refuse what cannot be computed, while nothing is charged yet; the columns that will come."""
        groups = [count_groups(asked.question, self.statements.catalog) for asked in computation.questions]
        return post_processing.check_computation(computation, self.statements.read_table, groups)

    def answer_exactly(self, computation: ReleasedComputation, level: Number, analyst: str, time: datetime) -> Answer:
        """What public tables say, for nothing. It goes nowhere on record."""
        receipt = {
            "request": "",
            "dataset": self.name,
            "analyst": analyst,
            "time": time.isoformat(timespec="seconds"),
            "level": format_level(read_probability(level, "level")),
        }
        catalog = self.statements.catalog
        return post_processing.answer_exactly(
            computation,
            post_processing.compute(computation, (), self.statements.read_table),
            unit=catalog.unit,
            neighbours=catalog.neighbours,
            remaining=self.left.words,
            receipt=receipt,
        )

    def explain(self, asked: QuestionAndOffer, offer: Mapping[str, Any]) -> str:
        """The plan of a question, its facts, sensitivities and noise, and why."""
        words = dict(offer if offer or asked.offer else DEFAULT_OFFER)
        stated = StatedOffer(level=words.pop("level", 0.95), ends=words.pop("ends", False), words=words)
        context = replace(self.make_context(), left=None)
        return explain(quote(asked.question, stated.make_offer(asked), context).plans[0], self.ledger.budget)

    def _check_quote(
        self, quoted: Quote, analyst: str, project: str, least: Callable[[], str] | None = None
    ) -> dict[str, Any]:
        """Whether what was quoted can be charged or is known already, and what is left."""
        fits = self.ledger.fits(self.make_charge(quoted, analyst, project=project))
        return {
            "budget": self.ledger.budget,
            "fits": fits,
            "remaining": self.left.words,
            "nearest": "" if fits else self.left.describe_nearest(quoted) if least is None else least(),
            "answered": self.find_known(quoted, analyst) is not None,
        }

    def _quote_in_any_case(self, make: Callable[[QuoteContext], Quote], analyst: str) -> Quote:
        """A quote to look at: where an offer is more than is left, at what it would buy of an untouched budget."""
        context = self.make_context(analyst)
        try:
            return make(context)
        except BudgetExceeded:
            if context.left is None:
                raise
            return make(replace(context, left=None))
