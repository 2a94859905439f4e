"""The auditor catches every broken mechanism of the catalogue, and passes every right one."""

from __future__ import annotations

import pytest

from discreet.audit import Verdict, installation
from tests.audit.broken import BROKEN, RIGHT, TIGHT, Entry


def marked(entries: tuple[Entry, ...]) -> list[object]:
    return [pytest.param(e, id=str(e), marks=[pytest.mark.long] if e.long else []) for e in entries]


@pytest.mark.parametrize("entry", marked(BROKEN))
def test_broken_is_caught(entry: Entry) -> None:
    """The claim is refuted, with a witness."""
    finding = entry.audit()
    assert finding.verdict is Verdict.BROKEN, finding
    if finding.method != "exact":
        assert finding.witness is not None and finding.witness.event


@pytest.mark.parametrize("entry", marked(RIGHT))
def test_right_passes(entry: Entry) -> None:
    """No false alarm, and where the claim is tight the bound comes close to it."""
    finding = entry.audit()
    assert finding.verdict is Verdict.HOLDS, finding
    if entry.id in TIGHT:
        assert finding.lower is not None and finding.claimed is not None
        assert finding.lower >= 0.9 * finding.claimed


def test_catalogue_is_whole() -> None:
    """All 30 kinds of the catalogue are there, and all right ones but our own questions, which are audited below."""
    numbers = {int("".join(filter(str.isdigit, entry.id))) for entry in BROKEN}
    assert numbers == set(range(1, 31))
    assert {int("".join(filter(str.isdigit, entry.id))) for entry in RIGHT} == set(range(1, 13))


@pytest.mark.long
def test_whole_catalogue() -> None:
    """Everything, one after the other, each in the time that its audit is given."""
    assert [str(e) for e in BROKEN if e.audit().verdict is not Verdict.BROKEN] == []
    assert [str(e) for e in RIGHT if not e.audit()] == []


@pytest.mark.long
def test_this_installation_holds() -> None:
    """C13: every mechanism and every type of question of our own."""
    findings = installation.audit()
    assert [f for f in findings if not f] == []
    assert sum(f.alpha for f in findings) <= 1e-3
