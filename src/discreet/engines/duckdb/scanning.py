"""From what DuckDB stores to the plan's types: the casts at the very bottom of every question.

A stored type either has a plan type or it has none, and then its column cannot be declared. What a stored value cannot
be in the declared type is NULL: numbers beyond 64 bits, NaN, reals that are not whole where integers are declared,
dates outside the years 1 to 9999, texts of more code points than declared, texts that are no number
(``stored_texts``). An infinity is the largest real of its sign.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from typing import assert_never

from discreet.engines.duckdb.dialect import DIALECT
from discreet.engines.duckdb.stored_texts import FIRST_MOMENT, LAST_MOMENT, write_from_text
from discreet.engines.sql.dialect import quote_name
from discreet.engines.sql.layers import write_real
from discreet.engines.sql.statement import UncheckedText
from discreet.engines.sql.sunk_conditions import StoredValue
from discreet.errors import InternalError
from discreet.late_dataclass import dataclass
from discreet.plan.csv_form import PLAIN_FORM, CsvForm
from discreet.plan.types import Type

# The days that Python, and so the meaning of the plan, knows.
FIRST_DAY, LAST_DAY = "DATE '0001-01-01'", "DATE '9999-12-31'"

_PLAN_TYPES: Mapping[str, Type] = {
    "BOOLEAN": Type.BOOLEAN,
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"), Type.INTEGER),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"), Type.INTEGER),
    **dict.fromkeys(("FLOAT", "DOUBLE", "DECIMAL"), Type.REAL),
    **dict.fromkeys(("VARCHAR", "ENUM", "UUID"), Type.TEXT),
    "DATE": Type.DATE,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), Type.TIMESTAMP),
    **dict.fromkeys(("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS"), Type.TIMESTAMP),
    '"NULL"': Type.TEXT,  # a column of nothing but NULLs: Arrow and pandas have such
}


# Decimals of at most so many digits are divided by their power of ten without any other rounding.
MOST_DIGITS = 15
# Integers of which every one has 64 bits or less.
_NARROW = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"})


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column of a source: its name and its DuckDB type there, and how texts in it are written.

    ``collated``: a column of a DuckDB file may have a collation, which its type does not show. Nothing else has one.
    """

    name: str
    type: str
    form: CsvForm = PLAIN_FORM
    collated: bool = True


def plan_type(stored: str) -> Type | None:
    """The plan type of a DuckDB type, by its name; None where there is none. Decimals without places are integers.

    >>> plan_type("DECIMAL(18,3)"), plan_type("ENUM('a', 'b')"), plan_type("INTEGER[]")
    (<Type.REAL: 'real'>, <Type.TEXT: 'text'>, None)
    """
    if stored.endswith("]"):
        return None
    if re.fullmatch(r"DECIMAL\([0-9]+, ?0\)", stored):
        return Type.INTEGER
    return _PLAN_TYPES.get(re.split(r"\(", stored, maxsplit=1)[0].strip())


def fits(stored: Type | None, declared: Type) -> bool:
    """Whether a stored kind of value can be read as a declared one. Texts can be read as anything, as from CSV."""
    return stored is declared or (stored is not None and (stored, declared) in _CONVERSIONS)


def write_stored_column(stored: StoredColumn, declared: Type, max_length: int | None) -> str:
    """A stored column as a column of the plan, for one of the pairs that ``fits``. Too long a text is NULL."""
    kind = plan_type(stored.type)
    value = _write_own_type(stored, kind)
    if kind is not declared:
        value = _CONVERSIONS[kind, declared](value, stored.form)  # type: ignore[index]  # ``fits`` was asked
    if declared is not Type.TEXT:
        return value
    if max_length is None:
        raise InternalError(f"The text {stored.name!r} has no length.")
    # A text has no more code points than bytes, and DuckDB knows its bytes without looking at it.
    short, fitting = (f"WHEN {count}({value}) <= {max_length} THEN {value}" for count in ("strlen", "length"))
    return f"CASE {short} {fitting} END"


def write_unchecked_text(stored: StoredColumn, declared: Type, max_length: int | None) -> UncheckedText | None:
    """A stored text, cut to one code point more than it may have; None for everything else.

    DuckDB applies this function once to each text of a dictionary, and goes on with the dictionary. A condition that
    makes a text NULL would leave it no dictionary.
    """
    if declared is not Type.TEXT or stored.type != "VARCHAR" or max_length is None:
        return None
    value = _write_own_type(stored, declared)
    cut = DIALECT.substring(value, 1, max_length + 1)
    return UncheckedText(cut, lambda key: f"CASE WHEN {DIALECT.length(key)} <= {max_length} THEN {key} END")


def find_stored_value(stored: StoredColumn, declared: Type, max_length: int | None) -> StoredValue | None:
    """A column as it is stored, where the plan's value is that under a condition and NULL otherwise."""
    if plan_type(stored.type) is not declared:
        return None
    name = quote_name(stored.name)
    if stored.type in _NARROW:
        return StoredValue(name)
    if (decimal := re.fullmatch(r"DECIMAL\(([0-9]+), ?([0-9]+)\)", stored.type)) is not None:
        digits, places = int(decimal[1]), int(decimal[2])
        compare = partial(compare_decimal, name, digits, places) if digits <= MOST_DIGITS else None
        return StoredValue(_write_own_type(stored, declared), compare=compare)
    if stored.type == "DATE":
        return StoredValue(name, f"{name} BETWEEN {FIRST_DAY} AND {LAST_DAY}")
    if stored.type == "TIMESTAMP":
        return StoredValue(name, f"{name} BETWEEN {FIRST_MOMENT} AND {LAST_MOMENT}")
    if stored.type == "VARCHAR" and max_length is not None:
        value = _write_own_type(stored, declared)
        return StoredValue(value, f"strlen({value}) <= {max_length} OR length({value}) <= {max_length}", max_length)
    return None


