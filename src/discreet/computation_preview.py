"""Prices of computations over released answers: what their questions cost together, and how wrong each would be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from discreet.accounting import cost_words
from discreet.answer_rows import list_columns
from discreet.errors import ParameterError
from discreet.frontends.outer.computation import OuterColumn, ReleasedComputation
from discreet.html_tables import make_facts
from discreet.late_dataclass import dataclass
from discreet.noise_intervals import find_measured
from discreet.offer import Offer
from discreet.plan.types import Type
from discreet.preview import FREE, ColumnPreview, Preview, describe_cost, format_columns, make_html
from discreet.privacy import Budget, Loss
from discreet.quote import Quote, QuoteContext, quote, quote_batch, quote_each
from discreet.release import Plan
from discreet.stated_offer import StatedOffer


def quote_computation(computation: ReleasedComputation, stated: StatedOffer, context: QuoteContext) -> Quote:
    """The questions of a computation: each at the ε that its text states, or all at one offer."""
    asked = computation.questions
    if len(asked) == 1:
        return quote(asked[0].question, stated.make_offer(asked[0]), context)
    if not any(each.offer for each in asked):
        offer = Offer(**stated.given, level=stated.level, ends=stated.ends)
        return quote_batch([each.question for each in asked], offer, context, weights=None, fixed=False)
    if not all("epsilon" in each.offer for each in asked):
        rule = "is stated in some of the SELECTs and not in all"
        raise ParameterError("epsilon", rule, "State epsilon in each, or in none. Nothing was charged.")
    return quote_each([(each.question, stated.make_offer(each)) for each in asked], context)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputationPreview(Preview):
    """A preview of the questions of a computation. ``plan`` is that of the first; ``whole`` is what all cost.

    ``outputs`` are the columns of the answer. Those that show a released number as it is have the ends of its interval.
    """

    each: tuple[Preview, ...]
    whole: Loss | None
    sql: str
    outputs: tuple[tuple[OuterColumn, Type], ...]

    @property
    def loss(self) -> Loss:
        """What all questions cost together."""
        return self.plan.loss if self.whole is None else self.whole

    @property
    def cost(self) -> str:
        """The cost in words."""
        return (
            "nothing: only public tables are read"
            if self.whole is None
            else cost_words.describe_cost(self.budget, self.whole)
        )

    @property
    def columns(self) -> tuple[ColumnPreview, ...]:
        """Every column of every question that is not a key."""
        return tuple(column for preview in self.each for column in preview.columns)

    def _list_columns(self) -> list[tuple[str, Type]]:
        released = [find_measured(preview.plan) for preview in self.each]
        measured = [any(released[i][place] for i, place in column.origins) for column, _ in self.outputs]
        return list_columns([column.name for column, _ in self.outputs], [kind for _, kind in self.outputs], measured)

    def to_dict(self) -> dict[str, Any]:
        """The preview as plain JSON values."""
        return {
            "cost": self.cost,
            "loss": None if self.whole is None else self.budget.loss_to_dict(self.whole),
            "fits": self.fits,
            "nearest": self.nearest,
            "already_answered": self.answered,
            "remaining": self.remaining,
            "questions": [preview.to_dict() for preview in self.each],
            "computed": self.sql,
            "schema": {name: str(kind) for name, kind in self._list_columns()},
        }

    def __str__(self) -> str:
        parts = [f"released{i}\n{format_columns(preview)}" for i, preview in enumerate(self.each)]
        last = [f"{title:<8}  {words}" for title, words in self._list_facts()]
        return "\n\n".join([*parts, "\n".join([*last, FREE])])

    def _list_facts(self) -> list[tuple[str, str]]:
        """What is computed from the answers, which columns come, what it costs, and what is left."""
        columns = ", ".join(f"{name} ({kind})" for name, kind in self._list_columns())
        facts = [("computed", self.sql), ("columns", columns), ("cost", describe_cost(self)), ("left", self.remaining)]
        return [(title, words) for title, words in facts if words]

    # Without this line the dataclass would make a repr of its own.
    __repr__ = __str__

    def _repr_html_(self) -> str:
        parts = [f"<p><b>released{i}</b></p>{make_html(preview)}" for i, preview in enumerate(self.each)]
        return f"<div>{''.join(parts)}{make_facts([*self._list_facts(), ('charged', FREE)])}</div>"


def preview_quote(
    computation: ReleasedComputation, outputs: Sequence[tuple[OuterColumn, Type]], quoted: Quote, **terms: Any
) -> ComputationPreview:
    """The preview of a computation whose questions were quoted; ``terms`` are what all of their previews share."""
    each = tuple(Preview(plan=plan, **terms) for plan in quoted.plans)
    shown = tuple(outputs)
    return ComputationPreview(
        plan=quoted.plans[0], each=each, whole=quoted.loss, sql=computation.sql, outputs=shown, **terms
    )


def preview_exactly(
    computation: ReleasedComputation, outputs: Sequence[tuple[OuterColumn, Type]], *, budget: Budget, remaining: str
) -> ComputationPreview:
    """The preview of a computation that reads public tables alone."""
    terms: dict[str, Any] = {"budget": budget, "fits": True, "remaining": remaining}
    return ComputationPreview(plan=Plan(()), each=(), whole=None, sql=computation.sql, outputs=tuple(outputs), **terms)
