"""What one person's client has to remember, and the file that keeps it.

The file is changed by one holder of its lock at a time, in this order: lock, read again, build the new memory aside,
write it to a draft, flush it to the disk, rename it over the file, flush the folder. Only then is the new memory used,
and only then is a report given out. So after a failure at any point, the file has whatever was told, or more; and two
clients on one file, in one process or in several, never promise the same answer twice.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, replace
from fractions import Fraction
from pathlib import Path
from typing import Self

from discreet.errors import UsageError
from discreet.late_dataclass import dataclass

_FORMAT = "local-person/1"


@dataclass(frozen=True, kw_only=True)
class PersonMemory:
    """A secret, what was spent, keyed tags of the answers to each task, and the latest permanent bytes of each.

    It never changes: ``charge`` and ``keep`` give a new one.
    """

    secret: bytes
    spent: Fraction = Fraction(0)
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    last: Mapping[str, str] = field(default_factory=dict)

    def charge(self, cost: Fraction) -> Self:
        """The memory after one more report that costs."""
        return replace(self, spent=self.spent + cost)

    def tag(self, task: str, tag: str) -> Self:
        """The memory with one more answer to a task."""
        return replace(self, tags={**self.tags, task: (*self.tags.get(task, ()), tag)})

    def keep(self, task: str, permanent: bytes) -> Self:
        """The memory with these bytes as the latest ones of a task."""
        return replace(self, last={**self.last, task: permanent.hex()})

    def precedes(self, later: PersonMemory) -> bool:
        """Whether another memory has all that this one has."""
        answers = all(set(tags) <= set(later.tags.get(task, ())) for task, tags in self.tags.items())
        return self.secret == later.secret and self.spent <= later.spent and answers and set(self.last) <= {*later.last}

    @property
    def json(self) -> str:
        """The memory as the file has it; "marks" is the file's name for tags."""
        record: dict[str, object] = {"discreet": _FORMAT, "secret": self.secret.hex(), "spent": str(self.spent)}
        return json.dumps(record | {"marks": self.tags, "last": self.last})

    @classmethod
    def read(cls, text: str) -> Self:
        """The memory that a file has; refused where it is not whole."""
        try:
            record = json.loads(text)
            if record["discreet"] != _FORMAT:
                raise ValueError
            tags = {str(task): tuple(map(str, tags)) for task, tags in dict(record["marks"]).items()}
            last = {str(task): bytes.fromhex(permanent).hex() for task, permanent in dict(record["last"]).items()}
            secret, spent = bytes.fromhex(record["secret"]), Fraction(record["spent"])
        except (KeyError, TypeError, ValueError, ZeroDivisionError, RecursionError):
            raise UsageError("The memory file cannot be read. Nothing is reported without it.") from None
        return cls(secret=secret, spent=spent, tags=tags, last=last)


@contextmanager
def lock_file(path: Path) -> Iterator[None]:
    """Wait for the lock of a memory file, and hold it; it is a file of its own, because the memory is renamed over."""
    handle = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)  # which gives the lock back


def read_file(path: Path) -> PersonMemory | None:
    """The memory in a file; None where there is no file."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise UsageError("The memory file cannot be read. Nothing is reported without it.") from None
    return PersonMemory.read(text)


def write_file(path: Path, memory: PersonMemory) -> None:
    """Put a memory into its file, on the disk when this returns; the caller holds the lock."""
    draft = path.with_name(path.name + ".part")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(memory.json)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
