"""Public tables as priors: what was known before of how columns hang together. Estimates lean on them.

A prior costs nothing and promises nothing: it is a public table that the publisher names. Estimates are shrunk towards
it, fitted to the private one-way tables, in place of independence; what the private table says beyond noise wins.
Values without bias and their intervals do not use it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.draw_record import to_plain
from discreet.errors import UsageError
from discreet.exact import Floats
from discreet.late_dataclass import dataclass
from discreet.publish.columns import PublishedColumn
from discreet.publish.constraints import find_cell
from discreet.publish.workload import Attributes

_FIX = "Say columns = ['ward', 'sex'] and table = [['A', 'f', 120], ...], counts or shares. Nothing was charged."


@dataclass(frozen=True)
class Prior:
    """A public table: its columns, and for cells their values and an amount; cells that are not named have none."""

    columns: tuple[str, ...]
    table: tuple[tuple[Any, ...], ...]

    @classmethod
    def from_dict(cls, words: Any) -> Prior:
        """A prior as a plan writes it."""
        if isinstance(words, Prior):
            return words
        if not isinstance(words, Mapping) or set(words) != {"columns", "table"}:
            raise UsageError(f"A prior is a public table. {_FIX}")
        columns, table = words["columns"], words["table"]
        listed = isinstance(columns, list | tuple) and isinstance(table, list | tuple) and len(table) > 0
        if not listed or len(columns) < 2 or len(set(columns)) < len(columns):
            raise UsageError(f"A prior has two columns or more, and cells. {_FIX}")
        for row in table:
            if not isinstance(row, list | tuple) or len(row) != len(columns) + 1 or not _is_amount(row[-1]):
                raise UsageError(f"A cell of a prior has a value for each column and an amount. {_FIX}")
        return cls(tuple(columns), tuple(tuple(map(_settle, row)) for row in table))

    def to_dict(self) -> dict[str, Any]:
        """The prior as plain values."""
        return {"columns": list(self.columns), "table": [[to_plain(value) for value in row] for row in self.table]}

    def to_table(self, columns: Sequence[PublishedColumn]) -> tuple[Attributes, Floats]:
        """The columns by their numbers, in order, and the shares of all of their cells."""
        names = [column.name for column in columns]
        unknown = [name for name in self.columns if name not in names]
        if unknown:
            raise UsageError(f"A prior names {unknown[0]!r}, which is not published. Nothing was charged.")
        order = sorted(range(len(self.columns)), key=lambda place: names.index(self.columns[place]))
        attributes = tuple(names.index(self.columns[place]) for place in order)
        found = np.zeros(tuple(columns[number].size for number in attributes))
        for row in self.table:
            found[tuple(find_cell(columns[n], row[place]) for n, place in zip(attributes, order))] += float(row[-1])
        if not found.sum() > 0:
            raise UsageError(f"A prior without rows says nothing. {_FIX}")
        return attributes, found / found.sum()


def _settle(value: Any) -> Any:
    return float(value) if isinstance(value, Fraction) else value


def _is_amount(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
        return False
    return math.isfinite(value) and value >= 0


def read_priors(priors: Sequence[Prior], columns: Sequence[PublishedColumn]) -> dict[Attributes, Floats]:
    """The tables of all priors; two of the same columns are refused."""
    found: dict[Attributes, Floats] = {}
    for prior in priors:
        attributes, table = prior.to_table(columns)
        if attributes in found:
            raise UsageError("Two priors are about the same columns. Nothing was charged.")
        found[attributes] = table
    return found
