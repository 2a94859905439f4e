"""How much one hostile person can add to the work of a question: CPU time with that person, as a ratio to without.

python -m benchmarks.hostile_person                  # 20,000 people with 20 visits and 5 labs each
python -m benchmarks.hostile_person --people 2000    # a quick look
python -m benchmarks.hostile_person --json

The person has 1, T, T + 1, 10,000 or 100,000 rows in every table, where T is the cap of two joined tables. Reading that
many rows costs about as much as they are of all rows; the column "rows" shows that share. Goal: ratios below 2.
"""

# ruff: noqa: S608  # the statements are constants of this file
from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np
import pyarrow as pa

import discreet
from discreet.bounding.bound import bound
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.frontends import read_sql
from discreet.plan.catalog import Catalog
from discreet.privacy import Budget

SALT = b"sixteen bytes ok"
HOSTILE = 10**9
SIZES = (1, 100, 101, 10_000, 100_000)
LIST = ", ".join(f"({i % 2})" for i in range(20))
PAIRED = "FROM visits v JOIN labs l ON v.pid = l.pid"
QUESTIONS = {
    "count": "SELECT COUNT(*) AS n FROM visits",
    "private keys": "SELECT town, COUNT(*) AS n FROM visits GROUP BY town",
    "COUNT DISTINCT": "SELECT COUNT(DISTINCT town) AS n FROM visits",
    "window": "SELECT COUNT(*) AS n FROM (SELECT pid, ROW_NUMBER() OVER (PARTITION BY pid ORDER BY cost) AS k "
    "FROM visits) t WHERE k < 3",
    "running sum": "SELECT COUNT(*) AS n FROM (SELECT pid, SUM(cost) OVER (PARTITION BY pid ORDER BY day) AS s "
    "FROM visits) t WHERE s > 50",
    "MEDIAN per person": "SELECT COUNT(*) AS n FROM (SELECT pid, MEDIAN(cost) AS m FROM visits GROUP BY pid) t "
    "WHERE m > 5",
    "SUM of reals per person": "SELECT COUNT(*) AS n FROM (SELECT pid, SUM(cost) AS m FROM visits GROUP BY pid) t "
    "WHERE m > 5",
    "text": "SELECT COUNT(*) AS n FROM visits WHERE upper(town) || lower(town) LIKE '%X1%'",
    "two tables": f"SELECT COUNT(*) AS n, SUM(l.cost) AS s {PAIRED}",
    "two tables, MEDIAN": f"SELECT COUNT(*) AS n FROM (SELECT v.pid, MEDIAN(l.cost) AS m {PAIRED} GROUP BY v.pid) t "
    "WHERE m > 5",
    "two tables, window": "SELECT COUNT(*) AS n FROM (SELECT v.pid, ROW_NUMBER() OVER (PARTITION BY v.pid "
    f"ORDER BY l.cost) AS k {PAIRED}) t WHERE k < 3",
    "20 public rows for one": f"SELECT COUNT(*) AS n FROM visits v JOIN (VALUES {LIST}) t (k) "
    f"ON CASE WHEN v.pid = {HOSTILE} THEN 1 ELSE 5 END = t.k",
}


def make_table(people: int, rows: int, hostile: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    count = people * rows + hostile
    pid = np.concatenate([np.repeat(np.arange(people), rows), np.full(hostile, HOSTILE)])
    towns = np.char.add("x", rng.integers(0, 500, count).astype(str))
    return pa.table(
        {"pid": pid, "cost": rng.random(count) * 10, "day": rng.integers(0, 1000, count), "town": towns.tolist()}
    )


def make_tables(people: int, hostile: int) -> dict[str, pa.Table]:
    return {"visits": make_table(people, 20, hostile, 1), "labs": make_table(people, 5, hostile, 2)}


def declare(tables: dict[str, pa.Table]) -> Catalog:
    return discreet.curate(
        tables, unit="pid", max_rows=20, budget=Budget(epsilon=1), bounds={"cost": (0, 10), "day": (0, 1000)}
    ).catalog


def measure(text: str, tables: dict[str, pa.Table], catalog: Catalog, runs: int) -> float:
    """CPU seconds of all threads, the best of some runs after one that is not counted."""
    bounded = bound(read_sql.read(text, catalog), catalog).bounded
    engine = DuckDBEngine(tables, catalog, threads=1)
    engine.run(bounded, salt=SALT)
    times = []
    for _ in range(runs):
        began = time.process_time()
        engine.run(bounded, salt=SALT)
        times.append(time.process_time() - began)
    engine.close()
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    without = make_tables(given.people, 0)
    catalog = declare(without)
    base = {name: measure(text, without, catalog, given.runs) for name, text in QUESTIONS.items()}
    found: dict[str, dict[str, Any]] = {name: {"seconds": round(seconds, 3)} for name, seconds in base.items()}
    for size in SIZES:
        tables = make_tables(given.people, size)
        for name, text in QUESTIONS.items():
            found[name][f"{size}"] = round(measure(text, tables, catalog, given.runs) / base[name], 2)
    if given.json:
        print(json.dumps(found, indent=2))
        return
    print(f"| question | seconds | {' | '.join(f'{size:,}' for size in SIZES)} |")
    print("|---|" + "---|" * (1 + len(SIZES)))
    for name, row in found.items():
        print(f"| {name} | {' | '.join(map(str, row.values()))} |")
    rows = [f"{1 + size / (25 * given.people / 2):.2f}" for size in SIZES]
    print(f"| rows |  | {' | '.join(rows)} |")


if __name__ == "__main__":
    main()
