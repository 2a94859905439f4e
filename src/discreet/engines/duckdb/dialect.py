"""The primitives of ``sql.dialect`` in DuckDB's own words. What each means, and its trap, is said there."""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import assert_never

from discreet.engines.sql.dialect import quote_name
from discreet.engines.sql.step_quotients import write_step_quotient
from discreet.errors import InternalError
from discreet.plan.relations import JoinKind
from discreet.plan.types import Type, Value

TYPES: Mapping[Type, str] = {
    Type.BOOLEAN: "BOOLEAN",
    Type.INTEGER: "BIGINT",
    Type.REAL: "DOUBLE",
    Type.TEXT: "VARCHAR",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP",
}
# Values that are stored as integers, as these: the {0} is the value. No other type has a code.
CODES: Mapping[Type, str] = {
    Type.INTEGER: "{0}",
    Type.BOOLEAN: "CAST({0} AS BIGINT)",
    Type.DATE: "CAST({0} - DATE '1970-01-01' AS BIGINT)",
    Type.TIMESTAMP: "epoch_us({0})",
}
# No text is longer, and DuckDB refuses positions beyond 32 bits.
LONGEST = 2**31 - 1


# So many layers of long columns are planned together.
DEEPEST = 4


class DuckDBDialect:
    """DuckDB's form of every primitive. It has no state."""

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
                return f"CAST({value} AS BIGINT)"
            case int() | float():
                return f"CAST('{float(value)!r}' AS DOUBLE)"
            case dt.datetime():
                return f"CAST('{value.isoformat(sep=' ')}' AS TIMESTAMP)"
            case dt.date():
                return f"CAST('{value.isoformat()}' AS {TYPES[kind]})"
            case str():
                raise InternalError("A text is bound, never written.")
            case _:
                assert_never(value)

    def parameter(self, name: str) -> str:
        return f"CAST(${name} AS VARCHAR)"

    def wide_literal(self, value: int) -> str:
        return f"CAST({value} AS HUGEINT)"

    def widen(self, value: str, source: Type, target: Type) -> str:
        return value if source is target else f"CAST({value} AS {TYPES[target]})"

    def common_table(self, name: str, query: str, *, keep: bool | None = None) -> str:
        words = {True: "AS MATERIALIZED", False: "AS NOT MATERIALIZED", None: "AS"}
        return f"{name} {words[keep]} ({query})"

    def stacked_table(self, name: str, query: str, apart: int) -> str:
        # No column is ever repeated. But DuckDB's planner takes for ever over a deep stack on top of joins: so what is
        # long several times over is stored, which parts the stack.
        return self.common_table(name, query, keep=apart > 0 and apart % DEEPEST == 0)

    # Integers. TRY turns an overflow into NULL; doubles do not raise.

    def add(self, left: str, right: str, kind: Type) -> str:
        return _try_integer(f"({left} + {right})", kind)

    def subtract(self, left: str, right: str, kind: Type) -> str:
        return _try_integer(f"({left} - {right})", kind)

    def multiply(self, left: str, right: str, kind: Type) -> str:
        return _try_integer(f"({left} * {right})", kind)

    def negate(self, value: str, kind: Type) -> str:
        return f"TRY({self.literal(0, kind)} - {value})"

    def absolute(self, value: str, kind: Type) -> str:  # noqa: ARG002  # one form for both kinds of numbers
        return f"TRY(abs({value}))"

    def sign(self, value: str) -> str:
        return f"CAST(sign({value}) AS BIGINT)"

    def modulo(self, left: str, right: str) -> str:
        return f"CASE WHEN {right} = -1 THEN {left} & 0 WHEN {right} <> 0 THEN TRY({left} % {right}) END"

    def to_wide(self, value: str) -> str:
        return f"CAST({value} AS HUGEINT)"

    def wide_sum(self, value: str) -> str:
        return f"sum({value})"  # of 64 bits or less, it has 128

    def bounded_sum(self, value: str, most: int) -> str:  # noqa: ARG002  # all sums are wide
        return self.wide_sum(value)

    def real_sum(self, value: str) -> str:
        return f"sum({value})"

    def low_sum(self, value: str) -> str:
        return self.wide_sum(value)

    def low_product(self, weight: str, total: str) -> str:
        return f"{weight} * coalesce({self.narrow(total)}, 0)"  # the weight of what is larger is 0

    def trunc_divide(self, left: str, right: str, *, wide: bool = False) -> str:  # noqa: ARG002  # one form for both
        return f"({left}) // ({right})"

    def trunc_remainder(self, left: str, right: str, *, wide: bool = False) -> str:  # noqa: ARG002  # one form for both
        return f"({left}) % ({right})"

    def split_wide(self, value: str, half: int) -> tuple[str, str]:
        # A quotient of 128 bits takes as long as reading a dozen rows. Bits are cut for nothing, if there is no sign.
        parts = (f"abs({value}) >> {half.bit_length() - 1}", f"abs({value}) & {self.wide_literal(half - 1)}")
        high, low = (f"(sign({value}) * {self.as_integer(part)})" for part in parts)
        return high, low

    def as_integer(self, value: str) -> str:
        return f"CAST({value} AS BIGINT)"

    def narrow(self, value: str) -> str:
        return f"TRY_CAST({value} AS BIGINT)"

    def real_of_wide(self, value: str) -> str:
        small = self.narrow(value)
        digits = f"CAST(CAST({value} AS VARCHAR) AS DOUBLE)"  # digits are read correctly, whatever their number
        return f"CASE WHEN {small} IS NOT NULL THEN CAST({small} AS DOUBLE) ELSE {digits} END"

    def cut_real(self, value: str) -> str:
        return f"CAST(trunc({value}) AS BIGINT)"

    def integer_of_real(self, value: str) -> str:
        return f"TRY_CAST({value} AS BIGINT)"

    def integer_of_whole(self, value: str) -> str:
        return self.integer_of_real(value)

    # Reals

    def is_finite(self, value: str) -> str:
        return f"isfinite({value})"

    def is_nan(self, value: str) -> str:
        return f"isnan({value})"

    def divide(self, left: str, right: str) -> str:
        return f"CASE WHEN {right} <> 0 THEN {left} / {right} END"

    def steps(self, value: str, origin: float, resolution: float) -> str:
        moved = f"{value} - {self.literal(origin, Type.REAL)}" if origin else value
        return f"floor({write_step_quotient(self, f'({moved})', resolution)} + 0.5::DOUBLE)"

    def floor(self, value: str) -> str:
        return f"floor({value})"

    def ceil(self, value: str) -> str:
        return f"ceil({value})"

    def round_away(self, value: str) -> str:
        return f"round({value})"

    def square_root(self, value: str) -> str:
        return f"CASE WHEN {value} >= 0 THEN sqrt({value}) END"

    def log2(self, value: str) -> str:
        return f"log2({value})"

    def exp(self, value: str) -> str:
        return f"exp({value})"

    def power(self, base: str, exponent: str) -> str:
        return f"CASE WHEN {base} <> 0 OR {exponent} >= 0 THEN pow({base}, {exponent}) END"

    # Texts

    def lower(self, text: str) -> str:
        return f"lower({text})"

    def upper(self, text: str) -> str:
        return f"upper({text})"

    def trim(self, text: str) -> str:
        return f"trim({text}, ' ')"

    def length(self, text: str) -> str:
        return f"CAST(length({text}) AS BIGINT)"

    def substring(self, text: str, start: int, count: int) -> str:
        return f"substring({text}, {min(start, LONGEST)}, {min(count, LONGEST)})"

    def starts_with(self, text: str, start: str) -> str:
        return f"starts_with({text}, {start})"

    def ends_with(self, text: str, end: str) -> str:
        return f"ends_with({text}, {end})"

    def contains(self, text: str, part: str) -> str:
        return f"contains({text}, {part})"

    def like(self, text: str, pattern: str) -> str:
        return f"({text} LIKE {pattern})"

    def full_match(self, text: str, pattern: str) -> str:
        return f"regexp_full_match({text}, '{pattern}')"

    def parse(self, text: str, kind: Type) -> str:
        return f"TRY_CAST({text} AS {TYPES[kind]})"

    def to_text(self, value: str, kind: Type) -> str:
        return value if kind is Type.TEXT else f"CAST({value} AS VARCHAR)"

    # Times

    def date_part(self, word: str, moment: str) -> str:
        return f"CAST(date_part('{word}', {moment}) AS BIGINT)"

    def date_trunc(self, word: str, moment: str, kind: Type) -> str:
        return f"CAST(date_trunc('{word}', {moment}) AS {TYPES[kind]})"

    def date_diff(self, word: str, start: str, end: str) -> str:
        return f"date_diff('{word}', {start}, {end})"

    def date_of(self, moment: str) -> str:
        return f"CAST({moment} AS DATE)"

    # Rows and sets

    def same(self, left: str, right: str, kind: Type) -> str:  # noqa: ARG002  # one form for all types
        return f"{left} IS NOT DISTINCT FROM {right}"

    def join(self, left: str, kind: JoinKind, right: str, on: str) -> str:
        return f"{left} {kind.upper()} JOIN {right} ON {on}"

    def first_rows(self, source: str, parts: Sequence[str], order: Sequence[str], most: int) -> str:
        within = f"PARTITION BY {', '.join(parts)} " if parts else ""
        return f"SELECT * FROM {source} QUALIFY row_number() OVER ({within}ORDER BY {', '.join(order)}) <= {most}"

    @property
    def moves_rows(self) -> bool:
        return False

    @property
    def leaves_guards_out(self) -> bool:
        return True

    @property
    def sums_reals(self) -> bool:
        return True

    @property
    def counts_by_window(self) -> bool:
        return False

    @property
    def counts_groups_by_window(self) -> bool:
        return False

    def gather(self, source: str, items: Sequence[str], by: Sequence[str]) -> str:  # noqa: ARG002  # there is one place
        return source

    def number_each(self, source: str, values: Sequence[str]) -> str:
        cells, places = ", ".join(values), ", ".join(map(str, range(len(values))))
        return f"(SELECT *, unnest(ARRAY[{cells}]) AS cell, unnest(ARRAY[{places}]) AS place FROM {source}) AS own"

    def row_away(self, word: str, value: str, offset: int, kind: Type) -> str:
        return f"{word}({value}, {self.literal(offset, Type.INTEGER)}, {self.literal(None, kind)})"

    # The secret order

    def identity(self, unit: str, kind: Type) -> str:
        # Integers and what is stored as one are as quick to hash as a hash; a prepared table keeps the others' hashes.
        return f"hash({unit})" if self.code(unit, kind) is None else unit

    def place_of_group(self, identity: str, values: Sequence[tuple[str, Type]], salt: bytes, bits: int) -> str:
        return f"({_write_keyed_hash([identity, *(sql for sql, _ in values)], salt)} >> {64 - bits})"

    def place_of_row(self, values: Sequence[tuple[str, Type]], salt: bytes) -> str:
        return _write_keyed_hash([sql for sql, _ in values], salt)

    def code(self, value: str, kind: Type) -> str | None:
        return CODES[kind].format(value) if kind in CODES else None


DIALECT = DuckDBDialect()


def quote_text(text: str) -> str:
    """A quoted text: for paths and names of the curator's own, never for what an analyst wrote."""
    if "\0" in text:
        raise InternalError("A path holds a NUL character.")
    return "'" + text.replace("'", "''") + "'"


def pick_parameters(sql: str, parameters: Mapping[str, str]) -> dict[str, str]:
    """The parameters that a statement names; DuckDB refuses any others, and constants may fall away."""
    return {name: text for name, text in parameters.items() if f"(${name} AS " in sql}


def _try_integer(sql: str, kind: Type) -> str:
    return f"TRY{sql}" if kind is Type.INTEGER else sql


def _write_keyed_hash(values: Sequence[str], salt: bytes) -> str:
    """A hash of 64 bits. The salt is mixed in last, so that all of its bits count."""
    salts = (f"CAST({int.from_bytes(part, 'little')} AS UBIGINT)" for part in (salt[:8], salt[8:16]))
    return f"hash({', '.join([*values, *salts])})"
