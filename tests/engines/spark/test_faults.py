"""What happens when Spark fails in mid-question: the charge stands, one constant sentence, and nothing leaks.

A statement that raises and quotes a value is a real fault. A question that cannot be run and executors that are gone
are acted out here (``test_cluster`` has real workers). A planted word must be in no exception, in no frame of it, on no
stream and in no log but the curator's own.
"""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.curator import Curator
from discreet.engines.spark import jobs, session
from discreet.engines.spark.dialect import SparkDialect
from discreet.engines.spark.session import SparkQuestion
from discreet.errors import EngineFailure, LedgerStopped, UsageError
from discreet.ledger.base_ledger import BaseLedger
from tests.engines.spark.clinic import PLANTED, QUESTION, SENTENCE, find_left, write_clinic
from tests.engines.spark.loading import NEEDS_SPARK, spark

pytestmark = NEEDS_SPARK
LONG_WORK = "SELECT sum(id * id % 7) FROM range(1000000000000)"


@pytest.fixture
def clinic(tmp_path: Path) -> Iterator[Curator]:
    spark()
    with discreet.open(write_clinic(tmp_path)) as curator:
        yield curator


def find_planted(error: BaseException) -> list[str]:
    """Where an error, what it carries along or a frame that it came through holds the planted word."""
    found, seen = [], [error]
    for each in seen:
        seen += [other for other in (each.__cause__, each.__context__) if other is not None and other not in seen]
        if PLANTED in "".join(traceback.format_exception(each)) + repr(each.args):
            found.append(repr(type(each)))
        for frame, _ in traceback.walk_tb(each.__traceback__):
            if frame.f_globals["__name__"].startswith("discreet"):
                found += [f"{frame.f_code.co_name}.{k}" for k, v in frame.f_locals.items() if PLANTED in repr(v)]
    return found


def raise_on_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement without guards in ANSI mode: Spark quotes the value that it cannot read."""
    monkeypatch.setattr(SparkDialect, "length", lambda _, text: f"CAST({text} AS BIGINT)")
    monkeypatch.setattr(session, "SETTINGS", {**session.SETTINGS, "spark.sql.ansi.enabled": "true"})


def test_words_that_quote_values_stay_in_the_curators_log(
    clinic: Curator,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    raise_on_values(monkeypatch)
    capfd.readouterr()
    with caplog.at_level(logging.DEBUG), pytest.raises(EngineFailure) as failure:
        clinic.ask(QUESTION, epsilon=1)
    assert find_planted(failure.value) == [] and str(failure.value) == SENTENCE
    said = capfd.readouterr()
    assert PLANTED not in said.out + said.err
    logs = {record.name for record in caplog.records if record.exc_info and PLANTED in str(record.exc_info[1])}
    assert logs == {"discreet.curator"}  # and the fault was one that quotes values
    assert all(PLANTED not in record.getMessage() for record in caplog.records if record.name != "py4j.clientserver")


def test_the_words_would_be_seen(
    clinic: Curator, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Where the error is not hidden, the test above finds the value."""
    raise_on_values(monkeypatch)
    with SparkQuestion(spark()) as question, pytest.raises(Exception, match="CAST_INVALID_INPUT") as failure:
        question.run(f"SELECT CAST('{PLANTED}' AS BIGINT)")
    assert find_planted(failure.value)


def test_a_request_finishes_under_its_charge(clinic: Curator, tmp_path: Path) -> None:
    """Spark fails twice, acted out: the charge stands, and buys the answer later."""
    run, failures = SparkQuestion.run, list[str]()

    def failing(question: Any, sql: str, parameters: Any = None) -> Any:
        failures.append(sql)
        raise RuntimeError(PLANTED)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SparkQuestion, "run", failing)
        with pytest.raises(EngineFailure) as failure:
            clinic.ask(QUESTION, epsilon=1, request="mine")
    assert SparkQuestion.run is run and len(failures) == 2  # it was tried once more, by itself
    assert str(failure.value) == SENTENCE and find_planted(failure.value) == [] and find_left(clinic) == 1
    with pytest.raises(LedgerStopped):
        clinic.ask("SELECT COUNT(*) AS n FROM visits", epsilon=0.5)
    assert isinstance(clinic.ledger, BaseLedger)
    clinic.ledger.allow(by="owner", reason="the cluster is back")
    assert clinic.ask(QUESTION, epsilon=1, request="mine") is not None and find_left(clinic) == 1


def test_a_cluster_without_executors_is_refused_before_a_charge(
    clinic: Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "count_executors", lambda _: 0)
    monkeypatch.setattr(jobs, "LOST_AFTER", 0.0)
    with pytest.raises(UsageError, match=r"has no executors.*Nothing was charged"):
        clinic.ask(QUESTION, epsilon=1)
    assert find_left(clinic) == 2


def test_a_cluster_that_loses_its_executors_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The work would take hours."""
    monkeypatch.setattr(jobs, "count_executors", lambda _: 0)
    monkeypatch.setattr(jobs, "LOST_AFTER", 0.0)
    with SparkQuestion(spark()) as question, pytest.raises(Exception, match=r"(?i)cancel"):
        question.run(LONG_WORK)
    assert any("has no executors" in record.getMessage() for record in caplog.records)


def test_a_question_can_be_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """From another thread; nothing runs on, and the names of the thread's jobs are the owner's again."""
    context = spark().sparkContext
    context.setLocalProperty("spark.job.description", "the owner's")
    question = SparkQuestion(spark())
    ender = threading.Timer(1.0, lambda: question.close(cancel=True))
    ender.start()
    with pytest.raises(Exception, match=r"(?i)cancel"):
        question.run(LONG_WORK)
    ender.join()
    question.close()
    assert context.statusTracker().getActiveJobsIds() == []
    assert context.getLocalProperty("spark.job.description") == "the owner's"
    context.setLocalProperty("spark.job.description", None)


def test_progress_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares between 0 and 1, while the work goes on."""
    monkeypatch.setattr(jobs, "LOOK_EVERY", 0.01)
    shares: list[float] = []
    with SparkQuestion(spark(), shares.append) as question:
        question.run("SELECT sum(id % 7) FROM range(0, 3000000, 1, 8)")
    assert shares and all(0 <= share <= 1 for share in shares)


def test_a_process_has_one_spark() -> None:
    spark()
    with pytest.raises(UsageError, match=r"has a Spark already, at local\[2\].*Nothing was charged"):
        session.start_spark("local[3]")


def test_without_java_the_way_to_get_it_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(UsageError, match=r"needs Java 17.*openjdk-17-jre-headless.*Nothing was charged"):
        session.start_spark("local[2]")


def test_without_pyspark_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing_module(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(session, "import_module", missing_module)
    with pytest.raises(UsageError, match=r"discreet\[spark\].*Nothing was charged"):
        session.start_spark("local[2]")
