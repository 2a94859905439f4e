"""Reads public rows that a question brings: an answer that was released before, or a frame of the analyst's own.

These rows are part of the question, so they are recorded with it and replayed with it. Nothing in them is private: an
answer has been paid for, and the analyst knows the analyst's own frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.answer import Answer
from discreet.codebook.frame_types import types_of
from discreet.errors import ParameterError, UsageError
from discreet.plan.arrow import to_arrow_table
from discreet.plan.evaluate import settle
from discreet.plan.relations import Values
from discreet.plan.types import Type, Value, is_storable_text

MAX_ROWS = 100_000


def read_public_values(tables: Mapping[str, Any] | None) -> dict[str, Values]:
    """Public tables by name, as values of a plan. A table that is too large or of no known kind is refused."""
    return {name: _read_values(name, table) for name, table in (tables or {}).items()}


def _read_values(name: str, table: Any) -> Values:
    if not isinstance(name, str) or not name.isidentifier():
        raise ParameterError("public", "names a table by something that is not a plain name", "Use letters and digits.")
    columns = table.columns() if isinstance(table, Answer) else _read_frame(name, table)
    rows = max((len(values) for _, _, values in columns), default=0)
    if rows > MAX_ROWS:
        raise UsageError(
            f"The public table {name!r} has {rows:,} rows; a question can bring {MAX_ROWS:,}. "
            "Declare it in the codebook as public. Nothing was charged."
        )
    if any(isinstance(value, str) and not is_storable_text(value) for _, _, values in columns for value in values):
        raise UsageError(f"The public table {name!r} holds text that is not Unicode. Mend it. Nothing was charged.")
    kinds = tuple((column, kind) for column, kind, _ in columns)
    return Values(name, kinds, tuple(zip(*(values for _, _, values in columns))))


def _read_frame(name: str, table: Any) -> list[tuple[str, Type, list[Value]]]:
    """The columns of a frame that questions can use."""
    kinds = types_of(table)
    arrow = to_arrow_table(table)
    found = []
    for column, kind in kinds.items():
        if kind is not None:
            values = arrow.column(column).to_pylist()
            found.append((column, kind, [settle(value, kind) for value in values]))
    if not found:
        raise UsageError(f"The public table {name!r} has no column that questions can use. Nothing was charged.")
    return found
