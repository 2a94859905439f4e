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
from datetime import datetime, timedelta
from fractions import Fraction
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from discreet import post_processing
from discreet.accounting.cost_words import describe_cost, describe_left
from discreet.accounting.spending_classes import ClassCurrency
from discreet.answer import Answer
from discreet.answer_record import Known, answer_known, find_known, make_answer, read_record, to_record
from discreet.answer_times import SYSTEM_CLOCK, AnswerTimes, Clock
from discreet.bound_search import Bounds, Contributions, buy_contributions, missing_bounds
from discreet.bound_search import buy_bounds as column_bounds
from discreet.bounding.contributions import BoundedPlan
from discreet.call_forms import check_call
from discreet.charged_draw import CHARGE_STANDS, ChargedDraw
from discreet.computation_preview import ComputationPreview, preview_exactly
from discreet.declared_table import PrivateRows, format_table_facts, table_to_html
from discreet.draw_record import Draws, dump_draws, load_draws
from discreet.engines.engine import Engine, Groups, ProgressCallback
from discreet.engines.registry import read_public_relation
from discreet.engines.tabulation import Tabulation
from discreet.entropy import SYSTEM, EntropySource
from discreet.error_curve import CurvePoint, list_shares
from discreet.errors import (
    BudgetExceeded,
    DiscreetError,
    EngineFailure,
    InternalError,
    LedgerDamaged,
    LedgerError,
    LedgerFailure,
    ParameterError,
    UsageError,
)
from discreet.exact import Integers, lower, upper
from discreet.explanation import explain
from discreet.frontends import read_sql
from discreet.frontends.chain.builder import TableBuilder
from discreet.frontends.read_sql import QuestionAndOffer, ReleasedComputation
from discreet.late_dataclass import dataclass
from discreet.ledger.ledger import Charge, Entry, Ledger, Record, Reservation
from discreet.offer import LEAST_EPSILON, BudgetLeft, Offer, describe_most
from discreet.parameters import Epsilon, Number, read_probability
from discreet.plan.catalog import Catalog
from discreet.plan.nodes import Question
from discreet.plan.relations import Relation, Values, find_tables, split
from discreet.plan.show import show
from discreet.plan.types import Value
from discreet.post_processing import count_groups
from discreet.preview import BatchPreview, Preview, make_point
from discreet.price import PriceTerms, choose_group_size
from discreet.privacy import Budget
from discreet.public_tables import read_public_values
from discreet.quote import Quote, QuoteContext, quote, quote_batch, quote_each
from discreet.recorded_release import describe_release
from discreet.release import Release, draw, format_level
from discreet.uninterrupted import run_uninterrupted

if TYPE_CHECKING:
    from discreet.series.running_series import RunningSeries

T = TypeVar("T")

LOG = logging.getLogger("discreet.curator")

# The most rows of a public table that are read into memory to compute with them.
MOST_PUBLIC_ROWS = 1_000_000

