"""Expressions in DuckDB's SQL, so that whatever the data holds, nothing raises and every value is one of the plan's.

Every call becomes a named column of its own, one layer above the columns it reads. So no expression is written twice
(guards read their value more than once), equal calls are computed once, and the text grows with the question and not
with its depth. Reals pass a guard that turns NaN and infinities into NULL and −0.0 into 0.0.

Names are quoted, texts are bound as parameters, numbers and dates are written by ``Layers.write_literal`` alone.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import TypeAlias

from discreet.errors import InternalError
from discreet.plan.expressions import Call, Column, Expression, Literal
from discreet.plan.functions import FUNCTIONS
from discreet.plan.magnitude import BUCKETS
from discreet.plan.types import Type, Value

SQL_TYPES: Mapping[Type, str] = {
    Type.BOOLEAN: "BOOLEAN",
    Type.INTEGER: "BIGINT",
    Type.REAL: "DOUBLE",
    Type.TEXT: "VARCHAR",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP",
}

Template: TypeAlias = Callable[[Call, list[str]], str]
"""A call as SQL, from the SQL of its arguments, each of which is a name or a constant."""

# The moments that Python, and so the meaning of the plan, knows.
FIRST_DAY, LAST_DAY = "DATE '0001-01-01'", "DATE '9999-12-31'"
FIRST_MOMENT, LAST_MOMENT = "TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP '9999-12-31 23:59:59.999999'"


def quote_name(name: str) -> str:
    """A quoted name.

    >>> quote_name('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """A quoted text: for paths and names of the curator's own, never for what an analyst wrote."""
    if "\0" in text:
        raise InternalError("A path holds a NUL character.")
    return "'" + text.replace("'", "''") + "'"


class Layers:
    """Named columns over named columns: a stack of SELECT lists in which each layer reads only those below it."""

    def __init__(self, columns: Mapping[Column, str], texts: dict[str, str] | None = None) -> None:
        """``texts`` gives names to texts that are bound, shared by all layers of one statement."""
        self._known: dict[Expression, tuple[str, int]] = {c: (quote_name(n), 0) for c, n in columns.items()}
        self._layers: list[list[tuple[str, str]]] = []
        self._texts = {} if texts is None else texts
        self._count = 0

    @property
    def parameters(self) -> dict[str, str]:
        """The texts to bind, by name. A statement takes those that it names: see ``pick_parameters``."""
        return {name: text for text, name in self._texts.items()}

    def write_value(self, expression: Expression) -> str:
        """The name, or the constant, that stands for an expression."""
        return self._write_atom(expression)[0]

    def define(self, sql: str, *reads: Expression) -> str:
        """Name a piece of SQL over expressions that were asked for with ``write_value``."""
        level = max((self._write_atom(expression)[1] for expression in reads), default=0)
        return self._add_column(sql, level)[0]

    def write_ctes(self, base: str, prefix: str) -> tuple[list[str], str]:
        """The layers as common table expressions over the table ``base``, and the name of the topmost."""
        clauses, below = [], base
        for number, layer in enumerate(self._layers):
            items = ", ".join(f"{sql} AS {name}" for name, sql in layer)
            name = f"{prefix}{number}"
            clauses.append(f"{name} AS NOT MATERIALIZED (SELECT *, {items} FROM {below})")
            below = name
        return clauses, below

    def write_literal(self, value: Value, kind: Type) -> str:
        """A constant of a type. Texts become parameters; everything else has a form of its own."""
        target = SQL_TYPES[kind]
        match value:
            case None:
                return f"CAST(NULL AS {target})"
            case str():
                name = self._texts.setdefault(value, f"t{len(self._texts)}")
                return f"CAST(${name} AS VARCHAR)"
            case bool():
                return "true" if value else "false"
            case int() if kind is Type.INTEGER:
                return f"CAST({value} AS BIGINT)"
            case int() | float():
                return f"CAST('{float(value)!r}' AS DOUBLE)"
            case dt.datetime():
                return f"CAST('{value.isoformat(sep=' ')}' AS TIMESTAMP)"
            case dt.date():
                return f"CAST('{value.isoformat()}' AS {target})"

    def _write_atom(self, expression: Expression) -> tuple[str, int]:
        if isinstance(expression, Literal):
            return self.write_literal(expression.value, expression.type), 0
        if expression not in self._known:
            self._known[expression] = self._write_call(expression)
        return self._known[expression]

    def _write_call(self, expression: Expression) -> tuple[str, int]:
        if not isinstance(expression, Call):
            raise InternalError("A released number cannot be read from private rows.")
        # Words such as 'month' are written by the template itself, so that no parameter is left unused.
        words = 1 if FUNCTIONS[expression.function].words else 0
        atoms = [("", 0)] * words + [self._write_atom(argument) for argument in expression.arguments[words:]]
        level = max((level for _, level in atoms), default=0)
        name, level = self._add_column(_apply_template(expression, [sql for sql, _ in atoms]), level)
        if expression.type is Type.REAL:
            return self._add_column(write_finite(name), level)
        return name, level

    def _add_column(self, sql: str, level: int) -> tuple[str, int]:
        """A new column in the layer above ``level``."""
        while len(self._layers) <= level:
            self._layers.append([])
        self._count += 1
        name = f'"e{self._count}"'
        self._layers[level].append((name, sql))
        return name, level + 1


def pick_parameters(sql: str, parameters: Mapping[str, str]) -> dict[str, str]:
    """The parameters that a statement names; DuckDB refuses any others, and constants may fall away."""
    return {name: text for name, text in parameters.items() if f"(${name} AS " in sql}


def write_finite(name: str) -> str:
    """A double as a plan's real: NULL where it is not finite, and never −0.0."""
    return f"CASE WHEN isfinite({name}) THEN {name} + CAST(0 AS DOUBLE) END"


def cast(sql: str, source: Type, target: Type) -> str:
    """A value as one of a wider type: integers as reals, dates as moments."""
    return sql if source is target else f"CAST({sql} AS {SQL_TYPES[target]})"


def _apply_template(call: Call, atoms: list[str]) -> str:
    template = TEMPLATES.get(call.function)
    if template is None:
        raise InternalError(f"The function {call.function!r} has no form in this dialect.")
    return template(call, atoms)


# Helpers from which templates are made. ``a`` are atoms of the arguments in their own types.


def _cast_to_common(call: Call, atoms: list[str]) -> list[str]:
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
        cast(atom, argument.type, target) if argument.type in numbers else atom
        for atom, argument in zip(atoms, call.arguments)
    ]


