"""Whatever owners have becomes typed Parquet, and what of it was lost is told."""

from __future__ import annotations

import datetime as dt
import gzip
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from discreet.engines.registry import import_file
from discreet.engines.unread import Unread
from discreet.errors import UsageError
from discreet.plan.csv_form import CsvEncoding
from discreet.plan.types import Type


def rows(path: Path, **options: Any) -> tuple[list[dict[str, Any]], tuple[Unread, ...]]:
    out = path.parent / "out.parquet"
    out.unlink(missing_ok=True)
    report = import_file(path, out, options.pop("types", {}), **options)
    return pq.read_table(out).to_pylist(), report.unread


TEXT = "größe;alter;am\n1,5;3.0;31.12.2020\n2,5;4.0;1.1.2021\n"
READ = [
    {"größe": 1.5, "alter": 3, "am": dt.date(2020, 12, 31)},
    {"größe": 2.5, "alter": 4, "am": dt.date(2021, 1, 1)},
]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_texts_in_every_encoding(encoding: str, tmp_path: Path) -> None:
    """With types proposed from the values: numbers with decimal commas and days before months."""
    text = TEXT.replace("3.0", "3").replace("4.0", "4")
    (tmp_path / "v.csv").write_bytes(text.encode(encoding))
    assert rows(tmp_path / "v.csv", propose=True) == (READ, ())
    (tmp_path / "v.csv.gz").write_bytes(gzip.compress(text.encode(encoding)))
    assert rows(tmp_path / "v.csv.gz", propose=True) == (READ, ())
    plain, _ = rows(tmp_path / "v.csv")
    assert plain[0] == {"größe": "1,5", "alter": "3", "am": "31.12.2020"}


def test_one_row_does_not_change_the_encoding_of_others(tmp_path: Path) -> None:
    """Neighbours: with and without a row in other bytes, all other rows are the same; the owner may say more."""
    path = tmp_path / "v.csv"
    body = "a,b\n1,é\n2,x\n".encode()
    path.write_bytes(body)
    without = rows(path)[0]
    path.write_bytes(body + b"3,\xe9\n4,\xe9\n5,\xe9\n")
    found, unread = rows(path)
    assert found == without and sum(part.count for part in unread) == 3
    path.write_bytes("a,b\n1,é\n".encode("latin-1"))
    assert rows(path, encoding=CsvEncoding.LATIN1)[0] == [{"a": "1", "b": "é"}]


def test_json_lines_arrow_and_folders(tmp_path: Path) -> None:
    (tmp_path / "n.jsonl").write_text('{"who": 1}\n{"who": 2, "note": "x"}\n')
    assert rows(tmp_path / "n.jsonl")[0] == [{"who": 1, "note": None}, {"who": 2, "note": "x"}]
    (tmp_path / "n.ndjson.gz").write_bytes(gzip.compress(b'{"who": 1}\n'))
    assert rows(tmp_path / "n.ndjson.gz")[0] == [{"who": 1}]
    bad = pa.array([b"a", b"\xff", None], pa.binary()).view(pa.string())
    table = pa.table({"year": [2020, 2020, 2021], "x": [1, 2, 3], "s": bad})
    feather.write_feather(table, tmp_path / "t.feather")
    assert rows(tmp_path / "t.feather")[1] == (Unread("s", "not UTF-8", 1),)
    layout = ds.partitioning(pa.schema([("year", pa.int64())]), flavor="hive")
    ds.write_dataset(table.drop(["s"]), tmp_path / "hive", format="parquet", partitioning=layout)
    found, _ = rows(tmp_path / "hive")
    assert sorted((row["year"], row["x"]) for row in found) == [(2020, 1), (2020, 2), (2021, 3)]


def make_folder(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_folders_of_csv_have_the_columns_of_their_names(tmp_path: Path) -> None:
    """Each file is read by itself; values of folders are a column; nothing is lost without being told."""
    files = {"year=2020/a.csv": "x,y\n1,2.5\n2,3\n", "year=2021/b.csv": "x,y\n3,4\n4\n", "year=2021/c.csv": "x,y\n"}
    trips = make_folder(tmp_path / "trips", files)
    found, unread = rows(trips, propose=True)
    assert [(row["x"], row["y"], row["year"]) for row in found] == [(1, 2.5, 2020), (2, 3.0, 2020), (3, 4.0, 2021)]
    assert [(part.reason, part.count) for part in unread] == [("lines with missing columns", 1)]
    assert rows(trips)[0][0] == {"x": "1", "y": "2.5", "year": "2020"}
    places = {"place=New%20York/a.csv": "x\n1\n", "place=__HIVE_DEFAULT_PARTITION__/b.csv": "x\n2\n"}
    assert [row["place"] for row in rows(make_folder(tmp_path / "p", places))[0]] == ["New York", None]
    own = {"year=2020/a.csv": "x,year\n1,1999\n"}  # what a file says goes before the name of its folder
    assert rows(make_folder(tmp_path / "own", own))[0] == [{"x": "1", "year": "1999"}]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"year=1/a.csv": "x,y\n", "year=2/b.csv": "x,z\n"}, "other columns than"),
        ({"year=1/a.csv": "x\n", "month=2/b.csv": "x\n"}, "different names before the sign ="),
        ({"year=1/a.csv": "x\n1,5\n2,5\n", "year=2/b.csv": "x;y\n"}, "other columns than"),
        ({"a.docx": "x"}, "no files that end in .parquet or .csv"),
    ],
)
def test_folders_that_are_not_one_table_are_refused(tmp_path: Path, files: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        rows(make_folder(tmp_path / "f", files))


def test_sqlite_by_its_declared_types(tmp_path: Path) -> None:
    """Types are those of the table. One odd value is NULL alone and told, and never changes the type of its column."""
    path = tmp_path / "clinic.db"
    with closing(sqlite3.connect(path)) as base, base:
        base.execute('CREATE TABLE v (id INTEGER, at DATETIME, cost NUMERIC, "a ""note" TEXT, ok BOOLEAN, n INT)')
        base.execute("INSERT INTO v VALUES (1, '2020-01-01T10:00:00Z', 1.5, 'x', 1, 5)")
        base.execute("CREATE TABLE w (a)")
    good = {"id": 1, "at": dt.datetime(2020, 1, 1, 10), "cost": 1.5, 'a "note': "x", "ok": True, "n": 5}  # noqa: DTZ001  # no zone
    assert rows(path, table="v") == ([good], ())
    with closing(sqlite3.connect(path)) as base, base:
        base.execute("INSERT INTO v VALUES (2, NULL, 2, ?, 0, 'many')", (b"\xff",))
    found, unread = rows(path, table="v")
    assert found[0] == good and found[1]["n"] is None
    assert unread == (Unread('a "note', "not UTF-8", 1), Unread("n", "no integer", 1, "many"))
    assert rows(path, table="v", types={"n": Type.TEXT})[0][1]["n"] == "many"
    with pytest.raises(UsageError, match=r"tables v, w\. Give --table"):
        rows(path)


def test_other_files_are_refused_with_a_command(tmp_path: Path) -> None:
    for name, words in (("v.xlsx", "read_excel"), ("v.zip", "unzip"), ("v.docx", "end in one of")):
        (tmp_path / name).write_bytes(b"Marker")
        with pytest.raises(UsageError, match=words):
            rows(tmp_path / name)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"no files that end in .parquet or .csv"):
        rows(tmp_path / "empty")
