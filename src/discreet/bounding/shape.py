"""Whether a question is well formed: every name once, every column there, every type as it says.

Front ends write only such questions; but a question is a plain value that anybody can write in Python. A rule that
asks "does this column hold the unit?" may go by the column's name only because no relation has a name twice, and an
engine never fails on what the data holds only because every expression is of the type that it claims. So this is
checked for each node before its rule of ``stability`` is asked.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any, TypeAlias, assert_never

from discreet.errors import UsageError
from discreet.plan.expressions import Call, Column, Expression, Literal, ReleasedValue, walk
from discreet.plan.functions import FUNCTIONS, make_literal
from discreet.plan.relations import (
    Caps,
    Distinct,
    Feature,
    FeatureCall,
    Join,
    JoinKind,
    PerUnit,
    Projection,
    Relation,
    Scan,
    Union,
    Values,
    Where,
    Window,
)
from discreet.plan.types import INTEGER_MAX, INTEGER_MIN, Type, Value, type_of

Columns: TypeAlias = Collection[Column]

COUNTS = (Feature.COUNT, Feature.COUNT_DISTINCT)
PLACES = (Feature.ROW_NUMBER, Feature.RANK, Feature.DENSE_RANK)
WINDOWS_ONLY = (*PLACES, Feature.LAG, Feature.LEAD)


def check_shape(relation: Relation, *sources: Columns) -> None:
    """Refuse a node whose names, columns or types are not what they should be. ``sources`` are its inputs' columns."""
    match relation:
        case Values():
            _check_values(relation)
        case Where():
            check_expression(relation.condition, sources[0], Type.BOOLEAN)
        case Projection():
            _check_names(name for name, _ in relation.columns)
            for _, expression in relation.columns:
                check_expression(expression, sources[0])
        case Join():
            _check_join(relation, *sources)
        case PerUnit():
            _check_names(name for name, _ in (*relation.keys, *relation.features))
            for _, key in relation.keys:
                check_expression(key, sources[0])
            for _, compute in relation.features:
                _check_compute(compute, sources[0], windows=False)
        case Window():
            _check_window(relation, sources[0])
        case Union():
            _check_union(relation)
        case Scan() | Distinct():
            pass  # a scan has declared columns only, and each row once has those of its source
        case _:
            assert_never(relation)


def check_expression(expression: Expression, columns: Columns, kind: Type | None = None) -> None:
    """Refuse an expression that reads other columns, or is not of the type it claims (or of the one that is needed)."""
    if kind is not None and expression.type is not kind:
        raise _make_error(f"{expression} is {expression.type} where {kind} is needed")
    match expression:
        case Column():
            if expression not in columns:
                raise _make_error(
                    f"there is no column {expression.table}.{expression.name} of type {expression.type} here"
                )
        case Literal():
            if expression.value is not None and not _holds(expression.value, expression.type):
                raise _make_error(f"a constant is not of the type {expression.type}")
        case ReleasedValue():
            raise _make_error("a released number stands below the aggregation")
        case Call():
            for argument in expression.arguments:
                check_expression(argument, columns)
            _check_call(expression)
        case _:
            raise _make_error("something that is no expression stands where one is needed")


def check_released(expression: Expression, kinds: Sequence[Type], kind: Type | None = None) -> None:
    """Refuse an expression above the aggregation that reads anything but keys and aggregates, of these kinds."""
    if kind is not None and expression.type is not kind:
        raise _make_error(f"{expression} is {expression.type} where {kind} is needed")
    for part in walk(expression):
        match part:
            case Column():
                raise _make_error(f"the column {part} stands above the aggregation")
            case ReleasedValue():
                if part.index not in range(len(kinds)) or part.type is not kinds[part.index]:
                    raise _make_error(f"there is no released number {part.index} of type {part.type}")
            case Call():
                _check_call(part)
            case Literal():
                check_expression(part, ())
            case _:
                raise _make_error("something that is no expression stands where one is needed")


def _check_call(expression: Call) -> None:
    function = FUNCTIONS.get(expression.function)
    if function is None or function.yields(tuple(a.type for a in expression.arguments)) is not expression.type:
        raise _make_error(f"{expression.function} does not yield {expression.type} of its arguments")
    if any(i < len(expression.arguments) and not _is_constant(expression.arguments[i]) for i in function.constants):
        raise _make_error(f"{expression.function} needs constants")
    if function.words and expression.arguments[0] not in {make_literal(word) for word in function.words}:
        raise _make_error(f"{expression.function} needs one of {', '.join(function.words)}")


def _is_constant(expression: Expression) -> bool:
    return isinstance(expression, Literal)


def _holds(value: Value, kind: Type) -> bool:
    """Whether a value is one of a type; integers within 64 bits, reals finite, times without a zone."""
    if type_of(value) is not kind:
        return False
    match value:
        case bool():
            return True
        case int():
            return INTEGER_MIN <= value <= INTEGER_MAX
        case float():
            return math.isfinite(value)
        case dt.datetime():
            return value.tzinfo is None
        case None | str() | dt.date():
            return True
        case _:
            assert_never(value)


