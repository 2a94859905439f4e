"""What a charge buys: exact integers, the one draw, and the answers that follow from it.

Privacy: see ``charged_draw``, which keeps the order. Nothing here is reached before the price of what is counted was
charged in the same call.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar

from discreet.answer import Answer
from discreet.answer_record import Known, answer_known, make_answer, to_record
from discreet.answer_times import AnswerTimes, Clock
from discreet.bounding.contributions import BoundedPlan
from discreet.charged_draw import ChargedDraw, DrawSteps
from discreet.draw_record import Draws, dump_draws, load_draws
from discreet.engines.engine import Engine, Groups, ProgressCallback
from discreet.engines.tabulation import Tabulation
from discreet.entropy import SYSTEM, EntropySource
from discreet.errors import EngineFailure, InternalError
from discreet.exact import Integers
from discreet.late_dataclass import dataclass
from discreet.ledger.ledger import Charge, Ledger, Record, Reservation
from discreet.plan.relations import find_tables, split
from discreet.quote import Quote
from discreet.recorded_release import describe_release
from discreet.release import Release, draw
from discreet.remaining_budget import RemainingBudget

T = TypeVar("T")

LOG = logging.getLogger("discreet.curator")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargedAnswers:
    """The data of a dataset, the ledger that charges for it, and the times at which callers may learn something."""

    name: str
    engine: Engine
    ledger: Ledger
    clock: Clock
    answer_after: timedelta | None

    def begin(self) -> AnswerTimes:
        """The times of a request that arrives now."""
        return AnswerTimes.begin(self.answer_after, self.clock)

    def answer(
        self, quoted: Quote, charge: Charge, times: AnswerTimes, watch: ProgressCallback | None
    ) -> tuple[Answer, ...]:
        """The answers to quoted questions, under one charge."""
        self._check_sources(table for plan in quoted.plans for table in plan.question.tables)
        # How far a run has come is told by nothing but its end, where answers are held to a raster.
        shown = None if times.after else watch

        def finish(reservation: Reservation, draws: Draws | None) -> tuple[Answer, ...]:
            if draws is None or reservation.record is not None:
                return self.answer_known(reservation, quoted)
            return self._commit_answers(quoted, draws, reservation)

        return ChargedDraw(self.ledger, charge, times).run(self.make_steps(quoted, shown), finish)

    def answer_known(self, known: Known, quoted: Quote) -> tuple[Answer, ...]:
        """The answers that follow from what is on record."""
        return answer_known(known, quoted, budget=self.ledger.budget, remaining=RemainingBudget(self.ledger).words)

    def make_steps(self, quoted: Quote, watch: ProgressCallback | None) -> DrawSteps[list[list[Groups]], Draws]:
        """What is counted and drawn for questions, and how it goes on record."""

        def count(generous: bool) -> list[list[Groups]]:  # noqa: FBT001  # the one flag of a callback
            return [[self.run(release, watch, generous=generous) for release in plan.releases] for plan in quoted.plans]

        def draw_all(exact: list[list[Groups]]) -> tuple[Draws, Record]:
            draws = tuple(
                tuple(draw(release, groups) for release, groups in zip(plan.releases, each))
                for plan, each in zip(quoted.plans, exact)
            )
            described = [
                [describe_release(release, frame) for release, frame in zip(plan.releases, frames)]
                for plan, frames in zip(quoted.plans, quoted.frames)
            ]
            return draws, {**dump_draws(draws, quoted.plans), "releases": described}

        names = dict.fromkeys(frame for frames in quoted.frames for frame in frames)
        return DrawSteps(count, draw_all, lambda record: load_draws(record, quoted.plans), tuple(names))

    def run(self, release: Release, watch: ProgressCallback | None, *, generous: bool) -> Groups:
        """Exact integers."""
        return self.engine.run(release.bounded.bounded, salt=_draw_salt(SYSTEM), watch=watch, generous=generous)

    def _commit_answers(self, quoted: Quote, draws: Draws, reservation: Reservation) -> tuple[Answer, ...]:
        """Finish what was drawn and put it on record. Only what is on record is handed out."""
        answers = self.finish_all(quoted, draws, reservation)
        if answers is None:
            raise EngineFailure
        record = to_record(answers)
        kept = self.ledger.commit(reservation, record)
        # Another run of the same request may have been quicker.
        return answers if kept is record else self.answer_known(replace(reservation, record=kept), quoted)

    def finish_all(self, quoted: Quote, draws: Draws, reservation: Reservation) -> tuple[Answer, ...] | None:
        """The answers; None where finishing fails, which is a bug of ours. The draw is on record: a retry is free."""
        remaining, time = RemainingBudget(self.ledger).words, self.clock.now()
        try:
            return tuple(
                make_answer(
                    plan,
                    drawn,
                    quoted,
                    reservation,
                    budget=self.ledger.budget,
                    remaining=remaining,
                    dataset=self.name,
                    time=time,
                )
                for plan, drawn in zip(quoted.plans, draws)
            )
        except Exception as error:
            LOG.error("An answer could not be finished.", exc_info=error)
            return None

    def draw_tables(
        self,
        tabulation: Tabulation,
        charge: Charge,
        draw: Callable[[tuple[Integers, ...]], Record],
        watch: ProgressCallback | None = None,
    ) -> tuple[Reservation, Record]:
        """Count tables and draw from them once, under one charge."""
        shown = None if self.answer_after else watch

        def count(generous: bool) -> tuple[Integers, ...]:  # noqa: FBT001  # the one flag of a callback
            return self.engine.tabulate(tabulation, salt=_draw_salt(SYSTEM), watch=shown, generous=generous)

        return self._draw_recorded(tabulation.bounded, charge, count, draw)

    def draw_counts(
        self,
        bounded: BoundedPlan | None,
        charge: Charge,
        freeze: Callable[[Callable[[], Groups]], T],
        draw: Callable[[T], Record],
    ) -> tuple[Reservation, Record]:
        """Count groups and draw from them once, under one charge. Without ``bounded`` nothing is counted."""

        def count(generous: bool) -> T:  # noqa: FBT001  # the one flag of a callback
            def run() -> Groups:
                if bounded is None:
                    raise InternalError("Nothing is counted here.")
                return self.engine.run(bounded, salt=_draw_salt(SYSTEM), generous=generous)

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
        if bounded is not None:
            self._check_sources(find_tables(split(bounded.source)[0]))

        def draw_record(counted: T) -> tuple[Record, Record]:
            record = draw(counted)
            return record, record

        return ChargedDraw(self.ledger, charge, self.begin()).run(
            DrawSteps(count, draw_record, lambda record: record),
            lambda reservation, drawn: (reservation, drawn or {}),
        )

    def _check_sources(self, tables: Iterable[str]) -> None:
        """Refuse tables that are not as declared, while nothing is charged yet. Only names and types are read."""
        for table in tables:
            self.engine.schema(table)


def _draw_salt(source: EntropySource) -> bytes:
    return source.bits(128).to_bytes(16, "big")
