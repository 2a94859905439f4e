"""The lessons from the shell: ``discreet attack`` lists them, ``discreet attack NAME`` runs one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from discreet.attacks.outcome import Outcome


def attack(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="The lesson; without it, all are listed.")] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a picture.")] = False,
) -> None:
    """Run an attack, without privacy and with it.

    Fictional people, a real attack: how often it succeeds on plain statistics, how often on answers of discreet, and
    the most that any attack could. Without a name, the list. For example: discreet attack differencing
    """
    if name is None:
        _list(as_json=as_json)
        return
    from discreet import attacks

    outcome = attacks.run(name)
    if as_json:
        typer.echo(json.dumps(outcome.to_dict(), indent=2, ensure_ascii=False))
    else:
        _show(outcome)


def _list(*, as_json: bool) -> None:
    from discreet.attacks import LESSONS

    if as_json:
        typer.echo(json.dumps(dict(LESSONS), indent=2, ensure_ascii=False))
        return
    from rich.console import Console

    from discreet.cli import printing

    printing.print_facts(Console(highlight=False), LESSONS.items())
    typer.echo("Run one: discreet attack differencing")


def _show(outcome: Outcome) -> None:
    """The picture as it is, and the words below it folded to the screen."""
    from rich.console import Console
    from rich.text import Text

    from discreet.attacks import LESSONS
    from discreet.cli import printing

    console = Console(highlight=False)
    printing.print_heading(console, f"{outcome.name}: {LESSONS[outcome.name]}")
    console.print()
    for line in outcome.picture():
        console.print(Text(line), no_wrap=True, overflow="crop")
    console.print()
    console.print(Text(outcome.lesson))
    printing.print_facts(console, ((name, str(value)) for name, value in outcome.facts.items()))
