"""The head file beside a ledger, which records how long its log was at least; and files that are published whole."""

from __future__ import annotations

import glob
import logging
import os
import re
from pathlib import Path

from discreet.entropy import SYSTEM
from discreet.errors import LedgerDamaged, LedgerError
from discreet.ledger.chain import Head

LOG = logging.getLogger("discreet.ledger")

# Every head file has this length, so that one head can be written over another.
_SIZE = 1024


def head_path_of(path: Path) -> Path:
    """The path of the head file of a ledger."""
    return path.with_name(f"{path.name}.head")


def read(path: Path) -> Head | None:
    """The head in the file beside the ledger, if there is one."""
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
    """Write the head. It does not wait for the disk, because an older head is still true."""
    text = head.to_json().encode().ljust(_SIZE)
    try:
        if not _overwrite(head_path_of(path), text):
            _replace(head_path_of(path), text)
    except OSError:
        LOG.warning("The head file beside the ledger could not be written.", exc_info=True)


def _overwrite(path: Path, text: bytes) -> bool:
    """Write over a head file of the same length, in one call; False where there is none."""
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
        make_private(draft)
        draft.write_bytes(text)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def make_private(path: Path) -> None:
    """Make an empty file that only its owner can read. SQLite gives the files beside its own the same permissions."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def make_spare_path(path: Path) -> Path:
    """A path in the same folder that nobody else uses."""
    return path.with_name(f".{path.name}.{SYSTEM.bits(64):016x}")


def publish(draft: Path, path: Path) -> None:
    """Give a finished file its name, durably; FileExistsError where the name is taken."""
    try:
        _sync(draft)
        os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    _sync(path.parent)


def remove_drafts(path: Path, file: os.stat_result) -> None:
    """Remove the names of drafts that a published file still has, because its maker was cut off or is not done yet."""
    for draft in path.parent.glob(f".{glob.escape(path.name)}.*"):
        if os.path.samestat(draft.stat(), file) and re.fullmatch("[0-9a-f]{16}", draft.suffix[1:]):
            draft.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
