"""Writes a first codebook from the schema of the data, and writes one anew where an owner has not changed it.

A schema does not say who is protected and what may be spent. So this is asked, or left blank, and a codebook with a
blank is refused. Bounds and keys are never proposed from values: what is read off the data would have to be paid for.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from discreet.codebook.data_files import DataFiles, name_table
from discreet.codebook.entries import BLANK, ROW
from discreet.codebook.owners import UnitName
from discreet.codebook.rules import FORM_WORDS
from discreet.late_dataclass import dataclass
from discreet.plan.csv_form import CsvForm, delimiter_of_path
from discreet.plan.source_kinds import STORED_KINDS, SourceKind
from discreet.plan.types import Type

# How the comment begins that says where the types of a table come from.
TYPES_NOTE = "# About the types: "
# What is said of the state of tables that stay where they are, and its first name where there has to be one.
_RELEASE_NOTES = {
    SourceKind.POSTGRES: "# If the database is written to, name the state of the data in the source: "
    'release = "2024-06".',
    SourceKind.SPARK: "# The release names the state of the data. When the data has changed, change the name.",
}
_FIRST_RELEASE = "1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What only a person can know. None is left blank, ``unit`` may be ``"row"``, and numbers are texts as typed.

    ``ledger_id`` is not chosen by anyone; None leaves it out.
    """

    unit: str | None = None
    max_rows: str | None = None
    epsilon: str | None = None
    delta: str | None = None
    rho: str | None = None
    ledger_id: str | None = None


def draft(found: DataFiles, choices: Choices, folder: Path) -> str:
    """The codebook as a commented text, for a file in ``folder``."""
    places = {name: _write_place(name, found, folder) for name in found.sources}
    first = next(iter(found.sources.values()))
    shared = len(set(places.values())) == 1 and first.kind is SourceKind.DUCKDB
    lines = [
        "# A codebook: what is public about this dataset, who is protected, and what may be spent.",
        f"# Fill in every {_to_text(BLANK)}, then: discreet check THIS_FILE     All words: discreet help codebook",
        f"name = {_to_text(name_table(first.path))}",
        "",
        '# Who is protected: the column that says whose row it is, or "row" where nobody has two rows.',
        f"unit = {_to_text(choices.unit or BLANK)}",
        "",
        *([f"source = {next(iter(places.values()))}", ""] if shared else []),
        *_write_ledger_id(choices),
        "# What may be spent by all questions together, for ever. A 50:50 guess about one unit becomes at most",
        "# 74:26 with epsilon = 1, and 96:4 with epsilon = 3.",
        "[budget]",
        *_write_budget(choices),
    ]
    for table in found.tables:
        lines += ["", *_write_table(table, found, choices, "" if shared else places[table])]
    return "\n".join(lines) + "\n"


def draft_table(table: str, found: DataFiles, choices: Choices, folder: Path) -> str:
    """The part of a codebook about one table, with its source."""
    return "\n".join(_write_table(table, found, choices, _write_place(table, found, folder))) + "\n"


def _write_place(table: str, found: DataFiles, folder: Path) -> str:
    source = found.sources[table]
    if source.kind in STORED_KINDS:
        release = f", release = {_to_text(_FIRST_RELEASE)}" if source.kind is SourceKind.SPARK else ""
        return f"{{ {source.kind} = {_to_text(source.path)}{release} }}"
    path = os.path.relpath(source.path, folder).replace(os.sep, "/")
    usual = CsvForm(delimiter=delimiter_of_path(path))
    form = source.form or usual
    words = {word: getattr(form, word) for word in FORM_WORDS if getattr(form, word) != getattr(usual, word)}
    pairs = [f"{word} = {_to_text(value)}" for word, value in {str(source.kind): path, **words}.items()]
    return f"{{ {', '.join(pairs)} }}"


def _write_ledger_id(choices: Choices) -> list[str]:
    if choices.ledger_id is None:
        return []
    return [
        "# The name of the ledger that counts what is spent. Leave it as it is: another ledger is refused.",
        f"ledger_id = {_to_text(choices.ledger_id)}",
        "",
    ]


def _write_table(table: str, found: DataFiles, choices: Choices, place: str) -> list[str]:
    """The lines of one table."""
    schema = found.tables[table]
    unit = _find_unit_column(table, found, choices)
    lines = [f"[tables.{_to_key(table)}]"]
    if place:
        lines.append(f"source = {place}")
    if found.sources[table].kind in STORED_KINDS:
        lines.append(_RELEASE_NOTES[found.sources[table].kind])
    if len(found.tables) > 1:
        lines += _write_references(table, found, unit, choices)
    if choices.unit != ROW:
        lines.append("# Of one unit, at most this many rows count in a question; more rows need more noise.")
        lines.append(f"max_rows = {choices.max_rows or _to_text(BLANK)}")
    lines += [
        "# rows = 60_000     # roughly, if public; so, too: units = 12_000",
        "",
        f"[tables.{_to_key(table)}.columns]",
        _describe_types(table, found),
    ]
    unnamed = found.unnamed.get(table, frozenset())
    return [
        *lines,
        *(_write_unnamed(c, k) if c in unnamed else write_column(c, k, owner=c == unit) for c, k in schema.items()),
    ]


