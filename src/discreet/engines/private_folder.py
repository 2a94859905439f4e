"""A folder for copies of private rows: readable by its owner alone, and gone with the process that made it.

A process that is killed cannot tidy up. So every folder holds a lock for as long as its process lives, and whoever
makes the next folder in the same place removes those whose lock is free.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import weakref
from pathlib import Path

PREFIX = "discreet-"
_LOCK = "owner"


class PrivateFolder:
    """A folder with the rights 0700 in a place of the owner's choice, by default that of temporary files."""

    def __init__(self, place: str | Path | None = None) -> None:
        sweep(place)
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
        self._lock = _take_lock(self.path)
        self._finalizer = weakref.finalize(self, _remove, self.path, self._lock, os.getpid())

    def close(self) -> None:
        """Remove the folder and what is in it."""
        self._finalizer()


def sweep(place: str | Path | None = None) -> None:
    """Remove the folders of processes that are gone. Those of others, or without a lock, stay."""
    for folder in Path(place or tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:  # somebody else was quicker, or it is not one of ours
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        _remove(folder, lock, os.getpid())


def _take_lock(folder: Path) -> int:
    """The lock of a new folder. It gets its name when it is held: a lock that is found free is that of the dead."""
    unnamed = folder / f"{_LOCK}.new"
    lock = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    unnamed.rename(folder / _LOCK)
    return lock


def _remove(folder: Path, lock: int, pid: int) -> None:
    """Remove a folder, in the process that made it: a forked child inherits the finalizer, but not the folder."""
    if os.getpid() != pid:
        return
    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)
