"""Types of PostgreSQL, and values of them as text and in binary form.

Results have a type for each of the six types of a plan, and those that catalog queries give. Parameters are read as
Python values that the reader of questions takes for constants; anything else is refused.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any

from discreet.plan.types import Type

_EPOCH = dt.datetime(2000, 1, 1)  # noqa: DTZ001  # times have no zone here
_DAY_ZERO = dt.date(2000, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)


class WireType(Enum):
    """A type by its number in pg_type, the size of its values, and its name."""

    BOOL = (16, 1, "boolean")
    BYTEA = (17, -1, "bytea")
    CHAR = (18, 1, '"char"')
    NAME = (19, 64, "name")
    INT8 = (20, 8, "bigint")
    INT2 = (21, 2, "smallint")
    INT4 = (23, 4, "integer")
    TEXT = (25, -1, "text")
    OID = (26, 4, "oid")
    FLOAT4 = (700, 4, "real")
    FLOAT8 = (701, 8, "double precision")
    UNKNOWN = (705, -2, "unknown")
    INT4_ARRAY = (1007, -1, "integer[]")
    TEXT_ARRAY = (1009, -1, "text[]")
    INT8_ARRAY = (1016, -1, "bigint[]")
    OID_ARRAY = (1028, -1, "oid[]")
    BPCHAR = (1042, -1, "character")
    VARCHAR = (1043, -1, "character varying")
    DATE = (1082, 4, "date")
    TIMESTAMP = (1114, 8, "timestamp without time zone")
    TIMESTAMPTZ = (1184, 8, "timestamp with time zone")
    NUMERIC = (1700, -1, "numeric")

    def __init__(self, oid: int, size: int, title: str) -> None:
        self.oid, self.size, self.title = oid, size, title


BY_OID = {each.oid: each for each in WireType}

OF_PLAN: dict[Type, WireType] = {
    Type.BOOLEAN: WireType.BOOL,
    Type.INTEGER: WireType.INT8,
    Type.REAL: WireType.FLOAT8,
    Type.TEXT: WireType.TEXT,
    Type.DATE: WireType.DATE,
    Type.TIMESTAMP: WireType.TIMESTAMP,
}
_TEXTS = (WireType.TEXT, WireType.VARCHAR, WireType.BPCHAR, WireType.NAME, WireType.UNKNOWN, WireType.CHAR)
_ITEMS = {
    WireType.INT4_ARRAY: WireType.INT4,
    WireType.INT8_ARRAY: WireType.INT8,
    WireType.TEXT_ARRAY: WireType.TEXT,
    WireType.OID_ARRAY: WireType.OID,
}
_PACKED = {
    WireType.INT2: "!h",
    WireType.INT4: "!i",
    WireType.INT8: "!q",
    WireType.OID: "!I",
    WireType.FLOAT4: "!f",
    WireType.FLOAT8: "!d",
    WireType.BOOL: "!?",
}


class ValueRefused(Exception):
    """A parameter that cannot be read as its type says. The message has no value in it."""


def to_text(value: Any, kind: WireType) -> bytes | None:
    """A value as PostgreSQL writes it.

    >>> to_text(True, WireType.BOOL), to_text(0.1, WireType.FLOAT8), to_text(["a", None], WireType.TEXT_ARRAY)
    (b't', b'0.1', b'{"a",NULL}')
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return b"t" if value else b"f"
    if isinstance(value, list):
        items = (to_text(item, _ITEMS.get(kind, WireType.TEXT)) for item in value)
        return b"{" + b",".join(b"NULL" if item is None else _quote_item(item, kind) for item in items) + b"}"
    if isinstance(value, float):
        return _write_real(value).encode()
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ").encode()
    return str(value).encode("utf-8", "replace")


def _quote_item(item: bytes, kind: WireType) -> bytes:
    if kind is not WireType.TEXT_ARRAY:
        return item
    return b'"' + item.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


def _write_real(value: float) -> str:
    """The shortest digits that give the double again, without ``.0``, as PostgreSQL writes them."""
    if value != value:  # noqa: PLR0124  # NaN alone is not itself
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value).removesuffix(".0")


