"""Expressions in SQL, so that whatever the data holds, nothing raises and every value is one of the plan's.

Every call becomes a named column of its own, one layer above the columns it reads. So no expression is written twice
(guards read their value more than once), equal calls are computed once, and the text grows with the question and not
with its depth. A call of constants alone is computed here, by its meaning: some engines would write it out in every
layer above it while they plan, which doubles it each time. Reals pass a guard that turns NaN into NULL, infinities into
the largest reals, and −0.0 into 0.0. A sum or difference of a real that has passed and a constant other than 0 needs
none (``Dialect.leaves_guards_out``): it is not −0.0, and it is finite, because a constant of at most 2^900 is less than
half of what the largest real and the one before it differ by.

Names are quoted, texts are bound as parameters, and other constants are written by ``Dialect.literal`` alone.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import count

from discreet.engines.sql.dialect import Dialect
from discreet.engines.sql.elementary import write_elementary
from discreet.engines.sql.functions import write_call
from discreet.errors import InternalError
from discreet.plan.elementary import ELEMENTARY
from discreet.plan.evaluate import evaluate
from discreet.plan.expressions import Call, Column, Expression, Literal, walk
from discreet.plan.functions import FUNCTIONS
from discreet.plan.types import LARGEST_REAL, Type, Value

_QUOTED = re.compile(r"""(["`])[a-z]+[0-9]+\1""")
# How long a column may be where every column below it is written out, before its layer is set apart; and how long a
# column of the relation below is taken to be.
LONGEST_MERGED, BASE_LENGTH = 1500, 100
# The largest real is 2^970 above the one before it.
MOST_ADDED = 2.0**900


class Layers:
    """Named columns over named columns: a stack of SELECT lists in which each layer reads only those below it."""

    def __init__(
        self,
        columns: Mapping[Column, str],
        dialect: Dialect,
        texts: dict[str, str] | None = None,
        numbers: Iterator[int] | None = None,
    ) -> None:
        """``texts`` gives names to texts that are bound, shared by all layers of one statement.

        ``numbers`` counts the layers of a statement that are set apart. It is given where other layers are stacked on
        these: then the topmost is set apart, too, if a column repeats another one.
        """
        self.dialect = dialect
        self._stacked = numbers is not None
        self._numbers = numbers or count(1)
        self._known: dict[Expression, tuple[str, int]] = {c: (dialect.quote_name(n), 0) for c, n in columns.items()}
        self._computed: dict[Expression, str] = {}
        self._defined: dict[tuple[str, int], str] = {}
        self._layers: list[list[tuple[str, str]]] = []
        self._texts = {} if texts is None else texts
        self._count = 0

    @property
    def parameters(self) -> dict[str, str]:
        """The texts to bind, by name. Not every statement names all of them."""
        return {name: text for text, name in self._texts.items()}

    def write_value(self, expression: Expression) -> str:
        """The name, or the constant, that stands for an expression."""
        return self._write_atom(expression)[0]

    def find_computed(self, expression: Expression) -> str | None:
        """The name of a real that was asked for with ``write_value``, before its guard; None where it has none."""
        return self._computed.get(expression)

    def define(self, sql: str, *reads: Expression) -> str:
        """Name a piece of SQL over expressions that were asked for with ``write_value``."""
        level = max((self._write_atom(expression)[1] for expression in reads), default=0)
        if (sql, level) not in self._defined:
            self._defined[sql, level] = self._add_column(sql, level)[0]
        return self._defined[sql, level]

    def write_ctes(self, base: str, prefix: str) -> tuple[list[str], str]:
        """The layers as common table expressions over the table ``base``, and the name of the topmost."""
        clauses, below, lengths, repeats = [], base, dict[str, int](), False
        for number, layer in enumerate(self._layers):
            items = ", ".join(f"{sql} AS {name}" for name, sql in layer)
            name, query = f"{prefix}{number}", f"SELECT *, {items} FROM {below}"
            lengths |= {column: _measure_merged(sql, lengths) for column, sql in layer}
            repeats = repeats or any(_repeats_column(sql) for _, sql in layer)
            last = self._stacked and number + 1 == len(self._layers)
            apart = max(lengths.values()) > LONGEST_MERGED or (last and repeats)
            clauses.append(self.dialect.stacked_table(name, query, next(self._numbers) if apart else 0))
            below, lengths, repeats = (name, {}, False) if apart else (name, lengths, repeats)
        return clauses, below

    def write_literal(self, value: Value, kind: Type) -> str:
        """A constant of a type. Texts become parameters."""
        if isinstance(value, str):
            return self.dialect.parameter(self._texts.setdefault(value, f"t{len(self._texts)}"))
        return self.dialect.literal(value, kind)

    def _write_atom(self, expression: Expression) -> tuple[str, int]:
        if isinstance(expression, Literal):
            return self.write_literal(expression.value, expression.type), 0
        if expression not in self._known:
            self._known[expression] = self._add_call(expression)
        return self._known[expression]

    def _add_call(self, expression: Expression) -> tuple[str, int]:
        if not isinstance(expression, Call):
            raise InternalError("A released number cannot be read from private rows.")
        if all(isinstance(part, Call | Literal) for part in walk(expression)):
            return self.write_literal(evaluate(expression, {}), expression.type), 0
        # Words such as 'month' are written by the form itself, so that no parameter is left unused.
        words = 1 if FUNCTIONS[expression.function].words else 0
        atoms = [("", 0)] * words + [self._write_atom(argument) for argument in expression.arguments[words:]]
        if expression.function in ELEMENTARY:
            kinds = (argument.type for argument in expression.arguments)
            reals = [(self.dialect.widen(sql, kind, Type.REAL), level) for (sql, level), kind in zip(atoms, kinds)]
            sql, level = write_elementary(expression.function, reals, self.dialect, self._add_column)
        else:
            level = max((level for _, level in atoms), default=0)
            sql = write_call(self.dialect, expression, [atom for atom, _ in atoms])
        name, level = self._add_column(sql, level)
        if expression.type is not Type.REAL or (self.dialect.leaves_guards_out and _adds_constant(expression)):
            return name, level
        self._computed[expression] = name
        return self._add_column(write_real(self.dialect, name), level)

    def _add_column(self, sql: str, level: int) -> tuple[str, int]:
        """A new column in the layer above ``level``."""
        while len(self._layers) <= level:
            self._layers.append([])
        self._count += 1
        name = self.dialect.quote_name(f"e{self._count}")
        self._layers[level].append((name, sql))
        return name, level + 1


def _adds_constant(call: Call) -> bool:
    """Whether a call adds or takes away a constant that is not 0 and far from the largest real."""
    constants = [part.value for part in call.arguments if isinstance(part, Literal)]
    return call.function in ("add", "subtract") and any(
        isinstance(value, int | float) and 0 < abs(value) <= MOST_ADDED for value in constants
    )


def _find_names(sql: str) -> list[str]:
    return [found[0] for found in _QUOTED.finditer(sql)]


def _repeats_column(sql: str) -> bool:
    names = _find_names(sql)
    return len(set(names)) < len(names)


def _measure_merged(sql: str, lengths: Mapping[str, int]) -> int:
    """The length of a column where the columns that it names are written out."""
    return len(sql) + sum(lengths.get(name, BASE_LENGTH) for name in _find_names(sql))


def write_real(dialect: Dialect, value: str) -> str:
    """A double as a plan's real: NULL where it is NaN, the largest real where it is infinite, and never −0.0."""
    zero, least, most = (dialect.literal(end, Type.REAL) for end in (0.0, -LARGEST_REAL, LARGEST_REAL))
    finite, nan = dialect.is_finite(value), dialect.is_nan(value)
    return (
        f"CASE WHEN {finite} THEN {value} + {zero} WHEN {nan} IS NOT FALSE THEN NULL "
        f"WHEN {value} < {zero} THEN {least} ELSE {most} END"
    )
