"""Values that break things, for every type, and every way to call every function with them."""

# ruff: noqa: DTZ001  # times have no zone here, and worlds need seeds, not secrets
from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterator

from discreet.plan.expressions import Call, Column, Expression, Literal
from discreet.plan.functions import FUNCTIONS, make_call
from discreet.plan.types import INTEGER_MAX, INTEGER_MIN, Type, Value

SMALLEST, LARGEST = 5e-324, 1.7976931348623157e308

VALUES: dict[Type, tuple[Value, ...]] = {
    Type.BOOLEAN: (None, False, True),
    Type.INTEGER: (
        *(None, 0, 1, -1, 2, -2, 3, 7, -7, 10, 100, 2**31, -(2**31), 2**53, 2**53 + 1, -(2**53) - 1),
        *(2**62, INTEGER_MAX - 1, INTEGER_MAX, INTEGER_MIN, INTEGER_MIN + 1),
    ),
    Type.REAL: (
        *(None, 0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.1, 0.3, 1e-9, 2.675, 1.005, 1e15 + 0.5),
        *(4503599627370495.5, 0.49999999999999994, float(2**53), float(2**63), -float(2**63), 9.223372036854775e18),
        *(1e22, 1e300, -1e300, SMALLEST, -SMALLEST, 2.2250738585072014e-308, LARGEST, -LARGEST),
    ),
    Type.TEXT: (
        *(None, "", " ", "  a b  ", "a", "A", "ab", "aB%_c", "abc", "b", "a\nb", "a\0b", "\\", "%", "_", "'", '"; --'),
        *("0", "12", " 12 ", "+7", "-0", "1e3", "1.5", ".5", "5.", "-.5e-3", "1e400", "9223372036854775807"),
        *("9223372036854775808", "-9223372036854775808", "00012", "1_000", "0x10", "inf", "NaN", "١٢", "\t12", "1 2"),
        *("2001-12-31", "2001-02-29", "0000-01-01", "9999-12-31", "2001-1-1", "20011231", "epoch", "infinity", "true"),
        *("Müller", "STRASSE", "straße", "ÉCOLE", "école", "e\u0301", "İi", "ıI", "ΣΑΣ", "σας", "ﬁ", "😀", "日本"),
        *("\u00a0a\u00a0", "x" * 5000, "1" * 500, "\U0010ffff"),
    ),
    Type.DATE: (
        *(None, dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1970, 1, 1), dt.date(1969, 12, 31)),
        *(dt.date(2000, 2, 29), dt.date(2004, 12, 31), dt.date(2005, 1, 1), dt.date(2021, 1, 3), dt.date(1900, 3, 1)),
    ),
    Type.TIMESTAMP: (
        *(None, dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999), dt.datetime(1970, 1, 1)),
        *(dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2000, 2, 29, 12, 30, 1, 500000)),
        *(dt.datetime(2005, 1, 1, 0, 0, 0, 1), dt.datetime(1583, 1, 1, 7, 7, 7), dt.datetime(2021, 1, 3, 23, 59, 59)),
    ),
}  # fmt: skip

# Constants that analysts write, nasty ones among them.
CONSTANTS: dict[Type, tuple[Value, ...]] = {
    **VALUES,
    Type.INTEGER: (None, 0, 1, -1, 2, 3, -3, 15, 16, -15, -16, 2**31, 2**40, INTEGER_MAX, INTEGER_MIN),
    Type.TEXT: (None, "", "a", "%", "_", "a%", "%b", "%a%b%", "__", "A_%", "\\%", "a\0b", "%é%", "É%", "ß", "%ı%"),
}


def columns(kinds: tuple[Type, ...]) -> tuple[Column, ...]:
    return tuple(Column("t", f"c{i}", kind) for i, kind in enumerate(kinds))


def signatures(name: str) -> Iterator[tuple[Type, ...]]:
    """The lists of one to three argument types that a function takes; CASE and IN take more in other tests."""
    for count in (1, 2, 3):
        for kinds in itertools.product(Type, repeat=count):
            if FUNCTIONS[name].yields(kinds) is not None:
                yield kinds


def calls(name: str) -> Iterator[tuple[Call, tuple[Type, ...]]]:
    """Calls of a function on columns, with nasty constants where constants are due, and the columns' types."""
    function = FUNCTIONS[name]
    for kinds in signatures(name):
        choices: list[tuple[Expression, ...]] = []
        for position, (kind, column) in enumerate(zip(kinds, columns(kinds))):
            if position not in function.constants:
                choices.append((column,))
            elif function.words:
                choices.append(tuple(Literal(word, Type.TEXT) for word in function.words))
            else:
                choices.append(tuple(Literal(value, kind) for value in CONSTANTS[kind]))
        for arguments in itertools.product(*choices):
            yield make_call(name, *arguments), kinds
