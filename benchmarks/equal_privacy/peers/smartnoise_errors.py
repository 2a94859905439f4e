"""Errors of SmartNoise SQL on the shared tables. Runs in its own interpreter: FOLDER REPEATS, prints JSON."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import pandas as pd
import snsql
from benchmarks.equal_privacy.figures import Figure


def main(folder: Path, repeats: int) -> dict[str, Figure]:
    found: dict[str, Figure] = {}
    for groups in (10, 100, 1000):
        frame = pd.read_csv(folder / f"groups{groups}.csv")
        columns = {"g": {"type": "int", "lower": 0, "upper": groups - 1}, "id": {"type": "int", "private_id": True}}
        options = {"max_ids": 1, "row_privacy": False, "censor_dims": False, "clamp_counts": False}
        metadata = {"": {"": {"t": options | columns}}}
        errors: list[float] = []
        for _ in range(max(1, repeats * 100 // groups)):
            privacy = snsql.Privacy(epsilon=1.0, delta=1e-6)
            reader = snsql.from_connection(frame, privacy=privacy, metadata=metadata)
            rows = reader.execute("SELECT g, COUNT(*) AS n FROM t GROUP BY g")[1:]
            errors.extend(float(row[1]) - 20 for row in rows)
        error = Figure.of_errors(errors)
        found |= {f"count by {groups} groups, ε = 1": error, f"count by {groups} groups, (1, 1e-6)": error}
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    found = main(Path(sys.argv[1]), int(sys.argv[2]))
    print(json.dumps({row: figure.to_json() for row, figure in found.items()}))