def to_binary(value: Any, kind: WireType) -> bytes | None:
    """A value in the binary form of its type.

    >>> to_binary(1, WireType.INT8).hex(), to_binary(dt.date(2000, 1, 2), WireType.DATE).hex()
    ('0000000000000001', '00000001')
    """
    if value is None:
        return None
    if kind in _PACKED:
        return struct.pack(_PACKED[kind], value)
    if kind is WireType.DATE:
        return struct.pack("!i", (value - _DAY_ZERO).days)
    if kind in (WireType.TIMESTAMP, WireType.TIMESTAMPTZ):
        plain = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
        return struct.pack("!q", (plain - _EPOCH) // _MICROSECOND)
    if kind is WireType.NUMERIC:
        return _pack_numeric(Decimal(value))
    if kind in _ITEMS:
        return _pack_list(value, _ITEMS[kind])
    return bytes(value) if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


def _pack_list(values: list[Any], kind: WireType) -> bytes:
    head = struct.pack("!iiI", 1 if values else 0, any(value is None for value in values), kind.oid)
    head += struct.pack("!ii", len(values), 1) if values else b""
    cells = (to_binary(value, kind) for value in values)
    return head + b"".join(b"\xff" * 4 if cell is None else struct.pack("!i", len(cell)) + cell for cell in cells)


def _pack_numeric(value: Decimal) -> bytes:
    """Digits to the base 10,000, the weight of the first of them, a sign, and the digits behind the point."""
    if not value.is_finite():
        sign = 0xC000 if value.is_nan() else 0xD000 if value > 0 else 0xF000
        return struct.pack("!HhHH", 0, 0, sign, 0)
    sign, figures, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    whole = int("".join(map(str, figures))) * 10 ** max(0, int(exponent))
    padding = -scale % 4
    digits: list[int] = []
    rest = whole * 10**padding
    while rest:
        rest, digit = divmod(rest, 10_000)
        digits.insert(0, digit)
    weight = len(digits) - 1 - (scale + padding) // 4 if digits else 0
    while digits and not digits[-1]:
        digits.pop()
    head = struct.pack("!HhHH", len(digits), weight, 0x4000 if sign else 0, scale)
    return head + b"".join(struct.pack("!H", digit) for digit in digits)


def encode_value(value: Any, kind: WireType, *, binary: bool) -> bytes | None:
    """A value in the format that the client chose."""
    return to_binary(value, kind) if binary else to_text(value, kind)


# Parameters


def read_parameter(data: bytes | None, oid: int, *, binary: bool) -> Any:
    """The value of a parameter that a client binds, as a constant of a question."""
    if data is None:
        return None
    kind = BY_OID.get(oid, WireType.TEXT) if oid == 0 or oid in BY_OID else None
    if kind is None:
        raise ValueRefused("A parameter has a type that is not known here.")
    try:
        return _read_binary(data, kind) if binary else _READERS.get(kind, _read_words)(data)
    except (ValueError, struct.error, InvalidOperation, OverflowError):
        raise ValueRefused(f"A parameter cannot be read as {kind.title}.") from None


def _read_binary(data: bytes, kind: WireType) -> Any:
    if kind in _PACKED:
        (value,) = struct.unpack(_PACKED[kind], data)
        return value
    if kind is WireType.DATE:
        return _DAY_ZERO + dt.timedelta(days=struct.unpack("!i", data)[0])
    if kind in (WireType.TIMESTAMP, WireType.TIMESTAMPTZ):
        return _EPOCH + _MICROSECOND * struct.unpack("!q", data)[0]
    if kind is WireType.NUMERIC:
        return _simplify(_unpack_numeric(data))
    if kind in _TEXTS:
        return data.decode()
    raise ValueError


def _unpack_numeric(data: bytes) -> Decimal:
    count, weight, sign, scale = struct.unpack("!HhHH", data[:8])
    if sign not in (0, 0x4000) or len(data) != 8 + 2 * count:
        raise ValueError
    digits = struct.unpack(f"!{count}H", data[8:])
    value = sum((Decimal(digit).scaleb(4 * (weight - at)) for at, digit in enumerate(digits)), Decimal(0))
    return (-value if sign else value).quantize(Decimal(1).scaleb(-scale))


def _simplify(value: Decimal) -> int | float:
    """A number as the reader of questions takes it."""
    if not value.is_finite():
        raise ValueError
    if value == value.to_integral_value() and abs(value) < 2**63:
        return int(value)
    return float(value)


def _read_words(data: bytes) -> str:
    return data.decode()


def _read_truth(data: bytes) -> bool:
    word = data.decode().strip().lower()
    if word not in ("t", "true", "1", "on", "yes", "f", "false", "0", "off", "no"):
        raise ValueError
    return word in ("t", "true", "1", "on", "yes")


def _read_time(data: bytes) -> dt.datetime:
    read = dt.datetime.fromisoformat(data.decode())
    return read.astimezone(dt.UTC).replace(tzinfo=None) if read.tzinfo else read


_READERS: dict[WireType, Callable[[bytes], Any]] = {
    WireType.BOOL: _read_truth,
    WireType.INT2: int,
    WireType.INT4: int,
    WireType.INT8: int,
    WireType.OID: int,
    WireType.FLOAT4: float,
    WireType.FLOAT8: float,
    WireType.NUMERIC: lambda data: _simplify(Decimal(data.decode())),
    WireType.DATE: lambda data: dt.date.fromisoformat(data.decode()),
    WireType.TIMESTAMP: _read_time,
    WireType.TIMESTAMPTZ: _read_time,
}
