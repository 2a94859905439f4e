"""Plain answers become a codebook that opens, and errors that its questions have."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.codebook import Codebook
from discreet.codebook.data_files import DataFiles, inspect
from discreet.errors import DiscreetError
from discreet.service.first_codebook import ColumnAnswer, FirstAnswers, find_errors, make_rows, write_codebook

KNOWN = {"age": ColumnAnswer(low="0", high="110"), 'the "ward"': ColumnAnswer(keys=("north", 'so"uth', "a=1"))}
ANSWERS = FirstAnswers(unit="person_id", max_rows="5", rows="4000", units="2000", epsilon="1", columns=KNOWN)


@pytest.fixture
def found(tmp_path: Path) -> DataFiles:
    """A file of a few rows with names that need quotes."""
    table = pa.table({"person_id": [1, 2], "age": [30, 41], 'the "ward"': ["north", "north"], "paid": [1.5, 2.0]})
    pq.write_table(table, tmp_path / "people.parquet")
    return inspect(str(tmp_path / "people.parquet"))


def test_the_codebook_opens_and_says_what_was_answered(found: DataFiles, tmp_path: Path) -> None:
    text = write_codebook(found, ANSWERS, tmp_path, "00000000-0000-4000-8000-000000000000")
    table = tomllib.loads(text)["tables"]["people"]
    assert table["columns"]["age"]["bounds"] == [0, 110]
    assert table["columns"]['the "ward"']["keys"] == ["north", 'so"uth', "a=1"]
    assert (table["rows"], table["units"], table["max_rows"]) == (4000, 2000, 5)
    (tmp_path / "people.toml").write_text(text)
    assert Codebook.load(tmp_path / "people.toml").unit.column == "person_id"


def test_errors_follow_the_answers(found: DataFiles) -> None:
    """Less noise for a larger share and for fewer rows of one person; a count, an average and groups are tried."""
    first = find_errors(found, ANSWERS)
    assert [each.words for each in first] == [
        "How many rows",
        "The average of age",
        'How many rows for each the "ward"',
    ]
    errors = first[0].errors
    assert errors[0] is not None and errors[2] is not None and errors[0] > errors[2] > 0
    assert first[0].true == 4000 and first[0].answer is not None
    fewer = FirstAnswers(unit="person_id", max_rows="1", rows="4000", units="2000", epsilon="1", columns=KNOWN)
    less = find_errors(found, fewer)[0].errors[0]
    assert less is not None and less < errors[0]


def test_no_value_of_the_data_is_in_the_fictional_rows(found: DataFiles) -> None:
    """They are made by counting, from the answers alone."""
    known = {name: kind for name, kind in found.tables["people"].items() if kind is not None}
    rows = make_rows(known, ANSWERS)
    assert rows.num_rows == 4000 and len(set(rows["person_id"].to_pylist())) == 2000
    assert set(rows['the "ward"'].to_pylist()) == {"north", 'so"uth', "a=1"}


@pytest.mark.parametrize(
    "words",
    [
        {"max_rows": ""},
        {"max_rows": "many"},
        {"rows": "-1"},
        {"epsilon": "1e9"},
        {"unit": "nobody"},
        {"columns": {"age": ColumnAnswer(low="0")}},
        {"columns": {"age": ColumnAnswer(low="0.5", high="9")}},
        {"columns": {"age": ColumnAnswer(low="0]\nx = [1", high="9")}},
        {"columns": {"age": ColumnAnswer(keys=("1", "two"))}},
    ],
)
def test_answers_that_do_not_fit_are_refused(found: DataFiles, words: dict[str, object]) -> None:
    """In our own words, whatever was typed."""
    usual: dict[str, object] = {"unit": "person_id", "max_rows": "5", "rows": "100"}
    with pytest.raises(DiscreetError):
        find_errors(found, FirstAnswers(**{**usual, **words}))  # type: ignore[arg-type]  # as they come from a form
