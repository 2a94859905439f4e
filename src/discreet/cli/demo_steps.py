"""The demo: a hospital that does not exist, asked in earnest. A preview, an answer, a refusal, and the budget."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from discreet import demo
from discreet.cli import answer_printing, printing
from discreet.cli.budget import print_budget
from discreet.codebook import Codebook
from discreet.codebook.checklist import find_worst_odds
from discreet.errors import DiscreetError, InternalError
from discreet.exact import float_up

if TYPE_CHECKING:
    from rich.console import Console

    from discreet.answer import Answer
    from discreet.curator import Curator

QUESTION = "SELECT ward, COUNT(*) AS n, AVG(age) AS age FROM visits GROUP BY ward ORDER BY n DESC"
ROWS = "SELECT * FROM visits WHERE age > 90"
RARE = "SELECT diagnosis, COUNT(*) AS n FROM visits GROUP BY diagnosis ORDER BY n DESC LIMIT 5"
EPSILON = 1
ERROR = 200


def run(console: Console, path: Path, curator: Curator) -> None:
    """Show everything once, on a terminal."""
    codebook = Codebook.load(path)
    _print_protection(console, codebook, path)
    _print_step(console, "What would this cost, and how wrong would it be?")
    _print_command(console, f'discreet preview {path} "{QUESTION}" --epsilon {EPSILON}')
    answer_printing.print_preview(console, curator.preview(QUESTION, epsilon=EPSILON))
    _print_step(console, "Ask it")
    _print_command(console, f'discreet ask {path} "{QUESTION}" --epsilon {EPSILON}')
    answer_printing.print_answer(console, ask_question(curator))
    _print_step(console, "Or say how exact it must be; rare groups stay unnamed")
    _print_command(console, f'discreet ask {path} "{RARE}" --error n={ERROR}')
    answer_printing.print_answer(console, curator.ask(RARE, error={"n": ERROR}))
    _print_step(console, "Some questions have no private answer")
    _print_command(console, f'discreet ask {path} "{ROWS}" --epsilon {EPSILON}')
    error = find_refusal(curator)
    printing.print_error(console, str(error), error.code)
    _print_step(console, "What is left?")
    _print_command(console, f"discreet budget {path}")
    print_budget(console, curator.ledger, find_worst_odds(codebook).sentence())
    _print_step(console, "The same in the browser, with cost and error while you type")
    _print_command(console, f"discreet serve {path}    (here also: make serve; needs discreet[serve])")


def run_as_record(path: Path, curator: Curator) -> dict[str, Any]:
    """The same as plain values."""
    preview = curator.preview(QUESTION, epsilon=EPSILON).to_dict()
    answer = ask_question(curator)
    return {
        "codebook": str(path),
        "preview": preview,
        "rows": answer.table.to_pylist(),
        "receipt": dict(answer.receipt),
        "refused": find_refusal(curator).code,
        "remaining": curator.remaining,
    }


def ask_question(curator: Curator) -> Answer:
    """The answer of the demo; free where it was given before."""
    return curator.ask(QUESTION, epsilon=EPSILON)


def find_refusal(curator: Curator) -> DiscreetError:
    """The error that a question for rows of people meets."""
    try:
        curator.ask(ROWS, epsilon=EPSILON)
    except DiscreetError as error:
        return error
    raise InternalError("A question for single rows was answered.")


def _print_protection(console: Console, codebook: Codebook, path: Path) -> None:
    tables = ", ".join(codebook.document.tables)
    budget = codebook.budget
    delta = f" at δ {float_up(budget.slack()):g}" if budget.slack() else ""
    limit = codebook.document.tables["visits"].max_rows
    printing.print_done(
        console, "demo data", f"{tables} (fictional; {demo.VISITS:,} visits of {demo.PATIENTS:,} patients)"
    )
    printing.print_done(console, "codebook", f"{path}    protects: one patient, up to {limit} visits")
    printing.print_done(
        console, "budget", f"ε {float_up(budget.amount()):g}{delta}\n{find_worst_odds(codebook).sentence()}"
    )


def _print_step(console: Console, text: str) -> None:
    console.print()
    line = "─" * (min(console.width, printing.PAGE) - len(text) - 1)
    console.print(Text(text, style="bold").append(f" {line}", style="green"))


def _print_command(console: Console, text: str) -> None:
    console.print(Text("$ ", style="dim").append(text))
    console.print()
