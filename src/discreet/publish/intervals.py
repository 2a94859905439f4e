"""Tables of a release with their errors, as rows: the value without bias, its interval, and the consistent estimate.

The interval is promised: it is centred on the value without bias, has the stated confidence for each cell by itself
because the law of the noise is known, and is cut at zero, where no count is. The estimate is smoother and adds
up, but has a bias, so no interval is promised around it; it is moved into the interval of its cell.
"""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np

from discreet.exact import Floats
from discreet.publish.columns import PublishedColumn
from discreet.publish.estimates import estimate_table
from discreet.publish.measurements import Measurements
from discreet.publish.workload import Attributes


def find_width(level: Fraction) -> float:
    """How many standard deviations an interval of this confidence is to each side."""
    return NormalDist().inv_cdf((1 + float(level)) / 2)


def cut(middle: float, half: float) -> tuple[float, float]:
    """The interval of a count, half of it to each side: never below zero."""
    return max(0.0, middle - half), max(0.0, middle + half)


def find_half(measured: Measurements, attributes: Attributes, level: Fraction) -> float:
    """Half the width of the interval of each cell of a table."""
    return measured.allocation.find_half(math.sqrt(measured.allocation.cell_variance(attributes)), level)


def tabulate_cells(measured: Measurements, attributes: Attributes, level: Fraction) -> dict[str, Floats]:
    """The numbers of a table: value, low, high and estimate for each cell, in order."""
    value = measured.table(attributes).reshape(-1)
    half = find_half(measured, attributes, level)
    low, high = np.maximum(0, value - half), np.maximum(0, value + half)
    estimate = np.clip(estimate_table(measured, attributes).reshape(-1), low, high)
    return {"value": value, "low": low, "high": high, "estimate": estimate}


def tabulate_rows(
    measured: Measurements, columns: tuple[PublishedColumn, ...], attributes: Attributes, level: Fraction
) -> Any:
    """A table with a row for each cell, named by its columns' labels, as Arrow."""
    import pyarrow as pa

    shape = measured.allocation.workload.shape(attributes)
    places = np.unravel_index(np.arange(int(np.prod(shape, dtype=np.int64))), shape) if shape else ()
    named = {
        columns[column].name: pa.array([columns[column].label(cell) for cell in range(size)]).take(pa.array(place))
        for column, size, place in zip(attributes, shape, places)
    }
    return pa.table(named | {name: pa.array(v) for name, v in tabulate_cells(measured, attributes, level).items()})


def round_cells(table: Any, deviation: float) -> Any:
    """The same rows with whole numbers, none below zero, and what that adds to a true zero on average.

    The mean of max(0, N(0, σ²)) is σ/√(2π): small counts are too large by up to that much, large ones are not.
    """
    import pyarrow as pa

    whole = np.maximum(0, np.round(table.column("value").to_numpy())).astype(np.int64)
    bias = deviation / math.sqrt(2 * math.pi)
    told = {"bias_of_a_true_zero": f"{bias:.4g}"}
    return table.append_column("whole", pa.array(whole)).replace_schema_metadata(told)


def suppress_cells(table: Any, most: float) -> Any:
    """The same rows, with NULL in place of numbers that are too uncertain: half width over estimate above ``most``."""
    import pyarrow as pa

    low, high, estimate = (table.column(name).to_numpy() for name in ("low", "high", "estimate"))
    hidden = (high - low) / 2 > most * estimate
    for name in ("value", "low", "high", "estimate"):
        place = table.column_names.index(name)
        table = table.set_column(place, name, pa.array(table.column(name).to_numpy(), mask=hidden))
    return table
