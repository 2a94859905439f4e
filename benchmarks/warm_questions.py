"""One warm question on 60,000 rows, in process, and the tail with 16 threads.

python benchmarks/warm_questions.py               # 60,000 visits of 12,000 patients in memory, with a ledger in memory
python benchmarks/warm_questions.py --profile     # where the time goes

Each question is a new one: counts and averages by three public wards, at most 10 rows of a patient. By the clock and in
CPU time of all threads; tails say something on a quiet machine only.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from cProfile import Profile
from pstats import Stats

import numpy as np
import pyarrow as pa

import discreet

ROWS, PATIENTS, THREADS, WARM = 60_000, 12_000, 16, 5


def make_curator() -> discreet.Curator:
    """Visits of patients, the same each time."""
    generator = np.random.default_rng(1)
    frame = pa.table(
        {
            "patient": generator.integers(0, PATIENTS, ROWS),
            "ward": generator.choice(["A", "B", "C"], ROWS),
            "age": generator.integers(0, 111, ROWS),
        }
    )
    budget = discreet.Budget(epsilon=10_000)
    keys, bounds = {"ward": ["A", "B", "C"]}, {"age": (0, 110)}
    return discreet.curate({"visits": frame}, budget=budget, unit="patient", max_rows=10, keys=keys, bounds=bounds)


def ask(curator: discreet.Curator, number: int) -> float:
    """Seconds of one question that was not asked before."""
    started = time.perf_counter()
    sql = "SELECT ward, COUNT(*) AS n, AVG(age) AS a FROM visits WHERE patient <> @p GROUP BY ward"
    curator.ask(sql, epsilon=1, parameters={"p": number})
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    options = parser.parse_args()
    curator = make_curator()
    for number in range(WARM):
        ask(curator, number)
    profile, before = Profile(), time.process_time()
    if options.profile:
        profile.enable()
    alone = sorted(ask(curator, WARM + number) for number in range(options.questions))
    profile.disable()
    cpu = (time.process_time() - before) / options.questions
    first = WARM + options.questions
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda number: ask(curator, number), range(first, first + THREADS)))  # connections are opened
        first += THREADS
        begun = time.perf_counter()
        many = sorted(pool.map(lambda number: ask(curator, number), range(first, first + 10 * THREADS)))
        rate = len(many) / (time.perf_counter() - begun)
    found = {
        "alone, least ms": 1e3 * alone[0],
        "alone, median ms": 1e3 * statistics.median(alone),
        "alone, most ms": 1e3 * alone[-1],
        "alone, CPU ms": 1e3 * cpu,
        "16 threads, median ms": 1e3 * statistics.median(many),
        "16 threads, most / median": many[-1] / statistics.median(many),
        "16 threads, questions a second": rate,
        "load": os.getloadavg()[0],
    }
    print(json.dumps(found) if options.json else "\n".join(f"{name:<34}{value:10.2f}" for name, value in found.items()))
    if options.profile:
        Stats(profile).sort_stats("tottime").print_stats(30)


if __name__ == "__main__":
    main()
