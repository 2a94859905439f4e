"""Two thousand visits of four hundred patients in memory, and their curator."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import discreet
from discreet.curator import Curator

VISITS = pa.table(
    {
        "patient": [i % 400 for i in range(2000)],
        "ward": ["ABC"[i % 3] if i % 10 else None for i in range(2000)],
        "town": ["rare" if i == 7 else "north" if i % 2 else "south" for i in range(2000)],
        "age": [(7 * (i % 400)) % 97 for i in range(2000)],
    }
)
BY_WARD = "SELECT ward, COUNT(*) AS n, AVG(age) AS age FROM visits GROUP BY ward"


def curator(budget: discreet.Budget | None = None, **changes: Any) -> Curator:
    said: dict[str, Any] = {
        "unit": "patient",
        "max_groups": 3,
        "max_rows_per_group": 5,
        "bounds": {"age": (0, 110)},
        "keys": {"ward": ["A", "B", "C"]},
        "budget": budget or discreet.Budget(epsilon=20, delta=1e-6),
    }
    return discreet.curate({"visits": VISITS}, **(said | changes))
