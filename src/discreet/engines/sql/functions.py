"""A form in SQL for every function of ``plan.functions``, over the primitives of a dialect.

Where the meaning is that of standard SQL the form is written here; where engines differ it asks the dialect. Arguments
come as SQL of their own types, each a name or a constant, so that a form may write them more than once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, assert_never

from discreet.engines.sql.dialect import Dialect
from discreet.engines.sql.text_forms import write_date_from_text, write_integer_from_text, write_real_from_text
from discreet.errors import InternalError
from discreet.plan.evaluate import WHOLE_FROM
from discreet.plan.expressions import Call, Literal
from discreet.plan.magnitude import BUCKETS
from discreet.plan.types import Type, Value

CallForm: TypeAlias = Callable[[Dialect, Call, list[str]], str]
"""A call as SQL, from the SQL of its arguments."""


def write_call(dialect: Dialect, call: Call, atoms: list[str]) -> str:
    """A call over arguments that are names or constants."""
    form = FORMS.get(call.function)
    if form is None:
        raise InternalError(f"The function {call.function!r} has no form in SQL.")
    return form(dialect, call, atoms)


# Helpers from which forms are made


def _widen_all(dialect: Dialect, call: Call, atoms: list[str]) -> list[str]:
    """Arguments brought to one type, where integers meet reals or dates meet timestamps."""
    kinds = {argument.type for argument in call.arguments}
    if kinds >= {Type.INTEGER, Type.REAL}:
        target = Type.REAL
    elif kinds >= {Type.DATE, Type.TIMESTAMP}:
        target = Type.TIMESTAMP
    else:
        return atoms
    numbers = {Type.INTEGER, Type.REAL, Type.DATE, Type.TIMESTAMP}
    return [
        dialect.widen(atom, argument.type, target) if argument.type in numbers else atom
        for atom, argument in zip(atoms, call.arguments)
    ]


def _widen_to_real(dialect: Dialect, call: Call, atoms: list[str]) -> list[str]:
    return [dialect.widen(atom, argument.type, Type.REAL) for atom, argument in zip(atoms, call.arguments)]


def _constant_of(call: Call, position: int) -> Value:
    argument = call.arguments[position]
    if not isinstance(argument, Literal):
        raise InternalError(f"Argument {position + 1} of {call.function!r} is not a constant.")
    return argument.value


def _word_of(call: Call) -> str:
    """A unit of time; ``functions.make_call`` has checked it, and only letters are ever written."""
    word = _constant_of(call, 0)
    if not isinstance(word, str) or not (word.isascii() and word.isalpha()):
        raise InternalError("A unit of time must be a word.")
    return word


def _moment_of(dialect: Dialect, call: Call, atoms: list[str], position: int) -> str:
    return dialect.widen(atoms[position], call.arguments[position].type, Type.TIMESTAMP)


def _compare(operator: str) -> CallForm:
    def write(dialect: Dialect, call: Call, atoms: list[str]) -> str:
        left, right = _widen_all(dialect, call, atoms)
        return f"({left} {operator} {right})"

    return write


def _arithmetic(primitive: Callable[[Dialect], Callable[[str, str, Type], str]]) -> CallForm:
    """Two numbers of one type, by a primitive of the dialect."""

    def write(dialect: Dialect, call: Call, atoms: list[str]) -> str:
        left, right = _widen_all(dialect, call, atoms)
        return primitive(dialect)(left, right, call.type)

    return write


def _of_reals(primitive: Callable[[Dialect], Callable[..., str]]) -> CallForm:
    """A primitive over arguments as doubles."""
    return lambda dialect, call, atoms: primitive(dialect)(*_widen_to_real(dialect, call, atoms))


def _of_own(primitive: Callable[[Dialect], Callable[..., str]]) -> CallForm:
    """A primitive over the arguments as they are."""
    return lambda dialect, call, atoms: primitive(dialect)(*atoms)  # noqa: ARG005  # forms have one shape


def _list_in(word: str) -> CallForm:
    """The least or the greatest of several, each named once: DuckDB's planner fails over a column named twice."""

    def write(dialect: Dialect, call: Call, atoms: list[str]) -> str:
        named = list(dict.fromkeys(_widen_all(dialect, call, atoms)))
        return f"{word}({', '.join(named)})" if len(named) > 1 else named[0]

    return write


