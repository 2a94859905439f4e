"""What is known of an expression's values without reading the data.

Each function has one small rule that gives the facts of its result from the facts of its arguments. Of a function
without a rule nothing is known. A rule may forget a fact, but it must not state one that could be false: tests run
every rule against random rows.

Privacy: bounds that are derived here become sensitivities only after the values are clamped to them in integers. So a
wrong bound would bias an answer, but it could never break a guarantee. Nullability and keys are not trusted either: the
plan enforces them (NULL counts as no value, and rows outside the keys are dropped).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product
from math import prod
from typing import Protocol, assert_never

from discreet.bounding.arithmetic_facts import ARITHMETIC_RULES
from discreet.bounding.choice_facts import CHOICE_RULES
from discreet.bounding.elementary_facts import ELEMENTARY_RULES, FactsRule
from discreet.bounding.lengths import length_of_call, length_of_literal
from discreet.bounding.ranges import (
    ExpressionRanges,
    find_ranges,
    merge_ranges,
    narrow_facts,
)
from discreet.bounding.rounded_keys import facts_of_bin, facts_of_magnitude, facts_of_quotient, facts_of_rounding
from discreet.bounding.time_facts import facts_of_date_diff, facts_of_date_trunc, facts_of_part, facts_of_time_cast
from discreet.bounding.value_steps import can_be_null
from discreet.errors import InternalError
from discreet.exact import decimal
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import ColumnFacts
from discreet.plan.evaluate import evaluate
from discreet.plan.expressions import Call, Column, Expression, Literal, ReleasedValue, find_columns, walk
from discreet.plan.times import to_days
from discreet.plan.types import Type, Value, sort_values

NOTHING = ColumnFacts()
# The largest number of combinations of keys over which a function is tabulated.
MAX_IMAGE = 10_000


class Facts(Protocol):
    """Gives the facts of columns. Members: ``Catalog`` and ``relation_facts.RelationFacts``."""

    def find_facts(self, column: Column) -> ColumnFacts:
        """The facts of a column."""
        ...


def facts_of(expression: Expression, catalog: Facts) -> ColumnFacts:
    """The facts of an expression, computed from those of its parts."""
    match expression:
        case Column():
            return catalog.find_facts(expression)
        case Literal():
            return _facts_of_literal(expression)
        case ReleasedValue():
            return NOTHING
        case Call():
            arguments = _facts_of_arguments(expression, catalog)
            # Too long a text is refused here, before it is evaluated for public keys.
            length = length_of_call(expression, [_length_of(a, f) for a, f in zip(expression.arguments, arguments)])
            known = RULES.get(expression.function, _know_nothing)(expression, arguments)
            length_of_text = length if expression.type is Type.TEXT else None
            known = replace(known, max_length=length_of_text, max_values=_count_values(expression, arguments))
            return _add_keys(expression, arguments, known, catalog)
        case _:
            assert_never(expression)


def _facts_of_arguments(call: Call, catalog: Facts) -> tuple[ColumnFacts, ...]:
    """The facts of the arguments. A result of CASE lies where its condition is true and no earlier one is."""
    if call.function != "case":
        found = [facts_of(argument, catalog) for argument in call.arguments]
    else:
        found = _facts_of_branches(call, catalog)
    if call.function not in CHOICE_RULES or call.type is not Type.REAL:
        return tuple(found)
    # Among reals an integer becomes a double.
    return tuple(_as_real(fact) if part.type is Type.INTEGER else fact for part, fact in zip(call.arguments, found))


def _as_real(fact: ColumnFacts) -> ColumnFacts:
    """The facts of an integer as a double, which has another value beyond 2^53. Rounding keeps the order of values."""
    low, high = (None if end is None else decimal(float(end)) for end in (fact.low, fact.high))
    return replace(fact, low=low, high=high)


def _facts_of_branches(call: Call, catalog: Facts) -> list[ColumnFacts]:
    """The facts of the arguments of CASE, in their order."""
    *branches, otherwise = call.arguments
    found: list[ColumnFacts] = []
    here: ExpressionRanges = {}
    for condition, result in zip(branches[::2], branches[1::2]):
        inside = NarrowedFacts(catalog, here)
        true = find_ranges(condition, partial(facts_of, catalog=inside), holds=True)
        found += [facts_of(condition, catalog), _find_narrowed(result, catalog, merge_ranges(here, true))]
        here = merge_ranges(here, find_ranges(condition, partial(facts_of, catalog=inside), holds=False))
    return [*found, _find_narrowed(otherwise, catalog, here)]


def _find_narrowed(expression: Expression, catalog: Facts, ranges: ExpressionRanges) -> ColumnFacts:
    """The facts of an expression where some columns, or the expression itself, lie in narrower ranges."""
    return narrow_facts(facts_of(expression, NarrowedFacts(catalog, ranges)), ranges.get(expression))


@dataclass(frozen=True, slots=True)
class NarrowedFacts:
    """The facts of columns where conditions have narrowed their ranges."""

    facts: Facts
    ranges: ExpressionRanges

    def find_facts(self, column: Column) -> ColumnFacts:
        """The facts of a column."""
        return narrow_facts(self.facts.find_facts(column), self.ranges.get(column))


def narrow_columns(
    columns: Mapping[Column, ColumnFacts], condition: Expression, facts: Facts
) -> Mapping[Column, ColumnFacts]:
    """The facts of columns in the rows for which a condition is true."""
    ranges = find_ranges(condition, partial(facts_of, catalog=facts), holds=True)
    return {column: narrow_facts(known, ranges.get(column)) for column, known in columns.items()}


def _length_of(expression: Expression, facts: ColumnFacts) -> int:
    """The length of an argument; 0 if it is no text. A text without a length would be a text without a limit."""
    if expression.type is not Type.TEXT:
        return 0
    if facts.max_length is None:
        raise InternalError(f"The text {expression} has no length.")
    return facts.max_length


def _facts_of_literal(expression: Literal) -> ColumnFacts:
    value = expression.value
    keys = (value,)
    if isinstance(value, dt.date):
        return ColumnFacts(nullable=False, low=to_days(value), high=to_days(value), keys=keys, constant=True)
    if value is None or isinstance(value, bool) or not isinstance(value, int | float):
        length = length_of_literal(expression) if expression.type is Type.TEXT else None
        return ColumnFacts(nullable=value is None, keys=keys, constant=True, max_length=length)
    exact = Fraction(value) if isinstance(value, int) else decimal(value)
    step = Fraction(1) if isinstance(value, int) else None
    return ColumnFacts(nullable=False, low=exact, high=exact, keys=keys, resolution=step, constant=True)


def _add_keys(call: Call, arguments: tuple[ColumnFacts, ...], known: ColumnFacts, catalog: Facts) -> ColumnFacts:
    """Public keys and constancy of a call.

    A call has public keys if all columns in it, or all its arguments, have public keys: its values over all
    combinations of these. A call is constant for a unit if all its arguments are.
    """
    constant = all(fact.constant for fact in arguments)
    keys = known.keys
    if keys is None:
        keys = _image_of(call, catalog)
    if keys is None:
        keys = _tabulate_values(call, arguments)
    return replace(known, keys=keys, constant=constant)


def _count_values(call: Call, arguments: tuple[ColumnFacts, ...]) -> int | None:
    """How many distinct values of a call one unit has, by what is declared of its arguments; None where it is not.

    A function has no more values than there are combinations of arguments. CASE and COALESCE show one of several
    arguments, so those of all add up, and NULL is no value.
    """
    if all(fact.constant for fact in arguments):
        return None  # one value in each group, which is said by ``constant``
    if call.function == "case":
        shown = (*arguments[1:-1:2], arguments[-1])
    elif call.function == "coalesce":
        shown = arguments
    else:
        shown = ()
    counts = [1 if fact.constant else fact.max_values for fact in shown or arguments]
    known = [count for count in counts if count is not None]
    if len(known) < len(counts):
        return None
    return max(1, sum(n for n, fact in zip(known, shown) if fact.keys != (None,))) if shown else prod(known)


def _tabulate_values(call: Call, arguments: tuple[ColumnFacts, ...]) -> tuple[Value, ...] | None:
    """The values of a call over the public keys of its arguments; None where an argument has no public keys."""
    size = 1
    for fact in arguments:
        if fact.keys is None:
            return None
        size *= len(fact.keys)
    if size > MAX_IMAGE:
        return None
    given = [
        tuple(Literal(key, argument.type) for key in fact.keys or ())
        for argument, fact in zip(call.arguments, arguments)
    ]
    values = {evaluate(Call(call.function, literals, call.type), {}): None for literals in product(*given)}
    return sort_values(values)


def _image_of(call: Call, catalog: Facts) -> tuple[Value, ...] | None:
    """The values of a call over the public keys of the columns in it; None where a column has no public keys."""
    inputs = sorted(find_columns(call), key=str)
    domains = [catalog.find_facts(column).keys for column in inputs]
    size = 1
    for domain in domains:
        if domain is None:
            return None
        size *= len(domain)
    if size > MAX_IMAGE or any(isinstance(part, ReleasedValue) for part in walk(call)):
        return None
    rows: list[dict[Column | ReleasedValue, Value]] = [{}]
    for column, domain in zip(inputs, domains):
        rows = [{**row, column: value} for row in rows for value in domain or ()]
    values = {evaluate(call, row): None for row in rows}
    return sort_values(values)


def _know_nothing(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
    return NOTHING


def _facts_of_condition(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
    """A condition is true, false or NULL, so its keys are always public."""
    nullable = call.function != "is_null" and can_be_null(arguments)
    return ColumnFacts(nullable=nullable, keys=(False, True, None) if nullable else (False, True))


RULES: Mapping[str, FactsRule] = {
    **ARITHMETIC_RULES,
    **ELEMENTARY_RULES,
    **CHOICE_RULES,
    **dict.fromkeys(("floor", "ceil", "trunc", "round"), facts_of_rounding),
    "quotient": facts_of_quotient,
    "bin": facts_of_bin,
    "magnitude": facts_of_magnitude,
    **dict.fromkeys(
        ("equal", "unequal", "less", "at_most", "greater", "at_least", "in", "is_null", "not"), _facts_of_condition
    ),
    **dict.fromkeys(
        ("and", "or", "starts_with", "ends_with", "contains", "like", "ilike", "to_boolean"), _facts_of_condition
    ),
    "part": facts_of_part,
    "date_trunc": facts_of_date_trunc,
    "date_diff": facts_of_date_diff,
    "to_date": facts_of_time_cast,
    "to_timestamp": facts_of_time_cast,
}
