"""The command line: the commands put together, and errors turned into exit codes.

Nothing heavy is imported until a command needs it, so that ``discreet --help`` is quick. An error becomes one message
on standard error, or JSON on standard output, and an exit code by its root: 2 you asked wrongly, 3 privacy forbids it,
4 our bug.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from discreet.cli import (
    ask,
    attack,
    audit,
    batch,
    bounds,
    budget,
    check,
    demo,
    import_file,
    init,
    learn,
    ledger,
    local,
    publish,
    serve,
    show,
    token,
)
from discreet.cli.output import make_console, wants_json
from discreet.errors import DiscreetError
from discreet.row_formats import to_json

app = typer.Typer(
    name="discreet",
    help="Ask private data, within a budget.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def main() -> None:
    """Run the command line and leave with the right exit code."""
    try:
        app(prog_name="discreet")
    except DiscreetError as error:
        _fail(error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader has gone. Python would complain again when it flushes at exit, so that is sent nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


def _fail(error: DiscreetError) -> None:
    if wants_json(sys.argv):
        typer.echo(to_json({"error": {"code": error.code, "message": str(error)}}))
        return
    from discreet.cli import printing

    printing.print_error(make_console(stderr=True), str(error), error.code)


def _print_version(value: bool) -> None:  # noqa: FBT001  # typer's shape of a callback
    if value:
        from discreet import __version__

        typer.echo(f"discreet {__version__}")
        raise typer.Exit


@app.callback()
def root(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Ask private data, within a budget."""


for command in (
    init.init,
    check.check,
    ask.preview,
    ask.ask,
    ask.explain,
    budget.budget,
    demo.demo,
    batch.batch,
    publish.publish,
    bounds.bounds,
    audit.audit,
    attack.attack,
    learn.learn,
    show.show,
    serve.serve,
):
    app.command()(command)
app.command("import")(import_file.import_file)
app.add_typer(ledger.app)
app.add_typer(local.app)
app.add_typer(token.app)

if __name__ == "__main__":
    main()