def _chain(word: str) -> CallForm:
    return lambda dialect, call, atoms: f"({f' {word} '.join(atoms)})"  # noqa: ARG005  # forms have one shape


# Numbers


def _write_quotient(dialect: Dialect, call: Call, atoms: list[str]) -> str:  # noqa: ARG001  # forms have one shape
    """By 0 and by −1 nothing is divided: engines raise there, of the smallest integer by −1 too."""
    value, divisor = atoms
    zero, one, minus_one = (dialect.literal(n, Type.INTEGER) for n in (0, 1, -1))
    safe = f"CASE WHEN {divisor} IN ({zero}, {minus_one}) THEN {one} ELSE {divisor} END"
    return (
        f"CASE WHEN {divisor} = {minus_one} THEN {dialect.negate(value, Type.INTEGER)} "
        f"WHEN {divisor} <> {zero} THEN {dialect.trunc_divide(value, safe)} END"
    )


def _write_trunc(dialect: Dialect, call: Call, atoms: list[str]) -> str:
    (value,) = _widen_to_real(dialect, call, atoms)
    return f"CASE WHEN {value} < 0 THEN {dialect.ceil(value)} ELSE {dialect.floor(value)} END"


def _write_round(dialect: Dialect, call: Call, atoms: list[str]) -> str:
    value = dialect.widen(atoms[0], call.arguments[0].type, Type.REAL)
    digits = _constant_of(call, 1)
    if not isinstance(digits, int) or abs(digits) > 15:
        return dialect.literal(None, Type.REAL)
    scale = dialect.literal(10.0 ** abs(digits), Type.REAL)
    if digits >= 0:
        rounded = dialect.divide(dialect.round_away(dialect.multiply(value, scale, Type.REAL)), scale)
        size, whole = dialect.absolute(value, Type.REAL), dialect.literal(WHOLE_FROM, Type.REAL)
        return f"CASE WHEN {size} < {whole} THEN {rounded} ELSE {value} END"
    return dialect.multiply(dialect.round_away(dialect.divide(value, scale)), scale, Type.REAL)


def _write_bin(dialect: Dialect, call: Call, atoms: list[str]) -> str:
    width = _constant_of(call, 1)
    if not isinstance(width, int | float) or width <= 0:
        return dialect.literal(None, call.type)
    if call.type is Type.INTEGER:
        value, size = atoms
        above = dialect.trunc_remainder(value, size)  # of a negative number it is negative
        lower, below = (
            dialect.subtract(value, above, call.type),
            dialect.subtract(value, f"({above} + {size})", call.type),
        )
        return f"CASE WHEN {above} < 0 THEN {below} ELSE {lower} END"
    value, size = _widen_to_real(dialect, call, atoms)
    return dialect.multiply(dialect.floor(dialect.divide(value, size)), size, Type.REAL)


def _write_magnitude(dialect: Dialect, call: Call, atoms: list[str]) -> str:
    """A tree of comparisons with powers of two, which are exact; a logarithm would be rounded beside them."""
    buckets = [(bucket, dialect.literal(bucket, call.type)) for bucket in BUCKETS[call.type]]

    def tree(first: int, last: int) -> str:
        if first == last:
            return buckets[first][1]
        middle = (first + last) // 2
        # A bucket begins at its power of two; below zero it ends there.
        at, below = (middle, "<=") if buckets[middle][0] < 0 else (middle + 1, "<")
        left, right = tree(first, middle), tree(middle + 1, last)
        return f"CASE WHEN {atoms[0]} {below} {buckets[at][1]} THEN {left} ELSE {right} END"

    return f"CASE WHEN {atoms[0]} IS NOT NULL THEN {tree(0, len(buckets) - 1)} END"


