"""How much one hostile person can add to the work of a question: CPU time with that person, as a ratio to without.

python -m benchmarks.hostile_person                                     # 20,000 people with 20 visits and 5 labs each
python -m benchmarks.hostile_person --people 2000 --sizes 1 101         # a quick look
python -m benchmarks.hostile_person --engine postgres --people 5000     # a server of its own, as the tests start it
python -m benchmarks.hostile_person --engine spark --sizes 10000 --runs 3        # needs Java and the extra spark
python -m benchmarks.hostile_person --questions EXISTS --json

The person has 1, T, T + 1, 10,000 or 100,000 rows in every table, where T is the cap of two joined tables. All of their
visits have the same number, which notes refer to. Reading that many rows costs about as much as they are of all
rows; the line "rows" shows that share. Goal: ratios below 2.

CPU time is that of this process with DuckDB, and with PostgreSQL that of all processes of the server that have ended:
every question has a connection of its own. With Spark it is that of Java, in which planning and compiling a statement
take a good part.
"""

# ruff: noqa: S608  # the statements are constants of this file
from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import discreet
from discreet.bounding.bound import bound
from discreet.bounding.contributions import BoundedPlan
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.engine import Engine
from discreet.errors import DiscreetError
from discreet.frontends import read_sql
from discreet.plan.catalog import Catalog
from discreet.privacy import Budget

SALT = b"sixteen bytes ok"
HOSTILE = 10**9
SIZES = (1, 100, 101, 10_000, 100_000)
DAYS = (dt.date(2022, 1, 1), dt.date(2024, 12, 31))
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
    "frame of three rows": "SELECT COUNT(*) AS n FROM (SELECT pid, SUM(cost) OVER (PARTITION BY pid ORDER BY day "
    "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM visits) t WHERE s > 9",
    "frame of 2,001 rows, MIN": "SELECT COUNT(*) AS n FROM (SELECT pid, MIN(cost) OVER (PARTITION BY pid ORDER BY day "
    "ROWS BETWEEN 1000 PRECEDING AND 1000 FOLLOWING) AS s FROM visits) t WHERE s > 1",
    "frame to the last row": "SELECT COUNT(*) AS n FROM (SELECT pid, SUM(cost) OVER (PARTITION BY pid ORDER BY day "
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS s FROM visits) t WHERE s > 9",
    "frame of 32 rows, MIN": "SELECT COUNT(*) AS n FROM (SELECT pid, MIN(cost) OVER (PARTITION BY pid ORDER BY day "
    "ROWS BETWEEN 31 PRECEDING AND CURRENT ROW) AS s FROM visits) t WHERE s > 1",
    "EXISTS under OR": "SELECT COUNT(*) AS n FROM visits v WHERE day > 900 OR EXISTS "
    "(SELECT 1 FROM labs l WHERE l.pid = v.pid AND l.cost > 9)",
    "EXISTS with a comparison": "SELECT COUNT(*) AS n FROM visits v WHERE EXISTS "
    "(SELECT 1 FROM labs l WHERE l.pid = v.pid AND l.town <> v.town)",
    "IN under OR": "SELECT COUNT(*) AS n FROM visits WHERE day > 900 OR pid IN (SELECT pid FROM labs WHERE cost > 9)",
    "INTERSECT": "SELECT COUNT(*) AS n FROM (SELECT pid, town FROM visits INTERSECT SELECT pid, town FROM labs) t",
    "EXCEPT": "SELECT COUNT(*) AS n FROM (SELECT pid, town FROM visits EXCEPT SELECT pid, town FROM labs) t",
    "floor as key": "SELECT floor(cost / 2) AS k, COUNT(*) AS n FROM visits GROUP BY k",
    "round as key": "SELECT round(day, -2) AS k, COUNT(*) AS n FROM visits GROUP BY k",
    "date_trunc as key": "SELECT date_trunc('month', seen) AS k, COUNT(*) AS n FROM visits GROUP BY k",
    "median of dates": "SELECT MEDIAN(seen) AS m FROM visits",
    "median of dates by month": "SELECT date_trunc('month', seen) AS k, MEDIAN(seen) AS m FROM visits GROUP BY k",
    "sum of distinct values": "SELECT COUNT(*) AS n FROM (SELECT pid, SUM(day) AS m FROM (SELECT DISTINCT pid, day "
    "FROM visits) d GROUP BY pid) t WHERE m > 5",
    "LEFT JOIN with conditions": "SELECT COUNT(l.cost) AS n FROM visits v LEFT JOIN labs l ON v.pid = l.pid AND "
    "v.day > 500 AND l.cost > 5",
    "FULL JOIN": "SELECT COUNT(l.cost) AS n, COUNT(v.cost) AS m FROM visits v FULL JOIN labs l ON v.pid = l.pid",
    "foreign key": "SELECT COUNT(*) AS n, SUM(score) AS s FROM notes",
    "foreign key, joined": "SELECT SUM(v.cost) AS s FROM notes n JOIN visits v ON n.visit = v.visit",
    "foreign key, per visit": "SELECT COUNT(*) AS n FROM (SELECT visit, MAX(score) AS m FROM notes GROUP BY visit) t "
    "WHERE m > 5",
    "foreign key, units listed": "SELECT COUNT(*) AS n FROM labs WHERE pid IN (SELECT pid FROM notes WHERE score > 5)",
}


