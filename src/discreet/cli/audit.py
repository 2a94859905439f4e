"""``discreet audit``: does the guarantee hold on this installation?"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from discreet.errors import UsageError

# What a shell sees when a check did not hold: privacy forbids relying on this installation.
NOT_HELD = 3


def audit(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer runs and neighbours: under a minute.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    html: Annotated[Path | None, typer.Option("--html", help="Also write one HTML page.", metavar="FILE")] = None,
) -> None:
    """Check that the guarantee holds on this installation.

    Every mechanism, every type of question, randomness and the ledger. Exit code 0 only if everything holds.
    """
    if html is not None and not html.parent.is_dir():
        raise UsageError(f"There is no folder {html.parent}. Make it first. Nothing was checked.")
    from rich.console import Console
    from rich.progress import Progress

    from discreet.audit import installation, report
    from discreet.audit.findings import all_hold

    start = time.monotonic()
    progress = Console(stderr=True)
    with Progress(console=progress, transient=True, disable=not progress.is_terminal) as bar:
        task = bar.add_task("auditing", total=None)
        found = installation.audit(quick=quick, watch=lambda f: bar.update(task, advance=1, description=f.name[:50]))
    seconds = time.monotonic() - start
    if html is not None:
        html.write_text(report.render_html(found, seconds), encoding="utf-8")
    if as_json:
        typer.echo(json.dumps(report.as_dict(found, seconds), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        report.show(Console(highlight=False), found, seconds)
    if not all_hold(found):
        raise typer.Exit(NOT_HELD)
