"""How a series is asked for: what a caller says, checked and put together. Nothing is read or charged here."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from discreet import parameters
from discreet.errors import ParameterError, UsageError
from discreet.ledger.memory import MemoryLedger
from discreet.offer import Offer
from discreet.parameters import Number
from discreet.plan.nodes import Question
from discreet.series.calendar import Calendar, Step
from discreet.series.frozen_counts import FolderCounts, MemoryCounts, UnitLimits
from discreet.series.mechanism import Wanted
from discreet.series.running_series import RunningSeries, SeriesCurator, SeriesPlan, check_question


def open_series(
    curator: SeriesCurator,
    question: Question,
    *,
    name: str,
    by: str,
    first: dt.date,
    periods: int,
    days_per_unit: int | None = None,
    apart: int = 1,
    rows_per_period: int = 1,
    every: str = "day",
    wanted: str = "periods",
    window: int | None = None,
    state: str | Path | None = None,
    level: Number = 0.95,
    analyst: str = "analyst",
    project: str = "",
    epsilon: Number | None = None,
    rho: Number | None = None,
    share: Number | None = None,
    delta: Number | None = None,
) -> RunningSeries:
    """A series of counts by a column of days, for ``Curator.series``.

    A unit is counted in its first ``days_per_unit`` periods that are at least ``apart`` from each other, with at most
    ``rows_per_period`` rows in each. ``wanted`` is what the noise is made for: "periods", "totals" or "windows" of
    ``window`` periods. ``state`` is a private folder for what was counted, as private as the data; a ledger in memory
    needs none. The same words again go on with the same series.
    """
    # An ε that is stated for a series is the guarantee of the series by itself.
    offer = Offer(epsilon=epsilon, rho=rho, share=share, delta=delta, level=level, alone=epsilon is not None)
    plan = _read_plan(
        curator, question, name=name, by=by, first=first, periods=periods, days_per_unit=days_per_unit, apart=apart,
        rows_per_period=rows_per_period, every=every, wanted=wanted, window=window, level=level,
    )  # fmt: skip  # words that are handed on
    made = RunningSeries(
        curator=curator, plan=plan, offer=offer, counts=MemoryCounts(), analyst=analyst, project=project
    )
    return _with_counts(made, state)


def open_reserved_series(
    curator: SeriesCurator,
    question: Question,
    *,
    payer: str,
    reserved: Fraction | None,
    state: str | Path | None = None,
    analyst: str = "analyst",
    project: str = "",
    **choices: Any,
) -> RunningSeries:
    """A series that ``payer`` pays for with so much of its μ²; None where it was opened before, and goes on.

    Privacy: the caller has charged, or charges before anything is released, the ``event`` of the series. That is why
    ``Curator.series`` has no such words.
    """
    made = RunningSeries(
        curator=curator,
        plan=_read_plan(curator, question, **choices),
        offer=None,
        counts=MemoryCounts(),
        analyst=analyst,
        project=project,
        payer=payer,
        reserved=reserved,
    )
    return _with_counts(made, state)


def _read_plan(
    curator: SeriesCurator,
    question: Question,
    *,
    name: str,
    by: str,
    first: dt.date,
    periods: int,
    days_per_unit: int | None,
    apart: int,
    rows_per_period: int,
    every: str,
    wanted: str,
    window: int | None,
    level: Number,
) -> SeriesPlan:
    """What a series counts, checked."""
    column = check_question(question, by, curator.catalog)
    if not isinstance(name, str) or not name.strip() or len(name) > 200 or ": " in name:
        raise ParameterError(
            "name", "must be a short text without ': '", "Say name='visits-by-day'. Nothing was charged."
        )
    if every not in tuple(Step):
        raise ParameterError("every", "is not a known word", "Say 'day', 'week' or 'month'. Nothing was charged.")
    if wanted not in tuple(Wanted):
        raise ParameterError(
            "wanted", "is not a known word", "Say 'periods', 'totals' or 'windows'. Nothing was charged."
        )
    return SeriesPlan(
        name=name,
        question=question,
        by=column,
        calendar=Calendar(first, Step(every), periods),
        limits=_read_limits(curator, days_per_unit, apart, rows_per_period),
        wanted=wanted,
        window=window,
        level=parameters.read_probability(level, "level"),
    )


def _read_limits(curator: SeriesCurator, days_per_unit: int | None, apart: int, rows_per_period: int) -> UnitLimits:
    if curator.catalog.unit.column is None:
        if (days_per_unit or 1, rows_per_period) != (1, 1):
            raise UsageError("Where a row is the unit, it is in one period: leave the limits out. Nothing was charged.")
        return UnitLimits(1, 1, 1)
    if days_per_unit is None:
        raise ParameterError(
            "days_per_unit", "is missing", "Say in how many periods one unit may be counted. Nothing was charged."
        )
    for name, value in (("days_per_unit", days_per_unit), ("apart", apart), ("rows_per_period", rows_per_period)):
        parameters.read_whole(value, name)
    return UnitLimits(days_per_unit, apart, rows_per_period)


# What was counted under ledgers in memory: it is gone when they are.
_IN_MEMORY: WeakKeyDictionary[MemoryLedger, dict[str, MemoryCounts]] = WeakKeyDictionary()


def _with_counts(made: RunningSeries, state: str | Path | None) -> RunningSeries:
    """The series with the place where its counts are kept."""
    ledger = made.curator.ledger
    if state is not None:
        keys = made.bounded.keys
        return replace(made, counts=FolderCounts(Path(state), made.identity, keys[0].type if keys else None))
    if isinstance(ledger, MemoryLedger):
        kept = _IN_MEMORY.setdefault(ledger, {})
        return replace(made, counts=kept.setdefault(made.identity, MemoryCounts()))
    raise ParameterError(
        "state",
        "is missing",
        "Name a private folder, as private as the data: who was counted is kept there. Nothing was charged.",
    )
