"""The client: turns an answer into a report, on the person's own device.

It computes in integers only, and its randomness comes from the operating system. All reports of a task have the same
length. An answer that the domain does not have, or a missing answer, is first replaced by a random one, so that the
report does not show it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from discreet.entropy import SYSTEM, EntropySource
from discreet.errors import ParameterError
from discreet.exact import Integers
from discreet.local.domain import as_text, replace_unknown
from discreet.local.protocol import EncodingProtocol
from discreet.local.reports import Reports, write
from discreet.local.task import Task
from discreet.local.wave import SquareWave
from discreet.local.words import HALF, Bytes, draw_bytes, pick, read_words

_CHUNK = 1 << 20  # random bytes that are used at a time, so that they stay in the cache


def encode(task: Task, answer: object, *, random: bytes | None = None, source: EntropySource = SYSTEM) -> bytes:
    """One report, as bytes for the wire.

    ``random`` gives the random bytes for test vectors; see ``bytes_needed``. Never give it for a real report.
    """
    _refuse_memory(task)
    if random is None:
        words = source.words(bytes_needed(task, answer) // 8)
        random = words.tobytes()
    return write(task, make_payload(task, answer, random))


def bytes_needed(task: Task, answer: object) -> int:
    """How many random bytes a report takes: 8 more when the answer is unknown."""
    return task.protocol.random_bytes + 8 * is_unknown(task, answer)


def is_unknown(task: Task, answer: object) -> bool:
    """Whether the domain does not have this answer."""
    return not task.domain.open and int(_to_whole(task, [answer])[0]) < 0


def make_payload(task: Task, answer: object, random: bytes) -> bytes:
    """The payload of one answer from given random bytes, as docs/local-wire.md computes it."""
    needed = bytes_needed(task, answer)
    if len(random) < needed:
        raise ParameterError("random", f"must hold {needed} bytes", "See bytes_needed.")
    rows = np.frombuffer(random[:needed], dtype=np.uint8)[np.newaxis]
    if task.domain.open:
        return _encoder_of(task).encode(task.domain.keys([answer]).astype(np.int64), rows).tobytes()
    whole = _to_whole(task, [answer])
    if whole[0] < 0:
        whole = pick(read_words(rows[:, :8])[:, 0], task.choices)
        rows = rows[:, 8:]
    return _encoder_of(task).encode(_to_buckets(task, whole), rows).tobytes()


def encode_many(
    task: Task, answers: Sequence[object] | npt.NDArray[np.generic], *, source: EntropySource = SYSTEM
) -> Reports:
    """Reports of many people at once, each with its own randomness, for simulations and trusted collectors."""
    _refuse_memory(task)
    if task.domain.open:
        whole: Integers = task.domain.keys(list(answers)).astype(np.int64)
    else:
        whole = _to_buckets(task, replace_unknown(_to_whole(task, answers), task.choices, source))
    protocol = _encoder_of(task)
    payload: Bytes = np.empty((len(whole), protocol.payload_bytes), dtype=np.uint8)
    step = max(1, _CHUNK // protocol.random_bytes)
    for start in range(0, len(whole), step):
        part = whole[start : start + step]
        random = draw_bytes(len(part), protocol.random_bytes, source)
        payload[start : start + step] = protocol.encode(part, random)
    return Reports(task=task, payload=payload)


def value_bytes(task: Task, answer: object) -> bytes:
    """An answer as bytes, for the memory of a ``Person``: equal for answers that give equal reports."""
    if task.domain.open:
        return as_text(answer).encode()
    whole = int(_to_whole(task, [answer])[0])
    width = 4 if task.domain.closed else 5
    return b"\xff" * width if whole < 0 else whole.to_bytes(width, "big")


def _to_whole(task: Task, answers: Sequence[object] | npt.NDArray[np.generic]) -> Integers:
    """Answers as indices, or scaled numbers; −1 for unknown ones."""
    return task.domain.indices(answers) if task.domain.closed else task.domain.scale(answers)


def _to_buckets(task: Task, whole: Integers) -> Integers:
    """Scaled numbers as buckets, where the protocol wants buckets."""
    if isinstance(task.protocol, SquareWave) and task.domain.numeric:
        return np.minimum(whole * task.protocol.buckets // HALF, task.protocol.buckets - 1)
    return whole


_FIX = "Use Person(...).report(task, answer), which has the person's secret."


def _refuse_memory(task: Task) -> None:
    if task.values is not None:
        raise ParameterError("task", "is longitudinal: its answers are memoised", _FIX)


def _encoder_of(task: Task) -> EncodingProtocol:
    if not isinstance(task.protocol, EncodingProtocol):
        raise ParameterError("task", "has a protocol that needs a person's memory", _FIX)
    return task.protocol
