"""The guide sees the files of its folder, and nothing beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.errors import UsageError
from discreet.plan.types import Type
from discreet.service.data_folder import DataFolder


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    """One CSV file, and things that are no data file of the folder."""
    inside = tmp_path / "inside"
    (inside / "below").mkdir(parents=True)
    (inside / "people.csv").write_text("person_id,age\n1,30\n2,41\n")
    (inside / "below" / "more.csv").write_text("a,b\n")
    (inside / "notes.txt").write_text("private")
    (tmp_path / "outside.csv").write_text("a,b\n")
    (inside / "link.csv").symlink_to(tmp_path / "outside.csv")
    return DataFolder(inside)


def test_only_files_of_the_folder_are_listed(folder: DataFolder) -> None:
    assert [name for name, _ in folder.list_files()] == ["people.csv"]


@pytest.mark.parametrize(
    "name", ["../outside.csv", "link.csv", "below/more.csv", "notes.txt", "", "/etc/passwd", "people.csv\0", "*.csv"]
)
def test_every_other_name_is_refused_alike(folder: DataFolder, name: str) -> None:
    with pytest.raises(UsageError, match="no such data file"):
        folder.inspect(name, values=True)


def test_values_are_read_with_leave_only(folder: DataFolder) -> None:
    """Without it the columns of a CSV file are text."""
    assert set(folder.inspect("people.csv", values=False).tables["people"].values()) == {Type.TEXT}
    assert folder.inspect("people.csv", values=True).tables["people"] == {
        "person_id": Type.INTEGER,
        "age": Type.INTEGER,
    }


def test_files_of_served_datasets_are_not_shown(folder: DataFolder) -> None:
    """By their name, by another way to write it, and by a pattern: nobody gets a second budget for the same rows."""
    file = folder.path / "people.csv"
    for taken in (str(file), str(folder.path / "below" / ".." / "people.csv"), str(folder.path / "*.csv")):
        other = DataFolder(folder.path, frozenset({taken}))
        assert other.list_files() == []
        with pytest.raises(UsageError, match="no such data file"):
            other.inspect("people.csv", values=False)


def test_a_codebook_is_never_written_over(folder: DataFolder) -> None:
    path = folder.save("people", "first")
    with pytest.raises(UsageError, match="is there already"):
        folder.save("people", "second")
    assert path.read_text() == "first"
