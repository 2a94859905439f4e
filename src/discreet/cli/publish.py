"""``discreet publish``: a release from a plan, as a bundle, and the check of a bundle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.option_groups import leave_out, take_groups
from discreet.cli.output import OutputOptions, Printout
from discreet.errors import UsageError

if TYPE_CHECKING:
    from discreet.publish.bundle import Bundle
    from discreet.publish.release_preview import ReleasePreview


_TABLES = {"table": "text", "cells": "integer", "error": "real", "noise": "real"}
_CHECKS = {"check": "text", "holds": "boolean", "found": "text"}
_FILES = {"file": "text"}


@take_groups
def publish(
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="A plan in TOML; or the word verify, and a bundle.")],
    bundle: Annotated[Path | None, typer.Argument(metavar="BUNDLE", help="With verify: the folder to check.")] = None,
    *,
    preview: Annotated[bool, typer.Option("--preview", help="Show cost, method and errors; charge nothing.")] = False,
    out: Annotated[Path | None, typer.Option("--out", help="The folder of the bundle.", metavar="FOLDER")] = None,
    analyst: Annotated[str, typer.Option(help="Who is charged, where the codebook names analysts.")] = "analyst",
    project: Annotated[str, typer.Option(help="The project that is charged.")] = "",
    output: Annotated[OutputOptions, leave_out("out")],
) -> None:
    """Publish tables and synthetic rows once, as a bundle.

    Anybody may ask the bundle anything, for ever, for nothing.

    discreet publish plan.toml --preview
    discreet publish plan.toml --out bundle/
    discreet publish verify bundle/
    """
    if plan == "verify":
        _verify(bundle, output)
        return
    if bundle is not None:
        raise UsageError("One plan is published at a time; the folder goes after --out. Nothing was charged.")
    from discreet.publish import publication

    if preview:
        output.print(_make_preview(publication.preview(plan, analyst=analyst, project=project)))
        return
    if out is None:
        raise UsageError("Say --preview to look first, or --out FOLDER to publish. Nothing was charged.")
    made = _run(plan, out, analyst, project, quiet=not output.for_eyes)
    output.print(_make_printout(made, out))


def _make_preview(shown: ReleasePreview) -> Printout:
    from discreet.cli.rows import make_rows

    return Printout(
        rows=lambda: make_rows(_TABLES, shown.tables()),
        document=shown.to_dict,
        draw=lambda console: console.out(str(shown), highlight=False),
    )


def _make_printout(made: Bundle, out: Path) -> Printout:
    """The manifest as a document, the files as rows."""
    from discreet.cli.rows import make_rows

    files = [{"file": str(path.relative_to(out))} for path in sorted(out.rglob("*")) if path.is_file()]
    return Printout(
        rows=lambda: make_rows(_FILES, files),
        document=lambda: dict(made.manifest),
        draw=lambda console: console.out(f"{made!r}\n{out}", highlight=False),
    )


def _run(plan: str, out: Path, analyst: str, project: str, *, quiet: bool) -> Bundle:
    """Publish with a bar on standard error."""
    from rich.progress import Progress

    from discreet.cli.output import make_console
    from discreet.publish import publication

    with Progress(console=make_console(stderr=True), disable=quiet, transient=True) as progress:
        task = progress.add_task("publishing", total=1.0)
        return publication.publish(
            plan,
            out=out,
            analyst=analyst,
            project=project,
            watch=lambda share: progress.update(task, completed=share),
        )


def _verify(bundle: Path | None, output: OutputOptions) -> None:
    from discreet.cli.rows import make_rows
    from discreet.publish.verification import holds, to_rows, verify

    if bundle is None:
        raise UsageError("Say which bundle: discreet publish verify bundle/")
    checks = verify(bundle)
    lines = [f"{'holds' if check.holds else 'FAILS'}  {check.name}: {check.found}" for check in checks]
    output.print(
        Printout(
            rows=lambda: make_rows(_CHECKS, to_rows(checks)),
            document=lambda: {"holds": holds(checks), "checks": to_rows(checks)},
            draw=lambda console: console.out("\n".join(lines), highlight=False),
        )
    )
    if not holds(checks):
        raise typer.Exit(2)
