"""Writes and reads reports: as bytes, JSON lines and Arrow. A bad report never makes a good one unreadable."""

from __future__ import annotations

import base64
import binascii
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from discreet.errors import ParameterError
from discreet.late_dataclass import dataclass
from discreet.local.task import DIGEST_BYTES, Task
from discreet.local.words import Bytes

if TYPE_CHECKING:
    import pyarrow as pa

MAGIC = b"DL"
VERSION = 1
HEADER_BYTES = len(MAGIC) + 1 + DIGEST_BYTES
# The reasons for which a report is rejected, in the order in which they are checked.
REASONS = ("format", "version", "task", "length", "range")


@dataclass(frozen=True)
class Reports:
    """Payloads of one task, one row each. The form in which they arrived is not kept."""

    task: Task
    payload: Bytes
    rejected: Counter[str] = field(default_factory=Counter)

    def __len__(self) -> int:
        return int(self.payload.shape[0])

    def wire(self) -> Iterator[bytes]:
        """Each report as bytes."""
        head = make_header(self.task)
        return (head + row.tobytes() for row in self.payload)

    def lines(self) -> Iterator[str]:
        """Each report as a line of JSON, without the line's end."""
        head = f'{{"discreet":{VERSION},"task":"{self.task.id}","payload":"'
        return (f'{head}{base64.b64encode(row.tobytes()).decode()}"}}' for row in self.payload)

    def arrow(self) -> pa.Table:
        """All reports as an Arrow table with one column of fixed-size binary, each with its header."""
        import pyarrow as pa

        width = HEADER_BYTES + self.task.protocol.payload_bytes
        full = np.empty((len(self), width), dtype=np.uint8)
        full[:, :HEADER_BYTES] = np.frombuffer(make_header(self.task), dtype=np.uint8)
        full[:, HEADER_BYTES:] = self.payload
        column = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(self), [None, pa.py_buffer(full.tobytes())])
        return pa.table({"report": column})


def make_header(task: Task) -> bytes:
    """The first bytes of every report of a task."""
    return MAGIC + bytes([VERSION]) + task.digest[:DIGEST_BYTES]


def write(task: Task, payload: bytes) -> bytes:
    """One report as bytes."""
    return make_header(task) + payload


def write_line(task: Task, payload: bytes) -> str:
    """One report as a line of JSON."""
    return next(Reports(task, np.frombuffer(payload, dtype=np.uint8)[np.newaxis]).lines())


class _Parts(NamedTuple):
    version: int
    task: bytes
    payload: bytes


def read_wire(task: Task, reports: Iterable[bytes]) -> Reports:
    """Reports from bytes; bad ones are rejected and counted by reason."""
    return _collect(task, (_open_bytes(report) for report in reports))


def read_lines(task: Task, lines: Iterable[str]) -> Reports:
    """Reports from lines of JSON; bad ones are rejected and counted by reason. Empty lines are skipped."""
    return _collect(task, (_open_line(line) for line in lines if line.strip()))


def read_arrow(task: Task, table: pa.Table) -> Reports:
    """Reports from the column ``report`` of an Arrow table, of fixed or of any size."""
    import pyarrow as pa

    if "report" not in table.column_names:
        raise ParameterError("table", "must have a column named report", "Write it with Reports.arrow().")
    width, column = HEADER_BYTES + task.protocol.payload_bytes, table.column("report")
    if column.type != pa.binary(width) or column.null_count:
        return read_wire(task, (b"" if value is None else value for value in column.to_pylist()))
    parts = [
        np.frombuffer(chunk.buffers()[1], dtype=np.uint8)[chunk.offset * width : (chunk.offset + len(chunk)) * width]
        for chunk in column.chunks
        if len(chunk)
    ]
    full = np.concatenate([part.reshape(-1, width) for part in parts] or [np.empty((0, width), dtype=np.uint8)])
    same = (full[:, :HEADER_BYTES] == np.frombuffer(make_header(task), dtype=np.uint8)).all(axis=1)
    good = check_payloads(task, np.ascontiguousarray(full[same, HEADER_BYTES:]))
    others = read_wire(task, (row.tobytes() for row in full[~same]))
    return Reports(task, good.payload, good.rejected + others.rejected)


def check_payloads(task: Task, payload: Bytes) -> Reports:
    """Payloads of the right length, without those that no client could have sent."""
    fits = task.protocol.find_valid(payload) if payload.shape[0] else np.ones(0, dtype=np.bool_)
    bad = int(payload.shape[0] - np.count_nonzero(fits))
    return Reports(task, payload[fits] if bad else payload, Counter({"range": bad} if bad else {}))


def _open_bytes(report: object) -> _Parts | None:
    if not isinstance(report, bytes | bytearray | memoryview):
        return None
    raw = bytes(report)
    if len(raw) < HEADER_BYTES or raw[:2] != MAGIC:
        return None
    return _Parts(raw[2], raw[3:HEADER_BYTES], raw[HEADER_BYTES:])


def _open_line(line: str) -> _Parts | None:
    try:
        given = json.loads(line)
        if not isinstance(given, dict) or set(given) != {"discreet", "task", "payload"}:
            return None
        version = given["discreet"]
        if isinstance(version, bool) or not isinstance(version, int):
            return None
        return _Parts(version, bytes.fromhex(given["task"]), base64.b64decode(given["payload"], validate=True))
    except (ValueError, TypeError, RecursionError, binascii.Error):
        return None


def _find_reason(task: Task, parts: _Parts | None) -> str | None:
    if parts is None:
        return "format"
    if parts.version != VERSION:
        return "version"
    if parts.task != task.digest[:DIGEST_BYTES]:
        return "task"
    return None if len(parts.payload) == task.protocol.payload_bytes else "length"


def _collect(task: Task, opened: Iterable[_Parts | None]) -> Reports:
    rejected: Counter[str] = Counter()
    good: list[bytes] = []
    for parts in opened:
        reason = _find_reason(task, parts)
        if parts is None or reason is not None:
            rejected[reason or "format"] += 1
        else:
            good.append(parts.payload)
    payload = np.frombuffer(b"".join(good), dtype=np.uint8).reshape(len(good), task.protocol.payload_bytes)
    found = check_payloads(task, payload)
    return Reports(task, found.payload, found.rejected + rejected)
