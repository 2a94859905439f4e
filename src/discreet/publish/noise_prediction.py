"""What noise alone does to a table, before anything is measured: public numbers."""

from __future__ import annotations

import math

from discreet.publish.allocation import Allocation
from discreet.publish.workload import Attributes

# The mean size of a normal number, over two: what noise adds to the total variation distance of one cell.
_NOISE_SHARE = 0.4


def predict_noise(allocation: Allocation, attributes: Attributes, rows: int) -> float:
    """The predicted total variation distance that noise alone makes, at so many rows."""
    cells = allocation.workload.cells(attributes)
    return _NOISE_SHARE * cells * math.sqrt(allocation.cell_variance(attributes)) / rows
