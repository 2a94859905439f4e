"""Noise that tests draw in this process follows from the test's name, so that a test that passes passes again.

``DISCREET_TEST_SEED=7 make test`` draws other noise: a test that depends on luck is found by a few of them. Processes
that tests start, and forks of this one, draw from the operating system as always.
"""
# ruff: noqa: SLF001  # the generator's key is its secret

from __future__ import annotations

import hashlib
import itertools
import math
import os
from collections.abc import Iterator

import pytest

from discreet import entropy

SEED = os.environ.get("DISCREET_TEST_SEED", "0")


class KnownKeys(entropy._AesFill):
    """The real generator, but keyed by a text instead of the operating system, and never by the time."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        super().__init__()

    def _reseed(self) -> None:
        self._key, self._made, self._since = hashlib.sha256(self._seed.encode()).digest(), 0, math.inf
        self._seed += " again"


@pytest.fixture(autouse=True)
def repeatable_noise(request: pytest.FixtureRequest) -> Iterator[None]:
    """Draws of ``entropy.SYSTEM`` that are the same in each run; each thread has its own, in the order of the first."""
    process, threads, make, find = os.getpid(), itertools.count(), entropy._make_fill, entropy.SystemSource._find_state
    mark = object()

    def make_fill() -> entropy.Fill:
        return KnownKeys(f"{SEED} {request.node.nodeid} {next(threads)}") if os.getpid() == process else make()

    def find_state(source: entropy.SystemSource) -> entropy._ThreadState:
        """What a thread that outlives a test has left of it is not used in the next one."""
        state = find(source)
        if vars(state).get("mark") is not mark:
            state.renew()
            vars(state)["mark"] = mark
        return state

    # Patches of its own: the fixture ``monkeypatch`` would be made here, before all others, and taken back after them.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entropy, "_make_fill", make_fill)
        patch.setattr(entropy.SystemSource, "_find_state", find_state)
        yield
    entropy.SYSTEM._state.renew()
