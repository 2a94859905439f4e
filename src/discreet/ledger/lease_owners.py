"""The owners of leases: names the session that runs a question now, and finds out whether it has ended.

This only saves double work; no guarantee depends on it. If two runs of one request overlap, the ledger keeps the answer
of the first to commit, and only that one is released.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from discreet.entropy import SYSTEM


@lru_cache(maxsize=1)
def _find_machine() -> str:
    """A name of this boot of this machine and of its process namespace; empty where the system has none."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _find_start(pid: int) -> str:
    """When a process began, in the system's own ticks; empty when it is gone or not known."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]


@lru_cache(maxsize=1)
def _find_own_start(pid: int) -> str:
    """When this process began; looked up once, and again after a fork."""
    return _find_start(pid)


# The sessions of this process that have not ended.
_SESSIONS: set[str] = set()


def begin_session() -> str:
    """A new session of this process."""
    session = f"{SYSTEM.bits(64):016x}"
    _SESSIONS.add(session)
    return session


def end_session(session: str) -> None:
    """End a session: nothing runs in it any more."""
    _SESSIONS.discard(session)


def name_of(session: str) -> str:
    """The name of a session of this process. No other session on this machine has or had the same name."""
    pid = os.getpid()
    return f"{_find_machine()} {pid} {_find_own_start(pid)} {session}"


def is_gone(owner: str) -> bool:
    """Whether the session of this name has certainly ended; False where this process cannot know it."""
    place, *rest = owner.rsplit(" ", 3)
    if len(rest) != 3 or not place or place != _find_machine() or not rest[0].isdigit() or not rest[1]:
        return False
    pid, started, session = int(rest[0]), rest[1], rest[2]
    return _find_start(pid) != started or (pid == os.getpid() and session not in _SESSIONS)
