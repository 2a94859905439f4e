"""The checklist: each weak or wrong choice is seen, and a wise codebook has nothing wrong."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from discreet.codebook import Codebook
from discreet.codebook.check_lines import CheckLine, Grade
from discreet.codebook.checklist import find_worst_odds, make_checklist
from discreet.odds import posterior
from discreet.plan.types import Type

GOOD = """
name = "hospital"
unit = "patient_id"

[budget]
epsilon = 1
delta = 1e-9
per_query = 0.1

[tables.visits]
source = "visits.parquet"
max_rows = 20
rows = 60_000
units = 12_000

[tables.visits.columns]
patient_id = "integer"
age = { type = "integer", bounds = [0, 110] }
ward = { type = "text", keys = ["A", "B"], null_key = true }
"""
TABLES = """
[tables.people]
source = "people.parquet"
max_rows = 1
rows = 12_000
columns.patient_id = "integer"

[tables.notes]
source = "notes.parquet"
foreign_keys = { day = "visits.day" }
max_rows = 2
columns.day = "integer"

[tables.wards]
source = "wards.parquet"
public = true
rows = 2
columns.ward = { type = "text", unique = true, keys = ["A", "B"], nullable = false }
"""
WIDE = (
    GOOD.replace("max_rows = 20", 'foreign_keys = { ward = "wards.ward" }\nmax_rows = 20')
    + 'day = "integer"\n'
    + TABLES
)
SCHEMA = {"patient_id": Type.INTEGER, "age": Type.INTEGER, "ward": Type.TEXT}


def lines(text: str, schema: dict[str, Type | None] | str | None = None) -> tuple[CheckLine, ...]:
    book = Codebook.read(text, Path("hospital.toml"))
    return make_checklist(book, None if schema is None else {"visits": schema})


def found(text: str, topic: str, schema: dict[str, Type | None] | str | None = None) -> list[CheckLine]:
    return [line for line in lines(text, schema) if line.topic == topic]


def test_a_wise_codebook_is_good_throughout() -> None:
    """Nothing to think about, and every topic is there."""
    result = lines(GOOD, dict(SCHEMA))
    assert {line.grade for line in result} == {Grade.GOOD}
    topics = {line.topic for line in result}
    assert topics >= {"unit", "neighbours", "budget", "delta", "per query", "visits", "visits: rows", "visits: bounds"}


WEAK = [
    (
        "unit",
        GOOD.replace('unit = "patient_id"', 'unit = "row"').replace("max_rows = 20", ""),
        "there is a column 'patient_id'",
    ),
    ("neighbours", 'neighbours = "replace"\n' + GOOD, "presence"),
    ("budget", GOOD.replace("epsilon = 1", "epsilon = 8"), "ε 8 in all"),
    ("budget", GOOD.replace("epsilon = 1\ndelta = 1e-9", "rho = 2"), "ρ 2 in all"),
    ("per query", GOOD.replace("per_query = 0.1", ""), "spend all of it"),
    ("delta", GOOD.replace("delta = 1e-9", "delta = 5e-5"), "close to 1/12,000"),
    ("delta", GOOD.replace("units = 12_000", ""), "not declared"),
    ("delta", GOOD.replace("delta = 1e-9", "").replace(', keys = ["A", "B"], null_key = true', ""), "visits.ward"),
    ("visits: rows", GOOD.replace("max_rows = 20", "max_rows = 2"), "some rows lie beyond that"),
    ("visits: rows", GOOD.replace("max_rows = 20", "max_rows = 500"), "100 times what most need"),
    ("visits: bounds", GOOD.replace(", bounds = [0, 110]", ""), "age without bounds"),
    ("visits.age", GOOD.replace("[0, 110]", "[5, 5]"), "one value only"),
    ("visits: resolution", GOOD + 'cost = { type = "real", bounds = [0, 9] }\n', "cost without resolution"),
    ("visits: keys", GOOD.replace(", null_key = true", ""), "is NULL are in no group"),
]


WEAK += [
    (
        "wards: unit",
        WIDE + 'columns.nurse_email = "text"\n',
        "public, but its column 'nurse_email' looks like one about people",
    ),
    ("wards: unit", WIDE + 'columns.patient_id = "integer"\n', "its column 'patient_id' looks like"),
    ("visits.ward", WIDE.replace("unique = true, ", ""), "refers to wards.ward, which is not declared unique"),
    (
        "notes.day",
        WIDE.replace('\nday = "integer"\n', '\nday = { type = "integer", bounds = [1, 366] }\n'),
        "refers to visits.day, which several rows must share",
    ),
    (
        "notes.day",
        WIDE.replace('\nday = "integer"\n', '\nday = { type = "integer", keys = [1, 2] }\n'),
        "refers to visits.day, which several rows must share",
    ),
    (
        "notes.day",
        WIDE.replace('\nday = "integer"\n', '\nday = { type = "integer", constant_per_unit = true }\n'),
        "refers to visits.day, which several rows must share",
    ),
    (
        "visits: unit",
        WIDE.replace('{ ward = "wards.ward" }', '{ day = "people.patient_id" }'),
        "also leads to a unit by day → people.patient_id: if that is somebody else",
    ),
    (
        "notes: unit",
        WIDE.replace('{ day = "visits.day" }', '{ day = "visits.day", by = "visits.day" }\ncolumns.by = "integer"'),
        "also leads to a unit by by → visits.day",
    ),
]


@pytest.mark.parametrize(("topic", "text", "finding"), WEAK, ids=[f"{case[0]}: {case[2]}" for case in WEAK])
def test_weak_choices_are_named(topic: str, text: str, finding: str) -> None:
    """A choice that may be unwise is marked, with the reason and a fix."""
    weak = [line for line in found(text, topic) if line.grade is Grade.WEAK]
    assert [line for line in weak if finding in line.finding and line.fix]


def test_every_table_says_how_it_reaches_the_unit() -> None:
    """By a name, along foreign keys, or not at all because it is public; nothing to think about where facts fit."""
    result = {line.topic: line for line in lines(WIDE) if line.topic.endswith(": unit")}
    assert {line.grade for line in result.values()} == {Grade.GOOD}
    assert result["visits: unit"].finding == "each row names its unit in patient_id."
    assert "by day → visits.day, which names it in patient_id" in result["notes: unit"].finding
    assert result["wards: unit"].finding == "is public: its rows belong to nobody, and everyone may know them."
    assert not [line for line in lines(WIDE) if line.topic in ("notes.day", "visits.ward")]
    twice = WIDE.replace("columns.day", "columns.note").replace('{ day = "visits.day" }', '{ note = "visits.day" }')
    twice += '[tables.marks]\nsource = "m.csv"\nmax_rows = 1\n'
    twice += 'foreign_keys = { note = "notes.note" }\ncolumns.note = "integer"'
    (line,) = [line for line in lines(twice) if line.topic == "marks: unit"]
    assert "note → notes.note, then note → visits.day, which names it in patient_id" in line.finding


def test_public_tables_are_not_people() -> None:
    """Their rows count neither as units nor as groups that need a δ, and nothing limits them."""
    rows = WIDE.replace('unit = "patient_id"', 'unit = "row"').replace("rows = 2\n", "rows = 999_999_999\n")
    rows = rows[: rows.index("[tables.people]")] + rows[rows.index("[tables.wards]") :]
    rows = rows.replace("max_rows = 20", "")
    (line,) = [line for line in lines(rows) if line.topic == "delta"]
    assert "60,000 units" in line.finding
    assert not [line for line in lines(WIDE) if line.topic == "wards: rows"]
    pure = WIDE.replace("delta = 1e-9", "").replace(', keys = ["A", "B"], nullable = false', "")
    assert not [line for line in lines(pure) if line.topic == "delta"]


def test_a_delta_that_publishes_people_is_wrong() -> None:
    """δ at or above one over the number of units is refused by the check."""
    (line,) = found(GOOD.replace("delta = 1e-9", "delta = 1e-3"), "delta")
    assert line.grade is Grade.WRONG and "1e-7" in line.fix


@pytest.mark.parametrize(
    ("schema", "topic", "finding"),
    [
        ({"patient_id": Type.INTEGER, "age": Type.INTEGER, "wards": Type.TEXT}, "visits.ward", "is not in the data"),
        ({**SCHEMA, "age": Type.TIMESTAMP}, "visits.age", "is timestamp in the data and integer here"),
        ({**SCHEMA, "age": None}, "visits.age", "cannot use"),
        ("There is no file.", "visits", "cannot be opened: There is no file."),
    ],
)
def test_data_that_does_not_match_is_wrong(schema: dict[str, Type | None] | str, topic: str, finding: str) -> None:
    """Missing columns, other types and missing files are wrong, each with its place."""
    (line,) = found(GOOD, topic, schema)
    assert line.grade is Grade.WRONG and finding in line.finding and line.fix


def test_types_that_convert_are_fine_or_weak() -> None:
    """Capitals do not matter, integers may be declared real, texts are converted with a warning."""
    real = GOOD.replace('age = { type = "integer"', 'age = { type = "real", resolution = 1')
    assert {
        line.grade for line in lines(real, {"PATIENT_ID": Type.INTEGER, "Age": Type.INTEGER, "ward": Type.TEXT})
    } == {Grade.GOOD}
    (line,) = found(GOOD, "visits.age", {**SCHEMA, "age": Type.TEXT})
    assert line.grade is Grade.WEAK


def test_csv_files_have_no_types_to_compare() -> None:
    """Everything is text in a CSV file, so declared types are no mistake there."""
    text = GOOD.replace("visits.parquet", "visits.csv")
    assert {line.grade for line in lines(text, dict.fromkeys(SCHEMA, Type.TEXT))} == {Grade.GOOD}


def test_undeclared_columns_stay_hidden() -> None:
    """Columns that the codebook does not declare are counted, not named."""
    (line,) = found(GOOD, "visits", {**SCHEMA, "name": Type.TEXT, "photo": None})
    assert line.grade is Grade.GOOD and "2 more in the data stay hidden" in line.finding and "photo" not in line.finding


def test_worst_case_odds() -> None:
    """A pure budget has the odds of its ε; an approximate one a little more, at ten times δ; ρ has its own."""
    pure = find_worst_odds(Codebook.read(GOOD.replace("delta = 1e-9", "")))
    assert math.isclose(pure.worst_guess, posterior(0.5, 1.0)) and pure.delta == 0
    approximate = find_worst_odds(Codebook.read(GOOD))
    assert 1 < approximate.epsilon < 1.2 and math.isclose(approximate.delta, 1e-8)
    rho = find_worst_odds(Codebook.read(GOOD.replace("epsilon = 1\ndelta = 1e-9", "rho = 0.1")))
    assert 1 < rho.epsilon < 5 and rho.delta == 1e-9


def test_lines_read_as_sentences() -> None:
    """A line is mark, topic, finding and fix."""
    assert str(CheckLine(Grade.WEAK, "unit", "is a row.", "Name a column.")) == "! unit: is a row. Name a column."
