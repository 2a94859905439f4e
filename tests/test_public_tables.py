"""Public tables that a question brings along: read as they are, or refused for free."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import discreet
from discreet.answer_rows import Cell, make_rows
from discreet.errors import DiscreetError, UsageError
from discreet.plan.types import Type
from discreet.public_tables import MAX_ROWS, read_public_values
from tests.cli.commands import Run
from tests.worlds.visits import BY_WARD, curator


def test_frames_become_values() -> None:
    """Columns of known kinds come with their values; others are left out; no tables are no tables."""
    found = read_public_values({"sizes": pa.table({"ward": ["A", None], "beds": [3, 4], "tags": [["x"], []]})})
    assert found["sizes"].columns == (("ward", Type.TEXT), ("beds", Type.INTEGER))
    assert found["sizes"].rows == (("A", 3), (None, 4))
    assert read_public_values(None) == {}


def test_an_answer_is_a_table_of_the_next_question() -> None:
    """Its intervals are columns, and the question that uses it is replayed with it."""
    holder = curator()
    sizes = holder.ask(BY_WARD, epsilon=1)
    (found,) = read_public_values({"sizes": sizes}).values()
    assert [name for name, _ in found.columns] == sizes.table.column_names
    text = "SELECT COUNT(*) AS n FROM visits v JOIN sizes s ON v.ward = s.ward WHERE s.n > 0"
    first = holder.ask(text, epsilon=1, public={"sizes": sizes})
    assert holder.ask(text, epsilon=1, public={"sizes": sizes}).replayed
    assert abs(first.rows.rows[0][0].value - 1800) < 400  # type: ignore[operator]  # a count


@pytest.mark.parametrize(
    ("name", "table", "words"),
    [
        ("my table", pa.table({"a": [1]}), "plain name"),
        ("long", pa.table({"a": [1] * (MAX_ROWS + 1)}), "100,001 rows"),
        ("odd", pa.table({"a": [[1]]}), "no column that questions can use"),
        ("zero", pa.table({"a": ["x\0y"]}), "not Unicode"),
    ],
)
def test_tables_that_cannot_be_used_are_refused(name: str, table: Any, words: str) -> None:
    """Names, sizes, kinds and texts; nothing is charged."""
    with pytest.raises(UsageError, match=words):
        read_public_values({name: table})
    holder = curator()
    with pytest.raises(DiscreetError):
        holder.ask("SELECT COUNT(*) AS n FROM visits", epsilon=1, public={name: table})
    assert not holder.history()


def test_half_a_character_is_refused() -> None:
    """Half of a pair of code units is text to Python and to nobody else."""
    half = make_rows(("ward",), (Type.TEXT,), (False,), ((Cell("\ud800"),),))
    answer = replace(curator().ask("SELECT COUNT(*) AS n FROM visits", epsilon=1), rows=half)
    with pytest.raises(UsageError, match="not Unicode"):
        read_public_values({"half": answer})


def test_two_columns_of_one_name_are_refused() -> None:
    """In a question's own rows and in private frames."""
    twice = pa.table([[1], [2]], names=["a", "a"])
    with pytest.raises(DiscreetError, match="two columns of one name"):
        read_public_values({"rows": twice})
    with pytest.raises(DiscreetError, match="two columns of one name"):
        discreet.curate({"rows": twice}, budget=discreet.Budget(epsilon=1))


def test_an_offer_in_a_question_of_a_batch_is_refused() -> None:
    """As it is beside an offer of one question; nothing is charged."""
    holder, question = curator(), "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1) COUNT(*) AS n FROM visits"
    with pytest.raises(DiscreetError, match=r"said in a question.*Nothing was charged"):
        holder.ask_batch([question, BY_WARD], epsilon=1)
    with pytest.raises(DiscreetError, match="said twice"):
        holder.ask(question, epsilon=1)
    assert not holder.history()


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, "[1, 2]", '{"rows": 3}', "3", '[{"a": 1e999}, {"a": "x"}]', '[{"a": 123456789012345678901}]'],
)
def test_public_files_that_are_no_tables_are_refused(hospital: Path, run: Run, text: str) -> None:
    """Deep, flat, or of mixed kinds: in our own words, and nothing is charged."""
    file = hospital.with_name("public.json")
    file.write_text(text)
    code, _, said = run(
        "ask", hospital, "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.1", "--public", f"p={file}"
    )
    assert code == 2 and "cannot be read as a table of rows. Nothing was charged" in " ".join(said.split())


def test_places_that_cannot_be_written_are_refused(hospital: Path, run: Run) -> None:
    """A folder that is a file, and a file that is a folder."""
    (hospital.parent / "folder").mkdir()
    code, _, said = run("demo", "--folder", hospital)
    assert code == 2 and "cannot be written" in " ".join(said.split())
    code, _, said = run("init", hospital.with_name("visits.parquet"), "--yes", "--out", hospital / "x.toml")
    assert code == 2 and "cannot be written" in " ".join(said.split())


def test_the_loggers_are_quiet() -> None:
    """Without a handler of the user's own, nothing is printed."""
    assert any(isinstance(handler, logging.NullHandler) for handler in logging.getLogger("discreet").handlers)
