"""Tests of verification: a bundle as it was written holds, and whatever is changed in it is seen."""

from __future__ import annotations

import csv
import datetime as dt
import json
import re
import shutil
from collections.abc import Callable
from html import unescape
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from discreet.publish.bundle import Bundle, hash_file
from discreet.publish.publication import publish
from discreet.publish.verification import Check, holds, verify
from tests.publish.releases import make_plan, open_clinic


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release") / "bundle"
    publish(make_plan(), curator=open_clinic(), out=folder)
    return folder


def change(folder: Path, name: str, edit: Callable[[Any], None], *, restated: bool = True) -> list[Check]:
    """A JSON file of the bundle changed; with the hash that the manifest states for it changed, too."""
    path = folder / name
    document = json.loads(path.read_text())
    edit(document)
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False))
    if restated and name != "manifest.json":
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["files"][name] = hash_file(path)
        (folder / "manifest.json").write_text(json.dumps(manifest))
    return verify(folder)


def failures(checks: list[Check]) -> set[str]:
    return {check.name for check in checks if not check.holds}


def test_a_bundle_as_written_holds(bundle: Path) -> None:
    assert holds(verify(bundle))


@pytest.mark.parametrize(
    ("name", "edit", "seen"),
    [
        ("manifest.json", lambda m: m["loss"].update(epsilon=m["loss"]["epsilon"] / 2), "loss"),
        ("manifest.json", lambda m: m.update(unit="one row"), "loss"),
        ("manifest.json", lambda m: m.update(best_guess=m["best_guess"] - 0.01), "loss"),
        ("manifest.json", lambda m: m["tables"][3].update(deviation=1.0), "tables"),
        ("manifest.json", lambda m: m["rows"].update(sha256="0" * 64), "rows"),
        ("manifest.json", lambda m: m["method"].update(reason="because"), "words"),
        ("measurements.json", lambda m: m.update(variance="1"), "loss"),
        ("measurements.json", lambda m: m.update(max_rows="9"), "loss"),
        ("manifest.json", lambda m: m["rows"].update(k_marginal=999.9), "rows"),
        ("manifest.json", lambda m: m["rows"]["one_way"].update(ward=0.0), "rows"),
        ("measurements.json", lambda m: m.update(numbers=m["numbers"][:-40]), "tables"),
    ],
)
def test_changes_are_seen(bundle: Path, tmp_path: Path, name: str, edit: Callable[[Any], None], seen: str) -> None:
    shutil.copytree(bundle, tmp_path / "copy")
    assert seen in failures(change(tmp_path / "copy", name, edit))


def test_changed_and_added_files_are_seen(bundle: Path, tmp_path: Path) -> None:
    shutil.copytree(bundle, tmp_path / "copy")
    (tmp_path / "copy" / "synthetic.parquet").write_bytes(b"PAR1")
    (tmp_path / "copy" / "more.txt").write_text("x")
    assert failures(verify(tmp_path / "copy")) >= {"files", "rows"}


def find_untraced(bundle: Path) -> list[str]:
    """The numbers of the page's words that are neither in the manifest nor follow from it as the comments say."""
    page = (bundle / "index.html").read_text()
    manifest = json.loads((bundle / "manifest.json").read_text())
    text = unescape(re.sub(r"<(style|svg|figure)[^>]*>.*?</\1>", "", page, flags=re.DOTALL))
    text = re.sub(r"(?<=\d),(?=\d)", "", re.sub(r"<[^>]+>", " ", text))
    known = json.dumps(manifest, ensure_ascii=False)
    values = [1000.0, 50.0, 100 * manifest["best_guess"]]  # the scale of the k-marginal score, a coin, and the guess
    values += [100 * far for far in manifest["rows"]["one_way"].values()]  # shown in per cent
    # A number has an end: the beginning of a hash such as 5e9123… would be larger than all, and near to everything.
    found = re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e-?\d+)?(?!\w)", known)
    values += [float(number) for number in found if isfinite(float(number))]
    shown = re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?:e-?\d+)?(?![\w])", text)
    return [each for each in shown if not any(_is_near(float(each), value) for value in values)]


def _is_near(shown: float, value: float) -> bool:
    return abs(shown - value) <= 0.0006 * abs(value) + 0.5 * (shown > 1000)


def test_every_number_of_the_page_is_in_the_manifest_or_the_tables(bundle: Path, tmp_path: Path) -> None:
    """What is shown of losses, rows, errors and answers can be traced to the manifest; a planted number cannot."""
    assert find_untraced(bundle) == []
    sexes = {"name": "sexes", "sql": "SELECT sex, COUNT(*) AS n, AVG(age) AS a FROM visits GROUP BY sex"}
    weekly: dict[str, Any] = {"name": "weekly", "question": "SELECT COUNT(*) FROM visits", "by": "day"}
    weekly |= {"first": dt.date(2024, 1, 1)}
    weekly |= {"periods": 4, "every": "week", "days_per_unit": 2}
    plan = make_plan(columns={"sex": {}}, questions=[sexes], series=[weekly], method="one shot")
    publish(plan, curator=open_clinic(), out=tmp_path / "b")
    assert find_untraced(tmp_path / "b") == []
    path = tmp_path / "b" / "index.html"
    planted = [str(98765 + 1111 * i) for i in range(10)]  # one of them may be near some noisy number, by chance
    more = f"<h2>Questions</h2><p>{' and '.join(planted)} people came.</p>"
    path.write_text(path.read_text().replace("<h2>Questions</h2>", more))
    assert len(find_untraced(tmp_path / "b")) >= 5
    assert set(find_untraced(tmp_path / "b")) <= set(planted)


