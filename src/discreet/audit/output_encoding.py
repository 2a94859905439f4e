"""Encodes the outputs of any function as numbers: a shape, a fingerprint, and the numbers inside.

The encoding keeps everything that an analyst can see: values, their order, NaN and infinities, minus zero, the number
of rows, names of groups, the class of an error and the length of its message.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import math
import numbers
from collections.abc import Sequence
from dataclasses import field, fields, is_dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.exact import Floats, Integers
from discreet.late_dataclass import dataclass

# The numbers of one output that are kept one by one; of the rest only the sum is kept.
MOST_LEAVES = 48
_REMEMBERED = 400


@dataclass(frozen=True, slots=True)
class RaisedError:
    """An error in place of an output, as a caller sees it: the class and the message."""

    kind: str
    message: str


@dataclass(slots=True)
class Outputs:
    """Many outputs of one function: for each its shape, its fingerprint, and its numbers (NaN where there are none).

    ``texts`` keeps the texts of some fingerprints and shapes, so that they can be named.
    """

    shapes: Integers
    prints: Integers
    leaves: Floats
    texts: dict[int, str] = field(default_factory=dict)
    seconds: Floats | None = None

    def __len__(self) -> int:
        return len(self.shapes)

    def take_half(self, which: int) -> Outputs:
        """One half of the outputs, chosen by a hash of their place, so that no regular pattern can match it."""
        places = np.arange(len(self), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        chosen = (places >> np.uint64(47)) % np.uint64(2) == which
        times = None if self.seconds is None else self.seconds[chosen]
        return Outputs(self.shapes[chosen], self.prints[chosen], self.leaves[chosen], self.texts, times)


def join_outputs(parts: Sequence[Outputs]) -> Outputs:
    """Several groups of outputs as one."""
    width = max(part.leaves.shape[1] for part in parts)
    texts: dict[int, str] = {}
    for part in parts:
        texts |= part.texts
    times = [part.seconds for part in parts if part.seconds is not None]
    return Outputs(
        np.concatenate([part.shapes for part in parts]),
        np.concatenate([part.prints for part in parts]),
        np.concatenate([widen(part.leaves, width) for part in parts]),
        texts,
        np.concatenate(times) if len(times) == len(parts) else None,
    )


def widen(leaves: Floats, width: int) -> Floats:
    """The same numbers in more columns."""
    missing = width - leaves.shape[1]
    return leaves if missing <= 0 else np.pad(leaves, ((0, 0), (0, missing)), constant_values=np.nan)


def encode(values: Sequence[Any] | npt.NDArray[Any]) -> Outputs:
    """Outputs as numbers. An array of numbers is read along its first axis."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf" and values.size:
        return _encode_array(values)
    shapes, prints, rows = [], [], []
    texts: dict[int, str] = {}
    for value in values:
        leaf = _Leaves()
        leaf.add(value)
        shape, fingerprint = leaf.make_fingerprints()
        shapes.append(shape)
        if len(texts) < _REMEMBERED and shape not in texts:
            texts[shape] = "".join(leaf.shape)[:60].strip()
        prints.append(fingerprint)
        rows.append(leaf.list_numbers())
        if len(texts) < _REMEMBERED and fingerprint not in texts:
            texts[fingerprint] = _shorten(value)
    width = max((len(row) for row in rows), default=1) or 1
    leaves = np.full((len(rows), width), np.nan)
    for i, row in enumerate(rows):
        leaves[i, : len(row)] = row
    return Outputs(np.array(shapes, dtype=np.int64), np.array(prints, dtype=np.int64), leaves, texts)


def _encode_array(values: npt.NDArray[Any]) -> Outputs:
    flat = values.reshape(len(values), -1)
    leaves = _fold(flat.astype(np.float64))
    whole = flat.astype(np.int64) if flat.dtype.kind in "biu" else flat.astype(np.float64).view(np.int64)
    prints = _mix(whole)
    texts: dict[int, str] = {}
    for i in np.unique(prints[: 5 * _REMEMBERED], return_index=True)[1][:_REMEMBERED].tolist():
        texts[int(prints[i])] = _shorten(values[i].tolist())
    return Outputs(np.zeros(len(values), dtype=np.int64), prints, leaves, texts)


def _fold(leaves: Floats) -> Floats:
    if leaves.shape[1] <= MOST_LEAVES:
        return leaves
    rest = leaves[:, MOST_LEAVES - 1 :].sum(axis=1, keepdims=True)
    return np.concatenate([leaves[:, : MOST_LEAVES - 1], rest], axis=1)


