"""Reads the parser's tree into terms by a table of forms, and refuses what is not in the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from discreet.frontends.sql import refusals
from discreet.frontends.sql.places import Places
from discreet.frontends.sql.refusals import RefusalReason
from discreet.frontends.terms.positions import Place, name_as_typed, refusal
from discreet.frontends.terms.syntax import FunctionTerm, QueryTerm, Sort, Term, apply

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Node


class Form(NamedTuple):
    """How a node is read, and which parts it may have."""

    read: Callable[[ExpressionReader, Node], Term]
    parts: tuple[str, ...]


class ExpressionReader:
    """Reads the expressions of one SELECT. ``query`` reads a SELECT inside them; ``windows`` are its named windows."""

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
        """A function of terms, at the place of a node."""
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

    def check_clause(
        self, node: Node, parts: tuple[str, ...], reasons: Mapping[str, RefusalReason], rule: str, fix: str
    ) -> None:
        """Refuses a clause that has more than these parts, with the reason of the part, else with ``rule`` and ``fix``.

        ``rule`` may contain ``{word}`` for the name of the part.
        """
        from sqlglot.expressions import Expr

        for part, value in node.args.items():
            if value and part not in parts:
                word = part.strip("_").replace("_", " ").upper()
                reason = reasons.get(part, RefusalReason(rule.format(word=word), fix))
                inner = value[0] if isinstance(value, list) else value
                shown = inner if isinstance(inner, Expr) else node  # a flag, such as WITH TOTALS, has no place
                raise refusal(self.places.of(shown, reason.word), reason.rule, reason.fix)

    def read_sort(self, node: Node, read: Callable[[Node], Term], *, released: bool = False) -> Sort:
        """One criterion of ORDER BY; ``read`` reads its expression. ``released`` rows may have their NULLs first."""
        if type(node).__name__ != "Ordered":
            self.refuse(node)
        if type(node.this).__name__ == "Var" and node.this.name.upper() == "ALL":
            rule = "ORDER BY ALL is not available."
            place = self.places.find_last_word("ALL")
            raise refusal(place, rule, "Name the columns, or their positions: ORDER BY 1, 2.")
        first = bool(node.args.get("nulls_first"))
        if first and not released:
            rule = "NULLS FIRST is not available inside a question: NULLs come last."
            raise refusal(self.places.of(node, "NULLS"), rule, "Leave it out.")
        self.check_parts(node, "this", "desc", "nulls_first")
        return Sort(read(node.this), bool(node.args.get("desc")), first)

    def refuse(self, node: Node) -> NoReturn:
        """Refuses a node, with the reason why it is not available."""
        reason = refusals.NODES.get(type(node).__name__)
        if type(node).__name__ == "IgnoreNulls":  # the parser wraps ANY_VALUE and its like in it
            reason = refusals.NODES.get(type(node.this).__name__, reason)
        if reason is None:
            place = self.place_of(node)
            rule = f"{name_as_typed(place, name_of(node))} is not available in a question."
            raise refusal(place, rule, "`discreet help sql` lists everything that is.")
        raise refusal(self.places.of(node, reason.word), reason.rule, reason.fix)

    def place_of(self, node: Node) -> Place:
        """The place of a node."""
        return self.places.of(node)


def name_of(node: Node) -> str:
    """The name of a node in a refusal: the name of the function, or the class of the node."""
    names = getattr(type(node), "_sql_names", None)
    return str(names[0]) if names else type(node).__name__.upper()


# Forms that many nodes share

OPERANDS = ("this", "expression")


def make_form(function: str, *parts: str, beside: tuple[str, ...] = ()) -> Form:
    """The form of a function of the node's parts, in this order. Parts ``beside`` them are ignored."""

    def read(reader: ExpressionReader, node: Node) -> Term:
        arguments: list[Term] = []
        for part in parts:
            value = node.args.get(part)
            nodes = value if isinstance(value, list) else [] if value is None else [value]
            arguments += [reader.read(inner) for inner in nodes]
        return reader.apply(function, node, *arguments)

    return Form(read, (*parts, *beside))


def make_binary(function: str, *beside: str) -> Form:
    """The form of a function of two operands."""
    return make_form(function, "this", "expression", beside=beside)


def make_unary(function: str) -> Form:
    """The form of a function of one argument."""
    return make_form(function, "this")


def make_variadic(function: str, *beside: str) -> Form:
    """The form of a function of one or more arguments."""
    return make_form(function, "this", "expressions", beside=beside)