def test_the_page_loads_nothing(bundle: Path) -> None:
    """It opens offline: no script, no link, no picture from elsewhere."""
    page = (bundle / "index.html").read_text()
    assert not re.search(r"<script|<link|<img|https?://|url\(", page)


def test_names_cannot_write_into_the_page(tmp_path: Path) -> None:
    plan = make_plan(name="<script>alert(1)</script>", synthetic=False)
    publish(plan, curator=open_clinic(), out=tmp_path / "b")
    assert "<script>" not in (tmp_path / "b" / "index.html").read_text()


def test_csv_files_have_the_same_rows(tmp_path: Path) -> None:
    """They are written where the plan says so, and a changed one is seen, even where its hash was changed, too."""
    publish(make_plan(csv=True), curator=open_clinic(), out=tmp_path / "b")
    assert holds(verify(tmp_path / "b"))
    for name, seen in (("tables", "tables"), ("synthetic", "rows")):
        path = tmp_path / "b" / f"{name}.csv"
        text = path.read_text()
        path.write_text(text.replace("\n", "\nx", 2))
        assert seen in failures(verify(tmp_path / "b"))
        path.write_text(text)


def test_the_pictures_show_the_released_tables(bundle: Path) -> None:
    """Every count of a picture is a value of the one-way tables, with the width of its interval."""
    from pyarrow import parquet

    page = (bundle / "index.html").read_text()
    tables = parquet.read_table(bundle / "tables.parquet").to_pylist()
    single = [row for row in tables if row["cell1"] is not None and row["cell2"] is None]
    shown = re.findall(r">(-?[\d,]+) ± ([\d,]+)</text>", page)
    assert [value for value, _ in shown] == [f"{row['value']:,.0f}" for row in single]
    for (_, half), row in zip(shown, single):
        assert half == f"{row['high'] - row['value']:,.0f}" or row["high"] == 0  # an end is never below zero
    assert any(row["high"] > 0 for row in single)


def move_elsewhere(folder: Path, edit: Callable[[Any], Any]) -> list[Check]:
    """The bundle as if other versions had made its rows: the rows edited, hashes and versions restated."""
    path = folder / "synthetic.parquet"
    parquet.write_table(edit(parquet.read_table(path)), path)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["versions"]["numpy"] = "0.1"
    manifest["files"]["synthetic.parquet"] = hash_file(path)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return verify(folder)


def test_rows_of_other_versions_are_judged_by_their_distances(bundle: Path, tmp_path: Path) -> None:
    """The same rows in another order fit as stated; rows whose columns were shuffled apart do not, nor fewer rows."""

    def shuffle(rows: Any, *, together: bool) -> Any:
        chance = np.random.default_rng(0)
        order = chance.permutation(rows.num_rows)
        taken = [c.take(order if together else chance.permutation(rows.num_rows)) for c in rows.columns]
        return pa.table(taken, names=rows.column_names)

    edits: list[tuple[Callable[[Any], Any], bool]] = [
        (lambda rows: shuffle(rows, together=True), True),
        (lambda rows: shuffle(rows, together=False), False),
        (lambda rows: rows.slice(1), False),
        (lambda rows: rows.set_column(0, "ward", pa.array(["Q"] * rows.num_rows)), False),
    ]
    for number, (edit, expected) in enumerate(edits):
        copy = shutil.copytree(bundle, tmp_path / str(number))
        rows = next(check for check in move_elsewhere(copy, edit) if check.name == "rows")
        assert rows.holds is expected, rows.found


def test_rows_of_the_same_versions_must_be_the_same(bundle: Path, tmp_path: Path) -> None:
    """Control: without other versions even another order is a change."""
    copy = shutil.copytree(bundle, tmp_path / "b")
    path = copy / "synthetic.parquet"
    parquet.write_table(parquet.read_table(path).take(list(range(10, 0, -1))), path)
    change(copy, "manifest.json", lambda m: m["files"].update({"synthetic.parquet": hash_file(path)}))
    assert "rows" in failures(verify(copy))


def test_sdmx_has_the_same_tables_with_a_key_each(tmp_path: Path) -> None:
    """One line for each cell of each table, no key twice, intervals beside values; a changed number is seen."""
    publish(make_plan(sdmx=True), curator=open_clinic(), out=tmp_path / "b")
    assert holds(verify(tmp_path / "b"))
    path = tmp_path / "b" / "tables.sdmx.csv"
    lines = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    tables = parquet.read_table(tmp_path / "b" / "tables.parquet")
    assert len(lines) == tables.num_rows
    dimensions = ["WARD: ward", "SEX: sex", "AGE: age", "COST: cost", "DAY: day"]
    assert list(lines[0]) == [
        "STRUCTURE",
        "STRUCTURE_ID",
        "ACTION",
        *dimensions,
        *["OBS_VALUE", "LOW", "HIGH", "ESTIMATE"],
    ]
    assert len({tuple(line[name] for name in dimensions) for line in lines}) == len(lines)
    place = {"WARD: ward": "A: A", "SEX: sex": "m: m"}
    (found,) = [li for li in lines if all(li[n] == place.get(n, "_T: Total") for n in dimensions)]
    table = Bundle.load(tmp_path / "b").table("ward", "sex").to_pylist()
    (same,) = [row for row in table if (row["ward"], row["sex"]) == ("A", "m")]
    assert [float(found[n]) for n in ("OBS_VALUE", "LOW", "HIGH")] == [same[n] for n in ("value", "low", "high")]
    path.write_text(path.read_text(encoding="utf-8").replace(found["LOW"], "1"), encoding="utf-8")
    change(tmp_path / "b", "manifest.json", lambda m: m["files"].update({path.name: hash_file(path)}))
    assert failures(verify(tmp_path / "b")) == {"tables"}
