"""Reads questions in the GoogleSQL form, which BigQuery users write.

    SELECT WITH DIFFERENTIAL_PRIVACY
      OPTIONS(epsilon=1, delta=1e-6, max_groups_contributed=3, privacy_unit_column=patient_id)
      ward, COUNT(*, contribution_bounds_per_group => (0, 5)) AS n
    FROM visits GROUP BY ward

The contribution bounds are removed from the words before these are parsed, and each clause is replaced by a mark, so
that its SELECT is found again in the tree. All other words keep their places. The options become part of the question
(limits, the least number of units) or of the offer (epsilon, delta). The analyst wrote all of it, so it is public.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from discreet.bounding.facts import facts_of
from discreet.bounding.stability import find_relation_facts
from discreet.errors import QuestionError
from discreet.frontends.google.clause_options import Option, read_options
from discreet.frontends.google.contribution_bounds import ContributionBounds, apply_bounds, cut_bounds
from discreet.frontends.google.functions import FUNCTIONS
from discreet.frontends.resolve.resolver import resolve
from discreet.frontends.sql import parsing
from discreet.frontends.sql.expression_forms import FORMS
from discreet.frontends.sql.places import Places
from discreet.frontends.sql.query_parameters import bind_parameters
from discreet.frontends.sql.reader import Form
from discreet.frontends.sql.select_clauses import SelectReader
from discreet.frontends.sql.with_clause import WithQuery
from discreet.frontends.terms.positions import refusal
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import Catalog, ContributionLimits
from discreet.plan.expressions import Column
from discreet.plan.nodes import Question
from discreet.plan.relations import Values

if TYPE_CHECKING:
    from sqlglot.expressions import Expr
    from sqlglot.tokenizer_core import Token

CLAUSE = "DIFFERENTIAL_PRIVACY"
OLD_CLAUSE = "ANONYMIZATION"
STRATEGIES = ("LAPLACE_THRESHOLD", "PUBLIC_GROUPS")
# How marks of SELECTs begin. It has a character that no text may have, so nobody can write one.
_MARK = "released\0"


@dataclass(frozen=True, slots=True)
class QuestionAndOffer:
    """A question, and the offer that its text states. In plain SQL the offer is empty."""

    question: Question
    offer: Mapping[str, Any]


def mentions_clause(text: object) -> bool:
    """Whether a text is in this form: it has the clause somewhere."""
    return isinstance(text, str) and any(word in text.upper() for word in (CLAUSE, OLD_CLAUSE)) and _has_clause(text)


def _has_clause(text: str) -> bool:
    """Whether the words of a text contain the clause. A comment or a constant does not count."""
    try:
        tokens = parsing.split_words(text, google=True)
    except QuestionError:
        return False  # the reader of plain SQL will refuse the text
    return any(_is_clause(tokens, at) for at in range(len(tokens)))


def _is_clause(tokens: list[Token], at: int) -> bool:
    words = [parsing.bare_word_of(token) for token in tokens[at : at + 3]]
    return words[:2] == ["SELECT", "WITH"] and words[2:] in ([CLAUSE], [OLD_CLAUSE])


@dataclass(frozen=True, slots=True)
class ReleasedSelects:
    """A statement in this form: its tree, the options of every SELECT with the clause, and the bounds in aggregates.

    ``options`` are found by the mark that stands as the first output of such a SELECT (``take_mark``).
    """

    text: str
    tree: Expr
    places: Places
    options: Mapping[str, Mapping[str, Option]]
    bounds: Mapping[int, ContributionBounds]
    forms: Mapping[str, Form]
    used: set[int]

    def take_mark(self, node: Expr) -> str | None:
        """The mark of a SELECT that has the clause, which is taken away from its outputs; None for any other node."""
        outputs = node.expressions if type(node).__name__ == "Select" else []
        mark = str(outputs[0].name) if outputs and type(outputs[0]).__name__ == "Column" else ""
        if mark not in self.options:
            return None
        node.set("expressions", outputs[1:])
        return mark

    def is_marked(self, node: Expr) -> bool:
        """Whether a node is a SELECT that has the clause."""
        outputs = node.expressions if type(node).__name__ == "Select" else []
        return bool(outputs) and type(outputs[0]).__name__ == "Column" and outputs[0].name in self.options

    def read_select(
        self,
        node: Expr,
        mark: str,
        names: Mapping[str, WithQuery],
        catalog: Catalog,
        public: Mapping[str, Values] | None,
    ) -> QuestionAndOffer:
        """The question that a SELECT with the clause asks, and the epsilon and delta that it offers."""
        draft = SelectReader(self.places, self.forms, names).read(node)
        return _apply_options(resolve(draft, catalog, public), self.options[mark], catalog)

    def check_bounds(self) -> None:
        """Refuse bounds that no aggregate has heeded."""
        for start, bound in self.bounds.items():
            if start not in self.used:
                rule = "Contribution bounds belong to aggregates that `discreet help sql` lists with them."
                raise refusal(bound.place, rule, "Leave them out here.")


def parse(text: str, parameters: Mapping[str, Any] | None = None) -> ReleasedSelects:
    """The tree of a statement whose words have the clause at least once."""
    tokens = parsing.split_words(text, google=True)
    if parameters is not None:
        tokens = bind_parameters(tokens, Places(text, tokens), parameters)
    kept, bounds = cut_bounds(tokens, Places(text, tokens), lambda at: _is_clause(tokens, at))
    rest, options = _cut_clauses(kept, Places(text, kept))
    used: set[int] = set()
    forms = {**FORMS, **FUNCTIONS}
    forms |= {name: apply_bounds(form, bounds, used) for name, form in forms.items()}
    parsed = parsing.parse(text, rest, google=True)
    return ReleasedSelects(text, parsed.tree, parsed.places, options, bounds, forms, used)


def _cut_clauses(tokens: list[Token], places: Places) -> tuple[list[Token], dict[str, Mapping[str, Option]]]:
    """The words with a mark in place of each clause, and the options by mark."""
    from sqlglot.tokenizer_core import Token, TokenType

    kept: list[Token] = []
    options: dict[str, Mapping[str, Option]] = {}
    at = 0
    while at < len(tokens):
        token = tokens[at]
        kept.append(token)
        at += 1
        if not _is_clause(tokens, at - 1):
            continue
        word = places.of_token(tokens[at + 1])
        if tokens[at + 1].text.upper() == OLD_CLAUSE:
            fix = f"Write WITH {CLAUSE}, and SUM(x, contribution_bounds_per_group => (0, 100)) for ANON_SUM."
            raise refusal(word, "WITH ANONYMIZATION is the old name of this clause.", fix)
        found, at = read_options(tokens, at + 2, places)
        if at < len(tokens) and parsing.bare_word_of(tokens[at]) in {"DISTINCT", "ALL"}:
            kept.append(tokens[at])
            at += 1
        mark = f"{_MARK}{len(options)}"
        options[mark] = found
        here = (token.line, token.col, token.start, token.end)
        kept += [Token(TokenType.VAR, mark, *here), Token(TokenType.COMMA, ",", *here)]
    return kept, options


# What the options mean


def _apply_options(question: Question, options: Mapping[str, Option], catalog: Catalog) -> QuestionAndOffer:
    offer = {name: options[name].read_loss() for name in ("epsilon", "delta") if name in options}
    if "privacy_unit_column" in options:
        _check_unit(question, options["privacy_unit_column"], catalog)
    if "group_selection_strategy" in options:
        _check_strategy(question, options["group_selection_strategy"], catalog)
    least = options.get("min_privacy_units_per_group")
    min_units = None if least is None else least.read_limit()
    return QuestionAndOffer(replace(question, limits=_read_limits(options), min_units=min_units), offer)


def _read_limits(options: Mapping[str, Option]) -> ContributionLimits | None:
    """The limits of the question. NULL sets none, so that those of the codebook hold; it never lifts them."""
    groups, rows = (
        None if option is None else option.read_limit()
        for option in (options.get("max_groups_contributed"), options.get("max_rows_contributed"))
    )
    if groups is not None and rows is not None:
        rule = "max_groups_contributed and max_rows_contributed cannot both be set."
        raise refusal(options["max_rows_contributed"].place, rule, "Keep one of them.")
    if rows is not None:
        return ContributionLimits(max_rows=rows)
    return None if groups is None else ContributionLimits(max_groups=groups)


def _check_unit(question: Question, option: Option, catalog: Catalog) -> None:
    """Refuse another unit than the one that the codebook declares. The option may only repeat it."""
    units = find_relation_facts(question.source, catalog).units
    names = {unit.name.lower() for unit in units if isinstance(unit, Column)}
    declared = catalog.unit.column if units else None
    if option.read_path()[-1].lower() not in {*names, *([declared.lower()] if declared else [])}:
        rule = "privacy_unit_column must be the unit that the codebook declares."
        fix = f"Write privacy_unit_column={declared}." if declared else "Each row is a unit here; leave it out."
        raise refusal(option.place, rule, fix)


def _check_strategy(question: Question, option: Option, catalog: Catalog) -> None:
    """Refuse PUBLIC_GROUPS where a key is not public. Groups from data are chosen by our own rule in any case."""
    word = option.read_path()[-1].upper()
    if word not in STRATEGIES:
        rule = "This way to choose groups is not known."
        raise refusal(option.place, rule, f"Known: {', '.join(STRATEGIES)}. Or leave it out.")
    source = find_relation_facts(question.source, catalog)
    private = [str(key) for key in question.keys if facts_of(key, source).keys is None]
    if word == "PUBLIC_GROUPS" and private:
        rule = f"The groups of {private[0]} are not public."
        fix = f"Declare keys for {private[0]} in the codebook, or use LAPLACE_THRESHOLD."
        raise refusal(option.place, rule, fix)
