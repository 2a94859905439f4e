"""The primitives of ``sql.dialect`` in PostgreSQL's own words. What each means, and its trap, is said there.

There is no TRY: conditions guard every operation that could raise. PostgreSQL computes constant parts while it plans,
so a guard reads exactly the operands of what it guards, and is decided before it. Every text has the collation "C",
in which texts compare by code points; it is written wherever a text is made.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Mapping, Sequence
from typing import assert_never

from discreet.engines.postgres import letters, reals, times
from discreet.engines.sql import dialect
from discreet.errors import InternalError
from discreet.plan.relations import JoinKind
from discreet.plan.types import INTEGER_MAX, INTEGER_MIN, Type, Value

TYPES: Mapping[Type, str] = {
    Type.BOOLEAN: "boolean",
    Type.INTEGER: "bigint",
    Type.REAL: "float8",
    Type.TEXT: "text",
    Type.DATE: "date",
    Type.TIMESTAMP: "timestamp",
}
# Values that are stored as integers, as these: the {0} is the value. No other type has a code.
CODES: Mapping[Type, str] = {
    Type.INTEGER: "{0}",
    Type.BOOLEAN: "CAST(CAST({0} AS int) AS bigint)",
    Type.DATE: "CAST({0} - CAST('1970-01-01' AS date) AS bigint)",
    Type.TIMESTAMP: "CAST(extract(epoch FROM {0}) * 1000000 AS bigint)",
}
# A value of each type, for comparisons in which NULL is told apart beside it.
_SOME_VALUE: Mapping[Type, Value] = {
    Type.BOOLEAN: False,
    Type.INTEGER: 0,
    Type.REAL: 0.0,
    Type.DATE: dt.date(1970, 1, 1),
    Type.TIMESTAMP: dt.datetime(1970, 1, 1),  # noqa: DTZ001  # plan timestamps have no zone
}
# Positions and offsets have 32 bits; no text and no part of a window is longer.
LONGEST = 2**31 - 1
# So many expressions of a stack are planned as one.
DEEPEST = 6
# What encloses the name of a parameter until it gets its number. No name or constant can hold it.
MARK = "\0"
_ADDABLE, _FACTOR = 2**62, 2**31


class PostgresDialect:
    """PostgreSQL's form of every primitive. It has no state."""

    # Names, types and constants

    def quote_name(self, name: str) -> str:
        return quote_name(name)

    def literal(self, value: Value, kind: Type) -> str:
        match value:
            case None:
                return f"CAST(NULL AS {TYPES[kind]})"
            case bool():
                return "true" if value else "false"
            case int() if kind is Type.INTEGER:
                return f"CAST('{value}' AS bigint)"
            case int() | float():
                return reals.constant(float(value))
            case dt.datetime():
                return f"CAST('{value.isoformat(sep=' ')}' AS timestamp)"
            case dt.date():
                return f"CAST('{value.isoformat()}' AS {TYPES[kind]})"
            case str():
                raise InternalError("A text is bound, never written.")
            case _:
                assert_never(value)

    def parameter(self, name: str) -> str:
        return _collate(f"CAST({MARK}{name}{MARK} AS text)")

    def wide_literal(self, value: int) -> str:
        return f"CAST('{value}' AS numeric)"

    def widen(self, value: str, source: Type, target: Type) -> str:
        return value if source is target else f"CAST({value} AS {TYPES[target]})"

    def common_table(self, name: str, query: str, *, keep: bool | None = None) -> str:
        words = {True: "AS MATERIALIZED", False: "AS NOT MATERIALIZED", None: "AS"}
        return f"{name} {words[keep]} ({query})"

    def stacked_table(self, name: str, query: str, apart: int) -> str:
        # What is stored is planned by itself, which keeps very deep stacks from taking long.
        deep = apart > 0 and apart % DEEPEST == 0
        return self.common_table(name, f"{query} OFFSET 0" if apart else query, keep=deep)

    # Integers. Most are small and leave by the first branch; others are computed as numerics, which do not overflow.

    def add(self, left: str, right: str, kind: Type) -> str:
        return self._write_integer(left, "+", right, _ADDABLE) if kind is Type.INTEGER else reals.write_sum(left, right)

    def subtract(self, left: str, right: str, kind: Type) -> str:
        if kind is Type.INTEGER:
            return self._write_integer(left, "-", right, _ADDABLE)
        return reals.write_sum(left, f"(- {right})")

    def multiply(self, left: str, right: str, kind: Type) -> str:
        if kind is Type.INTEGER:
            return self._write_integer(left, "*", right, _FACTOR)
        return reals.write_product(left, right)

    def _write_integer(self, left: str, operator: str, right: str, most: int) -> str:
        """A result in 64 bits, else NULL. Operands below ``most`` in size cannot leave them."""
        low, high = (self.literal(end, Type.INTEGER) for end in (1 - most, most - 1))
        small = " AND ".join(f"{each} >= {low} AND {each} <= {high}" for each in (left, right))
        wide = f"({self.to_wide(left)} {operator} {self.to_wide(right)})"
        return f"CASE WHEN {small} THEN {left} {operator} {right} ELSE {self.narrow(wide)} END"

    def negate(self, value: str, kind: Type) -> str:
        if kind is Type.REAL:
            return f"(- {value})"
        return f"CASE WHEN {value} > {self.literal(INTEGER_MIN, Type.INTEGER)} THEN - {value} END"

    def absolute(self, value: str, kind: Type) -> str:
        if kind is Type.REAL:
            return f"abs({value})"
        return f"CASE WHEN {value} > {self.literal(INTEGER_MIN, Type.INTEGER)} THEN abs({value}) END"

    def sign(self, value: str) -> str:
        one, zero, less = (self.literal(number, Type.INTEGER) for number in (1, 0, -1))
        return f"CASE WHEN {value} > 0 THEN {one} WHEN {value} < 0 THEN {less} WHEN {value} = 0 THEN {zero} END"

    def modulo(self, left: str, right: str) -> str:
        return f"CASE WHEN {right} = -1 THEN {left} & 0 WHEN {right} <> 0 THEN {left} % {right} END"

    def to_wide(self, value: str) -> str:
        return f"CAST({value} AS numeric)"

    def wide_sum(self, value: str) -> str:
        return f"sum({value})"  # of 64 bits or of numerics, it is a numeric

    def bounded_sum(self, value: str, most: int) -> str:  # noqa: ARG002  # all sums are wide
        return self.wide_sum(value)

    def real_sum(self, value: str) -> str:
        return f"sum({value})"

    def low_sum(self, value: str) -> str:
        return self.wide_sum(value)

    def low_product(self, weight: str, total: str) -> str:
        return f"{weight} * coalesce({self.narrow(total)}, 0)"  # the weight of what is larger is 0

    def trunc_divide(self, left: str, right: str, *, wide: bool = False) -> str:
        return f"div({left}, {right})" if wide else f"({left}) / ({right})"

    def trunc_remainder(self, left: str, right: str, *, wide: bool = False) -> str:
        return f"mod({left}, {right})" if wide else f"({left}) % ({right})"

    def split_wide(self, value: str, half: int) -> tuple[str, str]:
        by = self.wide_literal(half)
        quotient, remainder = self.trunc_divide(value, by, wide=True), self.trunc_remainder(value, by, wide=True)
        return self.as_integer(quotient), self.as_integer(remainder)

    def as_integer(self, value: str) -> str:
        return f"CAST({value} AS bigint)"

    def narrow(self, value: str) -> str:
        low, high = (self.wide_literal(end) for end in (INTEGER_MIN, INTEGER_MAX))
        return f"CASE WHEN {value} >= {low} AND {value} <= {high} THEN CAST({value} AS bigint) END"

    def real_of_wide(self, value: str) -> str:
        return f"CAST({value} AS float8)"  # by its digits, which are read correctly

    def cut_real(self, value: str) -> str:
        return f"CAST(trunc({value}) AS bigint)"

    def integer_of_real(self, value: str) -> str:
        least, most = reals.constant(-(2.0**63)), reals.constant(2.0**63)
        return f"CASE WHEN {value} >= {least} AND {value} < {most} THEN CAST({value} AS bigint) END"

    def integer_of_whole(self, value: str) -> str:
        return f"CAST({value} AS bigint)"

    # Reals

    def is_finite(self, value: str) -> str:
        return f"({value} > {reals.MINUS_INFINITY} AND {value} < {reals.INFINITY})"  # NaN is above all numbers

    def is_nan(self, value: str) -> str:
        return f"({value} = CAST('NaN' AS float8))"

    def divide(self, left: str, right: str) -> str:
        return reals.write_quotient(left, right)

    def steps(self, value: str, origin: float, resolution: float) -> str:
        return reals.write_steps(value, origin, resolution)

    def floor(self, value: str) -> str:
        return f"floor({value})"

    def ceil(self, value: str) -> str:
        return f"ceil({value})"

    def round_away(self, value: str) -> str:
        return f"({reals.write_rounded_away(f'({value})')})"

    def square_root(self, value: str) -> str:
        return f"CASE WHEN {value} >= 0 THEN sqrt({value}) END"

    def log2(self, value: str) -> str:
        return f"(ln({value}) / {reals.constant(0.6931471805599453)})"

    def exp(self, value: str) -> str:
        return reals.write_exponential(value)

    def power(self, base: str, exponent: str) -> str:
        return reals.write_power(base, exponent)

    # Texts

    def lower(self, text: str) -> str:
        return letters.write_changed(text, "lower")

    def upper(self, text: str) -> str:
        return letters.write_changed(text, "upper")

    def trim(self, text: str) -> str:
        return f"btrim({text}, ' ')"

    def length(self, text: str) -> str:
        return f"CAST(char_length({text}) AS bigint)"

    def substring(self, text: str, start: int, count: int) -> str:
        return f"substr({text}, {min(start, LONGEST)}, {min(count, LONGEST)})"

    def starts_with(self, text: str, start: str) -> str:
        return f"starts_with({text}, {start})"

    def ends_with(self, text: str, end: str) -> str:
        return f"(right({text}, char_length({end})) = {end})"

    def contains(self, text: str, part: str) -> str:
        return f"(strpos({text}, {part}) > 0)"

    def like(self, text: str, pattern: str) -> str:
        return f"({text} LIKE {pattern} ESCAPE '')"

    def full_match(self, text: str, pattern: str) -> str:
        return rf"({text} ~ '\A(?:{pattern})\Z')"

    def parse(self, text: str, kind: Type) -> str:
        match kind:
            case Type.INTEGER:
                return self.narrow(f"CAST({text} AS numeric)")
            case Type.REAL:
                signed = f"CASE WHEN {text} LIKE '-%' THEN {reals.MINUS_INFINITY} ELSE {reals.INFINITY} END"
                number = reals.write_from_numeric(f"CAST({text} AS numeric)")
                return f"CASE WHEN {text} ~ '[nN]' THEN {signed} ELSE {number} END"
            case Type.DATE:
                return times.write_day(text)
            case Type.TIMESTAMP:
                return times.write_moment(text)
            case Type.BOOLEAN | Type.TEXT:
                raise InternalError(f"A text is not parsed as {kind}.")
            case _:
                assert_never(kind)

    def to_text(self, value: str, kind: Type) -> str:
        match kind:
            case Type.TEXT:
                return value
            case Type.DATE:
                return _collate(f"to_char({value}, 'YYYY-MM-DD')")
            case Type.BOOLEAN | Type.INTEGER:
                return _collate(f"CAST({value} AS text)")
            case Type.REAL | Type.TIMESTAMP:
                raise InternalError(f"A {kind} is not written as a text.")
            case _:
                assert_never(kind)

    # Times

    def date_part(self, word: str, moment: str) -> str:
        return times.write_part(word, moment)

    def date_trunc(self, word: str, moment: str, kind: Type) -> str:
        return f"CAST(date_trunc('{word}', {moment}) AS {TYPES[kind]})"

    def date_diff(self, word: str, start: str, end: str) -> str:
        return times.write_difference(word, start, end)

    def date_of(self, moment: str) -> str:
        return f"CAST({moment} AS date)"

    # Rows and sets

    def same(self, left: str, right: str, kind: Type) -> str:
        some = _collate("''") if kind is Type.TEXT else self.literal(_SOME_VALUE[kind], kind)
        return f"(({left} IS NULL) = ({right} IS NULL) AND coalesce({left}, {some}) = coalesce({right}, {some}))"

    def join(self, left: str, kind: JoinKind, right: str, on: str) -> str:
        if kind not in (JoinKind.SEMI, JoinKind.ANTI):
            return f"{left} {kind.upper()} JOIN {right} ON {on}"
        word = "EXISTS" if kind is JoinKind.SEMI else "NOT EXISTS"
        return f"(SELECT * FROM {left} WHERE {word} (SELECT 1 FROM {right} WHERE {on})) AS {left}"

    def first_rows(self, source: str, parts: Sequence[str], order: Sequence[str], most: int) -> str:
        within = f"PARTITION BY {', '.join(parts)} " if parts else ""
        place = f"place_in_{source}"
        numbered = f"SELECT *, row_number() OVER ({within}ORDER BY {', '.join(order)}) AS {place} FROM {source}"
        return f"SELECT * FROM ({numbered}) AS numbered WHERE {place} <= {most}"

    @property
    def moves_rows(self) -> bool:
        return False

    @property
    def leaves_guards_out(self) -> bool:
        return False

    @property
    def sums_reals(self) -> bool:
        return False

    @property
    def counts_by_window(self) -> bool:
        return True  # counts to be joined are computed again by each worker

    @property
    def counts_groups_by_window(self) -> bool:
        return True

    def gather(self, source: str, items: Sequence[str], by: Sequence[str]) -> str:
        # The order serves the groups and the window over them. Hashed, pairs are almost as many as rows, and workers
        # hash them for nothing before one of them does.
        ordered = f"SELECT {', '.join(items)} FROM {source} ORDER BY {', '.join(by)} OFFSET 0"
        return f"({ordered}) AS gathered"

    def number_each(self, source: str, values: Sequence[str]) -> str:
        cells, places = ", ".join(values), ", ".join(map(str, range(len(values))))
        return f"(SELECT *, unnest(ARRAY[{cells}]) AS cell, unnest(ARRAY[{places}]) AS place FROM {source}) AS own"

    def row_away(self, word: str, value: str, offset: int, kind: Type) -> str:
        return f"{word}({value}, {min(max(offset, -LONGEST), LONGEST)}, {self.literal(None, kind)})"

    # The secret order

    def identity(self, unit: str, kind: Type) -> str:
        return self.code(unit, kind) or _hash(unit, kind, 0)

    def place_of_group(self, identity: str, values: Sequence[tuple[str, Type]], salt: bytes, bits: int) -> str:
        return f"({self._write_keyed_hash([(identity, Type.INTEGER), *values], salt)} >> {64 - bits})"

    def place_of_row(self, values: Sequence[tuple[str, Type]], salt: bytes) -> str:
        return self._write_keyed_hash(values, salt)

    def _write_keyed_hash(self, values: Sequence[tuple[str, Type]], salt: bytes) -> str:
        """A hash of 64 bits: of each value under a key of its own, NULL a key itself, and once more of all together."""
        found = [self.literal(_derive_key(salt, 0, "all"), Type.INTEGER)]
        for place, (sql, kind) in enumerate(values):
            value = sql if kind in (Type.TEXT, Type.REAL) else f"({self.code(sql, kind)})"
            null = self.literal(_derive_key(salt, place, "null"), Type.INTEGER)
            found.append(f"coalesce({_hash(value, kind, _derive_key(salt, place, 'value'))}, {null})")
        return f"hashint8extended({' # '.join(found)}, {_derive_key(salt, 0, 'last')})"

    def code(self, value: str, kind: Type) -> str | None:
        return CODES[kind].format(value) if kind in CODES else None


DIALECT = PostgresDialect()


def quote_name(name: str) -> str:
    """A quoted name, in which the mark of parameters cannot be."""
    if MARK in name:
        raise InternalError("A name holds a NUL character.")
    return dialect.quote_name(name)


def _collate(text: str) -> str:
    return f'({text} COLLATE "C")'


def _hash(value: str, kind: Type, key: int) -> str:
    """A hash of 64 bits under a key; NULL of NULL. Values that are stored as integers come as such."""
    word = {Type.TEXT: "hashtextextended", Type.REAL: "hashfloat8extended"}.get(kind, "hashint8extended")
    return f"{word}({value}, CAST('{key}' AS bigint))"


def _derive_key(salt: bytes, place: int, purpose: str) -> int:
    """A key of 64 bits for one place and purpose. The salt itself is in no statement."""
    digest = hashlib.blake2b(f"{purpose} {place}".encode(), key=salt, digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)
