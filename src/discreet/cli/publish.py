"""``discreet publish``: a release from a plan, as a bundle; and what is done with bundles later."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer
from typer.core import TyperGroup

from discreet.cli.option_groups import leave_out, take_groups
from discreet.cli.options import OfferOptions
from discreet.cli.output import OutputOptions, Printout
from discreet.errors import UsageError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from discreet.curator import Curator
    from discreet.publish.bundle import Bundle
    from discreet.publish.column_check import ColumnReport
    from discreet.publish.metered_check import UtilityReport
    from discreet.publish.release_preview import ReleasePreview


_TABLES = {"table": "text", "cells": "integer", "error": "real", "noise": "real"}
_CHECKS = {"check": "text", "holds": "boolean", "found": "text"}
_FILES = {"file": "text"}
_DISTANCES = {"table": "text", "distance": "real", "deviation": "real"}
_CELLS = {"column": "text", "cell": "text", "value": "real", "low": "real", "high": "real", "rows": "integer"}
_PERIODS = {"period": "integer", "start": "text", "value": "real", "low": "real", "high": "real"}


class PublishGroup(TyperGroup):
    """Commands about releases; the first of them is meant where none is named: ``discreet publish plan.toml``."""

    default: ClassVar[str] = "release"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Name the command that is meant."""
        named = not args or args[0] in self.commands or "--help" in args[:1]
        return super().parse_args(ctx, args if named else [self.default, *args])


