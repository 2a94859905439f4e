"""The one door for randomness: keys are erased and renewed, nothing is shared by threads or forks."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats

from discreet import entropy
from discreet.entropy import SYSTEM, SeededForTestsOnly, SystemSource
from discreet.errors import ParameterError
from discreet.samplers import discrete_laplace


@pytest.fixture(autouse=True)
def repeatable_noise() -> None:
    """Here the generator itself is looked at, so it is the real one."""


def test_words_are_uniform_bit_by_bit() -> None:
    """Each of the 64 bits is one half of the time set, and neighbouring words do not agree more than by chance."""
    for source in (SystemSource(), SeededForTestsOnly(1)):
        words = source.words(100_000)
        bits = np.unpackbits(words.view(np.uint8)).reshape(-1, 64)
        assert (np.abs(bits.mean(axis=0) - 0.5) < 7 * 0.5 / np.sqrt(100_000)).all()
        same = np.unpackbits((words[1:] ^ words[:-1]).view(np.uint8)).mean()
        assert abs(same - 0.5) < 7 * 0.5 / np.sqrt(6.4e6)
        bytes_seen = np.bincount(words.view(np.uint8), minlength=256)
        assert scipy.stats.chisquare(bytes_seen).pvalue > 1e-9


def test_words_never_repeat_over_calls_and_chunks() -> None:
    source = SystemSource()
    parts = [
        source.words(3),
        source.words(0),
        source.words(2 * entropy.CHUNK // 8 + 5),
        np.array([source.word()], np.uint64),
    ]
    together = np.concatenate(parts)
    assert len(np.unique(together)) == len(together)
    assert together.dtype == np.uint64


@pytest.mark.parametrize("source", [SystemSource(), SeededForTestsOnly(4)], ids=["system", "seeded"])
@pytest.mark.parametrize("count", [0, 1, 7, 63, 64, 65, 130])
def test_bits_are_in_range_and_reach_both_ends_of_it(source: entropy.EntropySource, count: int) -> None:
    values = [source.bits(count) for _ in range(300)]
    assert all(0 <= value < 1 << count for value in values)
    if count:
        assert len({value >> (count - 1) for value in values}) == 2
        assert len({value & 1 for value in values}) == 2


def aes() -> entropy._AesFill:
    fill = SystemSource()._find_state().fill
    assert isinstance(fill, entropy._AesFill)
    return fill


def test_every_refill_erases_its_key() -> None:
    """The key in memory after a refill is a new one, and the old output cannot be made from it."""
    fill = aes()
    keys, outputs = [], []
    for _ in range(5):
        buffer = bytearray(64)
        keys.append(fill._key)
        fill(memoryview(buffer))
        outputs.append(bytes(buffer))
    assert len(set(keys)) == 5
    again = aes()
    again._key = fill._key
    buffer = bytearray(64)
    again(memoryview(buffer))
    assert bytes(buffer) not in outputs


def test_no_output_word_is_part_of_a_key() -> None:
    fill = aes()
    buffer = bytearray(256)
    fill(memoryview(buffer))
    assert fill._key[:8] not in bytes(buffer)


def test_a_large_request_changes_keys_within(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entropy, "CHUNK", 64)
    fill = aes()
    made: list[bytes] = []
    stream = fill._keystream

    def counted(key: bytes) -> object:
        made.append(key)
        return stream(key)

    monkeypatch.setattr(fill, "_keystream", counted)
    fill(memoryview(bytearray(1000)))
    assert len(made) == len(set(made)) == 16


def test_reseeds_after_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entropy, "RESEED_BYTES", 1000)
    fill = aes()
    drawn: list[int] = []
    urandom = os.urandom

    def counted(count: int) -> bytes:
        drawn.append(count)
        return urandom(count)

    monkeypatch.setattr(os, "urandom", counted)
    for _ in range(10):
        fill(memoryview(bytearray(500)))
    assert drawn == [32] * 4  # before the 3rd, 5th, 7th and 9th


def test_reseeds_after_so_many_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    fill = aes()
    first = fill._since
    now[0] = entropy.RESEED_SECONDS - 1
    fill(memoryview(bytearray(8)))
    assert fill._since == first
    now[0] = entropy.RESEED_SECONDS
    fill(memoryview(bytearray(8)))
    assert fill._since == now[0]


def test_without_cryptography_the_operating_system_serves_every_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers", None)
    source = SystemSource()
    assert source._find_state().fill is entropy._fill_from_urandom
    assert "os.urandom" in repr(source)
    words = source.words(300_000)
    assert len(np.unique(words)) == 300_000
    assert abs(discrete_laplace(5, source=source)) < 1000


def test_words_are_dropped_from_the_pool_as_they_are_used() -> None:
    source = SystemSource()
    word = source.word()
    assert word not in source._find_state().pool
    assert len(source._find_state().pool) == entropy._POOL_WORDS - 1


def test_the_system_source_pickles_by_name() -> None:
    assert pickle.loads(pickle.dumps(SYSTEM)) is SYSTEM  # noqa: S301  # our own bytes
    assert "AES-256-CTR" in repr(SYSTEM)


def test_a_seeded_source_repeats_itself_and_only_itself() -> None:
    first, second, other = SeededForTestsOnly(7), SeededForTestsOnly(7), SeededForTestsOnly(8)
    assert (first.words(100) == second.words(100)).all()
    assert first.bits(200) == second.bits(200)
    assert first.word() == second.word() != other.word()


@pytest.mark.parametrize("bad", ["1", 1.0, None, True])
def test_bad_seeds_are_refused(bad: object) -> None:
    with pytest.raises(ParameterError) as refused:
        SeededForTestsOnly(bad)  # type: ignore[arg-type]  # the point of the test
    assert refused.value.name == "seed"


def test_threads_share_no_words() -> None:
    words: list[list[int]] = []
    barrier = threading.Barrier(8)

    def work() -> None:
        barrier.wait()
        words.append([SYSTEM.word() for _ in range(2000)] + SYSTEM.words(2000).tolist())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    together = [word for part in words for word in part]
    assert len(together) == 8 * 4000 == len(set(together))


def test_every_thread_has_a_generator_and_a_pool_of_its_own() -> None:
    seen = []

    def work() -> None:
        SYSTEM.word()
        seen.append((SYSTEM._find_state().fill, SYSTEM._find_state().pool))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    work()
    (fill, pool), (own_fill, own_pool) = seen
    assert fill is not own_fill
    assert pool is not own_pool


def _child_words(write: int) -> None:
    """What a child sees: words from the pool it inherited and from the generator."""
    words = [SYSTEM.word() for _ in range(600)] + SYSTEM.words(600).tolist()
    os.write(write, np.array(words, dtype=np.uint64).tobytes())


def _fork_with(fork: Callable[[], int]) -> list[int]:
    read, write = os.pipe()
    child = fork()
    if child == 0:
        try:
            _child_words(write)
        finally:
            os._exit(0)
    os.close(write)
    data = b""
    while part := os.read(read, 1 << 16):
        data += part
    os.close(read)
    os.waitpid(child, 0)
    return [int(word) for word in np.frombuffer(data, dtype=np.uint64)]


def _raw_fork() -> int:
    """A fork behind Python's back: no hooks run in the child."""
    return int(ctypes.PyDLL(None).fork())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("fork", [os.fork, _raw_fork], ids=["os.fork", "raw"])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_forked_children_never_share_noise(fork: Callable[[], int]) -> None:
    """Parent and children had the same pool and key at the fork, and have not a word in common after it."""
    SYSTEM.word()
    children = [_fork_with(fork) for _ in range(3)]
    own = [SYSTEM.word() for _ in range(600)] + SYSTEM.words(600).tolist()
    assert all(len(words) == 1200 for words in children)
    together = own + [word for words in children for word in words]
    assert len(set(together)) == 4 * 1200


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_the_fork_hook_alone_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a child has its parent's process number (another namespace, say), the hook still renews its state."""
    number = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: number)
    SYSTEM.word()
    child = _fork_with(os.fork)
    own = [SYSTEM.word() for _ in range(600)] + SYSTEM.words(600).tolist()
    assert len(child) == 1200
    assert not set(child) & set(own)


def _process_words(_: int) -> list[int]:
    return [SYSTEM.word() for _ in range(100)] + [int(word) for word in SYSTEM.words(100)]


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_worker_processes_never_share_noise(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    SYSTEM.word()
    with multiprocessing.get_context(method).Pool(2) as pool:
        parts = pool.map(_process_words, range(4), chunksize=1)
    together = [word for part in parts for word in part] + _process_words(0)
    assert len(set(together)) == 5 * 200
