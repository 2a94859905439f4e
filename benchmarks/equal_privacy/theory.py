"""The best known error of each row, from theory, for the same rows, limits and total loss."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from benchmarks.equal_privacy import data
from benchmarks.equal_privacy.ours import APPROXIMATE, PURE

from discreet.accounting.gdp import delta_of

# The sd of integer Laplace noise of scale 1.
_LAPLACE = math.sqrt(2 * math.exp(-1)) / (1 - math.exp(-1))


def find_best(folder: Path) -> dict[str, float]:
    """What the best mechanism that is known would have, in the rows for which it is known."""
    rows: dict[str, float] = {}
    for budget in (PURE, APPROXIMATE):
        rows |= {f"count by {groups} groups, {budget}": _LAPLACE for groups in data.GROUPS}
        # Complementary sums: noise of scale b = 15 on both halves of one measure.
        scale = data.VISIT_GROUPS * data.PER_GROUP
        rows[f"visits: count, {budget}"] = 2.0 * scale
        rows[f"visits: sum, {budget}"] = math.sqrt(2) * scale * data.VALUE_HIGH
        rows[f"AVG, {budget}"] = 100 / data.PEOPLE
        rows[f"VAR_SAMP, {budget}"] = 6.9
    rows[f"COUNT(DISTINCT v), {PURE}"] = _LAPLACE
    for k in (1, 2, 5, 10, 50):
        rows[f"each of {k} counts, {APPROXIMATE}"] = min(math.sqrt(2) * k, math.sqrt(k) * _one_gaussian())
    rows |= {f"sum, bounds unknown: {name}": _best_clip(folder, name) for name in _SUMS}
    return rows


_SUMS = ("lognormal10000", "lognormal1000", "delays", "uniform")


def _one_gaussian() -> float:
    """The σ of one Gaussian count that is (1, 1e-6)-private: its whole curve, no conversion."""
    low, high = 0.1, 100.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(1 / middle, 1.0) > 1e-6 else (low, middle)
    return high


def _best_clip(folder: Path, name: str) -> float:
    """The error of the best fixed clip, chosen with the data in hand, and the whole ε for the sum."""
    values = data.read_table(folder / f"{name}.csv")["x"]
    clips = np.quantile(np.abs(values), np.linspace(0.5, 1, 501))
    lost = np.array([np.clip(values, -clip, clip).sum() - values.sum() for clip in clips])
    return float(np.sqrt(lost**2 + 2 * clips**2).min())
