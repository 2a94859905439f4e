"""Tests of ``discreet publish`` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.commands import Run
from tests.publish.releases import make_visits

CODEBOOK = """
name = "clinic"
unit = "patient"
neighbours = "add-remove"

[budget]
epsilon = 8
delta = 1e-6

[tables.visits]
source = { parquet = "visits.parquet" }
max_rows = 4
rows = 6000

[tables.visits.columns]
patient = "integer"
ward = { type = "text", keys = ["A", "B", "C"] }
sex = { type = "text", keys = ["f", "m"] }
"""
PLAN = """
name = "wards"
codebook = "clinic.toml"
table = "visits"
epsilon = 2
columns = ["ward", "sex"]
"""
SERIES = """
[[series]]
name = "monthly"
question = "SELECT COUNT(*) FROM visits"
by = "day"
every = "month"
first = 2024-01-01
periods = 9
released = 2
days_per_unit = 2
state = "private"
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    pq.write_table(make_visits(), tmp_path / "visits.parquet")
    (tmp_path / "clinic.toml").write_text(CODEBOOK)
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path / "plan.toml"


def test_preview_publish_verify(run: Run, plan: Path, tmp_path: Path) -> None:
    """The preview is free, one charge makes a bundle, and the bundle verifies."""
    code, out, _ = run("publish", plan, "--preview")
    assert code == 0 and "one shot" in out
    assert not (tmp_path / "bundle").exists()
    assert run("publish", plan, "--out", tmp_path / "bundle")[0] == 0
    code, out, _ = run("publish", "verify", tmp_path / "bundle", "--json")
    assert code == 0 and json.loads(out)["holds"]
    assert json.loads(run("publish", plan, "--preview", "--json")[1])["paid"]
    assert len(json.loads(run("budget", tmp_path / "clinic.toml", "--json")[1])["charges"]) == 1


def test_a_changed_bundle_fails(run: Run, plan: Path, tmp_path: Path) -> None:
    run("publish", plan, "--out", tmp_path / "bundle")
    (tmp_path / "bundle" / "disclosure.txt").write_text("all is well")
    code, out, _ = run("publish", "verify", tmp_path / "bundle")
    assert code == 2 and "FAILS  files" in out


@pytest.mark.parametrize("words", [[], ["bundle"], ["--out", "x", "bundle"]])
def test_nothing_is_charged_without_a_place(run: Run, plan: Path, words: list[str]) -> None:
    assert run("publish", plan, *words)[0] != 0
    assert run("publish", "verify")[0] != 0
    assert not json.loads(run("publish", plan, "--preview", "--json")[1])["paid"]


def test_a_bundle_is_asked_in_the_terminal(run: Run, plan: Path, tmp_path: Path) -> None:
    """For nothing, with promised intervals where there are some, and a clear word where there are none."""
    run("publish", plan, "--out", tmp_path / "bundle")
    code, out, _ = run("publish", "ask", tmp_path / "bundle", "SELECT sex, COUNT(*) AS n FROM release GROUP BY sex")
    assert code == 0 and "n_low" in out and "promised: from one measured table" in out
    model = "SELECT sex, MAX(ward) AS w FROM release GROUP BY sex"
    told = json.loads(run("publish", "ask", tmp_path / "bundle", model, "--json")[1])
    assert told["promised"] is False and len(told["rows"]) >= 2
    assert run("publish", "ask", tmp_path / "bundle", "DROP TABLE release")[0] == 2
    assert len(json.loads(run("budget", tmp_path / "clinic.toml", "--json")[1])["charges"]) == 1


def test_rows_are_checked_against_the_data_for_a_price(run: Run, plan: Path, tmp_path: Path) -> None:
    """One charge for each check, none for the same again; pictures of columns go to a file that was not there."""
    run("publish", plan, "--out", tmp_path / "bundle")
    words = ("publish", "check", plan, tmp_path / "bundle", "--epsilon", "1")
    first, again = (json.loads(run(*words, "--ways", "2", "--json")[1]) for _ in range(2))
    assert first == again and first["low"] <= first["k_marginal"] <= first["high"]
    page = tmp_path / "columns.html"
    code, out, _ = run(*words, "--score", "columns", "--page", page)
    assert code == 0 and "ward: rows are outside of" in out
    assert page.read_text(encoding="utf-8").count("<svg") == 2
    for wrong in (("--score", "columns", "--page", page), ("--score", "guess"), ("--ways", "3")):
        assert run(*words, *wrong)[0] == 2
    assert run("publish", "check", plan, tmp_path / "bundle")[0] == 2, "no price"
    assert len(json.loads(run("budget", tmp_path / "clinic.toml", "--json")[1])["charges"]) == 3


def test_a_series_goes_on_in_the_terminal(run: Run, plan: Path, tmp_path: Path) -> None:
    """Later periods are free, each is drawn once, and the series is resumed in another process."""
    codebook = tmp_path / "clinic.toml"
    codebook.write_text(codebook.read_text() + 'day = "date"\n')
    plan.write_text(plan.read_text() + SERIES)
    assert run("publish", "go-on", plan, "monthly")[0] == 2, "not published yet"
    assert run("publish", plan, "--out", tmp_path / "bundle")[0] == 0
    before = json.loads(run("budget", codebook, "--json")[1])["left"]
    first = json.loads(run("publish", "go-on", plan, "monthly", "--periods", "2", "--json")[1])["periods"]
    again = json.loads(run("publish", "go-on", plan, "monthly", "--periods", "0", "--json")[1])["periods"]
    assert len(first) == 4 and again == first
    assert json.loads(run("budget", codebook, "--json")[1])["left"] == before
    code, _, told = run("publish", "go-on", plan, "weekly")
    assert code == 2 and "monthly" in told
    assert run("publish", "go-on", plan, "monthly", "--periods", "-1")[0] == 2


def test_the_word_release_may_be_left_out(run: Run, plan: Path) -> None:
    shown = run("publish", "--preview", plan)[1]
    assert shown == run("publish", "release", plan, "--preview")[1] and "one shot" in shown
    assert "go-on" in run("publish", "--help")[1]
