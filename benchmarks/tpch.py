"""How fast questions of the shape of TPC-H run with customers as units, as ratios to plain DuckDB in the same run.

pip install tpchgen-cli; tpchgen-cli parquet -s 1 --output-dir tpch     # the tables of TPC-H as Parquet files
python -m benchmarks.tpch --data tpch
python -m benchmarks.tpch --data tpch --prepare                         # prepared copies, against plain on Parquet
python -m benchmarks.tpch --data tpch --only q01 q09 --runs 5 --json

Orders name their customer, and lines name their order; parts, suppliers and nations are public. Every question stands
here in the words of an analyst, and twice in plain SQL: *plain*, the same numbers exactly, and *distinct*, which also
brings the customer in and counts customers once each, as nobody can bound what a customer adds without knowing the
customer. What cannot be asked of units is changed: groups that are orders or customers (Q3, Q10, Q18) are groups of
these, and what a part sells on average (Q17) is a constant. Q2, Q11, Q16 and Q20 are about public tables.

Numbers are CPU seconds of all threads, the least of some runs that take turns; *first* is our first run, which
opens the files.
"""
# ruff: noqa: S608  # the statements are constants of this file

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import exp, fsum, log
from pathlib import Path
from typing import Any

import duckdb
from pyarrow import parquet

from discreet.bounding.bound import bound
from discreet.codebook import Codebook
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.frontends import read_sql
from discreet.plan.catalog import Catalog
from discreet.privacy import Budget

SALT = bytes(range(16))
PRIVATE = ("customer", "orders", "lineitem")
PUBLIC = ("part", "partsupp", "supplier", "nation", "region")
MAX_ROWS = 200
VOLUME = "l_extendedprice * (1 - l_discount)"


@dataclass(frozen=True)
class Question:
    """What an analyst asks; ``plain`` is what it means without privacy, where that is written otherwise.

    ``unit`` counts customers once each; ``joined`` brings them in where the plain query does not read them.
    """

    text: str
    unit: str = "o_custkey"
    joined: tuple[str, str] | None = None
    plain: str = ""

    @property
    def exact(self) -> str:
        """The plain query."""
        return self.plain or self.text

    @property
    def distinct(self) -> str:
        """The plain query with customers counted once each."""
        head, found, tail = self.exact.rpartition("\nFROM ")
        body = f"{head},\n  COUNT(DISTINCT {self.unit}) AS units{found}{tail}"
        return body if self.joined is None else body.replace(*self.joined)


