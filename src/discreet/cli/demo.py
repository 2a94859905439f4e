"""``discreet demo``: fictional data, and a tour of what can be done with it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.option_groups import take_groups
from discreet.cli.options import open_curator
from discreet.cli.output import OutputOptions, Printout
from discreet.errors import UsageError


@take_groups
def demo(
    *,
    folder: Annotated[Path, typer.Option(help="Where to put the fictional data.")] = Path("demo"),
    output: OutputOptions,
) -> None:
    """Make fictional data and show how it all works.

    A preview, an answer, a refusal and the budget of a hospital that does not exist.
    """
    from discreet import demo as hospital
    from discreet.cli import demo_steps

    try:
        path = hospital.write(folder)
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror}. Give another --folder.") from None
    with open_curator(str(path)) as curator:
        output.print(
            Printout(
                rows=lambda: demo_steps.ask_question(curator).table,
                document=lambda: demo_steps.run_as_record(path, curator),
                draw=lambda console: demo_steps.run(console, path, curator),
            )
        )
