"""Asks a question whose bounds are missing: a quarter of the offer buys bounds, the rest asks the question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from discreet.answer import Answer
from discreet.bound_search.column_bounds import (
    Bounds,
    BoundsPreview,
    ask_for_bounds,
    make_values_question,
    preview_search,
)
from discreet.bound_search.curator_protocol import CuratorProtocol, divide_offer
from discreet.bounding.facts import facts_of
from discreet.bounding.stability import find_relation_facts
from discreet.errors import BudgetExceeded, ParameterError, Unbounded
from discreet.late_dataclass import dataclass
from discreet.offer import Offer
from discreet.plan.catalog import Catalog
from discreet.plan.expressions import Expression, Literal, ReleasedValue, walk
from discreet.plan.functions import make_call
from discreet.plan.magnitude import IntOrFloat
from discreet.plan.nodes import Aggregate, Question
from discreet.plan.statistics.table import STATISTICS
from discreet.plan.types import Type
from discreet.preview import Preview
from discreet.privacy import Loss

# The part of an offer that pays for all searches together. More finds the scale of fewer rows, less leaves more for the
# question; from a fifth to a third the error of sums is nearly the same.
SEARCH_SHARE = Fraction(1, 4)


def is_automatic(bounds: str | None) -> bool:
    """Whether missing bounds shall be bought."""
    if bounds not in (None, "auto"):
        raise ParameterError(
            "bounds", "is not a known word", "Say bounds='auto', or leave it out. Nothing was charged."
        )
    return bounds is not None


def find_unbounded(question: Question, catalog: Catalog) -> tuple[Expression, ...]:
    """The columns and expressions that a question measures without bounds, each once."""
    rows = find_relation_facts(question.source, catalog)
    found = {
        aggregate.argument: None
        for aggregate in question.aggregates
        if aggregate.argument is not None and _lacks_bounds(aggregate)
        if aggregate.argument.type.is_number and not facts_of(aggregate.argument, rows).bounded
    }
    return tuple(found)


def add_bounds(question: Question, bounds: Mapping[Expression, tuple[IntOrFloat, IntOrFloat]]) -> Question:
    """The same question with clamp(x, low, high) in place of x, wherever x itself is what is measured."""

    def clamp_aggregate(aggregate: Aggregate) -> Aggregate:
        argument = aggregate.argument
        if argument is None or argument not in bounds or not _lacks_bounds(aggregate):
            return aggregate
        low, high = (Literal(_to_type(end, argument.type), argument.type) for end in bounds[argument])
        return replace(aggregate, argument=make_call("clamp", argument, low, high))

    return replace(question, aggregates=tuple(map(clamp_aggregate, question.aggregates)))


def _lacks_bounds(aggregate: Aggregate) -> bool:
    """Whether a statistic needs bounds that the analyst did not set."""
    return STATISTICS[aggregate.statistic].needs_bounds and aggregate.bounds is None


def _to_type(end: IntOrFloat, kind: Type) -> IntOrFloat:
    return int(end) if kind is Type.INTEGER else float(end)


@dataclass(frozen=True, slots=True, kw_only=True)
class AutomaticPreview(Preview):
    """A preview of both steps: the searches for bounds, and the question within them.

    ``plan`` is that of the question, within bounds that it might have. ``whole`` prices both steps together.
    ``open`` names the columns whose error depends on the bounds, so that it is known only after the first step.
    """

    searches: tuple[BoundsPreview, ...]
    whole: Preview
    open: tuple[str, ...]

    @property
    def final(self) -> Preview:
        """The question by itself, without the searches."""
        return Preview(plan=self.plan, budget=self.budget, fits=self.fits, remaining=self.remaining)

    @property
    def loss(self) -> Loss:
        """What both steps cost together."""
        return self.whole.loss

    def to_dict(self) -> dict[str, Any]:
        """The preview as plain JSON values."""
        final = self.final.to_dict()
        for column in final["columns"]:
            if column["name"] in self.open:
                column |= {"error": None, "error_by_size": {}}
        final["clamped"] = []
        return {
            "cost": self.cost,
            "fits": self.fits,
            "remaining": self.whole.remaining,
            "bounds": [search.to_dict() for search in self.searches],
            "question": final,
            "known_after_bounds": list(self.open),
        }

    def __str__(self) -> str:
        steps = len(self.searches) + 1
        lines = []
        for number, search in enumerate(self.searches, start=1):
            lines += [f"step {number} of {steps}: bounds of {search.of}", f"  {search.words}"]
            lines.append(f"  cost {search.preview.cost}" if not search.preview.answered else "  already answered: free")
        lines.append(f"step {steps} of {steps}: the question within these bounds")
        lines += [f"  {c.name}: {c.words()}" for c in self.final.columns if c.name not in self.open]
        lines += [f"  {name}: its error is known after the bounds" for name in self.open]
        lines.append(f"  cost {self.final.cost}")
        fits = "" if self.fits else "  (more than is left)"
        lines += [f"together  {self.cost}{fits}", f"left      {self.whole.remaining}"]
        return "\n".join([*lines, "nothing was charged, no data was read"])

    # Without this line the dataclass would make a repr of its own.
    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class _SearchSteps:
    """The searches that come before a question, and the offers: one for each search, and one for the question."""

    searches: tuple[tuple[Expression, Question, dict[str, Any]], ...]
    offer: dict[str, Any]


def _plan_steps(curator: CuratorProtocol, question: Question, offered: Offer) -> _SearchSteps:
    unbounded = find_unbounded(question, curator.catalog)
    shares = [SEARCH_SHARE / len(unbounded)] * len(unbounded)
    *search_offers, question_offer = divide_offer(offered, curator.budget, [*shares, 1 - sum(shares, Fraction(0))])
    searches = tuple(
        (value, make_values_question(question.source, value, curator.catalog), dict(offer))
        for value, offer in zip(unbounded, search_offers)
    )
    return _SearchSteps(
        searches, {**question_offer, "delta": offered.delta, "level": offered.level, "ends": offered.ends}
    )


def preview(curator: CuratorProtocol, question: Question, offered: Offer, **asker: Any) -> Preview:
    """Price both steps. Where no bounds are missing, this is an ordinary preview."""
    whole_offer = {**_to_offer_words(offered), **asker}
    if not find_unbounded(question, curator.catalog):
        return curator.preview(question, **whole_offer)
    steps = _plan_steps(curator, question, offered)
    bounded = _add_any_bounds(question, steps)
    whole, final = curator.preview(bounded, **whole_offer), curator.preview(bounded, **steps.offer, **asker)
    return AutomaticPreview(
        plan=final.plan,
        budget=final.budget,
        fits=whole.fits,
        remaining=whole.remaining,
        searches=tuple(
            preview_search(curator, search, str(value), **offer, **asker) for value, search, offer in steps.searches
        ),
        whole=whole,
        open=_find_open_outputs(question, steps),
    )


def ask(curator: CuratorProtocol, question: Question, offered: Offer, **asker: Any) -> Answer:
    """Buy the bounds that are missing, then ask. ``asker`` says who asks and how: analyst, project, request, watch.

    Each step is charged and recorded by itself. Where no bounds are found, the question is not asked.
    """
    if not find_unbounded(question, curator.catalog):
        return curator.ask(question, **_to_offer_words(offered), **asker)
    steps = _plan_steps(curator, question, offered)
    _check(curator, question, offered, steps, asker)
    found = [
        ask_for_bounds(curator, search, str(value), **offer, **_name_request(asker, number))
        for number, (value, search, offer) in enumerate(steps.searches, start=1)
    ]
    ranges = _read_ranges(steps, found)
    try:
        return curator.ask(add_bounds(question, ranges), **steps.offer, **asker)
    except Unbounded as error:
        text = "; ".join(f"{bounds.of} in {bounds.suggestion}" for bounds in found)
        raise Unbounded(f"Bounds were bought and are on record ({text}). Of the question itself: {error}") from None


def _check(
    curator: CuratorProtocol, question: Question, offered: Offer, steps: _SearchSteps, asker: Mapping[str, Any]
) -> None:
    """Refuse before the first step what could not pay for the second."""
    who = {name: value for name, value in asker.items() if name in ("analyst", "project")}
    name = {"analyst": who["analyst"]} if "analyst" in who else {}
    whole = curator.preview(_add_any_bounds(question, steps), **_to_offer_words(offered), **who)
    if whole.fits or all(curator.answered(search, **offer, **name) for _, search, offer in steps.searches):
        return
    raise BudgetExceeded(
        f"Bounds and question cost {whole.cost} together, and {whole.remaining} is left. Offer less. "
        "Nothing was charged."
    )


def _read_ranges(steps: _SearchSteps, found: list[Bounds]) -> dict[Expression, tuple[IntOrFloat, IntOrFloat]]:
    ranges = {}
    for (value, _, _), bounds in zip(steps.searches, found):
        if bounds.low is None or bounds.high is None:
            raise Unbounded(f"{bounds.words} The search was charged, the question was not.")
        ranges[value] = bounds.low, bounds.high
    return ranges


def _add_any_bounds(question: Question, steps: _SearchSteps) -> Question:
    """The question within some bounds. Its price and its refusals do not depend on which bounds these are."""
    return add_bounds(question, {value: (0, 1) for value, _, _ in steps.searches})


def _find_open_outputs(question: Question, steps: _SearchSteps) -> tuple[str, ...]:
    """The names of the outputs that are computed from an expression without bounds."""
    unbounded = {value for value, _, _ in steps.searches}
    affected = {
        len(question.keys) + i
        for i, aggregate in enumerate(question.aggregates)
        if aggregate.argument in unbounded and _lacks_bounds(aggregate)
    }
    return tuple(
        output.name
        for output in question.outputs
        if any(isinstance(part, ReleasedValue) and part.index in affected for part in walk(output.expression))
    )


def _to_offer_words(offered: Offer) -> dict[str, Any]:
    names = ("epsilon", "rho", "share", "error", "delta")
    offer = {name: getattr(offered, name) for name in names}
    return {
        **{name: value for name, value in offer.items() if value is not None},
        "level": offered.level,
        "ends": offered.ends,
    }


def _name_request(asker: Mapping[str, Any], number: int) -> dict[str, Any]:
    """The same asker with a request id for one search, so that a retry finds the search again."""
    request = asker.get("request")
    return {**asker, **({} if request is None else {"request": f"{request}-bounds-{number}"})}
