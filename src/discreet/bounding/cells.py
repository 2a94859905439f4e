"""Cells: counts of rows of which no row is in two, such as FILTER (WHERE a) and FILTER (WHERE NOT a).

Such counts together cost what one of them costs. A row adds 1 to one of them at most, so as parts of a joint measure
they have f ≥ 0, Σf ≤ 1 and ‖f‖ ≤ 1 (``joint_measures``); with COUNT(*) the rows that are in no cell are one more part.

That no row is in two follows from the conditions alone, never from data: one is the opposite of the other, or both
compare one expression with constants that leave nothing in common. For that, whole numbers only: reals that differ as
they are written may be equal as doubles, and texts may be equal by a collation of their table. A condition that is NULL
counts its row nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from discreet.bounding.contributions import Counts, Measure
from discreet.bounding.joint_measures import JointForm, JointMeasure, Terms
from discreet.plan.expressions import Call, Expression, Literal
from discreet.plan.types import Type

_OPPOSITES = {
    "equal": "unequal",
    "unequal": "equal",
    "less": "at_least",
    "at_least": "less",
    "greater": "at_most",
    "at_most": "greater",
}
# No end: every whole number is on this side of it.
_FAR = 1 << 80


def list_cell_forms(measures: Sequence[Measure], measured: Sequence[int]) -> list[JointForm]:
    """The ways to measure counts of exclusive conditions jointly, with the rest of all rows and without it."""
    counted = [p for p in measured if _find_condition(measures[p]) is not None]
    rows = next((p for p in measured if measures[p] == Measure(counts=Counts.ROWS)), None)
    forms = []
    for cells in dict.fromkeys(_collect(measures, counted, first) for first in counted):
        if len(cells) < 2:
            continue
        parts: tuple[Terms, ...] = tuple(((p, 1),) for p in cells)
        forms.append(JointForm(frozenset(cells), JointMeasure(parts, _ONE, 1)))
        if rows is not None:
            rest: Terms = ((rows, 1), *((p, -1) for p in cells))
            forms.append(JointForm(frozenset({rows, *cells}), JointMeasure((*parts, rest), _ONE, 1)))
    return forms


_ONE = Measure(counts=Counts.STEPS, first=0, last=1)


def _collect(measures: Sequence[Measure], counted: Sequence[int], first: int) -> tuple[int, ...]:
    """Counts that exclude each other, from one of them on."""
    found = [first]
    for position in counted:
        condition = _find_condition(measures[position])
        others = [_find_condition(measures[p]) for p in found]
        if all(condition and other and are_exclusive(condition, other) for other in others):
            found.append(position)
    return tuple(sorted(found))


def _find_condition(measure: Measure) -> Expression | None:
    """The condition under which a row is counted, where it is written as FILTER or CASE; None for other measures."""
    argument = measure.argument
    if measure.counts is not Counts.VALUES or measure.partial is not None or not isinstance(argument, Call):
        return None
    if argument.function != "case" or len(argument.arguments) != 3:
        return None
    condition, _, otherwise = argument.arguments
    return condition if isinstance(otherwise, Literal) and otherwise.value is None else None


def are_exclusive(one: Expression, two: Expression) -> bool:
    """Whether no row makes both conditions true, whatever the data are. False where that is not known."""
    return any(_exclude(a, b) for a in _list_parts(one) for b in _list_parts(two))


def _list_parts(condition: Expression) -> list[Expression]:
    """Conditions that all hold where this one does."""
    if isinstance(condition, Call) and condition.function == "and":
        return [part for argument in condition.arguments for part in _list_parts(argument)]
    return [condition]


def _exclude(one: Expression, two: Expression) -> bool:
    if not isinstance(one, Call) or not isinstance(two, Call):
        return False
    if _is_not(one, two) or _is_not(two, one):
        return True
    if len(one.arguments) != 2 or len(two.arguments) != 2 or one.arguments[0] != two.arguments[0]:
        return False
    if one.arguments == two.arguments and _OPPOSITES.get(one.function) == two.function:
        return True
    left, right = _find_interval(one), _find_interval(two)
    if left is None or right is None:
        return False
    return max(left[0], right[0]) > min(left[1], right[1])


def _is_not(one: Call, two: Call) -> bool:
    return one.function == "not" and one.arguments[0] == two


def _find_interval(condition: Call) -> tuple[int, int] | None:
    """The whole numbers for which a comparison with a whole constant holds, both ends included."""
    value, literal = condition.arguments
    if value.type is not Type.INTEGER or not isinstance(literal, Literal) or literal.type is not Type.INTEGER:
        return None
    if isinstance(literal.value, bool) or not isinstance(literal.value, int):
        return None
    number = literal.value
    ends = {
        "equal": (number, number),
        "less": (-_FAR, number - 1),
        "at_most": (-_FAR, number),
        "greater": (number + 1, _FAR),
        "at_least": (number, _FAR),
    }
    return ends.get(condition.function)
