"""``discreet bounds``: buy what a codebook leaves out, and see the price first."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, assert_never

import typer

from discreet.cli.option_groups import leave_out, take_groups
from discreet.cli.options import CodebookPath, OfferOptions, note_forgetful, open_curator, read_number
from discreet.cli.output import OutputOptions, Printout, make_console
from discreet.errors import UsageError

if TYPE_CHECKING:
    import pyarrow
    from rich.console import Console

    from discreet.bound_search import Bounds, BoundsPreview, Contributions
    from discreet.curator import Curator
    from discreet.preview import Preview

_LIMITS = {
    "of": "text",
    "by": "text",
    "share": "real",
    "max_rows": "integer",
    "max_groups": "integer",
    "max_rows_per_group": "integer",
}


@take_groups
def bounds(
    codebook: CodebookPath,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The table.")],
    column: Annotated[str | None, typer.Argument(metavar="COLUMN", help="A column of numbers.")] = None,
    *,
    by: Annotated[
        list[str] | None, typer.Option(help="A column to group by; repeat for more.", metavar="COLUMN")
    ] = None,
    share: Annotated[
        str | None,
        typer.Option(help="The share of units that limits should leave whole, instead of the least loss and noise."),
    ] = None,
    preview: Annotated[bool, typer.Option("--preview", help="Only show what it would cost; free.")] = False,
    offer: Annotated[
        OfferOptions, leave_out("share", "error", "group_size", "delta", "level", "public", "parameter", "bounds")
    ],
    output: OutputOptions,
) -> None:
    """Find bounds of a column, or how much a unit contributes.

    With a column: a range for its values. Without: with how many rows one unit should count, and with --by in how many
    groups. It is a question like any other: charged, recorded, and free when asked again. For example:
    discreet bounds hospital.toml visits cost --epsilon 0.1
    """
    if column is not None and by:
        raise UsageError("--by is for limits on units; leave out the column. Nothing was charged.")
    offered = offer.read("Say what it may cost: --epsilon 0.1, or --rho 0.01.")
    limits: dict[str, Any] = {"by": tuple(by or ()), "share": None if share is None else read_number(share, "--share")}
    with open_curator(codebook) as curator:
        look = _preview if preview else _ask
        found = look(curator, table, column, limits, offered)
        if not preview:
            note_forgetful(curator.ledger)
        output.print(_make_printout(found))


def _preview(
    curator: Curator, table: str, column: str | None, limits: dict[str, Any], offer: dict[str, Any]
) -> BoundsPreview | Preview:
    from discreet import bound_search as search

    if column is None:
        return search.preview_contributions(curator, table, **limits, **offer)
    return search.preview_bounds(curator, table, column, **offer)


def _ask(curator: Curator, table: str, column: str | None, limits: dict[str, Any], offer: dict[str, Any]) -> Any:
    """Ask, with a bar on standard error where somebody may be watching."""
    from rich.progress import Progress

    from discreet import bound_search as search

    watching = make_console(stderr=True)
    with Progress(console=watching, transient=True, disable=not watching.is_terminal) as progress:
        task = progress.add_task("looking for bounds", total=1.0)
        watched = {**offer, "watch": lambda done: progress.update(task, completed=done)}
        if column is None:
            return search.buy_contributions(curator, table, **limits, **watched)
        return search.buy_bounds(curator, table, column, **watched)


def _make_printout(found: Bounds | BoundsPreview | Contributions | Preview) -> Printout:
    from discreet.bound_search import Bounds, BoundsPreview, Contributions
    from discreet.cli import answer_printing, rows
    from discreet.preview import Preview

    match found:
        case Bounds():
            note = f"{found.words} {answer_printing.describe_receipt(found.answer)}"
            return Printout(
                rows=lambda: _make_bounds_row(found),
                document=found.to_dict,
                draw=lambda console: _draw_bounds(console, found),
                note=note,
            )
        case BoundsPreview():
            types = {"of": "text", "above": "integer", "words": "text"}
            return Printout(
                rows=lambda: rows.make_rows(types, [found.to_dict()]),
                document=found.to_dict,
                draw=lambda console: _draw_preview(console, found),
                note=answer_printing.describe_price(found.preview),
            )
        case Contributions():
            return Printout(
                rows=lambda: rows.make_rows(_LIMITS, [found.to_dict() | {"by": ", ".join(found.by)}]),
                document=found.to_dict,
                draw=lambda console: _draw_contributions(console, found),
                note=answer_printing.describe_receipt(found.answer),
            )
        case Preview():
            return Printout(
                rows=lambda: rows.preview_rows(found),
                document=found.to_dict,
                draw=lambda console: answer_printing.print_preview(console, found),
                note=answer_printing.describe_price(found),
            )
        case _:
            assert_never(found)


def _make_bounds_row(found: Bounds) -> pyarrow.Table:
    from discreet.cli.rows import make_rows

    kind = "integer" if isinstance(found.low, int) and isinstance(found.high, int) else "real"
    types = {"of": "text", "low": kind, "high": kind, "above": "integer", "doubt": "real", "codebook": "text"}
    return make_rows(types, [found.to_dict()])


def _draw_bounds(console: Console, found: Bounds) -> None:
    """A picture of the sizes that were seen, the bounds in words, and the line for the codebook."""
    from rich.text import Text

    from discreet.cli import answer_printing, printing

    if found.found:
        answer_printing.print_answer(console, replace(found.answer, rows=found.rows))
        console.print(Text(found.words))
        _draw_codebook_lines(console, [str(found.suggestion)])
    else:
        console.print(Text(found.words))
        printing.print_facts(console, [*answer_printing.list_costs(found.answer), ("left", found.answer.remaining)])


def _draw_contributions(console: Console, found: Contributions) -> None:
    from rich.text import Text

    from discreet.cli import answer_printing, printing

    console.print(Text(found.words))
    if found.found:
        _draw_codebook_lines(console, list(found.suggestions))
    printing.print_facts(console, [*answer_printing.list_costs(found.answer), ("left", found.answer.remaining)])


def _draw_preview(console: Console, found: BoundsPreview) -> None:
    from discreet.cli import printing

    shown = found.preview
    printing.print_heading(console, "Preview: nothing was charged, no data was read")
    cost = shown.cost + ("" if shown.fits else "  (more than is left)")
    protects = f"{shown.plan.unit} ({shown.plan.neighbours})"
    pairs = [("bounds", found.words), ("protects", protects), ("cost", cost), ("left", shown.remaining)]
    printing.print_facts(console, pairs)


def _draw_codebook_lines(console: Console, ways: list[str]) -> None:
    """The lines to copy, by themselves."""
    from rich.text import Text

    console.print(Text("\nFor the codebook" + (", either:" if len(ways) > 1 else ":")))
    for lines in ways:
        if lines != ways[0]:
            console.print("  or:")
        for line in lines.splitlines():
            console.print(Text(f"    {line}", style="bold"))
