"""The cells of synthetic rows, read back from their values. For checks of a bundle: nothing private is here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.errors import UsageError
from discreet.exact import Flags, Floats, Integers
from discreet.plan.types import Type
from discreet.publish.columns import OTHER_TEXT, PublishedColumn
from discreet.publish.workload import Attributes


def encode_rows(rows: Any, columns: Sequence[PublishedColumn]) -> Integers:
    """The cells of an Arrow table of rows, one line for each column; refused where a value has no cell."""
    if rows.column_names != [column.name for column in columns]:
        raise UsageError("These rows have other columns than the release.")
    return np.stack([_encode(rows.column(column.name), column) for column in columns]).astype(np.int32)


def is_folded(column: PublishedColumn) -> bool:
    """Whether rows say NULL for two cells: NULL, and other values of a type that has no word for them."""
    return column.nullable and column.has_other and column.kind is not Type.TEXT


def fold(table: Floats, attributes: Attributes, columns: Sequence[PublishedColumn]) -> Floats:
    """A table in which cells that rows do not tell apart are one, the first."""
    found = np.array(table, dtype=np.float64)
    for axis, number in enumerate(attributes):
        if is_folded(columns[number]):
            moved = np.moveaxis(found, axis, 0)
            moved[0] += moved[1]
            moved[1] = 0
    return found


def _encode(values: Any, column: PublishedColumn) -> Integers:
    missing = np.asarray(values.is_null().to_numpy())
    lone = 0 if column.nullable else column.first - 1
    if missing.any() and lone < 0:
        raise UsageError(f"The rows have NULL in {column.name!r}, where there is none.")
    found = np.full(len(missing), lone, dtype=np.int64)
    known = values.drop_null()
    cells = _find_listed(known, column) if column.listed else _find_binned(known, column)
    if ((cells < 0) | (cells >= column.size)).any():
        raise UsageError(f"The rows have values in {column.name!r} that are in no cell of the release.")
    found[~missing] = cells
    return found


def _find_listed(known: Any, column: PublishedColumn) -> Integers:
    places = {value: column.first + number for number, value in enumerate(column.values or ())}
    if column.has_other and column.kind is Type.TEXT:
        places.setdefault(OTHER_TEXT, column.first - 1)
    return np.array([places.get(value, -1) for value in known.to_pylist()], dtype=np.int64)


def _find_binned(known: Any, column: PublishedColumn) -> Integers:
    """The bins of numbers and days. Whole numbers in wide cells were rounded down, so a few are in the bin before."""
    if column.origin is not None:
        days = known.to_numpy().astype("datetime64[D]") - np.datetime64(column.origin, "D")
        numbers: Floats = days.astype(np.float64)
    else:
        numbers = known.to_numpy().astype(np.float64)
    steps = (numbers - float(column.low)) / float(column.width)
    places = np.floor(steps + (0.5 if column.points else 1e-9))
    inside: Flags = (places >= -1) & (places <= column.fine)
    bins = np.searchsorted(column.starts, np.clip(places, 0, column.fine - 1), "right") - 1
    return np.where(inside, column.first + bins, -1)
