"""The primitives of ``sql.dialect`` in Spark's own words. What each means, and its trap, is said there.

A question runs in a session without ANSI mode (``session``), in which nothing raises: a cast, a division or an overflow
yields NULL or wraps. Spark also moves conditions below columns and computes shared parts early, so a guard alone would
not keep an operation from being run. What a wrong operand gives is decided by the ``try_`` functions and by conditions.

Wide integers are DECIMAL(38, 0), which hold less than 10^38, a little more than 2^126. What ``sql.statement`` and
``sql.real_sums`` sum stays below 2^126, and products of two integers of 64 bits do not go beyond it.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Mapping, Sequence
from typing import assert_never

from discreet.engines.spark import times
from discreet.engines.sql.letters import list_letters
from discreet.engines.sql.step_quotients import write_step_quotient
from discreet.errors import InternalError
from discreet.plan.relations import JoinKind
from discreet.plan.types import INTEGER_MIN, Type, Value

TYPES: Mapping[Type, str] = {
    Type.BOOLEAN: "BOOLEAN",
    Type.INTEGER: "BIGINT",
    Type.REAL: "DOUBLE",
    Type.TEXT: "STRING",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP_NTZ",
}
WIDE = "DECIMAL(38, 0)"
# Positions and offsets have 32 bits, and their sums, too; no text and no part of a window is longer.
LONGEST = 2**30
# From here on every double is whole.
_WHOLE_FROM = 2.0**52
# Where a wide integer is cut in two for a division.
_LIMB = 10**19
# Parts of integers that are summed in 64 bits: 2^47 of them stay below 2^63. More of them cost more than decimals.
_PART_BITS, _MOST_PARTS = 16, 3


class SparkDialect:
    """Spark's form of every primitive. It has no state."""

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
                return f"CAST('{value}' AS BIGINT)"
            case int() | float():
                return f"CAST('{float(value)!r}' AS DOUBLE)"
            case dt.datetime():
                return f"CAST('{value.isoformat(sep=' ')}' AS TIMESTAMP_NTZ)"
            case dt.date():
                return f"CAST('{value.isoformat()}' AS {TYPES[kind]})"
            case str():
                raise InternalError("A text is bound, never written.")
            case _:
                assert_never(value)

    def parameter(self, name: str) -> str:
        return f"CAST(:{name} AS STRING)"

    def wide_literal(self, value: int) -> str:
        return f"CAST('{value}' AS {WIDE})"

    def widen(self, value: str, source: Type, target: Type) -> str:
        return value if source is target else f"CAST({value} AS {TYPES[target]})"

    def common_table(self, name: str, query: str, *, keep: bool | None = None) -> str:  # noqa: ARG002  # it chooses itself
        return f"{name} AS ({query})"

    def stacked_table(self, name: str, query: str, apart: int) -> str:
        # Spark repeats no column that is computed from rows. But what it finds to be constant it writes out wherever it
        # is read, layer after layer, before it computes any of it. It does so across nothing that reads the number of a
        # row, such as a condition, although this one always holds.
        if apart:
            numbered = f"SELECT *, monotonically_increasing_id() AS number{apart} FROM ({query}) AS layer"
            query = f"SELECT * FROM ({numbered}) AS numbered WHERE number{apart} >= 0"
        return self.common_table(name, query)

    # Integers

    def add(self, left: str, right: str, kind: Type) -> str:
        return f"try_add({left}, {right})" if kind is Type.INTEGER else f"({left} + {right})"

    def subtract(self, left: str, right: str, kind: Type) -> str:
        return f"try_subtract({left}, {right})" if kind is Type.INTEGER else f"({left} - {right})"

    def multiply(self, left: str, right: str, kind: Type) -> str:
        return f"try_multiply({left}, {right})" if kind is Type.INTEGER else f"({left} * {right})"

    def negate(self, value: str, kind: Type) -> str:
        return self.subtract(self.literal(0, kind), value, kind)

    def absolute(self, value: str, kind: Type) -> str:
        if kind is Type.REAL:
            return f"abs({value})"
        return f"CASE WHEN {value} > {self.literal(INTEGER_MIN, Type.INTEGER)} THEN abs({value}) END"

    def sign(self, value: str) -> str:
        one, zero, less = (self.literal(number, Type.INTEGER) for number in (1, 0, -1))
        return f"CASE WHEN {value} > 0 THEN {one} WHEN {value} < 0 THEN {less} WHEN {value} = 0 THEN {zero} END"

    def modulo(self, left: str, right: str) -> str:
        return f"try_mod({left}, {right})"

    def to_wide(self, value: str) -> str:
        return f"CAST({value} AS {WIDE})"

    def wide_sum(self, value: str) -> str:
        return f"sum({self.to_wide(value)})"

    def bounded_sum(self, value: str, most: int) -> str:
        """In parts of 16 bits, each below 2^16 in size: fewer than 2^47 of them stay below 2^63, so none wraps.

        The highest part has the sign; the others are the bits below it, which are never negative.
        """
        parts = -(-max(most, 1).bit_length() // _PART_BITS)
        if parts > _MOST_PARTS:
            return self.wide_sum(value)
        whole = self.as_integer(value)
        shifted = [f"shiftright({whole}, {_PART_BITS * i})" if i else whole for i in range(parts)]
        low = [f"({part}) & {2**_PART_BITS - 1}L" for part in shifted[:-1]]
        sums = [self.to_wide(f"sum({part})") for part in (*low, shifted[-1])]
        scaled = [f"{each} * {self.wide_literal(2 ** (_PART_BITS * i))}" if i else each for i, each in enumerate(sums)]
        return self.to_wide(" + ".join(scaled))

    def real_sum(self, value: str) -> str:
        return f"sum({value})"

    def low_sum(self, value: str) -> str:
        return f"sum({value})"  # it wraps: sessions have no ANSI mode

    def low_product(self, weight: str, total: str) -> str:
        return f"({weight} * {total})"  # as above

    def trunc_divide(self, left: str, right: str, *, wide: bool = False) -> str:
        return _divide_wide(f"({left})", f"({right})") if wide else f"(({left}) div ({right}))"

    def trunc_remainder(self, left: str, right: str, *, wide: bool = False) -> str:
        return self.to_wide(f"({left}) % ({right})") if wide else f"(({left}) % ({right}))"

    def split_wide(self, value: str, half: int) -> tuple[str, str]:
        by = self.wide_literal(half)
        quotient, remainder = self.trunc_divide(value, by, wide=True), self.trunc_remainder(value, by, wide=True)
        return self.as_integer(quotient), self.as_integer(remainder)

    def as_integer(self, value: str) -> str:
        return f"CAST({value} AS BIGINT)"

    def narrow(self, value: str) -> str:
        return f"try_cast({value} AS BIGINT)"

    def real_of_wide(self, value: str) -> str:
        return f"CAST({value} AS DOUBLE)"  # by its digits, which are read correctly

    def cut_real(self, value: str) -> str:
        return f"CAST({value} AS BIGINT)"  # towards zero

    def integer_of_real(self, value: str) -> str:
        least, most = (self.literal(end, Type.REAL) for end in (-(2.0**63), 2.0**63))
        return f"CASE WHEN {value} >= {least} AND {value} < {most} THEN CAST(rint({value}) AS BIGINT) END"

    def integer_of_whole(self, value: str) -> str:
        return f"CAST({value} AS BIGINT)"

    # Reals

    def is_finite(self, value: str) -> str:
        return f"({value} > CAST('-Infinity' AS DOUBLE) AND {value} < CAST('Infinity' AS DOUBLE))"  # NaN is above all

    def is_nan(self, value: str) -> str:
        return f"({value} = CAST('NaN' AS DOUBLE))"  # isnan is false of NULL

    def divide(self, left: str, right: str) -> str:
        return f"try_divide({left}, {right})"

    def steps(self, value: str, origin: float, resolution: float) -> str:
        moved = f"({value} - {self.literal(origin, Type.REAL)})" if origin else value
        return self.floor(f"({write_step_quotient(self, moved, resolution)} + {self.literal(0.5, Type.REAL)})")

    def floor(self, value: str) -> str:
        return self._write_whole("floor", value)

    def ceil(self, value: str) -> str:
        return self._write_whole("ceil", value)

    def _write_whole(self, word: str, value: str) -> str:
        """Spark's own are integers of 64 bits."""
        most = self.literal(_WHOLE_FROM, Type.REAL)
        return f"CASE WHEN abs({value}) < {most} THEN CAST({word}({value}) AS DOUBLE) ELSE {value} END"

    def round_away(self, value: str) -> str:
        whole, most = f"CAST(CAST({value} AS BIGINT) AS DOUBLE)", self.literal(_WHOLE_FROM, Type.REAL)
        one, zero, half = (self.literal(number, Type.REAL) for number in (1.0, 0.0, 0.5))
        above, below = f"({value}) - {whole} >= {half}", f"{whole} - ({value}) >= {half}"
        return (
            f"(CASE WHEN abs({value}) < {most} THEN {whole} + "
            f"CASE WHEN {above} THEN {one} WHEN {below} THEN - {one} ELSE {zero} END ELSE {value} END)"
        )

    def square_root(self, value: str) -> str:
        return f"CASE WHEN {value} >= 0 THEN sqrt({value}) END"

    def log2(self, value: str) -> str:
        return f"log2({value})"

    def exp(self, value: str) -> str:
        return f"exp({value})"

    def power(self, base: str, exponent: str) -> str:
        return f"CASE WHEN {base} <> 0 OR {exponent} >= 0 THEN power({base}, {exponent}) END"

    # Texts

    def lower(self, text: str) -> str:
        return _change_letters(text, "lower")

    def upper(self, text: str) -> str:
        return _change_letters(text, "upper")

    def trim(self, text: str) -> str:
        return f"trim(BOTH ' ' FROM {text})"

    def length(self, text: str) -> str:
        return f"CAST(char_length({text}) AS BIGINT)"

    def substring(self, text: str, start: int, count: int) -> str:
        return f"substring({text}, {min(start, LONGEST)}, {min(count, LONGEST)})"

    def starts_with(self, text: str, start: str) -> str:
        return f"startswith({text}, {start})"

    def ends_with(self, text: str, end: str) -> str:
        return f"endswith({text}, {end})"

    def contains(self, text: str, part: str) -> str:
        return f"contains({text}, {part})"

    def like(self, text: str, pattern: str) -> str:
        # Two backslashes are one that escapes nothing.
        return rf"({text} LIKE replace({pattern}, '\\', '\\\\'))"

    def full_match(self, text: str, pattern: str) -> str:
        written = rf"\A(?:{pattern})\z".replace("\\", "\\\\")
        return f"({text} RLIKE '{written}')"

    def parse(self, text: str, kind: Type) -> str:
        if kind in (Type.BOOLEAN, Type.TEXT):
            raise InternalError(f"A text is not parsed as {kind}.")
        return f"try_cast({text} AS {TYPES[kind]})"

    def to_text(self, value: str, kind: Type) -> str:
        if kind in (Type.REAL, Type.TIMESTAMP):
            raise InternalError(f"A {kind} is not written as a text.")
        return value if kind is Type.TEXT else f"CAST({value} AS STRING)"

    # Times

    def date_part(self, word: str, moment: str) -> str:
        return times.write_part(word, moment)

    def date_trunc(self, word: str, moment: str, kind: Type) -> str:
        return f"CAST({times.write_beginning(word, moment)} AS {TYPES[kind]})"

    def date_diff(self, word: str, start: str, end: str) -> str:
        return times.write_difference(word, start, end)

    def date_of(self, moment: str) -> str:
        return f"CAST({moment} AS DATE)"

    # Rows and sets

    def same(self, left: str, right: str, kind: Type) -> str:  # noqa: ARG002  # one form for all types
        return f"({left} <=> {right})"

    def join(self, left: str, kind: JoinKind, right: str, on: str) -> str:
        word = f"LEFT {kind.upper()}" if kind in (JoinKind.SEMI, JoinKind.ANTI) else kind.upper()
        return f"{left} {word} JOIN {right} ON {on}"

    def first_rows(self, source: str, parts: Sequence[str], order: Sequence[str], most: int) -> str:
        within = f"PARTITION BY {', '.join(parts)} " if parts else ""
        place = f"place_in_{source}"
        numbered = f"SELECT *, row_number() OVER ({within}ORDER BY {', '.join(order)}) AS {place} FROM {source}"
        return f"SELECT * FROM ({numbered}) AS numbered WHERE {place} <= {most}"

    @property
    def moves_rows(self) -> bool:
        return True

    @property
    def leaves_guards_out(self) -> bool:
        return False

    @property
    def sums_reals(self) -> bool:
        return False

    @property
    def counts_by_window(self) -> bool:
        return True  # rows move to their units once, instead of once for the counts and once for the join

    @property
    def counts_groups_by_window(self) -> bool:
        return True

    def gather(self, source: str, items: Sequence[str], by: Sequence[str]) -> str:
        return f"(SELECT /*+ REPARTITION({by[0]}) */ {', '.join(items)} FROM {source}) AS gathered"

    def number_each(self, source: str, values: Sequence[str]) -> str:
        return f"{source} LATERAL VIEW posexplode(array({', '.join(values)})) each_cell AS place, cell"

    def row_away(self, word: str, value: str, offset: int, kind: Type) -> str:
        return f"{word}({value}, {min(max(offset, -LONGEST), LONGEST)}, {self.literal(None, kind)})"

    # The secret order

    def identity(self, unit: str, kind: Type) -> str:
        return self.code(unit, kind) or f"xxhash64({unit})"

    def place_of_group(self, identity: str, values: Sequence[tuple[str, Type]], salt: bytes, bits: int) -> str:
        place = self._write_keyed_hash([(identity, Type.INTEGER), *values], salt)
        return f"shiftrightunsigned({place}, {64 - bits})"

    def place_of_row(self, values: Sequence[tuple[str, Type]], salt: bytes) -> str:
        return self._write_keyed_hash(values, salt)

    def _write_keyed_hash(self, values: Sequence[tuple[str, Type]], salt: bytes) -> str:
        """A hash of 64 bits, between two keys. Before each value stands whether it is NULL, which the hash skips."""
        first, last = (self.literal(derive_key(salt, purpose), Type.INTEGER) for purpose in ("first", "last"))
        marked = [f"({sql}) IS NULL, {sql}" for sql, _ in values]
        return f"xxhash64({', '.join([first, *marked, last])})"

    def code(self, value: str, kind: Type) -> str | None:
        match kind:
            case Type.INTEGER:
                return value
            case Type.BOOLEAN:
                return f"CAST(CAST({value} AS INT) AS BIGINT)"
            case Type.DATE:
                return f"CAST(unix_date({value}) AS BIGINT)"
            case Type.TIMESTAMP:
                return times.write_microseconds(value)
            case Type.REAL | Type.TEXT:
                return None
            case _:
                assert_never(kind)


DIALECT = SparkDialect()


def quote_name(name: str) -> str:
    """A quoted name.

    >>> quote_name("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def derive_key(salt: bytes, purpose: str) -> int:
    """A key of 64 bits for one purpose. The salt itself is in no statement."""
    return int.from_bytes(hashlib.blake2b(purpose.encode(), key=salt, digest_size=8).digest(), "little", signed=True)


def _change_letters(text: str, function: str) -> str:
    """A text in small or capital letters. Most texts are ASCII and leave early; others go letter by letter."""
    old, new = list_letters(function, 0)
    ascii_only = f"octet_length({text}) = char_length({text})"
    return f"CASE WHEN {ascii_only} THEN {function}({text}) ELSE translate({text}, '{old}', '{new}') END"


def _divide_wide(left: str, right: str) -> str:
    """A quotient towards zero. It is taken in two parts, because Spark's own has 32 digits before its point.

    The remainder is taken away first, so each division is exact. With ``right`` below 10^19 in size, the quotients are
    below 10^19, or 10^32 where ``left`` is small.
    """
    limb = f"CAST('{_LIMB}' AS {WIDE})"
    high, low = _divide_exactly(left, limb), f"({left} % {limb})"
    rest = f"(CAST({high} % {right} AS {WIDE}) * {limb} + {low})"
    long = f"({_divide_exactly(high, right)} * {limb} + {_divide_exactly(rest, right)})"
    small = f"abs({left}) < CAST('{10**31}' AS {WIDE})"
    return f"CAST(CASE WHEN {small} THEN {_divide_exactly(left, right)} ELSE {long} END AS {WIDE})"


def _divide_exactly(left: str, right: str) -> str:
    return f"CAST(CAST({left} - {left} % {right} AS {WIDE}) / CAST({right} AS {WIDE}) AS {WIDE})"
