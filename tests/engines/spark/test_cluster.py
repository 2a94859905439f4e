"""A master with two workers, one of which is killed in mid-question: identical integers, and one charge.

Then the other one is killed, too, and the next question is refused instead of being waited for. A process has one
Spark, so questions are asked by a process of its own, which this file is, too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import discreet
from discreet.bounding.contributions import BoundedPlan
from discreet.codebook import Codebook
from discreet.curator import Curator
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.engine import Groups
from discreet.engines.spark import jobs
from discreet.engines.spark.engine import SparkEngine
from discreet.errors import UsageError
from tests.engines.spark.clinic import QUESTION, find_left, write_clinic
from tests.engines.spark.loading import NEEDS_SPARK
from tests.engines.spark.servers import run_cluster
from tests.engines.worlds import SALT

pytestmark = NEEDS_SPARK
FILES = 24


def test_a_worker_is_killed_in_mid_question(tmp_path: Path) -> None:
    """The same rows give the same integers with two workers, with one that dies, and on this machine alone."""
    with run_cluster(tmp_path, workers=2) as (address, workers):
        write_clinic(tmp_path, address=address, files=FILES)
        asking = subprocess.Popen(  # noqa: S603  # this file
            [sys.executable, "-m", "tests.engines.spark.test_cluster", str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
            text=True,
        )
        try:
            wait_for(tmp_path / "working", asking)
            workers[0].kill()
            (tmp_path / "killed").touch()
            wait_for(tmp_path / "answered", asking)
            workers[1].kill()
            told = json.loads(asking.communicate(timeout=400)[0].splitlines()[-1])
        finally:
            asking.kill()
    assert told["killed while it ran"]
    assert told["killed"] == told["again"] == told["alone"]
    assert told["left"] == [2.0, 1.0, 1.0]
    assert "has no executors" in told["refused"] and "Nothing was charged" in told["refused"]


def wait_for(path: Path, asking: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 300
    while not path.exists():
        assert asking.poll() is None and time.monotonic() < end
        time.sleep(0.1)


def ask(folder: Path) -> dict[str, Any]:
    """Ask while a worker is killed; then compute the same integers again, here and there."""
    run, found = SparkEngine.run, list[tuple[BoundedPlan, Groups]]()

    def recording(engine: SparkEngine, bounded: BoundedPlan, **options: Any) -> Groups:
        found.append((bounded, run(engine, bounded, **options)))
        return found[-1][1]

    SparkEngine.run = recording  # type: ignore[method-assign, assignment]  # what comes out is looked at
    book = Codebook.load(folder / "clinic.toml")
    with discreet.open(folder / "clinic.toml") as curator:
        engine: Any = curator._engine
        assert jobs.count_executors(engine._spark) is not None
        left, over, seen = [find_left(curator)], threading.Event(), list[bool]()

        def signal() -> None:
            tracker = engine._spark.sparkContext.statusTracker()
            while not tracker.getActiveStageIds() and not over.wait(0.02):
                pass
            (folder / "working").touch()
            while not (folder / "killed").exists() and not over.wait(0.02):
                pass
            seen.append(not over.is_set())

        signals = threading.Thread(target=signal)
        signals.start()
        curator.ask(QUESTION, epsilon=1)
        over.set()
        signals.join()
        left.append(find_left(curator))
        ((bounded, killed),) = found
        again = run(engine, bounded, salt=SALT)
        (folder / "answered").touch()
        refused = ask_nobody(curator, engine._spark)
        left.append(find_left(curator))
    alone = DuckDBEngine({"visits": f"{folder}/visits-*.parquet"}, book.catalog()).run(bounded, salt=SALT)
    told = {"killed": killed, "again": again, "alone": alone}
    return {
        **{name: [groups.keys, groups.values] for name, groups in told.items()},
        "left": left,
        "refused": refused,
        "killed while it ran": seen == [True],
    }


def ask_nobody(curator: Curator, spark: Any) -> str:
    """What is said to a question when the last worker is gone."""
    end = time.monotonic() + 120
    while jobs.count_executors(spark) and time.monotonic() < end:
        time.sleep(0.2)
    jobs.LOST_AFTER = 3.0
    try:
        curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=0.5)
    except UsageError as error:
        return str(error)
    return "answered"


if __name__ == "__main__":
    print(json.dumps(ask(Path(sys.argv[1]))))  # noqa: T201  # told to the test
