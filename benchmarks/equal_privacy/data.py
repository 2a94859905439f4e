"""The tables that every system is asked about: written once as CSV, so that all of them read the same rows."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

PEOPLE = 1000
GROUPS = (10, 100, 1000)
# Averages, variances and quantiles are asked of so many groups of 1,000 people at once: one question, many errors.
VALUE_GROUPS = 100
# Each person of the table of visits is in 5 of 20 groups, with 3 rows in each; values are in [0, 200].
VISIT_GROUPS, PER_GROUP, MANY_GROUPS = 5, 3, 20
VALUE_HIGH = 200
# The groups that one unit is in, in the tables whose keys are private.
KEYS_OF_A_UNIT = (1, 5, 20)
DISTINCT_VALUES, DISTINCT_ROWS = 200, 20


def write_tables(folder: Path) -> None:
    """All tables, the same in every run."""
    random = np.random.default_rng(20_261_116)
    for groups in GROUPS:
        rows = 20 * groups
        _write(folder / f"groups{groups}.csv", ("id", "g"), zip(range(rows), (i % groups for i in range(rows))))
    _write(folder / "visits.csv", ("unit", "g", "v"), _make_visits(random))
    values = np.round(random.uniform(0, 100, VALUE_GROUPS * PEOPLE), 2)
    _write(folder / "values.csv", ("g", "x"), ((i // PEOPLE, value) for i, value in enumerate(values.tolist())))
    for several in KEYS_OF_A_UNIT:
        _write(folder / f"keys{several}.csv", ("unit", "k"), _make_keys(random, several))
    drawn = [(unit, int(v)) for unit in range(PEOPLE) for v in random.integers(0, DISTINCT_VALUES, DISTINCT_ROWS)]
    _write(folder / "distinct.csv", ("unit", "v"), drawn)
    for name, sums in make_sums(random).items():
        _write(folder / f"{name}.csv", ("id", "x"), enumerate(np.round(sums, 3).tolist()))


def make_sums(random: np.random.Generator) -> dict[str, np.ndarray]:
    """Four columns whose bounds nobody knows: two with a long tail, one like delays of flights, one flat."""
    late = random.exponential(40, 30_000) * (random.random(30_000) < 0.35)
    early = -random.exponential(6, 30_000) * (late == 0)
    return {
        "lognormal10000": random.lognormal(3, 1, 10_000),
        "lognormal1000": random.lognormal(3, 1, 1_000),
        "delays": np.clip(late + early, -60, 1300),
        "uniform": random.uniform(0, 1000, 10_000),
    }


def _make_visits(random: np.random.Generator) -> Iterable[tuple[int, int, float]]:
    for unit in range(PEOPLE):
        for group in random.choice(MANY_GROUPS, VISIT_GROUPS, replace=False).tolist():
            for value in np.round(random.uniform(0, VALUE_HIGH, PER_GROUP), 2).tolist():
                yield unit, group, value


def _make_keys(random: np.random.Generator, several: int) -> Iterable[tuple[int, int]]:
    """Units in ``several`` groups each, whose sizes fall as a power law."""
    weights = 1 / np.arange(1, 1001)
    weights /= weights.sum()
    for unit in range(5_000):
        for key in random.choice(1000, several, replace=False, p=weights).tolist():
            yield unit, key


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def read_table(path: Path) -> dict[str, np.ndarray]:
    """A table that was written here, by columns; whole numbers are integers."""
    with path.open(newline="") as file:
        names = next(csv.reader(file))
    read = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
    return {name: _to_whole(read[:, i]) for i, name in enumerate(names)}


def _to_whole(column: np.ndarray) -> np.ndarray:
    return column.astype(np.int64) if (column == np.floor(column)).all() else column
