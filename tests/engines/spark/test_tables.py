"""What Spark may read: stored tables and frames of them, and nothing that computes."""

# ruff: noqa: DTZ001  # plan times have no zone
from __future__ import annotations

import datetime as dt
import decimal
import logging
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.engines.registry import SPARK, find_engine
from discreet.engines.spark import scanning
from discreet.engines.spark.engine import SparkEngine
from discreet.engines.spark.session import SparkQuestion
from discreet.engines.spark.tables import ParquetFiles
from discreet.errors import EngineFailure, UsageError
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.expressions import Column
from discreet.plan.relations import Scan
from discreet.plan.source_kinds import SourceKind, kind_of_source
from discreet.plan.types import LARGEST_REAL, Type, Value
from discreet.privacy import Neighbours, Unit
from tests.engines.spark.loading import NEEDS_SPARK, spark
from tests.engines.worlds import SALT

pytestmark = NEEDS_SPARK
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


def test_the_schema_of_files_is_looked_up_once_for_each_version(path: Path) -> None:
    """Each look is a job of Spark's. A file that was replaced is read with the types that it has now."""
    files = ParquetFiles((str(path),))
    question = SparkQuestion(spark())
    looked = files.load(question, "visits")
    again = files.load(question, "visits")
    assert again.schema == looked.schema and again.collect() == looked.collect()
    pq.write_table(pa.table({"days": ["5"], "ward": ["c"]}), path)
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))  # clocks of files are coarse
    replaced = files.load(question, "visits")
    assert dict(replaced.dtypes) == {"days": "string", "ward": "string"}
    assert [tuple(row) for row in replaced.collect()] == [("5", "c")]
    assert len(files._schemas) == 1


def make_broken_texts() -> pa.Array:
    """Texts of which the second and the last one, which has more than 20 bytes, are not UTF-8."""
    texts = [b"a", b"\xff\xfe", "é".encode(), b"\xf0\x9f\x98" * 8]
    return pa.array(texts, pa.binary()).view(pa.string())


NAN, INFINITY, BIG = float("nan"), float("inf"), decimal.Decimal(2**63)
STORED: dict[str, tuple[pa.Array, Type, list[Any]]] = {
    "texts": (make_broken_texts(), Type.TEXT, ["a", None, "é", None]),
    "long texts": (pa.array(["x" * 20, "é" * 20, "😀" * 20, "x" * 21, "é" * 21, "a ", "A"]), Type.TEXT,
                   ["x" * 20, "é" * 20, "😀" * 20, None, None, "a ", "A"]),
    "doubles": (pa.array([NAN, INFINITY, -INFINITY, -0.0, 5e-324, None]), Type.REAL,
                [None, LARGEST_REAL, -LARGEST_REAL, 0.0, 5e-324, None]),
    "floats": (pa.array([NAN, INFINITY, -0.0, 0.1], pa.float32()), Type.REAL,
               [None, LARGEST_REAL, 0.0, float(np.float32(0.1))]),
    "wide whole numbers": (pa.array([BIG, BIG - 1, -BIG, -BIG - 1, None], pa.decimal128(20, 0)), Type.INTEGER,
                           [None, 2**63 - 1, -(2**63), None, None]),
    "numbers without a sign": (pa.array([2**64 - 1, 2**63 - 1], pa.uint64()), Type.INTEGER, [None, 2**63 - 1]),
    "decimals": (pa.array([decimal.Decimal("1234.56")], pa.decimal128(6, 2)), Type.REAL, [1234.56]),
    "doubles as whole numbers": (pa.array([2.0**63, -(2.0**63), 1.5, 3.0, NAN]), Type.INTEGER,
                                 [None, -(2**63), None, 3, None]),
    "texts as numbers": (pa.array(["5d", " 7 ", "1_000", "0x1F", "1e400", "+-1", ""]), Type.INTEGER,
                         [None, 7, None, None, None, None, None]),
    "days": (pa.array([0, 2_932_896, 2_932_897, -719_162, -719_163], pa.int32()).view(pa.date32()), Type.DATE,
             [dt.date(1970, 1, 1), dt.date(9999, 12, 31), None, dt.date(1, 1, 1), None]),
    "moments of a zone": (pa.array([1_711_848_600_000_000], pa.timestamp("us", tz="Europe/Berlin")), Type.TIMESTAMP,
                          [dt.datetime(2024, 3, 31, 1, 30)]),
    "moments": (pa.array([1_711_848_600_000_000, 2**62], pa.timestamp("us")), Type.TIMESTAMP,
                [dt.datetime(2024, 3, 31, 1, 30), None]),
}  # fmt: skip  # what is stored, the declared type, and what a question reads


