"""The command line: the commands put together, and errors turned into exit codes.

A command is imported when it runs, so that ``discreet --help`` is quick. An error becomes one message
on standard error, or JSON on standard output, and an exit code by its root: 2 you asked wrongly, 3 privacy forbids it,
4 our bug.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from typing import Annotated, Any, ClassVar

import typer

from discreet.cli.late_commands import LateGroup
from discreet.cli.signs import prepare_streams
from discreet.errors import DiscreetError


class Commands(LateGroup):
    """Every command, in the order of the help."""

    late: ClassVar = {
        "init": ("init:init", "Write a first codebook, or add to the one that is there."),
        "check": ("check:check", "Is the codebook right, and are its choices wise?"),
        "preview": ("ask:preview", "Show what an answer would cost and how wrong it would be."),
        "ask": ("ask:ask", "Answer a question, and charge the budget for it."),
        "explain": ("ask:explain", "Show the plan of a question, or what a parameter means."),
        "budget": ("budget:budget", "Show what is left, and every charge so far."),
        "demo": ("demo:demo", "Make fictional data and show how it all works."),
        "batch": ("batch:batch", "Answer all questions of a file under one price."),
        "publish": ("publish:app", "Publish tables and synthetic rows once, as a bundle."),
        "bounds": ("bounds:bounds", "Find bounds of a column, or how much a unit contributes."),
        "audit": ("audit:audit", "Check that the guarantee holds on this installation."),
        "attack": ("attack:attack", "Run an attack, without privacy and with it."),
        "learn": ("learn:learn", "Read the theory, a page at a time."),
        "show": ("show:show", "Draw a mechanism: both laws, the loss, the best attack."),
        "help": ("help_pages:show_help", "Say what an error means and what to do about it."),
        "serve": ("serve:serve", "Serve datasets to those who have a token, over HTTP, and to clients of PostgreSQL."),
        "mcp": ("mcp:serve_agent", "Serve a dataset to an agent, over standard input and output."),
        "import": ("import_file:import_file", "Write a file as typed Parquet."),
        "ledger": ("ledger:app", "Look after the record of charges and answers."),
        "local": ("local:app", "Collect answers that are private before they leave the person."),
        "token": ("token:app", "Say who may ask over the service."),
    }

    def invoke(self, ctx: Any) -> Any:
        """Run a command. Where it is interrupted after a charge, the curator has noted what stands."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            typer.echo(" ".join(["Interrupted.", *getattr(interrupt, "__notes__", ())]), err=True)
            raise typer.Exit(130) from None


app = typer.Typer(
    name="discreet",
    cls=Commands,
    help="Ask private data, within a budget.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


# So many new objects are made before Python looks for garbage cycles; its own 700 make it look 200 times at start.
_OBJECTS_BETWEEN_SEARCHES = 100_000


def main() -> None:
    """Run the command line and leave with the right exit code."""
    _search_seldom_for_garbage()
    # No plugin of another package is searched for, and none sees what a codebook says.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
    prepare_streams()
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


def _search_seldom_for_garbage() -> None:
    """A fifth of a short command is the search for cycles, most of it when Python exits and everything is let go."""
    gc.set_threshold(_OBJECTS_BETWEEN_SEARCHES, *gc.get_threshold()[1:])
    atexit.register(_search_no_more)


def _search_no_more() -> None:
    """Take all objects out of the last searches. What has to be closed is closed by its owner or by ``atexit``.

    It was registered first, so it runs last. DuckDB counts its objects at the very end and prints a warning if any
    were not collected: where it was loaded, Python searches as ever.
    """
    if "_duckdb" not in sys.modules:
        gc.freeze()


def _fail(error: DiscreetError) -> None:
    from discreet.cli import printing
    from discreet.cli.output import make_console, wants_json
    from discreet.row_formats import to_json

    message = "\n".join([str(error), *getattr(error, "__notes__", ())])
    if wants_json(sys.argv):
        typer.echo(to_json({"error": {"code": error.code, "message": message}}))
        return
    printing.print_error(make_console(stderr=True), message, error.code)


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


if __name__ == "__main__":
    main()
