"""Equalities that tie a row of one side to a row of the other: found in ON, in WHERE, and in joins that are there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from discreet.bounding.stability import Known
from discreet.frontends.rows import row
from discreet.frontends.scope import Scope
from discreet.frontends.terms import Apply, Constant, JoinTerm, Name, Term, parts_of
from discreet.plan.expressions import Call, Expression, columns
from discreet.plan.functions import call, common
from discreet.plan.relations import Filter, Join, JoinKind, Relation
from discreet.plan.types import Type

Pair: TypeAlias = tuple[Expression, Expression]


def pair_of(condition: Expression, left: Known, right: Known) -> Pair | None:
    """The two sides of an equality that ties a row of the left to a row of the right, in one type."""
    if not isinstance(condition, Call) or condition.function != "equal":
        return None
    one, two = condition.arguments
    if reads_only(two, left) and reads_only(one, right):
        one, two = two, one
    if not (reads_only(one, left) and reads_only(two, right)):
        return None
    kind = common((one.type, two.type))
    return (_as(one, kind), _as(two, kind)) if kind is not None else None


def reads_only(expression: Expression, side: Known) -> bool:
    """Whether an expression reads columns of one side, and no others."""
    read = columns(expression)
    return bool(read) and read <= side.columns.keys()


def _as(expression: Expression, kind: Type) -> Expression:
    """The expression in a type that both sides of an equality have, so that no engine has to choose one."""
    if expression.type is kind:
        return expression
    return call("to_real" if kind is Type.REAL else "to_timestamp", expression)


def ands(terms: Sequence[Term]) -> Iterator[Term]:
    """The terms that must all hold."""
    for term in terms:
        if isinstance(term, Apply) and term.function == "and":
            yield from term.arguments
        else:
            yield term


def is_tied(condition: Expression, scope: Scope) -> bool:
    """Whether an inner join of the scope demands the condition already."""
    waiting: list[Relation] = [scope.relation]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Filter):
            waiting.append(node.source)
        elif isinstance(node, Join):
            if node.kind is JoinKind.INNER and any(condition in _equalities(a, b) for a, b in node.on):
                return True
            waiting.append(node.left)
            waiting += [node.right] if node.kind is JoinKind.INNER else []
    return False


def _equalities(one: Expression, two: Expression) -> tuple[Expression, Expression]:
    return call("equal", one, two), call("equal", two, one)


@dataclass(frozen=True, slots=True)
class Pending:
    """Equalities of WHERE that an inner join may take, so that FROM a, b WHERE a.x = b.x is a join."""

    terms: tuple[Term, ...] = ()

    def along(self, term: JoinTerm) -> Pending:
        """These and the conditions of an inner join, for the joins below it."""
        return Pending((*self.terms, *ands(term.on))) if term.kind is JoinKind.INNER else self

    def pairs(self, left: Scope, right: Scope) -> list[Pair]:
        """Those that tie a row of the left to a row of the right."""
        both = Scope(left.relation, (*left.columns, *right.columns), (*left.sources, *right.sources), left.known)
        found = []
        for term in self.terms:
            if _is_equality(term) and all(len(both.matches(name)) == 1 for name in _names_in(term)):
                condition = row(term, lambda name: both.find(name).expression, "WHERE")
                pair = pair_of(condition, left.known, right.known)
                if pair is not None:
                    found.append(pair)
        return found


def _names_in(term: Term) -> list[Name]:
    return [part for part in parts_of(term) if isinstance(part, Name)]


def _is_equality(term: Term) -> bool:
    """Whether a term equates two plain expressions."""
    plain = all(isinstance(part, Name | Constant | Apply) for part in parts_of(term))
    return isinstance(term, Apply) and term.function == "equal" and plain
