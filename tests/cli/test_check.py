"""`discreet check` says on one screen what is weak, how far off a count would be, and what to type."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from pathlib import Path

import discreet
from tests.cli.commands import Run

COUNT = "SELECT COUNT(*) AS n FROM visits"


def test_one_screen(run: Run, hospital: Path) -> None:
    """The demo's four tables at 80 columns; everything is in the long form and in JSON."""
    code, out, _ = run("check", hospital, width=80)
    assert code == 0 and len(out.splitlines()) <= 24 and max(map(len, out.splitlines()[:-2])) <= 80
    _, long, _ = run("check", hospital, "--all", width=80)
    assert len(long.splitlines()) > 24 and "the data has all 10 declared columns" in " ".join(long.split())
    lines = json.loads(run("check", hospital, "--json")[1])
    assert f"{sum(line['mark'] == 'good' for line in lines)} good" in out


def test_the_expected_error_of_a_count(run: Run, hospital: Path) -> None:
    """The same as a preview of the same share, as a number and as a part of the public number of rows."""
    lines = {line["topic"]: line for line in json.loads(run("check", hospital, "--json")[1])}
    finding = lines["visits: a count"]["finding"]
    column, *_ = discreet.open(hospital).preview(COUNT, share=Fraction(1, 10)).columns
    assert column.error is not None
    assert f"± {math.ceil(column.error):,} rows" in finding and f"{column.error / 60_000:.2%} of 60,000" in finding
    text = hospital.read_text()
    hospital.write_text(text.replace("rows = 60_000 ", "rows = 900 ").replace("units = 12_000\n", ""))
    found = {line["topic"]: line for line in json.loads(run("check", hospital, "--json")[1])}["visits: a count"]
    assert found["mark"] == "weak" and "Allow fewer rows" in found["fix"]


def test_checking_makes_no_ledger(run: Run, hospital: Path) -> None:
    """Prices come from public facts; nothing is opened for charging."""
    run("check", hospital)
    assert not list(hospital.parent.glob("*.ledger*"))


def test_commands_have_the_path_that_was_typed(run: Run, hospital: Path) -> None:
    text = hospital.read_text()
    hospital.write_text(re.sub(r"(\nage = \{ type = \"integer\"), bounds = \[[^]]*\]", r"\1", text))
    _, out, _ = run("check", hospital, width=400)
    assert f"discreet bounds {hospital} visits age" in out and "CODEBOOK" not in out
    assert f"Next: discreet preview {hospital} 'SELECT COUNT(*) AS n FROM " in out


def test_values_have_examples_for_the_owner(run: Run, tmp_path: Path) -> None:
    """Counts and an example by column, rows without a unit, and words that mean a missing value."""
    (tmp_path / "v.csv").write_text("person,age\n1,40\n2,forty\n,41\n3,NA\n")
    run("init", tmp_path / "v.csv", "--unit", "person", "--max-rows", "2", "--epsilon", "1", "--yes")
    book = tmp_path / "v.toml"
    book.write_text(book.read_text().replace('type = "text"', 'type = "integer"'))
    code, out, _ = run("check", book, "--values", "--all", width=200)
    assert code == 0 and "1 no integer, such as 'forty'." in out and "1 rows without a person." in out
    assert "1 written as missing, such as 'NA'." in out
    assert "forty" not in run("check", book, "--all")[1]


def test_a_csv_of_texts_is_weak(run: Run, tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("person,age\n1,40\n")
    run("init", tmp_path / "v.csv", "--unit", "person", "--max-rows", "2", "--epsilon", "1", "--yes")
    _, out, _ = run("check", tmp_path / "v.toml", width=200)
    assert "all columns are text" in out and "--types" in out
