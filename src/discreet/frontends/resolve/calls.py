"""Makes typed calls of resolved arguments, in one canonical form, with refusals that state the fix.

The canonical form has the same meaning: ``30 < age`` becomes ``age > 30``, ``NOT a = b`` becomes ``a <> b``, a text
beside a date is read as a date, bins of dates are truncated dates, and arithmetic on constants is computed at once.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TypeAlias

from discreet.errors import UsageError
from discreet.exact import decimal
from discreet.frontends.terms.constants import read_day_or_moment
from discreet.frontends.terms.positions import Place, name_as_typed, refusal
from discreet.plan.evaluate import settle
from discreet.plan.expressions import Call, Expression, Literal
from discreet.plan.functions import FUNCTIONS, TRUNCATIONS, make_call, make_literal
from discreet.plan.types import LARGEST_REAL, Type

Arguments: TypeAlias = tuple[Expression, ...]
ArgumentPlaces: TypeAlias = tuple[Place | None, ...]

FLIPPED = {"equal": "equal", "unequal": "unequal", "less": "greater", "at_most": "at_least", "greater": "less",
           "at_least": "at_most"}  # fmt: skip  # one table
NEGATED = {"equal": "unequal", "unequal": "equal", "less": "at_least", "at_most": "greater", "greater": "at_most",
           "at_least": "less"}  # fmt: skip  # one table
# Functions in which a text is read as a date if another argument is a date.
DATED = frozenset({*FLIPPED, "in", "null_if", "coalesce", "case"})
# Functions with arguments that are always dates, and the positions of these.
DATES_AT = {"part": (1,), "date_trunc": (1,), "date_diff": (1, 2)}
# Casts that change nothing.
IDENTITY = {"to_boolean": Type.BOOLEAN, "to_integer": Type.INTEGER, "to_real": Type.REAL, "to_text": Type.TEXT,
            "to_date": Type.DATE, "to_timestamp": Type.TIMESTAMP}  # fmt: skip  # one table
# Arithmetic, on numbers that are exact.
ARITHMETIC: Mapping[str, Callable[..., Fraction]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "negate": operator.neg,
}
# The longest numerator or denominator of a constant: far more than doubles need, and quick to compute with.
MAX_CONSTANT_BITS = 1 << 13
# The names in refusals of functions that SQL writes as signs or words.
SHOWN: Mapping[str, str] = {
    "add": "a + b", "subtract": "a - b", "multiply": "a * b", "divide": "a / b", "modulo": "a % b", "negate": "-a",
    "equal": "a = b", "unequal": "a <> b", "less": "a < b", "at_most": "a <= b", "greater": "a > b",
    "at_least": "a >= b", "and": "AND", "or": "OR", "not": "NOT", "in": "IN", "case": "CASE", "concat": "a || b",
    "is_null": "IS NULL", "null_if": "NULLIF()", "like": "LIKE", "ilike": "ILIKE", "part": "EXTRACT()",
    "quotient": "a // b",
    "to_boolean": "CAST AS BOOLEAN", "to_integer": "CAST AS BIGINT", "to_real": "CAST AS DOUBLE",
    "to_text": "CAST AS VARCHAR", "to_date": "CAST AS DATE", "to_timestamp": "CAST AS TIMESTAMP",
}  # fmt: skip  # one table


def make(function: str, arguments: Arguments, place: Place | None, places: ArgumentPlaces = ()) -> Expression:
    """The expression for a function of arguments, or a refusal that points at the place.

    ``places`` are the places of the arguments, for a refusal of one of them.
    """
    places = places or (place,) * len(arguments)
    arguments = _read_dates(function, arguments, places)
    if function == "subtract" and all(argument.type is Type.DATE for argument in arguments):
        function, arguments = "date_diff", (make_literal("day"), arguments[1], arguments[0])
    check = CHECKS.get(function)
    if check is not None:
        check(arguments, place)
    simpler = _simplify(function, arguments)
    if simpler is not None:
        return simpler
    try:
        call = make_call(function, *arguments)
    except UsageError:
        raise _explain(function, arguments, place, places) from None
    return _fold_constants(call, place)


def check_condition(expression: Expression, what: str, place: Place | None) -> Expression:
    """The same expression as a condition. An expression that is not true, false or NULL is refused."""
    if expression.type is Type.BOOLEAN:
        return expression
    if isinstance(expression, Literal) and expression.value is None:
        return Literal(None, Type.BOOLEAN)
    fix = "Compare it with something, as in age > 30."
    raise refusal(place, f"{what} needs a condition that is true or false; this is of type {expression.type}.", fix)


def split_conditions(expression: Expression) -> tuple[Expression, ...]:
    """The parts of a condition that must all be true."""
    both = isinstance(expression, Call) and expression.function == "and"
    return expression.arguments if both else (expression,)  # type: ignore[union-attr]  # a Call, as tested


def _read_dates(function: str, arguments: Arguments, places: ArgumentPlaces) -> Arguments:
    """The arguments, in which texts that stand for dates are dates."""
    positions: tuple[int, ...] = DATES_AT.get(function, ())
    if function in DATED:
        positions = tuple(range(len(arguments)))
        if function == "case":
            positions = (*range(1, len(arguments), 2), len(arguments) - 1)
        if not any(arguments[i].type.is_time for i in positions):
            return arguments
    return tuple(
        make_literal(read_day_or_moment(argument.value, places[i]))
        if i in positions and isinstance(argument, Literal) and isinstance(argument.value, str)
        else argument
        for i, argument in enumerate(arguments)
    )


def _simplify(function: str, arguments: Arguments) -> Expression | None:
    """An equal expression in the canonical form, if this is not it."""
    first = arguments[0] if arguments else None
    if function in FLIPPED and [isinstance(a, Literal) for a in arguments] == [True, False]:
        flipped = (arguments[1], arguments[0])
        return make(FLIPPED[function], flipped, None) if _fits(function, arguments) else None
    if function == "not" and isinstance(first, Call) and len(arguments) == 1:
        if first.function == "not":
            return first.arguments[0]
        if first.function in NEGATED:
            return Call(NEGATED[first.function], first.arguments, first.type)
    if first is not None and len(arguments) == 1 and IDENTITY.get(function) is first.type:
        return first
    if function == "coalesce" and len(arguments) == 1:
        return first
    if function == "bin" and first is not None and len(arguments) == 2 and first.type.is_time:
        return make("date_trunc", (arguments[1], first), None)
    if function in {"like", "ilike"} and len(arguments) == 2:
        pattern = arguments[1]
        if isinstance(pattern, Literal) and isinstance(pattern.value, str) and "%%" in pattern.value:
            return make(function, (arguments[0], make_literal(re.sub("%+", "%", pattern.value))), None)
    return None


def _fits(function: str, arguments: Arguments) -> bool:
    try:
        make_call(function, *arguments)
    except UsageError:
        return False
    return True


def _fold_constants(call: Call, place: Place | None) -> Expression:
    """The value of arithmetic on constants, else the call itself. A constant without a value is refused.

    It is computed in fractions, where 0.06 + 0.01 is 0.07, and rounded to a double once, at the end. Doubles would give
    0.06999999999999999, which is not equal to the 0.07 of a column. SQL computes such constants as exact decimals, too.
    """
    if call.function not in ARITHMETIC or not all(isinstance(a, Literal) for a in call.arguments):
        return call
    numbers = [_exact_number(a) for a in call.arguments if isinstance(a, Literal)]
    if None in numbers:
        return Literal(None, call.type)
    rule = "This constant has no value: it divides by zero or is too large."
    try:
        exact = ARITHMETIC[call.function](*numbers)
    except ZeroDivisionError:
        raise refusal(place, rule, "Write the number that is meant.") from None
    value = settle(exact, call.type)
    if (
        value is None
        or abs(exact) > LARGEST_REAL
        or max(exact.numerator.bit_length(), exact.denominator.bit_length()) > MAX_CONSTANT_BITS
    ):
        raise refusal(place, rule, "Write the number that is meant.")
    return Literal(value, call.type, exact)


def _exact_number(literal: Literal) -> Fraction | None:
    """The number that a constant means: a float is the decimal that was written."""
    if literal.exact is not None or not isinstance(literal.value, int | float):
        return literal.exact
    return Fraction(literal.value) if isinstance(literal.value, int) else decimal(literal.value)


# A constant for which a function would yield NULL in every row is refused.

ArgumentCheck: TypeAlias = Callable[[Arguments, Place | None], None]


def _find_number(arguments: Arguments, position: int) -> float | None:
    argument = arguments[position] if position < len(arguments) else None
    value = argument.value if isinstance(argument, Literal) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _check_bin(arguments: Arguments, place: Place | None) -> None:
    width = _find_number(arguments, 1)
    if arguments and arguments[0].type.is_time and not _is_unit_of_time(arguments):
        fix = f"Write for example bin(day, 'month'), with one of {', '.join(TRUNCATIONS)}."
        raise refusal(place, "Bins of dates and timestamps are units of time.", fix)
    if width is not None and width <= 0:
        raise refusal(place, "The width of a bin must be above zero.", "Write for example bin(age, 10).")


def _is_unit_of_time(arguments: Arguments) -> bool:
    unit = arguments[1] if len(arguments) == 2 else None
    return isinstance(unit, Literal) and unit.value in TRUNCATIONS


def _check_clamp(arguments: Arguments, place: Place | None) -> None:
    low, high = _find_number(arguments, 1), _find_number(arguments, 2)
    if low is not None and high is not None and low > high:
        raise refusal(place, "The lower end of clamp is above its upper end.", "Write clamp(x, low, high).")


def _check_round(arguments: Arguments, place: Place | None) -> None:
    digits = _find_number(arguments, 1)
    if digits is not None and abs(digits) > 15:
        raise refusal(place, "round takes at most 15 digits.", "Write for example round(x, 2).")


def _check_substring(arguments: Arguments, place: Place | None) -> None:
    start, count = _find_number(arguments, 1), _find_number(arguments, 2)
    if (start is not None and start < 1) or (count is not None and count < 0):
        rule = "Positions in a text begin at 1, and lengths are not negative."
        raise refusal(place, rule, "Write for example substring(x, 1, 3).")


CHECKS: Mapping[str, ArgumentCheck] = {
    "bin": _check_bin,
    "clamp": _check_clamp,
    "round": _check_round,
    "substring": _check_substring,
}


def _explain(function: str, arguments: Arguments, place: Place | None, places: ArgumentPlaces) -> UsageError:
    """The refusal of a call: the reason, and what would be possible."""
    found = FUNCTIONS.get(function)
    if found is None:
        return refusal(place, f"There is no function {function!r}.", "`discreet help sql` lists the functions.")
    shown = SHOWN.get(function) or f"{name_as_typed(place, function)}()"
    for position in sorted(found.constants):
        if position < len(arguments) and not isinstance(arguments[position], Literal):
            if function == "in":
                fix = "Write a = b OR a = c for other values."
                return refusal(places[position], "The list of IN must be constants.", fix)
            rule = f"Argument {position + 1} of {shown} must be a constant."
            return refusal(places[position], rule, "Write a number, a text or a date there.")
    first = arguments[0] if arguments else None
    if found.words and isinstance(first, Literal) and first.value not in found.words:
        rule = f"{shown} does not know this part of a date."
        return refusal(places[0] or place, rule, f"Known: {', '.join(found.words)}.")
    if function == "case":
        arguments = (
            (*arguments[1::2], arguments[-1]) if all(a.type is Type.BOOLEAN for a in arguments[:-1:2]) else arguments
        )
    kinds = " and ".join(dict.fromkeys(_kind_of(a) for a in arguments)) if arguments else "nothing"
    return refusal(place, f"{shown} does not take {kinds}.", _suggest_fix(function, shown, arguments))


def _kind_of(argument: Expression) -> str:
    return "NULL" if isinstance(argument, Literal) and argument.value is None else str(argument.type)


def _suggest_fix(function: str, shown: str, arguments: Arguments) -> str:
    kinds = {argument.type for argument in arguments}
    if function in ARITHMETIC:
        if any(kind.is_time for kind in kinds):
            return "date_diff('day', a, b) counts the days between two dates."
        if Type.TEXT in kinds:
            return "CAST(x AS DOUBLE) reads a number from a text; a || b joins texts."
        return "Arithmetic needs numbers; CASE WHEN c THEN 1 ELSE 0 END makes one of a condition."
    if function in {*FLIPPED, "in", "null_if", "coalesce", "case"}:
        return "All values must be of one type; CAST(x AS BIGINT), AS DOUBLE, AS VARCHAR or AS DATE changes it."
    if function in {"and", "or", "not"}:
        return "It needs conditions, such as age > 30."
    if function == "modulo":
        return "It needs two integers; CAST(x AS BIGINT) makes one."
    if function == "quotient":
        return "It needs two integers; FLOOR(a / b) takes reals."
    if function == "concat":
        return "CAST(x AS VARCHAR) makes a text; between conditions write OR."
    return f"`discreet help sql` says what {shown.removesuffix('()')} takes: {FUNCTIONS[function].help}."
