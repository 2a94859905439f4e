"""The lessons from the shell: ``discreet attack`` lists them, ``discreet attack NAME`` runs one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.option_groups import take_groups
from discreet.cli.output import OutputOptions, Printout

if TYPE_CHECKING:
    from rich.console import Console

    from discreet.attacks.outcome import Outcome

_BARS = {"label": "text", "value": "real", "low": "real", "high": "real", "n": "integer"}


@take_groups
def attack(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="The lesson; without it, all are listed.")] = None,
    *,
    output: OutputOptions,
) -> None:
    """Run an attack, without privacy and with it.

    Fictional people, a real attack: how often it succeeds on plain statistics, how often on answers of discreet, and
    the most that any attack could. Without a name, the list. For example: discreet attack differencing
    """
    if name is None:
        output.print(_make_list())
        return
    from discreet import attacks

    output.print(_make_printout(attacks.run(name)))


def _make_list() -> Printout:
    from discreet.attacks import LESSONS
    from discreet.cli.rows import make_rows

    found = [{"name": name, "about": about} for name, about in LESSONS.items()]
    return Printout(
        rows=lambda: make_rows({"name": "text", "about": "text"}, found),
        document=lambda: dict(LESSONS),
        draw=_draw_list,
    )


def _draw_list(console: Console) -> None:
    from discreet.attacks import LESSONS
    from discreet.cli import printing

    printing.print_facts(console, LESSONS.items())
    console.out("Run one: discreet attack differencing", highlight=False)


def _make_printout(outcome: Outcome) -> Printout:
    from discreet.cli.rows import make_rows

    document = outcome.to_dict()
    return Printout(
        rows=lambda: make_rows(_BARS, document["picture"]),
        document=lambda: document,
        draw=lambda console: _draw(console, outcome),
    )


def _draw(console: Console, outcome: Outcome) -> None:
    """The picture as it is, and the words below it folded to the screen."""
    from rich.text import Text

    from discreet.attacks import LESSONS
    from discreet.cli import printing

    printing.print_heading(console, f"{outcome.name}: {LESSONS[outcome.name]}")
    console.print()
    for line in outcome.picture():
        console.print(Text(line), no_wrap=True, overflow="crop")
    console.print()
    console.print(Text(outcome.lesson))
    printing.print_facts(console, ((name, str(value)) for name, value in outcome.facts.items()))
