"""Tumult Analytics on questions of the shape of its own examples: a count and perhaps a sum, for people who own rows.

It runs in Tumult's own environment, as a program: ``python tumult_questions.py FILE TIMES QUESTION`` prints as JSON the
least seconds of the processor and of the clock, of all processes together, for all answers. Tumult answers one at a
time. The question is a ``PeerQuestion`` of ``benchmarks/spark.py``.
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
    MaxRowsPerID,
    PureDPBudget,
    QueryBuilder,
    Session,
)


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


def ask(frame: Any, question: dict[str, Any]) -> None:
    key, total = question["key"], question["total"]
    session = Session.from_dataframe(PureDPBudget(2), "rows", frame, protected_change=AddRowsWithID(question["unit"]))
    bounded = QueryBuilder("rows")
    if question["max_rows"]:
        bounded = bounded.enforce(MaxRowsPerID(question["max_rows"]))
    else:
        bounded = bounded.enforce(MaxGroupsPerID(key, question["max_groups"]))
        bounded = bounded.enforce(MaxRowsPerGroupPerID(key, question["max_rows_per_group"]))
    grouped = bounded.groupby(KeySet.from_dict({key: question["keys"]}))
    asked = [grouped.count(), *([grouped.sum(*total)] if total else [])]
    for query in asked:
        if len(session.evaluate(query, PureDPBudget(2 / len(asked))).collect()) != len(question["keys"]):
            raise SystemExit("Tumult gave another number of groups.")


def main(path: str, times: int, question: dict[str, Any]) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable  # its workers need the same packages
    builder = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "4g").config("spark.driver.host", "127.0.0.1")
    spark = builder.config("spark.sql.shuffle.partitions", str(os.cpu_count() or 2)).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    frame, found = spark.read.parquet(f"file://{path}"), []
    for _ in range(times):
        before, started = read_cpu(), time.perf_counter()
        ask(frame, question)
        found.append((read_cpu() - before, time.perf_counter() - started))
    spark.stop()
    print(json.dumps(min(found)))  # told to the benchmark


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3]))
