"""Reads a question in SQL or in the GoogleSQL form: one SELECT from declared tables.

The text of the analyst is never run. It is parsed, every clause and every expression is recognised by name or refused
with its place, and a plan is made of our own nodes. ``sql.parsing`` states the limits of a text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.frontends.google import privacy_clause
from discreet.frontends.resolve.resolver import resolve
from discreet.frontends.sql import parsing
from discreet.frontends.sql.expression_forms import FORMS
from discreet.frontends.sql.parsing import MAX_CHARACTERS, MAX_NESTING
from discreet.frontends.sql.select_clauses import SelectReader
from discreet.frontends.terms.positions import Place
from discreet.frontends.terms.syntax import Draft
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import Catalog
from discreet.plan.nodes import Question
from discreet.plan.relations import Values

__all__ = ["MAX_CHARACTERS", "MAX_NESTING", "QuestionAndOffer", "read", "read_draft", "read_with_offer"]


def read(text: str, catalog: Catalog, public: Mapping[str, Values] | None = None) -> Question:
    """The question that a text asks. A ``QuestionError`` shows the place and the reason of a refusal.

    ``public`` are rows that the question brings, by the names under which it uses them as tables.
    """
    return read_with_offer(text, catalog, public).question


@dataclass(frozen=True, slots=True)
class QuestionAndOffer:
    """A question, and the offer that its text states. In plain SQL the offer is empty."""

    question: Question
    offer: Mapping[str, Any]


def read_with_offer(text: str, catalog: Catalog, public: Mapping[str, Values] | None = None) -> QuestionAndOffer:
    """The question that a text asks, in plain SQL or in the GoogleSQL form."""
    if privacy_clause.mentions_clause(text):
        return QuestionAndOffer(*privacy_clause.read(text, catalog, public))
    try:
        return QuestionAndOffer(resolve(read_draft(text), catalog, public), {})
    except RecursionError:
        raise parsing.explain_too_deep(Place(text, 0, 0)) from None


def read_draft(text: str) -> Draft:
    """The question in terms, before any name is looked up."""
    parsed = parsing.parse(text, parsing.split_words(text))
    return SelectReader(parsed.places, FORMS).read(parsed.tree)
