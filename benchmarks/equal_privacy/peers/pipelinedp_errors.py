"""Errors of PipelineDP on the shared tables. Runs in its own interpreter: FOLDER REPEATS, prints JSON."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pipeline_dp
from benchmarks.equal_privacy.figures import Figure

METRICS = pipeline_dp.Metrics
BUDGETS = {"ε = 1": (1.0, 1e-15, "LAPLACE"), "(1, 1e-6)": (1.0, 1e-6, "GAUSSIAN")}


def read(path: Path) -> list[tuple[float, ...]]:
    with path.open(newline="") as file:
        rows = csv.reader(file)
        next(rows)
        return [tuple(map(float, row)) for row in rows]


def aggregate(rows: Sequence[tuple[int, int, float]], budget: str, public: Any, metrics: Any, **limits: Any) -> Any:
    """(unit, group, value) rows, aggregated once with the whole budget."""
    epsilon, delta, noise = BUDGETS[budget]
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=delta)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    params = pipeline_dp.AggregateParams(noise_kind=pipeline_dp.NoiseKind[noise], metrics=metrics, **limits)
    columns = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda r: r[0], partition_extractor=lambda r: r[1], value_extractor=lambda r: r[2]
    )
    found = engine.aggregate(rows, params, columns, public_partitions=public)
    accountant.compute_budgets()
    return dict(found)


def main(folder: Path, repeats: int) -> dict[str, Figure]:
    found: dict[str, Figure] = {}
    for budget in BUDGETS:
        for groups in (10, 100, 1000):
            rows = [(int(i), int(g), 0.0) for i, g in read(folder / f"groups{groups}.csv")]
            answers = [
                aggregate(rows, budget, list(range(groups)), [METRICS.COUNT],
                          max_partitions_contributed=1, max_contributions_per_partition=1)
                for _ in range(max(1, repeats * 100 // groups))
            ]  # fmt: skip  # one call
            found[f"count by {groups} groups, {budget}"] = Figure.of_errors(
                [r.count - 20 for a in answers for r in a.values()]
            )
        found |= visits(folder, budget, repeats)
        found |= values(folder, budget, repeats)
    for several in (1, 5, 20):
        keyed = [(int(u), int(k), 0.0) for u, k in read(folder / f"keys{several}.csv")]
        named = [
            len(aggregate(keyed, "(1, 1e-6)", None, [METRICS.COUNT],
                          max_partitions_contributed=several, max_contributions_per_partition=1))
            for _ in range(repeats)
        ]  # fmt: skip  # one call
        found[f"keys named, {several} of a unit, (1, 1e-6)"] = Figure.of_counts(named)
    return found


def visits(folder: Path, budget: str, repeats: int) -> dict[str, Figure]:
    rows = [(int(u), int(g), v) for u, g, v in read(folder / "visits.csv")]
    counts, sums = np.zeros(20), np.zeros(20)
    for _, group, value in rows:
        counts[group] += 1
        sums[group] += value
    errors: dict[str, list[float]] = {"count": [], "sum": []}
    for _ in range(repeats):
        answer = aggregate(
            rows, budget, list(range(20)), [METRICS.COUNT, METRICS.SUM],
            max_partitions_contributed=5, max_contributions_per_partition=3, min_value=0, max_value=200,
        )  # fmt: skip  # one call
        for group, row in answer.items():
            errors["count"].append(row.count - counts[group])
            errors["sum"].append(row.sum - sums[group])
    return {f"visits: {name}, {budget}": Figure.of_errors(found) for name, found in errors.items()}


def values(folder: Path, budget: str, repeats: int) -> dict[str, Figure]:
    rows = [(i, int(g), x) for i, (g, x) in enumerate(read(folder / "values.csv"))]
    table = np.array([x for _, _, x in rows]).reshape(100, -1)
    limits = {"max_partitions_contributed": 1, "max_contributions_per_partition": 1, "min_value": 0, "max_value": 100}
    found: dict[str, Figure] = {}
    asked = {"AVG": METRICS.MEAN, "VAR_SAMP": METRICS.VARIANCE}
    for name, metric in asked.items():
        errors = []
        for _ in range(repeats):
            for group, row in aggregate(rows, budget, list(range(100)), [metric], **limits).items():
                true = table[group].mean() if name == "AVG" else table[group].var(ddof=1)
                errors.append((row.mean if name == "AVG" else row.variance) - true)
        found[f"{name}, {budget}"] = Figure.of_errors(errors)
    for title, shares in (("median", (50,)), ("three quantiles", (25, 50, 75))):
        calls = [METRICS.PERCENTILE(p) for p in shares]
        ranks = [
            float((table[group] < getattr(row, f"percentile_{p}")).sum()) - 10 * p
            for _ in range(max(1, repeats // 5))
            for group, row in aggregate(rows, budget, list(range(100)), calls, **limits).items()
            for p in shares
        ]
        found[f"{title}, ranks, {budget}"] = Figure.of_errors(ranks)
    return found


if __name__ == "__main__":
    found = main(Path(sys.argv[1]), int(sys.argv[2]))
    print(json.dumps({row: figure.to_json() for row, figure in found.items()}))
