"""``discreet audit``: does the guarantee hold on this installation?"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.option_groups import take_groups
from discreet.cli.output import OutputOptions, Printout, make_console, write_file
from discreet.errors import UsageError

if TYPE_CHECKING:
    from discreet.audit.findings import Finding

# What a shell sees when a check did not hold: privacy forbids relying on this installation.
NOT_HELD = 3

_FINDINGS = {
    "name": "text",
    "method": "text",
    "verdict": "text",
    "holds": "boolean",
    "detail": "text",
    "claim": "text",
    "claimed": "real",
    "delta": "real",
    "lower": "real",
    "delta_lower": "real",
    "alpha": "real",
    "samples": "integer",
    "smallest": "real",
    "needed": "integer",
    "witness": "text",
    "seconds": "real",
}


@take_groups
def audit(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer runs and neighbours: under three minutes.")] = False,
    controls: Annotated[
        bool, typer.Option("--controls", help="Plant known bugs in this process, and check that the audit finds each.")
    ] = False,
    html: Annotated[Path | None, typer.Option("--html", help="Also write one HTML page.", metavar="FILE")] = None,
    output: OutputOptions,
) -> None:
    """Check that the guarantee holds on this installation.

    Every mechanism, every type of question, engines, randomness, the ledger and the local model. Exit code 0 only if
    everything holds. With --controls the audit itself is checked, by bugs that are planted and taken out again.
    """
    if controls and quick:
        raise UsageError("--controls always uses the quick form. Leave one of --quick and --controls out.")
    if html is not None and not html.parent.is_dir():
        raise UsageError(f"There is no folder {html.parent}. Make it first. Nothing was checked.")
    from rich.progress import Progress

    from discreet.audit import report
    from discreet.audit.findings import all_hold

    start = time.monotonic()
    screen = make_console(stderr=True)
    with Progress(console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task("auditing", total=None)
        found = _run(quick=quick, controls=controls, watch=lambda f: bar.update(task, description=f.name[:50]))
    seconds = time.monotonic() - start
    if html is not None:
        write_file(html, report.render_html(found, seconds))
    output.print(_make_printout(found, seconds))
    if not all_hold(found):
        raise typer.Exit(NOT_HELD)


def _run(*, quick: bool, controls: bool, watch: Callable[[Finding], None]) -> list[Finding]:
    if controls:
        from discreet.audit.controls import run_controls

        return run_controls(watch=watch)
    from discreet.audit import installation

    return installation.audit(quick=quick, watch=watch)


def _make_printout(found: Sequence[Finding], seconds: float) -> Printout:
    from discreet.audit import report
    from discreet.cli.rows import make_rows

    def list_findings() -> list[dict[str, object]]:
        return [f.to_dict() | {"witness": None if f.witness is None else str(f.witness)} for f in found]

    return Printout(
        rows=lambda: make_rows(_FINDINGS, list_findings()),
        document=lambda: report.as_dict(found, seconds),
        draw=lambda console: report.show(console, found, seconds),
        note=report.summarize(found, seconds),
    )
