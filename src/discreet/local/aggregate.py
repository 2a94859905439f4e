"""The aggregator: adds reports up into a vector of integers, in any order, on any number of machines.

Its state is the digest of the task, a vector of counts, the number of people, and the number of rejected reports by
reason. A batch is added once, however often it is given. Merging is addition, and a saved state can be loaded and
continued. Reports of different tasks are never mixed.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from discreet.errors import ParameterError, UsageError
from discreet.exact import Integers
from discreet.local.hashing import LocalHashing, index_keys, text_keys
from discreet.local.protocol import TallyProtocol
from discreet.local.reports import REASONS, Reports, check_payloads, read_arrow, read_lines, read_wire
from discreet.local.task import Task
from discreet.local.words import Bytes

if TYPE_CHECKING:
    import pyarrow as pa

_FORMAT = "local-aggregate/1"
MAX_STATE = 1 << 28  # integers: two gigabytes


class Aggregator:
    """Counts of one task.

    ``candidates`` are the texts to count where the domain is open and reports are hashed; they cannot change later.
    """

    def __init__(self, task: Task, *, candidates: Sequence[str] | None = None) -> None:
        hashed_open = isinstance(task.protocol, LocalHashing) and task.domain.open
        if hashed_open != (candidates is not None):
            fix = "Give candidates=[...] for hashed reports of an open domain, and only there."
            raise ParameterError("candidates", "do not go with this task", fix)
        if candidates is not None and len(set(candidates)) != len(candidates):
            raise ParameterError("candidates", "must be all different", "Remove the copies.")
        self.task = task
        self.candidates = None if candidates is None else tuple(candidates)
        self.people = 0
        self.rejected: Counter[str] = Counter()
        self._batches: dict[str, str] = {}
        if self._size() > MAX_STATE:
            raise ParameterError("domain", "has too many values to count", "Use an open domain and candidates.")
        self.state: Integers = np.zeros(self._size(), dtype=np.int64)

    def _size(self) -> int:
        if self.candidates is not None:
            return len(self.candidates)
        protocol = self.task.protocol
        return protocol.state_size if isinstance(protocol, TallyProtocol) else self.task.domain.count

    @property
    def batches(self) -> frozenset[str]:
        """The batches that were added."""
        return frozenset(self._batches)

    def add(self, reports: Reports, *, batch: str) -> bool:
        """Add a batch of reports. It returns False and changes nothing when this batch was added before."""
        if reports.task.digest != self.task.digest:
            raise UsageError(f"These reports are for the task {reports.task.id}, not for {self.task.id}.")
        if not isinstance(batch, str) or not batch:
            raise ParameterError("batch", "must be a text", "Give batch='2026-01-31/7', unique for each batch.")
        good = check_payloads(self.task, reports.payload)
        tally, rejected = self._tally(good.payload), reports.rejected + good.rejected
        fingerprint = _fingerprint(tally, len(good), rejected)
        if batch in self._batches:
            if self._batches[batch] != fingerprint:
                raise UsageError("This batch id was used for other reports. Give every batch an id of its own.")
            return False
        self.state = self.state + tally
        self.people += len(good)
        self.rejected += rejected
        self._batches[batch] = fingerprint
        return True

    def add_lines(self, lines: Iterable[str], *, batch: str) -> bool:
        """Add reports from lines of JSON."""
        return self.add(read_lines(self.task, lines), batch=batch)

    def add_wire(self, reports: Iterable[bytes], *, batch: str) -> bool:
        """Add reports from bytes."""
        return self.add(read_wire(self.task, reports), batch=batch)

    def add_arrow(self, table: pa.Table, *, batch: str) -> bool:
        """Add reports from an Arrow table."""
        return self.add(read_arrow(self.task, table), batch=batch)

    def _tally(self, payload: Bytes) -> Integers:
        protocol = self.task.protocol
        if isinstance(protocol, TallyProtocol):
            return protocol.tally(payload)
        if not isinstance(protocol, LocalHashing):
            raise UsageError("Reports of this protocol cannot be added up.")
        keys = index_keys(self.task.domain.count) if self.candidates is None else text_keys(self.candidates)
        return protocol.count_key_supports(payload, keys)

    def merge(self, other: Aggregator) -> Aggregator:
        """An aggregator with the batches of both; refused for different tasks, and for a batch that both have."""
        if (other.task.digest, other.candidates) != (self.task.digest, self.candidates):
            raise UsageError("Aggregates of different tasks or candidates cannot be merged.")
        if self.batches & other.batches:
            raise UsageError("Both aggregates hold the same batch: merging would count it twice.")
        both = Aggregator(self.task, candidates=self.candidates)
        both.state = self.state + other.state
        both.people = self.people + other.people
        both.rejected = self.rejected + other.rejected
        both._batches = self._batches | other._batches
        return both

    def dumps(self) -> str:
        """The state as text."""
        packed = zlib.compress(self.state.astype("<i8").tobytes(), 1)
        return json.dumps(
            {
                "discreet": _FORMAT,
                "task": json.loads(self.task.json),
                "candidates": self.candidates,
                "people": self.people,
                "rejected": dict(self.rejected),
                "batches": self._batches,
                "state": base64.b64encode(packed).decode(),
            },
            ensure_ascii=False,
        )

    def save(self, path: Path) -> None:
        """Write the state to a file, completely or not at all."""
        draft = path.with_name(path.name + ".part")
        draft.write_text(self.dumps(), encoding="utf-8")
        draft.replace(path)

    @classmethod
    def loads(cls, text: str) -> Aggregator:
        """The aggregator that ``dumps`` wrote."""
        try:
            record = json.loads(text)
            if record["discreet"] != _FORMAT:
                raise UsageError("This is not a saved aggregate of a version known here.")
            aggregator = cls(Task.read(json.dumps(record["task"])), candidates=record["candidates"])
            state = np.frombuffer(zlib.decompress(base64.b64decode(record["state"])), dtype="<i8").astype(np.int64)
            if state.size != aggregator.state.size or set(record["rejected"]) - set(REASONS):
                raise ValueError
            aggregator.state, aggregator.people = state, int(record["people"])
            aggregator.rejected, aggregator._batches = Counter(record["rejected"]), dict(record["batches"])
        except (KeyError, TypeError, ValueError, zlib.error) as error:
            if isinstance(error, ParameterError):
                raise
            raise UsageError("This is not a saved aggregate, or it is damaged.") from None
        return aggregator

    @classmethod
    def load(cls, path: Path) -> Aggregator:
        """An aggregator from its file."""
        return cls.loads(path.read_text(encoding="utf-8"))

    def __repr__(self) -> str:
        return f"Aggregator({self.task.id}: {self.people:,} reports, {self.rejected.total():,} set aside)"


def _fingerprint(tally: Integers, people: int, rejected: Counter[str]) -> str:
    """A hash of the content of a batch, so that the same id with other content is noticed."""
    words = json.dumps([people, sorted(rejected.items())])
    return hashlib.sha256(tally.astype("<i8").tobytes() + words.encode()).hexdigest()[:32]
