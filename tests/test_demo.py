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
from discreet.codebook.check_lines import Grade
from discreet.codebook.checklist import make_checklist
from discreet.codebook.frame_types import types_of
from discreet.plan.catalog import Link

# Of the values of the tables, in order. A change of the data is a decision, made here.
DIGEST = "ca5ee1ec6dd8ced3"
DIGEST_OF_THE_REST = "210a10f0e77cb85a"


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    return demo.make_tables()


def digest(*tables: pa.Table) -> str:
    found = hashlib.sha256()
    for table in tables:
        for name in table.column_names:
            found.update(repr((name, table[name].to_pylist())).encode())
    return found.hexdigest()[:16]


def test_the_data_is_the_same_on_every_machine(data: dict[str, Any]) -> None:
    """The values are fixed, and making them again gives the same."""
    assert digest(data["patients"], data["visits"].drop_columns(["visit_id"])) == DIGEST
    assert digest(data["labs"], data["wards"]) == DIGEST_OF_THE_REST


def test_the_sizes_are_as_promised(data: dict[str, Any]) -> None:
    """12,000 patients, 60,000 visits, each visit of a patient, each patient with a visit; 30,000 results, 8 wards."""
    patients, visits = data["patients"], data["visits"]
    assert [table.num_rows for table in data.values()] == [12_000, 60_000, 30_000, 8]
    assert set(visits["patient_id"].to_pylist()) == set(patients["patient_id"].to_pylist())


def test_the_data_is_as_messy_as_real_data(data: dict[str, Any]) -> None:
    """A few come very often, values are missing, some are impossible, many diagnoses are rare."""
    visits, labs = data["visits"], data["labs"]
    often = Counter(visits["patient_id"].to_pylist())
    assert max(often.values()) == demo.MOST_VISITS and 200 < sum(count > 15 for count in often.values()) < 1200
    ages = [age for age in visits["age"].to_pylist() if age is not None]
    assert {-1, 999} <= set(ages) and 0.97 < len(ages) / 60_000 < 0.99
    costs = [cost for cost in visits["cost"].to_pylist() if cost is not None]
    assert max(costs) > 1_000_000 and min(costs) > 0 and len(costs) < 60_000
    rare = Counter(visits["diagnosis"].to_pylist())
    assert len(rare) > 1000 and sum(count < 5 for count in rare.values()) > 500
    assert visits["ward"].null_count > 100 and visits["length_of_stay"].null_count > 1000
    known = set(visits["visit_id"].to_pylist())
    of = [visit for visit in labs["visit_id"].to_pylist() if visit is not None]
    assert len(known) == 60_000 and 200 < labs["visit_id"].null_count < 500
    assert 100 < sum(visit not in known for visit in of) < 300
    assert labs["value"].null_count > 300 and max(filter(None, labs["value"].to_pylist())) > 5_000


def test_what_the_codebook_declares_is_true(data: dict[str, Any]) -> None:
    """Types, keys, constants and missing values are as declared; only bounds are broken, by typing errors."""
    document = Codebook.read(demo.CODEBOOK).document
    for name, table in data.items():
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
            if entry.unique:
                assert len(values) == table.num_rows, column
    assert set(data["wards"]["ward"].to_pylist()) == set(data["visits"]["ward"].to_pylist()) - {None}


def test_files_are_written_once(tmp_path: Path) -> None:
    """What is there stays, so that a budget that was spent on it stays meaningful."""
    folder = tmp_path / "deep" / "demo"
    path = demo.write(folder)
    times = {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}
    names = ("visits", "patients", "labs", "wards")
    assert times.keys() == {"hospital.toml", *(f"{name}.parquet" for name in names)}
    path.write_text(demo.CODEBOOK.replace("epsilon = 3", "epsilon = 2"))
    assert demo.write(folder) == path
    assert Codebook.load(path).budget.amount() == 2
    assert (folder / "visits.parquet").stat().st_mtime_ns == times["visits.parquet"]


def test_the_codebook_has_nothing_wrong() -> None:
    """The checklist has no wrong line; the demo practises what it preaches."""
    lines = make_checklist(Codebook.read(demo.CODEBOOK))
    assert Grade.WRONG not in {line.grade for line in lines}
    assert sum(line.grade is Grade.WEAK for line in lines) == 2


def test_every_table_reaches_its_unit() -> None:
    """By name, by the visit, or not at all: what is declared becomes what the planner knows."""
    tables = Codebook.read(demo.CODEBOOK).catalog().tables
    assert tables["labs"].link == Link(("visit_id",), "visits", ("visit_id",))
    assert tables["labs"].unit.column == "patient_id"
    assert tables["visits"].link is None
    home = Link(("patient_id",), "patients", ("patient_id",))
    assert set(tables["visits"].keys) == {Link(("ward",), "wards", ("ward",)), home}
    assert tables["wards"].public and tables["wards"].columns["ward"][1].unique
