"""Tumult Analytics on its own example: a count and a sum by region, for users who own rows.

It runs in Tumult's own environment, as a program: ``python tumult_questions.py FILE TIMES`` prints as JSON the least
seconds of the processor and of the clock, of all processes together, for both answers. Tumult answers one at a time.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tmlt.analytics import (
    AddRowsWithID,
    KeySet,
    MaxGroupsPerID,
    MaxRowsPerGroupPerID,
    PureDPBudget,
    QueryBuilder,
    Session,
)

REGIONS = [f"region {i}" for i in range(50)]


def read_cpu() -> float:
    """Seconds of the processor of this process and of all that descend from it."""
    times, parents = dict[int, int](), dict[int, int]()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended since, and is in the times of its parent
        parents[int(path.parent.name)] = int(fields[1])
        times[int(path.parent.name)] = sum(map(int, fields[11:15]))
    own = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in own} - own:
        own |= more
    return sum(times.get(process, 0) for process in own) / os.sysconf("SC_CLK_TCK")


def ask(frame: Any) -> None:
    budget, keys = PureDPBudget(1), KeySet.from_dict({"region": REGIONS})
    session = Session.from_dataframe(PureDPBudget(2), "events", frame, protected_change=AddRowsWithID("user_id"))
    bounded = QueryBuilder("events").enforce(MaxGroupsPerID("region", 5)).enforce(MaxRowsPerGroupPerID("region", 3))
    for asked in (bounded.groupby(keys).count(), bounded.groupby(keys).sum("amount", 0, 100)):
        if len(session.evaluate(asked, budget).collect()) != len(REGIONS):
            raise SystemExit("Tumult gave another number of regions.")


def main(path: str, times: int) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable  # its workers need the same packages
    builder = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "4g").config("spark.driver.host", "127.0.0.1")
    spark = builder.config("spark.sql.shuffle.partitions", str(os.cpu_count() or 2)).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    frame, found = spark.read.parquet(f"file://{path}"), []
    for _ in range(times):
        before, started = read_cpu(), time.perf_counter()
        ask(frame)
        found.append((read_cpu() - before, time.perf_counter() - started))
    spark.stop()
    print(json.dumps(min(found)))  # told to the benchmark


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
