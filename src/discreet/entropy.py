"""The only source of randomness in discreet.

All noise comes from an ``EntropySource``. The default has a separate generator for every thread: AES-256 in counter
mode (through ``cryptography``), with a key from the operating system.

- *Key erasure*: each refill first makes the next key and then forgets the old one. So a memory image taken later says
  nothing about noise that was used before. Words are removed from the pool when they are used.
- *Reseeding*: the generator takes a fresh key from the operating system after 1 GiB or 60 seconds.
- *Forks*: a child process starts with a fresh key and an empty pool, also when native code forked it.
- *Threads*: threads share no state, so no two threads ever see the same word.

Where ``cryptography`` is missing, every word comes from ``os.urandom``, which is slower and equally safe. The default
cannot be seeded. ``SeededForTestsOnly`` is for tests only, as its name says.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from discreet.errors import ParameterError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import CipherContext

Words: TypeAlias = npt.NDArray[np.uint64]

CHUNK = 1 << 20  # bytes made from one key, at most
RESEED_BYTES = 1 << 30
RESEED_SECONDS = 60.0
_POOL_WORDS = 512  # words kept ready for single draws
_KEY_BYTES = 32


class EntropySource(Protocol):
    """Independent uniform bits. Members: ``SystemSource``; and ``SeededForTestsOnly`` and
    ``SimulationSource``, neither of which may make noise.
    """

    def words(self, count: int) -> Words:
        """``count`` independent, uniform 64-bit words as a fresh array."""
        ...

    def word(self) -> int:
        """One uniform 64-bit word as a Python int. Single draws use it."""
        ...

    def bits(self, count: int) -> int:
        """A uniform integer of ``count`` bits."""
        ...


Fill: TypeAlias = Callable[[memoryview], None]


def _fill_from_urandom(target: memoryview) -> None:
    """Fill from the operating system alone."""
    for start in range(0, len(target), CHUNK):
        part = target[start : start + CHUNK]
        part[:] = os.urandom(len(part))


class _AesFill:
    """AES-256-CTR with fast key erasure; not thread-safe, one for each thread."""

    def __init__(self) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        def keystream(key: bytes) -> CipherContext:
            return Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

        self._keystream = keystream
        self._zeros = bytes(CHUNK)
        self._reseed()

    def _reseed(self) -> None:
        self._key = os.urandom(_KEY_BYTES)
        self._made = 0
        self._since = time.monotonic()

    def __call__(self, target: memoryview) -> None:
        for start in range(0, len(target), CHUNK):
            if self._made >= RESEED_BYTES or time.monotonic() - self._since >= RESEED_SECONDS:
                self._reseed()
            part = target[start : start + CHUNK]
            stream = self._keystream(self._key)
            self._key = stream.update(self._zeros[:_KEY_BYTES])
            stream.update_into(memoryview(self._zeros)[: len(part)], part)
            self._made += len(part)


def _make_fill() -> Fill:
    try:
        return _AesFill()
    except ImportError:
        return _fill_from_urandom


class _ThreadState(threading.local):
    """The state of one thread: its generator, its pool of ready words, and the process they belong to."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self.process = os.getpid()
        self.pool: list[int] = []
        self._fill: Fill | None = None

    @property
    def fill(self) -> Fill:
        """The generator. It is made at the first draw: what draws nothing need not load a cipher."""
        if self._fill is None:
            self._fill = _make_fill()
        return self._fill


class SystemSource:
    """The default source: cryptographic, keyed from the operating system, safe under threads and forks."""

    def __init__(self) -> None:
        self._state = _ThreadState()
        # The hook covers os.fork and multiprocessing; the pid check below covers forks made by native code.
        os.register_at_fork(after_in_child=self._state.renew)

    def _find_state(self) -> _ThreadState:
        state = self._state
        if state.process != os.getpid():
            state.renew()
        return state

    def words(self, count: int) -> Words:
        out = np.empty(count, dtype=np.uint64)
        if count:
            self._find_state().fill(out.data.cast("B"))
        return out

    def word(self) -> int:
        state = self._find_state()
        if not state.pool:
            state.pool = self.words(_POOL_WORDS).tolist()
        return state.pool.pop()

    def bits(self, count: int) -> int:
        return _take_bits(self, count)

    def __repr__(self) -> str:
        kind = "AES-256-CTR" if isinstance(self._find_state().fill, _AesFill) else "os.urandom"
        return f"SystemSource({kind}, keyed by the operating system)"

    def __reduce__(self) -> str:
        return "SYSTEM"  # pickled by name, so that another process uses its own source


class _HashStream:
    """Bits that follow from a seed, for where that is wanted."""

    def __init__(self, seed: bytes) -> None:
        self._seed = hashlib.sha256(seed).digest()
        self._block = 0
        self._pool: list[int] = []

    def words(self, count: int) -> Words:
        self._block += 1
        stream = hashlib.shake_128(self._seed + self._block.to_bytes(8, "little")).digest(8 * count)
        return np.frombuffer(stream, dtype="<u8").astype(np.uint64)

    def word(self) -> int:
        if not self._pool:
            self._pool = self.words(_POOL_WORDS).tolist()
        return self._pool.pop()

    def bits(self, count: int) -> int:
        return _take_bits(self, count)


class SeededForTestsOnly(_HashStream):
    """A repeatable source for tests and benchmarks of this project. Noise from it protects nobody.

    >>> SeededForTestsOnly(7).word() == SeededForTestsOnly(7).word()
    True
    """

    def __init__(self, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise ParameterError("seed", "must be a whole number", "Give for example seed=1.")
        super().__init__(f"discreet test seed {seed}".encode())


class SimulationSource(_HashStream):
    """A source that follows from released values: for simulating intervals, which come out the same each time.

    It is never for noise: whoever has what was released has these bits, too.
    """

    def __init__(self, released: bytes) -> None:
        super().__init__(b"discreet simulation " + released)


def _take_bits(source: EntropySource, count: int) -> int:
    value = 0
    for _ in range(0, count, 64):
        value = value << 64 | source.word()
    return value >> (-count % 64)


SYSTEM = SystemSource()
