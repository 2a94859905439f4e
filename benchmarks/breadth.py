"""How fast joins, medians and distinct counts run, as ratios to the plain query in the same DuckDB in the same run.

python -m benchmarks.breadth                     # 20 million rows of 1 million users in 50 regions
python -m benchmarks.breadth --rows 2000000      # a quick look
python -m benchmarks.breadth --cpu               # CPU seconds of all threads, for a machine that others use, too

Medians include the choice of one value in each of 50 groups, beside the exact counts by cell that it is made from.
"""
# ruff: noqa: S608  # the statements are constants of this file

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
from benchmarks.questions import AMOUNT, MEASURES, REGION, ROW_LEVEL, SALT, USER, USER_LEVEL, make_data

from discreet.bounding.contributions import BoundedPlan, Counts, Measure, Spread, reach
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.mechanisms.quantiles.cells import CellQuantiles
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.expressions import Column
from discreet.plan.relations import Join, JoinKind, Scan
from discreet.plan.types import Type
from discreet.privacy import Neighbours, Unit

ADD_REMOVE = Neighbours.ADD_REMOVE
PERSON = Column("users", "user_id", Type.INTEGER)
PLAN = Column("users", "plan", Type.TEXT)
# The bounds 0 to 100 in steps of 1/512, as the planner would choose them.
CELLS = Spread(argument=AMOUNT, resolution=Fraction(1, 512), first=0, last=51_200)
CENTS = Measure(counts=Counts.DISTINCT, argument=AMOUNT, max_values=15)
ROW_MEDIAN = replace(ROW_LEVEL, measures=(), spreads=(CELLS,))
USER_MEDIAN = replace(USER_LEVEL, measures=(), spreads=(CELLS,))
JOINED = Join(Scan("events"), Scan("users"), JoinKind.INNER, ((USER, PERSON),))


def make_users(folder: Path, rows: int) -> Path:
    """One row for each user, with a plan; the same for the same number of events."""
    path = folder / f"users-{rows}.parquet"
    if not path.exists():
        with duckdb.connect() as connection:
            connection.execute(f"""
                COPY (SELECT CAST(i AS BIGINT) AS user_id, 'plan-' || CAST(hash(i * 7 + 5) % 8 AS VARCHAR) AS plan
                      FROM range({max(1, rows // 20)}) t(i)) TO '{path}.part' (FORMAT parquet)""")
        Path(f"{path}.part").rename(path)
    return path


def an_engine(events: Path, users: Path, threads: int) -> DuckDBEngine:
    def facts(name: str, *columns: Column, limits: ContributionLimits) -> TableFacts:
        declared = {column.name: (column.type, ColumnFacts()) for column in columns}
        return TableFacts(name=name, columns=declared, unit=Unit("user_id"), limits=limits)

    limits = ContributionLimits(max_groups=5, max_rows_per_group=3)
    tables = {
        "events": facts("events", USER, REGION, AMOUNT, limits=limits),
        "users": facts("users", PERSON, PLAN, limits=limits),
    }
    return DuckDBEngine(
        {"events": events, "users": users}, Catalog(tables=tables, neighbours=ADD_REMOVE), threads=threads
    )


def median(engine: DuckDBEngine, bounded: BoundedPlan) -> list[int]:
    """The medians of all groups, at ε = 1."""
    groups = engine.run(bounded, salt=SALT)
    far = reach(bounded, ADD_REMOVE)
    quantiles = CellQuantiles(
        first=CELLS.first,
        last=CELLS.last,
        groups=far.groups,
        max_rows=far.rows,
        epsilon=1,
        neighbours=ADD_REMOVE,
        qs=(Fraction(1, 2),),
    )
    return [quantiles.release(cells, counts)[0] for cells, counts in groups.spreads[0]]


