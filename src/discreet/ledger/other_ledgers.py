"""Looks for other ledgers of a dataset, before a new one is begun with a whole budget.

A codebook that was renamed, copied or linked finds no ledger of its own name. The ledger of its dataset may still lie
near. Files are known by what they hold, not by their names: backups and head files count, too.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from discreet.errors import DiscreetError
from discreet.ledger import headfile
from discreet.ledger.chain import Head
from discreet.ledger.sqlite_store import APPLICATION, read_start

# A ledger or a head that another process is making right now.
_DRAFT = re.compile(r"\..+\.[0-9a-f]{16}(-wal|-shm|-journal|\.head)?")


def find_other_ledger(folders: Iterable[Path], *, dataset: str, ledger_id: str | None, but: Path) -> Path | None:
    """A ledger, or a head file without its ledger, of this dataset in the folders; None where there is none.

    It is of this dataset if it has the dataset's name or the identity ``ledger_id``. A head holds the identity only.
    A ledger that cannot be read counts, because nobody knows whose it is. The ledger ``but`` is not looked at.
    """
    known = {but, headfile.head_path_of(but)}
    for folder in dict.fromkeys(folder.resolve() for folder in folders):
        for path in _list_files(folder):
            if path not in known and not _DRAFT.fullmatch(path.name) and _is_of(path, dataset, ledger_id):
                return path
    return None


def _list_files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_file())
    except OSError:
        return []  # not a folder, or not for us to read


def _is_of(path: Path, dataset: str, ledger_id: str | None) -> bool:
    try:
        if path.name.endswith(".head"):
            return ledger_id is not None and _read_head(path).ledger == ledger_id
        start = read_start(path, 100)
    except (OSError, ValueError, DiscreetError):
        return False  # not ours, or not for us to read
    if start is not None and not _is_ledger(start):
        return False
    try:
        first = _read_first_line(path)
        return first["dataset"] == dataset or first["ledger"] == ledger_id
    except (sqlite3.Error, ValueError, KeyError, TypeError):
        return True


def _is_ledger(start: bytes) -> bool:
    return start.startswith(b"SQLite format 3\0") and int.from_bytes(start[68:72], "big") == APPLICATION


def _read_head(path: Path) -> Head:
    return Head.from_json(path.read_text(encoding="ascii"))


def _read_first_line(path: Path) -> dict[str, str]:
    """The first line of a ledger, which is read without leaving files beside it."""
    live = path.with_name(f"{path.name}-wal").exists()
    connection = sqlite3.connect(f"{path.as_uri()}?{'mode=rw' if live else 'immutable=1'}", uri=True)
    try:
        found: dict[str, str] = json.loads(connection.execute("SELECT line FROM lines WHERE number = 0").fetchone()[0])
        return found
    finally:
        connection.close()