def _describe_types(table: str, found: DataFiles) -> str:
    if table in found.untyped:
        return f"{TYPES_NOTE}only the header was read. There are {', '.join(Type)}."
    if table in found.proposed:
        return f"{TYPES_NOTE}they were proposed from the values, with the owner's leave."
    place = "database" if found.sources[table].kind in STORED_KINDS else "file"
    return f"{TYPES_NOTE}they are those of the {place}; no value was read."


def _find_unit_column(table: str, found: DataFiles, choices: Choices) -> str | None:
    """The column of a table that names the unit; None where the table has none, or no unit was chosen."""
    of, _, column = (choices.unit or "").partition(".")
    unit = UnitName(column, of) if column in found.tables.get(of, {}) else UnitName(choices.unit or "")
    return unit.column if unit.is_named_in(table, found.tables[table]) else None


def _write_references(table: str, found: DataFiles, unit: str | None, choices: Choices) -> list[str]:
    """Comments that propose foreign keys, by the names of columns alone. A person decides."""
    schema = found.tables[table]
    pairs = {
        column: target
        for column, kind in schema.items()
        if kind is not None and column != unit and (target := _find_target(table, column, found)) is not None
    }
    lines = []
    if unit is None and choices.unit not in (None, ROW):
        lines.append("# Its rows do not name the unit: keep the line that says how they reach it, or whose they are.")
        lines.append("# public = true     # without max_rows, if its rows belong to nobody and everyone may know them")
        pairs = pairs or {"COLUMN": "TABLE.COLUMN"}
    if pairs:
        words = ", ".join(f"{_to_key(column)} = {_to_text(target)}" for column, target in pairs.items())
        lines.append(f"# foreign_keys = {{ {words} }}     # if each value is a key of that table")
    return lines


def _find_target(table: str, column: str, found: DataFiles) -> str | None:
    """The column of another table that a column may refer to: the first one or the ``id``, by name and type."""
    kind = found.tables[table][column]
    for other, schema in found.tables.items():
        called = {f"{other}_id", f"{other.removesuffix('s')}_id", f"{other}id", f"{other.removesuffix('s')}id"}
        named = column.lower() in {name.lower() for name in called}
        own = next(iter(found.tables[table])) == column
        for key in schema if other != table else ():
            same = key == column and (named or (key == next(iter(schema)) and not own))
            if schema[key] == kind and (same or (named and key.lower() == "id")):
                return f"{other}.{key}"
    return None


def _write_budget(choices: Choices) -> list[str]:
    if choices.rho is not None:
        return [f"rho = {choices.rho}"]
    lines = [f"epsilon = {choices.epsilon or _to_text(BLANK)}"]
    if choices.delta is not None:
        return [*lines, f"delta = {choices.delta}"]
    return [*lines, "# delta = 1e-9      # far below one over the number of people; lets groups be named from the data"]


def write_column(name: str, kind: Type | None, *, owner: bool = False) -> str:
    """The line of a column, with a comment that shows what could be declared about it."""
    if kind is None:
        return f"# {_to_key(name)}: of a kind that questions cannot use"
    line = f"{_to_key(name)} = {{ type = {_to_text(kind)} }}"
    if owner:
        return line
    hint = {
        Type.INTEGER: "for sums: bounds = [0, 100]",
        Type.REAL: "for sums: bounds = [0, 100], resolution = 0.01",
        Type.TEXT: 'if publicly known: keys = ["A", "B"]',
        Type.DATE: 'for public groups: bounds = [2024-01-01, 2024-12-31], bins = { width = "day" }',
    }.get(kind)
    return line if hint is None else f"{line:<44} # {hint}"


def _write_unnamed(name: str, kind: Type | None) -> str:
    """A column without a name in the header is not declared: it mostly holds row numbers, as pandas writes them."""
    line = f"# {_to_key(name)} = {{ type = {_to_text(kind or Type.TEXT)} }}"
    return f"{line:<44} # has no name in the header; row numbers of pandas? Not declared"


def _to_text(value: str) -> str:
    """A TOML string; its escapes are those of JSON."""
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _to_key(name: str) -> str:
    """A TOML key, quoted where it must be."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _to_text(name)
