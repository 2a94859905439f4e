"""Conditions where rows are read: as deep as they go, and over values as they are stored.

A condition on columns of one table takes the same rows away below joins, where that does not change whom the other rows
meet: on both sides of an inner join, and on the left side of LEFT, SEMI and ANTI. A look-up counts the rows of its
right side together, so nothing goes below it there, unless no two of these rows have the same key anyway. Caps, windows
and groups stay where they are.

A stored value is a value of the plan under a guard, such as that a date has four digits of a year, and NULL otherwise
(``StoredValue``). Under a comparison with something that is not NULL, a condition is true if and only if the guard and
the same comparison of the stored value are: this is what an engine can test while it reads, from the statistics of a
file, and estimate. AND and OR keep this, and so does NOT above a comparison; everything else is written over guarded
values.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace

from discreet.bounding.contributions import BoundedPlan
from discreet.engines.sql.functions import write_call
from discreet.engines.sql.layers import Layers
from discreet.late_dataclass import dataclass
from discreet.plan.expressions import Call, Column, Expression, Literal, find_columns
from discreet.plan.relations import Join, JoinKind, Relation, Scan, Where, split
from discreet.plan.types import Value

# Calls that are NULL or false where an argument is NULL.
_COMPARISONS = frozenset({"equal", "unequal", "less", "at_most", "greater", "at_least", "in", "like"})
# Orderings, and what they are with their sides exchanged.
_ORDERINGS = {"less": "greater", "at_most": "at_least", "greater": "less", "at_least": "at_most"}


@dataclass(frozen=True, slots=True)
class StoredValue:
    """A column as it is stored. The plan's value is that under ``guard``, NULL otherwise; without a guard it is that.

    ``max_length``: no text that is longer passes the guard, and every other one does. ``compare`` writes an ordering
    of the plan's value and a number over what is stored, where that has another type; it may have no form for it.
    """

    sql: str
    guard: str = ""
    max_length: int | None = None
    compare: Callable[[str, float], str | None] | None = None


def _count_together(relation: Join) -> bool:  # noqa: ARG001  # nothing is known of any join
    return False


def sink_conditions(
    relation: Relation, conditions: Sequence[Expression], unique: Callable[[Join], bool] = _count_together
) -> tuple[Relation, tuple[Expression, ...]]:
    """The relation with conditions directly above its scans, and the conditions that cannot go there.

    ``unique`` says of a look-up whether no key of its right side repeats.
    """
    left = []
    for condition in conditions:
        found = _sink(relation, condition, unique)
        if found is None:
            left.append(condition)
        else:
            relation = found
    return relation, tuple(left)


def _sink(relation: Relation, condition: Expression, unique: Callable[[Join], bool]) -> Relation | None:
    if isinstance(relation, Scan):
        tables = {column.table for column in find_columns(condition)}
        return Where(relation, condition) if tables == {relation.name} else None
    if isinstance(relation, Where):
        below = _sink(relation.source, condition, unique)
        return None if below is None else replace(relation, source=below)
    if not isinstance(relation, Join) or relation.caps is not None:
        return None
    return _sink_into_join(relation, condition, unique)


def _sink_into_join(relation: Join, condition: Expression, unique: Callable[[Join], bool]) -> Relation | None:
    if relation.kind in (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI):
        below = _sink(relation.left, condition, unique)
        if below is not None:
            return replace(relation, left=below)
    if relation.kind is JoinKind.INNER and (not relation.single or unique(relation)):
        below = _sink(relation.right, condition, unique)
        if below is not None:
            return replace(relation, right=below)
    return None


def write_stored(condition: Expression, stored: Mapping[Column, StoredValue], layers: Layers) -> str | None:
    """A condition that is true where the given one is, over stored values; None where there is no such form."""
    if not isinstance(condition, Call):
        return None
    if condition.function in ("and", "or"):
        parts = [write_stored(part, stored, layers) for part in condition.arguments]
        written = [part for part in parts if part is not None]
        return f"({f' {condition.function.upper()} '.join(written)})" if len(written) == len(parts) else None
    if condition.function == "not" and isinstance(condition.arguments[0], Call):
        return _write_comparison(condition.arguments[0], stored, layers, denied=True)
    return _write_comparison(condition, stored, layers, denied=False)


def _write_comparison(
    condition: Call, stored: Mapping[Column, StoredValue], layers: Layers, *, denied: bool
) -> str | None:
    if condition.function not in _COMPARISONS:
        return None
    atoms, guards = [], dict[str, None]()
    for argument in condition.arguments:
        if isinstance(argument, Literal) and argument.value is not None:
            atoms.append(layers.write_literal(argument.value, argument.type))
        elif isinstance(argument, Column) and argument in stored:
            atoms.append(stored[argument].sql)
            if stored[argument].guard and (denied or not _is_short(condition, stored[argument])):
                guards[stored[argument].guard] = None
        else:
            return None
    compared = _write_ordering(condition, stored) or write_call(layers.dialect, condition, atoms)
    return " AND ".join([*(f"({guard})" for guard in guards), f"(NOT {compared})" if denied else f"({compared})"])


def _write_ordering(condition: Call, stored: Mapping[Column, StoredValue]) -> str | None:
    """An ordering of a column and a number by ``StoredValue.compare``; None for all others."""
    if condition.function not in _ORDERINGS:
        return None
    function, (column, number) = condition.function, condition.arguments
    if isinstance(column, Literal):
        function, column, number = _ORDERINGS[function], number, column
    if not isinstance(column, Column) or not isinstance(number, Literal) or not number.type.is_number:
        return None
    compare, value = stored[column].compare, number.value
    return compare(function, value) if compare is not None and isinstance(value, int | float) else None


def find_bare_keys(
    bounded: BoundedPlan, stored: Mapping[Column, StoredValue], tested: Container[Expression]
) -> dict[Column, str]:
    """Columns that need no guard, because they are compared with public keys and read for no more.

    Of units, rows that are in no public group are left out before anything else is done with them (``unit_sums``). If
    every public key passes the guard, and none is NULL, then what does not pass it is equal to none of them, as NULL
    is. ``tested`` are conditions that need no column any more.
    """
    if bounded.unit is None or bounded.domain is None:
        return {}
    arguments = [measure.argument for measure in bounded.measures if measure.argument is not None]
    arguments += [spread.argument for spread in bounded.spreads]
    conditions = [condition for condition in split(bounded.source)[1] if condition not in tested]
    computed = [key for key in bounded.keys if not isinstance(key, Column)]
    others = {c for each in (*arguments, *conditions, *computed, bounded.unit) for c in find_columns(each)}
    return {
        key: stored[key].sql
        for place, key in enumerate(bounded.keys)
        if isinstance(key, Column) and key in stored and stored[key].guard and key not in others
        if all(_passes(group[place], stored[key]) for group in bounded.domain)
    }


def _passes(key: Value, value: StoredValue) -> bool:
    """Whether a key passes the guard: every time that a plan knows does, and a text that is short enough."""
    return key is not None and (not isinstance(key, str) or value.max_length is None or len(key) <= value.max_length)


def _is_short(condition: Call, value: StoredValue) -> bool:
    """Whether a text that is equal to one of the constants is short enough to pass its guard."""
    if condition.function not in ("equal", "in") or value.max_length is None:
        return False
    first, *others = sorted(condition.arguments, key=lambda argument: isinstance(argument, Literal))
    texts = [other.value for other in others if isinstance(other, Literal)]
    if not isinstance(first, Column) or len(texts) < len(others):
        return False
    return all(isinstance(text, str) and len(text) <= value.max_length for text in texts)
