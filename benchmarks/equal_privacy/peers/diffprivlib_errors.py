"""Errors of diffprivlib on the shared tables. Runs in its own interpreter: FOLDER REPEATS, prints JSON."""

from __future__ import annotations

import csv
import json
import sys
import warnings
from pathlib import Path

import numpy as np
from benchmarks.equal_privacy.figures import Figure
from diffprivlib import tools

GROUPS, PEOPLE, BOUNDS = 100, 1000, (0, 100)


def main(folder: Path, repeats: int) -> dict[str, Figure]:
    with (folder / "values.csv").open(newline="") as file:
        values = np.array([float(row["x"]) for row in csv.DictReader(file)]).reshape(GROUPS, PEOPLE)
    errors: dict[str, list[float]] = {"AVG, ε = 1": [], "VAR_SAMP, ε = 1": [], "median, ranks, ε = 1": []}
    for row in np.repeat(values, repeats, axis=0):
        errors["AVG, ε = 1"].append(tools.mean(row, epsilon=1.0, bounds=BOUNDS) - row.mean())
        errors["VAR_SAMP, ε = 1"].append(tools.var(row, epsilon=1.0, bounds=BOUNDS) - row.var())
        chosen = tools.median(row, epsilon=1.0, bounds=BOUNDS)
        errors["median, ranks, ε = 1"].append(float((row < chosen).sum()) - PEOPLE / 2)
    return {name: Figure.of_errors(found) for name, found in errors.items()}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    found = main(Path(sys.argv[1]), int(sys.argv[2]))
    print(json.dumps({row: figure.to_json() for row, figure in found.items()}))
