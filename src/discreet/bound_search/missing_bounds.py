"""A question whose bounds are missing: bounds are bought for half of the offer, then it is asked within them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from discreet.answer import Answer
from discreet.bound_search.asker import CuratorLike, divide
from discreet.bound_search.column_bounds import Bounds, BoundsPreview, buy, look, make_values_question
from discreet.bounding.facts import facts_of
from discreet.bounding.stability import find_relation_facts
from discreet.errors import BudgetExceeded, Unbounded
from discreet.offer import Offer
from discreet.plan.catalog import Catalog
from discreet.plan.expressions import Expression, Literal, ReleasedValue, walk
from discreet.plan.functions import make_call
from discreet.plan.magnitude import IntOrFloat
from discreet.plan.nodes import Aggregate, Question, Statistic
from discreet.plan.types import Type
from discreet.preview import Preview
from discreet.privacy import Loss

# The part of an offer that pays for bounds, all of them together.
SEARCH = Fraction(1, 2)

_BOUNDED = frozenset(
    {Statistic.SUM, Statistic.MEAN, Statistic.VARIANCE, Statistic.STDDEV, Statistic.QUANTILE}
)  # what cannot be measured without bounds


def find_unbounded(question: Question, catalog: Catalog) -> tuple[Expression, ...]:
    """What a question measures without bounds, each once: columns, or whatever is computed from them."""
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
    return aggregate.statistic in _BOUNDED and aggregate.bounds is None


def _to_type(end: IntOrFloat, kind: Type) -> IntOrFloat:
    return int(end) if kind is Type.INTEGER else float(end)


@dataclass(frozen=True, slots=True, kw_only=True)
class AutomaticPreview(Preview):
    """Both steps before anything is spent: the searches for bounds, and the question within them.

    ``plan`` is the question's own, within bounds that it might have; ``whole`` is what both steps cost together.
    ``open`` names the columns whose error depends on the bounds, and so is known only after the first step.
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
            lines.append(f"  cost {search.preview.cost}")
        lines.append(f"step {steps} of {steps}: the question within these bounds")
        lines += [f"  {c.name}: {c.words()}" for c in self.final.columns if c.name not in self.open]
        lines += [f"  {name}: its error is known after the bounds" for name in self.open]
        lines.append(f"  cost {self.final.cost}")
        fits = "" if self.fits else "  (more than is left)"
        lines += [f"together  {self.cost}{fits}", f"left      {self.whole.remaining}"]
        return "\n".join([*lines, "nothing was charged, no data was read"])

    # Written out for the dataclass, which would make a repr of its own.
    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class _SearchSteps:
    """A question and its searches, each with its offer."""

    searches: tuple[tuple[Expression, Question, dict[str, Any]], ...]
    offer: dict[str, Any]


def _plan_steps(teller: CuratorLike, question: Question, offered: Offer) -> _SearchSteps:
    lacking = find_unbounded(question, teller.catalog)
    each = [SEARCH / len(lacking)] * len(lacking)
    *paid, rest = divide(offered, teller.budget, [*each, 1 - sum(each, Fraction(0))])
    searches = tuple(
        (value, make_values_question(question.source, value, teller.catalog), dict(offer))
        for value, offer in zip(lacking, paid)
    )
    return _SearchSteps(searches, {**rest, "delta": offered.delta, "level": offered.level})


def preview(teller: CuratorLike, question: Question, offered: Offer, **asker: Any) -> Preview:
    """Both steps, priced. An ordinary preview where no bounds are missing."""
    whole_offer = {**_to_offer_words(offered), **asker}
    if not find_unbounded(question, teller.catalog):
        return teller.preview(question, **whole_offer)
    steps = _plan_steps(teller, question, offered)
    likely = _add_any_bounds(question, steps)
    whole, final = teller.preview(likely, **whole_offer), teller.preview(likely, **steps.offer, **asker)
    return AutomaticPreview(
        plan=final.plan,
        budget=final.budget,
        fits=whole.fits,
        remaining=whole.remaining,
        searches=tuple(look(teller, asked, str(value), **offer, **asker) for value, asked, offer in steps.searches),
        whole=whole,
        open=_find_open_outputs(question, steps),
    )


def ask(teller: CuratorLike, question: Question, offered: Offer, **asker: Any) -> Answer:
    """Buy the bounds that are missing, then ask. ``asker`` is who asks, and how: analyst, project, request, watch.

    Each step is charged and recorded by itself. Where no bounds are found, the question is not asked.
    """
    if not find_unbounded(question, teller.catalog):
        return teller.ask(question, **_to_offer_words(offered), **asker)
    steps = _plan_steps(teller, question, offered)
    _check(teller, question, offered, steps, asker)
    found = [
        buy(teller, asked, str(value), **offer, **_name_request(asker, number))
        for number, (value, asked, offer) in enumerate(steps.searches, start=1)
    ]
    ranges = _read_ranges(steps, found)
    try:
        return teller.ask(add_bounds(question, ranges), **steps.offer, **asker)
    except Unbounded as error:
        bought = "; ".join(f"{bounds.of} in {bounds.suggestion}" for bounds in found)
        raise Unbounded(f"Bounds were bought and are on record ({bought}). Of the question itself: {error}") from None


def _check(
    teller: CuratorLike, question: Question, offered: Offer, steps: _SearchSteps, asker: Mapping[str, Any]
) -> None:
    """Refuse before the first step what could not take the second."""
    who = {name: value for name, value in asker.items() if name in ("analyst", "project")}
    whole = teller.preview(_add_any_bounds(question, steps), **_to_offer_words(offered), **who)
    if whole.fits or all(teller.answered(asked, **offer) for _, asked, offer in steps.searches):
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
    """The question within some bounds: its price and its refusals do not depend on which."""
    return add_bounds(question, {value: (0, 1) for value, _, _ in steps.searches})


def _find_open_outputs(question: Question, steps: _SearchSteps) -> tuple[str, ...]:
    """The outputs that are made of what lacks bounds."""
    lacking = {value for value, _, _ in steps.searches}
    touched = {
        len(question.keys) + i
        for i, aggregate in enumerate(question.aggregates)
        if aggregate.argument in lacking and _lacks_bounds(aggregate)
    }
    return tuple(
        output.name
        for output in question.outputs
        if any(isinstance(part, ReleasedValue) and part.index in touched for part in walk(output.expression))
    )


def _to_offer_words(offered: Offer) -> dict[str, Any]:
    offer = {"epsilon": offered.epsilon, "rho": offered.rho, "error": offered.error, "delta": offered.delta}
    return {**{name: value for name, value in offer.items() if value is not None}, "level": offered.level}


def _name_request(asker: Mapping[str, Any], number: int) -> dict[str, Any]:
    """The same asker; a request id of its own for each search, so that a retry finds it again."""
    request = asker.get("request")
    return {**asker, **({} if request is None else {"request": f"{request}-bounds-{number}"})}
