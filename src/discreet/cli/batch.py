"""``discreet batch``: many questions of one file, priced together and asked as one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.options import (
    AnalystOption,
    CodebookPath,
    DeltaOption,
    EpsilonOption,
    JsonOption,
    LevelOption,
    ProjectOption,
    PublicOption,
    RhoOption,
    make_console,
    note_forgetful,
    open_curator,
    print_json,
    read_number,
    read_offer,
    read_question,
)
from discreet.errors import UsageError

if TYPE_CHECKING:
    from discreet.answer import Answer


def batch(
    codebook: CodebookPath,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="SQL questions, each ended by a semicolon.")],
    *,
    epsilon: EpsilonOption = None,
    rho: RhoOption = None,
    delta: DeltaOption = None,
    weights: Annotated[
        str | None, typer.Option(help="How much of the price each question gets, such as 2,1,1.", metavar="W,W,...")
    ] = None,
    fixed: Annotated[
        bool, typer.Option("--fixed", help="Price all as one plan, charged as one (ε, δ): less noise.")
    ] = False,
    preview: Annotated[bool, typer.Option("--preview", help="Show the price and the errors; charge nothing.")] = False,
    level: LevelOption = "0.95",
    public: PublicOption = None,
    analyst: AnalystOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Answer all questions of a file under one price.

    All of them, or none: they are one charge. With --preview nothing is charged.
    """
    from discreet.frontends.sql.script import split_statements

    questions = split_statements(read_question("", file))
    if epsilon is None and rho is None:
        raise UsageError("Say what all of it may cost: --epsilon 2, or --rho 0.1. Nothing was charged.")
    offered = read_offer(
        "", epsilon=epsilon, rho=rho, delta=delta, level=level, analyst=analyst, project=project, public=public
    )
    offered |= {"fixed": fixed}
    if weights is not None:
        offered["weights"] = [read_number(weight, "--weights") for weight in weights.split(",")]
    with open_curator(codebook) as curator:
        if preview:
            shown = curator.preview_batch(questions, **offered)
            print_json(shown.to_dict()) if as_json else typer.echo(str(shown))
            return
        answers = curator.ask_batch(questions, **offered)
        note_forgetful(curator)
    if as_json:
        print_json([_to_plain(answer) for answer in answers])
        return
    _show(questions, answers)


def _to_plain(answer: Answer) -> dict[str, Any]:
    return {
        "rows": answer.table.to_pylist(),
        "receipt": dict(answer.receipt),
        "remaining": answer.remaining,
        "replayed": answer.replayed,
    }


def _show(questions: list[str], answers: tuple[Answer, ...]) -> None:
    from discreet.cli import printing

    out = make_console()
    for text, answer in zip(questions, answers):
        out.print(" ".join(text.split()), style="bold", markup=False)
        printing.print_answer(out, answer)