app = typer.Typer(
    name="publish",
    cls=PublishGroup,
    help="Publish tables and synthetic rows once, as a bundle. The word release may be left out: discreet publish "
    "plan.toml --out bundle/",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

PlanPath = Annotated[Path, typer.Argument(metavar="PLAN", help="A plan in TOML.")]
BundlePath = Annotated[Path, typer.Argument(metavar="BUNDLE", help="The folder of a bundle.")]
Analyst = Annotated[str, typer.Option(help="Who is charged, where the codebook names analysts.")]
Project = Annotated[str, typer.Option(help="The project that is charged.")]


@app.command()
@take_groups
def release(
    plan: PlanPath,
    *,
    preview: Annotated[bool, typer.Option("--preview", help="Show cost, method and errors; charge nothing.")] = False,
    out: Annotated[Path | None, typer.Option("--out", help="The folder of the bundle.", metavar="FOLDER")] = None,
    analyst: Analyst = "analyst",
    project: Project = "",
    output: Annotated[OutputOptions, leave_out("out")],
) -> None:
    """Publish what a plan says, as a bundle: one charge, one draw.

    Anybody may ask the bundle anything, for ever, for nothing. The same plan again goes on after a crash, and is free.

    discreet publish plan.toml --preview

    discreet publish plan.toml --out bundle/
    """
    from discreet.publish import publication

    if preview:
        output.print(_make_preview(publication.preview(plan, analyst=analyst, project=project)))
        return
    if out is None:
        raise UsageError("Say --preview to look first, or --out FOLDER to publish. Nothing was charged.")
    made = _run(plan, out, analyst, project, quiet=not output.for_eyes)
    output.print(_make_printout(made, out))


@app.command()
@take_groups
def verify(bundle: BundlePath, *, output: OutputOptions) -> None:
    """Recompute everything in a bundle that follows from its measurements.

    It needs no data, codebook or ledger. Where a check fails, the exit code is 2.
    """
    from discreet.cli.rows import make_rows
    from discreet.publish import verification

    checks = verification.verify(bundle)
    lines = [f"{'holds' if check.holds else 'FAILS'}  {check.name}: {check.found}" for check in checks]
    whole = verification.holds(checks)
    output.print(
        Printout(
            rows=lambda: make_rows(_CHECKS, verification.to_rows(checks)),
            document=lambda: {"holds": whole, "checks": verification.to_rows(checks)},
            draw=lambda console: console.out("\n".join(lines), highlight=False),
        )
    )
    if not whole:
        raise typer.Exit(2)


@app.command()
@take_groups
def ask(
    bundle: BundlePath,
    question: Annotated[str, typer.Argument(metavar="SQL", help="A question about the table release.")],
    *,
    output: OutputOptions,
) -> None:
    """Ask a bundle in SQL, for nothing.

    Counts within a measured table have promised intervals; everything else comes from synthetic rows, and is marked as
    a model only.
    """
    from discreet.cli import printing
    from discreet.publish.bundle import Bundle

    answer = Bundle.load(bundle).ask(question)
    kind = f"{'promised' if answer.promised else 'model only'}: {answer.reason}"

    def draw(console: Any) -> None:
        rows = [[_write(value) for value in row.values()] for row in answer.rows.to_pylist()]
        printing.print_table(console, answer.rows.column_names, rows)
        console.out(kind, highlight=False)

    output.print(
        Printout(
            rows=lambda: answer.rows,
            document=lambda: {"rows": answer.rows.to_pylist(), "promised": answer.promised, "reason": answer.reason},
            draw=draw,
            note=kind,
        )
    )


@app.command(name="go-on")
@take_groups
def go_on(
    plan: PlanPath,
    series: Annotated[str, typer.Argument(metavar="SERIES", help="The name of a series of the plan.")],
    *,
    periods: Annotated[int, typer.Option(help="How many further periods to release; 0 shows those there are.")] = 1,
    analyst: Analyst = "analyst",
    project: Project = "",
    output: OutputOptions,
) -> None:
    """Release the next periods of a series that was published, for nothing.

    All periods were paid for when the plan was published. Each is counted and drawn once, in order: release a period
    when its rows are there. What is shown are all periods so far.
    """
    from discreet.cli.rows import make_rows
    from discreet.publish import publication

    if periods < 0:
        raise UsageError("--periods is 0 or more. Nothing was charged.")
    with _open_curator(plan) as curator:
        opened = publication.go_on(plan, series, curator=curator, analyst=analyst, project=project)
        for _ in range(periods):
            opened.release()
        found = [asdict(point) | {"start": str(point.start)} for point in opened.points()]
    lines = [f"{row['start']}  {row['value']:,.1f} ({row['low']:,.1f} to {row['high']:,.1f})" for row in found]
    output.print(
        Printout(
            rows=lambda: make_rows(_PERIODS, found),
            document=lambda: {"series": series, "periods": found},
            draw=lambda console: console.out("\n".join(lines) or "No period was released yet.", highlight=False),
        )
    )


@app.command()
@take_groups
def check(
    plan: PlanPath,
    bundle: BundlePath,
    *,
    score: Annotated[
        str, typer.Option(help="distance (k-marginal), propensity (pMSE), or columns (counts and plots of each).")
    ] = "distance",
    ways: Annotated[int, typer.Option(help="Compare tables of so many columns: 1, 2 or 3.")] = 3,
    page: Annotated[Path | None, typer.Option(help="Write the pictures to a new HTML file.", metavar="FILE")] = None,
    offer: Annotated[OfferOptions, leave_out("error", "group_size", "parameter", "bounds", "delta", "ends", "public")],
    output: OutputOptions,
) -> None:
    """Buy a report of how far a bundle's synthetic rows are from the private data.

    It is charged once, like a question; the same check again is free. What needs no data is in the bundle's page.

    discreet publish check plan.toml bundle/ --epsilon 0.5

    discreet publish check plan.toml bundle/ --epsilon 0.5 --score columns --page columns.html
    """
    from discreet.publish.column_check import check_columns
    from discreet.publish.metered_check import check_rows

    _check_page(page)
    offered = offer.read("Say what the check may cost: --epsilon 0.5, or --rho 0.01.")
    with _open_curator(plan) as curator:
        found: ColumnReport | UtilityReport
        if score == "columns":
            found = check_columns(plan, bundle, curator=curator, **offered)
        else:
            found = check_rows(plan, bundle, curator=curator, ways=ways, score=score, **offered)
    if page is not None:
        from discreet.publish.page import wrap_page

        page.write_text(wrap_page(f"{plan.stem}: synthetic rows against private data", found.draw()), encoding="utf-8")
    output.print(_make_report(found))


def _write(value: Any) -> str:
    if value is None:
        return "NULL"
    return f"{value:,.6g}" if isinstance(value, float) else str(value)


def _check_page(page: Path | None) -> None:
    if page is not None and (page.exists() or not page.absolute().parent.is_dir()):
        raise UsageError(f"{page} cannot be written: it exists, or its folder does not. Nothing was charged.")


def _make_report(found: ColumnReport | UtilityReport) -> Printout:
    from discreet.cli.rows import make_rows
    from discreet.publish.column_check import ColumnReport

    kinds = _CELLS if isinstance(found, ColumnReport) else _DISTANCES
    return Printout(
        rows=lambda: make_rows(kinds, found.to_rows()),
        document=found.to_dict,
        draw=lambda console: console.out(str(found), highlight=False),
        note=str(found).split("\n", 1)[0],
    )


def _open_curator(plan: Path) -> AbstractContextManager[Curator]:
    """The curator of the codebook that a plan names."""
    from discreet.publish.publication import open_plan

    return open_plan(plan)


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


def _run(plan: Path, out: Path, analyst: str, project: str, *, quiet: bool) -> Bundle:
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
