"""Quotes: the name by which the ledger knows a question again, and what it charges."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from discreet.accounting.events import FixedPlan
from discreet.errors import BudgetExceeded
from discreet.offer import Offer
from discreet.plan.nodes import Aggregate, Question
from discreet.plan.relations import Join, JoinKind, Scan
from discreet.plan.statistics.definitions import Statistic
from discreet.privacy import Budget
from discreet.quote import Quote, QuoteContext, quote, quote_batch
from tests.worlds.hospital import COUNT, ask, catalog, column, of

CONTEXT = QuoteContext(name="hospital", catalog=catalog(), budget=Budget(epsilon=3, delta=1e-6), version=lambda _: "v1")
BY_WARD = ask(COUNT, of(Statistic.MEAN, "age"), keys=("ward",))


def quoted(question: Question = BY_WARD, context: QuoteContext = CONTEXT, **offer: Any) -> Quote:
    return quote(question, Offer(**(offer or {"epsilon": 1})), context)


def test_equal_questions_at_equal_prices_have_one_name() -> None:
    """Everything that could change the answer changes the name: price, words, dataset and version."""
    same = quoted()
    assert quoted().identity == same.identity
    others = [
        quoted(epsilon=2),
        quoted(ask(COUNT, keys=("ward",))),
        quoted(context=replace(CONTEXT, name="clinic")),
        quoted(context=replace(CONTEXT, version=lambda _: "v2")),
    ]
    assert len({same.identity, *(other.identity for other in others)}) == 5


def test_lengths_and_caps_are_part_of_the_name() -> None:
    """Both can change the answer: longer texts are read as NULL, and rows beyond a cap are left out below joins."""
    tables = {
        name: replace(
            facts,
            columns={
                column: (kind, known if known.max_length is None else replace(known, max_length=7))
                for column, (kind, known) in facts.columns.items()
            },
        )
        for name, facts in CONTEXT.catalog.tables.items()
    }
    assert tables != CONTEXT.catalog.tables
    shorter = replace(CONTEXT, catalog=replace(CONTEXT.catalog, tables=tables))
    assert quoted(context=shorter).identity != quoted().identity
    unit = CONTEXT.catalog.tables["visits"].unit_column
    assert unit is not None
    on = ((unit, replace(unit, table="visits 2")),)
    paired = replace(ask(COUNT), source=Join(Scan("visits"), Scan("visits", "visits 2"), JoinKind.INNER, on))
    wide, narrow = (
        quoted(paired, replace(CONTEXT, catalog=replace(CONTEXT.catalog, max_joined_rows=rows))) for rows in (900, 400)
    )
    assert wide.identity != narrow.identity


def test_what_is_charged_is_what_the_plans_release() -> None:
    """One question is charged by its events; a fixed batch that gains by it by one event that covers all its plans."""
    one = quoted()
    assert one.events == one.plans[0].events and one.version == "v1"
    many = [BY_WARD] * 12
    fixed = quote_batch(many, Offer(epsilon=1, delta=1e-7), CONTEXT, weights=None, fixed=True)
    (event,) = fixed.events
    assert isinstance(event, FixedPlan) and fixed.loss.epsilon(1e-7) <= 1
    loose = quote_batch(many, Offer(epsilon=1, delta=1e-7), CONTEXT, weights=None, fixed=False)
    assert loose.identity != fixed.identity and loose.text == fixed.text == "\n\n".join([one.text] * 12)


def test_what_one_question_may_cost_holds_for_quotes() -> None:
    """The codebook's per_query is part of the terms."""
    with pytest.raises(BudgetExceeded, match="per_query"):
        quoted(context=replace(CONTEXT, per_query=Fraction(1, 2)))


def test_the_identity_tells_mechanisms_apart() -> None:
    """Two quantiles cost the same and have the same events; their releases are not the same. Outputs do not matter."""
    halves = [ask(Aggregate(Statistic.QUANTILE, column("age"), Fraction(q, 10)), keys=("ward",)) for q in (5, 9)]
    names = {quoted(half).identity for half in halves}
    assert quoted(halves[0]).events == quoted(halves[1]).events and len(names) == 2
    assert quoted(replace(BY_WARD, limit=1)).identity == quoted().identity
    assert quoted(epsilon=1, level=0.5).identity == quoted().identity
