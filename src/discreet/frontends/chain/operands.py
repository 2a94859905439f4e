"""Expressions of a data-frame chain: ``col("age") > 30``, ``mean("age")``, ``when(...).then(...)``.

An operator does not compute a value. It makes an expression: ``col("age") > 30`` is a question about every row. So
``==`` does not compare two expressions, and an expression is neither true nor false. ``&``, ``|`` and ``~`` mean AND,
OR and NOT.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar, NoReturn, TypeAlias

from discreet.frontends.terms.constants import read_python_value
from discreet.frontends.terms.positions import refusal
from discreet.frontends.terms.syntax import AggregateTerm, Constant, NameTerm, Term, aggregates_in, apply
from discreet.late_dataclass import dataclass
from discreet.plan.types import Type

Operand: TypeAlias = "ChainExpression | object"


@dataclass(frozen=True, slots=True, eq=False)
class ChainExpression:
    """An expression over every row, or over released numbers. ``col``, ``lit``, ``count`` and others make it."""

    term: Term
    name: str | None = None

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # == builds a question, so a set could not find it

    def alias(self, name: str) -> ChainExpression:
        """The same expression with a name for the answer."""
        if not isinstance(name, str):
            raise refusal(None, "The name of an output must be a text.", "Write .alias('n').")
        return ChainExpression(self.term, name)

    def __bool__(self) -> NoReturn:
        rule = "An expression is neither true nor false before it is asked."
        raise refusal(None, rule, "Use & for and, | for or, ~ for not, with parentheses: (a > 1) & (a < 5).")

    # Arithmetic

    def __add__(self, other: Operand) -> ChainExpression:
        return _apply("add", self, other)

    def __radd__(self, other: Operand) -> ChainExpression:
        return _apply("add", other, self)

    def __sub__(self, other: Operand) -> ChainExpression:
        return _apply("subtract", self, other)

    def __rsub__(self, other: Operand) -> ChainExpression:
        return _apply("subtract", other, self)

    def __mul__(self, other: Operand) -> ChainExpression:
        return _apply("multiply", self, other)

    def __rmul__(self, other: Operand) -> ChainExpression:
        return _apply("multiply", other, self)

    def __truediv__(self, other: Operand) -> ChainExpression:
        return _apply("divide", self, other)

    def __rtruediv__(self, other: Operand) -> ChainExpression:
        return _apply("divide", other, self)

    def __mod__(self, other: Operand) -> ChainExpression:
        return _apply("modulo", self, other)

    def __pow__(self, other: Operand) -> ChainExpression:
        return _apply("power", self, other)

    def __neg__(self) -> ChainExpression:
        return _apply("negate", self)

    def __abs__(self) -> ChainExpression:
        return _apply("abs", self)

    def round(self, digits: int = 0) -> ChainExpression:
        """The nearest decimal."""
        return _apply("round", self, digits)

    def floor(self) -> ChainExpression:
        """The largest whole number at or below."""
        return _apply("floor", self)

    def ceil(self) -> ChainExpression:
        """The smallest whole number at or above."""
        return _apply("ceil", self)

    def clamp(self, low: Operand, high: Operand) -> ChainExpression:
        """The number, moved into an interval."""
        return _apply("clamp", self, low, high)

    def bin(self, width: Operand) -> ChainExpression:
        """The lower edge of the bin that a value is in: of numbers by a width, of dates by a unit such as "month"."""
        return _apply("bin", self, width)

    def magnitude(self) -> ChainExpression:
        """The size as a power of two, rounded down, with the sign."""
        return _apply("magnitude", self)

    # Comparison and logic

    def __eq__(self, other: object) -> ChainExpression:  # type: ignore[override]  # builds a question, see above
        return _apply("equal", self, other)

    def __ne__(self, other: object) -> ChainExpression:  # type: ignore[override]  # builds a question, see above
        return _apply("unequal", self, other)

    def __lt__(self, other: Operand) -> ChainExpression:
        return _apply("less", self, other)

    def __le__(self, other: Operand) -> ChainExpression:
        return _apply("at_most", self, other)

    def __gt__(self, other: Operand) -> ChainExpression:
        return _apply("greater", self, other)

    def __ge__(self, other: Operand) -> ChainExpression:
        return _apply("at_least", self, other)

    def __and__(self, other: Operand) -> ChainExpression:
        return _apply("and", self, other)

    def __rand__(self, other: Operand) -> ChainExpression:
        return _apply("and", other, self)

    def __or__(self, other: Operand) -> ChainExpression:
        return _apply("or", self, other)

    def __ror__(self, other: Operand) -> ChainExpression:
        return _apply("or", other, self)

    def __invert__(self) -> ChainExpression:
        return _apply("not", self)

    def between(self, low: Operand, high: Operand) -> ChainExpression:
        """Whether the value is at least ``low`` and at most ``high``."""
        return (self >= low) & (self <= high)

    def is_in(self, values: Iterable[object]) -> ChainExpression:
        """Whether the value is one of these constants."""
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise refusal(None, "is_in takes a list of constants.", "Write col('ward').is_in(['A', 'B']).")
        members = list(values)
        if not members:
            raise refusal(None, "is_in needs at least one constant.", "Write col('ward').is_in(['A', 'B']).")
        return _apply("in", self, *members)

    def is_null(self) -> ChainExpression:
        """Whether there is no value."""
        return _apply("is_null", self)

    def coalesce(self, *others: Operand) -> ChainExpression:
        """The first value that is not NULL."""
        return _apply("coalesce", self, *others)

    def null_if(self, other: Operand) -> ChainExpression:
        """The value, but NULL when it equals another."""
        return _apply("null_if", self, other)

    # Texts

    def lower(self) -> ChainExpression:
        """The text in small letters."""
        return _apply("lower", self)

    def upper(self) -> ChainExpression:
        """The text in capital letters."""
        return _apply("upper", self)

    def trim(self) -> ChainExpression:
        """The text without spaces at its ends."""
        return _apply("trim", self)

    def length(self) -> ChainExpression:
        """The number of characters."""
        return _apply("length", self)

    def concat(self, *others: Operand) -> ChainExpression:
        """The text, joined with other texts."""
        return _apply("concat", self, *others)

    def substring(self, start: int, count: int) -> ChainExpression:
        """``count`` characters from the position ``start``, where the first position is 1."""
        return _apply("substring", self, start, count)

    def starts_with(self, start: Operand) -> ChainExpression:
        """Whether the text begins with another one."""
        return _apply("starts_with", self, start)

    def ends_with(self, end: Operand) -> ChainExpression:
        """Whether the text ends with another one."""
        return _apply("ends_with", self, end)

    def contains(self, part: Operand) -> ChainExpression:
        """Whether the text contains another one."""
        return _apply("contains", self, part)

    def like(self, pattern: str) -> ChainExpression:
        """Whether the text fits an SQL pattern with % and _."""
        return _apply("like", self, pattern)

    def ilike(self, pattern: str) -> ChainExpression:
        """Whether the text fits an SQL pattern with % and _, in any case."""
        return _apply("ilike", self, pattern)

    # Dates and types

    def part(self, word: str) -> ChainExpression:
        """A part of a date: year, quarter, month, week, day, dayofweek, hour, minute or second."""
        return _apply("part", word, self)

    def date_trunc(self, word: str) -> ChainExpression:
        """The start of the year, quarter, month, week, day, hour, minute or second."""
        return _apply("date_trunc", word, self)

    def date_diff(self, word: str, end: Operand) -> ChainExpression:
        """How many years, months, days, hours, minutes or seconds begin from here to ``end``."""
        return _apply("date_diff", word, self, end)

    def cast(self, kind: str) -> ChainExpression:
        """The value as boolean, integer, real, text, date or timestamp; NULL where that is impossible."""
        if kind not in set(Type):
            fix = "Use boolean, integer, real, text, date or timestamp."
            raise refusal(None, "cast does not know this type.", fix)
        return _apply(f"to_{kind}", self)

    # Aggregates

    def filter(self, condition: ChainExpression) -> ChainExpression:
        """An aggregate of only the rows for which a condition is true: ``mean("age").filter(col("smoker"))``."""
        if not isinstance(self.term, AggregateTerm) or self.term.condition is not None:
            rule = "filter belongs to an aggregate, once."
            raise refusal(None, rule, "Write mean('age').filter(col('smoker')); where() chooses rows for all.")
        if not isinstance(condition, ChainExpression) or aggregates_in(condition.term):
            raise refusal(None, "filter takes a condition on rows.", "Write mean('age').filter(col('smoker')).")
        return ChainExpression(replace(self.term, condition=condition.term), self.name)

    # Order

    def desc(self) -> DescendingOrder:
        """A descending order, for ``order_by``."""
        return DescendingOrder(self)


@dataclass(frozen=True, slots=True, eq=False)
class DescendingOrder:
    """An expression to order by, in descending order."""

    expression: ChainExpression


@dataclass(frozen=True, slots=True, eq=False)
class Case(ChainExpression):
    """The value of the first condition that is true, else NULL or the value of ``otherwise``."""

    def when(self, condition: ChainExpression) -> OpenCase:
        """Another condition, which counts if no condition before it was true."""
        return OpenCase(condition, _branches_of(self))

    def otherwise(self, value: Operand) -> ChainExpression:
        """The value where no condition is true."""
        return ChainExpression(apply("case", *_branches_of(self), _as_term(value)))


@dataclass(frozen=True, slots=True, eq=False)
class OpenCase:
    """A condition without its ``then``."""

    condition: ChainExpression
    before: tuple[Term, ...] = ()

    def then(self, value: Operand) -> Case:
        """The value where the condition is true."""
        return Case(apply("case", *self.before, _as_term(self.condition), _as_term(value), Constant(None)))


def _branches_of(case: Case) -> tuple[Term, ...]:
    arguments: Any = case.term
    return tuple(arguments.arguments[:-1])


def _as_term(value: Operand) -> Term:
    return value.term if isinstance(value, ChainExpression) else Constant(read_python_value(value))


def _apply(function: str, *operands: Operand) -> ChainExpression:
    return ChainExpression(apply(function, *(_as_term(operand) for operand in operands)))


def as_expression(value: Operand) -> ChainExpression:
    """A value as an expression, where a column is expected. A text is the name of a column."""
    if isinstance(value, str):
        return col(value)
    if isinstance(value, ChainExpression):
        return value
    kind = type(value).__name__
    raise refusal(
        None, f"A {kind} is not a column.", "Give the name of a column, or an expression like col('age') / 10."
    )


def col(name: str) -> ChainExpression:
    """A column of the table, or, where the answer is ordered or filtered, an output by its name."""
    if not isinstance(name, str):
        raise refusal(None, "The name of a column must be a text.", "Write col('age').")
    return ChainExpression(NameTerm(name))


def lit(value: object) -> ChainExpression:
    """A constant."""
    return ChainExpression(Constant(read_python_value(value)))


def when(condition: ChainExpression) -> OpenCase:
    """The beginning of a case distinction: ``when(col("age") < 18).then("young").otherwise("grown")``."""
    return OpenCase(condition)
