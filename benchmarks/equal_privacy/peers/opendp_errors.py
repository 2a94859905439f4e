"""Errors of OpenDP on the shared tables. Runs in its own interpreter: FOLDER REPEATS, prints JSON."""

from __future__ import annotations

import csv
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import opendp.prelude as dp

GROUPS, PEOPLE = 100, 1000


def count_groups(folder: Path, groups: int, repeats: int) -> float:
    with (folder / f"groups{groups}.csv").open(newline="") as file:
        rows = [int(row["g"]) for row in csv.DictReader(file)]
    space = dp.vector_domain(dp.atom_domain(T="i32")), dp.symmetric_distance()
    counts = space >> dp.t.then_count_by_categories(list(range(groups)), null_category=False, TOA="i32")
    noisy = dp.binary_search_chain(lambda scale: counts >> dp.m.then_laplace(scale), d_in=1, d_out=1.0)
    return rms([np.array(noisy(rows)) - 20 for _ in range(max(1, repeats * 100 // groups))])


def choose_medians(folder: Path, repeats: int) -> float:
    with (folder / "values.csv").open(newline="") as file:
        values = np.array([float(row["x"]) for row in csv.DictReader(file)]).reshape(GROUPS, PEOPLE)
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    candidates = [i / 100 for i in range(10_001)]
    noisy = dp.binary_search_chain(
        lambda scale: space >> dp.m.then_private_quantile(dp.max_divergence(), candidates, 0.5, scale),
        d_in=1,
        d_out=1.0,
    )
    return rms([float((row < noisy(row.tolist())).sum()) - PEOPLE / 2 for row in np.repeat(values, repeats, axis=0)])


def rms(errors: Any) -> float:
    return math.sqrt(float(np.mean(np.square(np.concatenate([np.ravel(e) for e in errors])))))


def main(folder: Path, repeats: int) -> dict[str, float]:
    dp.enable_features("contrib")
    found = {}
    for groups in (10, 100, 1000):
        # Laplace noise is its best under both budgets.
        found[f"count by {groups} groups, ε = 1"] = count_groups(folder, groups, repeats)
        found[f"count by {groups} groups, (1, 1e-6)"] = count_groups(folder, groups, repeats)
    found["median, ranks, ε = 1"] = choose_medians(folder, 1)
    return found


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]))))
