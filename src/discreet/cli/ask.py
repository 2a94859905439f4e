"""One question: ``discreet preview`` prices it, ``discreet ask`` answers it, ``discreet explain`` shows its plan."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.explain_parameter import PARAMETERS, explain_parameter
from discreet.cli.option_groups import leave_out, take_groups
from discreet.cli.options import CodebookPath, OfferOptions, Sql, SqlFile, note_forgetful, open_curator, read_question
from discreet.cli.output import OutputOptions, Printout, make_console

if TYPE_CHECKING:
    from rich.console import Console

    from discreet.answer import Answer
    from discreet.curator import Curator
    from discreet.preview import Preview


@take_groups
def preview(
    codebook: CodebookPath,
    sql: Sql = "",
    *,
    file: SqlFile = None,
    curve: Annotated[bool, typer.Option("--curve", help="Show what other shares of the budget would buy.")] = False,
    offer: OfferOptions,
    output: OutputOptions,
) -> None:
    """Show what an answer would cost and how wrong it would be.

    Free: computed from public facts, no data is read, nothing is charged.
    """
    question = read_question(sql, file)
    with open_curator(codebook) as curator:
        offered = offer.read_any(question) if curve else _read_offer(offer, question, curator)
        output.print(_make_preview(curator.preview(question, curve=curve, **offered)))


@take_groups
def ask(
    codebook: CodebookPath, sql: Sql = "", *, file: SqlFile = None, offer: OfferOptions, output: OutputOptions
) -> None:
    """Answer a question, and charge the budget for it.

    Say what it may cost (--epsilon, --rho) or how exact it must be (--error). Asking the same again is free.
    """
    question = read_question(sql, file)
    with open_curator(codebook) as curator:
        offered = _read_offer(offer, question, curator)
        answer = _ask_with_progress(curator, question, offered)
        note_forgetful(curator.ledger)
        output.print(_make_printout(answer))


@take_groups
def explain(
    codebook: CodebookPath,
    sql: Sql = "",
    *,
    file: SqlFile = None,
    offer: Annotated[OfferOptions, leave_out("bounds", "analyst", "project")],
    output: OutputOptions,
) -> None:
    """Show the plan of a question, or what a parameter means.

    Without a price it is shown at a tenth of the budget. Free: no data is read, nothing is charged.
    A parameter takes the place of the codebook: discreet explain epsilon 0.5 tells the odds, the error that it buys and
    published uses, with a picture.
    """
    from discreet.cli.rows import make_rows

    if codebook in PARAMETERS:
        output.print(explain_parameter(codebook, sql))
        return
    question = read_question(sql, file)
    offered = offer.read_if_stated(question)
    with open_curator(codebook) as curator:
        text = curator.explain(question, **offered)
    lines = [{"line": number, "text": line} for number, line in enumerate(text.splitlines(), 1)]
    output.print(
        Printout(
            rows=partial(make_rows, {"line": "integer", "text": "text"}, lines),
            document=lambda: {"explanation": text},
            draw=lambda console: console.out(text, highlight=False),
        )
    )


def _read_offer(offer: OfferOptions, question: str, curator: Curator) -> dict[str, Any]:
    """The offer for a question; none is needed where only public tables are read."""
    if offer.prices == 0:
        stated = offer.read_any(question)
        if curator.is_free(question, stated.get("public"), stated.get("parameters")):
            return stated
    return offer.read_for(question)


def _make_preview(shown: Preview) -> Printout:
    from discreet.bound_search import AutomaticPreview
    from discreet.cli import answer_printing, rows
    from discreet.computation_preview import ComputationPreview

    if isinstance(shown, ComputationPreview):
        return Printout(
            rows=lambda: rows.batch_preview_rows(shown.each),
            document=shown.to_dict,
            draw=lambda console: console.out(str(shown), highlight=False),
            note=answer_printing.describe_price(shown),
        )
    if not isinstance(shown, AutomaticPreview):
        return Printout(
            rows=lambda: rows.preview_rows(shown),
            document=shown.to_dict,
            draw=lambda console: answer_printing.print_preview(console, shown),
            note=answer_printing.describe_price(shown),
        )
    return Printout(
        rows=lambda: rows.preview_rows(shown.final, shown.open),
        document=shown.to_dict,
        draw=lambda console: console.out(str(shown), highlight=False),
        note=answer_printing.describe_price(shown),
    )


def _make_printout(answer: Answer) -> Printout:
    from discreet.cli import answer_printing

    def draw(console: Console) -> None:
        answer_printing.print_answer(console, answer)

    return Printout(
        rows=lambda: answer.table,
        document=answer.to_dict,
        draw=draw,
        note=answer_printing.describe_receipt(answer),
    )


def _ask_with_progress(curator: Curator, question: str, offered: Mapping[str, Any]) -> Answer:
    """Ask, with a bar on standard error where somebody may be watching."""
    screen = make_console(stderr=True)
    if not screen.is_terminal:
        return curator.ask(question, **offered)
    from rich.progress import Progress

    with Progress(console=screen, transient=True) as progress:
        task = progress.add_task("asking", total=1.0)
        return curator.ask(question, watch=lambda share: progress.update(task, completed=share), **offered)