def _make_infix(operator: str) -> Template:
    def write(call: Call, atoms: list[str]) -> str:
        left, right = _cast_to_common(call, atoms)
        return f"({left} {operator} {right})"

    return write


def _make_arithmetic(operator: str) -> Template:
    """Integers overflow to NULL by TRY; reals do not raise and are guarded afterwards."""
    inner = _make_infix(operator)
    return lambda call, atoms: f"TRY{inner(call, atoms)}" if call.type is Type.INTEGER else inner(call, atoms)


def _make_real(form: str) -> Template:
    """A form over arguments as doubles, written {0}, {1}."""

    def write(call: Call, atoms: list[str]) -> str:
        reals = [cast(atom, argument.type, Type.REAL) for atom, argument in zip(atoms, call.arguments)]
        return form.format(*reals)

    return write


def _make_plain(form: str) -> Template:
    """A form over the arguments as they are."""
    return lambda call, atoms: form.format(*atoms)  # noqa: ARG005  # templates have one shape


def _write_whole(call: Call, atoms: list[str]) -> str:
    """Functions of one number that keep its type and may overflow. DuckDB would widen the minus of a constant."""
    form = {"negate": "{1} - {0}", "abs": "abs({0})"}[call.function]
    return f"TRY({form.format(atoms[0], f'CAST(0 AS {SQL_TYPES[call.type]})')})"


def _write_round(call: Call, atoms: list[str]) -> str:
    value = cast(atoms[0], call.arguments[0].type, Type.REAL)
    digits = _constant_of(call, 1)
    if not isinstance(digits, int) or abs(digits) > 15:
        return "CAST(NULL AS DOUBLE)"
    scale = f"CAST('1e{abs(digits)}' AS DOUBLE)"
    down, up = ("*", "/") if digits >= 0 else ("/", "*")
    return f"round({value} {down} {scale}) {up} {scale}"


def _write_bin(call: Call, atoms: list[str]) -> str:
    width = _constant_of(call, 1)
    if not isinstance(width, int | float) or width <= 0:
        return "CAST(NULL AS DOUBLE)"
    value, size = (cast(atom, argument.type, Type.REAL) for atom, argument in zip(atoms, call.arguments))
    return f"floor({value} / {size}) * {size}"


