"""SQL aggregates to terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.frontends import constants, sql_refusals
from discreet.frontends.aggregates import EXTREMES
from discreet.frontends.positions import refusal
from discreet.frontends.sql_reader import OPERANDS, Form, Reader, called
from discreet.frontends.terms import Measure, Paired, Term
from discreet.plan.nodes import Statistic

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Node

MEDIAN = Fraction(1, 2)


def _argument(reader: Reader, node: Node, part: str = "this") -> Term:
    """An argument of an aggregate, which must be there."""
    inner = node.args.get(part)
    if inner is None:
        word = called(node)
        raise refusal(reader.place(node), f"{word} misses an argument.", "Write for example SUM(x) or CORR(x, y).")
    return reader.read(inner)


def _aggregate(statistic: Statistic, *, sample: bool = False) -> Form:
    """An aggregate of one argument."""

    def read(reader: Reader, node: Node) -> Term:
        return Measure(statistic, _argument(reader, node), sample=sample, place=reader.place(node))

    return Form(read, ("this",))


def _paired(kind: Paired, *, sample: bool = False) -> Form:
    """An aggregate of two arguments."""

    def read(reader: Reader, node: Node) -> Term:
        first, second = _argument(reader, node), _argument(reader, node, "expression")
        return Measure(kind, first, sample=sample, second=second, place=reader.place(node))

    return Form(read, OPERANDS)


# Counts


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
                rule = "COUNT(DISTINCT ...) takes one column or expression."
                raise refusal(place, rule, "Join texts to one: COUNT(DISTINCT a || '-' || b).")
            return Measure(Statistic.COUNT_DISTINCT, reader.read(counted.expressions[0]), place=place)
    return Measure(Statistic.COUNT, reader.read(counted), place=place)


def _count_if(reader: Reader, node: Node) -> Term:
    return Measure(Statistic.COUNT, condition=_argument(reader, node), place=reader.place(node))


# Quantiles


def _middle(reader: Reader, node: Node) -> Term:
    return Measure(Statistic.QUANTILE, _argument(reader, node), share=MEDIAN, word="median", place=reader.place(node))


def _extreme(word: str) -> Form:
    def read(reader: Reader, node: Node) -> Term:
        argument = _argument(reader, node)
        return Measure(Statistic.QUANTILE, argument, share=EXTREMES[word], word=word, place=reader.place(node))

    return Form(read, ("this",))


def _quantile(part: str) -> Callable[[Reader, Node], Term]:
    """QUANTILE(x, q), where q is in this part of the node."""

    def read(reader: Reader, node: Node) -> Term:
        wanted = node.args.get(part)
        if wanted is None:
            raise refusal(
                reader.place(node), "This quantile does not say which.", "Write for example QUANTILE(x, 0.5)."
            )
        return Measure(
            Statistic.QUANTILE, _argument(reader, node), share=share(reader, wanted), place=reader.place(node)
        )

    return read


def share(reader: Reader, node: Node) -> Fraction:
    """The q of a quantile, exactly as it is written."""
    place = reader.place(node)
    while type(node).__name__ == "Paren":
        node = node.this
    if type(node).__name__ in {"Array", "Bracket", "Tuple"}:
        raise refusal(place, sql_refusals.QUANTILES.rule, sql_refusals.QUANTILES.fix)
    if type(node).__name__ != "Literal" or node.args.get("is_string"):
        rule = "The q of a quantile must be a constant between 0 and 1."
        raise refusal(place, rule, "Write for example QUANTILE(x, 0.5); MIN and MAX stand for 0.01 and 0.99.")
    text = str(node.this)
    constants.number(text, place)  # refuses what is no number, before it is taken exactly
    return Fraction(Decimal(text))


def _within_group(reader: Reader, node: Node) -> Term:
    """PERCENTILE_CONT(q) WITHIN GROUP (ORDER BY x), and MODE() in the same form."""
    inner, order = node.this, node.expression
    place = reader.place(inner)
    kind = type(inner).__name__
    if kind not in {"PercentileCont", "PercentileDisc", "Quantile", "Mode"} or type(order).__name__ != "Order":
        rule = "WITHIN GROUP is available behind PERCENTILE_CONT, PERCENTILE_DISC and MODE."
        raise refusal(reader.places.of(node, "WITHIN"), rule, "Leave it out.")
    if len(order.expressions) != 1 or type(order.expressions[0]).__name__ != "Ordered":
        raise refusal(place, "WITHIN GROUP orders by one expression.", "Write WITHIN GROUP (ORDER BY x).")
    (ordered,) = order.expressions
    reader.only(ordered, "this", "desc", "nulls_first")
    argument = reader.read(ordered.this)
    if kind == "Mode":
        reader.only(inner)
        return Measure(Statistic.MODE, argument, place=place)
    reader.only(inner, "this")
    if inner.this is None:
        raise refusal(place, "This quantile does not say which.", "Write PERCENTILE_CONT(0.5) WITHIN GROUP ...")
    wanted = share(reader, inner.this)
    wanted = 1 - wanted if ordered.args.get("desc") else wanted
    return Measure(Statistic.QUANTILE, argument, share=wanted, place=place)


# FILTER


def _filter(reader: Reader, node: Node) -> Term:
    """SUM(x) FILTER (WHERE c): the aggregate of the rows for which c is true."""
    inner = reader.read(node.this)
    if not isinstance(inner, Measure) or inner.condition is not None:
        place = reader.places.of(node, "FILTER")
        raise refusal(place, "FILTER stands behind an aggregate.", "Use WHERE for the whole question.")
    return replace(inner, condition=reader.read(node.expression.this))


FORMS: Mapping[str, Form] = {
    "Count": Form(_count, ("this", "big_int")),
    "CountIf": Form(_count_if, ("this",)),
    "ApproxDistinct": _aggregate(Statistic.COUNT_DISTINCT),
    "Sum": _aggregate(Statistic.SUM),
    "Avg": _aggregate(Statistic.MEAN),
    "VariancePop": _aggregate(Statistic.VARIANCE),
    "Variance": _aggregate(Statistic.VARIANCE, sample=True),
    "StddevPop": _aggregate(Statistic.STDDEV),
    "Stddev": _aggregate(Statistic.STDDEV, sample=True),
    "StddevSamp": _aggregate(Statistic.STDDEV, sample=True),
    "Median": Form(_middle, ("this",)),
    "Min": _extreme("min"),
    "Max": _extreme("max"),
    "Quantile": Form(_quantile("quantile"), ("this", "quantile")),
    "ApproxQuantile": Form(_quantile("quantile"), ("this", "quantile")),
    "PercentileCont": Form(_quantile("expression"), OPERANDS),
    "PercentileDisc": Form(_quantile("expression"), OPERANDS),
    "WithinGroup": Form(_within_group, OPERANDS),
    "Mode": _aggregate(Statistic.MODE),
    "CovarPop": _paired(Paired.COVARIANCE),
    "CovarSamp": _paired(Paired.COVARIANCE, sample=True),
    "Corr": _paired(Paired.CORRELATION),
    "RegrSlope": _paired(Paired.SLOPE),
    "RegrIntercept": _paired(Paired.INTERCEPT),
    "Filter": Form(_filter, OPERANDS),
}

# Aggregates that the parser knows by name only.
NAMED: Mapping[str, Statistic | Paired] = {
    "mean": Statistic.MEAN,
    "weighted_avg": Paired.WEIGHTED_MEAN,
    "avg_weighted": Paired.WEIGHTED_MEAN,
}


def named(reader: Reader, node: Node, name: str) -> Term:
    """One of the ``NAMED`` aggregates."""
    statistic = NAMED[name]
    wanted = 2 if isinstance(statistic, Paired) else 1
    if len(node.expressions) != wanted:
        usage = f"{name}(x, w)" if wanted == 2 else f"{name}(x)"
        raise refusal(reader.place(node), f"{name} takes {wanted} argument{'s' * (wanted > 1)}.", f"Write {usage}.")
    first, *rest = (reader.read(argument) for argument in node.expressions)
    return Measure(statistic, first, second=rest[0] if rest else None, place=reader.place(node))
