"""A metered look at single columns: the private counts of each, bought once more, beside those of the synthetic rows.

*Statement.* The one-way tables of all columns of a release get noise of their own, as ``direct_tables`` states: normal
noise at the μ² of the offer, or Laplace noise at its ε where the budget is of pure ε. Rows come from the bundle's
measurements and its public seed. So what is shown of them costs nothing, and the private counts cost what was offered.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from discreet import parameters
from discreet.accounting.account import compose
from discreet.curator import Curator
from discreet.errors import RequestConflict, UsageError
from discreet.exact import Floats, Integers
from discreet.gaussian_price import find_epsilon, find_mu_squared
from discreet.late_dataclass import dataclass
from discreet.ledger.ledger import Charge
from discreet.offer import Offer
from discreet.parameters import Number
from discreet.publish.bundle import Bundle
from discreet.publish.columns import PublishedColumn
from discreet.publish.design import ReleaseDesign
from discreet.publish.direct_tables import DirectAllocation, allocate_directly
from discreet.publish.intervals import find_half, tabulate_cells
from discreet.publish.measurements import measure
from discreet.publish.metered_check import make_bundle_cells, open_checked
from discreet.publish.method import find_terms
from discreet.publish.page_figures import draw_counts
from discreet.publish.records import dump_measurements, load_measurements
from discreet.publish.release_plan import ReleasePlan
from discreet.publish.workload import Workload

PREFIX = "publish columns: "


@dataclass(frozen=True)
class ComparedColumn:
    """One column: private counts with noise and intervals, and the counts of the synthetic rows."""

    column: PublishedColumn
    value: Floats
    low: Floats
    high: Floats
    half: float
    rows: Integers

    @property
    def outside(self) -> int:
        """In how many cells the rows are outside of the interval."""
        return int(((self.rows < self.low) | (self.rows > self.high)).sum())

    @property
    def distance(self) -> float:
        """The part of rows that would have to change to have the noisy counts: noise makes it larger than it is."""
        return float(np.abs(self.rows - np.maximum(0, self.value)).sum() / 2 / max(1, self.rows.sum()))


@dataclass(frozen=True)
class ColumnReport:
    """All columns of a release, compared. In a notebook it is a picture for each."""

    columns: tuple[ComparedColumn, ...]

    def to_rows(self) -> list[dict[str, Any]]:
        """A row for each cell: private count with its interval, and synthetic rows."""
        return [
            {
                "column": each.column.name,
                "cell": each.column.label(cell),
                "value": float(each.value[cell]),
                "low": float(each.low[cell]),
                "high": float(each.high[cell]),
                "rows": int(each.rows[cell]),
            }
            for each in self.columns
            for cell in range(each.column.size)
        ]

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        told = [
            {"column": each.column.name, "cells": each.column.size, "outside": each.outside, "distance": each.distance}
            for each in self.columns
        ]
        return {"score": "columns", "columns": told, "cells": self.to_rows()}

    def __str__(self) -> str:
        return "\n".join(
            f"{each.column.name}: rows are outside of {each.outside} of {each.column.size} intervals; "
            f"{100 * each.distance:.2g} % would have to change, noise included"
            for each in self.columns
        )

    __repr__ = __str__

    def draw(self) -> str:
        """A picture for each column, as HTML."""
        words = "Bars are private counts with new noise, lines their intervals; marks are the synthetic rows."
        figures = "".join(
            draw_counts(each.column, [each.value, each.low, each.high], each.half, each.rows) for each in self.columns
        )
        return f"<p>{words}</p>{figures}"

    def _repr_html_(self) -> str:
        return self.draw()


def check_columns(
    plan: str | Path | Mapping[str, Any] | ReleasePlan,
    bundle: Bundle | str | Path,
    *,
    curator: Curator,
    analyst: str = "analyst",
    project: str = "",
    level: Number = 0.95,
    epsilon: Number | None = None,
    rho: Number | None = None,
    share: Number | None = None,
) -> ColumnReport:
    """Buy the private counts of every column once more, and set the bundle's synthetic rows beside them.

    The same look again is free, and gives the same numbers.
    """
    settled, opened = open_checked(plan, bundle, curator)
    offer = Offer(epsilon=epsilon, rho=rho, share=share, level=level, alone=epsilon is not None)
    allocation, charge = _find_price(settled, opened, curator, offer, analyst=analyst, project=project)

    def draw(counted: tuple[Integers, ...]) -> dict[str, Any]:
        tables, _ = settled.split_tables(counted, allocation.workload)
        return dump_measurements(measure(tables, allocation))

    try:
        reservation, record = curator.draw_tables(settled.tabulate(allocation.workload), charge, draw)
    except RequestConflict as error:
        raise UsageError("This look was charged with another plan or other data. Nothing was charged.") from error
    if reservation.record is None:
        curator.ledger.commit(reservation, {"publish columns": settled.plan.name})
    return _compare(settled.columns, record, make_bundle_cells(opened), parameters.read_probability(level, "level"))


def _compare(
    columns: Sequence[PublishedColumn], record: Mapping[str, Any], rows: Integers, level: Fraction
) -> ColumnReport:
    measured = load_measurements(record)
    found = []
    for number, column in enumerate(columns):
        cells = tabulate_cells(measured, (number,), level)
        counts = np.bincount(rows[number], minlength=column.size)
        half = find_half(measured, (number,), level)
        found.append(ComparedColumn(column, cells["value"], cells["low"], cells["high"], half, counts))
    return ColumnReport(tuple(found))


def _find_price(
    settled: ReleaseDesign, bundle: Bundle, curator: Curator, offer: Offer, *, analyst: str, project: str
) -> tuple[DirectAllocation, Charge]:
    """The noise that the offer buys, and the charge for it."""
    version = curator.find_version(settled.question)
    facts = [PREFIX, curator.name, version, settled.plan.digest, repr(settled.columns)]
    facts += [bundle.manifest["rows"]["sha256"], repr(settled.bounded), repr(curator.budget)]
    identity = hashlib.sha256("\n".join(facts).encode()).hexdigest()
    terms, known = curator.terms_for(analyst), curator.ledger.find_paid(identity, analyst)
    pure = terms.budget.notion == "pure"
    paid = (find_epsilon if pure else find_mu_squared)(offer, terms) if known is None else Fraction(known)
    wanted = Workload.of_ways(settled.workload.sizes, 1)
    allocation = allocate_directly(wanted, paid, pure=pure, **find_terms(settled))
    return allocation, Charge(
        request=PREFIX + settled.plan.name,
        analyst=analyst,
        dataset=curator.name,
        identity=identity,
        question=f"{PREFIX}{settled.plan.name} ({identity})",
        events=(allocation.noise.event,),
        loss=compose([allocation.noise.event]).loss,
        project=project,
        version=version,
        paid=str(paid),
    )
