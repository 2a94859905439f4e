"""``discreet budget``: what is left, what it means, and every charge so far. The data is not opened for it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from discreet.cli.option_groups import take_groups
from discreet.cli.options import CodebookPath, note_forgetful
from discreet.cli.output import OutputOptions, Printout

if TYPE_CHECKING:
    from rich.console import Console

    from discreet.ledger.ledger import Ledger

_CHARGES = {"number": "integer", "analyst": "text", "question": "text", "cost": "text", "answered": "boolean"}
_BAR = 20
_QUESTION = 100


@take_groups
def budget(codebook: CodebookPath, *, output: OutputOptions) -> None:
    """Show what is left, and every charge so far."""
    from discreet.cli.rows import make_rows
    from discreet.codebook import Codebook
    from discreet.codebook.checklist import find_worst_odds
    from discreet.exact import float_down, float_up
    from discreet.opening import open_ledger

    book = Codebook.load(codebook)
    odds = find_worst_odds(book).sentence()
    with closing(open_ledger(book)) as ledger:
        left, whole = float_down(ledger.remaining), float_up(ledger.budget.amount())
        words, charges = _describe_left(ledger), _list_charges(ledger)
        note_forgetful(ledger)
    output.print(
        Printout(
            rows=lambda: make_rows(_CHARGES, charges),
            document=lambda: {"left": left, "whole": whole, "words": words, "odds": odds, "charges": charges},
            draw=lambda console: _draw(console, left / whole if whole > 0 else 0.0, words, odds, charges),
            note=f"left {words}",
        )
    )


def print_budget(console: Console, ledger: Ledger, odds: str) -> None:
    """A bar of what is left, what the whole means, and every charge."""
    from discreet.exact import float_down, float_up

    left, whole = float_down(ledger.remaining), float_up(ledger.budget.amount())
    _draw(console, left / whole if whole > 0 else 0.0, _describe_left(ledger), odds, _list_charges(ledger))


def _describe_left(ledger: Ledger) -> str:
    from discreet.accounting.cost_words import describe_left

    return describe_left(ledger.budget, ledger.remaining, *ledger.counted)


def _list_charges(ledger: Ledger) -> list[dict[str, Any]]:
    from discreet.accounting.cost_words import describe_cost

    return [
        {
            "number": entry.number,
            "analyst": entry.charge.analyst,
            "question": entry.charge.question,
            "cost": describe_cost(ledger.budget, entry.charge.loss),
            "answered": entry.answered,
        }
        for entry in ledger.history()
    ]


def _draw(console: Console, share: float, words: str, odds: str, charges: Sequence[Mapping[str, Any]]) -> None:
    from rich.text import Text

    from discreet.cli.printing import make_table

    size = max(_BAR // 2, min(2 * _BAR, console.width - len(words) - 8))
    full = math.floor(max(0.0, min(1.0, share)) * size)
    bar = Text("█" * full, style="green").append("░" * (size - full), style="dim")
    console.print(Text("left  ", style="cyan").append(bar).append(f"  {words}"))
    console.print(Text(odds))
    if not charges:
        console.print("No question has been charged yet.")
        return
    table = make_table()
    for name in ("#", "analyst", "question", "cost", ""):
        table.add_column(name, overflow="fold")
    for charge in charges:
        question = "; ".join(charge["question"].splitlines())
        question = question if len(question) <= _QUESTION else question[: _QUESTION - 1] + "…"
        mark = "answered" if charge["answered"] else "failed"
        table.add_row(str(charge["number"]), Text(charge["analyst"]), Text(question), charge["cost"], mark)
    console.print(table)
