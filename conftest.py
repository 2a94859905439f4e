"""Noise that tests draw in this process follows from the test's name, so that a test that passes passes again.

``DISCREET_TEST_SEED=7 make test`` draws other noise: a test that depends on luck is found by a few of them. Processes that
tests start, and forks of this one, draw from the operating system as always.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterator

import pytest

from discreet import entropy

SEED = os.environ.get("DISCREET_TEST_SEED", "0")


@pytest.fixture(autouse=True)
def repeatable_noise(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Draws of ``entropy.SYSTEM`` that are the same in each run; every thread has its own, in the order of their first."""
    process, threads, real = os.getpid(), itertools.count(), entropy._make_fill

    def make_fill() -> entropy.Fill:
        if os.getpid() != process:
            return real()
        seed = f"{SEED} {request.node.nodeid} {next(threads)}"
        blocks = itertools.count()

        def fill(target: memoryview) -> None:
            target[:] = hashlib.shake_128(f"{seed} {next(blocks)}".encode()).digest(len(target))

        return fill

    monkeypatch.setattr(entropy, "_make_fill", make_fill)
    entropy.SYSTEM._state.renew()
    yield
    entropy.SYSTEM._state.renew()
