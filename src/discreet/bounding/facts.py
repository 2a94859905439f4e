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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial, reduce
from itertools import product
from math import ceil, floor, prod
from typing import Protocol, TypeAlias, assert_never

from discreet.bounding.elementary_facts import ELEMENTARY_RULES
from discreet.bounding.lengths import length_of_call, length_of_literal
from discreet.bounding.ranges import (
    ExpressionRanges,
    Range,
    find_ranges,
    merge_ranges,
    narrow_facts,
    range_of_extreme,
)
from discreet.bounding.rounded_keys import facts_of_quotient, facts_of_rounding, list_steps
from discreet.bounding.time_facts import facts_of_date_diff, facts_of_date_trunc, facts_of_part, facts_of_time_cast
from discreet.errors import InternalError
from discreet.exact import decimal
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import MAX_KEYS, ColumnFacts
from discreet.plan.evaluate import evaluate, settle
from discreet.plan.expressions import Call, Column, Expression, Literal, ReleasedValue, find_columns, walk
from discreet.plan.magnitude import BUCKETS, LARGEST, magnitude
from discreet.plan.times import to_days
from discreet.plan.types import INTEGER_MAX, INTEGER_MIN, Type, Value, sort_values

NOTHING = ColumnFacts()
# The largest number of combinations of keys over which a function is tabulated.
MAX_IMAGE = 10_000
# A bound on the relative rounding error of a few operations on doubles, with much room.
_ROUNDING = Fraction(1, 10**9)
# The most steps between two bounds for the sake of bounds that are no whole numbers.
MOST_STEPS = 1 << 30

Rule: TypeAlias = Callable[[Call, tuple[ColumnFacts, ...]], ColumnFacts]


class Facts(Protocol):
    """Gives the facts of columns. Members: ``Catalog`` and ``stability.RelationFacts``."""

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
    if call.function not in CHOICES or call.type is not Type.REAL:
        return tuple(found)
    return tuple(_as_real(fact) if part.type is Type.INTEGER else fact for part, fact in zip(call.arguments, found))


# Functions that yield one of their arguments. Among reals an integer becomes a double.
CHOICES = frozenset({"least", "greatest", "clamp", "case", "coalesce"})


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


def _make_interval(
    low: Fraction | None, high: Fraction | None, *, step: Fraction | None, nullable: bool
) -> ColumnFacts:
    """The facts of a result that lies between two bounds. Without both bounds, only nullability is known."""
    if low is None or high is None:
        return ColumnFacts(nullable=nullable)
    return ColumnFacts(nullable=nullable, low=low, high=high, resolution=step)


def _can_be_null(arguments: tuple[ColumnFacts, ...]) -> bool:
    return any(fact.nullable for fact in arguments)


def _ends_of(fact: ColumnFacts) -> tuple[Fraction, Fraction] | None:
    return None if fact.low is None or fact.high is None else (fact.low, fact.high)


def _common_step(arguments: tuple[ColumnFacts, ...]) -> Fraction | None:
    """The coarsest step that divides the steps of all arguments; None where an argument has no step."""
    return _gcd_of([fact.resolution for fact in arguments])


def _gcd_of(steps: Sequence[Fraction | None]) -> Fraction | None:
    known = [step for step in steps if step is not None]
    return reduce(_gcd, known) if len(known) == len(steps) else None


