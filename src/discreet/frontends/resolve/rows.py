"""Turns terms over one row into expressions: names become columns, functions become calls, aggregates are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, assert_never

from discreet.errors import UsageError
from discreet.frontends.resolve.calls import make
from discreet.frontends.terms.positions import Place, refusal
from discreet.frontends.terms.syntax import (
    AggregateTerm,
    Constant,
    FeatureTerm,
    FunctionTerm,
    GroupingTerm,
    MembershipTerm,
    NameTerm,
    Ordinal,
    Star,
    Term,
    WindowTerm,
)
from discreet.plan.expressions import Expression
from discreet.plan.functions import make_literal
from discreet.plan.relations import WINDOW_FEATURES

ColumnFinder: TypeAlias = Callable[[NameTerm], Expression]
# Resolves a term that is neither a name, a constant nor a function: an aggregate, or a window inside a subquery.
SpecialResolver: TypeAlias = Callable[[Term], Expression]


def resolve_row(term: Term, find: ColumnFinder, clause: str, special: SpecialResolver | None = None) -> Expression:
    """The expression of a term. ``special`` resolves what is neither a name, a constant nor a function."""
    match term:
        case NameTerm():
            return find(term)
        case Constant():
            return make_literal(term.value)
        case FunctionTerm():
            return make_call(term, tuple(resolve_row(argument, find, clause, special) for argument in term.arguments))
        case Ordinal() | AggregateTerm() | FeatureTerm() | WindowTerm() | GroupingTerm() | MembershipTerm() | Star():
            if special is not None:
                return special(term)
            raise explain_misplaced(term, clause)
        case _:
            assert_never(term)


def make_call(term: FunctionTerm, arguments: tuple[Expression, ...]) -> Expression:
    """A function of resolved arguments. The places of the term are for refusals."""
    return make(term.function, arguments, term.place, tuple(argument.place for argument in term.arguments))


def explain_misplaced(term: Term, clause: str) -> UsageError:
    """The refusal of a term that cannot stand in a clause."""
    match term:
        case Ordinal():
            rule = f"A number in {clause} stands for an output only by itself."
            return refusal(term.place, rule, "Name a column.")
        case MembershipTerm():
            rule = "IN (SELECT ...) and EXISTS stand in WHERE, by themselves or joined by AND, OR and NOT."
            return refusal(term.place, rule, "Write it as a condition of its own: WHERE a OR x IN (SELECT ...).")
        case WindowTerm():
            rule = f"A window function cannot stand in {clause}."
            return refusal(term.place, rule, "Compute it in a subquery, and use its column here.")
        case GroupingTerm():
            rule = f"GROUPING tells the groupings of an answer apart, and cannot stand in {clause}."
            return refusal(term.place, rule, "Write it in SELECT, HAVING or ORDER BY of the outermost SELECT.")
        case Star():
            return refusal(term.place, "* stands for columns in SELECT only.", "Name the columns.")
        case NameTerm() | Constant() | FunctionTerm() | AggregateTerm() | FeatureTerm():
            return _explain_aggregate(term, clause)
        case _:
            assert_never(term)


def _explain_aggregate(term: Term, clause: str) -> UsageError:
    place: Place | None = term.place
    if isinstance(term, FeatureTerm) and term.feature in WINDOW_FEATURES:
        rule = f"{term.feature.upper()} needs OVER (PARTITION BY ... ORDER BY ...)."
        return refusal(place, rule, "Add OVER with the unit in PARTITION BY.")
    if clause == "WHERE":
        fix = "WHERE chooses rows before anything is measured; put the condition into HAVING."
        return refusal(place, "WHERE cannot contain an aggregate.", fix)
    if clause == "GROUP BY":
        return refusal(place, "A key cannot contain an aggregate.", "Group by columns or expressions of them.")
    if clause == "ON":
        return refusal(place, "ON cannot contain an aggregate.", "Compute it in a subquery, and join that.")
    rule = "An aggregate cannot stand inside an aggregate."
    return refusal(place, rule, "Measure each on its own, and combine them outside: SUM(x) / COUNT(*).")


def is_aggregate(term: Term) -> bool:
    """Whether a term is an aggregate, and not a function that needs a window."""
    return isinstance(term, AggregateTerm) or (isinstance(term, FeatureTerm) and term.feature not in WINDOW_FEATURES)
