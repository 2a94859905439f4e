"""SQL aggregates to terms: the names and arguments are those of the table of statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias, assert_never

from discreet.errors import InternalError
from discreet.frontends.sql import refusals
from discreet.frontends.sql.reader import OPERANDS, ExpressionReader, Form, name_of
from discreet.frontends.terms import constants
from discreet.frontends.terms.positions import Place, refusal
from discreet.frontends.terms.syntax import AggregateTerm, GroupingTerm, Term
from discreet.plan.statistics.definitions import ArgumentForm, PairStatistic, Statistic, Wording
from discreet.plan.statistics.table import STATISTICS, list_wordings

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Node

# The part of a node that holds the q of a quantile, where it is not called "quantile".
SHARE_PARTS = {"PercentileCont": "expression", "PercentileDisc": "expression"}

_MOST_MARKS = 32  # keys of one GROUPING, whose marks are the digits of a whole number


def _read_argument(reader: ExpressionReader, node: Node, part: str = "this") -> Term:
    """An argument of an aggregate, which must be there."""
    inner = node.args.get(part)
    if inner is None:
        word = name_of(node)
        raise refusal(reader.place_of(node), f"{word} misses an argument.", "Write for example SUM(x) or CORR(x, y).")
    if type(inner).__name__ == "Distinct":
        return _read_distinct_argument(reader, node, inner)
    return reader.read(inner)


def _read_distinct_argument(reader: ExpressionReader, node: Node, distinct: Node) -> Term:
    """The argument of MIN(DISTINCT x) and MAX(DISTINCT x), which are those of x; of other aggregates it is refused."""
    word = name_of(node)
    reader.check_parts(distinct, "expressions")
    if word in ("MIN", "MAX") and len(distinct.expressions) == 1:
        return reader.read(distinct.expressions[0])
    rule = f"{word} takes no DISTINCT: which values count would depend on how often others have them."
    fix = "COUNT, SUM, AVG, VARIANCE and STDDEV take it. Or select DISTINCT unit, x in a subquery, and aggregate that."
    raise refusal(reader.places.of(distinct, "DISTINCT"), rule, fix)


def _read_distinct(
    reader: ExpressionReader, statistic: Statistic | PairStatistic, wording: Wording, node: Node, argument: Node | None
) -> AggregateTerm | None:
    """An aggregate of distinct values, as SUM(DISTINCT x) is; None where it is not one."""
    if isinstance(statistic, PairStatistic) or argument is None or type(argument).__name__ != "Distinct":
        return None
    if not STATISTICS[statistic].has_moments:
        return None
    reader.check_parts(argument, "expressions")
    if len(argument.expressions) != 1:
        rule = f"{wording.names[0].upper()}(DISTINCT ...) takes one column or expression."
        raise refusal(reader.place_of(node), rule, "Ask for each on its own.")
    term = _make_term(statistic, wording, [reader.read(argument.expressions[0])], reader.place_of(node))
    return replace(term, distinct=True)


def _make_form(statistic: Statistic | PairStatistic, wording: Wording, node: str) -> Form:
    """How a node of the parser is read that stands for one of the wordings of the table."""
    match wording.arguments:
        case ArgumentForm.ROWS_OR_VALUE:
            return Form(_read_count, ("this", "big_int"))
        case ArgumentForm.CONDITION:
            return Form(_read_count_if, ("this",))
        case ArgumentForm.VALUE:
            return Form(_make_value_reader(statistic, wording), ("this",))
        case ArgumentForm.VALUE_AND_SHARE:
            part = SHARE_PARTS.get(node, "quantile")
            return Form(_make_quantile_reader(part), ("this", part))
        case ArgumentForm.PAIR:
            return Form(_make_pair_reader(statistic, wording), OPERANDS)
        case ArgumentForm.NOTHING:
            raise InternalError("An aggregate without arguments has no form in SQL.")
        case _:
            assert_never(wording.arguments)


TermReader: TypeAlias = Callable[[ExpressionReader, "Node"], Term]


def _make_value_reader(statistic: Statistic | PairStatistic, wording: Wording) -> TermReader:
    """An aggregate of one argument."""

    def read(reader: ExpressionReader, node: Node) -> Term:
        found = _read_distinct(reader, statistic, wording, node, node.args.get("this"))
        return found or _make_term(statistic, wording, [_read_argument(reader, node)], reader.place_of(node))

    return read


def _make_pair_reader(statistic: Statistic | PairStatistic, wording: Wording) -> TermReader:
    """An aggregate of two arguments."""

    def read(reader: ExpressionReader, node: Node) -> Term:
        arguments = [_read_argument(reader, node), _read_argument(reader, node, "expression")]
        return _make_term(statistic, wording, arguments, reader.place_of(node))

    return read


def _make_term(
    statistic: Statistic | PairStatistic, wording: Wording, arguments: Sequence[Term], place: Place
) -> AggregateTerm:
    first, *rest = arguments
    return AggregateTerm(
        statistic,
        first,
        sample=wording.sample,
        second=rest[0] if rest else None,
        share=wording.share,
        word=wording.word,
        place=place,
    )


# Counts


def _read_count(reader: ExpressionReader, node: Node) -> Term:
    place = reader.place_of(node)
    counted = node.this
    match type(counted).__name__:
        case "Star":
            reader.check_parts(counted)
            return AggregateTerm(Statistic.COUNT, place=place)
        case "NoneType":
            return AggregateTerm(Statistic.COUNT, place=place)
        case "Distinct":
            reader.check_parts(counted, "expressions")
            if len(counted.expressions) != 1:
                rule = "COUNT(DISTINCT ...) takes one column or expression."
                raise refusal(place, rule, "Join texts to one: COUNT(DISTINCT a || '-' || b).")
            return AggregateTerm(Statistic.COUNT_DISTINCT, reader.read(counted.expressions[0]), place=place)
    return AggregateTerm(Statistic.COUNT, reader.read(counted), place=place)


def _read_count_if(reader: ExpressionReader, node: Node) -> Term:
    return AggregateTerm(Statistic.COUNT, condition=_read_argument(reader, node), place=reader.place_of(node))


# Quantiles


def _make_quantile_reader(part: str) -> TermReader:
    """QUANTILE(x, q), where q is in this part of the node."""

    def read(reader: ExpressionReader, node: Node) -> Term:
        wanted = node.args.get(part)
        if wanted is None:
            raise refusal(
                reader.place_of(node), "This quantile does not say which.", "Write for example QUANTILE(x, 0.5)."
            )
        return AggregateTerm(
            Statistic.QUANTILE,
            _read_argument(reader, node),
            share=read_share(reader, wanted),
            place=reader.place_of(node),
        )

    return read


def read_share(reader: ExpressionReader, node: Node) -> Fraction:
    """The q of a quantile, exactly as it is written."""
    place = reader.place_of(node)
    while type(node).__name__ == "Paren":
        node = node.this
    if type(node).__name__ in {"Array", "Bracket", "Tuple"}:
        raise refusal(place, refusals.QUANTILES.rule, refusals.QUANTILES.fix)
    if type(node).__name__ != "Literal" or node.args.get("is_string"):
        rule = "The q of a quantile must be a constant between 0 and 1."
        raise refusal(place, rule, "Write for example QUANTILE(x, 0.5); MIN and MAX stand for 0.01 and 0.99.")
    text = str(node.this)
    constants.read_number(text, place)  # refuses what is no number, before it is taken exactly
    return Fraction(Decimal(text))


def _read_within_group(reader: ExpressionReader, node: Node) -> Term:
    """PERCENTILE_CONT(q) WITHIN GROUP (ORDER BY x), and MODE() in the same form."""
    inner, order = node.this, node.expression
    place = reader.place_of(inner)
    kind = type(inner).__name__
    if kind not in {"PercentileCont", "PercentileDisc", "Quantile", "Mode"} or type(order).__name__ != "Order":
        rule = "WITHIN GROUP is available behind PERCENTILE_CONT, PERCENTILE_DISC and MODE."
        raise refusal(reader.places.of(node, "WITHIN"), rule, "Leave it out.")
    if len(order.expressions) != 1 or type(order.expressions[0]).__name__ != "Ordered":
        raise refusal(place, "WITHIN GROUP orders by one expression.", "Write WITHIN GROUP (ORDER BY x).")
    (ordered,) = order.expressions
    reader.check_parts(ordered, "this", "desc", "nulls_first")
    argument = reader.read(ordered.this)
    if kind == "Mode":
        reader.check_parts(inner)
        return AggregateTerm(Statistic.MODE, argument, place=place)
    reader.check_parts(inner, "this")
    if inner.this is None:
        raise refusal(place, "This quantile does not say which.", "Write PERCENTILE_CONT(0.5) WITHIN GROUP ...")
    wanted = read_share(reader, inner.this)
    wanted = 1 - wanted if ordered.args.get("desc") else wanted
    return AggregateTerm(Statistic.QUANTILE, argument, share=wanted, place=place)


# FILTER


def _read_filter(reader: ExpressionReader, node: Node) -> Term:
    """SUM(x) FILTER (WHERE c): the aggregate of the rows for which c is true."""
    inner = reader.read(node.this)
    if not isinstance(inner, AggregateTerm) or inner.condition is not None:
        place = reader.places.of(node, "FILTER")
        raise refusal(place, "FILTER stands behind an aggregate.", "Use WHERE for the whole question.")
    return replace(inner, condition=reader.read(node.expression.this))


def _read_grouping(reader: ExpressionReader, node: Node) -> Term:
    """GROUPING(a, b), and the same under the name GROUPING_ID."""
    place, word = reader.place_of(node), name_of(node)
    if not 1 <= len(node.expressions) <= _MOST_MARKS:
        raise refusal(place, f"{word} takes 1 to {_MOST_MARKS} keys.", f"Write {word}(a) for a key a of GROUP BY.")
    return GroupingTerm(tuple(reader.read(key) for key in node.expressions), place)


FORMS: Mapping[str, Form] = {
    **{node: _make_form(statistic, wording, node) for statistic, wording in list_wordings() for node in wording.parsed},
    "WithinGroup": Form(_read_within_group, OPERANDS),
    "Filter": Form(_read_filter, OPERANDS),
    "Grouping": Form(_read_grouping, ("expressions",)),
    "GroupingId": Form(_read_grouping, ("expressions",)),
}

# How many arguments an aggregate has that the parser knows by name only.
NAMED_ARGUMENTS = {ArgumentForm.VALUE: 1, ArgumentForm.PAIR: 2}
NAMED: Mapping[str, tuple[Statistic | PairStatistic, Wording]] = {
    name: (statistic, wording)
    for statistic, wording in list_wordings()
    if wording.arguments in NAMED_ARGUMENTS
    for name in wording.names
}


def read_named(reader: ExpressionReader, node: Node, name: str) -> Term:
    """One of the ``NAMED`` aggregates."""
    statistic, wording = NAMED[name]
    wanted = NAMED_ARGUMENTS[wording.arguments]
    if len(node.expressions) != wanted:
        usage = f"{name}(x, w)" if wanted == 2 else f"{name}(x)"
        raise refusal(reader.place_of(node), f"{name} takes {wanted} argument{'s' * (wanted > 1)}.", f"Write {usage}.")
    found = _read_distinct(reader, statistic, wording, node, node.expressions[0])
    if found is not None:
        return found
    arguments = [reader.read(argument) for argument in node.expressions]
    return _make_term(statistic, wording, arguments, reader.place_of(node))
