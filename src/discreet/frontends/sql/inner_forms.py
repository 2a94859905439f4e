"""Reads the expressions that only a SELECT inside a question has: features of one unit, and windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from discreet.frontends.sql.frames import read_frame
from discreet.frontends.sql.reader import OPERANDS, ExpressionReader, Form
from discreet.frontends.terms import constants
from discreet.frontends.terms.positions import refusal
from discreet.frontends.terms.syntax import AggregateTerm, FeatureTerm, Term, WindowTerm
from discreet.plan.relations import Feature

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Node

MAX_OFFSET = 1_000_000


def add_inner_forms(forms: Mapping[str, Form]) -> Mapping[str, Form]:
    """The forms of a question, together with those that only a SELECT inside it has."""
    return {**forms, **FORMS, "Filter": Form(_make_filter_reader(forms["Filter"]), OPERANDS)}


def _make_feature_form(feature: Feature) -> Form:
    """The form of a feature with one argument."""

    def read(reader: ExpressionReader, node: Node) -> Term:
        return FeatureTerm(feature, reader.read(node.this), place=reader.place_of(node))

    return Form(read, ("this",))


def _make_numbering_form(feature: Feature) -> Form:
    """The form of a window function without an argument."""

    def read(reader: ExpressionReader, node: Node) -> Term:
        return FeatureTerm(feature, place=reader.place_of(node))

    return Form(read, ())


def _make_neighbour_form(feature: Feature) -> Form:
    """The form of LAG and LEAD, which give a value some rows before or after."""

    def read(reader: ExpressionReader, node: Node) -> Term:
        offset = node.args.get("offset")
        return FeatureTerm(
            feature,
            reader.read(node.this),
            1 if offset is None else _read_offset(reader, offset),
            place=reader.place_of(node),
        )

    return Form(read, ("this", "offset"))


def _read_offset(reader: ExpressionReader, node: Node) -> int:
    place = reader.place_of(node)
    value = None
    if type(node).__name__ == "Literal" and not node.args.get("is_string"):
        value = constants.read_number(str(node.this), place)
    if not isinstance(value, int) or not 1 <= value <= MAX_OFFSET:
        rule = f"LAG and LEAD look 1 to {MAX_OFFSET:,} rows away."
        raise refusal(place, rule, "Write for example LAG(x, 1).")
    return value


def _make_filter_reader(usual: Form) -> Callable[[ExpressionReader, Node], Term]:
    def read(reader: ExpressionReader, node: Node) -> Term:
        if type(node.this).__name__ not in {"LogicalOr", "LogicalAnd"}:
            return usual.read(reader, node)
        inner = reader.read(node.this)
        condition = reader.read(node.expression.this)
        return replace(inner, condition=condition) if isinstance(inner, FeatureTerm) else inner

    return read


def _read_window(reader: ExpressionReader, node: Node) -> Term:
    """f(x) OVER (PARTITION BY ... ORDER BY ...), or OVER w with WINDOW w AS (...)."""
    place = reader.places.of(node, "OVER")
    function = reader.read(node.this)
    if not isinstance(function, AggregateTerm | FeatureTerm):
        raise refusal(place, "OVER stands behind an aggregate or a window function.", "Leave it out.")
    shape = node
    alias = node.args.get("alias")
    if alias is not None:
        named = reader.windows.get(alias.name.lower())
        if named is None or node.args.get("partition_by") or node.args.get("order"):
            rule = f"There is no window {alias.name!r}." if named is None else "A named window is used as it is."
            raise refusal(reader.place_of(alias), rule, "Write OVER (PARTITION BY ... ORDER BY ...).")
        reader.check_parts(named, "this", "partition_by", "order", "spec")
        shape = named
    parts = tuple(reader.read(part) for part in shape.args.get("partition_by") or ())
    order = shape.args.get("order")
    sorts = tuple(reader.read_sort(part, reader.read) for part in order.expressions) if order is not None else ()
    spec = shape.args.get("spec")
    return WindowTerm(function, parts, sorts, place, None if spec is None else read_frame(reader, spec, place))


FORMS: Mapping[str, Form] = {
    "LogicalOr": _make_feature_form(Feature.ANY),
    "LogicalAnd": _make_feature_form(Feature.ALL),
    "RowNumber": _make_numbering_form(Feature.ROW_NUMBER),
    "Rank": _make_numbering_form(Feature.RANK),
    "DenseRank": _make_numbering_form(Feature.DENSE_RANK),
    "Lag": _make_neighbour_form(Feature.LAG),
    "Lead": _make_neighbour_form(Feature.LEAD),
    "Window": Form(_read_window, ("this", "partition_by", "order", "alias", "over", "spec")),
}