def _check_values(relation: Values) -> None:
    """Every row is complete and every value of its column's type."""
    _check_names(name for name, _ in relation.columns)
    if not {len(row) for row in relation.rows} <= {len(relation.columns)}:
        raise _make_error(f"a row of {relation.name!r} has more or fewer values than columns")
    for i, (name, kind) in enumerate(relation.columns):
        values = [row[i] for row in relation.rows if row[i] is not None]
        if not all(_holds(value, kind) for value in _pick_doubtful(values, kind)):
            raise _make_error(f"a value of {relation.name}.{name} is not {kind}")


def _pick_doubtful(values: list[Any], kind: Type) -> list[Any]:
    """The values of a column to be looked at one by one; rows may be many, and most need no second look."""
    classes = {type(value) for value in values}
    if kind in (Type.TEXT, Type.BOOLEAN) and classes <= {str if kind is Type.TEXT else bool}:
        return []
    if kind is Type.INTEGER and classes == {int}:
        return [min(values), max(values)]
    if kind is Type.REAL and classes == {float}:
        return [value for value in values if not math.isfinite(value)]
    return values


def _check_join(relation: Join, left: Columns, right: Columns) -> None:
    """Both sides' columns stay apart by name, and what is equated is of one type, so that equal means equal."""
    if relation.kind not in (JoinKind.SEMI, JoinKind.ANTI):
        _check_names((*_names_of(left), *_names_of(right)))
    for one, two in relation.on:
        check_expression(one, left)
        check_expression(two, right, one.type)
    for caps, side in zip(relation.caps or (), (left, right)):
        _check_caps(caps, side)


def _check_caps(caps: Caps, side: Columns) -> None:
    check_expression(caps.unit, side)
    check_whole(caps.rows, "the rows of a unit in a join")
    check_whole(caps.frequency, "the rows with one value in a join")


def _check_window(relation: Window, source: Columns) -> None:
    new = [(relation.name, name) for name, _ in relation.features]
    _check_names((*_names_of(source), *new))
    for expression in (*relation.parts, *(expression for expression, _ in relation.order)):
        check_expression(expression, source)
    for _, compute in relation.features:
        _check_compute(compute, source, windows=True)


def _check_union(relation: Union) -> None:
    if not relation.sources or not all(isinstance(source, Projection) for source in relation.sources):
        raise _make_error("a union needs parts that name their columns")
    _check_names(name for name, _ in relation.sources[0].columns)
    kinds = [tuple(expression.type for _, expression in source.columns) for source in relation.sources]
    if any(other != kinds[0] for other in kinds):
        raise _make_error("the parts of a UNION ALL have other columns")


def _check_compute(compute: FeatureCall, columns: Columns, *, windows: bool) -> None:
    """A feature has the argument that it needs and yields what follows from it."""
    feature, argument = compute.feature, compute.argument
    if feature in WINDOWS_ONLY and not windows:
        raise _make_error(f"{feature} needs a window")
    if argument is not None:
        check_expression(argument, columns)
    if (argument is None) is not (feature in PLACES) and feature is not Feature.COUNT:
        raise _make_error(f"{feature} has an argument too many, or none")
    if compute.type is not _type_of_feature(feature, None if argument is None else argument.type):
        raise _make_error(f"{feature} does not yield {compute.type} of its argument")
    if feature in (Feature.LAG, Feature.LEAD):
        check_whole(compute.offset, "how far LAG and LEAD look", least=0)


def _type_of_feature(feature: Feature, argument: Type | None) -> Type | None:
    """The type of a feature; None where its argument does not fit."""
    if feature in (*COUNTS, *PLACES):
        return Type.INTEGER
    if feature in (Feature.SUM, Feature.MEAN, Feature.MEDIAN):
        if argument is None or not argument.is_number:
            return None
        return argument if feature is Feature.SUM else Type.REAL
    if feature in (Feature.ANY, Feature.ALL):
        return argument if argument is Type.BOOLEAN else None
    return argument


def check_whole(value: object, what: str, least: int = 1) -> None:
    """Refuse a limit that is no whole number, or too small to be one."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise UsageError(f"A limit ({what}) must be a whole number of at least {least}. Nothing was charged.")


def _names_of(columns: Columns) -> Sequence[tuple[str, str]]:
    return [(column.table, column.name) for column in columns]


def _check_names(names: Iterable[object]) -> None:
    seen = list(names)
    if not seen:
        raise _make_error("a relation has no columns")
    if len(set(seen)) < len(seen):
        raise _make_error("two columns have the same name")


def _make_error(what: str) -> UsageError:
    return UsageError(f"This question is not well formed: {what}. Nothing was charged.")