def measure(events: Path, users: Path, repeats: int, threads: int, clock: Callable[[], float]) -> dict[str, float]:
    """Seconds by a clock, best of several. Jobs take turns, so that a busy minute of the machine hits all of them."""

    def best(times: int, **jobs: Callable[[], object]) -> dict[str, float]:
        found = dict.fromkeys(jobs, float("inf"))
        for _ in range(times):
            for name, job in jobs.items():
                started = clock()
                job()
                found[name] = min(found[name], clock() - started)
        return found

    engine = an_engine(events, users, threads)
    plain = duckdb.connect(config={"threads": threads})
    left, right = f"read_parquet('{events}')", f"read_parquet('{users}')"

    def ask(sql: str) -> Callable[[], object]:
        return lambda: plain.execute(sql).fetchall()

    def run(bounded: BoundedPlan) -> Callable[[], object]:
        return lambda: engine.run(bounded, salt=SALT)

    joined = f"SELECT plan, count(*), sum(amount) FROM {left} JOIN {right} USING (user_id) GROUP BY plan"
    by_plan = BoundedPlan(source=JOINED, keys=(PLAN,), domain=None, unit=None, measures=MEASURES)
    per_user = replace(USER_LEVEL, source=JOINED, keys=(PLAN,))
    middle = f"SELECT region, median(amount) FROM {left} GROUP BY region"
    distinct = f"SELECT region, count(DISTINCT amount) FROM {left} GROUP BY region"
    joins = best(repeats, plain=ask(joined), rows=run(by_plan), users=run(per_user))
    medians = best(
        repeats,
        plain=ask(middle),
        rows=lambda: median(engine, ROW_MEDIAN),
        users=lambda: median(engine, USER_MEDIAN),
    )
    values = best(
        repeats,
        plain=ask(distinct),
        rows=run(replace(ROW_LEVEL, measures=(CENTS,))),
        users=run(replace(USER_LEVEL, measures=(CENTS,))),
    )
    once = best(1, prepare=lambda: engine.prepare("events"))
    ready = best(
        repeats,
        median=lambda: median(engine, USER_MEDIAN),
        values=run(replace(USER_LEVEL, measures=(CENTS,))),
    )
    engine.close()
    return {
        "plain join, count, sum": joins["plain"],
        "join, row level": joins["rows"],
        "join, user level, cold": joins["users"],
        "plain median": medians["plain"],
        "median, row level": medians["rows"],
        "median, user level, cold": medians["users"],
        "median, user level, prepared": ready["median"],
        "plain COUNT(DISTINCT)": values["plain"],
        "COUNT(DISTINCT), row level": values["rows"],
        "COUNT(DISTINCT), user level, cold": values["users"],
        "COUNT(DISTINCT), user level, prepared": ready["values"],
        "prepare, once": once["prepare"],
    }


# Each job with the plain query that it is compared with, and the ratio that was promised, where one was.
COMPARED: dict[str, tuple[str, float | None]] = {
    "join, row level": ("plain join, count, sum", None),
    "join, user level, cold": ("plain join, count, sum", None),
    "median, row level": ("plain median", 2.0),
    "median, user level, cold": ("plain median", None),
    "median, user level, prepared": ("plain median", None),
    "COUNT(DISTINCT), row level": ("plain COUNT(DISTINCT)", None),
    "COUNT(DISTINCT), user level, cold": ("plain COUNT(DISTINCT)", None),
    "COUNT(DISTINCT), user level, prepared": ("plain COUNT(DISTINCT)", None),
}


def ratios(seconds: dict[str, float]) -> dict[str, dict[str, float | None]]:
    """What was measured, and what was promised."""
    return {
        name: {"measured": seconds[name] / seconds[plain], "goal": goal} for name, (plain, goal) in COMPARED.items()
    }


def table(result: dict[str, Any]) -> str:
    lines = [f"{result['rows']:,} rows, {result['threads']} threads", ""]
    lines += [f"  {name:<48}{value:8.3f} s" for name, value in result["seconds"].items()]
    lines += ["", f"  {'ratio to the plain query':<48}{'measured':>10}{'goal':>8}"]
    lines += [f"  {name:<48}{r['measured']:10.2f}{r['goal'] or '':>8}" for name, r in result["ratios"].items()]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "discreet-benchmarks")
    parser.add_argument("--cpu", action="store_true", help="measure CPU time instead of the clock on the wall")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    events, users = make_data(options.cache, options.rows), make_users(options.cache, options.rows)
    clock = time.process_time if options.cpu else time.perf_counter
    seconds = measure(events, users, options.repeats, options.threads, clock)
    result: dict[str, Any] = {"rows": options.rows, "threads": options.threads, "seconds": seconds}
    result["ratios"] = ratios(seconds)
    print(json.dumps(result, indent=2) if options.json else table(result))


if __name__ == "__main__":
    main()
