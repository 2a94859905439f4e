"""SQL aggregates to terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from discreet.frontends.positions import refusal
from discreet.frontends.sql_reader import OPERANDS, Form, Reader
from discreet.frontends.terms import Constant, Measure, Term
from discreet.plan.nodes import Statistic

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Node


def _aggregate(statistic: Statistic, *, sample: bool = False) -> Form:
    """An aggregate of one argument."""

    def read(reader: Reader, node: Node) -> Term:
        return Measure(statistic, reader.read(node.this), sample=sample, place=reader.place(node))

    return Form(read, ("this",))


def _count(reader: Reader, node: Node) -> Term:
    place = reader.place(node)
    counted = node.this
    match type(counted).__name__:
        case "Star":
            reader.only(counted)
            return Measure(Statistic.COUNT, place=place)
        case "NoneType":
            return Measure(Statistic.COUNT, place=place)
        case "Distinct":
            reader.only(counted, "expressions")
            if len(counted.expressions) != 1:
                raise refusal(place, "COUNT(DISTINCT ...) takes one column.", "Name the column of the unit.")
            return Measure(Statistic.COUNT_UNITS, reader.read(counted.expressions[0]), place=place)
    return Measure(Statistic.COUNT, reader.read(counted), place=place)


def _count_if(reader: Reader, node: Node) -> Term:
    counted = reader.apply("case", node, reader.read(node.this), Constant(1), Constant(None))
    return Measure(Statistic.COUNT, counted, place=reader.place(node))


def _filter(reader: Reader, node: Node) -> Term:
    """SUM(x) FILTER (WHERE c): the aggregate of the values for which c is true."""
    inner = reader.read(node.this)
    place = reader.places.of(node, "FILTER")
    if not isinstance(inner, Measure) or inner.statistic is Statistic.COUNT_UNITS:
        rule = "FILTER is available behind COUNT, SUM, AVG, VARIANCE and STDDEV."
        raise refusal(place, rule, "Use WHERE for the whole question.")
    condition = reader.read(node.expression.this)
    value = Constant(1) if inner.argument is None else inner.argument
    chosen = reader.apply("case", node, condition, value, Constant(None))
    return Measure(inner.statistic, chosen, inner.sample, inner.place)


FORMS: Mapping[str, Form] = {
    "Count": Form(_count, ("this", "big_int")),
    "CountIf": Form(_count_if, ("this",)),
    "Sum": _aggregate(Statistic.SUM),
    "Avg": _aggregate(Statistic.MEAN),
    "VariancePop": _aggregate(Statistic.VARIANCE),
    "Variance": _aggregate(Statistic.VARIANCE, sample=True),
    "StddevPop": _aggregate(Statistic.STDDEV),
    "Stddev": _aggregate(Statistic.STDDEV, sample=True),
    "StddevSamp": _aggregate(Statistic.STDDEV, sample=True),
    "Filter": Form(_filter, OPERANDS),
}
