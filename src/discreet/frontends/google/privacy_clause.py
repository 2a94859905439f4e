"""Reads questions in the GoogleSQL form, which BigQuery users write.

    SELECT WITH DIFFERENTIAL_PRIVACY
      OPTIONS(epsilon=1, delta=1e-6, max_groups_contributed=3, privacy_unit_column=patient_id)
      ward, COUNT(*, contribution_bounds_per_group => (0, 5)) AS n
    FROM visits GROUP BY ward

The clause and the contribution bounds are removed from the words before these are parsed. All other words keep their
places. The options become part of the question (limits, the least number of units) or of the offer (epsilon, delta).
The analyst wrote all of it, so it is public.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

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
from discreet.frontends.sql.select_clauses import SelectReader
from discreet.frontends.terms.positions import Place, refusal
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import Catalog, ContributionLimits
from discreet.plan.expressions import Column
from discreet.plan.nodes import Question
from discreet.plan.relations import Values

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

CLAUSE = "DIFFERENTIAL_PRIVACY"
OLD_CLAUSE = "ANONYMIZATION"
STRATEGIES = ("LAPLACE_THRESHOLD", "PUBLIC_GROUPS")


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


def read(
    text: str, catalog: Catalog, public: Mapping[str, Values] | None = None
) -> tuple[Question, dict[str, Fraction]]:
    """The question, and the epsilon and delta that the text offers for it."""
    tokens = parsing.split_words(text, google=True)
    clause = _cut_clause(tokens, Places(text, tokens))
    rest, bounds = cut_bounds(clause.rest, Places(text, clause.rest))
    used: set[int] = set()
    forms = {**FORMS, **FUNCTIONS}
    forms |= {name: apply_bounds(form, bounds, used) for name, form in forms.items()}
    parsed = parsing.parse(text, rest, google=True)
    try:
        draft = SelectReader(parsed.places, forms).read(parsed.tree)
        _check_all_used(bounds, used)
        question = resolve(draft, catalog, public)
    except RecursionError:
        raise parsing.explain_too_deep(Place(text, 0, 0)) from None
    return _apply_options(question, clause.options, catalog)


def _check_all_used(bounds: Mapping[int, ContributionBounds], used: set[int]) -> None:
    for start, bound in bounds.items():
        if start not in used:
            rule = "Contribution bounds belong to aggregates that docs/sql.md lists with them."
            raise refusal(bound.place, rule, "Leave them out here.")


@dataclass(frozen=True, slots=True)
class _Clause:
    """The options of the clause, and the words of the text without it."""

    options: Mapping[str, Option]
    rest: list[Token]


def _cut_clause(tokens: list[Token], places: Places) -> _Clause:
    """Find the clause at the outermost SELECT and remove it."""
    found = [at for at in range(len(tokens)) if _is_clause(tokens, at)]
    first, depth = found[0], 0
    for token in tokens[:first]:
        depth += (parsing.bare_word_of(token) == "(") - (parsing.bare_word_of(token) == ")")
    word = places.of_token(tokens[first + 2])
    if depth or len(found) > 1:
        place = places.of_token(tokens[found[-1] + 2])
        raise refusal(place, f"WITH {CLAUSE} belongs to the outermost SELECT, once.", "Leave it out of subqueries.")
    if tokens[first + 2].text.upper() == OLD_CLAUSE:
        fix = f"Write WITH {CLAUSE}, and SUM(x, contribution_bounds_per_group => (0, 100)) for ANON_SUM."
        raise refusal(word, "WITH ANONYMIZATION is the old name of this clause.", fix)
    found_options, after = read_options(tokens, first + 3, places)
    return _Clause(found_options, [*tokens[: first + 1], *tokens[after:]])


# What the options mean


def _apply_options(
    question: Question, options: Mapping[str, Option], catalog: Catalog
) -> tuple[Question, dict[str, Fraction]]:
    offer = {name: options[name].read_loss() for name in ("epsilon", "delta") if name in options}
    if "privacy_unit_column" in options:
        _check_unit(question, options["privacy_unit_column"], catalog)
    if "group_selection_strategy" in options:
        _check_strategy(question, options["group_selection_strategy"], catalog)
    least = options.get("min_privacy_units_per_group")
    return (
        replace(question, limits=_read_limits(options), min_units=None if least is None else least.read_whole()),
        offer,
    )


def _read_limits(options: Mapping[str, Option]) -> ContributionLimits | None:
    groups, rows = options.get("max_groups_contributed"), options.get("max_rows_contributed")
    if groups is not None and rows is not None:
        rule = "max_groups_contributed and max_rows_contributed cannot both be set."
        raise refusal(rows.place, rule, "Keep one of them.")
    if rows is not None:
        return ContributionLimits(max_rows=rows.read_whole())
    return None if groups is None else ContributionLimits(max_groups=groups.read_whole())


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
