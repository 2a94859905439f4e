"""What Spark may read: stored tables and frames of them, and nothing that computes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.engines.registry import SPARK, find_engine
from discreet.engines.spark.engine import SparkEngine
from discreet.errors import EngineFailure, UsageError
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.expressions import Column
from discreet.plan.relations import Scan
from discreet.plan.source_kinds import SourceKind, kind_of_source
from discreet.plan.types import Type
from discreet.privacy import Neighbours, Unit
from tests.engines.spark.loading import missing, spark
from tests.engines.worlds import SALT

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
PLANTED = "4711123"
FACTS = TableFacts(
    name="visits",
    columns={"ward": (Type.TEXT, ColumnFacts(max_length=20)), "days": (Type.INTEGER, ColumnFacts())},
    unit=Unit(),
    limits=ContributionLimits(),
)
CATALOG = Catalog(tables={"visits": FACTS}, neighbours=Neighbours.ADD_REMOVE)
COUNT = BoundedPlan(
    source=Scan("visits"),
    keys=(Column("visits", "ward", Type.TEXT),),
    domain=None,
    unit=None,
    measures=(Measure(counts=Counts.ROWS),),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "visits.parquet"
    pq.write_table(pa.table({"ward": ["a", "b", "a", PLANTED], "days": [1, 2, 3, 4]}), file)
    return file


def test_a_frame_of_a_stored_table_is_a_source(path: Path) -> None:
    """With columns left out or renamed; its own session stays as it is."""
    frame = spark().read.parquet(str(path)).select("days", "ward").withColumnRenamed("days", "Days")
    assert kind_of_source(frame, "visits") is SourceKind.SPARK and find_engine({"visits": frame}) is SPARK
    engine = SparkEngine({"visits": frame}, CATALOG)
    groups = engine.run(COUNT, salt=SALT)
    assert groups.keys == ((PLANTED,), ("a",), ("b",)) and groups.values == ((1, 2, 1),)
    assert engine.version("visits") == engine.version("visits")
    engine.close()
    assert spark().conf.get("spark.sql.ansi.enabled") == "true"


COMPUTED: dict[str, Callable[[Any], Any]] = {
    "a cast that raises": lambda frame: frame.selectExpr("CAST(ward AS INT) AS days", "ward"),
    "a condition": lambda frame: frame.where("1 / (days - 1) > 0"),
    "rows of Python": lambda frame: spark().createDataFrame(frame.rdd),
    "a view": lambda frame: (frame.createOrReplaceTempView("seen"), spark().table("seen"))[1],
}


@pytest.mark.parametrize("name", COMPUTED)
def test_what_computes_is_refused(name: str, path: Path) -> None:
    with pytest.raises(UsageError, match=r"'visits' computes something.*Nothing was charged"):
        SparkEngine({"visits": COMPUTED[name](spark().read.parquet(str(path)))}, CATALOG)


def test_a_text_file_is_refused(tmp_path: Path) -> None:
    """Its values are parsed, in a mode that may raise."""
    (tmp_path / "v.csv").write_text("ward,days\na,1\n")
    frame = spark().read.csv(str(tmp_path / "v.csv"), header=True, schema="ward STRING, days BIGINT", mode="FAILFAST")
    with pytest.raises(UsageError, match="computes something"):
        SparkEngine({"visits": frame}, CATALOG)


def test_spark_s_own_words_reach_the_log_alone(
    path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """A file that loses a column type: the words name it, and the error does not."""
    engine = SparkEngine({"visits": path}, CATALOG, spark=spark())
    pq.write_table(pa.table({"ward": [PLANTED], "days": [[1]]}), path)
    with caplog.at_level(logging.ERROR, "discreet.curator"), pytest.raises(EngineFailure) as caught:
        engine.run(COUNT, salt=SALT)
    said = capfd.readouterr()
    assert PLANTED not in said.out + said.err + str(caught.value) and caught.value.__cause__ is None
    assert caplog.records
    engine.close()
