"""Reads SQL expressions into terms. ``FORMS`` says for each class of the parser's tree how it is read.

A node that is not in the table is refused. A node is also refused if it has a part that the table does not name (a
collation, a time zone, a hint), because the part would change its meaning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from discreet.frontends.sql import aggregates, functions
from discreet.frontends.sql.arrays import add_list_forms, read_in_unnest
from discreet.frontends.sql.reader import OPERANDS, ExpressionReader, Form, make_binary, make_unary, make_variadic
from discreet.frontends.terms import constants
from discreet.frontends.terms.positions import refusal
from discreet.frontends.terms.syntax import Constant, MembershipTerm, NameTerm, Term

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Node

FALSE = Constant(value=False)

# Values


def _read_column(reader: ExpressionReader, node: Node) -> Term:
    if type(node.this).__name__ == "Star":
        reader.refuse(node.this)
    if type(node.this).__name__ != "Identifier":
        reader.refuse(node)
    qualifier = node.args.get("table")
    return NameTerm(node.this.name, qualifier.name if qualifier is not None else None, reader.place_of(node))


def _read_literal(reader: ExpressionReader, node: Node) -> Term:
    place = reader.place_of(node)
    value = str(node.this)
    return Constant(
        constants.check_text(value, place) if node.args.get("is_string") else constants.read_number(value, place), place
    )


def _read_negative(reader: ExpressionReader, node: Node) -> Term:
    inner = node.this
    if type(inner).__name__ == "Literal" and not inner.args.get("is_string"):
        place = reader.place_of(node)
        return Constant(constants.read_number(str(inner.this), place, negative=True), place)
    return reader.apply("negate", node, reader.read(inner))


def _read_boolean(reader: ExpressionReader, node: Node) -> Term:
    return Constant(bool(node.this), reader.place_of(node))


def _read_null(reader: ExpressionReader, node: Node) -> Term:
    return Constant(None, reader.place_of(node))


def _read_paren(reader: ExpressionReader, node: Node) -> Term:
    return reader.read(node.this)


# Conditions


def _read_chain(reader: ExpressionReader, node: Node) -> Term:
    """AND, OR or || of any number of operands. A long chain does not need deep recursion."""
    function = {"And": "and", "Or": "or", "DPipe": "concat"}[type(node).__name__]
    return reader.apply(function, node, *(reader.read(part) for part in split_chain(node)))


def _make_equality(function: str, meant: str) -> Form:
    """The form of = or <>. With NULL it would never be true, which nobody means."""

    def read(reader: ExpressionReader, node: Node) -> Term:
        if "Null" in (type(node.this).__name__, type(node.expression).__name__):
            raise refusal(reader.place_of(node), "A comparison with NULL is never true.", f"Write x {meant}.")
        return reader.apply(function, node, reader.read(node.this), reader.read(node.expression))

    return Form(read, OPERANDS)


def _read_is(reader: ExpressionReader, node: Node) -> Term:
    tested, wanted = reader.read(node.this), node.expression
    match type(wanted).__name__:
        case "Null":
            return reader.apply("is_null", node, tested)
        case "Boolean":
            truth = tested if wanted.this else reader.apply("not", node, tested)
            return reader.apply("coalesce", node, truth, FALSE)
    raise refusal(reader.place_of(node), "IS takes NULL, TRUE or FALSE.", "Use = for other values.")


def _read_same(reader: ExpressionReader, node: Node) -> Term:
    """IS NOT DISTINCT FROM, which is true for equal values and for two NULLs."""
    left, right = reader.read(node.this), reader.read(node.expression)
    if any(isinstance(side, Constant) and side.value is not None for side in (left, right)):
        return reader.apply("coalesce", node, reader.apply("equal", node, left, right), FALSE)
    both = reader.apply("and", node, reader.apply("is_null", node, left), reader.apply("is_null", node, right))
    return reader.apply("coalesce", node, reader.apply("equal", node, left, right), both)


def _read_different(reader: ExpressionReader, node: Node) -> Term:
    return reader.apply("not", node, _read_same(reader, node))


def _read_between(reader: ExpressionReader, node: Node) -> Term:
    tested = reader.read(node.this)
    low = reader.apply("at_least", node, tested, reader.read(node.args["low"]))
    return reader.apply("and", node, low, reader.apply("at_most", node, tested, reader.read(node.args["high"])))


def _read_in(reader: ExpressionReader, node: Node) -> Term:
    query = node.args.get("query")
    if query is not None:
        return MembershipTerm(reader.read(node.this), reader.query(query), reader.place_of(node.this))
    if node.args.get("unnest") is not None:
        return read_in_unnest(reader, node, node.args["unnest"])
    members = node.expressions
    if not members:
        raise refusal(reader.place_of(node), "IN needs a list of constants.", "Write for example ward IN ('A', 'B').")
    return reader.apply("in", node, reader.read(node.this), *(reader.read(member) for member in members))


def _read_exists(reader: ExpressionReader, node: Node) -> Term:
    return MembershipTerm(None, reader.query(node.this), reader.places.of(node, "EXISTS"))


def _read_like(reader: ExpressionReader, node: Node) -> Term:
    function = "like" if type(node).__name__ == "Like" else "ilike"
    found = reader.apply(function, node, reader.read(node.this), reader.read(node.expression))
    return reader.apply("not", node, found) if node.args.get("negate") else found


def _read_case(reader: ExpressionReader, node: Node) -> Term:
    tested = reader.read(node.this) if node.this is not None else None
    arguments: list[Term] = []
    for branch in node.args["ifs"]:
        condition = reader.read(branch.this)
        if tested is not None:
            condition = reader.apply("equal", branch, tested, condition)
        arguments += [condition, reader.read(branch.args["true"])]
    otherwise = node.args.get("default")
    return reader.apply("case", node, *arguments, reader.read(otherwise) if otherwise is not None else Constant(None))


def _read_if(reader: ExpressionReader, node: Node) -> Term:
    otherwise = node.args.get("false")
    last: Term = reader.read(otherwise) if otherwise is not None else Constant(None)
    return reader.apply("case", node, reader.read(node.this), reader.read(node.args["true"]), last)


def split_chain(node: Node) -> Iterator[Node]:
    """The operands of a OP b OP c, from left to right, without recursion."""
    pending = [node]
    while pending:
        top = pending.pop()
        inner = top
        while type(inner).__name__ == "Paren":
            inner = inner.this
        if type(inner) is type(node):
            pending += [inner.expression, inner.this]
        else:
            yield top


_FORMS: Mapping[str, Form] = {
    # values
    "Column": Form(_read_column, ("this", "table", "db", "catalog")),
    "Literal": Form(_read_literal, ("this", "is_string")),
    "Boolean": Form(_read_boolean, ("this",)),
    "Null": Form(_read_null, ()),
    "Paren": Form(_read_paren, ("this",)),
    "Neg": Form(_read_negative, ("this",)),
    # comparison and logic
    "EQ": _make_equality("equal", "IS NULL"),
    "NEQ": _make_equality("unequal", "IS NOT NULL"),
    "LT": make_binary("less"),
    "LTE": make_binary("at_most"),
    "GT": make_binary("greater"),
    "GTE": make_binary("at_least"),
    "NullSafeEQ": Form(_read_same, OPERANDS),
    "NullSafeNEQ": Form(_read_different, OPERANDS),
    "Between": Form(_read_between, ("this", "low", "high")),
    "In": Form(_read_in, ("this", "expressions", "query", "unnest")),
    "Exists": Form(_read_exists, ("this",)),
    "Is": Form(_read_is, OPERANDS),
    "Not": make_unary("not"),
    "And": Form(_read_chain, OPERANDS),
    "Or": Form(_read_chain, OPERANDS),
    "Case": Form(_read_case, ("this", "ifs", "default")),
    "If": Form(_read_if, ("this", "true", "false")),
    "Coalesce": make_variadic("coalesce"),
    "Nullif": make_binary("null_if"),
    "Like": Form(_read_like, (*OPERANDS, "negate")),
    "ILike": Form(_read_like, (*OPERANDS, "negate")),
    "DPipe": Form(_read_chain, (*OPERANDS, "safe")),
    **functions.FORMS,
    **aggregates.FORMS,
}
FORMS: Mapping[str, Form] = add_list_forms(_FORMS)
