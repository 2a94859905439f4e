"""The curator: from a question to a private answer.

``Curator.ask`` is the straight line of the whole system. Data flows down it and never back up. Before ``reserve`` no
private value is touched, and every error says that nothing was charged. After it the charge stands, whatever happens,
and the caller is told one constant sentence; the details go to the curator's own log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from datetime import timedelta
from fractions import Fraction
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from discreet import post_processing
from discreet.answer import Answer
from discreet.answer_record import holds_answers, read_record
from discreet.answer_times import SYSTEM_CLOCK, AnswerTimes, Clock
from discreet.bound_search import Bounds, Contributions, buy_contributions, missing_bounds
from discreet.bound_search import buy_bounds as column_bounds
from discreet.bounding.contributions import BoundedPlan
from discreet.call_forms import check_call
from discreet.charged_answers import ChargedAnswers
from discreet.computation_preview import quote_computation
from discreet.declared_table import Table
from discreet.engines.engine import Engine, Groups, ProgressCallback
from discreet.engines.tabulation import Tabulation
from discreet.errors import BudgetExceeded, ParameterError, UsageError
from discreet.exact import Integers
from discreet.frontends.read_sql import QuestionAndOffer, ReleasedComputation
from discreet.ledger.ledger import Charge, Entry, Ledger, Record, Reservation
from discreet.offer import Offer
from discreet.parameters import Epsilon, Number
from discreet.plan.catalog import Catalog
from discreet.plan.nodes import Question
from discreet.preview import BatchPreview, Preview
from discreet.price import PriceTerms
from discreet.privacy import Budget
from discreet.quote import Quote, quote_batch
from discreet.quote_desk import DEFAULT_OFFER, QuoteDesk
from discreet.remaining_budget import RemainingBudget
from discreet.stated_offer import StatedOffer
from discreet.statement_reader import QuestionLike, StatementReader

if TYPE_CHECKING:
    from discreet.series.running_series import RunningSeries

T = TypeVar("T")


class Curator:
    """Holds the data of one dataset and answers questions about it within a budget.

    Make one with ``discreet.open`` (a codebook) or ``discreet.curate`` (frames in memory).

    Privacy: all answers together, to all analysts, cost one unit no more than the budget, for the neighbours that the
    catalog declares, also when questions are chosen after seeing answers. Why: what is released is a post-processing
    of priced releases (see ``release``), each of which the ledger has charged before any data was read.
    """

    def __init__(
        self,
        *,
        name: str,
        catalog: Catalog,
        engine: Engine,
        ledger: Ledger,
        per_query: Fraction | None = None,
        analysts: Sequence[str] | None = None,
        shared_answers: bool = False,
        answer_after: timedelta | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.name = name
        self._statements = StatementReader(catalog, engine)
        self._engine = engine
        self._ledger = ledger
        self._per_query = per_query
        self._analysts = None if analysts is None else frozenset(analysts)
        self._shared_answers = shared_answers
        self._answer_after = answer_after
        self._clock = clock

    @check_call("ask(question, share=0.1), or epsilon=0.5, rho=0.01 or error={'n': 12} instead")
    def ask(
        self,
        question: QuestionLike,
        *,
        epsilon: Epsilon | None = None,
        rho: Number | None = None,
        share: Number | None = None,
        error: Mapping[str, Number] | None = None,
        group_size: Number | None = None,
        delta: Number | None = None,
        level: Number = 0.95,
        ends: bool = False,
        public: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        bounds: str | None = None,
        analyst: str = "analyst",
        project: str = "",
        request: str | None = None,
        watch: ProgressCallback | None = None,
    ) -> Answer:
        """Answer a question, at a loss (``epsilon``, ``rho``), a ``share`` of the budget, or for a wanted ``error``.

        The error of an average, a ratio or a variance is wanted for groups of about ``group_size`` rows; without it,
        for the public number of rows over that of public groups.
        ``public`` names answers given before, or frames that the analyst brings, for the question to use as tables.
        ``parameters`` are the values of @name in the text.
        ``bounds="auto"`` buys bounds that are missing with a quarter of the offer. What follows from draws that were
        made for this analyst on the same data, and are at least as exact as the offer, is answered from them for free.
        """
        times = self._charged.begin()
        asked = self._statements.read_statement(question, public, parameters)
        words = {"epsilon": epsilon, "rho": rho, "share": share, "error": error}
        words |= {"group_size": group_size, "delta": delta}
        stated = StatedOffer(words=words, level=level, ends=ends)
        automatic = missing_bounds.is_automatic(bounds)
        who: dict[str, Any] = {"analyst": analyst, "project": project, "request": request, "watch": watch}
        if isinstance(asked, ReleasedComputation):
            return self._compute(asked, stated, times, who, automatic=automatic)
        return self._ask_question(asked, stated.make_offer(asked), times, who, automatic=automatic)

    def _ask_question(
        self,
        asked: QuestionAndOffer,
        offer: Offer,
        times: AnswerTimes,
        who: Mapping[str, Any],
        *,
        automatic: bool,
    ) -> Answer:
        """Answer one question at what is offered for it."""
        if automatic and missing_bounds.find_unbounded(asked.question, self.catalog):
            return missing_bounds.ask(self, asked.question, offer, **who)
        analyst, request, project, watch = (who[word] for word in ("analyst", "request", "project", "watch"))
        quoted = None
        try:
            quoted = self._desk.quote(asked.question, offer, analyst)
            (answer,) = self._answer(quoted, self._desk.make_charge(quoted, analyst, request, project), times, watch)
        except BudgetExceeded as refused:
            raise self._desk.explain_refusal(refused, asked.question, offer, quoted, analyst) from None
        return answer

    def _compute(
        self,
        computation: ReleasedComputation,
        stated: StatedOffer,
        times: AnswerTimes,
        who: Mapping[str, Any],
        *,
        automatic: bool,
    ) -> Answer:
        """Answer the questions of a computation under one charge, then compute with what was released."""
        self._check_analyst(who["analyst"])
        self._desk.check_computation(computation)
        if not computation.questions:
            return self._desk.answer_exactly(computation, stated.level, who["analyst"], self._clock.now())
        if len(computation.questions) == 1:
            (asked,) = computation.questions
            offer = stated.make_offer(asked)
            answers: tuple[Answer, ...] = (self._ask_question(asked, offer, times, who, automatic=automatic),)
            spent = answers[0].spent
        else:
            quoted = quote_computation(computation, stated, self._desk.make_context(who["analyst"]))
            charge = self._desk.make_charge(quoted, who["analyst"], who["request"], who["project"])
            answers = self._answer(quoted, charge, times, who["watch"])
            spent = quoted.loss
        rows = post_processing.compute(computation, answers, self._statements.read_table)
        return post_processing.combine_answers(computation, answers, rows, self.budget, spent)

    @check_call("ask_batch([question, another], share=0.1)")
    def ask_batch(
        self,
        questions: Sequence[QuestionLike],
        *,
        weights: Sequence[Number] | None = None,
        epsilon: Epsilon | None = None,
        rho: Number | None = None,
        share: Number | None = None,
        delta: Number | None = None,
        fixed: bool = False,
        level: Number = 0.95,
        ends: bool = False,
        public: Mapping[str, Any] | None = None,
        analyst: str = "analyst",
        project: str = "",
        request: str | None = None,
        watch: ProgressCallback | None = None,
    ) -> tuple[Answer, ...]:
        """Answer several questions under one price and one charge: all of them, or none.

        ``weights`` say how much of the price each gets (equal shares without them). ``fixed`` prices the batch as one
        plan by its privacy-loss distribution, which is tighter, and charges that as one (ε, δ).
        """
        times = self._charged.begin()
        offer = Offer(epsilon=epsilon, rho=rho, share=share, delta=delta, level=level, ends=ends)
        read = self._statements.read_batch(questions, public)
        quoted = quote_batch(read, offer, self._desk.make_context(analyst), weights=weights, fixed=fixed)
        return self._answer(quoted, self._desk.make_charge(quoted, analyst, request, project), times, watch)

    def _answer(
        self, quoted: Quote, charge: Charge, times: AnswerTimes, watch: ProgressCallback | None
    ) -> tuple[Answer, ...]:
        """The answers on record, or those of the straight line."""
        self._check_analyst(charge.analyst)
        known = self._desk.find_known(quoted, charge.analyst)
        if known is not None:
            return self._charged.answer_known(known, quoted)
        return self._charged.answer(quoted, charge, times, watch)

    @check_call("preview(question, share=0.1), or epsilon=0.5, rho=0.01 or error={'n': 12} instead")
    def preview(
        self,
        question: QuestionLike,
        *,
        epsilon: Epsilon | None = None,
        rho: Number | None = None,
        share: Number | None = None,
        error: Mapping[str, Number] | None = None,
        group_size: Number | None = None,
        delta: Number | None = None,
        level: Number = 0.95,
        ends: bool = False,
        public: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        bounds: str | None = None,
        curve: bool = False,
        analyst: str = "analyst",
        project: str = "",
    ) -> Preview:
        """What the answer would cost and how far off it would be. Free: no data is read, nothing is charged.

        ``curve`` adds what other shares of the budget would buy; without an offer beside it, a tenth is priced.
        """
        asked = self._statements.read_statement(question, public, parameters)
        words = {"epsilon": epsilon, "rho": rho, "share": share, "error": error}
        words |= {"group_size": group_size, "delta": delta}
        if isinstance(asked, ReleasedComputation):
            if curve:
                fix = "Preview the SELECT inside by itself. Nothing was charged."
                raise ParameterError("curve", "is for a single question", fix)
            stated = StatedOffer(words=words, level=level, ends=ends)
            return self._desk.preview_computation(asked, stated, analyst, project)
        if curve and not asked.offer and all(words[form] is None for form in ("epsilon", "rho", "share", "error")):
            words |= DEFAULT_OFFER
        offer = StatedOffer(words=words, level=level, ends=ends).make_offer(asked)
        if missing_bounds.is_automatic(bounds) and missing_bounds.find_unbounded(asked.question, self.catalog):
            return missing_bounds.preview(self, asked.question, offer, analyst=analyst, project=project)
        return self._desk.preview(asked.question, offer, analyst, project, curve=curve)

    @check_call("preview_batch([question, another], share=0.1)")
    def preview_batch(
        self,
        questions: Sequence[QuestionLike],
        *,
        weights: Sequence[Number] | None = None,
        epsilon: Epsilon | None = None,
        rho: Number | None = None,
        share: Number | None = None,
        delta: Number | None = None,
        fixed: bool = False,
        level: Number = 0.95,
        ends: bool = False,
        public: Mapping[str, Any] | None = None,
        analyst: str = "analyst",
        project: str = "",
    ) -> BatchPreview:
        """What several answers would cost together, and how far off each would be. Free."""
        offer = Offer(epsilon=epsilon, rho=rho, share=share, delta=delta, level=level, ends=ends)
        read = self._statements.read_batch(questions, public)
        return self._desk.preview_batch(read, offer, analyst, project, weights=weights, fixed=fixed)

    def answered(self, question: QuestionLike, *, analyst: str = "analyst", **offer: Any) -> bool:
        """Whether the answer follows from what is on record for this analyst, so that asking is free."""
        quoted = self._desk.quote(self._statements.read_question(question).question, Offer(**offer), analyst)
        return self._desk.find_known(quoted, analyst) is not None

    def is_free(
        self,
        question: QuestionLike,
        public: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> bool:
        """Whether a question reads public tables only, so that it is answered exactly and without an offer."""
        found = self._statements.read_statement(question, public, parameters)
        return isinstance(found, ReleasedComputation) and not found.questions

    def find_answers(self, request: str, *, analyst: str = "analyst") -> tuple[Answer, ...] | None:
        """What a request of this analyst was given; nothing yet where it was only charged, None where it was not.

        It is None, too, for what is no question: a release, a series, or bounds that were bought.
        """
        found = self._ledger.find_request(analyst, request)
        if found is None or (found.record is not None and not holds_answers(found.record)):
            return None
        return () if found.record is None else read_record(found.record, self.remaining)

    def limit(self, per_query: Fraction) -> Curator:
        """The same curator, for somebody whose questions may cost no more than this each, in the budget's terms."""
        limited = copy(self)
        own = self._per_query
        limited._per_query = per_query if own is None else min(per_query, own)  # noqa: SLF001  # a copy of our own
        return limited

    def explain(
        self,
        question: QuestionLike,
        public: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        **offer: Any,
    ) -> str:
        """The plan of a question, its facts, sensitivities and noise, and why. Free."""
        asked = self._statements.read_statement(question, public, parameters)
        if isinstance(asked, ReleasedComputation):
            parts = [self._desk.explain(each, offer) for each in asked.questions]
            return "\n\n".join([*parts, post_processing.explain_rest(asked)])
        return self._desk.explain(asked, offer)

    def bounds(self, table: str, column: str, **offer: Any) -> Bounds:
        """Buy bounds for a column: a metered question like any other, and the line for the codebook."""
        return column_bounds(self, table, column, **offer)

    def contributions(self, table: str, by: Sequence[str] = (), **offer: Any) -> Contributions:
        """Buy good limits for a table: how many rows a unit has, and in how many groups by these columns."""
        return buy_contributions(self, table, by=by, **offer)

    @property
    def catalog(self) -> Catalog:
        """What is declared: tables, columns and their public facts."""
        return self._statements.catalog

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the declared tables; ``curator.table(name)`` shows one."""
        return tuple(self.catalog.tables)

    def table(self, name: str) -> Table:
        """A table to ask about by a chain of verbs, which ends with ``.preview(...)`` or ``.ask(...)``."""
        return Table(self.catalog, self.catalog.find_table(name).name, curator=self)

    def draw_tables(
        self,
        tabulation: Tabulation,
        charge: Charge,
        draw: Callable[[tuple[Integers, ...]], Record],
        watch: ProgressCallback | None = None,
    ) -> tuple[Reservation, Record]:
        """Count tables and draw from them once, under one charge; what was drawn for it before is given again.

        For releases (``publish``), which price themselves by ``terms_for`` and say what is drawn.
        """
        self._check_analyst(charge.analyst)
        return self._charged.draw_tables(tabulation, charge, draw, watch)

    def draw_counts(
        self,
        bounded: BoundedPlan | None,
        charge: Charge,
        freeze: Callable[[Callable[[], Groups]], T],
        draw: Callable[[T], Record],
    ) -> tuple[Reservation, Record]:
        """Count groups and draw from them once, under one charge; what was drawn for it before is given again.

        For series, which keep what they counted: ``freeze`` is handed the count, and runs it if it must. Without
        ``bounded`` nothing is counted.
        """
        self._check_analyst(charge.analyst)
        return self._charged.draw_counts(bounded, charge, freeze, draw)

    def quote_at(self, questions: Sequence[QuestionLike], mu_squared: Sequence[Fraction], **choices: Any) -> Quote:
        """Questions with normal noise, each at a μ² of its own; nothing is charged. For releases: ``QuoteDesk``."""
        return self._desk.quote_at(self._statements.read_batch(questions, None), mu_squared, **choices)

    def answer_quoted(self, quoted: Quote, charge: Charge) -> tuple[Answer, ...]:
        """Answer quoted questions once, under a charge that its caller made. For releases (``publish``).

        Privacy: the charge stands when this returns. Answers to the same questions under other charges are not taken in
        its place: what a release draws later relies on it.
        """
        self._check_analyst(charge.analyst)
        return self._charged.answer(quoted, charge, self._charged.begin(), None)

    def read_question(self, question: QuestionLike) -> Question:
        """A question in the words of the codebook."""
        return self._statements.read_question(question).question

    def series(self, question: QuestionLike, **choices: Any) -> RunningSeries:
        """A count that grows by a day, week or month at a time, all periods under one charge; see ``open_series``.

        ``series(question, name=..., by="day", first=..., periods=365, days_per_unit=2, apart=1, epsilon=1)``, and then
        ``release()`` for each period.
        """
        from discreet.series.opening_series import open_series

        return open_series(self, self.read_question(question), **choices)

    def terms_for(self, analyst: str) -> PriceTerms:
        """What a price depends on now, for what this analyst asks."""
        return self._desk.make_context(analyst).terms

    def find_version(self, question: Question) -> str:
        """The versions of all tables that a question reads, as they go on record."""
        return self._desk.find_version(question)

    def prepare(self, *tables: str) -> None:
        """Make tables ready, all of them if none is named, so that later questions about units run faster.

        Worth it from the second or third question on. The copy lies in a private folder until the curator is closed.
        """
        for name in tables or tuple(self.catalog.tables):
            self._engine.prepare(self.catalog.find_table(name).name)

    @property
    def budget(self) -> Budget:
        """What may be spent in all."""
        return self._ledger.budget

    @property
    def remaining(self) -> str:
        """What is left of the budget, in words."""
        return RemainingBudget(self._ledger).words

    @property
    def ledger(self) -> Ledger:
        """The record of charges and answers."""
        return self._ledger

    def history(self) -> Sequence[Entry]:
        """Every charge so far, oldest first."""
        return self._ledger.history()

    def close(self) -> None:
        """Let go of the data and the ledger."""
        self._engine.close()
        self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        whose = {t.name: "public" if t.public else f"protects {t.unit}" for t in self.catalog.tables.values()}
        tables = ", ".join(f"{name} ({words})" for name, words in whose.items())
        return f"Curator of {self.name}: {tables}; {self.catalog.neighbours}; left {self.remaining}"

    @property
    def _desk(self) -> QuoteDesk:
        return QuoteDesk(
            name=self.name,
            statements=self._statements,
            engine=self._engine,
            ledger=self._ledger,
            per_query=self._per_query,
            shared_answers=self._shared_answers,
        )

    @property
    def _charged(self) -> ChargedAnswers:
        return ChargedAnswers(
            name=self.name,
            engine=self._engine,
            ledger=self._ledger,
            clock=self._clock,
            answer_after=self._answer_after,
        )

    def _check_analyst(self, analyst: str) -> None:
        """Refuse who is not on the codebook's list, where it has one."""
        if self._analysts is not None and analyst not in self._analysts:
            raise UsageError("The codebook does not name this analyst. Say analyst=... as listed. Nothing was charged.")
