"""The client of one person over time: a secret, a memory of the answers given, and the sum of what they cost.

The random bytes of a remembered answer come from HMAC with the person's secret. So the same answer to the same task
always gives the same report, also after a restart. A new answer, or a new epoch, costs again. When the values of the
task or the budget of the person are used up, no new report is made.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from fractions import Fraction
from pathlib import Path

import numpy as np

from discreet.entropy import SYSTEM, EntropySource
from discreet.errors import BudgetExceeded, ParameterError, UsageError
from discreet.exact import upper
from discreet.local.client import encode, is_unknown, make_payload, value_bytes
from discreet.local.domain import as_text
from discreet.local.person_memory import PersonMemory, lock_file, read_file, write_file
from discreet.local.rappor import Rappor
from discreet.local.reports import write
from discreet.local.task import Task
from discreet.local.words import draw_bytes, pick, read_words
from discreet.parameters import Epsilon, read_epsilon

SECRET_BYTES = 32
_TAG_BYTES = 16


class Person:
    """The client of one person.

    ``budget`` is the most that all reports of all tasks together may cost; without it only the tasks limit the cost.
    ``path`` keeps the memory in a file, which is on the disk before a report is returned; several objects and several
    processes may share it (``person_memory``). The memory has keyed tags of answers, never the answers themselves.

    Privacy, under replace, for a person whose times of reporting do not depend on the answers:
    - a task with E epochs: all reports together are (E·ε)-private, for *any two* histories of answers;
    - a task with v values: they are (v·ε)-private between two histories of at most v answers that change and return at
      the same times. Equal answers give equal reports, so *when* an answer changed is visible: between histories that
      change at other times there is no bound for v ≥ 2, and for v = 1 only with ``when_exhausted="repeat"``;
    - all tasks together: the sums of these, at most ``budget``.
    Why: HMAC under a secret key stands for independent bits for each task, epoch and value. In an epoch all reports are
    a function of one ε-private report, that of the epoch's first answer; those of different epochs are independent,
    whatever the answers; losses add up over E. With values, the reports are a function of v independent ones and of the
    pattern of equal answers, which must therefore be the same in both histories.
    Reference: Erlingsson, Pihur & Korolova 2014, §3.2; Dwork & Roth 2014, Theorem 3.16. Both statements, and that the
    second needs its condition, are checked by enumeration in the tests.
    """

    def __init__(self, *, secret: bytes | None = None, budget: Epsilon | None = None, path: Path | None = None) -> None:
        self._path = path
        self._turn = threading.Lock()
        self._budget = None if budget is None else upper(read_epsilon(budget, "budget"))
        own = secret if secret is not None else os.urandom(SECRET_BYTES)
        if not isinstance(own, bytes) or len(own) != SECRET_BYTES:
            raise ParameterError("secret", "must be 32 bytes", "Leave it out: it is made by the operating system.")
        self._memory = PersonMemory(secret=own)
        if path is not None:
            self._memory = self._open_file(path, given=secret)

    @property
    def spent(self) -> Fraction:
        """What all reports so far cost together, at most."""
        return self._memory.spent

    def distinct(self, task: Task) -> int:
        """How many distinct answers to a memoised task were given, or to an epoch of one."""
        name = task.digest.hex()
        return int(name in self._memory.last) if task.epochs is not None else len(self._memory.tags.get(name, ()))

    def report(
        self, task: Task, answer: object, *, when_exhausted: str = "refuse", source: EntropySource = SYSTEM
    ) -> bytes:
        """One report for the wire; refused when the values of the task or the budget are used up.

        With ``epochs`` the first answer of the task's epoch is told, also when the answer is another one by now.
        A person who stops reporting reveals that the answer changed. With ``when_exhausted="repeat"`` the report of the
        latest remembered answer is sent instead. It reveals nothing more, but it may not be the present answer.
        """
        if when_exhausted not in ("refuse", "repeat"):
            raise ParameterError("when_exhausted", "must be 'refuse' or 'repeat'", "Give 'repeat' to stay unnoticed.")
        with self._lock():
            before = self._read_again()
            after, permanent = self._decide(before, task, answer, repeat=when_exhausted == "repeat")
            self._keep(before, after)
        return encode(task, answer, source=source) if permanent is None else self._write_report(task, permanent, source)

    def _decide(
        self, memory: PersonMemory, task: Task, answer: object, *, repeat: bool
    ) -> tuple[PersonMemory, bytes | None]:
        """The memory after a report, and the permanent bytes of the report; None for a task without memory."""
        name, value = task.digest.hex(), value_bytes(task, answer) if task.longitudinal else b""
        if task.epochs is not None:
            # The digest has the epoch in it: a new epoch is a new name, new random bytes and a new charge.
            if name not in memory.last:
                memory = self._charge(memory, task).keep(name, self._make_permanent(task, answer, value))
            return memory, bytes.fromhex(memory.last[name])
        if task.values is None:
            return self._charge(memory, task), None
        tag = self._make_stream(task, "mark", value, _TAG_BYTES).hex()
        known = memory.tags.get(name, ())
        if tag not in known:
            try:
                if len(known) >= task.values:
                    raise BudgetExceeded("No report was made: the answers this task may remember are used up.")
                memory = self._charge(memory, task).tag(name, tag)
            except BudgetExceeded:
                if not repeat or name not in memory.last:
                    raise
                return memory, bytes.fromhex(memory.last[name])
        permanent = self._make_permanent(task, answer, value)
        return memory.keep(name, permanent), permanent

    def _charge(self, memory: PersonMemory, task: Task) -> PersonMemory:
        cost = task.loss.upper
        if self._budget is not None and memory.spent + cost > self._budget:
            raise BudgetExceeded("No report was made: it would cost more than is left of this person's budget.")
        return memory.charge(cost)

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
            hmac.digest(self._memory.secret, head + counter.to_bytes(4, "big"), hashlib.sha256)
            for counter in range(-(-length // 32))
        )
        return b"".join(blocks)[:length]

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """One report at a time, of this object and of every other one on the same file."""
        with self._turn, nullcontext() if self._path is None else lock_file(self._path):
            yield

    def _read_again(self) -> PersonMemory:
        """The memory as the file has it now; others may have reported since."""
        if self._path is None:
            return self._memory
        found = read_file(self._path)
        if found is None or not self._memory.precedes(found):
            raise UsageError(
                "The memory file is gone, or an older or another one stands in its place. No report was made. "
                "Put the latest file back; a copy from a backup would promise the same answers twice."
            )
        self._memory = found
        return found

    def _keep(self, before: PersonMemory, after: PersonMemory) -> None:
        """Make a memory the present one: first on the disk, then here."""
        if self._path is not None and after != before:
            write_file(self._path, after)
        self._memory = after

    def _open_file(self, path: Path, *, given: bytes | None) -> PersonMemory:
        with lock_file(path):
            found = read_file(path)
            if found is None:
                write_file(path, self._memory)
                return self._memory
        if len(found.secret) != SECRET_BYTES:
            raise UsageError("The memory file cannot be read. Nothing is reported without it.")
        if given is not None and given != found.secret:
            raise UsageError("The memory file belongs to another secret.")
        return found
