"""Who is running a question right now: a name for this process, and whether another one is still alive.

This is a courtesy to save double work, and never what soundness rests on: if two runs of one request ever overlap, the
ledger keeps the answer of the first to commit, and only that one is handed out.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=1)
def _place() -> str:
    """This boot of this machine and its process numbers; empty where the system does not tell."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When a process began, in the system's own ticks; empty when it is gone or not known."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]


def this_process() -> str:
    """The name of this process, unlike that of any other one, past or present, on this machine."""
    pid = os.getpid()
    return f"{_place()} {pid} {_started(pid)}"


def is_gone(owner: str) -> bool:
    """Whether the process of this name has certainly ended; False where nobody can know from here."""
    place, _, rest = owner.rpartition(" ")[0].rpartition(" ")
    started = owner.rpartition(" ")[2]
    if not place or place != _place() or not rest.isdigit() or not started:
        return False
    return _started(int(rest)) != started
