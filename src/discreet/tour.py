"""The demo: a hospital that does not exist, asked in earnest. A preview, an answer, a refusal, and the budget."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from discreet import demo, terminal
from discreet.codebook import Codebook
from discreet.codebook.checklist import worst_case
from discreet.errors import DiscreetError, InternalError
from discreet.exact import float_up

if TYPE_CHECKING:
    from rich.console import Console

    from discreet.curator import Curator

QUESTION = "SELECT ward, COUNT(*) AS n, AVG(age) AS age FROM visits GROUP BY ward ORDER BY n DESC"
ROWS = "SELECT * FROM visits WHERE age > 90"
RARE = "SELECT diagnosis, COUNT(*) AS n FROM visits GROUP BY diagnosis ORDER BY n DESC LIMIT 5"
EPSILON = 1
ERROR = 200


def run(console: Console, path: Path, curator: Curator) -> None:
    """Show everything once, on a terminal."""
    codebook = Codebook.load(path)
    _what_is_protected(console, codebook, path)
    _step(console, "What would this cost, and how wrong would it be?")
    _command(console, f'discreet preview {path} "{QUESTION}" --epsilon {EPSILON}')
    terminal.preview(console, curator.preview(QUESTION, epsilon=EPSILON))
    _step(console, "Ask it")
    _command(console, f'discreet ask {path} "{QUESTION}" --epsilon {EPSILON}')
    terminal.answer(console, curator.ask(QUESTION, epsilon=EPSILON))
    _step(console, "Or say how exact it must be; rare groups stay unnamed")
    _command(console, f'discreet ask {path} "{RARE}" --error n={ERROR}')
    terminal.answer(console, curator.ask(RARE, error={"n": ERROR}))
    _step(console, "Some questions have no private answer")
    _command(console, f'discreet ask {path} "{ROWS}" --epsilon {EPSILON}')
    error = refusal(curator)
    terminal.error(console, str(error), error.code)
    _step(console, "What is left?")
    _command(console, f"discreet budget {path}")
    terminal.budget(console, curator, worst_case(codebook).sentence())


def record(path: Path, curator: Curator) -> dict[str, Any]:
    """The same as plain values."""
    preview = curator.preview(QUESTION, epsilon=EPSILON).to_dict()
    answer = curator.ask(QUESTION, epsilon=EPSILON)
    return {
        "codebook": str(path),
        "preview": preview,
        "rows": answer.table.to_pylist(),
        "receipt": dict(answer.receipt),
        "refused": refusal(curator).code,
        "remaining": curator.remaining,
    }


def refusal(curator: Curator) -> DiscreetError:
    """The error that a question for rows of people meets."""
    try:
        curator.ask(ROWS, epsilon=EPSILON)
    except DiscreetError as error:
        return error
    raise InternalError("A question for single rows was answered.")


def _what_is_protected(console: Console, codebook: Codebook, path: Path) -> None:
    tables = ", ".join(codebook.document.tables)
    budget = codebook.budget
    delta = f" at δ {float_up(budget.slack()):g}" if budget.slack() else ""
    limit = codebook.document.tables["visits"].max_rows
    terminal.done(console, "demo data", f"{tables} (fictional; {demo.VISITS:,} visits of {demo.PATIENTS:,} patients)")
    terminal.done(console, "codebook", f"{path}    protects: one patient, up to {limit} visits")
    terminal.done(console, "budget", f"ε {float_up(budget.amount()):g}{delta}\n{worst_case(codebook).sentence()}")


def _step(console: Console, text: str) -> None:
    console.print()
    console.rule(Text(text, style="bold"), align="left", characters="─")


def _command(console: Console, text: str) -> None:
    console.print(Text("$ ", style="dim").append(text))
    console.print()
