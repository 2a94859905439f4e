"""The lines of the log: JSON texts, each of which contains the hash of the line before.

A line is written once and kept as that text; its hash is SHA-256 of exactly that text. So a line cannot be changed,
removed, inserted or moved without making every later line wrong. A log that was exported as text can be checked with
any tool that knows SHA-256. The hash of the last line, with its number, is the *head*. A person who keeps a head
notices later if the log was cut back or forked before it.

Every line starts in the same way, so that a million of them can be checked without reading them as JSON.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from discreet.errors import LedgerError
from discreet.late_dataclass import dataclass

# The text in the first line in place of a hash.
START = "0" * 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The end of a log at some time: its name, the number and hash of the last line, and the exact sums up to it."""

    ledger: str
    number: int
    hash: str
    spent: str = ""

    def to_json(self) -> str:
        """The head as one line of JSON, to be kept somewhere else."""
        known = {"ledger": self.ledger, "number": self.number, "hash": self.hash, "spent": self.spent}
        return json.dumps(known, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Head:
        """The head that ``to_json`` wrote."""
        try:
            record = json.loads(text)
            number, spent = record["number"], record.get("spent", "")
            ledger, digest = record["ledger"], record["hash"]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise LedgerError("This is not a head of a ledger. Give what `discreet ledger head` printed.") from None
        if not isinstance(number, int) or not all(isinstance(text, str) for text in (ledger, digest, spent)):
            raise LedgerError("This is not a head of a ledger. Give what `discreet ledger head` printed.")
        return cls(ledger=ledger, number=number, hash=digest, spent=spent)


def digest(line: str) -> str:
    """The hash of a line, as hexadecimal text."""
    return hashlib.sha256(line.encode()).hexdigest()


def make_line_start(number: int, previous: str) -> str:
    """How a line must begin."""
    return f'{{"number":{number},"previous":"{previous}",'


def make_line(number: int, previous: str, kind: str, time: str, fields: Mapping[str, Any]) -> str:
    """A line: pure ASCII, without spaces between values, in the order of the fields.

    >>> print(make_line(3, "ab", "resumed", "2030-01-01T00:00:00.000000Z", {"of": 1}))
    {"number":3,"previous":"ab","kind":"resumed","time":"2030-01-01T00:00:00.000000Z","of":1}
    """
    rest = json.dumps({"kind": kind, "time": time, **fields}, separators=(",", ":"), allow_nan=False)
    return make_line_start(number, previous) + rest[1:]


def time_to_text(moment: datetime) -> str:
    """A moment as UTC, to microseconds, so that texts sort like times.

    >>> time_to_text(datetime.fromisoformat("2030-01-01T01:30:00+02:00"))
    '2029-12-31T23:30:00.000000Z'
    """
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def time_from_text(text: str) -> datetime:
    """The moment that ``time_to_text`` wrote.

    >>> time_from_text("2030-01-01T00:00:00.000000Z").isoformat()
    '2030-01-01T00:00:00+00:00'
    """
    return datetime.fromisoformat(text)
