"""Errors of Tumult Analytics on the shared tables. Runs in its own interpreter: FOLDER REPEATS, prints JSON."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from benchmarks.equal_privacy.figures import Figure
from pyspark.sql import SparkSession
from tmlt.analytics import AddOneRow, ApproxDPBudget, KeySet, PureDPBudget, QueryBuilder, Session

BUDGETS = {"ε = 1": PureDPBudget(1), "(1, 1e-6)": ApproxDPBudget(1, 1e-6)}


def main(folder: Path, repeats: int) -> dict[str, Figure]:
    os.environ["PYSPARK_PYTHON"] = sys.executable  # its workers need the same packages
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    found = {}
    for groups in (10, 100, 1000):
        frame = spark.read.csv(str(folder / f"groups{groups}.csv"), header=True, inferSchema=True)
        keys = KeySet.from_dict({"g": list(range(groups))})
        for name, budget in BUDGETS.items():
            errors: list[float] = []
            for _ in range(min(repeats, 5) if groups < 1000 else 1):
                session = Session.from_dataframe(budget, "t", frame, protected_change=AddOneRow())
                answer = session.evaluate(QueryBuilder("t").groupby(keys).count(), budget)
                errors.extend(row["count"] - 20 for row in answer.collect())
            found[f"count by {groups} groups, {name}"] = Figure.of_errors(errors)
    spark.stop()
    return found


if __name__ == "__main__":
    found = main(Path(sys.argv[1]), int(sys.argv[2]))
    print(json.dumps({row: figure.to_json() for row, figure in found.items()}))
