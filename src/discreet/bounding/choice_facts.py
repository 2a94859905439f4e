"""What is known of functions that yield one of their arguments: CLAMP, LEAST, GREATEST, CASE and COALESCE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from discreet.bounding.elementary_facts import FactsRule
from discreet.bounding.ranges import Range, range_of_extreme
from discreet.bounding.value_steps import (
    ends_of,
    find_common_divisor,
    find_common_step,
    include_ends,
    make_interval,
)
from discreet.plan.catalog import ColumnFacts
from discreet.plan.evaluate import settle
from discreet.plan.expressions import Call, Expression, Literal
from discreet.plan.types import Type, Value, sort_values


def _facts_of_clamp(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
    value, low, high = arguments
    if low.low is None or high.high is None or low.low > high.high:
        return ColumnFacts()
    # The analyst's own bounds, also where they are wider than those that were declared or that limits suggest.
    found = Range(low.low, high.high)
    step = include_ends(value.resolution, found)
    return make_interval(found.low, found.high, step=step, nullable=value.nullable)


def _facts_of_extreme(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
    found = range_of_extreme(arguments, least=call.function == "least")
    nullable = all(fact.nullable for fact in arguments)
    steps = [fact.resolution for fact in arguments if not (fact.constant and fact.low == fact.high)]
    step = find_common_divisor(steps) if steps else find_common_step(arguments)
    return ColumnFacts(nullable=nullable, low=found.low, high=found.high, resolution=include_ends(step, found))


def _facts_of_case(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
    results = _drop_null_literals((*arguments[1::2], arguments[-1]), (*call.arguments[1::2], call.arguments[-1]))
    return _hull(results, call.type, nullable=any(fact.nullable for fact in (*arguments[1::2], arguments[-1])))


def _facts_of_coalesce(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
    results = _drop_null_literals(arguments, call.arguments)
    return _hull(results, call.type, nullable=all(fact.nullable for fact in arguments))


def _hull(facts: tuple[ColumnFacts, ...], kind: Type, *, nullable: bool) -> ColumnFacts:
    """The facts of a value of a type that is one of several, where it is not known which.

    Keys become values of that type: 1 among reals is 1.0, and a date among times its midnight.
    """
    keys: tuple[Value, ...] | None = None
    if all(fact.keys is not None for fact in facts):
        union = {settle(key, kind): None for fact in facts for key in fact.keys or ()}
        keys = sort_values(union)
    known = [ends_of(fact) for fact in facts]
    low = high = None
    if all(ends is not None for ends in known):
        low, high = min(e[0] for e in known if e), max(e[1] for e in known if e)
    return ColumnFacts(nullable=nullable, low=low, high=high, keys=keys, resolution=find_common_step(facts))


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


CHOICE_RULES: Mapping[str, FactsRule] = {
    "clamp": _facts_of_clamp,
    "least": _facts_of_extreme,
    "greatest": _facts_of_extreme,
    "case": _facts_of_case,
    "coalesce": _facts_of_coalesce,
}
