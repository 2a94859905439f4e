"""How many stored values are read as NULL, by column, with an example: for the owner of the data alone.

One statement over the stored table, with the very words by which questions read its columns. The counts are exact. So
nothing here is part of an engine or a curator, and no analyst can reach it.
"""

# ruff: noqa: S608  # all SQL is written here; names are quoted
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from discreet.engines.sql.dialect import Dialect
from discreet.engines.sql.stored_engine import ColumnForms
from discreet.engines.unread import MISSING_WORDS, Unread, ValueReport
from discreet.errors import UsageError
from discreet.late_dataclass import dataclass
from discreet.plan.types import Type

# Columns that are looked at in one statement, and how much of a value is shown as an example.
_COLUMNS = 100
_EXAMPLE_LENGTH = 40
# No text of an engine is longer, so this is no limit.
_ANY_LENGTH = 2**30
_WORDS = {f"missing{i}": word for i, word in enumerate(("", *MISSING_WORDS))}


@dataclass(frozen=True, slots=True)
class CheckedColumn:
    """A column under its declared name: its stored value as a text, and as questions read it, in SQL.

    ``length`` is the declared one of a text, None where there is none.
    """

    name: str
    text: str
    read: str
    declared: Type
    length: int | None = None


def pair_columns(
    forms: ColumnForms,
    stored: Mapping[str, tuple[str, str]],
    types: Mapping[str, Type],
    lengths: Mapping[str, int],
    *,
    place: str,
    write_text: Callable[[str], str],
) -> list[CheckedColumn]:
    """The declared columns with the stored ones, of which ``stored`` has the names and types.

    ``place`` is their table, for messages; ``write_text`` writes the column of a name as a text.
    """
    columns = []
    for name, declared in types.items():
        own, length = stored.get(name.lower()), lengths.get(name)
        if own is None:
            raise UsageError(f"{place} has no column {name!r} that may be read. Nothing was charged.")
        if not forms.fits(forms.plan_type(own[1]), declared):
            raise UsageError(f"The column {name!r} of {place} cannot be read as {declared}. Nothing was charged.")
        read = forms.write_stored_column(*own, declared, _ANY_LENGTH if length is None else length)
        columns.append(CheckedColumn(name, write_text(own[0]), read, declared, length))
    return columns


def count_unread_values(
    run: Callable[[str, Mapping[str, str]], Sequence[tuple[Any, ...]]],
    relation: str,
    columns: Sequence[CheckedColumn],
    dialect: Dialect,
    unit: str | None = None,
) -> ValueReport:
    """Count the values of a relation that questions take as missing; with ``unit`` also its units."""
    ((rows,),) = run(f"SELECT count(*) FROM {relation}", {})
    lost: list[Unread] = []
    for start in range(0, len(columns), _COLUMNS):
        part = columns[start : start + _COLUMNS]
        items = [item for column in part for item in _write_items(column, dialect)]
        (found,) = run(f"SELECT {', '.join(items)} FROM {relation}", _WORDS)
        for place, column in enumerate(part):
            lost += _list_unread(column, *found[4 * place : 4 * place + 4])
    units = None
    if unit is not None:
        read = next(column.read for column in columns if column.name == unit)
        query = f"SELECT count(*) FILTER (WHERE ({read}) IS NULL), count(DISTINCT ({read})) FROM {relation}"
        ((nobody, units),) = run(query, {})
        lost += [Unread(None, f"rows without a {unit}", nobody)] if nobody else []
    return ValueReport(rows, tuple(lost), units)


def _write_items(column: CheckedColumn, dialect: Dialect) -> Iterator[str]:
    """How many values are read as NULL and what one of them is; and the same for words that mean a missing value."""
    lost = f"{column.text} IS NOT NULL AND ({column.read}) IS NULL"
    missing = "false" if column.declared is Type.TEXT else _write_is_missing(column.text, dialect)
    for condition in (f"{lost} AND NOT {missing}", f"{lost} AND {missing}"):
        yield f"count(*) FILTER (WHERE {condition})"
        yield f"min(left({column.text}, {_EXAMPLE_LENGTH})) FILTER (WHERE {condition})"


def _write_is_missing(text: str, dialect: Dialect) -> str:
    """Whether a text is a word for a missing value, or blank."""
    words = ", ".join(map(dialect.parameter, _WORDS))
    return f"({dialect.lower(dialect.trim(text))} IN ({words}))"


def _list_unread(
    column: CheckedColumn, unfit: int, example: str | None, missing: int, word: str | None
) -> Iterator[Unread]:
    reason = f"no {column.declared}" if column.length is None else f"longer than {column.length} characters"
    if unfit:
        yield Unread(column.name, reason, unfit, example)
    if missing:
        yield Unread(column.name, "written as missing", missing, word, meant=True)
