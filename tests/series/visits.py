"""Visits by day, for the tests of series."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa

import discreet
from discreet.curator import Curator
from discreet.series.running_series import RunningSeries

FIRST = dt.date(2024, 1, 1)
QUESTION = "SELECT COUNT(*) AS n FROM visits"


def make_visits(rows: list[tuple[int | None, int]]) -> Any:
    """A table of (patient, day)."""
    days = [None if day is None else FIRST + dt.timedelta(days=day) for _, day in rows]
    return pa.table(
        {"patient": pa.array([patient for patient, _ in rows], pa.int64()), "day": pa.array(days, pa.date32())}
    )


def open_visits(rows: list[tuple[int | None, int]], **more: Any) -> Curator:
    declared: dict[str, Any] = {"unit": "patient", "max_rows": 9, "budget": discreet.Budget(epsilon=10, delta=1e-6)}
    return discreet.curate({"visits": make_visits(rows)}, **(declared | more))


def open_any(curator: Curator, **more: Any) -> RunningSeries:
    stated: dict[str, Any] = {
        "name": "daily",
        "by": "day",
        "first": FIRST,
        "periods": 6,
        "days_per_unit": 2,
        "epsilon": 4,
    }
    return curator.series(QUESTION, **(stated | more))


def draw_rows(seed: int, patients: int = 40, days: int = 6) -> list[tuple[int | None, int]]:
    chance = np.random.default_rng(seed)
    return [(int(p), int(d)) for p, d in zip(chance.integers(0, patients, 200), chance.integers(0, days, 200))]
