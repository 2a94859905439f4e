"""What the door sends: messages of the PostgreSQL protocol, version 3, as bytes. Pure functions, no state."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from enum import StrEnum

from discreet.late_dataclass import dataclass
from discreet.wire.value_types import WireType

PARSE_COMPLETE = b"1\x00\x00\x00\x04"
BIND_COMPLETE = b"2\x00\x00\x00\x04"
CLOSE_COMPLETE = b"3\x00\x00\x00\x04"
NO_DATA = b"n\x00\x00\x00\x04"
EMPTY_QUERY = b"I\x00\x00\x00\x04"
PORTAL_SUSPENDED = b"s\x00\x00\x00\x04"
COPY_DONE = b"c\x00\x00\x00\x04"
AUTHENTICATION_OK = b"R\x00\x00\x00\x08\x00\x00\x00\x00"
_SASL, _SASL_CONTINUE, _SASL_FINAL = 10, 11, 12


class Severity(StrEnum):
    """How bad a message is. After FATAL the connection ends."""

    NOTICE = "NOTICE"
    ERROR = "ERROR"
    FATAL = "FATAL"


class TransactionState(StrEnum):
    """What ReadyForQuery says of the transaction."""

    IDLE = "I"
    OPEN = "T"
    FAILED = "E"


@dataclass(frozen=True, slots=True)
class WireColumn:
    """A column of a result: its name and its type."""

    name: str
    type: WireType


@dataclass(frozen=True, slots=True, kw_only=True)
class WireNotice:
    """A message for people: NOTICE, ERROR or FATAL. ``position`` counts characters of the text from 1."""

    severity: Severity
    code: str
    message: str
    detail: str = ""
    hint: str = ""
    position: int | None = None

    def encode(self) -> bytes:
        """The message as bytes."""
        fields = {"S": str(self.severity), "V": str(self.severity), "C": self.code, "M": self.message}
        fields |= {"D": self.detail} if self.detail else {}
        fields |= {"H": self.hint} if self.hint else {}
        fields |= {"P": str(self.position)} if self.position is not None else {}
        body = b"".join(name.encode() + encode_text(words) for name, words in fields.items()) + b"\0"
        return make_message(b"N" if self.severity is Severity.NOTICE else b"E", body)


def make_message(tag: bytes, body: bytes) -> bytes:
    """A message with its length.

    >>> make_message(b"Z", b"I").hex()
    '5a0000000549'
    """
    return tag + struct.pack("!I", len(body) + 4) + body


def encode_text(words: str) -> bytes:
    """A text that ends with a zero byte. One that has such a byte inside, or half a letter, cannot be sent as it is."""
    return words.replace("\0", "�").encode("utf-8", "replace") + b"\0"


def ask_for_sasl(mechanisms: Sequence[str]) -> bytes:
    """The list of mechanisms by which a client may show who it is."""
    return make_message(b"R", struct.pack("!I", _SASL) + b"".join(map(encode_text, mechanisms)) + b"\0")


def continue_sasl(words: bytes, *, last: bool) -> bytes:
    """The server's next words in that exchange."""
    return make_message(b"R", struct.pack("!I", _SASL_FINAL if last else _SASL_CONTINUE) + words)


def tell_setting(name: str, value: str) -> bytes:
    """A setting that clients keep track of."""
    return make_message(b"S", encode_text(name) + encode_text(value))


def tell_settings(values: Mapping[str, str]) -> bytes:
    """Several of them."""
    return b"".join(tell_setting(name, value) for name, value in values.items())


def give_key(process: int, secret: bytes) -> bytes:
    """By what a client names this connection when it wants to cancel a question."""
    return make_message(b"K", struct.pack("!I", process) + secret)


def negotiate_version(unknown: Sequence[str]) -> bytes:
    """The newest protocol that is spoken here is 3.0; these options are not known."""
    return make_message(b"v", struct.pack("!II", 0, len(unknown)) + b"".join(map(encode_text, unknown)))


def be_ready(state: TransactionState) -> bytes:
    """The next statement may come."""
    return make_message(b"Z", state.encode())


def complete(tag: str) -> bytes:
    """A statement has ended."""
    return make_message(b"C", encode_text(tag))


def describe_parameters(types: Sequence[WireType]) -> bytes:
    """The types of the parameters of a prepared statement."""
    return make_message(b"t", struct.pack("!H", len(types)) + b"".join(struct.pack("!I", each.oid) for each in types))


def describe_rows(columns: Sequence[WireColumn], formats: Sequence[int]) -> bytes:
    """The columns that will come, and in which format each."""
    body = struct.pack("!H", len(columns))
    for column, chosen in zip(columns, formats):
        body += encode_text(column.name)
        body += struct.pack("!IhIhih", 0, 0, column.type.oid, column.type.size, -1, chosen)
    return make_message(b"T", body)


def send_row(cells: Sequence[bytes | None]) -> bytes:
    """One row; None is NULL."""
    return make_message(b"D", struct.pack("!H", len(cells)) + b"".join(map(encode_cell, cells)))


def encode_cell(cell: bytes | None) -> bytes:
    """A value with its length; -1 stands for NULL."""
    return b"\xff\xff\xff\xff" if cell is None else struct.pack("!i", len(cell)) + cell


def begin_copy(columns: int, *, binary: bool) -> bytes:
    """Rows of a COPY follow."""
    return make_message(b"H", struct.pack("!BH", binary, columns) + struct.pack("!h", binary) * columns)


def send_copied(data: bytes) -> bytes:
    """A part of what a COPY gives."""
    return make_message(b"d", data)
