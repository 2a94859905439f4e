"""Spark Connect: the same integers, what computes is refused, and the engine's words stay away from those who ask."""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.engines.registry import count_unread, find_stored_tables
from discreet.engines.spark.engine import ADDRESS, SparkEngine
from discreet.engines.spark.session import SparkQuestion, start_spark
from discreet.errors import EngineFailure, UsageError
from discreet.plan.catalog import Catalog
from discreet.plan.source_kinds import SourceKind
from discreet.plan.types import Type
from discreet.privacy import Budget, Neighbours
from tests.engines.conformance.engines import DUCKDB
from tests.engines.conformance.test_tabulation import make_tabulation, tabulate
from tests.engines.spark.clinic import PLANTED, QUESTION, SENTENCE, find_left, write_clinic
from tests.engines.spark.loading import NEEDS_SPARK, LoadedSpark
from tests.engines.spark.servers import run_connect
from tests.engines.spark.test_faults import find_planted, raise_on_values
from tests.engines.worlds import SALT, UNIT, a_world, catalog, frame

WHY = "" if find_spec("grpc_status") else "Spark Connect needs pip install 'pyspark[connect]'"
pytestmark = [*NEEDS_SPARK, pytest.mark.skipif(bool(WHY), reason=WHY)]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("connect")
    with run_connect(folder) as found:
        yield found
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def remote(address: str) -> Iterator[Any]:
    session = start_spark(address)
    yield session
    session.stop()


def test_integers_are_the_same(remote: Any) -> None:
    rows, tabulation = a_world(5, unit=UNIT, most=14).rows, make_tabulation(UNIT)
    engine = LoadedSpark({"t": frame(rows)}, catalog(UNIT), session=remote)
    found = [table.reshape(-1).tolist() for table in engine.tabulate(tabulation, salt=SALT)]
    engine.close()
    assert found == tabulate(DUCKDB, rows, tabulation)


def test_a_codebook_asks_through_connect(address: str, tmp_path: Path) -> None:
    with discreet.open(write_clinic(tmp_path, address=address)) as curator:
        answer = curator.ask(QUESTION, epsilon=1)
        assert answer is not None and find_left(curator) == 1


ASK = """
import sys, discreet
with discreet.open(sys.argv[1]) as curator:
    print(len(curator.ask(sys.argv[2], epsilon=1).rows.rows))
"""


def test_a_program_without_a_file_asks_where_warnings_are_errors(address: str, tmp_path: Path) -> None:
    """PySpark warns of new versions of pandas; there it would take the warning for a reason to end the process."""
    book = write_clinic(tmp_path, address=address)
    words = [sys.executable, "-W", "error", "-c"]
    told = subprocess.run([*words, ASK, str(book), QUESTION], capture_output=True, text=True, check=False)  # noqa: S603
    assert told.stdout.strip() == "2", told.stderr[-2000:]


def test_words_that_quote_values_are_not_printed(
    address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """PySpark's client prints them of its own accord; here they are in the curator's log alone."""
    raise_on_values(monkeypatch)
    with discreet.open(write_clinic(tmp_path, address=address)) as curator:
        capfd.readouterr()
        with caplog.at_level(logging.INFO), pytest.raises(EngineFailure) as failure:
            curator.ask(QUESTION, epsilon=1)
        assert find_left(curator) == 1 and find_planted(failure.value) == []
    said = capfd.readouterr()
    assert str(failure.value) == SENTENCE
    assert PLANTED not in said.out + said.err
    logs = {record.name for record in caplog.records if record.exc_info and PLANTED in str(record.exc_info[1])}
    assert logs == {"discreet.curator"}


def test_a_frame_of_connect_is_a_source(remote: Any, tmp_path: Path) -> None:
    write_clinic(tmp_path)
    given = remote.read.parquet(f"file://{tmp_path}/visits.parquet").select("patient_id", "ward")
    curator = discreet.curate({"visits": given}, unit="patient_id", max_rows=3, budget=Budget(epsilon=1))
    assert curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=1) is not None


COMPUTED: dict[str, Callable[[Any], Any]] = {
    "a condition": lambda frame: frame.where("1 / (days - 1) > 0"),
    "a cast that raises": lambda frame: frame.selectExpr("CAST(note AS INT) AS days", "ward"),
    "a query": lambda frame: frame.sparkSession.sql("SELECT 1 AS days, 'a' AS ward"),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_what_computes_is_refused(name: str, remote: Any, tmp_path: Path) -> None:
    write_clinic(tmp_path)
    given = COMPUTED[name](remote.read.parquet(f"file://{tmp_path}/visits.parquet"))
    with pytest.raises(UsageError, match=r"computes something.*Nothing was charged"):
        SparkEngine({"t": given}, catalog(None)).schema("t")


def test_tables_of_a_catalog_and_views(
    remote: Any, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stored table is read, found by its schema, and its values counted; a view is refused, and not found."""
    write_clinic(tmp_path)
    remote.sql(f"CREATE TABLE visits USING parquet LOCATION 'file://{tmp_path}/stored' AS SELECT 7 AS days")
    remote.sql("CREATE VIEW seen AS SELECT 1 / days AS days FROM visits")
    nothing = Catalog(tables={}, neighbours=Neighbours.ADD_REMOVE)
    engine = SparkEngine({"t": remote.table("default.visits")}, nothing)
    assert set(engine.schema("t")) == {"days"}
    viewed = SparkEngine({"t": remote.table("default.seen")}, nothing)
    with pytest.raises(UsageError, match="computes something"):
        viewed.schema("t")
    monkeypatch.setenv(ADDRESS, address)
    (found,) = find_stored_tables(SourceKind.SPARK, "default").values()
    assert (found.path, found.types) == ("default.visits", {"days": Type.INTEGER})
    stored = replace(found, release="1")
    report = count_unread(stored, "visits", {"days": Type.INTEGER}, {})
    assert report.rows == 1 and report.unread == ()
    remote.sql("DROP VIEW seen")
    remote.sql("DROP TABLE visits")


def test_progress_is_told(remote: Any) -> None:
    shares: list[float] = []
    with SparkQuestion(remote, shares.append) as question:
        question.run("SELECT sum(id % 7) FROM range(0, 30000000, 1, 8)")
    assert all(0 <= share <= 1 for share in shares)
