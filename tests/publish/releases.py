"""A small clinic and plans for its release, for the tests of publish."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa

import discreet
from discreet.curator import Curator

ROWS = 6_000


def make_visits(seed: int = 0, rows: int = ROWS) -> Any:
    """Visits in which ward and sex hang together, with NULL, other values, round costs and days."""
    chance = np.random.default_rng(seed)
    ward = chance.choice(["A", "B", "C", "Z"], rows, p=[0.5, 0.3, 0.18, 0.02])
    sex = np.where(chance.random(rows) < 0.3 + 0.4 * (ward == "A"), "f", "m")
    age = np.clip(chance.normal(50, 20, rows), 0, 100).astype(np.int64)
    days = np.datetime64("2024-01-01") + chance.integers(0, 300, rows)
    return pa.table(
        {
            "patient": chance.integers(0, rows // 3, rows),
            "ward": ward,
            "sex": sex,
            "age": pa.array(age, mask=chance.random(rows) < 0.05),
            "cost": np.round(chance.gamma(2, 30, rows) / 10) * 100,
            "day": pa.array(days.astype("datetime64[D]")),
        }
    )


def open_clinic(visits: Any | None = None, **more: Any) -> Curator:
    """A curator of the visits."""
    declared: dict[str, Any] = {
        "unit": "patient",
        "max_rows": 4,
        "bounds": {"age": (0, 100), "cost": (0, 5000)},
        "keys": {"ward": ["A", "B", "C"], "sex": ["f", "m"]},
        "budget": discreet.Budget(epsilon=10, delta=1e-6),
    }
    return discreet.curate({"visits": make_visits() if visits is None else visits}, **(declared | more))


def make_plan(**more: Any) -> dict[str, Any]:
    """A plan for all columns of the visits."""
    return {
        "name": "visits",
        "table": "visits",
        "rows": ROWS,
        "epsilon": 4,
        "columns": {
            "ward": {},
            "sex": {},
            "age": {"bins": 10},
            "cost": {"resolution": 100, "bins": 10},
            "day": {"low": dt.date(2024, 1, 1), "high": dt.date(2024, 12, 31), "bins": 12},
        },
    } | more
