"""``discreet ledger`` from the shell, on a codebook whose ledger was used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from discreet.cli.main import app
from discreet.codebook import Codebook
from discreet.errors import LedgerDamaged, LedgerError
from discreet.ledger.sqlite import SQLiteLedger
from discreet.opening import ledger_path_of, terms_of
from tests.ledger.charges import charge

CODEBOOK = """
name = "hospital"
unit = "patient_id"
analysts = ["ana", "ben"]
[budget]
epsilon = 1
per_query = 0.5
[tables.visits]
source = "visits.csv"
max_rows = 3
[tables.visits.columns]
patient_id = "integer"
"""


@pytest.fixture
def codebook(tmp_path: Path) -> Path:
    path = tmp_path / "hospital.toml"
    path.write_text(CODEBOOK)
    book = Codebook.load(path)
    with SQLiteLedger.on(ledger_path_of(book), terms_of(book)) as ledger:
        for i in range(3):
            ledger.commit(ledger.reserve(charge(f"r{i}")), {"value": i})
        ledger.reserve(charge("r3", analyst="ben"))
    return path


def run(*words: Any) -> Result:
    return CliRunner().invoke(app, ["ledger", *map(str, words)], catch_exceptions=True)


def good(*words: Any) -> str:
    done = run(*words)
    assert done.exit_code == 0, done.exception
    return str(done.stdout)


def test_verify_history_and_show(codebook: Path) -> None:
    """The ledger is found by its codebook or by itself."""
    assert "8 entries" in good("verify", codebook)
    assert json.loads(good("verify", codebook.with_suffix(".ledger"), "--json"))["unanswered"] == 1
    assert good("history", codebook).count("\n") == 4 and "(not answered)" in good("history", codebook)
    assert [row["analyst"] for row in json.loads(good("history", codebook, "--json"))] == ["ana"] * 3 + ["ben"]
    assert json.loads(good("show", codebook, 1))["kind"] == "reserved"
    assert isinstance(run("show", codebook, 99).exception, LedgerError)


def test_exports_and_pictures(codebook: Path, tmp_path: Path) -> None:
    """To the terminal or to a file."""
    assert good("export", codebook).count("\n") == 8
    assert good("export", codebook, "--form", "csv").startswith("number,time,kind")
    good("export", codebook, "--form", "registry", "--out", tmp_path / "registry.json")
    assert json.loads((tmp_path / "registry.json").read_text())["dataset"] == "hospital"
    assert "ana" in good("burndown", codebook)
    assert good("burndown", codebook, "--svg").startswith("<svg")
    assert "import hashlib" in good("verifier")
    assert isinstance(run("export", codebook, "--out", tmp_path / "no" / "where").exception, LedgerError)


def test_heads_and_backups(codebook: Path, tmp_path: Path) -> None:
    """A head that was kept is checked; a backup that is put back is refused until it is declared."""
    head, copy = tmp_path / "head.json", tmp_path / "copy.ledger"
    good("backup", codebook, copy)
    book = Codebook.load(codebook)
    with SQLiteLedger.on(ledger_path_of(book), terms_of(book)) as ledger:
        ledger.commit(ledger.reserve(charge("later")), {})
    good("head", codebook, "--out", head)
    assert "whole" in good("verify", codebook, "--head", head)
    ledger_path_of(book).write_bytes(copy.read_bytes())
    assert isinstance(run("verify", codebook, "--head", head).exception, LedgerDamaged)
    good("restore", codebook, "--by", "cora", "--reason", "the disk broke")
    good("verify", codebook)
    assert isinstance(run("verify", codebook, "--head", tmp_path / "nothing").exception, LedgerError)


def test_amend_and_renew(codebook: Path) -> None:
    """A changed codebook is refused until it is on record; renewing needs a statement."""
    codebook.write_text(CODEBOOK.replace("epsilon = 1", "epsilon = 2"))
    book = Codebook.load(codebook)
    with pytest.raises(LedgerError, match="ledger amend"):
        SQLiteLedger.on(ledger_path_of(book), terms_of(book))
    assert "entry 8" in good("amend", codebook, "--by", "cora", "--reason", "more data")
    SQLiteLedger.on(ledger_path_of(book), terms_of(book)).close()
    assert isinstance(run("renew", codebook, "--by", "cora", "--reason", "new").exception, LedgerError)
    good("renew", codebook, "--by", "cora", "--reason", "a new cohort", "--other-people")
    with SQLiteLedger.on(ledger_path_of(book), terms_of(book)) as ledger:
        assert ledger.spent == 0
    codebook.write_text(CODEBOOK.replace("patient_id", "visit_id"))
    assert isinstance(run("amend", codebook, "--by", "cora", "--reason", "x").exception, LedgerError)
