"""Asking again keeps what an owner has edited, and writes anew what still stands as it was drafted."""

from __future__ import annotations

import random
import tomllib
from pathlib import Path

import pytest

from discreet.codebook import Codebook
from discreet.codebook.data_files import DataFiles, inspect
from discreet.codebook.draft import Choices, draft
from discreet.codebook.redraft import redraft
from discreet.errors import UsageError
from discreet.plan.csv_form import CsvForm, DateOrder
from discreet.plan.types import Type

NAMES = ["patient_id", "age", "ward", "day"]
TYPES = {"patient_id": Type.INTEGER, "age": Type.INTEGER, "ward": Type.TEXT, "day": Type.DATE}
SAID = Choices(unit="patient_id", max_rows="9", epsilon="1.5", delta="1e-9")


def files(folder: Path, names: list[str] | None = None, table: str = "visits") -> DataFiles:
    (folder / f"{table}.csv").write_text(";".join(names or NAMES) + "\n")
    return inspect(str(folder / f"{table}.csv"))


def proposed(bare: DataFiles) -> DataFiles:
    return bare.propose("visits", CsvForm(delimiter=";", decimal=",", dates=DateOrder.DMY), TYPES)


def test_unedited_lines_are_filled_in(tmp_path: Path) -> None:
    """A first draft with nothing said, then types and answers: the same as if they had been given at once."""
    bare = files(tmp_path)
    first = draft(bare, Choices(), tmp_path)
    again = redraft(first, bare, proposed(bare), SAID, tmp_path)
    assert again.text == draft(proposed(bare), SAID, tmp_path)
    assert again.filled == ("unit", "epsilon", "delta", "source", "max_rows")
    assert again.typed == ("patient_id", "age", "day")
    assert Codebook.read(again.text, tmp_path / "visits.toml").sources["visits"].form == CsvForm(
        delimiter=";", decimal=",", dates=DateOrder.DMY
    )


def test_a_unit_of_its_own_row_needs_no_limit(tmp_path: Path) -> None:
    """Lines that are no longer drafted go, and a budget in another word comes in their place."""
    bare = files(tmp_path)
    again = redraft(draft(bare, Choices(), tmp_path), bare, bare, Choices(unit="row", rho="0.1"), tmp_path)
    book = Codebook.read(again.text)
    assert book.unit.column is None and book.budget.notion == "zcdp" and "max_rows" not in again.text


@pytest.mark.parametrize("seed", range(20))
def test_every_edited_line_stays(seed: int, tmp_path: Path) -> None:
    """Any lines changed, added or removed: what is not as drafted is there afterwards, in the same order."""
    rng = random.Random(seed)  # noqa: S311  # worlds need seeds
    bare = files(tmp_path)
    lines = draft(bare, SAID if seed % 2 else Choices(), tmp_path).splitlines()
    edits = {
        'age = { type = "integer", bounds = [0, 110] }': "age",
        "ward = 'text' # mine": "ward",
        "# a word of mine": "",
    }
    for edit, key in edits.items():
        places = [i for i, line in enumerate(lines) if key and line.startswith(f"{key} =")]
        if places:
            lines[places[0]] = edit
        else:
            lines.insert(rng.randrange(len(lines)), edit)
    removed = rng.choice(["day", "patient_id"])
    lines = [line for line in lines if not line.startswith(f"{removed} =")]
    again = redraft("\n".join(lines) + "\n", bare, proposed(bare), SAID, tmp_path)
    kept = [line for line in again.text.splitlines() if line in edits]
    assert kept == [line for line in lines if line in edits]
    columns = tomllib.loads(again.text)["tables"]["visits"]["columns"]
    assert removed not in columns and columns["age"]["bounds"] == [0, 110]
    assert again.added == (f"visits.{removed} (as a comment)",)
    third = redraft(again.text, bare, proposed(bare), SAID, tmp_path)
    assert third.text == again.text and third.added == third.filled == third.typed == ()


def test_a_hidden_column_stays_hidden(tmp_path: Path) -> None:
    """What an owner took out, or what is new in the data, is offered as a comment and never declared."""
    bare = files(tmp_path)
    first = "\n".join(line for line in draft(bare, SAID, tmp_path).splitlines() if not line.startswith("ward"))
    more = files(tmp_path, [*NAMES, "diagnosis"])
    again = redraft(first, more, more, SAID, tmp_path)
    assert again.added == ("visits.ward (as a comment)", "visits.diagnosis (as a comment)")
    assert set(Codebook.read(again.text).catalog().tables["visits"].columns) == {"patient_id", "age", "day"}
    assert (
        '# diagnosis = { type = "text" }' in again.text and redraft(again.text, more, more, SAID, tmp_path).added == ()
    )


def test_new_tables_and_gone_columns_are_told(tmp_path: Path) -> None:
    bare = files(tmp_path)
    first = draft(bare, SAID, tmp_path)
    files(tmp_path, ["patient_id", "value"], "labs")
    (tmp_path / "visits.csv").write_text("patient_id;ward;day\n")
    both = inspect(str(tmp_path / "visits.csv"), str(tmp_path / "labs.csv"))
    again = redraft(first, both, both, SAID, tmp_path)
    assert again.added == ("table labs",) and again.gone == ("visits.age",)
    assert set(Codebook.read(again.text, tmp_path / "x.toml").sources) == {"visits", "labs"}


@pytest.mark.parametrize(
    "text", ["Dear diary", "", "tables = 3", "[tables.visits]\ncolumns = 5", "[tables]\nvisits = []"]
)
def test_what_is_no_codebook_is_refused(text: str, tmp_path: Path) -> None:
    bare = files(tmp_path)
    with pytest.raises(UsageError, match=r"no codebook.*charged\.$"):
        redraft(text, bare, bare, SAID, tmp_path)


def test_columns_in_one_line_are_left_alone(tmp_path: Path) -> None:
    """Where there is no heading to add to, nothing is lost and nothing is written."""
    bare = files(tmp_path)
    text = 'unit = "row"\n[tables]\nvisits = { columns = { age = "integer" } }\n'
    again = redraft(text, bare, bare, SAID, tmp_path)
    assert again.text == text and again.kept == ("unit", "max_rows", "epsilon", "delta")


@pytest.mark.parametrize("first", [Choices(), SAID, Choices(unit="row", rho="0.1")])
def test_asking_for_nothing_changes_nothing(first: Choices, tmp_path: Path) -> None:
    """Without a word said, every answer that was given stays; with other words, too."""
    bare = files(tmp_path)
    text = draft(proposed(bare), first, tmp_path)
    for data in (bare, proposed(bare)):
        again = redraft(text, bare, data, Choices(), tmp_path)
        assert again.text == text and not (again.added or again.filled or again.typed or again.kept)
    if first == SAID:
        other = redraft(text, bare, bare, Choices(unit="ward", epsilon="7", max_rows="9"), tmp_path)
        assert other.text == text and other.kept == ("unit", "epsilon")
