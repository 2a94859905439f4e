"""The fictional hospital: the same everywhere, messy as real data is, and well declared."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from discreet import demo
from discreet.codebook import Codebook
from discreet.codebook.checklist import Mark, checklist
from discreet.codebook.frames import types_of

# Of the values of both tables, in order. A change of the data is a decision, made here.
DIGEST = "26fce448bbed4962"


@pytest.fixture(scope="module")
def data() -> tuple[Any, Any]:
    return demo.tables()


def digest(tables: tuple[pa.Table, pa.Table]) -> str:
    found = hashlib.sha256()
    for table in tables:
        for name in table.column_names:
            found.update(repr((name, table[name].to_pylist())).encode())
    return found.hexdigest()[:16]


def test_the_data_is_the_same_on_every_machine(data: tuple[Any, Any]) -> None:
    """The values are fixed, and making them again gives the same."""
    assert digest(data) == DIGEST


def test_the_sizes_are_as_promised(data: tuple[Any, Any]) -> None:
    """12,000 patients, 60,000 visits, each visit of a patient, each patient with a visit."""
    patients, visits = data
    assert (patients.num_rows, visits.num_rows) == (12_000, 60_000)
    assert set(visits["patient_id"].to_pylist()) == set(patients["patient_id"].to_pylist())


def test_the_data_is_as_messy_as_real_data(data: tuple[Any, Any]) -> None:
    """A few come very often, values are missing, some are impossible, many diagnoses are rare."""
    _, visits = data
    often = Counter(visits["patient_id"].to_pylist())
    assert max(often.values()) > 60 and 200 < sum(count > 20 for count in often.values()) < 1200
    ages = [age for age in visits["age"].to_pylist() if age is not None]
    assert {-1, 999} <= set(ages) and 0.97 < len(ages) / 60_000 < 0.99
    costs = [cost for cost in visits["cost"].to_pylist() if cost is not None]
    assert max(costs) > 1_000_000 and min(costs) > 0 and len(costs) < 60_000
    rare = Counter(visits["diagnosis"].to_pylist())
    assert len(rare) > 1000 and sum(count < 5 for count in rare.values()) > 500
    assert visits["ward"].null_count > 100 and visits["length_of_stay"].null_count > 1000


def test_what_the_codebook_declares_is_true(data: tuple[Any, Any]) -> None:
    """Types, keys, constants and missing values are as declared; only bounds are broken, by typing errors."""
    patients, visits = data
    document = Codebook.read(demo.CODEBOOK).document
    for name, table in (("patients", patients), ("visits", visits)):
        columns = document.tables[name].columns
        assert {column: str(kind) for column, kind in types_of(table).items()} == {
            c: e.type for c, e in columns.items()
        }
        for column, entry in columns.items():
            values = set(table[column].to_pylist())
            assert entry.nullable or None not in values, column
            if entry.keys is not None:
                assert values - {None} == set(entry.keys), column
            if entry.constant_per_unit:
                pairs = set(zip(table["patient_id"].to_pylist(), table[column].to_pylist()))
                assert len(pairs) == 12_000, column


def test_files_are_written_once(tmp_path: Path) -> None:
    """What is there stays, so that a budget that was spent on it stays meaningful."""
    folder = tmp_path / "deep" / "demo"
    path = demo.write(folder)
    times = {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}
    assert times.keys() == {"hospital.toml", "visits.parquet", "patients.parquet"}
    path.write_text(demo.CODEBOOK.replace("epsilon = 3", "epsilon = 2"))
    assert demo.write(folder) == path
    assert Codebook.load(path).budget.amount() == 2
    assert (folder / "visits.parquet").stat().st_mtime_ns == times["visits.parquet"]


def test_the_codebook_has_nothing_wrong() -> None:
    """The checklist has no wrong line; the demo practises what it preaches."""
    lines = checklist(Codebook.read(demo.CODEBOOK))
    assert Mark.WRONG not in {line.mark for line in lines}
    assert sum(line.mark is Mark.WEAK for line in lines) == 2