LINES_OF_ORDERS = ("\nFROM lineitem", "\nFROM lineitem JOIN orders ON l_orderkey = o_orderkey")
QUESTIONS: Mapping[str, Question] = {
    "q01": Question(
        f"""SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS quantity, SUM(l_extendedprice) AS price,
  SUM({VOLUME}) AS discounted, SUM({VOLUME} * (1 + l_tax)) AS charge, AVG(l_quantity) AS each_quantity,
  AVG(l_extendedprice) AS each_price, AVG(l_discount) AS each_discount, COUNT(*) AS n
FROM lineitem WHERE l_shipdate <= DATE '1998-09-02' GROUP BY l_returnflag, l_linestatus""",
        joined=LINES_OF_ORDERS,
    ),
    "q03": Question(
        f"""SELECT o_shippriority, SUM({VOLUME}) AS revenue, COUNT(*) AS n
FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
WHERE c_mktsegment = 'BUILDING' AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
GROUP BY o_shippriority""",
    ),
    "q04": Question(
        """SELECT o_orderpriority, COUNT(*) AS n
FROM orders WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-10-01' AND EXISTS
  (SELECT 1 FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate) GROUP BY o_orderpriority""",
    ),
    "q05": Question(
        f"""SELECT n_name, SUM({VOLUME}) AS revenue
FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
  JOIN supplier ON l_suppkey = s_suppkey JOIN nation ON s_nationkey = n_nationkey
  JOIN region ON n_regionkey = r_regionkey
WHERE c_nationkey = s_nationkey AND r_name = 'ASIA' AND o_orderdate >= DATE '1994-01-01'
  AND o_orderdate < DATE '1995-01-01' GROUP BY n_name""",
    ),
    "q06": Question(
        """SELECT SUM(l_extendedprice * l_discount) AS revenue
FROM lineitem WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
  AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24""",
        joined=LINES_OF_ORDERS,
    ),
    "q07": Question(
        f"""SELECT n1.n_name AS seller, n2.n_name AS buyer, year(l_shipdate) AS y, SUM({VOLUME}) AS revenue
FROM lineitem JOIN orders ON l_orderkey = o_orderkey JOIN customer ON o_custkey = c_custkey
  JOIN supplier ON l_suppkey = s_suppkey JOIN nation n1 ON s_nationkey = n1.n_nationkey
  JOIN nation n2 ON c_nationkey = n2.n_nationkey
WHERE ((n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY') OR (n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE'))
  AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31' GROUP BY n1.n_name, n2.n_name, y""",
    ),
    "q08": Question(
        f"""SELECT year(o_orderdate) AS y, SUM(CASE WHEN n2.n_name = 'BRAZIL' THEN {VOLUME} ELSE 0 END) AS own,
  SUM({VOLUME}) AS everyone
FROM lineitem JOIN orders ON l_orderkey = o_orderkey JOIN customer ON o_custkey = c_custkey
  JOIN part ON l_partkey = p_partkey JOIN supplier ON l_suppkey = s_suppkey
  JOIN nation n1 ON c_nationkey = n1.n_nationkey JOIN region ON n1.n_regionkey = r_regionkey
  JOIN nation n2 ON s_nationkey = n2.n_nationkey
WHERE r_name = 'AMERICA' AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
  AND p_type = 'ECONOMY ANODIZED STEEL' GROUP BY y""",
    ),
    "q09": Question(
        f"""SELECT n_name, year(o_orderdate) AS y, SUM({VOLUME} - ps_supplycost * l_quantity) AS profit
FROM lineitem JOIN orders ON l_orderkey = o_orderkey JOIN part ON l_partkey = p_partkey
  JOIN partsupp ON l_partkey = ps_partkey AND l_suppkey = ps_suppkey JOIN supplier ON l_suppkey = s_suppkey
  JOIN nation ON s_nationkey = n_nationkey
WHERE p_name LIKE '%green%' GROUP BY n_name, y""",
    ),
    "q10": Question(
        f"""SELECT n_name, SUM({VOLUME}) AS revenue, COUNT(*) AS n
FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
  JOIN nation ON c_nationkey = n_nationkey
WHERE o_orderdate >= DATE '1993-10-01' AND o_orderdate < DATE '1994-01-01' AND l_returnflag = 'R' GROUP BY n_name""",
    ),
    "q12": Question(
        """SELECT l_shipmode, SUM(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS high,
  SUM(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 0 ELSE 1 END) AS low
FROM orders JOIN lineitem ON o_orderkey = l_orderkey
WHERE l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate
  AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1995-01-01' GROUP BY l_shipmode""",
    ),
    "q13": Question(
        """SELECT n, COUNT(*) AS customers
FROM (SELECT c_custkey, COUNT(o_orderkey) AS n FROM customer LEFT JOIN orders ON c_custkey = o_custkey
      AND o_comment NOT LIKE '%special%requests%' GROUP BY c_custkey) AS t GROUP BY n""",
        unit="c_custkey",
        joined=None,
    ),
    "q14": Question(
        f"""SELECT SUM(CASE WHEN p_type LIKE 'PROMO%' THEN {VOLUME} ELSE 0 END) AS promoted, SUM({VOLUME}) AS revenue
FROM lineitem JOIN part ON l_partkey = p_partkey
WHERE l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-10-01'""",
        joined=LINES_OF_ORDERS,
    ),
    "q15": Question(
        f"""SELECT l_suppkey, SUM({VOLUME}) AS revenue
FROM lineitem WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE '1996-04-01' GROUP BY l_suppkey""",
        joined=LINES_OF_ORDERS,
    ),
    "q17": Question(
        """SELECT SUM(l_extendedprice) AS yearly
FROM lineitem JOIN part ON l_partkey = p_partkey
WHERE p_brand = 'Brand#23' AND p_container = 'MED BOX' AND l_quantity < 5""",
        joined=LINES_OF_ORDERS,
    ),
    "q18": Question(
        """SELECT COUNT(*) AS n, SUM(quantity) AS quantity
FROM (SELECT o_custkey, l_orderkey, SUM(l_quantity) AS quantity FROM lineitem JOIN orders ON l_orderkey = o_orderkey
      GROUP BY o_custkey, l_orderkey HAVING SUM(l_quantity) > 250) AS t""",
    ),
    "q19": Question(
        f"""SELECT SUM({VOLUME}) AS revenue
FROM lineitem JOIN part ON p_partkey = l_partkey
WHERE l_shipmode IN ('AIR', 'REG AIR') AND l_shipinstruct = 'DELIVER IN PERSON' AND (
  (p_brand = 'Brand#12' AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
    AND l_quantity BETWEEN 1 AND 11 AND p_size BETWEEN 1 AND 5)
  OR (p_brand = 'Brand#23' AND p_container IN ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
    AND l_quantity BETWEEN 10 AND 20 AND p_size BETWEEN 1 AND 10)
  OR (p_brand = 'Brand#34' AND p_container IN ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
    AND l_quantity BETWEEN 20 AND 30 AND p_size BETWEEN 1 AND 15))""",
        joined=LINES_OF_ORDERS,
    ),
    "q21": Question(
        """SELECT n_name, COUNT(*) AS waiting
FROM lineitem l1 JOIN orders ON o_orderkey = l1.l_orderkey JOIN supplier ON s_suppkey = l1.l_suppkey
  JOIN nation ON s_nationkey = n_nationkey
WHERE o_orderstatus = 'F' AND l1.l_receiptdate > l1.l_commitdate
  AND EXISTS (SELECT 1 FROM lineitem l2 WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey)
GROUP BY n_name""",
    ),
    "q22": Question(
        """SELECT substring(c_phone, 1, 2) AS code, COUNT(*) AS n, SUM(c_acctbal) AS balance
FROM customer WHERE substring(c_phone, 1, 2) IN ('13', '31', '23', '29', '30', '18', '17') AND c_acctbal > 0
  AND NOT EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey) GROUP BY code""",
        unit="c_custkey",
    ),
}


