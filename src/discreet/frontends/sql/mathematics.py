"""Reads logarithms, angles, whole quotients and positions in texts into terms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from discreet.frontends.sql.reader import OPERANDS, ExpressionReader, Form, make_binary, make_form, make_unary
from discreet.frontends.terms.syntax import Constant, Term

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Node

# Logarithms that are exact for the powers of their base.
BASES = {2: "log2", 10: "log10"}


def _read_log(reader: ExpressionReader, node: Node) -> Term:
    """LOG(x) to base 10, or LOG(b, x). The parser reads LOG2(x) and LOG10(x) as the latter."""
    if node.args.get("expression") is None:
        return reader.apply("log10", node, reader.read(node.this))
    base, value = reader.read(node.this), reader.read(node.expression)
    known = BASES.get(base.value) if isinstance(base, Constant) and isinstance(base.value, int) else None
    if known is not None:
        return reader.apply(known, node, value)
    return reader.apply("divide", node, reader.apply("ln", node, value), reader.apply("ln", node, base))


def _read_pi(reader: ExpressionReader, node: Node) -> Term:
    return Constant(math.pi, reader.place_of(node))


def _make_scaled_form(factor: float) -> Form:
    """The form of a number times a constant."""

    def read(reader: ExpressionReader, node: Node) -> Term:
        return reader.apply("multiply", node, reader.read(node.this), Constant(factor))

    return Form(read, ("this",))


def _read_cot(reader: ExpressionReader, node: Node) -> Term:
    return reader.apply("divide", node, Constant(1.0), reader.apply("tan", node, reader.read(node.this)))


FORMS: Mapping[str, Form] = {
    "Log": Form(_read_log, OPERANDS),
    "IntDiv": make_binary("quotient"),
    "Trunc": make_unary("trunc"),
    "Pi": Form(_read_pi, ()),
    "Degrees": _make_scaled_form(180 / math.pi),
    "Radians": _make_scaled_form(math.pi / 180),
    **{name.title(): make_unary(name) for name in ("sin", "cos", "tan", "asin", "acos", "atan")},
    "Cot": Form(_read_cot, ("this",)),
    "Atan2": make_binary("atan2"),
    "StrPosition": make_form("position", "this", "substr"),
}