def _gcd(a: Fraction, b: Fraction) -> Fraction:
    while b:
        a, b = b, a - (a // b) * b
    return a


def _make_arithmetic_rule(combine: Callable[[Fraction, Fraction], Fraction]) -> Rule:
    """A rule for arithmetic: its bounds are the extremes of the four corners. Integers may overflow to NULL."""

    def rule(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
        left, right = (_ends_of(fact) for fact in arguments)
        if left is None or right is None:
            return NOTHING
        corners = [combine(a, b) for a in left for b in right]
        overflow = call.type is Type.INTEGER and max(map(abs, corners)) >= 2**63
        step = _common_step(arguments) if call.function != "multiply" else _product_step(arguments)
        nullable = _can_be_null(arguments) or overflow
        return _make_interval(min(corners), max(corners), step=step, nullable=nullable)

    return rule


def _product_step(arguments: tuple[ColumnFacts, ...]) -> Fraction | None:
    """The step of a product: the product of the steps."""
    left, right = (fact.resolution for fact in arguments)
    return None if left is None or right is None else left * right


def _facts_of_divide(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
    top, bottom = (_ends_of(fact) for fact in arguments)
    if top is None or bottom is None or bottom[0] <= 0 <= bottom[1]:
        return NOTHING
    corners = [a / b for a in top for b in bottom]
    return _make_interval(min(corners), max(corners), step=None, nullable=_can_be_null(arguments))


def _facts_of_negate(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
    (only,) = arguments
    ends = _ends_of(only)
    if ends is None:
        return NOTHING
    return _make_interval(-ends[1], -ends[0], step=only.resolution, nullable=only.nullable or ends[0] <= -(2**63))


def _facts_of_abs(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
    (only,) = arguments
    ends = _ends_of(only)
    if ends is None:
        return NOTHING
    low = Fraction(0) if ends[0] <= 0 <= ends[1] else min(map(abs, ends))
    return _make_interval(low, max(map(abs, ends)), step=only.resolution, nullable=only.nullable or ends[0] <= -(2**63))


def _facts_of_clamp(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
    value, low, high = arguments
    if low.low is None or high.high is None or low.low > high.high:
        return NOTHING
    # The analyst's own bounds, also where they are wider than those that were declared or that limits suggest.
    found = Range(low.low, high.high)
    step = include_ends(value.resolution, found)
    return _make_interval(found.low, found.high, step=step, nullable=value.nullable)


def include_ends(step: Fraction | None, ends: Range) -> Fraction | None:
    """A step of which the ends of a range are multiples, too: whole numbers that are clamped to 0.5 need halves.

    None where that would be too fine, so that a default step is taken.
    """
    if step is None or ends.low is None or ends.high is None:
        return None
    finer = _gcd(_gcd(step, abs(ends.low)), abs(ends.high))
    return finer if (ends.high - ends.low) / finer <= MOST_STEPS else None


def _facts_of_bin(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
    """The bins between the declared bounds are public keys."""
    value, width = arguments
    ends = _ends_of(value)
    if ends is None or width.low is None or width.low <= 0 or (ends[1] - ends[0]) / width.low > MAX_KEYS:
        return NOTHING
    edges = [ends[0] + i * width.low for i in range(floor((ends[1] - ends[0]) / width.low) + 1)] + [ends[1]]
    whole = call.type is Type.INTEGER
    column = Column("", "", call.type)
    bin_of = Call("bin", (column, call.arguments[1]), call.type)
    places = [floor(edge) if whole else float(edge) for edge in edges]
    keys = sorted({v for place in places if (v := evaluate(bin_of, {column: place})) is not None})
    if not keys:
        return NOTHING  # the bins lie outside of 64 bits
    low, high = (Fraction(key) if whole else decimal(key) for key in (keys[0], keys[-1]))  # type: ignore[arg-type]  # numbers
    lost = whole and low > ends[0]  # the lowest bin begins below 64 bits, so that its values have none
    nullable = value.nullable or lost
    all_keys: tuple[Value, ...] = (*keys, None) if nullable else tuple(keys)
    return ColumnFacts(nullable=nullable, low=low, high=high, keys=all_keys, resolution=width.low if whole else None)


def _facts_of_magnitude(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
    """All buckets between the bounds are public keys. Bounds of reals are widened a little, because doubles round."""
    (only,) = arguments
    whole = call.type is Type.INTEGER
    lowest, highest = (INTEGER_MIN, INTEGER_MAX) if whole else (-LARGEST, LARGEST)
    low, high = _ends_of(only) or (Fraction(lowest), Fraction(highest))
    room = Fraction(0) if whole else _ROUNDING
    wider = (low - room * abs(low), high + room * abs(high))
    first, last = (max(Fraction(lowest), min(Fraction(highest), end)) for end in wider)
    least, most = (ceil(first), floor(last)) if whole else (float(first), float(last))
    kept = tuple(bucket for bucket in BUCKETS[call.type] if magnitude(least) <= bucket <= magnitude(most))
    if not kept:
        return NOTHING  # no whole number lies between the bounds
    return ColumnFacts(
        nullable=only.nullable,
        low=Fraction(kept[0]),
        high=Fraction(kept[-1]),
        keys=(*kept, None) if only.nullable else kept,
        resolution=Fraction(1) if whole else None,
    )


def _facts_of_sign(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
    return ColumnFacts(nullable=_can_be_null(arguments), low=Fraction(-1), high=Fraction(1), resolution=Fraction(1))


def _facts_of_condition(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
    """A condition is true, false or NULL, so its keys are always public."""
    nullable = call.function != "is_null" and _can_be_null(arguments)
    return ColumnFacts(nullable=nullable, keys=(False, True, None) if nullable else (False, True))


def _hull(facts: tuple[ColumnFacts, ...], kind: Type, *, nullable: bool) -> ColumnFacts:
    """The facts of a value of a type that is one of several, where it is not known which.

    Keys become values of that type: 1 among reals is 1.0, and a date among times its midnight.
    """
    keys: tuple[Value, ...] | None = None
    if all(fact.keys is not None for fact in facts):
        union = {settle(key, kind): None for fact in facts for key in fact.keys or ()}
        keys = sort_values(union)
    known = [_ends_of(fact) for fact in facts]
    low = high = None
    if all(ends is not None for ends in known):
        low, high = min(e[0] for e in known if e), max(e[1] for e in known if e)
    return ColumnFacts(nullable=nullable, low=low, high=high, keys=keys, resolution=_common_step(facts))


def _facts_of_case(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
    results = _drop_null_literals((*arguments[1::2], arguments[-1]), (*call.arguments[1::2], call.arguments[-1]))
    return _hull(results, call.type, nullable=any(fact.nullable for fact in (*arguments[1::2], arguments[-1])))


def _facts_of_coalesce(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
    results = _drop_null_literals(arguments, call.arguments)
    return _hull(results, call.type, nullable=all(fact.nullable for fact in arguments))


def _drop_null_literals(facts: tuple[ColumnFacts, ...], sources: tuple[Expression, ...]) -> tuple[ColumnFacts, ...]:
    """The facts without those of NULL literals, which add NULL to the keys and nothing else.

    If there are only NULL literals, all facts stay.
    """
    real = tuple(f for f, s in zip(facts, sources) if not (isinstance(s, Literal) and s.value is None))
    null = any(isinstance(s, Literal) and s.value is None for s in sources)
    if not real:
        return facts
    if not null:
        return real
    return tuple(
        replace(f, keys=None if f.keys is None else (*(k for k in f.keys if k is not None), None)) for f in real
    )


def _facts_of_extreme(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
    found = range_of_extreme(arguments, least=call.function == "least")
    nullable = all(fact.nullable for fact in arguments)
    steps = [fact.resolution for fact in arguments if not (fact.constant and fact.low == fact.high)]
    step = _gcd_of(steps) if steps else _common_step(arguments)
    return ColumnFacts(nullable=nullable, low=found.low, high=found.high, resolution=include_ends(step, found))


def _facts_of_cast(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
    (only,) = arguments
    source = call.arguments[0].type
    if source is Type.BOOLEAN:
        return ColumnFacts(nullable=only.nullable, low=Fraction(0), high=Fraction(1), resolution=Fraction(1))
    ends = _ends_of(only)
    if ends is None or not source.is_number:
        return NOTHING
    if call.function == "to_real":
        return _make_interval(*ends, step=only.resolution, nullable=only.nullable)
    low, high = Fraction(floor(ends[0])), Fraction(ceil(ends[1]))
    overflow = low < -(2**63) or high >= 2**63
    known = _make_interval(low, high, step=Fraction(1), nullable=only.nullable or overflow)
    return list_steps(known, Type.INTEGER) if source is Type.REAL else known


RULES: Mapping[str, Rule] = {
    "add": _make_arithmetic_rule(lambda a, b: a + b),
    "subtract": _make_arithmetic_rule(lambda a, b: a - b),
    "multiply": _make_arithmetic_rule(lambda a, b: a * b),
    "divide": _facts_of_divide,
    "negate": _facts_of_negate,
    "abs": _facts_of_abs,
    "sign": _facts_of_sign,
    **dict.fromkeys(("floor", "ceil", "trunc", "round"), facts_of_rounding),
    "quotient": facts_of_quotient,
    **ELEMENTARY_RULES,
    "clamp": _facts_of_clamp,
    "bin": _facts_of_bin,
    "magnitude": _facts_of_magnitude,
    "least": _facts_of_extreme,
    "greatest": _facts_of_extreme,
    **dict.fromkeys(
        ("equal", "unequal", "less", "at_most", "greater", "at_least", "in", "is_null", "not"), _facts_of_condition
    ),
    **dict.fromkeys(
        ("and", "or", "starts_with", "ends_with", "contains", "like", "ilike", "to_boolean"), _facts_of_condition
    ),
    "case": _facts_of_case,
    "coalesce": _facts_of_coalesce,
    "to_integer": _facts_of_cast,
    "to_real": _facts_of_cast,
    "part": facts_of_part,
    "date_trunc": facts_of_date_trunc,
    "date_diff": facts_of_date_diff,
    "to_date": facts_of_time_cast,
    "to_timestamp": facts_of_time_cast,
}
