"""The best known error of each row, from theory, for the same rows, limits and total loss."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import NormalDist

import numpy as np
from benchmarks.equal_privacy import data
from benchmarks.equal_privacy.figures import Figure
from benchmarks.equal_privacy.ours import APPROXIMATE, PURE

from discreet.accounting.gdp import delta_of

BUDGET_DELTA = 1e-6


def find_best(folder: Path) -> dict[str, Figure]:
    """What the best mechanism that is known would have, in the rows for which it is known."""
    rows: dict[str, float] = {}
    quartiles = _choose_quartiles(folder)
    for budget in (PURE, APPROXIMATE):
        rows |= {f"count by {groups} groups, {budget}": _laplace(1) for groups in data.GROUPS}
        # Complementary sums: noise of scale b = 15 on both halves of one measure.
        scale = data.VISIT_GROUPS * data.PER_GROUP
        rows[f"visits: count, {budget}"] = 2.0 * scale
        rows[f"visits: sum, {budget}"] = math.sqrt(2) * scale * data.VALUE_HIGH
        rows |= {f"{name}, {budget}": error for name, error in _best_moments(folder).items()}
        rows[f"median, ranks, {budget}"] = _choose_median(folder)
        rows[f"three quantiles, ranks, {budget}"] = quartiles
    rows[f"COUNT(DISTINCT v), {PURE}"] = _laplace(1)
    for k in (1, 2, 5, 10, 50):
        rows[f"each of {k} counts, {APPROXIMATE}"] = min(_laplace(k), math.sqrt(k) * _one_gaussian(BUDGET_DELTA))
    for several in data.KEYS_OF_A_UNIT:
        rows[f"keys named, {several} of a unit, {APPROXIMATE}"] = _name_most(folder, several)
    rows |= {f"sum, bounds unknown: {name}": _best_clip(folder, name) for name in _SUMS}
    return {row: Figure(error) for row, error in rows.items()}


_SUMS = ("lognormal10000", "lognormal1000", "delays", "uniform")


def _laplace(scale: float) -> float:
    """The sd of integer Laplace noise."""
    return math.sqrt(2 * math.exp(-1 / scale)) / (1 - math.exp(-1 / scale))


def _best_moments(folder: Path) -> dict[str, float]:
    """AVG and VAR_SAMP with Laplace noise of scale 1 on parts of a row that sum to 1, to first order in the noise.

    AVG: the parts 1 − t and t, where t is a value as a part of its bounds. VAR_SAMP: (1 − t)², 2t(1 − t) and t². The
    noise of each part, times the derivative of the statistic by it.
    """
    values = data.read_table(folder / "values.csv")["x"].reshape(data.VALUE_GROUPS, -1) / 100
    mean, square = values.mean(axis=1), np.square(values).mean(axis=1)
    by_part = {
        "AVG": np.array([mean, 1 - mean]),
        "VAR_SAMP": 100 * np.array([c - (square - 2 * mean**2) for c in (0 * mean, -mean, 1 - 2 * mean)]),
    }
    size = 100 / data.PEOPLE
    return {name: size * math.sqrt(float(2 * (parts**2).sum(axis=0).mean())) for name, parts in by_part.items()}


_PLACES = np.arange(10_001) / 100


def _choose_median(folder: Path) -> float:
    """The exponential mechanism over all places, P ∝ exp(−ε·|rank error|), from its law."""
    squares = []
    for row in _read_sorted(folder):
        law, below = _law_of_rank(row, data.PEOPLE / 2, 1.0)
        squares.append(float((law * (below - data.PEOPLE / 2) ** 2).sum()))
    return math.sqrt(float(np.mean(squares)))


def _choose_quartiles(folder: Path) -> float:
    """The median, then the medians of both sides that it leaves, by exponential mechanisms; the best of 5 splits of ε.

    The two sides have no row in common, so together they cost as much as one (Kaplan, Schnapp and Stemmer 2022). Rows
    at the median itself, of which there are few, are put above. Choosing all three at once (Gillenwater, Joseph and
    Kulesza 2021), with P ∝ exp(−ε/3·Σ|errors of the four gaps|) because one row moves that sum by up to 3/2, is worse:
    3.24 ranks where this has 3.05, for many rows without ties.
    """
    rows = _read_sorted(folder)
    splits = np.linspace(0.44, 0.52, 5)
    return min(math.sqrt(float(np.mean([_find_quartile_square(row, split) for row in rows]))) for split in splits)


def _find_quartile_square(row: np.ndarray, first: float) -> float:
    """The mean square error of three quartiles of a group, where the median takes this part of ε."""
    law, below = _law_of_rank(row, data.PEOPLE / 2, first)
    found = float((law * (below - data.PEOPLE / 2) ** 2).sum())
    chances = np.bincount(below, weights=law)
    for rank in np.flatnonzero(chances > 1e-6).tolist():
        for target, true in ((rank / 2, 0.25), ((rank + data.PEOPLE) / 2, 0.75)):
            side, at = _law_of_rank(row, target, 1 - first)
            found += float(chances[rank] * (side * (at - true * data.PEOPLE) ** 2).sum())
    return found / 3


def _law_of_rank(row: np.ndarray, target: float, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """How likely each place is for the median of rows whose middle has this rank, and how many rows are below it."""
    below, within = np.searchsorted(row, _PLACES - 1e-6), np.searchsorted(row, _PLACES + 1e-6)
    law = np.exp(-epsilon * np.maximum(0, np.maximum(below - target, target - within)))
    return law / law.sum(), below


def _read_sorted(folder: Path) -> np.ndarray:
    return np.sort(data.read_table(folder / "values.csv")["x"].reshape(data.VALUE_GROUPS, -1))


def _name_most(folder: Path, several: int) -> float:
    """Keys named by noisy counts of units above a bar, in the best way: Laplace noise with all of δ for the bar, or
    Gaussian noise with the best part of it.
    """
    sizes = np.unique(data.read_table(folder / f"keys{several}.csv")["k"], return_counts=True)[1]
    bar = 1 + several * math.log(several / (2 * BUDGET_DELTA))
    by_laplace = np.where(sizes < bar, np.exp((sizes - bar) / several) / 2, 1 - np.exp((bar - sizes) / several) / 2)
    found = [float(by_laplace.sum())]
    for part in np.linspace(0.05, 0.95, 19):
        sigma = math.sqrt(several) * _one_gaussian((1 - part) * BUDGET_DELTA)
        bar = 1 - sigma * NORMAL.inv_cdf(part * BUDGET_DELTA / several)
        found.append(math.fsum(1 - NORMAL.cdf((bar - int(size)) / sigma) for size in sizes))
    return max(found)


NORMAL = NormalDist()


def _one_gaussian(delta: float) -> float:
    """The σ of one Gaussian count that is (1, δ)-private: its whole curve, no conversion."""
    low, high = 0.1, 100.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(1 / middle, 1.0) > delta else (low, middle)
    return high


def _best_clip(folder: Path, name: str) -> float:
    """The error of the best fixed clip, chosen with the data in hand, and the whole ε for the sum."""
    values = data.read_table(folder / f"{name}.csv")["x"]
    clips = np.quantile(np.abs(values), np.linspace(0.5, 1, 501))
    lost = np.array([np.clip(values, -clip, clip).sum() - values.sum() for clip in clips])
    return float(np.sqrt(lost**2 + 2 * clips**2).min())
