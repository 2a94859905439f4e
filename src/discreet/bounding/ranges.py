"""Ranges: between which bounds an expression lies, where conditions, LEAST, GREATEST or CASE narrow it.

A range is a claim about every value that is not NULL. Either end may be unknown. A real stands for the decimal that it
prints as, which keeps the order of doubles, so a comparison of doubles bounds their decimals. A time stands for its
days since 1970.

Two states of a condition are told apart, because SQL has three truth values: it is *not false* (true or NULL) or *not
true* (false or NULL). WHERE and a branch of CASE need a true condition, which is not false; a later branch needs that
all earlier conditions are not true. A comparison with something that is never NULL is NULL only where the compared
expression is NULL, and of NULL a range claims nothing. So both states bound the expression.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor
from typing import TypeAlias

from discreet.late_dataclass import dataclass
from discreet.plan.catalog import ColumnFacts
from discreet.plan.expressions import Call, Expression, Literal
from discreet.plan.times import STEPS
from discreet.plan.types import Type

# Integers and reals are compared as doubles. Below this size every integer is one, so that such a comparison is exact.
EXACT_AS_DOUBLE = Fraction(1 << 53)
# The steps in which the values of a type lie; reals have none.
_STEPS = {Type.INTEGER: Fraction(1), **STEPS}

FactsOf: TypeAlias = Callable[[Expression], ColumnFacts]


@dataclass(frozen=True, slots=True)
class Range:
    """The least and the greatest value that is possible; None where that is not known."""

    low: Fraction | None = None
    high: Fraction | None = None

    def narrow(self, other: Range) -> Range:
        """What lies in both. Where nothing would, this range stays: then the conditions leave no values anyway."""
        low = max((end for end in (self.low, other.low) if end is not None), default=None)
        high = min((end for end in (self.high, other.high) if end is not None), default=None)
        return self if low is not None and high is not None and low > high else Range(low, high)


ExpressionRanges: TypeAlias = Mapping[Expression, Range]

# For each comparison: the one that holds where it is false, and the one with its sides exchanged.
_OPPOSITE = {"less": "at_least", "at_least": "less", "greater": "at_most", "at_most": "greater", "unequal": "equal"}
_MIRRORED = {"less": "greater", "greater": "less", "at_most": "at_least", "at_least": "at_most", "equal": "equal"}


def narrow_facts(facts: ColumnFacts, found: Range | None) -> ColumnFacts:
    """The facts of an expression whose range is known to be narrower."""
    if found is None:
        return facts
    both = Range(facts.low, facts.high).narrow(found)
    return replace(facts, low=both.low, high=both.high)


def find_ranges(condition: Expression, facts_of: FactsOf, *, holds: bool) -> ExpressionRanges:
    """The ranges that follow where a condition is not false (``holds``), or not true."""
    if not isinstance(condition, Call):
        return {}
    function, arguments = condition.function, condition.arguments
    if function == "not":
        return find_ranges(arguments[0], facts_of, holds=not holds)
    if function == ("and" if holds else "or"):
        return merge_ranges(*(find_ranges(part, facts_of, holds=holds) for part in arguments))
    if function == "in" and holds:
        return _find_listed(arguments)
    if not holds:
        function = _OPPOSITE.get(function, "")
    if function not in _MIRRORED:
        return {}
    left, right = arguments
    ours = _compare(function, left, right, facts_of)
    theirs = _compare(_MIRRORED[function], right, left, facts_of)
    return merge_ranges(*(found for found in (ours, theirs) if found))


def merge_ranges(*several: ExpressionRanges) -> ExpressionRanges:
    """What follows from all of them together."""
    found: dict[Expression, Range] = {}
    for ranges in several:
        for expression, one in ranges.items():
            found[expression] = found.get(expression, Range()).narrow(one)
    return found


def _compare(function: str, compared: Expression, other: Expression, facts_of: FactsOf) -> ExpressionRanges:
    """What a comparison that is not false says of its first side."""
    if isinstance(compared, Literal) or not _are_comparable(compared.type, other.type):
        return {}
    facts = facts_of(other)
    if facts.nullable:
        return {}
    mixed = compared.type is not other.type and compared.type.is_number
    low = facts.low if function in ("greater", "at_least", "equal") else None
    high = facts.high if function in ("less", "at_most", "equal") else None
    if mixed and any(end is not None and abs(end) >= EXACT_AS_DOUBLE for end in (low, high)):
        return {}
    step = _STEPS.get(compared.type)
    if step is not None:
        low = None if low is None else (floor(low / step) + 1 if function == "greater" else ceil(low / step)) * step
        high = None if high is None else (ceil(high / step) - 1 if function == "less" else floor(high / step)) * step
    return {} if low is None and high is None else {compared: Range(low, high)}


def _are_comparable(one: Type, other: Type) -> bool:
    return (one.is_number and other.is_number) or (one.is_time and other.is_time)


def _find_listed(arguments: tuple[Expression, ...]) -> ExpressionRanges:
    """X IN (1, 2, 5): x lies between the least and the greatest of them. A NULL in the list would hide other values."""
    compared, *members = arguments
    if not compared.type.is_number or isinstance(compared, Literal):
        return {}
    values = [member.value if isinstance(member, Literal) else None for member in members]
    numbers = [Fraction(str(value)) for value in values if isinstance(value, int | float)]
    mixed = any(member.type is not compared.type for member in members)
    if len(numbers) < len(values) or (mixed and max(map(abs, numbers)) >= EXACT_AS_DOUBLE):
        return {}
    return {compared: Range(min(numbers), max(numbers))}


def range_of_extreme(arguments: tuple[ColumnFacts, ...], *, least: bool) -> Range:
    """The range of LEAST, or of GREATEST.

    NULLs are passed over, so the result is the least of some arguments, among them all that are never NULL. It is one
    of the arguments, and it is at most each that is never NULL.
    """
    lows, highs = [fact.low for fact in arguments], [fact.high for fact in arguments]
    if not least:
        lows, highs = [None if e is None else -e for e in highs], [None if e is None else -e for e in lows]
    low = None if None in lows else min(end for end in lows if end is not None)
    among = None if None in highs else max(end for end in highs if end is not None)
    sure = (end for end, fact in zip(highs, arguments) if end is not None and not fact.nullable)
    high = min((end for end in (*sure, among) if end is not None), default=None)
    if least:
        return Range(low, high)
    return Range(None if high is None else -high, None if low is None else -low)
