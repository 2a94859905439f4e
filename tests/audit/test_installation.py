"""The audit of an installation, its reports and its command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from discreet import mechanisms
from discreet.audit import Finding, Verdict, Witness, installation, machinery, report
from discreet.audit.findings import all_hold
from discreet.audit.subjects import list_subjects
from discreet.cli.main import app
from discreet.entropy import Words
from discreet.frontends import read_sql
from discreet.ledger.ledger import Charge, Reservation
from discreet.ledger.memory import MemoryLedger
from discreet.mechanisms import Laplace
from discreet.plan.statistics.definitions import Statistic
from discreet.privacy import Budget

GOOD = Finding(name="right", method="exact", verdict=Verdict.HOLDS, claim="ε = 1", claimed=1.0, lower=0.9)
BAD = Finding(
    name="<wrong>",
    method="black box",
    verdict=Verdict.BROKEN,
    claimed=1.0,
    lower=2.0,
    alpha=1e-3,
    samples=1000,
    smallest=0.01,
    witness=Witness(first="[1]", second="[1, 2]", event="output is 3", hits=9, runs=10, other_hits=0, other_runs=10),
)


def test_every_mechanism_is_a_subject() -> None:
    """No public mechanism is left out of the audit, except the ones that only combine others."""
    audited = {type(subject.mechanism).__name__ for subject in list_subjects()}
    public = {name for name in mechanisms.__all__ if isinstance(getattr(mechanisms, name), type)}
    noises = {"Laplace", "Gaussian", "RoundedGaussian"}
    assert noises <= audited
    assert {n for n in public if hasattr(getattr(mechanisms, n), "privacy")} - audited == set()


@pytest.mark.parametrize(
    "name", ["Laplace", "RoundedGaussian", "RandomizedResponse (the coin)", "KeySelection (3 or 4 units)", "Mean"]
)
def test_a_subject_holds(name: str) -> None:
    subject = next(s for s in list_subjects() if s.name == name)
    found = list(installation.check_subject(subject, 1e-6, quick=True))
    assert [f.method for f in found] == ["exact", "draws", "black box"]
    assert all_hold(found)


def test_a_sampler_with_a_wrong_scale_is_caught_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: noise of 4/5 of its scale fails the fit and the black box, whatever the stated law says."""
    subject = next(s for s in list_subjects() if s.name == "Laplace")
    real = Laplace.release

    def bent(self: Laplace, values: object, **more: object) -> object:
        return real(Laplace(sensitivity=1, scale=0.8 * float(self.scale or 1)), values, **more)  # type: ignore[arg-type]  # a stand-in

    monkeypatch.setattr(Laplace, "release", bent)
    verdicts = [f.verdict for f in installation.check_subject(subject, 1e-6, quick=True)]
    assert verdicts == [Verdict.HOLDS, Verdict.BROKEN, Verdict.BROKEN]


def test_declared_noise_holds() -> None:
    assert all_hold(installation.check_declared_noise())


def test_randomness_and_ledger_hold() -> None:
    assert all_hold([check(1e-9) for check in machinery.list_randomness_checks()])
    assert all_hold(machinery.check_ledger())


@pytest.mark.parametrize("fault", ["stuck bit", "stuck word"])
def test_bad_randomness_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: a source with a stuck bit, and one that repeats itself."""

    class Stuck:
        def words(self, count: int) -> Words:
            words = np.arange(count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
            return words | np.uint64(1) if fault == "stuck bit" else words // np.uint64(2**60)

        def word(self) -> int:
            return 7

        def bits(self, count: int) -> int:  # noqa: ARG002  # the protocol's name
            return 0

    monkeypatch.setattr(machinery, "SYSTEM", Stuck())
    assert [check(1e-9).verdict for check in machinery.list_randomness_checks()].count(Verdict.BROKEN) >= 2
    assert machinery.check_separate_threads(1e-9).verdict is Verdict.BROKEN


def test_a_forgiving_ledger_is_caught() -> None:
    """Negative control: a ledger with twice the budget is found out."""
    generous = MemoryLedger(Budget(epsilon=2), unit=None, neighbours="add-remove", dataset="audit")
    assert "beyond the budget" in machinery._overspend(generous)


def test_a_ledger_that_charges_twice_is_caught() -> None:
    """Negative control: a ledger that does not know a request again is found out."""

    class Forgetful(MemoryLedger):
        def reserve(self, charge: Charge) -> Reservation:
            return replace(super().reserve(charge), record=None)

    forgetful = Forgetful(Budget(epsilon=1), unit=None, neighbours="add-remove", dataset="audit")
    assert "charged twice" in machinery._overspend(forgetful)


def test_nothing_checked_is_not_a_pass() -> None:
    assert not all_hold([]) and all_hold([GOOD]) and not all_hold([GOOD, BAD])


def test_html_is_one_safe_page() -> None:
    """Names are escaped, there is a picture, and nothing is loaded from elsewhere."""
    page = report.render_html([GOOD, BAD], 1.0)
    assert "<svg" in page and "&lt;wrong&gt;" in page and "<wrong>" not in page
    assert "src=" not in page and "<script" not in page and "1 did not hold" in page
    assert "seen 9 of 10 times on D" in page


def test_json_of_a_report() -> None:
    record = json.loads(json.dumps(report.as_dict([GOOD, BAD], 1.0), allow_nan=False))
    assert record["holds"] is False and record["false_alarms"] == 1e-3
    assert record["findings"][1]["witness"]["hits"] == 9


@pytest.mark.parametrize(("findings", "code"), [([GOOD], 0), ([GOOD, BAD], 3), ([], 3)])
def test_command(findings: list[Finding], code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Exit code 0 only if everything holds; JSON and HTML on request."""
    monkeypatch.setattr(installation, "audit", lambda **_: findings)
    page = tmp_path / "audit.html"
    result = CliRunner().invoke(app, ["audit", "--quick", "--json", "--html", str(page)])
    assert result.exit_code == code and page.read_text().startswith("<!doctype html>")
    assert json.loads(result.stdout)["holds"] is (code == 0)
    shown = CliRunner().invoke(app, ["audit", "--quick"])
    assert shown.exit_code == code and f"{len(findings)} checks" in shown.stdout


def test_command_refuses_a_folder_that_is_not_there(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["audit", "--html", str(tmp_path / "none" / "audit.html")])
    assert result.exit_code != 0


def test_every_statistic_is_asked() -> None:
    """The questions come from the table of statistics, so that none is left out of the audit."""
    catalog = installation.make_lines()[0][1].catalog
    asked = {a.statistic for text in installation.QUESTIONS for a in read_sql.read(text, catalog).aggregates}
    assert asked == set(Statistic)
    text = " ".join(installation.QUESTIONS)
    assert all(name in text for name in ("COVAR_POP", "CORR", "REGR_SLOPE", "REGR_INTERCEPT", "WEIGHTED_AVG"))
