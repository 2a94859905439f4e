"""Whatever owners have becomes typed Parquet, and what of it was lost is told."""

from __future__ import annotations

import datetime as dt
import gzip
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
    with pytest.raises(UsageError, match=r"discreet init '.*empty/\*\.csv'"):
        rows(tmp_path / "empty")
