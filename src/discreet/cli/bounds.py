"""``discreet bounds``: buy what a codebook leaves out, and see the price first."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.options import (
    AnalystOption,
    CodebookPath,
    EpsilonOption,
    JsonOption,
    RhoOption,
    make_console,
    note_forgetful,
    open_curator,
    print_json,
    read_number,
)
from discreet.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from discreet.bound_search import Bounds, BoundsPreview, Contributions
    from discreet.curator import Curator


def bounds(
    codebook: CodebookPath,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The table.")],
    column: Annotated[str | None, typer.Argument(metavar="COLUMN", help="A column of numbers.")] = None,
    *,
    by: Annotated[
        list[str] | None, typer.Option(help="A column to group by; repeat for more.", metavar="COLUMN")
    ] = None,
    share: Annotated[str, typer.Option(help="The share of units that limits should leave whole.")] = "0.95",
    epsilon: EpsilonOption = None,
    rho: RhoOption = None,
    analyst: AnalystOption = None,
    preview: Annotated[bool, typer.Option("--preview", help="Only show what it would cost; free.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Find bounds of a column, or how much a unit contributes.

    With a column: a range for its values. Without: how many rows one unit has, and with --by in how many groups. It is
    a question like any other: charged, recorded, and free when asked again. For example:
    discreet bounds hospital.toml visits cost --epsilon 0.1
    """
    if column is not None and by:
        raise UsageError("--by is for limits on units; leave out the column. Nothing was charged.")
    offer: dict[str, Any] = _read_offer(epsilon, rho)
    if analyst is not None:
        offer["analyst"] = analyst
    limits: dict[str, Any] = {"by": tuple(by or ()), "share": read_number(share, "--share")}
    with open_curator(codebook) as curator:
        look = _preview if preview else _ask
        found = look(curator, table, column, limits, offer)
        if not preview:
            note_forgetful(curator)
        if as_json:
            print_json(found.to_dict())
        else:
            _show(found)


def _preview(curator: Curator, table: str, column: str | None, limits: dict[str, Any], offer: dict[str, Any]) -> Any:
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


def _show(found: Any) -> None:
    from discreet.bound_search import Bounds, BoundsPreview, Contributions
    from discreet.cli import printing

    screen = make_console()
    match found:
        case Bounds():
            _show_bounds(screen, found)
        case BoundsPreview():
            _show_preview(screen, found)
        case Contributions():
            _show_contributions(screen, found)
        case _:
            printing.print_preview(screen, found)


def _show_bounds(screen: Console, found: Bounds) -> None:
    """A picture of the sizes that were seen, the bounds in words, and the line for the codebook."""
    from rich.text import Text

    from discreet.cli import printing

    if found.found:
        printing.print_answer(screen, replace(found.answer, rows=found.rows))
        screen.print(Text(found.words))
        _show_codebook_lines(screen, [str(found.suggestion)])
    else:
        screen.print(Text(found.words))
        printing.print_facts(screen, [*_list_costs(found), ("left", found.answer.remaining)])


def _show_contributions(screen: Console, found: Contributions) -> None:
    from rich.text import Text

    from discreet.cli import printing

    screen.print(Text(found.words))
    _show_codebook_lines(screen, list(found.suggestions))
    printing.print_facts(screen, [*_list_costs(found), ("left", found.answer.remaining)])


def _show_preview(screen: Console, found: BoundsPreview) -> None:
    from discreet.cli import printing

    shown = found.preview
    printing.print_heading(screen, "Preview: nothing was charged, no data was read")
    cost = shown.cost + ("" if shown.fits else "  (more than is left)")
    protects = f"{shown.plan.unit} ({shown.plan.neighbours})"
    pairs = [("bounds", found.words), ("protects", protects), ("cost", cost), ("left", shown.remaining)]
    printing.print_facts(screen, pairs)


def _show_codebook_lines(screen: Console, ways: list[str]) -> None:
    """The lines to copy, by themselves."""
    from rich.text import Text

    screen.print(Text("\nFor the codebook" + (", either:" if len(ways) > 1 else ":")))
    for lines in ways:
        if lines != ways[0]:
            screen.print("  or:")
        for line in lines.splitlines():
            screen.print(Text(f"    {line}", style="bold"))


def _list_costs(found: Bounds | Contributions) -> list[tuple[str, str]]:
    receipt = found.answer.receipt
    cost = "nothing: given before" if found.answer.replayed else str(receipt["cost"])
    return [("protects", str(receipt["protects"])), ("cost", cost)]


def _read_offer(epsilon: str | None, rho: str | None) -> dict[str, Any]:
    given = {"epsilon": epsilon, "rho": rho}
    offer = {name: read_number(text, f"--{name}") for name, text in given.items() if text is not None}
    if len(offer) != 1:
        raise UsageError("Say what it may cost: --epsilon 0.1, or --rho 0.01. Nothing was charged.")
    return offer
