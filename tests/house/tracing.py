"""Rows of a page that say where a statement is proved or taught, which name makes it, and which test checks it."""

from __future__ import annotations

import re
from importlib import import_module
from typing import NamedTuple

from tests.house.test_house import ROOT

_ROW = re.compile(r"^\| (.+?) \| \[[^\]]+\]\(([\w/.-]+\.md)\) \| `([\w.]+)` \| `([\w./:-]+)` \|$", re.M)


class TracedRow(NamedTuple):
    """One statement, the file of its page, a dotted name, and a test as pytest names it."""

    statement: str
    page: str
    name: str
    test: str


def read_rows(text: str) -> list[TracedRow]:
    """All rows of the tables of a page that have this form."""
    return [TracedRow(*found) for found in _ROW.findall(text)]


def count_lines(text: str) -> int:
    """How many lines of tables there are besides their heads: so many rows must have been read."""
    return len(re.findall(r"^\| (?!statement|claim|---)", text, re.M))


def find_problems(row: TracedRow, folder: str = "docs") -> list[str]:
    """What of a row is not there. Pages are named from ``folder``."""
    problems = [] if (ROOT / folder / row.page).is_file() else [row.page]
    try:
        _find_name(row.name)
    except ImportError:
        problems.append(row.name)
    file, _, function = row.test.partition("::")
    path = ROOT / file
    if not path.is_file() or (function and f"\ndef {function}(" not in path.read_text()):
        problems.append(row.test)
    return problems


def _find_name(path: str) -> object:
    """What a dotted path leads to; modules are imported on the way."""
    parts = path.split(".")
    found: object = import_module(parts[0])
    for place, part in enumerate(parts[1:], start=2):
        try:
            found = getattr(found, part)
        except AttributeError:
            found = import_module(".".join(parts[:place]))
    return found
