"""What is known of sums, products, quotients, signs and casts, from what is known of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import ceil, floor

from discreet.bounding.elementary_facts import FactsRule
from discreet.bounding.rounded_keys import list_steps
from discreet.bounding.value_steps import can_be_null, ends_of, find_common_step, make_interval
from discreet.plan.catalog import ColumnFacts
from discreet.plan.expressions import Call
from discreet.plan.types import Type


def _make_arithmetic_rule(combine: Callable[[Fraction, Fraction], Fraction]) -> FactsRule:
    """A rule for arithmetic: its bounds are the extremes of the four corners. Integers may overflow to NULL."""

    def rule(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
        left, right = (ends_of(fact) for fact in arguments)
        if left is None or right is None:
            return ColumnFacts()
        corners = [combine(a, b) for a in left for b in right]
        overflow = call.type is Type.INTEGER and max(map(abs, corners)) >= 2**63
        step = find_common_step(arguments) if call.function != "multiply" else _product_step(arguments)
        nullable = can_be_null(arguments) or overflow
        return make_interval(min(corners), max(corners), step=step, nullable=nullable)

    return rule


def _product_step(arguments: tuple[ColumnFacts, ...]) -> Fraction | None:
    """The step of a product: the product of the steps."""
    left, right = (fact.resolution for fact in arguments)
    return None if left is None or right is None else left * right


def _facts_of_divide(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
    top, bottom = (ends_of(fact) for fact in arguments)
    if top is None or bottom is None or bottom[0] <= 0 <= bottom[1]:
        return ColumnFacts()
    corners = [a / b for a in top for b in bottom]
    return make_interval(min(corners), max(corners), step=None, nullable=can_be_null(arguments))


def _facts_of_negate(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
    (only,) = arguments
    ends = ends_of(only)
    if ends is None:
        return ColumnFacts()
    return make_interval(-ends[1], -ends[0], step=only.resolution, nullable=only.nullable or ends[0] <= -(2**63))


def _facts_of_abs(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
    (only,) = arguments
    ends = ends_of(only)
    if ends is None:
        return ColumnFacts()
    low = Fraction(0) if ends[0] <= 0 <= ends[1] else min(map(abs, ends))
    return make_interval(low, max(map(abs, ends)), step=only.resolution, nullable=only.nullable or ends[0] <= -(2**63))


def _facts_of_sign(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
    return ColumnFacts(nullable=can_be_null(arguments), low=Fraction(-1), high=Fraction(1), resolution=Fraction(1))


def _facts_of_cast(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
    (only,) = arguments
    source = call.arguments[0].type
    if source is Type.BOOLEAN:
        return ColumnFacts(nullable=only.nullable, low=Fraction(0), high=Fraction(1), resolution=Fraction(1))
    ends = ends_of(only)
    if ends is None or not source.is_number:
        return ColumnFacts()
    if call.function == "to_real":
        return make_interval(*ends, step=only.resolution, nullable=only.nullable)
    low, high = Fraction(floor(ends[0])), Fraction(ceil(ends[1]))
    overflow = low < -(2**63) or high >= 2**63
    known = make_interval(low, high, step=Fraction(1), nullable=only.nullable or overflow)
    return list_steps(known, Type.INTEGER) if source is Type.REAL else known


ARITHMETIC_RULES: Mapping[str, FactsRule] = {
    "add": _make_arithmetic_rule(lambda a, b: a + b),
    "subtract": _make_arithmetic_rule(lambda a, b: a - b),
    "multiply": _make_arithmetic_rule(lambda a, b: a * b),
    "divide": _facts_of_divide,
    "negate": _facts_of_negate,
    "abs": _facts_of_abs,
    "sign": _facts_of_sign,
    "to_integer": _facts_of_cast,
    "to_real": _facts_of_cast,
}
