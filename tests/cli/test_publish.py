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
