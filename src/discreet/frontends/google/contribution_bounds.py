"""Contribution bounds in aggregates of the GoogleSQL form: SUM(x, contribution_bounds_per_group => (0, 100)).

Bounds per group limit what one unit adds to a sum or a count. For averages, variances and quantiles every row is moved
into the bounds instead, which is also what bounds per row mean.

``report_format => 'JSON'`` is accepted beside them and changes nothing: what such a report says of a number stands in
every answer, as its interval, and in its receipt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, assert_never

from discreet.frontends.google.clause_options import find_closing, split_at_commas
from discreet.frontends.google.constant_numbers import read_exact_number
from discreet.frontends.sql.parsing import bare_word_of
from discreet.frontends.sql.places import Places
from discreet.frontends.sql.reader import ExpressionReader, Form
from discreet.frontends.terms.positions import Place, refusal
from discreet.frontends.terms.syntax import AggregateTerm, Constant, Term, apply
from discreet.late_dataclass import dataclass
from discreet.plan.statistics.definitions import GroupBounds, PairStatistic
from discreet.plan.statistics.table import STATISTICS

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Node
    from sqlglot.tokenizer_core import Token

PER_GROUP, PER_ROW = "contribution_bounds_per_group", "contribution_bounds_per_row"
# What an aggregate reports beside its number. Every answer has that report: its interval, and its receipt.
REPORT, REPORT_FORMATS = "report_format", ("JSON", "PROTO")
USAGE = "Write for example SUM(x, contribution_bounds_per_group => (0, 100))."


@dataclass(frozen=True, slots=True)
class ContributionBounds:
    """What was said in one call."""

    name: str
    low: Fraction
    high: Fraction
    place: Place


@dataclass(slots=True)
class _Parenthesis:
    """An open parenthesis: the word before it, and whether a SELECT inside it is released (None without a SELECT)."""

    call: Token | None = None
    released: bool | None = None


def cut_bounds(
    tokens: list[Token], places: Places, is_released: Callable[[int], bool]
) -> tuple[list[Token], dict[int, ContributionBounds]]:
    """The words without the named arguments of aggregates, and the bounds by where the call that had them begins.

    ``is_released`` tells of the position of a SELECT whether it has the clause.
    """
    kept: list[Token] = []
    found: dict[int, ContributionBounds] = {}
    open_ones = [_Parenthesis()]
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if bare_word_of(token) == "(":
            open_ones.append(_Parenthesis(tokens[at - 1] if at else None))
        elif bare_word_of(token) == ")" and len(open_ones) > 1:
            open_ones.pop()
        elif bare_word_of(token) == "SELECT":
            open_ones[-1].released = is_released(at)
        if at + 1 < len(tokens) and bare_word_of(tokens[at + 1]) == "=>":
            at = _read_argument(tokens, at, open_ones, places, found)
            if not kept or bare_word_of(kept.pop()) != ",":
                raise refusal(places.of_token(token), "Bounds follow what is aggregated, after a comma.", USAGE)
            continue
        kept.append(token)
        at += 1
    return kept, found


def _read_argument(
    tokens: list[Token],
    at: int,
    open_ones: list[_Parenthesis],
    places: Places,
    found: dict[int, ContributionBounds],
) -> int:
    """Reads one named argument; the position after it."""
    name, place = tokens[at].text.lower(), places.of_token(tokens[at])
    if name not in {PER_GROUP, PER_ROW, REPORT}:
        raise refusal(place, f"There is no argument {name!r} here.", f"Known: {PER_GROUP}, {PER_ROW} and {REPORT}.")
    call = open_ones[-1].call
    released = next((each.released for each in reversed(open_ones) if each.released is not None), False)
    if call is None or open_ones[-1].released is not None or not released:
        raise refusal(place, "Bounds belong to an aggregate of SELECT WITH DIFFERENTIAL_PRIVACY.", USAGE)
    if name == REPORT:
        return _read_report(tokens, at, places)
    end = find_closing(tokens, at + 2) if at + 2 < len(tokens) and bare_word_of(tokens[at + 2]) == "(" else None
    if end is None:
        raise refusal(place, "Bounds are two numbers in parentheses.", USAGE)
    place = place.extend_to(places.of_token(tokens[end]))
    parts = split_at_commas(tokens[at + 3 : end])
    if len(parts) != 2:
        raise refusal(place, "Bounds are two numbers in parentheses.", USAGE)
    low, high = (read_exact_number(part, place, "Bounds are constants: two numbers.", USAGE) for part in parts)
    if low > high:
        raise refusal(place, "The lower bound is above the upper one.", USAGE)
    if call.start in found:
        raise refusal(place, "This aggregate has bounds already.", "Keep one of them.")
    found[call.start] = ContributionBounds(name, low, high, place)
    return end + 1


def _read_report(tokens: list[Token], at: int, places: Places) -> int:
    """Reads report_format => 'JSON', which asks for nothing that an answer does not have; the position after it."""
    said = tokens[at + 2] if at + 2 < len(tokens) else None
    known = said is not None and said.token_type.name == "STRING" and said.text.upper() in REPORT_FORMATS
    ends = at + 3 < len(tokens) and bare_word_of(tokens[at + 3]) in {",", ")"}
    if not known or not ends:
        fix = "Write report_format => 'JSON', or leave it out: the report of an answer is its interval and its receipt."
        raise refusal(places.of_token(tokens[at]), "report_format is 'JSON' or 'PROTO'.", fix)
    return at + 3


def apply_bounds(form: Form, bounds: Mapping[int, ContributionBounds], used: set[int]) -> Form:
    """A form that heeds the bounds of its call; ``used`` collects where they were heeded."""

    def read(reader: ExpressionReader, node: Node) -> Term:
        term = form.read(reader, node)
        said = bounds.get(term.place.start) if isinstance(term, AggregateTerm) and term.place is not None else None
        if said is None or not isinstance(term, AggregateTerm) or term.place is None or term.place.start in used:
            return term
        used.add(term.place.start)
        return _bound_aggregate(term, said)

    return Form(read, form.parts)


def _bound_aggregate(measure: AggregateTerm, said: ContributionBounds) -> AggregateTerm:
    match _find_meaning(measure, said):
        case GroupBounds.UNIT:
            return replace(measure, bounds=(said.low, said.high))
        case GroupBounds.ROWS if measure.argument is not None:
            ends = (Constant(_to_number(end), said.place) for end in (said.low, said.high))
            return replace(measure, argument=apply("clamp", measure.argument, *ends, place=measure.place))
        case GroupBounds.ROWS | GroupBounds.REFUSED:
            rule = f"{said.name} is not available in this aggregate."
            other = PER_ROW if said.name == PER_GROUP else PER_GROUP
            raise refusal(said.place, rule, f"Leave it out, or use {other} where it fits.")
        case never:
            assert_never(never)


def _find_meaning(measure: AggregateTerm, said: ContributionBounds) -> GroupBounds:
    """What bounds mean in an aggregate: those for a row move rows, wherever a statistic needs bounds at all."""
    if isinstance(measure.statistic, PairStatistic) or (measure.distinct and said.name == PER_GROUP):
        return GroupBounds.REFUSED  # distinct values are nobody's, so nobody's sum of them is bounded
    definition = STATISTICS[measure.statistic]
    if said.name == PER_GROUP:
        return definition.group_bounds
    return GroupBounds.ROWS if definition.needs_bounds else GroupBounds.REFUSED


def _to_number(value: Fraction) -> int | float:
    return value.numerator if value.denominator == 1 and abs(value) < 2**63 else float(value)