def declare(folder: Path) -> Catalog:
    """Customers are protected, in their orders and in the lines of these."""
    frames = {name: parquet.read_schema(folder / f"{name}.parquet").empty_table() for name in (*PRIVATE, *PUBLIC)}
    book = Codebook.from_frames(
        frames,
        unit="customer.c_custkey",
        public=list(PUBLIC),
        unique=["part.p_partkey", "supplier.s_suppkey", "nation.n_nationkey", "region.r_regionkey"],
        foreign_keys={"orders.o_custkey": "customer.c_custkey", "lineitem.l_orderkey": "orders.o_orderkey"},
        max_rows=MAX_ROWS,
        keys={
            "l_returnflag": ["A", "N", "R"],
            "l_linestatus": ["F", "O"],
            "l_shipmode": ["AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"],
            "o_orderpriority": ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"],
            "o_shippriority": [0],
        },
        bounds={
            "l_quantity": (0, 50),
            "l_extendedprice": (0, 105_000),
            "l_discount": (0, 0.1),
            "l_tax": (0, 0.08),
            "c_acctbal": (-1000, 10_000),
            "ps_supplycost": (0, 1000),
        },
        budget=Budget(epsilon=1, delta=1e-6),
    )
    return book.catalog()


def open_plain(folder: Path, threads: int) -> duckdb.DuckDBPyConnection:
    """Plain DuckDB over the same files."""
    connection = duckdb.connect(config={"threads": threads})
    for name in (*PRIVATE, *PUBLIC):
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{folder / name}.parquet')")
    return connection


def take(work: Callable[[], object]) -> float:
    """CPU seconds of all threads."""
    began = time.process_time()
    work()
    return time.process_time() - began


def _ask(connection: duckdb.DuckDBPyConnection, sql: str) -> object:
    return connection.execute(sql).fetchall()


def measure(folder: Path, names: Sequence[str], runs: int, threads: int, *, prepare: bool) -> dict[str, Any]:
    """CPU seconds of each question in its three forms."""
    catalog = declare(folder)
    engine = DuckDBEngine({n: folder / f"{n}.parquet" for n in (*PRIVATE, *PUBLIC)}, catalog, threads=threads)
    plain, found = open_plain(folder, threads), dict[str, Any]()
    catalog = replace(catalog, count_public=engine.count_public)
    if prepare:
        found["prepare"] = fsum(take(partial(engine.prepare, name)) for name in PRIVATE)
    for name in names:
        question = QUESTIONS[name]
        bounded = bound(read_sql.read(question.text, catalog), catalog).bounded
        jobs: dict[str, Callable[[], object]] = {
            "plain": partial(_ask, plain, question.exact),
            "distinct": partial(_ask, plain, question.distinct),
            "ours": partial(engine.run, bounded, salt=SALT),
        }
        first = {job: take(work) for job, work in jobs.items()}
        seconds = dict.fromkeys(jobs, float("inf"))
        for _ in range(runs):
            seconds = {job: min(seconds[job], take(work)) for job, work in jobs.items()}
        found[name] = {**seconds, "first": first["ours"]}
    engine.close()
    return found


def mean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return exp(fsum(map(log, values)) / len(values))


def show(found: Mapping[str, Any], base: str, goals: tuple[float, float]) -> None:
    """One line for each question, and what was promised."""
    questions = {name: found[name] for name in QUESTIONS if name in found}
    print("| question | plain, s | distinct, s | ours, s | ours, first | / plain | / distinct |")
    print("|---|---|---|---|---|---|---|")
    for name, row in questions.items():
        cells = [f"{row[job]:.3f}" for job in ("plain", "distinct", "ours", "first")]
        cells += [f"{row['ours'] / row[job]:.2f}" for job in ("plain", "distinct")]
        print(f"| {name} | {' | '.join(cells)} |")
    ratios = [row["ours"] / row[base] for row in questions.values()]
    print(f"against {base}: mean {mean(ratios):.2f} (goal {goals[0]}), worst {max(ratios):.2f} (goal {goals[1]})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder with the Parquet files of all tables")
    parser.add_argument("--only", nargs="+", choices=QUESTIONS, default=list(QUESTIONS))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--prepare", action="store_true", help="ask prepared copies, and compare with plain on Parquet")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    options = parser.parse_args()
    found = measure(options.data, options.only, options.runs, options.threads, prepare=options.prepare)
    if options.json:
        print(json.dumps(found, indent=2))
    elif options.prepare:
        print(f"prepared once in {found['prepare']:.1f} s")
        show(found, "plain", (1.0, 2.0))
    else:
        show(found, "distinct", (1.15, 1.6))


if __name__ == "__main__":
    main()
