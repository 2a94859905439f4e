"""How fast bounded questions run inside PostgreSQL, as ratios to the plain query in the same database in the same run.

DISCREET_POSTGRES=postgresql://owner@host/database python benchmarks/engines.py                 # 5 million rows
DISCREET_POSTGRES=... python benchmarks/engines.py --rows 1000000 --alone                        # no workers

The role must be allowed to make the schema ``discreet_benchmark``, which is dropped at the end.
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


def _fetch(connection: psycopg.Connection[tuple[object, ...]], sql: str) -> object:
    return connection.execute(sql).fetchall()


def best_of(times: int, work: Callable[[], object]) -> float:
    """The least time of several, in seconds."""
    found = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        found.append(time.perf_counter() - started)
    return min(found)


def main() -> None:
    """Print one line for each form."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--alone", action="store_true", help="no parallel workers, in plain queries and in ours")
    options = parser.parse_args()
    address = os.environ[ADDRESS]
    columns = {column.name: (column.type, ColumnFacts()) for column in (USER, REGION, AMOUNT)}
    table = TableFacts(name="events", columns=columns, unit=Unit("user_id"), limits=ContributionLimits())
    catalog = Catalog(tables={"events": table}, neighbours=Neighbours.ADD_REMOVE)
    with psycopg.connect(address, autocommit=True) as connection:
        make_data(connection, options.rows)
        connection.execute("SET jit = off")
        connection.execute("SET work_mem = '64MB'")
        if options.alone:
            connection.execute("ALTER ROLE CURRENT_USER SET max_parallel_workers_per_gather = 0")
            connection.execute("SET max_parallel_workers_per_gather = 0")
        engine = PostgresEngine({"events": Source()}, catalog)
        plain, distinct = (best_of(options.times, partial(_fetch, connection, sql)) for sql in (PLAIN, DISTINCT))
        print(f"{options.rows:,} rows: plain {plain:.2f} s, with COUNT(DISTINCT) {distinct:.2f} s")
        for name, plan, base in (
            ("row level", ROW_LEVEL, plain),
            ("max_rows", MAX_ROWS, distinct),
            ("groups x rows", GROUPS_ROWS, distinct),
        ):
            own = best_of(options.times, partial(engine.run, plan, salt=SALT))
            print(f"{name:14} {own:6.2f} s  {own / base:5.2f} x")
        connection.execute("ALTER ROLE CURRENT_USER RESET max_parallel_workers_per_gather")
        connection.execute(f"DROP SCHEMA {SCHEMA} CASCADE")


if __name__ == "__main__":
    main()