def _write_magnitude(call: Call, atoms: list[str]) -> str:
    """A tree of comparisons with powers of two, which are exact; a logarithm would be rounded beside them."""
    form = "CAST({} AS BIGINT)" if call.type is Type.INTEGER else "CAST('{!r}' AS DOUBLE)"
    buckets = [(bucket, form.format(bucket)) for bucket in BUCKETS[call.type]]

    def tree(first: int, last: int) -> str:
        if first == last:
            return buckets[first][1]
        middle = (first + last) // 2
        # A bucket begins at its power of two; below zero it ends there.
        at, below = (middle, "<=") if buckets[middle][0] < 0 else (middle + 1, "<")
        left, right = tree(first, middle), tree(middle + 1, last)
        return f"CASE WHEN {atoms[0]} {below} {buckets[at][1]} THEN {left} ELSE {right} END"

    return f"CASE WHEN {atoms[0]} IS NOT NULL THEN {tree(0, len(buckets) - 1)} END"


def _write_clamp(call: Call, atoms: list[str]) -> str:
    if None in (_constant_of(call, 1), _constant_of(call, 2)):
        return f"CAST(NULL AS {SQL_TYPES[call.type]})"
    value, low, high = _cast_to_common(call, atoms)
    return f"CASE WHEN {value} IS NOT NULL THEN least(greatest({value}, {low}), {high}) END"


def _constant_of(call: Call, position: int) -> Value:
    argument = call.arguments[position]
    if not isinstance(argument, Literal):
        raise InternalError(f"Argument {position + 1} of {call.function!r} is not a constant.")
    return argument.value


def _make_listing(word: str) -> Template:
    return lambda call, atoms: f"{word}({', '.join(_cast_to_common(call, atoms))})"


def _write_in(call: Call, atoms: list[str]) -> str:
    value, *members = _cast_to_common(call, atoms)
    return f"({value} IN ({', '.join(members)}))"


def _make_chain(word: str) -> Template:
    return lambda call, atoms: f"({f' {word} '.join(atoms)})"  # noqa: ARG005  # templates have one shape


def _write_case(call: Call, atoms: list[str]) -> str:
    results = [cast(atom, argument.type, call.type) for atom, argument in zip(atoms, call.arguments)]
    branches = " ".join(f"WHEN {c} THEN {r}" for c, r in zip(atoms[:-1:2], results[1::2]))
    return f"CASE {branches} ELSE {results[-1]} END"


def _write_coalesce(call: Call, atoms: list[str]) -> str:
    return f"coalesce({', '.join(cast(a, arg.type, call.type) for a, arg in zip(atoms, call.arguments))})"


def _write_null_if(call: Call, atoms: list[str]) -> str:
    left, right = _cast_to_common(call, atoms)
    return f"CASE WHEN {left} = {right} THEN NULL ELSE {atoms[0]} END"


def _write_substring(call: Call, atoms: list[str]) -> str:
    start, count = _constant_of(call, 1), _constant_of(call, 2)
    if not isinstance(start, int) or not isinstance(count, int) or start < 1 or count < 0:
        return "CAST(NULL AS VARCHAR)"
    longest = 2**31 - 1  # no text is longer, and DuckDB refuses positions beyond 32 bits
    return f"substring({atoms[0]}, {min(start, longest)}, {min(count, longest)})"


def _write_moment(call: Call, atoms: list[str], position: int) -> str:
    return cast(atoms[position], call.arguments[position].type, Type.TIMESTAMP)


def _write_part(call: Call, atoms: list[str]) -> str:
    return f"CAST(date_part('{_word_of(call)}', {_write_moment(call, atoms, 1)}) AS BIGINT)"


def _write_date_trunc(call: Call, atoms: list[str]) -> str:
    return f"CAST(date_trunc('{_word_of(call)}', {_write_moment(call, atoms, 1)}) AS {SQL_TYPES[call.type]})"


def _write_date_diff(call: Call, atoms: list[str]) -> str:
    return f"date_diff('{_word_of(call)}', {_write_moment(call, atoms, 1)}, {_write_moment(call, atoms, 2)})"


def _word_of(call: Call) -> str:
    """A unit of time; ``functions.make_call`` has checked it, and only letters are ever written."""
    word = _constant_of(call, 0)
    if not isinstance(word, str) or not (word.isascii() and word.isalpha()):
        raise InternalError("A unit of time must be a word.")
    return word


def _write_to_integer(call: Call, atoms: list[str]) -> str:
    return write_whole_from_text(atoms[0]) if call.arguments[0].type is Type.TEXT else f"TRY_CAST({atoms[0]} AS BIGINT)"


