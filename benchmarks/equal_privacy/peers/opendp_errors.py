"""Errors of OpenDP on the shared tables. Runs in its own interpreter: FOLDER REPEATS, prints JSON."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import numpy as np
import opendp.prelude as dp
from benchmarks.equal_privacy.figures import Figure

GROUPS, PEOPLE = 100, 1000


def count_groups(folder: Path, groups: int, repeats: int) -> Figure:
    with (folder / f"groups{groups}.csv").open(newline="") as file:
        rows = [int(row["g"]) for row in csv.DictReader(file)]
    space = dp.vector_domain(dp.atom_domain(T="i32")), dp.symmetric_distance()
    counts = space >> dp.t.then_count_by_categories(list(range(groups)), null_category=False, TOA="i32")
    noisy = dp.binary_search_chain(lambda scale: counts >> dp.m.then_laplace(scale), d_in=1, d_out=1.0)
    return Figure.of_errors([np.array(noisy(rows)) - 20 for _ in range(max(1, repeats * 100 // groups))])


def choose_medians(folder: Path, repeats: int) -> Figure:
    with (folder / "values.csv").open(newline="") as file:
        values = np.array([float(row["x"]) for row in csv.DictReader(file)]).reshape(GROUPS, PEOPLE)
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    candidates = [i / 100 for i in range(10_001)]
    noisy = dp.binary_search_chain(
        lambda scale: space >> dp.m.then_private_quantile(dp.max_divergence(), candidates, 0.5, scale),
        d_in=1,
        d_out=1.0,
    )
    return Figure.of_errors(
        [float((row < noisy(row.tolist())).sum()) - PEOPLE / 2 for row in np.repeat(values, repeats, axis=0)]
    )


def main(folder: Path, repeats: int) -> dict[str, Figure]:
    dp.enable_features("contrib")
    found = {}
    for groups in (10, 100, 1000):
        # Laplace noise is its best under both budgets.
        found[f"count by {groups} groups, ε = 1"] = count_groups(folder, groups, repeats)
        found[f"count by {groups} groups, (1, 1e-6)"] = count_groups(folder, groups, repeats)
    found["median, ranks, ε = 1"] = choose_medians(folder, repeats)
    return found


if __name__ == "__main__":
    found = main(Path(sys.argv[1]), int(sys.argv[2]))
    print(json.dumps({row: figure.to_json() for row, figure in found.items()}))
