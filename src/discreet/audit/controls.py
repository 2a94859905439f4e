"""The audit of the audit: every planted bug, and whether the section that must find it does."""

from __future__ import annotations

import time
from collections.abc import Sequence

from discreet.audit import planted_charges, planted_numbers
from discreet.audit.findings import Finding, Verdict
from discreet.audit.installation import FindingWatch, run_section
from discreet.audit.planting import PlantedBug

PLANTED: tuple[PlantedBug, ...] = (
    *planted_charges.LEDGER,
    *planted_charges.CHARGES,
    *planted_charges.LOCAL,
    *planted_numbers.BOUNDING,
    *planted_numbers.ENGINES,
    *planted_numbers.MECHANISMS,
    *planted_numbers.KEYS,
)


def run_controls(planted: Sequence[PlantedBug] = PLANTED, *, watch: FindingWatch | None = None) -> list[Finding]:
    """Plant one bug after the other, and audit until it is found. A finding holds where the bug was found."""
    found = []
    for bug in planted:
        finding = run_control(bug)
        found.append(finding)
        if watch is not None:
            watch(finding)
    return found


def run_control(bug: PlantedBug) -> Finding:
    """Whether the quick form of the bug's section finds it; it stops at the first thing that it finds."""
    start = time.monotonic()
    with bug.plant():
        findings = run_section(bug.section, quick=True)
        first = next((finding for finding in findings if finding.verdict is Verdict.BROKEN), None)
    return Finding(
        name=f"planted: {bug.name}",
        method="control",
        verdict=Verdict.BROKEN if first is None else Verdict.HOLDS,
        detail=f"not found: {bug.changes}" if first is None else f"found by {first.name[:60]}",
        claim=f"found by the section {bug.section}",
        seconds=time.monotonic() - start,
    )
