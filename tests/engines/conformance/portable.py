"""One secret order for all engines, so that all of them give the same integers: md5 of values as texts.

Places are those of ``engines.order``, computed by words that every engine has. It is for comparisons alone: each engine
has a hash of its own that is quicker. Reals are hashed by a coarse step, because no two engines write them alike; ties
fall back to the values themselves, as they always do.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from discreet.engines.duckdb.dialect import DuckDBDialect
from discreet.engines.order import HASH_BITS, TypedValue
from discreet.engines.postgres.dialect import PostgresDialect
from discreet.engines.spark.dialect import SparkDialect
from discreet.plan.types import Type, Value

# The digits of a digest that make a place among rows; among groups it has as many bits as engines use.
_DIGITS = 15
_FAR = 1e9


def _write_value(dialect: Any, sql: str, kind: Type, text: str) -> str:
    """A value as a text in SQL; ``text`` is the engine's name of the type of texts."""
    match kind:
        case Type.TEXT:
            own = sql
        case Type.REAL:
            far, near = f"CASE WHEN {sql} < 0 THEN -1 ELSE 1 END", f"CAST(floor({sql} * 16) AS bigint)"
            own = f"CAST(CASE WHEN {sql} > -{_FAR} AND {sql} < {_FAR} THEN {near} ELSE {far} END AS {text})"
        case _:
            own = f"CAST({dialect.code(f'({sql})', kind)} AS {text})"
    known = f"concat(CAST(length({own}) AS {text}), ':', {own})"
    return f"CASE WHEN {sql} IS NULL THEN 'null' ELSE {known} END"


def _read_value(value: TypedValue) -> str:
    given, _ = value
    if given is None:
        return "null"
    if isinstance(given, str):
        own = given
    elif isinstance(given, float):
        own = str(math.floor(given * 16) if -_FAR < given < _FAR else -1 if given < 0 else 1)
    else:
        own = str(_to_code(given))
    return f"{len(own)}:{own}"


def _to_code(value: Value) -> int:
    """What ``Dialect.code`` makes of a value."""
    if isinstance(value, dt.datetime):
        return (value - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)  # noqa: DTZ001  # plan times have no zone
    if isinstance(value, dt.date):
        return value.toordinal() - dt.date(1970, 1, 1).toordinal()
    assert isinstance(value, int)
    return int(value)


@dataclass(frozen=True)
class DigestOrder:
    """The order for the oracle."""

    bits: int = HASH_BITS

    def place_of_group(self, salt: bytes, unit: TypedValue, key: Sequence[TypedValue]) -> int:
        return _digest(salt, [(_identify(unit), Type.INTEGER), *key], self.bits // 4)

    def place_of_row(self, salt: bytes, values: Sequence[TypedValue]) -> int:
        return _digest(salt, values, _DIGITS)


def _identify(unit: TypedValue) -> int:
    return _digest(b"", [unit], _DIGITS)


def _digest(salt: bytes, values: Sequence[TypedValue], digits: int) -> int:
    text = salt.hex() + "".join(map(_read_value, values))
    return int(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:digits], 16)


def _number_in_duckdb(text: str, digits: int) -> str:
    return f"CAST(('0x' || substr(md5({text}), 1, {digits})) AS BIGINT)"


def _number_in_postgres(text: str, digits: int) -> str:
    return f"CAST(CAST('x' || substr(md5({text}), 1, {digits}) AS bit({4 * digits})) AS bigint)"


def _number_in_spark(text: str, digits: int) -> str:
    return f"CAST(conv(substr(md5({text}), 1, {digits}), 16, 10) AS BIGINT)"


_ENGINES: tuple[tuple[type, str, Callable[[str, int], str]], ...] = (
    (DuckDBDialect, "VARCHAR", _number_in_duckdb),
    (PostgresDialect, "text", _number_in_postgres),
    (SparkDialect, "STRING", _number_in_spark),
)


@contextmanager
def one_order_for_all() -> Iterator[DigestOrder]:
    """Every SQL engine orders as the oracle does that is given the order that this yields."""
    with pytest.MonkeyPatch.context() as patch:
        for dialect, text, write_number in _ENGINES:
            _install(patch, dialect, text, write_number)
        yield DigestOrder()


def _install(patch: pytest.MonkeyPatch, dialect: type, text: str, write_number: Callable[[str, int], str]) -> None:
    def digest(own: Any, salt: bytes, values: Sequence[tuple[str, Type]], digits: int) -> str:
        written = [f"'{salt.hex()}'", *(_write_value(own, sql, kind, text) for sql, kind in values)]
        return write_number(f"concat({', '.join(written)})", digits)

    def identity(own: Any, unit: str, kind: Type) -> str:
        return digest(own, b"", [(unit, kind)], _DIGITS)

    def place_of_group(own: Any, identity: str, values: Sequence[tuple[str, Type]], salt: bytes, bits: int) -> str:
        return digest(own, salt, [(identity, Type.INTEGER), *values], bits // 4)

    def place_of_row(own: Any, values: Sequence[tuple[str, Type]], salt: bytes) -> str:
        return digest(own, salt, values, _DIGITS)

    patch.setattr(dialect, "identity", identity)
    patch.setattr(dialect, "place_of_group", place_of_group)
    patch.setattr(dialect, "place_of_row", place_of_row)
