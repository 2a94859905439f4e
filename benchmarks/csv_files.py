"""Questions about a CSV file against DuckDB's own reader, in CPU seconds of all threads.

python benchmarks/csv_files.py                    # 5 million rows: a user, a region and an amount

*First* reads the lines by our own rule (``engines/duckdb/csv_lines.py``) into a copy and asks it; *next* asks the copy.
DuckDB is told the types, so that it sniffs nothing, and asks the file itself each time.
"""
# ruff: noqa: S608  # the statements are constants of this file

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import duckdb
from benchmarks.questions import AMOUNT, MAX_ROWS, REGION, ROW_LEVEL, SALT, an_engine, make_data

KINDS = {"user_id": "BIGINT", "region": "VARCHAR", "amount": "DOUBLE"}


def make_csv(folder: Path, rows: int) -> Path:
    """The rows of ``benchmarks/questions.py`` as CSV; made once."""
    path = folder / f"events-{rows}.csv"
    if not path.exists():
        parquet = make_data(folder, rows)
        with duckdb.connect() as connection:
            connection.execute(f"COPY (FROM '{parquet}') TO '{path}.part' (FORMAT csv, HEADER)")
        Path(f"{path}.part").rename(path)
    return path


def measure(path: Path, threads: int, repeats: int) -> dict[str, float]:
    """The least of several turns."""
    plain = duckdb.connect(config={"threads": threads})
    columns = ", ".join(f"'{name}': '{kind}'" for name, kind in KINDS.items())
    events = f"read_csv('{path}', header = true, auto_detect = false, columns = {{{columns}}})"
    sums = f"SELECT {REGION.name}, count(*), sum({AMOUNT.name}) FROM {events} GROUP BY 1"
    found = dict.fromkeys(("DuckDB", "first, row level", "next, row level", "next, max_rows"), float("inf"))

    def clock(name: str, started: float) -> None:
        found[name] = min(found[name], time.process_time() - started)

    for _ in range(repeats):
        started = time.process_time()
        plain.execute(sums).fetchall()
        clock("DuckDB", started)
        engine = an_engine(path, threads)
        for name, bounded in (
            ("first, row level", ROW_LEVEL),
            ("next, row level", ROW_LEVEL),
            ("next, max_rows", MAX_ROWS),
        ):
            started = time.process_time()
            engine.run(bounded, salt=SALT)
            clock(name, started)
        engine.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "discreet-benchmarks")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    seconds = measure(make_csv(options.cache, options.rows), options.threads, options.repeats)
    if options.json:
        print(json.dumps(seconds, indent=2))
        return
    for name, value in seconds.items():
        print(f"  {name:<20}{value:8.2f} s{value / seconds['DuckDB']:8.2f} x")


if __name__ == "__main__":
    main()
