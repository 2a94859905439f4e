"""How Spark is started, in processes of their own: nothing that PySpark does there ends the process that asks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from discreet.engines.spark.session import SparkQuestion
from tests.engines.spark.clinic import SENTENCE
from tests.engines.spark.loading import NEEDS_SPARK, SETTINGS, spark

pytestmark = NEEDS_SPARK


def run_program(program: str, *flags: str) -> subprocess.CompletedProcess[str]:
    """A program without a file, so that PySpark takes the process for one of its own tests."""
    return subprocess.run(  # noqa: S603  # our own words
        [sys.executable, *flags, "-c", program], capture_output=True, text=True, check=False, timeout=300
    )


LOAD = "import pyspark.sql.connect.session; print('loaded')"
CLASSIC = "import pyspark.testing.utils\n"  # as the first call of Java does
NO_PANDAS = "import sys; sys.modules['pandas'] = None\n"  # as where it is not installed
START = """
from discreet.engines.spark.session import start_spark
from discreet.errors import UsageError
try:
    start_spark("sc://127.0.0.1:1")
except UsageError as error:
    print("refused:", error)
"""


def test_pyspark_ends_a_process_that_lacks_something() -> None:
    """The cause that the next test is about; a program with a file gets an error instead."""
    ended = run_program(NO_PANDAS + LOAD)
    assert (ended.returncode, ended.stdout) == (0, "") and "Skipping doctests" in ended.stderr
    alike = run_program("import sys; sys.ps1 = '>>> '\n" + NO_PANDAS + LOAD)
    assert alike.returncode == 1 and "PACKAGE_NOT_INSTALLED" in alike.stderr


def test_connect_refuses_where_pyspark_would_end_the_process() -> None:
    told = run_program(NO_PANDAS + START)
    assert told.stdout.startswith("refused: Spark Connect needs more of PySpark.") and told.returncode == 0


def test_connect_is_there_where_warnings_are_errors() -> None:
    """PySpark alone takes its warning for a lack, if it was given before; a session of Connect is had all the same."""
    ended = run_program(CLASSIC + LOAD, "-W", "error")
    assert (ended.returncode, ended.stdout) == (0, "") and "does not yet fully support pandas" in ended.stderr
    own = CLASSIC + "from discreet.engines.spark.session import _import_connect; print(_import_connect().SparkSession)"
    loaded = run_program(own, "-W", "error")
    assert "pyspark.sql.connect.session.SparkSession" in loaded.stdout, loaded.stderr[-2000:]


AGAIN = """
import logging, os, sys
from discreet.engines.spark import session
logging.basicConfig()
ends = [1] * int(sys.argv[1])
os.register_at_fork(after_in_child=lambda: ends and os._exit(1), after_in_parent=lambda: ends and ends.pop())
try:
    print(session.start_spark("local[1]").range(3).count())
except RuntimeError as error:
    print(error)
"""


@pytest.mark.parametrize(("ends", "told"), [(1, "3"), (3, "[JAVA_GATEWAY_EXITED]")])
def test_java_is_started_again(ends: int, told: str) -> None:
    """Forks that end in the child, as gRPC's handlers end them. Not for ever."""
    found = subprocess.run(  # noqa: S603  # our own words
        [sys.executable, "-c", AGAIN, str(ends)], capture_output=True, text=True, check=False, timeout=300
    )
    assert found.stdout.startswith(told), found.stderr[-2000:]
    assert found.stderr.count("it is started again") == min(ends, 2)
    # The terminal is for answers.
    assert not re.search("log4j| WARN |FutureWarning|log level", found.stderr), found.stderr


# A statement that takes all memory while it is planned, where a question would run its own. (Memory that is lacking in
# a task ends Java in any case.)
MEMORY = """
import sys
from pathlib import Path
import discreet
from discreet.engines.spark import jobs, session
from discreet.engines.spark.session import SparkQuestion
from tests.engines.spark.clinic import QUESTION, find_left, write_clinic
if sys.argv[2:]:
    session._OWN_SETTINGS = {k: v for k, v in session._OWN_SETTINGS.items() if "JavaOptions" not in k}
run = SparkQuestion.run
def run_out(question, sql, parameters=None):
    return run(question, "SELECT length(repeat('x', 1000000000)) AS n")
with discreet.open(write_clinic(Path(sys.argv[1]), address="local[1]")) as clinic:
    SparkQuestion.run = run_out
    for number in range(2):
        try:
            clinic.ask(QUESTION, epsilon=1, request="mine")
        except Exception as error:
            print(type(error).__name__, error, find_left(clinic))
"""


def run_out_of_memory(folder: Path, *words: str, patience: float = 300) -> list[str]:
    """What a program says that asks twice, where the memory of Java does not suffice. Java says so itself besides."""
    environment = {**os.environ, "PYSPARK_SUBMIT_ARGS": "--driver-memory 512m pyspark-shell"}
    found = subprocess.run(  # noqa: S603  # our own words
        [sys.executable, "-c", MEMORY, str(folder), *words],
        capture_output=True, text=True, check=False, timeout=patience, env=environment,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr[-2000:]
    return [line for line in found.stdout.splitlines() if not line.startswith("Terminating due to java.lang.")]


def test_java_without_memory_ends_and_so_does_the_question(tmp_path: Path) -> None:
    """The charge stands, and nothing more is charged where Java is gone."""
    first, second = run_out_of_memory(tmp_path)
    assert first == f"EngineFailure {SENTENCE} 1.0"
    assert second == "UsageError The Java of Spark has ended. Start this program again. Nothing was charged. 1.0"


@pytest.mark.long
def test_a_question_would_wait_for_ever(tmp_path: Path) -> None:
    """Negative control: without the option Java runs on, and the question waits for a thread that is gone."""
    with pytest.raises(subprocess.TimeoutExpired):
        run_out_of_memory(tmp_path, "on", patience=120)


def test_rows_move_in_as_many_parts_as_the_cores_need() -> None:
    """No more than 16 for each of two cores; what the owner has set stays where it is less, and in his own session."""
    parts = "spark.sql.shuffle.partitions"
    with SparkQuestion(spark()) as question:
        assert question.spark.conf.get(parts) == SETTINGS[parts] == "1"
        for given, used in {"200": "32", "32": "32", "7": "7"}.items():
            question.spark.conf.set(parts, given)
            question._limit_parts()
            assert question.spark.conf.get(parts) == used
    assert spark().conf.get(parts) == "1"
