"""``discreet audit``: does the guarantee hold on this installation?"""

from __future__ import annotations

import time
from collections.abc import Sequence
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
    quick: Annotated[bool, typer.Option("--quick", help="Fewer runs and neighbours: under a minute.")] = False,
    html: Annotated[Path | None, typer.Option("--html", help="Also write one HTML page.", metavar="FILE")] = None,
    output: OutputOptions,
) -> None:
    """Check that the guarantee holds on this installation.

    Every mechanism, every type of question, randomness and the ledger. Exit code 0 only if everything holds.
    """
    if html is not None and not html.parent.is_dir():
        raise UsageError(f"There is no folder {html.parent}. Make it first. Nothing was checked.")
    from rich.progress import Progress

    from discreet.audit import installation, report
    from discreet.audit.findings import all_hold

    start = time.monotonic()
    screen = make_console(stderr=True)
    with Progress(console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task("auditing", total=None)
        found = installation.audit(quick=quick, watch=lambda f: bar.update(task, advance=1, description=f.name[:50]))
    seconds = time.monotonic() - start
    if html is not None:
        write_file(html, report.render_html(found, seconds))
    output.print(_make_printout(found, seconds))
    if not all_hold(found):
        raise typer.Exit(NOT_HELD)


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
