"""What an owner does with a database before and beside a codebook: init, check --values, and curate in Python."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

import discreet
from discreet.codebook import Codebook
from discreet.engines.postgres.address import ADDRESS
from discreet.engines.registry import count_unread, find_stored_tables
from discreet.engines.unread import Unread
from discreet.errors import ParameterError, UsageError
from discreet.plan.source_kinds import SourceKind
from discreet.plan.types import Type
from tests.cli.commands import Run
from tests.engines.postgres.loading import Place, database, load

ROWS = pa.table(
    {
        "who": ["1", "1", "2", "x", None, "NA"],
        "note": ["short", "as long as eleven", None, "", "éé", "éé"],
        "day": ["2024-02-29", "2023-02-29", "", "n/a", None, "2024-01-01"],
    }
)
TYPES = {"WHO": Type.INTEGER, "note": Type.TEXT, "day": Type.DATE}
READER = f"reader_{os.getpid()}"


@pytest.fixture(autouse=True)
def reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ADDRESS, database().reader)


@pytest.fixture(scope="module")
def ward() -> str:
    """A schema with an odd name: a table and a partitioned one, a view, a table that may not be read, odd types."""
    database().execute(
        'CREATE SCHEMA "Ward.7"',
        f'GRANT USAGE ON SCHEMA "Ward.7" TO {READER}',
        "CREATE TYPE \"Ward.7\".pair AS (a int, b int)",
        'CREATE TABLE "Ward.7"."Old ""Visits""" '
        '(patient_id bigint, cost numeric(9,0), place "Ward.7".pair, "Day" date)',
        'CREATE TABLE "Ward.7".labs (patient_id bigint, value float8) PARTITION BY LIST (patient_id)',
        'CREATE TABLE "Ward.7".labs_1 PARTITION OF "Ward.7".labs DEFAULT',
        'CREATE VIEW "Ward.7".seen AS SELECT 1 / value AS x FROM "Ward.7".labs',
        f'GRANT SELECT ON ALL TABLES IN SCHEMA "Ward.7" TO {READER}',
        'CREATE TABLE "Ward.7".hidden (x int)',
        'INSERT INTO "Ward.7".labs SELECT i % 50, i FROM generate_series(1, 1000) AS t(i)',
        'INSERT INTO "Ward.7"."Old ""Visits""" SELECT i % 50, i, NULL, NULL FROM generate_series(1, 100) AS t(i)',
    )  # fmt: skip
    return '"Ward.7"'


def test_values_that_questions_miss_are_counted() -> None:
    """Counts, examples and units, as for files; what a text says to be missing is no fault."""
    report = count_unread(load(ROWS), "t", TYPES, {"note": 9}, "WHO")
    assert report.rows == 6 and report.units == 2
    assert set(report.unread) == {
        Unread("WHO", "no integer", 1, "x"),
        Unread("WHO", "written as missing", 1, "NA", meant=True),
        Unread("note", "longer than 9 characters", 1, "as long as eleven"),
        Unread("day", "no date", 1, "2023-02-29"),
        Unread("day", "written as missing", 2, "", meant=True),
        Unread(None, "rows without a WHO", 3),
    }
    assert count_unread(load(ROWS.slice(0, 1)), "t", TYPES, {"note": 9}).unread == ()  # negative control


@pytest.mark.parametrize(("types", "words"), [({"gone": Type.TEXT}, "has no column 'gone'"),
                                              ({"x": Type.BOOLEAN}, "cannot be read as boolean")])  # fmt: skip
