"""How fast bounded questions run inside PostgreSQL, as ratios to the plain query in the same database in the same run.

python -m benchmarks.engines                              # 5 million rows, a server of its own, as the tests start it
python -m benchmarks.engines --rows 1000000 5000000 20000000 --times 1                # slopes; about 4 GB of disk
DISCREET_POSTGRES=postgresql://owner@host/database python -m benchmarks.engines --alone                 # no workers

With a server of its own, in CPU seconds of all of its processes: every statement has a connection of its own, and a
process counts when it has ended. Otherwise by the clock; then the role must be allowed to make the schema
``discreet_benchmark``, which is dropped at the end. *Disk* is what a statement writes to temporary files.
"""
# ruff: noqa: S608  # the statements are constants of this file

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import psycopg

from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.engines.postgres.address import ADDRESS
from discreet.engines.postgres.engine import PostgresEngine
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.expressions import Column
from discreet.plan.relations import Scan
from discreet.plan.source_kinds import SourceKind
from discreet.plan.types import Type
from discreet.privacy import Neighbours, Unit

SALT = bytes(range(16))
SCHEMA = "discreet_benchmark"
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
PLAIN = f"SELECT region, count(*), sum(amount) FROM {SCHEMA}.events GROUP BY region"
DISTINCT = f"SELECT region, count(*), sum(amount), count(DISTINCT user_id) FROM {SCHEMA}.events GROUP BY region"


@dataclass(frozen=True)
class Source:
    """As a codebook would give it."""

    path: str = f"{SCHEMA}.events"
    kind: SourceKind = SourceKind.POSTGRES


def make_data(connection: psycopg.Connection[tuple[object, ...]], rows: int) -> None:
    """Events of one user for every twenty rows, in 50 regions, the same for the same number of rows."""
    connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
    connection.execute(f"CREATE SCHEMA {SCHEMA}")
    connection.execute(
        f"CREATE TABLE {SCHEMA}.events AS SELECT (hashint8extended(i, 1) & 1073741823) "
        f"% greatest({rows // 20}, 1) AS user_id, 'region ' || (hashint8extended(i, 2) & 1073741823) % 50 AS region, "
        "((hashint8extended(i, 3) & 1073741823) % 12000) / 100.0::float8 AS amount "
        f"FROM generate_series(1, {rows}) AS t(i)"
    )
    connection.execute(f"ALTER TABLE {SCHEMA}.events ALTER region TYPE text, ALTER user_id TYPE bigint")
    connection.execute(f"VACUUM ANALYZE {SCHEMA}.events")


def open_server() -> tuple[str, Callable[[], float]]:
    """The address of a server and how to read the seconds that were spent: CPU time where the server is our own."""
    address = os.environ.get(ADDRESS)
    if address is not None:
        return address, time.perf_counter
    from benchmarks.hostile_person import read_server_cpu
    from tests.engines.postgres.loading import database

    base = database()
    address = base.started.address
    os.environ[ADDRESS] = address
    return address, read_server_cpu(base)


@dataclass(frozen=True)
class Clock:
    """Measures statements on a server, each on a connection of its own."""

    address: str
    read_seconds: Callable[[], float]
    settings: tuple[str, ...]

    def fetch(self, sql: str) -> object:
        with psycopg.connect(self.address, autocommit=True) as connection:
            for setting in self.settings:
                connection.execute(f"SET {setting}")
            return connection.execute(sql).fetchall()

    def read_disk(self) -> int:
        """Bytes of temporary files so far, of connections that have ended."""
        query = "SELECT temp_bytes FROM pg_stat_database WHERE datname = current_database()"
        with psycopg.connect(self.address, autocommit=True) as connection:
            row = connection.execute(query).fetchone()
        return 0 if row is None else int(row[0])

    def measure(self, times: int, work: Callable[[], object]) -> tuple[float, float]:
        """The least seconds of several turns, and the gigabytes through the disk of one."""
        found, before = [], self.read_disk()
        for _ in range(times):
            started = self.read_seconds()
            work()
            found.append(self.read_seconds() - started)
        return min(found), (self.read_disk() - before) / times / 1e9


def measure_size(clock: Clock, engine: PostgresEngine, rows: int, times: int) -> None:
    """Print one line for each form."""
    plain, _ = clock.measure(times, partial(clock.fetch, PLAIN))
    distinct, disk = clock.measure(times, partial(clock.fetch, DISTINCT))
    print(f"{rows:,} rows, load {os.getloadavg()[0]:.1f}: plain {plain:.2f} s, ", end="")
    print(f"with COUNT(DISTINCT) {distinct:.2f} s, disk {disk:.2f} GB")
    for name, plan, base in (
        ("row level", ROW_LEVEL, plain),
        ("max_rows", MAX_ROWS, distinct),
        ("groups x rows", GROUPS_ROWS, distinct),
    ):
        own, disk = clock.measure(times, partial(engine.run, plan, salt=SALT))
        print(f"{name:14} {own:6.2f} s  {own / base:5.2f} x  disk {disk:.2f} GB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[5_000_000])
    parser.add_argument("--times", type=int, default=2)
    parser.add_argument("--alone", action="store_true", help="no parallel workers, in plain queries and in ours")
    options = parser.parse_args()
    address, read_seconds = open_server()
    columns = {column.name: (column.type, ColumnFacts()) for column in (USER, REGION, AMOUNT)}
    table = TableFacts(name="events", columns=columns, unit=Unit("user_id"), limits=ContributionLimits())
    catalog = Catalog(tables={"events": table}, neighbours=Neighbours.ADD_REMOVE)
    clock = Clock(address, read_seconds, ("jit = off", "work_mem = '64MB'"))
    with psycopg.connect(address, autocommit=True) as connection:
        if options.alone:
            connection.execute("ALTER ROLE CURRENT_USER SET max_parallel_workers_per_gather = 0")
    try:
        for rows in options.rows:
            with psycopg.connect(address, autocommit=True) as connection:
                make_data(connection, rows)
            measure_size(clock, PostgresEngine({"events": Source()}, catalog), rows, options.times)
    finally:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("ALTER ROLE CURRENT_USER RESET max_parallel_workers_per_gather")
            connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")


if __name__ == "__main__":
    main()
