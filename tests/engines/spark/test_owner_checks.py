"""What an owner does with tables of Spark before and beside a codebook: init, check --values, and curate in Python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from discreet.codebook import Codebook, TableSource
from discreet.engines.registry import count_unread, find_stored_tables
from discreet.engines.unread import Unread
from discreet.errors import ParameterError, UsageError
from discreet.plan.source_kinds import SourceKind
from discreet.plan.types import Type
from tests.cli.commands import Run
from tests.engines.spark.loading import NEEDS_SPARK, spark

pytestmark = NEEDS_SPARK
BROKEN = pa.array([b"short", b"as long as eleven", None, b"", b"\xff\xfe", "éé".encode()], pa.binary()).view(
    pa.string()
)
ROWS = pa.table(
    {
        "who": ["1", "1", "2", "x", None, "NA"],
        "note": BROKEN,
        "day": ["2024-02-29", "2023-02-29", "", "\\N", None, "2024-01-01"],
    }
)
TYPES = {"WHO": Type.INTEGER, "note": Type.TEXT, "day": Type.DATE}
# Spark reads it, because the codebook says where.
ADDRESS = "local[2]"


def write(folder: Path, rows: pa.Table) -> TableSource:
    path = folder / "visits.parquet"
    pq.write_table(rows, path)
    spark()
    return TableSource(kind=SourceKind.PARQUET, path=str(path), address=ADDRESS)


@pytest.fixture
def clinic(tmp_path: Path) -> Iterator[str]:
    """A schema with two tables, a view, and a column of a type that has no use."""
    name = "ward_7"
    for statement in (
        f"CREATE SCHEMA {name} LOCATION 'file://{tmp_path}/stored'",
        f"CREATE TABLE {name}.old_visits (patient_id BIGINT, cost DECIMAL(9, 0), place STRUCT<a: INT>, Day DATE) "
        "USING parquet",
        f"CREATE TABLE {name}.labs USING parquet AS "
        "SELECT id % 50 AS patient_id, CAST(id AS DOUBLE) AS value FROM range(1000)",
        f"INSERT INTO {name}.old_visits SELECT id % 50, id, NULL, NULL FROM range(100)",
        f"CREATE VIEW {name}.seen AS SELECT 1 / value AS x FROM {name}.labs",
    ):
        spark().sql(statement)
    try:
        yield name
    finally:
        spark().sql(f"DROP SCHEMA {name} CASCADE")


def test_values_that_questions_miss_are_counted(tmp_path: Path) -> None:
    """Counts, examples and units, as for files; what a text says to be missing is no fault."""
    report = count_unread(write(tmp_path, ROWS), "t", TYPES, {"note": 9}, "WHO")
    assert report.rows == 6 and report.units == 2
    assert set(report.unread) == {
        Unread("WHO", "no integer", 1, "x"),
        Unread("WHO", "written as missing", 1, "NA", meant=True),
        Unread("note", "longer than 9 characters", 2, "as long as eleven"),  # or no text
        Unread("day", "no date", 1, "2023-02-29"),
        Unread("day", "written as missing", 2, "", meant=True),
        Unread(None, "rows without a WHO", 3),
    }
    assert count_unread(write(tmp_path, ROWS.slice(0, 1)), "t", TYPES, {"note": 9}).unread == ()  # negative control


@pytest.mark.parametrize(("types", "words"), [({"gone": Type.TEXT}, "has no column 'gone'"),
                                              ({"x": Type.BOOLEAN}, "cannot be read as boolean")])  # fmt: skip
def test_what_cannot_be_counted(types: dict[str, Type], words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=words):
        count_unread(write(tmp_path, pa.table({"x": [1]})), "t", types, {})


def test_a_schema_is_drafted(run: Run, clinic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All its tables but those that compute; the codebook opens, is checked, and is answered from."""
    monkeypatch.chdir(tmp_path)
    said = ["--unit", "patient_id", "--max-rows", "9", "--epsilon", "1"]
    spark().sql(f"DROP VIEW {clinic}.seen")
    code, out, err = run("init", f"spark:{clinic}", *said)
    assert code == 0, err
    assert f"Next: discreet check {clinic}.toml" in out
    text = (tmp_path / f"{clinic}.toml").read_text()
    book = Codebook.load(tmp_path / f"{clinic}.toml")
    assert {name: (source.path, source.release) for name, source in book.sources.items()} == {
        "old_visits": (f"{clinic}.old_visits", "1"), "labs": (f"{clinic}.labs", "1"),
    }  # fmt: skip
    columns = book.catalog().tables["old_visits"].columns
    assert {name: kind for name, (kind, _) in columns.items()} == {
        "patient_id": Type.INTEGER, "cost": Type.INTEGER, "Day": Type.DATE,
    }  # fmt: skip
    assert "# place: of a kind that questions cannot use" in text and "change the name" in text
    code, out, err = run("check", f"{clinic}.toml", "--values", "--all", width=200)
    assert code == 0 and "All of 1000 rows can be read as declared." in out, err
    with discreet.open(f"{clinic}.toml") as curator:
        assert curator.ask("SELECT COUNT(*) AS n FROM labs", epsilon=0.5) is not None
    code, out, _ = run("init", f"spark:{clinic}", *said)
    assert code == 0 and "nothing to add" in out


def test_views_are_left_out_of_a_schema_and_refused_by_name(clinic: str) -> None:
    assert set(find_stored_tables(SourceKind.SPARK, f"{clinic}")) == {"labs", "old_visits"}
    assert set(find_stored_tables(SourceKind.SPARK, f"{clinic}.old_visits")) == {"old_visits"}
    with pytest.raises(UsageError, match="computes something"):
        find_stored_tables(SourceKind.SPARK, f"{clinic}.seen")
    spark().sql(f"CREATE TABLE {clinic}.typed (x INT) USING csv")
    with pytest.raises(UsageError, match=r"'ward_7\.typed' computes something"):  # it is not left out in silence
        find_stored_tables(SourceKind.SPARK, clinic)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (["spark:nowhere"], "no table in the schema 'nowhere'"),
        (["spark:ward_7.gone"], "no table in the schema"),
        (["spark:ward_7.labs", "spark:ward_7.labs"], "Two tables of one name"),
        (["x.csv", "spark:ward_7.labs"], "several places (csv, spark)"),
    ],
)
@pytest.mark.usefixtures("clinic")
def test_what_is_not_drafted(
    data: list[str], words: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.csv").write_text("patient_id,age\n1,2\n")
    code, _, err = run("init", *data, "--yes", width=300)
    assert code == 2 and words in err and not list(tmp_path.glob("*.toml"))


def test_curate_takes_tables_of_a_catalog(clinic: str) -> None:
    """They are read where they are, joins included; whole schemas and missing tables are refused."""
    given = {"visits": f"spark:{clinic}.old_visits", "labs": f"spark:{clinic}.labs"}
    with discreet.curate(given, unit="patient_id", max_rows=20, budget=discreet.Budget(epsilon=50)) as curator:
        exact = curator.ask("SELECT COUNT(*) AS n FROM labs", epsilon=25)[0]["n"]
        joined = "SELECT COUNT(*) AS n FROM labs JOIN visits ON labs.patient_id = visits.patient_id"
        assert abs(exact - 1000) < 50 and curator.ask(joined, epsilon=20)[0]["n"] > 100
    for wrong in (f"spark:{clinic}", "spark:nowhere.gone"):
        with pytest.raises((ParameterError, UsageError)):
            discreet.curate({"t": wrong}, budget=discreet.Budget(epsilon=1))
