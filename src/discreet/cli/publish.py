"""``discreet publish``: a release from a plan, as a bundle, and the check of a bundle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.errors import UsageError
from discreet.row_formats import to_json

if TYPE_CHECKING:
    from discreet.publish.bundle import Bundle


def publish(
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="A plan in TOML; or the word verify, and a bundle.")],
    bundle: Annotated[Path | None, typer.Argument(metavar="BUNDLE", help="With verify: the folder to check.")] = None,
    *,
    preview: Annotated[bool, typer.Option("--preview", help="Show cost, method and errors; charge nothing.")] = False,
    out: Annotated[Path | None, typer.Option("--out", help="The folder of the bundle.", metavar="FOLDER")] = None,
    analyst: Annotated[str, typer.Option(help="Who is charged, where the codebook names analysts.")] = "analyst",
    project: Annotated[str, typer.Option(help="The project that is charged.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Publish tables and synthetic rows once, as a bundle.

    Anybody may ask the bundle anything, for ever, for nothing.

    discreet publish plan.toml --preview
    discreet publish plan.toml --out bundle/
    discreet publish verify bundle/
    """
    if plan == "verify":
        _verify(bundle, as_json=as_json)
        return
    if bundle is not None:
        raise UsageError("One plan is published at a time; the folder goes after --out. Nothing was charged.")
    from discreet.publish import publication

    if preview:
        shown = publication.preview(plan, analyst=analyst, project=project)
        typer.echo(to_json(shown.to_dict()) if as_json else str(shown))
        return
    if out is None:
        raise UsageError("Say --preview to look first, or --out FOLDER to publish. Nothing was charged.")
    made = _run(plan, out, analyst, project, quiet=as_json)
    typer.echo(to_json(dict(made.manifest)) if as_json else f"{made!r}\n{out}")


def _run(plan: str, out: Path, analyst: str, project: str, *, quiet: bool) -> Bundle:
    """Publish with a bar on standard error."""
    from rich.progress import Progress

    from discreet.cli.output import make_console
    from discreet.publish import publication

    with Progress(console=make_console(stderr=True), disable=quiet, transient=True) as progress:
        task = progress.add_task("counting", total=1.0)
        return publication.publish(
            plan,
            out=out,
            analyst=analyst,
            project=project,
            watch=lambda share: progress.update(task, completed=share),
        )


def _verify(bundle: Path | None, *, as_json: bool) -> None:
    from discreet.publish.verification import holds, to_rows, verify

    if bundle is None:
        raise UsageError("Say which bundle: discreet publish verify bundle/")
    checks = verify(bundle)
    if as_json:
        typer.echo(to_json({"holds": holds(checks), "checks": to_rows(checks)}))
    else:
        for check in checks:
            typer.echo(f"{'holds' if check.holds else 'FAILS'}  {check.name}: {check.found}")
    if not holds(checks):
        raise typer.Exit(2)
