"""How fast bounded questions run on Spark, as ratios to the plain query in the same session, and what they shuffle.

python benchmarks/spark.py                              # 5 million rows of Parquet, on this machine
python benchmarks/spark.py --rows 20000000 --times 4
python benchmarks/spark.py --slope                      # 1, 5 and 20 million rows
python benchmarks/spark.py --partitions 2               # as few parts as two cores need, for the plain query, too
python benchmarks/spark.py --rows 1000000 --tumult .venvs/tumult/bin/python     # and a peer on its own example

Needs the extra ``spark`` and Java 17. Seconds are of the processor, of Java and of this process together, best of
several, because other work on the machine does not change them so much; bytes are what Spark writes for its exchanges.
"""
# ruff: noqa: S608  # the statements are constants of this file

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

import discreet
from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.engines.spark.engine import SparkEngine
from discreet.engines.spark.session import import_pyspark_sql
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.expressions import Column
from discreet.plan.relations import Scan
from discreet.plan.types import Type
from discreet.privacy import Budget, Neighbours, Unit

SALT = bytes(range(16))
USER = Column("events", "user_id", Type.INTEGER)
REGION = Column("events", "region", Type.TEXT)
AMOUNT = Column("events", "amount", Type.REAL)
MEASURES = (
    Measure(counts=Counts.ROWS),
    Measure(counts=Counts.STEPS, argument=AMOUNT, resolution=Fraction(1, 100), first=0, last=10_000),
)
ROW_LEVEL = BoundedPlan(source=Scan("events"), keys=(REGION,), domain=None, unit=None, measures=MEASURES)
MAX_ROWS = replace(ROW_LEVEL, unit=USER, max_rows=15, weight_bits=24)
GROUPS_ROWS = replace(ROW_LEVEL, unit=USER, max_groups=5, max_rows_per_group=3, weight_bits=24)
PLAIN = "SELECT region, count(*), sum(amount) FROM events GROUP BY region"
DISTINCT = "SELECT region, count(*), sum(amount), count(DISTINCT user_id) FROM events GROUP BY region"


@dataclass(frozen=True)
class Cost:
    """What one run took: seconds of the processor, seconds of the clock, bytes written for exchanges."""

    cpu: float
    clock: float
    shuffled: int


def make_data(path: Path, rows: int) -> None:
    """Events of one user for every twenty rows, in 50 regions, the same for the same number of rows."""
    duckdb.sql(
        f"COPY (SELECT CAST(hash(i, 1) % {max(rows // 20, 1)} AS BIGINT) AS user_id, "
        "'region ' || (hash(i, 2) % 50) AS region, CAST(hash(i, 3) % 12000 AS DOUBLE) / 100 AS amount "
        f"FROM range({rows}) AS t(i)) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 500000)"
    )


def measure(spark: Any, times: int, **jobs: Callable[[], object]) -> dict[str, Cost]:
    """The least of several runs of each job. Jobs take turns, so that Java has compiled as much for each of them."""
    found: dict[str, list[Cost]] = {name: [] for name in jobs}
    for _ in range(times):
        for name, work in jobs.items():
            before, started, written = read_cpu(spark), time.perf_counter(), read_shuffled(spark)
            work()
            cpu, clock = read_cpu(spark) - before, time.perf_counter() - started
            found[name].append(Cost(cpu, clock, read_shuffled(spark) - written))
    return {
        name: Cost(min(c.cpu for c in costs), min(c.clock for c in costs), costs[-1].shuffled)
        for name, costs in found.items()
    }


def find_java(spark: Any) -> Path:
    """Where this machine tells about the process of Java."""
    return Path(f"/proc/{spark._jvm.java.lang.ProcessHandle.current().pid()}")  # noqa: SLF001


