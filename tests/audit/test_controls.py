"""The audit finds every bug that is planted, and planting leaves nothing behind."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from typer.testing import CliRunner

from discreet.accounting.spending_classes import ClassCurrency
from discreet.audit import Verdict, controls, installation, planting
from discreet.audit.controls import PLANTED, run_control
from discreet.audit.findings import Finding, all_hold
from discreet.audit.planting import PlantedBug, swap, swap_all
from discreet.cli.main import app
from discreet.privacy import Budget

# Sections whose controls take longer than a second or two each; one of each kind is in the usual run.
SLOW = ("engines", "mechanisms", "questions")
QUICK = (
    "one more in the engine: rows in a group",
    "caps under joins over everybody",
    "Laplace noise a tenth short",
    "named keys by size",
    "min_units before the rule",
)


def marked() -> list[object]:
    long = [pytest.mark.long]
    return [
        pytest.param(bug, id=str(bug), marks=long if bug.section in SLOW and bug.name not in QUICK else [])
        for bug in PLANTED
    ]


@pytest.mark.parametrize("bug", marked())
def test_a_planted_bug_is_found(bug: PlantedBug) -> None:
    """By the section that must find it, in the quick form; a section that only breaks down does not count."""
    finding = run_control(bug)
    assert finding.holds, finding


@pytest.mark.parametrize(
    "section",
    [
        *("ledger", "curator", "local", "engines"),
        *(pytest.param(section, marks=pytest.mark.long) for section in ("mechanisms", "questions", "channels")),
    ],
)
def test_without_a_bug_the_section_holds(section: str) -> None:
    assert [f for f in installation.run_section(section, quick=True) if not f] == []


def test_every_section_of_use_has_controls() -> None:
    """Randomness and channels have controls of their own, in the tests of their modules."""
    assert {bug.section for bug in PLANTED} == installation.SECTIONS.keys() - {"randomness", "channels"}
    assert len({bug.name for bug in PLANTED}) == len(PLANTED) >= 28


@pytest.mark.parametrize("name", ["classes that do not share δ", "a class with too large a limit"])
def test_no_store_keeps_what_a_bug_made(name: str) -> None:
    """Limits of filters are stored; after a control they are the right ones."""
    budget = Budget(epsilon=Fraction(7, 5), delta=Fraction(1, 10**7))
    bug = next(bug for bug in PLANTED if bug.name == name)
    with bug.plant():
        wrong = ClassCurrency.of(budget).classes
    assert ClassCurrency.of(budget).classes != wrong


class Owner:
    """Something to plant in."""

    value = 1


def test_planting_leaves_nothing_behind() -> None:
    """Also where the checks raise."""
    plant = swap_all(swap(Owner, "value", lambda right: right + 1), swap(Owner, "value", lambda right: 10 * right))

    def break_down() -> None:
        with plant():
            assert Owner.value == 20
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        break_down()
    assert Owner.value == 1


def test_a_bug_in_something_that_is_gone_is_an_error() -> None:
    """A control that plants nothing would prove nothing."""
    with pytest.raises(KeyError), swap(Owner, "gone", lambda right: right)():
        pass


def test_a_bug_that_nobody_finds_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A control fails where its section holds all the same, and where the section only breaks down."""
    harmless = PlantedBug(name="none", changes="nothing", section="local", plant=swap(Owner, "value", lambda r: r))
    assert run_control(harmless).verdict is Verdict.BROKEN

    def stumble(quick: bool) -> list[Finding]:
        raise RuntimeError("on its own")

    monkeypatch.setitem(installation.SECTIONS, "local", stumble)
    assert run_control(harmless).verdict is Verdict.BROKEN
    (told,) = installation.run_section("local", quick=True)
    assert told.verdict is Verdict.RAISES and "RuntimeError" in told.detail


def test_command_runs_the_controls(monkeypatch: pytest.MonkeyPatch) -> None:
    few = [bug for bug in PLANTED if bug.section == "local"]
    monkeypatch.setattr(controls, "PLANTED", few)
    monkeypatch.setattr(controls.run_controls, "__defaults__", (few,))
    result = CliRunner().invoke(app, ["audit", "--controls", "--json"])
    found = json.loads(result.stdout)
    assert result.exit_code == 0 and len(found["findings"]) == len(few)
    assert CliRunner().invoke(app, ["audit", "--controls", "--quick"]).exit_code != 0


def test_findings_of_controls_are_findings() -> None:
    bug = next(bug for bug in PLANTED if bug.name == "a constant salt")
    found = controls.run_controls([bug])
    assert all_hold(found) and planting.PlantedBug is type(bug)
