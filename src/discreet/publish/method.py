"""Methods: which tables of a design are measured at a price, and why. The choice follows from public facts alone.

``auto`` measures residuals of all tables at once (*one shot*). A table that would be mostly noise is dropped: while
some table's predicted error from noise alone, 0.4·cells·deviation/rows, is above 0.3, the worst third of those goes. If
no table of several columns is left, columns are released as if they were independent. A dropped table is estimated from
smaller ones, so a strong dependence in it is lost; the page and the manifest name these tables.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from discreet.late_dataclass import dataclass
from discreet.publish.allocation import Allocation, allocate
from discreet.publish.design import ReleaseDesign
from discreet.publish.measurements import find_cells
from discreet.publish.row_fitting import ROUNDS
from discreet.publish.workload import Attributes, Workload

MOST_NOISE = 0.3
# The mean size of a normal number, over two: what noise adds to the total variation distance of one cell.
_NOISE_SHARE = 0.4
# Where nobody says how many rows there are, a table is dropped only if it would be noise at this many.
UNKNOWN_ROWS = 10_000_000


@dataclass(frozen=True)
class Method:
    """A priced design: what is measured, what was dropped, and the reason in words."""

    name: str
    reason: str
    allocation: Allocation
    dropped: tuple[Attributes, ...]
    rows: int | None

    @property
    def workload(self) -> Workload:
        """What is measured."""
        return self.allocation.workload

    def predict_error(self, attributes: Attributes) -> float | None:
        """The part of a table's rows that noise alone would misplace, before shrinking; None without a size."""
        if self.rows is None or not self.allocation.covers(attributes):
            return None
        return predict_noise(self.allocation, attributes, self.rows)

    @property
    def numbers(self) -> int:
        """How many noisy numbers are drawn."""
        return find_cells(self.allocation)

    @property
    def seconds(self) -> int:
        """Roughly the CPU time: counting tables, drawing noise, and fitting rows to tables in rounds."""
        rows, tables = self.rows or 0, sum(len(part) > 1 for part in self.workload.weights)
        return math.ceil(5e-8 * rows * tables + 2.5e-8 * rows * tables * ROUNDS + 5e-6 * self.numbers + 1)

    @property
    def memory_megabytes(self) -> int:
        """Roughly what the work takes: exact, noisy and estimated numbers, and rows."""
        rows = (self.rows or 0) * len(self.workload.sizes) * 8
        return math.ceil((60 * self.numbers + rows) / 1e6) + 100


def predict_noise(allocation: Allocation, attributes: Attributes, rows: int) -> float:
    """The predicted total variation distance that noise alone makes, at so many rows."""
    cells = allocation.workload.cells(attributes)
    return _NOISE_SHARE * cells * math.sqrt(allocation.cell_variance(attributes)) / rows


def choose_method(design: ReleaseDesign, mu_squared: Fraction, rows: int | None) -> Method:
    """What is measured at this price, where there are about so many rows."""
    terms = {"steps": design.steps, "max_rows": design.max_rows, "neighbours": design.neighbours, "unit": design.unit}
    allocation, dropped = drop_noise(design.workload, mu_squared, UNKNOWN_ROWS if rows is None else rows, **terms)
    several = sum(len(part) > 1 for part in allocation.workload.weights)
    return Method(*_describe(several, len(dropped), rows), allocation, dropped, rows)


def drop_noise(
    workload: Workload, mu_squared: Fraction, rows: int, **terms: Any
) -> tuple[Allocation, tuple[Attributes, ...]]:
    """The allocation after tables that would be mostly noise are dropped, and these tables."""
    dropped: list[Attributes] = []
    while True:
        allocation = allocate(workload, mu_squared, **terms)
        several = [part for part in workload.weights if len(part) > 1]
        noise = {part: predict_noise(allocation, part, rows) for part in several}
        worst = sorted((part for part in several if noise[part] > MOST_NOISE), key=lambda part: -noise[part])
        if not worst:
            return allocation, tuple(sorted(dropped))
        gone = worst[: math.ceil(len(worst) / 3)]
        dropped += gone
        workload = workload.without(gone)


def _describe(measured: int, dropped: int, rows: int | None) -> tuple[str, str]:
    size = "an unknown number of rows" if rows is None else f"about {rows:,} rows"
    if not measured and not dropped:
        return "one-way", "only tables of single columns are asked for"
    if not measured:
        return "independent", f"at this price and {size} every table of several columns would be mostly noise"
    if dropped:
        return "one shot", f"{dropped} of {measured + dropped} tables would be mostly noise at {size} and are dropped"
    return "one shot", f"all {measured} tables of several columns can be told from noise at {size}"
