"""Reads a text in SQL or in the GoogleSQL form: one SELECT from declared tables, or a computation with released ones.

The text of the analyst is never run. It is parsed, every clause and every expression is recognised by name or refused
with its place, and a plan is made of our own nodes. ``sql.parsing`` states the limits of a text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.frontends.google import privacy_clause
from discreet.frontends.google.privacy_clause import QuestionAndOffer, ReleasedSelects
from discreet.frontends.outer.computation import ReleasedComputation
from discreet.frontends.outer.outer_reader import read_computation, reads_public_only
from discreet.frontends.outer.public_scalars import PublicComputer, compute_scalars
from discreet.frontends.resolve.resolver import resolve
from discreet.frontends.sql import parsing
from discreet.frontends.sql.expression_forms import FORMS
from discreet.frontends.sql.parsing import MAX_CHARACTERS, MAX_NESTING
from discreet.frontends.sql.places import Places
from discreet.frontends.sql.query_parameters import bind_parameters
from discreet.frontends.sql.select_clauses import SelectReader
from discreet.frontends.terms.positions import Place, refusal
from discreet.frontends.terms.syntax import Draft
from discreet.plan.catalog import Catalog
from discreet.plan.nodes import Question
from discreet.plan.relations import Values

__all__ = [
    "MAX_CHARACTERS",
    "MAX_NESTING",
    "QuestionAndOffer",
    "ReleasedComputation",
    "read",
    "read_draft",
    "read_statement",
    "read_with_offer",
]


def read(text: str, catalog: Catalog, public: Mapping[str, Values] | None = None) -> Question:
    """The question that a text asks. A ``QuestionError`` shows the place and the reason of a refusal.

    ``public`` are rows that the question brings, by the names under which it uses them as tables.
    """
    return read_with_offer(text, catalog, public).question


def read_with_offer(
    text: str,
    catalog: Catalog,
    public: Mapping[str, Values] | None = None,
    compute: PublicComputer | None = None,
) -> QuestionAndOffer:
    """The question that a text asks, in plain SQL or in the GoogleSQL form. A computation is refused."""
    found = read_statement(text, catalog, public, compute)
    if isinstance(found, QuestionAndOffer):
        return found
    if found.questions:
        raise refusal(None, "This computes with released answers, and is no single question.", "Ask it by itself.")
    raise refusal(None, "This reads public tables only.", "Ask it by itself: it is answered exactly, and free.")


def read_statement(
    text: str,
    catalog: Catalog,
    public: Mapping[str, Values] | None = None,
    compute: PublicComputer | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> QuestionAndOffer | ReleasedComputation:
    """What a text asks: one question, or a computation over released answers and public tables.

    ``compute`` computes subqueries over public tables that stand for a value; without it, they are refused.
    ``parameters`` are the values of @name in the text.
    """
    try:
        if privacy_clause.mentions_clause(text):
            selects = privacy_clause.parse(text, parameters)
            if compute is not None:
                compute_scalars(selects, catalog, public or {}, compute)
            return _read_google(selects, catalog, public or {})
        tokens = parsing.split_words(text)
        if parameters is not None:
            tokens = bind_parameters(tokens, Places(text, tokens), parameters)
        parsed = parsing.parse(text, tokens)
        plain = ReleasedSelects(text, parsed.tree, parsed.places, {}, {}, FORMS, set())
        if reads_public_only(parsed.tree, catalog, public or {}):
            return read_computation(plain, catalog, public or {})
        if compute is not None:
            compute_scalars(plain, catalog, public or {}, compute)
        return QuestionAndOffer(resolve(_read_draft(parsed), catalog, public), {})
    except RecursionError:
        raise parsing.explain_too_deep(Place(text, 0, 0)) from None


def _read_google(
    selects: ReleasedSelects, catalog: Catalog, public: Mapping[str, Values]
) -> QuestionAndOffer | ReleasedComputation:
    root = parsing.unwrap(selects.tree)
    marked = [node for node in root.walk() if selects.is_marked(node)]
    if len(marked) > 1 or marked[0] is not root:
        return read_computation(selects, catalog, public)
    mark = selects.take_mark(root)
    asked = selects.read_select(root, mark or "", {}, catalog, public)
    selects.check_bounds()
    return asked


def read_draft(text: str) -> Draft:
    """The question in terms, before any name is looked up."""
    return _read_draft(parsing.parse(text, parsing.split_words(text)))


def _read_draft(parsed: parsing.ParsedStatement) -> Draft:
    root = parsing.unwrap(parsed.tree)
    if type(root).__name__ == "Subquery":
        rule = "ORDER BY and LIMIT stand inside of the parentheses here."
        raise refusal(parsed.places.find_first_word(), rule, "Leave the parentheses around the SELECT out.")
    return SelectReader(parsed.places, FORMS).read(root)
