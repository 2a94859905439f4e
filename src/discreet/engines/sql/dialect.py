"""The primitives that an engine's SQL is made of, each with one exact meaning.

The modules of this room write statements for any SQL engine. Where engines agree they write SQL themselves: SELECT,
WITH, WHERE, GROUP BY, HAVING, UNION ALL, joins with ON (INNER, LEFT), ORDER BY with NULLS LAST, CASE, coalesce, nullif,
comparisons, AND, OR, NOT, IS NULL, IN, ``||``, position, abs of a real, least and greatest (which pass over NULLs),
count, min and max (not of booleans), bool_or, bool_and and the ranks. A query in FROM has a name. Everything else is a
method here. An
engine implements them in ``engines/<name>/dialect.py``. Nothing is translated from the words of another engine,
because words that look alike mean different things.

All arguments are SQL texts that are names, constants or short expressions, and may be written more than once. No
primitive may raise, whatever the data holds, and all but those that say so yield NULL where an argument is NULL.
Integers that are known to stay within their type are added, subtracted and multiplied by plain operators.

Texts compare and sort by their code points. An engine whose texts would compare otherwise says so where it scans a
table (for example by a collation), so that everything above inherits it. Reals are doubles; NaN never gets past a scan.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from discreet.plan.relations import JoinKind
from discreet.plan.types import Type, Value


class Dialect(Protocol):
    """What an engine must be able to say. Member: ``duckdb.dialect.DuckDBDialect``."""

    # Names, types and constants

    def quote_name(self, name: str) -> str:
        """A name that may hold anything, a quote included, as one identifier."""
        ...

    def literal(self, value: Value, kind: Type) -> str:
        """A constant of exactly this type, NULL included. Never for a text that an analyst wrote: see ``parameter``.

        Trap: a bare ``1`` or ``0.5`` is of another type on each engine (32 bits, decimal), and overflows sooner.
        """
        ...

    def parameter(self, name: str) -> str:
        """A bound text, of the type of texts. ``name`` is made of letters and digits."""
        ...

    def wide_literal(self, value: int) -> str:
        """An integer of up to 127 bits, of the type that ``wide_sum`` yields."""
        ...

    def widen(self, value: str, source: Type, target: Type) -> str:
        """A value as one of a wider type: an integer as the nearest double, a date as its first moment; or as it is."""
        ...

    def common_table(self, name: str, query: str, *, keep: bool | None = None) -> str:
        """A common table expression. ``keep``: True where it is read often and must be computed once, False where it is
        read once and nothing should be stored, None where the engine may choose.
        """
        ...

    def stacked_table(self, name: str, query: str, apart: int) -> str:
        """A common table expression that is read once, by the next one of a stack of expressions.

        ``apart`` is 0 where its columns are short. Otherwise they must be computed once for each row, however often the
        next one names them; then it says how many of the stack have been set apart so far.

        Trap: PostgreSQL merges a query into the one around it and writes each column out wherever it is named, so a
        stack would grow as two to its depth. What is not merged it copies again and again while it plans.
        """
        ...

    # Integers

    def add(self, left: str, right: str, kind: Type) -> str:
        """Sum of two numbers of one type. Integers: NULL beyond 64 bits. Reals: infinite beyond doubles.

        Trap: most engines raise where an integer overflows, PostgreSQL also where a double over- or underflows.
        """
        ...

    def subtract(self, left: str, right: str, kind: Type) -> str:
        """Difference of two numbers of one type; otherwise as ``add``."""
        ...

    def multiply(self, left: str, right: str, kind: Type) -> str:
        """Product of two numbers of one type; otherwise as ``add``."""
        ...

    def negate(self, value: str, kind: Type) -> str:
        """−x. NULL for the smallest integer. Trap: the minus of a constant may have a wider type."""
        ...

    def absolute(self, value: str, kind: Type) -> str:
        """The size of a number. NULL for the smallest integer."""
        ...

    def sign(self, value: str) -> str:
        """−1, 0 or 1 as an integer of 64 bits, of an integer or a real."""
        ...

    def modulo(self, left: str, right: str) -> str:
        """Remainder of 64-bit integers with the sign of ``left``; NULL by 0; 0 by −1.

        Trap: the smallest integer by −1 raises on DuckDB.
        """
        ...

    def to_wide(self, value: str) -> str:
        """A 64-bit integer as a wide one, so that what is computed from it is exact to 2^127."""
        ...

    def wide_sum(self, value: str) -> str:
        """Aggregate: the exact sum of integers, up to 2^127; NULL without values. Also over a window.

        Trap: a sum of 64-bit integers is of 64 bits on Spark and raises.
        """
        ...

    def bounded_sum(self, value: str, most: int) -> str:
        """Aggregate: ``wide_sum`` of integers that are at most ``most`` in size, where that can be had for less.

        Fewer than 2^47 values are added. Not over a window.
        """
        ...

    def real_sum(self, value: str) -> str:
        """Aggregate: the sum of doubles, NULL without values; exact where they are whole and the sum of all their sizes
        is less than 2^53.
        """
        ...

    def low_sum(self, value: str) -> str:
        """Aggregate: a sum of 64-bit integers of which the lowest 64 bits are right, if not all; NULL without values.

        Trap: where it may wrap, it must never raise or be NULL for that.
        """
        ...

    def low_product(self, weight: str, total: str) -> str:
        """A 64-bit integer times a ``low_sum``: exact where the true product is less than 2^62 in size.

        Additions and products of integers agree modulo 2^64 with those of their lowest 64 bits, and of all integers
        that agree with the true product only that itself is so small. And a sum of more than 64 bits has the weight 0
        then, so that it may be taken for 0.
        """
        ...

    def trunc_divide(self, left: str, right: str, *, wide: bool = False) -> str:
        """Quotient of 64-bit integers, or where one is ``wide`` a wide one, towards zero; ``right`` is not 0 or −1.

        Trap: ``/`` is of reals on DuckDB and Spark and of decimals on PostgreSQL; Spark's ``div`` of decimals yields 64
        bits.
        """
        ...

    def trunc_remainder(self, left: str, right: str, *, wide: bool = False) -> str:
        """What ``trunc_divide`` leaves: it has the sign of ``left``. ``right`` is positive."""
        ...

    def split_wide(self, value: str, half: int) -> tuple[str, str]:
        """A wide integer as quotient and remainder by a power of two, towards zero; both are known to fit 64 bits."""
        ...

    def as_integer(self, value: str) -> str:
        """An integer of any width that is known to fit, as one of 64 bits."""
        ...

    def narrow(self, value: str) -> str:
        """A wide integer as one of 64 bits; NULL where it does not fit."""
        ...

    def real_of_wide(self, value: str) -> str:
        """The double nearest to a wide integer, rounded once. Trap: DuckDB rounds twice beyond 64 bits."""
        ...

    def cut_real(self, value: str) -> str:
        """A real below 2^63 in size as a 64-bit integer, towards zero."""
        ...

    def integer_of_real(self, value: str) -> str:
        """The nearest 64-bit integer, halves to even; NULL where there is none.

        Trap: a bare cast of 3.5 is 4 here and 3 there, and 2^63 raises or is clamped.
        """
        ...

    def integer_of_whole(self, value: str) -> str:
        """A whole double that is known to fit, as a 64-bit integer."""
        ...

    # Reals

    def is_finite(self, value: str) -> str:
        """Whether a double is neither NaN nor infinite."""
        ...

    def is_nan(self, value: str) -> str:
        """Whether a double is NaN. Trap: here NaN is equal to itself and above all numbers, there it is not."""
        ...

    def divide(self, left: str, right: str) -> str:
        """Quotient of reals; NULL by 0. Trap: a real by 0 is infinite here and raises there."""
        ...

    def steps(self, value: str, origin: float, resolution: float) -> str:
        """⌊(x − origin)/resolution + 1/2⌋ of a real, by exactly these operations on doubles; not finite or NULL beyond.

        Trap: x·100 and x/0.01 differ in the last place, and an engine that adds another half is another engine. Powers
        of two may be multiplied by instead (``step_quotients``).
        """
        ...

    def floor(self, value: str) -> str:
        """The largest whole double at or below. Trap: some engines yield an integer and raise at 1e30."""
        ...

    def ceil(self, value: str) -> str:
        """The smallest whole double at or above."""
        ...

    def round_away(self, value: str) -> str:
        """The nearest whole double, halves away from zero. Trap: halves go to even on PostgreSQL."""
        ...

    def square_root(self, value: str) -> str:
        """The root; NULL below 0."""
        ...

    def log2(self, value: str) -> str:
        """The logarithm to base 2 of a positive real, up to a rounding that its user puts right (``real_sums``)."""
        ...

    def exp(self, value: str) -> str:
        """E to the power; infinite beyond doubles."""
        ...

    def power(self, base: str, exponent: str) -> str:
        """A real to the power of a real; exact for powers of two; NULL or NaN if undefined, infinite beyond doubles."""
        ...

    # Texts

    def lower(self, text: str) -> str:
        """Small letters, by the simple mapping of Unicode: letter by letter, lengths never change."""
        ...

    def upper(self, text: str) -> str:
        """Capital letters, in the same way. Trap: ß, İ and the final Σ differ from engine to engine."""
        ...

    def trim(self, text: str) -> str:
        """Without blanks (U+0020 alone) at both ends."""
        ...

    def length(self, text: str) -> str:
        """The number of code points, as a 64-bit integer."""
        ...

    def substring(self, text: str, start: int, count: int) -> str:
        """``count`` ≥ 0 code points from position ``start`` ≥ 1. Trap: positions beyond 32 bits raise."""
        ...

    def starts_with(self, text: str, start: str) -> str:
        """Whether a text begins with another, code point by code point."""
        ...

    def ends_with(self, text: str, end: str) -> str:
        """Whether a text ends with another."""
        ...

    def contains(self, text: str, part: str) -> str:
        """Whether a text has another inside."""
        ...

    def like(self, text: str, pattern: str) -> str:
        """Whether a pattern covers the text: % is anything, _ is one code point, and nothing escapes them.

        Trap: a backslash escapes on Spark and PostgreSQL, and one at the end raises.
        """
        ...

    def full_match(self, text: str, pattern: str) -> str:
        """Whether a regular expression covers the whole text. Patterns use ``[]``, ``()``, ``|`` and ``?+*{m,n}``.

        Trap: ``$`` also matches before a line break at the end.
        """
        ...

    def parse(self, text: str, kind: Type) -> str:
        """A text as an integer, a real, a date or a moment; only for texts that ``full_match`` has let through.

        NULL where it is beyond 64 bits or names no day; infinite beyond doubles.
        """
        ...

    def to_text(self, value: str, kind: Type) -> str:
        """An integer in digits, a boolean as true or false, a date as 2001-12-31. Not for reals: engines differ."""
        ...

    # Times

    def date_part(self, word: str, moment: str) -> str:
        """A part of a moment as a 64-bit integer: one of ``functions.PARTS``. Weeks are ISO weeks, Sunday is 0."""
        ...

    def date_trunc(self, word: str, moment: str, kind: Type) -> str:
        """The beginning of the unit of time that a moment is in, as a date or a moment. Weeks begin on Monday."""
        ...

    def date_diff(self, word: str, start: str, end: str) -> str:
        """How many beginnings of that unit of time lie between two moments, as a 64-bit integer with a sign."""
        ...

    def date_of(self, moment: str) -> str:
        """The date of a moment."""
        ...

    # Rows and sets

    def same(self, left: str, right: str, kind: Type) -> str:
        """Whether two values of one type are equal or both NULL; never NULL itself.

        Trap: PostgreSQL joins by IS NOT DISTINCT FROM with a nested loop.
        """
        ...

    def join(self, left: str, kind: JoinKind, right: str, on: str) -> str:
        """Two named relations joined: something to write after FROM. SEMI and ANTI keep the name and the columns of
        ``left``, and never repeat a row of it.
        """
        ...

    def first_rows(self, source: str, parts: Sequence[str], order: Sequence[str], most: int) -> str:
        """A query: all columns of the first ``most`` rows of each part of a named relation, in an order.

        It may add a column of its own, under a name that no other relation has.
        """
        ...

    @property
    def moves_rows(self) -> bool:
        """Whether rows are moved between machines to be joined, so that sorting all of them costs less than a join."""
        ...

    @property
    def leaves_guards_out(self) -> bool:
        """Whether guards of reals are left out where the result is proved to be the same (``layers``, ``integers``).

        Then every comparison must have NaN above all numbers, and infinities in their places.
        """
        ...

    @property
    def sums_reals(self) -> bool:
        """Whether doubles are added up in less time than 64-bit integers are, which is done where it is exact."""
        ...

    @property
    def counts_by_window(self) -> bool:
        """Whether the rows of a unit are counted by a window over them; otherwise the counts are joined to the rows."""
        ...

    @property
    def counts_groups_by_window(self) -> bool:
        """The same for the groups of a unit and the pairs of units and groups, of which there are fewer."""
        ...

    def gather(self, source: str, items: Sequence[str], by: Sequence[str]) -> str:
        """What to write after FROM for columns of a named relation that are grouped by some of them next.

        The first of these names the unit, which a window may go by afterwards. Rows that lie together by it, or come in
        that order, are grouped and counted where they are. As it is where that makes no difference.
        """
        ...

    def number_each(self, source: str, values: Sequence[str]) -> str:
        """A relation to write after FROM, with a row for each row and each of some integers: its number ``place``, from
        0 on, and the integer, ``cell``.
        """
        ...

    def row_away(self, word: str, value: str, offset: int, kind: Type) -> str:
        """A window function without its window: ``word`` is lag or lead, so many rows away; NULL where none is there.

        Trap: PostgreSQL takes offsets of 32 bits only.
        """
        ...

    # The secret order

    def identity(self, unit: str, kind: Type) -> str:
        """What stands for a unit in its secret order: a function of the unit's value alone, quick to hash."""
        ...

    def place_of_group(self, identity: str, values: Sequence[tuple[str, Type]], salt: bytes, bits: int) -> str:
        """Where a unit's group stands among its groups: the high ``bits`` bits of a keyed hash of unit and values.

        It depends on the salt and on these values alone, and NULL is a value. Trap: Spark's hashes ignore NULLs.
        """
        ...

    def place_of_row(self, values: Sequence[tuple[str, Type]], salt: bytes) -> str:
        """Where a row stands among others: a keyed hash of all of its values, in the same way."""
        ...

    def code(self, value: str, kind: Type) -> str | None:
        """A 64-bit integer that is equal exactly where values are; None for types that have none at hand."""
        ...


def quote_name(name: str) -> str:
    """A name as standard SQL quotes it.

    >>> quote_name('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'
