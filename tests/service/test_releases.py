"""Releases for download: what the ledger has on record goes out as it was written, and nothing else does."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import discreet
from discreet.service.releases import releases_path_of
from tests.service.served import Hospital, read_problem, serve_hospital

PLAN = {"name": "wards 2024", "table": "visits", "columns": ["ward", "sex"], "epsilon": 0.3, "rows": 60_000}
RELEASES = "datasets/hospital/releases"


@pytest.fixture
def released(hospital: Path) -> Iterator[Hospital]:
    """A hospital that has published once, under the name of an analyst."""
    with discreet.open(hospital) as curator:
        discreet.publish(PLAN, curator=curator, out=releases_path_of(hospital) / "wards", analyst="ana")
    made = serve_hospital(hospital)
    yield made
    made.dataset.close()


def test_a_release_is_listed_and_sent(released: Hospital) -> None:
    """To everybody with a token; the files are those that were written."""
    (told,) = released.get("audit", RELEASES)["releases"]
    assert (told["name"], told["columns"]) == ("wards 2024", ["ward", "sex"]) and told["synthetic_rows"] > 0
    response = released.send("ana", "GET", f"{RELEASES}/{told['number']}")
    assert (response.status, response.media) == (200, "application/zip")
    packed = zipfile.ZipFile(io.BytesIO(response.body))
    folder = released.dataset.releases / "wards"
    assert {Path(name).name for name in packed.namelist()} == set(told["files"])
    assert all(packed.read(name) == (folder / Path(name).name).read_bytes() for name in packed.namelist())
    for other in ("0", "2", "x", "..", f"0{told['number']}"):
        read_problem(released.send("ana", "GET", f"{RELEASES}/{other}"), "not-found", 404)
    read_problem(released.send("", "GET", RELEASES), "unauthorized", 401)


def test_a_release_with_keys_from_the_data_is_listed_too(hospital: Path) -> None:
    """Its files are on the line of its tables, because keys were named on that of its charge."""
    words = {"of": "age % 5", "keys": "private"}
    plan = {"name": "keys", "table": "visits", "columns": {"called": words}, "epsilon": 0.5}
    with discreet.open(hospital) as curator:
        discreet.publish(plan, curator=curator, out=releases_path_of(hospital) / "keys", analyst="ana")
    made = serve_hospital(hospital)
    (told,) = made.get("audit", RELEASES)["releases"]
    assert told["name"] == "keys" and "tables.parquet" in told["files"]
    made.dataset.close()


def test_what_is_not_on_record_stays_where_it_is(released: Hospital, tmp_path: Path) -> None:
    """Files that lie there by mistake, a changed file, a link, a bundle of another ledger, and a changed manifest."""
    folder = released.dataset.releases
    (number,) = (each["number"] for each in released.get("ana", RELEASES)["releases"])
    shutil.copy(folder.parent / "visits.parquet", folder / "wards" / "visits.parquet")
    body = released.send("ana", "GET", f"{RELEASES}/{number}").body
    assert "visits.parquet" not in " ".join(zipfile.ZipFile(io.BytesIO(body)).namelist())
    other = tmp_path / "other"
    shutil.copytree(folder / "wards", other)
    (folder / "linked").symlink_to(other)
    (folder / "empty").mkdir()
    manifest = json.loads((other / "manifest.json").read_text())
    for name, wrong in (("foreign", {"receipt": {"hash": "0" * 64}}), ("more", {"files": {"visits.parquet": "0"}})):
        shutil.copytree(other, folder / name)
        (folder / name / "manifest.json").write_text(json.dumps({**manifest, **wrong}))
    for name, text in (("broken", "{"), ("deep", "[" * 100_000), ("list", "[]"), ("bytes", "\x00")):
        (folder / name).mkdir()
        (folder / name / "manifest.json").write_text(text)
    assert len(released.get("ana", RELEASES)["releases"]) == 1
    (folder / "wards" / "tables.parquet").write_bytes((folder.parent / "visits.parquet").read_bytes())
    read_problem(released.send("ana", "GET", f"{RELEASES}/{number}"), "not-found", 404)


def test_a_release_is_no_answer(released: Hospital) -> None:
    """Its charge is in the history; as a request it is nothing, and its receipts are those of no question."""
    (charge,) = released.get("ana", "datasets/hospital/history")["charges"]
    assert charge["request"] == "publish: wards 2024" and charge["sql"] is None
    for path in (charge["request"], f"{charge['request']}/events"):
        read_problem(released.send("ana", "GET", f"requests/{path}"), "not-found", 404)
    assert released.get("audit", f"datasets/hospital/receipts/{charge['number']}")["receipts"] == []


def test_without_the_folder_there_are_none(served: Hospital) -> None:
    """An empty list, and no error."""
    assert served.get("ana", RELEASES) == {"releases": []}
