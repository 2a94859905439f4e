"""Logarithms and angles in SQL: the operations of ``plan.elementary`` as columns over columns.

An engine computes the same sequence of sums, products, quotients, roots and whole parts of doubles, which IEEE 754
fixes to the last bit. Nothing here can raise: within the domain of a function no operation overflows, underflows or
divides by zero, and outside it the argument is NULL, as is everything that is computed from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from discreet.engines.sql.dialect import Dialect
from discreet.late_dataclass import dataclass
from discreet.plan.elementary import ELEMENTARY
from discreet.plan.types import Type

Atom: TypeAlias = tuple[str, int]
"""SQL, and the number of the layer above those that it reads."""
ColumnAdder: TypeAlias = Callable[[str, int], Atom]
"""Adds a column to the layer of that number, and gives its name."""


@dataclass(frozen=True, slots=True)
class SqlNumber:
    """A double in SQL, and the layer in which it can be computed."""

    sql: str
    level: int
    dialect: Dialect

    def join(self, sign: str, other: SqlNumber | float, *, mirrored: bool = False) -> SqlNumber:
        """Two numbers with a sign between them."""
        two = write_number(other, self.dialect)
        left, right = (two, self) if mirrored else (self, two)
        return SqlNumber(f"({left.sql} {sign} {right.sql})", max(left.level, right.level), self.dialect)

    def __add__(self, other: SqlNumber | float) -> SqlNumber:
        return self.join("+", other)

    def __radd__(self, other: SqlNumber | float) -> SqlNumber:
        return self.join("+", other, mirrored=True)

    def __sub__(self, other: SqlNumber | float) -> SqlNumber:
        return self.join("-", other)

    def __rsub__(self, other: SqlNumber | float) -> SqlNumber:
        return self.join("-", other, mirrored=True)

    def __mul__(self, other: SqlNumber | float) -> SqlNumber:
        return self.join("*", other)

    def __rmul__(self, other: SqlNumber | float) -> SqlNumber:
        return self.join("*", other, mirrored=True)

    def __truediv__(self, other: SqlNumber | float) -> SqlNumber:
        return self.join("/", other)


def write_number(value: SqlNumber | float, dialect: Dialect) -> SqlNumber:
    """A number in SQL; a float as a constant."""
    return value if isinstance(value, SqlNumber) else SqlNumber(dialect.literal(value, Type.REAL), 0, dialect)


@dataclass(frozen=True, slots=True)
class SqlOperations:
    """The operations of ``plan.elementary`` in SQL. What is kept becomes a column of its own."""

    dialect: Dialect
    add_column: ColumnAdder

    def keep(self, x: SqlNumber) -> SqlNumber:
        return SqlNumber(*self.add_column(x.sql, x.level), self.dialect)

    def choose(
        self, a: SqlNumber, below: SqlNumber | float, yes: SqlNumber | float, no: SqlNumber | float
    ) -> SqlNumber:
        limit, first, second = (write_number(value, self.dialect) for value in (below, yes, no))
        level = max(value.level for value in (a, limit, first, second))
        sql = f"CASE WHEN {a.sql} < {limit.sql} THEN {first.sql} ELSE {second.sql} END"
        return SqlNumber(sql, level, self.dialect)

    def floor(self, x: SqlNumber) -> SqlNumber:
        return self._apply(self.dialect.floor, x)

    def sqrt(self, x: SqlNumber) -> SqlNumber:
        return self._apply(self.dialect.square_root, self.keep(x))

    def guess_log2(self, x: SqlNumber) -> SqlNumber:
        return self._apply(self.dialect.log2, x)

    def power_of_two(self, k: SqlNumber) -> SqlNumber:
        two = self.dialect.literal(2.0, Type.REAL)
        return self._apply(lambda power: self.dialect.power(two, power), k)

    def _apply(self, primitive: Callable[[str], str], x: SqlNumber) -> SqlNumber:
        return SqlNumber(primitive(x.sql), x.level, self.dialect)


def write_elementary(name: str, arguments: Sequence[Atom], dialect: Dialect, add_column: ColumnAdder) -> Atom:
    """A function of ``plan.elementary`` over doubles, and the layer in which it can be computed."""
    function = ELEMENTARY[name]
    low, high = (dialect.literal(end, Type.REAL) for end in (function.low, function.high))
    ops = SqlOperations(dialect, add_column)
    inside = []
    for sql, level in arguments:
        guarded = f"CASE WHEN {sql} >= {low} AND {sql} <= {high} THEN {sql} END"
        inside.append(ops.keep(SqlNumber(guarded, level, dialect)))
    found: SqlNumber = function.compute(*inside, ops)
    there = " AND ".join(f"{argument.sql} IS NOT NULL" for argument in inside)
    return f"CASE WHEN {there} THEN {found.sql} END", max(found.level, *(x.level for x in inside))
