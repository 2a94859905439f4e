"""The secret order: in which order a unit's groups, its values and the rows of a join are taken.

It is a function of the salt, which is drawn for each question and never leaves, and of values: of the unit and the key,
or of all values of a row. So what is taken of one unit does not depend on anybody else, nor on how rows are stored.
Ties fall back to the values themselves, in the order of ``engine.key_order``.

How a salt becomes an order is a value that an engine is given when it is made. Any fair rule will do, and every engine
has one that it is quick at; only a comparison of two engines needs both to follow the same.

- ``PortableOrder`` is a keyed hash in Python. The oracle uses it unless it is told otherwise.
- ``EngineHash`` is the keyed hash that a SQL engine has of its own (``Dialect.place_of_group``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

from discreet.late_dataclass import dataclass
from discreet.plan.types import Type, Value

TypedValue: TypeAlias = tuple[Value, Type]
"""A value and the type that it has in the plan, which also says what a NULL would have been."""

HASH_BITS = 24


class SecretOrder(Protocol):
    """A rule that gives everything its place under a salt: a value that can be compared with other places."""

    def place_of_group(self, salt: bytes, unit: TypedValue, key: Sequence[TypedValue]) -> Any:
        """Where a group stands among a unit's groups; with a value behind the key, where that stands in the group."""
        ...

    def place_of_row(self, salt: bytes, values: Sequence[TypedValue]) -> Any:
        """Where a row stands among others; equal rows stand at the same place."""
        ...


@dataclass(frozen=True, slots=True)
class PortableOrder:
    """A keyed hash (BLAKE2b) of values that are written down with their types and lengths.

    No two lists of values are written alike, and −0.0 is written as 0.0, which equals it.
    """

    def place_of_group(self, salt: bytes, unit: TypedValue, key: Sequence[TypedValue]) -> bytes:
        return _hash(salt, "group", [unit, *key])

    def place_of_row(self, salt: bytes, values: Sequence[TypedValue]) -> bytes:
        return _hash(salt, "row", values)


@dataclass(frozen=True, slots=True)
class EngineHash:
    """A SQL engine's own keyed hash, of which the high ``bits`` bits order a unit's groups; all of them order rows."""

    bits: int = HASH_BITS


def _hash(salt: bytes, purpose: str, values: Sequence[TypedValue]) -> bytes:
    digest = hashlib.blake2b(purpose.encode(), key=salt)
    for value, kind in values:
        text = _write(value).encode("utf-8", "surrogatepass")
        digest.update(f"\0{kind}:{'null' if value is None else len(text)}:".encode())
        digest.update(text)
    return digest.digest()


def _write(value: Value) -> str:
    if value is None:
        return ""
    return repr(value + 0.0) if isinstance(value, float) else str(value)
