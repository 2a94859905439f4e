"""The functions that a question may use, with their types, in one table.

A function that is not in ``FUNCTIONS`` does not exist. Each entry says which argument types the function takes and
which type it yields. ``evaluate.py`` says what it computes. Each engine computes the same in its own way, and tests
compare them. Functions are total: overflow, division by zero, logarithms of zero and impossible casts yield NULL.

Some arguments must be constants: patterns, units of time, widths of bins. So they are public.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from discreet.errors import UsageError
from discreet.late_dataclass import dataclass
from discreet.plan.expressions import Call, Expression, Literal
from discreet.plan.types import Type, Value, type_of

B, N, R, X, D, T = Type.BOOLEAN, Type.INTEGER, Type.REAL, Type.TEXT, Type.DATE, Type.TIMESTAMP
NUMBERS = frozenset({N, R})
TIMES = frozenset({D, T})
ANY = frozenset(Type)

TypeRule: TypeAlias = Callable[[tuple[Type, ...]], Type | None]
"""The type of the result from the types of the arguments, or None where they do not fit."""

PARTS = ("year", "quarter", "month", "week", "day", "dayofweek", "hour", "minute", "second")
TRUNCATIONS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
DIFFERENCES = ("year", "month", "day", "hour", "minute", "second")


@dataclass(frozen=True, slots=True)
class Function:
    """One function: its name, the rule for its type, and a line of help."""

    name: str
    yields: TypeRule
    help: str
    constants: frozenset[int] = frozenset()  # positions of arguments that must be literals
    words: tuple[str, ...] = ()  # allowed values of a constant text argument


def _type_of_arithmetic(types: tuple[Type, ...]) -> Type | None:
    """The type of arithmetic: integers yield an integer, and one real makes the result a real."""
    if not types or not all(t in NUMBERS for t in types):
        return None
    return R if R in types else N


def _take_exactly(*wanted: frozenset[Type] | Type, gives: Type) -> TypeRule:
    """A rule for a fixed list of argument types and a fixed type of the result."""
    sets = [w if isinstance(w, frozenset) else frozenset({w}) for w in wanted]

    def rule(types: tuple[Type, ...]) -> Type | None:
        fits = len(types) == len(sets) and all(t in allowed for t, allowed in zip(types, sets))
        return gives if fits else None

    return rule


def _take_numbers(count: int) -> TypeRule:
    return lambda types: _type_of_arithmetic(types) if len(types) == count else None


def find_common_type(types: tuple[Type, ...]) -> Type | None:
    """One type for all of these: of equal types, of integers and reals, or of dates and timestamps. Else None."""
    kinds = set(types)
    if len(kinds) == 1:
        return types[0]
    if kinds == NUMBERS:
        return R
    return T if kinds == TIMES else None


def _type_of_comparison(types: tuple[Type, ...]) -> Type | None:
    return B if len(types) == 2 and find_common_type(types) is not None else None


def _type_of_case(types: tuple[Type, ...]) -> Type | None:
    """The type of CASE, whose arguments are condition, value, condition, value, ..., otherwise."""
    if len(types) < 3 or len(types) % 2 == 0 or any(t is not B for t in types[:-1:2]):
        return None
    return find_common_type((*types[1::2], types[-1]))


def _type_of_in(types: tuple[Type, ...]) -> Type | None:
    return B if len(types) >= 2 and find_common_type(types) is not None else None


def _take_common(least: int) -> TypeRule:
    return lambda types: find_common_type(types) if len(types) >= least else None


def _take_many_numbers(least: int) -> TypeRule:
    return lambda types: _type_of_arithmetic(types) if len(types) >= least else None


def _type_of_logic(types: tuple[Type, ...]) -> Type | None:
    return B if len(types) >= 2 and set(types) == {B} else None


FUNCTIONS: dict[str, Function] = {
    f.name: f
    for f in (
        # numbers
        Function("add", _take_numbers(2), "a + b"),
        Function("subtract", _take_numbers(2), "a - b"),
        Function("multiply", _take_numbers(2), "a * b"),
        Function("divide", _take_exactly(NUMBERS, NUMBERS, gives=R), "a / b as a real; NULL when b is 0"),
        Function("quotient", _take_exactly(N, N, gives=N), "a / b of whole numbers, towards zero; NULL when b is 0"),
        Function("modulo", _take_exactly(N, N, gives=N), "remainder with the sign of a; NULL when b is 0"),
        Function("negate", _take_numbers(1), "-a"),
        Function("abs", _take_numbers(1), "size of a number"),
        Function("sign", _take_exactly(NUMBERS, gives=N), "-1, 0 or 1"),
        Function("floor", _take_exactly(NUMBERS, gives=R), "largest whole number at or below"),
        Function("ceil", _take_exactly(NUMBERS, gives=R), "smallest whole number at or above"),
        Function("trunc", _take_exactly(NUMBERS, gives=R), "the whole number before the decimal point"),
        Function("round", _take_exactly(NUMBERS, N, gives=R), "nearest decimal, halves away from zero", frozenset({1})),
        Function("sqrt", _take_exactly(NUMBERS, gives=R), "square root; NULL below 0"),
        Function("ln", _take_exactly(NUMBERS, gives=R), "natural logarithm; NULL at or below 0"),
        Function("log10", _take_exactly(NUMBERS, gives=R), "logarithm to base 10; NULL at or below 0"),
        Function("log2", _take_exactly(NUMBERS, gives=R), "logarithm to base 2; NULL at or below 0"),
        Function("sin", _take_exactly(NUMBERS, gives=R), "sine of an angle in radians; NULL beyond 524288"),
        Function("cos", _take_exactly(NUMBERS, gives=R), "cosine; NULL beyond 524288"),
        Function("tan", _take_exactly(NUMBERS, gives=R), "tangent; NULL beyond 524288"),
        Function("asin", _take_exactly(NUMBERS, gives=R), "angle with this sine; NULL beyond -1 and 1"),
        Function("acos", _take_exactly(NUMBERS, gives=R), "angle with this cosine; NULL beyond -1 and 1"),
        Function("atan", _take_exactly(NUMBERS, gives=R), "angle with this tangent"),
        Function("atan2", _take_exactly(NUMBERS, NUMBERS, gives=R), "angle of the point (b, a), from -pi to pi"),
        Function("exp", _take_exactly(NUMBERS, gives=R), "e to the power"),
        Function("power", _take_exactly(NUMBERS, NUMBERS, gives=R), "a to the power b; NULL where undefined"),
        Function("least", _take_many_numbers(2), "smallest number; NULLs are passed over"),
        Function("greatest", _take_many_numbers(2), "largest number; NULLs are passed over"),
        Function("clamp", _take_numbers(3), "a moved into [low, high]", constants=frozenset({1, 2})),
        Function("bin", _take_numbers(2), "lower edge of a's bin", constants=frozenset({1})),
        Function("magnitude", _take_numbers(1), "a's size as a power of two, rounded down, with a's sign; 0 for 0"),
        # comparison and logic (three-valued, as in SQL)
        Function("equal", _type_of_comparison, "a = b"),
        Function("unequal", _type_of_comparison, "a <> b"),
        Function("less", _type_of_comparison, "a < b"),
        Function("at_most", _type_of_comparison, "a <= b"),
        Function("greater", _type_of_comparison, "a > b"),
        Function("at_least", _type_of_comparison, "a >= b"),
        Function("in", _type_of_in, "a is one of the literals", constants=frozenset(range(1, 4096))),
        Function("is_null", _take_exactly(ANY, gives=B), "whether a is NULL"),
        Function("not", _take_exactly(B, gives=B), "NOT a"),
        Function("and", _type_of_logic, "all of them"),
        Function("or", _type_of_logic, "any of them"),
        Function("case", _type_of_case, "the value of the first true condition, else the last value"),
        Function("coalesce", _take_common(1), "the first that is not NULL"),
        Function("null_if", lambda t: t[0] if _type_of_comparison(t) else None, "a, but NULL when it equals b"),
        # text
        Function("lower", _take_exactly(X, gives=X), "small letters"),
        Function("upper", _take_exactly(X, gives=X), "capital letters"),
        Function("trim", _take_exactly(X, gives=X), "without spaces at the ends"),
        Function("length", _take_exactly(X, gives=N), "number of characters"),
        Function("concat", lambda t: X if len(t) >= 2 and set(t) == {X} else None, "texts joined; NULL if one is"),
        Function("substring", _take_exactly(X, N, N, gives=X), "from a position (1 is first), so many characters",
                 constants=frozenset({1, 2})),
        Function("starts_with", _take_exactly(X, X, gives=B), "whether a text begins so"),
        Function("ends_with", _take_exactly(X, X, gives=B), "whether a text ends so"),
        Function("contains", _take_exactly(X, X, gives=B), "whether a text has this inside"),
        Function("position", _take_exactly(X, X, gives=N), "where b begins in a: 1 is first, 0 is nowhere"),
        Function("like", _take_exactly(X, X, gives=B), "SQL pattern with % and _", constants=frozenset({1})),
        Function("ilike", _take_exactly(X, X, gives=B), "the same, ignoring case", constants=frozenset({1})),
        # dates
        Function("part", _take_exactly(X, TIMES, gives=N), "a part of a date", frozenset({0}), PARTS),
        Function("date_trunc", lambda t: t[1] if _take_exactly(X, TIMES, gives=B)(t) else None,
                 "start of the year, month, ...", frozenset({0}), TRUNCATIONS),
        Function("date_diff", _take_exactly(X, TIMES, TIMES, gives=N), "boundaries crossed from a to b", frozenset({0}),
                 DIFFERENCES),
        # casts: one function for each target, so that the type is in the name
        Function("to_boolean", _take_exactly(frozenset({B, N}), gives=B), "CAST(a AS BOOLEAN)"),
        Function("to_integer", _take_exactly(frozenset({B, N, R, X}), gives=N), "CAST(a AS BIGINT), halves to even"),
        Function("to_real", _take_exactly(frozenset({N, R, X}), gives=R), "CAST(a AS DOUBLE)"),
        Function("to_text", _take_exactly(frozenset({B, N, X, D}), gives=X), "CAST(a AS VARCHAR)"),
        Function("to_date", _take_exactly(frozenset({X, D, T}), gives=D), "CAST(a AS DATE)"),
        Function("to_timestamp", _take_exactly(frozenset({D, T}), gives=T), "CAST(a AS TIMESTAMP)"),
    )
}  # fmt: skip  # one line a function reads as the table it is


def make_literal(value: Value, *, null_of: Type = Type.INTEGER) -> Literal:
    """A constant with its type. NULL has the type ``null_of``."""
    return Literal(value, type_of(value) or null_of)


def make_call(name: str, *arguments: Expression) -> Call:
    """A call whose types are checked. A NULL literal gets the type that fits; wrong types are refused."""
    function = FUNCTIONS.get(name)
    if function is None:
        raise UsageError(f"There is no function {name!r} in a question. Nothing was charged.")
    for position, argument in enumerate(arguments):
        if position in function.constants and not isinstance(argument, Literal):
            raise UsageError(f"{name}: argument {position + 1} must be a constant. Nothing was charged.")
    result = _resolve(function, arguments)
    if function.words and result.arguments[0] not in {make_literal(word) for word in function.words}:
        raise UsageError(f"{name}: the first argument must be one of {', '.join(function.words)}. Nothing was charged.")
    return result


def _resolve(function: Function, arguments: tuple[Expression, ...]) -> Call:
    """The call, in which every NULL literal has the first type that fits."""
    open_nulls = [i for i, a in enumerate(arguments) if isinstance(a, Literal) and a.value is None]
    types = [a.type for a in arguments]
    for candidate in [None, *Type]:
        if candidate is not None:
            for i in open_nulls:
                types[i] = candidate
        yielded = function.yields(tuple(types))
        if yielded is not None:
            fixed = tuple(Literal(None, types[i]) if i in open_nulls else a for i, a in enumerate(arguments))
            return Call(function.name, fixed, yielded)
        if not open_nulls:
            break
    shown = ", ".join(a.type for a in arguments)
    raise UsageError(f"{function.name} ({function.help}) does not take ({shown}). Nothing was charged.")