def test_what_cannot_be_counted(types: dict[str, Type], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        count_unread(load(pa.table({"x": [1]})), "t", types, {})


def test_check_looks_at_values_of_a_database(run: Run, tmp_path: Path) -> None:
    book = tmp_path / "clinic.toml"
    book.write_text(
        f"""
        name = "clinic"
        unit = "who"
        neighbours = "replace"
        [budget]
        epsilon = 1
        [tables.visits]
        source = {{ postgres = "{load(ROWS).path}" }}
        max_rows = 3
        exact_units = 3
        [tables.visits.columns]
        who = "integer"
        note = {{ type = "text", max_length = 9 }}
        """
    )
    code, out, _ = run("check", book, "--values", "--all", width=200)
    assert code == 2 and "3 is declared, and the data has 2" in out
    assert "1 no integer, such as 'x'." in out and "1 longer than 9 characters" in out
    code, out, _ = run("check", book, width=200)  # without --values no value is looked at
    assert code == 0 and "such as" not in out


def test_a_schema_is_drafted(run: Run, ward: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All tables of a schema that the role may read; the codebook opens and is answered from."""
    monkeypatch.chdir(tmp_path)
    said = ["--unit", "patient_id", "--max-rows", "9", "--epsilon", "1"]
    code, out, err = run("init", f"postgres:{ward}", *said)
    assert code == 0, err
    assert "Next: discreet check ward.toml" in out
    text = (tmp_path / "ward.toml").read_text()
    book = Codebook.load(tmp_path / "ward.toml")
    assert {name: source.path for name, source in book.sources.items()} == {
        "old_visits": '"Ward.7"."Old ""Visits"""', "labs": '"Ward.7".labs',
    }  # fmt: skip
    columns = book.catalog().tables["old_visits"].columns
    assert {name: kind for name, (kind, _) in columns.items()} == {
        "patient_id": Type.INTEGER, "cost": Type.INTEGER, "Day": Type.DATE,
    }  # fmt: skip
    assert "# place: of a kind that questions cannot use" in text and "those of the database" in text
    assert run("check", "ward.toml", "--values")[0] == 0
    with discreet.open("ward.toml") as curator:
        assert curator.ask("SELECT COUNT(*) AS n FROM labs", epsilon=0.5) is not None
    code, out, _ = run("init", f"postgres:{ward}", *said)
    assert code == 0 and "nothing to add" in out


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (["postgres:nowhere"], "no table in the schema 'nowhere' that this role may read"),
        (["postgres:Ward.7.hidden"], "no table in the schema"),
        (['postgres:"Ward.7".gone'], "is not in the database"),
        (['postgres:"Ward.7".labs', 'postgres:"Ward.7".labs'], "Two tables of one name"),
        (["x.csv", 'postgres:"Ward.7".labs'], "several places (csv, postgres)"),
    ],
)
@pytest.mark.usefixtures("ward")
def test_what_is_not_drafted(
    data: list[str], words: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.csv").write_text("patient_id,age\n1,2\n")
    code, _, err = run("init", *data, "--yes", width=300)
    assert code == 2 and words in err and not list(tmp_path.glob("*.toml"))


def test_a_role_without_any_column_sees_nothing(ward: str) -> None:
    """A table that may not be read is not even named; the owner of the database sees it."""
    assert set(find_stored_tables(SourceKind.POSTGRES, f"{ward}")) == {"labs", 'Old "Visits"'}


def test_curate_takes_tables_of_a_database(ward: str) -> None:
    """They are read where they are, joins included; whole schemas and missing tables are refused."""
    given = {"visits": f'postgres:{ward}."Old ""Visits"""', "labs": f"postgres:{ward}.labs"}
    with discreet.curate(given, unit="patient_id", max_rows=20, budget=discreet.Budget(epsilon=50)) as curator:
        exact = curator.ask("SELECT COUNT(*) AS n FROM labs", epsilon=25)[0]["n"]
        joined = "SELECT COUNT(*) AS n FROM labs JOIN visits ON labs.patient_id = visits.patient_id"
        assert abs(exact - 1000) < 50 and curator.ask(joined, epsilon=20)[0]["n"] > 100
    for wrong in (f"postgres:{ward}", "postgres:nowhere.gone"):
        with pytest.raises((ParameterError, UsageError)):
            discreet.curate({"t": wrong}, budget=discreet.Budget(epsilon=1))
    with pytest.raises(ParameterError, match="hold a str"):
        discreet.curate({"t": "visits.csv"}, budget=discreet.Budget(epsilon=1))


def test_an_address_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ADDRESS)
    with pytest.raises(UsageError, match=ADDRESS):
        count_unread(Place("clinic.x"), "t", {}, {})