def _write_to_real(call: Call, atoms: list[str]) -> str:
    return write_real_from_text(atoms[0]) if call.arguments[0].type is Type.TEXT else f"CAST({atoms[0]} AS DOUBLE)"


def _write_to_date(call: Call, atoms: list[str]) -> str:
    return write_date_from_text(atoms[0]) if call.arguments[0].type is Type.TEXT else f"CAST({atoms[0]} AS DATE)"


# Texts are read by strict patterns, because engines differ in what else they would accept.


def write_whole_from_text(text: str) -> str:
    """A whole number written in digits, else NULL."""
    trimmed = f"trim({text}, ' ')"
    return f"CASE WHEN regexp_full_match({trimmed}, '[+-]?[0-9]{{1,19}}') THEN TRY_CAST({trimmed} AS BIGINT) END"


def write_real_from_text(text: str) -> str:
    """A decimal number, perhaps with an exponent, else NULL (or infinite, which the guard turns into NULL)."""
    trimmed = f"trim({text}, ' ')"
    pattern = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?"
    fits = f"length({trimmed}) <= 400 AND regexp_full_match({trimmed}, '{pattern}')"
    return f"CASE WHEN {fits} THEN TRY_CAST({trimmed} AS DOUBLE) END"


def write_date_from_text(text: str) -> str:
    """A date as 2001-12-31, else NULL."""
    trimmed = f"trim({text}, ' ')"
    fits = f"regexp_full_match({trimmed}, '[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}') AND {trimmed} >= '0001'"
    return f"CASE WHEN {fits} THEN TRY_CAST({trimmed} AS DATE) END"


TEMPLATES: Mapping[str, Template] = {
    "add": _make_arithmetic("+"),
    "subtract": _make_arithmetic("-"),
    "multiply": _make_arithmetic("*"),
    "divide": _make_real("CASE WHEN {1} <> 0 THEN {0} / {1} END"),
    "modulo": _make_plain("CASE WHEN {1} = -1 THEN {0} & 0 WHEN {1} <> 0 THEN TRY({0} % {1}) END"),
    "negate": _write_whole,
    "abs": _write_whole,
    "sign": _make_plain("CAST(sign({0}) AS BIGINT)"),
    "floor": _make_real("floor({0})"),
    "ceil": _make_real("ceil({0})"),
    "round": _write_round,
    "sqrt": _make_real("CASE WHEN {0} >= 0 THEN sqrt({0}) END"),
    "ln": _make_real("CASE WHEN {0} > 0 THEN ln({0}) END"),
    "exp": _make_real("exp({0})"),
    "power": _make_real("pow({0}, {1})"),
    "least": _make_listing("least"),
    "greatest": _make_listing("greatest"),
    "clamp": _write_clamp,
    "bin": _write_bin,
    "magnitude": _write_magnitude,
    "equal": _make_infix("="),
    "unequal": _make_infix("<>"),
    "less": _make_infix("<"),
    "at_most": _make_infix("<="),
    "greater": _make_infix(">"),
    "at_least": _make_infix(">="),
    "in": _write_in,
    "is_null": _make_plain("({0} IS NULL)"),
    "not": _make_plain("(NOT {0})"),
    "and": _make_chain("AND"),
    "or": _make_chain("OR"),
    "case": _write_case,
    "coalesce": _write_coalesce,
    "null_if": _write_null_if,
    "lower": _make_plain("lower({0})"),
    "upper": _make_plain("upper({0})"),
    "trim": _make_plain("trim({0}, ' ')"),
    "length": _make_plain("CAST(length({0}) AS BIGINT)"),
    "concat": _make_chain("||"),
    "substring": _write_substring,
    "starts_with": _make_plain("starts_with({0}, {1})"),
    "ends_with": _make_plain("ends_with({0}, {1})"),
    "contains": _make_plain("contains({0}, {1})"),
    "like": _make_plain("({0} LIKE {1})"),
    "ilike": _make_plain("(lower({0}) LIKE lower({1}))"),
    "part": _write_part,
    "date_trunc": _write_date_trunc,
    "date_diff": _write_date_diff,
    "to_boolean": lambda call, atoms: atoms[0] if call.arguments[0].type is Type.BOOLEAN else f"({atoms[0]} <> 0)",
    "to_integer": _write_to_integer,
    "to_real": _write_to_real,
    "to_text": _make_plain("CAST({0} AS VARCHAR)"),
    "to_date": _write_to_date,
    "to_timestamp": _make_plain("CAST({0} AS TIMESTAMP)"),
}
