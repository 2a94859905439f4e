"""A running series: one charge for all of its periods, and one draw for each of them.

Privacy: the whole price is reserved in the ledger before the first period is counted. A period has a line of its own,
which costs nothing and buys one draw: it is claimed once, and what was drawn is on record before it is told. So no
interrupt, crash or retry leads to a second draw, or to a second count (``frozen_counts``). What is drawn is y of
``mechanism``, with the coefficients and the variance that were recorded with the charge. Everything that is shown
follows from the y of all periods so far.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist
from typing import Any, Protocol

import numpy as np

from discreet import parameters
from discreet.accounting import events
from discreet.accounting.account import compose
from discreet.accounting.cost_words import describe_cost
from discreet.bounding.bound import bound
from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.engines.engine import Groups
from discreet.errors import RequestConflict, UnitLost, UsageError
from discreet.exact import sqrt_lower
from discreet.gaussian_price import find_mu_squared
from discreet.late_dataclass import dataclass
from discreet.ledger.ledger import Charge, Ledger, Record, Reservation
from discreet.offer import Offer
from discreet.plan.catalog import Catalog, ContributionLimits, suggest_nearest
from discreet.plan.expressions import Column
from discreet.plan.functions import make_call, make_literal
from discreet.plan.nodes import Question
from discreet.plan.relations import Where, find_tables
from discreet.plan.statistics.definitions import Statistic
from discreet.plan.types import Type, Value
from discreet.price import PriceTerms
from discreet.privacy import Budget
from discreet.series.calendar import Calendar
from discreet.series.frozen_counts import FrozenCount, FrozenCounts, UnitLimits, select_units
from discreet.series.mechanism import SeriesMechanism

PREFIX = "series: "


class SeriesCurator(Protocol):
    """What a series needs of a curator. Member: ``Curator``."""

    name: str

    @property
    def catalog(self) -> Catalog:
        """What is declared."""
        ...

    @property
    def budget(self) -> Budget:
        """What may be spent in all."""
        ...

    @property
    def ledger(self) -> Ledger:
        """The record of charges."""
        ...

    def terms_for(self, analyst: str) -> PriceTerms:
        """What a price depends on now."""
        ...

    def draw_counts(
        self,
        bounded: BoundedPlan | None,
        charge: Charge,
        freeze: Callable[[Callable[[], Groups]], Any],
        draw: Callable[[Any], Record],
    ) -> tuple[Reservation, Record]:
        """Count, and draw once, under one charge."""
        ...


@dataclass(frozen=True, kw_only=True)
class SeriesPlan:
    """What a series counts, when, of whom, and what its errors are judged by. Public."""

    name: str
    question: Question
    by: Column
    calendar: Calendar
    limits: UnitLimits
    wanted: str
    window: int | None
    level: Fraction

    @property
    def digest(self) -> str:
        """A name for everything that the plan says."""
        facts = [self.name, repr(self.question.source), repr(self.by), repr(self.calendar), repr(self.limits)]
        return hashlib.sha256("\n".join([*facts, self.wanted, str(self.window)]).encode()).hexdigest()


def check_question(question: Question, by: str, catalog: Catalog) -> Column:
    """The column of days; refused where the question is no plain count, or the column is not there."""
    plain = not (question.keys or question.order or question.having is not None or question.sets is not None)
    counts = [a for a in question.aggregates if a.statistic is Statistic.COUNT and a.argument is None]
    if not plain or len(question.aggregates) != 1 or len(counts) != 1:
        raise UsageError(
            "A series is of one count of rows: SELECT COUNT(*) FROM ... WHERE ..., without groups. Nothing was charged."
        )
    found = [
        Column(table, name, kind)
        for table in find_tables(question.source)
        for name, (kind, _) in catalog.find_table(table).columns.items()
        if name.lower() == by.lower()
    ]
    if len(found) != 1 or not found[0].type.is_time:
        known = [
            n for t in find_tables(question.source) for n, (k, _) in catalog.find_table(t).columns.items() if k.is_time
        ]
        raise UsageError(
            f"by={by!r} must be one column of days or times. {suggest_nearest(by, known)} Nothing was charged."
        )
    return found[0]


@dataclass(frozen=True)
class SeriesPoint:
    """One period of a series: what is wanted, with its interval."""

    period: int
    start: dt.date
    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class RunningSeries:
    """A series of a curator. ``preview()`` is free; the first ``release()`` charges for all periods.

    A series of a release is paid for by it: ``payer`` names it, ``reserved`` is its part of μ², and there is no offer.
    """

    curator: SeriesCurator
    plan: SeriesPlan
    offer: Offer | None
    counts: FrozenCounts
    analyst: str = "analyst"
    project: str = ""
    payer: str = ""
    reserved: Fraction | None = None

    @cached_property
    def bounded(self) -> BoundedPlan:
        """The rows of a series, for each unit; refused where rows cannot be told apart by units."""
        own = replace(self.plan.question, limits=ContributionLimits(max_rows=1))
        found = bound(own, self.curator.catalog).bounded
        if found.spread_rows > 1:
            raise UnitLost("This join does not keep units together, so it has no series. Nothing was charged.")
        keys = () if found.unit is None else (found.unit,)
        rows = (Measure(counts=Counts.ROWS),)
        return BoundedPlan(source=found.source, keys=keys, domain=None, unit=None, measures=rows)

    @cached_property
    def identity(self) -> str:
        """The name of the series: what it counts, of whom, under which budget. Not the data, which grow."""
        facts = [PREFIX, self.curator.name, self.plan.digest, repr(self.bounded), repr(self.curator.budget)]
        facts += [self.payer] if self.payer else []
        return hashlib.sha256("\n".join(facts).encode()).hexdigest()

    @cached_property
    def _priced(self) -> tuple[Fraction, SeriesMechanism]:
        """What is paid, and the mechanism at this price; as recorded, where it was charged before."""
        known = self.curator.ledger.find_paid(self.identity, self.analyst)
        paid = self._find_price() if known is None else Fraction(known)
        catalog = self.curator.catalog
        limits = self.plan.limits
        return paid, SeriesMechanism(
            periods=self.plan.calendar.periods,
            max_periods=limits.max_periods,
            apart=limits.apart,
            max_count=limits.max_count,
            mu=sqrt_lower(paid),
            wanted=self.plan.wanted,
            window=self.plan.window,
            neighbours=catalog.neighbours,
            unit=catalog.unit,
        )

    def _find_price(self) -> Fraction:
        """What is paid for a series that was not charged before."""
        if self.offer is not None:
            return find_mu_squared(self.offer, self.curator.terms_for(self.analyst))
        if self.reserved is None:
            raise UsageError(f"{self.plan.name!r} is not published yet: publish its plan first. Nothing was charged.")
        return self.reserved

    @property
    def event(self) -> events.RoundedGaussian:
        """What all periods cost."""
        return self._priced[1].event

    @property
    def _free(self) -> events.Event:
        """The event of a line that costs nothing."""
        return events.Pure(epsilon=0, unit=self.curator.catalog.unit, neighbours=self.curator.catalog.neighbours)

    def preview(self) -> SeriesPreview:
        """What all periods cost together, and how exact they would be. Nothing is charged."""
        paid, mechanism = self._priced
        charge = self._make_charge(paid, mechanism)
        again = self.curator.ledger.find_paid(self.identity, self.analyst) is not None
        width = self._find_width() * mechanism.deviations
        return SeriesPreview(
            name=self.plan.name,
            cost=describe_cost(self.curator.budget, charge.loss),
            fits=again or self.curator.ledger.fits(charge),
            paid=again,
            periods=self.plan.calendar.periods,
            first_error=float(width[0]),
            last_error=float(width[-1]),
            wanted=self.plan.wanted,
        )

    def _find_width(self) -> float:
        return NormalDist().inv_cdf((1 + float(self.plan.level)) / 2)

    def _make_charge(self, paid: Fraction, mechanism: SeriesMechanism) -> Charge:
        """The charge for all periods; a line that costs nothing, where somebody else pays."""
        event = self._free if self.payer else mechanism.event
        payer = f", paid by {self.payer!r}" if self.payer else ""
        return Charge(
            request=PREFIX + self.plan.name,
            analyst=self.analyst,
            dataset=self.curator.name,
            identity=self.identity,
            question=f"{PREFIX}{self.plan.name}: all {self.plan.calendar.periods} periods{payer} ({self.identity})",
            events=(event,),
            loss=compose([event]).loss,
            project=self.project,
            paid=str(paid),
        )

    def _reserve(self) -> tuple[Reservation, SeriesMechanism]:
        """The charge for all periods, and the mechanism that was recorded with it."""
        paid, mechanism = self._priced
        told = {"coefficients": list(mechanism.weights), "mu": str(mechanism.mu)}
        try:
            held, record = self.curator.draw_counts(
                None, self._make_charge(paid, mechanism), lambda _: None, lambda _: told
            )
        except RequestConflict as error:
            raise UsageError(
                f"The series {self.plan.name!r} was charged with another plan. Give this one another name. "
                "Nothing was charged."
            ) from error
        if held.record is None:
            self.curator.ledger.commit(held, {"series": self.plan.name})
        # What was recorded decides: another version might choose other coefficients.
        recorded = tuple(int(value) for value in record["coefficients"])
        return held, replace(mechanism, coefficients=recorded, mu=Fraction(record["mu"]))

    def _describe_period(self, held: Reservation, period: int) -> Charge:
        """The line of one period: free, because all of them are paid for."""
        free = self._free
        identity = hashlib.sha256(f"{self.identity}\n{period}".encode()).hexdigest()
        return Charge(
            request=f"{PREFIX}{self.plan.name}: {period}",
            analyst=self.analyst,
            dataset=self.curator.name,
            identity=identity,
            question=f"{PREFIX}{self.plan.name}: period {period} under line {held.number}, {held.hash} ({identity})",
            events=(free,),
            loss=compose([free]).loss,
            project=self.project,
            paid="0",
        )

    def _list_measured(self) -> list[int]:
        """The y of all periods that were drawn, from the first one on."""
        found: list[int] = []
        for period in range(self.plan.calendar.periods):
            known = self.curator.ledger.find_request(self.analyst, f"{PREFIX}{self.plan.name}: {period}")
            if known is None or known.draw is None:
                break
            found.append(int(known.draw["y"]))
        return found

    def read_drawn(self) -> tuple[list[int], SeriesMechanism]:
        """The y of all periods so far, and the mechanism that they were drawn with, as recorded."""
        return self._list_measured(), self._reserve()[1]

    def release(self, period: int | dt.date | None = None) -> SeriesPoint:
        """One period: the next one, or one that was released before, by its number from 0 on or by a day in it.

        A period is released when its rows are there. What comes later is not counted in it.
        """
        held, mechanism = self._reserve()
        drawn = len(self._list_measured())
        wanted = drawn if period is None else self._find_period(period)
        if wanted > drawn or wanted >= self.plan.calendar.periods:
            raise UsageError(
                f"Periods are released in order: number {drawn} is next, of {self.plan.calendar.periods}, counted from "
                "0. Nothing was charged."
            )
        if wanted == drawn:
            self._draw(held, mechanism, wanted)
        return self.points()[wanted]

    def _find_period(self, period: int | dt.date) -> int:
        if isinstance(period, dt.date):
            day = period.date() if isinstance(period, dt.datetime) else period
            return self.plan.calendar.find(day)
        return int(parameters.read_whole(period, "period", least=0))

    def _draw(self, held: Reservation, mechanism: SeriesMechanism, period: int) -> None:
        """Count a period, or take what was frozen; draw its y; put it on record."""
        earlier = self._read_earlier(period)

        def freeze(run: Callable[[], Groups]) -> list[int]:
            known = self.counts.read(period)
            if known is None:
                known = self.counts.freeze(period, self._count(run(), earlier, period))
            return [*(each.count for each in earlier), known.count]

        def draw(counts: list[int]) -> Record:
            return {"y": str(mechanism.measure(counts)), "period": period}

        bounded = replace(self.bounded, source=self._within(period))
        reservation, _ = self.curator.draw_counts(bounded, self._describe_period(held, period), freeze, draw)
        if reservation.record is None:
            self.curator.ledger.commit(reservation, {"series": self.plan.name, "period": period})

    def _read_earlier(self, period: int) -> list[FrozenCount]:
        found = [self.counts.read(earlier) for earlier in range(period)]
        if any(each is None for each in found):
            raise UsageError(
                f"The private state of the series {self.plan.name!r} is not there for all {period} periods that were "
                "released. A series cannot go on without it: put the folder back. Nothing was charged."
            )
        return [each for each in found if each is not None]

    def _count(self, groups: Groups, earlier: list[FrozenCount], period: int) -> FrozenCount:
        """Who is counted in a period. Where a row is the unit, all rows are."""
        rows = groups.values[0]
        if not self.bounded.keys:
            return FrozenCount(sum(rows), ())
        present: dict[Value, int] = {key[0]: n for key, n in zip(groups.keys, rows) if key[0] is not None}
        before: dict[Value, tuple[int, int]] = {}
        for number, frozen in enumerate(earlier):
            for unit in frozen.units:
                before[unit] = (before.get(unit, (0, 0))[0] + 1, number)
        return select_units(present, before, period, self.plan.limits)

    def _within(self, period: int) -> Any:
        """The rows of one period."""
        start, end = (self._to_time(self.plan.calendar.start(each)) for each in (period, period + 1))
        late = make_call("at_least", self.plan.by, make_literal(start))
        early = make_call("less", self.plan.by, make_literal(end))
        return Where(Where(self.bounded.source, late), early)

    def _to_time(self, day: dt.date) -> Value:
        return dt.datetime.combine(day, dt.time()) if self.plan.by.type is Type.TIMESTAMP else day

    def points(self) -> list[SeriesPoint]:
        """All periods so far. Free: it follows from what was drawn."""
        measured = self._list_measured()
        if not measured:
            return []
        _, mechanism = self._reserve()
        width = self._find_width() * mechanism.deviations
        return [
            SeriesPoint(t, self.plan.calendar.start(t), float(v), float(v - width[t]), float(v + width[t]))
            for t, v in enumerate(mechanism.decode(measured))
        ]

    def to_arrow(self) -> Any:
        """All periods so far as an Arrow table: period, value, low, high."""
        import pyarrow as pa

        points = self.points()
        return pa.table(
            {
                "period": pa.array([point.start for point in points], pa.date32()),
                **{name: np.array([getattr(p, name) for p in points]) for name in ("value", "low", "high")},
            }
        )


@dataclass(frozen=True, kw_only=True)
class SeriesPreview:
    """What a series would cost and how exact it would be."""

    name: str
    cost: str
    fits: bool
    paid: bool
    periods: int
    first_error: float
    last_error: float
    wanted: str

    def __str__(self) -> str:
        cost = "already paid for: free" if self.paid else self.cost
        lines = [f"series    {self.name}: {self.periods} periods, {self.wanted}", f"cost      {cost}, once for all"]
        lines.append(f"error     ± {self.first_error:.4g} in the first period, ± {self.last_error:.4g} in the last")
        return "\n".join(lines if self.fits else [*lines, "budget    this is more than is left: it would be refused"])

    __repr__ = __str__
