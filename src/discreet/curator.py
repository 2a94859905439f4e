"""The curator: from a question to a private answer.

``Curator.ask`` is the straight line of the whole system. Data flows down it and never back up. Before ``reserve`` no
private value is touched, and every error says that nothing was charged. After it the charge stands, whatever happens,
and the caller is told one constant sentence; the details go to the curator's own log.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from discreet import post_processing
from discreet.accounting.cost_words import describe_cost, describe_left
from discreet.answer import Answer
from discreet.answer_record import Known, answer_known, find_known, make_answer, read_record, to_record
from discreet.answer_times import SYSTEM_CLOCK, AnswerTimes, Clock
from discreet.bound_search import Bounds, Contributions, buy_contributions, missing_bounds
from discreet.bound_search import buy_bounds as column_bounds
from discreet.bounding.contributions import BoundedPlan
from discreet.call_forms import check_call
from discreet.charged_draw import ChargedDraw, DrawSteps
from discreet.computation_preview import preview_exactly, preview_quote, quote_computation
from discreet.declared_table import Table
from discreet.draw_record import Draws, dump_draws, load_draws
from discreet.engines.engine import Engine, Groups, ProgressCallback
from discreet.engines.tabulation import Tabulation
from discreet.entropy import SYSTEM, EntropySource
from discreet.errors import BudgetExceeded, EngineFailure, InternalError, ParameterError, UsageError
from discreet.exact import Integers
from discreet.explanation import explain
from discreet.frontends.outer.computation import OuterColumn
from discreet.frontends.read_sql import QuestionAndOffer, ReleasedComputation
from discreet.ledger.ledger import Charge, Entry, Ledger, Record, Reservation
from discreet.offer import Offer
from discreet.parameters import Epsilon, Number, read_probability
from discreet.plan.catalog import Catalog
from discreet.plan.nodes import Question
from discreet.plan.relations import find_tables, split
from discreet.plan.types import Type
from discreet.post_processing import count_groups
from discreet.preview import BatchPreview, Preview
from discreet.price import PriceTerms
from discreet.privacy import Budget
from discreet.quote import Quote, QuoteContext, quote, quote_batch, quote_gaussian
from discreet.recorded_release import describe_release
from discreet.release import Release, draw, format_level
from discreet.remaining_budget import RemainingBudget
from discreet.stated_offer import StatedOffer
from discreet.statement_reader import QuestionLike, StatementReader

if TYPE_CHECKING:
    from discreet.series.running_series import RunningSeries

T = TypeVar("T")

LOG = logging.getLogger("discreet.curator")

# A tenth of the budget, to have numbers to explain with.
DEFAULT_OFFER: Mapping[str, Any] = {"share": Fraction(1, 10)}


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
        self._left = RemainingBudget(ledger)
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
        ``bounds="auto"`` buys bounds that are missing with half of the offer. What follows from draws that were made
        for this analyst on the same data, and are at least as exact as the offer, is answered from them for free.
        """
        times = AnswerTimes.begin(self._answer_after, self._clock)
        asked = self._statements.read_statement(question, public, parameters)
        words = {"epsilon": epsilon, "rho": rho, "share": share, "error": error}
        words |= {"group_size": group_size, "delta": delta}
        stated = StatedOffer(words=words, level=level, ends=ends)
        who: dict[str, Any] = {"analyst": analyst, "project": project, "request": request, "watch": watch}
        if isinstance(asked, ReleasedComputation):
            return self._compute(asked, stated, times, who, automatic=_is_automatic(bounds))
        return self._ask_question(asked, stated.make_offer(asked), times, who, automatic=_is_automatic(bounds))

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
            quoted = self._quote(asked.question, offer, analyst)
            (answer,) = self._answer(quoted, self._make_charge(quoted, analyst, request, project), times, watch)
        except BudgetExceeded as refused:
            nearest = "" if quoted is None else self._left.describe_nearest(quoted)
            cost = "" if quoted is None or not nearest else f"it would cost {describe_cost(self.budget, quoted.loss)}"
            least = self._left.describe_least(asked.question, offer, self._make_context(analyst))
            more = [words for words in (cost, nearest, least) if words]
            if not more:
                raise
            raise BudgetExceeded(" ".join([str(refused), *(f"{w[0].upper()}{w[1:]}." for w in more)])) from None
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
        self._check_computation(computation)
        if not computation.questions:
            return self._compute_exactly(computation, stated, who["analyst"])
        if len(computation.questions) == 1:
            (asked,) = computation.questions
            offer = stated.make_offer(asked)
            answers: tuple[Answer, ...] = (self._ask_question(asked, offer, times, who, automatic=automatic),)
            spent = answers[0].spent
        else:
            quoted = quote_computation(computation, stated, self._make_context(who["analyst"]))
            charge = self._make_charge(quoted, who["analyst"], who["request"], who["project"])
            answers = self._answer(quoted, charge, times, who["watch"])
            spent = quoted.loss
        rows = post_processing.compute(computation, answers, self._statements.read_table)
        return post_processing.combine_answers(computation, answers, rows, self.budget, spent)

    def _compute_exactly(self, computation: ReleasedComputation, stated: StatedOffer, analyst: str) -> Answer:
        """What public tables say. Nothing is charged and nothing goes on record."""
        rows = post_processing.compute(computation, (), self._statements.read_table)
        receipt = {
            "request": "",
            "dataset": self.name,
            "analyst": analyst,
            "time": self._clock.now().isoformat(timespec="seconds"),
            "level": format_level(read_probability(stated.level, "level")),
        }
        unit, neighbours = self.catalog.unit, self.catalog.neighbours
        return post_processing.answer_exactly(
            computation, rows, unit=unit, neighbours=neighbours, remaining=self.remaining, receipt=receipt
        )

    def _check_computation(self, computation: ReleasedComputation) -> tuple[tuple[OuterColumn, Type], ...]:
        """Refuse what cannot be computed, while nothing is charged yet; the columns that will come."""
        groups = [count_groups(asked.question, self.catalog) for asked in computation.questions]
        return post_processing.check_computation(computation, self._statements.read_table, groups)

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
        times = AnswerTimes.begin(self._answer_after, self._clock)
        offer = Offer(epsilon=epsilon, rho=rho, share=share, delta=delta, level=level, ends=ends)
        read = self._statements.read_batch(questions, public)
        quoted = quote_batch(read, offer, self._make_context(analyst), weights=weights, fixed=fixed)
        return self._answer(quoted, self._make_charge(quoted, analyst, request, project), times, watch)

    def _answer(
        self, quoted: Quote, charge: Charge, times: AnswerTimes, watch: ProgressCallback | None
    ) -> tuple[Answer, ...]:
        """The answers on record, or those of the straight line."""
        self._check_analyst(charge.analyst)
        known = self._find_known(quoted, charge.analyst)
        return self._answer_known(known, quoted) if known is not None else self._draw(quoted, charge, times, watch)

    def _draw(
        self, quoted: Quote, charge: Charge, times: AnswerTimes, watch: ProgressCallback | None
    ) -> tuple[Answer, ...]:
        """The straight line: charge, count, draw, record, finish. What was drawn for this charge is given again."""
        self._check_sources(table for plan in quoted.plans for table in plan.question.tables)
        # How far a run has come is told by nothing but its end, where answers are held to a raster.
        shown = None if times.after else watch

        def finish(reservation: Reservation, draws: Draws | None) -> tuple[Answer, ...]:
            if draws is None or reservation.record is not None:
                return self._answer_known(reservation, quoted)
            return self._commit_answers(quoted, draws, reservation)

        return ChargedDraw(self._ledger, charge, times).run(self._make_steps(quoted, shown), finish)

    def _find_known(self, quoted: Quote, analyst: str) -> Known | None:
        """What is on record of the analyst; of all of them, where the codebook says that answers are shared.

        Without that word nobody learns what others asked.
        """
        return find_known(quoted, self._ledger, None if self._shared_answers else analyst)

    def _answer_known(self, known: Known, quoted: Quote) -> tuple[Answer, ...]:
        return answer_known(known, quoted, budget=self.budget, remaining=self.remaining)

    def _make_steps(self, quoted: Quote, watch: ProgressCallback | None) -> DrawSteps[list[list[Groups]], Draws]:
        """What is counted and drawn for questions, and how it goes on record."""

        def count(generous: bool) -> list[list[Groups]]:  # noqa: FBT001  # the one flag of a callback
            return [
                [self._run(release, watch, generous=generous) for release in plan.releases] for plan in quoted.plans
            ]

        def draw_all(exact: list[list[Groups]]) -> tuple[Draws, Record]:
            draws = tuple(
                tuple(draw(release, groups) for release, groups in zip(plan.releases, each))
                for plan, each in zip(quoted.plans, exact)
            )
            described = [
                [describe_release(release, frame) for release, frame in zip(plan.releases, frames)]
                for plan, frames in zip(quoted.plans, quoted.frames)
            ]
            return draws, {**dump_draws(draws), "releases": described}

        names = dict.fromkeys(frame for frames in quoted.frames for frame in frames)
        return DrawSteps(count, draw_all, lambda record: load_draws(record, quoted.plans), tuple(names))

    def _run(self, release: Release, watch: ProgressCallback | None, *, generous: bool) -> Groups:
        """Exact integers."""
        return self._engine.run(release.bounded.bounded, salt=_draw_salt(SYSTEM), watch=watch, generous=generous)

    def _commit_answers(self, quoted: Quote, draws: Draws, reservation: Reservation) -> tuple[Answer, ...]:
        """Finish what was drawn and put it on record. Only what is on record is handed out."""
        answers = self._finish_all(quoted, draws, reservation)
        if answers is None:
            raise EngineFailure
        record = to_record(answers)
        kept = self._ledger.commit(reservation, record)
        # Another run of the same request may have been quicker.
        return answers if kept is record else self._answer_known(replace(reservation, record=kept), quoted)

    def _finish_all(self, quoted: Quote, draws: Draws, reservation: Reservation) -> tuple[Answer, ...] | None:
        """The answers; None where finishing fails, which is a bug of ours. The draw is on record: a retry is free."""
        remaining, time = self.remaining, self._clock.now()
        try:
            return tuple(
                make_answer(
                    plan,
                    drawn,
                    quoted,
                    reservation,
                    budget=self.budget,
                    remaining=remaining,
                    dataset=self.name,
                    time=time,
                )
                for plan, drawn in zip(quoted.plans, draws)
            )
        except Exception as error:
            LOG.error("An answer could not be finished.", exc_info=error)
            return None

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
            return self._preview_computation(asked, StatedOffer(words=words, level=level, ends=ends), analyst, project)
        if curve and not asked.offer and all(words[form] is None for form in ("epsilon", "rho", "share", "error")):
            words |= DEFAULT_OFFER
        offer = StatedOffer(words=words, level=level, ends=ends).make_offer(asked)
        if _is_automatic(bounds) and missing_bounds.find_unbounded(asked.question, self.catalog):
            return missing_bounds.preview(self, asked.question, offer, analyst=analyst, project=project)
        quoted = self._quote_in_any_case(lambda context: quote(asked.question, offer, context), analyst)

        def least() -> str:
            return self._left.describe_least(asked.question, offer, self._make_context(analyst))

        return Preview(
            plan=quoted.plans[0],
            alternatives=quoted.alternatives,
            group_size=quoted.group_size,
            curve=self._left.trace_curve(asked.question, offer, self._make_context(analyst)) if curve else (),
            **self._check_quote(quoted, analyst, project, None if offer.error is None else least),
        )

    def _preview_computation(
        self, computation: ReleasedComputation, stated: StatedOffer, analyst: str, project: str
    ) -> Preview:
        """What the questions of a computation would cost together; the rest is free."""
        outputs = self._check_computation(computation)
        if not computation.questions:
            return preview_exactly(computation, outputs, budget=self.budget, remaining=self.remaining)
        quoted = self._quote_in_any_case(lambda context: quote_computation(computation, stated, context), analyst)
        return preview_quote(computation, outputs, quoted, **self._check_quote(quoted, analyst, project))

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
        quoted = self._quote_in_any_case(
            lambda context: quote_batch(read, offer, context, weights=weights, fixed=fixed), analyst
        )
        terms = self._check_quote(quoted, analyst, project)
        each = tuple(Preview(plan=plan, **terms) for plan in quoted.plans)
        return BatchPreview(each=each, loss=quoted.loss, **terms)

    def _check_quote(
        self, quoted: Quote, analyst: str, project: str, least: Callable[[], str] | None = None
    ) -> dict[str, Any]:
        """Whether what was quoted can be charged or is known already, and what is left."""
        fits = self._ledger.fits(self._make_charge(quoted, analyst, project=project))
        return {
            "budget": self.budget,
            "fits": fits,
            "remaining": self.remaining,
            "nearest": "" if fits else self._left.describe_nearest(quoted) if least is None else least(),
            "answered": self._find_known(quoted, analyst) is not None,
        }

    def _quote_in_any_case(self, make: Callable[[QuoteContext], Quote], analyst: str) -> Quote:
        """A quote to look at: where an offer is more than is left, at what it would buy of an untouched budget."""
        context = self._make_context(analyst)
        try:
            return make(context)
        except BudgetExceeded:
            if context.left is None:
                raise
            return make(replace(context, left=None))

    def answered(self, question: QuestionLike, *, analyst: str = "analyst", **offer: Any) -> bool:
        """Whether the answer follows from what is on record for this analyst, so that asking is free."""
        quoted = self._quote(self._statements.read_question(question).question, Offer(**offer), analyst)
        return self._find_known(quoted, analyst) is not None

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
        """What a request of this analyst was given; nothing yet where it was only charged, None where it was not."""
        found = self._ledger.find_request(analyst, request)
        if found is None:
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
            parts = [self._explain_question(each, offer) for each in asked.questions]
            return "\n\n".join([*parts, post_processing.explain_rest(asked)])
        return self._explain_question(asked, offer)

    def _explain_question(self, asked: QuestionAndOffer, offer: Mapping[str, Any]) -> str:
        words = dict(offer if offer or asked.offer else DEFAULT_OFFER)
        stated = StatedOffer(level=words.pop("level", 0.95), ends=words.pop("ends", False), words=words)
        context = replace(self._make_context(), left=None)
        return explain(quote(asked.question, stated.make_offer(asked), context).plans[0], self.budget)

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
        shown = None if self._answer_after else watch

        def count(generous: bool) -> tuple[Integers, ...]:  # noqa: FBT001  # the one flag of a callback
            return self._engine.tabulate(tabulation, salt=_draw_salt(SYSTEM), watch=shown, generous=generous)

        return self._draw_recorded(tabulation.bounded, charge, count, draw)

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

        def count(generous: bool) -> T:  # noqa: FBT001  # the one flag of a callback
            def run() -> Groups:
                if bounded is None:
                    raise InternalError("Nothing is counted here.")
                return self._engine.run(bounded, salt=_draw_salt(SYSTEM), generous=generous)

            return freeze(run)

        return self._draw_recorded(bounded, charge, count, draw)

    def _draw_recorded(
        self,
        bounded: BoundedPlan | None,
        charge: Charge,
        count: Callable[[bool], T],
        draw: Callable[[T], Record],
    ) -> tuple[Reservation, Record]:
        """What is drawn for a charge, as it goes on record."""
        self._check_analyst(charge.analyst)
        if bounded is not None:
            self._check_sources(find_tables(split(bounded.source)[0]))
        times = AnswerTimes.begin(self._answer_after, self._clock)

        def draw_record(counted: T) -> tuple[Record, Record]:
            record = draw(counted)
            return record, record

        return ChargedDraw(self._ledger, charge, times).run(
            DrawSteps(count, draw_record, lambda record: record),
            lambda reservation, drawn: (reservation, drawn or {}),
        )

    def quote_at(
        self,
        questions: Sequence[QuestionLike],
        mu_squared: Sequence[Fraction],
        *,
        level: Number,
        analyst: str,
        delta: Fraction = Fraction(0),
    ) -> Quote:
        """Questions with normal noise, each at a μ² of its own; nothing is charged. For releases (``publish``).

        ``delta`` is what each may cost for naming keys from the data; without it these are refused.
        """
        read = self._statements.read_batch(questions, None)
        return quote_gaussian(list(zip(read, mu_squared, strict=True)), level, self._make_context(analyst), delta)

    def answer_quoted(self, quoted: Quote, charge: Charge) -> tuple[Answer, ...]:
        """Answer quoted questions once, under a charge that its caller made. For releases (``publish``).

        Privacy: the charge stands when this returns. Answers to the same questions under other charges are not taken in
        its place: what a release draws later relies on it.
        """
        self._check_analyst(charge.analyst)
        return self._draw(quoted, charge, AnswerTimes.begin(self._answer_after, self._clock), None)

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
        return self._make_context(analyst).terms

    def find_version(self, question: Question) -> str:
        """The versions of all tables that a question reads, as they go on record."""
        return self._version_of(question)

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
        return describe_left(self.budget, self._ledger.remaining, *self._ledger.counted)

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

    def _make_context(self, analyst: str = "") -> QuoteContext:
        """What quoting a price needs to know, for what this analyst asks."""
        return QuoteContext(
            name=self.name,
            catalog=self.catalog,
            budget=self.budget,
            version=self._version_of,
            per_query=self._per_query,
            left=self._left.left,
            find_paid=lambda identity: self._ledger.find_paid(identity, analyst, shared=self._shared_answers),
        )

    def _quote(self, question: Question, offer: Offer, analyst: str) -> Quote:
        """One question at what is offered. Where that is more than is left, it may still follow from the record."""
        context = self._make_context(analyst)
        try:
            return quote(question, offer, context)
        except BudgetExceeded:
            if context.left is None:
                raise
            quoted = quote(question, offer, replace(context, left=None))
            if self._find_known(quoted, analyst) is None:
                raise
            return quoted

    def _version_of(self, question: Question) -> str:
        """The versions of all tables that a question reads."""
        return "; ".join(self._engine.version(table) for table in question.tables)

    def _check_sources(self, tables: Iterable[str]) -> None:
        """Refuse tables that are not as declared, while nothing is charged yet. Only names and types are read."""
        for table in tables:
            self._engine.schema(table)

    def _check_analyst(self, analyst: str) -> None:
        """Refuse who is not on the codebook's list, where it has one."""
        if self._analysts is not None and analyst not in self._analysts:
            raise UsageError("The codebook does not name this analyst. Say analyst=... as listed. Nothing was charged.")

    def _make_charge(self, quoted: Quote, analyst: str, request: str | None = None, project: str = "") -> Charge:
        return Charge(
            request=request or str(uuid.UUID(bytes=_draw_salt(SYSTEM))),
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


def _is_automatic(bounds: str | None) -> bool:
    """Whether missing bounds shall be bought."""
    if bounds not in (None, "auto"):
        raise ParameterError(
            "bounds", "is not a known word", "Say bounds='auto', or leave it out. Nothing was charged."
        )
    return bounds is not None


def _draw_salt(source: EntropySource) -> bytes:
    return source.bits(128).to_bytes(16, "big")