def read_memory(spark: Any) -> float:
    """The most GiB of memory that Java has held so far; its heap is bounded by ``spark.driver.memory``."""
    lines = (find_java(spark) / "status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 2**20


def read_cpu(spark: Any) -> float:
    """Seconds of the processor that Java and this process have used."""
    fields = (find_java(spark) / "stat").read_text()
    user, system = map(int, fields.rpartition(")")[2].split()[11:13])
    return (user + system) / os.sysconf("SC_CLK_TCK") + time.process_time()


def read_shuffled(spark: Any) -> int:
    """Bytes that all stages so far have written for exchanges."""
    store = spark._jsparkSession.sparkContext().statusStore()  # noqa: SLF001
    executors = store.executorList(False)  # of Scala: all of them, active or not
    return sum(executors.apply(i).totalShuffleWrite() for i in range(executors.size()))


def compare(spark: Any, rows: int, times: int, path: Path) -> None:
    """Print one line for each form."""
    make_data(path, rows)
    columns = {column.name: (column.type, ColumnFacts(max_length=20)) for column in (USER, REGION, AMOUNT)}
    table = TableFacts(name="events", columns=columns, unit=Unit("user_id"), limits=ContributionLimits())
    catalog = Catalog(tables={"events": table}, neighbours=Neighbours.ADD_REMOVE)
    spark.read.parquet(f"file://{path}").createOrReplaceTempView("events")
    engine = SparkEngine({"events": path}, catalog, spark=spark)
    plans = {"row level": ROW_LEVEL, "max_rows": MAX_ROWS, "groups x rows": GROUPS_ROWS}
    found = measure(
        spark,
        times,
        plain=lambda: spark.sql(PLAIN).toArrow(),
        distinct=lambda: spark.sql(DISTINCT).toArrow(),
        **{name: partial(engine.run, plan, salt=SALT) for name, plan in plans.items()},
    )
    print(f"{rows:,} rows; processor, clock, shuffled")
    for name, cost in found.items():
        line = f"  {name:16} {cost.cpu:7.2f} s {cost.clock:7.2f} s {cost.shuffled / 2**20:9.1f} MiB"
        if name in plans:
            base = "plain" if name == "row level" else "distinct"
            line += f"  {cost.cpu / found[base].cpu:5.2f} x and {cost.clock / found[base].clock:5.2f} x {base}"
        print(line, flush=True)
    print(f"  at most {read_memory(spark):.2f} GiB in Java; load average {os.getloadavg()[0]:.1f}", flush=True)
    engine.close()


@dataclass(frozen=True)
class PeerQuestion:
    """A count, and perhaps a sum, by public keys, of people who own rows: asked of us and of Tumult."""

    unit: str
    key: str
    keys: tuple[str, ...]
    max_rows: int | None = None
    max_groups: int | None = None
    max_rows_per_group: int | None = None
    total: tuple[str, int, int] | None = None

    def ask(self, frame: Any) -> None:
        """A whole question, with a curator of its own: noise and charge included."""
        sums = f", SUM({self.total[0]}) AS total" if self.total else ""
        bounds = {self.total[0]: self.total[1:]} if self.total else {}
        with discreet.curate(
            {"rows": frame},
            unit=self.unit,
            max_rows=self.max_rows,
            max_groups=self.max_groups,
            max_rows_per_group=self.max_rows_per_group,
            bounds=bounds,
            keys={self.key: list(self.keys)},
            budget=Budget(epsilon=2),
        ) as curator:
            curator.ask(f"SELECT {self.key}, COUNT(*) AS n{sums} FROM rows GROUP BY {self.key}", epsilon=2)


REGIONS = PeerQuestion(
    unit="user_id",
    key="region",
    keys=tuple(f"region {i}" for i in range(50)),
    max_groups=5,
    max_rows_per_group=3,
    total=("amount", 0, 100),
)
# Of the shape of its tutorial on privacy IDs: how often members of a library checked out each book, and five of them.
ISBNS = tuple(f"{7919 * book:010}" for book in range(2000))
BOOKS = PeerQuestion(unit="member_id", key="isbn", keys=ISBNS, max_rows=20)
FIVE_BOOKS = replace(BOOKS, keys=ISBNS[:5], max_rows=None, max_groups=5, max_rows_per_group=1)


def make_checkouts(path: Path, rows: int) -> None:
    """Checkouts of twenty books by each member on average, of which some books have many and most have few."""
    book = f"CAST(floor({len(ISBNS)} * power(CAST(hash(i, 2) % 1000000 AS DOUBLE) / 1000000, 2)) AS BIGINT)"
    duckdb.sql(
        f"COPY (SELECT CAST(hash(i, 1) % {max(rows // 20, 1)} AS BIGINT) AS member_id, "
        "lpad(CAST(7919 * book AS VARCHAR), 10, '0') AS isbn, 'The Book ' || book AS title, "
        "'Author ' || (book % 700) AS author, 1900 + book % 120 AS publication_date, "
        "'Publisher ' || (book % 90) AS publisher, 'Genre ' || (book % 15) AS genres "
        f"FROM (SELECT i, {book} AS book FROM range({rows}) AS t(i))) "
        f"TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 500000)"
    )


def compare_with_tumult(spark: Any, path: Path, rows: int, times: int, python: str) -> None:
    """Whole questions, noise and charge included, of both systems one after the other."""
    checkouts = path.with_name(f"checkouts-{rows}.parquet")
    make_checkouts(checkouts, rows)
    script = Path(__file__).parent / "peers" / "tumult_questions.py"
    asked = {
        "count, sum by 50 regions": (path, REGIONS),
        "2,000 books": (checkouts, BOOKS),
        "5 books": (checkouts, FIVE_BOOKS),
    }
    for name, (data, question) in asked.items():
        frame = spark.read.parquet(f"file://{data}")
        own = measure(spark, times, ask=partial(question.ask, frame))["ask"]
        command = [python, str(script), str(data), str(times), json.dumps(asdict(question))]
        told = subprocess.run(command, capture_output=True, text=True, check=True)
        cpu, clock = json.loads(told.stdout.splitlines()[-1])
        print(
            f"  {name:26} {own.cpu:6.2f} s {own.clock:6.2f} s; Tumult {cpu:6.2f} s {clock:6.2f} s:"
            f" {cpu / own.cpu:5.1f} x the processor, {clock / own.clock:5.1f} x the clock",
            flush=True,
        )


def main() -> None:
    """Measure one size, or several."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--slope", action="store_true", help="1, 5 and 20 million rows")
    parser.add_argument(
        "--partitions", type=int, help="parts in which the plain query moves rows; Spark's own if not said"
    )
    parser.add_argument("--tumult", help="the Python of an environment with Tumult Analytics")
    options = parser.parse_args()
    builder = import_pyspark_sql().SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.log.level", "OFF").config("spark.driver.memory", "4g")
    if options.partitions is not None:
        builder = builder.config("spark.sql.shuffle.partitions", options.partitions)
    spark = builder.getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        for rows in (1_000_000, 5_000_000, 20_000_000) if options.slope else (options.rows,):
            path = Path(folder, f"events-{rows}.parquet")
            compare(spark, rows, options.times, path)
            if options.tumult:
                compare_with_tumult(spark, path, rows, options.times, options.tumult)
    spark.stop()


if __name__ == "__main__":
    main()
