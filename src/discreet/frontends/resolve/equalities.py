"""Finds equalities between expressions of two relations, in ON, in WHERE, and in existing joins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from discreet.bounding.relation_facts import RelationFacts
from discreet.frontends.resolve.rows import resolve_row
from discreet.frontends.resolve.scope import Scope
from discreet.frontends.terms.syntax import Constant, FunctionTerm, JoinTerm, NameTerm, Term, parts_of
from discreet.late_dataclass import dataclass
from discreet.plan.expressions import Call, Expression, find_columns
from discreet.plan.functions import find_common_type, make_call
from discreet.plan.relations import Join, JoinKind, Relation, Where
from discreet.plan.types import Type

ExpressionPair: TypeAlias = tuple[Expression, Expression]


def pair_of(condition: Expression, left: RelationFacts, right: RelationFacts) -> ExpressionPair | None:
    """The two sides of an equality between an expression of the left and one of the right, in one type; else None."""
    if not isinstance(condition, Call) or condition.function != "equal":
        return None
    one, two = condition.arguments
    if reads_only(two, left) and reads_only(one, right):
        one, two = two, one
    if not (reads_only(one, left) and reads_only(two, right)):
        return None
    kind = find_common_type((one.type, two.type))
    return (cast_to(one, kind), cast_to(two, kind)) if kind is not None else None


def reads_only(expression: Expression, side: RelationFacts) -> bool:
    """Whether an expression reads columns, and all of them belong to one side."""
    read = find_columns(expression)
    return bool(read) and read <= side.columns.keys()


def cast_to(expression: Expression, kind: Type) -> Expression:
    """The expression as a real or a timestamp, where it has another type. So no engine has to choose a common type."""
    if expression.type is kind:
        return expression
    return make_call("to_real" if kind is Type.REAL else "to_timestamp", expression)


def split_ands(terms: Sequence[Term]) -> Iterator[Term]:
    """The terms, in which each AND is replaced by its parts."""
    for term in terms:
        if isinstance(term, FunctionTerm) and term.function == "and":
            yield from term.arguments
        else:
            yield term


def is_required(condition: Expression, scope: Scope) -> bool:
    """Whether an inner join of the scope requires the condition already."""
    pending: list[Relation] = [scope.relation]
    while pending:
        node = pending.pop()
        if isinstance(node, Where):
            pending.append(node.source)
        elif isinstance(node, Join):
            if node.kind is JoinKind.INNER and any(condition in _make_equalities(a, b) for a, b in node.on):
                return True
            pending.append(node.left)
            pending += [node.right] if node.kind is JoinKind.INNER else []
    return False


def _make_equalities(one: Expression, two: Expression) -> tuple[Expression, Expression]:
    return make_call("equal", one, two), make_call("equal", two, one)


@dataclass(frozen=True, slots=True)
class WhereEqualities:
    """The conditions of WHERE, whose equalities an inner join may use: FROM a, b WHERE a.x = b.x is a join."""

    terms: tuple[Term, ...] = ()

    def add_conditions(self, term: JoinTerm) -> WhereEqualities:
        """These conditions and those of an inner join, for the joins below it."""
        return WhereEqualities((*self.terms, *split_ands(term.on))) if term.kind is JoinKind.INNER else self

    def find_pairs(self, left: Scope, right: Scope) -> list[ExpressionPair]:
        """The equalities between an expression of the left and one of the right."""
        both = Scope(left.relation, (*left.columns, *right.columns), (*left.sources, *right.sources), left.facts)
        found = []
        for term in self.terms:
            if _is_equality(term) and all(len(both.find_matches(name)) == 1 for name in _names_in(term)):
                condition = resolve_row(term, lambda name: both.find(name).expression, "WHERE")
                pair = pair_of(condition, left.facts, right.facts)
                if pair is not None:
                    found.append(pair)
        return found


def _names_in(term: Term) -> list[NameTerm]:
    return [part for part in parts_of(term) if isinstance(part, NameTerm)]


def _is_equality(term: Term) -> bool:
    """Whether a term is an equality of names, constants and functions only."""
    plain = all(isinstance(part, NameTerm | Constant | FunctionTerm) for part in parts_of(term))
    return isinstance(term, FunctionTerm) and term.function == "equal" and plain
