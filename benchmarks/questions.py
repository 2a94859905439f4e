"""How fast bounded questions run, as ratios to the plain query in the same DuckDB in the same run.

python benchmarks/questions.py                     # 20 million rows of 1 million users in 50 regions
python benchmarks/questions.py --rows 2000000      # a quick look
python benchmarks/questions.py --slopes            # nothing but 1, 10 and 100 million rows: memory flat, time linear
python benchmarks/questions.py --cpu               # CPU seconds of all threads, for a machine that others use, too
python benchmarks/questions.py --opendp .venvs/opendp/bin/python
"""
# ruff: noqa: S608  # the statements are constants of this file

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb

from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.expressions import Column
from discreet.plan.relations import Scan
from discreet.plan.types import Type
from discreet.privacy import Neighbours, Unit

SALT = bytes(range(16))
USER = Column("events", "user_id", Type.INTEGER)
REGION = Column("events", "region", Type.TEXT)
AMOUNT = Column("events", "amount", Type.REAL)
MEASURES = (
    Measure(counts=Counts.ROWS),
    Measure(counts=Counts.STEPS, argument=AMOUNT, resolution=Fraction(1, 100), first=0, last=10_000),
)
ROW_LEVEL = BoundedPlan(source=Scan("events"), keys=(REGION,), domain=None, unit=None, measures=MEASURES)
USER_LEVEL = BoundedPlan(
    source=Scan("events"),
    keys=(REGION,),
    domain=None,
    unit=USER,
    measures=MEASURES,
    max_groups=5,
    max_rows_per_group=3,
    weight_bits=24,
)
MAX_ROWS = replace(USER_LEVEL, max_groups=None, max_rows_per_group=None, max_rows=15)


def make_data(folder: Path, rows: int) -> Path:
    """Events with a user, a region and an amount, the same for the same number of rows; made once."""
    path = folder / f"events-{rows}.parquet"
    if not path.exists():
        with duckdb.connect() as connection:
            connection.execute(f"""
                COPY (SELECT CAST(hash(i * 2 + 1) % {max(1, rows // 20)} AS BIGINT) AS user_id,
                             'region-' || lpad(CAST(hash(i * 3 + 7) % 50 AS VARCHAR), 2, '0') AS region,
                             CAST(hash(i * 5 + 3) % 1200000 AS DOUBLE) / 10000 AS amount
                      FROM range({rows}) t(i)) TO '{path}.part' (FORMAT parquet)""")
        Path(f"{path}.part").rename(path)
    return path


def an_engine(path: Path, threads: int) -> DuckDBEngine:
    columns = {column.name: (column.type, ColumnFacts()) for column in (USER, REGION, AMOUNT)}
    limits = ContributionLimits(max_groups=5, max_rows_per_group=3)
    facts = TableFacts(name="events", columns=columns, unit=Unit("user_id"), limits=limits)
    catalog = Catalog(tables={"events": facts}, neighbours=Neighbours.ADD_REMOVE)
    return DuckDBEngine({"events": path}, catalog, threads=threads)


def best(
    repeats: int, clock: Callable[[], float] = time.perf_counter, **jobs: Callable[[], object]
) -> dict[str, float]:
    """The best time of each job. Jobs take turns, so that a busy minute of the machine hits all of them."""
    found = dict.fromkeys(jobs, float("inf"))
    for _ in range(repeats):
        for name, job in jobs.items():
            started = clock()
            job()
            found[name] = min(found[name], clock() - started)
    return found


def measure(path: Path, repeats: int, threads: int, clock: Callable[[], float]) -> dict[str, float]:
    """Seconds by a clock, best of several."""
    engine = an_engine(path, threads)
    plain = duckdb.connect(config={"threads": threads})
    events = f"read_parquet('{path}')"
    sums = "SELECT region, count(*), sum(amount) FROM {} GROUP BY region"
    distinct = "SELECT region, count(DISTINCT user_id) FROM {} GROUP BY region"

    def ask(sql: str) -> Callable[[], object]:
        return lambda: plain.execute(sql).fetchall()

    def run(bounded: BoundedPlan) -> Callable[[], object]:
        return lambda: engine.run(bounded, salt=SALT)

    rows = best(2 * repeats, clock, plain=ask(sums.format(events)), ours=run(ROW_LEVEL))
    cold = best(repeats, clock, plain=ask(distinct.format(events)), ours=run(USER_LEVEL), capped=run(MAX_ROWS))
    once = best(1, clock, prepare=lambda: engine.prepare("events"))
    plain.execute(f"ATTACH '{engine.find_prepared_path('events')}' AS ready (READ_ONLY)")
    there = ask(distinct.format("ready.prepared"))
    ready = best(repeats, clock, plain=there, ours=run(USER_LEVEL), capped=run(MAX_ROWS))
    engine.close()
    return {
        "plain count, sum": rows["plain"],
        "row level": rows["ours"],
        "plain COUNT(DISTINCT)": cold["plain"],
        "user level, cold": cold["ours"],
        "max_rows, cold": cold["capped"],
        "prepare, once": once["prepare"],
        "COUNT(DISTINCT) on the prepared table": ready["plain"],
        "user level, prepared": ready["ours"],
        "max_rows, prepared": ready["capped"],
    }