QuestionLike = str | Question | TableBuilder
"""A question as SQL, as a plan, or as a chain of verbs."""


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
        self.catalog = replace(
            catalog,
            count_public=engine.count_public,
            read_public=self._read_public,
            gaps=engine.capabilities.gaps,
        )
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
        ``bounds="auto"`` buys bounds that are missing with half of the offer. What follows from draws that were made
        for this analyst on the same data, and are at least as exact as the offer, is answered from them for free.
        """
        times = AnswerTimes.begin(self._answer_after, self._clock)
        asked = self._read_statement(question, public, parameters)
        stated = {"epsilon": epsilon, "rho": rho, "share": share, "error": error}
        stated |= {"group_size": group_size, "delta": delta}
        who: dict[str, Any] = {"analyst": analyst, "project": project, "request": request, "watch": watch}
        if isinstance(asked, ReleasedComputation):
            words = StatedOffer(stated, level, ends=ends)
            return self._compute(asked, words, times, who, automatic=_is_automatic(bounds))
        offer = _make_offer(asked, stated, level, ends=ends)
        return self._ask_question(asked, offer, times, who, automatic=_is_automatic(bounds))

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
            nearest = "" if quoted is None else self._describe_nearest(quoted)
            cost = "" if quoted is None or not nearest else f"it would cost {describe_cost(self.budget, quoted.loss)}"
            more = [words for words in (cost, nearest, self._describe_least(asked.question, offer, analyst)) if words]
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
        post_processing.check_computation(computation, self._read_table, self._count_groups(computation))
        if not computation.questions:
            return self._compute_exactly(computation, stated, who["analyst"])
        if len(computation.questions) == 1:
            (asked,) = computation.questions
            offer = _make_offer(asked, stated.words, stated.level, ends=stated.ends)
            answers: tuple[Answer, ...] = (self._ask_question(asked, offer, times, who, automatic=automatic),)
            spent = answers[0].spent
        else:
            quoted = self._quote_computation(computation, stated, self._make_context(who["analyst"]))
            charge = self._make_charge(quoted, who["analyst"], who["request"], who["project"])
            answers = self._answer(quoted, charge, times, who["watch"])
            spent = quoted.loss
        rows = post_processing.compute(computation, answers, self._read_table)
        return post_processing.combine_answers(computation, answers, rows, self.budget, spent)

    def _compute_exactly(self, computation: ReleasedComputation, stated: StatedOffer, analyst: str) -> Answer:
        """What public tables say. Nothing is charged and nothing goes on record."""
        rows = post_processing.compute(computation, (), self._read_table)
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

    def _count_groups(self, computation: ReleasedComputation) -> list[int | None]:
        """How many groups each question has, where that is public."""
        return [count_groups(asked.question, self.catalog) for asked in computation.questions]

    def _quote_computation(self, computation: ReleasedComputation, stated: StatedOffer, context: QuoteContext) -> Quote:
        """The questions of a computation: each at the ε that its text states, or all at one offer."""
        questions = [asked.question for asked in computation.questions]
        in_text = [bool(asked.offer) for asked in computation.questions]
        if not any(in_text):
            offer = Offer(**stated.given, level=stated.level, ends=stated.ends)
            return quote_batch(questions, offer, context, weights=None, fixed=False)
        if not all("epsilon" in asked.offer for asked in computation.questions):
            rule = "is stated in some of the SELECTs and not in all"
            raise ParameterError("epsilon", rule, "State epsilon in each, or in none. Nothing was charged.")
        offers = [_make_offer(asked, stated.words, stated.level, ends=stated.ends) for asked in computation.questions]
        return quote_each(list(zip(questions, offers)), context)

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
        quoted = self._quote_batch(questions, offer, weights=weights, public=public, fixed=fixed, analyst=analyst)
        return self._answer(quoted, self._make_charge(quoted, analyst, request, project), times, watch)

    def _answer(
        self, quoted: Quote, charge: Charge, times: AnswerTimes, watch: ProgressCallback | None
    ) -> tuple[Answer, ...]:
        """The answers on record, or those of the straight line."""
        self._check_analyst(charge.analyst)
        known = self._find_known(quoted, charge.analyst)
        if known is not None:
            return self._answer_known(known, quoted)
        self._check_sources(table for plan in quoted.plans for table in plan.question.tables)
        held: list[Reservation] = []
        try:
            # No interrupt comes between the charge and the note of it.
            run_uninterrupted(lambda: held.append(self._ledger.reserve(charge)))
            return self._run_charged(quoted, held[0], times, watch)
        except Exception:
            raise
        except BaseException as interrupt:  # the same request may go on at once
            for reservation in held:
                self._note(self._ledger.abandon, reservation)
                interrupt.add_note(CHARGE_STANDS)
            raise

    def _find_known(self, quoted: Quote, analyst: str) -> Known | None:
        """What is on record of the analyst; of all of them, where the codebook says that answers are shared.

        Without that word nobody learns what others asked.
        """
        return find_known(quoted, self._ledger, None if self._shared_answers else analyst)

    def _answer_known(self, known: Known, quoted: Quote) -> tuple[Answer, ...]:
        return answer_known(known, quoted, budget=self.budget, remaining=self.remaining)

    def _run_charged(
        self, quoted: Quote, reservation: Reservation, times: AnswerTimes, watch: ProgressCallback | None
    ) -> tuple[Answer, ...]:
        """The second half of the straight line: run, claim, draw, record, finish, commit."""
        if reservation.record is not None:
            return self._answer_known(reservation, quoted)
        if reservation.draw is not None:
            times.clock.wait_until(reservation.not_before)
            draws = load_draws(reservation.draw, quoted.plans)
        else:
            # How far a run has come is told by nothing but its end, where answers are held to a raster.
            outcome = self._run_and_draw(quoted, reservation, times, None if times.after else watch)
            if isinstance(outcome, BaseException):
                self._end_run(outcome, reservation, times)
                raise outcome
            draws, not_before = outcome
            times.clock.wait_until(not_before)
        answers = self._finish_all(quoted, draws, reservation)
        if answers is None:
            raise EngineFailure
        record = to_record(answers)
        kept = self._ledger.commit(reservation, record)
        # Only what is on record is handed out: another run of the same request may have been quicker.
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

    def _run_and_draw(
        self, quoted: Quote, reservation: Reservation, times: AnswerTimes, watch: ProgressCallback | None
    ) -> tuple[Draws, datetime | None] | BaseException:
        """Exact integers, then the one draw that the charge buys; or the error that the caller may see.

        Exact values live in this frame and below. So an error is handed back instead of raised from here: what leaves
        the curator has no traceback, context or cause that would lead to them.
        """
        try:
            exact = [[self._run(release, watch) for release in plan.releases] for plan in quoted.plans]
            times.wait_for_draw()
            return run_uninterrupted(lambda: self._draw_once(quoted, exact, reservation, times))
        except (LedgerError, LedgerDamaged, LedgerFailure) as error:  # the ledger's own words hold nothing private
            return _without_trace(error)
        except Exception as error:
            LOG.error("A question failed after it was charged.", exc_info=error)
            return EngineFailure()
        except BaseException as error:  # an interrupt stays an interrupt, and the request may be run again
            return type(error)(*error.args)

    def _end_run(self, error: BaseException, reservation: Reservation, times: AnswerTimes) -> None:
        """Tell the ledger how a run ended without a draw, and wait until the caller may know it."""
        if not isinstance(error, Exception):
            return  # when an interrupt came, the one who sent it knows
        if isinstance(error, EngineFailure):
            try:
                times.wait_for_draw()
            finally:
                self._note(self._ledger.fail, reservation)
        else:
            self._note(self._ledger.abandon, reservation)
        times.wait_for_answer()

    def _run(self, release: Release, watch: ProgressCallback | None) -> Groups:
        """Exact integers. A run that failed is tried once more, with more memory, before anything else is done."""
        try:
            return self._engine.run(release.bounded.bounded, salt=_draw_salt(SYSTEM), watch=watch)
        except Exception as error:
            LOG.error("A question failed after it was charged; it is tried once more.", exc_info=error)
        return self._engine.run(release.bounded.bounded, salt=_draw_salt(SYSTEM), watch=watch, generous=True)

    def _draw_once(
        self, quoted: Quote, exact: Sequence[Sequence[Groups]], reservation: Reservation, times: AnswerTimes
    ) -> tuple[Draws, datetime | None]:
        """Claim, draw, record: out of reach of interrupts, and never twice for one charge. And when it may be told."""
        self._ledger.claim(reservation)
        draws = tuple(
            tuple(draw(release, groups) for release, groups in zip(plan.releases, each))
            for plan, each in zip(quoted.plans, exact)
        )
        not_before = times.find_answer_time()
        described = [
            [describe_release(release, frame) for release, frame in zip(plan.releases, frames)]
            for plan, frames in zip(quoted.plans, quoted.frames)
        ]
        names = dict.fromkeys(frame for frames in quoted.frames for frame in frames)
        self._ledger.record_draw(reservation, {**dump_draws(draws), "releases": described}, not_before, tuple(names))
        return draws, not_before

    def _note(self, write: Callable[[Reservation], None], reservation: Reservation) -> None:
        """Tell the ledger how a run ended. A ledger that cannot be told has halted, and the next question says so."""
        try:
            write(reservation)
        except DiscreetError as error:
            LOG.error("The ledger could not be told how a run ended.", exc_info=error)

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
        asked = self._read_statement(question, public, parameters)
        stated = {"epsilon": epsilon, "rho": rho, "share": share, "error": error}
        stated |= {"group_size": group_size, "delta": delta}
        if isinstance(asked, ReleasedComputation):
            if curve:
                fix = "Preview the SELECT inside by itself. Nothing was charged."
                raise ParameterError("curve", "is for a single question", fix)
            words = StatedOffer(stated, level, ends=ends)
            return self._preview_computation(asked, words, analyst, project)
        if curve and not asked.offer and all(stated[form] is None for form in ("epsilon", "rho", "share", "error")):
            stated |= self._make_default_offer()
        offer = _make_offer(asked, stated, level, ends=ends)
        if _is_automatic(bounds) and missing_bounds.find_unbounded(asked.question, self.catalog):
            return missing_bounds.preview(self, asked.question, offer, analyst=analyst, project=project)
        quoted = self._quote_in_any_case(lambda context: quote(asked.question, offer, context), analyst)

        def least() -> str:
            return self._describe_least(asked.question, offer, analyst)

        return Preview(
            plan=quoted.plans[0],
            alternatives=quoted.alternatives,
            group_size=quoted.group_size,
            curve=self._trace_curve(asked.question, offer, analyst) if curve else (),
            **self._check_quote(quoted, analyst, project, None if offer.error is None else least),
        )

    def _preview_computation(
        self, computation: ReleasedComputation, stated: StatedOffer, analyst: str, project: str
    ) -> Preview:
        """What the questions of a computation would cost together; the rest is free."""
        post_processing.check_computation(computation, self._read_table, self._count_groups(computation))
        if not computation.questions:
            return preview_exactly(computation, budget=self.budget, remaining=self.remaining)
        if len(computation.questions) == 1:
            (asked,) = computation.questions
            offer = _make_offer(asked, stated.words, stated.level, ends=stated.ends)
            quoted = self._quote_in_any_case(lambda context: quote(asked.question, offer, context), analyst)
        else:
            quoted = self._quote_in_any_case(
                lambda context: self._quote_computation(computation, stated, context), analyst
            )
        terms = self._check_quote(quoted, analyst, project)
        each = tuple(Preview(plan=plan, **terms) for plan in quoted.plans)
        return ComputationPreview(plan=quoted.plans[0], each=each, whole=quoted.loss, sql=computation.sql, **terms)

    def _trace_curve(self, question: Question, offer: Offer, analyst: str) -> tuple[CurvePoint, ...]:
        """What shares of the budget would buy, from the smallest up to all that is left; without what is refused."""
        context, found = self._make_context(analyst), []
        for share in list_shares(self._find_share_left()):
            offered = Offer(share=share, delta=offer.delta, level=offer.level, ends=offer.ends)
            try:
                plan = quote(question, offered, context).plans[0]
            except (BudgetExceeded, ParameterError):  # more than one question may cost, or too little to name keys
                continue
            found.append(make_point(plan, share, self.budget))
        return tuple(found)

    def _describe_least(self, question: Question, offer: Offer, analyst: str) -> str:
        """The least errors of the columns wanted that the rest of the budget buys; empty where no error was wanted."""
        left = self._find_share_left()
        if offer.error is None or left < LEAST_EPSILON:
            return ""
        rest = Offer(share=left, delta=offer.delta, level=offer.level, ends=offer.ends)
        context = self._make_context(analyst)
        try:
            plan = quote(question, rest, context).plans[0]
        except BudgetExceeded:  # more than one question may cost
            return ""
        size = choose_group_size(plan.releases[0].bounded, offer, context.terms)
        point = make_point(plan, left, self.budget, size)
        errors = [f"{error.name} {error.words}" for error in point.errors if error.name in offer.error]
        return f"all that is left would buy {', '.join(errors)}"

    def _find_share_left(self) -> Fraction:
        """The part of the budget that shares may still be asked for, rounded down."""
        currency, total = self._ledger.counted
        if isinstance(currency, ClassCurrency):
            return currency.share_left(total)
        left, whole = lower(self._ledger.remaining), upper(self.budget.amount())
        return (left / whole) ** 2 if self.budget.notion == "gdp" else left / whole

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
        read = self._read_batch(questions, public)
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
            "nearest": "" if fits else self._describe_nearest(quoted) if least is None else least(),
            "answered": self._find_known(quoted, analyst) is not None,
        }

    def _describe_nearest(self, quoted: Quote) -> str:
        """The largest offer that fits, where a quote is more than is left."""
        currency, total = self._ledger.counted
        left, price = self._find_share_left(), currency.price(quoted.loss)
        if isinstance(currency, ClassCurrency):
            too_much = currency.share_of(price) > left
        else:
            too_much = not currency.fits(currency.add(total, price))
        most = describe_most(self.budget, left)
        return f"offer at most {most}" if most and too_much else ""

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
        quoted = self._quote(self._read(question).question, Offer(**offer), analyst)
        return self._find_known(quoted, analyst) is not None

    def is_free(
        self,
        question: QuestionLike,
        public: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> bool:
        """Whether a question reads public tables only, so that it is answered exactly and without an offer."""
        found = self._read_statement(question, public, parameters)
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
        asked = self._read_statement(question, public, parameters)
        if isinstance(asked, ReleasedComputation):
            parts = [self._explain_question(each, dict(offer)) for each in asked.questions]
            return "\n\n".join([*parts, post_processing.explain_rest(asked)])
        return self._explain_question(asked, offer)

    def _explain_question(self, asked: QuestionAndOffer, offer: dict[str, Any]) -> str:
        words = offer if offer or asked.offer else self._make_default_offer()
        stated = _make_offer(asked, words, words.pop("level", 0.95), ends=words.pop("ends", False))
        return explain(quote(asked.question, stated, replace(self._make_context(), left=None)).plans[0], self.budget)

    def bounds(self, table: str, column: str, **offer: Any) -> Bounds:
        """Buy bounds for a column: a metered question like any other, and the line for the codebook."""
        return column_bounds(self, table, column, **offer)

    def contributions(self, table: str, by: Sequence[str] = (), **offer: Any) -> Contributions:
        """Buy good limits for a table: how many rows a unit has, and in how many groups by these columns."""
        return buy_contributions(self, table, by=by, **offer)

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
        self._check_sources(find_tables(split(tabulation.bounded.source)[0]))
        times = AnswerTimes.begin(self._answer_after, self._clock)
        shown = None if times.after else watch

        def count(generous: bool) -> tuple[Integers, ...]:  # noqa: FBT001  # the one flag of a callback
            return self._engine.tabulate(tabulation, salt=_draw_salt(SYSTEM), watch=shown, generous=generous)

        return ChargedDraw(self._ledger, charge, times).run(count, draw)

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
        if bounded is not None:
            self._check_sources(find_tables(split(bounded.source)[0]))
        times = AnswerTimes.begin(self._answer_after, self._clock)

        def count(generous: bool) -> T:  # noqa: FBT001  # the one flag of a callback
            def run() -> Groups:
                if bounded is None:
                    raise InternalError("Nothing is counted here.")
                return self._engine.run(bounded, salt=_draw_salt(SYSTEM), generous=generous)

            return freeze(run)

        return ChargedDraw(self._ledger, charge, times).run(count, draw)

    def series(self, question: QuestionLike, **choices: Any) -> RunningSeries:
        """A count that grows by a day, week or month at a time, all periods under one charge; see ``open_series``.

        ``series(question, name=..., by="day", first=..., periods=365, days_per_unit=2, apart=1, epsilon=1)``, and then
        ``release()`` for each period.
        """
        from discreet.series.opening_series import open_series

        return open_series(self, self._read(question).question, **choices)

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
        currency, total = self._ledger.counted
        return QuoteContext(
            name=self.name,
            catalog=self.catalog,
            budget=self.budget,
            version=self._version_of,
            per_query=self._per_query,
            left=BudgetLeft(currency, total) if isinstance(currency, ClassCurrency) else None,
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

    def _quote_batch(
        self,
        questions: Sequence[QuestionLike],
        offer: Offer,
        *,
        weights: Sequence[Number] | None,
        public: Mapping[str, Any] | None,
        fixed: bool,
        analyst: str,
    ) -> Quote:
        context = self._make_context(analyst)
        return quote_batch(self._read_batch(questions, public), offer, context, weights=weights, fixed=fixed)

    def _read_batch(self, questions: Sequence[QuestionLike], public: Mapping[str, Any] | None) -> list[Question]:
        """The questions of a batch, which state no offers of their own."""
        read = [self._read(question, public) for question in questions]
        if any(each.offer for each in read):
            rule = "is said in a question, and a batch has one offer for all of its questions"
            raise ParameterError("cost", rule, "Take it out of the question. Nothing was charged.")
        return [each.question for each in read]

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

    def _read(self, asked: QuestionLike, public: Mapping[str, Any] | None = None) -> QuestionAndOffer:
        """One question, and what it offers by itself (the GoogleSQL form does)."""
        if isinstance(asked, str):
            return read_sql.read_with_offer(asked, self.catalog, read_public_values(public), self._compute_public)
        return QuestionAndOffer(asked if isinstance(asked, Question) else asked.question, {})

    def _read_statement(
        self,
        asked: QuestionLike,
        public: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> QuestionAndOffer | ReleasedComputation:
        """One question, or a computation over released answers and public tables, which only a text can be."""
        if isinstance(asked, str):
            values, compute = read_public_values(public), self._compute_public
            return read_sql.read_statement(asked, self.catalog, values, compute, parameters)
        if parameters:
            raise ParameterError("parameters", "belong to a text", "Leave them out. Nothing was charged.")
        return self._read(asked)

    def _compute_public(self, computation: ReleasedComputation) -> list[list[Value]]:
        """The rows of a computation that reads public tables alone."""
        post_processing.check_computation(computation, self._read_table)
        rows = post_processing.compute(computation, (), self._read_table)
        return [[cell.value for cell in row] for row in rows.rows]

    def _read_table(self, table: str) -> Values:
        """All rows of a public table, for what is computed in memory."""
        rows = self._engine.count_public(table, ())
        if rows > MOST_PUBLIC_ROWS:
            raise UsageError(
                f"The public table {table!r} has {rows:,} rows, and {MOST_PUBLIC_ROWS:,} can be computed with. "
                "Join it inside of SELECT WITH DIFFERENTIAL_PRIVACY. Nothing was charged."
            )
        return self._engine.read_public(table)

    def _read_public(self, relation: Relation) -> Values | None:
        counts = (self._engine.count_public(table, ()) for table in find_tables(relation))
        if any(rows > MOST_PUBLIC_ROWS for rows in counts):
            return None
        return read_public_relation(relation, self.catalog, self._engine.read_public)

    def _make_default_offer(self) -> dict[str, Any]:
        """A tenth of the budget, to have numbers to explain with."""
        return {"share": Fraction(1, 10)}

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


@dataclass(frozen=True, kw_only=True, repr=False)
class Table(PrivateRows, TableBuilder):
    """A declared table of a curator: chain ``where``, ``group_by``, ``agg``, then ``preview`` or ``ask``."""

    curator: Curator

    @property
    def columns(self) -> list[str]:
        """The names of the declared columns."""
        return list(self.catalog.find_table(self.table).columns)

    def __repr__(self) -> str:
        if self.outputs or self.keys:
            return self._describe_question()
        shown = format_table_facts(self.catalog.find_table(self.table), self.catalog.neighbours)
        chosen = self.conditions or self.source is not None
        return f"{shown}\nonly some of its rows, or joined with others: ask aggregates of them" if chosen else shown

    def _describe_question(self) -> str:
        try:
            words = show(self.question)
        except DiscreetError as error:
            return f"no question yet: {error}"
        return f"{words}\nnot asked yet: .preview(share=0.1) is free, .ask(share=0.1) answers"

    def _repr_html_(self) -> str | None:
        if self.outputs or self.keys or self.conditions or self.source is not None:
            return None  # the text above
        return table_to_html(self.catalog.find_table(self.table), self.catalog.neighbours)

    def join(self, other: Any, on: object = None, how: str = "inner", *, name: str = "public") -> Self:
        """As in every chain; besides tables also an answer given before, or a frame, as public rows under a name."""
        rows = other if isinstance(other, TableBuilder | Values) else read_public_values({name: other})[name]
        return super().join(rows, on, how)

    @check_call(".ask(share=0.1)")
    def ask(self, **offer: Any) -> Answer:
        """Answer the question that the chain has become; takes what ``Curator.ask`` takes."""
        return self.curator.ask(self.question, **offer)

    @check_call(".preview(share=0.1)")
    def preview(self, **offer: Any) -> Preview:
        """What the answer would cost and how far off it would be; takes what ``Curator.preview`` takes."""
        return self.curator.preview(self.question, **offer)

    def explain(self, **offer: Any) -> str:
        """The plan, its facts, its sensitivities and its noise, and why."""
        return self.curator.explain(self.question, **offer)


def _without_trace(error: DiscreetError) -> DiscreetError:
    """An error as it is, without the way that led to it."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def _make_offer(asked: QuestionAndOffer, given: Mapping[str, Any], level: Number, *, ends: bool = False) -> Offer:
    """What is offered: by the caller, else by the question's own words."""
    stated = {name: value for name, value in given.items() if value is not None}
    both = sorted(stated.keys() & asked.offer.keys())
    if both:
        rule = f"is said twice, in the question and beside it: {', '.join(both)}"
        raise ParameterError("cost", rule, "Say it in one place. Nothing was charged.")
    # A text that states ε states a guarantee, and the question by itself keeps it.
    return Offer(**{**asked.offer, **stated}, level=level, alone="epsilon" in asked.offer, ends=ends)


@dataclass(frozen=True, slots=True)
class StatedOffer:
    """What a caller says beside a statement: the words of an offer, the level, and whether ends are wanted."""

    words: Mapping[str, Any]
    level: Number
    ends: bool

    @property
    def given(self) -> dict[str, Any]:
        """The words that were said."""
        return {word: value for word, value in self.words.items() if value is not None}


def _is_automatic(bounds: str | None) -> bool:
    """Whether missing bounds shall be bought."""
    if bounds not in (None, "auto"):
        raise ParameterError(
            "bounds", "is not a known word", "Say bounds='auto', or leave it out. Nothing was charged."
        )
    return bounds is not None


def _draw_salt(source: EntropySource) -> bytes:
    return source.bits(128).to_bytes(16, "big")