def make_table(people: int, rows: int, hostile: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    count = people * rows + hostile
    pid = np.concatenate([np.repeat(np.arange(people), rows), np.full(hostile, HOSTILE)])
    towns = np.char.add("x", rng.integers(0, 500, count).astype(str))
    day = rng.integers(0, 1000, count)
    seen = pa.array((day + 19_000).astype(np.int32), pa.int32()).cast(pa.date32())
    return {"pid": pid, "cost": rng.random(count) * 10, "day": day, "seen": seen, "town": towns.tolist()}


def make_tables(people: int, hostile: int) -> dict[str, pa.Table]:
    """Visits, labs, and notes, which name a visit and no person."""
    visits, labs = make_table(people, 20, hostile, 1), make_table(people, 5, hostile, 2)
    numbers = np.concatenate([np.arange(20 * people), np.full(hostile, HOSTILE)])
    notes = {
        "visit": np.concatenate([np.arange(5 * people) * 4, np.full(hostile, HOSTILE)]),
        "score": np.random.default_rng(3).random(5 * people + hostile) * 10,
    }
    return {"visits": pa.table({"visit": numbers, **visits}), "labs": pa.table(labs), "notes": pa.table(notes)}


def declare(tables: dict[str, pa.Table]) -> Catalog:
    return discreet.curate(
        tables,
        unit="pid",
        max_rows=20,
        budget=Budget(epsilon=1),
        bounds={"cost": (0, 10), "score": (0, 10), "day": (0, 1000), "seen": DAYS},
        foreign_keys={"notes.visit": "visits.visit"},
    ).catalog


@dataclass(frozen=True)
class EngineUnderLoad:
    """How an engine is opened over Arrow tables, and the CPU seconds that its work has taken so far."""

    open: Callable[[Mapping[str, pa.Table], Catalog], Engine]
    read_seconds: Callable[[], float]


def open_duckdb(tables: Mapping[str, pa.Table], catalog: Catalog) -> Engine:
    return DuckDBEngine(tables, catalog, threads=1)


def read_server_cpu(base: Any) -> Callable[[], float]:
    """How to read the CPU seconds of a server of the tests: those of all of its processes that have ended."""
    base.execute("ALTER SYSTEM SET autovacuum = off", "SELECT pg_reload_conf()")
    postmaster = int((base.started.data / "postmaster.pid").read_text().split()[0])
    ticks = os.sysconf("SC_CLK_TCK")
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children")
    time.sleep(1)  # the connection above has ended, and so has what ran besides questions
    always = set(children.read_text().split())

    def read_seconds() -> float:
        while set(children.read_text().split()) - always:  # a process counts once it is gone
            time.sleep(0.01)
        # The name of the program, in parentheses, may hold anything; the times of children are the 16th and 17th field.
        fields = Path(f"/proc/{postmaster}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[13]) + int(fields[14])) / ticks

    return read_seconds


def use_postgres() -> EngineUnderLoad:
    """A server of its own. Nothing works in it but questions, so that what its ended processes took is theirs."""
    from tests.engines.postgres.loading import database, open_loaded

    base = database()
    read_seconds = read_server_cpu(base)

    def open_analysed(tables: Mapping[str, pa.Table], catalog: Catalog) -> Engine:
        engine = open_loaded(tables, catalog)
        base.execute("ANALYZE")
        return engine

    return EngineUnderLoad(open_analysed, read_seconds)


def use_spark() -> EngineUnderLoad:
    """One Java on two cores, with its compilers on, as a user would start it; its time is that of its process."""
    from benchmarks.spark import read_cpu
    from tests.engines.spark.loading import LoadedSpark

    from discreet.engines.spark.session import import_pyspark_sql, start_java

    builder = import_pyspark_sql().SparkSession.builder.appName("hostile person").master("local[2]")
    told = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "OFF"}
    near = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.memory": "4g"}
    for name, value in (told | near).items():
        builder = builder.config(name, value)
    session = start_java(builder)
    return EngineUnderLoad(
        lambda tables, catalog: LoadedSpark(tables, catalog, session=session), lambda: read_cpu(session)
    )


ENGINES: Mapping[str, Callable[[], EngineUnderLoad]] = {
    "duckdb": lambda: EngineUnderLoad(open_duckdb, time.process_time),
    "postgres": use_postgres,
    "spark": use_spark,
}


def measure(
    under: EngineUnderLoad, questions: Mapping[str, str], tables: dict[str, pa.Table], catalog: Catalog, runs: int
) -> dict[str, float]:
    """CPU seconds of each question, the best of some runs after one that is not counted; NaN where it is refused."""
    engine, found = under.open(tables, catalog), dict[str, float]()
    catalog = replace(catalog, gaps=engine.capabilities.gaps)
    for name, text in questions.items():
        try:
            bounded = bound(read_sql.read(text, catalog), catalog).bounded
            engine.run(bounded, salt=SALT)
        except DiscreetError as error:
            print(f"{name}: {error}", file=sys.stderr)
            found[name] = float("nan")
            continue
        found[name] = min(_run_once(under, engine, bounded) for _ in range(runs))
    engine.close()
    return found


def _run_once(under: EngineUnderLoad, engine: Engine, bounded: BoundedPlan) -> float:
    began = under.read_seconds()
    engine.run(bounded, salt=SALT)
    return under.read_seconds() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=ENGINES, default="duckdb")
    parser.add_argument("--people", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--questions", default="", help="only those whose name has these words in it")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    questions = {name: text for name, text in QUESTIONS.items() if given.questions in name}
    under = ENGINES[given.engine]()
    without = make_tables(given.people, 0)
    catalog = declare(without)
    before = measure(under, questions, without, catalog, given.runs)
    by_size = {
        size: measure(under, questions, make_tables(given.people, size), catalog, given.runs) for size in given.sizes
    }
    after = measure(under, questions, without, catalog, given.runs)  # what runs first runs cold
    base = {name: min(before[name], after[name]) for name in questions}
    found: dict[str, dict[str, Any]] = {name: {"seconds": round(base[name], 3)} for name in questions}
    for size, seconds in by_size.items():
        for name in questions:
            found[name][f"{size}"] = round(seconds[name] / base[name], 2) if base[name] else float("nan")
    if given.json:
        print(json.dumps(found, indent=2))
        return
    show(found, given.sizes, given.people)


def show(found: Mapping[str, Mapping[str, Any]], sizes: Sequence[int], people: int) -> None:
    print(f"| question | seconds | {' | '.join(f'{size:,}' for size in sizes)} |")
    print("|---|" + "---|" * (1 + len(sizes)))
    for name, row in found.items():
        print(f"| {name} | {' | '.join(map(str, row.values()))} |")
    for name, rows in (("visits", 20 * people), ("labs", 5 * people)):
        print(f"| rows: {name} |  | {' | '.join(f'{1 + size / rows:.2f}' for size in sizes)} |")


if __name__ == "__main__":
    main()