@pytest.mark.parametrize("name", STORED)
def test_what_cannot_be_read_is_null(name: str, tmp_path: Path) -> None:
    """By the keys of a question, in their order; keys that are equal, NULL among them, are told apart by a number."""
    stored, kind, wanted = STORED[name]
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"i": range(len(stored)), "x": stored}), file)
    facts = {"i": (Type.INTEGER, ColumnFacts()), "x": (kind, ColumnFacts(max_length=20))}
    table = TableFacts(name="t", columns=facts, unit=Unit(), limits=ContributionLimits())
    catalog = Catalog(tables={"t": table}, neighbours=Neighbours.ADD_REMOVE)
    keys = (Column("t", "i", Type.INTEGER), Column("t", "x", kind))
    asked = BoundedPlan(source=Scan("t"), keys=keys, domain=None, unit=None, measures=(Measure(counts=Counts.ROWS),))
    engine = SparkEngine({"t": file}, catalog, spark=spark())
    found = [key[1] for key in engine.run(asked, salt=SALT).keys]
    engine.close()
    assert found == wanted and [str(value) for value in found] == [str(value) for value in wanted]


NO_KEYS = [b"\xff", b"\xff", b"\xfe\xff", b"\xf0\x9f\x98" * 8, b"x" * 21, "é".encode() * 21, None]


def count_texts(folder: Path) -> dict[Value, int]:
    """Rows by a text of at most 20 letters: two of one key, one of another, and many that are none."""
    stored = pa.array([*NO_KEYS, b"a", "😀".encode() * 20, b"a"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"ward": stored, "days": range(len(stored))}), folder / "t.parquet")
    engine = SparkEngine({"visits": folder / "t.parquet"}, CATALOG, spark=spark())
    groups = engine.run(COUNT, salt=SALT)
    public = [
        engine.run(replace(COUNT, domain=domain), salt=SALT) for domain in ((("a",), ("b",), (None,)), (("a",), ("b",)))
    ]
    engine.close()
    found, *told = (dict(zip((key for (key,) in each.keys), each.values[0])) for each in (groups, *public))
    assert told == [{key: found[key] for key in keys} for keys in (["a", None], ["a"])]
    return found


def test_texts_that_are_no_keys_are_one_group(tmp_path: Path) -> None:
    """Spark groups by bytes, and looks at what they are afterwards."""
    assert count_texts(tmp_path) == {None: len(NO_KEYS), "a": 2, "😀" * 20: 1}


def test_texts_that_nobody_checks_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: bytes that are no text would be groups of their own."""
    monkeypatch.setattr(scanning, "_write_valid", "{}".format)
    with pytest.raises(EngineFailure):  # Arrow cannot read them as texts, either
        count_texts(tmp_path)


def test_a_text_table_of_version_two_is_refused(tmp_path: Path) -> None:
    """Spark can be told to read text files by other classes; their values are parsed all the same."""
    (tmp_path / "v.csv").write_text("ward,days\na,1\n")
    own = spark().newSession()
    own.conf.set("spark.sql.sources.useV1SourceList", "")
    frame = own.read.csv(str(tmp_path / "v.csv"), header=True, schema="ward STRING, days BIGINT", mode="FAILFAST")
    with pytest.raises(UsageError, match="computes something"):
        SparkEngine({"visits": frame}, CATALOG)


def test_options_that_raise_on_old_days_are_refused(path: Path) -> None:
    frame = spark().read.option("datetimeRebaseMode", "EXCEPTION").parquet(str(path))
    with pytest.raises(UsageError, match="computes something"):
        SparkEngine({"visits": frame}, CATALOG)