def compare_decimal(name: str, digits: int, places: int, ordering: str, number: float) -> str | None:
    """An ordering of a decimal, taken as a double, and a number, as one of decimals; None where no decimal is there.

    A decimal of up to ``MOST_DIGITS`` is a whole number below 2^53 over a power of ten that is a double, too. So DuckDB
    divides once and rounds once, which keeps the order: there is a first decimal that is at least the number, or above
    it, and the others follow.

    >>> compare_decimal('"d"', 15, 2, "less", 24), compare_decimal('"d"', 15, 2, "at_least", 0.05)
    ('"d" < 24.00::DECIMAL(15,2)', '"d" >= 0.05::DECIMAL(15,2)')
    """
    scale, above = 10**places, ordering in ("greater", "at_most")
    if not abs(number) < 10 ** (digits - places):
        return None
    first = math.floor(Fraction(number) * scale) - 1
    while first / scale < number or (above and first / scale == number):
        first += 1
    if abs(first) >= 10**digits:
        return None
    sign = ">=" if ordering in ("greater", "at_least") else "<"
    whole, rest = divmod(abs(first), scale)
    text = f"{'-' if first < 0 else ''}{whole}.{rest:0{places}}" if places else str(first)
    return f"{name} {sign} {text}::DECIMAL({digits},{places})"


def write_unguarded_real(stored: StoredColumn, declared: Type) -> str | None:
    """A stored real as a double that may be NaN or infinite; None for everything else."""
    if declared is not Type.REAL or plan_type(stored.type) is not Type.REAL:
        return None
    name = quote_name(stored.name)
    return name if stored.type == "DOUBLE" else f"CAST({name} AS DOUBLE)"


def _write_own_type(given: StoredColumn, kind: Type | None) -> str:
    """A stored value in the plan type of its own kind."""
    column, stored = quote_name(given.name), given.type
    match kind:
        case Type.INTEGER:
            return column if stored == "BIGINT" else f"TRY_CAST({column} AS BIGINT)"
        case Type.REAL:
            value = column if stored == "DOUBLE" else f"CAST({column} AS DOUBLE)"
            # A decimal is a whole number of its last places: finite, and without a zero below zero.
            return value if stored.startswith("DECIMAL") else write_real(DIALECT, value)
        case Type.TEXT:
            if stored != "VARCHAR":
                return f"CAST({column} AS VARCHAR)"
            return f"({column} COLLATE C)" if given.collated else column  # code points decide
        case Type.DATE:
            return f"CASE WHEN {column} BETWEEN {FIRST_DAY} AND {LAST_DAY} THEN {column} END"
        case Type.TIMESTAMP:
            moment = _write_moment(column, stored)
            return f"CASE WHEN {moment} BETWEEN {FIRST_MOMENT} AND {LAST_MOMENT} THEN {moment} END"
        case Type.BOOLEAN | None:
            return column
        case _:
            assert_never(kind)


def _write_moment(column: str, stored: str) -> str:
    """A time without zone, to the microsecond; times with a zone are taken in UTC."""
    if stored == "TIMESTAMP":
        return column
    if stored == "TIMESTAMP WITH TIME ZONE":
        return f"TRY(make_timestamp(epoch_us({column})))"
    if stored == "TIMESTAMPTZ_NS":
        return f"TRY(make_timestamp(epoch_us(TRY_CAST({column} AS TIMESTAMPTZ))))"
    return f"TRY_CAST({column} AS TIMESTAMP)"


def _write_whole(value: str) -> str:
    """A finite real as an integer, if it is one of 64 bits. Two to the 63rd is the first that is not."""
    edge = "9223372036854775808.0::DOUBLE"
    fits = f"{value} >= -{edge} AND {value} < {edge} AND {value} = floor({value})"
    return f"CASE WHEN {fits} THEN TRY_CAST({value} AS BIGINT) END"


def _write_text(value: str, _: CsvForm) -> str:
    return f"CAST({value} AS VARCHAR)"


_CONVERSIONS: Mapping[tuple[Type, Type], Callable[[str, CsvForm], str]] = {
    (Type.INTEGER, Type.REAL): lambda value, _: f"CAST({value} AS DOUBLE)",
    (Type.REAL, Type.INTEGER): lambda value, _: _write_whole(f"({value})"),
    (Type.DATE, Type.TIMESTAMP): lambda value, _: f"CAST({value} AS TIMESTAMP)",
    (Type.TIMESTAMP, Type.DATE): lambda value, _: f"CAST({value} AS DATE)",
    (Type.TEXT, Type.BOOLEAN): lambda value, form: write_from_text(value, Type.BOOLEAN, form),
    (Type.TEXT, Type.INTEGER): lambda value, form: write_from_text(value, Type.INTEGER, form),
    (Type.TEXT, Type.REAL): lambda value, form: write_real(DIALECT, f"({write_from_text(value, Type.REAL, form)})"),
    (Type.TEXT, Type.DATE): lambda value, form: write_from_text(value, Type.DATE, form),
    (Type.TEXT, Type.TIMESTAMP): lambda value, form: write_from_text(value, Type.TIMESTAMP, form),
    **{(kind, Type.TEXT): _write_text for kind in (Type.INTEGER, Type.BOOLEAN, Type.DATE)},
}
