"""``discreet batch``: many questions of one file, priced together and asked as one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.option_groups import leave_out, take_groups
from discreet.cli.options import CodebookPath, OfferOptions, note_forgetful, open_curator, read_number, read_question
from discreet.cli.output import OutputOptions, Printout

if TYPE_CHECKING:
    from rich.console import Console

    from discreet.answer import Answer
    from discreet.preview import BatchPreview


@take_groups
def batch(
    codebook: CodebookPath,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="SQL questions, each ended by a semicolon.")],
    *,
    weights: Annotated[
        str | None, typer.Option(help="How much of the price each question gets, such as 2,1,1.", metavar="W,W,...")
    ] = None,
    fixed: Annotated[
        bool, typer.Option("--fixed", help="Price all as one plan, charged as one (ε, δ): less noise.")
    ] = False,
    preview: Annotated[bool, typer.Option("--preview", help="Show the price and the errors; charge nothing.")] = False,
    offer: Annotated[OfferOptions, leave_out("error", "group_size", "parameter", "bounds")],
    output: OutputOptions,
) -> None:
    """Answer all questions of a file under one price.

    All of them, or none: they are one charge. With --preview nothing is charged.
    """
    from discreet.frontends.sql.script import split_statements

    questions = split_statements(read_question("", file))
    offered = offer.read("Say what all of it may cost: --epsilon 2, or --rho 0.1.") | {"fixed": fixed}
    if weights is not None:
        offered["weights"] = [read_number(weight, "--weights") for weight in weights.split(",")]
    with open_curator(codebook) as curator:
        if preview:
            output.print(_make_preview(curator.preview_batch(questions, **offered)))
            return
        answers = curator.ask_batch(questions, **offered)
        note_forgetful(curator.ledger)
    output.print(_make_printout(questions, answers))


def _make_preview(shown: BatchPreview) -> Printout:
    from discreet.cli import answer_printing, rows

    return Printout(
        rows=lambda: rows.batch_preview_rows(shown.each),
        document=shown.to_dict,
        draw=lambda console: console.out(str(shown), highlight=False),
        note=answer_printing.describe_price(shown),
    )


def _make_printout(questions: Sequence[str], answers: Sequence[Answer]) -> Printout:
    from discreet.cli import answer_printing, rows

    return Printout(
        rows=lambda: rows.batch_rows(answers),
        document=lambda: [answer.to_dict() for answer in answers],
        draw=lambda console: _draw(console, questions, answers),
        note=answer_printing.describe_receipt(answers[-1]),
    )


def _draw(console: Console, questions: Sequence[str], answers: Sequence[Answer]) -> None:
    from discreet.cli import answer_printing

    for text, answer in zip(questions, answers):
        console.print(" ".join(text.split()), style="bold", markup=False)
        answer_printing.print_answer(console, answer)
