"""Values as text and in binary form, as PostgreSQL writes and reads them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.wire.value_types import ValueRefused, WireType, encode_value, read_parameter, to_binary, to_text

VALUES: dict[WireType, st.SearchStrategy[Any]] = {
    WireType.INT8: st.integers(-(2**63), 2**63 - 1),
    WireType.INT4: st.integers(-(2**31), 2**31 - 1),
    WireType.INT2: st.integers(-(2**15), 2**15 - 1),
    WireType.FLOAT8: st.floats(allow_nan=False),
    WireType.BOOL: st.booleans(),
    WireType.TEXT: st.text(st.characters(exclude_categories=["Cs"])),
    WireType.DATE: st.dates(),
    WireType.TIMESTAMP: st.datetimes(),
}


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_what_is_written_is_read_again(data: Any) -> None:
    """A client that sends a value back, in either format, means the same value."""
    kind = data.draw(st.sampled_from(list(VALUES)))
    value = data.draw(VALUES[kind])
    for binary in (False, True):
        assert read_parameter(encode_value(value, kind, binary=binary), kind.oid, binary=binary) == value


@settings(max_examples=200, deadline=None)
@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**15), max_value=10**15, places=6))
def test_numerics(value: Decimal) -> None:
    read = read_parameter(to_binary(value, WireType.NUMERIC), WireType.NUMERIC.oid, binary=True)
    assert float(read) == float(value)


def test_numerics_as_postgres_writes_them() -> None:
    """The bytes of PostgreSQL's own numeric_send for 12345.678 and -0.0001."""
    assert to_binary(Decimal("12345.678"), WireType.NUMERIC) == bytes.fromhex("0003000100000003 0001 0929 1a7c")
    assert to_binary(Decimal("-0.0001"), WireType.NUMERIC) == bytes.fromhex("0001ffff40000004 0001")


def test_texts() -> None:
    cases = [
        (1.0, WireType.FLOAT8, b"1"), (0.1, WireType.FLOAT8, b"0.1"), (float("inf"), WireType.FLOAT8, b"Infinity"),
        (True, WireType.BOOL, b"t"), (dt.datetime(2024, 1, 2, 3, 4, 5), WireType.TIMESTAMP, b"2024-01-02 03:04:05"),  # noqa: DTZ001
        (None, WireType.TEXT, None), ([1, None], WireType.INT4_ARRAY, b"{1,NULL}"),
    ]  # fmt: skip
    for value, kind, text in cases:
        assert to_text(value, kind) == text


@pytest.mark.parametrize(
    ("data", "oid", "binary"),
    [
        (b"x", 20, False), (b"\0", 20, True), (b"2024-13-01", 1082, False), (b"\xff", 25, False), (b"NaN", 1700, False),
        (b"1", 600, False), (b"\x7f\xff\xff\xff", 1082, True), (b"maybe", 16, False), (b"\0" * 7, 1700, True),
        (b"\xff\xfe", 0, False),
    ],
)  # fmt: skip
def test_values_that_are_none(data: bytes, oid: int, binary: bool) -> None:
    """The refusal names the type, and never the value."""
    with pytest.raises(ValueRefused) as refused:
        read_parameter(data, oid, binary=binary)
    assert "2024" not in str(refused.value)
