"""The client of one person over time: a secret, a memory of the answers given, and the sum of what they cost.

The random bytes of a memoised answer come from HMAC with the person's secret. So the same answer always gives the same
report, also after a restart. A new answer costs again. When the values of the task or the budget of the person are
used up, no new report is made.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from fractions import Fraction
from pathlib import Path

import numpy as np

from discreet.entropy import SYSTEM, EntropySource
from discreet.errors import BudgetExceeded, ParameterError, UsageError
from discreet.exact import upper
from discreet.local.client import encode, is_unknown, make_payload, value_bytes
from discreet.local.domain import as_text
from discreet.local.rappor import Rappor
from discreet.local.reports import write
from discreet.local.task import Task
from discreet.local.words import draw_bytes, pick, read_words
from discreet.parameters import Epsilon, read_epsilon

SECRET_BYTES = 32
_FORMAT = "local-person/1"
_TAG_BYTES = 16


class Person:
    """The client of one person.

    ``budget`` is the most that all reports of all tasks together may cost; without it only the tasks limit the cost.
    ``path`` keeps the memory in a file, which is written before a report is returned. The memory has keyed tags of
    answers, never the answers themselves.

    Privacy: all reports of one memoised task together are (v·ε)-private, v distinct answers at most; of all tasks
    together at most ``budget``, under replace.
    Why: equal answers give equal permanent bytes, so the reports are a function of v independent ones (HMAC under a
    secret key standing for independent bits); losses add up.
    Reference: Erlingsson, Pihur & Korolova 2014, §3.2; Dwork & Roth 2014, Theorem 3.16.
    """

    def __init__(self, *, secret: bytes | None = None, budget: Epsilon | None = None, path: Path | None = None) -> None:
        self._path = path
        self._tags: dict[str, list[str]] = {}
        self._last: dict[str, str] = {}
        self._spent = Fraction(0)
        self._budget = None if budget is None else upper(read_epsilon(budget, "budget"))
        self._secret = secret if secret is not None else os.urandom(SECRET_BYTES)
        if not isinstance(self._secret, bytes) or len(self._secret) != SECRET_BYTES:
            raise ParameterError("secret", "must be 32 bytes", "Leave it out: it is made by the operating system.")
        if path is not None and path.exists():
            self._load(path, given=secret)
        elif path is not None:
            self._save()

    @property
    def spent(self) -> Fraction:
        """What all reports so far cost together, at most."""
        return self._spent

    def distinct(self, task: Task) -> int:
        """How many distinct answers to a memoised task were given."""
        return len(self._tags.get(task.digest.hex(), ()))

    def report(
        self, task: Task, answer: object, *, when_exhausted: str = "refuse", source: EntropySource = SYSTEM
    ) -> bytes:
        """One report for the wire; refused when the values of the task or the budget are used up.

        A person who stops reporting reveals that the answer changed. With ``when_exhausted="repeat"`` the report of the
        latest remembered answer is sent instead. It reveals nothing more, but it may not be the present answer.
        """
        if when_exhausted not in ("refuse", "repeat"):
            raise ParameterError("when_exhausted", "must be 'refuse' or 'repeat'", "Give 'repeat' to stay unnoticed.")
        if task.values is None:
            self._charge(task, "")
            return encode(task, answer, source=source)
        value = value_bytes(task, answer)
        tag = self._make_stream(task, "mark", value, _TAG_BYTES).hex()
        known = self._tags.setdefault(task.digest.hex(), [])
        if tag not in known:
            if len(known) >= task.values:
                return self._handle_exhausted(task, when_exhausted, source)
            try:
                self._charge(task, tag)
            except BudgetExceeded:
                return self._handle_exhausted(task, when_exhausted, source)
        permanent = self._make_permanent(task, answer, value)
        if self._last.get(task.digest.hex()) != permanent.hex():
            self._last[task.digest.hex()] = permanent.hex()
            self._save()
        return self._write_report(task, permanent, source)

    def _handle_exhausted(self, task: Task, way: str, source: EntropySource) -> bytes:
        last = self._last.get(task.digest.hex())
        if way == "repeat" and last is not None:
            return self._write_report(task, bytes.fromhex(last), source)
        raise BudgetExceeded("No report was made: the answers this task may remember, or the budget, are used up.")

    def _make_permanent(self, task: Task, answer: object, value: bytes) -> bytes:
        """The part of a report that is always the same for an answer: the payload, or RAPPOR's permanent bits."""
        protocol = task.protocol
        if isinstance(protocol, Rappor):
            stream = self._make_stream(task, "permanent", value, protocol.random_bytes)
            return protocol.make_permanent_bits(as_text(answer), self._cohort_of(task, protocol), stream).tobytes()
        needed = protocol.random_bytes + 8 * is_unknown(task, answer)
        return make_payload(task, answer, self._make_stream(task, "permanent", value, needed))

    def _write_report(self, task: Task, permanent: bytes, source: EntropySource) -> bytes:
        protocol = task.protocol
        if not isinstance(protocol, Rappor):
            return write(task, permanent)
        bits = np.frombuffer(permanent, dtype=np.uint8)[np.newaxis]
        random = draw_bytes(1, protocol.random_bytes, source)
        return write(task, protocol.make_report(bits, self._cohort_of(task, protocol), random).tobytes())

    def _cohort_of(self, task: Task, protocol: Rappor) -> int:
        words = np.frombuffer(self._make_stream(task, "cohort", b"", 8), dtype=np.uint8)[np.newaxis]
        return int(pick(read_words(words)[:, 0], protocol.cohorts)[0])

    def _make_stream(self, task: Task, purpose: str, value: bytes, length: int) -> bytes:
        """Pseudo-random bytes that belong to a task, a purpose and a value."""
        head = task.digest + purpose.encode() + b"\0" + value
        blocks = (
            hmac.digest(self._secret, head + counter.to_bytes(4, "big"), hashlib.sha256)
            for counter in range(-(-length // 32))
        )
        return b"".join(blocks)[:length]

    def _charge(self, task: Task, tag: str) -> None:
        """Count the cost durably, before a report is returned."""
        cost = task.loss.upper
        if self._budget is not None and self._spent + cost > self._budget:
            raise BudgetExceeded("No report was made: it would cost more than is left of this person's budget.")
        self._spent += cost
        if tag:
            self._tags.setdefault(task.digest.hex(), []).append(tag)
        self._save()

    def _save(self) -> None:
        if self._path is None:
            return
        record: dict[str, object] = {"discreet": _FORMAT, "secret": self._secret.hex(), "spent": str(self._spent)}
        record |= {"marks": self._tags, "last": self._last}  # "marks" is the name in the file format
        draft = self._path.with_name(self._path.name + ".part")
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(record, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path)

    def _load(self, path: Path, *, given: bytes | None) -> None:
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            if record["discreet"] != _FORMAT:
                raise ValueError
            secret, spent = bytes.fromhex(record["secret"]), Fraction(record["spent"])
            tags, last = dict(record["marks"]), dict(record["last"])
        except (KeyError, TypeError, ValueError):
            raise UsageError("The memory file cannot be read. Nothing is reported without it.") from None
        if given is not None and given != secret:
            raise UsageError("The memory file belongs to another secret.")
        self._secret, self._spent, self._tags, self._last = secret, spent, tags, last