def _mix(columns: Integers) -> Integers:
    """One 64-bit fingerprint of each row. It is only a label, so it need not be cryptographic."""
    state = np.zeros(len(columns), dtype=np.uint64)
    for i in range(columns.shape[1]):
        state ^= columns[:, i].astype(np.uint64)
        state *= np.uint64(0x9E3779B97F4A7C15)
        state ^= state >> np.uint64(29)
    return state.view(np.int64)


class _Leaves:
    """The shape, texts and numbers of one output."""

    def __init__(self) -> None:
        self.shape: list[str] = []
        self.text: list[str] = []
        self.leaves: list[float] = []

    def make_fingerprints(self) -> tuple[int, int]:
        shape = "".join(self.shape)
        whole = "\0".join([shape, *self.text]).encode("utf-8", "backslashreplace") + np.array(self.leaves).tobytes()
        return _digest(shape.encode("utf-8", "backslashreplace")), _digest(whole)

    def list_numbers(self) -> list[float]:
        if len(self.leaves) <= MOST_LEAVES:
            return self.leaves
        return [
            *self.leaves[: MOST_LEAVES - 1],
            math.fsum(x for x in self.leaves[MOST_LEAVES - 1 :] if math.isfinite(x)),
        ]

    def add(self, value: Any) -> None:
        """Add a value with all its parts; a part without numbers is added as text."""
        match value:
            case None:
                self.shape.append("none ")
            case RaisedError():
                self._add_text(f"raised {value.kind} ", value.message)
            case str():
                self._add_text("text ", value)
            case bytes():
                self._add_text("bytes ", value.hex())
            case dt.date() | dt.time() | dt.timedelta():
                self._add_text(
                    f"{type(value).__name__} ", value.isoformat() if not isinstance(value, dt.timedelta) else str(value)
                )
            case np.ndarray():
                self._add_array(value)
            case bool() | numbers.Number() | Decimal() | np.generic():
                self._add_number(value)
            case list() | tuple():
                self._add_all(type(value).__name__, value)
            case set() | frozenset():
                self._add_all("set", sorted(value, key=repr))
            case dict():
                self.shape.append("{")
                for key, one in value.items():
                    self.shape.append(f"{key!r}: ")
                    self.add(one)
                self.shape.append("} ")
            case _:
                self._add_object(value)

    def _add_text(self, shape: str, text: str) -> None:
        self.shape.append(shape)
        self.text.append(text)
        self.leaves.append(float(len(text)))

    def _add_all(self, kind: str, values: Sequence[Any]) -> None:
        self.shape.append(f"{kind}[")
        for one in values:
            self.add(one)
        self.shape.append("] ")

    def _add_array(self, value: npt.NDArray[Any]) -> None:
        if value.dtype.kind not in "biuf":
            self._add_all(f"array{value.shape}", value.ravel().tolist())
            return
        self.shape.append(f"{value.dtype.kind}{value.shape} ")
        self.leaves += value.ravel().astype(np.float64).tolist()
        if value.dtype.kind in "iu":
            self.text.append(value.tobytes().hex() if value.size <= 4 * MOST_LEAVES else _hash_array(value))

    def _add_number(self, value: Any) -> None:
        kind = (
            "bool "
            if isinstance(value, bool | np.bool_)
            else "int "
            if isinstance(value, numbers.Integral)
            else "real "
        )
        self.shape.append(kind)
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.inf
        self.leaves.append(number)
        if kind == "int " and abs(number) > 2.0**53:
            self.text.append(str(value))

    def _add_object(self, value: Any) -> None:
        table = getattr(value, "table", value)
        if hasattr(table, "to_pydict"):
            self.add(table.to_pydict())
        elif is_dataclass(value) and not isinstance(value, type):
            self.add({f.name: getattr(value, f.name) for f in fields(value)})
        elif "__repr__" not in {name for kind in type(value).__mro__[:-1] for name in vars(kind)}:
            self.shape.append(f"{type(value).__name__} ")  # its text would be an address in memory
        else:
            self._add_text(f"{type(value).__name__} ", repr(value))


def _digest(data: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little", signed=True)


def _hash_array(value: npt.NDArray[Any]) -> str:
    return hashlib.blake2b(np.ascontiguousarray(value).tobytes()).hexdigest()


def _shorten(value: Any) -> str:
    if isinstance(value, RaisedError):
        return f"{value.kind} (a message of {len(value.message)} characters)"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
