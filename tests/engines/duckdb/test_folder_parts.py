"""Files of a folder as parts of one table: what the names of folders say, and which types fit all parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.engines.duckdb.folder_parts import FolderPart, list_parts, propose_folder_types, write_pattern
from discreet.errors import UsageError
from discreet.plan.types import Type


def test_parts_come_in_order_with_the_values_of_their_folders(tmp_path: Path) -> None:
    for name in ("b=2/y.csv", "b=1/x.tsv", "b=1/deep/w.csv.gz", "b=1/notes.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = list_parts(tmp_path)
    assert [(part.file.name, dict(part.values)) for part in found] == [
        ("w.csv.gz", {"b": "1"}),
        ("x.tsv", {"b": "1"}),
        ("y.csv", {"b": "2"}),
    ]


def test_one_pattern_for_all_files() -> None:
    """Signs of patterns in the name of the folder are no pattern; different endings are refused."""
    one, other = (FolderPart(Path(f"a[1]/{name}"), {}) for name in ("x.csv", "y.tsv"))
    assert write_pattern(Path("a[1]"), [one]) == "a[[]1]/**/*.csv"
    with pytest.raises(UsageError, match=r"\.csv, \.tsv"):
        write_pattern(Path("a[1]"), [one, other])


def test_values_of_folders_are_whole_numbers_or_texts() -> None:
    """A month 07 stays a text: as a number it would be written otherwise."""

    def kind(*values: str | None) -> Type:
        return propose_folder_types([FolderPart(Path("x"), {"c": value}) for value in values])["c"]

    assert kind("2020", "-3", None) is Type.INTEGER
    assert {kind(text) for text in ("07", "1.5", "", "²", "9" * 19, "9" * 30, "-", "+1")} == {Type.TEXT}
