"""What cannot be read is counted for the owner, by column and reason, and imported files are typed Parquet."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from discreet.engines.registry import count_unread, import_file
from discreet.engines.unread import Unread
from discreet.errors import UsageError
from discreet.plan.types import Type

SOURCE = Path(discreet.__file__).parent
TYPES = {"WHO": Type.INTEGER, "age": Type.INTEGER}
LINES = b'who,note,age\n1,"a\nb",3\n2,x,old\n3,\xff,4\n4,5\n5,y,\n6,"z"q,7\n'


def test_import_takes_quoted_line_breaks(tmp_path: Path) -> None:
    """Types are those declared, other columns stay text, and the file is the owner's alone."""
    (tmp_path / "v.csv").write_bytes(LINES)
    report = import_file(tmp_path / "v.csv", tmp_path / "v.parquet", TYPES)
    rows = pq.read_table(tmp_path / "v.parquet")
    assert rows.to_pylist() == [
        {"who": 1, "note": "a\nb", "age": 3},
        {"who": 2, "note": "x", "age": None},
        {"who": 5, "note": "y", "age": None},
    ]  # fmt: skip
    assert report.rows == 3 and Unread("age", "no integer", 1, "old") in report.unread
    assert sum(unread.count for unread in report.unread) == 4
    assert (tmp_path / "v.parquet").stat().st_mode & 0o777 == 0o600
    with pytest.raises(UsageError, match="exists"):
        import_file(tmp_path / "v.csv", tmp_path / "v.parquet", TYPES)


def test_swallowed_lines_are_told(tmp_path: Path) -> None:
    """A quote left open takes the rest of the file along here: the owner must see it."""
    (tmp_path / "v.csv").write_bytes(b'who,note,age\n1,"a,3\n' + b"2,x,2\n" * 2000)
    report = import_file(tmp_path / "v.csv", tmp_path / "v.parquet", TYPES)
    assert [(unread.column, unread.count) for unread in report.unread] == [(None, 2001)] and report.rows == 0


def test_other_kinds_of_files(tmp_path: Path) -> None:
    (tmp_path / "v.json").write_text('[{"who": 1, "age": "x"}, {"who": 2, "age": "4"}]')
    assert import_file(tmp_path / "v.json", tmp_path / "j.parquet", TYPES).unread == (
        Unread("age", "no integer", 1, "x"),
    )
    (tmp_path / "v.tsv").write_text("who\tage\n1\t2\n")
    assert import_file(tmp_path / "v.tsv", tmp_path / "t.parquet", TYPES).unread == ()
    bad = pa.array([b"1", b"\xff"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"who": [1, 2], "age": bad}), tmp_path / "v.parquet")
    assert import_file(tmp_path / "v.parquet", tmp_path / "p.parquet", TYPES).unread == (Unread("age", "not UTF-8", 1),)
    assert count_unread(tmp_path / "v.parquet", "v", TYPES, {}).unread == (Unread("age", "not UTF-8", 1),)


def test_values_are_checked_as_questions_read_them(tmp_path: Path) -> None:
    """By lines: the row with the line break is two broken ones."""
    (tmp_path / "v.csv").write_bytes(LINES)
    report = count_unread(tmp_path / "v.csv", "v", TYPES, {})
    assert report.rows == 2 and Unread("age", "no integer", 1, "old") in report.unread
    assert sum(unread.count for unread in report.unread if unread.column is None) == 5


@pytest.mark.parametrize(
    ("name", "types", "words"),
    [("v.xyz", {}, "cannot be imported"), ("gone.csv", {}, "no file"), ("v.csv", {"x": Type.TEXT}, "no column"),
     ("blank.csv", {}, "must name the columns"), ("v.xlsx", {}, "read_excel")],
)  # fmt: skip
def test_what_cannot_be_imported(name: str, types: dict[str, Type], words: str, tmp_path: Path) -> None:
    """Our own errors, and nothing is written."""
    (tmp_path / "v.csv").write_bytes(LINES)
    (tmp_path / "v.xyz").write_bytes(LINES)
    (tmp_path / "v.xlsx").write_bytes(LINES)
    (tmp_path / "blank.csv").write_text("\n1,2\n")
    with pytest.raises(UsageError, match=words):
        import_file(tmp_path / name, tmp_path / "out.parquet", types)
    assert not (tmp_path / "out.parquet").exists()


def namers(words: str) -> set[str]:
    """The modules that say one of some words."""
    return {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if re.search(words, path.read_text())}


def test_analysts_cannot_reach_exact_counts() -> None:
    """Only the command line of the owner and the owner's guide know these functions: no curator, no engine."""
    commands = {"cli/check.py", "cli/import_file.py", "cli/init.py", "cli/main.py", "service/data_folder.py"}
    rooms = {"owner_checks", "type_proposals", "file_import"}
    modules = {"duckdb/" + room for room in rooms} | {"postgres/owner_checks", "spark/owner_checks"}
    allowed = {"engines/registry.py", *(f"engines/{module}.py" for module in modules), *commands}
    words = r"\b(owner_checks|count_unread|file_import|import_file|sqlite_rows|type_proposals|propose_types)\b"
    assert namers(words) == allowed
    assert namers(r"\bread_rows\b")  # negative control: the search finds words


def test_units_are_counted_as_questions_read_them(tmp_path: Path) -> None:
    """Distinct ids that can be read; none where nobody asks for them."""
    (tmp_path / "v.csv").write_text("who,age\n1,2\n1,3\n2,4\nx,5\n,6\n")
    assert count_unread(tmp_path / "v.csv", "v", TYPES, {}, "WHO").units == 2
    assert count_unread(tmp_path / "v.csv", "v", TYPES, {}).units is None


def test_texts_that_are_too_long_are_counted(tmp_path: Path) -> None:
    """What questions take as missing because of its length is told, with the limit."""
    (tmp_path / "v.csv").write_text("name\nana\nbenedict\n")
    report = count_unread(tmp_path / "v.csv", "v", {"name": Type.TEXT}, {"name": 5})
    assert report.unread == (Unread("name", "longer than 5 characters", 1, "benedict"),)
