"""The small file beside a ledger that says how far its log was at least, and files that appear whole or not at all."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from discreet.entropy import SYSTEM
from discreet.errors import LedgerDamaged, LedgerError
from discreet.ledger.chain import Head

LOG = logging.getLogger("discreet.ledger")

# Notes are filled up to this length, so that one can be written over another.
_SIZE = 1024


def head_path_of(path: Path) -> Path:
    """Where the head of a ledger is noted."""
    return path.with_name(f"{path.name}.head")


def read(path: Path) -> Head | None:
    """What the file beside the ledger says, if there is one."""
    try:
        text = head_path_of(path).read_text(encoding="ascii")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError):
        text = ""
    try:
        return Head.from_json(text)
    except LedgerError:
        raise LedgerDamaged(
            f"{head_path_of(path).name} cannot be read. If the ledger itself is whole and as new as you know it to be "
            "(`discreet ledger verify`), remove that file. Nothing was charged."
        ) from None


def write(path: Path, head: Head) -> None:
    """Note how far the log is. Without waiting for the disk: an older note is still true."""
    text = head.to_json().encode().ljust(_SIZE)
    try:
        if not _overwrite(head_path_of(path), text):
            _replace(head_path_of(path), text)
    except OSError:
        LOG.warning("The head file beside the ledger could not be written.", exc_info=True)


def _overwrite(path: Path, text: bytes) -> bool:
    """Write over a note of the same length, in one piece; False where there is none."""
    try:
        handle = os.open(path, os.O_WRONLY)
    except FileNotFoundError:
        return False
    try:
        return os.fstat(handle).st_size == len(text) and os.pwrite(handle, text, 0) == len(text)
    finally:
        os.close(handle)


def _replace(path: Path, text: bytes) -> None:
    draft = make_spare_path(path)
    try:
        draft.write_bytes(text)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def make_spare_path(path: Path) -> Path:
    """A name beside a path that nobody else uses."""
    return path.with_name(f".{path.name}.{SYSTEM.bits(64):016x}")


def publish(draft: Path, path: Path) -> None:
    """Give a finished file its name, durably; FileExistsError where the name is taken."""
    try:
        _sync(draft)
        os.link(draft, path)
    finally:
        draft.unlink()
    _sync(path.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
