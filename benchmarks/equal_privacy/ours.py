"""The errors of discreet, asked as its users ask it. Every repetition has a curator, and so a budget, of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from benchmarks.equal_privacy import data

import discreet
from discreet import Budget

PURE, APPROXIMATE = "ε = 1", "(1, 1e-6)"
BUDGETS = {PURE: Budget(epsilon=1), APPROXIMATE: Budget(epsilon=1, delta=1e-6)}


STATISTICS: Mapping[str, Callable[[np.ndarray], float]] = {
    "AVG": lambda x: float(np.mean(x)),
    "VAR_SAMP": lambda x: float(np.var(x, ddof=1)),
}

Job = Callable[[], float]


def measure(folder: Path, repeats: int, wanted: str = "") -> Iterator[tuple[str, float]]:
    """Each row of the table, and our root-mean-square error there (or, for keys, how many are named)."""
    for row, job in list_rows(folder, repeats).items():
        if wanted in row:
            yield row, job()


def list_rows(folder: Path, repeats: int) -> dict[str, Job]:
    """The rows, and how to measure each."""
    rows: dict[str, Job] = {}
    for budget in BUDGETS:
        for groups in data.GROUPS:
            rows[f"count by {groups} groups, {budget}"] = partial(count_groups, folder, groups, budget, repeats)
        for name in ("count", "sum"):
            rows[f"visits: {name}, {budget}"] = partial(ask_visits, folder, name, budget, repeats)
        for call, truth in STATISTICS.items():
            rows[f"{call}, {budget}"] = partial(ask_values, folder, f"{call}(x)", truth, budget, repeats)
        rows[f"median, ranks, {budget}"] = partial(ask_ranks, folder, (0.5,), budget, repeats)
        rows[f"three quantiles, ranks, {budget}"] = partial(ask_ranks, folder, (0.25, 0.5, 0.75), budget, repeats)
    rows[f"COUNT(DISTINCT v), {PURE}"] = partial(count_distinct, folder, repeats)
    for several in data.KEYS_OF_A_UNIT:
        rows[f"keys named, {several} of a unit, {APPROXIMATE}"] = partial(name_keys, folder, several, repeats)
    for k in (1, 2, 5, 10, 50):
        rows[f"each of {k} counts, {APPROXIMATE}"] = partial(ask_shares, folder, k)
    for name in ("lognormal10000", "lognormal1000", "delays", "uniform"):
        rows[f"sum, bounds unknown: {name}"] = partial(sum_unbounded, folder, name, 10 * repeats)
    return rows


def rms(errors: Any) -> float:
    return math.sqrt(float(np.mean(np.square(np.asarray(errors, dtype=float)))))


def curate(table: Mapping[str, np.ndarray], budget: Budget, **facts: Any) -> discreet.curator.Curator:
    return discreet.curate({"t": pa.table(dict(table))}, budget=budget, **facts)


def ask(table: Mapping[str, np.ndarray], budget: str, sql: str, **facts: Any) -> dict[str, np.ndarray]:
    """One question that spends the whole budget, by columns."""
    amount = BUDGETS[budget]
    with curate(table, amount, **facts) as curator:
        answer = curator.ask(sql, epsilon=1)
        return {name: np.array(answer.table[name].to_pylist()) for name in answer.table.column_names}


def repeat(call: Callable[[], Any], repeats: int) -> float:
    return rms(np.concatenate([np.ravel(call()) for _ in range(repeats)]))


def count_groups(folder: Path, groups: int, budget: str, repeats: int) -> float:
    table = data.read_table(folder / f"groups{groups}.csv")
    sql = "SELECT g, COUNT(*) AS n FROM t GROUP BY g"

    def errors() -> np.ndarray:
        return ask(table, budget, sql, keys={"g": range(groups)})["n"] - 20

    return repeat(errors, max(1, repeats * 100 // groups))


def ask_visits(folder: Path, name: str, budget: str, repeats: int) -> float:
    """Count and sum in one question, at user level: 5 groups, 3 rows in each; the error of one of them."""
    table = data.read_table(folder / "visits.csv")
    sql = "SELECT g, COUNT(*) AS count, SUM(v) AS sum FROM t GROUP BY g"
    facts = {
        "unit": "unit",
        "max_groups": data.VISIT_GROUPS,
        "max_rows_per_group": data.PER_GROUP,
        "keys": {"g": range(data.MANY_GROUPS)},
        "bounds": {"v": (0, data.VALUE_HIGH)},
    }
    weights = table["v"] if name == "sum" else None
    true = np.bincount(table["g"], weights=weights, minlength=data.MANY_GROUPS)
    return repeat(lambda: ask(table, budget, sql, **facts)[name] - true, 4 * repeats)


def ask_values(folder: Path, call: str, truth: Callable[[np.ndarray], float], budget: str, repeats: int) -> float:
    """A statistic of 1,000 values in [0, 100], at row level."""
    table = data.read_table(folder / "values.csv")
    true = np.array([truth(values) for values in table["x"].reshape(data.VALUE_GROUPS, -1)])
    facts = {"keys": {"g": range(data.VALUE_GROUPS)}, "bounds": {"x": (0, 100)}}
    sql = f"SELECT g, {call} AS a FROM t GROUP BY g"  # noqa: S608  # a constant of this file
    return repeat(lambda: ask(table, budget, sql, **facts)["a"] - true, repeats)


def ask_ranks(folder: Path, shares: tuple[float, ...], budget: str, repeats: int) -> float:
    """How many ranks a quantile of 1,000 values is off."""
    table = data.read_table(folder / "values.csv")
    values = np.sort(table["x"].reshape(data.VALUE_GROUPS, -1))
    facts = {"keys": {"g": range(data.VALUE_GROUPS)}, "bounds": {"x": (0, 100)}, "resolution": {"x": 0.01}}
    calls = ", ".join(f"QUANTILE(x, {share}) AS q{i}" for i, share in enumerate(shares))
    sql = f"SELECT g, {calls} FROM t GROUP BY g"  # noqa: S608  # a constant of this file

    def errors() -> list[float]:
        answer = ask(table, budget, sql, **facts)
        return [
            np.searchsorted(row, chosen) - share * len(row)
            for i, share in enumerate(shares)
            for row, chosen in zip(values, answer[f"q{i}"].astype(float))
        ]

    return repeat(errors, repeats)


def count_distinct(folder: Path, repeats: int) -> float:
    table = data.read_table(folder / "distinct.csv")
    true = len(np.unique(table["v"]))
    facts = {"unit": "unit", "max_rows": data.DISTINCT_ROWS, "max_values": {"v": 1}}
    sql = "SELECT COUNT(DISTINCT v) AS n FROM t"
    return repeat(lambda: ask(table, PURE, sql, **facts)["n"] - true, 10 * repeats)


def name_keys(folder: Path, several: int, repeats: int) -> float:
    """How many keys are named together with their counts, on average."""
    table = data.read_table(folder / f"keys{several}.csv")
    facts = {"unit": "unit", "max_groups": several, "max_rows_per_group": 1}
    sql = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"
    return float(np.mean([len(ask(table, APPROXIMATE, sql, **facts)["k"]) for _ in range(repeats)]))


def ask_shares(folder: Path, k: int) -> float:
    """Counts by 100 groups, asked one after the other for a k-th of the budget each."""
    table = data.read_table(folder / "groups100.csv")
    with curate(table, BUDGETS[APPROXIMATE], keys={"g": range(100)}) as curator:
        errors = []
        for i in range(k):
            sql = f"SELECT g, COUNT(*) AS n FROM t WHERE id > -{i + 1} GROUP BY g"  # noqa: S608  # a number
            answer = curator.ask(sql, epsilon=Fraction(1, k))
            errors.append(np.array(answer.table["n"].to_pylist()) - 20)
    return rms(errors)


def sum_unbounded(folder: Path, name: str, repeats: int) -> float:
    table = data.read_table(folder / f"{name}.csv")
    true = float(table["x"].sum())

    def error() -> float:
        with curate(table, BUDGETS[PURE]) as curator:
            answer = curator.ask("SELECT SUM(x) AS s FROM t", epsilon=1, bounds="auto")
            return float(answer.table["s"][0].as_py()) - true

    return repeat(error, repeats)
