"""Entries of a release plan beside its tables: questions and series, each with a weight of its own.

[[questions]]
name = "age by ward"
sql = "SELECT ward, AVG(age) AS age FROM visits GROUP BY ward"

[[series]]
name = "daily"
question = "SELECT COUNT(*) FROM visits"
by = "day"
first = 2024-01-01
periods = 365
days_per_unit = 4
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, fields
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from discreet import parameters
from discreet.errors import UsageError
from discreet.late_dataclass import dataclass
from discreet.parameters import Number
from discreet.plan.catalog import suggest_nearest

_LONGEST_NAME = 60


@dataclass(frozen=True, kw_only=True)
class QuestionEntry:
    """A question that is answered in the bundle, with its errors."""

    name: str
    sql: str
    weight: Number = 1


@dataclass(frozen=True, kw_only=True)
class SeriesEntry:
    """A series, all periods of which are paid for. The bundle has the first ``released`` ones (without it, all)."""

    name: str
    question: str
    by: str
    first: dt.date
    periods: int
    released: int | None = None
    days_per_unit: int | None = None
    apart: int = 1
    rows_per_period: int = 1
    every: str = "day"
    wanted: str = "periods"
    window: int | None = None
    weight: Number = 1
    # A private folder; where it lies is no part of what the plan says.
    state: Path | None = field(default=None, compare=False)

    @property
    def choices(self) -> dict[str, Any]:
        """What a series is opened with."""
        words = ("by", "first", "periods", "days_per_unit", "apart", "rows_per_period", "every", "wanted", "window")
        return {word: getattr(self, word) for word in words} | {"state": self.state}


Entry = TypeVar("Entry", QuestionEntry, SeriesEntry)


def read_entries(kind: type[Entry], entries: Any, who: str) -> tuple[Entry, ...]:
    """The entries of one kind as a plan writes them."""
    if not isinstance(entries, list | tuple):
        raise UsageError(f"{who} are written as [[{who}]], one after the other. Nothing was charged.")
    found = tuple(each if isinstance(each, kind) else _read_entry(kind, each, who) for each in entries)
    _check_names([entry.name for entry in found], who)
    for entry in found:
        parameters.read_positive(entry.weight, "weight")
    return found


def _read_entry(kind: type[Entry], words: Any, who: str) -> Entry:
    known = [each.name for each in fields(kind)]
    if not isinstance(words, Mapping):
        raise UsageError(f"An entry of {who} is a table of words. Nothing was charged.")
    for word in words:
        if word not in known:
            raise UsageError(f"{who} have no word {word!r}. {suggest_nearest(word, known)} Nothing was charged.")
    try:
        return kind(**words)
    except TypeError:
        needed = "name and sql" if kind is QuestionEntry else "name, question, by, first and periods"
        raise UsageError(f"An entry of {who} says {needed}. Nothing was charged.") from None


def _check_names(names: Sequence[Any], who: str) -> None:
    for name in names:
        if not isinstance(name, str) or not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
            raise UsageError(f"Each of the {who} needs a short name. Nothing was charged.")
    if len(set(names)) < len(names):
        raise UsageError(f"Two {who} have one name. Nothing was charged.")


def split_price(mu_squared: Fraction, weights: Iterable[Number]) -> list[Fraction]:
    """μ² in parts as large as the weights say. They add up to it exactly."""
    read = [Fraction(parameters.read_positive(weight, "weight")) for weight in weights]
    return [mu_squared * weight / sum(read) for weight in read]


def dump_entry(entry: QuestionEntry | SeriesEntry) -> dict[str, Any]:
    """An entry as plain values."""
    found = {each.name: getattr(entry, each.name) for each in fields(entry) if each.name != "state"}
    return {name: _plain(value) for name, value in found.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, dt.date):
        return value.isoformat()
    return value if isinstance(value, str | bool | int) else str(value)