OPENDP = """
import sys, time, polars as pl, opendp.prelude as dp
dp.enable_features("contrib")
frame = pl.scan_parquet(sys.argv[1])
def ask():
    context = dp.Context.compositor(
        data=frame, privacy_unit=dp.unit_of(contributions=10, identifier=pl.col("user_id")),
        privacy_loss=dp.loss_of(epsilon=1.0, delta=1e-7), split_evenly_over=1,
        margins=[dp.polars.Margin(by=[], max_length=10**8),
                 dp.polars.Margin(by=["region"], max_length=10**7, max_groups=1000)])
    query = (context.query().truncate_per_group(10).group_by("region")
             .agg(dp.len(), pl.col("amount").fill_nan(0).fill_null(0).dp.sum((0.0, 100.0))))
    query.release().collect()
times = []
for _ in range(2):
    started = time.perf_counter(); ask(); times.append(time.perf_counter() - started)
print(min(times))
"""


def ask_opendp(python: str, path: Path) -> float | None:
    """OpenDP's user-level count and sum of the same rows, 10 rows a user, in its own environment."""
    found = subprocess.run([python, "-c", OPENDP, str(path)], capture_output=True, text=True, check=False)
    if found.returncode:
        print("OpenDP failed:", found.stderr.strip().splitlines()[-1:], file=sys.stderr)
        return None
    return float(found.stdout)


SIZES = (1_000_000, 10_000_000, 100_000_000)


def measure_slopes(folder: Path, threads: int) -> dict[str, dict[str, float]]:
    """Seconds and peak memory of cold user-level questions at three sizes, each in a process of its own."""
    found = {}
    for size in SIZES:
        path = make_data(folder, size)
        command = [sys.executable, __file__, "--one", str(path), "--threads", str(threads)]
        found[f"{size:,} rows"] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found


def one(path: Path, threads: int) -> dict[str, float]:
    engine, found = an_engine(path, threads), dict[str, float]()
    for name, bounded in (("row level", ROW_LEVEL), ("max_rows", MAX_ROWS), ("groups x rows", USER_LEVEL)):
        started, before = time.perf_counter(), time.process_time()
        engine.run(bounded, salt=SALT)
        found[f"{name}, s"] = time.perf_counter() - started
        found[f"{name}, CPU s"] = time.process_time() - before
        found[f"{name}, GB so far"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    engine.close()
    return found


def ratios(seconds: dict[str, float]) -> dict[str, tuple[float, float]]:
    """What was promised, and what was measured."""
    distinct, there = "plain COUNT(DISTINCT)", "COUNT(DISTINCT) on the prepared table"
    goals = {
        "row level / plain count, sum": ("row level", "plain count, sum", 1.45),
        "user level, cold / plain COUNT(DISTINCT)": ("user level, cold", distinct, 1.3),
        "max_rows, cold / plain COUNT(DISTINCT)": ("max_rows, cold", distinct, 0.7),
        "user level, prepared / COUNT(DISTINCT) there": ("user level, prepared", there, 0.6),
        "max_rows, prepared / COUNT(DISTINCT) there": ("max_rows, prepared", there, 0.3),
    }
    return {name: (seconds[top] / seconds[bottom], goal) for name, (top, bottom, goal) in goals.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "discreet-benchmarks")
    parser.add_argument("--opendp", help="a Python with OpenDP and Polars, for comparison")
    parser.add_argument("--cpu", action="store_true", help="CPU seconds of all threads instead of the clock")
    parser.add_argument("--slopes", action="store_true", help="1, 10 and 100 million rows and nothing else")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(options.one, options.threads)))
        return
    options.cache.mkdir(parents=True, exist_ok=True)
    if options.slopes:
        print(json.dumps(measure_slopes(options.cache, options.threads), indent=2))
        return
    path = make_data(options.cache, options.rows)
    clock = time.process_time if options.cpu else time.perf_counter
    seconds = measure(path, options.repeats, options.threads, clock)
    result: dict[str, Any] = {"rows": options.rows, "threads": options.threads, "seconds": seconds}
    result["ratios"] = {name: {"measured": value, "goal": goal} for name, (value, goal) in ratios(seconds).items()}
    if options.opendp and (theirs := ask_opendp(options.opendp, path)) is not None:
        seconds["OpenDP, user level"] = theirs
        faster = theirs / seconds["user level, prepared"]
        result["ratios"]["OpenDP / user level, prepared"] = {"measured": faster, "goal": 6.0}
    print(json.dumps(result, indent=2) if options.json else table(result))


def table(result: dict[str, Any]) -> str:
    lines = [f"{result['rows']:,} rows, {result['threads']} threads", ""]
    lines += [f"  {name:<48}{value:8.3f} s" for name, value in result["seconds"].items()]
    lines += ["", f"  {'ratio':<48}{'measured':>10}{'goal':>8}"]
    lines += [f"  {name:<48}{r['measured']:10.2f}{r['goal']:8.2f}" for name, r in result["ratios"].items()]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
