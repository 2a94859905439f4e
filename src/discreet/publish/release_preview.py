"""Previews of releases: what it would cost, what would be measured, how exact, and why."""

from __future__ import annotations

import math
from typing import Any

from discreet import parameters
from discreet.late_dataclass import dataclass
from discreet.publish.design import ReleaseDesign
from discreet.publish.method import Method
from discreet.publish.priced_parts import PricedParts


@dataclass(frozen=True, kw_only=True)
class ReleasePreview:
    """A priced release that was not drawn. ``paid`` says that it was charged before, so that writing it is free.

    ``taken`` says that its name was charged with another plan or for other data, so that it would be refused.
    """

    design: ReleaseDesign
    method: Method
    parts: PricedParts
    # What questions and series would be, a line each; told at once, because the ledger is closed later.
    lines: tuple[str, ...]
    cost: str
    remaining: str
    fits: bool
    paid: bool
    taken: bool = False

    def tables(self) -> list[dict[str, Any]]:
        """The tables with their errors, the largest last: the half width of a cell's interval, and the noise in all."""
        level, allocation = parameters.read_probability(self.design.plan.level, "level"), self.method.allocation
        found = []
        for part in self.method.workload.closure:
            share = self.method.predict_error(part)
            found.append(
                {
                    "table": " × ".join(self.design.names[column] for column in part) or "all rows",
                    "cells": self.method.workload.cells(part),
                    "error": allocation.find_half(math.sqrt(allocation.cell_variance(part)), level),
                    "noise": share,
                }
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """The preview as plain values."""
        return {
            "name": self.design.plan.name,
            "cost": self.cost,
            "remaining": self.remaining,
            "fits": self.fits,
            "paid": self.paid,
            "taken": self.taken,
            "method": self.method.name,
            "reason": self.method.reason,
            "dropped": [[self.design.names[column] for column in part] for part in self.method.dropped],
            "numbers": self.method.numbers,
            "megabytes": self.method.memory_megabytes,
            "seconds": self.method.seconds,
            "tables": self.tables(),
            "parts": list(self.lines),
        }

    def __str__(self) -> str:
        lines = [
            f"release   {self.design.plan.name}: {', '.join(self.design.names) or 'no columns'}",
            f"cost      {'already paid for: free' if self.paid else self.cost}; left {self.remaining}",
            f"method    {self.method.name}: {self.method.reason}",
            f"work      {self.method.numbers:,} noisy numbers, about {self.method.seconds} s and "
            f"{self.method.memory_megabytes} MB",
        ]
        lines += self.lines
        if self.taken:
            lines.append("name      was charged with another plan, or for other data: give this release another name")
        if not self.fits:
            lines.append("budget    this is more than is left: it would be refused")
        if self.method.rows is None:
            lines.append(
                "rows      unknown: say rows = ... in the plan, if it is public, to leave out what noise hides"
            )
        for table in self.tables()[:12]:
            share = "" if table["noise"] is None else f", noise {100 * table['noise']:.1f} % of rows"
            lines.append(f"  {table['table']}: {table['cells']:,} cells, ± {table['error']:.4g} each{share}")
        if len(self.method.workload.closure) > 12:
            lines.append(f"  and {len(self.method.workload.closure) - 12} more tables")
        return "\n".join(lines)

    __repr__ = __str__