def _write_clamp(dialect: Dialect, call: Call, atoms: list[str]) -> str:
    if None in (_constant_of(call, 1), _constant_of(call, 2)):
        return dialect.literal(None, call.type)
    value, low, high = _widen_all(dialect, call, atoms)
    return f"CASE WHEN {value} IS NOT NULL THEN least(greatest({value}, {low}), {high}) END"


# Choices


def _write_in(dialect: Dialect, call: Call, atoms: list[str]) -> str:
    value, *members = _widen_all(dialect, call, atoms)
    return f"({value} IN ({', '.join(members)}))"


def _write_case(dialect: Dialect, call: Call, atoms: list[str]) -> str:
    results = [dialect.widen(atom, argument.type, call.type) for atom, argument in zip(atoms, call.arguments)]
    branches = " ".join(f"WHEN {c} THEN {r}" for c, r in zip(atoms[:-1:2], results[1::2]))
    return f"CASE {branches} ELSE {results[-1]} END"


def _write_coalesce(dialect: Dialect, call: Call, atoms: list[str]) -> str:
    return f"coalesce({', '.join(dialect.widen(a, arg.type, call.type) for a, arg in zip(atoms, call.arguments))})"


def _write_null_if(dialect: Dialect, call: Call, atoms: list[str]) -> str:
    left, right = _widen_all(dialect, call, atoms)
    return f"CASE WHEN {left} = {right} THEN NULL ELSE {atoms[0]} END"


# Texts and times


def _write_substring(dialect: Dialect, call: Call, atoms: list[str]) -> str:
    start, count = _constant_of(call, 1), _constant_of(call, 2)
    if not isinstance(start, int) or not isinstance(count, int) or start < 1 or count < 0:
        return dialect.literal(None, Type.TEXT)
    return dialect.substring(atoms[0], start, count)


def _write_ilike(dialect: Dialect, call: Call, atoms: list[str]) -> str:  # noqa: ARG001  # forms have one shape
    return dialect.like(dialect.lower(atoms[0]), dialect.lower(atoms[1]))


def _write_part(dialect: Dialect, call: Call, atoms: list[str]) -> str:
    return dialect.date_part(_word_of(call), _moment_of(dialect, call, atoms, 1))


def _write_date_trunc(dialect: Dialect, call: Call, atoms: list[str]) -> str:
    return dialect.date_trunc(_word_of(call), _moment_of(dialect, call, atoms, 1), call.type)


def _write_date_diff(dialect: Dialect, call: Call, atoms: list[str]) -> str:
    return dialect.date_diff(_word_of(call), _moment_of(dialect, call, atoms, 1), _moment_of(dialect, call, atoms, 2))


# Casts


def _write_to_boolean(dialect: Dialect, call: Call, atoms: list[str]) -> str:  # noqa: ARG001  # forms have one shape
    return atoms[0] if call.arguments[0].type is Type.BOOLEAN else f"({atoms[0]} <> 0)"


def _write_to_integer(dialect: Dialect, call: Call, atoms: list[str]) -> str:
    match call.arguments[0].type:
        case Type.TEXT:
            return write_integer_from_text(dialect, atoms[0])
        case Type.REAL:
            return dialect.integer_of_real(atoms[0])
        case Type.BOOLEAN:
            one, zero = (dialect.literal(n, Type.INTEGER) for n in (1, 0))
            return f"CASE WHEN {atoms[0]} THEN {one} WHEN NOT {atoms[0]} THEN {zero} END"
        case Type.INTEGER:
            return atoms[0]
        case Type.DATE | Type.TIMESTAMP as kind:
            raise InternalError(f"A {kind} is no integer.")
        case never:
            assert_never(never)


