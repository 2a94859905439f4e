"""Walks the parser's tree by a table of forms, and refuses what the table does not hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from discreet.frontends.sql import refusals
from discreet.frontends.sql.places import Places
from discreet.frontends.terms.positions import Place, refusal
from discreet.frontends.terms.syntax import FunctionTerm, QueryTerm, Term, apply

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Node


class Form(NamedTuple):
    """How a node is read, and the parts of it that may be there."""

    read: Callable[[ExpressionReader, Node], Term]
    parts: tuple[str, ...]


class ExpressionReader:
    """Reads the expressions of one SELECT. ``query`` reads a SELECT inside them, ``windows`` are those with names."""

    def __init__(
        self, places: Places, forms: Mapping[str, Form], query: Callable[[Node], QueryTerm] | None = None
    ) -> None:
        self.places = places
        self.forms = forms
        self.query = query or self.refuse
        self.windows: dict[str, Node] = {}

    def read(self, node: Node) -> Term:
        """The term that a node means."""
        form = self.forms.get(type(node).__name__)
        if form is None:
            self.refuse(node)
        self.check_parts(node, *form.parts)
        return form.read(self, node)

    def apply(self, function: str, node: Node, *arguments: Term) -> FunctionTerm:
        """A function of terms that stands where a node stands."""
        return apply(function, *arguments, place=self.place_of(node))

    def check_parts(self, node: Node, *parts: str) -> None:
        """Refuses a node that has more than these parts."""
        more = [part for part, value in node.args.items() if value and part not in parts]
        if more:
            reason = refusals.PARTS.get((type(node).__name__, more[0]))
            if reason is not None:
                raise refusal(self.places.of(node, reason.word), reason.rule, reason.fix)
            what = more[0].strip("_").replace("_", " ").upper()
            rule = f"This form of {name_of(node)} is not available (it has {what})."
            raise refusal(self.place_of(node), rule, "Write the plain form.")

    def refuse(self, node: Node) -> NoReturn:
        """Says why a node is not available."""
        reason = refusals.NODES.get(type(node).__name__)
        if type(node).__name__ == "IgnoreNulls":  # the parser wraps ANY_VALUE and its like in it
            reason = refusals.NODES.get(type(node.this).__name__, reason)
        if reason is None:
            rule = f"{name_of(node)} is not available in a question."
            raise refusal(self.place_of(node), rule, "docs/sql.md lists everything that is.")
        raise refusal(self.places.of(node, reason.word), reason.rule, reason.fix)

    def place_of(self, node: Node) -> Place:
        """Where a node stands."""
        return self.places.of(node)


def name_of(node: Node) -> str:
    """What people call a node: the function's name, or the kind of the node."""
    names = getattr(type(node), "_sql_names", None)
    return str(names[0]) if names else type(node).__name__.upper()


# Shapes that many nodes share

OPERANDS = ("this", "expression")


def make_form(function: str, *parts: str, beside: tuple[str, ...] = ()) -> Form:
    """A function of the node's parts in this order. Parts ``beside`` them mean nothing to us."""

    def read(reader: ExpressionReader, node: Node) -> Term:
        arguments: list[Term] = []
        for part in parts:
            value = node.args.get(part)
            nodes = value if isinstance(value, list) else [] if value is None else [value]
            arguments += [reader.read(inner) for inner in nodes]
        return reader.apply(function, node, *arguments)

    return Form(read, (*parts, *beside))


def make_binary(function: str, *beside: str) -> Form:
    """A function of two operands."""
    return make_form(function, "this", "expression", beside=beside)


def make_unary(function: str) -> Form:
    """A function of one argument."""
    return make_form(function, "this")


def make_variadic(function: str, *beside: str) -> Form:
    """A function of one or more arguments."""
    return make_form(function, "this", "expressions", beside=beside)
