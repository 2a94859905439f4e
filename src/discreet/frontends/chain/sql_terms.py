"""Writes terms as SQL that our own reader reads back as the same terms. For chains that are asked on a server.

Every name is in quotes and every call in parentheses, so that neither a keyword nor the order of operators can change
what is meant. What SQL cannot say exactly is refused.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import assert_never

from discreet.errors import InternalError
from discreet.frontends.terms.positions import refusal
from discreet.frontends.terms.syntax import (
    AggregateTerm,
    Constant,
    FeatureTerm,
    FunctionTerm,
    GroupingTerm,
    MembershipTerm,
    NameTerm,
    Ordinal,
    Star,
    Term,
    WindowTerm,
)
from discreet.late_dataclass import dataclass
from discreet.plan.statistics.definitions import PairStatistic, Statistic
from discreet.plan.statistics.table import list_wordings
from discreet.plan.types import Value

_BETWEEN: Mapping[str, str] = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "quotient": "//",
    "modulo": "%",
    "equal": "=",
    "unequal": "<>",
    "less": "<",
    "at_most": "<=",
    "greater": ">",
    "at_least": ">=",
    "and": "AND",
    "or": "OR",
    "concat": "||",
    "like": "LIKE",
    "ilike": "ILIKE",
}
# Functions whose form is not name(arguments).
_FORMS: Mapping[str, str] = {
    "negate": "(-({0}))",
    "not": "(NOT {0})",
    "is_null": "({0} IS NULL)",
    "null_if": "nullif({0}, {1})",
    "part": "date_part({0}, {1})",
    "position": "position({1} IN {0})",
    "to_boolean": "CAST({0} AS BOOLEAN)",
    "to_integer": "CAST({0} AS BIGINT)",
    "to_real": "CAST({0} AS DOUBLE)",
    "to_text": "CAST({0} AS VARCHAR)",
    "to_date": "CAST({0} AS DATE)",
    "to_timestamp": "CAST({0} AS TIMESTAMP)",
}


@dataclass(frozen=True, slots=True)
class TermWriter:
    """Writes terms. ``unit`` is the column that names the unit, where rows have one of their own."""

    unit: NameTerm | None = None

    def write(self, term: Term) -> str:
        """A term as SQL."""
        match term:
            case NameTerm():
                return quote_name(term.name) if term.qualifier is None else _qualify(term.qualifier, term.name)
            case Constant():
                return write_constant(term.value)
            case FunctionTerm():
                return self._write_call(term.function, [self.write(argument) for argument in term.arguments])
            case AggregateTerm():
                return self._write_aggregate(term)
            case GroupingTerm():
                return f"GROUPING({self.write_all(term.keys)})"
            case Star():
                return "*"
            case Ordinal() | FeatureTerm() | WindowTerm() | MembershipTerm():
                raise InternalError("A chain has no such term.")
            case _:
                assert_never(term)

    def write_all(self, terms: Sequence[Term]) -> str:
        """Terms with commas between them."""
        return ", ".join(map(self.write, terms))

    def write_condition(self, terms: Sequence[Term]) -> str:
        """Conditions that all must be true."""
        return " AND ".join(map(self.write, terms))

    def _write_call(self, function: str, arguments: Sequence[str]) -> str:
        if function in _BETWEEN:
            return f"({f' {_BETWEEN[function]} '.join(arguments)})"
        if function in _FORMS:
            return _FORMS[function].format(*arguments)
        if function == "in":
            return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"
        if function == "case":
            *branches, last = arguments
            whens = " ".join(f"WHEN {c} THEN {v}" for c, v in zip(branches[::2], branches[1::2]))
            return f"CASE {whens} ELSE {last} END"
        return f"{function}({', '.join(arguments)})"

    def _write_aggregate(self, term: AggregateTerm) -> str:
        if term.bounds is not None:
            raise InternalError("A chain sets no bounds in an aggregate.")
        filtered = "" if term.condition is None else f" FILTER (WHERE {self.write(term.condition)})"
        return self._write_measure(term) + filtered

    def _write_measure(self, term: AggregateTerm) -> str:
        argument = "*" if term.argument is None else self.write(term.argument)
        if term.statistic is Statistic.COUNT_UNITS:
            return f"COUNT(DISTINCT {self.write(self._find_unit())})"
        if term.statistic is Statistic.COUNT_DISTINCT:
            return f"COUNT(DISTINCT {argument})"
        if term.statistic is Statistic.QUANTILE and not term.word:
            return f"QUANTILE({argument}, {_write_share(term.share)})"
        name = term.word or _find_name(term.statistic, sample=term.sample)
        return f"{name}({argument}{'' if term.second is None else f', {self.write(term.second)}'})"

    def _find_unit(self) -> NameTerm:
        if self.unit is None:
            raise refusal(
                None, "count_units() cannot be written in SQL here.", "Use COUNT(DISTINCT ...) of the unit's column."
            )
        return self.unit


def quote_name(name: str) -> str:
    """A name in quotes.

    >>> print(quote_name('a "quick" b'))
    "a ""quick"" b"
    """
    return '"{}"'.format(name.replace('"', '""'))


def write_constant(value: Value) -> str:
    """A constant.

    >>> [write_constant(value) for value in (None, True, -3, 0.5, "it's", dt.date(2024, 1, 31))]
    ['NULL', 'TRUE', '(-3)', '0.5', "'it''s'", "DATE '2024-01-31'"]
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int() | float():
            return f"({value!r})" if value < 0 else repr(value)
        case str():
            return "'{}'".format(value.replace("'", "''"))
        case dt.datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
        case _:
            assert_never(value)


def _qualify(qualifier: str, name: str) -> str:
    return f"{quote_name(qualifier)}.{quote_name(name)}"


def _find_name(statistic: Statistic | PairStatistic, *, sample: bool) -> str:
    """The first name that the table of aggregates has for a statistic."""
    for known, wording in list_wordings():
        if known is statistic and wording.sample == sample and wording.names:
            return wording.names[0]
    raise InternalError("An aggregate without a name in SQL.")


def _write_share(share: Fraction | None) -> str:
    """The q of a quantile, exactly, as a decimal."""
    if share is not None:
        for digits in range(1, 30):
            scaled = share * 10**digits
            if scaled.denominator == 1:
                return f"0.{scaled.numerator:0{digits}d}"
    raise refusal(None, "The q of this quantile is no decimal number.", "Write quantile('age', 0.25).")
