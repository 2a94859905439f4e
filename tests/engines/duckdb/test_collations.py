"""Collations that a DuckDB file brings along change nothing: texts are compared by their code points."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from discreet.codebook import Codebook
from discreet.opening import open_codebook

BOOK = """
name = "clinic"
unit = "row"
budget = { epsilon = 10000 }
[tables.people]
source = { duckdb = "people.duckdb", table = "people" }
[tables.people.columns]
sex = { type = "text", keys = ["f", "F"] }
"""


@pytest.mark.parametrize("declared", ["VARCHAR", "VARCHAR COLLATE NOCASE"])
def test_a_collation_of_the_file_changes_no_answer(tmp_path: Path, declared: str) -> None:
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.execute(f"CREATE TABLE people (sex {declared})")
        connection.execute("INSERT INTO people SELECT 'f' FROM range(1000)")
    (tmp_path / "clinic.toml").write_text(BOOK)
    assert Codebook.read(BOOK).name == "clinic"
    with open_codebook(tmp_path / "clinic.toml") as curator:
        groups = curator.ask("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", epsilon=1000)
        cells = curator.ask("SELECT COUNT(*) FILTER (WHERE sex = 'F') AS n FROM people", epsilon=1000)
    assert dict(zip(groups.table["sex"].to_pylist(), groups.table["n"].to_pylist())) == {"f": 1000, "F": 0}
    assert cells.table["n"].to_pylist() == [0]
