"""``discreet budget``: what is left, what it means, and every charge so far."""

from __future__ import annotations

from discreet.cli.option_groups import take_groups
from discreet.cli.options import CodebookPath, note_forgetful, open_curator
from discreet.cli.output import OutputOptions, Printout

_CHARGES = {"number": "integer", "analyst": "text", "question": "text", "cost": "text", "answered": "boolean"}


@take_groups
def budget(codebook: CodebookPath, *, output: OutputOptions) -> None:
    """Show what is left, and every charge so far."""
    from discreet.accounting.cost_words import describe_cost
    from discreet.cli import printing
    from discreet.cli.rows import make_rows
    from discreet.codebook import Codebook
    from discreet.codebook.checklist import find_worst_odds
    from discreet.exact import float_down, float_up

    odds = find_worst_odds(Codebook.load(codebook)).sentence()
    with open_curator(codebook) as curator:
        left, whole = float_down(curator.ledger.remaining), float_up(curator.budget.amount())
        charges = [
            {
                "number": entry.number,
                "analyst": entry.charge.analyst,
                "question": entry.charge.question,
                "cost": describe_cost(curator.budget, entry.charge.loss),
                "answered": entry.answered,
            }
            for entry in curator.history()
        ]
        note_forgetful(curator)
        known = {"left": left, "whole": whole, "words": curator.remaining, "odds": odds}
        output.print(
            Printout(
                rows=lambda: make_rows(_CHARGES, charges),
                document=lambda: {**known, "charges": charges},
                draw=lambda console: printing.print_budget(console, curator, odds),
                note=f"left {curator.remaining}",
            )
        )
