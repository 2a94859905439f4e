"""What a client sends: bytes become messages, or are refused. Pure functions; every length is checked before its use.

Nothing here is trusted: a length that does not fit, a text without its end, or bytes left over are a
``ProtocolViolation``, after which the connection ends.
"""

from __future__ import annotations

import struct
from typing import TypeAlias

from discreet.late_dataclass import dataclass

MOST_STARTUP_BYTES = 10_000
MOST_BYTES = 1 << 20
MOST_SASL_BYTES = 4096
MOST_PARAMETERS = 1000
SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102
_MAJOR = 3


class ProtocolViolation(Exception):
    """Bytes that are no message of the protocol."""


@dataclass(frozen=True, slots=True)
class Startup:
    """The first message of a connection: whom it is for. ``minor`` above zero wants a newer protocol."""

    minor: int
    settings: dict[str, str]


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """The wish to end what another connection runs."""

    process: int
    secret: bytes


@dataclass(frozen=True, slots=True)
class EncryptionRequest:
    """The wish to go on by TLS, or by GSS."""

    tls: bool


@dataclass(frozen=True, slots=True)
class SimpleQuery:
    """Statements to run at once."""

    text: str


@dataclass(frozen=True, slots=True)
class ParseStatement:
    """A statement to prepare, with the types of its first parameters; 0 leaves one open."""

    name: str
    text: str
    types: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BindPortal:
    """Values for a prepared statement, and the formats of its results."""

    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    results: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DescribeItem:
    """The wish to know the columns of a statement (S) or a portal (P)."""

    portal: bool
    name: str


@dataclass(frozen=True, slots=True)
class CloseItem:
    """A statement or portal that is not used any more."""

    portal: bool
    name: str


@dataclass(frozen=True, slots=True)
class ExecutePortal:
    """Run a portal; at most so many rows now, all for 0."""

    portal: str
    most: int


@dataclass(frozen=True, slots=True)
class PlainMessage:
    """A message that is its letter alone: Sync (S), Flush (H), Terminate (X), or one that is passed over."""

    tag: str


StartMessage: TypeAlias = Startup | CancelRequest | EncryptionRequest
ClientMessage: TypeAlias = (
    SimpleQuery | ParseStatement | BindPortal | DescribeItem | CloseItem | ExecutePortal | PlainMessage
)


class _Cursor:
    """Reads the parts of a message in their order."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, count: int) -> bytes:
        if count < 0 or self._at + count > len(self._data):
            raise ProtocolViolation
        self._at += count
        return self._data[self._at - count : self._at]

    def take_text(self) -> str:
        end = self._data.find(b"\0", self._at)
        if end < 0:
            raise ProtocolViolation
        read = self.take(end - self._at)
        self._at += 1
        try:
            return read.decode()
        except UnicodeDecodeError:
            raise ProtocolViolation from None

    def take_number(self, form: str) -> int:
        (value,) = struct.unpack(form, self.take(struct.calcsize(form)))
        return int(value)

    def take_formats(self) -> tuple[int, ...]:
        found = tuple(self.take_number("!h") for _ in range(self.take_number("!H")))
        if any(each not in (0, 1) for each in found):
            raise ProtocolViolation
        return found

    def end(self) -> None:
        if self._at != len(self._data):
            raise ProtocolViolation


def read_start(body: bytes) -> StartMessage:
    """The first message, without its length."""
    cursor = _Cursor(body)
    code = cursor.take_number("!I")
    if code in (SSL_REQUEST, GSS_REQUEST):
        cursor.end()
        return EncryptionRequest(code == SSL_REQUEST)
    if code == CANCEL_REQUEST:
        found = CancelRequest(cursor.take_number("!I"), cursor.take(4))
        cursor.end()
        return found
    if code >> 16 != _MAJOR:
        raise ProtocolViolation
    settings: dict[str, str] = {}
    while name := cursor.take_text():
        settings[name] = cursor.take_text()
    cursor.end()
    return Startup(code & 0xFFFF, settings)


def read_sasl(body: bytes, *, first: bool) -> tuple[str, bytes]:
    """The mechanism that a client chose and its first words; later its words alone."""
    if not first:
        return "", body
    cursor = _Cursor(body)
    mechanism = cursor.take_text()
    length = cursor.take_number("!i")
    words = cursor.take(length) if length >= 0 else b""
    cursor.end()
    return mechanism, words


def read_message(tag: bytes, body: bytes) -> ClientMessage:
    """A message of a session."""
    cursor = _Cursor(body)
    found: ClientMessage
    match tag:
        case b"Q":
            found = SimpleQuery(cursor.take_text())
        case b"P":
            found = _read_parse(cursor)
        case b"B":
            found = _read_bind(cursor)
        case b"D" | b"C":
            kind, name = cursor.take(1), cursor.take_text()
            if kind not in (b"S", b"P"):
                raise ProtocolViolation
            found = DescribeItem(kind == b"P", name) if tag == b"D" else CloseItem(kind == b"P", name)
        case b"E":
            found = ExecutePortal(cursor.take_text(), cursor.take_number("!i"))
        case b"S" | b"H" | b"X" | b"c":
            found = PlainMessage(tag.decode())
        case b"d" | b"f" | b"F":
            return PlainMessage(tag.decode())  # what follows is never looked at
        case _:
            raise ProtocolViolation
    cursor.end()
    return found


def _read_parse(cursor: _Cursor) -> ParseStatement:
    name, text, count = cursor.take_text(), cursor.take_text(), cursor.take_number("!H")
    if count > MOST_PARAMETERS:
        raise ProtocolViolation
    return ParseStatement(name, text, tuple(cursor.take_number("!I") for _ in range(count)))


def _read_bind(cursor: _Cursor) -> BindPortal:
    portal, statement, formats = cursor.take_text(), cursor.take_text(), cursor.take_formats()
    count = cursor.take_number("!H")
    if count > MOST_PARAMETERS or len(formats) not in (0, 1, count):
        raise ProtocolViolation
    values: list[bytes | None] = []
    for _ in range(count):
        length = cursor.take_number("!i")
        if length < -1:
            raise ProtocolViolation
        values.append(None if length == -1 else cursor.take(length))
    every = formats * count if len(formats) == 1 else formats or (0,) * count
    return BindPortal(portal, statement, every, tuple(values), cursor.take_formats())
