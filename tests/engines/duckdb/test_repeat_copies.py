"""What is kept of repeated keys belongs to one version of the data, and to the curator alone."""

from __future__ import annotations

import stat
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

from discreet.engines.duckdb.repeat_copies import RepeatCopies, RepeatCopy
from discreet.engines.duckdb.session import Settings
from discreet.engines.duckdb.sources import Parquet
from discreet.engines.sql.relations import StoredTable
from discreet.plan.types import Type

TYPES = {"key": Type.INTEGER, "unit": Type.TEXT, "note": Type.TEXT}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    kept = tmp_path / "private"
    kept.mkdir(mode=0o700)
    return kept


def write(path: Path, rows: list[tuple[int | None, str | None, str]]) -> Parquet:
    columns = {"key": pa.int64(), "unit": pa.string(), "note": pa.string()}
    values = {name: pa.array([row[i] for row in rows], kind) for i, (name, kind) in enumerate(columns.items())}
    parquet.write_table(pa.table(values), path)
    return Parquet((str(path),))


def find(copies: RepeatCopies, source: Parquet) -> RepeatCopy:
    stored = StoredTable(source.write_from(), {name: f'"{name}"' for name in TYPES})
    return copies.find(source, stored, TYPES, ("key", "unit"))


def read(copy: RepeatCopy) -> list[tuple[object, ...]]:
    return duckdb.execute(f"SELECT * FROM {copy.rows.write_from()} ORDER BY ALL").fetchall()


def make_copies(folder: Path, tmp_path: Path) -> RepeatCopies:
    return RepeatCopies(folder, Settings(threads=1, memory_limit="100MB", temp_directory=tmp_path / "spill"))


def test_rows_are_those_whose_values_repeat_null_like_any_other(folder: Path, tmp_path: Path) -> None:
    rows = [
        (1, "a", "x"),
        (1, "a", "y"),
        (1, "b", "x"),
        (2, "a", "x"),
        (None, "a", "p"),
        (None, "a", "q"),
        (3, None, "z"),
    ]
    copy = find(make_copies(folder, tmp_path), write(tmp_path / "t.parquet", rows))
    assert read(copy) == [(1, "a", "x"), (1, "a", "y"), (None, "a", "p"), (None, "a", "q")]
    keys = duckdb.execute(f"SELECT * FROM {copy.keys.write_from()}").fetchall()
    assert len(keys) == len(set(keys)) == 4  # two of rows, two that are always there


def test_without_repeated_keys_there_are_keys_all_the_same(folder: Path, tmp_path: Path) -> None:
    copy = find(make_copies(folder, tmp_path), write(tmp_path / "t.parquet", [(1, "a", "x")]))
    assert read(copy) == []
    assert len(duckdb.execute(f"SELECT * FROM {copy.keys.write_from()}").fetchall()) == 2


def test_a_row_with_the_values_that_are_always_there_is_kept_with_the_repeated_ones(
    folder: Path, tmp_path: Path
) -> None:
    copy = find(make_copies(folder, tmp_path), write(tmp_path / "t.parquet", [(2**63 - 1, chr(0x10FFFF), "x")]))
    assert read(copy) == [(2**63 - 1, chr(0x10FFFF), "x")]


def test_another_version_is_looked_through_again_and_the_old_files_go(folder: Path, tmp_path: Path) -> None:
    copies, path = make_copies(folder, tmp_path), tmp_path / "t.parquet"
    first = find(copies, write(path, [(1, "a", "x"), (1, "a", "y")]))
    assert find(copies, Parquet((str(path),))) is first
    second = find(copies, write(path, [(1, "a", "x"), (1, "a", "y"), (1, "a", "z")]))
    assert len(read(second)) == 3
    assert sorted(p.name for p in folder.iterdir()) == ["repeated-2-keys.parquet", "repeated-2-rows.parquet"]
    assert {stat.S_IMODE(p.stat().st_mode) for p in folder.iterdir()} == {0o600}


def test_half_a_file_is_removed(folder: Path, tmp_path: Path) -> None:
    source = write(tmp_path / "t.parquet", [(1, "a", "x")])
    stored = StoredTable(source.write_from(), {name: f'"{name}"' for name in (*TYPES, "missing")})
    with pytest.raises(duckdb.Error):
        make_copies(folder, tmp_path).find(source, stored, {**TYPES, "missing": Type.TEXT}, ("key", "unit"))
    assert not list(folder.iterdir())
