"""Checks that a question is well formed: names are unique, columns exist, and types are right.

Front ends make only well-formed questions, but a question is a plain value that anybody can write in Python. Two things
depend on this check. The rules of ``stability`` find the unit by the name of its column, which is right only if no
relation has a name twice. Engines never fail on a value in the data, which is true only if every expression has the
type that it claims. So each node is checked before its rule of ``stability`` is used.
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
    NUMBERINGS,
    WINDOW_FEATURES,
    Capped,
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

COUNTS = frozenset({Feature.COUNT, Feature.COUNT_DISTINCT})


def check_shape(relation: Relation, *sources: Columns) -> None:
    """Refuse a node whose names, columns or types are wrong. ``sources`` are the columns of its inputs."""
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
            _check_per_unit(relation, sources[0])
        case Window():
            _check_window(relation, sources[0])
        case Union():
            _check_union(relation)
        case Capped():
            _check_capped(relation, sources[0])
        case Scan() | Distinct():
            pass  # a scan has declared columns only, and each row once has those of its source
        case _:
            assert_never(relation)


def _check_per_unit(relation: PerUnit, columns: Columns) -> None:
    _check_names(name for name, _ in (*relation.keys, *relation.features))
    for _, key in relation.keys:
        check_expression(key, columns)
    for _, call in relation.features:
        _check_feature_call(call, columns, windows=False)


def _check_capped(relation: Capped, columns: Columns) -> None:
    check_whole(relation.rows, "how many rows of a unit remain")
    for expression in relation.by:
        check_expression(expression, columns)


def check_expression(expression: Expression, columns: Columns, kind: Type | None = None) -> None:
    """Refuse an expression that reads other columns, or does not have the type that it claims or that is needed."""
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


def check_released(expression: Expression, kinds: Sequence[Type], kind: Type | None = None, marks: int = 0) -> None:
    """Refuse an expression above the aggregation that reads anything but keys and aggregates of these types.

    So many first of them are keys with marks of groupings (``plan.nodes.make_grouping_mark``).
    """
    if kind is not None and expression.type is not kind:
        raise _make_error(f"{expression} is {expression.type} where {kind} is needed")
    for part in walk(expression):
        match part:
            case Column():
                raise _make_error(f"the column {part} stands above the aggregation")
            case ReleasedValue():
                if part.index in range(-marks, 0) and part.type is Type.INTEGER:
                    continue
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
    """Whether a value has a type. Integers must have at most 64 bits, reals be finite, and times have no zone."""
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
    """Refuse rows that are not complete, and values that do not have the type of their column."""
    _check_names(name for name, _ in relation.columns)
    if not {len(row) for row in relation.rows} <= {len(relation.columns)}:
        raise _make_error(f"a row of {relation.name!r} has more or fewer values than columns")
    for i, (name, kind) in enumerate(relation.columns):
        values = [row[i] for row in relation.rows if row[i] is not None]
        if not all(_holds(value, kind) for value in _pick_doubtful(values, kind)):
            raise _make_error(f"a value of {relation.name}.{name} is not {kind}")


def _pick_doubtful(values: list[Any], kind: Type) -> list[Any]:
    """The values of a column that must be checked one by one. Rows may be many, and most values need no check."""
    classes = {type(value) for value in values}
    if kind in (Type.TEXT, Type.BOOLEAN) and classes <= {str if kind is Type.TEXT else bool}:
        return []
    if kind is Type.INTEGER and classes == {int}:
        return [min(values), max(values)]
    if kind is Type.REAL and classes == {float}:
        return [value for value in values if not math.isfinite(value)]
    return values


def _check_join(relation: Join, left: Columns, right: Columns) -> None:
    """Refuse a join whose sides share a name, or that equates expressions of different types."""
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
    for _, call in relation.features:
        _check_feature_call(call, source, windows=True)


def _check_union(relation: Union) -> None:
    if not relation.sources or not all(isinstance(source, Projection) for source in relation.sources):
        raise _make_error("a union needs parts that name their columns")
    _check_names(name for name, _ in relation.sources[0].columns)
    kinds = [tuple(expression.type for _, expression in source.columns) for source in relation.sources]
    if any(other != kinds[0] for other in kinds):
        raise _make_error("the parts of a UNION ALL have other columns")


def _check_feature_call(call: FeatureCall, columns: Columns, *, windows: bool) -> None:
    """Refuse a feature without the argument that it needs, or with a type that does not follow from it."""
    feature, argument = call.feature, call.argument
    if feature in WINDOW_FEATURES and not windows:
        raise _make_error(f"{feature} needs a window")
    if feature is Feature.MEDIAN and windows:
        raise _make_error(f"{feature} is not for windows")
    if argument is not None:
        check_expression(argument, columns)
    if (argument is None) is not (feature in NUMBERINGS) and feature is not Feature.COUNT:
        raise _make_error(f"{feature} has an argument too many, or none")
    if call.type is not _type_of_feature(feature, None if argument is None else argument.type):
        raise _make_error(f"{feature} does not yield {call.type} of its argument")
    if feature in (Feature.LAG, Feature.LEAD):
        check_whole(call.offset, "how far LAG and LEAD look", least=0)


def _type_of_feature(feature: Feature, argument: Type | None) -> Type | None:
    """The type of a feature's result; None where the argument does not fit."""
    if feature in COUNTS | NUMBERINGS:
        return Type.INTEGER
    if feature in (Feature.SUM, Feature.MEAN, Feature.MEDIAN):
        if argument is None or not argument.is_number:
            return None
        return argument if feature is Feature.SUM else Type.REAL
    if feature in (Feature.ANY, Feature.ALL):
        return argument if argument is Type.BOOLEAN else None
    return argument


def check_whole(value: object, what: str, least: int = 1) -> None:
    """Refuse a limit that is not a whole number, or is too small."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise UsageError(f"A limit ({what}) must be a whole number of at least {least}. Nothing was charged.")


def _names_of(columns: Columns) -> Sequence[tuple[str, str]]:
    return [(column.table, column.name) for column in columns]


def _check_names(names: Iterable[object]) -> None:
    listed = list(names)
    if not listed:
        raise _make_error("a relation has no columns")
    if len(set(listed)) < len(listed):
        raise _make_error("two columns have the same name")


def _make_error(what: str) -> UsageError:
    return UsageError(f"This question is not well formed: {what}. Nothing was charged.")