def _write_to_real(dialect: Dialect, call: Call, atoms: list[str]) -> str:
    kind = call.arguments[0].type
    return write_real_from_text(dialect, atoms[0]) if kind is Type.TEXT else dialect.widen(atoms[0], kind, Type.REAL)


def _write_to_date(dialect: Dialect, call: Call, atoms: list[str]) -> str:
    match call.arguments[0].type:
        case Type.TEXT:
            return write_date_from_text(dialect, atoms[0])
        case Type.TIMESTAMP:
            return dialect.date_of(atoms[0])
        case Type.DATE:
            return atoms[0]
        case Type.BOOLEAN | Type.INTEGER | Type.REAL as kind:
            raise InternalError(f"A {kind} is no date.")
        case never:
            assert_never(never)


FORMS: Mapping[str, CallForm] = {
    "add": _arithmetic(lambda dialect: dialect.add),
    "subtract": _arithmetic(lambda dialect: dialect.subtract),
    "multiply": _arithmetic(lambda dialect: dialect.multiply),
    "divide": _of_reals(lambda dialect: dialect.divide),
    "quotient": _write_quotient,
    "modulo": _of_own(lambda dialect: dialect.modulo),
    "negate": lambda dialect, call, atoms: dialect.negate(atoms[0], call.type),
    "abs": lambda dialect, call, atoms: dialect.absolute(atoms[0], call.type),
    "sign": _of_own(lambda dialect: dialect.sign),
    "floor": _of_reals(lambda dialect: dialect.floor),
    "ceil": _of_reals(lambda dialect: dialect.ceil),
    "trunc": _write_trunc,
    "round": _write_round,
    "sqrt": _of_reals(lambda dialect: dialect.square_root),
    "exp": _of_reals(lambda dialect: dialect.exp),
    "power": _of_reals(lambda dialect: dialect.power),
    "least": _list_in("least"),
    "greatest": _list_in("greatest"),
    "clamp": _write_clamp,
    "bin": _write_bin,
    "magnitude": _write_magnitude,
    "equal": _compare("="),
    "unequal": _compare("<>"),
    "less": _compare("<"),
    "at_most": _compare("<="),
    "greater": _compare(">"),
    "at_least": _compare(">="),
    "in": _write_in,
    "is_null": lambda _, __, atoms: f"({atoms[0]} IS NULL)",
    "not": lambda _, __, atoms: f"(NOT {atoms[0]})",
    "and": _chain("AND"),
    "or": _chain("OR"),
    "case": _write_case,
    "coalesce": _write_coalesce,
    "null_if": _write_null_if,
    "lower": _of_own(lambda dialect: dialect.lower),
    "upper": _of_own(lambda dialect: dialect.upper),
    "trim": _of_own(lambda dialect: dialect.trim),
    "length": _of_own(lambda dialect: dialect.length),
    "concat": _chain("||"),
    "substring": _write_substring,
    "starts_with": _of_own(lambda dialect: dialect.starts_with),
    "ends_with": _of_own(lambda dialect: dialect.ends_with),
    "contains": _of_own(lambda dialect: dialect.contains),
    "position": lambda dialect, _, atoms: dialect.as_integer(f"position({atoms[1]} IN {atoms[0]})"),
    "like": _of_own(lambda dialect: dialect.like),
    "ilike": _write_ilike,
    "part": _write_part,
    "date_trunc": _write_date_trunc,
    "date_diff": _write_date_diff,
    "to_boolean": _write_to_boolean,
    "to_integer": _write_to_integer,
    "to_real": _write_to_real,
    "to_text": lambda dialect, call, atoms: dialect.to_text(atoms[0], call.arguments[0].type),
    "to_date": _write_to_date,
    "to_timestamp": lambda dialect, call, atoms: dialect.widen(atoms[0], call.arguments[0].type, Type.TIMESTAMP),
}
