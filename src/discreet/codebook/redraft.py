"""Drafts a codebook again: what an owner has edited stays, and what still stands as it was drafted is written anew.

Rule. A codebook is cut into sections by its headings, and each line has a key: the word before its sign of equality, or
the whole line. A line that is equal to the line that would be drafted without any answers is unedited, and becomes the
one that is drafted now. Every other line stays, byte for byte. New lines go below the heading of their section.

A column of the data that is not in the codebook may be new, or its owner may have removed it so that no question can
use it. So it comes back as a comment only. A new table is added if somebody gave its file.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from discreet.codebook.data_files import DataFiles
from discreet.codebook.draft import TYPES_NOTE, Choices, draft, draft_table, write_column
from discreet.codebook.entries import BLANK, ROW
from discreet.errors import UsageError
from discreet.late_dataclass import dataclass
from discreet.plan.source_kinds import SourceKind

Section: TypeAlias = tuple[str, ...]
"""The heading that a line stands under, as the names in it."""

_Place: TypeAlias = tuple[Section, str]


@dataclass(frozen=True, slots=True)
class Redraft:
    """A codebook written anew: its text, what was added to it, and what the data no longer has.

    ``filled`` has the words that were written anew, ``typed`` the columns, and ``kept`` those words that were said now
    and before in another way: the edited line stays.
    """

    text: str
    added: tuple[str, ...]
    filled: tuple[str, ...]
    typed: tuple[str, ...]
    gone: tuple[str, ...]
    kept: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _DraftLine:
    section: Section
    key: str
    text: str


def redraft(old: str, bare: DataFiles, found: DataFiles, choices: Choices, folder: Path) -> Redraft:
    """The codebook of a text with what is known now.

    ``bare`` is the data by its schema alone, as it may have been drafted first; ``found`` may have proposed types.
    """
    declared = _read_tables(old)
    lines = list(_split(old))
    unit = tomllib.loads(old).get("unit")
    own = unit if isinstance(unit, str) and unit != BLANK else choices.unit
    before: dict[_Place, set[str]] = {}
    for first in (Choices(), Choices(unit=own)):
        for line in _split(draft(bare, first, folder)):
            if first == Choices() or line.section[2:] == ("columns",):
                before.setdefault((line.section, line.key), set()).add(line.text)
    drafted = draft(found, replace(choices, unit=own), folder)
    after = {(line.section, line.key): line.text for line in _split(drafted)}
    written: list[str] = []
    changed: list[_Place] = []
    for line in lines:
        place = (line.section, line.key)
        unedited = line.text in before.get(place, ())
        if not unedited or after.get(place) == line.text:
            written.append(line.text)
            continue
        if not after.get(place, "#").startswith("#"):
            changed.append(place)
        written += [after[place]] if place in after else []
    known = {(line.section, line.key) for line in lines}
    fresh = [place for place in after if place not in before and place not in known and place[0]]
    columns = _find_new_columns(declared, found, known)
    added = [f"{table}.{column} (as a comment)" for table, column in columns]
    under: dict[Section, list[str]] = {}
    for place in fresh:
        under.setdefault(place[0], []).append(after[place])
    for table, column in columns:
        text = write_column(column, found.tables[table][column])
        heading = ("tables", declared[table.lower()][0], "columns")
        under.setdefault(heading, []).append(text if text.startswith("#") else f"# {text}")
    text = "\n".join(_insert(written, under)) + "\n"
    for table in _find_new_tables(declared, found, old):
        text += "\n" + draft_table(table, found, choices, folder)
        added.append(f"table {table}")
    _check(text, declared)
    words = {key: section[2:] == ("columns",) for section, key in changed}
    filled, typed = (tuple(key for key, of_column in words.items() if of_column is kind) for kind in (False, True))
    return Redraft(
        text,
        tuple(added),
        filled,
        typed,
        gone=tuple(_find_gone(declared, found)),
        kept=tuple(_find_kept(text, choices)),
    )


def _read_tables(text: str) -> dict[str, tuple[str, Mapping[str, Any]]]:
    """The tables of a codebook by their small names: their names, and their columns."""
    try:
        tables = tomllib.loads(text)["tables"]
        return {name.lower(): (name, dict(table.get("columns", {}))) for name, table in tables.items()}
    except (tomllib.TOMLDecodeError, KeyError, AttributeError, TypeError, ValueError):
        raise UsageError(
            "The file that is there is no codebook with tables. Give another --out. Nothing was written or charged."
        ) from None


def _split(text: str) -> Iterator[_DraftLine]:
    section: Section = ()
    for line in text.splitlines():
        section = _read_heading(line) or section
        yield _DraftLine(section, _find_key(line), line)


def _read_heading(line: str) -> Section | None:
    """The names of a heading such as ``[tables.visits.columns]``; None for other lines."""
    if not line.startswith("["):
        return None
    try:
        inner: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return None
    names = []
    while isinstance(inner, dict) and len(inner) == 1:
        ((name, inner),) = inner.items()
        names.append(name)
    return tuple(names)


def _find_key(line: str) -> str:
    """The key of a line that declares something, also in a comment; the whole line where it declares nothing."""
    if line.startswith(TYPES_NOTE):
        return TYPES_NOTE
    found = re.match(r'(?:# )?("(?:[^"\\]|\\.)*"|[A-Za-z0-9_-]+)(?: = |: of a kind)', line)
    return line if found is None else found[1]


def _insert(lines: list[str], under: Mapping[Section, list[str]]) -> Iterator[str]:
    """Lines with more of them at the end of each section, before the blank lines that close it."""
    last: dict[Section, int] = {}
    section: Section = ()
    for place, line in enumerate(lines):
        section = _read_heading(line) or section
        if line.strip():
            last[section] = place
    at = {last[section]: more for section, more in under.items() if section in last}
    for place, line in enumerate(lines):
        yield line
        yield from at.get(place, ())


def _find_new_columns(
    declared: Mapping[str, tuple[str, Mapping[str, Any]]], found: DataFiles, known: set[_Place]
) -> list[tuple[str, str]]:
    """Columns of declared tables that no line of the codebook names, comments included."""
    new: list[tuple[str, str]] = []
    for table, schema in found.tables.items():
        if table.lower() not in declared:
            continue
        name, columns = declared[table.lower()]
        named = {column.lower() for column in columns}
        named |= {key.strip('"').lower() for section, key in known if section == ("tables", name, "columns")}
        new += [(table, column) for column in schema if column.lower() not in named]
    return new


def _find_new_tables(
    declared: Mapping[str, tuple[str, Mapping[str, Any]]], found: DataFiles, old: str
) -> Iterator[str]:
    """Tables that somebody gave a file for. Those of a database that the codebook names already were left out once."""
    for table, source in found.sources.items():
        left_out = source.kind is SourceKind.DUCKDB and Path(source.path).name in old
        if table.lower() not in declared and not left_out:
            yield table


def _find_gone(declared: Mapping[str, tuple[str, Mapping[str, Any]]], found: DataFiles) -> Iterator[str]:
    for table, schema in found.tables.items():
        name, columns = declared.get(table.lower(), ("", {}))
        there = {column.lower() for column in schema}
        yield from (f"{name}.{column}" for column in columns if column.lower() not in there)


def _find_kept(text: str, choices: Choices) -> Iterator[str]:
    """The words that were said and are not in the text."""
    for word in ("unit", "max_rows", "epsilon", "delta", "rho"):
        said = getattr(choices, word)
        needless = said is None or (word == "max_rows" and choices.unit == ROW)
        if not needless and not re.search(rf'^{word} = "?{re.escape(said)}"?\s*(#.*)?$', text, re.MULTILINE):
            yield word


def _check(text: str, declared: Mapping[str, tuple[str, Mapping[str, Any]]]) -> None:
    """Nothing that was declared may be lost, whatever the owner's lines look like."""
    now = _read_tables(text)
    for table, (_, columns) in declared.items():
        if table not in now or set(now[table][1]) != set(columns):
            raise UsageError(
                "The codebook that is there is written in a way that cannot be added to. Give another --out and take "
                "over what is missing. Nothing was written or charged."
            )
